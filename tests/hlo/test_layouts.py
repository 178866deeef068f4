"""Layouts as data: equality, orders, names of dimensions; and the rules, each violated from Python and in text."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo import ElementType, HloParseError, Layout, PaddingValue, Shape, ShapeError, Tile
from hloom.hlo.layout import MAX_RANK, MEMORY_SPACES, row_major
from hloom.hlo.layout_rules import MAX_TILES, layout_violation
from hypothesis import given, settings
from hypothesis import strategies as st

from hloom import hlo
from support.layouts import shapes

E = ElementType
T = Tile


# Equality


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("ignore_tiles", {"tiles": (T((2, 128)),)}),
    ("ignore_tiles", {"tiles": ()}),
    ("ignore_tail_padding_alignment_in_elements", {"tail_padding_alignment_in_elements": 4}),
    ("ignore_element_size", {"element_size_in_bits": 0}),
    ("ignore_memory_space", {"memory_space": 5}),
    ("ignore_padding", {"padded_dimensions": (8, 128)}),
    ("ignore_padding", {"padding_value": PaddingValue.ONE_PAD}),
]
OPTIONS = {option for option, _ in CHANGES} | {"minor_to_major_only"}


@pytest.mark.parametrize(("option", "change"), CHANGES)
def test_equality_but_for_one_property(option: str, change: dict[str, Any]) -> None:
    """As XLA's Layout::Equal: what differs matters, unless just that is ignored."""
    a = Layout((1, 0), (T((8, 128)),), 32, 1, 2, (4, 4), PaddingValue.ZERO_PAD)
    b = replace(a, **change)
    assert a != b and not a.equal(b)
    for ignored in OPTIONS:
        assert a.equal(b, **{ignored: True}) == (ignored in (option, "minor_to_major_only"))
    assert a.equal(replace(a))


def test_the_order_is_never_ignored() -> None:
    assert not Layout((1, 0)).equal(Layout((0, 1)), **dict.fromkeys(OPTIONS, True))


def test_equality_of_layouts_in_shapes() -> None:
    """As LayoutUtil::LayoutsInShapesEqual, through tuples."""
    a = Shape.parse("(f32[2,3]{1,0:T(8,128)S(1)}, (s8[4]{0}, token[]))")
    assert a.layouts_equal(Shape.parse("(f16[5,6]{1,0:T(8,128)S(1)}, (s4[7]{0}, token[]))"))
    b = Shape.parse("(f32[2,3]{1,0:T(8,128)}, (s8[4]{0}, token[]))")
    assert not a.layouts_equal(b) and a.layouts_equal(b, ignore_memory_space=True)
    assert not a.layouts_equal(
        Shape.parse("(f32[2,3]{0,1:T(8,128)S(1)}, (s8[4]{0}, token[]))"), minor_to_major_only=True
    )
    assert not a.layouts_equal(Shape.parse("(f32[2,3]{1,0:T(8,128)S(1)}, (s8[4]{0}))"))
    assert not a.layouts_equal(a.elements[0])
    assert not Shape.parse("f32[2]").layouts_equal(Shape.parse("f32[2,2]"))


TYPES = ("f32[2,3]", "f32[2,3]{0,1}", "f32[2,3]{1,0:S(1)}", "f32[3,2]", "s32[2,3]", "(f32[2,3])", "()", "token[]")


@pytest.mark.parametrize("text", TYPES)
def test_shapes_are_equal_with_all_that_their_text_says(text: str) -> None:
    shape = Shape.parse(text)
    assert [other for other in TYPES if Shape.parse(other) == shape] == [text]
    assert hash(Shape.parse(text)) == hash(shape)
    assert shape != text and shape != ()


def test_sizes_are_remembered_as_integers_of_python() -> None:
    """A shape that was made before is found by its sizes: 131 and NumPy's 131 are equal."""
    sizes = np.array([131, 137])
    for given_sizes in (tuple(sizes), (131, 137)):
        found = Shape.array(E.F32, given_sizes)
        assert found.dimensions == (131, 137)
    assert {type(size) for size in found.dimensions} == {int}
    assert Shape.array(E.F32, [131, 137]) is found
    assert Shape.array(E.F32, [131, 137], Layout((0, 1))) != found


