"""An entry as one flat text: functions are inlined, records are locals, constants are literals.

A call of a function becomes a block:

    local a, b               the results
    do                       or `repeat … until true`, if the function returns early, which is a `break`
      local parameter = …    unless the argument can stand for the parameter
      …
      a, b = …
    end
"""

from dataclasses import dataclass

from .expressions import Bundle, Expressions, Scope, is_expression, module
from .folding import truth
from .library import ENTRY_PARAMETERS
from .syntax import (
    LITERALS, Assign, Boolean, Break, Call, CallStatement, Do, Function, GenericFor, If, Index, Local, Name, Nil,
    NotationError, NumericFor, Repeat, Return, String, Table, Variable, While,
)  # fmt: skip
from .tidy import tidied
from .walk import always_returns, assigned_names, has_effect, statements_of

WHOLE_SCRIPT = "the results of a return are the script's reply"


@dataclass
class Frame:
    """The function that is being inlined."""

    function: Function
    results: object  # WHOLE_SCRIPT, or the targets: variables, expressions or bundles
    returned: dict  # locals of the function that are results: a return of them assigns nothing
    are_fresh: bool  # whether nothing has seen the results before
    is_broken: bool = False  # whether a return breaks out of the block


class Flattener(Expressions):
    """The blocks, statements and calls of an entry."""

    def entry(self, function):
        """The statements of the text of an entry."""
        self.above.append(function.name)
        scope = Scope()
        for parameter in function.parameters:
            scope.meanings[parameter] = Name(ENTRY_PARAMETERS[parameter])
        frame = Frame(function, WHOLE_SCRIPT, {}, True)
        return tidied(self.block(function.block, scope, frame, is_tail=True))

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
                if not is_loop:
                    raise NotationError(node.place, "`break` stands inside a loop")
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
                return self.inlined(node.values[0], scope, WHOLE_SCRIPT, is_tail=is_tail)
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
        targets, values, records = [], [], []
        for target, value in zip(frame.results, node.values):
            meaning = scope.find(value.id) if isinstance(value, Name) else None
            if isinstance(meaning, Bundle):
                if any(meaning is other for other in records):
                    raise NotationError(node.place, f"{value.id}, a record, is returned twice")
                records.append(meaning)
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
        return self.assigned_with(targets, values, self.beyond(node.values[len(frame.results) :], scope))

    def beyond(self, values, scope):
        """Of the values that nobody wants, those that must be evaluated all the same."""
        named = [isinstance(value, Name) and isinstance(scope.find(value.id), Bundle) for value in values]
        found = [self.value(value, scope) for value, is_record in zip(values, named) if not is_record]
        return [value for value in found if has_effect(value)]

    def assigned_with(self, targets, values, others):
        """An assignment that evaluates other values too."""
        if not targets and len(others) == 1 and isinstance(others[0], Call):
            return [CallStatement(others[0])]
        unused = [self.variable("_") for _ in others]
        flat = [Local(unused, [])] if unused else []
        return [*flat, Assign([*targets, *unused], [*values, *others])] if targets or unused else []

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
            flat, targets = self.fixed(targets, node.values[0], scope)
            return flat + self.inlined(node.values[0], scope, targets)
        return [Assign(targets, [self.value(value, scope) for value in node.values])]

    def fixed(self, targets, call, scope):
        """Targets that a call does not change: Lua finds an element of a table before it calls the function."""
        flat, found = [], []
        if is_expression(self.library.functions[call.function.id]) and not self.may_have_effect(call):
            return flat, targets
        passed = self.passed_fields(self.argument(argument, scope) for argument in call.arguments)
        for target in targets:
            if isinstance(target, Index):
                parts = []
                for part in (target.table, target.key):
                    if not (isinstance(part, (Name, LITERALS)) or isinstance(part, Variable) and id(part) not in passed):
                        variable = self.variable("place")
                        flat.append(Local([variable], [part]))
                        part = variable
                    parts.append(part)
                target = Index(*parts)
            found.append(target)
        return flat, found

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

    def inlined(self, call, scope, results, are_fresh=False, is_tail=True):
        """The statements of a call. are_fresh: the results are locals that nothing has seen yet."""
        function = self.library.functions[call.function.id]
        self.open()
        inner, flat = Scope(), []
        assigned = assigned_names(function)
        meanings = self.arguments(call, function, scope)
        passed = self.passed_fields(meanings)
        for parameter, meaning in zip(function.parameters, meanings):
            if parameter in assigned and isinstance(meaning, Bundle):
                raise NotationError(call.place, f"{function.name} assigns to its parameter {parameter}, a record")
            if parameter in assigned or not self.can_stand(meaning, passed):
                variable = self.variable(parameter)
                flat.append(Local([variable], [meaning]))
                meaning = variable
            inner.meanings[parameter] = meaning
        self.above.append(function.name)
        returns = always_returns(function.block)
        returned = self.returned_locals(function, results) if are_fresh and returns else {}
        frame = Frame(function, results, returned, are_fresh)
        block = function.block
        if not returns and self.must_return(results, are_fresh, is_tail):
            block = [*block, Return([], function.place)]
        flat += self.block(block, inner, frame, is_tail=is_tail or results is not WHOLE_SCRIPT)
        self.close()
        self.above.pop()
        if frame.is_broken:
            return [Repeat(flat, Boolean(True))]
        if any(isinstance(statement, (Local, Return, Break)) for statement in flat):
            # Nothing follows `return f(x)` in its block.
            return flat if results is WHOLE_SCRIPT else [Do(flat)]
        return flat

    def must_return(self, results, are_fresh, is_tail):
        """Whether a function that may end without a return needs one there, which returns nothing."""
        if results is WHOLE_SCRIPT:
            return not is_tail
        return bool(results) and (not are_fresh or any(isinstance(result, Bundle) for result in results))

    def passed_fields(self, meanings):
        """The variables that a function could assign as fields of the records that it gets."""
        return {id(variable) for meaning in meanings if isinstance(meaning, Bundle) for variable in meaning.fields.values()}

    def can_stand(self, meaning, passed):
        """Whether the argument itself can stand for the parameter in the function's statements."""
        if isinstance(meaning, Variable):
            return id(meaning) not in passed
        return isinstance(meaning, (Bundle, Name)) or isinstance(meaning, LITERALS)

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
