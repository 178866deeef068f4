"""Guarantees of the layout passes: bitcasts are exact or refused, a change of layout alone costs nothing, and programs
without layout requests do not change."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hloom.hlo.backend import get_compiler
from hloom.hlo.builder import make_computation, make_instruction, make_module, make_parameter
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import UnsupportedError
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.layout import Layout
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops import SPECS, Trait
from hloom.hlo.ops.dimensions import correspondence, last_dimensions
from hloom.hlo.passes.layout.layout_assignment import LayoutAssignment
from hloom.hlo.passes.layout.layout_erasure import LayoutErasure
from hloom.hlo.passes.layout.layout_normalization import LayoutNormalization
from hloom.hlo.passes.layout.order_rules import (
    ASCENDING,
    CORRESPONDING,
    SAME,
    STRUCTURE,
    TRAILING,
    OrderRule,
    rule_of,
)
from hloom.hlo.physical_array import from_physical, to_physical
from hloom.hlo.shape import Shape
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify
from hloom.numba_backend.pipeline import pipeline

from support.comparing import assert_same_arrays
from support.layouts import numbered, random_shape
from support.random_modules import random_arguments, random_module


def bitcast(source: Shape, target: Shape) -> HloModule:
    x = make_parameter(0, source, "x")
    return make_module("m", make_computation("e", make_instruction(Opcode.BITCAST, (x,), shape=target), (x,)))


def relatives(shape: Shape, rng: random.Random) -> list[Shape]:
    """Arrays of other dimensions or layouts with buffers of the same size."""
    found = [shape]
    extents = shape.physical_form.extents
    found.append(Shape.array(shape.element, extents))
    at = rng.randrange(shape.rank + 1)
    more = [d + (d >= at) for d in shape.array_layout.minor_to_major]
    layout = shape.array_layout
    padded = layout.padded_dimensions
    wider = Layout(
        (*more, at), layout.tiles, layout.element_size_in_bits, layout.memory_space,
        layout.tail_padding_alignment_in_elements, (*padded[:at], 1, *padded[at:]) if padded else (),
    )  # fmt: skip
    found.append(Shape.array(shape.element, (*shape.dimensions[:at], 1, *shape.dimensions[at:]), wider))
    order = rng.sample(range(shape.rank), shape.rank)
    place = [order.index(d) for d in range(shape.rank)]
    turned = Layout(
        tuple(place[d] for d in layout.minor_to_major), layout.tiles, layout.element_size_in_bits, layout.memory_space,
        layout.tail_padding_alignment_in_elements, tuple(padded[d] for d in order) if padded else (),
    )  # fmt: skip
    found.append(Shape.array(shape.element, [shape.dimensions[d] for d in order], turned))
    return [s for s in found if s.byte_size == shape.byte_size]


def test_bitcasts_between_random_layouts_are_exact_or_refused() -> None:
    """Against the buffers themselves: where an element of the result is padding of the operand, an error says so."""
    rng = random.Random(11)
    exact = refused = 0
    for _ in range(400):
        source = random_shape(rng)
        for target in relatives(source, rng):
            module = bitcast(source, target)
            values = numbered(source)  # counts from 1: what becomes 0 was padding
            expected = from_physical(to_physical(values, source), target)
            assert_same_arrays(evaluate(module, values), [expected])
            try:
                erased = LayoutErasure()(module)
            except UnsupportedError as error:
                assert "padding of the operand" in str(error)
                assert (expected == 0).any(), (source.to_text(), target.to_text())
                refused += 1
                continue
            verify(erased)
            for i in erased.instructions():
                rows = all(s.array_layout.is_row_major for s in (i.shape, *[o.shape for o in i.operands]))
                assert i.opcode is not Opcode.BITCAST or rows
            np.testing.assert_array_equal(evaluate(erased, values)[0], expected)
            assert (expected != 0).all()
            exact += 1
    assert exact > 800 and refused > 50, (exact, refused)


def test_bitcast_to_elements_of_another_width() -> None:
    dense = parse("HloModule m\nENTRY e { x = f32[5,3]{0,1} parameter(0)\n ROOT r = u8[12,5]{0,1} bitcast(x) }")
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    expected = np.ascontiguousarray(x.T).view(np.uint8).reshape(5, 12).T
    np.testing.assert_array_equal(evaluate(LayoutErasure()(dense), x)[0], expected)
    np.testing.assert_array_equal(get_compiler("numba").compile(dense).execute([x])[0], expected)
    text = "HloModule m\nENTRY e {{ x = f32[2,2]{0} parameter(0)\n ROOT r = u8[2,8]{0} bitcast(x) }}"
    with pytest.raises(UnsupportedError, match="elements of different widths"):
        LayoutErasure()(parse(text.format("{1,0:T(2,2)}")))


CHAIN = """HloModule m, entry_computation_layout={{(f32[64,48]{given}, f32[64,48]{given})->f32[64,48]{given}}}
ENTRY e {{
  x = f32[64,48] parameter(0)
  y = f32[64,48] parameter(1)
  a = f32[64,48] multiply(x, y)
  ROOT r = f32[64,48] tanh(a)
}}"""

TURNED = """HloModule m, entry_computation_layout={(f32[64,48]{1,0}, f32[48,64]{0,1})->f32[48,64]{0,1}}
ENTRY e {
  x = f32[64,48] parameter(0)
  y = f32[48,64] parameter(1)
  xt = f32[48,64] transpose(x), dimensions={1,0}
  a = f32[48,64] multiply(xt, y)
  ROOT r = f32[48,64] tanh(a)
}"""


def test_transposes_that_only_change_a_layout_cost_nothing() -> None:
    """The kernels are the same as for the program on row-major arrays, text for text."""
    rows, columns, turned = (
        get_compiler("numba").compile(parse(text))
        for text in (CHAIN.format(given="{1,0}"), CHAIN.format(given="{0,1}"), TURNED)
    )
    assert len(rows.kernels()) == 1
    assert rows.kernels() == columns.kernels() == turned.kernels()
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((64, 48)).astype(np.float32) for _ in range(2))
    (expected,) = rows.execute([x, y])
    np.testing.assert_array_equal(columns.execute([x, y])[0], expected)
    np.testing.assert_array_equal(turned.execute([x, y.T])[0], expected.T)


@pytest.mark.parametrize("given", ["{0,1}", "{0,1:T(8,128)}", "{1,0:T(2,2)}"])
def test_a_transpose_alone_has_no_kernel(given: str) -> None:
    """A parameter that is a result in turned layout is handed out as bytes."""
    turned = {"{0,1}": "{1,0}", "{0,1:T(8,128)}": "{1,0:T(8,128)}", "{1,0:T(2,2)}": "{0,1:T(2,2)}"}[given]
    text = f"""HloModule m, entry_computation_layout={{(f32[20,30]{given})->f32[30,20]{turned}}}
    ENTRY e {{
      x = f32[20,30] parameter(0)
      ROOT r = f32[30,20] transpose(x), dimensions={{1,0}}
    }}"""
    executable = get_compiler("numba").compile(parse(text))
    assert not executable.kernels()
    x = np.arange(600, dtype=np.float32).reshape(20, 30)
    np.testing.assert_array_equal(executable.execute([x])[0], x.T)


@pytest.mark.usefixtures("narrow_registers")
@pytest.mark.parametrize("left", ["{1,0}", "{0,1}"])
@pytest.mark.parametrize("right", ["{1,0}", "{0,1}"])
@pytest.mark.parametrize("result", ["{1,0}", "{0,1}"])
def test_matrix_products_take_and_make_rows_and_columns(left: str, right: str, result: str) -> None:
    """One call of BLAS, and no kernel."""
    text = f"""HloModule m, entry_computation_layout={{(f32[20,30]{left}, f32[30,40]{right})->f32[20,40]{result}}}
    ENTRY e {{
      x = f32[20,30] parameter(0)
      y = f32[30,40] parameter(1)
      ROOT r = f32[20,40] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
    }}"""
    executable = get_compiler("numba").compile(parse(text))
    assert not executable.kernels()
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 30)).astype(np.float32), rng.standard_normal((30, 40)).astype(np.float32)
    np.testing.assert_allclose(executable.execute([x, y])[0], x @ y, rtol=1e-4, atol=1e-5)


def test_a_copy_between_orders_is_one_kernel() -> None:
    text = """HloModule m, entry_computation_layout={(f32[20,30]{0,1})->f32[20,30]{1,0}}
    ENTRY e {
      x = f32[20,30] parameter(0)
      ROOT r = f32[20,30] negate(x)
    }"""
    assert len(get_compiler("numba").compile(parse(text)).kernels()) == 1


def test_who_asks_for_nothing_gets_the_same_module() -> None:
    for seed in range(40):
        module = random_module(random.Random(seed))
        for each in (LayoutErasure(), LayoutAssignment(), LayoutNormalization()):
            assert each(module) is module
        assert LayoutAssignment(preferences=lambda i: tuple(reversed(range(i.shape.rank))))(module) is module


def test_time_of_a_long_program() -> None:
    """Assignment and normalization of 4000 operations take no longer than the simplifications do."""
    x = make_parameter(0, Shape.array(ElementType.F32, (32, 16)), "x")
    y = make_parameter(1, Shape.array(ElementType.F32, (32, 16), Layout((0, 1))), "y")
    value = x
    for number in range(4000):
        other = y if number % 7 == 0 else x
        value = make_instruction((Opcode.ADD, Opcode.MULTIPLY, Opcode.MAXIMUM)[number % 3], (value, other))
    module = LayoutErasure()(make_module("long", make_computation("main", value, (x, y))))
    started = time.process_time()
    normal = LayoutNormalization()(LayoutAssignment()(module))
    seconds = time.process_time() - started
    assert sum(i.opcode is Opcode.TRANSPOSE for i in normal.instructions()) == 1
    assert seconds < 5, seconds


_O = Opcode
DERIVED: dict[OrderRule, set[Opcode]] = {
    CORRESPONDING: {_O.BROADCAST, _O.TRANSPOSE, _O.REDUCE},
    TRAILING: {_O.CHOLESKY, _O.TRIANGULAR_SOLVE, _O.FFT, _O.TOPK},
    ASCENDING: {_O.REDUCE_WINDOW, _O.SELECT_AND_SCATTER},
    SAME: {
        *(o for o, spec in SPECS.items() if Trait.ELEMENTWISE in spec.traits),
        *(_O.SLICE, _O.PAD, _O.CONCATENATE, _O.REVERSE, _O.DYNAMIC_SLICE, _O.DYNAMIC_UPDATE_SLICE, _O.SORT),
        *(_O.CONSTANT, _O.IOTA, _O.PARAMETER),
    },
}


@pytest.mark.parametrize("rule", DERIVED, ids=["corresponding", "trailing", "ascending", "same"])
def test_which_ops_have_which_rule_by_their_declarations(rule: OrderRule) -> None:
    assert {o for o in Opcode if o not in STRUCTURE and rule_of(o) is rule} == DERIVED[rule]


@pytest.mark.parametrize(
    ("instruction", "operand", "expected"),
    [
        ("b = f32[2,5,3] broadcast(x), dimensions={0,2}", 0, {0: 0, 1: 2}),
        ("t = f32[3,2] transpose(x), dimensions={1,0}", 0, {1: 0, 0: 1}),
        ("r = f32[3] reduce(x, s), dimensions={0}, to_apply=add", 0, {1: 0}),
        ("r = f32[3] reduce(x, s), dimensions={0}, to_apply=add", 1, {}),
        ("a = f32[2,3] add(x, x)", 1, {0: 0, 1: 1}),
        ("d = f32[1,3] dynamic-slice(x, i, i), dynamic_slice_sizes={1,3}", 0, {0: 0, 1: 1}),
        ("d = f32[1,3] dynamic-slice(x, i, i), dynamic_slice_sizes={1,3}", 1, {}),
        ("d = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}", 0, {}),
        ("v = f32[6] reshape(x)", 0, {}),
    ],
)
def test_which_dimensions_correspond(instruction: str, operand: int, expected: dict[int, int]) -> None:
    module = parse(f"""
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main {{
  x = f32[2,3] parameter(0)
  s = f32[] parameter(1)
  i = s32[] parameter(2)
  ROOT {instruction}
}}
""")
    assert correspondence(module.entry.root, operand) == expected


def test_along_how_many_last_dimensions_ops_work() -> None:
    fft = parse("ENTRY m { x = c64[2,4,4] parameter(0)\n ROOT f = c64[2,4,4] fft(x), fft_type=FFT, fft_length={4,4} }")
    assert last_dimensions(fft.entry.root) == 2
    topk = parse("ENTRY m { x = f32[2,4] parameter(0)\n ROOT f = (f32[2,1], s32[2,1]) topk(x), k=1, largest=true }")
    assert last_dimensions(topk.entry.root) == 1 and last_dimensions(topk.entry.parameters[0]) == 0


def test_layouts_of_the_entry_survive_all_passes() -> None:
    """Tiles, packing and memory spaces too: they are the caller's, independent of the inner layouts."""
    text = """HloModule m, entry_computation_layout={(f32[20,30]{0,1:T(8,128)S(1)}, (s4[6]{0:E(4)}, f32[4]))->(f32[30,20]{0,1:T(2,128)}, s4[6]{0:E(4)})}
    ENTRY e {
      x = f32[20,30] parameter(0)
      p = (s4[6], f32[4]) parameter(1)
      y = s4[6] get-tuple-element(p), index=0
      t = f32[30,20] transpose(x), dimensions={1,0}
      n = f32[30,20] negate(t)
      m = s4[6] add(y, y)
      ROOT r = (f32[30,20], s4[6]) tuple(n, m)
    }"""  # noqa: E501
    module = parse(text)
    optimized, _ = pipeline().run(module)
    assert [p.shape.to_text() for p in optimized.entry.parameters] == [
        "f32[20,30]{0,1:T(8,128)S(1)}", "(s4[6]{0:E(4)}, f32[4]{0})",
    ]  # fmt: skip
    assert optimized.entry.root.shape.to_text() == "(f32[30,20]{0,1:T(2,128)}, s4[6]{0:E(4)})"
    arguments = random_arguments(module, 0)
    assert_same_arrays(evaluate(module, *arguments), evaluate(optimized, *arguments))
    assert_same_arrays(evaluate(module, *arguments), get_compiler("numba").compile(module).execute(arguments))
