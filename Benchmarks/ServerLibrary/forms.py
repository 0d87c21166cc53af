"""The forms in which the server could run a library: as it is written, with functions and tables, or flat.

`functions(library, names)` is the text of the named entries with the functions and records that they reach: records are
tables, functions are local functions, constants are literals, and a refusal is an error that the entry's caller catches.
"""

import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

root = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(root / "scripts"))

from lua_notation.expressions import module  # noqa: E402
from lua_notation.folding import fold  # noqa: E402
from lua_notation.flatten import Flattener  # noqa: E402
from lua_notation.library import Library, lengths  # noqa: E402, F401
from lua_notation.printer import block  # noqa: E402
from lua_notation.tree import (  # noqa: E402
    Assign, Binary, Call, CallStatement, Function, Index, Local, Name, Place, String, Table, Unary,
)  # fmt: skip
from lua_notation.walk import expressions_of  # noqa: E402


class Functions:
    """The text of entries as functions."""

    def __init__(self, library):
        self.library = library
        self.written, self.lines, self.number = set(), [], 0

    def text(self, names):
        for name in names:
            self.function(self.library.entries[name], f"entry_{name}")
        return self.lines

    def function(self, function, name):
        if name in self.written:
            return
        self.written.add(name)
        body = self.statements(function.block, set(function.parameters))
        self.lines += [f"local function {name}({', '.join(function.parameters)})", *block(body, "  "), "end"]

    def statements(self, statements, names):
        result = []
        for statement in statements:
            result += self.statement(statement, names)
        return result

    def statement(self, node, names):
        if isinstance(node, CallStatement):
            name = record_call(self.library, node.call)
            if name and name[1] == "read_into":
                record, target = name[0], node.call.arguments[0]
                call = Call(module("struct", "unpack"), [record.format, *self.rewrite(node.call.arguments[1:])])
                return [Assign([Index(target, String(f.encode())) for f in record.unpacked_fields], [call])]
            if isinstance(node.call.function, Name) and node.call.function.id == "refuse":
                reply = Table([(String(b"refusal"), self.rewrite(node.call.arguments[0]))])
                return [CallStatement(Call(Name("error"), [reply]))]
        if isinstance(node, Local) and len(node.values) == 1 and isinstance(node.values[0], Call):
            found = record_call(self.library, node.values[0])
            if found and found[1] == "read":
                record = found[0]
                self.number += 1
                locals_ = [Name(f"{f}_{self.number}") for f in record.unpacked_fields]
                call = Call(module("struct", "unpack"), [record.format, *self.rewrite(node.values[0].arguments)])
                table = Table([(String(f.encode()), v) for f, v in zip(record.unpacked_fields, locals_)])
                return [Local(locals_, [call]), Local([Name(node.names[0])], [table])]
        return [self.rewrite(node)]

    def rewrite(self, part):
        if isinstance(part, list):
            if part and all(hasattr(p, "place") and type(p).__name__ in STATEMENTS for p in part):
                return self.statements(part, set())
            return [self.rewrite(element) for element in part]
        if isinstance(part, tuple):
            return tuple(self.rewrite(element) for element in part)
        if isinstance(part, str) or not is_dataclass(part) or isinstance(part, Place):
            return part
        if isinstance(part, Name):
            if part.id in self.library.constants:
                return self.library.constants[part.id]
            if part.id in self.library.functions:
                self.function(self.library.functions[part.id], part.id)
            return Name(part.id)
        if isinstance(part, Index) and isinstance(part.table, Name) and part.table.id in self.library.records:
            return getattr(self.library.records[part.table.id], part.key.value.decode())
        if isinstance(part, Call):
            found = record_call(self.library, part)
            if found and found[1] == "new":
                return self.rewrite(part.arguments[0]) if part.arguments else Table([])
            if found and found[1] == "write":
                record, values = found[0], [found[0].format]
                for field, has_length in zip(record.fields, lengths(record)):
                    value = Index(part.arguments[0], String(field.encode()))
                    values += [Unary("#", value), value] if has_length else [value]
                return Call(module("struct", "pack"), values)
        made = type(part)(**{f.name: self.rewrite(getattr(part, f.name)) for f in fields(part)})
        if isinstance(part, (Local,)):
            made.names = [Name(n) if isinstance(n, str) else n for n in made.names]
        if type(part).__name__ == "GenericFor":
            made.names = [Name(n) for n in part.names]
        if type(part).__name__ == "NumericFor":
            made.variable = Name(part.variable)
        return fold(made) if isinstance(made, (Binary, Unary)) else made


STATEMENTS = {
    "Local", "Assign", "CallStatement", "Do", "While", "If", "NumericFor", "GenericFor", "Return", "Break",
}  # fmt: skip
CATCH = """
local ok, reply = pcall(entry_{name}, KEYS, ARGV)
if ok then return reply end
if type(reply) == 'table' and reply.refusal then return reply.refusal end
return redis.error_reply(tostring(reply))
"""


def record_call(library, call):
    match call.function:
        case Index(table=Name(id=name), key=String(value=action)) if name in library.records:
            return library.records[name], action.decode()
    return None


def as_functions(library, name):
    """One entry with the functions that it reaches, for EVALSHA."""
    return "\n".join(Functions(library).text([name])) + CATCH.format(name=name)


def flat(library, name):
    return "\n".join(block(Flattener(library).entry(library.entries[name]))) + "\n"


def library_of_functions(library, names, title):
    """A Redis library of all functions, for FCALL."""
    lines = [f"#!lua name={title}", *Functions(library).text(names)]
    for name in names:
        lines.append(f"redis.register_function('{title}_{name}', function(KEYS, ARGV)" + CATCH.format(name=name) + "end)")
    return "\n".join(lines) + "\n"


def library_of_texts(library, names, title):
    """A Redis library of flat texts, for FCALL."""
    lines = [f"#!lua name={title}"]
    for name in names:
        lines += [f"redis.register_function('{title}_{name}', function(KEYS, ARGV)", flat(library, name) + "end)"]
    return "\n".join(lines) + "\n"
