"""Argmax and argmin: which reducers are recognised, and their kernels, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo.analyses.arg_reducers import arg_reducer
from hloom.hlo.opcode import Opcode

import hloom
from hloom import hlo, lax
from hloom import numpy as jnp

_TYPES = {"x": "f32[]", "i": "s32[]", "y": "f32[]", "j": "s32[]"}


def _reducer(body: str, types: dict[str, str] = _TYPES) -> hlo.HloComputation:
    parameters = "\n".join(f"  {name} = {t} parameter({n})" for n, (name, t) in enumerate(types.items()))
    value, index = types["x"], types["i"]
    text = f"""HloModule m

pick {{
{parameters}
{body}
  ROOT t = ({value}, {index}) tuple(v, k)
}}

ENTRY e {{
  a = {value[:-1]}4] parameter(0)
  b = {index[:-1]}4] iota(), iota_dimension=0
  c = {value} parameter(1)
  d = {index} constant(0)
  ROOT r = ({value}, {index}) reduce(a, b, c, d), dimensions={{0}}, to_apply=pick
}}
"""
    return hlo.parse(text).entry.root.attributes.to_apply


_JAX = """
  better = pred[] compare(x, y), direction=GT
  no_number = pred[] compare(x, x), direction=NE
  p = pred[] or(better, no_number)
  same = pred[] compare(x, y), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, before)
  q = pred[] or(p, tie)
  v = f32[] select(p, x, y)
  k = s32[] select(q, i, j)
