"""Convolutions with sums in registers, and derivatives by input and kernel, which have forms of their own.

Small odd sizes, on guarded memory with NaN in the other bytes, cut into pieces and blocks, for all kinds of registers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hloom.hlo import ElementType, HloModule, Opcode, Shape
from hloom.hlo.builder import make_computation, make_instruction, make_module, make_parameter
from hloom.hlo.ops.convolution import ConvolutionAttributes
from hloom.hlo.passes.expand.convolution import canonical_numbers
from hloom.hlo.passes.expand.expand import Expand
from hloom.hlo.window import Window, WindowDimension
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.expansions import NUMBA_EXPANSIONS
from hloom.numba_backend.expansions import convolution as forms
from hloom.numba_backend.machine import ANY_TARGET, compiling_for
from hloom.numba_backend.policy import convolutions as policy

import hloom
from hloom import hlo, lax
from hloom import numpy as jnp
from support.guarded import GuardedProgram, small_pieces

NDArray = np.ndarray[Any, Any]
E = ElementType
REGISTERS = {"avx512": (32, 64), "half of avx512": (32, 32), "avx2": (16, 32), "neon": (32, 16)}


class Conv(NamedTuple):
    """A convolution in a canonical form."""

    batch: int
    inputs: int
    spatial: tuple[int, ...]
    outputs: int
    window: Window
    groups: int = 1


def _window(size: int, stride: int = 1, low: int = 0, high: int = 0, dilation: int = 1) -> WindowDimension:
    return WindowDimension(size, stride, low, high, 1, dilation)


CASES = {
    "same": Conv(3, 5, (9, 11), 7, (_window(3, 1, 1, 1),) * 2),
    "wide": Conv(1, 2, (3, 150), 9, (_window(3, 1, 1, 1), _window(5, 1, 2, 2))),
    "valid": Conv(2, 4, (8, 9), 6, (_window(2), _window(3))),
    "stride": Conv(2, 6, (13, 15), 9, (_window(3, 2, 1, 1), _window(3, 2, 0, 1))),
    "stride 3, dilation 2": Conv(2, 3, (17, 16), 10, (_window(3, 3, 2, 1, 2), _window(2, 3, 1, 2, 2))),
    "stride of nothing": Conv(2, 8, (9, 8), 17, (_window(1, 2), _window(1, 3))),
    "dilation": Conv(2, 7, (12, 10), 5, (_window(3, 1, 2, 2, 2), _window(3, 1, 3, 3, 3))),
    "cropped": Conv(2, 8, (12, 14), 8, (_window(3, 1, -2, 1), _window(3, 1, 1, -3))),
    "more padding than array": Conv(2, 9, (3, 4), 8, (_window(4, 1, 5, 6), _window(2, 2, 7, 3))),
    "1-D": Conv(3, 10, (61,), 33, (_window(7, 1, 3, 3),)),
    "1-D, one position": Conv(3, 40, (9,), 33, (_window(9),)),
    "3-D": Conv(2, 3, (5, 6, 7), 5, (_window(3, 1, 1, 1), _window(2), _window(3, 2, 1, 1))),
    "groups": Conv(2, 8, (7, 9), 12, (_window(3, 1, 1, 1),) * 2, 4),
    "depthwise": Conv(2, 37, (8, 9), 37, (_window(3, 1, 1, 1),) * 2, 37),
    "depthwise, stride": Conv(3, 32, (9, 9), 32, (_window(3, 2, 1, 1),) * 2, 32),
    "depthwise, two of each": Conv(2, 9, (8, 7), 18, (_window(3, 1, 1, 1),) * 2, 9),
    "depthwise, wide": Conv(2, 3, (7, 41), 3, (_window(3, 1, 1, 1), _window(5, 1, 2, 2)), 3),
    "depthwise, narrow": Conv(3, 5, (2, 3), 5, (_window(3, 1, 1, 1),) * 2, 5),
    "depthwise, stride 3, dilation 2": Conv(2, 3, (17, 70), 3, (_window(3, 3, 2, 1, 2), _window(2, 3, 1, 2, 2)), 3),
    "depthwise, cropped": Conv(2, 2, (12, 34), 4, (_window(3, 1, -2, 1), _window(3, 1, 1, -3)), 2),
    "depthwise, padding": Conv(2, 2, (3, 4), 2, (_window(4, 1, 5, 6), _window(2, 2, 27, 33)), 2),
    "depthwise, 1-D": Conv(2, 4, (150,), 4, (_window(4, 1, 3, 0),), 4),
    "depthwise, 3-D": Conv(2, 2, (5, 6, 19), 2, (_window(3, 1, 1, 1), _window(2), _window(3, 2, 1, 1)), 2),
    "depthwise, many taps": Conv(1, 2, (9, 20), 2, (_window(9, 1, 4, 4),) * 2, 2),
    "one input": Conv(4, 1, (12, 13), 10, (_window(5),) * 2),
    "one input, few taps": Conv(4, 1, (12, 33), 10, (_window(3, 1, 1, 1), _window(3, 2, 1, 1))),
    "one output": Conv(4, 10, (12, 13), 1, (_window(3, 1, 1, 1),) * 2),
    "deep": Conv(2, 130, (6, 6), 9, (_window(3, 1, 1, 1),) * 2),
    "deep, more outputs than a block": Conv(2, 67, (6, 37), 71, (_window(3, 1, 1, 1),) * 2),
    "deep, stride": Conv(2, 41, (9, 23), 13, (_window(3, 2, 1, 1),) * 2),
    "deep, groups": Conv(2, 150, (5, 19), 26, (_window(3, 1, 1, 1),) * 2, 2),
    "a long window": Conv(1, 1, (1500,), 3, (_window(700),)),
    "many outputs": Conv(2, 20, (5, 5), 70, (_window(3, 1, 1, 1),) * 2),
    "few places": Conv(5, 20, (2, 3), 40, (_window(3, 1, 1, 1),) * 2),
}


def _module(conv: Conv, last: bool, element: ElementType) -> HloModule:
    image = (conv.batch, *conv.spatial, conv.inputs) if last else (conv.batch, conv.inputs, *conv.spatial)
    taps, each = tuple(w.size for w in conv.window), conv.inputs // conv.groups
    kernel = (*taps, each, conv.outputs) if last else (conv.outputs, each, *taps)
    x, w = (make_parameter(k, Shape.array(element, dims)) for k, dims in enumerate((image, kernel)))
    attributes = ConvolutionAttributes(conv.window, canonical_numbers(len(conv.window), last), conv.groups)
    root = make_instruction(Opcode.CONVOLUTION, [x, w], attributes)
    return make_module("convolution", make_computation("main", root, [x, w]))


def _derivative(conv: Conv, last: bool, element: ElementType, of_kernel: bool) -> tuple[HloModule, list[Shape]]:
    """The derivative as the library makes it: a function of the other operand and the cotangents."""
    n, forward = len(conv.window), _module(conv, last, element).entry
    x, w = (p.shape for p in forward.parameters)
    spatial = "DHW"[-n:]
    labels = ("N" + spatial + "C", spatial + "IO") if last else ("NC" + spatial, "OI" + spatial)

    def convolve(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, tuple(p.stride for p in conv.window), [(p.padding_low, p.padding_high) for p in conv.window],
            rhs_dilation=tuple(p.window_dilation for p in conv.window), dimension_numbers=(*labels, labels[0]),
            feature_group_count=conv.groups,
        )  # fmt: skip

    def by_kernel(x: Any, y: Any) -> Any:
        return hloom.vjp(lambda v: convolve(x, v), jnp.zeros(w.dimensions, w.element.dtype))[1](y)[0]

    def by_input(w: Any, y: Any) -> Any:
        return hloom.vjp(lambda v: convolve(v, w), jnp.zeros(x.dimensions, x.element.dtype))[1](y)[0]

    shapes = [x if of_kernel else w, forward.root.shape]
    with hloom.enable_x64(True):
        arguments = [jnp.zeros(s.dimensions, s.element.dtype) for s in shapes]
        text = hloom.jit(by_kernel if of_kernel else by_input).lower(*arguments).as_text()
    return hlo.parse(text), shapes


def _values(shapes: Sequence[Shape]) -> list[NDArray]:
    rng = np.random.default_rng(len(shapes))
    return [(16 * rng.standard_normal(s.dimensions)).astype(np.int64).astype(s.element.dtype)
            if s.element.is_integral else rng.standard_normal(s.dimensions).astype(s.element.dtype)
            for s in shapes]  # fmt: skip


def _check(module: HloModule, shapes: Sequence[Shape], terms: int) -> None:
    inputs = _values(shapes)
    expected = np.asarray(hlo.evaluate(module, *[a.astype(a.dtype) for a in inputs])[0])
    bound = 0.0
    if expected.dtype.kind == "f":
        bound = np.finfo(expected.dtype).eps * (8 + 2 * math.sqrt(terms)) * math.sqrt(terms)
    with small_pieces():
        for at_end in (True, False):
            actual = GuardedProgram(module, at_end=at_end, pattern=0xFF).run(inputs)[0]
            np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)


def _texts(module: HloModule) -> set[str]:
    """The kernels, without the lines that say what for."""
    texts = NumbaCompiler().compile(module).kernels().values()
    return {"\n".join(line for line in text.splitlines() if not line.startswith("#")) for text in texts}


def _forms(module: HloModule) -> str:
    return Expand(NUMBA_EXPANSIONS)(module).to_text()


@pytest.fixture
def _in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few images at a time, and forms of their own for the smallest derivatives."""
    monkeypatch.setattr(policy, "block_bytes", lambda: 1 << 12)
    monkeypatch.setattr(forms, "LEAST_GRADIENT", 1)


