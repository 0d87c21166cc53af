#!/usr/bin/env python3
"""Plays the games in browsers, on two nodes of which one is killed in the middle. Needs selenium, chromium and
chromium-driver.

usage: test.py ARCADE REDIS-SERVER FOLDER [GAME...]    (the paths of the two programs, and a folder for screenshots)
"""
import importlib
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
import nodes  # noqa: E402

GAMES = ["tictactoe", "words", "quiz"]


def main():
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    program, redis, screenshots, *games = sys.argv[1:]
    pathlib.Path(screenshots).mkdir(parents=True, exist_ok=True)
    for game in games or GAMES:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            arcade = nodes.Nodes(program, nodes.start_redis(redis, folder))
            players = []

            def make_player(kind, name):
                players.append(kind(name, arcade, folder, screenshots))
                return players[-1]

            importlib.import_module(game).test(arcade, make_player)
            for player in players:
                player.driver.quit()


if __name__ == "__main__":
    main()
