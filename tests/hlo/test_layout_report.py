"""Layout reports: what counts as a buffer, totals against a brute-force count of the text, and better layouts."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hloom.hlo import CpuTarget, ElementType, Layout, Shape, Target, Tile, TpuTarget, optimize, parse
from hloom.hlo.analyses.layout_report import (
    LayoutReport,
    report_as_written,
    report_of_program,
    with_entry_on_device,
)
from hloom.hlo.analyses.layout_search import better_layout
from hloom.hlo.buffers.assignment import assign_buffers
from hloom.hlo.pictures.report_text import readable, report_text
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.pipeline import pipeline
from hypothesis import given
from hypothesis import strategies as st

from support.hlo_texts import RECORDED

# a count by brute force, from the text alone

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
          "u64": 8, "f64": 8, "c64": 8, "c128": 16}  # fmt: skip
_ARRAY = re.compile(r"\b([a-z]+[0-9]*)\[([0-9,]*)\](?:\{([0-9,]*)\})?")
_LINE = re.compile(r"^\s+(?:ROOT )?%?(\S+) = (\(.*?\)|\S+) ([a-z0-9-]+)\((.*)$")
_RUNS = re.compile(r"\b(?:body|condition|true_computation|false_computation|branch_computations)=(\{[^}]*\}|[%\w.-]+)")
_HANDS_ON = ("tuple", "get-tuple-element", "bitcast", "while", "conditional", "call", "opt-barrier", "after-all")


def counted(text: str) -> tuple[int, int]:
    """Buffers and their bytes, as `report_as_written` defines them, of a module with dense layouts."""
    text = re.sub(r"/\*.*?\*/", "", text)
    bodies: dict[str, list[str]] = {}
    entry = current = ""
    for line in text.splitlines():
        header = re.match(r"^(ENTRY )?%?([\w.-]+) (?:\(.*\) -> .*)?\{$", line)
        if header:
            current = header[2]
            bodies[current] = []
            entry = current if header[1] else entry
        elif current:
            bodies[current].append(line)
    found, pending, number, size = {entry}, [entry], 0, 0
    while pending:
        name = pending.pop()
        types: dict[str, str] = {}
        for line in bodies[name]:
            match = _LINE.match(line)
            if match is None:
                continue
            result, shape, opcode, rest = match.groups()
            types[result] = shape
            called = _RUNS.findall(rest) + (re.findall(r"to_apply=([%\w.-]+)", rest) if opcode == "call" else [])
            for each in re.findall(r"[\w.-]+", " ".join(called)):
                if each not in found:
                    found.add(each)
                    pending.append(each)
            if opcode in _HANDS_ON or (opcode == "parameter" and name != entry):
                continue
            if opcode == "reshape":
                operand = re.findall(r"%?([\w.-]+)\)", rest)[0]
                if all(_is_row_major(t) for t in (shape, types[operand])):
                    continue
            for element, dimensions, _ in _ARRAY.findall(shape):
                number += 1
                size += math.prod(map(int, filter(None, dimensions.split(",")))) * _BYTES[element]
    return number, size


def _is_row_major(shape: str) -> bool:
    """`{2,1,0}`, or no layout at all."""
    match = _ARRAY.match(shape)
    assert match is not None
    order = [int(d) for d in (match[3] or "").split(",") if d]
    return order == sorted(order, reverse=True)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_totals_equal_a_count_of_the_text(path: Path) -> None:
    """Of every module that was recorded from JAX, before XLA's passes and after."""
    text = path.read_text()
    report = report_as_written(parse(text))
    number, size = counted(text)
    assert number > 0
    assert (len(report.buffers), report.logical_bytes, report.physical_bytes) == (number, size, size)
    assert sum(s.physical_bytes for s in report.spaces) == size
    assert sum(s.buffers for s in report.spaces) == number


# what counts

