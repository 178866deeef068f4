"""Positions of elements in the code generator: index functions of all layouts, loops over tiles, packed elements."""

from __future__ import annotations

import builtins
import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hloom.hlo.passes.layout.buffer_layouts import reshape_is_bitcast
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emit import canonical
from hloom.numba_backend.emit.physical_layouts import Digit, PhysicalLayout, physical_layout_of
from hloom.numba_backend.loops.statements import PointerParameter
from hloom.numba_backend.policy.fusions import emit_fusion
from hypothesis import given, settings
from hypothesis import strategies as st

from hloom import hlo
from support.guarded import small_pieces
from support.layouts import numbered, shapes


def place_at(digits: Sequence[Digit], index: Sequence[int]) -> int:
    """The result of the generated code."""
    result = 0
    for digit in digits:
        whole = index[digit.source] if isinstance(digit.source, int) else place_at(digit.source, index)
        value = whole // digit.divisor
        result = result * digit.extent + (value if digit.modulus is None else value % digit.modulus)
    return result


def row_major_place(sizes: Sequence[int], index: Sequence[int]) -> int:
    result = 0
    for size, component in zip(sizes, index, strict=True):
        result = result * size + component
    return result


@settings(max_examples=400)
@given(shapes())
def test_a_place_is_the_linear_index(shape: hlo.Shape) -> None:
    place = physical_layout_of(shape)
    kept = [size for size in shape.dimensions if size != 1]
    for index in product(*map(range, shape.dimensions)):
        squeezed = [i for i, size in zip(index, shape.dimensions, strict=True) if size != 1]
        found = row_major_place(kept, squeezed) if place is None else place_at(place.digits, squeezed)
        assert found == shape.physical_form.linear_index(index)


@settings(max_examples=400)
@given(shapes())
def test_dimensions_that_may_merge_lie_like_one(shape: hlo.Shape) -> None:
    place = physical_layout_of(shape)
    if place is None:
        return
    kept = [size for size in shape.dimensions if size != 1]
    groups: list[list[int]] = []
    for d in range(len(kept)):
        if d and place.may_merge(d - 1, kept[d]):
            groups[-1].append(d)
        else:
            groups.append([d])
    merged = place.merged(groups)
    for index in product(*map(range, kept)):
        together = [row_major_place([kept[d] for d in g], [index[d] for d in g]) for g in groups]
        assert place_at(merged.digits, together) == place_at(place.digits, index)


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("f32[1000]{0:T(1024)}", None),  # padding behind the last element is no other place
        ("f32[1,1000]{1,0:T(1,128)}", None),
        ("f32[40,128]{1,0:T(8,128)}", None),
        ("f32[40,100]{1,0:T(8,128)}", [(0, 1, None), (1, 1, None)]),
        ("f32[8,300]{1,0:T(8,128)}", [(1, 128, None), (0, 1, None), (1, 1, 128)]),
        ("bf16[30,300]{1,0:T(8,128)(2,1)}", [(0, 8, None), (1, 128, None), (0, 2, 4), (1, 1, 128), (0, 1, 2)]),
        ("f32[5,7,300]{2,1,0:T(8,128)}", [(0, 1, None), (2, 128, None), (1, 1, None), (2, 1, 128)]),
    ],
)
def test_places_are_no_more_than_they_must_be(text: str, digits: list[tuple[int, int, int | None]] | None) -> None:
    place = physical_layout_of(hlo.Shape.parse(text))
    found = None if place is None else [(d.source, d.divisor, d.modulus) for d in place.digits]
    assert found == digits


TILE = st.sampled_from(["", ":T(2,4)", ":T(2,4)(2,1)", ":T(4)", ":T(2,*,2)"])


@settings(max_examples=300)
@given(st.data(), TILE)
def test_a_reshape_that_is_called_a_bitcast_is_one(data: st.DataObject, tile: str) -> None:
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=3))
    count = math.prod(sizes)
    others = [s for n in (1, 2, 3) for s in product((1, 2, 3, 4, 6, 8, 16, 24), repeat=n) if math.prod(s) == count]
    target = data.draw(st.sampled_from(others or [tuple(sizes)]))

    def shape(dimensions: Sequence[int]) -> hlo.Shape:
        order = ",".join(map(str, range(len(dimensions) - 1, -1, -1)))
        return hlo.Shape.parse(f"s32[{','.join(map(str, dimensions))}]{{{order}{tile}}}")

    before, after = shape(sizes), shape(target)
    values = numbered(before)
    same = np.array_equal(hlo.to_physical(values, before), hlo.to_physical(values.reshape(target), after))
    if reshape_is_bitcast(before, after):
        assert same
    elif not tile:
        raise AssertionError("dense arrays are always a bitcast of one another")


