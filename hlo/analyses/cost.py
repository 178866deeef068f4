"""How much work a module is: an estimate from shapes alone, before anything is fused.

Source: the quantities of XLA's HloCostAnalysis, by its names.
"""

from __future__ import annotations

from collections import Counter
from math import prod

from ..ir import HloComputation, HloInstruction, HloModule
from ..opcode import Opcode
from ..ops import Trait, has_trait
from ..tables import Table
from .trip_count import known_trip_count

_ARITHMETIC = frozenset({Opcode.DIVIDE, Opcode.REMAINDER, Opcode.SQRT, Opcode.RSQRT})
"""Expensive, but counted as one operation each, as XLA does; the other expensive ones are transcendental."""
_FREE = frozenset(
    {
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST),
        *(Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.FUSION, Opcode.OPT_BARRIER),
    }
)


class CostEstimate(dict[str, float]):
    """Quantities by name. They print as a table."""

    def table(self) -> Table:
        """A row for each quantity."""
        return Table(("cost", "number"), [(name, f"{n:,.0f}") for name, n in self.items()], frozenset({1}))

    def __str__(self) -> str:
        return self.table().to_text()

    def _repr_html_(self) -> str:
        return self.table().to_html()


def cost_analysis(module: HloModule) -> CostEstimate:
    """{"flops", "transcendentals", "bytes accessed"}: operations on elements, and bytes read and written by all ops.

    A loop's body counts once for each known trip, once if that is not known; a conditional as its largest branch.
    """
    cost = _of_computation(module.entry, {})
    return CostEstimate({key: float(cost[key]) for key in ("flops", "transcendentals", "bytes accessed")})


def _of_computation(computation: HloComputation, known: dict[HloComputation, Counter[str]]) -> Counter[str]:
    found = known.get(computation)
    if found is None:
        found = Counter()
        for instruction in computation.instructions:
            found.update(_of_instruction(instruction, known))
        known[computation] = found
    return found


def _of_instruction(instruction: HloInstruction, known: dict[HloComputation, Counter[str]]) -> Counter[str]:
    opcode, called = instruction.opcode, instruction.called_computations()
    cost: Counter[str] = Counter()
    if opcode not in _FREE:
        cost["bytes accessed"] = instruction.shape.byte_size + sum(o.shape.byte_size for o in instruction.operands)
    match opcode:
        case Opcode.CALL | Opcode.FUSION:
            cost.update(_of_computation(called[0], known))
        case Opcode.WHILE:
            known_times = known_trip_count(instruction)
            times = 1 if known_times is None else known_times
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
