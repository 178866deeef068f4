"""Windows beyond the op table: cumulative ones of all lengths, which compiled code is shared, which become a reduce."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hloom.hlo import ElementType, HloComputation, HloModule, Opcode, Shape
from hloom.hlo.backend import optimize
from hloom.hlo.builder import make_computation, make_constant, make_instruction, make_module, make_parameter
from hloom.hlo.ops.window import ReduceWindowAttributes
from hloom.hlo.window import Window
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.policy.windows import FEW_ROWS, LANES, LEAST_IN_KEYS, PIECE

import hloom
from hloom import hlo, lax
from hloom.backend_check.computations import argmax_computation, binary_computation, last_of_two
from hloom.backend_check.op_cases_window import placed, window_of

E = ElementType
O = Opcode  # noqa: E741


def _module(
    types: tuple[ElementType, ...], dims: tuple[int, ...], window: Window, reducer: HloComputation
) -> HloModule:
    arrays = [make_parameter(k, Shape.array(t, dims)) for k, t in enumerate(types)]
    inits = [make_parameter(len(types) + k, Shape.array(t)) for k, t in enumerate(types)]
    root = make_instruction(O.REDUCE_WINDOW, [*arrays, *inits], ReduceWindowAttributes(window, reducer))
    return make_module("window", make_computation("main", root, [*arrays, *inits]))


def _cumulative(rank: int, dimension: int, size: int, backwards: bool) -> Window:
    part = (size, 1, 0, size - 1) if backwards else (size, 1, size - 1, 0)
    return window_of(*(part if d == dimension else (1,) for d in range(rank)))


_LONG = 5 * PIECE + 17


@pytest.mark.one_in(2)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("dims", "dimension"),
    [
        ((2,), 0), ((_LONG,), 0), ((8 * PIECE,), 0), ((3, _LONG), 1), ((FEW_ROWS, 300), 1), ((LANES + 1, 300), 1),
        ((300, 3), 0), ((2, 300, 3), 1), ((20, 30, 3), 1), ((5, 2500), 0), ((2, 5, 2500), 1),
    ],
)  # fmt: skip
def test_cumulative_windows_of_all_forms(dims: tuple[int, ...], dimension: int, backwards: bool) -> None:
    """Integers, so that the order does not matter, and a reducer that is not commutative, so that it does."""
    rng = np.random.default_rng(0)
    window = _cumulative(len(dims), dimension, dims[dimension], backwards)
    x = rng.integers(-9, 9, dims).astype(np.int32)
    flip = np.flip(x, dimension) if backwards else x
    expected = np.cumsum(flip, dimension, dtype=np.int32) + np.int32(5)
    expected = np.flip(expected, dimension) if backwards else expected
    module = _module((E.S32,), dims, window, binary_computation(O.ADD, E.S32))
    np.testing.assert_array_equal(NumbaCompiler().compile(module).execute([x, np.int32(5)])[0], expected)

    rare = np.where(rng.random(dims) < 0.01, x, 0).astype(np.int32)
    flip = np.flip(rare, dimension) if backwards else rare
    where = np.where(flip != 0, np.indices(dims)[dimension], -1)
    latest = np.maximum.accumulate(where, dimension)
    if backwards:
        return
    expected = np.where(latest >= 0, np.take_along_axis(rare, np.maximum(latest, 0), dimension), 0)
    module = _module((E.S32,), dims, window, last_of_two(E.S32))
    np.testing.assert_array_equal(NumbaCompiler().compile(module).execute([rare, np.int32(0)])[0], expected)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("element_type", [E.F32, E.F64, E.S8, E.U16, E.S32, E.U64, E.BF16])
@pytest.mark.parametrize("dims", [(LEAST_IN_KEYS,), (2, 255), (20, 256), (3, 2 * 256 + 17), (_LONG,), (2, _LONG)])
def test_cumulative_extrema(dims: tuple[int, ...], element_type: E) -> None:
    """NaN is kept from where it stands on, and the signs of zeros are told apart; the init value takes part."""
    rng = np.random.default_rng(1)
    drawn = (rng.standard_normal(dims) * 40).round()
    if element_type.is_floating:
        drawn = np.where(rng.random(dims) < 0.3, np.copysign(0.0, drawn), drawn)
        drawn = np.where(rng.random(dims) < 2 / dims[-1], np.nan, drawn)
    x = drawn.astype(element_type.dtype)
    init = np.asarray(-3 if element_type.is_floating else 3, element_type.dtype)
    for opcode, backwards in itertools.product((O.MAXIMUM, O.MINIMUM), (False, True)):
        window = _cumulative(len(dims), len(dims) - 1, dims[-1], backwards)
        module = _module((element_type,), dims, window, binary_computation(opcode, element_type))
        (found,) = NumbaCompiler().compile(module).execute([x, init])
        flip = np.flip(x, -1) if backwards else x
        rows = np.concatenate([np.broadcast_to(init, (*dims[:-1], 1)), flip], -1).astype(np.float64)
        order = rows + 1e-9 * np.where(rows == 0, np.copysign(1.0, rows), 0)  # -0 is below 0
        best = (np.maximum if opcode is O.MAXIMUM else np.minimum).accumulate(order, -1)[..., 1:]
        expected = np.where(abs(best) < 1e-8, np.copysign(0.0, best), best)
        expected = np.flip(expected, -1) if backwards else expected
        np.testing.assert_array_equal(found.astype(np.float64), expected)
        if element_type.is_floating:
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("dims", [(_LONG,), (2, _LONG), (20, 50)])
def test_cumulative_pairs(dims: tuple[int, ...], backwards: bool) -> None:
    rng = np.random.default_rng(0)
    window = _cumulative(len(dims), len(dims) - 1, dims[-1], backwards)
    x = rng.permutation(int(np.prod(dims))).reshape(dims).astype(np.float32)
    index = np.broadcast_to(np.arange(dims[-1], dtype=np.int32), dims).copy()
    module = _module((E.F32, E.S32), dims, window, argmax_computation(E.F32, E.S32))
    inputs = [x, index, np.float32(-np.inf), np.int32(np.iinfo(np.int32).max)]
    largest, place = NumbaCompiler().compile(module).execute(inputs)
    flip = np.flip(x, -1) if backwards else x
    expected = np.maximum.accumulate(flip, -1)
    expected = np.flip(expected, -1) if backwards else expected
    np.testing.assert_array_equal(largest, expected)
    np.testing.assert_array_equal(np.take_along_axis(x, place, -1), expected)


def _kernels(module: HloModule) -> set[str]:
    """The texts, without the comments that say how big things are."""
    texts = NumbaCompiler().compile(module).kernels().values()
    return {"\n".join(line for line in text.splitlines() if not line.startswith("#")) for text in texts}


@pytest.mark.parametrize("window", [((1,), (3, 2, 1, 1), (3, 2, 1, 1)), ((1,), (2, 2), (2, 2))])
def test_a_new_size_compiles_nothing(window: tuple[tuple[int, ...], ...]) -> None:
    reducer = binary_computation(O.MAXIMUM, E.F32)
    sizes = ((32, 28, 30), (64, 55, 52))
    first, second = (_kernels(_module((E.F32,), dims, window_of(*window), reducer)) for dims in sizes)
    assert first == second


def test_a_new_length_of_a_cumulative_sum_compiles_nothing() -> None:
    add = binary_computation(O.ADD, E.F32)
    first, second = (_kernels(_module((E.F32,), (n,), _cumulative(1, 0, n, False), add)) for n in (10_000, 70_000))
    assert first == second
    assert len(first) == 3


def test_a_window_of_everything_is_a_reduce() -> None:
    add = binary_computation(O.ADD, E.F32)
    optimized, _ = optimize(_module((E.F32,), (3, 4, 5), window_of((1,), (4,), (5,)), add))
    text = optimized.to_text()
    assert " reduce(" in text
    assert "reduce-window" not in text
    near_miss, _ = optimize(_module((E.F32,), (3, 4, 5), window_of((1,), (4,), (4,)), add))
    assert " reduce-window(" in near_miss.to_text()


def test_long_cumulative_sums_agree_with_the_evaluator() -> None:
    module = _module((E.F32,), (4, _LONG), _cumulative(2, 1, _LONG, False), binary_computation(O.ADD, E.F32))
    x = np.random.default_rng(0).uniform(0.5, 1.5, (4, _LONG)).astype(np.float32)
    expected = np.cumsum(x.astype(np.float64), 1)
    actual = NumbaCompiler().compile(module).execute([x, np.float32(0)])[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    assert placed((4, _LONG), _cumulative(2, 1, _LONG, False)) == (4, _LONG)
    assert hlo.verify(module) is None


_SHORT_ROWS = {
    "same": ((3, 2, 28, 28), ((1,), (1,), (3, 1, 1, 1), (3, 1, 1, 1))),
    "halves": ((5, 3, 14, 26), ((1,), (1,), (2, 2), (2, 2))),
    "odd": ((40, 7, 13), ((1,), (3, 2, 1, 1), (3, 2, 1, 1))),
    "one side": ((2, 9, 30), ((1,), (4, 1, 3, 0), (4, 1, 3, 0))),
    "dilated": ((2, 19, 17), ((1,), (3, 1, 2, 2, 1, 2), (3, 2, 2, 2, 1, 2))),
    "one row": ((50,), ((5, 1, 2, 2),)),
    "three": ((2, 6, 5, 9), ((1,), (2,), (2, 2), (3, 1, 1, 1))),
    "tiny": ((2, 1, 1), ((1,), (3, 1, 1, 1), (3, 1, 1, 1))),
    "empty": ((5, 0), ((1,), (3, 1, 2, 2))),
    "long": ((2, 4, 4096), ((1,), (3, 1, 1, 1), (3, 1, 1, 1))),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "element"),
    [*((name, E.F32) for name in _SHORT_ROWS), *(("odd", e) for e in (E.F64, E.BF16, E.S16, E.S32)), ("halves", E.S32)],
)
def test_windows_over_short_rows(name: str, element: ElementType) -> None:
    """Small integers, which all types hold and add exactly; NaN and zeros of both signs for extrema."""
    dims, parts = _SHORT_ROWS[name]
    window = window_of(*parts)
    rng = np.random.default_rng(1)
    x = rng.integers(-4, 5, dims).astype(element.dtype)
    for opcode, init in ((O.ADD, 3), (O.MULTIPLY, 1), (O.MAXIMUM, -9), (O.MINIMUM, 0)):
        if element.is_floating and opcode is O.MAXIMUM:
            x[x == 0] = -0.0
            x[rng.random(dims) < 0.05] = np.nan
        if opcode is O.MULTIPLY:
            x = np.sign(x)
        module = _module((element,), dims, window, binary_computation(opcode, element))
        inputs = [x, np.array(init, element.dtype)]
        (wanted,) = hlo.evaluate(module, *inputs)
        (found,) = NumbaCompiler().compile(module).execute(inputs)
        found, wanted = (np.asarray(a).astype(np.float64) for a in (found, wanted))
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize(
    ("opcode", "element", "init", "left_out"),
    [
        (O.MAXIMUM, E.F32, -np.inf, True),
        (O.MAXIMUM, E.F32, -1, False),
        (O.MINIMUM, E.BF16, np.inf, True),
        (O.MINIMUM, E.F64, -np.inf, False),
        (O.MAXIMUM, E.S16, -(2**15), True),
        (O.ADD, E.S32, 0, True),
        (O.ADD, E.F32, 0, False),
        (O.MULTIPLY, E.F32, 1, True),
    ],
)
@pytest.mark.parametrize("name", ["same", "halves", "long"])
def test_a_neutral_init_is_left_out(name: str, opcode: O, element: E, init: float, left_out: bool) -> None:
    """Of a sum of floats it is not: 0 + -0 is 0."""
    dims, parts = _SHORT_ROWS[name]
    x = np.random.default_rng(1).integers(-1, 2, dims).astype(element.dtype)
    if element.is_floating:
        x[x == 0] = -0.0
        x[..., :1, -1] = np.nan
    given = make_parameter(0, Shape.array(element, dims))
    start = make_constant(np.array(init, element.dtype))
    attributes = ReduceWindowAttributes(window_of(*parts), binary_computation(opcode, element))
    root = make_instruction(O.REDUCE_WINDOW, [given, start], attributes)
    module = make_module("window", make_computation("main", root, [given]))
    compiled = NumbaCompiler().compile(module)
    (wanted,), (found,) = hlo.evaluate(module, x), compiled.execute([x])
    found, wanted = (np.asarray(a).astype(np.float64) for a in (found, wanted))
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))
    if name == "halves":  # without edges
        assert (not any("init0" in str(kernel) for kernel in compiled.kernels().values())) == left_out


def test_a_cumulative_function_is_a_scan_of_few_kernels() -> None:
    for function in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin):
        for axis in (0, 1):
            compiled = hloom.jit(function, static_argnums=1).lower(np.ones((40, 300), np.float32), axis).compile()
            assert len(compiled.kernels()) == 1


@pytest.mark.parametrize("rows", [1, 2, 3, 10_001])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums_of_columns_are_as_exact_as_trees(rows: int, reverse: bool) -> None:
    """Numbers of both signs, positive ones, and equal ones, whose sums are rounded in one direction."""
    x = np.random.default_rng(rows).uniform(-1, 1, (rows, 3)).astype(np.float32)
    x[:, 1], x[:, 2] = abs(x[:, 1]), 0.1
    wide = x.astype(np.float64)
    exact, sizes = (np.cumsum(a[::-1], 0)[::-1] if reverse else np.cumsum(a, 0) for a in (wide, abs(wide)))
    found = np.asarray(hloom.jit(lambda x: lax.cumsum(x, 0, reverse))(x))
    assert np.max(abs(found - exact) / sizes) <= 1.5 * 2.0**-23


def test_sums_of_columns_of_special_numbers() -> None:
    columns = [
        [-0.0, -0.0, -0.0], [0.0, -0.0, -0.0], [1, np.inf, 1], [np.inf, -np.inf, 1], [1, np.nan, 1],
        [3e38, -3e38, 3e38], [3e38, 3e38, -3e38],
    ]  # fmt: skip
    x = np.array(columns, np.float32).T
    for rows in (1, 2, 3):
        (wanted,) = hlo.evaluate(hloom.make_hlo(lambda x: lax.cumsum(x, 0))(x[:rows]), x[:rows])
        found = np.asarray(hloom.jit(lambda x: lax.cumsum(x, 0))(x[:rows]))
        np.testing.assert_array_equal(found[:, :6], wanted[:, :6])
        np.testing.assert_array_equal(np.signbit(found[:, :2]), np.signbit(wanted[:, :2]))
        assert np.all(np.isinf(found[1:, 6]) | (found[1:, 6] == 3e38)), "the last sum may have been infinite"


def test_the_evaluator_takes_long_cumulative_windows() -> None:
    x = np.random.default_rng(0).integers(-9, 9, 50_000).astype(np.int32)
    for backwards in (False, True):
        module = _module((E.S32,), x.shape, _cumulative(1, 0, x.size, backwards), binary_computation(O.ADD, E.S32))
        flip = x[::-1] if backwards else x
        wanted = np.cumsum(flip, dtype=np.int32) + np.int32(5)
        (found,) = hlo.evaluate(module, x, np.int32(5))
        np.testing.assert_array_equal(found, wanted[::-1] if backwards else wanted)
