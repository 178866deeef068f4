"""Where a loop nest keeps the accumulators of its reductions: variables for one result at a time, or the results
themselves for many at a time. (`nest_across.py` has a third place, local arrays.)

Long sums have one more accumulator: a single one would stop growing, 1 is lost beside 16,777,216 in f32, and rounding
errors add up to percents long before. So a block of the sum has an accumulator, and the sums of blocks are added up in
f64. (Sums of f64 and of complex numbers are added up in their own type.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_opcode
from ...hlo.support.records import dataclass
from ..loops.expressions import Expr, Name, call
from .alignment import is_part
from .element import ElementEmitter
from .nest import NestEmitter
from .reduce import folded, key_functions
from .sizes import Index


@dataclass(frozen=True, slots=True)
class Cell:
    """One accumulator: its current value, and the function that writes another one."""

    value: Expr
    write: Callable[[Expr], object]


class Accumulators(ABC):
    """The accumulators of all reductions of a nest."""

    def __init__(self, nest: NestEmitter) -> None:
        self.nest, self.elements, self.writer = nest, nest.elements, nest.writer

    @abstractmethod
    def cells(self, reduce: HloInstruction, at: Index) -> list[Cell]:
        """The accumulators of a reduction for the result at an index."""

    @abstractmethod
    def know(self, reduce: HloInstruction, at: Index) -> None:
        """In the scope that is open: the values of a complete reduction are read where they are."""

    def begin(self, reduce: HloInstruction, at: Index) -> None:
        """Write the initial values."""
        inits = reduce.operands[len(reduce.operands) // 2 :]
        for cell, init in zip(self.cells(reduce, at), inits, strict=True):
            cell.write(self.elements.value(init, ()))

    def accumulate(self, reductions: Sequence[HloInstruction], indices: Sequence[Index], at: Index) -> None:
        """Combine the accumulators of one result with some elements of the domain.

        All are read before one is written. A processor that compares only the low bits of addresses would else let a
        read wait for a write to another accumulator.
        """
        cells = [cell for reduce in reductions for cell in self.cells(reduce, at)]
        old = [cell.value for cell in cells]
        if len(cells) > 1:
            old = [self.writer.let("acc", value) for value in old]
        new: list[Expr] = []
        for reduce in reductions:
            elements = self.elements_at(reduce, indices)
            new += folded(self.elements, reduce, old[len(new) : len(new) + len(reduce.operands) // 2], elements)
        if len(cells) > 1:
            new = [self.writer.let("next", value) for value in new]
        for cell, value in zip(cells, new, strict=True):
            cell.write(value)

    def elements_at(self, reduce: HloInstruction, indices: Sequence[Index]) -> list[list[Expr]]:
        """For each index, the elements of all operands."""
        arrays = reduce.operands[: len(reduce.operands) // 2]
        return [[self.elements.value(array, index) for array in arrays] for index in indices]

    def publish(self, reduce: HloInstruction, values: Sequence[Expr], at: Index) -> None:
        """Make the values of a complete reduction known while the scopes that define them are open."""
        remember = self.writer.remember
        if not reduce.shape.is_tuple:
            remember(reduce, values[0], at if reduce.shape.rank else ())
            return
        for user in self.nest.body.users[reduce]:
            if user.opcode is Opcode.GET_TUPLE_ELEMENT:
                remember(user, values[user.attributes.index], at if user.shape.rank else ())


class InVariables(Accumulators):
    """Accumulators of one result, which are variables. While the largest or smallest float is found, they are keys."""

    def __init__(self, nest: NestEmitter) -> None:
        super().__init__(nest)
        self.names: dict[tuple[HloInstruction, Index], list[Name]] = {}
        """By reduction and the index of the result."""

    def begin(self, reduce: HloInstruction, at: Index) -> None:
        keys, writer = key_functions(reduce), self.writer
        inits = [self.elements.value(init, ()) for init in reduce.operands[len(reduce.operands) // 2 :]]
        self.names[reduce, at] = [
            writer.assign(writer.fresh("acc"), call(keys[0], init) if keys else init) for init in inits
        ]

    def cells(self, reduce: HloInstruction, at: Index) -> list[Cell]:
        return [Cell(name, partial(self.writer.assign, name)) for name in self.names[reduce, at]]

    def accumulate(self, reductions: Sequence[HloInstruction], indices: Sequence[Index], at: Index) -> None:
        for reduce in reductions:
            elements, names = self.elements_at(reduce, indices), self.names[reduce, at]
            if keys := key_functions(reduce):
                new: list[Expr] = [names[0]]
                for (element,) in elements:
                    new = [call(keys[1], new[0], call(keys[0], element))]
            else:
                new = folded(self.elements, reduce, names, elements)
            self.writer.assign_all(names, new)  # at once: the new values may depend on each other's old ones

    def end(self, reduce: HloInstruction, at: Index) -> None:
        """The reduction is complete: its results are known from here on."""
        values: Sequence[Expr] = self.names[reduce, at]
        if key_functions(reduce):
            values = [self.writer.assign(self.writer.fresh("found"), call("from_key", values[0]))]
        self.publish(reduce, values, at)

    def know(self, reduce: HloInstruction, at: Index) -> None:
        """`end` has made them known."""


class InResults(Accumulators):
    """Accumulators of many results, which are the nest's outputs: those of reductions of columns."""

    def outputs(self, reduce: HloInstruction) -> list[int]:
        """For each value of a reduction, the output in which it is accumulated."""
        roots = self.nest.roots
        if not reduce.shape.is_tuple:
            return [roots.index(reduce)]
        parts = {r.attributes.index: k for k, r in reversed([*enumerate(roots)]) if is_part(r, reduce)}
        assert len(parts) == len(reduce.shape.elements), "a result of a column reduction that nobody reads"
        return [parts[k] for k in range(len(parts))]

    def cells(self, reduce: HloInstruction, at: Index) -> list[Cell]:
        nest = self.nest
        addresses = [(output, nest.address(output, at)) for output in self.outputs(reduce)]
        return [Cell(nest.stored_value(*each), partial(nest.store, *each)) for each in addresses]

    def know(self, reduce: HloInstruction, at: Index) -> None:
        for output in self.outputs(reduce):
            self.nest.read_back(self.nest.roots[output], output, at)


_NEUTRAL = {Opcode.ADD: -0.0, Opcode.MULTIPLY: 1.0}


def is_inexact_sum(reduce: HloInstruction) -> bool:
    """True for a sum or product with a result that depends on the order."""
    if reduce.opcode is not Opcode.REDUCE or len(reduce.operands) != 2:
        return False
    element = reduce.operands[0].shape.element
    return reducer_opcode(reduce.attributes.to_apply) in _NEUTRAL and (
        element.is_complex or element in (ElementType.F32, ElementType.F64)
    )


def neutral(e: ElementEmitter, reduce: HloInstruction) -> Expr:
    """The initial value of a block's accumulator."""
    opcode = reducer_opcode(reduce.attributes.to_apply)
    assert opcode is not None, "not a sum"
    return e.scalar(reduce.operands[0].shape.element, _NEUTRAL[opcode])
