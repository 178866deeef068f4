"""How much work a module is: an estimate from shapes alone, before anything is fused.

Source: the quantities of XLA's HloCostAnalysis, by its names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from math import prod

from ..ir import HloComputation, HloInstruction, HloModule, Metadata
from ..notebooks import in_notebooks
from ..opcode import Opcode
from ..ops import Trait, has_trait
from ..support.records import dataclass
from ..support.tables import Table
from .known_sizes import check_known_sizes
from .trip_count import known_trip_count

_ARITHMETIC = frozenset({Opcode.DIVIDE, Opcode.REMAINDER, Opcode.SQRT, Opcode.RSQRT})
"""Expensive, but counted as one operation each, as XLA does; the other expensive ones are transcendental."""
_FREE = frozenset(
    {
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST),
        *(Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.FUSION, Opcode.OPT_BARRIER),
    }
)
_CALLERS = frozenset({Opcode.CALL, Opcode.FUSION, Opcode.WHILE, Opcode.CONDITIONAL})

QUANTITIES = ("flops", "transcendentals", "bytes accessed")


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """The cost of one instruction in all its executions, including the computations that it calls."""

    name: str
    opcode: str
    shape: str
    times: int
    """How often it runs: more than once in a loop's body."""
    flops: float
    transcendentals: float
    bytes_accessed: float
    source: str
    """The user's line, ``file:line``; "" if it is not known."""
    _instruction: HloInstruction = field(repr=False, compare=False)
    _known: dict[HloComputation, Counter[str]] = field(repr=False, compare=False)

    @property
    def arithmetic_intensity(self) -> float:
        """Operations, transcendental ones too, for each byte that is read or written; 0 if there are no bytes."""
        return (self.flops + self.transcendentals) / self.bytes_accessed if self.bytes_accessed else 0.0

    @property
    def parts(self) -> InstructionCosts:
        """The instructions of the computations that it calls, if it is a fusion, a loop, a conditional or a call. All
        branches of a conditional are included, although the conditional costs as much as the largest one."""
        if self._instruction.opcode not in _CALLERS:
            return InstructionCosts()
        times = self.times * (_trips(self._instruction) if self._instruction.opcode is Opcode.WHILE else 1)
        called = self._instruction.called_computations()
        return InstructionCosts([_row(i, times, self._known) for c in called for i in c.instructions])


class InstructionCosts(tuple[InstructionCost, ...]):
    """The costs of the instructions of a computation, in order. They print as a table, without those that cost
    nothing."""

    __slots__ = ()

    def table(self) -> Table:
        """A row for each instruction that costs something."""
        rows = [
            (
                i.name, i.opcode, i.shape, f"{i.times:,}", f"{i.flops:,.0f}", f"{i.transcendentals:,.0f}",
                f"{i.bytes_accessed:,.0f}", f"{i.arithmetic_intensity:.2f}", i.source,
            )
            for i in self
            if i.flops or i.transcendentals or i.bytes_accessed
        ]  # fmt: skip
        headings = ("instruction", "opcode", "shape", "times", *QUANTITIES, "flops per byte", "line")
        return Table(headings, rows, frozenset({3, 4, 5, 6, 7}))

    def __str__(self) -> str:
        return self.table().to_text()

    __repr__ = __str__

    _repr_html_ = in_notebooks


class CostEstimate(dict[str, float]):
    """Quantities by name. They print as a table."""

    instructions: InstructionCosts = InstructionCosts()
    """The instructions of the entry computation. Their sums are the quantities; `parts` of each says more."""

    def table(self) -> Table:
        """A row for each quantity."""
        return Table(("cost", "number"), [(name, f"{n:,.0f}") for name, n in self.items()], frozenset({1}))

    def __str__(self) -> str:
        return self.table().to_text()

    _repr_html_ = in_notebooks


def cost_analysis(module: HloModule) -> CostEstimate:
    """{"flops", "transcendentals", "bytes accessed"}: operations on elements, and bytes read and written by all ops.

    A loop's body counts once for each known trip, once if that is not known; a conditional as its largest branch.
    `instructions` of the result has the same for each instruction. UnsupportedError for symbolic sizes.
    """
    check_known_sizes(module.instructions(), "cost_analysis")
    known: dict[HloComputation, Counter[str]] = {}
    cost = _of_computation(module.entry, known)
    estimate = CostEstimate({key: float(cost[key]) for key in QUANTITIES})
    estimate.instructions = InstructionCosts([_row(i, 1, known) for i in module.entry.instructions])
    return estimate


def cost_of(
    instruction: HloInstruction, known: dict[HloComputation, Counter[str]] | None = None
) -> Mapping[str, int]:
    """The quantities of one instruction, with all that it calls. `known`: those of computations, for many questions."""
    return _of_instruction(instruction, {} if known is None else known)


