"""Calls of functions that are statements: the body of the function, in the place of the call."""

from dataclasses import dataclass

from .expressions import Bundle, Expressions, Scope
from .tree import (
    LITERALS, Boolean, Break, Call, Do, Function, GenericFor, Local, Name, NotationError, NumericFor, Repeat, Return, Variable,
)  # fmt: skip
from .walk import always_returns, assigned_names, statements_of

WHOLE_SCRIPT = "the results of a return are the script's reply"


@dataclass
class Frame:
    """The function that is being inlined."""

    function: Function
    results: object  # WHOLE_SCRIPT, or the targets: variables, expressions or bundles
    returned: dict  # locals of the function that are results: a return of them assigns nothing
    are_fresh: bool  # whether nothing has seen the results before
    is_broken: bool = False  # whether a return breaks out of the block


class Calls(Expressions):
    """The calls of functions that are statements."""

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
