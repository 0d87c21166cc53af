#!/usr/bin/env python3
"""Follows the documentation as a reader does: runs its commands, and the programs of the quick start in a package of
their own beside the repository. Commands of the tool have a test of their own (DocumentedCommandsTests).

usage: test.py library PROGRAMS SCRATCH   (the folder of the package's programs, and one for builds)
       test.py gateway SCRATCH            (the folder in which the package Gateway was built)
       test.py tool SCRATCH               (the folder in which the tool was built for release)

The documentation names a Redis server at its usual place, and ports. So the commands run in a network namespace, where these
are free whatever else this system runs. That needs Linux.
"""
import contextlib
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Long enough for a slow machine: only a failure takes as long.
SECONDS = 900
# An indented line of a page that is a command.
COMMAND = re.compile(r"^    ((?:REDIS_URL=\S+ )?(?:swift|littlebook|redis-cli|scripts/|Examples/)\S*(?: .*)?)$")


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


def commands(page):
    """The commands of a page, without their comments."""
    lines = (ROOT / page).read_text().splitlines()
    return [re.sub(r"  +#.*", "", match.group(1)).strip() for match in map(COMMAND.match, lines) if match]


class Program:
    """A program that runs, and what it has printed so far."""

    def __init__(self, command, folder, cwd):
        words = shlex.split(command)
        # With colours, the compiler's options would be others, and everything would be built again.
        environment = os.environ | {"TERM": "dumb"}
        while "=" in words[0]:
            name, value = words.pop(0).split("=", 1)
            environment[name] = value
        # The program that `swift run` would build, or a reader's PATH would find.
        if words[:2] == ["swift", "run"] and "--package-path" not in words:
            words = words[2:]
        built = pathlib.Path(folder, "bin", words[0])
        if built.exists():
            words[0] = str(built)
        self.command, self.text = command, ""
        # A terminal, because a program that goes on for ever keeps in its memory what it prints elsewhere.
        self.terminal, other_end = pty.openpty()
        self.process = subprocess.Popen(words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=other_end,
                                        stderr=other_end, start_new_session=True)
        os.close(other_end)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        printed = b""
        # Reading fails when the last process that has the terminal has ended.
        with contextlib.suppress(OSError):
            while data := os.read(self.terminal, 65536):
                printed += data
                # Without the codes that move the cursor and set colours.
                self.text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed.decode(errors="replace").replace("\r\n", "\n"))
        os.close(self.terminal)

    def end(self, status=0):
        """Waits until it has ended by itself, and returns what it has printed."""
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise SystemExit(f"failed: {self.command} did not end in {SECONDS} s:\n{self.text}") from None
        self.reader.join()
        check(self.command, self.process.returncode == status, f"{self.process.returncode}\n{self.text}")
        return self.text

    def shows(self, pattern):
        """Waits until it has printed something."""
        wait(f"{self.command} prints {pattern}:\n{self.text}",
             lambda: re.search(pattern, self.text, re.M) or not self.reader.is_alive())
        check(f"{self.command}: {pattern}", re.search(pattern, self.text, re.M), self.text)

    def interrupt(self):
        """Ends it by Ctrl-C, which a terminal sends to all processes of a command."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(SECONDS)
        self.reader.join()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class Reader:
    """Runs the commands of some pages, each of them once."""

    def __init__(self, folder, pages=()):
        self.folder, self.programs = folder, []
        self.left = [command for page in pages for command in commands(page)]

    def elsewhere(self, command):
        """Takes a command that other code runs."""
        check(f"the documentation has the command {command}", command in self.left, self.left)
        self.left.remove(command)

    def start(self, command, documented=True, scratch=None, cwd=ROOT):
        if documented:
            self.elsewhere(command)
        if scratch:
            command = command.replace("swift run", f"swift run --scratch-path {shlex.quote(scratch)}")
        self.programs.append(Program(command, self.folder, cwd))
        return self.programs[-1]

    def run(self, command, documented=True, scratch=None):
        return self.start(command, documented, scratch).end()

    def start_server(self):
        """Starts a Redis server at the usual place."""
        server = os.environ.get("REDISDC_TEST_SERVER") or "redis-server"
        self.start(f"{server} --save '' --appendonly no --dir {self.folder}", documented=False)
        ping = lambda: subprocess.run(["redis-cli", "ping"], capture_output=True, text=True).stdout == "PONG\n"
        wait("redis-cli ping prints PONG", ping)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()


def redis_commands(reader):
    """docs/wire-format.md: a classic semaphore in a shell."""
    waiter = reader.start("redis-cli BRPOP rdc:sem:tables 0")
    reader.run("redis-cli LPUSH rdc:sem:tables 1")
    check("the waiter is woken", "rdc:sem:tables" in waiter.end(), waiter.text)


def examples(reader):
    """The pages of the examples."""
    nodes = [reader.start(f"REDIS_URL=redis://127.0.0.1:6379 swift run rendezvous {node}") for node in "ab"]
    for node in nodes:
        node.end()
    url = "REDIS_URL=redis://127.0.0.1:6379 RUN=three ROUNDS=100"
    nodes = [reader.start(f"{url} rendezvous {node} of 3", documented=False) for node in (1, 2, 3)]
    for node in nodes:
        node.end()

    check("littlebook lists its problems", "h2o" in reader.run("littlebook"))
    reader.run("littlebook h2o")
    reader.run("littlebook h2o --kill")
    reader.run("littlebook mutex --processes 8 --rounds 100 --redis redis://127.0.0.1:6379")

    # They write files into the current folder.
    receivers = [reader.start(f"REDIS_URL=redis://127.0.0.1:6379 mailbox receive {words}", False, cwd=reader.folder)
                 for words in ("alice phone 10", "bob laptop 10")]
    reader.run("REDIS_URL=redis://127.0.0.1:6379 mailbox send 10", documented=False)
    for receiver in receivers:
        receiver.end()


def quick_start(reader, folder, scratch):
    """docs/quick-start.md: the first program, alone and in two processes of which one is killed; then the second one."""
    main = pathlib.Path(folder, "kitchen", "Sources", "kitchen", "main.swift")
    swift_run = f"swift run --package-path {shlex.quote(folder)}/kitchen"
    cooking = r"^seated; still free: \d\ncooking with fence \d+$"
    text = reader.run(swift_run, False, scratch)
    check("it is seated and cooks", re.search(cooking, text, re.M), text)

    def tool(*words):
        command = [str(ROOT / ".build/demo/debug/redisdc"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    # The first one cooks for five seconds. If it has ended before it is killed, both are started again.
    program = shlex.quote(f"{scratch}/debug/kitchen")
    for _ in range(20):
        first = reader.start(program, False)
        first.shows(cooking)
        second = reader.start(program, False)
        second.shows(r"^seated; still free: \d$")
        wait("the second process waits or cooks", lambda: "cooking" in second.text
             or '"waiterCount":1' in tool("inspect", "kitchen", "--json"))
        waits = "cooking" not in second.text
        first.kill()
        is_killed = first.process.wait(SECONDS) == -signal.SIGKILL
        if waits and is_killed:
            break
        second.end()
    check("the second process waits", waits and is_killed, second.text)
    check("the second process cooks after the death of the first", re.search(cooking, second.end(), re.M), second.text)

    program = code_of_quick_start()[2]
    main.write_text(program)
    listener = reader.start(swift_run, False, scratch)
    listener.shows(r"^1 your turn$")
    # A message is acknowledged after about a second at the latest; before that it would be delivered again.
    wait("the message is acknowledged", lambda: '"messages":0' in tool("mail", "inspect", "alice", "--json"))
    listener.interrupt()

    listener = reader.start(swift_run, False, scratch)
    reader.run(f"{ROOT}/.build/demo/debug/redisdc mail send --to alice 'from elsewhere'", documented=False)
    listener.shows(r"^\d+ from elsewhere$")
    listener.interrupt()
    check("the second run prints no message of its own", "your turn" not in listener.text, listener.text)

    main.write_text(program.replace("game-7-move-12", "game-7-move-13"))
    listener = reader.start(swift_run, False, scratch)
    listener.shows(r"your turn$")
    listener.interrupt()
    check("with another id, it prints another message", re.findall(r"^(.*) your turn$", listener.text, re.M) == ["3"],
          listener.text)


def code_of_quick_start():
    """The code of the quick start: the package's manifest, and two programs."""
    blocks = re.findall(r"^```swift\n(.*?)^```$", (ROOT / "docs/quick-start.md").read_text(), re.M | re.S)
    assert blocks[0].startswith("// swift-tools-version") and "import QueueListen" in blocks[2]
    return blocks


