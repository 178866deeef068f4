"""Damaged and hostile portable artifacts: refused with the place, or read; no crash, no hang, no large allocation."""

from __future__ import annotations

import random
import time
import tracemalloc

import numpy as np
import pytest
from hloom.hlo import HloError, HloParseError, UnsupportedError
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import BytecodeError
from hloom.hlo.mlir.bytecode import MAGIC, Section, flagged, section, signed, varint
from hloom.hlo.mlir.tree import (
    Block,
    Dense,
    DenseArray,
    Function,
    Operation,
    Record,
    Region,
    Tensor,
    Tuple,
    TypeAttribute,
    Value,
)
from hloom.hlo.stablehlo.vhlo import read_bytecode, write_bytecode

_F32 = Tensor((), ElementType.F32)


def _module(*operations: Operation) -> Operation:
    results = operations[-1].results
    body = [*operations, Operation("func.return", list(results))]
    type_ = TypeAttribute(Function((), tuple(value.type for value in results)))
    function = Operation("func.func", [], [], {"function_type": type_, "sym_name": "f"}, [Region([Block([], body)])])
    return Operation("builtin.module", [], [], {}, [Region([Block([], [function])])])


def _constant(array: np.ndarray) -> Operation:
    type_ = Tensor(array.shape, ElementType.F32)
    return Operation("stablehlo.constant", [], [Value(type_)], {"value": Dense(type_, array)})


def _program() -> Operation:
    """Constants, calls with structures, and a region."""
    x = _constant(np.arange(24, dtype=np.float32).reshape(4, 6))
    zero = _constant(np.zeros((), np.float32))
    a, b = Value(_F32), Value(_F32)
    add = Operation("stablehlo.add", [a, b], [Value(_F32)])
    body = Region([Block([a, b], [add, Operation("stablehlo.return", [add.results[0]])])])
    rows = Tensor((4,), ElementType.F32)
    dimensions = {"dimensions": DenseArray(ElementType.S64, (1,))}
    reduce = Operation("stablehlo.reduce", [x.results[0], zero.results[0]], [Value(rows)], dimensions, [body])
    numbers = Record("stablehlo", "dot", {"lhs_contracting_dimensions": (0,), "rhs_contracting_dimensions": (0,)})
    rows_twice = [reduce.results[0], reduce.results[0]]
    dot = Operation("stablehlo.dot_general", rows_twice, [Value(_F32)], {"dot_dimension_numbers": numbers})
    return _module(x, zero, reduce, dot)


_VERSIONS = ("0.9.0", "0.12.0", "0.14.0", "1.16.0")


def _outcome(data: bytes) -> str:
    try:
        read_bytecode(data)
    except HloError as error:
        if isinstance(error, BytecodeError):
            assert 0 <= error.offset <= len(data)
        return type(error).__name__
    return "read"


@pytest.mark.parametrize("version", _VERSIONS)
def test_every_beginning_of_a_file_is_refused_with_the_place(version: str) -> None:
    data = write_bytecode(_program(), version)
    assert {_outcome(data[:size]) for size in range(len(data))} == {"BytecodeError"}


@pytest.mark.parametrize("version", _VERSIONS)
def test_every_byte_may_be_any_other(version: str) -> None:
    data = write_bytecode(_program(), version)
    values = random.Random(version)
    found = set()
    for place in range(values.randrange(3), len(data), 3):
        for value in (0, 0xFF, data[place] ^ 1, data[place] ^ 0x80, values.randrange(256)):
            found.add(_outcome(data[:place] + bytes((value,)) + data[place + 1 :]))
    assert found == {"read", "BytecodeError", "UnsupportedError"}


