"""Chaos: locks and permits of processes in Python and Swift, some of which are killed."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time

from errors import TimedOut
from lock import Lock
from semaphore import Semaphore
from session import Session
from test_support import KILLS, LONG_TTL, SECONDS, SEED, TTL, Threads, kill_with_children, raises, value, wait
from worker import LOCK, PERMITS, SEATS, TICKETS, History


def test_chaos_of_locks(test):
    history, threads = History(test.folder, 0), Threads()
    test.run_tool("sem", "create", SEATS, "--permits", str(PERMITS[SEATS]))
    test.run_tool("sem", "create", TICKETS, "--permits", str(PERMITS[TICKETS]))
    kills = []
    for number in range(2):
        threads.start(python_locks, test, history, number, KILLS // 4, kills)
        threads.start(swift_locks, test, history, number, KILLS // 4, kills)
    threads.join()
    with Session(test.url, ttl=LONG_TTL) as session:
        # Only this session is left: all others have left, or their claims have been ended.
        wait("all dead sessions are swept", lambda: test.redis.zcard("rdc:{default:0}:sessions") == 1)
        for name, acquire in ((LOCK, lambda: Lock(session, LOCK).acquire(SECONDS)),
                              (SEATS, lambda: Semaphore(session, SEATS).acquire(PERMITS[SEATS], SECONDS))):
            is_busy = raises(TimedOut, lambda: acquire().release())
            history.record("free", r=name, x="none" if is_busy else "ok")
        history.record("value", r=TICKETS, n=value(test, TICKETS), l=PERMITS[TICKETS])
    print(f"    killed: {kills.count('Python')} Python and {kills.count('Swift')} Swift processes")
    test.judge("locks and permits", ["locks", "semaphores"])


def python_locks(test, history, number, deaths, kills):
    chosen = random.Random(f"{SEED} Python {number}")
    for death in range(deaths + 1):
        process = test.next_process()
        is_last = death == deaths
        # Each second one loses requests and replies.
        worker = test.start_worker("locks", process, ttl=TTL, rounds=60 if is_last else 100_000,
                                   faults=0.05 if (death + number) % 2 else 0)
        if is_last:
            test.ended_well(worker, process)
            return
        events = chosen.randint(3, 200)
        wait("the worker has worked for a while", lambda: test.events(process) >= events or worker.poll() is not None)
        if worker.poll() is not None:
            test.ended_well(worker, process)
        time.sleep(chosen.uniform(0, 0.02))
        if death == 0:
            pause(test, process, worker)
        history.record("killed", p=process)
        worker.kill()
        worker.wait()
        kills.append("Python")


def pause(test, process, worker):
    """Stops a worker until others have ended its session, and lets it go on for a while."""
    lines = pathlib.Path(f"{test.folder}/{process}.jsonl").read_text().splitlines()
    sid = [json.loads(line)["w"] for line in lines if '"started"' in line][-1]
    os.kill(worker.pid, signal.SIGSTOP)
    wait("its session is swept", lambda: test.redis.zscore("rdc:{default:0}:sessions", sid) is None)
    events = test.events(process)
    os.kill(worker.pid, signal.SIGCONT)
    wait("the worker goes on", lambda: test.events(process) > events + 20 or worker.poll() is not None)
    if worker.poll() is not None:
        raise AssertionError(f"a worker that was stopped has ended with {worker.returncode}")


def swift_locks(test, history, number, deaths, kills):
    chosen = random.Random(f"{SEED} Swift {number}")
    work = ["kill"] * deaths + ["end"] * 2 * deaths
    chosen.shuffle(work)
    for is_killed in [kind == "kill" for kind in work]:
        process = test.next_process()
        own = History(test.folder, process)
        own.record("started")
        if chosen.random() < 0.25:
            swift_ticket(test, history, own, chosen, is_killed, kills)
            continue
        name = chosen.choice([LOCK, LOCK, SEATS])
        count = chosen.choice([1, 2]) if name == SEATS else 1
        settings = {"name": name, "verb": "lock" if name == LOCK else "lease", "called": own.now(), "count": count,
                    "limit": PERMITS.get(name, 1)}
        command = ["lock", name] if name == LOCK else ["sem", "wait", name, "--hold", "-n", str(count)]
        tool = test.start(test.tool, *command, "--ttl", str(TTL), "--timeout", str(SECONDS), "--",
                          *test.worker("command", process, **settings), stderr=subprocess.DEVNULL)
        if is_killed:
            # While it waits, or while it holds.
            held = chosen.random() < 0.7
            if held:
                wait("the command runs", lambda: test.events(process) > 2 or tool.poll() is not None)
            else:
                time.sleep(chosen.uniform(0, 0.3))
            if tool.poll() is None:
                history.record("killed", p=process)
                kill_with_children(tool)
                kills.append("Swift")
                continue
        tool.wait(SECONDS * 2)
        if tool.returncode == 74:
            own.record("lost", o=1, w="reported by the tool")
        elif tool.returncode != 0:
            raise AssertionError(f"redisdc {command} ended with {tool.returncode}")


def swift_ticket(test, history, own, chosen, is_killed, kills):
    verb = chosen.choice(["signal", "wait"])
    command = ["sem", verb, TICKETS] + (["--timeout", "1"] if verb == "wait" else [])
    own.record("call", o=1, v=verb, r=TICKETS, n=1)
    tool = test.start(test.tool, *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if is_killed:
        time.sleep(chosen.uniform(0, 0.3))
        if tool.poll() is None:
            history.record("killed", p=own.process)
            kill_with_children(tool)
            kills.append("Swift")
            return
    status = tool.wait(SECONDS)
    own.record("end", o=1, v=verb, r=TICKETS, x={0: "ok", 75: "none"}.get(status, "unknown"))
