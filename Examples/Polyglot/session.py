"""A session of the engine: what a program holds and waits for, and the heartbeats that keep it.

The rules are those of docs/wire-format.md. A session has three threads: one sends heartbeats, one receives wake-ups, and one
does what may take longer (maintenance.py).
"""
import enum
import os
import socket
import threading

import redis

from errors import (Broken, Conflict, Gone, LeaseLost, Missing, NotConnected, PolyglotError, ServerRefused, SessionLost,
                    Stale, TimedOut)
from maintenance import Maintenance
from notices import Notices
from server import (CONNECTION_ERRORS, Connection, FairLock, Subscription, check_name, is_transient, now, partition_of, random_id,
                    refused)

LAYOUT = "layout 3"
# The scripts that serve a resource of another family than expected.
FAMILIES = {
    "acquire": {b"p": "acquire", b"g": "acquire_in_group"},
    "signal": {b"p": "signal", b"g": "signal_groups"},
    "create": {b"p": "create", b"g": "create_for_groups"},
    "resize": {b"p": "resize", b"g": "resize_for_groups"},
    "release": {b"p": "release", b"g": "release_in_group", b"i": "release_item", b"m": "release_party"},
    "release_mutex": {b"p": "release_mutex", b"g": "release_in_group", b"i": "release_item", b"m": "release_party"},
    "recheck": {b"p": "recheck", b"g": "recheck_groups", b"m": "recheck_meeting", b"x": "clear"},
    "end_permits": {b"p": "end_permits", b"g": "end_in_group", b"i": "end_item", b"m": "end_party"},
}
# Replies that refuse a request, with the exception of each.
REFUSALS = {b"missing": Missing, b"gone": Gone, b"broken": Broken, b"conflict": Conflict}


class _Unavailable(TimedOut):
    """A request that may not queue was refused."""


class State(enum.Enum):
    """The states of a claim."""
    REQUESTED = enum.auto()  # no reply yet
    WAITING = enum.auto()    # queued
    HELD = enum.auto()       # a lease, or permits to consume that have arrived
    MISSING = enum.auto()    # the server has lost the place in the queue
    ENDING = enum.auto()     # a request that ends the claim is on its way
    LOST = enum.auto()       # ended by others; `error` says why
    ENDED = enum.auto()


class Claim:
    """A claim of this session. Its slot serves nothing else until it has ended."""

    def __init__(self, name, kind, slot, number):
        self.name, self.kind, self.slot, self.number = name, kind, slot, number
        self.state, self.fence, self.error = State.REQUESTED, 0, None
        # Whether an earlier copy of the request may still arrive.
        self.may_come_late = False
        # The number of the request that ends it, which is the same in each repetition.
        self.end_number = None

    def __str__(self):
        return f'{ {"m": "lock", "s": "semaphore"}.get(self.kind[0], "resource") } "{self.name}"'


