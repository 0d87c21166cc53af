// The best scores of a game on this device: ten, the best first.

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
