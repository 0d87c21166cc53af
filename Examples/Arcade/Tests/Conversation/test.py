#!/usr/bin/env python3
"""Talks to two nodes as a client of the published duel does: one signed POST for each request.

usage: test.py ARCADE REDIS-SERVER    (the paths of the two programs)
"""
import concurrent.futures
import contextlib
import hashlib
import hmac
import http.client
import json
import pathlib
import secrets
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
import nodes  # noqa: E402

# The call for which each type of request stands, as it is signed.
CALLS = {
    "logout": "POST /account/leave", "check": "POST /account/state", "games": "POST /duel/state",
    "data": "POST /duel/state", "begin": "POST /duel/begin", "random": "POST /duel/random",
    "qrandom": "POST /duel/random/cancel", "move": "POST /duel/play", "quit": "POST /duel/quit",
    "device": "POST /duel/device", "craft": "POST /duel/trade",
}


def check(what, condition, found=None):
    if not condition:
        raise SystemExit(f"failed: {what}: {found}")
    print(f"ok: {what}", flush=True)


class Client:
    """A player. Each request goes to the next node."""

    def __init__(self, arcade):
        self.arcade, self.turn, self.session, self.token, self.last = arcade, 0, None, None, None

    def post(self, path, body, headers=None):
        port = self.arcade.ports[self.turn % len(self.arcade.ports)]
        self.turn += 1
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", path, body, headers or {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text) if text else {}

    def login(self, **fields):
        status, reply = self.post("/login", json.dumps({"type": "login"} | fields))
        if status == 200:
            self.session, self.token, self.name = reply["session"], reply["token"], reply["id"]
        return status, reply

    def ask(self, type, key=None, headers=None, **fields):
        """Signs and sends a request. A field that is None is left out."""
        body = {"type": type, "session": self.session, "time": time.time_ns() // 10**6,
                "nonce": secrets.token_urlsafe(16)} | fields
        body = {name: value for name, value in body.items() if value is not None}
        data = json.dumps(body)
        if type == "listen":
            position = f"after={body['last']}&ack={body['last']}&" if "last" in body else ""
            call = f"GET /v1/mail?{position}wait={body.get('wait', 30)}"
        else:
            call = CALLS.get(type, "POST /")
        text = "\n".join(["v1", *call.split(" "), body.get("session", ""), str(body.get("time", "")),
                          body.get("nonce", ""), hashlib.sha256(data.encode()).hexdigest()])
        signature = hmac.new((key or self.token).encode(), text.encode(), "sha256").hexdigest()
        return self.post(f"/{signature}", data, headers)

    def view(self, condition):
        """Listens until a view of the duel fulfils a condition."""
        for _ in range(20):
            status, page = self.ask("listen", last=self.last, wait=10)
            assert status == 200, page
            for message in page["messages"]:
                self.last = message["cursor"]
                # The matchmaker sends messages of its own.
                if message["type"] == "duel" and condition(message["json"]):
                    return message["json"]
        raise SystemExit("failed: no message came")


