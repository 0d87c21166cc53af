// The leaderboards, for everybody: without a login.
import { fillScores, localScores } from "/scores.js";

const find = (id) => document.getElementById(id);

fillScores(find("local"), localScores(localStorage, "words").map((entry, index) => ({ rank: index + 1, ...entry })));
try {
    const response = await fetch("/scores.json");
    if (!response.ok) throw new Error(`the server answers ${response.status}`);
    for (const [board, entries] of Object.entries(await response.json())) fillScores(find(board), entries);
    find("state").textContent = `At ${new Date().toLocaleTimeString()}`;
} catch (error) {
    find("state").textContent = `The leaderboards cannot be shown: ${error.message}. Reload this page to try again.`;
}
