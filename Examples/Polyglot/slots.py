"""Requests of a session: each is sent in a numbered slot until it is answered, and has one effect."""
import threading

import redis

from errors import Broken, Conflict, Gone, Missing, ServerRefused, Stale, TimedOut
from server import CONNECTION_ERRORS, check_name, is_transient, now, partition_of

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


class Requests:
    """A session's requests and slots.

    A slot serves one request at a time, and then the claim that the request has created. The server keeps the number of the
    last request in it: a request that is repeated with this number gets the same reply, and one with a lower number does
    nothing. So a request has one effect, however often and late it arrives.
    """

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
