#!/usr/bin/env python3
"""Starts the arcade by `run`, opens a page at each node, and ends it: by SIGTERM, by SIGHUP, and by the end of its parent.
Nothing may be left.

usage: run.py ARCADE REDIS-SERVER    (the paths of the two programs)
"""
import contextlib
import http.client
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
RUN = HERE.parent.parent / "run"
# Long enough for a slow machine: only a failure takes as long.
SECONDS = 120


def check(what, condition, found=None):
    if not condition:
        raise SystemExit(f"failed: {what}: {found}")
    print(f"ok: {what}", flush=True)


def wait(what, condition):
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"failed in {SECONDS} s: {what}")
        time.sleep(0.02)
    print(f"ok: {what}", flush=True)


def get(port, path="/"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class Run:
    """`run` in a session of its own, whose processes are those that it has started."""

    def __init__(self, program, redis, folder, *before):
        self.process = subprocess.Popen(
            [*before, sys.executable, str(RUN), "--nodes", "3", "--port", "0", "--program", program],
            env=os.environ | {"REDISDC_TEST_SERVER": redis, "TMPDIR": folder},
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        # Ends the reading below if it does not become ready.
        limit = threading.Timer(SECONDS, self.kill)
        limit.start()
        self.text = ""
        for line in self.process.stdout:
            self.text += line
            if line.startswith("Press "):
                break
        limit.cancel()
        self.ports = [int(port) for port in re.findall(r"kill -9 \d+ +# port (\d+)", self.text)]
        self.origin = re.search(r"http://localhost:(\d+)", self.text)
        check("run says that the arcade is open", self.origin and len(self.ports) == 3, self.text)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def is_gone(self):
        """Whether no process of the session runs. One that has ended may still be in the table of processes."""
        if self.process.poll() is None:
            return False
        table = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], check=True, capture_output=True, text=True).stdout
        return not any(int(group) == self.process.pid and not state.startswith("Z")
                       for group, state in (line.split()[:2] for line in table.splitlines()))


@contextlib.contextmanager
def running(*arguments):
    run = Run(*arguments)
    try:
        yield run
    finally:
        run.kill()


def test(program, redis, folder):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        with running(program, redis, folder) as run:
            for port in [*run.ports, int(run.origin[1])]:
                status, page = get(port, "/duel/")
                check(f"port {port} serves a page", status == 200 and "<title>" in page, (status, page))
            run.process.send_signal(number)
            wait(f"after {number.name}, none of its processes is left", run.is_gone)
            check("it has ended in order", run.process.returncode == 0, run.process.returncode)
    # A shell that does not replace itself by the program, because a command follows.
    with running(program, redis, folder, "sh", "-c", '"$@"; true', "sh") as run:
        run.process.kill()
        wait("when its parent is killed, none of its processes is left", run.is_gone)
    check("no file is left", not os.listdir(folder), os.listdir(folder))


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        test(sys.argv[1], sys.argv[2], folder)


if __name__ == "__main__":
    main()