# Orders


def test_the_default_layout_is_major_to_minor() -> None:
    """ "The default layout for newly created Shapes is "dimension order is major-to-minor"."""
    assert Shape.array(E.F32, (2, 3, 4)).layout == Layout((2, 1, 0)) == row_major(3)
    assert Shape.array(E.F32).layout == Layout(())
    assert Shape.parse("f32[2,3]{0,1:T(2,2)S(1)}").with_default_layout() == Shape.array(E.F32, (2, 3))


@pytest.mark.parametrize(
    ("order", "dim0_major", "dim0_minor"),
    [
        ((), True, True),
        ((0,), True, True),
        ((1, 0), True, False),
        ((0, 1), False, True),
        ((2, 1, 0), True, False),
        ((0, 1, 2), False, True),
        ((1, 0, 2), False, False),
    ],
)
def test_orders(order: tuple[int, ...], dim0_major: bool, dim0_minor: bool) -> None:
    for layout in (Layout(order), Layout(order, (T((2,)),), memory_space=1)):
        assert layout.is_monotonic_with_dim0_major is dim0_major
        assert layout.is_monotonic_with_dim0_minor is dim0_minor
        assert layout.major_to_minor == order[::-1]
    assert Layout.from_major_to_minor(order[::-1]) == Layout(order)
    assert Layout(order).is_row_major is dim0_major
    assert not Layout(order, (T((2,)),)).is_row_major and not Layout(order, memory_space=1).is_row_major


@given(st.integers(0, 6).flatmap(lambda rank: st.permutations(range(rank))))
def test_logical_to_physical_is_the_inverse(order: list[int]) -> None:
    layout = Layout(tuple(order))
    assert [layout.major_to_minor[p] for p in layout.logical_to_physical] == list(range(len(order)))


# Ranks and names of dimensions


def test_rank_and_true_rank() -> None:
    """ "The true rank of an array is the number of dimensions which have a size greater than 1."""
    for dimensions, rank, true_rank in [((), 0, 0), ((1,), 1, 0), ((5, 1, 2), 3, 2), ((0, 3), 2, 1)]:
        shape = Shape.array(E.F32, dimensions)
        assert (shape.rank, shape.true_rank) == (rank, true_rank)


def test_dimension_minus_1_is_the_last() -> None:
    """ "For the 3-dimensional array [A x B x C], dimension -1 has size C, dimension -2 has size B and so on."""
    shape = Shape.array(E.F32, (5, 6, 7))
    assert [shape.dimension(d) for d in (0, 1, 2)] == [5, 6, 7]
    assert [shape.dimension(d) for d in (-1, -2, -3)] == [7, 6, 5]
    assert [shape.dimension_number(d) for d in (0, 1, 2, -1, -2, -3)] == [0, 1, 2, 2, 1, 0]


@pytest.mark.parametrize("names", [("y", "x"), ("z", "y", "x"), ("p", "z", "y", "x")])
def test_letters_of_dimensions(names: tuple[str, ...]) -> None:
    shape = Shape.array(E.F32, range(3, 3 + len(names)))
    assert shape.dimension_names == names
    assert [shape.dimension_number(name) for name in names] == list(range(len(names)))
    assert [shape.dimension(name) for name in names] == list(shape.dimensions)


