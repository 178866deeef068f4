"""The statements of loop programs, and the program itself.

Statements are immutable, except that a block is filled while it is written. A name belongs to the whole kernel, as in
Python; each has one type.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any, Literal, get_args

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.support.records import dataclass
from .expressions import Expr, Name


@dataclass(slots=True, eq=False)
class Assign:
    """``a = x``; ``a, b = x, y`` assigns all at once."""

    targets: tuple[Name, ...]
    values: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Augment:
    """``a += x``"""

    target: Name
    op: str
    value: Expr


@dataclass(slots=True, eq=False)
class Store:
    """``pointer[index] = value``"""

    pointer: Name
    index: Expr
    value: Expr


@dataclass(slots=True, eq=False)
class LocalArray:
    """``name = local_array(count, dtype)``: memory of the kernel's own; LLVM makes registers of it where it can. Its
    contents are undefined. It is made once, wherever the statement is."""

    name: Name
    count: int
    dtype: str

    def __post_init__(self) -> None:
        self.count = int(self.count)  # a number in the text, also of an observed size


LoopKind = Literal["range", "independent", "lanes", "streamed"]
LOOP_KINDS: tuple[str, ...] = get_args(LoopKind)


@dataclass(slots=True, eq=False)
class For:
    """``for variable in range(start, stop, step)``; the step is a literal. `start` None: ``range(stop)``.

    `kind`: the function in the range's place, which has one argument, the end, if it is none of

    * ``range``;
    * ``independent``: no iteration reads or writes what another one writes, so that LLVM need not test whether buffers
      overlap;
    * ``lanes``: the iterations are the elements of a vector (lanes.py);
    * ``streamed``: what is stored is not read soon, so no cache need have it."""

    variable: Name
    start: Expr | None
    stop: Expr
    step: int
    body: list[Statement]
    kind: LoopKind = "range"

    def __post_init__(self) -> None:
        self.step = int(self.step)  # a number in the text, also of an observed size


@dataclass(slots=True, eq=False)
class While:
    """``while test:``"""

    test: Expr
    body: list[Statement]


@dataclass(slots=True, eq=False)
class If:
    """``if test: ... elif test: ... else: ...``; `otherwise` is None if there is no ``else``."""

    branches: list[tuple[Expr, list[Statement]]]
    otherwise: list[Statement] | None = None


@dataclass(slots=True, eq=False)
class Break:
    """``break``"""


@dataclass(slots=True, eq=False)
class Continue:
    """``continue``"""


@dataclass(slots=True, eq=False)
class Return:
    """``return``; the functions of the runtime return a value."""

    value: Expr | None = None


@dataclass(slots=True, eq=False)
class Evaluate:
    """An expression with side effects; only in functions of the runtime."""

    value: Expr


@dataclass(slots=True, eq=False)
class Comment:
    """``# text``, for people. The text is the emitter's own, never a name from a file."""

    text: str


Statement = (
    Assign | Augment | Store | LocalArray | For | While | If | Break | Continue | Return | Evaluate | Comment
)
Block = list[Statement]
_WITH_BLOCKS = frozenset((For, While, If))


def inner_blocks(statement: Statement) -> Iterator[Block]:
    """The blocks inside of a statement."""
    if isinstance(statement, (For, While)):
        yield statement.body
    elif isinstance(statement, If):
        for _, block in statement.branches:
            yield block
        if statement.otherwise is not None:
            yield statement.otherwise


def with_blocks(statement: Statement, change: Callable[[Block], Block]) -> Statement:
    """The statement with changed blocks inside; itself if it has none."""
    kind = type(statement)
    if kind not in _WITH_BLOCKS:  # nearly all
        return statement
    match statement:
        case For(variable, start, stop, step, body, kind_of_loop):
            return For(variable, start, stop, step, change(body), kind_of_loop)
        case While(test, body):
            return While(test, change(body))
        case If(branches=branches, otherwise=otherwise):
            last = None if otherwise is None else change(otherwise)
            return If([(test, change(inner)) for test, inner in branches], last)
    raise AssertionError(kind)


def with_values(statement: Statement, change: Callable[[Expr], Expr]) -> Statement:
    """The statement with changed values and indices; itself if it is of another kind, such as a loop."""
    match statement:
        case Assign(targets=targets, values=values):
            return Assign(targets, tuple([change(value) for value in values]))
        case Store(pointer=pointer, index=index, value=value):
            return Store(pointer, change(index), change(value))
        case Augment(value=value) | Evaluate(value=value) | Return(value=value) if value is not None:
            return replace(statement, value=change(value))
        case _:
            return statement


def expressions_of(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that a statement itself evaluates; not those in its blocks, nor the names that it assigns to."""
    match statement:
        case Assign(values=values):
            return values
        case Augment(target=target, value=value):
            return target, value
        case Store(pointer=pointer, index=index, value=value):
            return pointer, index, value
        case For(start=start, stop=stop):
            return (stop,) if start is None else (start, stop)
        case While(test=test):
            return (test,)
        case If(branches=branches):
            return tuple(test for test, _ in branches)
        case Return(value=value):
            return () if value is None else (value,)
        case Evaluate(value=value):
            return (value,)
        case _:
            return ()


def names_of(block: Block) -> Iterator[str]:
    """The names that statements read or store through."""
    for statement in walk(block):
        for whole in expressions_of(statement):
            yield from whole.names


def walk(block: Block) -> Iterator[Statement]:
    """All statements of a block, outer ones first, in the order of the text."""
    open_ = [iter(block)]
    while open_:
        for statement in open_[-1]:
            yield statement
            if type(statement) in _WITH_BLOCKS:
                open_ += [iter(inner) for inner in reversed(list(inner_blocks(statement)))]
                break
        else:
            open_.pop()


@dataclass(frozen=True, slots=True)
class PointerParameter:
    """A buffer: operand `operand` of the fusion, or its output `output`, or both when it is updated in place."""

    name: str
    element_type: ElementType
    operand: int | None
    output: int | None


@dataclass(frozen=True, slots=True)
class SizeParameter:
    """A size, a step, a number of times: an int64."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A constant of the program that the kernel takes as an argument."""

    name: str
    element_type: ElementType
    value: Any

    @property
    def bits(self) -> int:
        """The value as a (signed) 64-bit pattern, its form in the argument table."""
        raw = np.asarray(self.value, self.element_type.dtype).tobytes().ljust(8, b"\0")
        return int(struct.unpack("<q", raw)[0])


KernelParameter = PointerParameter | SizeParameter | ScalarParameter


@dataclass(frozen=True, eq=False)
class LoopProgram:
    """``def name(lo, hi, parameters)``, with ``lo <= i < hi`` for its outermost loop."""

    name: str
    parameters: tuple[str, ...]
    body: Block = field(repr=False)
    notes: tuple[object, ...] = ()
    """Comment lines above the body, for readers: the algorithm that it computes, and the steps of its schedule."""
    vector_bits: int = 0
    """``@vectors(256)`` above the definition: how wide its vectors are. 0: as LLVM thinks best for the processor."""
