"""`hloom layout SHAPE`: output in the terminal, figures, step by step, and the errors for bad input."""

from __future__ import annotations

import builtins
import io
import json
import re
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hloom.hlo import ElementType, Layout, Shape, Tile, UnsupportedError, linear_index, multi_index
from hloom.hlo.pictures import palette
from hloom.hlo.pictures.axes import shown_coordinates
from hloom.hlo.pictures.drawing import to_svg
from hloom.hlo.pictures.layout_figure import layout_figure
from hloom.hlo.pictures.layout_steps import index_steps, linear_steps
from hloom.hlo.pictures.layout_text import coloured, layout_text
from hloom.hlo.pictures.png import write_png
from hypothesis import given
from hypothesis import strategies as st

from hloom.command_line import main

FIGURE_1 = "f32[3,5]{1,0:T(2,2)}"
FIGURE_2 = "bf16[4,8]{1,0:T(2,4)(2,1)}"
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def hloom(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of `hloom layout`, run in this process."""
    try:
        code = main(["layout", *arguments])
    except SystemExit as exit:  # argparse
        assert isinstance(exit.code, int)
        code = exit.code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


# the terminal

FIGURE_1_TEXT = """\
f32[3,5]{1,0:T(2,2)}

  array     3 (y) by 5 (x): 15 elements of 32 bits
  order     x varies fastest, then y (row-major)
  tile      (2,2): 2 by 3 tiles of 2 by 2 elements
  physical  [2, 3, 2, 2] = [y//2, x//2, y%2, x%2]
  memory    24 places, 96 bytes: 1.6x the 60 bytes that the elements take; 9 places (38%) are padding

The array, with the place of each element in memory:

    x   0   1   2   3   4   ·
  y 0   0   1│  4   5│  8   ·
    1   2   3│  6   7│ 10   ·
      ───────┼───────┼───────
    2  12  13│ 16  17│ 20   ·
    ·   ·   ·│  ·   ·│  ·   ·

Memory, place by place, with the index of the element there:

  place  byte
      0     0  0,0 0,1 1,0 1,1
      4    16  0,2 0,3 1,2 1,3
      8    32  0,4   · 1,4   ·
     12    48  2,0 2,1   ·   ·
     16    64  2,2 2,3   ·   ·
     20    80  2,4   ·   ·   ·

· is padding.
"""


def test_figure_1_of_tiled_layout(capsys: pytest.CaptureFixture[str]) -> None:
    assert hloom(capsys, FIGURE_1) == (0, FIGURE_1_TEXT, "")


def grids(text: str) -> list[list[list[str]]]:
    """The tables of numbers in a text that shows an array whole: per slice, per row, the contents of the cells."""
    part = text[text.index("The array") : text.index("Memory, place")]
    found: list[list[list[str]]] = []
    before = "."
    for line in part.splitlines()[1:]:
        if re.fullmatch(r" +\w+( +[\d·]+)+", line) and not before:
            found.append([])
        elif row := re.fullmatch(r" +(?:[a-z]\d* )?[\d·]+((?:[ │]+[\d·]+)+)", line):
            found[-1].append(row[1].replace("│", " ").split())
        before = line
    return found


@st.composite
def small_shapes(draw: st.DrawFn, most: int = 7) -> Shape:
    """Arrays of up to three dimensions in all sorts of layouts."""
    rank = draw(st.integers(0, 3))
    dimensions = draw(st.lists(st.integers(1, most), min_size=rank, max_size=rank))
    tiles = []
    for _ in range(draw(st.integers(0, 2))):
        sizes: list[int | None] = draw(st.lists(st.sampled_from([None, 1, 2, 3, 4]), min_size=0, max_size=2))
        tiles.append(Tile((*sizes, draw(st.integers(1, 4)))))
    padded = tuple(d + draw(st.integers(0, 2)) for d in dimensions) if draw(st.booleans()) else ()
    element, bits = draw(st.sampled_from([(ElementType.F32, 0), (ElementType.S4, 4), (ElementType.PRED, 1)]))
    tail = draw(st.sampled_from([1, 1, 5]))
    order = tuple(draw(st.permutations(range(rank))))
    layout = Layout(order, tuple(tiles), bits, tail_padding_alignment_in_elements=tail, padded_dimensions=padded)
    return Shape.array(element, dimensions, layout)


@given(small_shapes())
def test_every_number_in_the_array_is_right(shape: Shape) -> None:
    """Read back from the text: cell (row, column) of each slice holds the element's linear index, padding a dot."""
    text = layout_text(shape)
    assert _ESCAPE.search(text) is None
    assert text == layout_text(shape)
    if shape.rank < 2 or "an excerpt" in text[: text.index("Memory, place")]:
        return
    drawn = sorted(shape.array_layout.minor_to_major[:2])
    others = [d for d in range(shape.rank) if d not in drawn]
    slices = list(product(*(range(shape.dimensions[d]) for d in others)))
    tables = grids(text)
    assert len(tables) == len(slices)
    for table, where in zip(tables, slices, strict=True):
        for row, line in enumerate(table):
            for column, cell in enumerate(line):
                index = [0] * shape.rank
                for d, at in (*zip(others, where), (drawn[0], row), (drawn[1], column)):
                    index[d] = at
                inside = all(i < n for i, n in zip(index, shape.dimensions))
                assert cell == (str(linear_index(shape, index)) if inside else "·"), (str(shape.to_text()), index)
        assert len(table) >= shape.dimensions[drawn[0]] and len(table[0]) >= shape.dimensions[drawn[1]]


@given(small_shapes(4))
def test_memory_is_told_place_by_place(shape: Shape) -> None:
    """Read back from the text: the line that begins at a place has the elements of it and of those that follow."""
    text = layout_text(shape, 160)
    part = text[text.index("Memory, place") :]
    if "an excerpt" in part:
        return
    expected = 0
    for line in part.splitlines()[3:]:
        if not line.strip():
            break
        first, _, *cells = line.replace("│", " ").split()
        assert int(first) == expected
        for cell in cells:
            index = multi_index(shape, expected)
            assert cell == ("·" if index is None else ",".join(map(str, index)) or "0")
            expected += 1
    assert expected == shape.physical_form.num_elements


@given(small_shapes())
def test_colour_changes_nothing_but_colour(shape: Shape) -> None:
    assert _ESCAPE.sub("", layout_text(shape, paint=coloured)) == layout_text(shape)


@pytest.mark.parametrize("shape", [FIGURE_1, FIGURE_2, "f32[2,3]{0,1}"])
def test_colour_on_demand(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    """Never into a pipe by itself; --color and NO_COLOR rule on a terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    plain = hloom(capsys, shape)[1]
    assert "\x1b" not in plain
    painted = hloom(capsys, shape, "--color=always")[1]
    assert "\x1b" in painted and _ESCAPE.sub("", painted) == plain
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    assert hloom(capsys, shape)[1] == painted
    assert hloom(capsys, shape, "--color", "never")[1] == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert hloom(capsys, shape)[1] == plain
    assert hloom(capsys, shape, "--color", "always")[1] == painted


def test_neighbouring_tiles_have_different_colours() -> None:
    painted = layout_text(Shape.parse("f32[8,64]{1,0:T(2,2)}"), paint=coloured)
    rows = [re.findall(r"48;5;(\d+)m *(\d+)", line) for line in painted.splitlines() if "48;5" in line]
    array = [row for row in rows if len(row) > 8][:8]
    for above, below in zip(array[1::2], array[2::2]):
        assert all(a[0] != b[0] for a, b in zip(above, below))


def test_an_output_that_takes_ascii_gets_ascii(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "hloom", "layout", FIGURE_1],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        timeout=60,
    )
    assert ran.returncode == 0 and ran.stderr == b""
    assert ran.stdout.decode("ascii") == FIGURE_1_TEXT.translate(str.maketrans("│─┼·", "|-+."))


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m hloom layout 'f32[64,64]{{1,0:T(8,8)}}' | head -1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines()[0] == "f32[64,64]{1,0:T(8,8)}"
    assert ran.stderr == "" and ran.stdout.splitlines()[1] in ("0", "141")


HUGE = [
    "f32[4096,4096]{1,0:T(8,128)}",
    "f32[1048576,1048576]{1,0:T(8,128)}",
    "f32[1099511627776]{0:T(1024)}",
    "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)S(1)}",
    "pred[1048576,1048576]{1,0:T(32,128)(32,1)E(1)}",
    "f32[65536,65536,4]{2,1,0:T(*,*,1024)}",
    "f32[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]",
    "u8[4611686018427387904]",
]


@pytest.mark.parametrize("shape", HUGE)
def test_huge_arrays_are_shown_at_once_and_in_part(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, shape: str
) -> None:
    started = time.process_time()
    code, out, err = hloom(capsys, shape)
    assert (code, err) == (0, "")
    assert "an excerpt:" in out and len(out.splitlines()) < 120
    assert hloom(capsys, shape, "--svg", f"{tmp_path}/huge.svg") == (0, "", "")
    assert (tmp_path / "huge.svg").stat().st_size < 200_000
    last = Shape.parse(shape).physical_form.num_elements - 1
    assert hloom(capsys, shape, "--linear", str(last))[0] == 0
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("f32[]", "a scalar of 32 bits"),
        ("pred[]{:T(512)}", "a scalar of 1 bit, in 8"),
        ("pred[]{:T(512)}", "512x the 1 byte that the elements take; 511 places (over 99%) are padding"),
        ("f32[0,3]", "There are no elements to show"),
        ("f32[0,3]{1,0:T(8,128)}", "0 places, 0 bytes"),
        ("f32[1,1]{1,0:T(8,128)}", "1,024 places, 4,096 bytes: 1024x the 4 bytes".replace("1024x", "1,024x")),
        ("s4[2,3]{1,0:E(4)}", "4 bits an element: 2 in a byte, the first in its lowest bits"),
        ("bf16[8,128]{1,0:T(8,128)(2,1)}", "bits 0-15: 0,0; bits 16-31: 1,0."),
        ("pred[32,128]{1,0:T(32,128)(32,1)E(1)}", "bit 0: 0,0; bit 1: 1,0; bit 2: 2,0; …; bit 31: 31,0."),
        ("f32[8,128]{1,0:T(8,128)S(1)}", "S(1): VMEM"),
        ("f32[3]{0:L(8)}", "multiple of 8"),
        ("s8[2,3]{0,1:PD(3,5)PV(zero)}", "y to 3, x to 5; what is there: zero"),
        ("f32[2,3,4]{0,2,1}", "z varies fastest, then x, y"),
        ("(f32[2], (s32[3], token[]))", "array 1 of the tuple: s32[3]{0}"),
        ("token[]", "token[] holds no data."),
        ("()", "() holds no data."),
    ],
)
def test_what_is_said_of_a_shape(capsys: pytest.CaptureFixture[str], shape: str, said: str) -> None:
    code, out, err = hloom(capsys, shape)
    assert (code, err) == (0, "") and said in out


@given(st.integers(0, 300), st.integers(0, 9), st.integers(1, 40), st.integers(2, 30), st.integers(1, 4))
def test_an_excerpt_has_both_ends_and_says_where_it_skips(
    size: int, padding: int, block: int, most: int, unit: int
) -> None:
    extent = size + padding
    shown = shown_coordinates(size, extent, block, most, unit)
    assert len(shown) <= max(most, 3)
    if unit <= max(most, 3) // 3:
        units = [list(range(u * unit, min((u + 1) * unit, extent))) for u in range(-(-extent // unit))]
        assert all(len({k in shown for k in each}) == 1 for each in units), "none is torn apart"
    if extent:
        assert shown[0] == 0 and shown[-1] == extent - 1
    for a, b in pairwise(shown):
        assert b is None or a is None or b == a + 1
    for a, gap, b in zip(shown, shown[1:], shown[2:]):
        assert gap is not None or (a is not None and b is not None and b > a + 2)


# step by step

WORKED = [
    # "Tiled layout", figure 1
    (FIGURE_1, (2, 3), 17, "((1 * 3 + 1) * 2 + 0) * 2 + 1 = 17"),
    ("f32[8,8]{1,0:T(2,4)(2,1,1,1)}", (6, 5), 51, "(((1 * 2 + 1) * 2 + 0) * 4 + 1) * 2 + 1 = 51"),
    ("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", (1, 6, 7, 10, 9), 12430, "[1, 6, 7] in sizes [2, 7, 8] is (1 * 7 + 6) * 8 + 7 = 111 of 112"),  # noqa: E501
    # the first seed page: column-major [2,3]
    ("f32[2,3]{0,1}", (0, 2), 4, "from major to minor the dimensions are x, y"),
    ("f32[2,3]{1,0}", (1, 2), 5, "1 * 3 + 2 = 5"),
    ("s4[5]{0:E(4)}", (3,), 3, "3 * 4 bits an element is bit 12: byte 1, bits 4 to 7 of it"),
    ("f32[]", (), 0, "bytes 0 to 3"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "index", "place", "said"), WORKED)
def test_steps_of_worked_examples(
    capsys: pytest.CaptureFixture[str], shape: str, index: tuple[int, ...], place: int, said: str
) -> None:
    code, out, err = hloom(capsys, shape, "--index", ",".join(map(str, index)))
    assert (code, err) == (0, "") and said in out
    assert out.splitlines()[-1].endswith(f"is at {place}.")
    code, out, err = hloom(capsys, shape, "--linear", str(place))
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"At place {place} is element ({', '.join(map(str, index))})."


def test_padding_is_told_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    out = hloom(capsys, FIGURE_1, "--linear", "9")[1]
    assert "x is 5, and ends before 5" in out and out.endswith("Place 9 is padding.\n")
    out = hloom(capsys, "f32[3]{0:L(8)}", "--linear", "5")[1]
    assert "the array ends before 3" in out and out.endswith("Place 5 is padding.\n")


@given(small_shapes(), st.data())
def test_steps_arrive_where_index_util_does(shape: Shape, data: st.DataObject) -> None:
    """There and back, for elements and for padding; every equation in the text is true."""
    index = tuple(data.draw(st.integers(0, d - 1)) for d in shape.dimensions)
    text = index_steps(shape, index)
    assert text.endswith(f"is at {linear_index(shape, index)}.\n")
    place = data.draw(st.integers(0, shape.physical_form.num_elements - 1))
    back = linear_steps(shape, place)
    found = multi_index(shape, place)
    assert back.endswith("is padding.\n" if found is None else f"is element ({', '.join(map(str, found))}).\n")
    for line in (text + back).splitlines():
        for left, right in re.findall(r"([\d(][\d+*() ]*\d\)?) = ([\d][\d+*() ]*\d|\d)", line):
            assert eval(left) == eval(right), line


# figures


def rectangles(svg: str) -> Counter[tuple[str | None, str | None]]:
    """How many there are of each fill and stroke."""
    root = ElementTree.fromstring(svg)
    return Counter((r.get("fill"), r.get("stroke")) for r in root.iter("{http://www.w3.org/2000/svg}rect"))


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}text")]


def test_figure_1_has_its_tiles_and_its_padding() -> None:
    """15 elements in the array and again in memory, 9 places of padding in each, one colour a tile."""
    svg = to_svg(layout_figure(Shape.parse(FIGURE_1)))
    found = rectangles(svg)
    cells = {fill: n for (fill, stroke), n in found.items() if stroke == palette.CELL_EDGE}
    assert sum(cells.values()) == 2 * 15 and len(cells) == 6
    assert sorted(cells.values()) == [2, 4, 4, 4, 8, 8]
    assert found[palette.PADDING, palette.PADDING_EDGE] == 2 * 9 + 1, "the last one is in the legend"
    written = texts(svg)
    assert written[0] == FIGURE_1
    assert {str(n) for n in range(24)} <= set(written)
    assert {f"{y},{x}" for y in range(3) for x in range(5)} <= set(written)


def test_figure_2_has_red_boxes() -> None:
    """16 tiles (2,1) of two elements, in the array and in memory, and one in the legend."""
    found = rectangles(to_svg(layout_figure(Shape.parse(FIGURE_2))))
    assert found["none", palette.BOX_EDGE] == 2 * 16 + 1


@given(small_shapes())
def test_figures_are_well_formed_and_the_same_each_time(shape: Shape) -> None:
    svg = to_svg(layout_figure(shape))
    assert svg == to_svg(layout_figure(shape))
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for item in root:
        x, y = float(item.get("x", "0")), float(item.get("y", "0"))
        assert 0 <= x <= width and 0 <= y <= height, "nothing lies outside of the sheet"
        assert x + float(item.get("width", "0")) <= width and y + float(item.get("height", "0")) <= height


def test_svg_goes_to_a_file_or_to_stdout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    assert hloom(capsys, FIGURE_1, "--svg", str(path)) == (0, "", "")
    code, out, err = hloom(capsys, FIGURE_1, "--svg", "-")
    assert (code, err) == (0, "") and out == path.read_text() and out.startswith("<svg ")


def test_a_figure_without_elements(capsys: pytest.CaptureFixture[str]) -> None:
    out = hloom(capsys, "f32[0,3]{1,0:T(8,128)}", "--svg", "-")[1]
    assert texts(out)[0] == "f32[0,3]{1,0:T(8,128)}"


def test_png_is_the_same_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"
    assert hloom(capsys, FIGURE_2, "--png", str(path)) == (0, "", "")
    from matplotlib.image import imread

    pixels = imread(path)
    drawing = layout_figure(Shape.parse(FIGURE_2))
    assert pixels.shape[:2] == (2 * drawing.height, 2 * drawing.width)
    seen = np.unique((pixels[..., :3] * 255).round().astype(int).reshape(-1, 3), axis=0)
    for colour in (*palette.TILES[:2], palette.BOX_EDGE):
        wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
        assert np.abs(seen - wanted).sum(1).min() <= 3, f"{colour} is in the picture"


def test_png_without_matplotlib_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **others: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnsupportedError, match=r"hloom\[examples\]"):
        write_png(layout_figure(Shape.parse(FIGURE_1)), tmp_path / "out.png")
    code, out, err = hloom(capsys, FIGURE_1, "--png", str(tmp_path / "out.png"))
    assert (code, out) == (1, "") and "pip install" in err
    assert hloom(capsys, FIGURE_1, "--svg", str(tmp_path / "out.svg"))[0] == 0, "SVG needs nothing"


# bad input


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("f32[3,5]{1,0:T(2,2}",), 1, "<shape>:1:19: "),
        (("f32[3,5]{1,0:T(2,0)}",), 1, "<shape>:1:18: "),
        (("f32[3,5]{1,1}",), 1, "<shape>:1:12: "),
        (("f32[3,5]{0}",), 1, "<shape>:1:9: "),
        (("f32[3,5]{1,0:T(2,*)}",), 1, "<shape>:1:18: "),
        (("f33[3]",), 1, "<shape>:1:1: expected a shape, but no element type is 'f33'"),
        (("f32[3] and more",), 1, "expected the end of the shape, found 'and'"),
        (("f32[9223372036854775807,9]",), 1, "shape_c2"),
        (("nothing.hlo",), 2, "cannot read nothing.hlo"),
        (("f32",), 2, "cannot read f32"),
        ((FIGURE_1, "--index", "3,0"), 2, "index 3 is outside of dimension 0"),
        ((FIGURE_1, "--index", "1"), 2, "index_c2"),
        ((FIGURE_1, "--index", "1,a"), 2, "is no index"),
        ((FIGURE_1, "--index=-1,0"), 2, "index -1 is outside of dimension 0"),
        ((FIGURE_1, "--linear", "24"), 2, "place 24 is outside of the buffer"),
        ((FIGURE_1, "--linear", "-1"), 2, "--linear"),
        ((FIGURE_1, "--index", "0,0", "--linear", "0"), 2, "not allowed with"),
        ((FIGURE_1, "--target", "tpu"), 2, "--target is for a module"),
        ((FIGURE_1, "--json"), 2, "--json is for a module"),
        (("f32[0,3]", "--index", "0,0"), 2, "which has size 0"),
        (("(f32[2], f32[3])", "--index", "0"), 2, "give one of its elements"),
        (("(f32[2], f32[3])", "--svg", "-"), 2, "give one of its elements"),
        (("token[]", "--linear", "0"), 2, "give one of its elements"),
        ((FIGURE_1, "--svg", "/nowhere/out.svg"), 2, "cannot write /nowhere/out.svg"),
        ((FIGURE_1, "--svg", ""), 2, "cannot write"),
        ((FIGURE_1, "--png", "/nowhere/out.png"), 2, "cannot write /nowhere/out.png"),
        ((), 2, "SUBJECT"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str) -> None:
    found, out, err = hloom(capsys, *arguments)
    assert (found, out) == (code, "") and said in err, err


def test_the_caret_stands_at_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    err = hloom(capsys, "f32[3,5]{1,0:T(2,0)}")[2].splitlines()
    assert err[1] == "  f32[3,5]{1,0:T(2,0)}"
    assert err[2].index("^") - 2 == err[1].index("0)}") - 2


# modules


def test_a_module_from_a_file_and_from_stdin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "HloModule m\nENTRY e { x = f32[4096,2]{1,0:T(8,128)} parameter(0)\n ROOT y = f32[2] constant({1, 2}) }"
    path = tmp_path / "module[1].hlo"  # a file first, although it has a bracket
    path.write_text(text)
    code, out, err = hloom(capsys, str(path))
    assert (code, err) == (0, "") and "module m, as written: 2 buffers" in out and "{0,1:T(8,128)}" in out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    read = json.loads(hloom(capsys, "-", "--json")[1])
    assert read["module"] == "m" and read["physical_bytes"] == 4096 * 128 * 4 + 8


@pytest.mark.parametrize("option", [("--index", "0"), ("--linear", "0"), ("--svg", "-"), ("--color", "always")])
def test_options_for_shapes_are_refused_for_modules(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: tuple[str, str]
) -> None:
    (tmp_path / "m.hlo").write_text("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }")
    code, out, err = hloom(capsys, str(tmp_path / "m.hlo"), *option)
    assert (code, out) == (2, "") and f"{option[0]} is for a shape" in err


def test_a_bad_module(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text("HloModule m\nENTRY e { ROOT x = f32[3] parametr(0) }")
    code, out, err = hloom(capsys, str(tmp_path / "m.hlo"))
    assert (code, out) == (1, "") and err.startswith(f"{tmp_path}/m.hlo:2:")


def test_a_module_for_a_target(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Inside, buffers are tiled; arguments and results are row-major, or as on the device."""
    path = tmp_path / "m.hlo"
    path.write_text(
        "HloModule m\nENTRY e { x = f32[4096,2] parameter(0)\n s = f32[4096,2] sort(x), dimensions={0}, to_apply=lt\n"
        " ROOT y = f32[4096,2] exponential(s) }\n"
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }"
    )
    found = {}
    for arguments in (("cpu",), ("tpu",), ("tpu", "--on-device"), ("as-written",)):
        code, out, err = hloom(capsys, str(path), "--json", "--target", *arguments)
        assert (code, err) == (0, "")
        report = found[arguments] = json.loads(out)
        assert report["target"] == arguments[0].replace("-", " ")
        assert report["physical_bytes"] == sum(b["physical_bytes"] for b in report["buffers"])
    shapes = {arguments: {b["where"]: b["shape"] for b in report["buffers"]} for arguments, report in found.items()}
    assert "T(" not in str(shapes["cpu",])
    assert "T(" not in shapes["tpu",]["parameter"] and "T(8,128)" in str(shapes["tpu",])
    assert "T(8,128)" in shapes["tpu", "--on-device"]["parameter"]
    assert found["cpu",]["memory_spaces"][0]["peak_bytes"] >= 2 * 4096 * 2 * 4
    code, _, err = hloom(capsys, str(path), "--target", "gpu")
    assert code == 2 and "gpu" in err
    code, _, err = hloom(capsys, str(path), "--on-device")
    assert code == 2 and "--on-device needs a --target" in err


def test_help_needs_neither_numpy_nor_the_ir() -> None:
    code = (
        "import sys\nfrom hloom.command_line.options import parse_options\n"
        "try: parse_options(['layout', '--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'hloom.hlo.shape', 'numba') if m in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stderr == "[]\n" and "SUBJECT" in ran.stdout
