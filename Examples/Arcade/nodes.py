"""Nodes of the arcade behind one address, on this machine."""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "Gateway" / "Examples" / "chat"))
from servers import Proxy, free_port, start  # noqa: E402


# Options of nodes in tests: on a busy machine, a page is loaded again, and a node renews its locks, later than elsewhere. A
# lock of a dead node is free before a call that waits for it gives up after 10 s.
PATIENT = ["--grace-seconds", "20", "--lock-seconds", "8"]


class Nodes:
    """Starts nodes, and a TCP proxy that passes connections on to them by turns. All end with this process."""

    def __init__(self, program, redis_url, count=2, port=0, options=()):
        self.ports = [free_port() for _ in range(count)]
        self.proxy = Proxy(self.ports, port)
        self.origin = f"http://localhost:{self.proxy.port}"
        self.command = [program, "--redis-url", redis_url, "--origin", self.origin, *options]
        self.nodes = [None] * count
        for index in range(count):
            self.start(index)

    def start(self, index):
        self.nodes[index] = start(*self.command, "--port", str(self.ports[index]), ready="serving ")

    def kill(self, index):
        self.nodes[index].kill()  # SIGKILL
        self.nodes[index].wait()

    def restart(self, index):
        """Ends a node in order, and starts another one in its place."""
        self.nodes[index].terminate()
        assert self.nodes[index].wait() == 0, "the node did not end in order"
        self.start(index)


def start_redis(program, folder):
    """Starts a Redis server without persistence, and returns its URL."""
    port = free_port()
    start(program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, ready="Ready to accept")
    return f"redis://127.0.0.1:{port}"


def program():
    """Builds a node, and returns its path."""
    build = ["swift", "build", "--package-path", str(HERE), "--product", "arcade"]
    subprocess.run(build, check=True)
    folder = subprocess.run([*build[:4], "--show-bin-path"], check=True, capture_output=True, text=True).stdout
    return f"{folder.strip()}/arcade"
