#!/usr/bin/env python3
"""Talks to two nodes as a client of the published duel does: one signed POST for each request. Then tests calls of the
other games and of the leaderboard for programs.

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
import socket
import sys
import tempfile
import threading
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
    # Ids of tickets are each player's own.
    check("bob waits with the same id", bob.ask("random", id="a2")[1].get("isWaiting"))
    status, reply = alice.ask("qrandom", id="a2")
    check("alice cannot cancel bob's ticket", status == 200 and bob.ask("games")[1]["isWaiting"], reply)
    check("a player who waits and asks again goes on waiting", bob.ask("random", id="b2")[1].get("isWaiting"))
    status, reply = alice.ask("random", id="x" * 41)
    check("the id of a ticket has a limit", (status, reply["reason"]) == (409, "id"), reply)
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


def found_by_time(alice, bob):
    """The matchmaker finds an opponent when a window has widened, while neither player makes a call."""
    while abs(alice.ask("data")[1]["iq"] - bob.ask("data")[1]["iq"]) <= 10:
        id = secrets.token_urlsafe(8)
        check("a match begins", alice.ask("begin", opponent=bob.name, id=id)[0] == 200)
        bob.view(lambda view: view["phase"] != "over")
        check("alice quits", alice.ask("quit", name=bob.name)[0] == 200)
        bob.view(lambda view: view["phase"] == "over")
    for player in (alice, bob):
        check("both wait", player.ask("random", id="wait")[1].get("isWaiting"))
    # The matchmaker sends them a message. Only one of them asks, and the match begins.
    for _ in range(20):
        page = alice.ask("listen", last=alice.last, wait=10)[1]
        if page["messages"]:
            alice.last = page["messages"][-1]["cursor"]
        if any(message["type"] == "match" for message in page["messages"]):
            break
    status, reply = alice.ask("data")
    check("an opponent was found", status == 200 and reply["found"] == bob.name and not reply["isWaiting"], reply)
    view = bob.view(lambda view: view["phase"] in ("make", "wait"))
    check("the match has begun", view["isRandom"] and view["opponent"] == alice.name, view)
    status, reply = bob.ask("data")
    check("the other player learns it too", reply["found"] == alice.name and not reply["isWaiting"], reply)


def counted(alice, bob):
    """A match that was lost counts, whatever ids the loser has used, and once."""
    iq = alice.ask("data")[1]["iq"]
    for _ in range(3):
        check("alice quits", alice.ask("quit", name=bob.name)[0] == 200)
    after = alice.ask("data")[1]["iq"]
    check("it counts once", after < iq and alice.ask("data")[1]["iq"] == after, (iq, after))


def unfinished(arcade, alice):
    """A player has at most 50 matches that have not ended, whoever begins them."""
    others = [Client(arcade) for _ in range(51)]
    for other in others:
        assert other.login()[0] == 200
    for number, other in enumerate(others[:50]):
        beginner, opponent = (alice, other) if number % 2 else (other, alice)
        # The id is that of the beginner for this opponent alone.
        status, reply = beginner.ask("begin", opponent=opponent.name, id="1")
        assert status == 200, reply
    for beginner, opponent in [(alice, others[50]), (others[50], alice)]:
        status, reply = beginner.ask("begin", opponent=opponent.name, id="1")
        check("another match is refused", (status, reply["reason"]) == (409, "tooMany"), reply)
    check("all are shown", len(alice.ask("games")[1]["matches"]) == 50)
    check("a match ends", others[0].ask("quit", name=alice.name)[0] == 200)
    check("now another one begins", alice.ask("begin", opponent=others[50].name, id="2")[0] == 200)
    games = alice.ask("games")[1]["matches"]
    check("the ended one is last", [game["opponent"] for game in games if game["phase"] == "over"] == [others[0].name]
          and games[-1]["phase"] == "over" and len(games) == 51, games)


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
    found_by_time(alice, bob)
    counted(alice, bob)
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
    check("a call about a match of the former one", bob.ask("quit", name=alice.name)[0] == 200)
    check("does not count for the other player", new.ask("data")[1]["iq"] == 100)
    status, reply = new.ask("quit", name=bob.name)
    check("nor is it a match of the other player", (status, reply["reason"]) == (409, "gone"), reply)
    check("both begin a match", bob.ask("begin", opponent=alice.name, id="1")[0] == 200)
    games = new.ask("data")[1]["matches"]
    check("it is the other player's only one", [game["phase"] for game in games] == ["wait"], games)
    collector = Client(arcade)
    check("another player logs in", collector.login()[0] == 200)
    unfinished(arcade, collector)


# MARK: The other games, by signed calls of the gateway.

def signed(client, method, target, body, session=None, time_=None, nonce=None, key=None):
    """The session, the time, the nonce and the signature of a call, each of which can be given."""
    session, nonce = session or client.session, nonce or secrets.token_urlsafe(16)
    now = str(time_ or time.time_ns() // 10**6)
    text = "\n".join(["v1", method, target, session, now, nonce, hashlib.sha256(body.encode()).hexdigest()])
    signature = hmac.new((key or client.token).encode(), text.encode(), "sha256").hexdigest()
    return {"X-Session": session, "X-Time": now, "X-Nonce": nonce, "X-Signature": "v1=" + signature}


def call(client, target, **content):
    body = json.dumps(content)
    return client.post(target, body, {"Content-Type": "application/json"} | signed(client, "POST", target, body))


def call_until(client, target, **content):
    """Makes a call again until it is not refused: what it needs comes into being by itself."""
    for _ in range(200):
        status, reply = call(client, target, **content)
        if status == 200:
            return reply
        time.sleep(0.05)
    raise SystemExit(f"failed: {target} is refused: {status} {reply}")


def get(arcade, path):
    connection = http.client.HTTPConnection("127.0.0.1", arcade.ports[0], timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, json.loads(text)


def redis(arcade, *words):
    """Sends a command to Redis, and returns the first line of the reply."""
    host, port = arcade.command[arcade.command.index("--redis-url") + 1].removeprefix("redis://").split(":")
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rw", newline="") as file:
        file.write(f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words))
        file.flush()
        return file.readline().strip()


def guest(arcade, name, kind=None, **fields):
    player = (kind or Client)(arcade)
    status, reply = player.login(name=name, secret=secrets.token_urlsafe(24), **fields)
    check(f"{name} logs in", status == 200 and reply["waiting"] == 0, reply)
    return player


def submit(client, key=None, **fields):
    """Submits a score to the leaderboard for programs. A field that is None is left out."""
    body = {"name": "Carol C.", "device": "duel", "score": 1, "session": client.session,
            "time": time.time_ns() // 10**6, "nonce": secrets.token_urlsafe(16)} | fields
    data = json.dumps({name: value for name, value in body.items() if value is not None})
    headers = signed(client, "POST", "/scores/submit", data, body["session"], body["time"], body["nonce"], key)
    return client.post(f"/leaderboard/{headers['X-Signature'].removeprefix('v1=')}", data)


def leaderboard(arcade, carol):
    dave = guest(arcade, "dave")
    for player, name, score, expected in [(carol, "Carol C.", 120, (120, 1)), (carol, "Carol C.", 100, (120, 1)),
                                          (dave, "é" * 32, 150, (150, 1)), (carol, "Carol D.", 130, (130, 2))]:
        status, reply = submit(player, name=name, score=score)
        check("a score is accepted", status == 200 and (reply["score"], reply["rank"]) == expected, reply)
    nonce = secrets.token_urlsafe(16)
    statuses = [submit(carol, nonce=nonce)[0] for _ in range(2)]
    check("a token counts once at all nodes together", statuses == [200, 422], statuses)
    for what, fields in [
        ("no name", {"name": ""}), ("a name of 33 characters", {"name": "x" * 33}), ("no name at all", {"name": None}),
        ("a control character", {"name": "a\nb"}), ("the device of another session", {"device": "other"}),
        ("a device of 65 bytes", {"device": "x" * 65}), ("a score that is no number", {"score": "999"}),
        ("a score that is too large", {"score": 2**60}), ("another key", {"key": "x" * 22, "score": 999}),
        ("the session of another player", {"session": dave.session, "score": 999}), ("no session", {"session": None}),
        ("a stale time", {"time": time.time_ns() // 10**6 - 120_000}), ("a large body", {"more": "x" * 5000}),
    ]:
        status, reply = submit(carol, **fields)
        check(f"the leaderboard refuses {what}", status == 422, (status, reply))
    status, reply = get(arcade, "/leaderboard")
    entries = [(entry["rank"], entry["name"], entry["score"]) for entry in reply["top"]]
    check("the top ten, the highest first", entries == [(1, "é" * 32, 150), (2, "Carol C.", 130)], reply)
    check("with the times", all(abs(time.time() * 1000 - entry["time"]) < 300_000 for entry in reply["top"]), reply)
    status, reply = get(arcade, "/scores.json")
    check("the leaderboards of the word game do not contain them", status == 200 and not any(reply.values()), reply)


def word_game(player):
    status, first = call(player, "/words/start", id="one")
    check("a word game starts", status == 200 and len(first["letters"]) == 15, first)
    check("a repeated start finds it", call(player, "/words/start", id="one")[1]["letters"] == first["letters"])
    status, second = call(player, "/words/start", id="two")
    check("another game starts", status == 200, second)
    status, reply = call(player, "/words/finish", id="one", words=[])
    check("it has replaced the first one", (status, reply.get("reason")) == (409, "no-game"), reply)
    replies = [call(player, "/words/finish", id="two", words=[[0]]) for _ in range(2)]
    check("it is counted once", replies[0][0] == 200 and replies[0] == replies[1], replies)


def freed_name(arcade, hugo):
    """The account of a guest expires, and another player uses the name."""
    gina = guest(arcade, "gina")
    check("gina's device is stored", gina.ask("device", token="push token")[0] == 200)
    check("gina begins a match", gina.ask("begin", opponent="hugo", id="1")[0] == 200)
    check("gina has a score", submit(gina, name="Gina", score=7)[0] == 200)
    check("gina has a word game", call(gina, "/words/start", id="w")[0] == 200)
    check("gina has a player's document", redis(arcade, "EXISTS", "{arcade:duel}:player:gina") == ":1")
    check("the account expires", redis(arcade, "DEL", "{arcade:account:gina}") == ":1")
    new = guest(arcade, "gina")
    status, reply = gina.ask("check")
    check("the session of the former player has ended", (status, reply["code"]) == (401, "NotAuthorized"), reply)
    check("nothing of her is stored", redis(arcade, "EXISTS", "{arcade:duel}:player:gina") == ":0")
    status, reply = new.ask("data")
    check("the other player begins without matches", status == 200 and reply["matches"] == [], reply)
    status, reply = call(new, "/words/finish", id="w", words=[])
    check("and without a game", (status, reply.get("reason")) == (409, "no-game"), reply)
    names = [entry["name"] for entry in get(arcade, "/leaderboard")[1]["top"]]
    check("and without a score", names and "Gina" not in names, names)
    check("the opponent receives the end of the match",
          hugo.view(lambda view: view["opponent"] == "gina" and view["phase"] == "over")["result"]["outcome"] == "quit")


class QuizPlayer(Client):
    """A player whose event stream is open, as that of a page of the quiz."""

    def open(self):
        self.views = []
        connection = http.client.HTTPConnection("127.0.0.1", self.arcade.ports[self.turn % len(self.arcade.ports)])
        connection.request("GET", "/v1/events", headers=signed(self, "GET", "/v1/events", ""))
        self.socket, response = connection.sock, connection.getresponse()
        check("the stream is open", response.status == 200, response.status)
        threading.Thread(target=self.read, args=(response,), daemon=True).start()
        while not self.views:
            # The first view comes when the player is present.
            time.sleep(0.01)

    def read(self, response):
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            while line := response.readline().decode():
                if line.startswith("data: "):
                    content = json.loads(line.removeprefix("data: "))
                    if content.get("type") == "quiz":
                        self.views.append((time.monotonic(), content["json"].get("quiz")))

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)

    def wait(self, what, condition):
        """Waits until the last view of a quiz fulfils a condition."""
        for _ in range(6000):
            if self.views and self.views[-1][1] and condition(self.views[-1][1]):
                print(f"ok: {what}", flush=True)
                return
            time.sleep(0.05)
        raise SystemExit(f"failed: {what}: {self.views[-1:]}")


def quiz(arcade):
    anna, bert, cora, dora = players = [guest(arcade, name, QuizPlayer, device="quiz.1")
                                        for name in ["anna", "bert", "cora", "dora"]]
    settings = {"name": "evening", "categories": ["music"], "questions": 2, "seconds": 10}
    for player in players:
        player.open()
    for host, id in [(anna, "q1"), (bert, "q2")]:
        call_until(host, "/quiz/host", id=id, settings=settings)
        host.wait(f"{id} is open", lambda view: view["phase"] == "open")
    call_until(cora, "/quiz/join", quiz="q1")
    for what, target, content in [("joins another quiz", "/quiz/join", {"quiz": "q2"}),
                                  ("hosts another quiz", "/quiz/host", {"id": "q3", "settings": settings})]:
        status, reply = call(cora, target, **content)
        check(f"a player of an open quiz is refused who {what}", (status, reply.get("reason")) == (409, "inAnotherGame"),
              reply)
    check("to join the same quiz again is no error", call(cora, "/quiz/join", quiz="q1")[0] == 200)
    call_until(dora, "/quiz/join", quiz="q2")
    bert.wait("dora has a place", lambda view: len(view["players"]) == 2)
    dora.close()
    bert.wait("her place is free when she has gone before the start", lambda view: len(view["players"]) == 1)

    began = time.monotonic()
    check("anna starts", call(anna, "/quiz/start", quiz="q1")[0] == 200)
    for player in [anna, cora]:
        player.wait("the question is shown", lambda view: view.get("question") and len(view["answers"]) == 4)
        running = [(at, view) for at, view in player.views if view and view["phase"] == "running"]
        # A newer view replaces one that was not read in time: the first one may be that with the question.
        check("its time was announced", running[0][1]["shown"], running)
        check("no view contains it before its time", all(
            at - began >= 2.9 or not {"question", "answers"} & view.keys() for at, view in running), running)


class Listener(Client):
    """A player with a device for push notifications, whose event stream can be open."""

    def open(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.arcade.ports[self.turn % len(self.arcade.ports)])
        connection.request("GET", "/v1/events", headers=signed(self, "GET", "/v1/events", ""))
        self.socket, self.stream = connection.sock, connection.getresponse()
        check(f"{self.name} opens a page", self.stream.status == 200, self.stream.status)
        self.wait_until_listed(True)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.wait_until_listed(False)

    def wait_until_listed(self, is_listed):
        for _ in range(6000):
            if redis(self.arcade, "HEXISTS", "gs:{arcade:attendance}:presence:state", "k" + self.name) == f":{is_listed:d}":
                return
            time.sleep(0.05)
        raise SystemExit(f"failed: {self.name} is listed: {not is_listed}")

    def play(self, other):
        view = next(game for game in self.ask("games")[1]["matches"] if game["opponent"] == other.name)
        check(f"it is {self.name}'s turn", view["phase"] in ("make", "solve"), view)
        number = next(token for token in view["selection"] if token.isdigit())
        move = {"opponent": other.name, "equation": [number], "id": f"{view['match']}-{view['version']}"}
        for _ in range(2):
            status, reply = self.ask("move", **move)
            check("a move is taken, and changes nothing when it comes again", status == 200, reply)


def pushes(arcade):
    """A player who does not listen is notified of each turn and of the end of a match, once."""
    pia, quin = players = [guest(arcade, name, Listener) for name in ["pia", "quin"]]
    for player in players:
        check("a device is stored", player.ask("device", token=f"{player.name}'s token")[0] == 200)

    def expect(what, *expected):
        # They are written before the call is answered.
        files = list(arcade.pushes.iterdir())
        found = [file.read_text() for file in files]
        for file in files:
            file.unlink()
        check(what, found == [f"To: {player.name}'s token\n\n{text}\n" for player, text in expected], found)

    for file in arcade.pushes.iterdir():
        # Of the tests before.
        file.unlink()
    check("pia begins a match", pia.ask("begin", opponent="quin", id="1")[0] == 200)
    expect("she knows that it is her turn")
    pia.play(quin)
    expect("quin is notified once", (quin, "It is your turn against pia"))
    quin.open()
    quin.play(pia)
    expect("it is quin's turn again, as he knows")
    quin.play(pia)
    expect("pia is notified", (pia, "It is your turn against quin"))
    pia.play(quin)
    expect("the match ends while quin has a page")

    check("quin begins a match", quin.ask("begin", opponent="pia", id="2")[0] == 200)
    pia.open()
    quin.play(pia)
    expect("it is pia's turn while she has a page")
    pia.close()
    check("quin quits", quin.ask("quit", name="pia")[0] == 200)
    expect("pia has closed the page, and learns that the match has ended", (pia, "Your match has ended: quin"))

    check("quin begins another match", quin.ask("begin", opponent="pia", id="3")[0] == 200)
    last = pia.ask("listen", wait=0)[1]["cursor"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        poll = pool.submit(pia.ask, "listen", last=last, wait=30)
        pia.wait_until_listed(True)
        quin.play(pia)
        check("pia's poll receives the move", poll.result()[0] == 200 and poll.result()[1]["messages"], poll.result())
    expect("a player who polls is not notified")

    rosa = guest(arcade, "rosa", Listener)
    check("pia begins a match with rosa", pia.ask("begin", opponent="rosa", id="4")[0] == 200)
    pia.play(rosa)
    expect("a player without a device is not notified")
    quin.close()


def limits(arcade, player):
    status, reply = call(player, "/tictactoe/move", match="none", cell=0, id="x" * 65)
    check("the id of a move has a limit", (status, reply.get("reason")) == (409, "id"), reply)
    eve = guest(arcade, "eve")
    status, reply = call(eve, "/account/register", password="apple123", email="eve@example.org")
    check("a name of three characters cannot be registered", (status, reply.get("reason")) == (409, "name"), reply)
    status, reply = call(player, "/account/register", password="appl123", email="eve@example.org")
    check("a password of seven characters is refused", (status, reply.get("reason")) == (409, "password"), reply)
    # Several at a time, so that the limit does not recover meanwhile.
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda _: get(arcade, "/scores.json")[0], range(150)))
    check("the leaderboards are limited by address", set(statuses) == {200, 429}, statuses)
    statuses = [player.post("/account/forgot", json.dumps({"name": f"name{number}"}))[0] for number in range(40)]
    for headers in [{"Content-Type": "text/plain"}, {"Content-Type": "application/json", "Origin": "https://evil.example"}]:
        statuses_of_page = {player.post(path, json.dumps({"name": "eve", "code": "x", "password": "apple123"}), headers)[0]
                            for path in ["/account/forgot", "/account/reset"] for _ in range(30)}
        check("a page of another origin asks for no code", statuses_of_page <= {403, 415}, statuses_of_page)
    check("codes for passwords are limited by address", statuses[:10] == [204] * 10 and 429 in statuses, statuses)


def other_games(arcade):
    carol = guest(arcade, "carol")
    leaderboard(arcade, carol)
    word_game(carol)
    freed_name(arcade, guest(arcade, "hugo"))
    quiz(arcade)
    pushes(arcade)
    limits(arcade, carol)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        notifications = pathlib.Path(folder, "pushes")
        notifications.mkdir()
        arcade = nodes.Nodes(sys.argv[1], nodes.start_redis(sys.argv[2], folder),
                             options=["--push-folder", str(notifications), *nodes.PATIENT])
        arcade.pushes = notifications
        test(arcade)
        other_games(arcade)


if __name__ == "__main__":
    main()
