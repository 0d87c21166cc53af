"""One of several processes that lock the same mutex with a Python library, unlock it immediately and lock it again.

    contended.py redis-py|redis-lock URL NAME

Prints `ready`, then reads the start and the end of the measurement from standard input. At the end it prints a line for
each lock that it acquired: the time, and how long it waited, in nanoseconds of the monotonic clock that all processes
share. The libraries run with their defaults, except that a lock whose holder dies is free after 15 s, as in the engine.
"""

import sys
import time

import redis
import redis_lock


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def make_lock(library, client, name):
    if library == "redis-py":
        return client.lock(name, timeout=15)
    return redis_lock.Lock(client, name, expire=15)


def main():
    library, url, name = sys.argv[1:]
    client = redis.Redis.from_url(url)
    # A new lock object for each lock, as in a `with` statement.
    with make_lock(library, client, name):
        pass
    print("ready", flush=True)
    begin, end = map(int, sys.stdin.readline().split())
    while now_ns() < begin:
        time.sleep(0.001)

    locks = []
    while True:
        start = now_ns()
        if start >= end:
            break
        lock = make_lock(library, client, name)
        lock.acquire()
        now = now_ns()
        lock.release()
        locks.append(f"{now} {now - start}\n")
    sys.stdout.write("".join(locks))


if __name__ == "__main__":
    main()
