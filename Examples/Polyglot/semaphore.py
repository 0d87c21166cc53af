"""Counting semaphores."""
from lock import Lease


class Semaphore:
    """A semaphore. `permits` creates it if it does not exist; without it, it must exist."""

    def __init__(self, session, name, permits=None):
        self.session, self.name = session, name
        # One letter stands for any policy of the queue.
        self.kind, self.permits = ("s", "") if permits is None else ("sf", permits)

    def create(self):
        """Creates it, and returns whether it did not exist."""
        return self._call("create") == 1

    def acquire(self, count=1, timeout=None):
        """Holds permits: returns a lease. They are free again after its release, or the death of this process."""
        return Lease(self.session, self._acquire("l", count, timeout))

    def wait(self, count=1, timeout=None):
        """Takes permits permanently: signal() adds permits.

        When it returns, they are taken, even if this process dies at once. After SessionLost they may be taken or not.
        """
        self.session.confirm(self._acquire("c", count, timeout))

    def signal(self, count=1):
        """Adds permits, once. After SessionLost they may have been added or not."""
        self._call("signal", count)

    def resize(self, permits):
        """Changes the number of permits. Those that are held stay held."""
        self._call("resize", permits)

    def _acquire(self, mode, count, timeout):
        return self.session.acquire(self.name, self.kind, self.permits, mode, count, timeout)

    def _call(self, script, *arguments):
        return self.session.call(script, self.name, f'{script} the semaphore "{self.name}"', self.kind, self.permits,
                                 *arguments)
