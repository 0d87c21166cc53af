// Tables of scores, and the best scores of a game on this device: ten, the best first.

const key = (game) => `scores.${game}`;

/** The scores, the best first. */
export function localScores(storage, game) {
    try {
        return JSON.parse(storage.getItem(key(game))) ?? [];
    } catch {
        return [];
    }
}

/** Adds a score if it is among the best ten: among equal ones the earlier is better. Returns whether it is. */
export function addLocalScore(storage, game, score, time) {
    const scores = localScores(storage, game);
    const place = scores.findIndex((other) => other.score < score);
    const index = place < 0 ? scores.length : place;
    if (index >= 10) return false;
    scores.splice(index, 0, { score, time });
    storage.setItem(key(game), JSON.stringify(scores.slice(0, 10)));
    return true;
}

/** Shows scores in a table: with their rank, the name of the player, and the time. */
export function fillScores(table, entries) {
    table.replaceChildren(...entries.map(({ rank, name, score, time }) => {
        const row = document.createElement("tr");
        for (const text of [rank, name ?? "", score, new Date(time).toLocaleString()]) row.insertCell().textContent = text;
        return row;
    }));
}