@pytest.mark.parametrize(
    ("shape", "dimension", "message"),
    [
        (Shape.array(E.F32, (2, 3)), 2, "f32[2,3] has dimensions -2 to 1: there is no dimension 2"),
        (Shape.array(E.F32, (2, 3)), -3, "there is no dimension -3"),
        (Shape.array(E.F32), 0, "f32[] has no dimensions: there is no dimension 0"),
        (Shape.array(E.F32, (2, 3)), "z", "f32[2,3] has dimensions y, x, not 'z'"),
        (Shape.array(E.F32, (2,)), "x", "f32[2] has no letters for its dimensions: use numbers"),
        (Shape.tuple([]), 0, "() has no dimensions"),
    ],
)
def test_dimensions_that_are_not(shape: Shape, dimension: int | str, message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        shape.dimension(dimension)
    assert caught.value.label == "shape_c3" and message in str(caught.value)
    assert Shape.array(E.F32, (1,) * 5).dimension_names == ()


# The rules: (label, dimensions and layout from Python, the same in text with the place of the error marked)

VIOLATIONS: list[tuple[str, str, Callable[[], Shape], str]] = [
    ("layout_c1", "too few", lambda: Shape.array(E.F32, (2, 3), Layout((0,))), "f32[2,3]^{0}"),
    ("layout_c1", "too many", lambda: Shape.array(E.F32, (2,), Layout((1, 0))), "f32[2]^{1,0}"),
    ("layout_c1", "none", lambda: Shape.array(E.F32, (2, 3), Layout(())), "f32[2,3]^{}"),
    ("layout_c1", "scalar", lambda: Shape.array(E.F32, (), Layout((0,))), "f32[]^{0}"),
    ("layout_c2", "repeated", lambda: Shape.array(E.F32, (2, 3), Layout((1, 1))), "f32[2,3]{1,^1}"),
    ("layout_c2", "missing", lambda: Shape.array(E.F32, (2, 3, 4), Layout((0, 3, 1))), "f32[2,3,4]{0,^3,1}"),
    ("layout_c2", "negative", lambda: Shape.array(E.F32, (2, 3), Layout((0, -1))), "f32[2,3]{0, ^-1}"),
    ("layout_c3", "size 0", lambda: Shape.array(E.F32, (2, 3), Layout((1, 0), (T((0, 3)),))), "f32[2,3]{1,0:T(^0,3)}"),
    (
        "layout_c3",
        "size -2",
        lambda: Shape.array(E.F32, (2, 3), Layout((1, 0), (T((8,)), T((3, -2))))),
        "f32[2,3]{1,0:T(8)(3,^-2)}",
    ),
    ("layout_c3", "empty", lambda: Shape.array(E.F32, (2,), Layout((0,), (T((8,)), T(())))), "f32[2]{0:T(8)^()}"),
    (
        "layout_c4",
        "asterisk",
        lambda: Shape.array(E.F32, (2, 3), Layout((1, 0), (T((2, None)),))),
        "f32[2,3]{1,0:T(2,^*)}",
    ),
    ("layout_c4", "only", lambda: Shape.array(E.F32, (2,), Layout((0,), (T((8,)), T((None,))))), "f32[2]{0:T(8)(^*)}"),
    (
        "layout_c5",
        "tiles",
        lambda: Shape.array(E.F32, (2,), Layout((0,), (T((2,)),) * (MAX_TILES + 1))),
        "f32[2]{0:T" + "(2)" * MAX_TILES + "^(2)}",
    ),
    (
        "layout_c5",
        "dimensions of a tile",
        lambda: Shape.array(E.F32, (2,), Layout((0,), (T((None,) * MAX_RANK + (1,)),))),
        "f32[2]{0:T^(" + "*," * MAX_RANK + "1)}",
    ),
    (
        "layout_c5",
        "dimensions of the buffer",
        lambda: Shape.array(E.F32, (2,), Layout((0,), (T((1,) * 16), T((1,) * 33)))),
        "f32[2]{0:T(" + ",".join("1" * 16) + ")^(" + ",".join("1" * 33) + ")}",
    ),
    (
        "layout_c6",
        "0",
        lambda: Shape.array(E.F32, (2,), Layout((0,), tail_padding_alignment_in_elements=0)),
        "f32[2]{0:T(8)L( ^0)}",
    ),
    (
        "layout_c6",
        "-1",
        lambda: Shape.array(E.F32, (2,), Layout((0,), tail_padding_alignment_in_elements=-1)),
        "f32[2]{0:L(^-1)}",
    ),
    ("layout_c7", "narrow", lambda: Shape.array(E.S8, (2,), Layout((0,), (), 4)), "s8[2]{0:E(^4)}"),
    ("layout_c7", "wide", lambda: Shape.array(E.F32, (2,), Layout((0,), (), 64)), "f32[2]{0:E(^64)}"),
    ("layout_c7", "odd", lambda: Shape.array(E.S2, (2,), Layout((0,), (), 3)), "s2[2]{0:E(^3)}"),
    ("layout_c7", "negative", lambda: Shape.array(E.S2, (2,), Layout((0,), (), -4)), "s2[2]{0:E(^-4)}"),
    ("layout_c8", "99", lambda: Shape.array(E.F32, (2,), Layout((0,), memory_space=99)), "f32[2]{0:S(^99)}"),
    ("layout_c8", "-1", lambda: Shape.array(E.F32, (2,), Layout((0,), memory_space=-1)), "f32[2]{0:S(^-1)}"),
    (
        "layout_c9",
        "count",
        lambda: Shape.array(E.F32, (2, 3), Layout((1, 0), padded_dimensions=(4,))),
        "f32[2,3]{1,0:PD^(4)}".replace("^(", "(^"),
    ),
    (
        "layout_c10",
        "smaller",
        lambda: Shape.array(E.F32, (2, 3), Layout((1, 0), padded_dimensions=(4, 2))),
        "f32[2,3]{1,0:PD(4,^2)}",
    ),
    (
        "layout_c11",
        "complex",
        lambda: Shape.array(E.C64, (2,), Layout((0,), padding_value=PaddingValue.LOWEST_PAD)),
        "c64[2]{0:PV(^lowest)}",
    ),
    (
        "layout_c11",
        "no zero",
        lambda: Shape.array(E.F8E8M0FNU, (2,), Layout((0,), padding_value=PaddingValue.ZERO_PAD)),
        "f8e8m0fnu[2]{0:PV(^zero)}",
    ),
    (
        "layout_c12",
        "tile",
        lambda: Shape.array(E.F32, (2,), Layout((0,), (T((8,)), T((2**62,))))),
        f"f32[2]{{0:T(8)^({2**62})}}",
    ),
    (
        "layout_c12",
        "padded",
        lambda: Shape.array(E.F32, (2, 2), Layout((1, 0), padded_dimensions=(2**31, 2**31))),
        f"f32[2,2]{{1,0:PD(^{2**31},{2**31})}}",
    ),
    (
        "layout_c12",
        "tail",
        lambda: Shape.array(E.F32, (2,), Layout((0,), tail_padding_alignment_in_elements=2**61)),
        f"f32[2]{{0:L(^{2**61})}}",
    ),
    (
        "layout_c12",
        "strides",
        lambda: Shape.array(E.F32, (0, 2), Layout((1, 0), (T((2**32, 2**31)),))),
        f"f32[0,2]{{1,0:T^({2**32},{2**31})}}",
    ),
    ("layout_c13", "tuple", lambda: Shape.parse("(f32[2])").with_layout(Layout((0,))), "(f32[2], s8[])^{0}"),
    ("layout_c13", "empty tuple", lambda: Shape.tuple([]).with_layout(Layout(())), "()^{:T(2)}"),
    ("layout_c13", "token", lambda: Shape.token().with_layout(Layout(())), "token[]^{0}"),
]


@pytest.mark.parametrize(("label", "what", "make", "text"), VIOLATIONS)
def test_rules(label: str, what: str, make: Callable[[], Shape], text: str) -> None:
    with pytest.raises(ShapeError) as raised:
        make()
    assert raised.value.label == label and f"[{label}]" in str(raised.value)
    before, after = text.split("^")
    for prefix in ("", "(s8[], /* a comment\n */ "):
        with pytest.raises(HloParseError) as caught:
            Shape.parse(prefix + before + after)
        error = caught.value
        assert error.label == label and error.message.endswith(f"[{label}]")
        lines = (prefix + before).split("\n")
        assert (error.line, error.column) == (len(lines), len(lines[-1]) + 1)


def test_numbers_of_more_than_64_bits() -> None:
    """From Python; in text no number is larger."""
    for layout, label in [
        (Layout((0,), (T((2**63,)),)), "layout_c3"),
        (Layout((0,), padded_dimensions=(2**63,)), "layout_c12"),
        (Layout((0,), tail_padding_alignment_in_elements=2**63), "layout_c6"),
        (Layout((0,), memory_space=2**63), "layout_c8"),
        (Layout((0,), (), 2**63), "layout_c7"),
    ]:
        with pytest.raises(ShapeError) as caught:
            Shape.array(E.S8, (0,), layout)
        assert caught.value.label == label


def test_rules_in_modules() -> None:
    """The place in the whole text; in the entry's layout as in an instruction."""
    body = "ENTRY e {\n  ROOT x = f32[2,3]{1,0:T(8,128)S(1)} parameter(0)\n}\n"
    for text, place, label in [
        (f"HloModule m\n{body.replace('S(1)', 'S(77)')}", "77", "layout_c8"),
        (f"HloModule m, entry_computation_layout={{(f32[2,3]{{1,0:T(0)}})->f32[2,3]}}\n{body}", "0)}", "layout_c3"),
    ]:
        with pytest.raises(HloParseError) as caught:
            hlo.parse(text)
        lines = text[: text.index(place)].split("\n")
        assert (caught.value.line, caught.value.column) == (len(lines), len(lines[-1]) + 1)
        assert caught.value.label == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("f32[2]{" + "0," * 200_000 + "0}", "layout_c1"),
        ("f32[2]{0:T" + "(2)" * 100_000 + "}", "layout_c5"),
        ("f32[2]{0:T(" + "*," * 100_000 + "2)}", "layout_c5"),
        ("f32[2]{0:PD(" + "9," * 100_000 + "9)}", "layout_c9"),
        ("f32[2]{0:T(" + f"{2**63 - 1}," * 9 + "2)" + f"({2**63 - 1})" * 7 + "}", "layout_c12"),
    ],
)
def test_long_layouts_are_refused_at_once(text: str, label: str) -> None:
    began = time.process_time()
    with pytest.raises(HloParseError) as caught:
        Shape.parse(text)
    assert caught.value.label == label and len(str(caught.value)) < 3000
    assert time.process_time() - began < 5


