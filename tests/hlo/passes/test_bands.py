"""Bands: what masks made of positions say about an array, and kernels that rely on it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.analyses.bands import EVERYTHING, Band, looked_at, mask_of, repeated_outside
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.output_fusion import find
from hloom.numba_backend.runtime import threads

import hloom
import hloom.numpy as jnp

ROWS, COLUMNS = 7, 9

MASKS = {
    # text of pred[7,9] p, made of s32[7,9] i and j (and constants), and the band where it is true
    "p = pred[7,9] compare(i, j), direction=GE": Band(-math.inf, 0),
    "p = pred[7,9] compare(i, j), direction=GT": Band(-math.inf, -1),
    "p = pred[7,9] compare(i, j), direction=LE": Band(0, math.inf),
    "p = pred[7,9] compare(j, i), direction=LT": Band(-math.inf, -1),
    "p = pred[7,9] compare(i, j), direction=EQ": Band(0, 0),
    "p = pred[7,9] compare(i, j), direction=NE": EVERYTHING,
    "s = s32[7,9] add(i, two)\n p = pred[7,9] compare(s, j), direction=GE": Band(-math.inf, 2),
    "s = s32[7,9] subtract(j, two)\n p = pred[7,9] compare(i, s), direction=LT": Band(3, math.inf),
    "s = s32[7,9] subtract(j, i)\n p = pred[7,9] compare(s, two), direction=LE": Band(-math.inf, 2),
    "a = s32[7,9] multiply(i, two)\n b = s32[7,9] multiply(two, j)\n c = s32[7,9] subtract(a, b)\n"
    "p = pred[7,9] compare(c, two), direction=GT": Band(-math.inf, -2),
    "a = s32[7,9] multiply(i, two)\n p = pred[7,9] compare(a, j), direction=GE": EVERYTHING,
    "a = s32[7,9] negate(i)\n b = s32[7,9] negate(j)\n p = pred[7,9] compare(a, b), direction=LE": Band(-math.inf, 0),
    "a = pred[7,9] compare(i, j), direction=LT\n p = pred[7,9] not(a)": Band(-math.inf, 0),
    "a = pred[7,9] compare(i, j), direction=GE\n s = s32[7,9] add(j, two)\n"
    "b = pred[7,9] compare(i, s), direction=LE\n p = pred[7,9] and(a, b)": Band(-2, 0),
    "a = pred[7,9] compare(i, j), direction=EQ\n s = s32[7,9] add(j, two)\n"
    "b = pred[7,9] compare(i, s), direction=EQ\n p = pred[7,9] or(a, b)": Band(-2, 0),
    "a = s64[7,9] convert(i)\n b = s64[7,9] convert(j)\n p = pred[7,9] compare(a, b), direction=GE": Band(-math.inf, 0),
    "a = s32[7,9] add(i, huge)\n b = s32[7,9] add(j, huge)\n p = pred[7,9] compare(a, b), direction=GE": EVERYTHING,
    "p = pred[7,9] compare(i, i), direction=GT": EVERYTHING,
    "p = pred[7,9] compare(i, two), direction=GT": EVERYTHING,
    "p = pred[7,9] compare(y, inf), direction=LT": EVERYTHING,
    "p = pred[7,9] compare(nan, y), direction=NE": EVERYTHING,
}

HEAD = """
  r = s32[7] iota(), iota_dimension=0
  i = s32[7,9] broadcast(r), dimensions={0}
  j = s32[7,9] iota(), iota_dimension=1
  c2 = s32[] constant(2)
  two = s32[7,9] broadcast(c2), dimensions={}
  large = s32[] constant(2147483640)
  huge = s32[7,9] broadcast(large), dimensions={}
  cinf = f32[] constant(inf)
  inf = f32[7,9] broadcast(cinf), dimensions={}
  cnan = f32[] constant(nan)
  nan = f32[7,9] broadcast(cnan), dimensions={}
