// The names of operators and functions, and the classes of characters.

// Only ASCII is classified, so that no version of Unicode makes a difference between two languages. The range of a
// symbol excludes lone surrogates, which Swift's strings cannot contain.
export const maxNameLength = 16;
const symbolPattern = String.raw`[^\u0000-\u0020\u007F-\u00A0A-Za-z0-9_(),.\uD800-\uDFFF]`;
const namePattern = new RegExp(`^(?:[A-Za-z_][A-Za-z0-9_]*|${symbolPattern}+[0-9]*)$`, "u");
export const isSymbol = new RegExp(`^${symbolPattern}$`, "u");
export const isDigit = /^[0-9]$/;
export const startsWord = /^[A-Za-z_]$/;
export const continuesWord = /^[A-Za-z0-9_]$/;
export const isSpace = /^[ \t\n\r]$/;

export function isValidName(name) {
    // A scalar has one or two UTF-16 code units; the first comparison avoids splitting a very long string.
    return name.length <= 2 * maxNameLength && [...name].length <= maxNameLength && namePattern.test(name);
}
