"""The words of a Lua file: keywords, operators, literals and names; and its comments."""

import re

from .tree import NotationError, Place

KEYWORDS = set(
    "and break do else elseif end false for function if in local nil not or repeat return then true until while".split()
)
# Left and right binding power of the operators.
BINARY = {
    "or": (1, 1), "and": (2, 2), "<": (3, 3), ">": (3, 3), "<=": (3, 3), ">=": (3, 3), "~=": (3, 3), "==": (3, 3),
    "..": (5, 4), "+": (6, 6), "-": (6, 6), "*": (7, 7), "/": (7, 7), "%": (7, 7), "^": (10, 9),
}  # fmt: skip
UNARY_POWER = 8
TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)|(?P<newline>\n)|(?P<comment>--[^\n]*)
    |(?P<number>0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<symbol>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}\[\];:,.])""",
    re.VERBOSE | re.DOTALL,
)
ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def string_bytes(text):
    """The bytes of a string literal with its quotes."""
    result, position, text = bytearray(), 0, text[1:-1]
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            result += character.encode()
            continue
        digits = re.match(r"\d{1,3}", text[position:])
        if digits:
            result.append(int(digits.group()))
            position += len(digits.group())
        else:
            result.append(ESCAPES.get(text[position], ord(text[position])))
            position += 1
    return bytes(result)


def tokens(text, file):
    """The tokens (kind, text, line) and the comments by their lines."""
    found, comments, line, position = [], {}, 1, 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if not match:
            raise NotationError(Place(file, line), f"not Lua as the notation allows it: {text[position:position + 20]!r}")
        kind, position = match.lastgroup, match.end()
        if kind == "newline":
            line += 1
        elif kind == "comment":
            if re.match(r"--\[=*\[", match.group()):
                raise NotationError(Place(file, line), "a comment ends with its line")
            comments[line] = match.group()
        elif kind != "space":
            if kind == "name" and match.group() in KEYWORDS:
                kind = "keyword"
            found.append((kind, match.group(), line))
    found.append(("end", "", line))
    return found, comments
