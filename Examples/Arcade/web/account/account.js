// A player's account: registered, a name is kept for good, and can be used on other devices.
import { find, play } from "/arcade.js";

let session;

function show({ isRegistered, isVerified, logins }) {
    find("register").hidden = isRegistered;
    find("verify").hidden = !isRegistered || isVerified;
    const kept = isRegistered ? "registered" : "kept by this browser, until nobody has used it for a week";
    const address = !isRegistered ? "" : isVerified ? " The address is verified." : " The address is not verified yet.";
    find("message").textContent = `The name ${session.user} is ${kept}.${address} Logins: ${logins}.`;
}

function onSubmit(id, action) {
    find(id).addEventListener("submit", async (event) => {
        event.preventDefault();
        try {
            await action(Object.fromEntries(new FormData(event.target)));
        } catch (error) {
            find("message").textContent = error.message;
        }
    });
}

async function post(path, content) {
    const reply = await fetch(path, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
    });
    if (!reply.ok) throw new Error(reply.status === 403 ? "The code is wrong or has expired." : `Error ${reply.status}`);
}

onSubmit("register", async (content) => show(await session.call("/account/register", content)));
onSubmit("verify", async ({ code }) => show(await session.call("/account/verify", { code: code.trim().toUpperCase() })));
onSubmit("forgot", async ({ name }) => {
    await post("/account/forgot", { name });
    find("message").textContent = "If that name has a verified address, a code is on its way.";
});
onSubmit("reset", async ({ code, password }) => {
    await post("/account/reset", { name: find("forgot").elements.name.value, code: code.trim().toUpperCase(), password });
    find("message").textContent = "The password is set.";
});

await play("account", {}, async (connected) => {
    session = connected;
    show(await session.call("/account/state"));
});
