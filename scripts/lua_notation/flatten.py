"""An entry as one flat text: functions are inlined, records are locals, constants are literals.

A call of a function becomes a block:

    local a, b               the results
    do                       or `repeat … until true`, if the function returns early, which is a `break`
      local parameter = …    unless the argument can stand for the parameter
      …
      a, b = …
    end
"""

from .calls import WHOLE_SCRIPT, Frame
from .declarations import Declarations
from .expressions import Bundle, Scope
from .folding import truth
from .library import ENTRY_PARAMETERS
from .tidy import tidied
from .tree import (
    Assign, Break, Call, CallStatement, Do, GenericFor, If, Local, Name, Nil, NotationError, NumericFor, Repeat, Return, While,
)  # fmt: skip
from .walk import has_effect


class Flattener(Declarations):
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
