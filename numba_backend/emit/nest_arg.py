"""Argmax and argmin of rows: the best value block by block, as a plain maximum, then its place in the best block.

    best0 = x0[i * n0]
    block0 = 0
    for start0 in range(0, n0, 512):
        part0 = best0
        for j in range(start0, minimum(start0 + 512, n0)):
            part0 = reduce_largest(part0, x0[i * n0 + j])
        if part0 > best0 or part0 != part0 and best0 == best0:
            best0 = part0
            block0 = start0
    place0 = 512
    for j in range(minimum(block0 + 512, n0) - block0):
        v0 = x0[i * n0 + (block0 + j)]
        place0 = minimum(place0, select(v0 == best0 or v0 != v0, int32(j), 512))

LLVM makes vectors of both inner loops, but not of the reducer itself. Zeros are equal, so the best value may have
either sign. An operand that is computed in the nest, and might differ in its last bit when it is computed again, is
kept in a local array; its block is then searched at once.
The reducer combines the pair that is found with the initial one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.analyses.arg_reducers import arg_reducer, last_index
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..loops.expressions import ZERO, Binary, Expr, Name, Number, call, minimum
from ..loops.writer import cast
from .element import ElementEmitter
from .reduce import applied
from .sizes import Index

_EXACT = frozenset((
    Opcode.PARAMETER, Opcode.IOTA, Opcode.BROADCAST, Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.SLICE, Opcode.REVERSE,
    Opcode.CONSTANT, Opcode.CONVERT, Opcode.ABS, Opcode.NEGATE, Opcode.COPY, Opcode.BITCAST,
))  # fmt: skip
"""Operations without rounding of their own, apart from the conversion of a number."""


def is_arg_reduction(reduce: HloInstruction) -> bool:
    """True for argmax and argmin along one dimension: the second operand is the indices in order."""
    attributes = reduce.attributes
    if len(reduce.operands) != 4 or len(attributes.dimensions) != 1 or arg_reducer(attributes.to_apply) is None:
        return False
    return last_index(reduce.operands[1], attributes.dimensions[0]) is not None


def _is_exact(value: HloInstruction) -> bool:
    """True for a value that gives the same bits when it is computed again, in any loop, and at little cost."""
    return value.opcode in _EXACT and all(_is_exact(operand) for operand in value.operands)


class ArgReduction:
    """Writes one reduction of one row. `row`: the index of its elements but for its own dimension, of this `size`, in
    blocks of `block` elements."""

    def __init__(self, elements: ElementEmitter, reduce: HloInstruction, size: Expr, row: Index, block: int) -> None:
        self.elements, self.writer = elements, elements.writer
        self.reduce, self.size, self.row, self.block = reduce, size, row, block
        self.is_maximum: bool = arg_reducer(reduce.attributes.to_apply) is Opcode.MAXIMUM
        self.element_type: ElementType = reduce.operands[0].shape.element
        self.is_float: bool = self.element_type.is_floating
        fresh = self.writer.fresh
        self.names = {stem: fresh(stem) for stem in ("best", "block", "start", "part", "place", "first")}
        self.kept: Name | None = None

    def emit(self, variable: str, accumulators: Sequence[Name]) -> None:
        """Combines the best element of the row with the accumulators. `variable`: the name of the inner loops' one."""
        writer, size, names = self.writer, self.size, self.names
        with writer.if_(size > 0, guarded=True):
            if not _is_exact(self.reduce.operands[0]):
                self.kept = writer.local_array(writer.fresh("kept"), self.block, self._value(ZERO).type)
            best = writer.assign(names["best"], self._value(ZERO))
            place = writer.variable(names["place"])
            if isinstance(size, Number) and size.value <= self.block:
                self._extremum(variable, ZERO, best)
                self._search(variable, ZERO, best, place)
            else:
                block = writer.assign(names["block"], ZERO)
                if self.kept is not None:
                    writer.assign(place, ZERO)
                with writer.loop(names["start"], ZERO, size, step=self.block) as start:
                    part = writer.assign(names["part"], best)
                    self._extremum(variable, start, part)
                    with writer.if_(self._is_better(part, best), guarded=True):
                        writer.assign(best, part)
                        if self.kept is None:
                            writer.assign(block, start)
                        else:
                            self._search(variable, start, best, place)
                if self.kept is None:
                    self._search(variable, block, best, place)
            index = self.at(place)
            values, indices = self.reduce.operands[:2]
            value = self.elements.value(values, index) if self.kept is None else self._held(best)
            arguments = [*accumulators, value, self.elements.value(indices, index)]
            writer.assign_all(accumulators, applied(self.elements, self.reduce.attributes.to_apply, arguments))

    def at(self, position: Expr) -> Index:
        """The index of the element at a position of the row."""
        (d,) = self.reduce.attributes.dimensions
        return (*self.row[:d], position, *self.row[d + 1 :])

    def _value(self, position: Expr) -> Expr:
        """The element at a position; a pred as a number."""
        value = self.elements.value(self.reduce.operands[0], self.at(position))
        return cast("uint8", value) if self.element_type is ElementType.PRED else value

    def _held(self, value: Expr) -> Expr:
        return value.ne(0) if self.element_type is ElementType.PRED else value

    def _stop(self, start: Expr) -> Expr:
        is_whole = isinstance(self.size, Number) and self.size.value <= self.block
        return self.size if is_whole else minimum(start + self.block, self.size)

    def _extremum(self, variable: str, start: Expr, part: Name) -> None:
        """Combines the block's elements with `part`, and keeps them if they have to be kept."""
        writer = self.writer
        with writer.loop(variable, start, self._stop(start)) as j:
            value = self._value(j)
            if self.kept is not None:
                value = value if value.is_simple else writer.let("v", value)
                writer.store(self.kept, j - start, value)
            if self.is_float:
                function = "reduce_largest" if self.is_maximum else "reduce_smallest"
            else:
                function = "maximum" if self.is_maximum else "minimum"
            writer.assign(part, call(function, part, value))

    def _is_better(self, part: Name, best: Name) -> Expr:
        better = part > best if self.is_maximum else part < best
        if not self.is_float:
            return better
        return Binary("or", better, Binary("and", part.ne(part), best.eq(best)))

    def _search(self, variable: str, start: Expr, best: Name, place: Name) -> None:
        """The place of the first element of a block that is as good as the best one."""
        writer = self.writer
        first = writer.assign(self.names["first"], cast("int32", self.block))
        with writer.loop(variable, self._stop(start) - start) as j:
            value = self._value(start + j) if self.kept is None else self.kept[j]
            value = value if value.is_simple else writer.let("v", value)
            found = value.eq(best)
            if self.is_float:
                found = Binary("|", found, value.ne(value))
            here = call("select", found, cast("int32", j), cast("int32", self.block))
            writer.assign(first, call("minimum", first, here))
        writer.assign(place, start + cast("int64", first))
        if self.kept is not None:
            writer.assign(best, self.kept[cast("int64", first)])
