"""The word game in browsers."""
import re
import time

from selenium.webdriver.common.by import By

from player import Player

# Spells a word of the letters that have been caught, or else catches the letter that is up. The page's own rules would
# allow any word; this one is in the dictionary, if the letters permit.
BOT = """
    window.bot = setInterval(() => {
        const up = [...document.querySelectorAll("#holes button")].find((button) => !button.disabled);
        if (up) up.click();
    }, 50);"""


class WordPlayer(Player):
    def call(self, path, content):
        """Makes a call as the page does."""
        return self.driver.execute_async_script("""
            const [path, content, done] = arguments;
            (async () => {
                const { connect } = await import("/redisdc.js");
                const session = await connect(location.origin, {
                    user: localStorage.name, device: `words.${localStorage.device}`, credential: localStorage.secret });
                return session.call(path, content);
            })().then(done, (error) => done({ error: error.type, reason: error.reason, message: error.message }));
            """, path, content)

    def start(self):
        self.wait("may start", lambda: self.find("start").is_displayed())
        self.find("start").submit()
        self.wait("the game has begun", lambda: self.find("game").is_displayed())
        self.driver.execute_script(BOT)

    def rack(self):
        return self.driver.execute_script(
            "return [...document.querySelectorAll('#rack button')].map((button) => button.textContent)")

    def rows(self, table):
        return self.driver.execute_script("""
            return [...document.querySelectorAll(`#${arguments[0]} tr`)].map(
                (row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent))""", table)


def words_of(arcade):
    """The dictionary, as it is in the sources."""
    source = (arcade_folder() / "Sources" / "Games" / "WordList.swift").read_text()
    return re.findall(r"[a-z]{3,8}", source.split('"""')[1])


def arcade_folder():
    import nodes
    return nodes.HERE


def spelled(words, letters):
    """The longest words that can be spelled one after the other with the letters."""
    result, left = [], list(letters)
    for word in sorted(words, key=len, reverse=True):
        rest = list(left)
        if all(letter in rest and not rest.remove(letter) for letter in word):
            result.append(word)
            left = rest
    return result


def test(arcade, make_player):
    alice, bob = (make_player(WordPlayer, name) for name in ["alice", "bob"])
    words = words_of(arcade)
    alice.open("words")
    bob.open("words")
    alice.start()
    bob.start()

    # Each node dies once while both play.
    for node in range(2):
        time.sleep(6)  # Letters come up meanwhile, which is all that happens in this game.
        arcade.kill(node)
        # The other node answers, and not merely a restarted one.
        reply = alice.call("/words/scores", {})
        assert reply.get("level") == 1, reply
        arcade.start(node)
    alice.wait("eleven letters are caught", lambda: len(alice.rack()) >= 11)
    alice.screenshot("words")
    expected = {}
    for player in [alice, bob]:
        # By the keyboard; the bot no longer catches what would change the rack meanwhile.
        player.driver.execute_script("clearInterval(window.bot)")
        chosen = spelled(words, player.rack())[:3]
        assert chosen, player.rack()
        body = player.driver.find_element(By.TAG_NAME, "body")
        for word in chosen:
            player.wait(f"spells {word}", lambda: type_word(player, body, word))
        expected[player.name] = sum(len(word) ** 2 for word in chosen)
    for player in [alice, bob]:
        player.wait("counted", lambda: player.text("message").startswith(f"{expected[player.name]} points: "))
        level = 1 + expected[player.name] // 50
        assert player.text("message").endswith(f"Level {level}."), player.text("message")
    print("ok: a game is counted by the server, though both nodes died while it was played")

    ranking = sorted(expected.items(), key=lambda entry: -entry[1])
    alice.driver.refresh()
    alice.wait("the scores", lambda: alice.find("scores").is_displayed() and len(alice.rows("top")) == 2)
    if ranking[0][1] != ranking[1][1]:
        assert alice.rows("top") == [["1", ranking[0][0], str(ranking[0][1])], ["2", ranking[1][0], str(ranking[1][1])]]
    assert alice.rows("week") == alice.rows("top")
    assert alice.rows("local") == [["1", "", str(expected["alice"])]]
    print("ok: the top ten of all, of the week, and of the device")

    bob.driver.get(f"{arcade.origin}/scores/")
    bob.wait("the leaderboards", lambda: len(bob.rows("points")) == 2)
    assert bob.rows("top") == alice.rows("top") and bob.rows("local") == [["1", "", str(expected["bob"])]]
    bob.screenshot("leaderboards")
    print("ok: everybody sees the leaderboards")

    # As somebody who wants points without playing.
    dealt = alice.call("/words/start", {"id": "cheat"})
    assert len(dealt["letters"]) == 15, dealt
    again = alice.call("/words/start", {"id": "cheat"})
    assert again["letters"] == dealt["letters"], "a repeated start deals other letters"
    for words_sent, reason in [([[0, 14, 13]], "tooEarly"), ([[0, 0, 0]], "letterUsedTwice"), ([[99]], "noSuchLetter")]:
        reply = alice.call("/words/finish", {"id": "cheat", "words": words_sent})
        assert (reply["error"], reply["reason"]) == ("refused", reason), reply
    assert alice.call("/words/finish", {"id": "none", "words": []})["reason"] == "no-game"
    assert bob.call("/words/finish", {"id": "cheat", "words": []})["reason"] == "no-game"
    first = alice.call("/words/finish", {"id": "cheat", "words": [[0]]})
    assert first["score"] == 0 and first["best"] == expected["alice"], first
    assert alice.call("/words/finish", {"id": "cheat", "words": [[0]]}) == first, "a repeated finish has another result"
    assert len(alice.call("/words/start", {"id": "other"})["letters"]) == 15
    assert alice.call("/words/finish", {"id": "cheat", "words": []})["reason"] == "no-game", "two games at a time"
    print("ok: letters that have not come up, games of others, and repeated calls bring no points")
    for player in [alice, bob]:
        player.check_log()


def type_word(player, body, word):
    """Types a word, and returns whether the page has taken it."""
    body.send_keys(word)
    if player.find("word").text.lower() != word:
        return False
    body.send_keys("\ue007")  # Enter
    return player.find("words").text.lower().endswith(word)
