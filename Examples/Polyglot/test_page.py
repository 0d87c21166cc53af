"""The commands and the program of README.md."""
import re
import subprocess
import sys

from test_support import HERE, SECONDS, check


def test_page(test):
    """The commands and the program of README.md."""
    page = (HERE / "README.md").read_text()
    commands = re.findall(r"^    python3 (Examples/Polyglot/polyglot.py .*)$", page, re.M)
    check("the page has commands", len(commands) > 5)
    for command in commands:
        status = 74
        # The lease is lost when the machine stands still.
        while status == 74:
            status = test.start("sh", "-c", f"{sys.executable} {command}", cwd=HERE.parent.parent).wait(SECONDS)
        check(command, status == 0)
    program = re.search(r"^```python\n(.*?)^```$", page, re.M | re.S)[1]
    # The first message ends it, and the server is that of the test.
    program = program.replace("redis://127.0.0.1:6379", test.url) + "        break\n"
    process = test.start(sys.executable, "-c", program, cwd=HERE, stdout=subprocess.PIPE)
    check("the program prints a message", "your turn" in process.communicate(timeout=SECONDS)[0])
