"""Print loop programs in C: the second printer of `numba_backend/loops`.

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
from .c_declarations import Declarations, names_read, used_parameters, without_dead
from .c_functions import C_TYPES, CFunctions
from .c_vectors import in_vectors, sums_of, typedefs
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


(
    _ANY, _CHOICE, _OR, _AND, _BIT_OR, _BIT_XOR, _BIT_AND, _EQUAL, _ORDER, _SHIFT, _SUM, _PRODUCT, _CAST, _POSTFIX,
) = range(14)  # fmt: skip
"""How strongly C's operators bind."""

_BINDS = {
    "and": _AND, "or": _OR, "|": _BIT_OR, "^": _BIT_XOR, "&": _BIT_AND, "==": _EQUAL, "!=": _EQUAL, "<": _ORDER,
    "<=": _ORDER, ">": _ORDER, ">=": _ORDER, "<<": _SHIFT, ">>": _SHIFT, "+": _SUM, "-": _SUM, "*": _PRODUCT,
    "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT,
}  # fmt: skip
_SAID = {"and": "&&", "or": "||", "//": "/"}
_WANTS = {_OR: _EQUAL, _BIT_OR: _CAST, _BIT_XOR: _CAST, _BIT_AND: _CAST, _EQUAL: _SHIFT + 1, _ORDER: _SHIFT + 1,
          _SHIFT: _CAST}  # fmt: skip
"""How strongly an operand must bind to have no parentheses, where few people know what C would do."""


def kernel_in_c(
    program: LoopProgram, types: Sequence[str], name: str, functions: CFunctions, *, only_used: bool = False
) -> str:
    """Define a kernel as a C function `name`. `types`: the types of its parameters after lo and hi, as loop programs
    name them. `only_used`: the C function takes only the parameters in `used_parameters`."""
    return _Kernel(program, types, functions).text(name, only_used)


