"""Whole arrays to buffers and back: against an oracle that pads, reshapes and transposes, for every element type."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import ElementType, Layout, PaddingValue, Shape, ShapeError, Tile
from hloom.hlo import physical_array as module
from hypothesis import given, settings
from hypothesis import strategies as st

from hloom import hlo
from support.layouts import numbered, physical_buffer, random_shape, shapes

E = ElementType
NDArray = np.ndarray[Any, Any]


@pytest.fixture(autouse=True, scope="module")
def no_memory_is_lucky() -> Iterator[None]:
    """`np.empty` gives memory full of 0xA5, so that unwritten places do not look right because of older contents."""
    real = np.empty

    def empty(*args: Any, **kwargs: Any) -> NDArray:
        array = real(*args, **kwargs)
        if array.dtype != object:
            array.reshape(-1).view(np.uint8)[...] = 0xA5
        return array

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "empty", empty)
        yield


def _bits(array: NDArray) -> NDArray:
    """The bytes of each element, to compare: NaN is NaN and -0.0 is not 0.0."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _packed(codes: NDArray, bits: int) -> NDArray:
    """Every 64 elements as one number, the first in its lowest bits; its bytes, the lowest first."""
    parts = []
    for begin in range(0, codes.size, 64):
        part = codes[begin : begin + 64].tolist()
        number = sum(code % 2**bits << (bits * i) for i, code in enumerate(part))
        parts.append(number.to_bytes(-(-len(part) * bits // 8), "little"))
    return np.frombuffer(b"".join(parts), np.uint8)


def _values(shape: Shape, seed: int) -> NDArray:
    """Any bits that the element type has: NaN, infinities and subnormal numbers too."""
    rng = np.random.default_rng(seed)
    dtype = shape.element.dtype
    raw = rng.integers(0, 256, (*shape.dimensions, dtype.itemsize), np.uint8)
    if shape.element.bit_width < 8:
        raw &= 2**shape.element.bit_width - 1
    return raw.view(dtype).reshape(shape.dimensions)


# Worked examples of the pages


def test_padded_2_by_3_in_3_by_5() -> None:
    shape = Shape.parse("s8[2,3]{0,1:PD(3,5)PV(zero)}")
    a, b, c, d, e, f = range(1, 7)
    buffer = hlo.to_physical(np.array([[a, b, c], [d, e, f]], np.int8), shape)
    assert buffer.tolist() == [a, d, 0, b, e, 0, c, f, 0, 0, 0, 0, 0, 0, 0]
    assert buffer.reshape(5, 3).T.tolist() == [[a, b, c, 0, 0], [d, e, f, 0, 0], [0, 0, 0, 0, 0]]


def test_figure_1() -> None:
    shape = Shape.parse("s32[3,5]{1,0:T(2,2)}")
    array = np.arange(1, 16, dtype=np.int32).reshape(3, 5)
    buffer = hlo.to_physical(array, shape)
    assert buffer.tolist() == [1, 2, 6, 7, 3, 4, 8, 9, 5, 0, 10, 0, 11, 12, 0, 0, 13, 14, 0, 0, 15, 0, 0, 0]
    assert buffer[17] == array[2, 3]


def test_figure_2() -> None:
    array = np.arange(32, dtype=np.int32).reshape(4, 8)
    buffer = hlo.to_physical(array, Shape.parse("s32[4,8]{1,0:T(2,4)(2,1)}"))
    assert buffer[:16].tolist() == [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]


def test_combining_dimensions() -> None:
    array = np.arange(2 * 7 * 8 * 11 * 10, dtype=np.int32).reshape(2, 7, 8, 11, 10)
    buffer = hlo.to_physical(array, Shape.parse("s32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}"))
    assert (buffer == hlo.to_physical(array.reshape(112, 110), Shape.parse("s32[112,110]{1,0:T(2,3)}"))).all()


def test_16_bit_format_pairs_rows_in_words() -> None:
    """ "One element from an even row and one element from an odd row are put in one 32-bit element."""
    array = np.arange(16 * 256, dtype=np.uint16).reshape(16, 256)
    buffer = hlo.to_physical(array, Shape.parse("u16[16,256]{1,0:T(8,128)(2,1)}"))
    words = buffer.view("<u4").reshape(2, 2, 4, 128)
    assert (words & 0xFFFF == array.reshape(2, 4, 2, 2, 128)[:, :, 0].transpose(0, 2, 1, 3)).all()
    assert (words >> 16 == array.reshape(2, 4, 2, 2, 128)[:, :, 1].transpose(0, 2, 1, 3)).all()


def test_8_bit_format_puts_4_rows_in_words() -> None:
    array = np.arange(8 * 128, dtype=np.uint32).astype(np.uint8).reshape(8, 128)
    buffer = hlo.to_physical(array, Shape.parse("u8[8,128]{1,0:T(8,128)(4,1)}"))
    assert (buffer.reshape(2, 128, 4).transpose(0, 2, 1).reshape(8, 128) == array).all()


def test_1_bit_format_puts_32_rows_in_words() -> None:
    array = np.random.default_rng(0).integers(0, 2, (32, 128)).astype(bool)
    buffer = hlo.to_physical(array, Shape.parse("pred[32,128]{1,0:T(32,128)(32,1)E(1)}"))
    assert buffer.dtype == np.uint8 and buffer.size == 32 * 128 // 8
    words = buffer.view("<u4")
    assert ((words >> np.arange(32)[:, np.newaxis] & 1) == array).all()


def test_nibbles_are_packed_from_the_low_bits() -> None:
    array = np.array([1, -2, 3, -4, 5]).astype(ml_dtypes.int4)
    buffer = hlo.to_physical(array, Shape.parse("s4[5]{0:E(4)}"))
    assert buffer.tolist() == [0xE1, 0xC3, 0x05]


@pytest.mark.parametrize("name", ["s4", "u4", "s2", "u2"])
def test_packing_is_xlas(name: str) -> None:
    """XLA splits the bytes of a packed buffer into the elements that went in."""
    pytest.importorskip("jax")
    from support.xla_oracle import run_hlo_text

    bits = int(name[1])
    shape = Shape.parse(f"{name}[50,{8 // bits}]{{1,0:E({bits})}}")
    array = _values(shape, bits)
    text = f"HloModule m\nENTRY e {{ x = u8[50] parameter(0)\n ROOT r = {shape} bitcast-convert(x) }}"
    (elements,) = run_hlo_text(text, hlo.to_physical(array, shape))
    assert (_bits(elements) == _bits(array)).all()


# Any layout


def _check(shape: Shape, array: NDArray) -> None:
    layout = shape.array_layout
    fill = module.padding_element(shape.element, layout.padding_value)
    expected = physical_buffer(array.view(f"V{array.itemsize}"), layout, fill.view(f"V{array.itemsize}"))
    buffer = hlo.to_physical(array, shape)
    if shape.bits_per_element < 8:
        assert (buffer == _packed(expected.view(np.uint8), shape.bits_per_element)).all()
        assert buffer.dtype == np.uint8
    else:
        assert (_bits(buffer) == _bits(expected)).all()
        assert buffer.dtype == shape.element.dtype
    assert buffer.nbytes == shape.byte_size and buffer.ndim == 1
    for given_buffer in (buffer, buffer.view(np.uint8)):
        back = hlo.from_physical(given_buffer, shape)
        assert back.dtype == shape.element.dtype and back.shape == shape.dimensions and back.flags.c_contiguous
        assert (_bits(back) == _bits(array)).all()


@given(shapes(st.sampled_from(ElementType)), st.integers(0, 2**32))
@settings(deadline=None)
def test_any_type_in_any_layout(shape: Shape, seed: int) -> None:
    _check(shape, _values(shape, seed))


@pytest.mark.parametrize("element_type", ElementType)
def test_every_element_type(element_type: ElementType) -> None:
    for n, text in enumerate(("[5,7]{0,1:T(2,4)(2,1)}", "[2,3,5]{1,2,0:PD(3,3,6)T(*,2)L(5)}", "[]{:T(4)}", "[9]{0}")):
        shape = Shape.parse(element_type.value + text)
        _check(shape, _values(shape, n))


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_every_packed_size(bits: int) -> None:
    for name in ("pred", "s1", "u1", "s2", "u2", "s4", "u4", "f4e2m1fn"):
        for text in (f"[3,37]{{1,0:E({bits})}}", f"[33,130]{{0,1:T(32,128)(8,1)L(3)E({bits})}}"):
            if Shape.parse(f"{name}[]").element.bit_width <= bits:
                shape = Shape.parse(name + text)
                _check(shape, _values(shape, bits))


def test_random_layouts() -> None:
    rng = random.Random(41)
    seen: set[Shape] = set()
    while len(seen) < 3000:
        shape = random_shape(rng)
        if shape in seen:
            continue
        seen.add(shape)
        array = numbered(shape)
        buffer = hlo.to_physical(array, shape)
        assert np.array_equal(buffer, physical_buffer(array, shape.array_layout, 0)), shape.to_text()
        assert np.array_equal(hlo.from_physical(buffer, shape), array), shape.to_text()


@pytest.mark.slow
def test_8000_random_layouts_of_small_types() -> None:
    rng = random.Random(42)
    for n in range(8000):
        shape = random_shape(rng, rng.choice([E.S4, E.PRED, E.U2, E.S8]))
        _check(shape, _values(shape, n))


@pytest.mark.parametrize(
    "text",
    [
        "f32[300,700]{1,0:T(8,128)}",
        "f32[300,700]{0,1:T(8,128)}",
        "f32[300,700]{0,1}",
        "f32[289,700]{0,1}",
        "bf16[301,700]{1,0:T(8,128)(2,1)}",
        "bf16[301,700]{0,1:T(8,128)(2,1)}",
        "s8[301,700]{1,0:T(8,128)(4,1)}",
        "pred[301,700]{1,0:T(32,128)(32,1)}",
        "pred[301,700]{1,0:T(32,128)(32,1)E(1)}",
        "s4[301,701]{1,0:T(64,128)(8,1)E(4)}",
        "c128[60,80,9]{0,2,1:T(8,128)}",
        "f32[7,60,80,9]{0,2,3,1:T(*,8,*,128)L(4096)}",
        "f64[7,60,80,9]{3,2,1,0:PD(8,61,80,16)T(2,2)(2,2,1)}",
        "u8[65,3,5,257]{3,0,1,2}",
    ],
)
def test_large_arrays(text: str) -> None:
    """Large enough for every way in which a copy is cut into parts."""
    shape = Shape.parse(text)
    assert shape.logical_byte_size > 2 * module._LARGE
    _check(shape, _values(shape, 3))


@pytest.mark.parametrize("limit", [0, 1, 5, 10**6])
def test_many_boxes(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array that no tile divides, cut into boxes or padded first: the same."""
    monkeypatch.setattr(module, "MAX_BOXES", limit)
    rng = random.Random(limit)
    for text in ("[5,5,5,5,5,5,5]{0,6,3,4,2,5,1:T(2,2,2,2,2,2,2)(3,3)}", "[3,4,5,6]{0,1,2,3:T(*,4,*,7)(*,5)L(3)}"):
        _check(Shape.parse("s16" + text), _values(Shape.parse("s16" + text), limit))
    for _ in range(300):
        shape = random_shape(rng)
        _check(shape, numbered(shape))


# Input of all kinds


def test_any_strides() -> None:
    base = np.arange(40 * 60, dtype=np.int32).reshape(40, 60)
    shape = Shape.parse("s32[13,19]{1,0:T(4,8)}")
    for view in (
        base[1:40:3, ::-3][:13, :19],
        base.T[:13, :19],
        base[5:18, 40:59],
        np.broadcast_to(base[:1, :19], (13, 19)),
    ):
        buffer = hlo.to_physical(view, shape)
        assert (buffer == physical_buffer(view.copy(), shape.array_layout, 0)).all()
        doubled = np.repeat(buffer, 2)[::2]
        assert (hlo.from_physical(doubled, shape) == view).all()
    read_only = base[:13, :19].copy()
    read_only.flags.writeable = False
    assert (hlo.from_physical(hlo.to_physical(read_only, shape), shape) == read_only).all()


def test_both_byte_orders() -> None:
    shape = Shape.parse("f32[3,5]{1,0:T(2,2)}")
    array = np.arange(15, dtype=np.float32).reshape(3, 5)
    buffer = hlo.to_physical(array.astype(">f4"), shape)
    assert buffer.dtype == np.float32 and buffer.dtype.isnative
    assert (buffer == hlo.to_physical(array, shape)).all()
    assert (hlo.from_physical(buffer.astype(">f4"), shape) == array).all()


def test_the_result_is_new() -> None:
    array = np.zeros((2, 3), np.float32)
    for text in ("f32[2,3]{1,0}", "f32[2,3]{0,1}"):
        buffer = hlo.to_physical(array, Shape.parse(text))
        assert not np.may_share_memory(buffer, array)
        assert not np.may_share_memory(hlo.from_physical(buffer, Shape.parse(text)), buffer)


@pytest.mark.parametrize("text", ["f32[]", "f32[]{:T(8,128)}", "f32[0]{0:T(128)}", "f32[3,0,2]{0,1,2:T(2,2)L(7)}"])
def test_scalars_and_empty_arrays(text: str) -> None:
    shape = Shape.parse(text)
    _check(shape, np.ones(shape.dimensions, np.float32))


def test_empty_arrays_may_have_padding() -> None:
    shape = Shape.parse("s32[0,2]{1,0:PD(2,2)PV(one)}")
    assert hlo.to_physical(np.zeros((0, 2), np.int32), shape).tolist() == [1, 1, 1, 1]
    assert hlo.from_physical(np.ones(4, np.int32), shape).shape == (0, 2)


@pytest.mark.parametrize(
    ("element_type", "value", "expected"),
    [
        (E.F32, PaddingValue.UNKNOWN_PAD, 0.0),
        (E.F32, PaddingValue.ONE_PAD, 1.0),
        (E.F32, PaddingValue.LOWEST_PAD, -np.inf),
        (E.BF16, PaddingValue.HIGHEST_PAD, np.inf),
        (E.F8E4M3FN, PaddingValue.LOWEST_PAD, -448.0),
        (E.F8E8M0FNU, PaddingValue.ONE_PAD, 1.0),
        (E.F8E8M0FNU, PaddingValue.LOWEST_PAD, 2.0**-127),
        (E.S4, PaddingValue.LOWEST_PAD, -8),
        (E.S1, PaddingValue.LOWEST_PAD, -1),
        (E.U2, PaddingValue.HIGHEST_PAD, 3),
        (E.S64, PaddingValue.HIGHEST_PAD, 2**63 - 1),
        (E.U64, PaddingValue.HIGHEST_PAD, 2**64 - 1),
        (E.PRED, PaddingValue.LOWEST_PAD, False),
        (E.PRED, PaddingValue.HIGHEST_PAD, True),
        (E.C64, PaddingValue.ONE_PAD, 1.0),
    ],
)
def test_padding_values(element_type: ElementType, value: PaddingValue, expected: Any) -> None:
    """In all padding: of dimensions, of tiles, of the tail."""
    layout = Layout((1, 0), (Tile((2, 4)),), 0, 0, 64, (3, 5), value)
    shape = Shape.array(element_type, (2, 3), layout)
    buffer = hlo.to_physical(np.zeros((2, 3), element_type.dtype), shape)
    padding = [v for place, v in enumerate(buffer.tolist()) if hlo.multi_index(shape, place) is None]
    assert len(padding) == 64 - 6 and all(v == expected for v in padding)


# Bad input


@pytest.mark.parametrize(
    ("label", "array", "text"),
    [
        ("to_physical_c1", np.zeros(3, np.float32), "(f32[3])"),
        ("to_physical_c1", np.zeros(3, np.float32), "token[]"),
        ("to_physical_c2", np.zeros(4, np.float32), "f32[3]"),
        ("to_physical_c2", np.zeros((3, 1), np.float32), "f32[3]"),
        ("to_physical_c3", np.zeros(3, np.float64), "f32[3]"),
        ("to_physical_c3", np.zeros(3, np.uint16), "bf16[3]"),
    ],
)
def test_arrays_that_do_not_fit(label: str, array: NDArray, text: str) -> None:
    with pytest.raises(ShapeError) as caught:
        hlo.to_physical(array, Shape.parse(text))
    assert caught.value.label == label


@pytest.mark.parametrize(
    ("label", "buffer", "text"),
    [
        ("from_physical_c1", np.zeros(3, np.float32), "(f32[3])"),
        ("from_physical_c2", np.zeros(3, np.float32), "f32[3]{0:T(4)}"),
        ("from_physical_c2", np.zeros((2, 2), np.float32), "f32[3]{0:T(4)}"),
        ("from_physical_c2", np.zeros(15, np.uint8), "f32[3]{0:T(4)}"),
        ("from_physical_c2", np.zeros(3, np.uint8), "s4[3]{0:E(4)}"),
        ("from_physical_c3", np.zeros(4, np.int32), "f32[3]{0:T(4)}"),
        ("from_physical_c3", np.zeros(3, ml_dtypes.int4), "s4[3]{0:E(4)}"),
    ],
)
def test_buffers_that_do_not_fit(label: str, buffer: NDArray, text: str) -> None:
    with pytest.raises(ShapeError) as caught:
        hlo.from_physical(buffer, Shape.parse(text))
    assert caught.value.label == label
