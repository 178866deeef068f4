"""Find the values of a fused computation that have the same index in one loop nest."""

from __future__ import annotations

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Reductions:
    """The reductions of a fused computation. All reductions of a group are over the same dimensions of the one
    domain."""

    main: tuple[HloInstruction, ...] = ()
    """Reductions with results that the nest can use."""
    columns: tuple[HloInstruction, ...] = ()
    """Beside reductions of rows: those along columns. Nothing in the nest reads their results."""


def reductions_of(body: HloComputation) -> Reductions:
    """The reductions, in groups. Columns alone are a main group too."""
    found = tuple(i for i in body.instructions if i.opcode is Opcode.REDUCE)
    rows = tuple(r for r in found if r.operands[0].shape.rank - 1 in r.attributes.dimensions)
    if not rows or len(rows) == len(found):
        return Reductions(found)
    return Reductions(rows, tuple(r for r in found if r not in rows))


@dataclass(frozen=True, slots=True)
class Aligned:
    """Values with the same dimensions, which have the same index."""

    values: tuple[HloInstruction, ...]
    rank: int


def alignment_of(body: HloComputation) -> tuple[Aligned, ...]:
    """The roots and reductions of a fused computation, grouped by the index that the nest has for them: one element for
    each element of the domain, or (in a nest with reductions) for each kept index or column."""
    roots = body.roots
    reductions = reductions_of(body)
    if not reductions.main:
        first = roots[0]
        return (Aligned(tuple(r for r in roots if r.shape.dimensions == first.shape.dimensions), first.shape.rank),)
    domain = reductions.main[0].operands[0]
    reduced = reductions.main[0].attributes.dimensions
    every = (*reductions.main, *reductions.columns)
    arrays = [o for r in every for o in r.operands[: len(r.operands) // 2]]
    plain = [r for r in roots if r.opcode not in (Opcode.REDUCE, Opcode.GET_TUPLE_ELEMENT)]
    full = [r for r in plain if reduced and r.shape.dimensions == domain.shape.dimensions]
    columns = _with_parts(reductions.columns, roots)
    other = [r for r in roots if r not in full and r.opcode is not Opcode.REDUCE and r not in columns]
    kept = [*reductions.main, *other]
    groups = [Aligned((*arrays, *full), domain.shape.rank), Aligned(tuple(kept), domain.shape.rank - len(reduced))]
    if columns:
        along = reductions.columns[0].attributes.dimensions
        groups.append(Aligned(columns, domain.shape.rank - len(along)))
    return tuple(groups)


def _with_parts(
    reductions: tuple[HloInstruction, ...], roots: tuple[HloInstruction, ...]
) -> tuple[HloInstruction, ...]:
    """The reductions, and their elements where a reduction has several results."""
    return (*reductions, *[root for root in roots if any(is_part(root, reduce) for reduce in reductions)])


def is_part(root: HloInstruction, reduce: HloInstruction) -> bool:
    """True for an element of the results of a reduction that has several."""
    return root.opcode is Opcode.GET_TUPLE_ELEMENT and root.operands[0] is reduce
