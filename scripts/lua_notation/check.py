"""The rules of a library: every name is declared and used, functions are short and flat, entries have a header."""

from .library import GLOBALS, MODULES
from .tree import (
    Assign, Call, CallStatement, Do, GenericFor, If, Index, Local, Name, NumericFor, Repeat, Return, String, Table, While,
)  # fmt: skip
from .walk import blocks_of

MAX_NESTING = 4
MAX_LINES = 50
MAX_FILE_LINES = 400
MAX_WIDTH = 120
HEADER = ("KEYS", "Reply")


class Checker:
    def __init__(self, library):
        self.library = library
        self.findings = []
        self.used = set()

    def run(self):
        for function in [*self.library.functions.values(), *self.library.entries.values()]:
            self.function(function)
        self.used |= self.library.used_by_constants
        for name in [*self.library.constants, *self.library.records, *self.library.functions]:
            if name not in self.used:
                self.find(self.library.places[name], f"{name} is not used")
        for name, comment in self.library.comments.items():
            if not comment and name not in self.library.constants:
                self.find(self.library.places[name], f"{name} has no comment")
        for path in self.library.files:
            lines = path.read_text().splitlines()
            if len(lines) > MAX_FILE_LINES:
                self.findings.append(f"{path}: {len(lines)} lines, more than {MAX_FILE_LINES}")
            if not lines or not lines[0].startswith("--"):
                self.findings.append(f"{path}:1: a file begins with a comment that says what it is about")
            for number, line in enumerate(lines, 1):
                if len(line) > MAX_WIDTH:
                    self.findings.append(f"{path}:{number}: longer than {MAX_WIDTH} characters")
        return self.findings

    def find(self, place, text):
        self.findings.append(f"{place}: {text}")

    def function(self, function):
        if function.is_entry:
            text = "\n".join(function.comment)
            for word in HEADER:
                if word not in text:
                    self.find(function.place, f"the comment of entry {function.name} has no {word}")
        length = function.last_line - function.place.line + 1
        if length > MAX_LINES:
            self.find(function.place, f"{function.name} has {length} lines, more than {MAX_LINES}")
        deepest = depth(function.block)
        if deepest > MAX_NESTING:
            self.find(function.place, f"{function.name} is nested {deepest} deep, more than {MAX_NESTING}")
        scope = {}
        for parameter in function.parameters:
            scope[parameter] = [function.place, 0]
        self.block(function.block, scope)
        for name, (place, uses) in scope.items():
            if not uses and name != "_" and not function.is_entry:
                self.find(place, f"{function.name} does not use its parameter {name}")

    def block(self, statements, outer):
        scope = dict(outer)
        own = []

        def declare(name, place):
            scope[name] = [place, 0]
            own.append((name, scope[name]))

        for node in statements:
            match node:
                case Local():
                    self.expressions(node.values, scope)
                    for name in node.names:
                        declare(name, node.place)
                case Assign():
                    for target in node.targets:
                        if isinstance(target, Name):
                            if target.id not in scope:
                                self.find(node.place, f"{target.id} is not a local")
                        else:
                            self.expressions([target], scope)
                    self.expressions(node.values, scope)
                case CallStatement():
                    self.expressions([node.call], scope)
                case Return():
                    self.expressions(node.values, scope)
                case If():
                    self.expressions([condition for condition, _ in node.branches], scope)
                case While() | Repeat():
                    self.expressions([node.condition], scope)
                case NumericFor():
                    self.expressions(node.bounds, scope)
                    self.loop([node.variable], node, scope)
                    continue
                case GenericFor():
                    self.expressions(node.values, scope)
                    self.loop(node.names, node, scope)
                    continue
            for block in blocks_of(node):
                self.block(block, scope)
        for name, (place, uses) in own:
            # struct.unpack has results before the one that is wanted, and they have names too.
            if not uses and name != "_" and not self.is_one_of_many(name, statements):
                self.find(place, f"{name} is not used")

    def is_one_of_many(self, name, statements):
        return any(isinstance(node, Local) and name in node.names and len(node.names) > 1 for node in statements)

    def loop(self, names, node, scope):
        inner = dict(scope)
        for name in names:
            inner[name] = [node.place, 0]
        self.block(node.block, inner)

    def expressions(self, nodes, scope):
        for node in nodes:
            self.expression(node, scope)

    def expression(self, node, scope):
        match node:
            case Name():
                if node.id in scope:
                    scope[node.id][1] += 1
                elif node.id in self.library.places:
                    self.used.add(node.id)
                elif node.id not in GLOBALS and node.id not in MODULES:
                    self.find(node.place, f"{node.id} is not declared")
            case Index(table=table, key=String()):
                self.expression(table, scope)
            case Table():
                for key, value in node.items:
                    if key is not None:
                        self.expression(key, scope)
                    self.expression(value, scope)
            case Call():
                self.command(node)
                self.expression(node.function, scope)
                self.expressions(node.arguments, scope)
            case _:
                for inner in children(node):
                    self.expression(inner, scope)

    def command(self, call):
        match call.function:
            case Index(table=Name(id="redis"), key=String(value=b"call" | b"pcall")):
                name = call.arguments[0] if call.arguments else None
                if not isinstance(name, String) or name.value != name.value.upper():
                    self.find(call.place, "the name of a command is a literal in capitals")


def children(node):
    return [getattr(node, part) for part in ("left", "right", "operand", "inner", "table", "key") if hasattr(node, part)]


def depth(block):
    deepest = 0
    for statement in block:
        inner = [depth(part) for part in blocks_of(statement)]
        if inner:
            own = 0 if isinstance(statement, Do) else 1
            deepest = max(deepest, own + max(inner))
    return deepest
