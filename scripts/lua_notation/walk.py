"""Goes through a tree, and answers what several steps ask about it.

A call has an effect if what is evaluated before and after it matters: a command of Redis, or the change of a table.
"""

from dataclasses import fields, is_dataclass

from .tree import (
    Assign, Call, CallStatement, Do, GenericFor, If, Index, Name, NumericFor, Place, Repeat, Return, String, Variable, While,
)  # fmt: skip

# The functions of Redis and Lua that may have more or less than one result.
SEVERAL_RESULTS = {
    "string.byte", "string.find", "string.gsub", "string.match", "struct.unpack", "table.remove", "unpack", "select", "next",
    "pairs", "ipairs",
}  # fmt: skip
EFFECTS = {"redis.call", "redis.pcall", "redis.log", "table.insert", "table.remove", "table.sort"}


def function_name(call):
    """The name of the function of Redis or Lua that is called; None for another one."""
    match call.function:
        case Index(table=Name(id=table), key=String(value=key)):
            return f"{table}.{key.decode()}"
        case Name(id=name):
            return name
    return None


def has_several_results(call):
    """Whether a call may have more or less than one result."""
    name = function_name(call)
    return name is None or name in SEVERAL_RESULTS


def has_effect(node):
    """Whether Redis or a table shows that an expression was evaluated."""
    return any(isinstance(inner, Call) and function_name(inner) in EFFECTS for inner in expressions_of(node))


def always_returns(block):
    """Whether the end of a block is never reached."""
    match block[-1] if block else None:
        case Return() | CallStatement(call=Call(function=Name(id="refuse"))):
            return True
        case Do(block=inner):
            return always_returns(inner)
        case If(branches=branches, otherwise=otherwise) if otherwise is not None:
            return always_returns(otherwise) and all(always_returns(inner) for _, inner in branches)
    return False


def statements_of(block):
    """All statements of a block and of the blocks inside it."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from statements_of(inner)


def blocks_of(statement):
    """The blocks of a statement."""
    if isinstance(statement, If):
        found = [block for _, block in statement.branches]
        return found + ([statement.otherwise] if statement.otherwise else [])
    if isinstance(statement, (Do, While, Repeat, NumericFor, GenericFor)):
        return [statement.block]
    return []


def with_blocks(node, change):
    """The same statement with other blocks: `change` makes each of them."""
    match node:
        case If():
            return If([(c, change(b)) for c, b in node.branches], change(node.otherwise) if node.otherwise else None)
        case Do():
            return Do(change(node.block))
        case While():
            return While(node.condition, change(node.block))
        case Repeat():
            return Repeat(change(node.block), node.condition)
        case NumericFor():
            return NumericFor(node.variable, node.bounds, change(node.block))
        case GenericFor():
            return GenericFor(node.names, node.values, change(node.block))
    return node


def expressions_of(node):
    """A node and everything below it."""
    yield node
    if isinstance(node, Variable) or not is_dataclass(node):
        return
    for part in fields(node):
        yield from parts_of(getattr(node, part.name))


def parts_of(value):
    """The nodes in what a field of a node holds, and everything below them."""
    if isinstance(value, (list, tuple)):
        for element in value:
            yield from parts_of(element)
    elif is_dataclass(value) and not isinstance(value, Place):
        yield from expressions_of(value)


def assigned_names(function):
    """The names that a function assigns to."""
    return {
        target.id
        for node in statements_of(function.block)
        if isinstance(node, Assign)
        for target in node.targets
        if isinstance(target, Name)
    }
