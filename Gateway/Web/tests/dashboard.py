#!/usr/bin/env python3
"""Tests the operators' page in Chromium. Needs selenium, chromium and chromium-driver.

usage: dashboard.py REDISDC-GATEWAY REDISDC REDIS-SERVER [FOLDER]

The first three are the paths of programs. With FOLDER, pictures of the page are written there.
"""
import atexit
import hashlib
import hmac
import json
import pathlib
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Examples" / "chat"))
from servers import free_port  # noqa: E402

KEY = "a key of the operators"
MARKUP = "<img src=x onerror=document.title=1>"

# The visible texts whose contrast with what is behind them is below 4.5 : 1, which WCAG 2 demands (1.4.3). The ratio is its
# definition of "contrast ratio".
POOR_CONTRAST = """
const parts = (color) => color.match(/[\\d.]+/g).map(Number);
const luminance = (color) => color.slice(0, 3)
    .map((value) => value / 255)
    .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
        const color = parts(getComputedStyle(one).backgroundColor);
        if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
};
const found = [];
let count = 0;
for (const element of document.body.querySelectorAll("*")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!hasText || !element.checkVisibility()) continue;
    count += 1;
    const [one, other] = [parts(getComputedStyle(element).color), behind(element)].map(luminance).sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) found.push(`${element.textContent.trim()}: ${ratio.toFixed(2)}`);
}
return [count, found];
"""


def start(*command, ready=None):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    if ready is None:
        return process
    for line in process.stdout:
        if ready in line:
            return process
    raise SystemExit(f"{command[0]} has ended with {process.wait()}")


class Board:
    def __init__(self, gateway, tool, redis, folder):
        redis_port, self.port, self.gateway_port = free_port(), free_port(), free_port()
        start(redis, "--port", str(redis_port), "--bind", "127.0.0.1", "--save", "", "--dir", folder,
            ready="Ready to accept")
        self.command = [tool]
        self.url = f"redis://127.0.0.1:{redis_port}"
        node = start(gateway, "--redis-url", self.url, "--port", str(self.gateway_port), "--operations-port",
            str(self.port), "--insecure-anonymous", "true", "--allow-sends", "all", "--log-level", "error",
            "--admin-key", KEY, "--admin-dead-letters", "dead", ready="http://")
        next(line for line in node.stdout if "http://" in line)  # the other address
        self.session = self.post("/v1/sessions", {"user": "alice", "device": "phone", "credential": None})
        options = webdriver.ChromeOptions()
        for option in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1000",
            f"--user-data-dir={folder}/profile"]:
            options.add_argument(option)
        self.browser = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        atexit.register(self.browser.quit)

    def post(self, target, content, headers={}):
        headers = {"Content-Type": "application/json", **headers}
        url = f"http://127.0.0.1:{self.gateway_port}{target}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(content).encode(), headers)) as reply:
            return json.load(reply)

    def send(self, to):
        content = {"to": [to], "id": secrets.token_hex(8), "messages": [
            {"type": "chat", "text": "secret words"}]}
        session, now, nonce = self.session["session"], str(int(time.time() * 1000)), secrets.token_hex(16)
        body = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        text = "\n".join(["v1", "POST", "/v1/send", session, now, nonce, body])
        code = hmac.new(self.session["token"].encode(), text.encode(), "sha256").hexdigest()
        self.post("/v1/send", content, {
            "X-Session": session, "X-Time": now, "X-Nonce": nonce, "X-Signature": f"v1={code}"})

    def lock(self, name):
        """Holds or waits for a lock."""
        return start(*self.command, "lock", name, "--redis", self.url, "--timeout", "600", "--", "sleep", "600")

    def text(self, id):
        return self.browser.find_element(By.ID, id).text

    def wait(self, what, condition):
        WebDriverWait(self.browser, 120, 0.05).until(lambda _: condition(), f"waited in vain: {what}")
        print("ok:", what, flush=True)

    def type(self, *keys):
        """Types into what has the focus, as somebody without a mouse does."""
        # Not to an element: each refresh of the page replaces its rows, and moves the focus to the new ones.
        webdriver.ActionChains(self.browser).send_keys(*keys).perform()

    def focused(self):
        return self.browser.execute_script("return document.activeElement.dataset.key ?? document.activeElement.id")

    def keys(self, start):
        """The keys of the buttons, in one step: a refresh replaces the elements."""
        return self.browser.execute_script("""
            return [...document.querySelectorAll("[data-key]")].map((element) => element.dataset.key)
                .filter((key) => key.startsWith(arguments[0]))""", start)

    def tab_to(self, start_of_key):
        for _ in range(100):
            if self.focused().startswith(start_of_key):
                return
            self.type(Keys.TAB)
        raise SystemExit(f"the keyboard does not reach {start_of_key}")

    def picture(self, scheme, folder):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        if folder:
            self.browser.save_screenshot(str(pathlib.Path(folder) / f"dashboard-{scheme}.png"))
        count, poor = self.browser.execute_script(POOR_CONTRAST)
        assert count > 30 and not poor, (scheme, count, poor)
        return self.browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")


