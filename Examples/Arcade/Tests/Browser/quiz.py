"""The quiz in browsers."""
import re
import time

import nodes
from player import Player


def right_answers():
    """The right answer of each question, as they are in the sources."""
    source = (nodes.HERE / "Sources" / "Games" / "QuizQuestions.swift").read_text()
    return dict(re.findall(r'QuizQuestion\(\s*"([^"]*)",\s*"([^"]*)"', source))


RIGHT = right_answers()


class QuizPlayer(Player):
    def snapshot(self):
        """What the page shows, in one reading."""
        return self.driver.execute_script("""
            const text = (id) => document.getElementById(id).textContent;
            const buttons = [...document.querySelectorAll("#answers button")];
            return {
                players: [...document.querySelectorAll("#players li")].map((item) => item.textContent),
                question: text("question"), last: text("last"), message: text("message"),
                answers: buttons.map((button) => button.textContent),
                mayAnswer: buttons.some((button) => !button.disabled),
            };""")

    def host(self, name, questions, seconds):
        self.wait("may host", lambda: self.find("host").is_displayed() and self.find("categories").text.count("(") == 4)
        self.driver.execute_script("""
            const [name, questions, seconds] = arguments;
            Object.assign(document.querySelector("#host [name=name]"), { value: name });
            Object.assign(document.querySelector("#host [name=questions]"), { value: questions });
            Object.assign(document.querySelector("#host [name=seconds]"), { value: seconds });
            document.getElementById("host").requestSubmit();""", name, str(questions), str(seconds))
        self.wait("hosts", lambda: self.find("quiz").is_displayed())

    def open_games(self):
        return self.driver.execute_script(
            "return [...document.querySelectorAll('#open li')].map((item) => item.firstChild.textContent.trim())")

    def join(self, name):
        self.wait(f"sees {name}", lambda: any(text.startswith(f"{name}, hosted by") for text in self.open_games()))
        self.driver.execute_script("""
            [...document.querySelectorAll("#open li")].find((item) => item.textContent.startsWith(arguments[0]))
                .querySelector("button").click()""", name)
        self.wait("has joined", lambda: self.find("quiz").is_displayed())

    def answer(self, is_right):
        """Answers the question, once it is this player's turn."""
        self.wait("may answer", lambda: self.snapshot()["mayAnswer"])
        shown = self.snapshot()
        right = RIGHT[shown["question"].split(": ", 1)[1]]
        choice = shown["answers"].index(right) if is_right else (shown["answers"].index(right) + 1) % 4
        self.driver.execute_script("document.querySelectorAll('#answers button')[arguments[0]].click()", choice)
        return right

    def gained(self):
        """The points of this player's answer, as the event says that contains it; `None` for another event."""
        match = re.match(rf"{self.name} has (\d+) points\.", self.snapshot()["last"])
        return int(match.group(1)) if match else None

    def points(self):
        return {text.split(": ")[0]: int(text.split(": ")[1].split(" ")[0]) for text in self.snapshot()["players"]}


def all_wait(players, what, condition):
    return max(player.wait(what, lambda: condition(player)) for player in players)


