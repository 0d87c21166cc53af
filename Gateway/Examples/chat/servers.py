"""What the chat's test runs beside browsers: Redis, two gateway nodes with TLS, and a TCP proxy that is their one origin."""
import atexit
import base64
import contextlib
import hashlib
import pathlib
import random
import socket
import subprocess
import threading

given = set()  # the ports that this process has given to its servers


def free_port():
    """Finds a port that a server has again when it is started again: the system takes none of these for an outgoing
    connection while the server is down (on Linux it does so from 32768 on, on macOS from 49152 on), and LocalRedis takes
    its ports from 20000 on."""
    while True:
        port = random.randrange(12000, 20000)
        if port in given:
            continue
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            given.add(port)
            return port


def start(*command, ready):
    """Starts a program, and waits for a line of its output."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    for line in process.stdout:
        if ready in line:
            # Nobody reads further lines, and the program must not wait for that.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return process
    raise SystemExit(f"{command[0]} has ended with {process.wait()}")


class Certificates:
    """A key and a certificate for localhost, signed by an authority of the test."""

    def __init__(self, folder):
        self.key, self.chain = f"{folder}/server.key", f"{folder}/server.pem"
        openssl = lambda *words: subprocess.run(["openssl", *words], check=True, capture_output=True).stdout
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        authority, authority_key = f"{folder}/authority.pem", f"{folder}/authority.key"
        openssl("req", "-x509", *new_key, "-keyout", authority_key, "-out", authority, "-days", "2",
                "-subj", "/CN=Test authority")
        openssl("req", *new_key, "-keyout", self.key, "-out", f"{folder}/server.csr", "-subj", "/CN=localhost")
        names = pathlib.Path(folder, "names")
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
        openssl("x509", "-req", "-in", f"{folder}/server.csr", "-CA", authority, "-CAkey", authority_key,
                "-set_serial", "1", "-days", "2", "-extfile", str(names), "-out", self.chain)
        pathlib.Path(self.chain).write_text(pathlib.Path(self.chain).read_text() + pathlib.Path(authority).read_text())
        public = openssl("x509", "-in", authority, "-pubkey", "-noout")
        der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public, check=True,
                             capture_output=True).stdout
        # By this hash a browser trusts the authority, without an entry in the user's store of certificates.
        self.pin = base64.b64encode(hashlib.sha256(der).digest()).decode()


class Proxy:
    """Passes connections on to the nodes by turns, and to another node if one does not accept them."""

    def __init__(self, ports, port=0):
        self.ports, self.turn, self.pairs, self.is_cut = ports, 0, set(), False
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with self.lock:
            self.turn += 1
            ports = [] if self.is_cut else [self.ports[(self.turn + i) % len(self.ports)] for i in range(len(self.ports))]
        for port in ports:
            with contextlib.suppress(OSError):
                pair = (client, socket.create_connection(("127.0.0.1", port), timeout=5))
                pair[1].settimeout(None)
                with self.lock:
                    self.pairs.add(pair)
                back = threading.Thread(target=self.copy, args=(pair[1], client), daemon=True)
                back.start()
                self.copy(*pair)
                back.join()
                with self.lock:
                    self.pairs.discard(pair)
                pair[1].close()
                break
        client.close()

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        # Both directions end together: a node that is gone must be noticed at once.
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self, is_cut):
        """Breaks all connections and accepts no others, or accepts them again."""
        with self.lock:
            self.is_cut, pairs = is_cut, list(self.pairs) if is_cut else []
        for end in (end for pair in pairs for end in pair):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Servers:
    def __init__(self, program, redis, folder):
        certificates = Certificates(folder)
        self.pin = certificates.pin
        redis_port, self.ports = free_port(), [free_port(), free_port()]
        start(redis, "--port", str(redis_port), "--bind", "127.0.0.1", "--save", "", "--dir", folder,
              ready="Ready to accept")
        self.proxy = Proxy(self.ports)
        self.origin = f"https://localhost:{self.proxy.port}"
        self.command = [
            program, "--redis-url", f"redis://127.0.0.1:{redis_port}", "--operations-port", "0", "--allow-sends", "all",
            "--insecure-anonymous", "true", "--log-level", "error", "--static-folder", f"{folder}/pages",
            "--allowed-origins", self.origin, "--tls-certificate", certificates.chain, "--tls-key", certificates.key,
        ]
        self.nodes = [None, None]
        for index in range(2):
            self.start_node(index)

    def start_node(self, index):
        self.nodes[index] = start(*self.command, "--port", str(self.ports[index]), ready="serving ")

    def kill_node(self, index):
        self.nodes[index].kill()  # SIGKILL
        self.nodes[index].wait()
