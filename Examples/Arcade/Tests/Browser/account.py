"""Accounts in browsers."""
import re

from player import Player


class AccountPlayer(Player):
    def fill(self, form, **values):
        self.driver.execute_script("""
            const form = document.getElementById(arguments[0]);
            for (const [name, value] of Object.entries(arguments[1])) form.elements[name].value = value;
            form.requestSubmit();""", form, values)

    def fill_again(self, form, **values):
        """As if the reply had been lost."""
        self.driver.execute_script("document.getElementById('message').textContent = ''")
        self.fill(form, **values)

    def says(self, text):
        self.wait(f"says {text}", lambda: text in self.text("message"))


def mails(arcade):
    # A file has another name while it is written.
    return list(arcade.mails.glob("*.txt"))


def code(arcade, address, seen):
    """The code in the next mail to an address."""
    for file in mails(arcade):
        text = file.read_text()
        if file not in seen and text.startswith(f"To: {address}\n"):
            seen.add(file)
            return re.search(r": (\w{12})$", text.strip()).group(1)
    return None


def test(arcade, make_player):
    seen = set()
    alice = make_player(AccountPlayer, "alice")
    alice.open("account")
    alice.says("is kept by this browser")
    alice.fill("register", password="apple123", email="alice@elsewhere.example")
    alice.says("The name alice is registered. The address is not verified yet.")
    lost = code(arcade, "alice@elsewhere.example", seen)
    alice.fill("register", password="apple123", email="alice@example.org")
    corrected = []
    alice.wait("the other mail", lambda: corrected.append(code(arcade, "alice@example.org", seen)) or corrected[-1])
    alice.fill("verify", code=lost)
    alice.says("code is wrong")
    arcade.kill(0)
    arcade.start(0)
    alice.fill("verify", code="WRONGONE")
    alice.says("code is wrong")
    alice.fill("verify", code=corrected[-1])
    alice.says("The address is verified.")
    alice.fill_again("verify", code=corrected[-1])
    alice.says("The address is verified.")
    alice.fill("register", password="apple123", email="eve@example.org")
    alice.says("The address is verified.")
    assert not code(arcade, "eve@example.org", seen)
    print("ok: a name is registered, and its address is corrected, verified, and then kept")

    tablet = make_player(AccountPlayer, "tablet")
    tablet.driver.get(f"{arcade.origin}/account/")
    tablet.log_in("alice")
    for password in ["wrong123", "apple123"]:
        tablet.wait("asks for the password", lambda: "is taken" in tablet.text("state"))
        tablet.fill("login", name="alice", password=password)
        tablet.wait("tried", lambda: "is taken" not in tablet.text("state") or not tablet.find("login").is_displayed())
    tablet.says("The name alice is registered. The address is verified.")
    assert "Logins: 2." in tablet.text("message"), tablet.text("message")
    print("ok: another device logs in by the password, and by no other one")

    eve = make_player(AccountPlayer, "eve")
    eve.open("account")
    for name in ["nobody", "eve", "alice"]:
        eve.fill("forgot", name=name)
        eve.says("If that name has a verified address")
        eve.driver.execute_script("document.getElementById('message').textContent = ''")
    codes = []
    eve.wait("the mail", lambda: codes.append(code(arcade, "alice@example.org", seen)) or codes[-1])
    assert len(mails(arcade)) == 3
    eve.fill("reset", code="WRONGONE", password="pear4567")
    eve.says("The code is wrong")
    eve.fill("reset", code=codes[-1], password="pear4567")
    eve.says("The password is set.")
    eve.fill_again("reset", code=codes[-1], password="pear4567")
    eve.says("The password is set.")
    eve.fill("reset", code=codes[-1], password="plum4567")
    eve.says("The code is wrong")
    # The reset has ended the sessions of both devices, and neither comes back without the new password.
    alice.wait("asks for the password", lambda: "is taken" in alice.text("state"))
    tablet.driver.execute_script("localStorage.clear(); indexedDB.deleteDatabase('redisdc')")
    tablet.driver.refresh()
    tablet.log_in("alice")
    tablet.wait("asks for the password", lambda: "is taken" in tablet.text("state"))
    tablet.fill("login", name="alice", password="pear4567")
    tablet.says("The name alice is registered.")
    print("ok: who has forgotten the password sets another one by mail, once, and learns nothing about other names")
    ended = eve.driver.execute_async_script("""
        const done = arguments[0];
        import("/redisdc.js").then(async ({ connect }) => {
            const open = (device) =>
                connect(location.origin, { user: "guest", device, credential: localStorage.secret });
            const [phone, tablet] = [await open("phone"), await open("tablet")];
            await tablet.call("/account/leave", {});
            await phone.call("/account/state");
            done("the session goes on");
        }).catch((error) => done(error.type ?? String(error)));""")
    assert ended == "unknown-session", ended
    print("ok: when a guest leaves, the sessions of all devices end before the name is free")
    for player in [alice, tablet, eve]:
        player.check_log()