def _check_case(name: str, last: bool, which: str, element: ElementType = E.F32) -> None:
    conv = CASES[name]
    taps = math.prod(w.size for w in conv.window)
    if which == "result":
        module = _module(conv, last, element)
        _check(module, [p.shape for p in module.entry.parameters], taps * conv.inputs // conv.groups)
        return
    module, shapes = _derivative(conv, last, element, which == "by kernel")
    terms = conv.batch * math.prod(conv.spatial) if which == "by kernel" else taps * conv.outputs // conv.groups
    _check(module, shapes, terms)


_IN_BRIEF = ("same", "stride", "cropped", "3-D", "groups", "depthwise", "one output", "a long window", "few places")


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("_in_blocks")
@pytest.mark.parametrize("which", ["result", "by input", "by kernel"])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize(
    "name", [name if name in _IN_BRIEF else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_convolutions(name: str, last: bool, which: str) -> None:
    _check_case(name, last, which)


@pytest.mark.usefixtures("_in_blocks")
@pytest.mark.parametrize("element", [E.S32, E.U8, pytest.param(E.S16, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "last"), [("stride", False), ("same", True), ("depthwise", True)])
def test_sums_of_integers_are_vectors_without_pieces(name: str, last: bool, element: ElementType) -> None:
    _check_case(name, last, "result", element)
    (text,) = (text for text in _texts(_module(CASES[name], last, element)) if "_tiles" in text)
    assert not re.search(r"[it]0s|in range\(\d+\):\n +(sums|out)", text)


_SMALL = Conv(2, 4, (8, 8), 8, (_window(3, 1, 1, 1),) * 2)


@pytest.mark.parametrize(
    ("last", "element", "columns"), [(True, E.F32, 16), (True, E.S32, 16), (False, E.F32, 32), (False, E.S8, 64)]
)
def test_small_convolutions_have_few_kernels(last: bool, element: ElementType, columns: int) -> None:
    """The tile of few outputs has one register of columns. Sums of small integers are wider than the integers are:
    images that fill a tile need no transposes."""
    with compiling_for(replace(ANY_TARGET, registers=32, register_bytes=64)):
        texts = _texts(_module(_SMALL, last, element))
    assert not any("transpose" in text for text in texts)
    assert any(f"sums0 = local_array({columns}, " in text for text in texts)


@pytest.mark.slow
@pytest.mark.usefixtures("_in_blocks")
@pytest.mark.parametrize(
    ("registers", "element"), [*((r, E.F32) for r in REGISTERS.values()), (REGISTERS["half of avx512"], E.F64)]
)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_other_registers(last: bool, element: ElementType, registers: tuple[int, int]) -> None:
    number, nbytes = registers
    other = replace(ANY_TARGET, registers=number, register_bytes=nbytes)
    for name in ("same", "stride", "depthwise", "many outputs"):
        for which in ("result", "by input", "by kernel"):
            with compiling_for(other):
                _check_case(name, last, which, element)


_WALKS = (
    "same", "wide", "stride", "stride 3, dilation 2", "dilation", "cropped", "more padding than array", "1-D", "3-D",
    "groups", "one input",
)  # fmt: skip


@pytest.mark.parametrize("in_strips", [False, True], ids=["whole", "in strips"])
@pytest.mark.parametrize("spread", [False, True], ids=["", "a phase for each element of the window"])
def test_walks_through_images(spread: bool, in_strips: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All walks for all images, not only the walk with the lowest estimated cost."""
    monkeypatch.setattr(policy, "_work", lambda walk, tile: (walk.cells[-1].spread is not spread) + 1)
    monkeypatch.setattr(policy, "FEW_STRIPS", 2)
    monkeypatch.setattr(policy, "MORE_WORK", 1e9)
    monkeypatch.setattr(policy, "large_bytes", lambda: 0 if in_strips else 1 << 30)
    monkeypatch.setattr(forms, "SOME_WASTE", 1e9)
    monkeypatch.setattr(forms, "MOST_WASTE", 1e9)
    cut = 0
    for name in _WALKS:
        _check_case(name, False, "result", E.F64 if name == "dilation" else E.F32)
        texts = NumbaCompiler().compile(_module(CASES[name], False, E.F32)).kernels().values()
        cut += sum("strips" in text and re.search(r"\bstrips = 1\b", text) is None for text in texts)
    assert cut == (2 * (len(_WALKS) - 1) if in_strips else 0)


@pytest.mark.parametrize("registers", REGISTERS)
def test_rows_of_single_inputs_in_parts(registers: str) -> None:
    """Copies of a few rows and columns at a time, the last of which begin before the others end."""
    number, nbytes = REGISTERS[registers]
    for first_cache in (1 << 15, 1 << 12, 1 << 10):
        with compiling_for(replace(ANY_TARGET, registers=number, register_bytes=nbytes, first_cache=first_cache)):
            for name in (name for name in CASES if name.startswith(("depthwise, ", "one "))):
                for element in (E.F32, E.F64, E.S8):
                    _check_case(name, False, "result", element)
                _check_case(name, False, "by input", E.F32)
                texts = _texts(_module(CASES[name], False, E.F32))
                by_rows = any("def convolution_rows" in text for text in texts)
                assert by_rows or first_cache < 1 << 15 or name in ("depthwise, many taps", "one input", "one output")


def test_walks_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line along the first axis is a walk, or several lines are; also where they are few."""
    for most in (1, 3):
        monkeypatch.setattr(policy, "_work", lambda walk, tile, most=most: max(walk.lines_of_walk, most))
        for name in _WALKS:
            _check_case(name, False, "result", E.F64 if name == "dilation" else E.F32)
            _check_case(name, False, "by input", E.F32)
    monkeypatch.undo()
    volume = Conv(2, 16, (24, 24, 24), 16, (_window(3, 1, 1, 1),) * 3)
    (text,) = [t for t in NumbaCompiler().compile(_module(volume, False, E.F32)).kernels().values() if "taps = 27" in t]
    assert re.search(r"\bstrips = \d\d\b", text), "planes"


def test_derivatives_have_forms_of_their_own() -> None:
    conv = Conv(4, 16, (20, 20), 24, (_window(3, 1, 1, 1),) * 2)
    for last, of_kernel, label in (
        (False, True, "dim_labels=fb01_io01->fb01"),
        (True, True, "dim_labels=f01b_i01o->01bf"),
        (False, False, "dim_labels=bf01_io01->bf01"),
    ):
        text = _forms(_derivative(conv, last, E.F32, of_kernel)[0])
        assert label in text
        assert not {"transpose(", "reverse("} & set(text.split())


def test_groups_of_a_derivative_stay_groups_of_the_batch() -> None:
    conv = Conv(4, 32, (20, 20), 32, (_window(3, 1, 1, 1),) * 2, 32)
    for last in (False, True):
        assert "batch_group_count=32" in _forms(_derivative(conv, last, E.F32, True)[0])


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("which", ["result", "by input", "by kernel"])
def test_new_sizes_compile_nothing(last: bool, which: str) -> None:
    """Another batch, other features, another image."""
    small = Conv(3, 17, (20, 23), 18, (_window(3, 1, 1, 1),) * 2)
    large = Conv(7, 40, (33, 47), 70, (_window(3, 1, 1, 1),) * 2)
    found = []
    for conv in (small, large):
        module = _module(conv, last, E.F32) if which == "result" else _derivative(
            conv, last, E.F32, which == "by kernel"
        )[0]
        found.append(_texts(module))
    assert found[0] == found[1]


SHARED = {
    "dilations": [Conv(3, 17, (60,), 18, (_window(2, 1, d, 0, d),)) for d in (1, 2, 16)],
    "few inputs, few outputs": [
        Conv(20, inputs, (20, 21), outputs, (_window(3, 1, 1, 1),) * 2)
        for inputs, outputs in ((2, 17), (3, 17), (17, 18))
    ],
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_convolutions_share_a_kernel(name: str, last: bool) -> None:
    """A stack of convolutions that see further and further, say."""
    first, *others = [_texts(_module(conv, last, E.F32)) for conv in SHARED[name]]
    assert all(found == first for found in others)


def test_infinities_and_nan_stay_where_they_are() -> None:
    """Elements that a tile reads beyond the end of a row do not reach any result."""
    conv = Conv(2, 3, (9, 11), 20, (_window(3, 1, 1, 1), _window(3, 2, 0, 0)))
    for last in (False, True):
        module = _module(conv, last, E.F32)
        x, w = _values([p.shape for p in module.entry.parameters])
        places = ((0, 4, 10, 0), (1, 8, 0, 1)) if last else ((0, 0, 4, 10), (1, 1, 8, 0))
        x[places[0]], x[places[1]] = np.inf, np.nan
        actual = np.asarray(NumbaCompiler().compile(module).execute([x, w])[0])
        expected = np.asarray(hlo.evaluate(module, x, w)[0])
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(actual), np.isinf(expected))


@pytest.mark.parametrize("conv", [
    Conv(1, 4000, (4, 9), 8, (_window(3, 1, 1, 1),) * 2), Conv(1, 7, (53, 60), 3, (_window(50, 1, 1, 2),) * 2),
], ids=["inputs", "a large window"])  # fmt: skip
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_a_sum_of_many_products_is_added_in_pieces(last: bool, conv: Conv) -> None:
    """Its error is as small as for sums of some hundred terms, as with a BLAS."""
    module = _module(conv, last, E.F32)
    x, w = (np.abs(a) for a in _values([p.shape for p in module.entry.parameters]))
    actual = np.asarray(NumbaCompiler().compile(module).execute([x, w])[0])
    exact = np.asarray(hlo.evaluate(_module(conv, last, E.F64), x.astype(np.float64), w.astype(np.float64))[0])
    assert np.max(np.abs(actual - exact) / exact) < 30 * np.finfo(np.float32).eps