def test(arcade, make_player):
    alice, bob, carol = (make_player(QuizPlayer, name) for name in ["alice", "bob", "carol"])
    players = [alice, bob, carol]
    for player in players:
        player.open("quiz")
    # In a turn of this length a page can be loaded again, and a player who has left is passed over before its end.
    alice.host("evening", 5, 60)
    bob.join("evening")
    carol.join("evening")
    all_wait(players, "three players", lambda player: len(player.snapshot()["players"]) == 3)
    alice.find("start").submit()
    print("ok: a game is hosted, found and joined")

    right = alice.answer(False)
    all_wait(players, "passes to bob", lambda player: player.snapshot()["last"] == "alice was wrong.")
    assert right not in bob.snapshot()["last"]
    bob.answer(True)
    all_wait(players, "bob's points", lambda player: f"Right: {right}." in player.snapshot()["last"])
    points = alice.points()
    assert points["alice"] == 0 and 0 < points["bob"] <= 100 and points["carol"] == 0, points
    assert all(player.points() == points for player in players)
    alice.screenshot("quiz")
    assert points["bob"] == bob.gained(), (points, bob.gained())
    print("ok: a wrong answer passes to the next player, whose points fall with time")

    # The second question is bob's, the third carol's, and the fourth alice's. Each node dies before an answer.
    expected = dict(points)
    longest = 0
    for node, player in enumerate([bob, carol]):
        player.wait("may answer", lambda: player.snapshot()["mayAnswer"])
        arcade.kill(node)
        began = time.monotonic()
        player.answer(True)
        all_wait(players, "the answer counts", lambda other: other.points()[player.name] > expected[player.name])
        longest = max(longest, time.monotonic() - began)
        # Counted once: the points have grown by those of the one answer.
        gained = player.gained()
        assert gained is not None and 0 < gained <= 100, player.snapshot()["last"]
        expected[player.name] += gained
        for other in players:
            assert other.points() == expected, (other.name, other.points(), expected)
        arcade.start(node)
        for other in players:
            other.wait("connected", lambda: other.text("state") == other.name)
    print(f"ok: a game goes on when either node dies; the answer was counted after at most {longest:.2f} s")

    # Alice reloads in her turn, then carol leaves in hers.
    alice.wait("may answer", lambda: alice.snapshot()["mayAnswer"])
    alice.driver.refresh()
    alice.answer(False)
    all_wait(players, "passes to bob", lambda player: player.snapshot()["last"].startswith("alice was wrong."))
    bob.answer(False)
    carol.wait("may answer", lambda: carol.snapshot()["mayAnswer"])
    carol.driver.get("about:blank")
    for player in [alice, bob]:
        player.wait("carol has gone", lambda: "carol has gone." in player.snapshot()["message"])
        player.wait("passed over", lambda: player.snapshot()["last"].startswith("carol did not answer. Right: "))
    bob.answer(True)
    for player in [alice, bob]:
        player.wait("the end", lambda: player.snapshot()["question"].startswith("The end. First: "))
    final = bob.points()
    expected["bob"] += bob.gained() or 0
    assert final == expected and bob.gained(), (final, expected)
    winner = max(final, key=final.get)
    assert winner in alice.snapshot()["question"]
    print("ok: a page that is loaded again goes on, and a player who leaves is passed over")

    # A turn ends by itself. Then the host goes, and the game with the host.
    for player in [alice, bob]:
        player.find("leave").submit()
        player.wait("in the lobby", lambda: player.find("lobby").is_displayed())
    bob.host("night", 3, 3)
    carol.open("quiz")
    carol.join("night")
    bob.wait("carol has a place", lambda: set(bob.points()) == {"bob", "carol"})
    carol.driver.get("about:blank")
    bob.wait("her place is free", lambda: set(bob.points()) == {"bob"})
    alice.join("night")
    bob.find("start").submit()
    for player in [alice, bob]:
        player.wait("both are too late", lambda: player.snapshot()["last"].startswith("alice did not answer. Right: "))
    bob.driver.get("about:blank")
    alice.wait("the host has gone", lambda: alice.snapshot()["message"] == "The host has ended the game, or has gone.")
    alice.wait("in the lobby", lambda: alice.find("lobby").is_displayed())
    assert alice.open_games() == ["There is none at present."], alice.open_games()
    print("ok: turns end in time, and a game ends with its host")
    be_dropped(alice, bob)
    for player in players:
        player.check_log()


def be_dropped(alice, bob):
    """Bob's network fails. The page says so, and says something else when it has returned."""
    bob.open("quiz")
    alice.host("noon", 5, 3)
    bob.join("noon")
    alice.wait("bob has a place", lambda: set(alice.points()) == {"alice", "bob"})
    bob.set_offline(True)
    bob.wait("no network", lambda: bob.text("state").startswith("No network."))
    assert bob.snapshot()["message"] == "", bob.snapshot()["message"]
    alice.wait("bob's place is free", lambda: set(alice.points()) == {"alice"})
    bob.set_offline(False)
    bob.wait("the others have dropped him", lambda: "the others have dropped you" in bob.snapshot()["message"])
    bob.wait("connected", lambda: bob.text("state") == "bob")

    bob.join("noon")
    alice.wait("bob has a place", lambda: set(alice.points()) == {"alice", "bob"})
    alice.find("start").submit()
    bob.wait("the game has begun", lambda: "alice’s turn" in bob.snapshot()["question"])
    bob.set_offline(True)
    bob.wait("no network", lambda: bob.text("state").startswith("No network."))
    alice.wait("bob is passed over", lambda: alice.snapshot()["last"].startswith("bob did not answer."))
    bob.set_offline(False)
    bob.wait("it went on without him", lambda: "the game has gone on without you" in bob.snapshot()["message"])
    print("ok: a page without a network says so, and afterwards that the player was dropped, or that the game went on")
