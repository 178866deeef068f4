"""Loop programs in C: the second printer of `numba_backend/loops`.

    static void sum_rows(int64_t lo, int64_t hi, const float *restrict x, float *restrict out, int64_t n0) {
        float acc;
        for (int64_t i = lo; i < hi; ++i) {
            acc = 0.0f;
            ...

Types are Numba's (`loops/typing.py`), so operands are cast where C would choose another type. Only what a kernel stores
to is not `const`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

from ...hlo.errors import UnsupportedError
from ..loops.expressions import Binary, Call, Expr, Load, Name, Number, Unary
from ..loops.statements import (
    Assign,
    Augment,
    Block,
    Break,
    Comment,
    Continue,
    For,
    If,
    LocalArray,
    LoopProgram,
    Return,
    Statement,
    Store,
    While,
    expressions_of,
    walk,
)
from ..loops.typing import is_float, is_integer, pointee, type_of_binary
from .c_functions import C_TYPES, CFunctions
from .ir_to_c import float_literal

_PYTHON = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "<<": operator.lshift, ">>": operator.rshift, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "over", "//": "floordiv", "%": "modulo", "==": "same",
          "!=": "other", "<<": "shifted_left", ">>": "shifted_right"}  # fmt: skip
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_RESERVED = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "bool", "true", "false",
    "NAN", "INFINITY", "exp", "log", "sin", "cos", "tan", "pow", "sqrt", "floor", "ceil", "round", "fma", "y0", "y1",
    "yn", "j0", "j1", "jn", "gamma", "signbit",
))  # fmt: skip
_FLOOR = {
    "floordiv_s64": """\
static inline int64_t floordiv_s64(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "modulo_s64": """\
static inline int64_t modulo_s64(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
""",
}
"""Python's // and %; the numbers that Numba gives for a division by zero where it does not raise."""


def kernel_in_c(program: LoopProgram, types: Sequence[str], name: str, functions: CFunctions) -> str:
    """The definition of a kernel as a C function `name`. `types`: of its parameters after lo and hi, as loop programs
    name them."""
    return _Kernel(program, types, functions).text(name)


