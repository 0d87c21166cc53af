"""Computes what is known before a script runs: operators whose operands are literals, as Lua 5.1 computes them.

A result that is not finite, or a zero below zero, is left to Lua.
"""

import math

from .tree import LITERALS, Binary, Boolean, Call, Nil, Number, Parenthesis, String, Unary
from .walk import has_several_results


def is_literal(node):
    return isinstance(node, LITERALS)


def truth(node):
    """Whether a condition is true; None if that is not known."""
    return not (isinstance(node, Nil) or isinstance(node, Boolean) and not node.value) if is_literal(node) else None


ARITHMETIC = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a - math.floor(a / b) * b,
    "^": math.pow,
}
COMPARISON = {"<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b}


def fold(node):
    """The same expression; operands that are literals are computed."""
    if isinstance(node, Unary):
        operand = node.operand
        if node.operator == "not" and truth(operand) is not None:
            return Boolean(not truth(operand))
        if node.operator == "-" and isinstance(operand, Number) and operand.value:
            return Number(-operand.value)
        if node.operator == "#" and isinstance(operand, String):
            return Number(float(len(operand.value)))
        return node
    left, right, operator = node.left, node.right, node.operator
    if operator == "..":
        return joined(node)
    if operator == "and" and truth(left) is not None:
        return one_result(right) if truth(left) else left
    if operator == "or" and truth(left) is not None:
        return left if truth(left) else one_result(right)
    if operator in ("==", "~=") and is_literal(left) and is_literal(right):
        equal = type(left) is type(right) and (isinstance(left, Nil) or left.value == right.value)
        return Boolean(equal == (operator == "=="))
    if isinstance(left, Number) and isinstance(right, Number):
        if operator in ARITHMETIC:
            return computed(node)
        if operator in COMPARISON:
            return Boolean(COMPARISON[operator](left.value, right.value))
    return node


def one_result(node):
    """An operand of `and` and `or` is one value, also when the operator is gone."""
    return Parenthesis(node) if isinstance(node, Call) and has_several_results(node) else node


def computed(node):
    try:
        value = ARITHMETIC[node.operator](float(node.left.value), float(node.right.value))
    except (ArithmeticError, ValueError):
        return node
    return Number(value) if math.isfinite(value) and str(value) != "-0.0" else node


def operands(node):
    """The operands of a chain of `..`."""
    if isinstance(node, Binary) and node.operator == "..":
        return operands(node.left) + operands(node.right)
    return [node]


def joined(node):
    """A chain of `..`, in which literals that meet are one."""
    parts = []
    for operand in operands(node):
        if parts and isinstance(operand, String) and isinstance(parts[-1], String):
            parts[-1] = String(parts[-1].value + operand.value)
        elif not (isinstance(operand, String) and not operand.value):
            parts.append(operand)
    if not parts:
        return String(b"")
    if len(parts) == 1 and not isinstance(parts[0], String):
        # '' .. x makes a string of a number.
        return Binary("..", String(b""), parts[0])
    result = parts.pop()
    while parts:
        result = Binary("..", parts.pop(), result)
    return result
