"""The result of an emitter: a loop program, and the parameters of one call of it.

A kernel is a function of `lo, hi`, pointers, sizes and scalars. Its text is canonical: names depend only on the order
in which the emitter meets things, not on names that a user or a file chose, so equal computations give equal text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Any
from weakref import WeakKeyDictionary

from ..hlo.analyses.forms import OpaqueConstant
from ..hlo.element_type import ElementType
from ..hlo.literal import Literal
from ..hlo.support.lazy import lazy_property
from ..hlo.support.memory_pressure import on_pressure
from ..hlo.support.observed import Trial
from ..hlo.support.records import dataclass
from .cost import IN_STAGES, nanoseconds
from .loops.dead import without_dead_variables
from .loops.expressions import Name
from .loops.long_chains import in_stages
from .loops.opaque import with_opaque_sums
from .loops.printer import to_text
from .loops.residues import by_residues
from .loops.row_tails import with_row_tails
from .loops.split import split_loops, with_copies
from .loops.statements import KernelParameter, LoopProgram, PointerParameter, ScalarParameter, SizeParameter
from .loops.typing import SHORT, pointer_to
from .loops.vectorized_calls import vectorized_calls
from .loops.writer import Writer
from .machine import target_machine

LO, HI = Name("lo"), Name("hi")
"""The bounds of the outermost loop, which differ between threads."""


@dataclass(frozen=True)
class EmittedKernel:
    """One kernel call: the program, the parameters with this call's values, and how the outer loop may be split."""

    program: LoopProgram
    parameters: tuple[KernelParameter, ...]
    extent: int
    """Trip count of the loop that `lo, hi` slices."""
    cost: float | None = None
    """Nanoseconds of one iteration of that loop on one thread, where the program does not tell: its loops end where
    data say so. None: it does."""
    copied_operands: tuple[tuple[int, int], ...] = ()
    """(operand, output): the output must hold a copy of the operand before the kernel runs, unless they share."""
    is_serial: bool = False
    """Pieces of that loop must not run at the same time: they write to the same bytes."""
    least: int = 1
    """A thread should have at least so many iterations, however long one takes."""
    under: Callable[[tuple[Any, ...]], EmittedKernel] | None = field(default=None, compare=False, repr=False)
    """The same kernel under another schedule, or a ScheduleError, where the notes have steps and no `Algorithm`."""

    @lazy_property
    def nanoseconds(self) -> float:
        """The estimated time of the whole range on one thread."""
        if self.cost is not None:
            return self.cost * self.extent
        values = {p.name: p.value for p in self.parameters if isinstance(p, SizeParameter)}
        return nanoseconds(self.program, {"lo": 0, "hi": self.extent, **values}, target_machine())

    def in_stages(self) -> EmittedKernel:
        """The same kernel with its chains of long functions in stages, and those of the results of rows for a block of
        rows; itself if it has none, or takes little time."""
        if self.nanoseconds < IN_STAGES:
            return self
        if self.program not in _staged:
            made = with_row_tails(in_stages(self.program))
            _staged[self.program] = None if made is self.program else made
        program = _staged[self.program]
        return self if program is None else replace(self, program=program, cost=self.nanoseconds / self.extent)

    def of_sizes(
        self, trial: Trial, constants: Sequence[Literal], under: Callable[[tuple[Any, ...]], EmittedKernel] | None
    ) -> EmittedKernel:
        """The kernel with numbers in the place of observed sizes and opaque constants. `under`: of these numbers."""
        number = trial.number

        def known(p: KernelParameter) -> KernelParameter:
            if type(p) is SizeParameter:
                return SizeParameter(p.name, number(p.value))
            if type(p) is ScalarParameter and type(p.value) is OpaqueConstant:
                return ScalarParameter(p.name, p.element_type, constants[p.value.number].array)
            return p

        return replace(
            self, parameters=tuple(map(known, self.parameters)), extent=number(self.extent), cost=number(self.cost),
            least=number(self.least), under=under,
        )  # fmt: skip

    @lazy_property
    def source(self) -> str:
        """The program as Python."""
        program = self.program
        found = _texts.get(program)
        if found is None:
            found = _texts[program] = to_text(program)
        return found


_texts: WeakKeyDictionary[LoopProgram, str] = WeakKeyDictionary()
_staged: WeakKeyDictionary[LoopProgram, LoopProgram | None] = WeakKeyDictionary()
"""Programs in stages; None for those that have none."""


def program_of(
    name: str, parameters: Iterable[KernelParameter], writer: Writer, notes: tuple[object, ...] = (),
    vector_bits: int = 0,
) -> LoopProgram:  # fmt: skip
    """``def name(lo, hi, parameters):`` with all that was written, its loops split where a test changes its answer.
    `notes` and `vector_bits`: see `LoopProgram`.

    Of what has been written before, the program is known: with other sizes most kernels are the same.
    """
    parameters = tuple(parameters)
    whole, names = writer.body(), ("lo", "hi", *[p.name for p in parameters])
    types = tuple([None if isinstance(p, SizeParameter) else (type(p), p.element_type) for p in parameters])
    key = to_text(LoopProgram(name, names, whole, notes, vector_bits)), types
    program = _made.get(key)
    if program is None:
        parts = by_residues(split_loops(whole), writer.fresh)
        if parts is not whole:
            parts = with_copies(without_dead_variables(parts))
        body = vectorized_calls(parts, writer.fresh)
        program = LoopProgram(name, names, with_opaque_sums(body), notes, vector_bits)
        if len(_made) >= _MOST_MADE:
            _made.clear()
        _made[key] = program
    return program


_made: dict[tuple[str, tuple[object, ...]], LoopProgram] = {}
"""Programs by their text, the types of their parameters, which are not in the text."""
_MOST_MADE = 256

on_pressure(_made.clear)


def memory_type(element_type: ElementType) -> str:
    """The type of elements in memory. Types of less than a byte are stored in bytes."""
    return SHORT.get(element_type.value, "uint8")


def pointer_of(parameter: PointerParameter) -> Name:
    """The pointer to a buffer, as a name of the program."""
    return Name(parameter.name, pointer_to(memory_type(parameter.element_type)))
