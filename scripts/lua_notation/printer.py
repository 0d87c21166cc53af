"""The tree as text."""

from .tokens import BINARY, KEYWORDS, UNARY_POWER
from .tree import (
    Assign, Binary, Boolean, Break, Call, CallStatement, Do, GenericFor, If, Index, Lambda, Local, Name, Nil, Number, NumericFor,
    Parenthesis, Repeat, Return, String, Table, Unary, Variable, While,
)  # fmt: skip

WIDTH = 120
NAMED = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 92: "\\\\", 39: "\\'"}
# Operators for which (a op b) op c is not written with parentheses on the left only.
RIGHT_ASSOCIATIVE = ("..", "^")


def quoted(value):
    text = "'"
    for position, byte in enumerate(value):
        if byte in NAMED:
            text += NAMED[byte]
        elif 32 <= byte < 127:
            text += chr(byte)
        else:
            followed_by_digit = position + 1 < len(value) and 48 <= value[position + 1] <= 57
            text += f"\\{byte:03d}" if followed_by_digit else f"\\{byte}"
    return text + "'"


def number(value):
    return str(int(value)) if value == int(value) else repr(value)


def is_name(key):
    text = key.value.decode("latin-1")
    return text.isidentifier() and text.isascii() and text not in KEYWORDS


def expression(node, power=0):
    """The text of an expression that stands beside an operator of this binding power."""
    match node:
        case Name() | Variable():
            return node.id
        case Nil():
            return "nil"
        case Boolean():
            return "true" if node.value else "false"
        case Number():
            text = number(node.value)
            return f"({text})" if node.value < 0 and power > UNARY_POWER else text
        case String():
            return quoted(node.value)
        case Index():
            table = prefix(node.table)
            if isinstance(node.key, String) and is_name(node.key):
                return f"{table}.{node.key.value.decode()}"
            return f"{table}[{expression(node.key)}]"
        case Call():
            return f"{prefix(node.function)}({', '.join(map(expression, node.arguments))})"
        case Parenthesis():
            return f"({expression(node.inner)})"
        case Lambda():
            return f"function({', '.join(map(expression, node.parameters))}) return {expression(node.value)} end"
        case Table():
            return "{" + ", ".join(item(key, value) for key, value in node.items) + "}"
        case Unary():
            operand = expression(node.operand, UNARY_POWER)
            # Two signs without a space would begin a comment.
            space = " " if node.operator == "not" or operand.startswith("-") else ""
            text = f"{node.operator}{space}{operand}"
            return f"({text})" if power > UNARY_POWER else text
        case Binary():
            left, right = BINARY[node.operator]
            own = min(left, right)
            if node.operator in RIGHT_ASSOCIATIVE:
                text = f"{expression(node.left, own + 1)} {node.operator} {expression(node.right, own)}"
            else:
                text = f"{expression(node.left, own)} {node.operator} {expression(node.right, own + 1)}"
            return f"({text})" if power > own else text
    raise AssertionError(node)


def prefix(node):
    text = expression(node)
    return text if isinstance(node, (Name, Variable, Index, Call, Parenthesis)) else f"({text})"


def item(key, value):
    if key is None:
        return expression(value)
    if isinstance(key, String) and is_name(key):
        return f"{key.value.decode()} = {expression(value)}"
    return f"[{expression(key)}] = {expression(value)}"


def block(statements, indentation=""):
    """The lines of a block."""
    lines = []
    for statement in statements:
        lines += statement_lines(statement, indentation)
    return lines


def statement_lines(node, indentation):
    inner = indentation + "  "
    match node:
        case Local():
            head = "local " + ", ".join(map(expression, node.names))
            return wrapped(head, " = ", node.values, indentation) if node.values else filled(head, indentation)
        case Assign():
            return wrapped(", ".join(map(expression, node.targets)), " = ", node.values, indentation)
        case CallStatement():
            return filled(expression(node.call), indentation)
        case Do():
            return [indentation + "do", *block(node.block, inner), indentation + "end"]
        case While():
            head = filled(f"while {expression(node.condition)} do", indentation)
            return [*head, *block(node.block, inner), indentation + "end"]
        case Repeat():
            return [
                indentation + "repeat", *block(node.block, inner), indentation + f"until {expression(node.condition)}",
            ]  # fmt: skip
        case If():
            lines = []
            for position, (condition, branch) in enumerate(node.branches):
                lines += filled(f"{'elseif' if position else 'if'} {expression(condition)} then", indentation)
                lines += block(branch, inner)
            if node.otherwise:
                lines += [indentation + "else", *block(node.otherwise, inner)]
            return [*lines, indentation + "end"]
        case NumericFor():
            bounds = ", ".join(map(expression, node.bounds))
            return [
                *filled(f"for {expression(node.variable)} = {bounds} do", indentation),
                *block(node.block, inner),
                indentation + "end",
            ]
        case GenericFor():
            names, values = ", ".join(map(expression, node.names)), ", ".join(map(expression, node.values))
            return [*filled(f"for {names} in {values} do", indentation), *block(node.block, inner), indentation + "end"]
        case Return():
            return wrapped("return", " ", node.values, indentation) if node.values else [indentation + "return"]
        case Break():
            return [indentation + "break"]
    raise AssertionError(node)


def wrapped(head, between, values, indentation):
    return filled(head + between + ", ".join(map(expression, values)), indentation)


def filled(text, indentation):
    """The text in lines of at most WIDTH characters, broken at spaces outside of strings."""
    lines, indent = [], indentation
    while len(indent) + len(text) > WIDTH:
        end = last_space(text, WIDTH - len(indent))
        if end is None:
            break
        lines.append(indent + text[:end])
        text, indent = text[end + 1 :], indentation + "  "
    return [*lines, indent + text]


def last_space(text, limit):
    found, is_string, position = None, False, 0
    while position < min(limit + 1, len(text)):
        character = text[position]
        if character == "\\":
            position += 1
        elif character == "'":
            is_string = not is_string
        elif character == " " and not is_string and position > 0:
            found = position
        position += 1
    return found
