"""Broadcasting in the interface of the seeds: how two operands get equal dimensions before an op that needs them.

"The seeds" are the four pages of XLA's first documentation (2017). Source: their page "Broadcasting semantics"; XLA's
InferInDimBroadcastShape and InferDegenerateDimensionBroadcastShape. HLO itself does not broadcast:
`ComputationBuilder` writes the `reshape` and `broadcast` instructions that are planned here.

Rules, by label:

* broadcasting_c1: both operands are arrays
* broadcasting_c2: arrays of different ranks need `broadcast_dimensions`, unless one is a scalar
* broadcasting_c3: `broadcast_dimensions` has one entry for each dimension of the operand of lower rank
* broadcasting_c4: each entry is a dimension of the operand of higher rank
* broadcasting_c5: the entries increase strictly
* broadcasting_c6: two dimensions that are matched have one size, or one of them has size 1
* broadcasting_c7: for operands of one rank `broadcast_dimensions` is empty, or all dimensions in order
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from .errors import ShapeError
from .shape import Shape
from .support.records import dataclass

Dimensions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Expansion:
    """How one operand gets the result's dimensions: a reshape to `reshaped` drops the dimensions of size 1 that must
    grow; a broadcast puts the others at `dimensions` of the result."""

    reshaped: Dimensions
    dimensions: Dimensions


@dataclass(frozen=True, slots=True)
class Broadcast:
    """The result's dimensions, and the expansion of each operand; None: the operand has the dimensions already."""

    dimensions: Dimensions
    lhs: Expansion | None
    rhs: Expansion | None


def plan_broadcast(lhs: Shape, rhs: Shape, broadcast_dimensions: Sequence[int] = ()) -> Broadcast:
    """How `lhs` and `rhs` get equal dimensions. ShapeError with the label of the violated rule if they do not fit.

    Examples of the page: f32[3] onto f32[2,3] along (1,); f32[4] onto f32[1,2] along (0,) gives [4,2].
    """
    if not (lhs.is_array and rhs.is_array):
        _fail(lhs, rhs, "operands must be arrays, not tuples", 1)
    dimensions = tuple(broadcast_dimensions)
    if lhs.rank == rhs.rank:
        if dimensions and dimensions != tuple(range(lhs.rank)):
            why = f"operands of one rank meet dimension by dimension, not along broadcast_dimensions {list(dimensions)}"
            _fail(lhs, rhs, why, 7)
        result = _meet(lhs, rhs, lhs.dimensions, rhs.dimensions)
        places = tuple(range(lhs.rank))
        return Broadcast(
            result, _expansion(lhs.dimensions, places, result), _expansion(rhs.dimensions, places, result)
        )
    lower, higher = (lhs, rhs) if lhs.rank < rhs.rank else (rhs, lhs)
    places = _places(lhs, rhs, lower, higher, dimensions)
    widened = [1] * higher.rank
    for size, d in zip(lower.dimensions, places):
        widened[d] = size
    result = _meet(lhs, rhs, widened, higher.dimensions)
    low = _expansion(lower.dimensions, places, result)
    high = _expansion(higher.dimensions, tuple(range(higher.rank)), result)
    return Broadcast(result, low, high) if lower is lhs else Broadcast(result, high, low)


def _places(lhs: Shape, rhs: Shape, lower: Shape, higher: Shape, dimensions: Dimensions) -> Dimensions:
    """The positions of the dimensions of `lower` in `higher`: `dimensions`, after checking that they are in order."""
    if lower.rank and not dimensions:
        why = f"arrays of ranks {lhs.rank} and {rhs.rank} need broadcast_dimensions: which of {higher} meets which"
        _fail(lhs, rhs, f"{why} of {lower}?", 2)
    if len(dimensions) != lower.rank:
        why = f"broadcast_dimensions {list(dimensions)} must have one entry for each of the {lower.rank} dimensions"
        _fail(lhs, rhs, f"{why} of {lower}", 3)
    if any(not 0 <= d < higher.rank for d in dimensions):
        _fail(lhs, rhs, f"broadcast_dimensions {list(dimensions)} must be dimensions of {higher}", 4)
    if any(a >= b for a, b in pairwise(dimensions)):
        _fail(lhs, rhs, f"broadcast_dimensions {list(dimensions)} must increase strictly", 5)
    return dimensions


def _meet(lhs: Shape, rhs: Shape, a: Sequence[int], b: Sequence[int]) -> Dimensions:
    """The sizes of the result: if one side has size 1, the size of the other side."""
    for d, (x, y) in enumerate(zip(a, b, strict=True)):
        if x != y and 1 not in (x, y):
            _fail(lhs, rhs, f"sizes {x} and {y} meet in dimension {d}; they must be equal, or one of them 1", 6)
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


def _expansion(sizes: Dimensions, places: Dimensions, result: Dimensions) -> Expansion | None:
    if sizes == result:
        return None
    kept = [(size, d) for size, d in zip(sizes, places) if size == result[d]]
    return Expansion(tuple(size for size, _ in kept), tuple(d for _, d in kept))


def _fail(lhs: Shape, rhs: Shape, why: str, rule: int) -> NoReturn:
    raise ShapeError(f"{lhs} with {rhs}: {why}", f"broadcasting_c{rule}")
