#!/usr/bin/env python3
"""Counts what operations of the engine cost the server, in each form in which it could run the library.

    measure.py SERVER [OLD]     SERVER: the program of a server. OLD: a folder with other texts, NAME.lua, to count beside

The instructions of the whole server under callgrind, with and without 1,000 of the operation: the difference is what one
of them costs with its command, its arguments and its reply.
"""

import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True

from forms import Library, as_functions, flat, library_of_functions, library_of_texts, root  # noqa: E402

COUNT = 1000
KEYS = [f"rdc:{{default:0}}:{name}" for name in ("book", "lines", "sessions", "values")]
S = "0123456789abcdef"
# The operations: entries with their arguments; N is a number that grows by 2 with each round, M the one after it.
OPERATIONS = {
    "lock and unlock a mutex": [
        ("acquire", [f"c:{S}:1", "N", "t:mutex", "mf"]),
        ("release_mutex", [f"c:{S}:1", "M", "t:mutex", "N"]),
    ],
    "lease a permit and release it": [
        ("acquire", [f"c:{S}:2", "N", "t:semaphore", "sf", "1", "l"]),
        ("release", [f"c:{S}:2", "M", "t:semaphore", "N"]),
    ],
    "signal, and consume the permit": [
        ("signal", [f"c:{S}:3", "N", "t:other", "sf", "0", "1"]),
        ("acquire", [f"c:{S}:4", "N", "t:other", "sf", "0", "c"]),
    ],
    "heartbeat": [("heartbeat", [S, "60000000", "", "", "", "0", "1"])],
    "confirm": [("confirm", [S, "9:1"])],
}  # fmt: skip
ENTRIES = sorted({"join"} | {name for calls in OPERATIONS.values() for name, _ in calls})


class Server:
    def __init__(self, program, folder):
        path = f"{folder}/redis.sock"
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, "--port", "0", "--unixsocket", path,
             "--save", "", "--appendonly", "no", "--dir", folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self.connection.connect(path)
                break
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError(self.process.stderr.read()) from None
                time.sleep(0.05)
        self.input = self.connection.makefile("rb")

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.input.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.input.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def end(self):
        """Ends the server, and returns the instructions that it has executed."""
        self.process.terminate()
        output = self.process.stderr.read()
        self.process.wait()
        return int(re.search(r"Collected : (\d+)", output).group(1))


def evalsha(texts):
    def prepare(server):
        shas = {name: server.send("SCRIPT", "LOAD", text) for name, text in texts.items()}
        return lambda name, keys, arguments: server.send("EVALSHA", shas[name], len(keys), *keys, *arguments)

    return prepare


def fcall(text):
    def prepare(server):
        server.send("FUNCTION", "LOAD", text)
        return lambda name, keys, arguments: server.send("FCALL", f"rdc_{name}", len(keys), *keys, *arguments)

    return prepare


def count(program, prepare, calls, rounds):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(program, folder)
        call = prepare(server)
        assert call("join", KEYS, [S, "e" * 16, "60000000000", "1 layout 3", "", "0"])[0] == b"ok"
        # The same operations before, so that only their number differs.
        for number in range(2, 2 * (rounds + 20), 2):
            for name, arguments in calls:
                words = [{"N": number, "M": number + 1}.get(word, word) for word in arguments]
                keys = KEYS if name in ("join", "heartbeat", "confirm") else KEYS[:2]
                reply = call(name, keys, words)
                assert not isinstance(reply, list) or reply[0] not in (b"lost", b"stale", b"conflict"), (name, reply)
        return server.end()


def main():
    program = sys.argv[1]
    library = Library(root / "Sources/RedisDC/Lua")
    forms = {}
    if len(sys.argv) > 2:
        forms["EVALSHA, before"] = evalsha({name: (Path(sys.argv[2]) / f"{name}.lua").read_bytes() for name in ENTRIES})
    forms["EVALSHA, flat"] = evalsha({name: flat(library, name) for name in ENTRIES})
    forms["EVALSHA, functions"] = evalsha({name: as_functions(library, name) for name in ENTRIES})
    has_functions = "Redis server v=6" not in subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if has_functions:
        forms["FCALL, flat"] = fcall(library_of_texts(library, ENTRIES, "rdc"))
        forms["FCALL, functions"] = fcall(library_of_functions(library, ENTRIES, "rdc"))
    print("| operation | " + " | ".join(forms) + " |\n|---" * 1 + "|---" * len(forms) + "|")
    for title, calls in OPERATIONS.items():
        cells = []
        for prepare in forms.values():
            few, many = count(program, prepare, calls, 0), count(program, prepare, calls, COUNT)
            cells.append(f"{round((many - few) / COUNT):,}")
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


main()
