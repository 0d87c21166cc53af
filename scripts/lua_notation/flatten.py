"""An entry as one flat text: functions are inlined, records are locals, constants are literals.

A call of a function becomes a block:

    local a, b               the results
    do                       or `repeat … until true`, if the function returns early, which is a `break`
      local parameter = …    unless the argument can stand for the parameter
      …
      a, b = …
    end
"""

from collections import Counter
from dataclasses import dataclass

from .folding import fold, truth
from .library import ENTRY_PARAMETERS, GLOBALS, MODULES, lengths
from .syntax import (
    KEYWORDS, LITERALS, Assign, Binary, Boolean, Break, Call, CallStatement, Do, Function, GenericFor, If, Index, Lambda,
    Local, Name, Nil, NotationError, Number, NumericFor, Parenthesis, Repeat, Return, String, Table, Unary, Variable, While,
)  # fmt: skip
from .tidy import SHORT, tidied
from .walk import assigned_names, expressions_of, statements_of

RESERVED = KEYWORDS | GLOBALS | set(MODULES) | {name for names in MODULES.values() for name in names} | {"KEYS", "ARGV"} | set(SHORT.values())
WHOLE_SCRIPT = "the results of a return are the script's reply"


@dataclass(eq=False)
class Bundle:
    """A record in the text: a variable for each field."""

    record: object
    fields: dict


class Scope:
    """What the names of a function mean in the text."""

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


@dataclass
class Frame:
    """The function that is being inlined."""

    function: Function
    results: object  # WHOLE_SCRIPT, or the targets: variables, expressions or bundles
    returned: dict  # locals of the function that are results: a return of them assigns nothing
    are_fresh: bool  # whether nothing has seen the results before
    is_broken: bool = False  # whether a return breaks out of the block


