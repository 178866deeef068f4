"""Every example of "Broadcasting semantics", a page of XLA's first documentation (2017), and what it calls illegal."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hloom.hlo import BuildError, ComputationBuilder, Opcode, Shape, ShapeError
from hloom.hlo.broadcasting import plan_broadcast
from hypothesis import example, given

from hloom.backend_check.op_values import NDArray
from support.seed_program import B, Given, Handle, Program, built, check, f32, run

MATRIX = [[1, 2, 3], [4, 5, 6]]
SQUARE = [[0, 0, 0], [100, 100, 100], [200, 200, 200]]
CUBOID = np.arange(24).reshape(2, 3, 4)


def added(lhs: Any, rhs: Any, *broadcast_dimensions: int) -> Program:
    def program(b: B, given: Given) -> Handle:
        return b.add(given(lhs), given(rhs), broadcast_dimensions)

    return program


EXAMPLES: dict[str, tuple[Program, Any]] = {
    # What is broadcasting?; Broadcasting a lower-rank array onto a higher-rank array
    "matrix + vector along (1)": (added(MATRIX, [7, 8, 9], 1), [[8, 10, 12], [11, 13, 15]]),
    "vector + matrix along (1)": (added([7, 8, 9], MATRIX, 1), [[8, 10, 12], [11, 13, 15]]),
    "matrix + scalar": (added(MATRIX, 7), [[8, 9, 10], [11, 12, 13]]),
    "scalar + matrix": (added(7, MATRIX), [[8, 9, 10], [11, 12, 13]]),
    "scalar + scalar": (added(7, 1), 8),
    "3x3 + vector along (1)": (added(SQUARE, [7, 8, 9], 1), [[7, 8, 9], [107, 108, 109], [207, 208, 209]]),
    "3x3 + vector along (0)": (added(SQUARE, [7, 8, 9], 0), [[7, 7, 7], [108, 108, 108], [209, 209, 209]]),
    "2x3x4 + 3x4 along (1, 2)": (added(CUBOID, CUBOID[0], 1, 2), CUBOID + CUBOID[0]),
    # Formal definition: M x N x P x Q = 2 x 3 x 4 x 5
    **{
        f"MxNxPxQ + T along ({d})": (
            added(np.zeros((2, 3, 4, 5)), np.arange((2, 3, 4, 5)[d]), d),
            np.zeros((2, 3, 4, 5)) + np.arange((2, 3, 4, 5)[d]).reshape([-1 if i == d else 1 for i in range(4)]),
        )
        for d in range(4)
    },
    "MxNxPxQ + TxV along (2, 3)": (
        added(np.zeros((2, 3, 4, 5)), np.arange(20).reshape(4, 5), 2, 3),
        np.zeros((2, 3, 4, 5)) + np.arange(20).reshape(4, 5),
    ),
    "MxNxPxQ + TxV along (1, 2)": (
        added(np.zeros((2, 3, 4, 5)), np.arange(12).reshape(3, 4), 1, 2),
        np.zeros((2, 3, 4, 5)) + np.arange(12).reshape(3, 4, 1),
    ),
    "MxNxPxQ + TxV along (0, 3)": (
        added(np.zeros((2, 3, 4, 5)), np.arange(10).reshape(2, 5), 0, 3),
        np.zeros((2, 3, 4, 5)) + np.arange(10).reshape(2, 1, 1, 5),
    ),
    # Broadcasting similar-rank arrays with degenerate dimensions
    "(2,1) + (2,3)": (added([[10], [20]], MATRIX), [[11, 12, 13], [24, 25, 26]]),
    "(1,2,5) + (7,2,5)": (
        added(np.ones((1, 2, 5)), np.arange(70).reshape(7, 2, 5)),
        np.arange(70).reshape(7, 2, 5) + 1,
    ),
    "(7,2,5) + (7,1,5)": (
        added(np.zeros((7, 2, 5)), np.arange(35).reshape(7, 1, 5)),
        np.zeros((7, 2, 5)) + np.arange(35).reshape(7, 1, 5),
    ),
    "(2,1) + (1,3): an outer operation": (added([[10], [20]], [[1, 2, 3]]), [[11, 12, 13], [21, 22, 23]]),
    "one rank, all dimensions named": (added([[10], [20]], [[1, 2, 3]], 0, 1), [[11, 12, 13], [21, 22, 23]]),
    # Broadcast composition
    "(4) + (1,2) along (0)": (added([1, 2, 3, 4], [[5, 6]], 0), [[6, 7], [7, 8], [8, 9], [9, 10]]),
    "(1,2) + (4,3,1) along (1, 2)": (
        added([[1, 2]], np.arange(12).reshape(4, 3, 1), 1, 2),
        np.arange(12).reshape(4, 3, 1) + f32([[[1, 2]]]),
    ),
    # sizes 0
    "(0,3) + (1,3)": (added(np.zeros((0, 3)), [[1, 2, 3]]), np.zeros((0, 3))),
    "(0) + (1,2) along (0)": (added(np.zeros(0), [[1, 2]], 0), np.zeros((0, 2))),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("backend", ["evaluator", "numba"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, backend: str) -> None:
    program, expected = EXAMPLES[name]
    check(run(program, backend), np.asarray(expected, np.float32))


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_in_xla(name: str) -> None:
    pytest.importorskip("jax")
    from support.xla_oracle import run_hlo_text

    program, expected = EXAMPLES[name]
    computation, values = built(program)
    (result,) = run_hlo_text(computation.to_text(), *values)
    check(result, np.asarray(expected, np.float32))


ILLEGAL: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]] = {
    "(2,3) + (3) without a specification": ((2, 3), (3,), (), 2),
    "(2,3) + (3) along (0)": ((2, 3), (3,), (0,), 6),
    "(7,2,5) + (7,2,6)": ((7, 2, 5), (7, 2, 6), (), 6),
    "V to N and T to P: not increasing": ((2, 3, 4, 5), (4, 3), (2, 1), 5),
    "V to both P and N": ((2, 3, 4, 5), (4, 4), (2, 2), 5),
    "too few": ((2, 3, 4), (3, 4), (1,), 3),
    "too many": ((2, 3, 4), (4,), (1, 2), 3),
    "of a scalar": ((2, 3), (), (0,), 3),
    "not a dimension": ((2, 3), (3,), (2,), 4),
    "negative": ((2, 3), (3,), (-1,), 4),
    "one rank, other dimensions": ((3, 3), (3, 3), (1, 0), 7),
    "one rank, one dimension": ((3, 3), (3, 3), (0,), 7),
    "one rank, not compatible": ((0, 3), (2, 3), (), 6),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal(name: str) -> None:
    lhs, rhs, dimensions, rule = ILLEGAL[name]
    for a, b in ((lhs, rhs), (rhs, lhs)):
        builder = ComputationBuilder("illegal")
        x = builder.parameter(0, Shape.parse(f"f32[{','.join(map(str, a))}]"))
        y = builder.parameter(1, Shape.parse(f"f32[{','.join(map(str, b))}]"))
        builder.mul(x, y, dimensions)
        with pytest.raises(BuildError, match=r"ComputationBuilder\.mul\(f32.*, f32.*\) in 'illegal'") as caught:
            builder.build()
        assert caught.value.label == f"broadcasting_c{rule}"
        assert f"[broadcasting_c{rule}]" in str(caught.value)


def test_tuples_do_not_broadcast() -> None:
    with pytest.raises(ShapeError, match=r"\[broadcasting_c1\]"):
        plan_broadcast(Shape.parse("(f32[])"), Shape.parse("f32[]"))


METHODS: dict[str, Callable[[NDArray, NDArray], NDArray]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "rem": np.fmod,
    "max": np.maximum, "min": np.minimum, "pow": operator.pow, "eq": operator.eq, "ne": operator.ne,
    "ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt,
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_every_binary_method_broadcasts(method: str) -> None:
    matrix, vector = f32([[1, 2, 3], [2, 2, 2]]), f32([2, 1])

    def program(b: B, given: Given) -> Handle:
        result: Handle = getattr(b, method)(given(matrix), given(vector), (0,))
        return result

    check(run(program, "evaluator"), METHODS[method](matrix, vector[:, None]))


@pytest.mark.parametrize("method", ["and_", "or_", "logical_and", "logical_or"])
def test_every_logical_method_broadcasts(method: str) -> None:
    matrix, vector = np.array([[True, False], [True, False]]), np.array([True, False])

    def program(b: B, given: Given) -> Handle:
        result: Handle = getattr(b, method)(given(matrix, bool), given(vector, bool), (0,))
        return result

    combine = np.logical_and if "and" in method else np.logical_or
    check(run(program, "evaluator"), combine(matrix, vector[:, None]))


def test_what_fits_already_is_left_alone() -> None:
    computation, _ = built(added(MATRIX, MATRIX))
    assert [i.opcode for i in computation.hlo.instructions] == [Opcode.PARAMETER, Opcode.PARAMETER, Opcode.ADD]


# ---- any shapes, against NumPy


@st.composite
def fitting(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(dimensions of one operand, of the other, broadcast_dimensions) that fit together."""
    sizes = draw(st.lists(st.integers(0, 3), max_size=4))
    higher = tuple(draw(st.sampled_from([size, 1])) for size in sizes)
    places = tuple(d for d in range(len(sizes)) if draw(st.booleans()))
    lower = tuple(draw(st.sampled_from([sizes[d], 1])) for d in places)
    if len(lower) == len(higher):
        return lower, higher, draw(st.sampled_from([(), places]))
    return (lower, higher, places) if draw(st.booleans()) else (higher, lower, places)


@given(fitting())
@example(((), (), ()))
def test_as_numpy_broadcasts_with_the_missing_dimensions_put_in(
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
) -> None:
    lhs, rhs, places = shapes
    rank = max(len(lhs), len(rhs))
    x = np.arange(np.prod(lhs), dtype=np.float32).reshape(lhs)
    y = np.arange(np.prod(rhs), dtype=np.float32).reshape(rhs) * 100

    def widened(array: NDArray) -> NDArray:
        if array.ndim == rank:
            return array
        return array.reshape([array.shape[places.index(d)] if d in places else 1 for d in range(rank)])

    expected = widened(x) + widened(y)
    check(run(added(x, y, *places), "evaluator"), expected)
