#!/usr/bin/env python3
"""Measures the calls of a client beside a thousand connections, of each kind in turn, that hold up a node as long as they can.

usage: attack.py REDISDC-GATEWAY REDIS-SERVER [NUMBER OF CONNECTIONS [NICENESS]]

The first two are the paths of programs. The niceness is the attacker's (0): 19 stands for an attacker on another machine.
Prints for each kind the latencies of a send in milliseconds, the largest memory of the node, and how many of the attacker's
connections were closed. Needs Linux: each client has addresses of its own in 127.0.0.0/8. Each connection needs a file of this
process and of the node.
"""
import asyncio
import hashlib
import hmac
import http.client
import json
import multiprocessing
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Examples" / "chat"))
from servers import free_port  # noqa: E402

SECONDS = 8
# The node discards what a connection had sent before its end for at most ten seconds: each kind is measured alone.
PAUSE = 11
UPGRADE = (
    b"GET /v1/socket HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ql.v1\r\n\r\n")


class Client:
    """A client with one connection."""

    def __init__(self, port, user, address):
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(address, 0))
        self.session = None
        self.session = self.call("POST", "/v1/sessions", {"user": user, "device": "phone", "credential": None})

    def headers(self, method, target, data):
        now, nonce, digest = str(time.time_ns() // 10**6), secrets.token_urlsafe(16), hashlib.sha256(data).hexdigest()
        text = "\n".join(["v1", method, target, self.session["session"], now, nonce, digest])
        signature = "v1=" + hmac.new(self.session["token"].encode(), text.encode(), "sha256").hexdigest()
        return {"X-Session": self.session["session"], "X-Time": now, "X-Nonce": nonce, "X-Signature": signature}

    def call(self, method, target, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self.session:
            headers |= self.headers(method, target, data)
        self.http.request(method, target, data, headers)
        reply = self.http.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise SystemExit(f"{method} {target}: {reply.status} {text}")
        return json.loads(text or "null")

    def send(self):
        self.call("POST", "/v1/send", {
            "to": ["bob"], "id": secrets.token_hex(16), "messages": [{"text": "hello", "collapse": "one"}]})


def post(target, length, headers=None):
    lines = [f"POST {target} HTTP/1.1", "Host: gateway", "Content-Type: application/json", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + b" " * (length - 1)


def kinds(victim):
    fragment = b"\x00\x81\x00\x00\x00\x00\x20"
    return {
        "nothing": None,
        "header without an end": b"GET /v1/mail HTTP/1.1\r\nHost: gateway\r\n",
        "unsigned body of 1 MiB": post("/v1/send", 1 << 20),
        "login of 16 KiB": post("/v1/sessions", 16 * 1024),
        "body of 1 MiB with the name of a session": post("/v1/send", 1 << 20, victim.headers("POST", "/v1/send", b"")),
        "socket that is silent": UPGRADE,
        "socket with 100,000 fragments": UPGRADE + b"\x01\x81\x00\x00\x00\x00\x20" + fragment * 100_000,
    }


async def one(port, number, data, end):
    """Makes one connection after the other until the end, and returns how many the node has closed."""
    closed = 0
    while time.monotonic() < end:
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection("127.0.0.1", port, local_addr=(f"127.0.0.{11 + number % 8}", 0)), 10)
        except (OSError, asyncio.TimeoutError):
            closed += 1
            continue
        try:
            writer.write(data)
            await asyncio.wait_for(reader.read(), max(0.1, end - time.monotonic()))
            closed += 1
        except asyncio.TimeoutError:
            pass
        except OSError:
            closed += 1
        writer.close()
        await asyncio.sleep(1)  # So that the node is measured, and not the attacker.
    return closed


def attack(port, data, connections, niceness, end, queue):
    os.nice(niceness)

    async def run():
        return sum(await asyncio.gather(*(one(port, number, data, end) for number in range(connections))))

    queue.put(asyncio.run(run()))


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0


def main(gateway, redis, connections=1000, niceness=0):
    folder, redis_port = tempfile.TemporaryDirectory(), free_port()
    servers = [subprocess.Popen([redis, "--port", str(redis_port), "--save", "", "--dir", folder.name], stdout=subprocess.DEVNULL)]
    try:
        time.sleep(0.5)
        command = [gateway, "--redis-url", f"redis://127.0.0.1:{redis_port}", "--port", "0", "--operations-port", "0",
                   "--insecure-anonymous", "true", "--allow-sends", "all", "--log-level", "error"]
        node = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        servers.append(node)
        port = next(int(line.rsplit(":", 1)[1]) for line in node.stdout if line.startswith("serving "))
        client, victim = Client(port, "alice", "127.0.0.2"), Client(port, "victim", "127.0.0.3")
        print(f"{'kind':42} {'p50':>7} {'p99':>7} {'max':>7} {'calls':>6} {'MB':>5} {'closed':>7}")
        for kind, data in kinds(victim).items():
            end, queue = time.monotonic() + SECONDS, multiprocessing.Queue()
            attacker = multiprocessing.Process(
                target=attack, args=(port, data, int(connections), int(niceness), end, queue))
            if data:
                attacker.start()
            times, largest = [], 0
            while time.monotonic() < end:
                began = time.monotonic()
                client.send()
                times.append((time.monotonic() - began) * 1000)
                largest = max(largest, resident(node.pid))
                time.sleep(0.03)  # Below the limit of calls.
            closed = queue.get() if data else 0
            if data:
                attacker.join()
                client.http.close()  # The attacker may have ended so late that the node has closed the idle connection.
                for _ in range(PAUSE):
                    time.sleep(1)
                    client.send()  # The node closes a connection that is idle.
            times.sort()
            print(f"{kind:42} {times[len(times) // 2]:7.1f} {times[int(len(times) * 0.99)]:7.1f} {times[-1]:7.1f} "
                  f"{len(times):6} {largest:5} {closed:7}", flush=True)
    finally:
        for server in reversed(servers):
            server.terminate()
            server.wait()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
