"""Lua 5.1 as a tree: what scripts/lua reads and writes.

Only what the notation allows: no methods, no varargs, no function inside a function.
"""

import re
from dataclasses import dataclass, field


class NotationError(Exception):
    """A source that the notation does not allow: where, and what to do."""

    def __init__(self, place, message):
        super().__init__(f"{place}: {message}")


@dataclass(frozen=True)
class Place:
    file: str
    line: int

    def __str__(self):
        return f"{self.file}:{self.line}"


# Expressions


@dataclass
class Name:
    """A name as it stands in the source, or that of a global in the text."""

    id: str
    place: Place | None = None


@dataclass(eq=False)
class Variable:
    """A local of the text that is generated. Each declaration has an object of its own."""

    id: str


@dataclass
class Nil:
    place: Place | None = None


@dataclass
class Boolean:
    value: bool
    place: Place | None = None


@dataclass
class Number:
    value: float
    place: Place | None = None


@dataclass
class String:
    value: bytes
    place: Place | None = None


@dataclass
class Index:
    table: object
    key: object
    place: Place | None = None


@dataclass
class Call:
    function: object
    arguments: list
    place: Place | None = None


@dataclass
class Binary:
    operator: str
    left: object
    right: object
    place: Place | None = None


@dataclass
class Unary:
    operator: str
    operand: object
    place: Place | None = None


@dataclass
class Parenthesis:
    """Cuts the results of a call to one."""

    inner: object
    place: Place | None = None


@dataclass
class Table:
    items: list  # of (key or None, value)
    place: Place | None = None


@dataclass
class Lambda:
    """A function inside an expression of the text: only table.sort gets one."""

    parameters: list
    value: object
    place: Place | None = None


LITERALS = (Nil, Boolean, Number, String)

# Statements


@dataclass
class Local:
    names: list
    values: list
    place: Place | None = None


@dataclass
class Assign:
    targets: list
    values: list
    place: Place | None = None


@dataclass
class CallStatement:
    call: Call
    place: Place | None = None


@dataclass
class Do:
    block: list
    place: Place | None = None


@dataclass
class While:
    condition: object
    block: list
    place: Place | None = None


@dataclass
class Repeat:
    block: list
    condition: object
    place: Place | None = None


@dataclass
class If:
    branches: list  # of (condition, block)
    otherwise: list | None
    place: Place | None = None


@dataclass
class NumericFor:
    variable: object
    bounds: list
    block: list
    place: Place | None = None


@dataclass
class GenericFor:
    names: list
    values: list
    block: list
    place: Place | None = None


@dataclass
class Return:
    values: list
    place: Place | None = None


@dataclass
class Break:
    place: Place | None = None


@dataclass
class Function:
    """At the top level of a file: `local function NAME` or `function entry.NAME`."""

    name: str
    parameters: list
    block: list
    place: Place
    is_entry: bool
    last_line: int
    comment: list = field(default_factory=list)


KEYWORDS = set(
    "and break do else elseif end false for function if in local nil not or repeat return then true until while".split()
)
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


# Left and right binding power of the operators.
BINARY = {
    "or": (1, 1), "and": (2, 2), "<": (3, 3), ">": (3, 3), "<=": (3, 3), ">=": (3, 3), "~=": (3, 3), "==": (3, 3),
    "..": (5, 4), "+": (6, 6), "-": (6, 6), "*": (7, 7), "/": (7, 7), "%": (7, 7), "^": (10, 9),
}  # fmt: skip
UNARY_POWER = 8


