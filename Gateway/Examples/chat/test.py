#!/usr/bin/env python3
"""Tests the chat, and the client below it, with two browsers, two gateway nodes, TLS and one origin. Needs selenium,
chromium, chromium-driver and openssl.

usage: test.py REDISDC-GATEWAY REDIS-SERVER FOLDER    (the paths of the two programs, and a folder for screenshots)
"""
import atexit
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from servers import Servers

HERE = pathlib.Path(__file__).resolve().parent


class Browser:
    """A browser with a profile of its own, and the chat page of a user in it."""

    def __init__(self, user, servers, folder, screenshots):
        self.user, self.origin, self.screenshots = user, servers.origin, screenshots
        options = webdriver.ChromeOptions()
        for option in [
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=900,900",
            f"--user-data-dir={folder}/{user}", f"--ignore-certificate-errors-spki-list={servers.pin}",
        ]:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        atexit.register(self.driver.quit)
        self.driver.set_script_timeout(60)

    def open(self):
        self.driver.get(f"{self.origin}/index.html")

    def text(self, id):
        return self.driver.find_element(By.ID, id).text

    def wait(self, what, condition):
        try:
            WebDriverWait(self.driver, 60, 0.05).until(lambda _: condition(), f"{self.user}: waited in vain: {what}")
        except WebDriverException:
            self.screenshot("failed")
            print(f"{self.user}: {self.text('state')}\n{self.text('log')}", flush=True)
            raise
        print(f"ok: {what}", flush=True)

    def is_connected(self):
        return self.text("state").startswith(f"{self.user}, connected")

    def type(self, *keys):
        """Types into what has the focus, as somebody without a mouse does."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def log_in(self):
        self.open()
        self.type(self.user, Keys.ENTER)
        self.wait(f"{self.user}'s login by keyboard connects", self.is_connected)

    def send(self, to, text):
        """Sends a text, and waits until the page shows that it was sent."""
        for name, keys in [("to", to), ("text", text)]:
            field = self.driver.find_element(By.NAME, name)
            field.clear()
            field.send_keys(keys)
        self.type(Keys.ENTER)
        line = f"to {to}: {text}"
        WebDriverWait(self.driver, 60, 0.02).until(lambda _: line in self.lines(), f"not sent: {text}")

    def lines(self):
        return self.text("log").splitlines()

    def received(self, sender, prefix):
        return [line for line in self.lines() if line.startswith(f"{sender}: {prefix}")]

    def expect(self, what, sender, texts):
        """Waits for texts, and checks that each has arrived once, in order."""
        prefix = texts[0].split(" ")[0]
        expected = [f"{sender}: {text}" for text in texts]
        self.wait(what, lambda: len(self.received(sender, prefix)) >= len(expected))
        assert self.received(sender, prefix) == expected, self.lines()

    def script(self, text):
        return self.driver.execute_async_script(f"""
            const done = arguments[arguments.length - 1];
            (async () => {{ {text} }})().then(done, (error) => done(String(error)));""")

    def screenshot(self, name):
        self.driver.save_screenshot(f"{self.screenshots}/{name}-{self.user}.png")

    def check_log(self):
        messages = [entry["message"] for entry in self.driver.get_log("browser")]
        errors = [message for message in messages if "Uncaught" in message or "Content Security Policy" in message]
        assert not errors, errors


def stored_key(alice):
    """The key is stored, cannot be exported, and is nowhere else; a page that is loaded again uses it."""
    stored = alice.script("""
        const result = (request) => new Promise((done) => (request.onsuccess = () => done(request.result)));
        const database = await result(indexedDB.open("redisdc"));
        const [record] = await result(database.transaction("sessions").objectStore("sessions").getAll());
        database.close();
        const raw = await crypto.subtle.exportKey("raw", record.key).then(() => "exported", (error) => error.name);
        return [record.key.extractable, raw, Object.keys(localStorage).sort().join(), document.cookie, record.id];""")
    assert stored[:4] == [False, "InvalidAccessError", "device,user", ""], stored
    print("ok: the key is stored, cannot be exported, and is nowhere else")
    alice.driver.refresh()
    alice.wait("a page that is loaded again is connected", alice.is_connected)
    again = alice.script("""
        const { connect } = await import("./redisdc.js");
        return (await connect(location.origin, { user: "alice", device: localStorage.device })).id;""")
    assert again == stored[4], (again, stored)
    print("ok: without another login")


def killed_nodes(servers, alice, bob):
    """Each node dies once while both users send, in the middle of a send."""
    texts = [f"kill {number}" for number in range(24)]
    for number, text in enumerate(texts):
        if number in (6, 16):
            death = threading.Timer(random.uniform(0, 0.2), servers.kill_node, [number // 10])
            death.start()
        if number in (11, 21):
            death.join()
            servers.start_node((number - 5) // 10)
        bob.send("alice", text)
        alice.send("bob", text)
    alice.expect("each message arrives once and in order though both nodes died", "bob", texts)
    bob.expect("in both directions", "alice", texts)
    alice.screenshot("killed-nodes")


def frozen(page, ticks):
    """Waits until a page counts no more: its timers stop some time after it is frozen. Returns its count."""
    last = None
    for _ in range(100):
        before, last = last, page.driver.execute_script(ticks)
        if last == before:
            return last
        time.sleep(1)
    raise SystemExit("failed: the frozen page goes on counting")


def sleeping_tab(servers, alice, bob):
    """A frozen page runs nothing, as a tab that the browser has put to sleep, and loses its connections meanwhile."""
    ticks = "window.ticks ??= 0; window.timer ??= setInterval(() => window.ticks++, 20); return window.ticks;"
    alice.driver.execute_script(ticks)
    alice.wait("the page counts", lambda: alice.driver.execute_script(ticks) > 10)
    alice.driver.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "frozen"})
    before = frozen(alice, ticks)
    servers.proxy.cut(True)
    servers.proxy.cut(False)
    bob.wait("the user who is awake connects again", bob.is_connected)
    texts = [f"sleep {number}" for number in range(5)]
    for text in texts:
        bob.send("alice", text)
    time.sleep(3)  # How long a tab sleeps is the point; nothing is waited for.
    slept = alice.driver.execute_script(ticks) - before
    alice.driver.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "active"})
    # A page that is awake counts to 150.
    assert slept <= 10, slept
    alice.expect("a tab that has slept shows what it missed, once", "bob", texts)
    alice.screenshot("woken-tab")


def second_tab(alice, bob):
    first = alice.driver.current_window_handle
    alice.driver.switch_to.new_window("tab")
    alice.open()
    alice.wait("a second tab connects", alice.is_connected)
    second = alice.driver.current_window_handle
    alice.driver.switch_to.window(first)
    alice.wait("the first one stops", lambda: alice.text("state").startswith("Continued in another window"))
    alice.screenshot("first-tab")
    bob.send("alice", "tab 0")
    alice.driver.switch_to.window(second)
    alice.expect("the second one receives", "bob", ["tab 0"])
    alice.driver.switch_to.window(first)
    assert not alice.received("bob", "tab"), alice.lines()
    alice.driver.refresh()
    alice.wait("a reload takes the device back", alice.is_connected)
    alice.driver.switch_to.window(second)
    alice.wait("from the second", lambda: alice.text("state").startswith("Continued in another window"))
    alice.driver.close()
    alice.driver.switch_to.window(first)
    bob.send("alice", "tab 1")
    alice.wait("and receives", lambda: alice.received("bob", "tab") == ["bob: tab 1"])


def offline(servers, alice, bob):
    """The network of one browser, then all connections."""
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    alice.driver.execute_cdp_cmd("Network.enable", {})
    alice.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **network})
    servers.proxy.cut(True)
    alice.wait("a page without a network says so", lambda: alice.text("state") == "Connecting…")
    alice.screenshot("offline")
    servers.proxy.cut(False)
    bob.wait("the other browser connects again", bob.is_connected)
    texts = [f"offline {number}" for number in range(5)]
    for text in texts:
        bob.send("alice", text)
    alice.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **network})
    alice.expect("what was sent meanwhile arrives once the page is online", "bob", texts)


def transports(alice):
    for transport in ["websocket", "poll", "events"]:
        texts = alice.script(f"""
            const {{ connect }} = await import("./redisdc.js");
            const session = await connect(location.origin, {{ user: "zoe", device: "{transport}", credential: null }});
            const texts = [];
            await session.send("zoe", Array.from({{ length: 50 }}, (_, index) => ({{ text: String(index) }})));
            for await (const event of session.follow({{ transport: "{transport}" }})) {{
                texts.push(Number(event.message.text));
                await session.acknowledge(event.cursor);
                if (texts.length === 50) break;
            }}
            await session.logOut();
            return texts;""")
        assert texts == list(range(50)), texts
        print(f"ok: {transport} in a browser")


def event_source(servers, alice):
    """The browser's own EventSource, with the cookie of a login: it goes on at the other node when one dies."""
    alice.script("""
        const { connect } = await import("./redisdc.js");
        const login = await fetch("/v1/sessions", {
            method: "POST", headers: { "Content-Type": "application/json" },
            body: JSON.stringify({ user: "zoe", device: "bare", credential: null }) });
        const id = (await login.json()).session;
        const sender = await connect(location.origin, { user: "zoe", device: "sender", credential: null });
        const until = async (condition) => {
            while (!condition()) await new Promise((done) => setTimeout(done, 20));
        };
        const open = () => {
            const source = new EventSource(`/v1/events?session=${id}`);
            const stream = { source, seen: [], isSuperseded: false };
            source.addEventListener("message", (event) => {
                const message = JSON.parse(event.data);
                stream.seen.push(message.cursor === event.lastEventId ? message.text : `not the id: ${event.lastEventId}`);
            });
            source.addEventListener("superseded", () => (stream.isSuperseded = true));
            return stream;
        };
        const send = async (text, stream) => {
            await sender.send("zoe", [{ text }]);
            await until(() => stream.seen.includes(text));
        };
        window.bare = { sender, until, open, send, first: open() };
        return null;""")
    for number in range(4):
        if number in (1, 3):
            servers.kill_node(number // 2)
        seen = alice.script(f"await bare.send('{number}', bare.first); return bare.first.seen;")
        assert seen == [str(earlier) for earlier in range(number + 1)], seen
        if number == 1:
            servers.start_node(0)
    servers.start_node(1)
    print("ok: EventSource receives each message once and in order though both nodes died")
    seen = alice.script("""
        const second = bare.open();
        await bare.until(() => bare.first.isSuperseded && bare.first.source.readyState === EventSource.CLOSED);
        await bare.send("4", second);
        second.source.close();
        await bare.sender.logOut();
        return second.seen;""")
    assert seen == list("01234"), seen
    print("ok: a second EventSource ends the first for good, and reads what was not acknowledged")


def colors(alice):
    colors = set()
    for scheme in ["light", "dark"]:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        alice.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        colors.add(alice.driver.find_element(By.TAG_NAME, "body").value_of_css_property("background-color"))
        alice.screenshot(scheme)
    assert len(colors) == 2, colors
    print("ok: light and dark")


def run(servers, alice, bob):
    alice.log_in()
    bob.log_in()
    markup = '<img src=x onerror="document.title = 1">'
    bob.send("alice", markup)
    alice.wait("a message arrives", lambda: alice.lines() == [f"bob: {markup}"])
    assert not alice.driver.find_elements(By.TAG_NAME, "img") and alice.driver.title == "Chat"
    print("ok: markup stays text")
    stored_key(alice)
    killed_nodes(servers, alice, bob)
    sleeping_tab(servers, alice, bob)
    second_tab(alice, bob)
    offline(servers, alice, bob)
    transports(alice)
    event_source(servers, alice)
    colors(alice)
    alice.driver.find_element(By.ID, "logout").send_keys(Keys.ENTER)
    alice.wait("a log out asks for a name again", lambda: alice.text("state") == "Logged out")
    alice.check_log()
    bob.check_log()


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    program, redis, screenshots = sys.argv[1:]
    shutil.rmtree(screenshots, ignore_errors=True)
    pathlib.Path(screenshots).mkdir(parents=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pages = pathlib.Path(folder, "pages")
        pages.mkdir()
        client = HERE.parent.parent / "Web" / "redisdc.js"
        for file in [HERE / "index.html", HERE / "chat.css", HERE / "chat.js", client]:
            shutil.copy(file, pages)
        servers = Servers(program, redis, folder)
        run(servers, *(Browser(user, servers, folder, screenshots) for user in ["alice", "bob"]))


if __name__ == "__main__":
    main()
