"""Index arithmetic: the worked examples of XLA's pages "Shapes and layout" and "Tiled layout", each by name; and the
position of every element in random layouts, against an oracle that pads, reshapes and transposes."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hloom.hlo import ElementType, Shape, ShapeError
from hloom.hlo.index_util import bit_position, elements_in_memory_order, linear_indices
from hypothesis import given, settings

from hloom import hlo
from support.layouts import numbered, physical_buffer, random_shape, shapes


def _memory(text: str) -> list[tuple[int, ...] | None]:
    """The index at each place of the buffer, None for padding."""
    shape = Shape.parse(text)
    return [hlo.multi_index(shape, place) for place in range(shape.physical_form.num_elements)]


def _letters(text: str, letters: str) -> str:
    """The contents of the buffer, 0 for padding, of an array that holds `letters` in row-major order."""
    shape = Shape.parse(text)
    array = np.array(list(letters)).reshape(shape.dimensions)
    return " ".join("0" if index is None else str(array[index]) for index in _memory(text))


# The page "Shapes and layout"


def test_minor_to_major_0_1_is_column_major() -> None:
    assert _letters("f32[2,3]{0,1}", "abcdef") == "a d b e c f"


def test_minor_to_major_1_0_is_row_major() -> None:
    assert _letters("f32[2,3]{1,0}", "abcdef") == "a b c d e f"
    assert _letters("f32[2,3]", "abcdef") == "a b c d e f"


def test_padded_to_3_5_in_column_major_order() -> None:
    """ "The layout in linear memory (assuming a padding value of 0 and column-major layout)"."""
    assert _letters("f32[2,3]{0,1:PD(3,5)PV(zero)}", "abcdef") == "a d 0 b e 0 c f 0 0 0 0 0 0 0"


def test_padding_is_that_of_the_larger_array() -> None:
    """ "This is equivalent to the layout of the following array with the same minor-to-major dimension order"."""
    larger = np.array([list("abc00"), list("def00"), list("00000")])
    assert " ".join(larger.reshape(-1, order="F")) == _letters("f32[2,3]{0,1:PD(3,5)}", "abcdef")
    assert " ".join(larger.reshape(-1)) == _letters("f32[2,3]{1,0:PD(3,5)}", "abcdef")


def test_row_1_column_2_of_2_by_3_is_5() -> None:
    """The worked example of a row-major index."""
    shape = Shape.parse("f32[2,3]{1,0}")
    assert hlo.linear_index(shape, (1, 2)) == 1 * 3 + 2 == 5
    assert _memory("f32[2,3]{1,0}") == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_tail_padding_alignment() -> None:
    """ "after tiling, padded elements will be appended until # of elements is a multiple"."""
    assert _letters("f32[2,3]{1,0:L(4)}", "abcdef") == "a b c d e f 0 0"
    assert _letters("f32[2,3]{1,0:T(2,2)L(5)}", "abcdef") == "a b d e c 0 f 0 0 0"


# The page "Tiled layout"


def test_figure_1_element_2_3_is_17() -> None:
    shape = Shape.parse("f32[3,5]{1,0:T(2,2)}")
    assert hlo.linear_index(shape, (2, 3)) == (1 * 3 + 1) * 2 * 2 + (0 * 2 + 1) == 17
    assert shape.physical_form.extents == (2, 3, 2, 2)
    assert [d.at((2, 3)) for d in shape.physical_form.dimensions] == [1, 1, 0, 1]
    assert hlo.multi_index(shape, 17) == (2, 3)
    assert [place for place, index in enumerate(_memory("f32[3,5]{1,0:T(2,2)}")) if index is None] == [
        *(9, 11),  # the sixth column of the first two rows
        *(14, 15, 18, 19, 21, 22, 23),  # the fourth row, and the corner
    ]


FIGURE_2 = [
    [0, 2, 4, 6, 8, 10, 12, 14],
    [1, 3, 5, 7, 9, 11, 13, 15],
    [16, 18, 20, 22, 24, 26, 28, 30],
    [17, 19, 21, 23, 25, 27, 29, 31],
]


def test_figure_2_repeated_tiling_of_4_by_8() -> None:
    """(2,4)(2,1): pairs of rows alternate within a tile."""
    assert linear_indices(Shape.parse("bf16[4,8]{1,0:T(2,4)(2,1)}")).tolist() == FIGURE_2


def test_element_6_5_of_8_by_8_with_2_4_and_2_1_1_1_is_51() -> None:
    """The second tile covers the numbers of tiles too, and so puts pairs of tile rows next to each other."""
    shape = Shape.parse("f32[8,8]{1,0:T(2,4)(2,1,1,1)}")
    assert shape.physical_form.levels[1][0].extent == 4
    assert [d.at((6, 5)) for d in shape.physical_form.levels[1]] == [3, 1, 0, 1]
    # Tile numbers (3, 1) of [4, 2] become (1, 1) with (1, 0) inside of [2, 1].
    assert hlo.linear_index(shape, (6, 5)) == ((((1 * 2 + 1) * 2 + 0) * 4 + 1) * 2) + 1 == 51
    assert hlo.multi_index(shape, 51) == (6, 5)


def test_combining_dimensions() -> None:
    """f32[2,7,8,11,10] with (*,*,2,*,3) is f32[112,110] with (2,3)."""
    combined = linear_indices(Shape.parse("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}"))
    assert (combined.reshape(112, 110) == linear_indices(Shape.parse("f32[112,110]{1,0:T(2,3)}"))).all()
    assert Shape.parse("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}").physical_form.extents == (56, 37, 2, 3)


@pytest.mark.parametrize(
    ("text", "index", "place"),
    [
        # 8x128: tile (1, 1) of [2, 2], row 1 and column 2 in it.
        ("f32[16,256]{1,0:T(8,128)}", (9, 130), 3 * 1024 + 1 * 128 + 2),
        # 16 bit: rows 2 and 3 of a tile share 32-bit words, row 3 has the high halves.
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", (11, 130), 3 * 1024 + (1 * 128 + 2) * 2 + 1),
        # 8 bit: rows 4 to 7 of a tile share words.
        ("s8[16,256]{1,0:T(8,128)(4,1)}", (14, 130), 3 * 1024 + (1 * 128 + 2) * 4 + 2),
        # 1 bit: the 32 rows of a tile share words.
        ("pred[64,256]{1,0:T(32,128)(32,1)E(1)}", (33, 130), 3 * 4096 + 2 * 32 + 1),
        # Small tiles.
        ("f32[2,256]{1,0:T(2,128)}", (1, 130), 256 + 128 + 2),
        ("f32[4,256]{1,0:T(4,128)}", (3, 130), 512 + 3 * 128 + 2),
        # A shape of rank 4: physical order [1,8,1280,16384], tiles of the last two.
        (
            "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)S(1)}",
            (5, 0, 1001, 12345),
            ((5 * 160 + 125) * 128 + 96) * 1024 + 57 * 2 + 1,
        ),
        # Fewer dimensions than the tile.
        ("f32[]{:T(128)}", (), 0),
        ("f32[5]{0:T(8,128)}", (3,), 3),
        ("f32[300]{0:T(2,128)}", (299,), 2 * 256 + 43),
    ],
)
def test_formats(text: str, index: tuple[int, ...], place: int) -> None:
    shape = Shape.parse(text)
    assert hlo.linear_index(shape, index) == place
    assert hlo.multi_index(shape, place) == index


@pytest.mark.parametrize(
    ("text", "logical", "physical"),
    [
        ("f32[3,5]{1,0:T(2,2)}", 60, 96),
        ("f32[]{:T(128)}", 4, 512),
        ("f32[5]{0:T(8,128)}", 20, 4096),
        ("bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}", 335544320, 335544320),
        ("f32[1000,2]{1,0:T(8,128)}", 8000, 512000),
        ("f32[2,1000]{1,0:T(2,128)}", 8000, 8192),
        ("pred[33,129]{1,0:T(32,128)(32,1)}", 4257, 16384),
        ("pred[33,129]{1,0:T(32,128)(32,1)E(1)}", 4257, 2048),
        ("s4[3]{0:E(4)}", 3, 2),
        ("s4[3]{0:T(8)E(4)L(16)}", 3, 8),
        ("f32[2,3]{0,1:PD(3,5)}", 24, 60),
        ("f32[0,3]{1,0:T(8,128)}", 0, 0),
    ],
)
def test_sizes(text: str, logical: int, physical: int) -> None:
    shape = Shape.parse(text)
    assert (shape.logical_byte_size, shape.byte_size) == (logical, physical)


def test_bits() -> None:
    """As XLA's PackIntN: element 0 in the low bits of byte 0."""
    s4 = Shape.parse("s4[5]{0:E(4)}")
    assert [bit_position(s4, (i,)) for i in range(5)] == [(0, 0), (0, 4), (1, 0), (1, 4), (2, 0)]
    pred = Shape.parse("pred[32,128]{1,0:T(32,128)(32,1)E(1)}")
    assert bit_position(pred, (9, 2)) == (2 * 4 + 1, 1)
    assert bit_position(Shape.parse("f32[3,5]{1,0:T(2,2)}"), (2, 3)) == (68, 0)


