"""Which values of a fused computation have the same index in one loop nest."""

from __future__ import annotations

from dataclasses import dataclass

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode


def roots_of(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """The outputs of a fused computation, in order."""
    root = computation.root
    return root.operands if root.opcode is Opcode.TUPLE else (root,)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Values with one element for each element of the domain or (in a nest with reductions) for each kept index."""

    full: tuple[HloInstruction, ...]
    kept: tuple[HloInstruction, ...] = ()
    kept_rank: int = 0


def alignment_of(body: HloComputation) -> Alignment:
    """The roots and reductions of a fused computation, grouped by the index that the nest has for them."""
    roots = roots_of(body)
    reductions = [i for i in body.instructions if i.opcode is Opcode.REDUCE]
    if not reductions:
        return Alignment(tuple(r for r in roots if r.shape.dimensions == roots[0].shape.dimensions))
    domain = reductions[0].operands[0]
    reduced = reductions[0].attributes.dimensions
    arrays = [o for r in reductions for o in r.operands[: len(r.operands) // 2]]
    plain = [r for r in roots if r.opcode not in (Opcode.REDUCE, Opcode.GET_TUPLE_ELEMENT)]
    full = [r for r in plain if reduced and r.shape.dimensions == domain.shape.dimensions]
    kept = [*reductions, *(r for r in roots if r not in full and r.opcode is not Opcode.REDUCE)]
    return Alignment((*arrays, *full), tuple(kept), domain.shape.rank - len(reduced))
