#!/usr/bin/env python3
"""The processes of test.py. Each writes what it does into a file, in the form of docs/verify.md.

usage: worker.py ROLE JSON      (the settings of the role)
"""
import contextlib
import json
import os
import random
import sys
import threading
import time

import redis

from errors import Gap, LeaseLost, NotConnected, SessionLost, TimedOut
from lock import Lock
from mail import PostOffice
from semaphore import Semaphore
from server import Connection
from session import Session

LOCK, SEATS, TICKETS = "shared lock", "shared seats", "shared tickets"
PERMITS = {SEATS: 3, TICKETS: 4}


class History:
    """The events of a process, one a line. A line is one write: a process that is killed leaves whole lines."""

    def __init__(self, folder, process):
        self.process = process
        self.file = os.open(os.path.join(folder, f"{process}.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @staticmethod
    def now():
        """Nanoseconds by the clock that all processes of the machine share."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def record(self, kind, at=None, **fields):
        event = {"t": at or self.now(), "p": self.process, "e": kind} | fields
        os.write(self.file, json.dumps(event).encode() + b"\n")


class FaultyConnection(Connection):
    """Loses requests and replies. Some of the lost requests arrive late."""

    def __init__(self, url, chance, random):
        super().__init__(url, 2.0)
        self.url, self.chance, self.random = url, chance, random

    def command(self, *words):
        if self.random.random() >= self.chance:
            return super().command(*words)
        fate = self.random.choice(["lost", "late", "no reply"])
        if fate == "late":
            timer = threading.Timer(self.random.uniform(0.001, 0.3), self.send_late, (words,))
            timer.daemon = True
            timer.start()
        elif fate == "no reply":
            try:
                super().command(*words)
            except redis.ResponseError:
                pass
        self.close()
        raise redis.ConnectionError(f"a fault of the test: {fate}")

    def send_late(self, words):
        connection = Connection(self.url, 10.0)
        try:
            connection.connect()
            connection.command(*words)
        except redis.RedisError:
            pass
        finally:
            connection.close()


class Worker:
    def __init__(self, url, folder, process, seed, **settings):
        self.url, self.settings = url, settings
        self.history, self.random = History(folder, process), random.Random(f"{seed}-{process}")
        self.operation, self.session = 0, None

    def begin_session(self):
        fence = self.session.highest_fence if self.session else 0
        self.session = None
        while self.session is None:
            # A machine that stands still may make it expire before the reply.
            with contextlib.suppress(NotConnected):
                self.session = Session(self.url, ttl=self.settings["ttl"], highest_fence=fence)
        self.history.record("started", w=self.session.sid)
        if chance := self.settings.get("faults"):
            faults = random.Random(self.random.random())
            with self.session.wire:
                self.session.connection.close()
                self.session.connection = FaultyConnection(self.url, chance, faults)
            receive = self.session.subscription.on_message
            # Wake-ups may be lost.
            self.session.subscription.on_message = lambda text: faults.random() < 4 * chance or receive(text)

    # Locks and permits.

    def run_locks(self):
        self.begin_session()
        for _ in range(self.settings["rounds"]):
            self.operation += 1
            work = self.random.choice([self.use_lock] * 3 + [self.use_seats] * 2 + [self.signal, self.take_ticket])
            try:
                work()
            except SessionLost as error:
                lost = "dataLost" if "data was lost" in str(error) else "expired"
                self.history.record("sessionLost", w=lost)
                self.begin_session()
        self.session.close()

    def timeout(self):
        return self.random.choice([0, 0.02, 0.2, 120])

    def use_lock(self):
        called = self.history.now()
        self.hold(Lock(self.session, LOCK).acquire, "lock", LOCK, called, 1, 1)

    def use_seats(self):
        called, count = self.history.now(), self.random.choice([1, 1, 2, 3])
        seats = Semaphore(self.session, SEATS, PERMITS[SEATS])
        self.hold(lambda timeout: seats.acquire(count, timeout), "lease", SEATS, called, count, PERMITS[SEATS])

    def hold(self, acquire, verb, name, called, count, limit):
        try:
            lease = acquire(timeout=self.timeout())
        except TimedOut:
            return
        kind, end = "enter", self.history.now() + self.random.randrange(20_000_000)
        try:
            while True:
                # The time of an event is before the clock was asked: at that time it was certainly held.
                at = self.history.now()
                lease.check()
                fields = {"o": self.operation}
                if kind == "enter":
                    fields |= {"r": name, "v": verb, "c": called, "f": lease.fence, "n": count, "l": limit}
                self.history.record(kind, at, **fields)
                if at > end:
                    break
                kind = "held"
                time.sleep(self.random.uniform(0, 0.003))
            lease.release()
        except LeaseLost as error:
            self.history.record("lost", o=self.operation, w=str(error))
        except SessionLost:
            self.history.record("lost", o=self.operation, w="the session was lost")
            raise

    def signal(self):
        self.do("signal", lambda tickets: tickets.signal())

    def take_ticket(self):
        self.do("wait", lambda tickets: tickets.wait(timeout=min(1, self.timeout())))

    def do(self, verb, body):
        self.history.record("call", o=self.operation, v=verb, r=TICKETS, n=1)
        outcome = "unknown"
        try:
            body(Semaphore(self.session, TICKETS))
            outcome = "ok"
        except TimedOut:
            outcome = "none"
        finally:
            self.history.record("end", o=self.operation, v=verb, r=TICKETS, x=outcome)

    def run_command(self):
        """The command that the tool runs under a lease."""
        self.history.record("enter", o=1, r=self.settings["name"], v=self.settings["verb"], c=self.settings["called"],
                            f=int(os.environ["REDISDC_FENCE"]), n=self.settings["count"], l=self.settings["limit"])
        end = self.history.now() + self.random.randrange(60_000_000)
        while self.history.now() < end:
            time.sleep(0.003)
            self.history.record("held", o=1)

    def run_holder(self):
        """Holds until its standard input ends, or until the lease is lost. Prints which."""
        name, count, lease = self.settings["name"], self.settings["count"], None
        while lease is None:
            self.begin_session()
            resource = Semaphore(self.session, name) if count else Lock(self.session, name)
            with contextlib.suppress(SessionLost):
                lease = resource.acquire(*[count] if count else [], timeout=self.settings["timeout"])
        print(f"held {lease.fence}", flush=True)
        released = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), released.set()), daemon=True).start()
        while lease.is_held and not released.wait(0.01):
            pass
        try:
            lease.release()
            print("released", flush=True)
        except LeaseLost:
            print("lost", flush=True)
        self.session.close()

    # Mail.

    def office(self):
        office = PostOffice(self.url)
        if chance := self.settings.get("faults"):
            office.connection = FaultyConnection(self.url, chance, random.Random(self.random.random()))
            receive = office.subscription.on_message
            office.subscription.on_message = lambda text: self.random.random() < 4 * chance or receive(text)
        return office

    def run_sender(self):
        office = self.office()
        for number in range(self.settings["first"], self.settings["count"]):
            send = choose_send(self.settings["seed_of_sends"], self.history.process, number, self.settings["mailboxes"])
            self.history.record("call", o=number, v="send", m=send.message, to=send.to, n=len(send.bodies))
            office.send(*send.bodies, to=send.to, id=send.id, timeout=300)
            self.history.record("end", o=number, v="send", x="ok")
            time.sleep(self.random.uniform(0, 0.02))

    def run_reader(self):
        name, device = self.settings["mailbox"], self.settings["device"]
        mailbox, cursor = self.office().mailbox(name, device), None
        self.history.record("reads", r=name, d=device)
        while True:
            # Asked before the read, so that this one is after all sends.
            is_last = os.path.exists(self.settings["end"])
            try:
                delivery = mailbox.listen(cursor, 0 if is_last else 0.5, self.random.randint(1, 5))
            except Gap as gap:
                self.history.record("gap", r=name, d=device, w=gap.kind)
                cursor = gap.cursor
                continue
            for message in delivery.messages:
                # A reader that is killed here has not used the message.
                time.sleep(self.random.uniform(0, 0.005))
                self.history.record("got", r=name, d=device, i=message.index, m=message.body.decode())
            cursor = delivery.cursor
            if is_last and not delivery.messages:
                self.history.record("drained", r=name, d=device)
                return
            if self.random.random() < 0.3:
                mailbox.acknowledge(cursor)
            time.sleep(self.random.uniform(0, 0.02))


class choose_send:
    """A send of a process: the same one for the same number, so that it can be repeated."""

    def __init__(self, seed, process, number, mailboxes):
        chosen = random.Random(f"{seed}-{process}-{number}")
        self.message, self.id = f"{process}-{number}", f"send-{process}-{number}"
        self.to = sorted(chosen.sample(mailboxes, chosen.randint(1, len(mailboxes))))
        self.bodies = [f"{self.message}-{part}" for part in range(chosen.randint(1, 3))]


def end_with_test():
    """A worker ends when the test has ended, however that happens."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    if sys.argv[1] in ("locks", "sender", "reader"):
        threading.Thread(target=end_with_test, daemon=True).start()
    getattr(Worker(**json.loads(sys.argv[2])), f"run_{sys.argv[1]}")()
