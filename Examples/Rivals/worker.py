"""A process of `redisdc verify --rival`: takes locks of another library, and records when it believes to hold them.

usage: worker.py LIBRARY, then the arguments of redisdc verify. LIBRARY is redis-py, python-redis-lock, pottery or
redlock-ng, each used as its documentation shows first. docs/verify.md describes what a rival program gets and records.
"""

import argparse
import json
import os
import random
import sys
import threading
import time
from urllib.parse import urlparse

import redis
from redis.sentinel import Sentinel

# The same names, tasks and times as those of the processes of redisdc verify.
NAMES = ["mutex-1", "mutex-2"]
TASKS = 3


def connect(url):
    """A client of the master that the URL names, found by the sentinels if it names those."""
    parts = urlparse(url)
    options = {"socket_timeout": 5, "socket_connect_timeout": 5}
    if parts.scheme == "redis-sentinel":
        sentinels = [(host, int(port)) for host, port in (place.split(":") for place in parts.netloc.split("@")[-1].split(","))]
        return Sentinel(sentinels, **options).master_for(parts.path.strip("/"), **options)
    if parts.scheme == "redis-cluster":
        return redis.RedisCluster.from_url(url.replace("redis-cluster", "redis").split(",")[0])
    return redis.Redis.from_url(url, **options)


class Record:
    """The file of one process: a line for each event, in one write."""

    def __init__(self, folder, process):
        self.process = process
        self.file = os.open(f"{folder}/process-{process}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.lock = threading.Lock()
        self.operations = 0

    def next_operation(self):
        with self.lock:
            self.operations += 1
            return self.operations

    def event(self, kind, at=None, **fields):
        line = {"e": kind, "t": now() if at is None else at, "p": self.process} | fields
        os.write(self.file, json.dumps(line).encode() + b"\n")


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class RedisPy:
    """redis-py: Redis.lock with a timeout."""

    def __init__(self, client, prefix, ttl):
        self.client, self.prefix, self.ttl = client, prefix, ttl

    def acquire(self, name, wait):
        lock = self.client.lock(f"{self.prefix}:{name}", timeout=self.ttl, blocking_timeout=wait)
        return lock if lock.acquire() else None

    def release(self, lock):
        lock.release()


class PythonRedisLock(RedisPy):
    """python-redis-lock: a lock that expires and is renewed by a thread."""

    def acquire(self, name, wait):
        import redis_lock

        lock = redis_lock.Lock(self.client, f"{self.prefix}:{name}", expire=self.ttl, auto_renewal=True)
        # It waits in whole seconds.
        return lock if lock.acquire(timeout=max(1, round(wait))) else None


class Pottery(RedisPy):
    """pottery: Redlock, here with one master."""

    def __init__(self, client, prefix, ttl):
        super().__init__(client, prefix, ttl)
        # It makes a client of this URL when it is imported, and does not know those of sentinels.
        os.environ.pop("REDIS_URL")

    def acquire(self, name, wait):
        from pottery import Redlock

        lock = Redlock(key=f"{self.prefix}:{name}", masters={self.client}, auto_release_time=self.ttl)
        return lock if lock.acquire(timeout=wait) else None


class RedlockNG(RedisPy):
    """redlock-ng: Redlock, here with one instance. It takes the URLs of servers, not of sentinels."""

    def __init__(self, client, prefix, ttl):
        super().__init__(client, prefix, ttl)
        from redlock import Redlock

        self.manager = Redlock([os.environ["REDIS_URL"]])

    def acquire(self, name, wait):
        end = time.monotonic() + wait
        while True:
            lock = self.manager.acquire(f"{self.prefix}:{name}", int(self.ttl * 1000))
            if lock or time.monotonic() > end:
                return lock

    def release(self, lock):
        self.manager.release(lock)


LIBRARIES = {"redis-py": RedisPy, "python-redis-lock": PythonRedisLock, "pottery": Pottery, "redlock-ng": RedlockNG}


def hold(record, locks, name, wait, choices, ttl):
    called = now()
    lock = locks.acquire(name, wait)
    if lock is None:
        return
    operation, start = record.next_operation(), now()
    record.event("enter", start, r=name, o=operation, v="lock", c=called, f=start, n=1, l=1)
    length = choices.uniform(0.5, 2) if choices.random() < 0.05 else choices.uniform(0, 0.06) if choices.random() < 0.2 else 0.003
    end = time.monotonic() + length
    while True:
        time.sleep(max(0, min(0.05, end - time.monotonic())))
        # It knows how long its lock lasts at least.
        if time.monotonic() < end - length + ttl:
            record.event("held", o=operation)
        if time.monotonic() >= end:
            break
    try:
        locks.release(lock)
    except Exception as error:  # noqa: BLE001: each library has its own
        record.event("lost", o=operation)
        record.event("failed", w=type(error).__name__)


def work(record, locks, seed, ttl, is_stopped):
    choices = random.Random(seed)
    while not is_stopped.is_set():
        try:
            hold(record, locks, choices.choice(NAMES), choices.uniform(0.005, 2), choices, ttl)
        except Exception as error:  # noqa: BLE001
            record.event("failed", w=type(error).__name__)
            time.sleep(0.05)
        time.sleep(choices.uniform(0, 0.12))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    for name in ["process", "slot", "parties", "seed", "ttl", "partitions"]:
        parser.add_argument(f"--{name}", type=int)
    for name in ["namespace", "history", "families"]:
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    client = connect(os.environ["REDIS_URL"])
    record = Record(options.history, options.process)
    locks = LIBRARIES[options.library](client, options.namespace, options.ttl)
    is_stopped = threading.Event()
    threads = [
        threading.Thread(target=work, args=(record, locks, options.seed * 1000 + options.process * 10 + task, options.ttl, is_stopped))
        for task in range(TASKS)
    ]
    record.event("started")
    for thread in threads:
        thread.start()
    # A line asks for the end; the end of the input means that the parent has died.
    line = sys.stdin.readline()
    is_stopped.set()
    if not line:
        os._exit(1)
    for thread in threads:
        thread.join()
    os._exit(0)


if __name__ == "__main__":
    main()