class Session:
    """A session in one partition of a namespace.

    It lasts while its heartbeats are answered. By this process's own clock it ends `ttl` after the sending of the last
    answered heartbeat, less a tenth: before the server gives to others what it held. Then every wait raises SessionLost,
    and a program that wants to go on begins another session.
    """

    def __init__(self, url, namespace="default", partitions=1, partition=0, ttl=15.0, about=None, highest_fence=0):
        check_name(namespace)
        if ttl < 1:
            raise ValueError(f"ttl is {ttl} s, expected at least 1 s")
        self.sid, self.ttl, self.partitions, self.partition = random_id(), ttl, partitions, partition
        self.highest_fence = highest_fence
        prefix = f"rdc:{{{namespace}:{partition}}}:"
        self.keys = [prefix + key for key in ("book", "index", "sessions", "values")]
        # The connection has one user at a time. Whoever has both locks took this one first.
        self.wire = FairLock()
        self.connection = Connection(url, max(1.25, ttl * 5 / 12))
        # Guards everything below, and is notified of every change of a claim or of the session.
        self.changed = threading.Condition()
        self.claims, self.free_slots, self.slots_used, self.last_number = {}, [], 0, 0
        # The last change of a slot that the server has confirmed: slot, number, and whether it is the end of a claim.
        self.seen = None
        # The number of the last consumed claim in each slot whose arrival was confirmed.
        self.confirmed = {}
        self.notices = Notices()
        self.end_reason = None
        self.deadline = self.next_heartbeat = 0.0
        self.maintenance = Maintenance(self)
        self.subscription = Subscription(url, [prefix + "wake:" + self.sid], self._wake_up,
                                         lambda: self.maintenance.add(self.compare_claims))
        try:
            self._join(about or f"{socket.gethostname()} {os.getpid()} python")
        except BaseException:
            self.subscription.stop()
            raise
        threading.Thread(target=self._send_heartbeats, name="heartbeats", daemon=True).start()
        self.maintenance.start()

    # The life of the session.

    def _join(self, about):
        until = now() + self.ttl
        # Before the session exists: no message for it can be missed then.
        self.subscription.is_subscribed.wait(self.ttl)
        epoch, layout = os.urandom(16).hex(), f"{self.partitions} {LAYOUT}"
        while True:
            sent = now()
            try:
                with self.wire:
                    if not self.connection.is_connected:
                        self.connection.connect()
                    reply = self.run("join", [self.sid, epoch, self._microseconds(self.ttl), layout, about,
                                              self.highest_fence])
                break
            except CONNECTION_ERRORS as error:
                if now() >= until:
                    raise NotConnected(f"cannot begin a session within {self.ttl} s: {error}; check that the server is "
                                       "reachable") from error
                threading.Event().wait(0.05)
            except redis.ResponseError as error:
                raise ServerRefused(f"cannot begin a session: {error}") from error
        if reply[0] == b"conflict":
            raise Conflict(f'the namespace has "{reply[1].decode()}", expected "{layout}": pass its number of partitions, '
                           "or use another namespace")
        if reply[0] != b"ok":
            raise NotConnected("cannot begin a session: it has expired before the reply to its join; try again")
        with self.changed:
            self.deadline = sent + self.ttl * 0.9
            self._schedule_heartbeat(sent, reply[2])

    @property
    def is_live(self):
        """Whether the session certainly exists. Once False, it stays so."""
        with self.changed:
            if self.end_reason is None and now() >= self.deadline:
                self._end("no heartbeat was answered in time")
            return self.end_reason is None

    @property
    def remaining(self):
        """For how many seconds the session certainly exists without another heartbeat."""
        return max(0.0, self.deadline - now()) if self.is_live else 0.0

    def check_live(self):
        if not self.is_live:
            raise SessionLost(f"the session {self.sid} is over: {self.end_reason}; what it held is lost, begin another one")

    def _end(self, reason):
        with self.changed:
            self.end_reason = self.end_reason or reason
            self.changed.notify_all()

    def close(self):
        """Releases all claims and leaves. Without it, the claims are free when the TTL is over."""
        try:
            with self.changed:
                claims = [claim for claim in self.claims.values() if claim.state is not State.ENDED]
            for claim in claims:
                if self.is_live:
                    self.end_claim(claim)
            while self.is_live and self.exchange("leave", [self.sid]) != 1:
                pass
        except (PolyglotError, redis.RedisError):
            # The TTL ends the session.
            pass
        finally:
            self._end("it was closed")
            self.subscription.stop()
            self.maintenance.add(None)
            with self.wire:
                self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Heartbeats.

    def _send_heartbeats(self):
        while self.is_live:
            with self.changed:
                delay = min(self.next_heartbeat, self.deadline) - now()
                if delay > 0:
                    self.changed.wait(delay)
                    continue
            try:
                with self.wire:
                    # A new connection begins with a heartbeat.
                    if not self._connect():
                        self.send_heartbeat()
            except (redis.RedisError, PolyglotError):
                threading.Event().wait(0.1)

    def send_heartbeat(self):
        """Sends a heartbeat. The caller has the wire."""
        with self.changed:
            sent, known = now(), self.notices.count
            slot, number, is_end = self.seen or ("", "", "")
            arguments = [self.sid, self._microseconds(self.ttl), slot, number, is_end, self.highest_fence,
                         self.notices.connection]
        reply = self.run("heartbeat", arguments)
        self._check_lost(reply)
        _, notices, is_data_lost, expired, names, is_unlisted, wait = reply
        with self.changed:
            # Not if the deadline has passed before the reply arrived: others may have seen that.
            self.check_live()
            # Counted from before the heartbeat was sent, when the server cannot have extended the session yet.
            self.deadline = max(self.deadline, sent + self.ttl * 0.9)
            if is_data_lost:
                self.seen = None
            is_complete = self.notices.compare(notices, known)
            self._schedule_heartbeat(sent, wait, len(expired))
        if is_data_lost or not is_complete:
            self.maintenance.add(self.compare_claims)
        self.maintenance.add_work(expired, names, is_unlisted)

    def _schedule_heartbeat(self, sent, wait, expired=0):
        """`wait`: microseconds after which the server asks for the next one, or 0. `expired`: sessions to sweep."""
        self.next_heartbeat = sent + self.ttl / 3
        if wait:
            self.next_heartbeat = min(self.next_heartbeat, now() + wait / 1e6 + 0.001)
        if expired:
            # It lists those that still exist, and more if one reply was not enough.
            self.next_heartbeat = min(self.next_heartbeat, now() + (0.01 if expired >= 64 else 1.0))

    @staticmethod
    def _microseconds(seconds):
        return round(seconds * 1e6)

    # Requests.

    def _connect(self):
        """Returns whether there is a new connection. The caller has the wire.

        It may lead to another server, which has lost the last writes. Therefore it begins with a heartbeat and the list of
        the claims: a later request could overwrite the evidence of a loss.
        """
        if self.connection.is_connected:
            return False
        self.connection.connect()
        try:
            with self.changed:
                self.notices.reconnected()
            self.send_heartbeat()
            self.compare_claims()
        except BaseException:
            self.connection.close()
            raise
        return True

    def run(self, script, arguments):
        return self.connection.run("RedisDC", script, self.keys, arguments)

    def exchange(self, script, arguments):
        """Runs a script over the present connection, or a new one."""
        with self.wire:
            self._connect()
            return self.run(script, arguments)

    def request(self, script, arguments, what, until=None, settles=False, claim=None):
        """Runs a script until it has replied, with the same arguments each time. Returns the reply.

        until: raises TimedOut after this time, when the request may still arrive. settles: a refusal of a request that was
        repeated counts when the server has recorded it, because an earlier copy may still arrive. claim: notes whether one
        may.
        """
        kind, failures, may_come_late = script, 0, False
        while True:
            self.check_live()
            try:
                reply = self.exchange(script, arguments)
            except CONNECTION_ERRORS as error:
                may_come_late = True
                if claim:
                    claim.may_come_late = True
                failures = self._pause(failures, until, what, error)
                continue
            except redis.ResponseError as error:
                if is_transient(error):
                    failures = self._pause(failures, until, what, error)
                    continue
                reply = error
            word = reply[0] if isinstance(reply, list) else None
            if word == b"family":
                script = FAMILIES["end_permits" if kind.startswith("end_") else kind].get(reply[1])
                if script is None:
                    raise Conflict(f"cannot {what}: it is a resource of the family {reply[1].decode()}")
                continue
            if word == b"again":
                threading.Event().wait(0.005)
                continue
            self._check_lost(reply)
            if word == b"stale":
                if not may_come_late:
                    # The record of the slot is damaged: as if it had an unknown claim.
                    return [b"occupied"]
                raise Stale(f"cannot {what}: a later request has used the slot; begin another session")
            if settles and may_come_late and (isinstance(reply, Exception) or word in REFUSALS):
                settled = self.request("settle_call", arguments[:2] + [""], what)
                reply = reply if settled in (-1, [b"over", b"-1"]) else settled
            if isinstance(reply, Exception):
                raise ServerRefused(f"cannot {what}: {reply}") from reply
            if word in REFUSALS:
                raise self._refusal(what, reply)
            return reply

    def _pause(self, failures, until, what, error):
        if until is not None and now() >= until:
            raise TimedOut(f"cannot {what}: Redis did not answer in time ({error})")
        self.check_live()
        threading.Event().wait(min(0.01 * 2 ** failures, 0.5))
        return failures + 1

    def _refusal(self, what, reply):
        word = reply[0]
        advice = {b"missing": "it does not exist; create it, or say with how many permits",
                  b"gone": "it was destroyed; use another name, or create it when it is cleared",
                  b"broken": "it is broken; destroy it and create it again"}
        if word == b"conflict":
            return Conflict(f"cannot {what}: it exists with the kind {reply[1].decode()} and {reply[2]} permits; "
                            "use it as it is, or another name")
        return REFUSALS[word](f"cannot {what}: {advice[word]}")

    def _check_lost(self, reply):
        if isinstance(reply, list) and reply and reply[0] == b"lost":
            self._end("it has expired" if len(reply) > 1 else "the server does not have it: data was lost")
            self.check_live()

    # Slots.

    def take_slot(self):
        """Returns a free slot and the next number. The slot that was freed last comes first: few slots are little work."""
        with self.changed:
            self.last_number += 1
            if not self.free_slots:
                self.free_slots.append(self.slots_used)
                self.slots_used += 1
            return self.free_slots.pop(), self.last_number

    def take_number(self):
        with self.changed:
            self.last_number += 1
            return self.last_number

    def free_slot(self, slot):
        with self.changed:
            self.free_slots.append(slot)

    def saw(self, slot, number, is_end=""):
        with self.changed:
            self.seen = (slot, number, is_end)

    def call(self, script, name, what, *arguments):
        """A request that creates no claim: signal, create and the like. Returns the reply, a number."""
        self._check_partition(name)
        while True:
            slot, number = self.take_slot()
            try:
                reply = self.request(script, [f"c:{self.sid}:{slot}", number, "t:" + name, *arguments], what, settles=True)
            except (Missing, Gone, Broken, Conflict, ServerRefused):
                self.free_slot(slot)
                raise
            if reply == [b"occupied"]:
                # The slot has a claim that this program has ended: the server has lost the end. It is not used again.
                self.maintenance.add(self.compare_claims)
                threading.Event().wait(0.02)
                continue
            self.free_slot(slot)
            self.saw(slot, number)
            return self._without_more(reply, name)

    def _without_more(self, reply, name):
        if isinstance(reply, list) and reply[0] == b"more":
            self.maintenance.add(lambda: self.maintenance.recheck(name))
            return reply[1]
        return reply

    def _check_partition(self, name):
        if partition_of(check_name(name), self.partitions) != self.partition:
            raise ValueError(f'"{name}" is in the partition {partition_of(name, self.partitions)}, and the session in '
                             f"{self.partition}: use a session of that partition")

    # Claims.

    def acquire(self, name, kind, permits, mode, count=1, timeout=None):
        """Acquires permits, or waits for them in the queue. Returns the claim, which is held.

        timeout: None waits without a limit; 0 does not queue. After TimedOut, and after any other exception, nothing is
        held: the claim was ended on the server, or is being ended if Redis cannot be reached.
        """
        self._check_partition(name)
        until = None if timeout is None else now() + timeout
        while True:
            claim = self._new_claim(name, kind)
            what = f"acquire {claim}"
            arguments = [f"c:{self.sid}:{claim.slot}", claim.number, "t:" + name, kind, permits, mode, count,
                         1 if timeout == 0 else 0]
            try:
                reply = self.request("acquire", arguments, what, until, claim=claim)
                if reply == [b"occupied"]:
                    # The slot has a claim that this program has ended: the server has lost the end. It is not used again.
                    self._forget(claim, frees_slot=False)
                    self.maintenance.add(self.compare_claims)
                    threading.Event().wait(0.02)
                    continue
                self._acquired(claim, reply, what)
                self._wait(claim, until, what, timeout)
                if claim.state is State.HELD:
                    return claim
            except (Missing, Gone, Broken, Conflict, ServerRefused, _Unavailable):
                # A refusal leaves no trace, unless a copy of the request can still be granted what this one was not.
                if claim.state is State.REQUESTED and not claim.may_come_late:
                    self._forget(claim)
                else:
                    self.abandon(claim)
                raise
            except BaseException:
                self.abandon(claim)
                raise
            # The server has lost the place in the queue: the request is made again.
            self.abandon(claim)

    def _new_claim(self, name, kind):
        with self.changed:
            slot, number = self.take_slot()
            self.claims[number] = Claim(name, kind, slot, number)
            return self.claims[number]

    def _acquired(self, claim, reply, what):
        """Handles the reply to the request for a claim. A message may have granted it before."""
        if reply == -1:
            raise _Unavailable(f"cannot {what}: too few permits are free")
        if isinstance(reply, list) and reply[0] == b"over":
            with self.changed:
                self._end_by_word(claim, reply[1] if reply[1] in (b"gone", b"broken") else b"lost")
            return
        self.saw(claim.slot, claim.number)
        with self.changed:
            if reply == 0:
                if claim.state is State.REQUESTED:
                    claim.state = State.WAITING
            elif isinstance(reply, int):
                self._granted(claim, reply)
            elif isinstance(reply, list) and isinstance(reply[0], int):
                self._granted(claim, reply[0])
            else:
                raise refused(what, reply)

    def _granted(self, claim, fence):
        if claim.state in (State.REQUESTED, State.WAITING):
            claim.state, claim.fence = State.HELD, fence
            self.highest_fence = max(self.highest_fence, fence)
            self.changed.notify_all()

    def _lost(self, claim, error):
        if claim.state not in (State.ENDING, State.ENDED):
            claim.state, claim.error = State.LOST, error
            self.changed.notify_all()

    def _wait(self, claim, until, what, timeout):
        with self.changed:
            while claim.state in (State.REQUESTED, State.WAITING):
                self.check_live()
                if until is not None and now() >= until:
                    raise TimedOut(f"cannot {what}: timed out after {timeout} s")
                self.changed.wait(max(0.0, min(self.deadline, until or self.deadline) - now()))
            if claim.state is State.LOST:
                raise claim.error
            # A grant that is known only now, when the session is over, is none.
            self.check_live()

    def abandon(self, claim):
        """Ends a claim that nobody waits for any more: now, or later if Redis cannot be reached."""
        with self.changed:
            if claim.state is State.ENDED or not self.is_live:
                return
            claim.state = State.ENDING
        try:
            self.end_claim(claim, until=0)
        except TimedOut:
            self.maintenance.add(lambda: self.end_claim(claim))
        except PolyglotError:
            # The session is over, which ends the claim.
            pass

    def end_claim(self, claim, until=None):
        """Releases a claim in whatever state it is, also if its request has not arrived: then that is refused from now on.

        Returns 1, or 0 if the claim had been ended by others, or by an earlier copy of this request.
        """
        with self.changed:
            if claim.state is State.ENDED:
                return 0
            claim.state = State.ENDING
            claim.end_number = claim.end_number or self.take_number()
        script = "release_mutex" if claim.kind[0] == "m" else "release"
        reply = self.request(script, [f"c:{self.sid}:{claim.slot}", claim.end_number, "t:" + claim.name, claim.number],
                             f"release {claim}", until)
        reply = self._without_more(reply, claim.name)
        if reply:
            self.saw(claim.slot, claim.number, "1")
        self._forget(claim)
        return reply

    def _forget(self, claim, frees_slot=True):
        with self.changed:
            if claim.state is not State.ENDED:
                claim.state = State.ENDED
                self.claims.pop(claim.number, None)
                if frees_slot:
                    self.free_slots.append(claim.slot)

    def confirm(self, claim):
        """Confirms that consumed permits have arrived: from then on the end of the session does not return them."""
        self.request("confirm", [self.sid, f"{claim.slot}:{claim.number}"], f"take permits of {claim}")
        self.saw(claim.slot, claim.number, "1")
        with self.changed:
            self.confirmed[claim.slot] = claim.number
        self._forget(claim)

    # Wake-ups, and the comparison that finds what they have missed.

    def _wake_up(self, text):
        """Handles a message: the session's notices, then pairs of a claim's number and a fence, or of a number and a word."""
        if text == b"look":
            with self.changed:
                self.next_heartbeat = now()
                self.changed.notify_all()
            return
        words = text.split()
        pairs = [(int(number), word) for number, word in zip(words[1::2], words[2::2]) if number.isdigit()]
        with self.changed:
            counted = sum(word not in (b"try", b"recall") for _, word in pairs)
            is_complete, is_believed = self.notices.receive(counted, int(words[0]))
            for number, word in pairs if is_believed else []:
                claim = self.claims.get(number)
                if claim is None:
                    continue
                if word[:1].isdigit():
                    self._granted(claim, int(word.split(b"/")[0]))
                elif word == b"try":
                    self.maintenance.add(lambda name=claim.name: self.maintenance.recheck(name))
                else:
                    self._end_by_word(claim, word)
        if not is_complete:
            self.maintenance.add(self.compare_claims)

    def _end_by_word(self, claim, word):
        errors = {b"gone": Gone(f"{claim} was destroyed; use another name"),
                  b"broken": Broken(f"{claim} is broken, because a process has died; destroy it and create it again"),
                  b"lost": LeaseLost(f"{claim} was taken away by an operator; stop what the lease protects")}
        # The end of a resource does not end its leases.
        if word == b"lost" and claim.state is State.HELD:
            self._lost(claim, errors[word])
            # Frees the slot.
            self.maintenance.add(lambda: self.end_claim(claim))
        elif word in errors and claim.state is not State.HELD:
            self._lost(claim, errors[word])

    def compare_claims(self):
        """Compares the claims with those that the server has."""
        with self.wire:
            if self._connect():
                return
            with self.changed:
                # Those that are in no page do not exist any more.
                missing = {number: claim for number, claim in self.claims.items()
                           if claim.state in (State.WAITING, State.HELD)}
            lines, first = [], 0
            while True:
                reply = self.run("claims", [self.sid, first])
                self._check_lost(reply)
                page = reply[2]
                lines += [page[i:i + 7] for i in range(0, len(page), 7)]
                first = reply[1]
                if first == 0:
                    break
        for line in lines:
            missing.pop(line[1], None)
            self._compare_line(*line)
        with self.changed:
            for claim in missing.values():
                if claim.state is State.WAITING:
                    claim.state = State.MISSING
                    self.changed.notify_all()
                elif claim.state is State.HELD:
                    self._lost_by_server(claim)

    def _compare_line(self, slot, number, state, tick, _count, mode, name):
        with self.changed:
            claim = self.claims.get(number)
            if claim is None:
                if state == b"g" and self.confirmed.get(slot) == number:
                    self.maintenance.add(lambda: self.request("confirm", [self.sid, f"{slot}:{number}"], "confirm permits"))
                elif state != b"d":
                    # A claim that nobody waits for.
                    self.maintenance.add(lambda: self.maintenance.end(f"{self.sid}:{slot}:{number}", mode, name, b"lost"))
            elif state == b"d":
                self._end_by_word(claim, name)
            elif claim.state is State.HELD:
                if state == b"w" or state == b"h" and tick != claim.fence:
                    self._lost_by_server(claim)
            elif state in (b"h", b"g"):
                self._granted(claim, tick)

    def _lost_by_server(self, claim):
        """The server has lost a grant, so others may have held the resource since."""
        self._lost(claim, LeaseLost(f"the server has lost the lease of {claim}; stop what it protects"))
        # Ends what is left of it, and frees the slot.
        self.maintenance.add(lambda: self.end_claim(claim))