def errors(arcade, alice):
    status, reply = alice.ask("data", session=None)
    check("a request without a session is an invalid argument", (status, reply["code"]) == (400, "InvalidArgument"), reply)
    status, reply = alice.ask("dance")
    check("an unknown type is an invalid argument", (status, reply["code"]) == (400, "InvalidArgument"), reply)
    status, reply = alice.ask("move", id="1")
    check("a move without an equation is an invalid argument", (status, reply["code"]) == (400, "InvalidArgument"), reply)
    status, reply = alice.ask("listen", last="x&wait=0")
    check("listen takes no other parameters", (status, reply["code"]) == (400, "InvalidArgument"), reply)
    status, reply = alice.ask("data", key="wrong")
    check("a wrong signature is not authorized", (status, reply["code"]) == (401, "NotAuthorized"), reply)
    status, reply = alice.ask("data", time=time.time_ns() // 10**6 - 120_000)
    check("a stale time is not authorized", (status, reply["code"], reply["reason"]) == (401, "NotAuthorized", "stale"), reply)
    status, reply = alice.ask("data", session=alice.session[:-2] + "AA")
    check("no session is not authorized", (status, reply["code"]) == (401, "NotAuthorized"), reply)
    status, reply = alice.ask("data", headers={"Content-Type": "text/plain"})
    check("a request must be JSON", (status, reply["code"]) == (406, "NotAcceptable"), reply)
    json_type = {"Content-Type": "application/json"}
    status, reply = alice.ask("data", headers=json_type | {"Accept-Version": "~2"})
    check("there is no version 2", (status, reply["code"]) == (400, "InvalidVersion"), reply)
    status, reply = alice.ask("data", headers=json_type | {"Accept-Version": "~1"})
    check("there is version 1", status == 200, reply)
    nonce = secrets.token_urlsafe(16)
    statuses = [alice.ask("check", nonce=nonce)[0] for _ in range(2)]
    check("a request counts once at all nodes together", statuses == [200, 401], statuses)


def match(alice, bob):
    status, reply = alice.ask("random", id="a1")
    check("alice waits for an opponent", status == 200 and reply["isWaiting"], reply)
    status, reply = alice.ask("qrandom", id="a1")
    check("she stops waiting", status == 200 and not reply["isWaiting"], reply)
    check("bob waits", bob.ask("random", id="b1")[1].get("isWaiting"))
    status, reply = alice.ask("random", id="a2")
    check("alice is matched with bob", status == 200 and reply["opponent"] == bob.name, reply)
    views = {player: player.view(lambda view: view["isRandom"]) for player in (alice, bob)}
    check("both receive the beginning of a random game", all(view["round"] == 0 for view in views.values()))
    for _ in range(4):
        mover = next(player for player in (alice, bob) if views[player]["phase"] in ("make", "solve"))
        other = bob if mover is alice else alice
        number = next(token for token in views[mover]["selection"] if token.isdigit())
        move = {"opponent": other.name, "equation": [number], "id": f"m{views[mover]['version']}"}
        status, reply = mover.ask("move", **move)
        check("a move is taken", status == 200, reply)
        version = views[mover]["version"]
        status, reply = mover.ask("move", **move)
        check("a move that comes again changes nothing", status == 200, reply)
        for player in (alice, bob):
            views[player] = player.view(lambda view: view["version"] > version)
        check("both receive the move", views[alice]["version"] == views[bob]["version"] == version + 1, views)
    check("the game is finished, and both receive the points",
          all(view["phase"] == "over" and "points" in view["result"] for view in views.values()), views)
    games = alice.ask("games")[1]["matches"]
    check("alice's games contain it", [game["opponent"] for game in games] == [bob.name], games)


def shut_down(arcade, player, last, pause):
    """Restarts the node at which a player listens; `None` if it was ended before it had received the call."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        node = player.turn % len(arcade.ports)
        listen = pool.submit(player.ask, "listen", last=last)
        time.sleep(pause / 10)
        arcade.restart(node)
        with contextlib.suppress(OSError, http.client.HTTPException):
            return listen.result()


def test(arcade):
    alice, bob = Client(arcade), Client(arcade)
    status, reply = alice.login()
    check("an anonymous login answers with the player, a token, the signing method and the messages waiting",
          status == 200 and reply["signing"] == "HMAC-SHA256" and reply["waiting"] == 0
          and reply["nickname"] == reply["id"] and len(reply["token"]) >= 22, reply)
    secret = reply["secret"]
    status, reply = bob.login(name="bob", secret=secrets.token_urlsafe(24))
    check("a login with a name", status == 200 and reply["id"] == "bob", reply)
    status, reply = Client(arcade).login(name="bob", secret=secrets.token_urlsafe(24))
    check("the name is taken for another player", (status, reply["code"]) == (401, "NotAuthorized"), reply)
    errors(arcade, alice)
    check("check finds the session", alice.ask("check")[1].get("isRegistered") is False)
    check("a device is stored", alice.ask("device", token="push token")[0] == 200)
    status, reply = alice.ask("data")
    check("data has the IQ and the toolbox", status == 200 and reply["iq"] == 100 and reply["toolbox"] == [], reply)
    match(alice, bob)
    status, reply = alice.ask("craft", equation=["+", "+"], id="c1")
    check("anonymous players cannot craft", (status, reply["reason"]) == (409, "anonymous"), reply)

    # Logged in elsewhere.
    again = Client(arcade)
    status, reply = again.login(name=alice.name, secret=secret)
    check("the same player logs in again, and waiting messages are counted", status == 200, reply)
    status, reply = alice.ask("listen", last=alice.last)
    check("the older session learns that the player has logged in elsewhere",
          (status, reply) == (200, {"messages": [{"type": "fl"}]}), reply)

    # A node shuts down.
    last = again.ask("listen", wait=0)[1]["cursor"]
    check("a call that listens at a node that shuts down learns it", any(
        shut_down(arcade, again, last, pause) == (200, {"messages": [{"type": "su"}]}) for pause in range(10)))

    # An anonymous player loses everything at the logout.
    check("a logout", again.ask("logout")[0] == 200)
    status, reply = again.ask("check")
    check("the session has ended", (status, reply["code"]) == (401, "NotAuthorized"), reply)
    new = Client(arcade)
    check("the name is free for another player", new.login(name=alice.name, secret=secrets.token_urlsafe(24))[0] == 200)
    check("the other player finds nothing of the former one", new.ask("data")[1]["matches"] == [])


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        test(nodes.Nodes(sys.argv[1], nodes.start_redis(sys.argv[2], folder)))


if __name__ == "__main__":
    main()
