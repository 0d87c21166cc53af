"""The exceptions of this client. Each message says what happened, to which resource, and what to do."""


class PolyglotError(Exception):
    """The base of all exceptions of this client."""


class NotConnected(PolyglotError):
    """Redis did not answer in time. The operation had no effect, unless the message says otherwise."""


class TimedOut(PolyglotError):
    """The timeout of a wait has passed. Nothing is held: the wait was cancelled on the server."""


class SessionLost(PolyglotError):
    """The session has ended, and with it everything that it held. Begin another session."""


class LeaseLost(PolyglotError):
    """The lease is no longer held, and another process may hold the resource. Stop the work that it protects."""


class Missing(PolyglotError):
    """The resource does not exist, and the request does not say how to create it."""


class Gone(PolyglotError):
    """The resource was destroyed, and a wait for it has ended."""


class Broken(PolyglotError):
    """The resource is broken, because a process that it counted on has died. It stays so until it is destroyed."""


class Conflict(PolyglotError):
    """The resource, the namespace or the id of a send exists with other settings or contents."""


class Stale(PolyglotError):
    """The server has served a later request in the same slot: another program uses the session's SID."""


class ServerRefused(PolyglotError):
    """The server has replied with an error, for example a missing right or a full memory."""


class MailboxFull(PolyglotError):
    """A recipient's mailbox is full, and nothing was sent to any recipient."""


class SendUnconfirmed(PolyglotError):
    """It is not known whether a send has happened. Repeat it with the same id: then it happens once."""


class Superseded(PolyglotError):
    """Another reader of the same device has begun. Each device has one reader: stop, or use another device."""


class Gap(PolyglotError):
    """Messages may be missing. `cursor` is the position from which reading can continue."""

    def __init__(self, message, kind, cursor):
        super().__init__(message)
        self.kind, self.cursor = kind, cursor