class Flattener:
    def __init__(self, library):
        self.library = library

    def entry(self, function):
        """The statements of the text of an entry."""
        self.names = Counter()
        self.frames = [set()]
        self.above = [function.name]
        scope = Scope()
        for parameter in function.parameters:
            scope.meanings[parameter] = Name(ENTRY_PARAMETERS[parameter])
        frame = Frame(function, WHOLE_SCRIPT, {}, True)
        return tidied(self.block(function.block, scope, frame, is_tail=True))

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

    # Blocks

    def block(self, statements, scope, frame, is_tail, is_loop=False):
        """The flat statements of a block. is_tail: nothing of the function follows it."""
        self.open()
        scope, flat = Scope(scope), []
        for position, statement in enumerate(statements):
            is_last = position == len(statements) - 1
            flat += self.statement(statement, scope, frame, is_tail and is_last, is_loop)
            if flat and isinstance(flat[-1], (Return, Break)):
                break
        self.close()
        return flat

    def statement(self, node, scope, frame, is_tail, is_loop):
        match node:
            case Local():
                return self.local(node, scope, frame)
            case Assign():
                return self.assign(node, scope)
            case CallStatement():
                return self.call_statement(node, scope)
            case Do():
                return [Do(self.block(node.block, scope, frame, is_tail, is_loop))]
            case While():
                return [While(self.value(node.condition, scope), self.block(node.block, scope, frame, False, True))]
            case Repeat():
                raise NotationError(node.place, "`repeat` is not part of the notation: write `while`")
            case If():
                return self.conditional(node, scope, frame, is_tail, is_loop)
            case NumericFor():
                bounds = [self.value(bound, scope) for bound in node.bounds]
                self.open()
                inner = Scope(scope)
                variable = inner.meanings[node.variable] = self.variable(node.variable)
                block = self.block(node.block, inner, frame, False, True)
                self.close()
                return [NumericFor(variable, bounds, block)]
            case GenericFor():
                values = [self.value(value, scope) for value in node.values]
                self.open()
                inner = Scope(scope)
                variables = [self.variable(name) for name in node.names]
                inner.meanings.update(zip(node.names, variables))
                block = self.block(node.block, inner, frame, False, True)
                self.close()
                return [GenericFor(variables, values, block)]
            case Return():
                return self.returned(node, scope, frame, is_tail, is_loop)
            case Break():
                return [Break()]
        raise AssertionError(node)

    def conditional(self, node, scope, frame, is_tail, is_loop):
        branches, otherwise = [], None
        for condition, block in node.branches:
            condition = self.value(condition, scope)
            if truth(condition) is False:
                continue
            flat = self.block(block, scope, frame, is_tail, is_loop)
            if truth(condition):
                otherwise = flat
                break
            branches.append((condition, flat))
        else:
            if node.otherwise is not None:
                otherwise = self.block(node.otherwise, scope, frame, is_tail, is_loop)
        if branches:
            return [If(branches, otherwise)]
        if otherwise and isinstance(otherwise[-1], (Return, Break)) and not any(isinstance(s, Local) for s in otherwise):
            return otherwise
        return [Do(otherwise)] if otherwise else []

    def returned(self, node, scope, frame, is_tail, is_loop):
        if frame.results is WHOLE_SCRIPT:
            if self.is_inlined(node.values, scope):
                return self.inlined(node.values[0], scope, WHOLE_SCRIPT)
            return [Return([self.value(value, scope) for value in node.values])]
        if is_loop:
            raise NotationError(node.place, "a function does not return inside a loop: make the loop's body a function")
        if self.is_inlined(node.values, scope):
            flat = self.inlined(node.values[0], scope, frame.results)
        else:
            flat = self.results(node, scope, frame)
        if not is_tail:
            frame.is_broken = True
            flat.append(Break())
        return flat

    def results(self, node, scope, frame):
        """Assigns what a return returns to the results of the call."""
        targets, values = [], []
        if len(node.values) > len(frame.results):
            for value in node.values[len(frame.results) :]:
                if isinstance(value, Call):
                    return [CallStatement(self.value(value, scope))]
        for target, value in zip(frame.results, node.values):
            meaning = scope.find(value.id) if isinstance(value, Name) else None
            if meaning is target:
                continue
            if isinstance(meaning, Bundle) or isinstance(target, Bundle):
                if not (isinstance(meaning, Bundle) and isinstance(target, Bundle) and meaning.record is target.record):
                    raise NotationError(node.place, "a result is a record in one place and something else in another")
                for field in target.record.all_fields:
                    targets.append(target.fields[field])
                    values.append(meaning.fields[field])
                continue
            targets.append(target)
            values.append(self.value(value, scope))
        missing = frame.results[len(node.values) :]
        if missing and any(isinstance(target, Bundle) for target in missing):
            raise NotationError(node.place, "a record is returned on every path")
        if missing and node.values and isinstance(node.values[-1], Call):
            # The call may have more results than one.
            targets += missing
        elif missing and not frame.are_fresh:
            targets += missing
            values += [Nil()] * len(missing)
        return [Assign(targets, values)] if targets else []

    # Locals and assignments

    def local(self, node, scope, frame):
        if len(node.values) == 1 and isinstance(node.values[0], Call):
            call = node.values[0]
            record = self.record_call(call, scope)
            if record and record[1] in ("new", "read"):
                return self.declared_record(node, call, record, scope, frame)
            if self.is_inlined(node.values, scope):
                return self.declared_results(node, call, scope, frame)
        values = [self.value(value, scope) for value in node.values]
        names = [self.declared(name, frame) for name in node.names]
        fresh = [variable for variable, is_fresh in names if is_fresh]
        scope.meanings.update({name: variable for name, (variable, _) in zip(node.names, names)})
        variables = [variable for variable, _ in names]
        if len(fresh) == len(variables):
            return [Local(variables, values)]
        flat = [Local(fresh, [])] if fresh else []
        return flat + [Assign(variables, values)] if values else flat

    def declared(self, name, frame):
        """The variable for a local of a function, and whether it must be declared: a result has been."""
        result = frame.returned.get(name)
        return (result, False) if result else (self.variable(name), True)

    def declared_record(self, node, call, record, scope, frame):
        record, action = record
        if len(node.names) != 1:
            raise NotationError(node.place, f"{record.name}.{action} is one record")
        name = node.names[0]
        bundle = frame.returned.get(name)
        is_fresh = bundle is None
        values = self.record_values(call, record, action, scope)
        if is_fresh:
            bundle = self.bundle(record, name)
        scope.meanings[name] = bundle
        fields, expressions = values
        variables = [bundle.fields[field] for field in fields]
        rest = [bundle.fields[field] for field in record.all_fields if field not in fields]
        flat = [Local(rest, [])] if is_fresh and rest else []
        if variables:
            flat.append((Local if is_fresh else Assign)(variables, expressions))
        return flat

    def record_values(self, call, record, action, scope):
        """The fields that new or read sets, and the expressions for them."""
        if action == "read":
            if not record.format:
                raise NotationError(call.place, f"{record.name} has no format")
            if not 1 <= len(call.arguments) <= 2:
                raise NotationError(call.place, f"{record.name}.read(text) or {record.name}.read(text, position)")
            arguments = [self.value(argument, scope) for argument in call.arguments]
            return record.unpacked_fields, [Call(module("struct", "unpack"), [record.format, *arguments])]
        if not call.arguments:
            return [], []
        if len(call.arguments) != 1 or not isinstance(call.arguments[0], Table):
            raise NotationError(call.place, f"{record.name}.new() or {record.name}.new({{field = …}})")
        fields, expressions = [], []
        for key, value in call.arguments[0].items:
            if not isinstance(key, String) or key.value.decode() not in record.all_fields:
                raise NotationError(call.place, f"{record.name} has no such field")
            fields.append(key.value.decode())
            expressions.append(self.value(value, scope))
        return fields, expressions

    def declared_results(self, node, call, scope, frame):
        function = self.library.functions[call.function.id]
        flat, targets, fresh = [], [], []
        for position, name in enumerate(node.names):
            result = frame.returned.get(name)
            if result is None:
                record = self.result_record(function, position)
                if record:
                    result = self.bundle(record, name)
                    fresh += result.fields.values()
                else:
                    result = self.variable(name)
                    fresh.append(result)
            targets.append(result)
        if fresh:
            flat.append(Local(fresh, []))
        flat += self.inlined(call, scope, targets, are_fresh=True)
        scope.meanings.update(zip(node.names, targets))
        return flat

    def assign(self, node, scope):
        targets = []
        for target in node.targets:
            if isinstance(target, Name):
                meaning = scope.find(target.id)
                if isinstance(meaning, Bundle):
                    raise NotationError(node.place, f"{target.id} is a record: assign its fields")
                if not isinstance(meaning, Variable):
                    raise NotationError(node.place, f"{target.id} is not a local")
                targets.append(meaning)
            else:
                targets.append(self.value(target, scope))
        if self.is_inlined(node.values, scope):
            return self.inlined(node.values[0], scope, targets)
        return [Assign(targets, [self.value(value, scope) for value in node.values])]

    def call_statement(self, node, scope):
        call = node.call
        if isinstance(call.function, Name) and call.function.id == "refuse":
            if len(call.arguments) != 1:
                raise NotationError(node.place, "refuse(reply)")
            return [Return([self.value(call.arguments[0], scope)])]
        record = self.record_call(call, scope)
        if record and record[1] == "read_into":
            record = record[0]
            meaning = scope.find(call.arguments[0].id) if call.arguments and isinstance(call.arguments[0], Name) else None
            if not isinstance(meaning, Bundle) or meaning.record is not record:
                raise NotationError(node.place, f"{record.name}.read_into({record.name.lower()}, text)")
            read = Call(call.function, call.arguments[1:], node.place)
            fields, expressions = self.record_values(read, record, "read", scope)
            return [Assign([meaning.fields[field] for field in fields], expressions)]
        if self.is_inlined([call], scope):
            return self.inlined(call, scope, [])
        return [CallStatement(self.value(call, scope))]

    # Calls

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

    def inlined(self, call, scope, results, are_fresh=False):
        """The statements of a call. are_fresh: the results are locals that nothing has seen yet."""
        function = self.library.functions[call.function.id]
        if function.name in self.above:
            raise NotationError(call.place, f"{function.name} calls itself")
        if len(call.arguments) > len(function.parameters):
            raise NotationError(call.place, f"{function.name} has {len(function.parameters)} parameters")
        self.above.append(function.name)
        self.open()
        inner, flat = Scope(), []
        assigned = assigned_names(function)
        meanings = [self.argument(argument, scope) for argument in call.arguments]
        passed_records = {id(m.record) for m in meanings if isinstance(m, Bundle)}
        meanings += [Nil()] * (len(function.parameters) - len(meanings))
        for parameter, meaning, argument in zip(function.parameters, meanings, call.arguments + [None] * len(meanings)):
            if parameter in assigned and isinstance(meaning, Bundle):
                raise NotationError(call.place, f"{function.name} assigns to its parameter {parameter}, a record")
            if parameter in assigned or not self.can_stand(meaning, argument, scope, passed_records):
                variable = self.variable(parameter)
                flat.append(Local([variable], [meaning]))
                meaning = variable
            inner.meanings[parameter] = meaning
        returned = self.returned_locals(function, results) if are_fresh else {}
        frame = Frame(function, results, returned, are_fresh)
        flat += self.block(function.block, inner, frame, is_tail=True)
        self.close()
        self.above.pop()
        if frame.is_broken:
            return [Repeat(flat, Boolean(True))]
        if any(isinstance(statement, (Local, Return, Break)) for statement in flat):
            # Nothing follows `return f(x)` in its block.
            return flat if results is WHOLE_SCRIPT else [Do(flat)]
        return flat

    def argument(self, node, scope):
        meaning = scope.find(node.id) if isinstance(node, Name) else None
        return meaning if isinstance(meaning, Bundle) else self.value(node, scope)

    def can_stand(self, meaning, argument, scope, passed_records):
        """Whether the argument itself can stand for the parameter in the function's statements."""
        if isinstance(meaning, (Bundle, Name)) or isinstance(meaning, LITERALS):
            return True
        if not isinstance(meaning, Variable):
            return False
        # A field of a record that the function could assign by its other name is copied.
        if isinstance(argument, Index) and isinstance(argument.table, Name):
            owner = scope.find(argument.table.id)
            return not (isinstance(owner, Bundle) and id(owner.record) in passed_records)
        return True

    def returned_locals(self, function, results):
        """The locals that every return returns in the same place: they can be the results themselves."""
        returns = [node for node in statements_of(function.block) if isinstance(node, Return)]
        found = {}
        if results is WHOLE_SCRIPT:
            return found
        for position, result in enumerate(results):
            names = {
                node.values[position].id
                if position < len(node.values) and isinstance(node.values[position], Name)
                else None
                for node in returns
            }
            if len(names) != 1 or None in names:
                continue
            name = names.pop()
            declarations = [n for n in statements_of(function.block) if isinstance(n, Local) and name in n.names]
            is_loop_variable = any(
                isinstance(n, NumericFor) and n.variable == name or isinstance(n, GenericFor) and name in n.names
                for n in statements_of(function.block)
            )
            at_top = any(declarations[0] is statement for statement in function.block) if declarations else False
            if len(declarations) == 1 and at_top and not is_loop_variable and name not in function.parameters:
                if name not in found:
                    found[name] = result
        return found

    def result_record(self, function, position, above=()):
        """The record that a function returns in this place, if any."""
        if function.name in above:
            return None
        above = (*above, function.name)
        for node in statements_of(function.block):
            if not isinstance(node, Return):
                continue
            if self.is_inlined(node.values, Scope()):
                return self.result_record(self.library.functions[node.values[0].function.id], position, above)
            value = node.values[position] if position < len(node.values) else None
            if not isinstance(value, Name):
                continue
            for declaration in statements_of(function.block):
                if isinstance(declaration, Local) and value.id in declaration.names and len(declaration.values) == 1:
                    call = declaration.values[0]
                    if not isinstance(call, Call):
                        continue
                    record = self.record_call(call, Scope())
                    if record and record[1] in ("new", "read"):
                        return record[0]
                    if self.is_inlined([call], Scope()):
                        inner = self.library.functions[call.function.id]
                        found = self.result_record(inner, declaration.names.index(value.id), above)
                        if found:
                            return found
        return None

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
        if function.name in self.above:
            raise NotationError(node.place, f"{function.name} calls itself")
        if len(node.arguments) > len(function.parameters):
            raise NotationError(node.place, f"{function.name} has {len(function.parameters)} parameters")
        expression = function.block[0].values[0]
        uses = Counter(n.id for n in expressions_of(expression) if isinstance(n, Name))
        inner = Scope()
        for position, parameter in enumerate(function.parameters):
            argument = node.arguments[position] if position < len(node.arguments) else Nil()
            meaning = self.argument(argument, scope)
            is_simple = isinstance(meaning, (Bundle, Variable, Name)) or isinstance(meaning, LITERALS)
            if not is_simple and uses[parameter] > 1:
                raise NotationError(node.place, f"{function.name} uses {parameter} more than once: give the argument a name")
            inner.meanings[parameter] = Parenthesis(meaning) if isinstance(meaning, Call) and has_results(meaning) else meaning
        self.above.append(function.name)
        result = self.value(expression, inner)
        self.above.pop()
        return result


def has_results(call):
    """Whether a call may have more than one result."""
    return not (
        isinstance(call.function, Index)
        and isinstance(call.function.table, Name)
        and (call.function.table.id, call.function.key.value.decode()) in SINGLE
    )


SINGLE = {
    ("redis", "call"), ("redis", "pcall"), ("struct", "pack"), ("string", "sub"), ("string", "format"), ("table", "concat"),
    ("math", "floor"), ("math", "max"), ("math", "min"), ("math", "ceil"),
}  # fmt: skip


def is_expression(function):
    return len(function.block) == 1 and isinstance(function.block[0], Return) and len(function.block[0].values) == 1


def module(table, name):
    return Index(Name(table), String(name.encode()))


def is_module(node, table, name):
    match node:
        case Index(table=Name(id=found), key=String(value=key)):
            return found == table and key == name.encode()
    return False
