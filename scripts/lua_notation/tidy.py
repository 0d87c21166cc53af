"""Makes a flat text as short as one that is written by hand.

What is assigned and never read goes, what is never assigned is nil, a declaration and its first assignment are one, and
numbers for commands are texts.
"""

from collections import Counter
from dataclasses import fields, is_dataclass

from .folding import fold, truth
from .short_names import with_short_names
from .tree import (
    Assign, Binary, Break, Call, CallStatement, Do, GenericFor, If, Index, Local, Name, Nil, Number, NumericFor,
    Place, Repeat, Return, String, Unary, Variable, While,
)  # fmt: skip
from .walk import expressions_of, function_name, statements_of, with_blocks


def tidied(block):
    previous = None
    while previous != (shape := measure(block)):
        previous = shape
        block = simplified(block, Usage(block))
    block = merged(block)
    return with_short_names(block)


def measure(block):
    return sum(1 for statement in block for _ in expressions_of(statement))


class Usage:
    """How often each variable is read, and assigned after its declaration."""

    def __init__(self, block):
        self.reads, self.writes, self.initial = Counter(), Counter(), set()
        for node in statements_of(block):
            self.count(node)

    def count(self, node):
        match node:
            case Local():
                if node.values:
                    self.initial.update(map(id, node.names))
                self.read(node.values)
            case Assign():
                for target in node.targets:
                    if isinstance(target, Variable):
                        self.writes[id(target)] += 1
                    else:
                        self.read([target])
                self.read(node.values)
            case CallStatement():
                self.read([node.call])
            case While() | Repeat():
                self.read([node.condition])
            case If():
                self.read([condition for condition, _ in node.branches])
            case NumericFor():
                self.initial.add(id(node.variable))
                self.read(node.bounds)
            case GenericFor():
                self.initial.update(map(id, node.names))
                self.read(node.values)
            case Return():
                self.read(node.values)

    def read(self, nodes):
        for node in nodes:
            for inner in expressions_of(node):
                if isinstance(inner, Variable):
                    self.reads[id(inner)] += 1
                elif type(inner).__name__ == "Lambda":
                    self.initial.update(map(id, inner.parameters))

    def is_nil(self, variable):
        return not self.writes[id(variable)] and id(variable) not in self.initial

    def is_unread(self, variable):
        return isinstance(variable, Variable) and not self.reads[id(variable)]


def is_pure(node):
    """Whether an expression can be left out: it has no effect, and raises no error but those of struct.pack and operators."""
    for inner in expressions_of(node):
        if isinstance(inner, Call):
            match inner.function:
                case Index(table=Name(id="struct"), key=String(value=b"pack")):
                    continue
            return False
        if isinstance(inner, Index) and not isinstance(inner.table, Name):
            return False
    return True


def simplified(block, usage):
    flat = []
    for statement in block:
        flat += simpler(statement, usage)
        if flat and isinstance(flat[-1], (Return, Break)):
            break
    if flat and isinstance(flat[-1], Do):
        # Its locals end with the block around it.
        flat += flat.pop().block
    return flat


def simpler(node, usage):
    node = rewritten(node, usage)
    match node:
        case Local():
            return local(node, usage)
        case Assign():
            return assignment(node, usage)
        case Do():
            block = simplified(node.block, usage)
            if not any(isinstance(inner, (Local, Return, Break)) for inner in block):
                return block
            return [Do(block)]
        case While():
            return [While(node.condition, simplified(node.block, usage))]
        case Repeat():
            return [Repeat(simplified(node.block, usage), node.condition)]
        case NumericFor():
            return [NumericFor(node.variable, node.bounds, simplified(node.block, usage))]
        case GenericFor():
            return [GenericFor(node.names, node.values, simplified(node.block, usage))]
        case If():
            return conditional(node, usage)
    return [node]


def local(node, usage):
    names = list(node.names)
    if not node.values:
        names = [name for name in names if usage.reads[id(name)] and not usage.is_nil(name) or usage.writes[id(name)]]
        return [Local(names, [])] if names else []
    if len(names) == len(node.values):
        kept = [
            (name, value)
            for name, value in zip(names, node.values)
            if not usage.is_unread(name) or usage.writes[id(name)] or not is_pure(value)
        ]
        if not kept:
            return []
        names, values = map(list, zip(*kept))
        return [Local(names, values)]
    while len(names) > 1 and usage.is_unread(names[-1]) and not usage.writes[id(names[-1])]:
        names.pop()
    return [Local(names, node.values)]