def operations_of(instruction: HloInstruction, known: dict[HloComputation, Counter[str]]) -> int:
    """Operations on elements, transcendental or not, of one instruction with all that it calls; `known` as above."""
    cost = _operations(instruction, instruction.called_computations(), known)
    return cost["flops"] + cost["transcendentals"]


def source_of(instruction: HloInstruction) -> str:
    """The user's line that an instruction comes from, ``file:line``; for a fusion the line of its root, or else of the
    last instruction that has a line. "" if it is not known."""
    metadata = metadata_of(instruction)
    return "" if metadata is None else f"{metadata.source_file}:{metadata.source_line}"


def metadata_of(instruction: HloInstruction) -> Metadata | None:
    """Where an instruction comes from, with the file; see `source_of`."""
    if instruction.metadata is not None and instruction.metadata.source_file:
        return instruction.metadata
    if instruction.opcode is Opcode.FUSION:
        fused = instruction.called_computations()[0]
        for inner in (fused.root, *reversed(fused.instructions)):
            found = inner.metadata if inner.opcode is not Opcode.WHILE else metadata_of(inner)
            if found is not None and found.source_file:
                return found
    return None


def _row(instruction: HloInstruction, times: int, known: dict[HloComputation, Counter[str]]) -> InstructionCost:
    cost = _of_instruction(instruction, known)
    flops, transcendentals, nbytes = (float(cost[key] * times) for key in QUANTITIES)
    return InstructionCost(
        instruction.name, instruction.opcode.value, str(instruction.shape), times, flops, transcendentals, nbytes,
        source_of(instruction), instruction, known,
    )  # fmt: skip


def _trips(loop: HloInstruction) -> int:
    found = known_trip_count(loop)
    return 1 if found is None else found


def _of_computation(computation: HloComputation, known: dict[HloComputation, Counter[str]]) -> Counter[str]:
    found = known.get(computation)
    if found is None:
        found = Counter()
        for instruction in computation.instructions:
            found.update(_of_instruction(instruction, known))
        known[computation] = found
    return found


def _of_instruction(instruction: HloInstruction, known: dict[HloComputation, Counter[str]]) -> Counter[str]:
    cost = _operations(instruction, instruction.called_computations(), known)
    if instruction.opcode not in _FREE:
        own = instruction.shape.byte_size + sum([o.shape.byte_size for o in instruction.operands])
        cost["bytes accessed"] += own
    return cost


def _operations(
    instruction: HloInstruction, called: tuple[HloComputation, ...], known: dict[HloComputation, Counter[str]]
) -> Counter[str]:
    """The operations of an instruction; of one that calls a computation also the bytes of these."""
    opcode = instruction.opcode
    cost: Counter[str] = Counter()
    match opcode:
        case Opcode.CALL | Opcode.FUSION:
            cost.update(_of_computation(called[0], known))
        case Opcode.WHILE:
            times = _trips(instruction)
            for computation in called:
                cost.update({k: n * times for k, n in _of_computation(computation, known).items()})
        case Opcode.CONDITIONAL:
            branches = [_of_computation(c, known) for c in called]
            cost.update({k: max(b[k] for b in branches) for b in branches for k in b})
        case Opcode.REDUCE:
            count = instruction.operands[0].shape.num_elements
            cost["flops"] = count * _of_computation(called[0], known)["flops"]
        case Opcode.REDUCE_WINDOW:
            first = next(iter(instruction.shape.leaves()))
            count = first.num_elements * prod(part.size for part in instruction.attributes.window)
            cost["flops"] = count * _of_computation(called[0], known)["flops"]
        case Opcode.SELECT_AND_SCATTER:
            source = instruction.operands[1].shape.num_elements
            count = source * (prod(part.size for part in instruction.attributes.window) - 1)
            select, scatter = (_of_computation(c, known)["flops"] for c in called)
            cost["flops"] = max(count, 0) * select + source * scatter
        case Opcode.CONVOLUTION:
            kernel, numbers = instruction.operands[1].shape.dimensions, instruction.attributes.dimension_numbers
            terms = prod(kernel[d] for d in (numbers.kernel_input_feature, *numbers.kernel_spatial))
            cost["flops"] = 2 * instruction.shape.num_elements * terms
        case Opcode.DOT:
            lhs = instruction.operands[0].shape.dimensions
            contracted = 1
            for d in instruction.attributes.lhs_contracting_dims:
                contracted *= lhs[d]
            cost["flops"] = 2 * instruction.shape.num_elements * contracted
        case _ if has_trait(opcode, Trait.ELEMENTWISE) and not has_trait(opcode, Trait.MOVEMENT):
            transcendental = has_trait(opcode, Trait.EXPENSIVE) and opcode not in _ARITHMETIC
            cost["transcendentals" if transcendental else "flops"] = instruction.shape.num_elements
    return cost
