#!/usr/bin/env python3
"""Runs the statements of docs/failure-model.md that compare fences, with SQLite, and with PostgreSQL if it is installed.

usage: guarded_sql.py
"""
import contextlib
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CREATE, WRITE, TAKE_OVER = re.findall(r"```sql\n(.*?);\n```", (ROOT / "docs/failure-model.md").read_text(), re.DOTALL)


def check(what, condition, found=None):
    if not condition:
        raise SystemExit(f"failed: {what}: {found}")
    print(f"ok: {what}", flush=True)


class SQLite:
    def __init__(self, folder):
        self.path = str(pathlib.Path(folder, "test.sqlite"))
        self.run(CREATE)

    def run(self, statement, *values):
        """Returns the number of changed rows, and the rows that are returned."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=60)) as connection, connection:
            cursor = connection.execute(statement, {str(index + 1): value for index, value in enumerate(values)})
            rows = cursor.fetchall()
            return cursor.rowcount, rows

    def write(self, *values):
        return self.run(WRITE, *values)[0]

    def take_over(self, *values):
        return [row[0] for row in self.run(TAKE_OVER, *values)[1]]

    def row(self):
        return self.run("SELECT body, fence FROM documents WHERE name = 'd'")[1][0]


class PostgreSQL:
    """A server of its own on a Unix socket, with psql as its client. It does not run as root."""

    def __init__(self, folder, programs):
        self.folder, self.programs, self.user = folder, programs, []
        os.chmod(folder, 0o777)
        if os.getuid() == 0:
            self.user = ["runuser", "-u", "nobody", "--"]
        data = str(pathlib.Path(folder, "data"))
        self.command("initdb", "-D", data, "-U", "test", "-A", "trust", "-N")
        arguments = [*self.user, str(programs / "postgres"), "-D", data, "-k", folder, "-h", ""]
        self.process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while self.psql("SELECT 1", check=False).returncode != 0:
            if time.monotonic() > end:
                raise SystemExit("failed: PostgreSQL has not started in 120 s")
            time.sleep(0.05)
        self.psql(CREATE)

    def close(self):
        self.process.terminate()
        self.process.wait()

    def command(self, name, *arguments, check=True):
        command = [*self.user, str(self.programs / name), *arguments]
        return subprocess.run(command, cwd=self.folder, check=check, capture_output=True, text=True)

    def psql(self, text, check=True):
        return self.command("psql", "-X", "-h", self.folder, "-U", "test", "-d", "postgres", "-A", "-t", "-v",
                            "ON_ERROR_STOP=1", "-c", text, check=check)

    @staticmethod
    def call(statement, *values):
        types = ", ".join("bigint" if isinstance(value, int) else "text" for value in values)
        texts = ", ".join(str(value) if isinstance(value, int) else f"'{value}'" for value in values)
        return f"PREPARE s ({types}) AS {statement}; EXECUTE s ({texts})"

    def write(self, *values):
        return int(self.psql(self.call(WRITE, *values)).stdout.split()[-1])

    def take_over(self, *values):
        lines = self.psql(self.call(TAKE_OVER, *values)).stdout.split("\n")
        return [line for line in lines if line and not line.startswith(("PREPARE", "UPDATE"))]

    def row(self):
        body, fence = self.psql("SELECT body, fence FROM documents WHERE name = 'd'").stdout.strip().split("|")
        return body, int(fence)


def one_after_the_other(name, database, rounds):
    """Random holders, also late ones, against a model."""
    numbers = random.Random(7)
    kept = None
    refused = 0
    for step in range(rounds):
        fence = 2**52 + numbers.randrange(20)
        is_late = kept is not None and fence < kept[1]
        refused += is_late
        if numbers.random() < 0.3:
            expected = [] if kept is None or is_late else [kept[0]]
            found = database.take_over("d", fence)
            if found != expected:
                raise SystemExit(f"failed: {name}: step {step} took over {found}, expected {expected}")
            if expected:
                kept = (kept[0], fence)
        else:
            changed = database.write("d", f"body {step}", fence)
            if changed != (0 if is_late else 1):
                raise SystemExit(f"failed: {name}: step {step} changed {changed} rows")
            if not is_late:
                kept = (f"body {step}", fence)
    check(f"{name}: late holders change nothing, others do", refused > 5 and database.row() == kept, (refused, kept))


def all_at_once(name, database, count):
    """The row is that of the highest fence, in whatever order the writes come."""
    fences = [2**52 + 100 + number for number in range(count)]
    random.shuffle(fences)
    threads = [threading.Thread(target=database.write, args=("d", f"body {fence}", fence)) for fence in fences]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(f"{name}: of {count} writes at once, that of the highest fence stays",
          database.row() == (f"body {max(fences)}", max(fences)), database.row())


def waits(database):
    """A late write that waits for the row of the next holder, which commits after it."""
    fence = 2**52 + 1000
    first = database.call(WRITE, "d", "next", fence)
    holder = threading.Thread(target=database.psql, args=(f"BEGIN; {first}; SELECT pg_sleep(5); COMMIT",))
    holder.start()
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    # On a very slow machine the holder may have ended before it is seen asleep: then the write is late without a wait.
    while holder.is_alive() and database.psql(asleep).stdout.strip() != "1":
        time.sleep(0.01)
    changed = database.write("d", "late", fence - 1)
    holder.join()
    check("PostgreSQL: a late write that waited for the next holder's changes nothing",
          changed == 0 and database.row() == ("next", fence), (changed, database.row()))


with tempfile.TemporaryDirectory() as folder:
    database = SQLite(folder)
    one_after_the_other("SQLite", database, 500)
    all_at_once("SQLite", database, 20)
found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
if found and (os.getuid() != 0 or shutil.which("runuser")):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        with contextlib.closing(PostgreSQL(folder, found[-1].parent)) as database:
            one_after_the_other("PostgreSQL", database, 60)
            all_at_once("PostgreSQL", database, 20)
            waits(database)
else:
    print("SKIPPED: PostgreSQL is not installed")