class _Kernel:
    def __init__(self, program: LoopProgram, types: Sequence[str], functions: CFunctions) -> None:
        self._program = program
        self._functions = functions
        self._parameters = dict(zip(program.parameters, ("int64", "int64", *types), strict=True))
        self._body = without_dead(program.body)
        self._statements = list(walk(self._body))
        self._variables: dict[str, str] = {}
        """Type of each variable."""
        self._own_counter = self._counters()
        for statement in self._statements:
            if isinstance(statement, Assign):
                for target in statement.targets:
                    self._variables.setdefault(target.name, target.type)
            elif isinstance(statement, Augment):
                self._variables.setdefault(statement.target.name, statement.target.type)
            elif isinstance(statement, For) and statement.variable.name not in self._own_counter:
                self._variables.setdefault(statement.variable.name, "int64")
        self._arrays = {s.name.name: s for s in self._statements if isinstance(s, LocalArray)}
        self._declarations = Declarations(self._body, frozenset(self._variables) - frozenset(self._parameters))
        self._numbers = 0
        counters = [s.variable.name for s in self._statements if isinstance(s, For)]
        self._taken = frozenset(map(self._name, [*self._parameters, *self._variables, *self._arrays, *counters]))

    def _own(self, name: str) -> str:
        """A name of the printer's own: one that the kernel does not have."""
        while name in self._taken:
            name += "_"
        return name

    def _counters(self) -> frozenset[str]:
        """Variables that are assigned by loops alone, and are not read outside of their loops."""
        counted = {s.variable.name for s in self._statements if isinstance(s, For)}
        for statement in self._statements:
            if isinstance(statement, Assign):
                counted -= {target.name for target in statement.targets}
            elif isinstance(statement, Augment):
                counted.discard(statement.target.name)
        return frozenset(counted - self._read_outside(self._body, frozenset()))

    def _read_outside(self, block: Block, bound: frozenset[str]) -> set[str]:
        found: set[str] = set()
        for statement in block:
            for whole in expressions_of(statement):
                found |= {name for name in whole.names if name not in bound}
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

    def text(self, name: str, only_used: bool) -> str:
        stored = {s.pointer.name for s in self._statements if isinstance(s, Store)}
        used = used_parameters(self._program)
        given: list[str] = []
        for parameter, kind in self._parameters.items():
            if only_used and parameter not in used and parameter not in self._program.parameters[:2]:
                continue
            if kind.endswith("*"):
                constant = "" if parameter in stored else "const "
                given.append(f"{constant}{self._functions.type(kind[:-1])} *restrict {self._name(parameter)}")
            else:
                given.append(f"{self._functions.type(kind)} {self._name(parameter)}")
        lines = [f"static void {name}({', '.join(given)}) {{"]
        read = names_read(self._body)
        lines += [f"    (void){bound};" for bound in self._program.parameters[:2] if bound not in read]
        elsewhere = self._parameters.keys() | self._declarations.declared
        for variable, kind in self._variables.items():
            if variable not in elsewhere and not kind.endswith("*"):
                lines.append(f"    {self._functions.type(kind)} {self._name(variable)};")
        for row, array in self._arrays.items():  # once each: loops that were split have copies of the statement
            lines.append(f"    _Alignas(64) {self._functions.type(array.dtype)} {self._name(row)}[{array.count}];")
        lines += self._block(self._body, "    ")
        return "\n".join([*lines, "}", ""])

    def _name(self, name: str) -> str:
        return name + "_" if name in _RESERVED else name

    # Statements

    def _block(self, block: Block, indent: str) -> list[str]:
        lines = [line for statement in block for line in self._statement(statement)]
        return [line if line.startswith("#") else indent + line for line in lines]

    def _statement(self, statement: Statement) -> Iterator[str]:
        match statement:
            case Assign(targets=[target], values=[value]):
                yield f"{self._declared(statement, target)}{self._name(target.name)} = {self._as(value, target.type)};"
            case Assign(targets=targets, values=values):
                yield from self._together(targets, values)
            case Augment(target=target, op=op, value=value):
                if op in _ASSIGNS and value.type == target.type and (is_float(target.type) or target.type == "int64"):
                    yield f"{self._name(target.name)} {op}= {self._as(value, target.type)};"
                else:
                    yield f"{self._name(target.name)} = {self._as(Binary(op, target, value), target.type)};"
            case Store(pointer=pointer, index=index, value=value):
                element = f"{self._name(pointer.name)}[{self._as(index, 'int64')}]"
                yield f"{element} = {self._as(value, pointee(pointer.type))};"
            case For():
                yield from self._for(statement)
            case While(test=test, body=body):
                yield f"while ({self._text(test)}) {{"
                yield from self._block(body, "    ")
                yield "}"
            case If(branches=branches, otherwise=otherwise):
                word = "if"
                for test, inner in branches:
                    yield f"{word} ({self._text(test)}) {{"
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

    def _declared(self, statement: Statement, target: Name) -> str:
        if id(statement) not in self._declarations.at:
            return ""
        constant = "const " if target.name in self._declarations.constant else ""
        return f"{constant}{self._functions.type(target.type)} "

    def _together(self, targets: Sequence[Name], values: Sequence[Expr]) -> Iterator[str]:
        """``a, b = x, y``: all values are computed before one is assigned."""
        yield "{"
        for number, (target, value) in enumerate(zip(targets, values, strict=True)):
            new = self._own(f"new{number}")
            yield f"    const {self._functions.type(target.type)} {new} = {self._as(value, target.type)};"
        for number, target in enumerate(targets):
            yield f"    {self._name(target.name)} = {self._own(f'new{number}')};"
        yield "}"

    def _for(self, loop: For) -> Iterator[str]:
        sums = sums_of(loop, self._arrays) if loop.variable.name in self._own_counter else None
        if sums is None:
            yield from self._plain_for(loop)
            return
        dtype = self._arrays[sums.rows[0][0].name].dtype
        self._functions.add(f"vectors of {dtype}", typedefs(dtype))
        plain = list(self._plain_for(loop))
        yield from in_vectors(
            sums, dtype, plain, lambda e: self._as(e, "int64"), self._name, lambda s: list(self._statement(s))
        )

    def _plain_for(self, loop: For) -> Iterator[str]:
        variable = self._name(loop.variable.name)
        own = loop.variable.name in self._own_counter
        counter, relation = variable, "<" if loop.step > 0 else ">"
        if not own:
            self._numbers += 1
            counter = self._own(f"{variable}_next{self._numbers}")
        start = "0" if loop.start is None else self._as(loop.start, "int64")
        stop, declared = self._as(loop.stop, "int64"), ""
        if not (isinstance(loop.stop, Number) or loop.stop.is_simple) or self._changes(loop.stop, loop.body):
            end = self._own(f"{counter}_end")
            declared, stop = f", {end} = {stop}", end
        step = f"++{counter}" if loop.step == 1 else f"{counter} += {loop.step}"
        if loop.kind == "independent":
            yield "HLOOM_INDEPENDENT"
        yield f"for (int64_t {counter} = {start}{declared}; {counter} {relation} {stop}; {step}) {{"
        if not own:
            yield f"    {variable} = {counter};"
        yield from self._block(loop.body, "    ")
        yield "}"

    def _changes(self, bound: Expr, body: Block) -> bool:
        names = set(bound.names)
        for statement in walk(body):
            if isinstance(statement, Assign) and names & {t.name for t in statement.targets}:
                return True
            if isinstance(statement, Augment) and statement.target.name in names:
                return True
        return False

    # Expressions

    def _as(self, e: Expr, type_: str, least: int = _ANY) -> str:
        """The value, as a value of a type. C converts numbers as Numba does."""
        if e.type == type_ or e.type.endswith("*"):
            return self._text(e, least)
        if type_.startswith("complex"):
            return self._complex_of(e, type_)
        return _bound(f"({C_TYPES[type_]}){self._text(e, _CAST)}", _CAST, least)

    def _complex_of(self, e: Expr, type_: str) -> str:
        part = "float" if type_ == "complex64" else "double"
        kind = self._functions.type(type_)
        text = self._text(e, _CAST)
        if e.type.startswith("complex"):
            self._functions.type(e.type)
            text = self._text(e, _POSTFIX)
            return f"({kind}){{({part}){text}.part0, ({part}){text}.part1}}"
        return f"({kind}){{({part}){text}, 0}}"

    def _text(self, e: Expr, least: int = _ANY) -> str:
        """The expression, in parentheses unless it binds at least so strongly."""
        match e:
            case Name():
                return self._name(e.name)
            case Number():
                text = _number(e)
                return _bound(text, _CAST if text.startswith("-") else _POSTFIX, least)
            case Load(pointer=pointer, index=index):
                return f"{self._name(pointer.name)}[{self._as(index, 'int64')}]"
            case Unary():
                return self._unary(e, least)
            case Binary():
                return self._binary(e, least)
            case Call():
                return self._call(e, least)
        raise UnsupportedError(f"{e} has no form in C")

    def _unary(self, e: Unary, least: int) -> str:
        kind = e.operand.type
        if e.op == "not":
            return _bound(f"!{self._text(e.operand, _CAST)}", _CAST, least)
        if is_float(kind) and e.op == "-":
            operand = self._text(e.operand, _CAST)
            return _bound(f"-({operand})" if operand.startswith("-") else f"-{operand}", _CAST, least)
        if is_integer(kind) or kind == "bool":
            return _bound(f"{e.op}{self._operand(e.operand, e.type, _POSTFIX)}", _CAST, least)
        if e.op == "-":
            return f"{self._functions.use('negate', (kind,))}({self._text(e.operand)})"
        raise UnsupportedError(f"{e} has no form in C")

    def _binary(self, e: Binary, least: int) -> str:
        left, right, op = e.left.type, e.right.type, e.op
        own = _BINDS[op]
        wanted = _WANTS.get(own, own)
        if op in ("and", "or"):
            a, b = (self._text(x, own if isinstance(x, Binary) and x.op == op else wanted) for x in (e.left, e.right))
            return _bound(f"{a} {_SAID[op]} {b}", own, least)
        simple = all(is_float(t) or is_integer(t) or t == "bool" for t in (left, right))
        common = e.type
        if op in _COMPARISONS:
            common = left if left == right else type_of_binary("+", left, right)
        mixed = op in _COMPARISONS and {left.startswith("u"), right.startswith("u")} == {True, False}
        if not simple or (mixed and "uint64" in (left, right) and is_integer(left) and is_integer(right)):
            name = self._functions.use(_WORDS[op], (left, right), _PYTHON[op])
            return f"{name}({self._text(e.left)}, {self._text(e.right)})"
        if op in ("//", "%"):
            return self._divided(e, least)
        if op in ("<<", ">>"):
            kind = C_TYPES[e.type]
            a, b = (self._operand(x, common, _CAST) for x in (e.left, e.right))
            if op == "<<" and e.type != "uint64":
                return _bound(f"({kind})((uint64_t){a} << {b})", _CAST, least)
            return _bound(f"{a} {op} {b}", own, least)
        if op == "/" and not is_float(common):
            raise UnsupportedError(f"{e} has no form in C")
        a = self._operand(e.left, common, own if _is_same(e.left, op) else wanted)
        b = self._operand(e.right, common, own + 1 if wanted == own else wanted)
        return _bound(f"{a} {op} {b}", own, least)

    def _operand(self, e: Expr, type_: str, least: int) -> str:
        if e.type == type_ or (isinstance(e, Number) and type_ == "int64"):
            return self._text(e, least)
        return _bound(f"({C_TYPES[type_]}){self._text(e, _CAST)}", _CAST, least)

    def _divided(self, e: Binary, least: int) -> str:
        kind = e.type
        if kind == "uint64":
            a, b = self._operand(e.left, kind, _PRODUCT), self._operand(e.right, kind, _CAST)
            return _bound(f"{a} {'/' if e.op == '//' else '%'} {b}", _PRODUCT, least)
        if kind != "int64":
            raise UnsupportedError(f"{e} has no form in C")
        name = "floordiv_s64" if e.op == "//" else "modulo_s64"
        self._functions.add(name, _FLOOR[name])
        return f"{name}({self._operand(e.left, kind, _ANY)}, {self._operand(e.right, kind, _ANY)})"

    def _call(self, e: Call, least: int) -> str:
        function, arguments = e.function, e.arguments
        if function in C_TYPES:
            (value,) = arguments
            if function.startswith("complex"):
                return self._complex_of(value, function)
            if isinstance(value, Number) and is_float(function):
                text = float_literal(float(value.value), function == "float32")
                return _bound(text, _CAST if text.startswith("-") else _POSTFIX, least)
            if value.type == function:
                return self._text(value, least)
            return _bound(f"({C_TYPES[function]}){self._text(value, _CAST)}", _CAST, least)
        if function == "interrupted":
            return "false"
        if function in ("opaque", "likely"):
            return self._text(arguments[0], least)
        if function in ("reduce_precision", "reduce_precision_f16"):
            return self._reduced(e)
        if function == "select":
            test, chosen, otherwise = arguments
            a, b = (self._as(x, e.type, _OR) for x in (chosen, otherwise))
            return _bound(f"{self._text(test, _EQUAL)} ? {a} : {b}", _CHOICE, least)
        name = self._functions.use(function, tuple(a.type for a in arguments))
        return f"{name}({', '.join(self._as(a, a.type) for a in arguments)})"

    def _reduced(self, e: Call) -> str:
        value, *bits = e.arguments
        literals = tuple(int(b.value) for b in bits if isinstance(b, Number))
        name = self._functions.use_with_literals(e.function, value.type, literals)
        return f"{name}({self._text(value)})"


_ASSIGNS = frozenset(("+", "-", "*", "/"))


def _is_same(e: Expr, op: str) -> bool:
    """True for an operand that the reader takes for a part of the same chain: a + b - c."""
    return isinstance(e, Binary) and _BINDS[e.op] == _BINDS[op]


def _bound(text: str, own: int, least: int) -> str:
    return text if own >= least else f"({text})"


def _number(e: Number) -> str:
    if e.type == "bool":
        return "true" if e.value else "false"
    if e.type == "float64":
        return float_literal(float(e.value), False)
    value = int(e.value)
    if abs(value) < 2**31:
        return str(value)
    return "INT64_MIN" if value == -(2**63) else f"{'-' if value < 0 else ''}INT64_C({abs(value)})"