def prepare(programs, folder, scratch):
    """Does what may need a network: the demo builds, and so does the package of the quick start."""
    with Reader(folder) as reader:
        text = reader.run("scripts/demo --no-install", documented=False)
        check("the demo keeps the order", "a1 before b2: yes, b1 before a2: yes" in text, text)
        pathlib.Path(folder, "next").write_text(text[text.index(".build/demo/debug/redisdc lock"):].strip())

        # The build of the other package below may remove them.
        pathlib.Path(folder, "bin").mkdir()
        for program in ("rendezvous", "littlebook", "mailbox"):
            shutil.copy2(pathlib.Path(programs, program), pathlib.Path(folder, "bin", program))

        sources = pathlib.Path(folder, "kitchen", "Sources", "kitchen")
        sources.mkdir(parents=True)
        manifest, program = code_of_quick_start()[:2]
        # This folder may have another name than the reader's clone, and its modules are built once for one path.
        beside, here = '.package(path: "../redisdc", ', f'.package(name: "redisdc", path: "{ROOT}", '
        check("the package of the quick start depends on the folder beside it", beside in manifest, manifest)
        pathlib.Path(folder, "kitchen", "Package.swift").write_text(manifest.replace(beside, here))
        (sources / "main.swift").write_text(program)
        reader.run(f"swift build --package-path {shlex.quote(folder)}/kitchen --scratch-path {shlex.quote(scratch)}", False)


