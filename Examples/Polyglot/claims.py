"""Claims: what a session waits for and holds, and the wake-ups that say what others have changed."""
import enum
import threading

from errors import Broken, Conflict, Gone, LeaseLost, Missing, PolyglotError, ServerRefused, TimedOut
from server import now, refused
from slots import Requests


# For how long a request that does not queue is repeated until Redis replies, in seconds.
CALL_TIMEOUT = 2.0


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


class Claims(Requests):
    """A session's claims. Wake-ups make grants fast; the comparison with the server finds those whose wake-ups were lost."""

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
                # A request that does not queue may wait for Redis, but not for permits.
                end = now() + CALL_TIMEOUT if timeout == 0 else until
                reply = self.request("acquire", arguments, what, end, claim=claim)
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
        with self.changed:
            if claim.error:
                raise claim.error
            # From now on the server may have ended the claim, by a copy of this request.
            claim.state = State.ENDING
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
