"""Loops over rows of local arrays, as operations on vectors: in kernels that multiply words (dialect_words.py).

    for j in range(16):
        sums[j] = dot_bytes(sums[j], factor, panel[at + j])

LLVM makes vectors of such loops by itself where each operation has a form for vectors. The instructions that multiply
several numbers in a word have none that it could find. So these loops, and those that set and copy such rows, become
operations on a whole row here, and the arrays registers, since all accesses to them are known. All other loops of the
kernel stay as they are, and so do all loops of other kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..loops.expressions import Binary, Call, Expr, Load, Name, Number
from ..loops.statements import Block, For, Store, expressions_of, walk
from .dialect_words import LANES, in_vectors, splat, vector_of

_SCALARS = ("uint32", "float32")
_PLAIN = {"add": ("add", "fadd"), "subtract": ("sub", "fsub")}
"""Of integers, and of floats."""


def multiplies_words(body: Block) -> bool:
    """True for a program that calls a function of dialect_words.py."""
    return any(
        isinstance(part, Call) and part.function in in_vectors
        for statement in walk(body)
        for whole in expressions_of(statement)
        for part in whole.walk()
    )


def row_of(loop: For, local_arrays: Collection[str]) -> Store | None:
    """What such a loop stores, or None if it is another loop."""
    if loop.start is not None or loop.step != 1 or not isinstance(loop.stop, Number) or loop.stop.value != LANES:
        return None
    if len(loop.body) != 1:
        return None
    store = loop.body[0]
    if not isinstance(store, Store):
        return None
    variable = loop.variable.name
    if store.pointer.name not in local_arrays or first_index(store.index, variable) is None:
        return None
    if store.value.type not in _SCALARS or store.pointer.type != store.value.type + "*":
        return None
    return store if _has_a_form(store.value, variable, local_arrays, store) else None


def first_index(index: Expr, variable: str) -> Expr | None:
    """The index of the first element, ``at`` of ``at + j``; None for other forms."""
    if isinstance(index, Name) and index.name == variable:
        return Number(0)
    if isinstance(index, Binary) and index.op == "+" and isinstance(index.right, Name) and index.right.name == variable:
        return None if index.left.reads(variable) else index.left
    return None


def _has_a_form(value: Expr, variable: str, local_arrays: Collection[str], store: Store) -> bool:
    """True if `Rows.vector` can write the value; an element that is read is the one that is written, or far from it."""
    if not value.reads(variable):
        return value.type in _SCALARS
    if isinstance(value, Load):
        if value.pointer.name not in local_arrays or value.type not in _SCALARS:
            return False
        same = value.pointer.name != store.pointer.name or value.index.text == store.index.text
        return same and first_index(value.index, variable) is not None
    if not isinstance(value, Call) or not (value.function in in_vectors or value.function in _PLAIN):
        return False
    return all(_has_a_form(part, variable, local_arrays, store) for part in value.parts)


class Rows:
    """Writes rows, with functions that write a pointer's value and that of an expression which is equal in a row."""

    def __init__(
        self, builder: Any, pointer: Callable[[Name], Any], scalar: Callable[[Expr], Any], features: frozenset[str]
    ) -> None:
        self._builder, self._pointer, self._scalar, self._features = builder, pointer, scalar, features

    def store(self, store: Store, variable: str) -> None:
        """The whole loop."""
        value = self._vector(store.value, variable)
        self._builder.store(value, self._place(store.pointer, store.index, variable), align=4)

    def _place(self, pointer: Name, index: Expr, variable: str) -> Any:
        first = first_index(index, variable)
        assert first is not None, index.text
        place = self._builder.gep(self._pointer(pointer), [self._scalar(first)], inbounds=True)
        return self._builder.bitcast(place, vector_of(place.type.pointee).as_pointer())

    def _vector(self, value: Expr, variable: str) -> Any:
        builder = self._builder
        if not value.reads(variable):
            return splat(builder, self._scalar(value))
        if isinstance(value, Load):
            return builder.load(self._place(value.pointer, value.index, variable), align=4)
        parts = [self._vector(part, variable) for part in value.parts]
        assert isinstance(value, Call), value.text
        form = in_vectors.get(value.function)
        if form is not None:
            return form(builder, *parts, self._features)
        return getattr(builder, _PLAIN[value.function][value.type.startswith("float")])(*parts)
