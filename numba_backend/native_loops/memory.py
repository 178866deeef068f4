"""The memory of a native loop's values.

A buffer of one element is a local variable, a small one a local array. LLVM makes vector registers of it where it can;
how small depends on how long the loop's text is (`LONG`). Larger ones are behind pointers: the operands and results of
the loop, and scratch memory for the rest. Variables and arrays hold elements as they are stored: pred as uint8, f16 as
uint16.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.support.records import dataclass
from ..loops.expressions import ZERO, Expr, Load, Name
from ..loops.statements import Assign, Statement, Store
from ..machine import target_machine


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where the members of a batch are in an array: element i of member b is at ``(o * size + b) * inner + i``, for
    each o."""

    size: int
    outer: int
    inner: int


MOST_LOCAL_ELEMENTS = 64
"""Sizes of at most this are in the text of a short loop: inner loops with such an end become straight vector code, and
buffers with so many elements local arrays, 4 vector registers of f32."""

MOST_LOCAL_ELEMENTS_OF_LONG = 16
"""The same for a long loop. For each size in a text there is another kernel, and the kernel of a long loop takes some
hundred milliseconds to compile. It also has too many arrays to be kept in registers at the same time."""

LONG = 80
"""A loop with more instructions than this in its kernels is long: its text depends on sizes as little as it can."""

VECTOR_BITS_OF_LONG = 256
"""With vectors of 16 f32, LLVM writes each inner loop three times: for the elements left over by such vectors it makes
narrower ones first. That takes twice as long to compile, and no less to run."""


def most_local_bytes() -> int:
    """All local arrays of one kernel together, which are on the stack: they leave room for others in a first-level
    cache."""
    return target_machine().first_cache // 2


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Where a buffer is: a variable or a constant, or a local array or pointer with `count` elements."""

    place: Expr
    count: int
    is_variable: bool = False
    lanes: Lanes | None = None
    """Where the members of a batch are, in memory that all parts of a batch see."""

    def load(self, index: Expr) -> Expr:
        """The element at an index, as it is stored."""
        return self.place if self.is_variable else Load(self.name, index)

    def store(self, index: Expr, value: Expr) -> Statement:
        """Stores an element."""
        return Assign((self.name,), (value,)) if self.is_variable else Store(self.name, index, value)

    @property
    def name(self) -> Name:
        """The variable, array or pointer; a constant has none."""
        assert isinstance(self.place, Name), "a constant is not written to"
        return self.place

    def first(self) -> Expr:
        """The only element of a buffer of one."""
        return self.load(ZERO)

    @property
    def access(self) -> tuple[Callable[[Expr], Expr], Callable[[Expr, Expr], Statement]]:
        """The loads and stores of this memory, for `Substitution`."""
        return self.load, self.store
