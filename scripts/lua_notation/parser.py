"""Reads a Lua file as a tree."""

from .tokens import BINARY, UNARY_POWER, string_bytes, tokens
from .tree import (
    Assign, Binary, Boolean, Break, Call, CallStatement, Do, Function, GenericFor, If, Index, Local, Name, Nil,
    NotationError, Number, NumericFor, Parenthesis, Place, Repeat, Return, String, Table, Unary, While,
)  # fmt: skip


class Parser:
    def __init__(self, text, file):
        self.file = file
        self.tokens, self.comments = tokens(text, file)
        self.position = 0

    # Tokens

    @property
    def text(self):
        kind, text, _ = self.tokens[self.position]
        return text if kind in ("keyword", "symbol") else ""

    @property
    def kind(self):
        return self.tokens[self.position][0]

    @property
    def place(self):
        return Place(self.file, self.tokens[self.position][2])

    def take(self):
        token = self.tokens[self.position]
        self.position += 1
        return token[1]

    def accept(self, text):
        if self.text != text:
            return False
        self.position += 1
        return True

    def expect(self, text):
        if not self.accept(text):
            raise NotationError(self.place, f"expected {text!r}, found {self.tokens[self.position][1]!r}")

    def name(self):
        if self.kind != "name":
            raise NotationError(self.place, f"expected a name, found {self.tokens[self.position][1]!r}")
        return self.take()

    # Files

    def file_statements(self):
        statements = []
        while self.kind != "end":
            statements.append(self.top_level())
        return statements

    def top_level(self):
        place = self.place
        if self.text == "function":
            self.take()
            if self.name() != "entry":
                raise NotationError(place, "at the top level a function is `local function` or `function entry.NAME`")
            self.expect(".")
            return self.function(place, is_entry=True)
        self.expect("local")
        if self.accept("function"):
            return self.function(place, is_entry=False)
        statement = self.local(place)
        statement.comment = self.comment_above(place.line)
        return statement

    def comment_above(self, line):
        found = []
        while line - 1 in self.comments:
            line -= 1
            found.insert(0, self.comments[line])
        return found

    def function(self, place, is_entry):
        name = self.name()
        self.expect("(")
        parameters = []
        while not self.accept(")"):
            parameters.append(self.name())
            if self.text != ")":
                self.expect(",")
        block = self.block()
        last_line = self.place.line
        self.expect("end")
        return Function(name, parameters, block, place, is_entry, last_line, self.comment_above(place.line))

    # Statements

    def block(self):
        statements = []
        while self.text not in ("end", "else", "elseif", "until") and self.kind != "end":
            statement = self.statement()
            if statement is None:
                continue
            statements.append(statement)
            if isinstance(statement, (Return, Break)):
                if self.text not in ("end", "else", "elseif", "until"):
                    raise NotationError(self.place, "what follows is never reached")
                break
        return statements

    def statement(self):
        place = self.place
        if self.accept(";"):
            return None
        if self.accept("local"):
            if self.text == "function":
                raise NotationError(place, "a function stands at the top level of a file")
            return self.local(place)
        if self.accept("if"):
            return self.conditional(place)
        if self.accept("while"):
            condition = self.expression()
            self.expect("do")
            block = self.block()
            self.expect("end")
            return While(condition, block, place)
        if self.accept("for"):
            return self.loop(place)
        if self.accept("do"):
            block = self.block()
            self.expect("end")
            return Do(block, place)
        if self.accept("repeat"):
            block = self.block()
            self.expect("until")
            return Repeat(block, self.expression(), place)
        if self.accept("return"):
            values = [] if self.text in ("end", "else", "elseif", "until", ";") else self.expressions()
            self.accept(";")
            return Return(values, place)
        if self.accept("break"):
            self.accept(";")
            return Break(place)
        return self.assignment(place)

    def local(self, place):
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        return Local(names, self.expressions() if self.accept("=") else [], place)

    def conditional(self, place):
        branches, otherwise = [], None
        condition = self.expression()
        self.expect("then")
        branches.append((condition, self.block()))
        while self.accept("elseif"):
            condition = self.expression()
            self.expect("then")
            branches.append((condition, self.block()))
        if self.accept("else"):
            otherwise = self.block()
        self.expect("end")
        return If(branches, otherwise, place)

    def loop(self, place):
        names = [self.name()]
        if self.accept("="):
            bounds = self.expressions()
            self.expect("do")
            block = self.block()
            self.expect("end")
            return NumericFor(names[0], bounds, block, place)
        while self.accept(","):
            names.append(self.name())
        self.expect("in")
        values = self.expressions()
        self.expect("do")
        block = self.block()
        self.expect("end")
        return GenericFor(names, values, block, place)

    def assignment(self, place):
        first = self.suffixed()
        if isinstance(first, Call):
            return CallStatement(first, place)
        targets = [first]
        while self.accept(","):
            targets.append(self.suffixed())
        self.expect("=")
        for target in targets:
            if not isinstance(target, (Name, Index)):
                raise NotationError(place, "this cannot be assigned to")
        return Assign(targets, self.expressions(), place)

    # Expressions

    def expressions(self):
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        return found

    def expression(self, power=0):
        place = self.place
        if self.text in ("not", "-", "#"):
            operator = self.take()
            operand = self.expression(UNARY_POWER)
            if operator == "-" and isinstance(operand, Number) and operand.value:
                left = Number(-operand.value, place)
            else:
                left = Unary(operator, operand, place)
        else:
            left = self.simple()
        while self.text in BINARY and BINARY[self.text][0] > power:
            operator = self.take()
            left = Binary(operator, left, self.expression(BINARY[operator][1]), place)
        return left

    def simple(self):
        place, kind = self.place, self.kind
        if kind == "number":
            text = self.take()
            return Number(float(int(text, 16)) if text[:2] in ("0x", "0X") else float(text), place)
        if kind == "string":
            return String(string_bytes(self.take()), place)
        if self.accept("nil"):
            return Nil(place)
        if self.text in ("true", "false"):
            return Boolean(self.take() == "true", place)
        if self.text == "{":
            return self.table(place)
        if self.text == "function":
            raise NotationError(place, "a function stands at the top level of a file")
        return self.suffixed()

    def table(self, place):
        self.expect("{")
        items = []
        while not self.accept("}"):
            if self.accept("["):
                key = self.expression()
                self.expect("]")
                self.expect("=")
                items.append((key, self.expression()))
            elif self.kind == "name" and self.tokens[self.position + 1][1] == "=":
                key = String(self.take().encode(), place)
                self.expect("=")
                items.append((key, self.expression()))
            else:
                items.append((None, self.expression()))
            if self.text != "}" and not self.accept(";"):
                self.expect(",")
        return Table(items, place)

    def suffixed(self):
        place = self.place
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            # Parentheses mean something only around a call.
            left = Parenthesis(inner, place) if isinstance(inner, Call) else inner
        else:
            left = Name(self.name(), place)
        while True:
            if self.accept("."):
                left = Index(left, String(self.name().encode(), place), place)
            elif self.accept("["):
                left = Index(left, self.expression(), place)
                self.expect("]")
            elif self.text == "(":
                left = Call(left, self.call_arguments(), place)
            elif self.text == "{" or self.kind == "string":
                left = Call(left, [self.simple()], place)
            else:
                return left

    def call_arguments(self):
        self.expect("(")
        if self.accept(")"):
            return []
        found = self.expressions()
        self.expect(")")
        return found


def parse(text, file):
    return Parser(text, file).file_statements()
