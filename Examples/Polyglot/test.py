#!/usr/bin/env python3
"""Tests the Python client beside Swift processes: both share a lock, semaphores and mailboxes, and some are killed.

usage: test.py [--strict] [REDISDC]     (the tool; by default the debug build of this repository)

Each run has a server of its own. The chaos is judged by `redisdc verify --replay`. With --strict, what dead processes held
must be free within the TTL and one second of their death; otherwise this time is shown. REDISDC_SEED repeats the random
choices of a run, REDISDC_KILLS is the number of processes that are killed in each of the two chaos tests.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import redis

from errors import Conflict, LeaseLost, Missing, SessionLost, Superseded, TimedOut
from lock import Lock
from mail import Cursor, Message, PostOffice
from semaphore import Semaphore
from server import partition_of
from session import Session
from worker import LOCK, PERMITS, SEATS, TICKETS, FaultyConnection, History, choose_send

HERE = pathlib.Path(__file__).resolve().parent
SEED = int(os.environ.get("REDISDC_SEED") or random.randrange(1 << 32))
KILLS = int(os.environ.get("REDISDC_KILLS") or 24)
# Long enough for a machine that stands still for a while: only a failure takes as long.
SECONDS = 180
TTL = 3.0
# That of sessions that must not end when the machine stands still.
LONG_TTL = 120.0


def check(what, condition, found=None):
    if not condition:
        raise AssertionError(f"{what}: {found}")
    print(f"ok: {what}", flush=True)


def wait(what, condition):
    end = time.monotonic() + SECONDS
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {SECONDS} s: {what}")
        time.sleep(0.005)
    return result


def raises(error, body):
    try:
        body()
    except error:
        return True
    return False


class Test:
    """The server of a run, and the processes that have been started."""

    def __init__(self, tool, folder, is_strict):
        self.tool, self.folder, self.is_strict = tool, folder, is_strict
        self.lock, self.processes, self.last_process = threading.Lock(), [], 0
        self.url = f"unix://{folder}/redis.sock"
        self.environment = os.environ | {"REDIS_URL": self.url}

    def start(self, *command, **options):
        with self.lock:
            process = subprocess.Popen(command, env=self.environment, start_new_session=True, text=True, **options)
            self.processes.append(process)
            return process

    def start_server(self):
        program = os.environ.get("REDISDC_TEST_SERVER") or "redis-server"
        with open(f"{self.folder}/server.log", "w") as log:
            self.start(program, "--port", "0", "--unixsocket", f"{self.folder}/redis.sock", "--save", "", "--dir",
                       self.folder, stdout=log, stderr=log)
        self.redis = redis.Redis.from_url(self.url)
        wait("the server answers", self.ping)

    def ping(self):
        try:
            return self.redis.ping()
        except redis.RedisError:
            return False

    def end(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()

    def run_tool(self, *arguments, statuses=(0,)):
        """Runs the tool to its end. Returns what it has printed."""
        for _ in range(5):
            process = self.start(self.tool, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            output, errors = process.communicate(timeout=SECONDS)
            # It may have given up because the machine stood still. What reads only, or has an id, can be repeated.
            if process.returncode in statuses or not {"inspect", "value", "--id", "listen"} & set(arguments):
                break
        if process.returncode not in statuses:
            raise AssertionError(f"redisdc {' '.join(arguments)}: status {process.returncode}: {output}{errors}")
        return output

    def next_process(self):
        with self.lock:
            self.last_process += 1
            return self.last_process

    def worker(self, role, process, **settings):
        """The command line of a worker."""
        settings |= {"url": self.url, "folder": str(self.folder), "process": process, "seed": SEED}
        return [sys.executable, str(HERE / "worker.py"), role, json.dumps(settings)]

    def start_worker(self, role, process, **settings):
        errors = open(f"{self.folder}/{process}.errors", "a")
        with errors:
            return self.start(*self.worker(role, process, **settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=errors)

    def ended_well(self, worker, process):
        """Waits until a worker has ended by itself."""
        worker.wait(SECONDS)
        if worker.returncode != 0:
            text = pathlib.Path(f"{self.folder}/{process}.errors").read_text()
            raise AssertionError(f"process {process} ended with {worker.returncode}: {text}")

    def events(self, process):
        """The number of events that a process has recorded."""
        try:
            return pathlib.Path(f"{self.folder}/{process}.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def judge(self, what, families):
        """Lets the tool judge the histories of all processes.

        The server loses nothing. So a contradiction that was announced is one as well, unless the tool has told a command
        too late that its lease was lost, because the machine stood still.
        """
        header = {"format": "redisdc verify", "version": 1, "seed": SEED, "ttl": round(TTL * 1000), "families": families,
                  "isLossless": True}
        lines = [json.dumps(header).encode()]
        for path in pathlib.Path(self.folder).glob("*.jsonl"):
            lines += path.read_bytes().splitlines()
            path.unlink()
        path = pathlib.Path(self.folder, f"{what}.history")
        path.write_bytes(b"\n".join(lines) + b"\n")
        verdict = json.loads(self.run_tool("verify", "--replay", str(path), "--json", statuses=(0, 1)))
        if verdict["result"] != "held" and (kept := os.environ.get("TMPDIR")):
            shutil.copy(path, kept)
        check(f"{what}: redisdc verify judges {len(lines) - 1} events", verdict["result"] == "held", verdict)
        may_be_late = any(b"reported by the tool" in line for line in lines)
        for promise in verdict["promises"]:
            held = promise["result"] == "held" and (may_be_late or promise["announced"] + promise["undecided"] == 0)
            check(f"{what}: {promise['sentence']}, {promise['checks']} times", held, (promise, verdict["explained"]))
        print(f"    {verdict['statistics']}")


def kill_with_children(process):
    """Kills a process and all of its descendants at once, as the death of a machine does."""
    with contextlib.suppress(ProcessLookupError):
        # It starts nothing more while its descendants are looked up.
        os.kill(process.pid, signal.SIGSTOP)
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = [tuple(map(int, line.split())) for line in listed.splitlines()]
    family = [process.pid]
    for member in family:
        family += [pid for pid, parent in parents if parent == member]
    for pid in reversed(family):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


# The client, step by step.

def test_locks(test):
    with Session(test.url, ttl=LONG_TTL) as session:
        lock = Lock(session, "a lock")
        with lock.acquire() as lease:
            check("a lock is held", lease.is_held and 0 < lease.remaining <= LONG_TTL)
            check("a held lock is refused to a try", raises(TimedOut, lambda: lock.acquire(timeout=0)))
            check("a wait for it times out", raises(TimedOut, lambda: lock.acquire(timeout=0.1)))
            wait("the waits were cancelled", lambda: inspect(test, "a lock")["waiterCount"] == 0)
            first = lease.fence
        check("it is free after the release", inspect(test, "a lock")["holderCount"] == 0)
        fence = int(test.run_tool("lock", "a lock", "--ttl", "120", "--", "sh", "-c", "echo $REDISDC_FENCE"))
        check("the fence of the next holder, a Swift process, is higher", fence > first)
        with lock.acquire() as lease:
            check("and that of a Python process after it", lease.fence > fence)
        lease = lock.acquire()
        test.run_tool("release", "--force", "a lock")
        wait("the holder is notified of the loss", lambda: not lease.is_held)
        check("a lease that an operator took away is lost", raises(LeaseLost, lease.release))
        with lock.acquire(timeout=SECONDS):
            pass
        check("the lock can be acquired again", True)


def inspect(test, name):
    """The description of a resource by the tool."""
    return json.loads(test.run_tool("inspect", name, "--json"))


def test_hand_over(test):
    """Waiters of both languages wake each other in the order of the queue."""
    with Session(test.url, ttl=LONG_TTL) as session:
        lease = Lock(session, "handed over").acquire()
        swift = test.start(test.tool, "lock", "handed over", "--ttl", "120", "--", "echo", "from Swift",
                           stdout=subprocess.PIPE)
        wait("Swift waits", lambda: inspect(test, "handed over")["waiterCount"] == 1)
        granted = []
        waiter = threading.Thread(target=lambda: granted.append(Lock(session, "handed over").acquire()))
        waiter.start()
        wait("Python waits", lambda: inspect(test, "handed over")["waiterCount"] == 2)
        lease.release()
        check("a Swift waiter is granted what Python releases", swift.communicate(timeout=SECONDS)[0] == "from Swift\n")
        waiter.join(SECONDS)
        check("a Python waiter is granted what Swift releases", granted and granted[0].fence > lease.fence)
        granted[0].release()


def test_semaphores(test):
    with Session(test.url, ttl=LONG_TTL) as session:
        check("a missing semaphore is refused", raises(Missing, lambda: Semaphore(session, "s").wait()))
        semaphore = Semaphore(session, "s", 2)
        check("a semaphore is created once", semaphore.create() and not semaphore.create())
        check("with other permits it is a conflict", raises(Conflict, Semaphore(session, "s", 3).create))
        check("as a lock it is a conflict", raises(Conflict, Lock(session, "s").acquire))
        with semaphore.acquire(2):
            check("Swift sees held permits", value(test, "s") == 0)
        semaphore.wait()
        check("Swift sees taken permits", value(test, "s") == 1)
        test.run_tool("sem", "signal", "s", "-n", "3")
        semaphore.wait(4)
        semaphore.signal(2)
        test.run_tool("sem", "wait", "s", "-n", "2")
        check("signals and waits of both languages add up", value(test, "s") == 0)
    check("closing the session returns nothing that was taken", value(test, "s") == 0)
    check("the slots are free again", session.slots_used <= 2, session.slots_used)


def test_groups(test):
    """A resource that a light switch uses is served by the scripts of another family."""
    with Session(test.url, ttl=LONG_TTL) as group, Session(test.url, ttl=LONG_TTL) as session:
        # The first member of a group takes the mutex for all of them.
        member = [f"c:{group.sid}:0", 1, "t:room"]
        fence = group.exchange("acquire_in_group", [*member, "mf", 1, "t", 1, 0, 1, "visitors"])
        check("a group has the lock", fence > 0, fence)
        check("it is refused to a try", raises(TimedOut, lambda: Lock(session, "room").acquire(timeout=0)))
        check("a wait for it times out", raises(TimedOut, lambda: Lock(session, "room").acquire(timeout=0.1)))
        granted = []
        waiter = threading.Thread(target=lambda: granted.append(Lock(session, "room").acquire()))
        waiter.start()
        wait("it waits", lambda: inspect(test, "room")["waiterCount"] == 1)
        group.exchange("release_in_group", [member[0], 2, member[2], 1])
        waiter.join(SECONDS)
        check("it is granted after the group has left", granted and granted[0].fence > fence)
        granted[0].release()
        check("and it is free in the end", inspect(test, "room")["holderCount"] == 0)


def value(test, name):
    return json.loads(test.run_tool("sem", "value", name, "--json"))["value"]


def test_lost_replies(test):
    """Each request has one effect, however often it is sent, and however late a copy arrives."""
    with Session(test.url, ttl=LONG_TTL) as session:
        semaphore = Semaphore(session, "counted", 0)
        semaphore.create()
        with session.wire:
            session.connection.close()
            session.connection = FaultyConnection(test.url, 0.2, random.Random(SEED))
        semaphore.signal(10)
        for _ in range(100):
            semaphore.signal()
            semaphore.wait()
            raises(TimedOut, lambda: semaphore.acquire(20, timeout=0))
            semaphore.acquire(3).release()
        with session.wire:
            session.connection.chance = 0
        wait("late copies have arrived", lambda: value(test, "counted") == 10 and not session.claims)
        check("400 requests over a connection with faults have one effect each", True)
        check("all of the session's claims have ended", inspect(test, "counted")["holderCount"] == 0)


def test_lost_wake_ups(test):
    """Without wake-ups, a heartbeat shows that there was a grant."""
    with Session(test.url, ttl=27) as session:
        session.subscription.on_message = lambda text: None
        semaphore = Semaphore(session, "unheard", 0)
        semaphore.create()
        waiter = threading.Thread(target=semaphore.wait)
        waiter.start()
        wait("it waits", lambda: inspect(test, "unheard")["waiterCount"] == 1)
        test.run_tool("sem", "signal", "unheard")
        waiter.join(SECONDS)
        check("a grant whose wake-up was lost is found", not waiter.is_alive())


class DelayingConnection(FaultyConnection):
    """Keeps the next command, to send it late."""

    def __init__(self, url):
        super().__init__(url, 0, random)
        self.is_delaying, self.kept = False, None

    def command(self, *words):
        if not self.is_delaying:
            return super().command(*words)
        self.is_delaying, self.kept = False, words
        self.close()
        raise redis.ConnectionError("a fault of the test")


def test_late_copies(test):
    """A request that was refused when it was repeated has no effect, also if its first copy arrives later."""
    with Session(test.url, ttl=LONG_TTL) as session, Session(test.url, ttl=LONG_TTL) as other:
        with session.wire:
            session.connection.close()
            session.connection = DelayingConnection(test.url)
        late = Semaphore(session, "late")
        Semaphore(other, "first", 0).create()
        # So that the slot exists, and a late copy is not refused with the request of a new one.
        Semaphore(session, "first").signal()
        session.connection.is_delaying = True
        check("a repeated signal is refused", raises(Missing, late.signal))
        Semaphore(other, "late", 3).create()
        session.connection.send_late(session.connection.kept)
        check("its first copy, which comes late, adds nothing", value(test, "late") == 3)
        lease = Semaphore(other, "late").acquire(3)
        session.connection.is_delaying = True
        check("a repeated try is refused", raises(TimedOut, lambda: late.acquire(2, timeout=0)))
        lease.release()
        session.connection.send_late(session.connection.kept)
        check("its first copy acquires nothing", inspect(test, "late")["available"] == 3)
        session.connection.is_delaying = True
        check("a repeated wait is refused", raises(Missing, Semaphore(session, "later").acquire))
        Semaphore(other, "later", 3).create()
        session.connection.send_late(session.connection.kept)
        check("and its first copy acquires nothing", inspect(test, "later")["available"] == 3)


def test_pause(test):
    """A process that was stopped for longer than its TTL does not believe its lease for a moment."""
    process = test.next_process()
    holder = test.start_worker("holder", process, ttl=1.0, name="paused", count=0, timeout=SECONDS)
    fence = int(holder.stdout.readline().split()[1])
    os.kill(holder.pid, signal.SIGSTOP)
    next_fence = int(test.run_tool("lock", "paused", "--ttl", "120", "--", "sh", "-c", "echo $REDISDC_FENCE"))
    os.kill(holder.pid, signal.SIGCONT)
    check("a stopped process loses its lease", holder.stdout.readline() == "lost\n")
    check("the fence of the next holder is higher", next_fence > fence)
    test.ended_well(holder, process)


def test_sessions(test):
    check("another number of partitions is refused", raises(Conflict, lambda: Session(test.url, partitions=2)))
    check("the partitions of names are those of the library",
          [partition_of(name, 7) for name in ("a", "seats", "seats#items", "é")] == PARTITIONS_OF_7)
    session = Session(test.url, ttl=LONG_TTL)
    lease = Lock(session, "of a session").acquire()
    test.redis.delete("rdc:{default:0}:book")
    check("a session whose data was lost is over", raises(SessionLost, lambda: Lock(session, "x").acquire()))
    check("and its leases are lost", raises(LeaseLost, lease.release))
    session.close()


# FNV-1a, 32 bits, modulo 7.
PARTITIONS_OF_7 = [5, 4, 4, 2]


def test_mail(test):
    with PostOffice(test.url) as office:
        phone, laptop = office.mailbox("anna", "phone"), office.mailbox("anna", "laptop")
        phone.register()
        laptop.register()
        message = Message(b"hello", "greeting", {"b": "2", "a": "1"})
        sent = office.send(message, "again", to=["anna", "otto"], id="one")
        check("a send returns the indices", sent == {"anna": 1, "otto": 1}, sent)
        check("a repeated send has no effect", office.send(message, "again", to=["anna", "otto"], id="one") == sent)
        check("the id is refused for another send", raises(Conflict, lambda: office.send("x", to="anna", id="one")))
        office.send("hello", "world", to=["anna", "otto"], id="two")
        test.run_tool("mail", "send", "--to", "anna,otto", "--id", "two", "hello", "world")
        test.run_tool("mail", "send", "--to", "anna,otto", "--id", "three", "--type", "t", "--header", "h=1", "from Swift")
        office.send(Message(b"from Swift", "t", {"h": "1"}), to=["anna", "otto"], id="three")
        delivery = phone.listen(timeout=0)
        bodies = [message.body for message in delivery.messages]
        check("sends that Python and Swift repeat of each other happen once",
              bodies == [b"hello", b"again", b"hello", b"world", b"from Swift"], bodies)
        check("type and headers arrive", (delivery.messages[0].type, delivery.messages[0].headers)
              == ("greeting", {"a": "1", "b": "2"}))
        again = [message.body for message in phone.listen(timeout=0).messages]
        check("what is not acknowledged comes again", again == bodies)
        phone.acknowledge(delivery.cursor)
        check("what is acknowledged does not", phone.listen(timeout=0).messages == [])
        check("a message stays until all devices have acknowledged it", stored(test, "anna") == 5)
        text = test.run_tool("mail", "listen", "anna", "--device", "laptop", "--limit", "2")
        cursor = Cursor.parse(text.splitlines()[-1].split()[-1])
        check("Python continues after the cursor of a Swift reader",
              [message.index for message in laptop.listen(cursor, 0).messages] == [3, 4, 5])
        check("and is deleted then", stored(test, "anna") == 3)
        laptop.acknowledge(delivery.cursor)
        check("and all are deleted in the end", stored(test, "anna") == 0)
        test_waiting_reader(test, office)


def test_waiting_reader(test, office):
    received, reader = [], office.mailbox("anna", "phone")
    thread = threading.Thread(target=lambda: received.append(reader.listen(timeout=SECONDS)))
    thread.start()
    wait("the reader waits", lambda: "listening processes: 1" in test.run_tool("mail", "inspect", "anna"))
    test.run_tool("mail", "send", "--to", "anna", "wake up")
    thread.join(SECONDS)
    check("a waiting Python reader is woken by a send of Swift", received and received[0].messages[0].body == b"wake up")
    superseded = []
    thread = threading.Thread(target=lambda: superseded.append(raises(Superseded, lambda: reader.listen(
        received[0].cursor, SECONDS))))
    thread.start()
    wait("the reader waits", lambda: "listening processes: 1" in test.run_tool("mail", "inspect", "anna"))
    test.run_tool("mail", "listen", "anna", "--device", "phone", "--timeout", "0", statuses=(0, 75))
    thread.join(SECONDS)
    check("a reader is superseded by another one of its device", superseded == [True])


def stored(test, name):
    return test.redis.llen("ql:{default:0}:mail:" + name) // 2


def test_page(test):
    """The commands and the program of README.md."""
    page = (HERE / "README.md").read_text()
    commands = re.findall(r"^    python3 (Examples/Polyglot/polyglot.py .*)$", page, re.M)
    check("the page has commands", len(commands) > 5)
    for command in commands:
        status = 74
        # The lease is lost when the machine stands still.
        while status == 74:
            status = test.start("sh", "-c", f"{sys.executable} {command}", cwd=HERE.parent.parent).wait(SECONDS)
        check(command, status == 0)
    program = re.search(r"^```python\n(.*?)^```$", page, re.M | re.S)[1]
    # The first message ends it, and the server is that of the test.
    program = program.replace("redis://127.0.0.1:6379", test.url) + "        break\n"
    process = test.start(sys.executable, "-c", program, cwd=HERE, stdout=subprocess.PIPE)
    check("the program prints a message", "your turn" in process.communicate(timeout=SECONDS)[0])


# The permits and locks of dead processes come back.

def test_return(test):
    chosen, times = random.Random(SEED), []
    with Session(test.url, ttl=LONG_TTL) as session:
        Semaphore(session, "returned", 3).create()
        while len(times) < 4:
            language = ["Swift", "Python"][len(times) % 2]
            seconds = time_return(test, session, chosen, language)
            if seconds is None:
                print("    repeated: the machine stood still for longer than the TTL")
                continue
            times.append(seconds)
            check(f"permits of dead processes are granted to {language} after {seconds:.1f} s", True)
    if test.is_strict:
        check("that is within the TTL and 1 s", max(times) <= TTL + 1, times)


def time_return(test, session, chosen, language):
    """Kills three holders, and returns after how many seconds the survivor has all permits; None if they had lost theirs."""
    victims = [start_holder(test, "returned", 1, chosen) for _ in range(3)]
    if language == "Swift":
        survivor = test.start(test.tool, "sem", "wait", "returned", "--hold", "-n", "3", "--ttl", "120", "--", "true")
        ended = lambda: survivor.poll() is not None
    else:
        survivor = threading.Thread(target=lambda: Semaphore(session, "returned").acquire(3, SECONDS).release())
        survivor.start()
        ended = lambda: not survivor.is_alive()
    wait("the survivor waits", lambda: ended() or inspect(test, "returned")["waiterCount"] == 1)
    time.sleep(chosen.uniform(0, TTL / 3))
    is_void = ended() or any(victim.poll() is not None for victim in victims)
    for victim in victims:
        kill_with_children(victim)
    died = time.monotonic()
    wait("the survivor has the permits", ended)
    seconds = time.monotonic() - died
    if language == "Swift" and survivor.returncode != 0:
        raise AssertionError(f"the survivor has ended with {survivor.returncode}")
    wait("they are free again", lambda: value(test, "returned") == 3)
    return None if is_void else seconds


def start_holder(test, name, count, chosen):
    """Starts a process, in Python or Swift, and returns it when it holds."""
    while True:
        if chosen.random() < 0.5:
            holder = test.start_worker("holder", test.next_process(), ttl=TTL, name=name, count=count, timeout=SECONDS)
        else:
            holder = test.start(test.tool, "sem", "wait", name, "--hold", "-n", str(count), "--ttl", str(TTL), "--", "sh",
                                "-c", "echo held; exec sleep 600", stdout=subprocess.PIPE)
        if holder.stdout.readline().startswith("held"):
            return holder
        kill_with_children(holder)


# Chaos: locks and permits.

class Threads:
    """Threads whose first failure is that of the test."""

    def __init__(self):
        self.threads, self.failures = [], []

    def start(self, body, *arguments):
        def run():
            try:
                body(*arguments)
            except BaseException as error:
                self.failures.append(error)
        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def join(self):
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


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


# Chaos: mail.

def test_chaos_of_mail(test):
    mailboxes, ended = ["north", "south"], f"{test.folder}/end"
    senders, readers, kills = Threads(), Threads(), []
    sends = 3 * KILLS
    with PostOffice(test.url) as office:
        for name in mailboxes:
            for device in ("python", "swift"):
                office.mailbox(name, device).register()
    for name in mailboxes:
        readers.start(python_reader, test, name, ended, KILLS // 6, kills)
        readers.start(swift_reader, test, name, ended, KILLS // 6, kills)
    senders.start(python_sender, test, mailboxes, sends, KILLS // 6, kills)
    senders.start(swift_sender, test, mailboxes, KILLS // 2, KILLS // 6, kills)
    senders.join()
    # Readers do not end before they have been killed as often as they should.
    pathlib.Path(ended).touch()
    readers.join()
    for name in mailboxes:
        check(f"no message of {name} is left", stored(test, name) == 0)
    print(f"    killed: {kills.count('Python')} Python and {kills.count('Swift')} Swift processes")
    test.judge("mail", ["mail"])


def python_sender(test, mailboxes, count, deaths, kills):
    chosen, process, first = random.Random(f"{SEED} sender"), test.next_process(), 0
    for death in range(deaths + 1):
        start = test.events(process)
        worker = test.start_worker("sender", process, first=first, count=count, mailboxes=mailboxes, seed_of_sends=SEED,
                                   faults=0.05, ttl=TTL)
        if death == deaths:
            test.ended_well(worker, process)
            return
        events = start + chosen.randint(1, max(1, count // deaths))
        wait("the sender has sent", lambda: test.events(process) >= events or worker.poll() is not None)
        if worker.poll() is not None:
            test.ended_well(worker, process)
            return
        worker.kill()
        worker.wait()
        kills.append("Python")
        # The next one repeats the send that is not known to have happened, with the same id.
        lines = pathlib.Path(f"{test.folder}/{process}.jsonl").read_text().splitlines()
        first = max([json.loads(line)["o"] + 1 for line in lines if json.loads(line)["e"] == "end"], default=0)


def swift_sender(test, mailboxes, count, deaths, kills):
    chosen, own = random.Random(f"{SEED} Swift sender"), History(test.folder, test.next_process())
    killed = set(chosen.sample(range(count), min(count, deaths)))
    for number in range(count):
        send = choose_send(SEED, own.process, number, mailboxes)
        own.record("call", o=number, v="send", m=send.message, to=send.to, n=len(send.bodies))
        command = [test.tool, "mail", "send", "--to", ",".join(send.to), "--id", send.id, *send.bodies]
        if number in killed:
            tool = test.start(*command, stdout=subprocess.DEVNULL)
            time.sleep(chosen.uniform(0, 0.2))
            if tool.poll() is None:
                kill_with_children(tool)
                kills.append("Swift")
        # Also when the killed one has sent it: then this one has no effect.
        test.run_tool(*command[1:])
        own.record("end", o=number, v="send", x="ok")


def python_reader(test, name, ended, deaths, kills):
    chosen = random.Random(f"{SEED} reader of {name}")
    for death in range(deaths + 1):
        process = test.next_process()
        worker = test.start_worker("reader", process, mailbox=name, device="python", end=ended, faults=0.03, ttl=TTL)
        if death == deaths:
            # It reads to the end when the senders have ended.
            test.ended_well(worker, process)
            return
        events = chosen.randint(2, 30)
        wait("the reader has read", lambda: test.events(process) >= events or worker.poll() is not None
             or os.path.exists(ended))
        if worker.poll() is None:
            # Perhaps between the arrival of messages and their acknowledgement.
            History(test.folder, 0).record("killed", p=process)
            worker.kill()
            worker.wait()
            kills.append("Python")


def swift_reader(test, name, ended, deaths, kills):
    chosen, own, cursor = random.Random(f"{SEED} Swift reader of {name}"), History(test.folder, test.next_process()), None
    own.record("reads", r=name, d="swift")
    while True:
        is_last = os.path.exists(ended)
        command = [test.tool, "mail", "listen", name, "--device", "swift", "--json", "--limit", str(chosen.randint(1, 8)),
                   "--timeout", "0" if is_last else "1"] + (["--after", cursor] if cursor else [])
        tool = test.start(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if deaths > 0 and chosen.random() < 0.4:
            deaths -= 1
            time.sleep(chosen.uniform(0, 0.3))
            if tool.poll() is None:
                kill_with_children(tool)
                kills.append("Swift")
                # The messages that it has printed are lost with it, and must come again.
                cursor = None
                own.record("reads", r=name, d="swift")
                continue
        lines = [json.loads(line) for line in tool.communicate(timeout=SECONDS)[0].splitlines()]
        messages = [line for line in lines if "body" in line]
        for message in messages:
            own.record("got", r=name, d="swift", i=message["index"], m=message["body"])
        end = next((line for line in lines if "cursor" in line), None)
        if end is None:
            # It has given up, because the machine stood still.
            cursor = None
            own.record("reads", r=name, d="swift")
            continue
        if end["status"] not in ("messages", "timedOut"):
            own.record("gap", r=name, d="swift", w=end["status"])
        cursor = end["cursor"]
        if is_last and not messages and deaths <= 0:
            own.record("drained", r=name, d="swift")
            return


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
