"""Kernels that are written as text: transforms, linear algebra.

The text is Python, of which a loop program is read. In it `T` is the element type and `R` its real type, so that one
text serves real and complex matrices: ``T(x)`` is a real number as an element, ``abs1(x)`` is |re x| + |im x|,
``sq(x)`` is |x|^2, and ``r = hypot(f, g)`` is a statement. Operators on complex numbers become calls of the dialect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ...hlo.element_type import ElementType
from ..loops.expressions import Binary, Call, Expr, Name, Number, Unary
from ..loops.printer import to_text
from ..loops.reader import read
from ..loops.rewrite import Substitution
from ..loops.statements import Assign, Augment, LoopProgram, Statement
from ..loops.typing import SHORT, pointer_to
from ..runtime.kernel import KernelSource, Parameter

_CALLS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def kernel_of(name: str, text: str, parameters: Sequence[tuple[str, str]]) -> KernelSource:
    """The kernel of a definition ``def name(lo, hi, ...)``. `parameters`: kind and HLO's element type of each."""
    declared = tuple(Parameter(*p) for p in parameters)  # type: ignore[arg-type]
    types = [pointer_to(SHORT[p.dtype]) if p.kind == "pointer" else SHORT[p.dtype] for p in declared]
    program = without_operators(read(text, ["int64", "int64", *types], name))
    return KernelSource(name, to_text(program), declared, program=program)


def without_operators(program: LoopProgram) -> LoopProgram:
    """The same with calls in place of operators on complex numbers."""
    return LoopProgram(program.name, program.parameters, _Complex().block(program.body))


class _Complex(Substitution):
    """Operators on complex numbers as calls; every name stays."""

    def __init__(self) -> None:
        super().__init__({}, {}, lambda name: name)

    def expression(self, e: Expr) -> Expr:
        e = super().expression(e)
        match e:
            case Call(function=function, arguments=(value,)) if function in _PARTS and value.type not in _PARTS:
                return _whole(value, function)
            case Unary(op="-") if e.type in _PARTS:
                return Call("negate", (e.operand,))
            case Binary(op=op, left=left, right=right) if e.type in _PARTS:
                if left.type not in _PARTS and op == "*":
                    return _by_part(op, right, left)
                if right.type not in _PARTS and op in "*/":
                    return _by_part(op, left, right)
                both = [x if x.type in _PARTS else _whole(x, e.type) for x in (left, right)]
                return Call(_CALLS[op], tuple(both))
        return e

    def _statement(self, statement: Statement) -> Statement:
        if isinstance(statement, Augment) and statement.target.type in _PARTS:
            target = statement.target
            statement = Assign((target,), (Binary(statement.op, target, statement.value),))
        return super()._statement(statement)

    def _name(self, name: Name) -> Name:
        return name


def _whole(value: Expr, type_: str) -> Expr:
    """A real number as a complex one."""
    part = _PARTS[type_]
    zero = Call(part, (Number(0),))
    return Call("complex_from", (value if value.type == part else Call(part, (value,)), zero))


def _by_part(op: str, value: Expr, number: Expr) -> Expr:
    parts = [Binary(op, Call(part, (value,)), number) for part in ("real", "imag")]
    return Call("complex_from", tuple(parts))


_HYPOT = re.compile(r"^( *)(\w+) = hypot\(([^,\n]+), ([^,\n]+)\)$", re.MULTILINE)
_HYPOT_TEXT = r"""\1hypot_most = maximum(abs(\3), abs(\4))
\1hypot_least = minimum(abs(\3), abs(\4))
\1\2 = hypot_most
\1if hypot_most > R(0):
\1    hypot_ratio = hypot_least / hypot_most
\1    \2 = hypot_most * sqrt(R(1) + hypot_ratio * hypot_ratio)"""


def in_types(text: str, element_type: ElementType) -> str:
    """The text with the names of types in place of `T` and `R`, numbers of the type in place of `EPS` (epsilon), `TINY`
    (the least normal number), `HUGE` (the largest), `SMALL` and `LARGE` (whose fourth powers are neither 0 nor
    infinite), and without `abs1`, `sq` and `hypot`."""
    is_complex = element_type.is_complex
    size = r"(abs(real(\1)) + abs(imag(\1)))" if is_complex else r"abs(\1)"
    square = r"(real(\1) * real(\1) + imag(\1) * imag(\1))" if is_complex else r"(\1 * \1)"
    text = _HYPOT.sub(_HYPOT_TEXT, text)
    text = re.sub(r"\bsq\((\w+)\)", square, re.sub(r"\babs1\((\w+)\)", size, text))
    info = np.finfo(element_type.real.dtype)
    root = np.sqrt(np.sqrt(info.tiny))
    numbers = {"EPS": info.eps, "TINY": info.tiny, "HUGE": info.max, "SMALL": root, "LARGE": 1 / root}
    for word, value in numbers.items():
        text = re.sub(rf"\b{word}\b", f"R({float(value)!r})", text)
    whole, part = SHORT[element_type.value], SHORT[element_type.real.value]
    return re.sub(r"\bR\b", part, re.sub(r"\bT\b", whole, text))


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """The lines, further to the right."""
    return ["    " * depth + line for line in lines]
