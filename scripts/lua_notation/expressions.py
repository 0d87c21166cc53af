"""The expressions of an entry as its text has them: what each name means, and calls of functions that are one expression.

The arguments of such a call take the place of its parameters, in an order and on paths that must be those of Lua.
"""

from collections import Counter
from dataclasses import dataclass

from .folding import fold
from .library import GLOBALS, MODULES, lengths
from .short_names import SHORT
from .tokens import KEYWORDS
from .tree import (
    LITERALS, Binary, Call, Index, Lambda, Name, Nil, NotationError, Parenthesis, Return, String, Table, Unary, Variable,
)  # fmt: skip
from .walk import expressions_of, has_effect, has_several_results

PARTS = {name for names in MODULES.values() for name in names}
RESERVED = KEYWORDS | GLOBALS | set(MODULES) | PARTS | {"KEYS", "ARGV"} | set(SHORT.values())


@dataclass(eq=False)
class Bundle:
    """A record in the text: a variable for each field."""

    record: object
    fields: dict


class Scope:
    """The meanings that the names of a function have in the text."""

    def __init__(self, outer=None):
        self.outer = outer
        self.meanings = {}

    def find(self, name):
        scope = self
        while scope:
            if name in scope.meanings:
                return scope.meanings[name]
            scope = scope.outer
        return None


