"""A library: the constants, records, functions and entries of all files in a module's Lua folder."""

import re
from dataclasses import dataclass
from pathlib import Path

from .folding import fold
from .parser import parse
from .tree import (
    LITERALS, Binary, Call, Function, Index, Local, Name, NotationError, Number, Parenthesis, String, Table, Unary,
)  # fmt: skip

# The modules of Redis and Lua, and the functions of them that a library may use.
MODULES = {
    "redis": {"call", "pcall", "error_reply", "status_reply", "sha1hex", "log", "LOG_WARNING"},
    "struct": {"pack", "unpack"},
    "string": {"byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "rep", "reverse", "sub", "upper"},
    "math": {"abs", "ceil", "floor", "huge", "max", "min", "fmod"},
    "table": {"concat", "insert", "remove", "sort"},
    "cjson": {"encode", "decode"},
    "bit": {"band", "bor", "bxor", "lshift", "rshift"},
}
GLOBALS = {"tonumber", "tostring", "type", "ipairs", "pairs", "unpack", "next", "select", "refuse"}
ENTRY_PARAMETERS = {"keys": "KEYS", "arguments": "ARGV"}


@dataclass
class Record:
    name: str
    format: String | None
    size: Number | None
    fields: list
    also: list
    next: str | None
    place: object
    comment: list

    @property
    def all_fields(self):
        return self.fields + self.also

    @property
    def unpacked_fields(self):
        return self.fields + ([self.next] if self.next else [])


class Library:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.constants, self.records, self.functions, self.entries = {}, {}, {}, {}
        self.places, self.comments, self.files = {}, {}, []
        self.used_by_constants = set()
        pending = {}
        for path in sorted(self.folder.glob("*.lua")):
            self.files.append(path)
            for statement in parse(path.read_text(), str(path)):
                self.declare(statement, pending)
        for name, value in pending.items():
            self.constants[name] = self.constant(name, value, pending, ())
        for record in self.records.values():
            self.resolve(record)

    def declare(self, statement, pending):
        if isinstance(statement, Function):
            place = self.entries if statement.is_entry else self.functions
            if statement.is_entry:
                if statement.parameters not in (["keys", "arguments"], ["keys"], []):
                    raise NotationError(statement.place, "the parameters of an entry are (keys, arguments)")
                if statement.name in self.entries:
                    raise NotationError(statement.place, f"there is another entry {statement.name}")
            else:
                self.claim(statement.name, statement)
            place[statement.name] = statement
            return
        assert isinstance(statement, Local)
        value = statement.values[0] if len(statement.values) == 1 else None
        if isinstance(value, Call) and isinstance(value.function, Name) and value.function.id == "record":
            self.claim(statement.names[0], statement)
            self.records[statement.names[0]] = self.record(statement, value)
            return
        if len(statement.names) != len(statement.values):
            raise NotationError(statement.place, "each constant has its value")
        for name, value in zip(statement.names, statement.values):
            if name != name.upper():
                raise NotationError(statement.place, f"{name}: a constant is written in capitals")
            self.claim(name, statement)
            pending[name] = value

    def claim(self, name, statement):
        if name in self.places:
            raise NotationError(statement.place, f"{name} is declared in {self.places[name]} too")
        if name in GLOBALS or name in MODULES or name in ("keys", "arguments", "entry", "record"):
            raise NotationError(statement.place, f"{name} has another meaning")
        self.places[name] = statement.place
        self.comments[name] = statement.comment

    def record(self, statement, call):
        if len(call.arguments) != 1 or not isinstance(call.arguments[0], Table):
            raise NotationError(statement.place, "record {format = …, 'field', …}")
        found = Record(statement.names[0], None, None, [], [], None, statement.place, statement.comment)
        for key, value in call.arguments[0].items:
            if key is None:
                found.fields.append(text_of(value, statement))
            elif key.value == b"format":
                found.format = value
            elif key.value == b"size":
                found.size = value
            elif key.value == b"next":
                found.next = text_of(value, statement)
            elif key.value == b"also":
                found.also = [text_of(field, statement) for _, field in value.items]
            else:
                raise NotationError(statement.place, f"a record has format, size, also and next, not {key.value.decode()}")
        if found.next and found.next not in found.also:
            found.also.append(found.next)
        if len(set(found.all_fields)) != len(found.all_fields):
            raise NotationError(statement.place, "a field stands twice")
        if (found.format is None) == bool(found.fields):
            raise NotationError(statement.place, "fields without a format stand in `also`")
        return found

    def resolve(self, record):
        for part in ("format", "size"):
            value = getattr(record, part)
            if value is not None:
                setattr(record, part, self.constant(record.name, value, {}, ()))
        if record.format:
            lengths(record)
            least = least_size(record.format)
            if record.size and record.size.value != least:
                raise NotationError(record.place, f"{record.name} has {least} bytes, not {record.size.value:g}")

    def constant(self, name, value, pending, above):
        """The literal that a constant expression stands for."""
        if name in above:
            raise NotationError(value.place, f"{name} depends on itself")

        def literal(node):
            match node:
                case Name():
                    self.used_by_constants.add(node.id)
                    if node.id in self.constants:
                        return self.constants[node.id]
                    if node.id in pending:
                        return self.constant(node.id, pending[node.id], pending, (*above, name))
                    raise NotationError(node.place, f"{node.id} is not a constant")
                case Binary():
                    return fold(Binary(node.operator, literal(node.left), literal(node.right), node.place))
                case Unary():
                    return fold(Unary(node.operator, literal(node.operand), node.place))
                case Parenthesis():
                    return literal(node.inner)
                case Index(table=Name(id=record), key=String()) if record in self.records:
                    self.used_by_constants.add(record)
                    part = node.key.value.decode()
                    value = getattr(self.records[record], part, None)
                    if part not in ("format", "size") or value is None:
                        raise NotationError(node.place, f"{record} has no {part}")
                    return literal(value)
                case _ if isinstance(node, LITERALS):
                    return node
            raise NotationError(node.place, f"{name} is not constant")

        result = literal(value)
        if not isinstance(result, LITERALS):
            raise NotationError(value.place, f"{name} is not constant")
        return result


def text_of(value, statement):
    if not isinstance(value, String):
        raise NotationError(statement.place, "the fields of a record are strings")
    return value.value.decode()


def letters(format):
    """The letters of a format of struct.pack, each with the digits that follow it."""
    return re.findall(r"(\D)(\d*)", format.value.decode())


def least_size(format):
    """The bytes of a record whose strings are empty if their length stands before them."""
    sizes = {"b": 1, "B": 1, "x": 1, "h": 2, "H": 2, "l": 8, "L": 8, "T": 8, "f": 4, "d": 8, "s": 1}
    found = 0
    for letter, digits in letters(format):
        if letter in "ciI":
            found += int(digits or {"c": 1}.get(letter, 4))
        elif letter not in "<>=! ":
            found += sizes.get(letter, 0)
    return found


def lengths(record):
    """For each field, whether its length stands before it in the format."""
    found = []
    for letter, digits in letters(record.format):
        if letter in "<>=! x":
            continue
        if letter == "c" and digits == "0" and found:
            found[-1] = True
        else:
            found.append(False)
    if len(found) != len(record.fields):
        raise NotationError(record.place, f"{record.name}: the format has {len(found)} values, not {len(record.fields)}")
    return found