# Bad input


@pytest.mark.parametrize("index", [(3, 0), (0, 5), (-1, 0), (0, -1)])
def test_indices_outside(index: tuple[int, int]) -> None:
    with pytest.raises(IndexError, match=r"index -?\d is outside of dimension [01] of f32\[3,5\], which has size [35]"):
        hlo.linear_index(Shape.parse("f32[3,5]{1,0:T(2,2)}"), index)


@pytest.mark.parametrize("place", [24, -1, 2**70])
def test_places_outside(place: int) -> None:
    with pytest.raises(IndexError, match=r"is outside of the buffer of f32\[3,5\]\{1,0:T\(2,2\)\}, which has 24"):
        hlo.multi_index(Shape.parse("f32[3,5]{1,0:T(2,2)}"), place)


def test_index_of_other_rank() -> None:
    with pytest.raises(ShapeError) as caught:
        hlo.linear_index(Shape.parse("f32[3,5]"), (1,))
    assert caught.value.label == "index_c2"


def test_tuples_and_tokens_have_no_places() -> None:
    for shape in (Shape.parse("(f32[2])"), Shape.token()):
        for call in (
            lambda s=shape: hlo.linear_index(s, ()),
            lambda s=shape: hlo.multi_index(s, 0),
            lambda s=shape: linear_indices(s),
            lambda s=shape: elements_in_memory_order(s),
            lambda s=shape: bit_position(s, ()),
        ):
            with pytest.raises(ShapeError) as caught:
                call()
            assert caught.value.label == "index_c1"


