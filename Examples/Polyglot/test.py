#!/usr/bin/env python3
"""Tests the Python client beside Swift processes: both share a lock, semaphores and mailboxes, and some are killed.

usage: test.py [--strict] [REDISDC]     (the tool; by default the debug build of this repository)

Each run has a server of its own. The chaos is judged by `redisdc verify --replay`. With --strict, what dead processes held
must be free within the TTL and one second of their death; otherwise this time is shown. REDISDC_SEED repeats the random
choices of a run, REDISDC_KILLS is the number of processes that are killed in each of the two chaos tests.
"""
import os
import shutil
import signal
import sys
import tempfile

from test_chaos_of_locks import test_chaos_of_locks
from test_locks import (test_groups, test_hand_over, test_late_copies, test_locks, test_lost_replies, test_lost_wake_ups,
                        test_pause, test_return, test_semaphores, test_sessions)
from test_mail import test_chaos_of_mail, test_mail
from test_page import test_page
from test_support import HERE, SEED, Test

TESTS = [test_locks, test_hand_over, test_semaphores, test_groups, test_lost_replies, test_late_copies,
         test_lost_wake_ups, test_pause, test_mail, test_page, test_return, test_chaos_of_locks, test_chaos_of_mail,
         test_sessions]


def main(words):
    is_strict = "--strict" in words
    words = [word for word in words if word != "--strict"]
    tool = os.path.abspath(words[0]) if words else str(HERE.parent.parent / ".build/debug/redisdc")
    only = words[1:]
    folder = tempfile.mkdtemp(prefix="polyglot-")
    if len(folder) > 80:
        # The path of a socket is short.
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="polyglot-", dir="/tmp")
    print(f"REDISDC_SEED={SEED}", flush=True)
    # The end of the test also ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    test = Test(tool, folder, is_strict)
    try:
        test.start_server()
        for body in TESTS:
            if not only or body.__name__ in only:
                body(test)
    finally:
        test.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