def test_files_with_several_faults_are_refused_or_read() -> None:
    data, draw = write_bytecode(_program()), random.Random(0)
    start = time.perf_counter()
    for _ in range(1000):
        damaged = bytearray(data)
        for _ in range(draw.choice((2, 5, 20))):
            place, source = draw.randrange(len(damaged)), draw.randrange(len(damaged))
            damaged[place : place + draw.choice((0, 1, 4))] = damaged[source : source + draw.choice((0, 1, 4))]
        _outcome(bytes(damaged))
    assert time.perf_counter() - start < 60


def test_the_error_names_the_byte() -> None:
    with pytest.raises(HloParseError, match=r"<bytecode>: byte 0: this is no MLIR bytecode") as caught:
        read_bytecode(b"HloModule m")
    assert isinstance(caught.value, BytecodeError) and caught.value.offset == 0


def _file(entries: list[bytes], types: list[bytes] = [], operation: bytes = b"") -> bytes:  # noqa: B006
    """A module with an attribute dictionary: the last of `entries`, which are of the builtin dialect."""
    strings = [b"builtin\0", b"module\0", b"vhlo\0"]
    offsets = [varint(len(entries)), varint(len(types))]
    for table in (entries, types):
        if table:
            offsets += [varint(0), varint(len(table)), *(flagged(len(entry), True) for entry in table)]
    operation = operation or varint(0) + b"\x01" + varint(0) + varint(len(entries) - 1)
    dialects = [varint(2), flagged(0, False), flagged(2, False), varint(1), varint(0), varint(1), flagged(1, True)]
    return b"".join([
        MAGIC, varint(6), b"StableHLO_v1.0.0\0",
        *section(Section.DIALECTS, dialects), *section(Section.OFFSETS, list(offsets)),
        *section(Section.ATTRIBUTES, [*entries, *types]),
        *section(Section.OPERATIONS, [flagged(1, False), operation]),
        *section(Section.STRINGS, [varint(3), *(varint(len(text)) for text in reversed(strings)), *strings]),
        *section(Section.PROPERTIES, [varint(0)]),
    ])  # fmt: skip


_UNKNOWN_LOCATION, _STRING, _ARRAY, _DICTIONARY, _DENSE = varint(15), varint(2), varint(0), varint(1), varint(18)
_NAME = _STRING + varint(1)


def test_the_small_file_is_read() -> None:
    top = read_bytecode(_file([_UNKNOWN_LOCATION, _NAME, _DICTIONARY + varint(1) + varint(1) + varint(1)]))
    assert top.name == "builtin.module" and top.attributes == {"module": "module"}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([_UNKNOWN_LOCATION, _ARRAY + varint(1) + varint(1), _DICTIONARY + varint(1) + varint(1) + varint(1)],
         "attribute 1 contains itself"),
        ([_UNKNOWN_LOCATION, _NAME, _DICTIONARY + varint(1) + varint(1) + varint(2)], "attribute 2 contains itself"),
        ([_UNKNOWN_LOCATION, _NAME, _DICTIONARY + varint(1 << 60) + varint(1) + varint(1)], "elements are announced"),
        ([_UNKNOWN_LOCATION, varint(7), _DICTIONARY + varint(1) + varint(1) + varint(1)], "no string"),
        ([_UNKNOWN_LOCATION, _NAME, _DICTIONARY + varint(1) + varint(1) + varint(99)], "there is no attribute 99"),
        ([_UNKNOWN_LOCATION, _STRING + varint(77), _DICTIONARY + varint(1) + varint(1) + varint(1)],
         "there is no string 77"),
        ([_UNKNOWN_LOCATION, _NAME, _ARRAY + varint(0)], "no dictionary"),
        ([_NAME, _NAME, _DICTIONARY + varint(0)], "attribute 0 is no location"),
    ],
)  # fmt: skip
def test_tables_that_contradict_themselves(entries: list[bytes], message: str) -> None:
    with pytest.raises(BytecodeError, match=message):
        read_bytecode(_file(entries))


