"""dot-canonicalization: afterwards the backend multiplies every dot's operands in the layout that they have.

Where it cannot, or where a copy costs less, the smallest set of operands is transposed first, by instructions that fuse
with the computation of the operand. A dot of one term (without contracting dimensions, or with such of size 1) is not a
matrix product but a multiplication of broadcasts, as in XLA: no sum makes -0.0 of it 0.0, and no BLAS makes infinite
complex numbers NaN.
Source of the idea: XLA's DotDecomposer and TransposeFolding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ...analyses.trip_count import state_element
from ...builder import make_instruction
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...shape import Shape
from ...support.records import dataclass
from ..patterns import broadcast, convert, reshape, transpose
from ..rewrite import map_each_computation, rewrite_computation
from ..simplify.loops import unchanged_elements

CanMultiply = Callable[[HloInstruction], bool]
"""can_multiply(dot): can the backend multiply both operands without transposing them, and is that no slower?"""


@dataclass(frozen=True, slots=True)
class DotCanonicalizer:
    """Rewrites every DOT that `can_multiply` refuses.

    The last resort is the order batch, free, contracting: a backend must accept it, or say why not.
    """

    can_multiply: CanMultiply
    name: str = "dot-canonicalization"

    def __call__(self, module: HloModule) -> HloModule:
        loops = [i for i in module.instructions() if i.opcode is Opcode.WHILE]
        unchanged = {loop.attributes.body: unchanged_elements(loop) for loop in loops}

        def rewrite(old: HloComputation, computation: HloComputation) -> HloComputation:
            elements = unchanged.get(old, set())

            def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
                if moved.opcode is not Opcode.DOT:
                    return moved
                return self.canonical(moved, {o for o in moved.operands if state_element(o) in elements})

            return rewrite_computation(computation, visit)

        return map_each_computation(module, rewrite)

    def canonical(self, dot: HloInstruction, invariant: Collection[HloInstruction] = ()) -> HloInstruction:
        """`dot` in a form that the backend accepts. Transposes of `invariant` operands cost nothing: they leave the
        loop."""
        if all(dot.operands[0].shape.dimensions[d] == 1 for d in dot.attributes.lhs_contracting_dims):
            return outer_product(_without_contracting(dot))
        if self.can_multiply(dot):
            return dot
        candidates = []
        for ordered in contracting_orders(dot):
            left, right = with_lhs_in_order(ordered), with_rhs_in_order(ordered)
            candidates += [ordered, left, right, with_rhs_in_order(left)]

        def transposed_bytes(candidate: HloInstruction) -> int:
            pairs = zip(candidate.operands, dot.operands, strict=True)
            return sum(old.shape.byte_size for new, old in pairs if new is not old and old not in invariant)

        for candidate in sorted(candidates, key=transposed_bytes):
            if self.can_multiply(candidate):
                return candidate
        return candidates[-1]


def _free(shape: Shape, batch: Sequence[int], contracting: Sequence[int]) -> list[int]:
    return [d for d in range(shape.rank) if d not in batch and d not in contracting]


def _without_contracting(dot: HloInstruction) -> HloInstruction:
    """The dot on operands without their contracting dimensions, which have size 1."""
    a = dot.attributes
    if not a.lhs_contracting_dims:
        return dot
    operands, batches = [], []
    for operand, batch, contracting in (
        (dot.operands[0], a.lhs_batch_dims, a.lhs_contracting_dims),
        (dot.operands[1], a.rhs_batch_dims, a.rhs_contracting_dims),
    ):
        kept = [d for d in range(operand.shape.rank) if d not in contracting]
        operands.append(reshape(operand, tuple(operand.shape.dimensions[d] for d in kept)))
        batches.append(tuple(map(kept.index, batch)))
    attributes = replace(
        a, lhs_batch_dims=batches[0], rhs_batch_dims=batches[1], lhs_contracting_dims=(), rhs_contracting_dims=()
    )
    return make_instruction(Opcode.DOT, operands, attributes, dot.shape)


def outer_product(dot: HloInstruction) -> HloInstruction:
    """A dot without a sum: both operands are converted to the result's type, broadcast and multiplied."""
    a = dot.attributes
    batches = len(a.lhs_batch_dims)
    factors = []
    first_free = batches
    for operand, batch in zip(dot.operands, (a.lhs_batch_dims, a.rhs_batch_dims), strict=True):
        free = _free(operand.shape, batch, ())
        places = {d: n for n, d in enumerate(batch)} | {d: first_free + n for n, d in enumerate(free)}
        first_free += len(free)
        in_order = transpose(operand, sorted(range(operand.shape.rank), key=places.__getitem__))
        converted = convert(in_order, dot.shape.element)
        factors.append(broadcast(converted, dot.shape, sorted(places.values())))
    return make_instruction(Opcode.MULTIPLY, factors)


def contracting_orders(dot: HloInstruction) -> list[HloInstruction]:
    """The dot with its contracting dimensions listed in the order of the lhs's dimensions, and of the rhs's."""
    a = dot.attributes
    pairs = list(zip(a.lhs_contracting_dims, a.rhs_contracting_dims, strict=True))
    found = []
    for ordered in dict.fromkeys((tuple(sorted(pairs)), tuple(sorted(pairs, key=lambda pair: pair[1])))):
        lhs, rhs = zip(*ordered, strict=True)
        found.append(replace(dot, attributes=replace(a, lhs_contracting_dims=lhs, rhs_contracting_dims=rhs)))
    return found


def with_lhs_in_order(dot: HloInstruction) -> HloInstruction:
    """The dot on its lhs transposed to batch, free, contracting dimensions."""
    a = dot.attributes
    lhs, rhs = dot.operands
    order = [*a.lhs_batch_dims, *_free(lhs.shape, a.lhs_batch_dims, a.lhs_contracting_dims), *a.lhs_contracting_dims]
    rank, batches, contracting = lhs.shape.rank, len(a.lhs_batch_dims), len(a.lhs_contracting_dims)
    lhs_contracting = tuple(range(rank - contracting, rank))
    attributes = replace(a, lhs_batch_dims=tuple(range(batches)), lhs_contracting_dims=lhs_contracting)
    return make_instruction(Opcode.DOT, (transpose(lhs, order), rhs), attributes, dot.shape)


def with_rhs_in_order(dot: HloInstruction) -> HloInstruction:
    """The dot on its rhs transposed to batch, contracting, free dimensions."""
    a = dot.attributes
    lhs, rhs = dot.operands
    order = [*a.rhs_batch_dims, *a.rhs_contracting_dims, *_free(rhs.shape, a.rhs_batch_dims, a.rhs_contracting_dims)]
    batches, contracting = len(a.rhs_batch_dims), len(a.rhs_contracting_dims)
    rhs_contracting = tuple(range(batches, batches + contracting))
    attributes = replace(a, rhs_batch_dims=tuple(range(batches)), rhs_contracting_dims=rhs_contracting)
    return make_instruction(Opcode.DOT, (lhs, transpose(rhs, order)), attributes, dot.shape)