class Expressions:
    """Expressions, for blocks and calls. `names` counts the locals that can be seen, `frames` has those of each block."""

    def __init__(self, library):
        self.library = library
        self.names, self.frames, self.above = Counter(), [set()], []

    # Names

    def variable(self, name):
        """A local of the text: its name is not that of another one that can be seen here."""
        found, number = name, 1
        while found in RESERVED or self.names[found]:
            number += 1
            found = f"{name}_{number}"
        self.names[found] += 1
        self.frames[-1].add(found)
        return Variable(found)

    def open(self):
        self.frames.append(set())

    def close(self):
        for name in self.frames.pop():
            self.names[name] -= 1

    def bundle(self, record, name):
        return Bundle(record, {field: self.variable(f"{name}_{field}") for field in record.all_fields})

    def is_inlined(self, values, scope):
        """Whether this is one call of a function of the library, as a statement."""
        if len(values) != 1 or not isinstance(values[0], Call) or not isinstance(values[0].function, Name):
            return False
        name = values[0].function.id
        return scope.find(name) is None and name in self.library.functions

    def record_call(self, call, scope):
        """The record and the action of Record.action(…)."""
        match call.function:
            case Index(table=Name(id=name), key=String()) if scope.find(name) is None and name in self.library.records:
                return self.library.records[name], call.function.key.value.decode()
        return None

    def argument(self, node, scope):
        meaning = scope.find(node.id) if isinstance(node, Name) else None
        return meaning if isinstance(meaning, Bundle) else self.value(node, scope)

    def arguments(self, call, function, scope):
        """The argument that each parameter of a function gets, in the order of the parameters."""
        missing = len(function.parameters) - len(call.arguments)
        if function.name in self.above:
            raise NotationError(call.place, f"{function.name} calls itself")
        if missing < 0:
            raise NotationError(call.place, f"{function.name} has {len(function.parameters)} parameters")
        found = [self.argument(argument, scope) for argument in call.arguments]
        if missing and found and isinstance(found[-1], Call) and has_several_results(found[-1]):
            message = f"the last argument of {function.name} may have several results: give them names"
            raise NotationError(call.place, message)
        return found + [Nil()] * missing

    # Expressions

    def value(self, node, scope):
        match node:
            case Name():
                return self.named(node, scope)
            case Index():
                return self.indexed(node, scope)
            case Call():
                return self.called(node, scope)
            case Binary():
                return fold(Binary(node.operator, self.value(node.left, scope), self.value(node.right, scope)))
            case Unary():
                return fold(Unary(node.operator, self.value(node.operand, scope)))
            case Parenthesis():
                return Parenthesis(self.value(node.inner, scope))
            case Table():
                return Table([
                    (self.value(key, scope) if key is not None else None, self.value(value, scope))
                    for key, value in node.items
                ])  # fmt: skip
        return node

    def named(self, node, scope):
        meaning = scope.find(node.id)
        if isinstance(meaning, Bundle):
            raise NotationError(node.place, f"{node.id} is a record: only its fields are values")
        if meaning is not None:
            return meaning
        if node.id in self.library.constants:
            return self.library.constants[node.id]
        if node.id in self.library.functions or node.id in self.library.records:
            raise NotationError(node.place, f"{node.id} is not a value")
        if node.id in GLOBALS or node.id in MODULES:
            return Name(node.id)
        raise NotationError(node.place, f"{node.id} is not declared")

    def indexed(self, node, scope):
        if isinstance(node.table, Name):
            name = node.table.id
            meaning = scope.find(name)
            if isinstance(meaning, Bundle):
                field = node.key.value.decode() if isinstance(node.key, String) else None
                if field not in meaning.fields:
                    raise NotationError(node.place, f"{meaning.record.name} has no field {field}")
                return meaning.fields[field]
            if meaning is None and name in self.library.records:
                record, part = self.library.records[name], node.key.value.decode()
                if part not in ("format", "size") or getattr(record, part) is None:
                    raise NotationError(node.place, f"{name} has no {part}")
                return getattr(record, part)
            if meaning is None and name in MODULES:
                part = node.key.value.decode() if isinstance(node.key, String) else None
                if part not in MODULES[name]:
                    raise NotationError(node.place, f"{name} has no {part}")
                return module(name, part)
        return Index(self.value(node.table, scope), self.value(node.key, scope))

    def called(self, node, scope):
        record = self.record_call(node, scope)
        if record:
            if record[1] != "write":
                raise NotationError(node.place, f"{record[0].name}.{record[1]} is a statement of its own")
            return self.written(node, record[0], scope)
        if self.is_inlined([node], scope):
            return self.substituted(node, scope)
        if isinstance(node.function, Name) and node.function.id == "refuse":
            raise NotationError(node.place, "refuse is a statement of its own")
        function = self.value(node.function, scope)
        if is_module(function, "table", "sort") and len(node.arguments) == 2:
            return Call(function, [self.value(node.arguments[0], scope), self.comparison(node.arguments[1], scope)])
        arguments = [self.value(argument, scope) for argument in node.arguments]
        return Call(function, arguments)

    def comparison(self, node, scope):
        """The function that table.sort gets: one of the library that is one expression."""
        function = self.library.functions.get(node.id) if isinstance(node, Name) else None
        if not function or not is_expression(function):
            raise NotationError(node.place, "table.sort gets a function of the library that is one `return EXPRESSION`")
        self.open()
        inner = Scope()
        variables = [self.variable(name) for name in function.parameters]
        inner.meanings.update(zip(function.parameters, variables))
        value = self.value(function.block[0].values[0], inner)
        self.close()
        return Lambda(variables, value)

    def written(self, node, record, scope):
        """struct.pack of all fields; the length of one that has it before it ("Hc0") is packed too."""
        meaning = scope.find(node.arguments[0].id) if len(node.arguments) == 1 and isinstance(node.arguments[0], Name) else None
        if not isinstance(meaning, Bundle) or meaning.record is not record:
            raise NotationError(node.place, f"{record.name}.write({record.name.lower()})")
        arguments = [record.format]
        for field, has_length in zip(record.fields, lengths(record)):
            variable = meaning.fields[field]
            arguments += [Unary("#", variable), variable] if has_length else [variable]
        return Call(module("struct", "pack"), arguments)

    def substituted(self, node, scope):
        """A call inside an expression: of a function that is one expression."""
        function = self.library.functions[node.function.id]
        if not is_expression(function):
            raise NotationError(node.place, f"{function.name} is called by a statement of its own: local … = {function.name}(…)")
        expression = function.block[0].values[0]
        uses = Counter(n.id for n in expressions_of(expression) if isinstance(n, Name))
        inner = Scope()
        meanings = self.arguments(node, function, scope)
        for parameter, meaning in zip(function.parameters, meanings):
            is_simple = isinstance(meaning, (Bundle, Variable, Name)) or isinstance(meaning, LITERALS)
            if not is_simple and uses[parameter] > 1:
                raise NotationError(node.place, f"{function.name} uses {parameter} more than once: give the argument a name")
            is_cut = isinstance(meaning, Call) and has_several_results(meaning)
            inner.meanings[parameter] = Parenthesis(meaning) if is_cut else meaning
        self.check_order(node, function, meanings)
        self.above.append(function.name)
        result = self.value(expression, inner)
        self.above.pop()
        return result

    def check_order(self, call, function, meanings):
        """Refuses an argument that the text would evaluate at another time than Lua does, if that makes a difference."""
        arguments = dict(zip(function.parameters, meanings))
        last, has_called, certain = -1, False, set()
        for node, is_certain in evaluation(function.block[0].values[0]):
            if isinstance(node, Call):
                has_called = has_called or self.may_have_effect(node)
            elif is_certain and node.id in arguments:
                certain.add(node.id)
            if isinstance(node, Call) or not reads_or_writes(arguments.get(node.id)):
                continue
            position = function.parameters.index(node.id)
            if has_called or position < last:
                message = f"the argument {node.id} of {function.name} is evaluated before: give it a name"
                raise NotationError(call.place, message)
            last = position if has_effect(meanings[position]) else last
        for name, meaning in arguments.items():
            if name not in certain and not isinstance(meaning, Bundle) and has_effect(meaning):
                message = f"the argument {name} of {function.name} is always evaluated: give it a name"
                raise NotationError(call.place, message)

    def may_have_effect(self, call):
        """Whether a call inside an expression of the library has an effect."""
        function = self.library.functions.get(call.function.id) if isinstance(call.function, Name) else None
        if not function:
            return has_effect(call)
        expression = function.block[0].values[0]
        return any(isinstance(node, Call) and self.may_have_effect(node) for node in expressions_of(expression))


