"""What the tests share: the server of a run, its processes, and how they are judged."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import redis

HERE = pathlib.Path(__file__).resolve().parent
SEED = int(os.environ.get("REDISDC_SEED") or random.randrange(1 << 32))
KILLS = int(os.environ.get("REDISDC_KILLS") or 24)
# Long enough for a machine that stands still for a while: only a failure takes as long.
SECONDS = 180
TTL = 3.0
# That of sessions that must not end when the machine stands still.
LONG_TTL = 120.0


def check(what, condition, found=None):
    if not condition:
        raise AssertionError(f"{what}: {found}")
    print(f"ok: {what}", flush=True)


def wait(what, condition):
    end = time.monotonic() + SECONDS
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {SECONDS} s: {what}")
        time.sleep(0.005)
    return result


def raises(error, body):
    try:
        body()
    except error:
        return True
    return False


class Test:
    """The server of a run, and the processes that have been started."""

    def __init__(self, tool, folder, is_strict):
        self.tool, self.folder, self.is_strict = tool, folder, is_strict
        self.lock, self.processes, self.last_process = threading.Lock(), [], 0
        self.url = f"unix://{folder}/redis.sock"
        self.environment = os.environ | {"REDIS_URL": self.url}

    def start(self, *command, **options):
        with self.lock:
            process = subprocess.Popen(command, env=self.environment, start_new_session=True, text=True, **options)
            self.processes.append(process)
            return process

    def start_server(self):
        program = os.environ.get("REDISDC_TEST_SERVER") or "redis-server"
        with open(f"{self.folder}/server.log", "w") as log:
            self.start(program, "--port", "0", "--unixsocket", f"{self.folder}/redis.sock", "--save", "", "--dir",
                       self.folder, stdout=log, stderr=log)
        self.redis = redis.Redis.from_url(self.url)
        wait("the server answers", self.ping)

    def ping(self):
        try:
            return self.redis.ping()
        except redis.RedisError:
            return False

    def end(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()

    def run_tool(self, *arguments, statuses=(0,)):
        """Runs the tool to its end. Returns what it has printed."""
        for _ in range(5):
            process = self.start(self.tool, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            output, errors = process.communicate(timeout=SECONDS)
            # It may have given up because the machine stood still. What reads only, or has an id, can be repeated.
            if process.returncode in statuses or not {"inspect", "value", "--id", "listen"} & set(arguments):
                break
        if process.returncode not in statuses:
            raise AssertionError(f"redisdc {' '.join(arguments)}: status {process.returncode}: {output}{errors}")
        return output

    def next_process(self):
        with self.lock:
            self.last_process += 1
            return self.last_process

    def worker(self, role, process, **settings):
        """The command line of a worker."""
        settings |= {"url": self.url, "folder": str(self.folder), "process": process, "seed": SEED}
        return [sys.executable, str(HERE / "worker.py"), role, json.dumps(settings)]

    def start_worker(self, role, process, **settings):
        errors = open(f"{self.folder}/{process}.errors", "a")
        with errors:
            return self.start(*self.worker(role, process, **settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=errors)

    def ended_well(self, worker, process):
        """Waits until a worker has ended by itself."""
        worker.wait(SECONDS)
        if worker.returncode != 0:
            text = pathlib.Path(f"{self.folder}/{process}.errors").read_text()
            raise AssertionError(f"process {process} ended with {worker.returncode}: {text}")

    def events(self, process):
        """The number of events that a process has recorded."""
        try:
            return pathlib.Path(f"{self.folder}/{process}.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def judge(self, what, families):
        """Lets the tool judge the histories of all processes.

        The server loses nothing. So a contradiction that was announced is one as well, unless the tool has told a command
        too late that its lease was lost, because the machine stood still.
        """
        header = {"format": "redisdc verify", "version": 1, "seed": SEED, "ttl": round(TTL * 1000), "families": families,
                  "isLossless": True}
        lines = [json.dumps(header).encode()]
        for path in pathlib.Path(self.folder).glob("*.jsonl"):
            lines += path.read_bytes().splitlines()
            path.unlink()
        path = pathlib.Path(self.folder, f"{what}.history")
        path.write_bytes(b"\n".join(lines) + b"\n")
        verdict = json.loads(self.run_tool("verify", "--replay", str(path), "--json", statuses=(0, 1)))
        if verdict["result"] != "held" and (kept := os.environ.get("TMPDIR")):
            shutil.copy(path, kept)
        check(f"{what}: redisdc verify judges {len(lines) - 1} events", verdict["result"] == "held", verdict)
        may_be_late = any(b"reported by the tool" in line for line in lines)
        for promise in verdict["promises"]:
            held = promise["result"] == "held" and (may_be_late or promise["announced"] + promise["undecided"] == 0)
            check(f"{what}: {promise['sentence']}, {promise['checks']} times", held, (promise, verdict["explained"]))
        print(f"    {verdict['statistics']}")


def kill_with_children(process):
    """Kills a process and all of its descendants at once, as the death of a machine does."""
    with contextlib.suppress(ProcessLookupError):
        # It starts nothing more while its descendants are looked up.
        os.kill(process.pid, signal.SIGSTOP)
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = [tuple(map(int, line.split())) for line in listed.splitlines()]
    family = [process.pid]
    for member in family:
        family += [pid for pid, parent in parents if parent == member]
    for pid in reversed(family):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def inspect(test, name):
    """The description of a resource by the tool."""
    return json.loads(test.run_tool("inspect", name, "--json"))


def value(test, name):
    return json.loads(test.run_tool("sem", "value", name, "--json"))["value"]


class Threads:
    """Threads whose first failure is that of the test."""

    def __init__(self):
        self.threads, self.failures = [], []

    def start(self, body, *arguments):
        def run():
            try:
                body(*arguments)
            except BaseException as error:
                self.failures.append(error)
        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def join(self):
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
