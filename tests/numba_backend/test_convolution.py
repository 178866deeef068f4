"""Convolutions beyond the op table: cut into blocks, canonical forms, phases, which compiled code is shared."""

from __future__ import annotations

import numpy as np
import pytest
from hloom.hlo import ElementType, HloModule, Opcode, Shape
from hloom.hlo.builder import make_computation, make_instruction, make_module, make_parameter
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ops.convolution import ConvolutionAttributes
from hloom.hlo.passes.expand.convolution import canonical_numbers
from hloom.hlo.passes.expand.expand import Expand
from hloom.hlo.text.parser import parse
from hloom.hlo.window import Window, WindowDimension
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.expansions import NUMBA_EXPANSIONS
from hloom.numba_backend.machine import compiling_for
from hloom.numba_backend.policy import convolutions as policy

import hloom
from hloom import hlo
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from support.registers import WIDE

E = ElementType
O = Opcode  # noqa: E741

_IN_BLOCKS = [c for c in CASES if c.opcode is O.CONVOLUTION and c.result.element_type in (E.F32, E.C64)]
FIRST, LAST = "NCHW", "NHWC"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", _IN_BLOCKS, ids=lambda case: case.id)
def test_blocks_of_images(case: OpCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """With small blocks, few images are copied at a time."""
    monkeypatch.setattr(policy, "block_bytes", lambda: 600)
    monkeypatch.setattr(policy, "MANY_POSITIONS", 5)
    module, inputs = build_module(case), make_inputs(case)
    check_results(case, NumbaCompiler().compile(module).execute(inputs), hlo.evaluate(module, *inputs))


def _module(
    image: tuple[int, ...], kernel: tuple[int, ...], window: Window, form: str, element_type: ElementType = E.F32,
    groups: int = 1,
) -> HloModule:  # fmt: skip
    x, w = (make_parameter(k, Shape.array(element_type, dims)) for k, dims in enumerate((image, kernel)))
    attributes = ConvolutionAttributes(window, canonical_numbers(len(window), form == LAST), groups)
    root = make_instruction(O.CONVOLUTION, [x, w], attributes)
    return make_module("convolution", make_computation("main", root, [x, w]))


_SAME = (WindowDimension(3, 1, 1, 1), WindowDimension(3, 1, 1, 1))


def _kernels(module: HloModule) -> set[str]:
    """The texts, without the comments that say how big things are."""
    texts = NumbaCompiler().compile(module).kernels().values()
    return {"\n".join(line for line in text.splitlines() if not line.startswith("#")) for text in texts}


@pytest.mark.parametrize(("form", "groups"), [(FIRST, 1), (FIRST, 2), (LAST, 1), (LAST, 2)])
def test_windows_of_one_element_are_products_by_kernels(form: str, groups: int) -> None:
    """Where registers are wide."""
    image, kernel = (2, 68, 13, 9), (120, 68 // groups, 1, 1)
    if form == LAST:
        image, kernel = (2, 13, 9, 68), (1, 1, 68 // groups, 120)
    window = (WindowDimension(1), WindowDimension(1))
    module = _module(image, kernel, window, form, E.F32, groups)
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(dims).astype(np.float32) for dims in (image, kernel))
    with compiling_for(WIDE):
        executable = NumbaCompiler().compile(module)
    assert [text.splitlines()[1].split("(")[0] for text in executable.kernels().values()] == ["def shallow_product"]
    np.testing.assert_allclose(executable.execute([x, w])[0], evaluate(module, x, w)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("element_type", [E.F32, E.S32])
def test_a_new_size_compiles_nothing(element_type: ElementType) -> None:
    small, large = (
        _kernels(_module((batch, features, size, size + 3), (made, features, 3, 3), _SAME, FIRST, element_type))
        for batch, features, size, made in ((2, 17, 20, 18), (70, 40, 33, 64))
    )
    assert small == large
    assert len(small) == 2, "the copy of the input and the tiles"


def test_all_blocks_share_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "block_bytes", lambda: 1 << 12)
    first = NumbaCompiler().compile(_module((3, 20, 30, 30), (20, 20, 3, 3), _SAME, FIRST)).kernels()
    last = NumbaCompiler().compile(_module((3, 30, 30, 20), (3, 3, 20, 20), _SAME, LAST)).kernels()
    assert len(first) == 2, "the copy of the input and the tiles"
    assert len(last) == 3, "and the panels"
    assert all(text.count("\ndef ") == 1 for text in (*first.values(), *last.values()))


def test_a_window_of_one_needs_no_copy() -> None:
    one = (WindowDimension(1), WindowDimension(1))
    assert _kernels(_module((3, 20, 9, 9), (5, 20, 1, 1), one, FIRST)) == set()
    assert _kernels(_module((3, 9, 9, 20), (1, 1, 20, 5), one, LAST)) == set()


def _expanded(module: HloModule) -> str:
    return Expand(NUMBA_EXPANSIONS)(module).to_text()


_THREE, _SKIPS = (WindowDimension(3, 1, 1, 1),), (WindowDimension(1, 2), WindowDimension(1, 3))
_OTHER_FORMS = {
    "channels last, few outputs": (_module((2, 20, 9), (3, 9, 2), _THREE, LAST), "dim_labels=bf0_oi0->bf0"),
    "many small images": (_module((9, 5, 9), (3, 9, 2), _THREE, LAST), "size=3x1 pad=1_1x0_0"),
    "channels first, too": (_module((9, 9, 5), (2, 9, 3), _THREE, FIRST), "size=3x1 pad=1_1x0_0"),
    "a window of one that skips": (_module((2, 9, 9, 9), (5, 9, 1, 1), _SKIPS, FIRST), "window={size=1x1}"),
    "complex": (_module((2, 2, 9), (3, 2, 3), _THREE, FIRST, E.C64), "f32[2,3,9]{2,1,0} convolution("),
}


@pytest.mark.parametrize("name", _OTHER_FORMS)
def test_other_forms(name: str) -> None:
    module, wanted = _OTHER_FORMS[name]
    text = _expanded(module)
    assert wanted in text, text
    arrays = []
    for n, parameter in enumerate(module.entry.parameters):
        numbers = np.random.default_rng(n).standard_normal((2, *parameter.shape.dimensions))
        values = numbers[0] + 1j * numbers[1] if name == "complex" else numbers[0]
        arrays.append(values.astype(parameter.shape.element.dtype))
    (actual,) = NumbaCompiler().compile(module).execute(arrays)
    np.testing.assert_allclose(actual, np.asarray(evaluate(module, *arrays)[0]), rtol=1e-5, atol=1e-5)


def test_an_input_with_holes_becomes_phases() -> None:
    holes = (WindowDimension(3, 1, 2, 2, 2), WindowDimension(2, 1, 1, 1, 3))
    text = _expanded(_module((2, 16, 20, 20), (16, 16, 3, 2), holes, FIRST))
    assert "lhs_dilate" not in text
    assert text.count(" convolution(") == 2 * 2, "of three phases along the last dimension, two meet the kernel"


_PHASES = {  # the convolutions that there are afterwards
    "stride 2, holes 2": (WindowDimension(4, 2, 2, 2, 2), 1),
    "stride 2, holes 4": (WindowDimension(4, 2, 2, 2, 4), 2),
    "very many holes": (WindowDimension(20, 1, 5, 7, 16), 3),
    "one element for each hole": (WindowDimension(9, 1, 8, 8, 9), 1),
    "stride 3, holes 2": (WindowDimension(4, 3, 2, 2, 2), 2),
    "dilation 2, holes 2": (WindowDimension(3, 1, 2, 2, 2, 2), 1),
    "dilation 3, holes 2": (WindowDimension(3, 1, 2, 2, 2, 3), 2),
    "stride 9, holes 9": (WindowDimension(3, 9, 2, 2, 9), 1),
    "stride 6, dilation 2, holes 4": (WindowDimension(3, 6, 2, 2, 4, 2), 2),
    "from hole to hole": (WindowDimension(3, 6, 3, 2, 4, 2), 0),
}


@pytest.mark.parametrize("name", _PHASES)
def test_phases_with_strides_and_dilations(name: str) -> None:
    part, count = _PHASES[name]
    module = _module((2, 3, 20), (4, 3, part.size), (part,), FIRST)
    text = _expanded(module)
    assert "lhs_dilate" not in text
    assert text.count(" convolution(") == count
    x, w = (np.random.default_rng(0).standard_normal(p.shape.dimensions, np.float32) for p in module.entry.parameters)
    actual = NumbaCompiler().compile(module).execute([x, w])[0]
    np.testing.assert_allclose(actual, np.asarray(evaluate(module, x, w)[0]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", [FIRST, LAST])
@pytest.mark.parametrize("element_type", [E.F32, E.S32])
def test_a_canonical_convolution_stays_as_it_is(form: str, element_type: ElementType) -> None:
    dims, kernel = ((2, 16, 20, 20), (16, 16, 3, 3)) if form == FIRST else ((2, 20, 20, 16), (3, 3, 16, 16))
    module = _module(dims, kernel, _SAME, form, element_type)
    assert Expand(NUMBA_EXPANSIONS)(module) is module


def test_images_of_few_places_become_one_matrix() -> None:
    few, more = (_expanded(_module((8, 16, size, size), (16, 16, 3, 3), _SAME, FIRST)) for size in (3, 7))
    assert "dim_labels=b01f_01io->b01f" in few
    assert "dim_labels=bf01_oi01->bf01" in more


def test_products_are_those_of_float64() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(dims).astype(np.float32) for dims in ((4, 30, 23, 37), (50, 30, 3, 3)))
    actual = NumbaCompiler().compile(_module(x.shape, w.shape, _SAME, FIRST)).execute([x, w])[0]
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("bihwkl,oikl->bohw", windows, w.astype(np.float64), optimize=True)
    np.testing.assert_allclose(actual, expected, atol=1e-3)


_GRADIENT_FORMS = {FIRST: "fb01_io01->bf01", LAST: "f01b_i01o->01bf"}


@pytest.mark.parametrize("form", [FIRST, LAST])
@pytest.mark.parametrize("config", ["", ', backend_config={"sums":"f64"}'])
@pytest.mark.parametrize("result", ["f32", "f64"])
def test_sums_in_the_form_of_a_derivative_have_the_type_that_is_asked_for(form: str, config: str, result: str) -> None:
    """f32 operands with f64 results are multiplied in f64, though derivatives by the kernel use these types inside."""
    sizes = {FIRST: ("4,4,14,14", "4,8,12,12", "4,8,3,3"), LAST: ("4,14,14,4", "4,12,12,8", "3,3,4,8")}[form]
    module = parse(
        f"HloModule m\nENTRY e {{ x = f32[{sizes[0]}] parameter(0)\n w = f32[{sizes[1]}] parameter(1)\n"
        f" ROOT c = {result}[{sizes[2]}] convolution(x, w), window={{size=12x12}},"
        f" dim_labels={_GRADIENT_FORMS[form]}{config} }}"
    )
    rng = np.random.default_rng(3)
    x, w = (rng.normal(size=p.shape.dimensions).astype(np.float32) for p in module.entry.parameters)
    (found,) = NumbaCompiler().compile(module).execute([x, w])
    (exact,) = evaluate(module, x, w)
    exact_in = 1e-6 if result == "f32" or config else 1e-14
    np.testing.assert_allclose(found, exact, rtol=exact_in, atol=exact_in * 50)


@pytest.mark.parametrize("groups", [1, 3])
def test_zero_times_infinity_is_nan(groups: int) -> None:
    """For one input feature and one output feature, too: NumPy's `tensordot` returns zero for these."""
    module = parse(
        f"HloModule m\nENTRY e {{ x = f32[2,{groups},4,6] parameter(0)  k = f32[{groups},1,1,1] parameter(1)  ROOT "
        f"y = f32[2,{groups},2,2] convolution(x, k), window={{size=1x1 stride=2x3}}, dim_labels=bf01_oi01->bf01, "
        f"feature_group_count={groups} }}"
    )
    x = np.full((2, groups, 4, 6), np.inf, np.float32)
    kernel = np.zeros((groups, 1, 1, 1), np.float32)
    assert np.isnan(evaluate(module, x, kernel)).all()
    assert np.isnan(hloom.run_hlo(module.to_text(), x, kernel)).all()


def test_padding_alone_adds_nothing() -> None:
    """An input without elements, and infinite weights: zeros, as XLA makes them."""
    text = """HloModule m
ENTRY e {
  x = f32[2,3,0] parameter(0)
  w = f32[6,3,2] parameter(1)
  ROOT y = f32[2,6,3] convolution(x, w), window={size=2 pad=3_1}, dim_labels=bf0_oi0->bf0
}
"""
    module = parse(text)
    arguments = [np.zeros((2, 3, 0), np.float32), np.full((6, 3, 2), np.inf, np.float32)]
    for result in (*evaluate(module, *arguments), *NumbaCompiler().compile(module).execute(arguments)):
        np.testing.assert_array_equal(np.asarray(result), np.zeros((2, 6, 3), np.float32))


def test_holes_are_nothing() -> None:
    """An infinite element of the kernel meets elements, padding (NaN) and holes, which are left out."""
    text = """HloModule m
ENTRY e {
  x = f32[1,1,4] parameter(0)
  w = f32[1,1,3] parameter(1)
  ROOT y = f32[1,1,9] convolution(x, w), window={size=3 pad=2_2 lhs_dilate=2}, dim_labels=bf0_oi0->bf0
}
"""
    module = parse(text)
    arguments = [np.ones((1, 1, 4), np.float32), np.array([[[np.inf, 1, 1]]], np.float32)]
    expected = [np.nan, 1, np.inf, 1, np.inf, 1, np.inf, 1, np.inf]
    for result in (*evaluate(module, *arguments), *NumbaCompiler().compile(module).execute(arguments)):
        np.testing.assert_array_equal(np.asarray(result)[0, 0], expected)
