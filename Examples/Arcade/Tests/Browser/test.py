#!/usr/bin/env python3
"""Plays the games in browsers, on two nodes of which one is killed in the middle. Needs selenium, chromium and
chromium-driver.

usage: test.py ARCADE REDIS-SERVER FOLDER [GAME...]    (the paths of the two programs, and a folder for screenshots)
"""
import concurrent.futures
import importlib
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
import nodes  # noqa: E402

# The longest first: two at a time are played, each with a Redis and nodes of its own.
GAMES = ["quiz", "duel", "words", "tictactoe", "account"]


def play(game, program, redis, screenshots):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        mails = pathlib.Path(folder, "mails")
        mails.mkdir()
        arcade = nodes.Nodes(program, nodes.start_redis(redis, folder),
                             options=["--mail-folder", str(mails), *nodes.PATIENT])
        arcade.mails = mails
        players = []

        def make_player(kind, name):
            players.append(kind(name, arcade, folder, screenshots))
            return players[-1]

        importlib.import_module(game).test(arcade, make_player)
        for player in players:
            player.driver.quit()


def main():
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    program, redis, screenshots, *games = sys.argv[1:]
    pathlib.Path(screenshots).mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(play, game, program, redis, screenshots) for game in games or GAMES]
        for run in concurrent.futures.as_completed(runs):
            if run.exception():
                # The others are of no interest any more.
                pool.shutdown(wait=False, cancel_futures=True)
            run.result()


if __name__ == "__main__":
    main()