"""


def module_of(mask: str) -> Any:
    return parse(
        f"HloModule m\n ENTRY e {{\n x = f32[7,9] parameter(0)\n y = f32[7,9] parameter(1)\n {HEAD} {mask}\n"
        f" ROOT chosen = f32[7,9] select(p, x, y)\n}}"
    )


def inside(band: Band) -> np.ndarray:
    i, j = np.indices((ROWS, COLUMNS))
    return (i + band.low <= j) & (j <= i + band.high)


@pytest.mark.parametrize("mask", MASKS)
def test_masks(mask: str) -> None:
    """The band is as expected, and outside of it the select gives the operand that the band names."""
    x, y = np.zeros((ROWS, COLUMNS), np.float32), np.ones((ROWS, COLUMNS), np.float32)
    module = module_of(mask)
    (result,) = evaluate(module, x, y)
    wanted = MASKS[mask]
    assert np.all(inside(wanted)[result == 0]), "the table is wrong"
    found = mask_of(module.entry.root)
    if wanted == EVERYTHING:
        assert found is None or found[0] != EVERYTHING
    else:
        assert found is not None
        assert found[0].size() <= wanted.size()
    if found is not None:  # perhaps where the mask is false
        band, other = found
        assert np.all(result[~inside(band)] == (1 if other.name == "y" else 0))


def softmax(x: Any) -> Any:
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def masked_softmax(low: float, high: float, other: float = -jnp.inf) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        i, j = jnp.arange(x.shape[-2])[:, None], jnp.arange(x.shape[-1])[None, :]
        seen = jnp.ones((1, 1), bool)
        if low > -math.inf:
            seen &= j >= i + low
        if high < math.inf:
            seen &= j <= i + high
        return softmax(jnp.where(seen, x, other))

    return f


@pytest.mark.one_in(4)
@pytest.mark.parametrize("bounds", [(-math.inf, 0), (0, math.inf), (-70, 3), (-3, -1), (40, 200), (-math.inf, -500)])
@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 130, 130), (2, 90, 200), (200, 70), (4, 1, 65), (0, 3, 4), (130, 1)])
def test_softmax_of_rows_with_a_mask(bounds: tuple[float, float], shape: tuple[int, ...]) -> None:
    """Rows without any element left are NaN."""
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    function = masked_softmax(*bounds)
    module = parse(hloom.jit(function).lower(x).as_text())
    (expected,) = evaluate(module, x)
    (actual,) = NumbaCompiler().compile(module).execute([x])
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_loops_over_masked_columns_compute_nothing_for_each() -> None:
    """The exponential of the mask's fill value is computed once for each row."""
    x = np.zeros((300, 300), np.float32)
    (text,) = hloom.jit(masked_softmax(-math.inf, 0)).lower(x).compile().kernels().values()
    lines = str(text).splitlines()
    (start,) = (k for k, line in enumerate(lines) if "for masked" in line)
    assert "exp(" in lines[start - 1]
    assert not any("exp(" in line for line in lines[start:]), lines


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqd,bkd->bqk", q, k)
    seen = jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])[None, :]
    return jnp.einsum("bqk,bkd->bqd", softmax(jnp.where(seen, scores, -jnp.inf)), v)


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e38])
def test_what_is_not_finite_is_seen_behind_a_mask(which: int, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 * NaN is NaN: where the last key's value is not finite, no result is."""
    monkeypatch.setattr(find, "least_bytes", lambda: 0)
    rng = np.random.default_rng(2)
    args = [rng.standard_normal((9, 40, 32), np.float32) for _ in range(3)]
    args[which][4, 39, 5] = args[which][7, 0, 3] = value
    module = parse(hloom.jit(attention).lower(*args).as_text())
    with np.errstate(all="ignore"):
        (expected,) = evaluate(module, *args)
    executable = NumbaCompiler().compile(module)
    for count in (1, 2):
        threads.set_num_threads(count)
        (actual,) = executable.execute(args)
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(actual), np.isinf(expected))
        np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=1e-4)
    threads.set_num_threads(None)


FUSED = """HloModule m
  mask {
    i = s32[6,8] iota(), iota_dimension=0
    j = s32[6,8] iota(), iota_dimension=1
    ROOT p = pred[6,8] compare(i, j), direction=GE
  }
  body {
    x = f32[3,6,8] parameter(0)
    m = pred[6,8] parameter(1)
    p = pred[3,6,8] broadcast(m), dimensions={1,2}
    c = f32[] constant(-1)
    others = f32[3,6,8] broadcast(c), dimensions={}
    y = f32[3,6,8] negate(x)
    s = f32[3,6,8] select(p, y, others)
    e = f32[3,6,8] exponential(s)
    RESULT
  }
  ENTRY e {
    x = f32[3,6,8] parameter(0)
    m = pred[6,8] fusion(), kind=kLoop, calls=mask
    ROOT f = TYPE fusion(x, m), kind=kLoop, calls=body
  }"""


@pytest.mark.parametrize(
    "result,wanted,outside",
    [
        ("ROOT r = f32[3,6,8] add(e, s)", Band(-math.inf, 0), Band(-math.inf, 0)),
        ("ROOT r = f32[3,6,8] add(e, x)", EVERYTHING, EVERYTHING),
        ("ROOT r = f32[3,6,8] select(p, x, e)", Band(-math.inf, 0), Band(-math.inf, 0)),
        ("ROOT r = f32[3,6,8] select(p, e, x)", EVERYTHING, EVERYTHING),
        ("t = f32[3,8,6] transpose(e), dimensions={0,2,1}\n ROOT r = f32[3,8,6] negate(t)", Band(-math.inf, 0), None),
    ],
)
def test_fusions(result: str, wanted: Band, outside: Band | None) -> None:
    """Masks of other fusions are found; a user that is listed twice counts once."""
    type_ = "f32[3,8,6]" if outside is None else "f32[3,6,8]"
    entry = parse(FUSED.replace("RESULT", result).replace("TYPE", type_)).entry
    x, root = entry.parameters[0], entry.root
    assert looked_at(x, [root]) == wanted
    assert looked_at(x, [root, root]) == wanted
    assert looked_at(x, []) == EVERYTHING
    assert repeated_outside(root) == (EVERYTHING if outside is None else outside)


def test_bands_are_sets() -> None:
    """`hull` and `both` of bands, against sets of elements."""
    bounds = [-math.inf, -2, 0, 3, math.inf]
    bands = [Band(a, b) for a in bounds for b in bounds]
    for a, b in itertools.product(bands, bands):
        assert np.array_equal(inside(a.both(b)), inside(a) & inside(b))
        assert np.all(inside(a.hull(b)) >= (inside(a) | inside(b)))
        i, j = np.indices((5, 5))
        t = a.transposed()
        assert np.array_equal(((i + a.low <= j) & (j <= i + a.high)).T, (i + t.low <= j) & (j <= i + t.high))