class Parser:
    def __init__(self, text, file):
        self.file = file
        self.tokens, self.comments = tokens(text, file)
        self.position = 0

    # Tokens

    @property
    def text(self):
        kind, text, _ = self.tokens[self.position]
        return text if kind in ("keyword", "symbol") else ""

    @property
    def kind(self):
        return self.tokens[self.position][0]

    @property
    def place(self):
        return Place(self.file, self.tokens[self.position][2])

    def take(self):
        token = self.tokens[self.position]
        self.position += 1
        return token[1]

    def accept(self, text):
        if self.text != text:
            return False
        self.position += 1
        return True

    def expect(self, text):
        if not self.accept(text):
            raise NotationError(self.place, f"expected {text!r}, found {self.tokens[self.position][1]!r}")

    def name(self):
        if self.kind != "name":
            raise NotationError(self.place, f"expected a name, found {self.tokens[self.position][1]!r}")
        return self.take()

    # Files

    def file_statements(self):
        statements = []
        while self.kind != "end":
            statements.append(self.top_level())
        return statements

    def top_level(self):
        place = self.place
        if self.text == "function":
            self.take()
            if self.name() != "entry":
                raise NotationError(place, "at the top level a function is `local function` or `function entry.NAME`")
            self.expect(".")
            return self.function(place, is_entry=True)
        self.expect("local")
        if self.accept("function"):
            return self.function(place, is_entry=False)
        statement = self.local(place)
        statement.comment = self.comment_above(place.line)
        return statement

    def comment_above(self, line):
        found = []
        while line - 1 in self.comments:
            line -= 1
            found.insert(0, self.comments[line])
        return found

    def function(self, place, is_entry):
        name = self.name()
        self.expect("(")
        parameters = []
        while not self.accept(")"):
            parameters.append(self.name())
            if self.text != ")":
                self.expect(",")
        block = self.block()
        last_line = self.place.line
        self.expect("end")
        return Function(name, parameters, block, place, is_entry, last_line, self.comment_above(place.line))

    # Statements

    def block(self):
        statements = []
        while self.text not in ("end", "else", "elseif", "until") and self.kind != "end":
            statement = self.statement()
            if statement is None:
                continue
            statements.append(statement)
            if isinstance(statement, (Return, Break)):
                if self.text not in ("end", "else", "elseif", "until"):
                    raise NotationError(self.place, "what follows is never reached")
                break
        return statements

    def statement(self):
        place = self.place
        if self.accept(";"):
            return None
        if self.accept("local"):
            if self.text == "function":
                raise NotationError(place, "a function stands at the top level of a file")
            return self.local(place)
        if self.accept("if"):
            return self.conditional(place)
        if self.accept("while"):
            condition = self.expression()
            self.expect("do")
            block = self.block()
            self.expect("end")
            return While(condition, block, place)
        if self.accept("for"):
            return self.loop(place)
        if self.accept("do"):
            block = self.block()
            self.expect("end")
            return Do(block, place)
        if self.accept("repeat"):
            block = self.block()
            self.expect("until")
            return Repeat(block, self.expression(), place)
        if self.accept("return"):
            values = [] if self.text in ("end", "else", "elseif", "until", ";") else self.expressions()
            self.accept(";")
            return Return(values, place)
        if self.accept("break"):
            self.accept(";")
            return Break(place)
        return self.assignment(place)

    def local(self, place):
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        return Local(names, self.expressions() if self.accept("=") else [], place)

    def conditional(self, place):
        branches, otherwise = [], None
        condition = self.expression()
        self.expect("then")
        branches.append((condition, self.block()))
        while self.accept("elseif"):
            condition = self.expression()
            self.expect("then")
            branches.append((condition, self.block()))
        if self.accept("else"):
            otherwise = self.block()
        self.expect("end")
        return If(branches, otherwise, place)

    def loop(self, place):
        names = [self.name()]
        if self.accept("="):
            bounds = self.expressions()
            self.expect("do")
            block = self.block()
            self.expect("end")
            return NumericFor(names[0], bounds, block, place)
        while self.accept(","):
            names.append(self.name())
        self.expect("in")
        values = self.expressions()
        self.expect("do")
        block = self.block()
        self.expect("end")
        return GenericFor(names, values, block, place)

    def assignment(self, place):
        first = self.suffixed()
        if isinstance(first, Call):
            return CallStatement(first, place)
        targets = [first]
        while self.accept(","):
            targets.append(self.suffixed())
        self.expect("=")
        for target in targets:
            if not isinstance(target, (Name, Index)):
                raise NotationError(place, "this cannot be assigned to")
        return Assign(targets, self.expressions(), place)

    # Expressions

    def expressions(self):
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        return found

    def expression(self, power=0):
        place = self.place
        if self.text in ("not", "-", "#"):
            operator = self.take()
            operand = self.expression(UNARY_POWER)
            if operator == "-" and isinstance(operand, Number) and operand.value:
                left = Number(-operand.value, place)
            else:
                left = Unary(operator, operand, place)
        else:
            left = self.simple()
        while self.text in BINARY and BINARY[self.text][0] > power:
            operator = self.take()
            left = Binary(operator, left, self.expression(BINARY[operator][1]), place)
        return left

    def simple(self):
        place, kind = self.place, self.kind
        if kind == "number":
            text = self.take()
            return Number(float(int(text, 16)) if text[:2] in ("0x", "0X") else float(text), place)
        if kind == "string":
            return String(string_bytes(self.take()), place)
        if self.accept("nil"):
            return Nil(place)
        if self.text in ("true", "false"):
            return Boolean(self.take() == "true", place)
        if self.text == "{":
            return self.table(place)
        if self.text == "function":
            raise NotationError(place, "a function stands at the top level of a file")
        return self.suffixed()

    def table(self, place):
        self.expect("{")
        items = []
        while not self.accept("}"):
            if self.accept("["):
                key = self.expression()
                self.expect("]")
                self.expect("=")
                items.append((key, self.expression()))
            elif self.kind == "name" and self.tokens[self.position + 1][1] == "=":
                key = String(self.take().encode(), place)
                self.expect("=")
                items.append((key, self.expression()))
            else:
                items.append((None, self.expression()))
            if self.text != "}" and not self.accept(";"):
                self.expect(",")
        return Table(items, place)

    def suffixed(self):
        place = self.place
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            # Parentheses mean something only around a call.
            left = Parenthesis(inner, place) if isinstance(inner, Call) else inner
        else:
            left = Name(self.name(), place)
        while True:
            if self.accept("."):
                left = Index(left, String(self.name().encode(), place), place)
            elif self.accept("["):
                left = Index(left, self.expression(), place)
                self.expect("]")
            elif self.text == "(":
                left = Call(left, self.call_arguments(), place)
            elif self.text == "{" or self.kind == "string":
                left = Call(left, [self.simple()], place)
            else:
                return left

    def call_arguments(self):
        self.expect("(")
        if self.accept(")"):
            return []
        found = self.expressions()
        self.expect(")")
        return found


def parse(text, file):
    return Parser(text, file).file_statements()
