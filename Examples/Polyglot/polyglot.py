#!/usr/bin/env python3
"""Locks, semaphores and mailboxes in shells, beside programs in Swift and the tool redisdc.

Exit statuses: that of the command; 75 not acquired in time; 74 lost before the command ended; 69 Redis cannot be reached.
"""
import argparse
import os
import signal
import subprocess
import sys

from errors import LeaseLost, NotConnected, PolyglotError, SessionLost, TimedOut
from lock import Lock
from mail import Cursor, PostOffice
from semaphore import Semaphore
from session import Session
from server import partition_of


def run_command(command, lease):
    """Runs a command while a lease is held, and terminates it when the lease is lost. Returns its exit status."""
    process = subprocess.Popen(command, env=os.environ | {"REDISDC_FENCE": str(lease.fence)}, start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.killpg(process.pid, number))
    while True:
        try:
            status = process.wait(max(0.01, min(0.5, lease.remaining)))
            return status if status >= 0 else 128 - status
        except subprocess.TimeoutExpired:
            if lease.is_held:
                continue
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        lease.check()


def with_session(arguments, body):
    with Session(arguments.redis, arguments.namespace, arguments.partitions,
                 partition_of(arguments.name, arguments.partitions), arguments.ttl,
                 f"{os.uname().nodename} {os.getpid()} polyglot {arguments.name}") as session:
        return body(session)


def hold(session, arguments, resource, *count):
    with resource.acquire(*count, timeout=arguments.timeout) as lease:
        return run_command(arguments.command, lease)


def lock(arguments):
    return with_session(arguments, lambda session: hold(session, arguments, Lock(session, arguments.name)))


def sem_hold(arguments):
    return with_session(arguments, lambda session: hold(session, arguments, Semaphore(session, arguments.name), arguments.n))


def sem_create(arguments):
    with_session(arguments, lambda session: Semaphore(session, arguments.name, arguments.permits).create())


def sem_wait(arguments):
    with_session(arguments, lambda session: Semaphore(session, arguments.name).wait(arguments.n, arguments.timeout))


def sem_signal(arguments):
    with_session(arguments, lambda session: Semaphore(session, arguments.name).signal(arguments.n))


def mail_send(arguments):
    with PostOffice(arguments.redis, arguments.namespace, arguments.partitions) as office:
        recipients = [name for names in arguments.to for name in names.split(",")]
        messages = [os.fsencode(text) for text in arguments.messages]
        for name, index in office.send(*messages, to=recipients, id=arguments.id).items():
            print(f"{name}: {index}")


def mail_listen(arguments):
    with PostOffice(arguments.redis, arguments.namespace, arguments.partitions) as office:
        mailbox = office.mailbox(arguments.name, arguments.device)
        cursor = Cursor.parse(arguments.after) if arguments.after else None
        while True:
            delivery = mailbox.listen(cursor, arguments.timeout, arguments.limit)
            for message in delivery.messages:
                sys.stdout.buffer.write(message.body + b"\n")
            sys.stdout.flush()
            cursor = delivery.cursor
            if not arguments.follow:
                print(f"-- cursor {cursor}")
                return
            if not delivery.messages:
                return


def parse(words):
    # What follows `--` is the command.
    command = words[words.index("--") + 1:] if "--" in words else []
    words = words[:words.index("--")] if "--" in words else words
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redis", default=os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--partitions", type=int, default=1)
    kinds = parser.add_subparsers(required=True)

    def add(parent, name, function, with_command=False, **options):
        child = parent.add_parser(name, **options)
        child.set_defaults(function=function, command=command, with_command=with_command)
        return child

    def add_session(child):
        child.add_argument("name")
        child.add_argument("--timeout", type=float, help="the maximum wait in seconds")
        child.add_argument("--ttl", type=float, default=15.0, help="seconds from the last heartbeat to the end of the lease")
        return child

    add_session(add(kinds, "lock", lock, True, help="run a command while holding a lock: lock NAME -- COMMAND…"))
    sem = kinds.add_parser("sem").add_subparsers(required=True)
    add_session(add(sem, "create", sem_create)).add_argument("--permits", type=int, required=True)
    for name, function, with_command in (("hold", sem_hold, True), ("wait", sem_wait, False), ("signal", sem_signal, False)):
        add_session(add(sem, name, function, with_command)).add_argument("-n", type=int, default=1)
    mail = kinds.add_parser("mail").add_subparsers(required=True)
    send = add(mail, "send", mail_send)
    send.add_argument("--to", action="append", required=True, help="names of mailboxes, with commas between them")
    send.add_argument("--id", help="a send with the same id happens once")
    send.add_argument("messages", nargs="+")
    listen = add(mail, "listen", mail_listen)
    listen.add_argument("name")
    listen.add_argument("--device", default="default")
    listen.add_argument("--after", help="a cursor: acknowledges the messages up to it")
    listen.add_argument("--timeout", type=float, help="the maximum wait in seconds")
    listen.add_argument("--limit", type=int, default=1000)
    listen.add_argument("--follow", action="store_true", help="continue, and acknowledge what was printed")
    arguments = parser.parse_args(words)
    if arguments.with_command and not command:
        parser.error("a command is missing, after --")
    return arguments


def main():
    # Ends waits as Ctrl-C does: what they wait for is given up on the server.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = parse(sys.argv[1:])
    try:
        return arguments.function(arguments) or 0
    except KeyboardInterrupt:
        return 130
    except PolyglotError as error:
        print(f"polyglot: {error}", file=sys.stderr)
        statuses = {TimedOut: 75, LeaseLost: 74, SessionLost: 74, NotConnected: 69}
        return next((statuses[kind] for kind in statuses if isinstance(error, kind)), 70)


if __name__ == "__main__":
    sys.exit(main())
