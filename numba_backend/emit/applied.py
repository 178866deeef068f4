"""Kernels that apply scalar computations: reducers, selectors, combiners.

`KernelText` does for them what the loop nest does for fused computations: it keeps the parameters and the text of one
kernel, and writes out a computation where it is applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ...hlo.builder import make_parameter
from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.ops import Trait, has_trait
from ...hlo.shape import Shape
from .element import ElementEmitter, loaded, stored
from .reduce import applied, combined
from .sizes import Sizes
from .source import EmittedKernel, Expr, KernelParameter, PointerParameter, Scope, SizeParameter, Writer

LITERAL_LIMIT = 16
"""Numbers up to this one are written into the text, where the caller says that this makes better loops."""


_PARAMETER = make_parameter(0, Shape.array(ElementType.F32))
_NO_COMPUTATION = HloComputation("none", (_PARAMETER,), _PARAMETER)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A pointer of the kernel and what it points to."""

    name: str
    element_type: ElementType

    def load(self, offset: str) -> Expr:
        return loaded(self.element_type, Expr(f"{self.name}[{offset}]"))

    def store(self, offset: str, value: Expr) -> str:
        return f"{self.name}[{offset}] = {stored(self.element_type, value.text)}"


class KernelText:
    """The text of one kernel. `computation`: the scalar computation that it applies, if any."""

    def __init__(self, name: str, computation: HloComputation = _NO_COMPUTATION) -> None:
        self.name = name
        self.writer = Writer()
        self._elements = ElementEmitter(computation, self.writer, Sizes(computation))
        self._pointers: list[PointerParameter] = []
        self._sizes: list[SizeParameter] = []

    def operand(self, name: str, element_type: ElementType, number: int) -> Buffer:
        """Operand `number` of the instruction."""
        self._pointers.append(PointerParameter(name, element_type, number, None))
        return Buffer(name, element_type)

    def output(self, name: str, element_type: ElementType, number: int) -> Buffer:
        """Output `number` of the instruction; the kernel may read it too."""
        self._pointers.append(PointerParameter(name, element_type, None, number))
        return Buffer(name, element_type)

    def argument(self, name: str, value: int) -> str:
        """A number that differs between the calls that one instruction makes."""
        self._sizes.append(SizeParameter(name, value))
        return name

    def size(self, name: str, value: int, *, literal: bool = False) -> str:
        """A size or step: an argument of the kernel. 0, 1, -1 and (if `literal`) other small numbers are literals."""
        if value in (0, 1) or (literal and 0 <= value <= LITERAL_LIMIT):
            return str(value)
        return self.argument(name, value)

    def block(self, header: str) -> AbstractContextManager[Scope]:
        """Puts the lines emitted inside under `header`."""
        return self.writer.block(header, guarded=True)

    def line(self, text: str) -> None:
        self.writer.line(text)

    def combine(self, reduce: HloInstruction, accumulators: Sequence[Expr], elements: Sequence[Expr]) -> list[Expr]:
        """The accumulators combined with new elements, as expressions."""
        return combined(self._elements, reduce, accumulators, elements)

    def apply(self, computation: HloComputation, arguments: Sequence[Expr]) -> list[Expr]:
        """The results of a scalar computation, as expressions."""
        return applied(self._elements, computation, arguments)

    def assign(self, names: Sequence[str], values: Sequence[Expr]) -> None:
        """Assigns all at once: a new value may depend on the old values of the others."""
        if len(names) == 1:
            self.line(f"{names[0]} = {values[0].text}")
            return
        new = [self.writer.fresh("new") for _ in names]
        for name, value in zip(new, values, strict=True):
            self.line(f"{name} = {value.text}")
        for name, value_name in zip(names, new, strict=True):
            self.line(f"{name} = {value_name}")

    def finish(self, extent: int, cost: float) -> EmittedKernel:
        """The kernel; `cost` in nanoseconds an iteration of the sliced loop."""
        parameters: tuple[KernelParameter, ...] = (*self._pointers, *self._sizes, *self._elements.scalars)
        header = f"def {self.name}({', '.join(['lo', 'hi', *(p.name for p in parameters)])}):"
        source = "\n".join([header, *("    " + line for line in self.writer.text())]) + "\n"
        return EmittedKernel(source, parameters, extent, cost)


def cost_of(computation: HloComputation) -> float:
    """Nanoseconds of one application, estimated."""
    return sum(
        4.0 if has_trait(i.opcode, Trait.EXPENSIVE) else 0.3
        for i in computation.instructions
        if i.operands
    )
