"""Locals, records and assignments: each field of a record is a local of the text."""

from .calls import Calls
from .expressions import Bundle, is_expression, module
from .tree import LITERALS, Assign, Call, Index, Local, Name, NotationError, String, Table, Variable


class Declarations(Calls):
    """Locals, records and assignments."""

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
