"""Connections to Redis, the scripts of the library, and the clock: what sessions and mailboxes share."""
import collections
import functools
import hashlib
import pathlib
import secrets
import string
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from errors import PolyglotError

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "Sources"
# Failures after which the same request is sent again. BusyLoadingError is one of them.
CONNECTION_ERRORS = (redis.ConnectionError, redis.TimeoutError)
# Replies of a server that will do what it is asked later, or after a reconnect.
TRANSIENT = tuple(getattr(redis.exceptions, name) for name in
                  ("ReadOnlyError", "MasterDownError", "TryAgainError", "ClusterDownError"))
# After how many seconds a silent subscription is probed, and replaced if it does not reply. How often it looks whether it
# must end.
PROBE_INTERVAL, STOP_INTERVAL = 5.0, 0.5


def now():
    """Seconds by a clock that nobody sets, and that goes on while the machine sleeps if the system has one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def random_id(length=16):
    """Letters and digits, as a SID and the id of a process must be."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(length))


def partition_of(name, partitions):
    """FNV-1a, 32 bits, over the name's UTF-8 up to the first `#`."""
    value = 2166136261
    for byte in name.encode().split(b"#")[0]:
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value % partitions


def check_name(name):
    if not 1 <= len(name.encode()) <= 512 or any(c in "{}" or ord(c) < 32 or ord(c) == 127 for c in name):
        raise ValueError(f"{name!r} is not a name: expected 1 to 512 bytes without control characters and braces")
    return name


@functools.lru_cache(maxsize=None)
def load_script(module, name):
    """The text of a script, as the library has it, and the digest by which EVALSHA names it."""
    text = (SOURCES / module / "Scripts" / f"{name}.lua").read_bytes()
    return text, hashlib.sha1(text).hexdigest()


def is_transient(error):
    """Whether a server that has replied with this error is asked again."""
    return isinstance(error, TRANSIENT) or str(error).startswith(("BUSY", "NOREPLICAS"))


class FairLock:
    """A lock that its users get in their order, so that heartbeats are not kept out. Its owner may take it again."""

    def __init__(self):
        self.changed = threading.Condition()
        self.turns, self.owner, self.depth = collections.deque(), None, 0

    def __enter__(self):
        with self.changed:
            if self.owner != threading.get_ident():
                turn = object()
                self.turns.append(turn)
                try:
                    while self.turns[0] is not turn or self.owner is not None:
                        self.changed.wait()
                finally:
                    # Also after Ctrl-C.
                    self.turns.remove(turn)
                self.owner = threading.get_ident()
            self.depth += 1

    def __exit__(self, *_):
        with self.changed:
            self.depth -= 1
            if self.depth == 0:
                self.owner = None
                self.changed.notify_all()


class Connection:
    """A connection of redis-py without its retries: the caller must know when there is a new connection.

    It is not synchronized: its owner has a lock for it.
    """

    def __init__(self, url, timeout):
        pool = redis.ConnectionPool.from_url(
            url, protocol=2, decode_responses=False, socket_timeout=timeout, socket_connect_timeout=timeout,
            health_check_interval=0, retry=Retry(NoBackoff(), 0))
        self.connection = pool.make_connection()
        self.is_connected = False

    def connect(self):
        self.connection.connect()
        self.is_connected = True

    def close(self):
        self.is_connected = False
        self.connection.disconnect()

    def command(self, *words):
        try:
            self.connection.send_command(*words)
            return self.connection.read_response()
        except redis.ResponseError as error:
            # A replica that was a master: the address may lead to another server now.
            if isinstance(error, redis.exceptions.ReadOnlyError):
                self.close()
            raise
        except BaseException:
            # A reply that arrives later would be taken for that of the next command.
            self.close()
            raise

    def run(self, module, name, keys, arguments):
        """Runs a script, and loads it if the server does not have it."""
        text, digest = load_script(module, name)
        try:
            return self.command("EVALSHA", digest, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            self.command("SCRIPT", "LOAD", text)
            return self.command("EVALSHA", digest, len(keys), *keys, *arguments)


class Subscription:
    """A thread that keeps channels subscribed. Messages may be lost: `on_gap` is called when some may have been."""

    def __init__(self, url, channels, on_message, on_gap):
        self.channels, self.on_message, self.on_gap = channels, on_message, on_gap
        self.connection = Connection(url, PROBE_INTERVAL)
        self.is_subscribed = threading.Event()
        self.is_stopped = threading.Event()
        self.thread = threading.Thread(target=self._keep, name="subscription", daemon=True)
        self.thread.start()

    def stop(self):
        """Ends the thread soon. It closes its connection itself: another thread must not, while it reads."""
        self.is_stopped.set()

    def _keep(self):
        while not self.is_stopped.is_set():
            try:
                self._subscribe_and_read()
            except (redis.RedisError, OSError, ValueError):
                # The last one: a message that is none of the library's. The gap makes up for it.
                pass
            self.is_subscribed.clear()
            self.connection.close()
            self.is_stopped.wait(0.1)

    def _subscribe_and_read(self):
        connection = self.connection.connection
        self.connection.connect()
        connection.send_command("SUBSCRIBE", *self.channels)
        confirmed, is_probing, heard = 0, False, now()
        while not self.is_stopped.is_set():
            if not connection.can_read(timeout=STOP_INTERVAL):
                if now() - heard > PROBE_INTERVAL:
                    if is_probing:
                        return
                    is_probing, heard = True, now()
                    connection.send_command("PING")
                continue
            message, is_probing, heard = connection.read_response(), False, now()
            if message[0] == b"subscribe":
                confirmed += 1
                if confirmed == len(self.channels):
                    self.is_subscribed.set()
                    self.on_gap()
            elif message[0] == b"message":
                self.on_message(message[2])


def refused(what, reply):
    """The exception for a reply that this client does not expect."""
    return PolyglotError(f"{what}: unexpected reply {reply!r}; is the server's library of another version?")
