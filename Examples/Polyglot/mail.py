"""Mailboxes: sends that happen once, and readers that acknowledge what they have received.

The rules are those of docs/wire-format.md. All recipients of a send are in one partition.
"""
import dataclasses
import os
import re
import struct
import threading
import time
from typing import NamedTuple

import redis

from errors import Conflict, Gap, MailboxFull, NotConnected, SendUnconfirmed, ServerRefused, Superseded
from server import (CONNECTION_ERRORS, Connection, FairLock, Subscription, check_name, is_transient, now, partition_of,
                    random_id, refused)

# Those of mailboxes without their own: max_messages, max_bytes, when_full, max_age, ttl, backlog_count, backlog_age,
# device_ttl, as records.lua describes them. All programs should use the same.
LIMITS = (100_000, 67_108_864, 0, 0, 2_592_000_000, 0, 0, 2_592_000_000)
# For how long the server knows that a send with this id has happened, in ms.
SEND_ID_TTL = 600_000
# The phases of a read.
CONTINUES, BEGINS, ACKNOWLEDGES, REGISTERS = 0, 1, 2, 3
# For how long a reader is registered to be woken, and how often it reads again in case a wake-up was lost, in seconds.
REGISTRATION, RECHECK_INTERVAL = 60, 10


class Cursor(NamedTuple):
    """A position in a mailbox. Its text is that which `redisdc mail listen` prints."""
    epoch: bytes
    index: int
    tag: bytes

    def __str__(self):
        return f"{self.epoch.hex()}-{self.index}-{self.tag.hex()}"

    @staticmethod
    def parse(text):
        match = re.fullmatch(r"([0-9a-f]{16})-(\d{1,15})-([0-9a-f]{16})", text)
        if not match:
            raise ValueError(f"{text!r} is not a cursor")
        return Cursor(bytes.fromhex(match[1]), int(match[2]), bytes.fromhex(match[3]))


@dataclasses.dataclass
class Message:
    """A message to send, or one that was received: then with its index, and a cursor that acknowledges up to it."""
    body: bytes
    type: str = None
    headers: dict = dataclasses.field(default_factory=dict)
    ttl_ms: int = 0
    id: str = None
    index: int = None
    cursor: Cursor = None

    def encode(self, id):
        """The second element of the message."""
        lines = [f"id={id}"] + ([f"type={self.type}"] if self.type else [])
        lines += [f"+{name}={self.headers[name]}" for name in sorted(self.headers)]
        if any("\n" in line for line in lines) or any("=" in name for name in self.headers):
            raise ValueError("an id, a type or a header contains a line feed, or the name of a header an equals sign")
        return self.ttl_ms.to_bytes(6, "little") + b"\0" + "\n".join(lines).encode() + b"\n\n" + self.body

    @staticmethod
    def decode(envelope):
        """Bytes in another form are all body: other programs may send messages too."""
        message, rest = Message(b""), envelope
        while b"\n" in rest:
            line, rest = rest.split(b"\n", 1)
            if line == b"":
                message.body = rest
                return message
            name, equals, value = line.partition(b"=")
            if not equals:
                break
            if name.startswith(b"+"):
                message.headers[name[1:].decode(errors="replace")] = value.decode(errors="replace")
            elif name in (b"id", b"type"):
                setattr(message, name.decode(), value.decode(errors="replace"))
        return Message(envelope)


class Delivery(NamedTuple):
    """The result of a call of listen: passing the cursor to the next one acknowledges the messages."""
    messages: list
    cursor: Cursor


def fingerprint(bodies, recipients):
    """FNV-1a, 64 bits, over the whole send in the encoded form: as the library computes it for the same send."""
    words = [b"%d" % len(bodies)]
    for body in bodies:
        words += [b"%d" % int.from_bytes(body[:6], "little"), b"", body[7:]]
    for name in recipients:
        words += [name.encode(), b""]
    value = 0xCBF29CE484222325
    for byte in b"".join(struct.pack("<I", len(word)) + word for word in words):
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return struct.pack(">Q", value)


