"""Kernels that apply scalar computations: reducers, selectors, combiners.

`KernelText` does for them what the loop nest does for fused computations: it keeps the parameters and the program of
one kernel, and writes out a computation where it is applied.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.builder import make_parameter
from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ..emitted_kernel import EmittedKernel, pointer_of, program_of
from ..loops.expressions import Expr, Name, Number
from ..loops.statements import KernelParameter, PointerParameter, SizeParameter
from ..loops.writer import Writer
from .element import ElementEmitter, loaded, stored
from .reduce import applied, combined
from .sizes import LITERAL_LIMIT, Sizes

_PARAMETER = make_parameter(0, Shape.array(ElementType.F32))
_NO_COMPUTATION = HloComputation("none", (_PARAMETER,), _PARAMETER)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A pointer of the kernel, and the element type of its memory."""

    pointer: Name
    element_type: ElementType

    def load(self, offset: Expr | int) -> Expr:
        """The element at an offset, in the type in which it is held."""
        return loaded(self.element_type, self.pointer[offset])


class KernelText:
    """The text of one kernel. `computation`: the scalar computation that it applies, if any. `guarded`: every value is
    computed where it is written, none is moved out of a loop."""

    def __init__(self, name: str, computation: HloComputation = _NO_COMPUTATION, *, guarded: bool = False) -> None:
        self.name = name
        self.writer: Writer = Writer(guarded)
        self.elements: ElementEmitter = ElementEmitter(computation, self.writer, Sizes(computation))
        self._pointers: list[PointerParameter] = []
        self._sizes: list[SizeParameter] = []

    def operand(self, name: str, element_type: ElementType, number: int) -> Buffer:
        """Operand `number` of the instruction."""
        return self._buffer(PointerParameter(name, element_type, number, None))

    def output(self, name: str, element_type: ElementType, number: int) -> Buffer:
        """Output `number` of the instruction; the kernel may read it too."""
        return self._buffer(PointerParameter(name, element_type, None, number))

    def read_parameters(self, computation: HloComputation) -> None:
        """The kernel computes elements of `computation`: parameter n of it is operand n of the instruction."""
        for parameter in computation.parameters:
            number = parameter.attributes.number
            self.operand(f"x{number}", parameter.shape.element, number)
            self.elements.pointers[number] = self._pointers[-1]

    def _buffer(self, parameter: PointerParameter) -> Buffer:
        self._pointers.append(parameter)
        return Buffer(pointer_of(parameter), parameter.element_type)

    def argument(self, name: str, value: int) -> Name:
        """A number that differs between the calls that one instruction makes."""
        self._sizes.append(SizeParameter(name, value))
        return Name(name)

    def size(self, name: str, value: int, *, literal: bool = False) -> Expr:
        """A size or step: an argument of the kernel. 0, 1, -1 and (if `literal`) other small numbers are literals."""
        if value in (0, 1) or (literal and 0 <= value <= LITERAL_LIMIT):
            return Number(value)
        return self.argument(name, value)

    def store(self, buffer: Buffer, offset: Expr | int, value: Expr) -> None:
        """Writes a held value into a buffer."""
        self.writer.store(buffer.pointer, offset, stored(buffer.element_type, value))

    def combine(self, reduce: HloInstruction, accumulators: Sequence[Expr], elements: Sequence[Expr]) -> list[Expr]:
        """The accumulators combined with new elements, as expressions."""
        return combined(self.elements, reduce, accumulators, elements)

    def apply(self, computation: HloComputation, arguments: Sequence[Expr]) -> list[Expr]:
        """The results of a scalar computation, as expressions."""
        return applied(self.elements, computation, arguments)

    def assign(self, names: Sequence[Name], values: Sequence[Expr]) -> None:
        """Assigns all at once: a new value may depend on the old values of the others."""
        new = values if len(names) == 1 else [self.writer.let("new", value) for value in values]
        for name, value in zip(names, new, strict=True):
            self.writer.assign(name, value)

    def finish(
        self, extent: int, cost: float | None = None, vector_bits: int = 0, notes: tuple[object, ...] = ()
    ) -> EmittedKernel:
        """The kernel; `cost`: see `EmittedKernel`, `vector_bits` and `notes`: see `LoopProgram`."""
        parameters: tuple[KernelParameter, ...] = (*self._pointers, *self._sizes, *self.elements.scalars)
        program = program_of(self.name, parameters, self.writer, notes=notes, vector_bits=vector_bits)
        return EmittedKernel(program, parameters, extent, cost)
