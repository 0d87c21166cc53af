#!/usr/bin/env python3
"""Restarts the nodes one after another while programs play the duel. Their streams end with a `bye` and nothing else,
each call succeeds, and each player sees each change of a match once and in order.

A call, or the opening of a stream, that meets a node at its end is repeated: a connection that broke, or a 503. That is
counted, and must be rare. On a busy machine a node takes long to end, and many calls may meet it: there are more restarts
until one of them has been met by few.

usage: restart.py ARCADE REDIS-SERVER    (the paths of the two programs)
"""
import hashlib
import hmac
import http.client
import json
import pathlib
import queue
import secrets
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
import nodes  # noqa: E402

PAIRS, NODES, ROUNDS, MAX_ROUNDS = 8, 3, 2, 10
# Connections to a node can be open, and without an answer, when it ends.
FEW = 3
# How often a call is made. The next node is another one, unless other calls came in between.
ATTEMPTS = 10
SECONDS = 300


class Unavailable(Exception):
    """A node has answered that it cannot handle a request at present."""


class Bot:
    """A player with an event stream that is opened again whenever it ends."""

    def __init__(self, name, port):
        self.name, self.port = name, port
        self.views, self.faults, self.byes, self.repeated, self.moves = queue.Queue(), [], 0, 0, 0
        self.cursor, self.version, self.is_over = None, 0, False
        body = {"user": name, "device": "duel", "credential": secrets.token_urlsafe(24)}
        self.session = json.loads(self.exchange("POST", "/v1/sessions", json.dumps(body), {}))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def headers(self, method, target, body):
        now, nonce = str(time.time_ns() // 10**6), secrets.token_urlsafe(16)
        digest = hashlib.sha256(body.encode()).hexdigest()
        text = "\n".join(["v1", method, target, self.session["session"], now, nonce, digest])
        signature = hmac.new(self.session["token"].encode(), text.encode(), "sha256").hexdigest()
        return {"X-Session": self.session["session"], "X-Time": now, "X-Nonce": nonce, "X-Signature": "v1=" + signature}

    def exchange(self, method, target, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, target, body, headers | {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
            if response.status == 503:
                raise Unavailable(f"{target}: {text}")
            if response.status not in (200, 201):
                raise RuntimeError(f"{target}: {response.status} {text}")
            return text
        finally:
            connection.close()

    def call(self, target, **content):
        """Makes a call, and repeats it after a connection that broke or a 503. Any other error is a failure."""
        body = json.dumps(content)
        for number in range(ATTEMPTS):
            try:
                return json.loads(self.exchange("POST", target, body, self.headers("POST", target, body)))
            except (OSError, http.client.HTTPException, Unavailable) as error:
                if number + 1 == ATTEMPTS:
                    raise
                self.count_repeated(error)

    def count_repeated(self, reason):
        print(f"    repeated: {reason!r}", flush=True)
        self.repeated += 1
        time.sleep(0.2)

    def read(self):
        while not self.is_over:
            try:
                self.read_stream()
            except (OSError, http.client.HTTPException) as error:
                self.faults.append(f"the stream broke: {error!r}")

    def read_stream(self):
        target = "/v1/events" + (f"?after={self.cursor}" if self.cursor else "")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("GET", target, headers=self.headers("GET", target, ""))
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            # The node ended after it had accepted the connection: no stream has begun.
            return self.count_repeated(error)
        if response.status == 503:
            return self.count_repeated(response.read())
        if response.status != 200:
            self.faults.append(f"{target}: {response.status} {response.read()}")
            return
        event, data, last = "message", None, None
        while line := response.readline().decode():
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "event":
                event = value
            elif field == "data":
                data = value
            elif field == "id":
                self.cursor = value
            elif not field and data is not None:
                last, content = event, json.loads(data)
                if event == "message" and content["type"] == "duel":
                    self.take(content["json"])
                elif event not in ("message", "bye"):
                    self.faults.append(f"{event}: {content}")
                event, data = "message", None
        connection.close()
        if last == "bye":
            self.byes += 1
        elif not self.is_over:
            self.faults.append("the stream has ended without a bye")

    def take(self, view):
        if view["version"] != self.version + 1:
            self.faults.append(f"version {view['version']} came after {self.version}")
        self.version = view["version"]
        self.views.put(view)

    def play(self, view):
        """Plays if it is this player's turn."""
        if view["phase"] in ("make", "solve"):
            number = next(token for token in view["selection"] if token.isdigit())
            self.call("/duel/play", opponent=view["opponent"], equation=[number], id=f"{self.name}-{view['version']}")
            self.moves += 1


def play(one, other, stop):
    """Plays matches of two bots, the last one to its end."""
    matches = 0
    while not stop.is_set():
        matches += 1
        one.call("/duel/begin", opponent=other.name, id=f"{one.name}-{matches}")
        while True:
            views = [bot.views.get(timeout=SECONDS) for bot in (one, other)]
            if views[0]["phase"] == "over":
                break
            for bot, view in zip((one, other), views):
                bot.play(view)


def test(arcade):
    bots = [Bot(f"bot{number}", arcade.proxy.port) for number in range(2 * PAIRS)]
    stop, failures = threading.Event(), []

    def run(pair):
        try:
            play(*pair, stop)
        except Exception as error:
            failures.append(repr(error))

    pairs = [threading.Thread(target=run, args=(bots[2 * number:2 * number + 2],)) for number in range(PAIRS)]
    for pair in pairs:
        pair.start()
    repeated = lambda: sum(bot.repeated for bot in bots)
    counts = []  # how many calls and streams were repeated after each restart
    while len(counts) < ROUNDS * NODES or min(counts) > FEW and len(counts) < MAX_ROUNDS * NODES and not failures:
        # Every pair plays between two restarts.
        moves = [one.moves + other.moves for one, other in zip(bots[::2], bots[1::2])]
        while not failures and any(one.moves + other.moves < before + 4
                                   for one, other, before in zip(bots[::2], bots[1::2], moves)):
            time.sleep(0.01)
        number, before = len(counts) % NODES, repeated()
        arcade.restart(number)
        counts.append(repeated() - before)
        print(f"ok: node {number} is restarted", flush=True)
    stop.set()
    for pair in pairs:
        pair.join()
    for bot in bots:
        bot.is_over = True
    faults = failures + [f"{bot.name}: {fault}" for bot in bots for fault in bot.faults]
    byes, moves = sum(bot.byes for bot in bots), sum(bot.moves for bot in bots)
    if min(counts) > FEW:
        faults.append(f"more than {FEW} calls and streams were repeated at each restart: {counts}")
    if faults or not byes:
        raise SystemExit("\n".join(["failed:"] + faults))
    print(f"ok: {min(counts)} calls and streams were repeated at a restart, {repeated()} in all", flush=True)
    print(f"ok: the players notice nothing but a bye: {moves} moves, {byes} byes", flush=True)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        test(nodes.Nodes(sys.argv[1], nodes.start_redis(sys.argv[2], folder), NODES, options=nodes.PATIENT))


if __name__ == "__main__":
    main()
