"""Convolutions of one channel: sums of slices, in one loop with what stands around them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.expand.expand import Expand
from hloom.hlo.text.parser import parse
from hloom.numba_backend.expansions import NUMBA_EXPANSIONS

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.scipy import signal

# image, kernel, result, window, dim_labels, groups
FORMS = {
    "an image": ((1, 1, 9, 20), (1, 1, 3, 3), (1, 1, 9, 20), "3x3 pad=1_1x1_1", "bf01_oi01->bf01", 1),
    "images": ((5, 1, 9, 20), (1, 1, 3, 5), (5, 1, 9, 20), "3x5 pad=1_1x2_2", "bf01_oi01->bf01", 1),
    "one channel last": ((2, 9, 20, 1), (3, 3, 1, 1), (2, 9, 20, 1), "3x3 pad=1_1x1_1", "b01f_01io->b01f", 1),
    "no padding": ((1, 1, 9, 20), (1, 1, 3, 3), (1, 1, 7, 18), "3x3", "bf01_oi01->bf01", 1),
    "less than the image": ((1, 1, 9, 20), (1, 1, 3, 3), (1, 1, 7, 17), "3x3 pad=-1_1x2_-3", "bf01_oi01->bf01", 1),
    "holes in the window": (
        (1, 1, 9, 20),
        (1, 1, 3, 3),
        (1, 1, 9, 20),
        "3x3 pad=2_2x3_3 rhs_dilate=2x3",
        "bf01_oi01->bf01",
        1,
    ),
    "reversed": ((1, 1, 9, 20), (1, 1, 3, 3), (1, 1, 9, 20), "3x3 pad=1_1x1_1 rhs_reversal=1x1", "bf01_oi01->bf01", 1),
    "holes in the image": (
        (1, 1, 9, 20),
        (1, 1, 4, 4),
        (1, 1, 18, 40),
        "4x4 pad=2_2x2_2 lhs_dilate=2x2",
        "bf01_oi01->bf01",
        1,
    ),
    "one place": ((1, 1, 3, 3), (1, 1, 3, 3), (1, 1, 1, 1), "3x3", "bf01_oi01->bf01", 1),
    "one element": ((1, 1, 1, 1), (1, 1, 3, 3), (1, 1, 1, 1), "3x3 pad=1_1x1_1", "bf01_oi01->bf01", 1),
    "a signal": ((1, 1, 40), (1, 1, 5), (1, 1, 44), "5 pad=4_4", "bf0_oi0->bf0", 1),
    "a volume": ((1, 1, 5, 6, 7), (1, 1, 2, 2, 3), (1, 1, 5, 6, 7), "2x2x3 pad=1_0x0_1x1_1", "bf012_oi012->bf012", 1),
}
"""Convolutions that become slices, products and sums only."""
OTHERS = {
    "a long window": ((1, 1, 40), (1, 1, 30), (1, 1, 11), "30", "bf0_oi0->bf0", 1),
    "many taps": ((1, 1, 20, 20), (1, 1, 7, 7), (1, 1, 14, 14), "7x7", "bf01_oi01->bf01", 1),
    "short rows, none of whole vectors": ((2, 3, 9, 28), (3, 1, 3, 3), (2, 3, 7, 26), "3x3", "bf01_oi01->bf01", 3),
    "features last": ((2, 9, 20, 6), (3, 3, 1, 6), (2, 7, 18, 6), "3x3", "b01f_01io->b01f", 6),
    "two results a channel": ((2, 3, 9, 20), (6, 1, 3, 3), (2, 6, 7, 18), "3x3", "bf01_oi01->bf01", 3),
    "a stride": ((2, 3, 9, 20), (3, 1, 3, 3), (2, 3, 7, 9), "3x3 stride=1x2", "bf01_oi01->bf01", 3),
    "channels": ((2, 6, 9, 20), (6, 1, 3, 3), (2, 6, 9, 20), "3x3 pad=1_1x1_1", "bf01_oi01->bf01", 6),
    "channels first of all": ((6, 2, 9, 20), (1, 3, 3, 6), (2, 6, 9, 20), "3x3 pad=0_2x2_0", "fb01_i01o->bf01", 6),
    "channels between": ((2, 9, 6, 20), (3, 3, 1, 6), (2, 9, 6, 20), "3x3 pad=1_1x1_1", "b0f1_01io->b0f1", 6),
    "signals": ((3, 4, 40), (4, 1, 9), (3, 4, 40), "9 pad=4_4", "bf0_oi0->bf0", 4),
    "a window of one": ((2, 3, 4, 5), (3, 1, 1, 1), (2, 3, 5, 7), "1x1 pad=1_0x0_2", "bf01_oi01->bf01", 3),
}
"""Those that tiles, products or rows of single channels are better for."""
TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "s32": np.int32, "u8": np.uint8,
         "f16": np.float16, "bf16": ml_dtypes.bfloat16}  # fmt: skip


def _text(form: tuple[Any, ...], element: str) -> str:
    image, kernel, result, window, labels, groups = form
    x, k, y = (f"{element}[{','.join(map(str, dims))}]" for dims in (image, kernel, result))
    return (
        f"HloModule m\nENTRY e {{ x = {x} parameter(0)  k = {k} parameter(1)  ROOT y = {y} "
        f"convolution(x, k), window={{size={window}}}, dim_labels={labels}, feature_group_count={groups} }}"
    )


def _values(rng: np.random.Generator, dims: tuple[int, ...], dtype: Any) -> Any:
    """Small integers, so that all sums are exact."""
    if dtype is np.complex64:
        return (rng.integers(-4, 5, dims) + 1j * rng.integers(-4, 5, dims)).astype(dtype)
    return rng.integers(0, 4, dims).astype(dtype)


def _is_left(form: tuple[Any, ...], element: str) -> bool:
    module = Expand(NUMBA_EXPANSIONS)(parse(_text(form, element)))
    return any(i.opcode is Opcode.CONVOLUTION for i in module.entry.instructions)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("name", FORMS)
def test_results_are_those_of_the_evaluator(name: str, element: str) -> None:
    text, rng = _text(FORMS[name], element), np.random.default_rng(0)
    x, k = (_values(rng, dims, TYPES[element]) for dims in FORMS[name][:2])
    assert not _is_left(FORMS[name], element)
    np.testing.assert_array_equal(hloom.run_hlo(text, x, k)[0], evaluate(parse(text), x, k)[0])


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay_convolutions(name: str) -> None:
    text, rng = _text(OTHERS[name], "f32"), np.random.default_rng(0)
    x, k = (_values(rng, dims, np.float32) for dims in OTHERS[name][:2])
    assert _is_left(OTHERS[name], "f32")
    np.testing.assert_array_equal(hloom.run_hlo(text, x, k)[0], evaluate(parse(text), x, k)[0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, 1e-40])
def test_special_values_are_kept(value: float) -> None:
    """Also where the weight is zero, as in a five-point stencil: zero times infinity is NaN."""
    x, k = np.ones((1, 1, 6, 7), np.float32), np.zeros((1, 1, 3, 3), np.float32)
    x[0, 0, 2, 3], k[0, 0, 1, 1] = value, 1.0
    text = _text(((1, 1, 6, 7), (1, 1, 3, 3), (1, 1, 6, 7), "3x3 pad=1_1x1_1", "bf01_oi01->bf01", 1), "f32")
    found, expected = hloom.run_hlo(text, x, k)[0], evaluate(parse(text), x, k)[0]
    np.testing.assert_array_equal(found, expected)
    if not np.isfinite(value):
        assert np.isnan(found).sum() == (9 if np.isnan(value) else 8)


def test_a_filter_and_what_follows_are_one_kernel() -> None:
    """Besides the copy with its padding; another size is the same code."""

    def filtered(x: Any, k: Any) -> Any:
        return jnp.maximum(signal.convolve2d(x, k, mode="same") * 2.0 + x, 0.0)

    texts = []
    for shape in ((40, 50), (70, 33)):
        x, k = np.ones(shape, np.float32), np.ones((3, 3), np.float32)
        kernels = hloom.jit(filtered).lower(x, k).compile().kernels()
        texts.append({"\n".join(t.splitlines()[1:]) for t in kernels.values()})
        assert len(kernels) == 2
    assert texts[0] == texts[1]


def test_a_stencil_within_a_loop() -> None:
    """Conway's game of life, by a convolution: ten steps against NumPy."""
    board = np.random.default_rng(0).integers(0, 2, (17, 33)).astype(np.float32)
    ring = np.ones((3, 3), np.float32)
    ring[1, 1] = 0

    def step(_: Any, cells: Any) -> Any:
        around = signal.convolve2d(cells, ring, mode="same")
        return jnp.where((around == 3) | ((cells == 1) & (around == 2)), 1.0, 0.0).astype(jnp.float32)

    expected = board
    for _ in range(10):
        wide = np.pad(expected, 1)
        around = sum(wide[i : i + 17, j : j + 33] for i in range(3) for j in range(3)) - expected
        expected = np.where((around == 3) | ((expected == 1) & (around == 2)), 1.0, 0.0)
    np.testing.assert_array_equal(hloom.jit(lambda b: lax.fori_loop(0, 10, step, b))(board), expected)


def test_derivatives_are_those_of_sums_of_products() -> None:
    rng = np.random.default_rng(0)
    x, k = rng.standard_normal((12, 15)), rng.standard_normal((3, 3))
    x, k, c = (v.astype(np.float32) for v in (x, k, rng.standard_normal((12, 15))))

    def loss(x: Any, k: Any) -> Any:
        return jnp.sum(signal.correlate2d(x, k, mode="same") * c)

    by_x, by_k = hloom.jit(hloom.grad(loss, argnums=(0, 1)))(x, k)
    wide, back = np.pad(x, 1), np.pad(c, 1)
    places = [(i, j) for i in range(3) for j in range(3)]
    np.testing.assert_allclose(
        by_k,
        np.array([(wide[i : i + 12, j : j + 15] * c).sum() for i, j in places]).reshape(3, 3),
        rtol=1e-4,
        atol=1e-4,
    )
    expected = sum(back[i : i + 12, j : j + 15] * k[2 - i, 2 - j] for i, j in places)
    np.testing.assert_allclose(by_x, expected, rtol=1e-4, atol=1e-4)