def test_numbers_must_be_integers() -> None:
    with pytest.raises(TypeError, match="linear_index: 'float' object cannot be interpreted as an integer"):
        hlo.linear_index(Shape.parse("f32[3]"), (1.0,))  # type: ignore[arg-type]
    assert hlo.linear_index(Shape.parse("f32[3]"), (np.int8(2),)) == 2


# Any layout


def _check_every_place(shape: Shape) -> None:
    """Each element where the oracle puts it, each other place padding, and back."""
    buffer = physical_buffer(numbered(shape), shape.array_layout, 0)
    assert shape.physical_form.num_elements == buffer.size
    assert (elements_in_memory_order(shape) + 1 == buffer).all()
    for place, number in enumerate(buffer.tolist()):
        index = hlo.multi_index(shape, place)
        if number == 0:
            assert index is None
        else:
            assert index is not None and np.ravel_multi_index(index, shape.dimensions, order="C") == number - 1
            assert hlo.linear_index(shape, index) == place


@given(shapes())
@settings(max_examples=150, deadline=None)
def test_every_place_of_any_layout(shape: Shape) -> None:
    if shape.physical_form.num_elements <= 2000:
        _check_every_place(shape)
    else:
        assert (elements_in_memory_order(shape) + 1 == physical_buffer(numbered(shape), shape.array_layout, 0)).all()


@pytest.mark.slow
def test_10000_random_layouts() -> None:
    """The places of all elements as the oracle has them; index to linear and back for some of each."""
    rng = random.Random(20170817)
    seen: set[Shape] = set()
    while len(seen) < 10_000:
        shape = random_shape(rng)
        if shape in seen:
            continue
        seen.add(shape)
        array = numbered(shape)
        buffer = physical_buffer(array, shape.array_layout, 0)
        assert (elements_in_memory_order(shape) + 1 == buffer).all(), shape.to_text()
        for place in rng.sample(range(buffer.size), min(3, buffer.size)):
            index = hlo.multi_index(shape, place)
            assert (index is None) == (buffer[place] == 0), (shape.to_text(), place)
            if index is not None:
                assert array[index] == buffer[place] and hlo.linear_index(shape, index) == place


@pytest.mark.slow
def test_every_place_of_600_random_layouts() -> None:
    rng = random.Random(2)
    for _ in range(600):
        _check_every_place(random_shape(rng))


def test_wide_tilings_are_not_exponential() -> None:
    """Eight tiles that each combine all there is and cut it again."""
    text = "f32[" + ",".join(["2"] * 12) + "]{" + ",".join(str(d) for d in reversed(range(12)))
    shape = Shape.parse(text + ":T(" + "*," * 11 + "3)" + "(*,2)" * 7 + "}")
    index = tuple(itertools.islice(itertools.cycle((1, 0, 1)), 12))
    assert hlo.multi_index(shape, hlo.linear_index(shape, index)) == index


def test_large_places_do_not_overflow() -> None:
    shape = Shape.array(ElementType.S8, (2**31, 2**31), hlo.Layout((0, 1), (hlo.Tile((2**20, 2**10)),)))
    last = (2**31 - 1, 2**31 - 1)
    assert hlo.linear_index(shape, last) == 2**62 - 1
    assert hlo.multi_index(shape, 2**62 - 1) == last
