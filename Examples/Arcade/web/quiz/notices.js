// The notices of a player when the quiz has changed: words only, without the page.

/** The seconds for which the others wait for a player who is away, unless the node was started with another time. */
const GRACE = 3;

/**
 * Returns the text that explains a change to a player, `""` if the last text is no longer true, or `undefined` if there is
 * nothing to say.
 *
 * @param before the view before, with the `quiz` that the player was in
 * @param after the view now
 * @param player the `name`; for how many seconds the player was `away`, because the connection was broken, or `undefined`;
 *     and whether the player has `answered` the question, or `hasLeft` the game
 */
export function notice(before, after, { name, away, answered, hasLeft }) {
    if (!before.quiz) return after.quiz ? "" : undefined;
    if (!after.quiz) return hasLeft ? undefined : endOf(before.quiz, after, name, away !== undefined);
    if (away !== undefined && !answered && hasGoneOn(before.quiz, after.quiz, name, away)) {
        return "You were away: the game has gone on without you.";
    }
    const gone = after.quiz.players.filter((player) => !player.isPresent
        && before.quiz.players.some((other) => other.name === player.name && other.isPresent));
    return gone.length ? `${gone.at(-1).name} has gone.` : undefined;
}

function endOf(quiz, after, name, wasAway) {
    if (quiz.host === name) return wasAway ? "You were away for too long: your game has ended." : undefined;
    if (!wasAway) return "The host has ended the game, or has gone.";
    if (after.open?.some(({ id }) => id === quiz.id)) {
        return "You were away for too long: the others have dropped you. The game is still open, so you can join it again.";
    }
    return quiz.phase === "open"
        ? "You were away: the game has ended, or has begun without you."
        : "You were away: the host has ended the game, or has gone.";
}

/** Whether the player has missed a turn, or others have played while they took the player for gone. */
function hasGoneOn(before, after, name, away) {
    const isChanged = before.current !== after.current || before.turn !== after.turn;
    const { last } = after;
    const isNew = last?.player !== before.last?.player || last?.question !== before.last?.question;
    const hasMissed = isChanged && before.turn === name || isNew && last?.player === name && last.answer === undefined;
    return hasMissed || isChanged && away >= GRACE;
}
