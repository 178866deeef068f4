"""Op cases of random numbers. The results of rng are not compared here (see test_random_op.py), except for parameters
that leave only one result."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..hlo import ElementType, Shape
from ..hlo.ops.random import (
    RandomAlgorithm,
    RandomDistribution,
    RngAttributes,
    RngBitGeneratorAttributes,
    RngGetAndUpdateStateAttributes,
)
from .op_case import FLOATS, Array, E, O, OpCase, make_case, shape_of
from .op_values import NDArray, fixed

_A = RandomAlgorithm
_SIZES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (5,), (3, 4), (3, 5, 7), (2, 129))


def _state(element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """A random key, and a counter that will overflow into its next word."""
    return np.array([rng.integers(0, 2**63), 2**64 - 2, 7][: dimensions[0]], np.uint64)


def _bits() -> Iterator[OpCase]:
    def case(algorithm: RandomAlgorithm, length: int, t: ElementType, dims: tuple[int, ...]) -> OpCase:
        result = Shape.tuple([shape_of(E.U64, (length,)), shape_of(t, dims)])
        note = "-".join([algorithm.value, t.value, *map(str, dims)])
        attributes = RngBitGeneratorAttributes(algorithm)
        return make_case(O.RNG_BIT_GENERATOR, [Array(E.U64, (length,), _state)], result, attributes, note=note)

    for algorithm, length in ((_A.THREEFRY, 2), (_A.PHILOX, 2), (_A.PHILOX, 3), (_A.DEFAULT, 2), (_A.DEFAULT, 3)):
        for t in (E.U4, E.U8, E.U16, E.U32, E.U64):
            for dims in _SIZES if t is E.U32 else ((5,), (4, 3)):
                yield case(algorithm, length, t, dims)


def _drawn() -> Iterator[OpCase]:
    D = RandomDistribution
    for t in FLOATS:
        mean, none = Array(t, (), fixed(1.5)), Array(t, (), fixed(0))
        for dims in ((3, 5), (), (0,)):
            note = "-".join(map(str, dims))
            yield make_case(O.RNG, [mean, none], shape_of(t, dims), RngAttributes(D.NORMAL), note=f"normal-{note}")
        yield make_case(O.RNG, [mean, mean], shape_of(t, (7,)), RngAttributes(D.UNIFORM), note="uniform")
    for t in (E.S8, E.U16, E.S32, E.U64, E.S64):
        bounds = [Array(t, (), fixed(5)), Array(t, (), fixed(6))]
        yield make_case(O.RNG, bounds, shape_of(t, (3, 5)), RngAttributes(D.UNIFORM), note="uniform")
    for value, t in ((0, E.PRED), (1, E.PRED), (1, E.S32), (1, E.F32)):
        operands = [Array(E.F32, (), fixed(value))]
        note = f"bernoulli-{t.value}-{value}"
        yield make_case(O.RNG, operands, shape_of(t, (9,)), RngAttributes(D.BERNOULLI), note=note)
    attributes = RngGetAndUpdateStateAttributes(0)
    yield make_case(O.RNG_GET_AND_UPDATE_STATE, [], shape_of(E.U64, (2,)), attributes)


def cases() -> Iterator[OpCase]:
    """The random cases."""
    yield from _bits()
    yield from _drawn()
