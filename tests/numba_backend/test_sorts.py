"""Sorts on the Numba backend: by digits or by merging, which comparators are recognised, and invalid comparators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hloom.hlo import (
    ElementType,
    HloComputation,
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_module,
    make_parameter,
)
from hloom.hlo import Opcode as O
from hloom.hlo.ops.elementwise import ComparisonType
from hloom.hlo.ops.sort import SortAttributes, TopKAttributes
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emit import buckets, long_sort, network_sort, radix_sort
from hloom.numba_backend.emit.sort_keys import keys_of
from hloom.numba_backend.lowering_rules import sort as rows

from hloom import hlo
from hloom.backend_check.computations import D, compare
from hloom.backend_check.op_case import FLOATS, INTEGERS, make_case, shape_of
from hloom.backend_check.op_case import Array as Operand
from hloom.backend_check.op_cases_sort import comparator, few, parts, plain
from hloom.backend_check.op_table import build_module
from hloom.backend_check.op_values import NDArray
from tests.support.guarded import GuardedProgram, small_pieces

E = ElementType


def _sort(types: Sequence[ElementType], dims: tuple[int, ...], axis: int, by: HloComputation) -> hlo.HloModule:
    results = [shape_of(t, dims) for t in types]
    result = results[0] if len(results) == 1 else hlo.Shape.tuple(results)
    attributes = SortAttributes(axis, by, is_stable=True)
    return build_module(make_case(O.SORT, [Operand(t, dims, few) for t in types], result, attributes))


def _one_of(module: hlo.HloModule, k: int) -> hlo.HloModule:
    """The module with one of its sort's results."""
    element = make_get_tuple_element(module.entry.root, k)
    return make_module("one", make_computation("main", element, module.entry.parameters))


def _bits(array: NDArray) -> NDArray:
    return np.ascontiguousarray(array).view(np.uint8)


def _values(t: ElementType, dims: tuple[int, ...], rng: np.random.Generator) -> NDArray:
    """Any bits, many zeros of both signs and many NaN."""
    count = int(np.prod(dims))
    if t is E.PRED:
        return rng.integers(0, 2, dims).astype(bool)
    values = rng.integers(0, 256, count * t.byte_width, dtype=np.uint8).view(t.dtype).copy()
    if t.is_floating:
        with np.errstate(all="ignore"):
            values = np.where(np.isnan(values), values.dtype.type(1), values)
        kinds = rng.integers(0, 10, count)
        for kind, special in enumerate((0.0, -0.0, np.nan)):
            values[kinds == kind] = np.asarray(special).astype(t.dtype)
    return values.reshape(dims)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", ["network", "radix", "merges"])