TILED = """HloModule tiled

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

inside {
  p = f32[4096,2]{1,0:T(8,128)} parameter(0)
  hidden = f32[4096,2]{1,0:T(8,128)} exponential(p)
  ROOT n = f32[4096,2]{1,0:T(8,128)} negate(hidden)
}

body {
  state = (s32[], f32[4096,2]{1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[4096,2]{1,0:T(8,128)} get-tuple-element(state), index=1
  doubled = f32[4096,2]{1,0:T(8,128)} add(x, x)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[4096,2]{1,0:T(8,128)}) tuple(next, doubled)
}

condition {
  cstate = (s32[], f32[4096,2]{1,0:T(8,128)}) parameter(0)
  ci = s32[] get-tuple-element(cstate), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(ci, three), direction=LT
}

ENTRY main {
  x0 = f32[4096,2]{1,0:T(8,128)} parameter(0)
  fast = f32[64,128]{1,0:T(8,128)S(1)} parameter(1)
  f = f32[4096,2]{1,0:T(8,128)} fusion(x0), kind=kLoop, calls=inside
  zero = s32[] constant(0)
  start = (s32[], f32[4096,2]{1,0:T(8,128)}) tuple(zero, f)
  loop = (s32[], f32[4096,2]{1,0:T(8,128)}) while(start), condition=condition, body=body
  end = f32[4096,2]{1,0:T(8,128)} get-tuple-element(loop), index=1
  nought = f32[] constant(0)
  total = f32[] reduce(end, nought), dimensions={0,1}, to_apply=add
  sorted = (f32[64,128]{1,0:T(8,128)S(1)}, s32[64,128]{1,0}) custom-call(fast), custom_call_target="sort"
  ROOT out = (f32[], f32[64,128]{1,0:T(8,128)S(1)}) tuple(total, fast)
}
"""


@pytest.fixture(scope="module")
def tiled() -> LayoutReport:
    return report_as_written(parse(TILED))


def test_what_is_written_to_memory_counts(tiled: LayoutReport) -> None:
    """FusedComputations of loops count; bodies of fusions and reductions, and what only hands bytes on, do not."""
    assert {(b.name, b.where) for b in tiled.buffers} == {
        *(("x0", "main"), ("fast", "main"), ("f", "main"), ("zero", "main"), ("nought", "main"), ("total", "main")),
        *(("sorted{0}", "main"), ("sorted{1}", "main")),
        *(("doubled", "body"), ("one", "body"), ("next", "body"), ("three", "condition"), ("less", "condition")),
    }


def test_totals_by_memory_space(tiled: LayoutReport) -> None:
    slow, fast = tiled.spaces
    padded, small = 4096 * 128 * 4, 64 * 128 * 4
    scalars = 5 * 4 + 4 + 1  # zero, nought, total, one, next; three; less
    assert (slow.space, slow.buffers, slow.physical_bytes) == (0, 11, 3 * padded + small + scalars)
    assert slow.logical_bytes == 3 * padded // 64 + small + scalars
    assert (fast.space, fast.buffers, fast.physical_bytes, fast.logical_bytes) == (1, 2, 2 * small, 2 * small)


def test_the_worst_come_first(tiled: LayoutReport) -> None:
    waste = [b.wasted_bytes for b in tiled.buffers]
    assert waste == sorted(waste, reverse=True)
    assert [b.name for b in tiled.buffers[:4]] == ["x0", "f", "doubled", "fast"]
    assert tiled.buffers[0].factor == 64


def test_a_better_order_is_proposed(tiled: LayoutReport) -> None:
    better = tiled.buffers[0].better
    assert better is not None and str(better.layout) == "{0,1:T(8,128)}"
    assert better.byte_size == 8 * 4096 * 4 and better.saved == 4096 * 128 * 4 - better.byte_size
    assert tiled.saved_bytes == 3 * better.saved
    assert all(b.better is None for b in tiled.buffers[3:])


def test_json_says_the_same(tiled: LayoutReport) -> None:
    read = json.loads(json.dumps(tiled.to_json()))
    assert read["physical_bytes"] == tiled.physical_bytes == sum(b["physical_bytes"] for b in read["buffers"])
    assert [s["number"] for s in read["memory_spaces"]] == [0, 1]
    assert read["buffers"][0]["shape"] == "f32[4096,2]{1,0:T(8,128)}"
    assert read["buffers"][0]["better"]["layout"] == "{0,1:T(8,128)}"
    assert Shape.parse(read["buffers"][0]["shape"]).byte_size == read["buffers"][0]["physical_bytes"]


