"""Infinities and NaN in convolutions: padding is zeros, which are multiplied; holes take no part. The evaluator says
so, and each kind of kernel that there is for convolutions must agree with it in every element."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hloom.hlo import ElementType, HloModule
from hloom.hlo.evaluator import evaluate
from hloom.hlo.text.parser import parse
from hloom.numba_backend.expansions import convolution as forms
from hloom.numba_backend.policy import convolutions as policy
from hypothesis import given, settings
from hypothesis import strategies as st

import hloom
from hloom import lax
from support.layout_orders import compile_with, random_preferences, with_random_entry_layouts

NDArray = np.ndarray[Any, Any]
E = ElementType
VALUES = (np.inf, -np.inf, np.nan)


class Form(NamedTuple):
    """A convolution as text: the sizes of input, kernel and result, the window, and the rest."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    window: str
    labels: str
    more: str = ""


_1, _2, _3 = "bf0_oi0->bf0", "bf01_oi01->bf01", "bf012_oi012->bf012"
_LAST = "b01f_01io->b01f"
FORMS = {
    # tiles in registers, channels first: wide rows and much padding, so that taps of a tile meet padding alone
    "tiles": Form((1, 3, 4, 150), (9, 3, 3, 5), (1, 9, 4, 150), "size=3x5 pad=1_1x2_2", _2),
    "tiles, stride": Form((2, 3, 9, 90), (5, 3, 3, 3), (2, 5, 5, 45), "size=3x3 stride=2x2 pad=1_1x1_1", _2),
    "tiles, groups": Form(
        (2, 6, 4, 70), (8, 3, 3, 3), (2, 8, 4, 70), "size=3x3 pad=1_1x1_1", _2, "feature_group_count=2"
    ),
    "tiles, batch groups": Form(
        (4, 3, 4, 70), (6, 3, 3, 3), (2, 6, 4, 70), "size=3x3 pad=1_1x1_1", _2, "batch_group_count=2"
    ),
    "tiles, 1-D": Form((2, 3, 50), (6, 3, 4), (2, 6, 147), "size=4 pad=60_55 rhs_dilate=6", _1),
    "tiles, 3-D": Form((1, 2, 5, 6, 20), (5, 2, 3, 3, 3), (1, 5, 5, 6, 20), "size=3x3x3 pad=1_1x1_1x1_1", _3),
    "tiles, cropped": Form((2, 3, 12, 40), (4, 3, 3, 3), (2, 4, 10, 37), "size=3x3 pad=-3_3x1_-2", _2),
    "tiles, padding alone": Form((2, 2, 3, 4), (4, 2, 2, 2), (2, 4, 22, 33), "size=2x2 pad=9_11x15_15", _2),
    "tiles, full": Form((1, 1, 60), (2, 1, 60), (1, 2, 119), "size=60 pad=59_59", _1),
    "tiles, reversed": Form(
        (1, 3, 4, 90), (9, 3, 3, 5), (1, 9, 4, 90), "size=3x5 pad=1_1x2_2 rhs_reversal=1x1", _2
    ),
    # the derivatives' own forms
    "transposed kernel": Form(
        (1, 9, 4, 150), (9, 3, 3, 5), (1, 3, 4, 150), "size=3x5 pad=1_1x2_2 rhs_reversal=1x1", "bf01_io01->bf01"
    ),
    "by the kernel": Form((6, 2, 9, 9), (6, 5, 9, 9), (5, 2, 3, 3), "size=9x9 pad=1_1x1_1", "fb01_io01->fb01"),
    "by the kernel, strided": Form(
        (6, 2, 9, 9), (6, 5, 5, 5), (5, 2, 3, 3), "size=5x5 pad=1_1x1_1 rhs_dilate=2x2", "fb01_io01->fb01"
    ),
    "by the kernel, last": Form((6, 9, 9, 2), (6, 9, 9, 5), (3, 3, 2, 5), "size=9x9 pad=1_1x1_1", "f01b_i01o->01bf"),
    "by the kernel, groups": Form(
        (6, 2, 9, 9), (6, 4, 9, 9), (4, 1, 3, 3), "size=9x9 pad=1_1x1_1", "fb01_io01->fb01", "batch_group_count=2"
    ),
    # channels last, depthwise, stencils
    "last": Form((2, 5, 40, 3), (3, 3, 3, 20), (2, 5, 40, 20), "size=3x3 pad=1_1x1_1", _LAST),
    "last, few outputs": Form((2, 5, 40, 3), (3, 3, 3, 2), (2, 5, 40, 2), "size=3x3 pad=1_1x1_1", _LAST),
    "last, groups": Form(
        (2, 5, 9, 4), (3, 3, 2, 6), (2, 5, 9, 6), "size=3x3 pad=1_1x1_1", _LAST, "feature_group_count=2"
    ),
    "depthwise": Form((2, 9, 6, 7), (9, 1, 3, 3), (2, 9, 6, 7), "size=3x3 pad=1_1x1_1", _2, "feature_group_count=9"),
    "depthwise, last": Form(
        (2, 6, 7, 20), (3, 3, 1, 20), (2, 6, 7, 20), "size=3x3 pad=1_1x1_1", _LAST, "feature_group_count=20"
    ),
    "depthwise, holes": Form(
        (2, 4, 6, 7), (4, 1, 3, 3), (2, 4, 11, 13), "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", _2, "feature_group_count=4"
    ),
    "stencil": Form((1, 1, 6, 16), (1, 1, 3, 3), (1, 1, 6, 16), "size=3x3 pad=1_1x1_1", _2),
    "few places": Form((5, 6, 2, 3), (20, 6, 3, 3), (5, 20, 2, 3), "size=3x3 pad=1_1x1_1", _2),
    "pointwise": Form((2, 6, 4, 5), (3, 6, 1, 1), (2, 3, 4, 5), "size=1x1", _2),
    # holes, as phases and as they are
    "holes": Form((2, 3, 7), (4, 3, 3), (2, 4, 15), "size=3 pad=2_2 lhs_dilate=2", _1),
    "holes, stride": Form(
        (2, 3, 9, 9), (4, 3, 3, 3), (2, 4, 9, 13), "size=3x3 stride=2x4 pad=1_2x9_9 lhs_dilate=2x4", _2
    ),
    "holes, dilation": Form((2, 3, 8), (4, 3, 3), (2, 4, 16), "size=3 pad=3_4 lhs_dilate=2 rhs_dilate=3", _1),
    "holes, last": Form(
        (2, 5, 6, 3), (3, 3, 3, 20), (2, 9, 5, 20), "size=3x3 stride=1x2 pad=1_1x1_0 lhs_dilate=2x2", _LAST
    ),
    "very many holes": Form((2, 3, 5), (4, 3, 12), (2, 4, 48), "size=12 pad=11_7 lhs_dilate=10", _1),
    "very many holes, stride": Form(
        (2, 3, 4, 5), (4, 3, 3, 12), (2, 4, 21, 19), "size=3x12 stride=2x3 pad=2_8x11_11 lhs_dilate=11x11", _2
    ),
    "very many holes, last": Form(
        (2, 4, 5, 3), (3, 12, 3, 4), (2, 32, 48, 4), "size=3x12 pad=0_0x11_7 lhs_dilate=11x10", _LAST
    ),
    "very many holes, groups": Form(
        (2, 4, 5), (6, 2, 12), (2, 6, 48), "size=12 pad=11_7 lhs_dilate=10", _1, "feature_group_count=2"
    ),
    "very many holes, batch groups": Form(
        (4, 2, 5), (6, 2, 12), (2, 6, 48), "size=12 pad=11_7 lhs_dilate=10", _1, "batch_group_count=2"
    ),
}
TYPES = (E.F32, E.F64, E.F16, E.BF16, E.C64)
_ALL_TYPES = ("tiles", "transposed kernel", "by the kernel", "last", "depthwise, holes", "holes", "very many holes")


