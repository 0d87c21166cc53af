// Splits a text into the tokens of a dialect.

import { Dialect } from "./dialect.js";
import { continuesWord, isDigit, isSpace, isSymbol, maxNameLength, startsWord } from "./names.js";
import { endOfDigits, endOfNumber } from "./numbers.js";

export class Tokenizer {
    #dialect;

    constructor(dialect = Dialect.standard) {
        this.#dialect = dialect;
    }

    tokens(text) {
        const scalars = [...text];
        const tokens = [];
        let offset = 0;
        while (offset < scalars.length) {
            if (isSpace.test(scalars[offset])) {
                offset += 1;
                continue;
            }
            const end = this.#endOfToken(scalars, offset);
            tokens.push({ text: scalars.slice(offset, end).join(""), offset });
            offset = end;
        }
        return tokens;
    }

    #endOfToken(scalars, start) {
        if (isDigit.test(scalars[start])) return endOfNumber(scalars, start);
        let end = start;
        if (startsWord.test(scalars[start])) {
            while (end < scalars.length && continuesWord.test(scalars[end])) end += 1;
            return end;
        }
        const longest = Math.min(scalars.length, start + maxNameLength);
        while (end < longest && isSymbol.test(scalars[end])) end += 1;
        for (; end > start; end -= 1) {
            if (this.#dialect.definition(scalars.slice(start, end).join(""))) return end;
            // Digits after the name belong to it only if they are a number of their own: not in `^2.5`.
            const digits = endOfDigits(scalars, end);
            if (digits > end && digits <= start + maxNameLength && digits === endOfNumber(scalars, end)) {
                if (this.#dialect.definition(scalars.slice(start, digits).join(""))) return digits;
            }
        }
        return start + 1;
    }
}
