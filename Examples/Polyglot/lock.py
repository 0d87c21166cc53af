"""Locks and leases."""
from errors import LeaseLost
from claims import State


class Lease:
    """A hold on a resource that belongs to this process until it is released or lost. A context manager that releases it."""

    def __init__(self, session, claim):
        self.session, self.claim = session, claim

    @property
    def fence(self):
        """A number that grows with each grant. A resource that refuses smaller numbers is safe from late holders."""
        return self.claim.fence

    @property
    def is_held(self):
        """Whether this process certainly holds it, by its own clock."""
        return self.session.is_live and self.claim.state is State.HELD

    @property
    def remaining(self):
        """For how many seconds it is certainly held if no heartbeat is answered any more."""
        return self.session.remaining if self.is_held else 0.0

    def check(self):
        """Raises LeaseLost if the lease is not held any more."""
        if not self.is_held:
            raise self.claim.error or LeaseLost(
                f"{self.claim} is no longer held: {self.session.end_reason or 'it was released'}; stop what it protects")

    def release(self):
        """Releases it. Raises LeaseLost if it was lost before: others may have held the resource meanwhile."""
        self.check()
        self.session.end_claim(self.claim)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.claim.state in (State.ENDING, State.ENDED):
            return
        try:
            self.release()
        except Exception:
            # The exception of the body says more.
            if kind is None:
                raise


class Lock:
    """A lock that at most one process of all has at a time, whatever language it is written in."""

    def __init__(self, session, name):
        self.session, self.name = session, name

    def acquire(self, timeout=None):
        """Returns a lease. Waits in the order of the requests, at most `timeout` seconds; 0 tries once."""
        return Lease(self.session, self.session.acquire(self.name, "mf", 1, "m", timeout=timeout))
