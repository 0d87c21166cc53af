"""The work of a session for itself and for others, beside its heartbeats: it ends what dead sessions have left."""
import queue
import threading

import redis

from errors import PolyglotError

# The script that ends a claim of another session, by the claim's mode; of all other modes `end_permits`.
ENDS = {b"t": "end_in_group", b"i": "end_item", b"a": "end_party", b"r": "end_party", b"e": "end_party",
        b"p": "end_participant"}
MAX_FAILURES = 3


class Maintenance:
    """A thread with a queue. Heartbeats do not wait for it."""

    def __init__(self, session):
        self.session, self.queue = session, queue.SimpleQueue()
        self.failures = {}

    def start(self):
        threading.Thread(target=self._work, name="maintenance", daemon=True).start()

    def add(self, work):
        """`None` ends the thread."""
        self.queue.put(work)

    def add_work(self, expired, names, is_unlisted):
        """The work that a heartbeat has received."""
        if is_unlisted:
            self.add(self._list_sessions)
        for name in names:
            self.add(lambda name=name: self.recheck(name.decode()))
        for sid in expired:
            self.add(lambda sid=sid: self._sweep(sid.decode()))

    def _work(self):
        while (work := self.queue.get()) is not None:
            try:
                work()
            except (PolyglotError, redis.RedisError):
                # A later heartbeat finds what is left, and the end of the session ends what it has.
                pass

    def recheck(self, name):
        """Continues where a script has stopped at its bound."""
        reply = [b"more", 1]
        while isinstance(reply, list) and reply[0] == b"more":
            reply = self.session.request("recheck", [name], f'recheck "{name}"')

    def _list_sessions(self):
        """Somebody has deleted the key that lists the sessions."""
        cursor = 0
        while (cursor := self.session.request("list_sessions", [cursor], "list the sessions")) != 0:
            pass

    def _sweep(self, sid):
        """Ends the claims of an expired session. The second pass deletes the session."""
        for _ in range(2):
            below, has_claims = "", False
            while below != 0:
                reply = self.session.request("sweep", [sid, below], f"sweep the session {sid}")
                if reply[0] != b"ok":
                    return
                below, claims = reply[1], reply[2]
                for i in range(0, len(claims), 3):
                    has_claims = True
                    self.end(claims[i].decode(), claims[i + 1], claims[i + 2], b"")
            if not has_claims:
                return

    def end(self, claim, mode, name, word):
        """Ends a claim of an expired session, or with the word `lost` any claim."""
        sid, slot, number = claim.split(":")
        script = ENDS.get(mode, "end_permits")
        try:
            reply = self.session.request(script, [f"c:{sid}:{slot}", word, b"t:" + name, number], f"end the claim {claim}")
        except PolyglotError:
            self.session.check_live()
            # The record of the resource is damaged. Without this the session would be swept again every second.
            self.failures[claim] = self.failures.get(claim, 0) + 1
            if self.failures[claim] >= MAX_FAILURES and word == b"":
                self.session.request("set_aside", [sid, slot, number], f"set the claim {claim} aside")
            return
        if isinstance(reply, list) and reply[0] == b"more":
            self.recheck(name.decode())
