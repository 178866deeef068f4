"""The worked examples and tables of "Operation Semantics" (XLA's first documentation, 2017) on element-wise ops. Each
names its section."""

from __future__ import annotations

from typing import Any

import numpy as np
from hloom.hlo import ElementType

from .seed_program import B, Example, Given, Handle, Program, f32, s32

BINARY = "Element-wise binary arithmetic operations"
COMPARISON = "Element-wise comparison operations"
UNARY = "Element-wise unary functions"
NAN, INF = float("nan"), float("inf")
LEFT, RIGHT = [7, -7, 7, -7], [3, 3, -3, -3]


def binary(method: str, lhs: Any, rhs: Any, expected: Any, dtype: Any = np.int32, section: str = BINARY) -> Example:
    def program(b: B, given: Given) -> Handle:
        result: Handle = getattr(b, method)(given(lhs, dtype), given(rhs, dtype))
        return result

    return Example(section, f"{method} of {np.dtype(dtype).name}", program, np.asarray(expected))


def unary(method: str, values: Any, expected: Any, dtype: Any = np.float32, tolerance: float = 0) -> Example:
    def program(b: B, given: Given) -> Handle:
        result: Handle = getattr(b, method)(given(values, dtype))
        return result

    return Example(UNARY, f"{method} of {np.dtype(dtype).name}", program, np.asarray(expected), tolerance)


def compare(method: str, expected: Any) -> Example:
    """IEEE comparison: a NaN is unequal to all."""
    return binary(method, [1, 2, 3, NAN], [2, 2, 2, NAN], np.array(expected), np.float32, COMPARISON)


def matrix_and_vector(method: str) -> Program:
    def program(b: B, given: Given) -> Handle:
        result: Handle = getattr(b, method)(given([[1, 2, 3], [4, 5, 6]]), given([4, 2, 6]), (1,))
        return result

    return program


def tuples_selected(b: B, given: Given) -> Handle:
    first = b.tuple([given([1, 2]), b.tuple([given(3, np.int32)])])
    second = b.tuple([given([10, 20]), b.tuple([given(30, np.int32)])])
    return b.tuple([b.select(given(True, np.bool_), first, second), b.select(given(False, np.bool_), first, second)])


def selected(pred: Any) -> Program:
    return lambda b, given: b.select(
        given(pred, np.bool_), given([1, 2, 3, 4], np.int32), given([100, 200, 300, 400], np.int32)
    )