def follow_library(folder, scratch):
    pages = ["README.md", "docs/quick-start.md", "docs/examples.md", "docs/wire-format.md"] + sorted(
        str(page.relative_to(ROOT)) for page in (ROOT / "Examples").glob("*/README.md") if page.parent.name != "Arcade")
    with Reader(folder, pages) as reader:
        reader.start_server()
        text = reader.run(pathlib.Path(folder, "next").read_text(), documented=False)
        check("the next command holds a lock", "alone on all machines, fence" in text, text)
        redis_commands(reader)
        examples(reader)
        quick_start(reader, folder, scratch)
        reader.elsewhere("scripts/demo")  # above
        reader.elsewhere("littlebook --all")  # ProblemRunTests
        reader.elsewhere("REDIS_URL=redis://127.0.0.1:6379 Examples/Mailbox/run.sh")  # MailToolTests
        reader.elsewhere("swift build --product littlebook")  # the build of the package
        reader.elsewhere("swift build --product mailbox")
        check("every command has been run", not reader.left, reader.left)


def follow_gateway(folder, scratch):
    with Reader(folder, ["docs/gateway.md"]) as reader:
        reader.start_server()
        check("there is help", "--allow-sends" in reader.run(
            "swift run --package-path Gateway redisdc-gateway --help", scratch=scratch))
        gateway = reader.start(
            "swift run --package-path Gateway redisdc-gateway --insecure-anonymous true --allow-sends all", scratch=scratch)

        def is_ready():
            if gateway.process.poll() is not None:
                raise SystemExit(f"failed: the gateway has ended: {gateway.text}")
            with contextlib.suppress(OSError):
                return urllib.request.urlopen("http://127.0.0.1:9090/readyz", timeout=SECONDS).status == 200

        wait("the gateway is ready", is_ready)
        # The Python program of docs/http.md, which is for a gateway that was started in this way.
        page = (ROOT / "docs/http.md").read_text()
        program = re.search(r"^```python\n(.*?)^```$", page, re.M | re.S).group(1)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS)
        check("a message arrives through the gateway", done.stdout == "alice: hello\n", done.stdout + done.stderr)
        gateway.interrupt()


def follow_tool(folder, scratch):
    pathlib.Path(folder, "bin").mkdir()
    pathlib.Path(folder, "bin", "redisdc").symlink_to(pathlib.Path(scratch, "release", "redisdc").resolve())
    with Reader(folder, ["docs/tool.md"]) as reader:
        reader.start_server()
        reader.elsewhere("swift build -c release --product redisdc")  # that tool
        text = reader.run("redisdc lock backup --timeout 60 -- echo alone", documented=False)
        check("a command runs under a lock", text == "alone\n", text)
        reader.run("redisdc mail send --to alice --id order-7 hello", documented=False)
        text = reader.run("redisdc mail listen alice --device phone", documented=False)
        check("a message arrives", re.search(r"\bhello$", text, re.M), text)
        reader.run("redisdc sem create seats --permits 1", documented=False)
        reader.run("redisdc sem wait seats --timeout 60.5", documented=False)
        reader.start("redisdc sem wait seats --timeout 0.1", documented=False).end(status=75)


def main():
    part, arguments = sys.argv[1], sys.argv[2:]
    if part == "inside":
        folder, scratch = arguments[1:]
        {"library": follow_library, "gateway": follow_gateway, "tool": follow_tool}[arguments[0]](folder, scratch)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if part == "library":
            prepare(arguments[0], folder, arguments[1])
        namespace = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        done = subprocess.run([*namespace, sys.executable, __file__, "inside", part, folder, arguments[-1]])
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
