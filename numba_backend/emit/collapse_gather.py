"""gather's dimension numbers in the canonical form: dimensions of size 1 are removed, neighbours are merged.

A gather of whole slices of [V, D1, D2] by [B, T, 1] indices becomes a gather of slices of [V, D] by [N] indices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ...hlo.analyses.in_bounds import in_bounds, with_in_bounds
from ...hlo.ir import HloInstruction
from ...hlo.ops.indexing import GatherAttributes

NOWHERE = -1
"""In start_index_map: the component belongs to a dimension of size 1, which has been removed."""


def batch_pairs(gather: HloInstruction) -> list[tuple[int, int]]:
    """(dimension of the result, dimension of the indices) for all dimensions of the result outside of the slices."""
    attributes, indices = gather.attributes, gather.operands[1]
    batch = [d for d in range(gather.shape.rank) if d not in attributes.offset_dims]
    partners = [d for d in range(indices.shape.rank) if d != attributes.index_vector_dim]
    return list(zip(batch, partners, strict=True))


def offset_pairs(gather: HloInstruction) -> list[tuple[int, int]]:
    """(dimension of the result, dimension of the array) for the dimensions of the slices."""
    attributes, array = gather.attributes, gather.operands[0]
    left_out = (*attributes.collapsed_slice_dims, *attributes.operand_batching_dims)
    kept = [d for d in range(array.shape.rank) if d not in left_out]
    return list(zip(attributes.offset_dims, kept, strict=True))


def is_whole(gather: HloInstruction, dimension: int) -> bool:
    """True when the slices cover the array's whole dimension."""
    return bool(gather.attributes.slice_sizes[dimension] == gather.operands[0].shape.dimensions[dimension])


def merging_neighbours(gather: HloInstruction) -> Iterator[tuple[int, int, int]]:
    """(d, k, e): dimensions d and d + 1 of the result are e and e + 1 of operand k, and may be merged in both."""
    batching = gather.attributes.start_indices_batching_dims
    pairs = batch_pairs(gather)
    for (d, b), (next_d, next_b) in pairwise(pairs):
        if next_d == d + 1 and next_b == b + 1 and b not in batching and next_b not in batching:
            yield d, 1, b
    pairs = offset_pairs(gather)
    for (d, e), (next_d, next_e) in pairwise(pairs):
        if next_d == d + 1 and next_e == e + 1 and is_whole(gather, e) and is_whole(gather, next_e):
            yield d, 0, e


Groups = Sequence[Sequence[int]]
"""The groups of dimensions of an array that become one dimension each."""


def positions(groups: Groups) -> dict[int, int]:
    """By dimension: the number of its group."""
    return {d: n for n, group in enumerate(groups) for d in group}


def regrouped_gather(old: HloInstruction, result: Groups, array: Groups, indices: Groups) -> GatherAttributes:
    """The attributes for other groups of dimensions. A dimension of the array in which the slices have size 1 becomes a
    collapsed one."""
    attributes: GatherAttributes = old.attributes
    in_result, in_array, in_indices = map(positions, (result, array, indices))
    ones = [d for _, d in offset_pairs(old) if attributes.slice_sizes[d] == 1]
    batching = [
        (in_array[d], in_indices[b])
        for d, b in zip(attributes.operand_batching_dims, attributes.start_indices_batching_dims, strict=True)
        if d in in_array
    ]
    return replace(
        attributes,
        offset_dims=tuple(dict.fromkeys([in_result[d] for d in attributes.offset_dims if d in in_result])),
        collapsed_slice_dims=tuple(
            [in_array[d] for d in sorted((*attributes.collapsed_slice_dims, *ones)) if d in in_array]
        ),
        start_index_map=tuple([in_array.get(d, NOWHERE) for d in attributes.start_index_map]),
        index_vector_dim=in_indices.get(attributes.index_vector_dim, len(indices)),
        slice_sizes=tuple([math.prod([attributes.slice_sizes[d] for d in group]) for group in array]),
        operand_batching_dims=tuple([d for d, _ in batching]),
        start_indices_batching_dims=tuple([b for _, b in batching]),
    )


def with_same_bounds(new: HloInstruction, old: HloInstruction) -> HloInstruction:
    """`new`, a gather with other dimensions. Its indices are known to be in bounds if all indices of `old` are."""
    indexed = {d for d, size in enumerate(old.operands[0].shape.dimensions) if size != old.attributes.slice_sizes[d]}
    known = indexed.intersection(old.attributes.start_index_map) <= in_bounds(old)
    return with_in_bounds(new, [d for d in new.attributes.start_index_map if d != NOWHERE] if known else ())
