"""Lua 5.1 as a tree: what scripts/lua reads and writes.

Only what the notation allows: no methods, no varargs, no function inside a function.
"""

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