def _module(form: Form, element: ElementType = E.F32) -> HloModule:
    x, w, y = (f"{element.value}[{','.join(map(str, sizes))}]" for sizes in form[:3])
    more = f", {form.more}" if form.more else ""
    return parse(
        f"HloModule m\nENTRY e {{ x = {x} parameter(0)  w = {w} parameter(1)  ROOT y = {y} convolution(x, w), "
        f"window={{{form.window}}}, dim_labels={form.labels}{more} }}"
    )


def _kinds(array: Any) -> NDArray:
    """0 for finite numbers, 1 and -1 for infinities, 2 for NaN. A complex number: both parts' as one."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        real, imag = _kinds(array.real), _kinds(array.imag)
        return np.where((real == 2) | (imag == 2), 2, (real != 0) | (imag != 0))
    array = array.astype(np.float64)
    return np.where(np.isnan(array), 2, np.where(np.isinf(array), np.sign(array), 0))


def _with(arrays: Sequence[NDArray], which: int, value: float, rng: np.random.Generator) -> list[NDArray]:
    """Copies, with the value in a few elements of one of them, one at the first place of all that may meet padding."""
    copies = [a.copy() for a in arrays]
    flat = copies[which].reshape(-1)
    flat[[0, *rng.integers(0, flat.size, rng.integers(0, 3))]] = value
    return copies


def _check(module: HloModule, rng: np.random.Generator, seed: int | None = None) -> None:
    """`seed`: of random layouts."""
    arrays = [np.asarray(rng.standard_normal(p.shape.dimensions)) for p in module.entry.parameters]
    arrays = [a.astype(p.shape.element.dtype) for a, p in zip(arrays, module.entry.parameters, strict=True)]
    if seed is None:
        executable = compile_with(module, None)
    else:
        chooses = random.Random(seed)
        executable = compile_with(with_random_entry_layouts(module, chooses), random_preferences(chooses))
    for which in (0, 1):
        for value in VALUES:
            inputs = _with(arrays, which, value, rng)
            with np.errstate(all="ignore"):
                expected = _kinds(evaluate(module, *inputs)[0])
            np.testing.assert_array_equal(_kinds(executable.execute(inputs)[0]), expected, f"{value} in {'xw'[which]}")


@pytest.fixture
def _own_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest derivatives have forms of their own; products are done in blocks."""
    monkeypatch.setattr(forms, "LEAST_GRADIENT", 1)
    monkeypatch.setattr(policy, "block_bytes", lambda: 1 << 12)


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("_own_forms")
@pytest.mark.parametrize(
    ("name", "element"),
    [
        pytest.param(name, element, marks=() if element is E.F32 or name in _ALL_TYPES else pytest.mark.slow)
        for name in FORMS
        for element in TYPES
    ],
    ids=lambda value: getattr(value, "value", value),
)
def test_kernels_agree_with_the_evaluator(name: str, element: ElementType) -> None:
    _check(_module(FORMS[name], element), np.random.default_rng(0))


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("_own_forms")
@pytest.mark.parametrize("name", FORMS)
def test_so_they_do_in_random_layouts(name: str) -> None:
    _check(_module(FORMS[name]), np.random.default_rng(1), len(name))