EXAMPLES = (
    binary("add", LEFT, RIGHT, s32(10, -4, 4, -10)),
    binary("sub", LEFT, RIGHT, s32(4, -10, 10, -4)),
    binary("mul", LEFT, RIGHT, s32(21, -21, -21, 21)),
    binary("div", LEFT, RIGHT, s32(2, -2, -2, 2)),
    binary("div", [1, -1, 7], [2, 4, -2], f32(0.5, -0.25, -3.5), np.float32),
    binary("rem", LEFT, RIGHT, s32(1, -1, 1, -1)),
    binary("rem", [5.5, -5.5], [2, 2], f32(1.5, -1.5), np.float32),
    binary("max", LEFT, RIGHT, s32(7, 3, 7, -3)),
    binary("min", LEFT, RIGHT, s32(3, -7, -3, -7)),
    binary("pow", [2, -3, 9], [3, 2, 0.5], f32(8, 9, 3), np.float32),
    binary("logical_and", [1, 1, 0, 0], [1, 0, 1, 0], np.array([True, False, False, False]), np.bool_),
    binary("logical_or", [1, 1, 0, 0], [1, 0, 1, 0], np.array([True, True, True, False]), np.bool_),
    binary("and_", [12, 7], [10, 9], s32(8, 1)),
    binary("or_", [12, 7], [10, 9], s32(14, 15)),
    Example(BINARY, "a matrix and a scalar", lambda b, g: b.add(g([[1, 2], [3, 4]]), g(10)), f32([[11, 12], [13, 14]])),
    Example(
        BINARY,
        "broadcast_dimensions: a matrix and a vector",
        matrix_and_vector("add"),
        f32([[5, 4, 9], [8, 7, 12]]),
    ),
    compare("eq", [False, True, False, False]),
    compare("ne", [True, False, True, True]),
    compare("ge", [False, True, True, False]),
    compare("gt", [False, False, True, False]),
    compare("le", [True, True, False, False]),
    compare("lt", [True, False, False, False]),
    Example(
        COMPARISON,
        "broadcast_dimensions: a matrix and a vector",
        matrix_and_vector("lt"),
        np.array([[True, False, True], [False, False, False]]),
    ),
    unary("abs", [-1.5, 0, 2], f32(1.5, 0, 2)),
    unary("abs", [-3, 0, 4], s32(3, 0, 4), np.int32),
    unary("ceil", [-1.5, 0.2, 2], f32(-1, 1, 2)),
    unary("cos", [0, 1, -2], np.cos(f32(0, 1, -2)), tolerance=1e-6),
    unary("exp", [0, 1, -2], np.exp(f32(0, 1, -2)), tolerance=1e-6),
    unary("floor", [-1.5, 0.2, 2], f32(-2, 0, 2)),
    unary("is_finite", [1, INF, -INF, NAN], np.array([True, False, False, False])),
    unary("log", [1, 2, 0.5], np.log(f32(1, 2, 0.5)), tolerance=1e-6),
    unary("logical_not", [True, False], np.array([False, True]), np.bool_),
    unary("not_", [0, 1, -1], s32(-1, -2, 0), np.int32),
    unary("neg", [1, -2, 0.5], f32(-1, 2, -0.5)),
    unary("sign", [-2.5, 0, 7], f32(-1, 0, 1)),
    unary("sign", [-2, 0, 7], s32(-1, 0, 1), np.int32),
    unary("sin", [0, 1, -2], np.sin(f32(0, 1, -2)), tolerance=1e-6),
    unary("tanh", [0, 1, -2], np.tanh(f32(0, 1, -2)), tolerance=1e-6),
    Example(UNARY, "a scalar operand", lambda b, g: b.neg(g(0.5)), f32(-0.5)),
    unary("sqrt_f32", [4, 2.25, 0], f32(2, 1.5, 0)),
    unary("square_f32", [4, -1.5], f32(16, 2.25)),
    unary("reciprocal_f32", [4, -0.5], f32(0.25, -2)),
    Example(
        "Clamp",
        "arrays of one shape",
        lambda b, g: b.clamp(g([0, 0, 0]), g([-1, 0.5, 2]), g([1, 1, 1])),
        f32(0, 0.5, 1),
    ),
    Example("Clamp", "scalar bounds", lambda b, g: b.clamp(g(0), g([-1, 0.5, 2]), g(1)), f32(0, 0.5, 1)),
    Example(
        "Clamp",
        "bounds the wrong way round: today min(max(x, min), max), in 2017 max(min(x, a), b)",
        lambda b, g: b.clamp(g(3, np.int32), g([0, 2, 5], np.int32), g(1, np.int32)),
        s32(1, 1, 1),
    ),
    Example(
        "ConvertElementType",
        "s32[3] {0, 1, 2} to f32",
        lambda b, g: b.convert_element_type(g([0, 1, 2], np.int32), ElementType.F32),
        f32(0, 1, 2),
    ),
    Example(
        "ConvertElementType",
        "s32 to f32 rounds to nearest even",
        lambda b, g: b.convert_element_type(g([16777217, 16777219], np.int32), np.float32),
        f32(16777216, 16777220),
    ),
    Example(
        "ReducePrecision",
        "IEEE-FP16: ties to even, too large is infinite, NaN stays",
        lambda b, g: b.reduce_precision(g([1 + 2**-11, 1 + 3 * 2**-11, 1e6, -1e6, NAN]), 5, 10),
        f32(1, 1 + 2**-9, INF, -INF, NAN),
    ),
    Example(
        "ReducePrecision",
        "as many bits as the type has: a no-op",
        lambda b, g: b.reduce_precision(g([1.1, 3e38, -0.0]), 8, 23),
        f32(1.1, 3e38, -0.0),
    ),
    Example("Select", "non-scalar pred", selected([True, False, False, True]), s32(1, 200, 300, 4)),
    Example("Select", "scalar pred", selected(True), s32(1, 2, 3, 4)),
    Example("Select", "scalar pred, false", selected(False), s32(100, 200, 300, 400)),
    Example(
        "Select",
        "between tuples",
        tuples_selected,
        ((f32(1, 2), (s32(3),)), (f32(10, 20), (s32(30),))),
    ),
)
