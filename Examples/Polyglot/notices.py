"""The count that shows whether wake-ups were lost, or come from another server."""


class Notices:
    """How many claims of a session others have granted or ended, as far as the process knows.

    The server counts them, and each wake-up and each reply to a heartbeat contains the count. Each connection for commands
    has a count of its own, which begins with the number of the connection times 2^32. So a wake-up that was counted for
    another connection, for example by an old master after a failover, is recognized.
    """

    def __init__(self):
        self.count = 0

    @property
    def connection(self):
        return self.count >> 32

    def reconnected(self):
        # The server keeps it in a double.
        self.count = min(self.connection + 1, 1 << 20) << 32

    def receive(self, number, total):
        """Handles a wake-up with so many notices, after which the server had counted `total`.

        Returns whether all notices up to it are known, and whether the wake-up can be believed.
        """
        if number == 0:
            return True, True
        if total >> 32 != self.connection or total & 0xFFFFFFFF == 0:
            return False, False
        # The reply to a heartbeat may have overtaken it.
        is_complete = total - self.count <= number
        self.count = max(self.count, total)
        return is_complete, True

    def compare(self, total, known):
        """Compares with the count in the reply to a heartbeat. known: the count when the heartbeat was sent.

        Returns whether all notices are known. If not, they count as known from now on: the caller reads its claims.
        """
        if total >> 32 < self.connection:
            return True
        # Less than before: the server has lost data. A wake-up may have overtaken the reply.
        is_complete = known <= total <= self.count
        if not is_complete:
            self.count = total
        return is_complete