def test_padding_is_multiplied_and_holes_are_not() -> None:
    """The meaning itself, in numbers."""
    padded = _module(Form((1, 1, 4), (1, 1, 3), (1, 1, 4), "size=3 pad=1_1", _1))
    holes = _module(Form((1, 1, 3), (1, 1, 2), (1, 1, 4), "size=2 lhs_dilate=2", _1))
    for run in (lambda m, *a: evaluate(m, *a)[0], lambda m, *a: compile_with(m, None).execute(a)[0]):
        found = run(padded, np.ones((1, 1, 4), np.float32), np.array([[[np.inf, 1, 1]]], np.float32))
        np.testing.assert_array_equal(np.asarray(found)[0, 0], [np.nan, np.inf, np.inf, np.inf])
        found = run(holes, np.ones((1, 1, 3), np.float32), np.array([[[np.inf, 1]]], np.float32))
        np.testing.assert_array_equal(np.asarray(found)[0, 0], [np.inf, 1, np.inf, 1])


@st.composite
def _windows(draw: st.DrawFn) -> Form:
    """One or two dimensions with any stride, padding, holes and dilation."""
    numbers = st.integers(1, 4)
    rank = draw(st.integers(1, 2))
    groups, inputs, outputs, batch = draw(st.integers(1, 2)), draw(numbers), draw(numbers), draw(st.integers(1, 2))
    sizes, taps, counts, texts = [], [], [], []
    for _ in range(rank):
        size, tap, stride, dilation = draw(st.integers(1, 24)), draw(st.integers(1, 5)), draw(numbers), draw(numbers)
        holes = draw(st.sampled_from([1, 2, 3, 4, 6, 9, 12]))
        area, reach = (size - 1) * holes + 1, (tap - 1) * dilation + 1
        low = draw(st.integers(max(reach - area, -2), max(reach - area, 20)))
        high = draw(st.integers(max(reach - area - low, -2), max(reach - area - low, 20)))
        sizes.append(size)
        taps.append(tap)
        counts.append((area + low + high - reach) // stride + 1)
        texts.append((tap, stride, f"{low}_{high}", holes, dilation))
    columns = ["x".join(map(str, column)) for column in zip(*texts, strict=True)]
    window = "size={} stride={} pad={} lhs_dilate={} rhs_dilate={}".format(*columns)
    return Form(
        (batch, groups * inputs, *sizes), (groups * outputs, inputs, *taps), (batch, groups * outputs, *counts),
        window, (_1, _2)[rank - 1], f"feature_group_count={groups}",
    )  # fmt: skip


@given(_windows(), st.integers(0, 1 << 30))
@settings(max_examples=20, deadline=None)
def test_random_windows(form: Form, seed: int) -> None:
    _check(_module(form), np.random.default_rng(seed), seed)


def test_gradients_agree_too() -> None:
    """By input and kernel, as the library writes them, of a strided convolution with an infinity in each factor."""
    rng = np.random.default_rng(2)
    x, w, y = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 9, 40), (4, 3, 3, 3), (2, 4, 5, 20)))

    def convolve(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (2, 2), [(1, 1), (1, 1)])

    def gradients(x: Any, w: Any, y: Any) -> Any:
        return hloom.vjp(convolve, x, w)[1](y)

    module = parse(hloom.jit(gradients).lower(x, w, y).as_text())
    executable = compile_with(module, None)
    for which in range(3):
        for value in VALUES:
            inputs = _with([x, w, y], which, value, rng)
            with np.errstate(all="ignore"):
                expected = evaluate(module, *inputs)
            for found, wanted in zip(executable.execute(inputs), expected, strict=True):
                np.testing.assert_array_equal(_kinds(found), _kinds(wanted))