"""
_LAST_OF_EQUALS = _JAX.replace("compare(i, j), direction=LT", "compare(i, j), direction=GT")
_IGNORES_NAN = _JAX.replace("compare(x, x), direction=NE", "compare(x, x), direction=LT")
_MIXES = _JAX.replace("v = f32[] select(p, x, y)", "v = f32[] add(x, y)")


@pytest.mark.parametrize(
    ("body", "opcode"),
    [
        (_JAX, Opcode.MAXIMUM),
        (_JAX.replace("(x, y), direction=GT", "(x, y), direction=LT"), Opcode.MINIMUM),
        (_LAST_OF_EQUALS, None),
        (_IGNORES_NAN, None),
        (_MIXES, None),
        (_JAX.replace("(x, y), direction=GT", "(x, y), direction=GT, type=TOTALORDER"), None),
    ],
)
def test_recognised(body: str, opcode: Opcode | None) -> None:
    assert arg_reducer(_reducer(body)) is opcode


def test_integers_need_no_test_for_nan() -> None:
    body = _JAX.replace("compare(x, x), direction=NE", "compare(x, y), direction=GT")
    types = {"x": "s32[]", "i": "s32[]", "y": "s32[]", "j": "s32[]"}
    assert arg_reducer(_reducer(body.replace("f32", "s32"), types)) is Opcode.MAXIMUM
    assert arg_reducer(_reducer(body)) is None


_SHAPES = ((1,), (300, 3), (3, 16), (2, 513), (2, 1000), (2, 1 << 16), (70001,), (0, 5))


_DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint32, np.bool_]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", _DTYPES)
def test_against_numpy(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    is_float = np.dtype(dtype).kind not in "iub"
    programs = {
        (name, computed): hloom.jit(
            lambda x, name=name, computed=computed: getattr(jnp, name)(x == x[..., :1] if computed else x, -1)
        )
        for name in ("argmax", "argmin")
        for computed in (False, True)
    }
    for shape in _SHAPES:
        numbers = rng.integers(0 if np.dtype(dtype).kind in "ub" else -40, 40, shape)
        inputs = [numbers.astype(dtype), np.sort(numbers, -1).astype(dtype), np.zeros(shape, dtype)]
        if is_float:
            holes = np.where(rng.random(shape) < 3 / shape[-1], np.nan, numbers)
            zeros = np.where(numbers > 0, -0.0, np.minimum(numbers, 0.0))
            zeros[..., -1:] = 0.0
            inputs += [a.astype(dtype) for a in (holes, zeros, np.full(shape, -np.inf), np.full(shape, np.inf))]
        for x in inputs:
            for (name, computed), program in programs.items():
                plain = np.asarray(x, np.float64) if is_float else x
                expected = getattr(np, name)(plain == plain[..., :1] if computed else plain, -1)
                np.testing.assert_array_equal(np.asarray(program(x)), expected, f"{name} {shape} {computed}")


def test_values_that_are_computed() -> None:
    """The place belongs to the value that was compared, however the multiplication was rounded."""
    rng = np.random.default_rng(5)
    for n in (5, 300, 4096):
        x, y, z = rng.standard_normal((3, 4, n)).astype(np.float32)
        value, place = hloom.jit(lambda x, y, z: (jnp.max(x * y + z, 1), jnp.argmax(x * y + z, 1)))(x, y, z)
        exact = x.astype(np.float64) * y + z
        found = np.take_along_axis(exact, np.asarray(place)[:, None], 1)[:, 0]
        np.testing.assert_allclose(found, exact.max(1), rtol=1e-6)
        np.testing.assert_allclose(np.asarray(value), exact.max(1), rtol=1e-6)


def test_kernels_have_no_reducer_in_their_loops() -> None:
    x = np.zeros((8, 4096), np.float32)
    text = str(hloom.jit(lambda x: jnp.argmax(x, 1)).lower(x).compile().kernels())
    assert "reduce_largest(part0, x0[i * n0 + j])" in text


def test_indices_that_overflow() -> None:
    """Of s8 indices of 300 elements the reducer keeps the smallest number, not the first element."""
    x = np.zeros((2, 300), np.float32)
    found = hloom.jit(lambda x: lax.argmax(x, 1, np.int8))(x)
    module = hloom.make_hlo(lambda x: lax.argmax(x, 1, np.int8))(x)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(hlo.evaluate(module, x)).reshape(2))


@pytest.mark.parametrize("kind", ["f4", "u1", "?"])
def test_short_rows_are_compared_element_by_element(kind: str) -> None:
    """Their loop is unrolled, and the loop over rows has vectors; a search would be two loops for each row."""

    def text(n: int) -> str:
        x = np.zeros((1000, n), kind)
        (kernel,) = hloom.jit(lambda x: jnp.argmin(x, 1)).lower(x).compile().kernels().values()
        return str(kernel)

    for n in (2, 10, 16):
        assert "better" in text(n) and "first" not in text(n)
    assert "first" in text(17)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_])
@pytest.mark.parametrize("shape", [(30000, 3), (2, 40000, 5), (65537, 3)], ids=str)
def test_few_columns_are_made_in_parts(shape: tuple[int, ...], dtype: Any) -> None:
    """The first of equals is found whichever parts they are in, and the first NaN."""
    rng = np.random.default_rng(17)
    axis = len(shape) - 2
    compiled = hloom.jit(lambda x: (jnp.argmax(x, axis), jnp.argmin(x, axis))).lower(np.zeros(shape, dtype)).compile()
    is_prime = shape[axis] == 65537
    assert len(compiled.kernels()) > 2 or is_prime
    numbers = rng.integers(0, 2, shape) * (rng.random(shape) < 1e-3) + 1
    inputs = [numbers.astype(dtype), np.zeros(shape, dtype), (np.cumsum(numbers == 2, axis) > 0).astype(dtype)]
    if dtype is np.float32:
        inputs.append(np.where(rng.random(shape) < 1e-3, np.nan, numbers).astype(dtype))
    for x in inputs:
        for got, name in zip(compiled(x), ("argmax", "argmin"), strict=True):
            np.testing.assert_array_equal(got, getattr(np, name)(x, axis))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float64, np.int32, np.uint8, np.bool_])
def test_columns(dtype: Any) -> None:
    """Neighbouring results are combined with a row at a time: ties, NaN, zeros of both signs, nothing but the least."""
    rng = np.random.default_rng(11)
    is_float = np.dtype(dtype).kind not in "iub"
    for shape in ((1, 5), (3, 17), (9, 64), (40, 33), (300, 70)):
        numbers = rng.integers(0, 4, shape)
        inputs = [numbers.astype(dtype), np.full(shape, 0, dtype)]
        if is_float:
            holes = np.where(rng.random(shape) < 0.2, np.nan, numbers)
            zeros = np.where(numbers > 1, -0.0, 0.0)
            inputs += [a.astype(dtype) for a in (holes, zeros, np.full(shape, -np.inf), np.full(shape, np.inf))]
        for name in ("argmax", "argmin"):
            program = hloom.jit(lambda x, name=name: (getattr(jnp, name)(x, 0), getattr(jnp, name[3:])(x, 0)))
            for x in inputs:
                plain = np.asarray(x, np.float64) if is_float else x
                place, value = program(x)
                np.testing.assert_array_equal(np.asarray(place), getattr(np, name)(plain, 0), f"{name} {shape}")
                np.testing.assert_array_equal(np.asarray(value, plain.dtype), getattr(np, name[3:])(plain, 0))


def test_columns_do_not_compare_indices() -> None:
    x = np.zeros((40, 64), np.float32)
    (text,) = map(str, hloom.jit(lambda x: jnp.argmax(x, 0)).lower(x).compile().kernels().values())
    assert "better" in text and text.count("<") == text.count("<=")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.bool_])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kept", [(), (0,), (1,)])
@pytest.mark.parametrize("function", [jnp.argmax, jnp.argmin])
def test_of_elements_that_no_loop_changes(function: Any, kept: tuple[int, ...], axis: int, dtype: Any) -> None:
    """The first of equal elements, also where the element is read before the loop over all of them."""
    x = np.ones([n if d in kept else 1 for d, n in enumerate((4, 5))], dtype)
    found = hloom.jit(lambda x: function(jnp.broadcast_to(x, (4, 5)), axis=axis))(x)
    np.testing.assert_array_equal(found, np.zeros(5 if axis == 0 else 4))


def test_of_a_constant_in_a_loop() -> None:
    def step(i: Any, found: Any) -> Any:
        return jnp.argmax(jnp.ones(3)).astype("int32")

    assert hloom.jit(lambda x: lax.fori_loop(0, 2, step, x))(np.int32(1)) == 0
