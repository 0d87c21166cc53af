"""Gives a text locals for the functions of Redis and Lua, the keys and the arguments that it uses more than once.

A local costs about what one use of the full name costs. So each is declared where it is certain to be wanted: in the
innermost block that uses it often enough, before the first statement that does.
"""

from collections import Counter
from dataclasses import fields, is_dataclass

from .library import MODULES
from .tree import (
    Do, GenericFor, If, Index, Local, Name, NumericFor, Place, Repeat, String, Variable, While,
)  # fmt: skip
from .walk import blocks_of, expressions_of, with_blocks

SHORT = {
    ("struct", "pack"): "pack", ("struct", "unpack"): "unpacked", ("redis", "pcall"): "try", "KEYS": "keys", "ARGV": "arguments",
}  # fmt: skip

# How many uses in a run of a block are worth a local.
WORTH = 2
# How often a run of a statement runs a block inside it, roughly.
IN_BRANCH, IN_LOOP = 0.3, 2


def with_short_names(block):
    """The same block. A name that has a local in it is short in all of its statements after the declaration."""
    uses = [uses_of(statement) for statement in block]
    declared = {}
    for name in sorted(sum(uses, Counter()), key=short_name):
        if sum(used[name] for used in uses) > WORTH:
            first = next(position for position, used in enumerate(uses) if used[name])
            declared.setdefault(first, []).append(name)
    found, shorts = [], set()
    for position, statement in enumerate(block):
        names = declared.get(position)
        if names:
            found.append(Local([Name(short_name(name)) for name in names], [full_name(name) for name in names]))
            shorts.update(names)
        found.append(with_blocks(shortened(statement, shorts), with_short_names))
    return found


def uses_of(statement):
    """How often a run of a statement uses each name, roughly."""
    uses = Counter()
    for part in parts_beside_blocks(statement):
        for node in expressions_of(part):
            name = name_of(node)
            if name:
                uses[name] += 1
    factor = {If: IN_BRANCH, Do: 1, Repeat: 1}.get(type(statement), IN_LOOP)
    for inner in blocks_of(statement):
        for used in map(uses_of, inner):
            for name, count in used.items():
                uses[name] += factor * count
    return uses


def parts_beside_blocks(statement):
    match statement:
        case If():
            return [condition for condition, _ in statement.branches]
        case While() | Repeat():
            return [statement.condition]
        case NumericFor():
            return statement.bounds
        case GenericFor():
            return statement.values
        case Do():
            return []
    return [statement]


def shortened(part, shorts):
    """The same statement, expression or list of them, with the short names."""
    if isinstance(part, list):
        return [shortened(element, shorts) for element in part]
    if isinstance(part, tuple):
        return tuple(shortened(element, shorts) for element in part)
    if isinstance(part, (Variable, Place)) or not is_dataclass(part):
        return part
    name = name_of(part)
    if name in shorts:
        return Name(short_name(name))
    return type(part)(**{f.name: shortened(getattr(part, f.name), shorts) for f in fields(part)})


def name_of(node):
    """What a node names: a function of a module, the keys or the arguments."""
    match node:
        case Name(id="KEYS" | "ARGV"):
            return node.id
        case Index(table=Name(id=table), key=String(value=part)) if table in MODULES:
            return table, part.decode()
    return None


def short_name(name):
    return SHORT[name] if name in SHORT else name[1]


def full_name(name):
    return Name(name) if isinstance(name, str) else Index(Name(name[0]), String(name[1].encode()))