def kernel_of(entry: str, body: str) -> str:
    module = hlo.parse(f"HloModule m, entry_computation_layout={{{entry}}}\n{body}")
    executable = NumbaCompiler().compile(module)
    (text,) = executable.kernels().values()
    return text[text.index("def ") :]


def test_loops_go_tile_by_tile_and_know_the_digits() -> None:
    text = kernel_of(
        "(f32[300,200]{1,0:T(8,128)}, f32[200]{0})->f32[300,200]{1,0:T(8,128)}",
        """ENTRY e { x = f32[300,200] parameter(0)  y = f32[200] parameter(1)
          b = f32[300,200] broadcast(y), dimensions={1}  ROOT r = f32[300,200] add(x, b) }""",
    )
    place = "((i_0 * m0 + j_0) * 8 + i_1) * 128 + j_1"
    assert [line.strip() for line in text.splitlines()[1:]] == [
        "for tile in range(lo, hi):",
        "j_0 = tile % m0",
        "i_0 = tile // m0",
        "for i_1 in range(minimum(8, n0 - i_0 * 8)):",
        "i = i_0 * 8 + i_1",
        "for j_1 in range(minimum(128, n1 - j_0 * 128)):",
        "j = j_0 * 128 + j_1",
        f"out[{place}] = x0[{place}] + x1[j]",
    ]


def test_arrays_that_lie_alike_are_one_loop_over_the_buffers() -> None:
    text = kernel_of(
        "(f32[300,200]{1,0:T(8,128)}, s32[300,200]{1,0:T(8,128)})->f32[300,200]{1,0:T(8,128)}",
        """ENTRY e { x = f32[300,200] parameter(0)  y = s32[300,200] parameter(1)
          z = f32[300,200] convert(y)  ROOT r = f32[300,200] add(x, z) }""",
    )
    assert [line.strip() for line in text.splitlines()[1:]] == [
        "for i in range(lo, hi):",
        "out[i] = x0[i] + float32(x1[i])",
    ]


def test_buffers_that_are_mostly_padding_are_not_gone_through_as_a_whole() -> None:
    text = kernel_of(
        "(f32[300,2]{1,0:T(8,128)})->f32[300,2]{1,0:T(8,128)}",
        "ENTRY e { x = f32[300,2] parameter(0)  ROOT r = f32[300,2] negate(x) }",
    )
    assert "out[i * 128 + j]" in text


@pytest.mark.parametrize("rows, unrolled", [(16, True), (30, True), (31, False)])
def test_rows_that_share_words_are_written_together(rows: int, unrolled: bool) -> None:
    """Where the last word of a column is not full there are loops."""
    shape = f"bf16[{rows},300]"
    text = kernel_of(
        f"({shape}{{1,0}})->{shape}{{1,0:T(8,128)(2,1)}}",
        f"ENTRY e {{ x = {shape} parameter(0)  ROOT r = {shape} negate(x) }}",
    )
    assert ("row1 = i_0 * 8 + i_1 * 2 + 1" in text) is unrolled
    assert ("for i_2 in range(" in text) is not unrolled


def test_new_sizes_are_the_same_kernel() -> None:
    def text(rows: int, columns: int) -> str:
        shape = f"f32[{rows},{columns}]"
        return kernel_of(
            f"({shape}{{1,0:T(8,128)}})->{shape}{{1,0:T(8,128)}}",
            f"ENTRY e {{ x = {shape} parameter(0)  ROOT r = {shape} reverse(x), dimensions={{0}} }}",
        )

    assert text(300, 200) == text(77, 1000) == text(4096, 513)


def test_a_transpose_into_another_order_of_tiles_is_no_kernel() -> None:
    module = hlo.parse(
        "HloModule m, entry_computation_layout={(f32[40,300]{1,0:T(8,128)})->f32[300,40]{0,1:T(8,128)}}\n"
        "ENTRY e { x = f32[40,300] parameter(0)  ROOT r = f32[300,40] transpose(x), dimensions={1,0} }"
    )
    executable = NumbaCompiler().compile(module)
    assert not executable.kernels()
    x = np.random.default_rng(0).standard_normal((40, 300), np.float32)
    np.testing.assert_array_equal(executable.execute([x])[0], x.T)