def test_every_rule_is_listed_and_tested() -> None:
    from hloom.hlo import layout_rules

    listed = {f"layout_c{n}" for n in range(1, 14)}
    assert all(f"* {label}: " in (layout_rules.__doc__ or "") for label in listed)
    assert {label for label, *_ in VIOLATIONS} == listed


def test_known_memory_spaces_are_read() -> None:
    for space in MEMORY_SPACES:
        assert Shape.parse(f"f32[2]{{0:S({space})}}").array_layout.memory_space == space


@pytest.mark.parametrize("element_type", ElementType)
def test_element_sizes(element_type: ElementType) -> None:
    """The allowed sizes of a stored element: from its bits to its bytes."""
    fits = {b for b in range(1, 200) if layout_violation(element_type, (3,), Layout((0,), (), b)) is None}
    low, high = element_type.bit_width, 8 * element_type.byte_width
    assert fits == {b for b in (1, 2, 4, 8, 16, 32, 64, 128) if low <= b <= high} and high in fits


def test_another_element_type_drops_what_it_cannot_have() -> None:
    packed = Shape.parse("s4[2,3]{0,1:PV(lowest)T(2)E(4)S(1)}")
    assert packed.with_element_type(E.U4) == Shape.parse("u4[2,3]{0,1:PV(lowest)T(2)E(4)S(1)}")
    assert packed.with_element_type(E.F32) == Shape.parse("f32[2,3]{0,1:PV(lowest)T(2)S(1)}")
    assert packed.with_element_type(E.C64) == Shape.parse("c64[2,3]{0,1:T(2)S(1)}")


