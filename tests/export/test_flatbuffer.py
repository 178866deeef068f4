"""The flatbuffer codec: what is written is read, by the package `flatbuffers` too; damaged bytes raise ValueError."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from hloom.export.flatbuffer import read, schema, write

SCHEMA = schema(
    {
        "Node": "kind:byte name:string children:[Node] number:uint32? flag:bool small:uint16 data:[byte] many:[uint16]",
        "Other": "node:Node words:[string] wide:[uint32]",
    }
)
EMPTY = {
    "kind": 0, "name": None, "children": None, "number": None, "flag": False, "small": 0, "data": None, "many": None
}  # fmt: skip


def node(**fields: Any) -> dict[str, Any]:
    return {**EMPTY, **fields}


VALUES: list[tuple[str, dict[str, Any]]] = [
    ("Node", node()),
    ("Node", node(kind=-3, name="grüße", number=0, flag=True, small=65535)),
    ("Node", node(children=[], data=b"", many=())),
    ("Node", node(children=[node(name=""), node(children=[node(kind=5)])], data=b"\0\xff", many=(1, 2, 3))),
    ("Other", {"node": node(number=2**32 - 1), "words": ["a", "", "bc"], "wide": (0, 2**31)}),
    ("Other", {"node": None, "words": None, "wide": None}),
]


@pytest.mark.parametrize(("table", "value"), VALUES)
def test_what_is_written_is_read(table: str, value: dict[str, Any]) -> None:
    data = write(SCHEMA, table, value)
    assert read(SCHEMA, table, data) == value
    assert len(data) % 4 == 0


def test_the_bytes_of_a_table() -> None:
    """By hand, from the description of the format: root, list of offsets, table, text."""
    data = write(schema({"T": "a:uint16 b:string"}), "T", {"a": 7, "b": "xy"})
    root = 12
    vtable = struct.pack("<4H", 8, 10, 8, 4)  # the string's offset comes first: it is larger
    table = struct.pack("<iIH", root - 4, 24 - (root + 4), 7)
    text = struct.pack("<I", 2) + b"xy\0"
    assert data == struct.pack("<I", root) + vtable + table + b"\0\0" + text + b"\0"


def test_fields_that_a_reader_does_not_know_are_skipped() -> None:
    newer = schema({"T": "a:uint16 b:string c:[T] d:uint32"})
    data = write(newer, "T", {"a": 1, "b": "x", "c": [{"d": 4}], "d": 9})
    assert read(schema({"T": "a:uint16 b:string"}), "T", data) == {"a": 1, "b": "x"}
    older = write(schema({"T": "a:uint16"}), "T", {"a": 1})
    assert read(newer, "T", older) == {"a": 1, "b": None, "c": None, "d": 0}


def test_damaged_bytes_raise_value_error() -> None:
    table, value = VALUES[3]
    good = write(SCHEMA, table, value)
    draws = random.Random(0)
    refused = 0
    for k in range(3000):
        data = bytearray(good)
        for _ in range(draws.randint(1, 4)):
            data[draws.randrange(len(data))] = draws.choice((0, 1, 4, 127, 128, 255, draws.randrange(256)))
        if k % 3 == 0:
            del data[draws.randrange(len(data)) :]
        try:
            read(SCHEMA, table, bytes(data))
        except ValueError as error:
            assert "no flatbuffer of this schema: at offset" in str(error)
            refused += 1
    assert refused > 500


@pytest.mark.parametrize("data", [b"", b"\0", bytes(4), bytes(64), b"\xff" * 64])
def test_no_flatbuffer(data: bytes) -> None:
    with pytest.raises(ValueError, match="no flatbuffer of this schema"):
        read(SCHEMA, "Other", data)


def test_objects_that_refer_to_themselves_are_refused() -> None:
    """A vector whose elements are all the table that has it: 2**200 tables, if it were followed."""
    data = bytearray(write(schema({"T": "c:[T]"}), "T", {"c": [{}, {}]}))
    (root,) = struct.unpack_from("<I", data)
    vector = root + 4 + struct.unpack_from("<I", data, root + 4)[0]
    for at in (vector + 4, vector + 8):
        struct.pack_into("<I", data, at, (root - at) % 2**32)  # offsets are not negative: this one leaves the data
    with pytest.raises(ValueError, match="outside of the data"):
        read(schema({"T": "c:[T]"}), "T", bytes(data))
    chain = schema({"T": "c:T"})
    value: dict[str, Any] = {}
    for _ in range(300):
        value = {"c": value}
    with pytest.raises(ValueError, match="nested over 200 deep"):
        read(chain, "T", write(chain, "T", value))


def test_a_shared_object_is_not_copied_without_end() -> None:
    """Vectors of two references to the next one: each level doubles the objects."""
    levels = 40
    data = bytearray(struct.pack("<I", 12) + struct.pack("<3H", 6, 8, 4) + b"\0\0")
    for level in range(levels):  # a table with one vector, then the vector of two offsets to the next table
        table = len(data)
        data += struct.pack("<iI", table - 4, 4) + struct.pack("<I", 2 if level < levels - 1 else 0)
        if level < levels - 1:
            data += struct.pack("<II", 8, 4)
    with pytest.raises(ValueError, match="same objects too often"):
        read(schema({"T": "c:[T]"}), "T", bytes(data))


def test_the_package_flatbuffers_reads_it() -> None:
    table = pytest.importorskip("flatbuffers.table")
    value = node(kind=5, name="leaf", children=[node(small=9)], data=b"abc")
    data = bytearray(write(SCHEMA, "Node", value))
    (root,) = struct.unpack_from("<I", data)
    found = table.Table(data, root)
    name = found.String(found.Offset(4 + 2 * 1) + found.Pos)
    children = found.Vector(found.Offset(4 + 2 * 2))
    child = table.Table(data, found.Indirect(children))
    small = struct.unpack_from("<H", data, child.Offset(4 + 2 * 5) + child.Pos)[0]
    assert (name, found.VectorLen(found.Offset(4 + 2 * 2)), small) == (b"leaf", 1, 9)