class PostOffice:
    """Sends to mailboxes, and notifies their readers in this process."""

    def __init__(self, url, namespace="default", partitions=1):
        self.prefix, self.partitions = f"ql:{{{check_name(namespace)}:%d}}:", partitions
        self.process = random_id()
        self.wire, self.connection = FairLock(), Connection(url, 5.0)
        # Guards everything below, and is notified of wake-ups.
        self.changed = threading.Condition()
        self.wake_ups, self.gaps, self.last_poll = {}, 0, 0
        # The last message in each mailbox that was confirmed to this sender.
        self.known = {}
        channels = [self.prefix % p + "wake:" + name for p in range(partitions) for name in (self.process, "all")]
        self.subscription = Subscription(url, channels, self._wake_up, self._gap)

    def close(self):
        self.subscription.stop()
        with self.wire:
            self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def mailbox(self, name, device="default"):
        return Mailbox(self, name, device)

    def send(self, *messages, to, id=None, timeout=10.0):
        """Sends messages, in order, to all of the recipients or to none. Returns the index of each recipient's first one.

        id: a send that is repeated with the same id and contents within 10 minutes, also by another process, happens once.
        Without it, the send has an id of its own, and happens once as well. After SendUnconfirmed it may have happened.
        """
        recipients = list(dict.fromkeys(check_name(name) for name in ([to] if isinstance(to, str) else to)))
        partition = {partition_of(name, self.partitions) for name in recipients}
        if len(partition) != 1:
            raise ValueError("the recipients are in several partitions: send to those of each partition separately")
        messages = [message if isinstance(message, Message) else
                    Message(message if isinstance(message, bytes) else message.encode()) for message in messages]
        id = check_name(id or random_id(24))
        bodies = [message.encode(f"{id}/{number}") for number, message in enumerate(messages)]
        partition, print_ = partition.pop(), fingerprint(bodies, recipients)
        keys = [self._key(partition, "meta"), self._key(partition, "sent:id:" + id)]
        for name in recipients:
            keys += [self._key(partition, "box:" + name), self._key(partition, "mail:" + name)]
        until = now() + timeout
        while True:
            # Each attempt has new tags: a message that is sent again because the server has lost it differs from that one.
            tags = [os.urandom(8) for _ in bodies]
            known = [self.known.get(name, Cursor(bytes(8), 0, bytes(8))) for name in recipients]
            header = struct.pack("<BHBH2sdd8sd", 0, self.partitions, 0, len(bodies), b"\0\0", 1, SEND_ID_TTL, print_, 0)
            header += struct.pack("<ddBdd", *LIMITS[:5]) + b"".join(tags)
            if any(cursor.index for cursor in known):
                header += b"".join(struct.pack("<8sd8s", *cursor) for cursor in known)
            try:
                reply = self._exchange("send", keys, [header, *bodies])
            except CONNECTION_ERRORS as error:
                if now() >= until:
                    raise SendUnconfirmed(f"it is not known whether the send {id} has happened ({error}): repeat it with "
                                          "this id within 10 minutes") from error
                threading.Event().wait(0.05)
                continue
            word = reply[0] if isinstance(reply, list) else None
            if word in (b"again", b"damaged"):
                if word == b"damaged":
                    self._repair(partition, recipients[reply[1] - 1])
                if now() >= until:
                    raise NotConnected(f"the mailboxes could not be prepared for the send {id} within {timeout} s: repeat it")
                continue
            if word == b"full":
                raise MailboxFull(f'the mailbox "{recipients[reply[1] - 1]}" is full, and nothing was sent: try again when its '
                                  "messages are acknowledged")
            if word == b"conflict":
                raise Conflict(f'the id "{id}" was used for other messages or recipients: use another id')
            if word not in (None, b"ok"):
                raise self._refusal(f"send {id}", reply)
            results = list(struct.iter_unpack("<d8s", reply[1] if word else reply))
            if not word:
                # The reply to an earlier attempt says nothing about these tags.
                with self.changed:
                    for name, (first, epoch) in zip(recipients, results):
                        self.known[name] = Cursor(epoch, int(first) + len(bodies) - 1, tags[-1])
            return {name: int(first) for name, (first, _) in zip(recipients, results)}

    def _repair(self, partition, name):
        """After a loss of data, or after somebody has changed the keys. The readers are notified."""
        known = self.known.pop(name, None)
        reply = self.request(partition, "repair", name, [self._target(), struct.pack("<8sd8s", *known) if known else b""])
        if reply != [b"ok"]:
            raise self._refusal(f'repair "{name}"', reply)

    # Requests.

    def _key(self, partition, key):
        return self.prefix % partition + key

    def _target(self):
        return struct.pack("<H8s", self.partitions, os.urandom(8))

    def _exchange(self, script, keys, arguments):
        try:
            with self.wire:
                if not self.connection.is_connected:
                    self.connection.connect()
                return self.connection.run("QueueListen", script, keys, arguments)
        except redis.ResponseError as error:
            if is_transient(error):
                raise redis.ConnectionError(str(error)) from error
            raise ServerRefused(f"{script}: {error}") from error

    def request(self, partition, script, name, arguments, until=None):
        """Runs a script for one mailbox until it has replied, with the same arguments each time."""
        keys = [self._key(partition, "meta"), self._key(partition, "box:" + name), self._key(partition, "mail:" + name)]
        # One that waits for messages gets at least one more attempt.
        until = None if until is None else max(until, now() + 5.0)
        while True:
            try:
                return self._exchange(script, keys, arguments)
            except CONNECTION_ERRORS as error:
                if until is not None and now() >= until:
                    raise NotConnected(f'cannot reach the mailbox "{name}": {error}; nothing is lost, try again') from error
                threading.Event().wait(0.05)

    def _refusal(self, what, reply):
        if reply[0] == b"partitions":
            return Conflict(f'cannot {what}: the namespace has {reply[1].decode()} partitions, expected {self.partitions}')
        if reply[0] == b"devices":
            return Conflict(f"cannot {what}: it has 64 devices already; forget one, or listen as one of them")
        if reply[0] == b"foreign":
            return Conflict(f"cannot {what}: the key {reply[1].decode()} has data of another program")
        return refused(what, reply)

    # Wake-ups.

    def next_poll(self):
        """The time in microseconds since 1970, or one more than the last one."""
        with self.changed:
            self.last_poll = max(self.last_poll + 1, time.time_ns() // 1000)
            return self.last_poll

    def wake_up_count(self, name):
        with self.changed:
            return self.wake_ups.get(name, 0) + self.gaps

    def wait_for_wake_up(self, name, count, seconds):
        """Waits until there was a wake-up after the `count` ones, or for some seconds."""
        with self.changed:
            self.changed.wait_for(lambda: self.wake_ups.get(name, 0) + self.gaps != count, max(0.0, seconds))

    def _wake_up(self, text):
        """Pairs of words, each after its length: a mailbox, and what is new in it, which is read anyway."""
        at, words = 0, []
        while at + 2 <= len(text):
            end = at + 2 + int.from_bytes(text[at:at + 2], "little")
            words.append(text[at + 2:end])
            at = end
        with self.changed:
            for name in words[::2]:
                name = name.decode(errors="replace")
                self.wake_ups[name] = self.wake_ups.get(name, 0) + 1
            self.changed.notify_all()

    def _gap(self):
        with self.changed:
            self.gaps += 1
            self.changed.notify_all()


class Mailbox:
    """A mailbox, read as one device. A message is deleted when all devices have acknowledged it."""

    def __init__(self, office, name, device="default"):
        self.office, self.name, self.device = office, check_name(name), check_name(device)
        self.partition = partition_of(name, office.partitions)

    def listen(self, after=None, timeout=None, limit=1000):
        """Returns the messages after a cursor, and waits for one if there is none.

        after: acknowledges everything up to this cursor, which is that of the last delivery. None continues after what the
        device has acknowledged: messages that were received but not acknowledged come again. timeout: in seconds; None waits
        without a limit, 0 does not wait. Without a message in time, the delivery has none.

        Raises Gap if messages may be missing: continue with its cursor. Raises Superseded if another reader has begun.
        """
        poll, phase = self.office.next_poll(), BEGINS
        until = None if timeout is None else now() + timeout
        # A process is only woken if it is subscribed before it registers. Otherwise it reads again in intervals.
        if timeout != 0:
            self.office.subscription.is_subscribed.wait(1.0 if timeout is None else min(1.0, timeout))
        while True:
            count = self.office.wake_up_count(self.name)
            delivery, skipped = self._read(phase, poll, after, limit, 0 if timeout == 0 else REGISTRATION, until)
            if delivery.messages or skipped or until is not None and now() >= until:
                return delivery
            phase = CONTINUES
            interval = RECHECK_INTERVAL if self.office.subscription.is_subscribed.is_set() else 1.0
            self.office.wait_for_wake_up(self.name, count, interval if until is None else min(interval, until - now()))

    def messages(self):
        """Yields message after message. Each page is acknowledged when the message after it is asked for."""
        cursor = None
        while True:
            delivery = self.listen(after=cursor)
            yield from delivery.messages
            cursor = delivery.cursor

    def acknowledge(self, cursor):
        """Acknowledges everything up to a cursor, and reads nothing."""
        self._read(ACKNOWLEDGES, 0, cursor, 0, 0, now())

    def register(self):
        """Makes the device known: messages are kept for it from now on."""
        self._read(REGISTERS, 0, None, 0, 0, now())

    def _read(self, phase, poll, after, limit, registration, until):
        cursor = after or Cursor(bytes(8), -1, bytes(8))
        request = struct.pack("<B16sddd8s8sdd", phase, self.office.process.encode(), poll, registration * 1000, cursor.index,
                              cursor.epoch, cursor.tag, limit, 1 << 20)
        request += struct.pack("<dddd", *LIMITS[4:])
        what = f'read "{self.name}"'
        reply = self.office.request(self.partition, "listen", self.name, [self.office._target() + request, self.device], until)
        status = reply[0].decode()
        if status not in ("ok", "reset", "forked", "truncated", "superseded"):
            raise self.office._refusal(what, reply)
        epoch, index, tag, time_ms = struct.unpack("<8sd8sd", reply[1])
        position = Cursor(epoch, int(index), tag)
        if status == "superseded":
            raise Superseded(f'another reader of "{self.name}" as the device "{self.device}" has begun: stop, or use another '
                             "device")
        if status != "ok":
            raise Gap(f'messages of "{self.name}" may be missing ({status}): continue after the cursor {position}', status,
                      position)
        messages, skipped = [], False
        for head, body in zip(reply[2::2], reply[3::2]):
            kind, index, sent = head[:1], int.from_bytes(head[1:7], "little"), int.from_bytes(head[13:19], "little")
            position = Cursor(epoch, index, head[19:27])
            life = int.from_bytes(body[:6], "little")
            if kind != b"M" or life and sent + life <= time_ms:
                # Replaced by a later message with the same collapse key, or expired.
                skipped = True
                continue
            message = Message.decode(body[7 + body[6]:])
            message.index, message.cursor = index, position
            messages.append(message)
        return Delivery(messages, position), skipped
