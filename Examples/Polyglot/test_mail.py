"""Mail: step by step, then senders and readers in Python and Swift, some of which are killed."""
import json
import os
import pathlib
import random
import subprocess
import threading
import time

from errors import Conflict, Superseded
from mail import Cursor, Message, PostOffice
from test_support import KILLS, SECONDS, SEED, TTL, Threads, check, kill_with_children, raises, wait
from worker import History, choose_send


def test_mail(test):
    with PostOffice(test.url) as office:
        phone, laptop = office.mailbox("anna", "phone"), office.mailbox("anna", "laptop")
        phone.register()
        laptop.register()
        message = Message(b"hello", "greeting", {"b": "2", "a": "1"})
        sent = office.send(message, "again", to=["anna", "otto"], id="one")
        check("a send returns the indices", sent == {"anna": 1, "otto": 1}, sent)
        check("a repeated send has no effect", office.send(message, "again", to=["anna", "otto"], id="one") == sent)
        check("the id is refused for another send", raises(Conflict, lambda: office.send("x", to="anna", id="one")))
        office.send("hello", "world", to=["anna", "otto"], id="two")
        test.run_tool("mail", "send", "--to", "anna,otto", "--id", "two", "hello", "world")
        test.run_tool("mail", "send", "--to", "anna,otto", "--id", "three", "--type", "t", "--header", "h=1", "from Swift")
        office.send(Message(b"from Swift", "t", {"h": "1"}), to=["anna", "otto"], id="three")
        delivery = phone.listen(timeout=0)
        bodies = [message.body for message in delivery.messages]
        check("sends that Python and Swift repeat of each other happen once",
              bodies == [b"hello", b"again", b"hello", b"world", b"from Swift"], bodies)
        check("type and headers arrive", (delivery.messages[0].type, delivery.messages[0].headers)
              == ("greeting", {"a": "1", "b": "2"}))
        again = [message.body for message in phone.listen(timeout=0).messages]
        check("what is not acknowledged comes again", again == bodies)
        phone.acknowledge(delivery.cursor)
        check("what is acknowledged does not", phone.listen(timeout=0).messages == [])
        check("a message stays until all devices have acknowledged it", stored(test, "anna") == 5)
        text = test.run_tool("mail", "listen", "anna", "--device", "laptop", "--limit", "2")
        cursor = Cursor.parse(text.splitlines()[-1].split()[-1])
        check("Python continues after the cursor of a Swift reader",
              [message.index for message in laptop.listen(cursor, 0).messages] == [3, 4, 5])
        check("and is deleted then", stored(test, "anna") == 3)
        laptop.acknowledge(delivery.cursor)
        check("and all are deleted in the end", stored(test, "anna") == 0)
        test_waiting_reader(test, office)


def test_waiting_reader(test, office):
    received, reader = [], office.mailbox("anna", "phone")
    thread = threading.Thread(target=lambda: received.append(reader.listen(timeout=SECONDS)))
    thread.start()
    wait("the reader waits", lambda: "listening processes: 1" in test.run_tool("mail", "inspect", "anna"))
    test.run_tool("mail", "send", "--to", "anna", "wake up")
    thread.join(SECONDS)
    check("a waiting Python reader is woken by a send of Swift", received and received[0].messages[0].body == b"wake up")
    superseded = []
    thread = threading.Thread(target=lambda: superseded.append(raises(Superseded, lambda: reader.listen(
        received[0].cursor, SECONDS))))
    thread.start()
    wait("the reader waits", lambda: "listening processes: 1" in test.run_tool("mail", "inspect", "anna"))
    test.run_tool("mail", "listen", "anna", "--device", "phone", "--timeout", "0", statuses=(0, 75))
    thread.join(SECONDS)
    check("a reader is superseded by another one of its device", superseded == [True])


def stored(test, name):
    return test.redis.llen("ql:{default:0}:mail:" + name) // 2