def evaluation(node, is_certain=True):
    """The names and the calls of an expression in the order in which Lua evaluates them, and whether it always does."""
    if isinstance(node, Binary) and node.operator in ("and", "or"):
        yield from evaluation(node.left, is_certain)
        yield from evaluation(node.right, False)
        return
    if isinstance(node, Name):
        yield node, is_certain
    for part in children(node):
        yield from evaluation(part, is_certain)
    if isinstance(node, Call):
        yield node, is_certain


def children(node):
    """The expressions inside an expression, in the order in which Lua evaluates them."""
    match node:
        case Index():
            return [node.table, node.key]
        case Call():
            return [node.function, *node.arguments]
        case Binary():
            return [node.left, node.right]
        case Unary():
            return [node.operand]
        case Parenthesis():
            return [node.inner]
        case Table():
            return [part for item in node.items for part in item if part is not None]
    return []


def reads_or_writes(node):
    """Whether an argument depends on when it is evaluated: it has an effect, or reads a table."""
    if node is None or isinstance(node, (Bundle, Variable)):
        return False
    return has_effect(node) or any(
        isinstance(inner, Index) and not isinstance(inner.table, Name) or isinstance(inner, Unary) and inner.operator == "#"
        for inner in expressions_of(node)
    )


def is_expression(function):
    return len(function.block) == 1 and isinstance(function.block[0], Return) and len(function.block[0].values) == 1


def module(table, name):
    return Index(Name(table), String(name.encode()))


def is_module(node, table, name):
    """Whether an expression is this function of a module."""
    match node:
        case Index(table=Name(id=found), key=String(value=key)):
            return found == table and key == name.encode()
    return False