def test_the_text_names_the_worst(tiled: LayoutReport) -> None:
    lines = report_text(tiled, 2).splitlines()
    assert lines[0] == "module tiled, as written: 13 buffers"
    first = next(k for k, line in enumerate(lines) if line.endswith("buffer")) + 1
    assert lines[first].split() == ["1.969", "MiB", "2", "MiB", "32", "KiB", "64x", "S(0)",
                                    "f32[4096,2]{1,0:T(8,128)}", "x0,", "main"]  # fmt: skip
    assert lines[first + 1].strip() == "better: {0,1:T(8,128)} takes 128 KiB, 1.875 MiB less"
    assert any(line.startswith("and 11 more") for line in lines)
    assert len(report_text(tiled, None)) > len(report_text(tiled, 2))
    assert "more" not in report_text(tiled, None)


def test_a_module_without_tiles_says_so() -> None:
    module = parse("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }")
    assert "No array here is tiled" in report_text(report_as_written(module))


def test_a_module_without_buffers() -> None:
    report = report_as_written(parse("HloModule m\nENTRY e { ROOT t = () tuple() }"))
    assert report.buffers == () and report_text(report).startswith("module m, as written: 0 buffers\n")


def test_asynchronous_operations_write_once() -> None:
    """The start of a copy holds the operand and a handle too; the end passes the written array on. An async-start
    runs a computation with a buffer of its own."""
    text = """HloModule m
doubled { a = f32[8] parameter(0) ROOT b = f32[8] add(a, a) }
ENTRY e {
  x = f32[8] parameter(0)
  moving = (f32[8]{0:S(1)}, f32[8], u32[]) copy-start(x)
  moved = f32[8]{0:S(1)} copy-done(moving)
  running = ((f32[8]{0:S(1)}), f32[8], u32[]) async-start(moved), calls=doubled
  ROOT ran = f32[8] async-done(running)
}"""
    assert [(b.name, b.space) for b in report_as_written(parse(text)).buffers] == [("x", 0), ("moving{0}", 1), ("b", 0)]


def test_deep_calls_and_shared_computations_count_once() -> None:
    """`twice` is called from two places: as written it has one instruction."""
    text = """HloModule m
twice { a = f32[8] parameter(0) ROOT b = f32[8] add(a, a) }
ENTRY e { x = f32[8] parameter(0) y = f32[8] call(x), to_apply=twice ROOT z = f32[8] call(y), to_apply=twice }"""
    assert [b.name for b in report_as_written(parse(text)).buffers] == ["x", "b"]


# programs after all passes

_TEXT = re.compile(r"([a-z]+)([0-9]*)[a-z0-9]*\[([0-9,]*)\](?:\{([0-9,]*)(?::(.*))?\})?$")


def counted_bytes(shape: str) -> int:
    """The bytes of an array from its text: pad, cut, multiply."""
    match = _TEXT.match(shape)
    assert match is not None, shape
    kind, digits, sizes, order, rest = match.groups(default="")
    bits = 8 if kind == "pred" else max(int(digits), 8)
    dimensions = [int(d) for d in sizes.split(",") if d]
    physical = [dimensions[int(d)] for d in reversed([d for d in order.split(",") if d])]
    if packed := re.search(r"E\((\d+)\)", rest):
        bits = int(packed[1])
    tiles = re.match(r"T((?:\([0-9,]+\))+)", rest)
    for tile in re.findall(r"\(([0-9,]+)\)", tiles[1] if tiles else ""):
        cut = [int(t) for t in tile.split(",")]
        physical = [1] * (len(cut) - len(physical)) + physical
        outer, inner = physical[: len(physical) - len(cut)], physical[len(physical) - len(cut) :]
        physical = [*outer, *(math.ceil(d / t) for d, t in zip(inner, cut)), *cut]
    return math.ceil(math.prod(physical) * bits / 8)


