"""The mathematical duel in browsers."""
import time

from player import Player


class DuelPlayer(Player):
    def enter(self):
        self.open("duel")
        self.wait("the room", lambda: self.find("room").is_displayed())

    def task(self):
        return self.text("task")

    def tokens(self):
        """The texts of the token buttons that can be clicked."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll('#tokens button')].filter((b) => !b.disabled).map((b) => b.textContent)")

    def choose(self, tokens):
        """Clicks tokens, one button for each."""
        self.driver.execute_script("""
            for (const token of arguments[0]) {
                [...document.querySelectorAll("#tokens button")].find((b) => !b.disabled && b.textContent === token).click();
            }""", tokens)

    def play(self, tokens):
        self.choose(tokens)
        assert self.text("equation") == " ".join(tokens), self.text("equation")
        value = self.text("value")
        assert value.startswith("= "), value
        self.find("play").click()
        return value

    def challenge(self, name):
        self.driver.execute_script("""
            document.querySelector("#challenge [name=name]").value = arguments[0];
            document.getElementById("challenge").requestSubmit();""", name)

    def turn(self, start):
        self.wait(f"is asked to {start}", lambda: self.task().startswith(start))

    def numbers(self):
        return [token for token in self.tokens() if token.replace(".", "").isdigit()]

    def joining(self):
        return next(token for token in self.tokens() if token in ["+", "-", "*"])

    def iq(self):
        return int(self.text("iq").split()[1].rstrip(","))

    def search(self):
        self.wait("may look for an opponent", lambda: self.find("random").is_enabled())
        self.find("random").click()
        self.wait("waits", lambda: self.find("waiting").is_displayed())

    def call(self, path, content):
        """Makes a call as the page does."""
        return self.driver.execute_async_script("""
            const [path, content, done] = arguments;
            (async () => {
                const { connect } = await import("/redisdc.js");
                const session = await connect(location.origin, {
                    user: localStorage.name, device: `duel.${localStorage.device}`, credential: localStorage.secret });
                return session.call(path, content);
            })().then(done, (error) => done({ error: error.type, reason: error.reason, message: error.message }));
            """, path, content)


def test(arcade, make_player):
    alice, bob = (make_player(DuelPlayer, name) for name in ["alice", "bob"])
    alice.enter()
    bob.enter()
    alice.challenge("nobody")
    alice.wait("refused", lambda: "there is no such player" in alice.text("message"))
    alice.challenge("bob")
    alice.turn("Make an equation")
    bob.turn("It is the turn of alice.")
    alice.challenge("bob")
    alice.wait("refused", lambda: "you have a match with this player" in alice.text("message"))
    print("ok: a player is challenged by name, and there is one match of two players")

    # Each node dies once, while its player plays.
    began = time.monotonic()
    arcade.kill(0)
    numbers = alice.numbers()
    equation = [numbers[0], alice.joining(), numbers[1]]
    alice.play(equation)
    bob.turn("Come as close to ")
    longest = time.monotonic() - began
    arcade.start(0)
    began = time.monotonic()
    arcade.kill(1)
    bob.play(equation)
    bob.turn("Make an equation")
    longest = max(longest, time.monotonic() - began)
    arcade.start(1)
    assert "points" not in bob.task() and "points" not in alice.task()
    print(f"ok: a match goes on when either node dies; the next turn came after at most {longest:.2f} s")

    numbers = bob.numbers()
    equation = [numbers[0], bob.joining(), numbers[1]]
    # The server computes for itself, and knows the selection.
    reply = bob.call("/duel/play", {"opponent": "alice", "equation": ["7777"], "id": "cheat"})
    assert (reply["error"], reply["reason"]) == ("refused", "notInSelection 7777"), reply
    reply = alice.call("/duel/play", {"opponent": "bob", "equation": ["1"], "id": "cheat"})
    assert (reply["error"], reply["reason"]) == ("refused", "notYourTurn"), reply
    bob.driver.refresh()
    bob.turn("Make an equation")
    bob.play(equation)
    alice.turn("Come as close to ")
    alice.screenshot("duel")
    far = [alice.numbers()[-1]]
    alice.play(far)
    for player in [alice, bob]:
        player.wait("the end", lambda: "points. IQ" in player.task())
    assert bob.task().startswith("You have won, 100 to ") or bob.task().startswith("A draw, 100 to 100"), bob.task()
    if bob.task().startswith("You have won"):
        alice.wait("has lost IQ", lambda: alice.iq() == 95)
        bob.wait("has won IQ", lambda: bob.iq() == 105)
    print("ok: points and both equations are shown at the end, and the IQ is counted")

    bob.challenge("alice")
    bob.turn("Make an equation")
    iq = alice.iq() + 0
    bob.find("quit").click()
    for player in [alice, bob]:
        player.wait("the match was ended", lambda: player.task().startswith("The match was ended."))
    alice.wait("has won IQ", lambda: alice.iq() > iq)
    print("ok: who quits loses")

    # Random opponents, found by a page that is at the other node or was loaded again.
    carol, dave = (make_player(DuelPlayer, name) for name in ["carol", "dave"])
    carol.enter()
    dave.enter()
    carol.search()
    carol.driver.refresh()
    carol.wait("still waits", lambda: carol.find("waiting").is_displayed())
    carol.find("cancel").click()
    carol.wait("no longer waits", lambda: not carol.find("waiting").is_displayed())
    print("ok: a page that is loaded again goes on waiting, and can cancel")

    carol.search()
    dave.call("/duel/random/cancel", {"id": "1"})
    for node in range(2):
        arcade.kill(node)
        arcade.start(node)
    # After this time the ticket is lost with its node (nodeTTL).
    time.sleep(15)
    carol.wait("still waits", lambda: carol.find("waiting").is_displayed())
    assert "Nobody was found" not in carol.text("message")
    dave.find("random").click()
    carol.wait("dave", lambda: carol.text("title").startswith("dave, round 1"))
    dave.wait("carol", lambda: dave.text("title").startswith("carol, round 1"))
    for player in [carol, dave]:
        player.wait("no longer waits", lambda: not player.find("waiting").is_displayed())
    print("ok: two who look for an opponent find each other, though every node dies while one waits")

    reply = carol.call("/duel/trade", {"item": "^2", "id": "1"})
    assert (reply["error"], reply["reason"]) == ("refused", "anonymous"), reply
    assert carol.call("/account/register", {"password": "plum1234", "email": "carol@example.org"})["isRegistered"]
    for _ in range(2):
        reply = carol.call("/duel/trade", {"item": "^2", "id": "1"})
        assert (reply["iq"], reply["toolbox"]) == (95, ["^2"]), reply
    reply = carol.call("/duel/trade", {"equation": ["x", "=", "x", "+", "1"], "id": "2"})
    assert (reply["iq"], reply["toolbox"]) == (95, ["^2", "++"]), reply
    assert carol.call("/duel/trade", {"item": "none", "id": "3"})["reason"] == "noSuchItem"
    reply = carol.call("/duel/trade", {"equation": "x = x - x % 1".split(), "id": "4"})
    assert reply["reason"] == "missingIngredient %", reply
    for number in range(2):
        carol.call("/duel/trade", {"item": "10", "id": f"ten {number}"})
    dave.find("quit").click()
    carol.turn("The match was ended.")
    carol.challenge("dave")
    carol.turn("Make an equation")
    # All items come up, however many there are.
    for item, count in [("^2", 1), ("++", 1), ("10", 2)]:
        assert carol.tokens().count(item) == count, carol.tokens()
    carol.call("/duel/friend", {"name": "dave"})
    carol.driver.refresh()
    carol.wait("dave is a friend", lambda: carol.driver.execute_script(
        "return [...document.querySelectorAll('#friends option')].map((option) => option.value).join()") == "dave")
    print("ok: what is bought or made comes up in the next round that the player makes")
    for player in [alice, bob, carol, dave]:
        player.check_log()
