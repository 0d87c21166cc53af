#!/usr/bin/env python3
"""Measures the gateway beside a comparable server under the same client: nginx with nchan, which keeps the messages of a
channel in Redis and resumes an event stream after the last id. It signs nothing, knows no devices, and deletes messages by
age and number instead of after an acknowledgement.

usage: nchan.py GATEWAY-BENCH REDIS-SERVER [NUMBER OF IDLE STREAMS]

The first two are the paths of programs: the release build of gateway-bench and redis-server. Needs Linux, and Debian's
packages nginx-light and libnginx-mod-nchan. Each stream needs a file of this process and of the server.
"""
import atexit
import hashlib
import hmac
import json
import pathlib
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Examples" / "chat"))
from servers import free_port  # noqa: E402

CONFIGURATION = """
load_module /usr/lib/nginx/modules/ngx_nchan_module.so;
daemon off;
worker_processes 1;
pid pid;
error_log errors;
events { worker_connections 15000; }
http {
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    keepalive_requests 1000000;
    nchan_shared_memory_size 512M;
    upstream redis { nchan_redis_server redis://127.0.0.1:%d; }
    server {
        listen 127.0.0.1:%d backlog=1024;
        location ~ ^/events/(.+)$ { nchan_subscriber eventsource; nchan_channel_id $1; nchan_redis_pass redis; }
        location ~ ^/send/(.+)$ { nchan_publisher; nchan_channel_id $1; nchan_redis_pass redis; }
    }
}
"""


def connect(port):
    for _ in range(500):
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise SystemExit(f"nothing listens on port {port}")


def start(*command, **options):
    process = subprocess.Popen(command, **options)
    # The servers end their own children then.
    atexit.register(process.terminate)
    return process


def start_redis(program, folder):
    port = free_port()
    start(program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, stdout=subprocess.DEVNULL)
    connect(port).close()
    return port


def read(connection, end):
    data = b""
    while end not in data:
        part = connection.recv(65536)
        if not part:
            raise SystemExit(f"a connection was closed after {data}")
        data += part
    return data


def call(connection, request):
    """Sends a request, and returns the body of the reply."""
    connection.sendall(request)
    head, body = read(connection, b"\r\n\r\n").split(b"\r\n\r\n", 1)
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].split(b":")[1]) if lengths else 0
    while len(body) < length:
        body += connection.recv(65536)
    return body


def request(method, target, body="", **headers):
    fields = {"Host": "server", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        fields |= {"Content-Type": "application/json", "Content-Length": len(body)}
    lines = [f"{method} {target} HTTP/1.1"] + [f"{name}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


class Nchan:
    name, opened = "nchan", b": hi\n\n"

    def __init__(self, redis_port, parent):
        folder = tempfile.mkdtemp(dir=parent)
        self.port = free_port()
        pathlib.Path(folder, "nginx.conf").write_text(CONFIGURATION % (redis_port, self.port))
        master = start("/usr/sbin/nginx", "-p", folder, "-c", "nginx.conf", "-e", "errors", stderr=subprocess.DEVNULL)
        # The worker has the connections.
        children = pathlib.Path(f"/proc/{master.pid}/task/{master.pid}/children")
        while not children.read_text():
            time.sleep(0.02)
        self.process = int(children.read_text().split()[0])

    def log_in(self, user, connection):
        return user

    def events(self, user):
        return request("GET", f"/events/{user}", Accept="text/event-stream")

    def send(self, sender, user, number):
        return request("POST", f"/send/{user}", '{"text":"hello"}')


class Gateway:
    name, opened = "gateway", b"retry: 2000\n\n"

    def __init__(self, program, redis_port):
        process = start(
            program, "serve", f"redis://127.0.0.1:{redis_port}", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(process.stdout.readline().split()[-1])
        self.process = process.pid

    def log_in(self, user, connection):
        body = json.dumps({"user": user, "device": "bench", "credential": None})
        return json.loads(call(connection, request("POST", "/v1/sessions", body)))

    def signed(self, session, method, target, body=""):
        now, nonce = str(int(time.time() * 1000)), secrets.token_hex(16)
        digest = hashlib.sha256(body.encode()).hexdigest()
        text = "\n".join(["v1", method, target, session["session"], now, nonce, digest])
        signature = "v1=" + hmac.new(session["token"].encode(), text.encode(), "sha256").hexdigest()
        return request(method, target, body, X_Session=session["session"], X_Time=now, X_Nonce=nonce, X_Signature=signature)

    def events(self, session):
        return self.signed(session, "GET", "/v1/events")

    def send(self, session, user, number):
        messages = [{"text": "hello"}]
        return self.signed(session, "POST", "/v1/send", json.dumps({"to": [user], "id": str(number), "messages": messages}))


def memory(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def open_stream(server, user):
    connection = connect(server.port)
    session = server.log_in(user, connection)
    connection.sendall(server.events(session))
    read(connection, server.opened)
    return connection


def idle(server, count):
    """The memory in KiB that each idle event stream takes, after the first ones."""
    warm = count // 10
    streams = [open_stream(server, f"idle{number}") for number in range(warm)]
    before = memory(server.process)
    streams += [open_stream(server, f"idle{number}") for number in range(warm, count)]
    growth = memory(server.process) - before
    for stream in streams:
        stream.close()
    return growth / (count - warm)


def latencies(server, count=1000):
    """The times in microseconds from a POST to the receipt by an event stream."""
    receiver, sender = open_stream(server, "carol"), connect(server.port)
    session = server.log_in("bob", sender)
    times = []
    for number in range(count + 100):
        text = server.send(session, "carol", number)
        start = time.perf_counter()
        sender.sendall(text)
        read(receiver, b"\n\n")
        times.append((time.perf_counter() - start) * 1e6)
        call(sender, b"")  # the reply
    return sorted(times[100:])


def main():
    program, redis = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    rounds = 3
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for server in [Gateway(program, start_redis(redis, folder)), Nchan(start_redis(redis, folder), folder)]:
                times = latencies(server)
                figures = {"p50, µs": times[len(times) // 2], "p99, µs": times[len(times) * 99 // 100]}
                figures["idle stream, KiB"] = idle(server, count)
                for name, value in figures.items():
                    results.setdefault((server.name, name), []).append(value)
    for (server, name), values in results.items():
        print(f"{server}: {name}: {statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})")


if __name__ == "__main__":
    main()