# Text


@pytest.mark.parametrize(
    "text",
    [
        "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)S(1)}",
        "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
        "f32[3,5]{1,0:T(2,2)}",
        "f32[]{:T(128)}",
        "f32[]{:S(1)}",
        "pred[8,128]{1,0:T(32,128)(32,1)E(1)}",
        "s4[16]{0:T(1024)L(128)E(4)S(5)}",
        "f32[4]{0:L(8)}",
        "f32[2,3]{0,1}",
    ],
)
def test_text_is_xlas(text: str) -> None:
    assert Shape.parse(text).to_text() == text


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("{0,1:PD(3,5)}", Layout((0, 1), padded_dimensions=(3, 5))),
        ("{0,1:PD(3,5)PV(zero)}", Layout((0, 1), padded_dimensions=(3, 5), padding_value=PaddingValue.ZERO_PAD)),
        ("{1,0:PV(one)T(2,2)}", Layout((1, 0), (T((2, 2)),), padding_value=PaddingValue.ONE_PAD)),
        ("{1,0:PV(lowest)T(2,2)}", Layout((1, 0), (T((2, 2)),), padding_value=PaddingValue.LOWEST_PAD)),
        (
            "{1,0:PD(2,4)PV(highest)T(2,2)L(16)E(32)S(1)}",
            Layout((1, 0), (T((2, 2)),), 32, 1, 16, (2, 4), PaddingValue.HIGHEST_PAD),
        ),
    ],
)
def test_text_of_padding(text: str, layout: Layout) -> None:
    """This project's own: XLA has no text for them."""
    assert Shape.parse("f32[2,3]" + text).layout == layout
    assert str(layout) == text


