"""Locks and unlocks a mutex with redis-py's Lock repeatedly, and prints the pairs per second.

    pairs.py URL NAME COUNT
"""

import sys
import time

import redis


def lock_all(client, name, count):
    for _ in range(count):
        # A new lock object for each lock, as in a `with` statement.
        with client.lock(name, timeout=15):
            pass


def main():
    url, name, count = sys.argv[1:]
    client = redis.Redis.from_url(url)
    lock_all(client, name, int(count) // 10 + 1)
    start = time.perf_counter()
    lock_all(client, name, int(count))
    print(int(count) / (time.perf_counter() - start))


if __name__ == "__main__":
    main()