class _Kernel:
    def __init__(self, program: LoopProgram, types: Sequence[str], functions: CFunctions) -> None:
        self._program = program
        self._functions = functions
        self._parameters = dict(zip(program.parameters, ("int64", "int64", *types), strict=True))
        self._statements = list(walk(program.body))
        self._variables: dict[str, str] = {}
        """Type of each variable that is declared at the start."""
        self._own_counter = self._counters()
        for statement in self._statements:
            if isinstance(statement, Assign):
                for target in statement.targets:
                    self._variables.setdefault(target.name, target.type)
            elif isinstance(statement, Augment):
                self._variables.setdefault(statement.target.name, statement.target.type)
            elif isinstance(statement, For) and statement.variable.name not in self._own_counter:
                self._variables.setdefault(statement.variable.name, "int64")
        self._numbers = 0

    def _counters(self) -> frozenset[str]:
        """Loop variables that are nothing else, and that nobody reads outside of their loops."""
        counted = {s.variable.name for s in self._statements if isinstance(s, For)}
        for statement in self._statements:
            if isinstance(statement, Assign):
                counted -= {target.name for target in statement.targets}
            elif isinstance(statement, Augment):
                counted.discard(statement.target.name)
        return frozenset(counted - self._read_outside(self._program.body, frozenset()))

    def _read_outside(self, block: Block, bound: frozenset[str]) -> set[str]:
        found: set[str] = set()
        for statement in block:
            for whole in expressions_of(statement):
                found |= {part.name for part in whole.walk() if isinstance(part, Name) and part.name not in bound}
            match statement:
                case For(variable=variable, body=body):
                    found |= self._read_outside(body, bound | {variable.name})
                case While(body=body):
                    found |= self._read_outside(body, bound)
                case If(branches=branches, otherwise=otherwise):
                    for _, inner in branches:
                        found |= self._read_outside(inner, bound)
                    found |= self._read_outside(otherwise or [], bound)
        return found

    def text(self, name: str) -> str:
        stored = {s.pointer.name for s in self._statements if isinstance(s, Store)}
        given: list[str] = []
        for parameter, kind in self._parameters.items():
            if kind.endswith("*"):
                constant = "" if parameter in stored else "const "
                given.append(f"{constant}{self._functions.type(kind[:-1])} *restrict {self._name(parameter)}")
            else:
                given.append(f"{self._functions.type(kind)} {self._name(parameter)}")
        lines = [f"static void {name}({', '.join(given)}) {{"]
        for variable, kind in self._variables.items():
            if variable not in self._parameters and not kind.endswith("*"):
                lines.append(f"    {self._functions.type(kind)} {self._name(variable)};")
        for statement in self._statements:
            if isinstance(statement, LocalArray):
                kind = self._functions.type(statement.dtype)
                lines.append(f"    _Alignas(64) {kind} {self._name(statement.name.name)}[{statement.count}];")
        lines += self._block(self._program.body, "    ")
        return "\n".join([*lines, "}", ""])

    def _name(self, name: str) -> str:
        return name + "_" if name in _RESERVED else name

    # Statements

    def _block(self, block: Block, indent: str) -> list[str]:
        return [indent + line for statement in block for line in self._statement(statement)]

    def _statement(self, statement: Statement) -> Iterator[str]:
        match statement:
            case Assign(targets=[target], values=[value]):
                yield f"{self._name(target.name)} = {self._as(value, target.type)};"
            case Assign(targets=targets, values=values):
                yield from self._together(targets, values)
            case Augment(target=target, op=op, value=value):
                yield f"{self._name(target.name)} = {self._as(Binary(op, target, value), target.type)};"
            case Store(pointer=pointer, index=index, value=value):
                element = f"{self._name(pointer.name)}[{self._as(index, 'int64')}]"
                yield f"{element} = {self._as(value, pointee(pointer.type))};"
            case For():
                yield from self._for(statement)
            case While(test=test, body=body):
                yield f"while ({self._truth(test)}) {{"
                yield from self._block(body, "    ")
                yield "}"
            case If(branches=branches, otherwise=otherwise):
                word = "if"
                for test, inner in branches:
                    yield f"{word} ({self._truth(test)}) {{"
                    yield from self._block(inner, "    ")
                    word = "} else if"
                if otherwise is not None:
                    yield "} else {"
                    yield from self._block(otherwise, "    ")
                yield "}"
            case Break():
                yield "break;"
            case Continue():
                yield "continue;"
            case Return(value=None):
                yield "return;"
            case Comment(text=text):
                yield f"/* {text.replace('*/', '* /')} */"
            case LocalArray():
                pass
            case _:
                raise UnsupportedError(f"{type(statement).__name__} in a kernel has no form in C")

    def _together(self, targets: Sequence[Name], values: Sequence[Expr]) -> Iterator[str]:
        """``a, b = x, y``: all values are computed before one is assigned."""
        yield "{"
        for number, (target, value) in enumerate(zip(targets, values, strict=True)):
            yield f"    const {self._functions.type(target.type)} new{number} = {self._as(value, target.type)};"
        for number, target in enumerate(targets):
            yield f"    {self._name(target.name)} = new{number};"
        yield "}"

    def _for(self, loop: For) -> Iterator[str]:
        variable = self._name(loop.variable.name)
        own = loop.variable.name in self._own_counter
        counter, relation = variable, "<" if loop.step > 0 else ">"
        if not own:
            self._numbers += 1
            counter = f"{variable}_next{self._numbers}"
        start = "0" if loop.start is None else self._as(loop.start, "int64")
        stop, declared = self._as(loop.stop, "int64"), ""
        if not (isinstance(loop.stop, Number) or loop.stop.is_simple) or self._changes(loop.stop, loop.body):
            declared, stop = f", {counter}_end = {stop}", f"{counter}_end"
        step = f"++{counter}" if loop.step == 1 else f"{counter} += {loop.step}"
        yield f"for (int64_t {counter} = {start}{declared}; {counter} {relation} {stop}; {step}) {{"
        if not own:
            yield f"    {variable} = {counter};"
        yield from self._block(loop.body, "    ")
        yield "}"

    def _changes(self, bound: Expr, body: Block) -> bool:
        names = {part.name for part in bound.walk() if isinstance(part, Name)}
        for statement in walk(body):
            if isinstance(statement, Assign) and names & {t.name for t in statement.targets}:
                return True
            if isinstance(statement, Augment) and statement.target.name in names:
                return True
        return False

    # Expressions

    def _truth(self, e: Expr) -> str:
        text = self._text(e)
        return text[1:-1] if text.startswith("(") and _closes_at_the_end(text) else text

    def _as(self, e: Expr, type_: str) -> str:
        """The value, as a value of a type. C converts numbers as Numba does."""
        text = self._text(e)
        if e.type == type_ or e.type.endswith("*"):
            return text[1:-1] if text.startswith("(") and _closes_at_the_end(text) else text
        if type_.startswith("complex"):
            return self._complex_of(e, type_)
        return f"({C_TYPES[type_]}){text}"

    def _complex_of(self, e: Expr, type_: str) -> str:
        part = "float" if type_ == "complex64" else "double"
        kind = self._functions.type(type_)
        text = self._text(e)
        if e.type.startswith("complex"):
            self._functions.type(e.type)
            return f"({kind}){{({part})({text}).part0, ({part})({text}).part1}}"
        return f"({kind}){{({part}){text}, 0}}"

    def _text(self, e: Expr) -> str:
        match e:
            case Name():
                return self._name(e.name)
            case Number():
                return _number(e)
            case Load(pointer=pointer, index=index):
                return f"{self._name(pointer.name)}[{self._as(index, 'int64')}]"
            case Unary():
                return self._unary(e)
            case Binary():
                return self._binary(e)
            case Call():
                return self._call(e)
        raise UnsupportedError(f"{e} has no form in C")

    def _unary(self, e: Unary) -> str:
        kind = e.operand.type
        if e.op == "not":
            return f"(!{self._text(e.operand)})"
        if is_float(kind) and e.op == "-":
            return f"(-{self._text(e.operand)})"
        if is_integer(kind) or kind == "bool":
            return f"({e.op}({C_TYPES[e.type]}){self._text(e.operand)})"
        if e.op == "-":
            return f"{self._functions.use('negate', (kind,))}({self._text(e.operand)})"
        raise UnsupportedError(f"{e} has no form in C")

    def _binary(self, e: Binary) -> str:
        left, right, op = e.left.type, e.right.type, e.op
        if op in ("and", "or"):
            return f"({self._text(e.left)} {'&&' if op == 'and' else '||'} {self._text(e.right)})"
        simple = all(is_float(t) or is_integer(t) or t == "bool" for t in (left, right))
        common = type_of_binary("+", left, right) if op in _COMPARISONS else e.type
        mixed = op in _COMPARISONS and {left.startswith("u"), right.startswith("u")} == {True, False}
        if not simple or (mixed and "uint64" in (left, right) and is_integer(left) and is_integer(right)):
            name = self._functions.use_operator(_WORDS[op], _PYTHON[op], (left, right))
            return f"{name}({self._text(e.left)}, {self._text(e.right)})"
        a, b = self._operand(e.left, common), self._operand(e.right, common)
        if op in ("//", "%"):
            return self._divided(e, a, b)
        if op in ("<<", ">>"):
            kind = C_TYPES[e.type]
            left_ = f"(uint64_t){a}" if op == "<<" else a
            return f"(({kind})({left_} {op} {b}))"
        if op == "/" and not is_float(common):
            raise UnsupportedError(f"{e} has no form in C")
        return f"({a} {op} {b})"

    def _operand(self, e: Expr, type_: str) -> str:
        text = self._text(e)
        if e.type == type_:
            return text
        if isinstance(e, Number) and type_ == "int64":
            return text
        return f"({C_TYPES[type_]}){text}"

    def _divided(self, e: Binary, a: str, b: str) -> str:
        kind = e.type
        if kind == "uint64":
            return f"({a} {'/' if e.op == '//' else '%'} {b})"
        if kind != "int64":
            raise UnsupportedError(f"{e} has no form in C")
        name = "floordiv_s64" if e.op == "//" else "modulo_s64"
        self._functions.add(name, _FLOOR[name])
        return f"{name}({a}, {b})"

    def _call(self, e: Call) -> str:
        function, arguments = e.function, e.arguments
        if function in C_TYPES:
            (value,) = arguments
            if function.startswith("complex"):
                return self._complex_of(value, function)
            if isinstance(value, Number) and is_float(function):
                return float_literal(float(value.value), function == "float32")
            return f"(({C_TYPES[function]}){self._text(value)})"
        if function == "interrupted":
            return "false"
        if function in ("reduce_precision", "reduce_precision_f16"):
            return self._reduced(e)
        if function == "select":
            test, chosen, otherwise = arguments
            return f"({self._text(test)} ? {self._as(chosen, e.type)} : {self._as(otherwise, e.type)})"
        name = self._functions.use(function, tuple(a.type for a in arguments))
        return f"{name}({', '.join(self._as(a, a.type) for a in arguments)})"

    def _reduced(self, e: Call) -> str:
        value, *bits = e.arguments
        literals = tuple(int(b.value) for b in bits if isinstance(b, Number))
        name = self._functions.use_with_literals(e.function, value.type, literals)
        return f"{name}({self._text(value)})"


def _number(e: Number) -> str:
    if e.type == "bool":
        return "true" if e.value else "false"
    if e.type == "float64":
        return float_literal(float(e.value), False)
    value = int(e.value)
    if abs(value) < 2**31:
        return str(value) if value >= 0 else f"({value})"
    return "INT64_MIN" if value == -(2**63) else f"(INT64_C({value}))"


def _closes_at_the_end(text: str) -> bool:
    """True if the first parenthesis is closed by the last character."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return place == len(text) - 1
    return False