class Written(dict[int, int]):
    """A buffer that remembers which bytes were written."""

    def __missing__(self, byte: int) -> int:
        return 0


class Identities(dict[str, object]):
    """The functions that a kernel calls, to run its text as Python: only its writes matter here."""

    def __missing__(self, name: str) -> object:
        return getattr(builtins, name, lambda x: x)


PACKED = [
    "s4[301]{0:E(4)}", "u2[12,45]{1,0:E(2)}", "s4[7,5,33]{2,1,0:T(8,128)(8,1)E(4)}", "u4[9,11]{0,1:E(4)}",
    "pred[100,70]{1,0:T(32,128)(32,1)E(1)}", "s4[31,3]{1,0:T(3,3)E(4)}", "pred[200]{0:T(*,5)(3,2)E(1)}",
    "u2[20,10]{1,0:T(*,3)E(2)}", "s4[101,3]{0,1:T(8)(3,1)E(4)}", "pred[40,40]{1,0:T(2,4)E(1)}",
]  # fmt: skip


@settings(max_examples=200)
@given(st.sampled_from(PACKED).map(hlo.Shape.parse) | shapes(st.sampled_from([hlo.ElementType.S4, hlo.ElementType.U2])))
def test_threads_do_not_write_to_one_byte(shape: hlo.Shape) -> None:
    """Each iteration of the loop that is split over threads writes to bytes of its own."""
    if physical_layout_of(shape) is None or not shape.num_elements:
        return
    parameter = hlo.make_parameter(0, shape.with_default_layout())
    copy = hlo.make_instruction(hlo.Opcode.COPY, (parameter,), shape=shape)
    kernel = emit_fusion(canonical(hlo.HloComputation("c", (parameter, copy), copy)), {})
    scope = Identities(minimum=min)
    exec(kernel.source, scope)  # a kernel's text is Python
    run = scope[kernel.source[len("def ") : kernel.source.index("(")]]
    assert callable(run)
    sizes = [p.value for p in kernel.parameters if not isinstance(p, PointerParameter)]
    written: list[Written] = []
    for iteration in range(kernel.extent):
        written.append(Written())
        run(iteration, iteration + 1, defaultdict(int), written[-1], *sizes)
    places = {byte for bytes_ in written for byte in bytes_}
    expected = {
        shape.physical_form.linear_index(index) * shape.bits_per_element // 8
        for index in product(*map(range, shape.dimensions))
    }
    assert places == expected
    if not kernel.is_serial:
        assert sum(map(len, written)) == len(places)


@pytest.mark.parametrize("shape", PACKED)
def test_packed_arrays_on_threads(shape: str) -> None:
    """The smallest pieces there are, so that threads write next to each other all the time."""
    parsed = hlo.Shape.parse(shape)
    module = hlo.parse(
        f"HloModule m, entry_computation_layout={{({shape}, {shape})->{shape}}}\n"
        f"ENTRY e {{ x = {parsed} parameter(0)  y = {parsed} parameter(1)  ROOT r = {parsed} xor(x, y) }}"
    )
    with small_pieces():
        executable = NumbaCompiler().compile(module)
    rng = np.random.default_rng(1)
    high = 2 if parsed.element is hlo.ElementType.PRED else 2 ** (parsed.element.bit_width - 1)
    x, y = (rng.integers(0, high, parsed.dimensions).astype(parsed.element.dtype) for _ in range(2))
    expected = np.bitwise_xor(x.astype(np.int8), y.astype(np.int8))
    for _ in range(5):
        (result,) = executable.execute([x, y])
        np.testing.assert_array_equal(result.astype(np.int8), expected)


def test_a_copy_into_the_same_place_is_no_kernel() -> None:
    module = hlo.parse(
        "HloModule m ENTRY e { x = f32[256] parameter(0)  a = f32[256] sort(x), dimensions={0}, to_apply=less\n"
        "  ROOT r = f32[256] copy(a) }\n"
        "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }"
    )
    executable = NumbaCompiler().compile(module, target="tpu")
    assert not any("io0[i] = io0[i]" in text for text in executable.kernels().values())


def test_place_is_hashable() -> None:
    shape = hlo.Shape.parse("f32[30,300]{1,0:T(8,128)}")
    assert len({physical_layout_of(shape), physical_layout_of(shape)}) == 1
    assert isinstance(physical_layout_of(shape), PhysicalLayout)
