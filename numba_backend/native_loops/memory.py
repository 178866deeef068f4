"""The memory of a native loop's values.

A buffer of one element is a local variable, a small one a local array, of which LLVM makes vector registers where it
can. Larger ones are behind pointers: the operands and results of the loop, and scratch memory for the rest. Variables
and arrays hold elements as they are stored: pred as uint8, f16 as uint16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..loops.expressions import ZERO, Expr, Load, Name
from ..loops.statements import Assign, Statement, Store

MOST_LOCAL_ELEMENTS = 64
"""Buffers of at most this many elements are local arrays: 4 vector registers of f32."""

MOST_LOCAL_BYTES = 16 << 10
"""All local arrays of one kernel together; they are on the stack."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Where a buffer is: a variable, or a local array or pointer with `count` elements."""

    name: Name
    count: int
    is_variable: bool = False

    def load(self, index: Expr) -> Expr:
        """The element at an index, as it is stored."""
        return self.name if self.is_variable else Load(self.name, index)

    def store(self, index: Expr, value: Expr) -> Statement:
        """Stores an element."""
        return Assign((self.name,), (value,)) if self.is_variable else Store(self.name, index, value)

    def first(self) -> Expr:
        """The only element of a buffer of one."""
        return self.load(ZERO)

    @property
    def access(self) -> tuple[Callable[[Expr], Expr], Callable[[Expr, Expr], Statement]]:
        """What `Substitution` wants to know."""
        return self.load, self.store
