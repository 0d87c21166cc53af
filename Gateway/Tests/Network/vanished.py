#!/usr/bin/env python3
"""Tests that a node ends the event stream of a client whose network is gone: nothing closes such a connection.

usage: unshare --user --map-root-user --net vanished.py REDISDC-GATEWAY REDIS-SERVER

Runs in a network namespace of its own, in which it takes the route to the client away: what the node sends is lost, and
nobody answers. The node sends a comment after 15 s, which stays unacknowledged, and Linux ends the connection 65 s after
that. Without a limit Linux would try for about 15 minutes.
"""
import hashlib
import hmac
import json
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Examples" / "chat"))
from servers import start  # noqa: E402

NODE, CLIENT, PORT = "127.0.0.1", "127.0.0.2", 8080
# 15 s until the comment, 65 s for its acknowledgement, and what a busy machine needs.
LIMIT = 110


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def request(method, target, body=b"", session=None):
    head = {"Host": "node", "Content-Type": "application/json", "Content-Length": str(len(body))}
    if session:
        now, nonce = str(time.time_ns() // 10**6), secrets.token_urlsafe(16)
        text = "\n".join(["v1", method, target, session["session"], now, nonce, hashlib.sha256(body).hexdigest()])
        signature = hmac.new(session["token"].encode(), text.encode(), "sha256").hexdigest()
        head |= {"X-Session": session["session"], "X-Time": now, "X-Nonce": nonce, "X-Signature": f"v1={signature}"}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    return "\r\n".join(lines).encode() + body


class Connection:
    """A connection of the client, with everything that it has received and that was not taken yet."""

    def __init__(self):
        self.socket, self.text = socket.create_connection((NODE, PORT), timeout=20, source_address=(CLIENT, 0)), b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def take(self, is_complete):
        """Waits for a text, and takes it. A stream has comments, which must not prolong the wait."""
        limit = time.monotonic() + 60
        while not is_complete(self.text):
            data = self.socket.recv(65536)
            if not data or time.monotonic() > limit:
                raise SystemExit(f"the node has {'sent' if data else 'closed the connection after'} {self.text!r}")
            self.text += data
        text, self.text = self.text, b""
        return text


def is_reply(text):
    head, separator, body = text.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    return bool(separator) and len(body) >= lengths[0]


def call(target, body, session=None):
    with Connection() as connection:
        connection.socket.sendall(request("POST", target, json.dumps(body).encode(), session))
        return json.loads(connection.take(is_reply).partition(b"\r\n\r\n")[2])


def open_stream(session, after):
    stream = Connection()
    stream.socket.sendall(request("GET", f"/v1/events?after={after}", session=session))
    return stream


def node_has(client_port):
    """Whether the node's end of a connection exists, in whatever state."""
    address = f"{int.from_bytes(socket.inet_aton(CLIENT), 'little'):08X}:{client_port:04X}"
    with open("/proc/net/tcp") as table:
        return any(line.split()[2] == address for line in table)


def main(gateway, redis):
    ip("link", "set", "lo", "up")
    with tempfile.TemporaryDirectory() as folder:
        start(redis, "--port", "0", "--unixsocket", f"{folder}/redis", "--save", "", "--dir", folder,
              ready="accept connections")
        start(gateway, "--redis-url", f"unix://{folder}/redis", "--host", NODE, "--port", str(PORT),
              "--operations-port", "0", "--insecure-anonymous", "true", "--allow-sends", "all", "--log-level", "error",
              ready="serving ")
        alice = call("/v1/sessions", {"user": "alice", "device": "phone", "credential": None})
        bob = call("/v1/sessions", {"user": "bob", "device": "phone", "credential": None})
        gone, stays = open_stream(alice, alice["cursor"]), open_stream(bob, bob["cursor"])
        ports = gone.socket.getsockname()[1], stays.socket.getsockname()[1]
        call("/v1/send", {"to": ["alice", "bob"], "id": "1", "messages": [{"text": "one"}]}, bob)
        for stream in (gone, stays):
            stream.take(lambda text: b'"one"' in text)
        assert all(node_has(port) for port in ports), "the node has the streams"
        ip("route", "add", "blackhole", CLIENT, "table", "local")
        start_time = time.monotonic()
        while any(node_has(port) for port in ports):
            if time.monotonic() - start_time > LIMIT:
                raise SystemExit(f"the node has the streams of vanished clients after {LIMIT} s")
            time.sleep(0.2)
        print(f"the node ended the streams of two vanished clients after {time.monotonic() - start_time:.0f} s")
        ip("route", "del", "blackhole", CLIENT, "table", "local")
        # The network is back: nothing is lost, also what was sent meanwhile.
        call("/v1/send", {"to": ["alice"], "id": "2", "messages": [{"text": "two"}]}, bob)
        with open_stream(alice, alice["cursor"]) as again:
            text = again.take(lambda text: b'"two"' in text)
            assert text.count(b"event: message") == 2 and text.index(b'"one"') < text.index(b'"two"'), text
        print("the client resumes with everything in order")


# Runs what atexit was given.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