def assignment(node, usage):
    if len(node.targets) == len(node.values):
        kept = [
            (target, value)
            for target, value in zip(node.targets, node.values)
            if not (usage.is_unread(target) and is_pure(value)) and target is not value
        ]
        if not kept:
            return []
        targets, values = map(list, zip(*kept))
        return [Assign(targets, values)]
    targets = list(node.targets)
    while len(targets) > 1 and usage.is_unread(targets[-1]):
        targets.pop()
    return [Assign(targets, node.values)]


def conditional(node, usage):
    branches, otherwise = [], node.otherwise
    for condition, block in node.branches:
        if truth(condition) is False:
            continue
        if truth(condition):
            otherwise = block
            break
        branches.append((condition, simplified(block, usage)))
    otherwise = simplified(otherwise, usage) if otherwise else None
    if not branches:
        return simpler(Do(otherwise), usage) if otherwise else []
    if not otherwise and not any(block for _, block in branches) and all(is_pure(condition) for condition, _ in branches):
        return []
    return [If(branches, otherwise or None)]


def rewritten(node, usage):
    """The same statement, in which variables that are never assigned are nil. Blocks stay as they are."""

    def rewrite(part):
        if isinstance(part, Variable):
            return Nil() if usage.is_nil(part) else part
        if isinstance(part, list):
            return [rewrite(element) for element in part]
        if isinstance(part, tuple):
            return tuple(rewrite(element) for element in part)
        if not is_dataclass(part) or isinstance(part, Place) or type(part).__name__ == "Lambda":
            return part
        values = {f.name: rewrite(getattr(part, f.name)) for f in fields(part)}
        made = type(part)(**values)
        if isinstance(made, Call) and function_name(made) in ("redis.call", "redis.pcall"):
            made.arguments = list(map(text_for_command, made.arguments))
        return fold(made) if isinstance(made, (Binary, Unary)) else made

    match node:
        case Local():
            return Local(node.names, rewrite(node.values))
        case Assign():
            targets = [target if isinstance(target, Variable) else rewrite(target) for target in node.targets]
            return Assign(targets, rewrite(node.values))
        case If():
            return If([(condition_of(rewrite(c)), block) for c, block in node.branches], node.otherwise)
        case While():
            return While(rewrite(node.condition), node.block)
        case NumericFor():
            return NumericFor(node.variable, rewrite(node.bounds), node.block)
        case GenericFor():
            return GenericFor(node.names, rewrite(node.values), node.block)
        case CallStatement():
            return CallStatement(rewrite(node.call))
        case Return():
            return Return(rewrite(node.values))
    return node


def text_for_command(node):
    """An argument of a command: a whole number as the text that Redis would make of it, which costs 1,600 instructions."""
    if isinstance(node, Number) and node.value == int(node.value) and abs(node.value) < 1e15:
        return String(b"%d" % node.value)
    return node


def condition_of(node):
    """The same condition, without the operands that do not matter to it."""
    if isinstance(node, Binary) and node.operator in ("and", "or"):
        left, right = condition_of(node.left), condition_of(node.right)
        if truth(right) is (node.operator == "and"):
            return left
        return fold(Binary(node.operator, left, right))
    return node


def merged(block):
    """Joins a declaration with the assignment that follows it."""
    flat = []
    for node in block:
        node = with_blocks(node, merged)
        if isinstance(node, Assign) and flat and isinstance(flat[-1], Local) and not flat[-1].values:
            declared = {id(name) for name in flat[-1].names}
            used = {id(inner) for value in node.values for inner in expressions_of(value) if isinstance(inner, Variable)}
            if all(id(target) in declared for target in node.targets) and not used & declared:
                assigned = {id(target) for target in node.targets}
                rest = [name for name in flat[-1].names if id(name) not in assigned]
                flat.pop()
                if rest:
                    flat.append(Local(rest, []))
                flat.append(Local(node.targets, node.values))
                continue
        flat.append(node)
    return flat
