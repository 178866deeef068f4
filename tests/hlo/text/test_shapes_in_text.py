"""Shapes and layouts in text."""

from __future__ import annotations

import pytest
from hloom.hlo import ElementType, HloParseError, Layout, Shape, Tile
from hloom.hlo.layout import MAX_RANK, row_major
from hloom.hlo.shape import MAX_TUPLE_DEPTH


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("f32[]", Shape.array(ElementType.F32)),
        ("f32[]{}", Shape.array(ElementType.F32)),
        ("pred[2,3]", Shape.array(ElementType.PRED, (2, 3))),
        ("pred[2,3]{1,0}", Shape.array(ElementType.PRED, (2, 3))),
        ("c64[2,3]{0,1}", Shape.array(ElementType.C64, (2, 3), Layout((0, 1)))),
        (" u8 [ 0 , 7 ]{ 1, 0 } ", Shape.array(ElementType.U8, (0, 7))),
        ("f32[]{:T(128)}", Shape.array(ElementType.F32, (), Layout((), (Tile((128,)),)))),
        (
            "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}",
            Shape.array(ElementType.BF16, (8, 1, 1280, 16384), Layout((3, 2, 0, 1), (Tile((8, 128)), Tile((2, 1))))),
        ),
        ("s8[4,6]{1,0:T(*,2)}", Shape.array(ElementType.S8, (4, 6), Layout((1, 0), (Tile((None, 2)),)))),
        ("s4[4]{0:L(128)E(4)S(1)}", Shape.array(ElementType.S4, (4,), Layout((0,), (), 4, 1, 128))),
        ("()", Shape.tuple([])),
        (
            "(f32[], /*index=1*/(s32[4]{0}, ()))",
            Shape.tuple(
                [Shape.array(ElementType.F32), Shape.tuple([Shape.array(ElementType.S32, (4,)), Shape.tuple([])])]
            ),
        ),
    ],
)
def test_read_and_print(text: str, shape: Shape) -> None:
    assert Shape.parse(text) == shape
    assert Shape.parse(shape.to_text()) == shape


def test_default_layouts_are_one_object() -> None:
    """Passes compare layouts often; so identity is worth having."""
    assert Shape.parse("f32[2,3]{1,0}").layout is row_major(2)
    assert Shape.parse("f32[2,3]").layout is row_major(2)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "expected a shape, found the end of the text"),
        ("f9[2]", 1, "no element type is 'f9'; supported are pred, "),
        ("f32", 1, "'[' is missing after 'f32'"),
        ("f32[2", 6, "expected ']' or ',' after a dimension, found the end of the text"),
        ("f32[x]", 5, "expected the size of a dimension, found 'x'"),
        ("f32[2,-1]", 1, "has a negative dimension: sizes must be at least 0 [shape_c1]"),
        ("f32[<=3]", 5, "dimensions whose size is known only when the program runs"),
        ("f32[?,3]", 5, "dimensions whose size is known only when the program runs"),
        ("f32[99999999999999999999]", 5, "does not fit in 64 bits"),
        ("f32[9999999999,9999999999]", 1, "does not fit in 64-bit memory [shape_c2]"),
        ("f32[9223372036854775807,0,9223372036854775807]", 1, "does not fit in 64-bit memory [shape_c2]"),
        ("pred[0,9223372036854775807,2]", 1, "does not fit in 64-bit memory [shape_c2]"),
        ("f32[" + ",".join("1" * (MAX_RANK + 1)) + "]", 1, f"an array has at most {MAX_RANK} dimensions"),
        ("f32[2]{0,}", 10, "expected a dimension number, found '}'"),
        ("f32[2]{0:Q(1)}", 10, "expected a layout property (D, PD, PV, T, L, E, S or SC, each once) or '}', found 'Q'"),
        ("f32[2]{0:S(1)S(2)}", 14, "expected a layout property"),
        ("f32[2]{0:T}", 11, "expected '(' to open a tile"),
        ("f32[2]{0:T(2,)}", 14, "expected a tile size or '*', found ')'"),
        ("f32[2]{0:S()}", 12, "expected a number, found ')'"),
        ("f32[2]{0:PD()}", 13, "expected the size to which a dimension is padded, found ')'"),
        ("f32[2]{0:PV(none)}", 13, "padding is zero, one, lowest, highest, not 'none'"),
        ("f32[2]{0", 9, "expected '}' to close the layout"),
        ("(f32[2]", 8, "expected ')' or ',' after an element of a tuple shape"),
        ("(" * (MAX_TUPLE_DEPTH + 9), MAX_TUPLE_DEPTH + 1, f"tuples are nested deeper than {MAX_TUPLE_DEPTH}"),
        ("f32[2] f32[2]", 8, "expected the end of the shape, found 'f32'"),
    ],
)
def test_errors(text: str, column: int, message: str) -> None:
    with pytest.raises(HloParseError) as caught:
        Shape.parse(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, column)