PROGRAMS = ["mlp_loss_and_gradient", "scan_rnn", "softmax", "fori", "switch", "bfloat16_matmul", "random_normal"]


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("target", [CpuTarget(), TpuTarget(), TpuTarget(pred_bits=1, vmem_bytes=3000)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_totals_of_programs(name: str, target: Target, on_device: bool) -> None:
    """Each buffer has the bytes that its shape's text says, totals are their sums, and every array that an instruction
    of the optimised module writes is in one of them."""
    module = parse(next(path for path in RECORDED if path.stem == name).read_text())
    if on_device:
        module = with_entry_on_device(module, target)
    bodies = FusedComputations()
    optimized, _ = pipeline(target, bodies).run(module)
    assignment = assign_buffers(optimized, bodies.can_share, fast_memory=target.fast_memory)
    report = report_of_program(assignment, target)
    sizes = [counted_bytes(b.shape.to_text()) for b in report.buffers if b.shape is not None]
    assert [b.physical_bytes for b in report.buffers if b.shape is not None] == sizes
    assert report.physical_bytes == sum(b.physical_bytes for b in report.buffers) > 0
    for space in report.spaces:
        here = [b for b in report.buffers if b.space == space.space]
        assert space.physical_bytes == sum(b.physical_bytes for b in here) and space.buffers == len(here)
        assert space.peak is not None and space.peak <= space.physical_bytes
        if target.fast_memory is not None and space.space == target.fast_memory.number:
            assert space.name == "VMEM" and space.peak <= target.fast_memory.size
    held = {holder for row in assignment.rows for holder in row.holders}
    written = report_as_written(optimized)
    assert {b.name for b in written.buffers if "constant" not in b.name} <= held


@pytest.mark.parametrize("dimensions", [(100_000, 2), (4096, 1), (64, 300, 2)])
def test_small_minor_dimensions_are_found_in_a_program(dimensions: tuple[int, ...]) -> None:
    """64 times and 128 times, and the order that helps."""
    shape = f"f32[{','.join(map(str, dimensions))}]"
    text = f"HloModule m\nENTRY e {{ x = {shape} parameter(0) ROOT y = {shape} exponential(x) }}"
    target = TpuTarget()
    optimized, _ = optimize(with_entry_on_device(parse(text), target), target)
    assignment = assign_buffers(optimized, lambda *_: False, fast_memory=target.fast_memory)
    report = report_of_program(assignment, target)
    assert len(report.buffers) == 2
    for buffer in report.buffers:
        assert buffer.factor >= 64
        assert buffer.better is not None and buffer.shape is not None
        assert buffer.better.byte_size < 3 * buffer.logical_bytes
        order = buffer.better.layout.minor_to_major
        assert dimensions[order[0]] == max(dimensions)
        physical = Shape.array(ElementType.F32, [dimensions[d] for d in reversed(order)])
        assert physical.with_layout(target.buffer_layout(physical)).byte_size == buffer.better.byte_size


def test_the_line_of_the_source_is_named() -> None:
    """Of a buffer as written, and of a fusion's after all passes."""
    text = """HloModule m
ENTRY e {
  x = f32[4096,2] parameter(0), metadata={op_name="x"}
  s = f32[4096,2] sine(x), metadata={op_name="jit(f)/sin" source_file="/home/me/model.py" source_line=7}
  ROOT y = f32[4096,2] cosine(s), metadata={op_name="jit(f)/cos" source_file="/home/me/model.py" source_line=8}
}"""
    report = report_as_written(parse(text))
    assert report.to_json()["buffers"][2]["source_line"] == 8
    lines = report_text(report).splitlines()
    assert any(line.endswith("  x, e") for line in lines)
    assert any(line.endswith("  s, e, jit(f)/sin, model.py:7") for line in lines)
    optimized, _ = optimize(parse(text), TpuTarget())
    shown = report_text(report_of_program(assign_buffers(optimized, lambda *_: False), TpuTarget()))
    assert ", model.py:8" in shown


# users' cases

CASES = {
    # https://github.com/jax-ml/jax/issues/7502: 16 GiB for 512 MiB of indices
    "s32[2048,1,128,128,4]{4,3,2,0,1:T(8,128)}": (32.0, 1.0),
    # of the kind of https://github.com/tensorflow/tensorflow/issues/30803: two channels, most minor, 64 times
    "f32[32,256,512,2]{3,2,1,0:T(8,128)}": (64.0, 1.0),
    "f32[32,128,32,64]{3,0,2,1:T(8,128)}": (2.0, 1.0),
    # a column
    "u32[12582912,1]{1,0:T(8,128)}": (128.0, 8.0),
    "s32[8388608,8,4]{2,1,0:T(8,128)}": (32.0, 1.0),
    "bf16[2048,1,2048,128]{0,1,3,2:T(4,128)(2,1)}": (4.0, 1.0),
}


@pytest.mark.parametrize("text", CASES)
def test_arrays_that_users_met(text: str) -> None:
    shape = Shape.parse(text)
    factor, best = CASES[text]
    assert shape.byte_size == factor * shape.logical_byte_size
    better = better_layout(shape)
    assert better is not None and better.byte_size == best * shape.logical_byte_size
    assert shape.with_layout(better.layout).byte_size == better.byte_size


# the search is exact


@st.composite
def tiled_shapes(draw: st.DrawFn) -> Shape:
    rank = draw(st.integers(0, 5))
    dimensions = draw(st.lists(st.integers(0, 9), min_size=rank, max_size=rank))
    order = draw(st.permutations(range(rank)))
    tiles = []
    for _ in range(draw(st.integers(0, 2))):
        sizes: list[int | None] = draw(st.lists(st.sampled_from([None, 1, 2, 3, 4, 8]), min_size=0, max_size=3))
        tiles.append(Tile((*sizes, draw(st.integers(1, 8)))))
    padded = draw(st.sampled_from([(), tuple(d + draw(st.integers(0, 2)) for d in dimensions)]))
    tail = draw(st.sampled_from([1, 1, 7]))
    layout = Layout(tuple(order), tuple(tiles), tail_padding_alignment_in_elements=tail, padded_dimensions=padded)
    return Shape.array(ElementType.F32, dimensions, layout)


@given(tiled_shapes())
def test_no_order_is_better_than_the_best(shape: Shape) -> None:
    layout = shape.array_layout
    sizes = [
        shape.with_layout(replace(layout, minor_to_major=order)).byte_size for order in permutations(range(shape.rank))
    ]
    better = better_layout(shape)
    if better is None:
        assert shape.byte_size == min(sizes)
    else:
        assert better.byte_size == min(sizes) < shape.byte_size == better.byte_size + better.saved
        assert shape.with_layout(better.layout).byte_size == better.byte_size


def test_all_orders_of_eight_dimensions() -> None:
    shape = Shape.parse("bf16[3,5,7,9,2,11,2,4]{7,6,5,4,3,2,1,0:T(8,128)(2,1)}")
    better = better_layout(shape)
    assert better is not None
    # only which two are the most minor matters, which the exhaustive test above says of any tiles
    pairs = [(a, b, *(d for d in range(8) if d not in (a, b))) for a, b in permutations(range(8), 2)]
    sizes = [shape.with_layout(replace(shape.array_layout, minor_to_major=order)).byte_size for order in pairs]
    assert better.byte_size == min(sizes)


def test_dimensions_that_need_not_move_stay() -> None:
    better = better_layout(Shape.parse("s32[2048,1,128,128,4]{4,3,2,0,1:T(8,128)}"))
    assert better is not None and better.layout.minor_to_major == (0, 3, 2, 4, 1)


def test_a_layout_without_padding_has_none_better() -> None:
    for text in ("f32[64,128]{1,0:T(8,128)}", "f32[3,5]{0,1}", "f32[]", "f32[7]{0:T(1024)}", "f32[0,3]{1,0:T(2,2)}"):
        assert better_layout(Shape.parse(text)) is None


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (96, "96 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (2**34, "16 GiB"),
     (-2048, "-2 KiB"), (2**62, "4 EiB"), (1000 * 2**20, "1000 MiB")],
)  # fmt: skip
def test_bytes_for_people(size: int, text: str) -> None:
    assert readable(size) == text
