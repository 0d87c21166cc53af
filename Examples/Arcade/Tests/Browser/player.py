"""A player: a browser with a profile of its own."""
import atexit
import time

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait
from servers import Proxy


class Player:
    def __init__(self, name, arcade, folder, screenshots):
        self.name, self.arcade, self.screenshots = name, arcade, screenshots
        # The way of this browser to the nodes, which can be cut alone.
        self.network = Proxy(arcade.ports)
        options = webdriver.ChromeOptions()
        for option in [f"--host-resolver-rules=MAP localhost:{arcade.proxy.port} 127.0.0.1:{self.network.port}",
                       "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                       "--window-size=900,900", f"--user-data-dir={folder}/{name}"]:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        atexit.register(self.driver.quit)

    def find(self, id):
        return self.driver.find_element(By.ID, id)

    def text(self, id):
        return self.find(id).text

    def wait(self, what, condition, seconds=180):
        """Waits for a condition, and returns how long that took."""
        began = time.monotonic()
        try:
            WebDriverWait(self.driver, seconds, 0.01).until(lambda _: condition(), f"{self.name}: in vain: {what}")
        except WebDriverException:
            self.screenshot("failed")
            print(f"{self.name}: {self.driver.find_element(By.TAG_NAME, 'body').text}", flush=True)
            raise
        return time.monotonic() - began

    def open(self, page, name=None):
        """Opens the page of a game, and gives a name if it asks for one."""
        self.driver.get(f"{self.arcade.origin}/{page}/")
        self.log_in(name or self.name)
        self.wait("connected", lambda: self.text("state") == (name or self.name))

    def log_in(self, name):
        self.wait("the page has begun", lambda: self.find("login").is_displayed() or self.text("state"))
        if self.find("login").is_displayed():
            field = self.driver.find_element(By.NAME, "name")
            field.clear()
            field.send_keys(name, Keys.ENTER)

    def set_offline(self, is_offline):
        """Takes the network away from the browser, which notices it, or gives it back."""
        # The browser alone would keep connections that are open.
        self.network.cut(is_offline)
        self.driver.set_network_conditions(offline=is_offline, latency=0, throughput=-1)

    def screenshot(self, name):
        self.driver.save_screenshot(f"{self.screenshots}/{name}-{self.name}.png")

    def check_log(self):
        messages = [entry["message"] for entry in self.driver.get_log("browser")]
        errors = [message for message in messages if "Uncaught" in message or "Content Security Policy" in message]
        assert not errors, errors