@pytest.mark.parametrize("t", [E.PRED, *INTEGERS, *FLOATS], ids=lambda t: t.value)
def test_all_ways_give_the_stable_order(t: ElementType, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way != "network":
        monkeypatch.setattr(network_sort, "MOST_SHORT", 0)
        monkeypatch.setattr(network_sort, "MOST_LONG", 0)
        monkeypatch.setattr(radix_sort, "LEAST_PER_DIGIT", 0 if way == "radix" else 1 << 40)
    rng = np.random.default_rng(0)
    dims, axis = (4, 90, 2), 1
    descending = plain([t, E.U8], D.GT, kind=ComparisonType.TOTALORDER if t.is_floating else None)
    for types, by in (
        ([t], comparator([t])), ([t, E.U8], descending), ([E.U8, t, t], comparator([E.U8, t, t], 2)),
    ):  # fmt: skip
        module = _sort(types, dims, axis, by)
        arguments = [_values(x, dims, rng) for x in types]
        executable = NumbaCompiler().compile(module)
        text = "".join(executable.kernels().values())
        long_keys = len(types) == 3 or (len(types) == 2 and t.bit_width == 64)  # two keys, or no room for a place
        assert ("radix_sort" in text) == (way == "radix" or (way == "network" and long_keys))
        assert ("network_sort" in text) == (way == "network" and not long_keys)
        for got, wanted in zip(executable.execute(arguments), hlo.evaluate(module, *arguments), strict=True):
            np.testing.assert_array_equal(_bits(got), _bits(wanted))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("t", "threads"), [(E.F32, 1), *[(t, 64) for t in (E.PRED, E.S8, E.U64, E.BF16, E.F32, E.F64)]], ids=str
)
def test_long_rows_in_blocks(t: ElementType, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block, or many with short or empty blocks at the end; digits of both widths; elements of 32 bits in one word
    with their keys; on memory with guards."""
    monkeypatch.setattr(long_sort, "LEAST", 1)
    monkeypatch.setattr(long_sort, "_BLOCK", 7)
    monkeypatch.setattr(long_sort, "_BLOCK_PER_VALUE", 0)
    monkeypatch.setattr(rows, "get_num_threads", lambda: threads)
    rng = np.random.default_rng(3)
    kind = ComparisonType.TOTALORDER if t.is_floating else None
    descending = plain([t, E.U8], D.GT, kind=kind)
    dims, axis = ((3, 50, 2), 1) if threads > 1 else ((90,), 0)
    for wide, types, by in (
        (True, [t], comparator([t])), (False, [t, E.U8], descending),
        (False, [E.U8, t, t], comparator([E.U8, t, t], 2)),
        (True, [t, E.S16, E.F64], comparator([t, E.S16, E.F64])),
        *[(True, [t, word], plain([t, word], D.GT, kind=kind)) for word in (E.U32, E.S32, E.F32)],
        (True, [E.F32, t], comparator([E.F32, t])),
    ):  # fmt: skip
        monkeypatch.setattr(long_sort, "_wide_bytes", lambda wide=wide: 1 << 20 if wide else 0)
        module = _sort(types, dims, axis, by)
        with small_pieces():
            executable, guarded = NumbaCompiler().compile(module), GuardedProgram(module)
        text = "".join(executable.kernels().values())
        assert "sort_move" in text and "sort_divide" not in text
        for least in (False, True):
            arguments = [_values(x, dims, rng) for x in types]
            if least:  # numbers that agree in most digits
                arguments = [rng.integers(0, 5, dims).astype(x.dtype) for x in types]
            for got, wanted in zip(guarded.run(arguments), hlo.evaluate(module, *arguments), strict=True):
                np.testing.assert_array_equal(_bits(got), _bits(wanted))


def _keys(kind: str, count: int, rng: np.random.Generator) -> NDArray:
    """32 bits each."""
    match kind:
        case "any":
            found = rng.integers(0, 1 << 32, count)
        case "equal":
            found = np.full(count, 77)
        case "small":  # the uppermost digit in which they differ is the lowest of all
            found = rng.integers(0, 1 << 11, count)
        case "middle":
            found = rng.integers(0, 1 << 20, count)
        case "one apart":  # one bucket with all but one
            found = np.where(np.arange(count) == count // 2, (1 << 32) - 1, rng.integers(0, 1 << 19, count))
        case "two buckets":
            found = rng.integers(0, 2, count) << 21 | rng.integers(0, 1 << 5, count)
        case _:  # buckets of every eighth digit, of a few and of many elements
            found = (rng.geometric(0.05, count) & 0xFF) << 24 | rng.integers(0, 3, count) << 10 | 5
    return found.astype(np.uint32)


@pytest.mark.parametrize(("ranked", "shares"), [(256, 1 / 64), (4, 1 / 64), (256, 1 / 8), (256, 2)])
@pytest.mark.parametrize("kind", ["any", "equal", "small", "middle", "one apart", "two buckets", "few and many"])
def test_rows_are_divided_into_buckets(kind: str, ranked: int, shares: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets of up to `ranked` elements by ranks, others by digits; the whole row by digits if one of them is too
    large; keys alone, with a word that moves with them, or with the numbers of elements; stretches without a bucket; on
    memory with guards."""
    for name, value in (
        ("LEAST", 1), ("_BLOCK", 7), ("_BLOCK_PER_VALUE", 0), ("_STRETCH", 9), ("_SHARES_OF_BUCKET", shares),
    ):  # fmt: skip
        monkeypatch.setattr(long_sort, name, value)
    monkeypatch.setattr(buckets, "RANKED", ranked)
    monkeypatch.setattr(rows, "get_num_threads", lambda: 64)
    rng = np.random.default_rng(5)
    for types, dims, axis, number in (
        ([E.U32], (150, 1), 0, 0), ([E.S32, E.F32], (300,), 0, 1), ([E.F32, E.S32], (1, 200), 1, 0),
        ([E.U32, E.S16, E.F64], (130,), 0, 1), ([E.U32, E.S16, E.U32], (130,), 0, 0),
    ):  # fmt: skip
        module = _sort(types, dims, axis, comparator(types))
        if len(types) == 2:
            module = _one_of(module, number)
        with small_pieces():
            executable, guarded = NumbaCompiler().compile(module), GuardedProgram(module)
        assert "sort_divide" in "".join(executable.kernels().values())
        arguments = [_values(t, dims, rng) for t in types]
        arguments[0] = _keys(kind, int(np.prod(dims)), rng).reshape(dims).view(types[0].dtype)
        with np.errstate(invalid="ignore"):
            wanted = hlo.evaluate(module, *arguments)
        for got, one in zip(guarded.run(arguments), wanted, strict=True):
            np.testing.assert_array_equal(_bits(got), _bits(one))


@pytest.mark.parametrize(("size", "threads", "wide", "blocks"), [
    (100_000, 1, True, 1), (100_000, 2, True, 4), (100_000, 64, True, 12), (40_000, 2, True, 2), (40_000, 2, False, 4),
    (1_000_000, 2, True, 8), (1_000_000, 2, False, 8),
])  # fmt: skip
def test_how_many_blocks_a_row_has(
    size: int, threads: int, wide: bool, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_sort, "_wide_bytes", lambda: 1 << 40 if wide else 0)
    module = _sort([E.U32], (size,), 0, comparator([E.U32]))
    sort = long_sort.long_sort_of(module.entry.root, threads, [0])
    assert sort is not None
    assert sort.blocks == blocks


@pytest.mark.parametrize("threads", [1, 64])
def test_results_that_nothing_reads_are_not_computed(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words, beside the keys, as numbers, and with two keys; of the first case also the keys alone."""
    monkeypatch.setattr(long_sort, "LEAST", 1)
    monkeypatch.setattr(long_sort, "_BLOCK", 7)
    monkeypatch.setattr(long_sort, "_BLOCK_PER_VALUE", 0)
    monkeypatch.setattr(rows, "get_num_threads", lambda: threads)
    rng = np.random.default_rng(4)
    dims, axis = ((3, 50, 2), 1) if threads > 1 else ((90,), 0)
    for types, keys, one, elements in (
        ([E.F32, E.S32], 1, 1, 0), ([E.F32, E.S32], 1, 0, 2), ([E.S32, E.F32], 1, 1, 0), ([E.F64, E.U8], 1, 1, 0),
        ([E.F32, E.S16, E.F64], 1, 2, 1), ([E.F64, E.S16, E.F64], 1, 1, 1), ([E.F32, E.S32, E.U8], 2, 2, 1),
    ):  # fmt: skip
        module = _one_of(_sort(types, dims, axis, comparator(types, keys)), one)
        with small_pieces():
            executable, guarded = NumbaCompiler().compile(module), GuardedProgram(module)
        text = "".join(executable.kernels().values())
        assert "sort_move" in text
        assert "sort_merged" not in text or one == 0
        assert text.count("def sort_elements") == elements
        for agree in (False, True):  # in most digits
            arguments = [rng.integers(0, 5, dims).astype(x.dtype) if agree else _values(x, dims, rng) for x in types]
            (got,), (wanted,) = guarded.run(arguments), hlo.evaluate(module, *arguments)
            np.testing.assert_array_equal(_bits(got), _bits(wanted))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dims", [(8, 2), (9, 3), (33, 16), (17, 300), (20, 1024), (2, 5, 17, 4)], ids=str)
def test_networks_of_all_sizes(dims: tuple[int, ...]) -> None:
    """Blocks that overlap, rows along any dimension, lengths that are no powers of two, on memory with guards."""
    rng = np.random.default_rng(2)
    for axis in {len(dims) - 1, 1}:
        for types in ([E.F32], [E.F64], [E.S16, E.F64]):
            module = _sort(types, dims, axis, comparator(types))
            arguments = [_values(t, dims, rng) for t in types]
            with small_pieces():
                executable = NumbaCompiler().compile(module)
                results = executable.execute(arguments)
            assert "network_sort" in "".join(executable.kernels().values())
            for got, wanted in zip(results, hlo.evaluate(module, *arguments), strict=True):
                np.testing.assert_array_equal(_bits(got), _bits(wanted))


@pytest.mark.parametrize("dims", [(20000,), (200, 70), (3, 9000)], ids=str)
def test_large_rows_and_many_rows(dims: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    types = [E.F32, E.S32]
    module = _sort(types, dims, len(dims) - 1, comparator(types))
    arguments = [_values(t, dims, rng) for t in types]
    order = np.argsort(arguments[0], axis=-1, kind="stable")
    with small_pieces():
        values, payload = NumbaCompiler().compile(module).execute(arguments)
    np.testing.assert_array_equal(_bits(values), _bits(np.take_along_axis(arguments[0], order, -1)))
    np.testing.assert_array_equal(payload, np.take_along_axis(arguments[1], order, -1))


def _binary(direction: D) -> HloComputation:
    return plain([E.S32], direction)


def _constant(value: bool) -> HloComputation:
    parameters = [make_parameter(n, shape_of(E.S32), f"p{n}") for n in range(2)]
    return make_computation("constant", make_constant(np.bool_(value)), parameters)


def _scrambled() -> HloComputation:
    """(a * 1103515245 ^ b * 12345) < 0: as good as a coin."""
    x, y = (make_parameter(n, shape_of(E.S32), f"p{n}") for n in range(2))
    p = make_instruction(O.MULTIPLY, [x, make_constant(np.int32(1103515245))])
    q = make_instruction(O.MULTIPLY, [y, make_constant(np.int32(12345))])
    root = compare(D.LT, make_instruction(O.XOR, [p, q]), make_constant(np.int32(0)))
    return make_computation("scrambled", root, [x, y])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "by", [_constant(True), _constant(False), _binary(D.NE), _binary(D.GE), _binary(D.EQ), _scrambled()],
    ids=["true", "false", "ne", "ge", "eq", "scrambled"],
)  # fmt: skip
def test_a_comparator_that_is_no_order_permutes(by: HloComputation) -> None:
    rng = np.random.default_rng(2)
    for dims in ((7,), (8,), (9,), (1000,), (40, 33)):
        module = _sort([E.S32], dims, 0, by)
        values = rng.integers(-9, 9, dims).astype(np.int32)
        (result,) = NumbaCompiler().compile(module).execute([values])
        np.testing.assert_array_equal(np.sort(result, axis=0), np.sort(values, axis=0))
        (result,) = hlo.evaluate(module, values)
        np.testing.assert_array_equal(np.sort(result, axis=0), np.sort(values, axis=0))


def test_keys_that_are_recognised() -> None:
    types = [E.F32, E.S32, E.C64]
    assert [k.operand for k in keys_of(comparator(types, 3)) or ()] == [0, 1, None, None]
    (key,) = keys_of(plain([E.S16, E.U8], D.GT, key=1)) or ()
    assert (key.operand, key.descending, key.bits) == (1, True, 8)
    swapped = plain([E.S16], D.LT)
    x, y = swapped.parameters
    (key,) = keys_of(make_computation("swapped", compare(D.LT, y, x), [x, y])) or ()
    assert key.descending
    chosen = make_instruction(O.SELECT, [compare(D.NE, x, y), compare(D.LT, x, y), make_constant(np.bool_(False))])
    assert keys_of(make_computation("chosen", chosen, [x, y])) is None


def test_near_misses_of_keys() -> None:
    x, y, p, q = (make_parameter(n, shape_of(E.F32), f"p{n}") for n in range(4))
    less, tie = compare(D.LT, x, y), compare(D.EQ, x, q)
    rest = make_instruction(O.AND, [tie, compare(D.LT, p, q)])
    for root in (
        compare(D.LE, x, y), compare(D.LT, x, q), compare(D.LT, x, x), make_instruction(O.OR, [less, rest]),
        make_instruction(O.AND, [less, compare(D.LT, p, q)]),
        compare(D.LT, make_instruction(O.NEGATE, [x]), y), compare(D.LT, parts(x)[0], y),
    ):  # fmt: skip
        assert keys_of(make_computation("near_miss", root, [x, y, p, q])) is None


def test_a_sort_in_a_loop_stays_native() -> None:
    executable = NumbaCompiler().compile(
        hlo.parse("""HloModule m
        less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
        body { s = (s32[], f32[50]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          x = f32[50] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
          y = f32[50] sort(x), dimensions={0}, to_apply=less  z = f32[50] negate(y)
          ROOT t = (s32[], f32[50]) tuple(j, z) }
        condition { s = (s32[], f32[50]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          n = s32[] constant(5)  ROOT r = pred[] compare(i, n), direction=LT }
        ENTRY e { x = f32[50] parameter(0)  z = s32[] constant(0)  s = (s32[], f32[50]) tuple(z, x)
          w = (s32[], f32[50]) while(s), condition=condition, body=body
          ROOT r = f32[50] get-tuple-element(w), index=1 }""")
    )
    x = np.random.default_rng(3).standard_normal(50).astype(np.float32)
    np.testing.assert_array_equal(executable.execute([x])[0], -np.sort(x))
    assert "callback" not in executable._program.to_text()


@pytest.mark.parametrize("t", [E.F32, E.F64, E.S32, E.U32, E.S64, E.BF16, E.U8], ids=str)
@pytest.mark.parametrize("largest", [True, False])
def test_topk_with_and_without_columns(t: ElementType, largest: bool) -> None:
    """Rows that are a multiple of a block, and others; the best elements in any order, at the end, or all equal."""
    rng = np.random.default_rng(7)
    for k, size in ((1, 128), (16, 131), (9, 160), (16, 127), (17, 383), (17, 384), (64, 1000), (5, 1030), (100, 2700)):
        x = _values(t, (6, size), rng)
        if t is not E.BF16:
            x[1] = np.sort(x[1])
            x[2] = np.sort(x[2])[::-1]
        x[3] = x[0, 0]
        x[4] = np.zeros((), x.dtype)
        x[4, -1] = 1
        operand = make_parameter(0, hlo.Shape.array(t, x.shape))
        root = make_instruction(O.TOPK, [operand], TopKAttributes(k, largest))
        module = make_module("topk", make_computation("main", root, [operand]))
        columns = any("high" in text for text in NumbaCompiler().compile(module).kernels().values())
        needed = {16: 128, 17: 384, 64: 640, 100: 2688}[next(most for most in (16, 17, 64, 100) if k <= most)]
        assert columns == (size >= needed and not t.is_small)
        expected = hlo.evaluate(module, x)
        with small_pieces():
            results = GuardedProgram(module, at_end=True, pattern=0xFF).run([x])
            for actual, wanted in zip(results, expected, strict=True):
                np.testing.assert_array_equal(_bits(actual), _bits(np.asarray(wanted)))