def test_chaos_of_mail(test):
    mailboxes, ended = ["north", "south"], f"{test.folder}/end"
    senders, readers, kills = Threads(), Threads(), []
    sends = 3 * KILLS
    with PostOffice(test.url) as office:
        for name in mailboxes:
            for device in ("python", "swift"):
                office.mailbox(name, device).register()
    for name in mailboxes:
        readers.start(python_reader, test, name, ended, KILLS // 6, kills)
        readers.start(swift_reader, test, name, ended, KILLS // 6, kills)
    senders.start(python_sender, test, mailboxes, sends, KILLS // 6, kills)
    senders.start(swift_sender, test, mailboxes, KILLS // 2, KILLS // 6, kills)
    senders.join()
    # Readers do not end before they have been killed as often as they should.
    pathlib.Path(ended).touch()
    readers.join()
    for name in mailboxes:
        check(f"no message of {name} is left", stored(test, name) == 0)
    print(f"    killed: {kills.count('Python')} Python and {kills.count('Swift')} Swift processes")
    test.judge("mail", ["mail"])


def python_sender(test, mailboxes, count, deaths, kills):
    chosen, process, first = random.Random(f"{SEED} sender"), test.next_process(), 0
    for death in range(deaths + 1):
        start = test.events(process)
        worker = test.start_worker("sender", process, first=first, count=count, mailboxes=mailboxes, seed_of_sends=SEED,
                                   faults=0.05, ttl=TTL)
        if death == deaths:
            test.ended_well(worker, process)
            return
        events = start + chosen.randint(1, max(1, count // deaths))
        wait("the sender has sent", lambda: test.events(process) >= events or worker.poll() is not None)
        if worker.poll() is not None:
            test.ended_well(worker, process)
            return
        worker.kill()
        worker.wait()
        kills.append("Python")
        # The next one repeats the send that is not known to have happened, with the same id.
        lines = pathlib.Path(f"{test.folder}/{process}.jsonl").read_text().splitlines()
        first = max([json.loads(line)["o"] + 1 for line in lines if json.loads(line)["e"] == "end"], default=0)


def swift_sender(test, mailboxes, count, deaths, kills):
    chosen, own = random.Random(f"{SEED} Swift sender"), History(test.folder, test.next_process())
    killed = set(chosen.sample(range(count), min(count, deaths)))
    for number in range(count):
        send = choose_send(SEED, own.process, number, mailboxes)
        own.record("call", o=number, v="send", m=send.message, to=send.to, n=len(send.bodies))
        command = [test.tool, "mail", "send", "--to", ",".join(send.to), "--id", send.id, *send.bodies]
        if number in killed:
            tool = test.start(*command, stdout=subprocess.DEVNULL)
            time.sleep(chosen.uniform(0, 0.2))
            if tool.poll() is None:
                kill_with_children(tool)
                kills.append("Swift")
        # Also when the killed one has sent it: then this one has no effect.
        test.run_tool(*command[1:])
        own.record("end", o=number, v="send", x="ok")


def python_reader(test, name, ended, deaths, kills):
    chosen = random.Random(f"{SEED} reader of {name}")
    for death in range(deaths + 1):
        process = test.next_process()
        worker = test.start_worker("reader", process, mailbox=name, device="python", end=ended, faults=0.03, ttl=TTL)
        if death == deaths:
            # It reads to the end when the senders have ended.
            test.ended_well(worker, process)
            return
        events = chosen.randint(2, 30)
        wait("the reader has read", lambda: test.events(process) >= events or worker.poll() is not None
             or os.path.exists(ended))
        if worker.poll() is None:
            # Perhaps between the arrival of messages and their acknowledgement.
            History(test.folder, 0).record("killed", p=process)
            worker.kill()
            worker.wait()
            kills.append("Python")


def swift_reader(test, name, ended, deaths, kills):
    chosen, own, cursor = random.Random(f"{SEED} Swift reader of {name}"), History(test.folder, test.next_process()), None
    own.record("reads", r=name, d="swift")
    while True:
        is_last = os.path.exists(ended)
        command = [test.tool, "mail", "listen", name, "--device", "swift", "--json", "--limit", str(chosen.randint(1, 8)),
                   "--timeout", "0" if is_last else "1"] + (["--after", cursor] if cursor else [])
        tool = test.start(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if deaths > 0 and chosen.random() < 0.4:
            deaths -= 1
            time.sleep(chosen.uniform(0, 0.3))
            if tool.poll() is None:
                kill_with_children(tool)
                kills.append("Swift")
                # The messages that it has printed are lost with it, and must come again.
                cursor = None
                own.record("reads", r=name, d="swift")
                continue
        lines = [json.loads(line) for line in tool.communicate(timeout=SECONDS)[0].splitlines()]
        messages = [line for line in lines if "body" in line]
        for message in messages:
            own.record("got", r=name, d="swift", i=message["index"], m=message["body"])
        end = next((line for line in lines if "cursor" in line), None)
        if end is None:
            # It has given up, because the machine stood still.
            cursor = None
            own.record("reads", r=name, d="swift")
            continue
        if end["status"] not in ("messages", "timedOut"):
            own.record("gap", r=name, d="swift", w=end["status"])
        cursor = end["cursor"]
        if is_last and not messages and deaths <= 0:
            own.record("drained", r=name, d="swift")
            return
