"""Tic-tac-toe in browsers."""
import time

from player import Player


class TicTacToePlayer(Player):
    def cells(self):
        """The board as the page shows it, in one reading."""
        return self.driver.execute_script("""return document.getElementById("board").hidden ? null :
            [...document.querySelectorAll("#board button")].map((b) => b.textContent || ".").join("")""")

    def message(self):
        return self.text("message")

    def mark(self):
        """`cross` or `circle`, once there is a match."""
        self.wait("a match", lambda: self.message().startswith("You are "))
        return self.message().split()[2]

    def opponent(self):
        return self.message().partition(" against ")[2].partition(".")[0]

    def play(self, cell):
        self.wait(f"may play cell {cell}", lambda: self.driver.execute_script(
            "return !document.querySelectorAll('#board button')[arguments[0]].disabled", cell))
        self.driver.execute_script("document.querySelectorAll('#board button')[arguments[0]].click()", cell)


def by_mark(players):
    """The players of a match: cross, then circle."""
    return sorted(players, key=lambda player: player.mark() != "cross")


def play(players, cells, board="........."):
    """Plays moves by turns, and checks after each that both players see the same board."""
    board = list(board)
    for number, cell in enumerate(cells):
        turn = sum(letter != "." for letter in board)
        players[turn % 2].play(cell)
        board[cell] = "✕◯"[turn % 2]
        for player in players:
            player.wait(f"move {number} is seen", lambda: player.cells() == "".join(board))
    return "".join(board)


def test(arcade, make_player):
    alice, bob = (make_player(TicTacToePlayer, name) for name in ["alice", "bob"])
    alice.open("tictactoe")
    alice.wait("alone", lambda: alice.message() == "Waiting for an opponent…")
    bob.open("tictactoe")
    players = by_mark([alice, bob])
    assert (alice.opponent(), bob.opponent()) == ("bob", "alice")
    print("ok: two who are there play against each other")

    play(players, [0, 3, 1, 4, 2])
    players[0].wait("won", lambda: players[0].message() == "You have won!")
    players[1].wait("lost", lambda: players[1].message() == "You have lost.")
    alice.screenshot("tictactoe")
    print("ok: both see the same board at once, and who has won")

    for player in players:
        player.find("again").submit()
    players = by_mark(players)
    board = play(players, [4, 0])
    players[0].driver.refresh()
    players[0].wait("the board after a reload", lambda: players[0].cells() == board)
    print("ok: another match; a page that is loaded again goes on")

    # Each node dies once in the middle of the match, while the player whose turn it is moves.
    longest = 0
    for node, cells in [(0, [1, 2]), (1, [6, 3])]:
        began = time.monotonic()
        arcade.kill(node)
        board = play(players, cells, board)
        longest = max(longest, time.monotonic() - began)
        arcade.start(node)
        for player in players:
            player.wait("connected", lambda: player.text("state") == player.name)
    assert board == "◯✕◯◯✕.✕.." , board
    board = play(players, [7], board)
    players[0].wait("won", lambda: players[0].message() == "You have won!")
    print(f"ok: a match goes on when either node dies, with each move once; two moves took at most {longest:.2f} s")

    for player in players:
        player.find("again").submit()
    players = by_mark(players)
    board = play(players, [0])
    for node in range(2):
        arcade.restart(node)
    board = play(players, [1, 2], board)
    print("ok: nodes that are restarted in order do not interrupt a match")

    carol, dave = (make_player(TicTacToePlayer, name) for name in ["carol", "dave"])
    carol.open("tictactoe")
    dave.open("tictactoe")
    others = by_mark([carol, dave])
    play(others, [4])
    assert alice.cells() == board and bob.cells() == board
    print("ok: a second match does not disturb the first")
    bob.driver.get("about:blank")
    alice.wait("bob has left", lambda: alice.message().startswith("Your opponent has left."))
    dave.driver.get("about:blank")
    carol.wait("a new opponent", lambda: carol.message().startswith("You are ") and carol.opponent() == "alice")
    alice.wait("a new opponent", lambda: alice.message().startswith("You are ") and alice.opponent() == "carol")
    print("ok: those whose opponents have left play against each other")

    bob.open("tictactoe", "bob")
    eve = make_player(TicTacToePlayer, "eve")
    eve.driver.get(f"{arcade.origin}/tictactoe/")
    eve.log_in("alice")
    eve.wait("refused", lambda: "is taken" in eve.text("state") and eve.find("login").is_displayed())
    eve.log_in("eve")
    eve.mark()
    assert eve.opponent() == "bob"
    print("ok: nobody can take the name of somebody else")
    for player in [alice, bob, carol, dave, eve]:
        player.check_log()