def run(board, folder):
    board.browser.get(f"http://127.0.0.1:{board.port}/admin")
    board.wait("the page asks for the key", lambda: board.focused() == "key")
    board.type("a wrong key", Keys.ENTER)
    board.wait("a wrong key is refused", lambda: "the key is wrong" in board.text("login-error"))
    board.type(KEY, Keys.ENTER)
    board.wait("a login by keyboard shows the state", lambda: board.text("status").startswith("live"))
    assert not board.browser.execute_script("return document.cookie"), "a script can read the cookie"

    for number in range(2):
        board.lock("backup")
    board.lock(MARKUP)
    for name in ["alice", "bob"]:
        board.send(name)
    # As a receiver leaves it; a client of the gateway cannot send it.
    subprocess.run([*board.command, "mail", "send", "--redis", board.url, "--to", "dead", "--header",
        "dead-letter-mailbox=alice", "secret words"], check=True, stdout=subprocess.DEVNULL)
    rows = lambda: board.text("resources").splitlines()
    board.wait("holders and waiters appear", lambda: any(row.startswith("backup mutex 0/1 1 ") for row in rows()))
    board.wait("markup stays text", lambda: any(MARKUP in row for row in rows()))
    assert not board.browser.find_elements(By.TAG_NAME, "img") and board.browser.title == "RedisDC"
    board.wait("mailboxes and dead letters appear",
        lambda: "alice" in board.text("mailboxes") and "dead: 1" in board.text("letters"))
    assert "secret words" not in board.browser.page_source
    print("ok: no content of a message is shown")

    colors = {board.picture(scheme, folder) for scheme in ["dark", "light"]}
    assert len(colors) == 2, colors
    print("ok: light and dark differ, and every text has enough contrast in both")

    before = board.keys("release backup ")[0]
    board.tab_to("release backup ")
    board.type(Keys.ENTER)
    board.wait("a release asks first", lambda: board.focused() == "dialog-cancel")
    assert 'Release "backup"' in board.text("dialog-text")
    board.type(Keys.ESCAPE)
    board.wait("Escape changes nothing", lambda: not board.browser.find_element(By.ID, "dialog").is_displayed())
    assert board.keys("release backup ") == [before]
    board.tab_to("release backup ")
    board.type(Keys.ENTER)
    board.wait("it asks again", lambda: board.focused() == "dialog-cancel")
    board.type(Keys.TAB)
    board.type(Keys.ENTER)
    board.wait("the lock has another holder", lambda: board.keys("release backup ") not in ([], [before]))

    board.tab_to("requeue dead")
    board.type(Keys.ENTER)
    board.wait("a requeue asks first", lambda: board.focused() == "dialog-cancel")
    board.tab_to("dialog-confirm")
    board.type(Keys.ENTER)
    board.wait("the dead letter is in its mailbox again", lambda: "dead: 0" in board.text("letters")
        and any(row.startswith("alice 2 ") for row in board.text("mailboxes").splitlines()))

    board.browser.find_element(By.ID, "logout").send_keys(Keys.ENTER)
    board.wait("a logout hides everything", lambda: not board.browser.find_element(By.ID, "board").is_displayed())
    messages = [entry["message"] for entry in board.browser.get_log("browser")]
    errors = [message for message in messages if "Uncaught" in message or "Content Security Policy" in message]
    assert not errors, errors


def main():
    if len(sys.argv) not in (4, 5):
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run(Board(*sys.argv[1:4], folder), sys.argv[4] if len(sys.argv) == 5 else None)


if __name__ == "__main__":
    main()
