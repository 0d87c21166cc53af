"""A session of the engine: what a program holds and waits for, and the heartbeats that keep it.

The rules are those of docs/wire-format.md. A session has three threads: one sends heartbeats, one receives wake-ups, and one
does what may take longer (maintenance.py).
"""
import os
import socket
import threading

import redis

from claims import Claims, State
from errors import Conflict, NotConnected, PolyglotError, ServerRefused, SessionLost
from maintenance import Maintenance
from notices import Notices
from server import CONNECTION_ERRORS, Connection, FairLock, Subscription, check_name, now, random_id

LAYOUT = "layout 3"


class Session(Claims):
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
            self.connection.close()
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
            if self.end_reason is None:
                self.end_reason = reason
                self.subscription.stop()
                self.maintenance.add(None)
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
