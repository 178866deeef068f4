"""Compile kernels that are written as text: transforms, linear algebra.

The text is Python, and is read as a loop program. In it `T` is the element type and `R` its real type, so that one text
serves real and complex matrices: ``T(x)`` is a real number as an element, ``abs1(x)`` is |re x| + |im x|, ``sq(x)`` is
|x|^2, and ``r = hypot(f, g)`` is a statement. `EPS`, `TINY` (the least normal number), `HUGE` (the largest), `SMALL`
and `LARGE` are numbers of the type; the fourth powers of the last two are neither 0 nor infinite. Operators on complex
numbers become calls of the dialect. ``w[i, j]`` is an element of a *view*, which says where it is stored. Sizes may be
literals, and loops may go inward in the program that was read.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.support.records import dataclass
from ..emitted_kernel import memory_type
from ..loops.expressions import Binary, Call, Expr, Name, Number, Unary
from ..loops.inward import temporaries
from ..loops.lanes import with_lanes
from ..loops.printer import to_text
from ..loops.reader import read
from ..loops.rewrite import Substitution
from ..loops.statements import Assign, Augment, Block, LoopProgram, Statement, names_of
from ..loops.typing import SHORT, pointer_to
from ..runtime.kernel import KernelSource, Parameter

LANES = {ElementType.F32: 16, ElementType.F64: 8}
"""The matrices, or rows to transform, that are computed together, one in each lane of a vector."""

_CALLS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_PARTS = {"complex64": "float32", "complex128": "float64"}


class Step(Protocol):
    """A transformation of a program that keeps its results. It is a frozen dataclass."""

    def applied(self, block: Block) -> Block:
        """The statements after the step."""


@dataclass(frozen=True)
class View:
    """``name[i, j]`` in a text is element `index`, in which I and J stand for i and j, of `array`."""

    name: str
    array: str
    index: str


@dataclass(frozen=True)
class Text:
    """The body of a kernel for each `b` from `lo` to `hi`, with its types, pointers and sizes."""

    name: str
    lines: tuple[str, ...]
    element_type: ElementType
    pointers: tuple[tuple[str, ElementType], ...]
    sizes: tuple[str, ...]
    views: tuple[View, ...] = ()
    words: tuple[tuple[str, int | str], ...] = ()
    """Names, and the literals or expressions that replace them."""
    steps: tuple[Step, ...] = ()

    def program(self) -> tuple[LoopProgram, tuple[str, ...], tuple[str, ...]]:
        """The program, and of its pointers and sizes those that the text uses, which are its parameters."""
        return _program(self)


def source_of(text: Text) -> tuple[KernelSource, tuple[str, ...], tuple[str, ...]]:
    """The kernel of a text, and which pointers and sizes it has as parameters."""
    program, pointers, sizes = text.program()
    kinds = dict(text.pointers)
    parameters = tuple([Parameter("pointer", kinds[key].value) for key in pointers])
    parameters += (Parameter("size", "s64"),) * len(sizes)
    return KernelSource(text.name, to_text(program), parameters, program=program), pointers, sizes


@functools.lru_cache(512)
def _program(text: Text) -> tuple[LoopProgram, tuple[str, ...], tuple[str, ...]]:
    body = [f"def {text.name}():", "    for b in range(lo, hi):", *indented(text.lines, 2), ""]
    module = ast.parse("\n".join(body))
    module = ast.fix_missing_locations(_Expand(text).visit(module))
    types = {"lo": "int64", "hi": "int64", **{key: pointer_to(memory_type(kind)) for key, kind in text.pointers}}
    types |= dict.fromkeys(text.sizes, "int64")
    module.body[0].args.args = [ast.arg(key) for key in types]
    block = without_operators(read(module, types, text.name)).body
    for step in text.steps:
        block = step.applied(block)
    block = with_lanes(block, own=temporaries(block))
    used = set(names_of(block))
    pointers = tuple([key for key, _ in text.pointers if key in used])
    sizes = tuple([key for key in text.sizes if key in used])
    return LoopProgram(text.name, ("lo", "hi", *pointers, *sizes), block), pointers, sizes


_FOLDS: dict[type, Any] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


class _Expand(ast.NodeTransformer):
    """A text's own words as words of loop programs."""

    def __init__(self, text: Text) -> None:
        real = text.element_type.real
        info = np.finfo(real.dtype if real.is_inexact else np.float32)  # a text of integers has no such numbers
        root = np.sqrt(np.sqrt(info.tiny))
        self._is_complex = text.element_type.is_complex
        numbers = {"EPS": info.eps, "TINY": info.tiny, "HUGE": info.max, "SMALL": root, "LARGE": 1 / root}
        self._views = {view.name: view for view in text.views}
        self._complex = {key for key, kind in text.pointers if kind.is_complex}
        """Names of complex values, which a text of real matrices may have, too: eigenvalues, and their vectors."""
        names = {"T": SHORT[text.element_type.value], "R": SHORT[text.element_type.real.value]}
        self._words: dict[str, ast.expr] = {word: ast.Name(name) for word, name in names.items()}
        self._words |= {word: _parsed(f"{names['R']}({float(value)!r})") for word, value in numbers.items()}
        for word, value in text.words:
            self._words[word] = ast.Constant(value) if isinstance(value, int) else self.visit(_parsed(value))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._words.get(node.id, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        left, right, op = _integer(node.left), _integer(node.right), type(node.op)
        if left is not None and right is not None and op in _FOLDS:
            return ast.Constant(_FOLDS[op](left, right))
        if (right == 0 and op in (ast.Add, ast.Sub)) or (right == 1 and op is ast.Mult):
            return node.left
        if (left == 0 and op is ast.Add) or (left == 1 and op is ast.Mult):
            return node.right
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        view = self._views.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if view is None:
            self.generic_visit(node)
            return node
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        places = _Places(dict(zip("IJ", [self.visit(e) for e in given])))
        index = self.visit(_parsed(view.index))
        return ast.Subscript(ast.Name(view.array), self.visit(places.visit(index)), node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        is_element = isinstance(node.func, ast.Name) and node.func.id == "T"
        self.generic_visit(node)
        match node:
            case ast.Call(args=[x]) if is_element and not self._is_complex and not isinstance(x, ast.Constant):
                return x
            case ast.Call(func=ast.Name(id="abs1"), args=[x]):
                return _parsed("abs(real(X)) + abs(imag(X))" if self._is_of_complex(x) else "abs(X)", X=x)
            case ast.Call(func=ast.Name(id="sq"), args=[x]):
                return _parsed("real(X) * real(X) + imag(X) * imag(X)" if self._is_of_complex(x) else "X * X", X=x)
            case ast.Call(func=ast.Name(id="conj" | "real"), args=[x]) if not self._is_of_complex(x):
                return x
            case ast.Call(func=ast.Name(id="imag"), args=[x]) if not self._is_of_complex(x):
                return _parsed("R(0)", **self._words)
        return node

    def _is_of_complex(self, node: ast.AST) -> bool:
        """True for an expression with a complex value."""
        match node:
            case ast.Name(id=name):
                return self._is_complex or name in self._complex
            case ast.Call(func=ast.Name(id="complex_from")):
                return True
            case ast.Call(func=ast.Name(id="real" | "imag" | "abs")):
                return False
            case ast.Subscript(value=array):
                return self._is_of_complex(array)
            case ast.Call(args=parts):
                return self._is_complex or any(map(self._is_of_complex, parts))
        return any(map(self._is_of_complex, ast.iter_child_nodes(node)))

    def visit_For(self, node: ast.For) -> ast.stmt | None:
        self.generic_visit(node)
        bounds = [_integer(e) for e in node.iter.args] if isinstance(node.iter, ast.Call) else []
        return None if len(bounds) == 2 and None not in bounds and bounds[0] >= bounds[1] else node  # type: ignore[operator]

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.targets[0], ast.Name) and not self._is_complex and self._is_of_complex(node.value):
            self._complex.add(node.targets[0].id)
        match node.value:
            case ast.Call(func=ast.Name(id="hypot"), args=[f, g]):
                found = ast.parse(_HYPOT.replace("RESULT", ast.unparse(node.targets[0])))
                changed = _Places({"F": f, "G": g, **self._words}).visit(found)
                body: list[ast.stmt] = changed.body
                return body
        return node


class _Places(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node)


def _parsed(text: str, **values: ast.expr) -> ast.expr:
    found: ast.expr = _Places(values).visit(ast.parse(text, mode="eval").body)
    return found


def _integer(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


_HYPOT = """\
hypot_most = maximum(abs(F), abs(G))
hypot_least = minimum(abs(F), abs(G))
RESULT = hypot_most
if hypot_most > R(0):
    hypot_ratio = hypot_least / hypot_most
    RESULT = hypot_most * sqrt(R(1) + hypot_ratio * hypot_ratio)
"""


def without_operators(program: LoopProgram) -> LoopProgram:
    """The program with calls in place of operators on complex numbers."""
    return replace(program, body=_Complex().block(program.body))


class _Complex(Substitution):
    """Operators on complex numbers as calls; every name stays."""

    def __init__(self) -> None:
        super().__init__({}, {}, lambda name: name)

    def _made(self, e: Expr, parts: tuple[Expr, ...]) -> Expr:
        match e := super()._made(e, parts):
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


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """The lines, further to the right."""
    return ["    " * depth + line for line in lines]
