"""Goes through a tree."""

from dataclasses import fields, is_dataclass

from .syntax import Assign, Do, GenericFor, If, Name, NumericFor, Place, Repeat, Return, Variable, While


def statements_of(block):
    """All statements of a block and of the blocks inside it."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from statements_of(inner)


def blocks_of(statement):
    if isinstance(statement, If):
        found = [block for _, block in statement.branches]
        return found + ([statement.otherwise] if statement.otherwise else [])
    if isinstance(statement, (Do, While, Repeat, NumericFor, GenericFor)):
        return [statement.block]
    return []


def expressions_of(node):
    """A node and everything below it."""
    yield node
    if isinstance(node, Variable) or not is_dataclass(node):
        return
    for part in fields(node):
        yield from parts_of(getattr(node, part.name))


def parts_of(value):
    if isinstance(value, (list, tuple)):
        for element in value:
            yield from parts_of(element)
    elif is_dataclass(value) and not isinstance(value, Place):
        yield from expressions_of(value)


def assigned_names(function):
    return {
        target.id
        for node in statements_of(function.block)
        if isinstance(node, Assign)
        for target in node.targets
        if isinstance(target, Name)
    }
