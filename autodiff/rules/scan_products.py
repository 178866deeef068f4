"""Sums of products over the iterations of a loop, as one product of stacked factors after it.

The cotangent of a matrix that all iterations multiply by is a sum of outer products. A loop that carries the sum reads
and writes the whole matrix in each iteration. Where the factors are much smaller it stacks them instead, and one dot
contracts the iterations, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...hlo.builder import make_computation, make_parameter, make_tuple
from ...hlo.effects import effects_of
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.dot import DotAttributes
from ...hlo.shape import Shape
from ...hlo.sizes import is_symbolic
from ...hlo.support.records import dataclass
from ...tracer.core import Value, bind
from ...tracer.ops import add, transpose
from ..residuals import cost_to_stack, size_in_bytes
from .declared import raised
from .device_parts import depending

_ENOUGH_MEMORY = 1 << 22
"""Bytes that factors may take in any case. More, if the loop reads as much already."""


@dataclass(frozen=True, slots=True)
class _Product:
    """A term of a sum: the dot of two stacks of factors, transposed."""

    factors: tuple[int, int]
    """Indices into (arrays that the loop reads, further results of the loop)."""
    attributes: DotAttributes
    shape: Shape
    permutations: tuple[tuple[int, ...], ...]

    def value(self, stacks: Sequence[Value]) -> Value:
        x, y = (stacks[n] for n in self.factors)
        found = bind(Opcode.DOT, (x, y), self.attributes, shape=self.shape)
        for permutation in self.permutations:
            found = transpose(found, permutation)
        return found


@dataclass(frozen=True, slots=True)
class Products:
    """A loop's body without some of its sums."""

    body: HloComputation
    added: int
    """How many results it has more."""
    sums: Mapping[int, tuple[_Product, ...]]
    """By the number of the sum, its terms."""

    def value(self, number: int, stacks: Sequence[Value]) -> Value:
        """A sum: `stacks` are the arrays that the loop reads, and its further results."""
        first, *others = [p.value(stacks) for p in self.sums[number]]
        for other in others:
            first = add(first, other)
        return first


def products_after(
    body: HloComputation, sums: range, carry: int, arrays: range, length: int
) -> Products:
    """`body` (parameters: constants, carry, slices, index, captured) with some of its sums taken out of it.

    `sums`: the numbers of the parameters that are sums, the last part of the carry; `arrays`: the numbers of the
    parameters that are slices. `carry` is the number of results before the first sum. The last results are new: one
    slice of each new stack.
    """
    results = list(body.root.operands)
    rows = [body.parameters[n] for n in arrays]
    varying = depending([*rows, *(body.parameters[n] for n in range(sums.start - carry, arrays.stop + 1))], body)
    sizes = (length, *[d for i in (*rows, *body.parameters) for d in i.shape.dimensions])
    if any(map(is_symbolic, sizes)):  # it is not known what fits in memory
        return Products(_without(body, sums, carry, {}, []), 0, {})
    room = max(_ENOUGH_MEMORY, length * sum(size_in_bytes(r.shape) for r in rows))
    added: list[HloInstruction] = []
    found: dict[int, tuple[_Product, ...]] = {}
    for k, number in enumerate(sums):
        before = body.parameters[number]
        terms = _terms(results[carry + k], before)
        if not terms or body.users[before] != _single_user(results[carry + k], before):
            continue
        dots = [_dot_of(term) for term in terms]
        factors = [o for dot, _ in dots for o in dot.operands]
        if any(dot.opcode is not Opcode.DOT for dot, _ in dots) or not all(o in varying for o in factors):
            continue
        if any(o.shape.element is not before.shape.element for o in factors):
            continue
        new = [o for o in dict.fromkeys(factors) if o not in rows]
        cost = sum(cost_to_stack(o) for o in new)
        needed = length * sum(size_in_bytes(o.shape) for o in {*new, *added})
        if 2 * cost > len(dots) * size_in_bytes(before.shape) or needed > room:
            continue
        added += [o for o in new if o not in added]
        stacks = [*rows, *added]
        found[k] = tuple(_product(dot, permutations, stacks) for dot, permutations in dots)
    return Products(_without(body, sums, carry, found, added), len(added), found)


def _terms(total: HloInstruction, before: HloInstruction) -> list[HloInstruction]:
    """The terms of a sum that `before` is one of; none if it is not."""
    terms: list[HloInstruction] = []
    stack = [total]
    while stack:
        top = stack.pop()
        if top.opcode is Opcode.ADD:
            stack += reversed(top.operands)
        else:
            terms.append(top)
    return [t for t in terms if t is not before] if terms.count(before) == 1 else []


def _single_user(total: HloInstruction, before: HloInstruction) -> tuple[HloInstruction, ...]:
    """The addition within `total` that uses `before`."""
    stack = [total]
    while stack:
        top = stack.pop()
        if top.opcode is Opcode.ADD:
            if before in top.operands:
                return (top,)
            stack += top.operands
    return ()


def _dot_of(term: HloInstruction) -> tuple[HloInstruction, tuple[tuple[int, ...], ...]]:
    """A term without its transposes, and these."""
    permutations: list[tuple[int, ...]] = []
    while term.opcode is Opcode.TRANSPOSE:
        permutations.append(term.attributes.dimensions)
        (term,) = term.operands
    return term, tuple(reversed(permutations))


def _product(
    dot: HloInstruction, permutations: tuple[tuple[int, ...], ...], stacks: Sequence[HloInstruction]
) -> _Product:
    """The dot of stacks, which have the iterations as their first dimension."""
    a: DotAttributes = dot.attributes
    attributes = replace(
        a,
        lhs_batch_dims=raised(a.lhs_batch_dims),
        rhs_batch_dims=raised(a.rhs_batch_dims),
        lhs_contracting_dims=(0, *raised(a.lhs_contracting_dims)),
        rhs_contracting_dims=(0, *raised(a.rhs_contracting_dims)),
    )
    x, y = (stacks.index(o) for o in dot.operands)
    return _Product((x, y), attributes, dot.shape, permutations)


def _without(
    body: HloComputation,
    sums: range,
    carry: int,
    found: Mapping[int, tuple[_Product, ...]],
    added: Sequence[HloInstruction],
) -> HloComputation:
    """`body` without the sums `found`, with further results."""
    if not found:
        return body
    dropped = {body.parameters[sums[k]] for k in found}
    parameters: dict[HloInstruction, HloInstruction] = {}
    for p in body.parameters:
        if p not in dropped:
            parameters[p] = make_parameter(len(parameters), p.shape)
    copies = dict(parameters)
    for i in body.instructions:
        if i not in copies and all(o in copies for o in i.operands) and i.opcode is not Opcode.PARAMETER:
            copies[i] = i.with_operands(tuple([copies[o] for o in i.operands]))
    kept = [r for k, r in enumerate(body.root.operands) if k - carry not in found]
    root = make_tuple([copies[r] for r in (*kept, *added)])
    effects = [copies[i] for i in effects_of(body)]
    return make_computation(body.name, root, list(parameters.values()), effects)