@pytest.mark.parametrize(
    ("labels", "x", "w", "options"),
    [
        (("NCH", "OIH", "NCH"), (1, 3, 8), (3, 3, 3), {}),
        (("NHC", "HIO", "NHC"), (1, 8, 3), (3, 3, 3), {}),
        (("NCHW", "OIHW", "NCHW"), (2, 2, 4, 5), (2, 2, 3, 3), {}),
        (("NHWC", "HWIO", "NHWC"), (1, 4, 5, 4), (3, 3, 1, 4), {"feature_group_count": 4}),
        (("NCHW", "OIHW", "NCHW"), (1, 1, 5, 6), (1, 1, 3, 3), {}),
        (("NCH", "OIH", "NCH"), (1, 2, 8), (2, 2, 3), {"window_strides": (2,), "lhs_dilation": (2,)}),
    ],
)
def test_native_loops_agree_too(labels: Any, x: Sequence[int], w: Sequence[int], options: dict[str, Any]) -> None:
    """Their kernels do all the work, and leave out padding."""
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in (x, w)]

    def convolve(x: Any, w: Any) -> Any:
        strides = options.get("window_strides", (1,) * (len(x.shape) - 2))
        rest = {k: v for k, v in options.items() if k != "window_strides"}
        padding = [(1, 1)] * len(strides)
        return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=labels, **rest)

    module = parse(
        hloom.jit(lambda x, w: lax.fori_loop(0, 3, lambda i, y: 0.5 * convolve(y, w), x)).lower(*arrays).as_text()
    )
    executable = compile_with(module, None)
    for which in (0, 1):
        for value in VALUES:
            inputs = _with(arrays, which, value, rng)
            with np.errstate(all="ignore"):
                expected = _kinds(evaluate(module, *inputs)[0])
            np.testing.assert_array_equal(_kinds(executable.execute(inputs)[0]), expected)