def test_properties_in_any_order() -> None:
    assert Shape.parse("f32[2,3]{1,0:S(1)L(4)T(2,2)D(D,D)PV(one)E(32)PD(2,4)}") == Shape.parse(
        "f32[2,3]{1,0:D(D,D)PD(2,4)PV(one)T(2,2)L(4)E(32)S(1)SC(0:1)}"
    )


def test_a_layout_of_scalars_is_not_printed() -> None:
    """XLA does not read `f32[]{}`."""
    assert Shape.array(E.F32, (), Layout(())).to_text() == Shape(E.F32, (), Layout(())).to_text() == "f32[]"


def test_defaults_are_the_default_layout() -> None:
    assert Shape.array(E.F32, (2, 3), Layout((1, 0))).layout is row_major(2)
    assert Shape.parse("f32[2,3]{1,0:L(1)E(0)S(0)}").array_layout.is_row_major
    for text in ("f32[2,3]{1,0:}", "f32[2,3]{1,0:L(1)E(0)S(0)}", "f32[2,3]"):
        assert Shape.parse(text) == Shape.array(E.F32, (2, 3))
        assert Shape.parse(text).layout is row_major(2)


@given(shapes(st.sampled_from(ElementType)))
def test_any_layout_survives(shape: Shape) -> None:
    assert Shape.parse(shape.to_text()) == shape


_PIECES = st.sampled_from(
    [
        *"{}:,()*0123456789-TDLESPM#",
        "SC",
        "PD(",
        "PV(",
        "zero",
        "T(2,2)",
        "{1,0",
        "L(",
        "(8,128)",
        "E(32)",
        "S(1)",
        " ",
        "/*",
    ]
)


@given(st.sampled_from(["f32[2,3]", "s4[]", "(f32[2])", "token[]"]), st.lists(_PIECES, max_size=12).map("".join))
@settings(max_examples=500)
def test_any_text_is_read_or_refused(shape: str, layout: str) -> None:
    """With an error that says where, and nothing else."""
    for text in (shape + layout, shape + "{1,0:" + layout + "}"):
        try:
            read = Shape.parse(text)
        except HloParseError as error:
            assert error.line >= 1 and 1 <= error.column <= len(text) + 1
        else:
            assert Shape.parse(read.to_text()) == read


@given(shapes(st.sampled_from(ElementType)))
def test_xla_prints_the_same(shape: Shape) -> None:
    pytest.importorskip("jax")
    from support.xla_oracle import print_hlo_text

    shape = shape.with_layout(replace(shape.array_layout, padded_dimensions=(), padding_value=PaddingValue.UNKNOWN_PAD))
    text = shape.to_text()
    printed = print_hlo_text(f"HloModule m\nENTRY e {{ ROOT x = {text} parameter(0) }}")
    assert f"ROOT x = {text} parameter(0)" in printed.replace("%", "")