def test_locations_may_nest_as_deep_as_they_want() -> None:
    deep = [varint(10) + varint(k + 1) + varint(k + 1) for k in range(20_000)]
    entries = [*deep, _UNKNOWN_LOCATION, _DICTIONARY + varint(0)]
    assert read_bytecode(_file(entries)).location is None
    module = varint(0) + b"\x10" + varint(0) + flagged(1, False) + varint(1) + varint(0) + flagged(len(deep), False)
    each = b"".join(varint(0) + b"\0" + varint(k) for k in range(len(deep)))
    start = time.perf_counter()
    assert _outcome(_file(entries, operation=module + each)) == "read"
    assert time.perf_counter() - start < 10
    loop = [varint(10) + varint(0) + varint(0), _DICTIONARY + varint(0)]
    assert read_bytecode(_file(loop)).location is None


def test_deep_attributes_types_and_regions_are_refused_by_name() -> None:
    deep = [_ARRAY + varint(1) + varint(k + 2) for k in range(100)]
    entries = [_UNKNOWN_LOCATION, *deep, _NAME, _DICTIONARY + varint(1) + varint(101) + varint(1)]
    with pytest.raises(UnsupportedError, match="nested more than"):
        read_bytecode(_file(entries))
    type_: Tensor | Tuple = _F32
    for _ in range(100):
        type_ = Tuple((type_,))
    with pytest.raises(UnsupportedError, match="nested more than"):
        read_bytecode(write_bytecode(_module(Operation("stablehlo.create_token", [], [Value(type_)]))))
    inner = _constant(np.zeros((), np.float32))
    for _ in range(100):
        regions = [Region([Block([], [inner, Operation("stablehlo.return", [inner.results[0]])])]) for _ in range(2)]
        inner = Operation("stablehlo.case", [], [Value(_F32)], {}, regions[:1])
    with pytest.raises(UnsupportedError, match="regions nested more than"):
        read_bytecode(write_bytecode(_module(inner)))


@pytest.mark.parametrize("size", [1 << 20, 1 << 44, 1 << 60])
def test_numbers_in_a_small_file_allocate_nothing(size: int) -> None:
    """A tensor of one value, values of a region, strings and results, `size` of each."""
    f32, shape = varint(5), varint(1) + signed(size)
    tensor = [_UNKNOWN_LOCATION, _NAME, _DENSE + varint(1) + varint(4) + bytes(4)]
    entries = [*tensor, _DICTIONARY + varint(1) + varint(1) + varint(2)]
    module = varint(0) + b"\x10" + varint(0) + flagged(1, False)
    files = [
        _file(entries, [f32, varint(13) + shape + varint(0)]),
        _file([_UNKNOWN_LOCATION], operation=module + varint(1) + varint(size) + flagged(0, False)),
        _file([_UNKNOWN_LOCATION], operation=module + varint(size)),
        _file([_UNKNOWN_LOCATION], operation=module + varint(1) + varint(0) + flagged(size, False)),
        _file([_UNKNOWN_LOCATION], operation=varint(0) + b"\x02" + varint(0) + varint(size)),
    ]
    tracemalloc.start()
    outcomes = [_outcome(data) for data in files]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcomes == ["UnsupportedError" if size > 1 << 44 else "read", *["BytecodeError"] * 4]
    assert peak < 1 << 20


def test_one_large_dictionary_of_many_operations_is_refused() -> None:
    count = 3000
    items = b"".join(varint(2 + k) + varint(1) for k in range(count))
    names = [_STRING + varint(k % 3) for k in range(count)]
    entries = [_UNKNOWN_LOCATION, _NAME, *names, _DICTIONARY + varint(count) + items]
    one = varint(0) + b"\x01" + varint(0) + varint(len(entries) - 1)
    module = varint(0) + b"\x10" + varint(0) + flagged(1, False) + varint(1) + varint(0) + flagged(count, False)
    start = time.perf_counter()
    assert _outcome(_file(entries, operation=module + one * count)) in ("read", "BytecodeError")
    assert time.perf_counter() - start < 10
