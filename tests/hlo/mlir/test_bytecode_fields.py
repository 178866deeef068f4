"""Each kind of field of bytecode gives back the values that it writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import BytecodeError
from hloom.hlo.mlir.bytecode_fields import KINDS, Entry, Reference
from hloom.hlo.mlir.bytecode_writer import resolve
from hloom.hlo.mlir.tree import DYNAMIC, IndexType, Location

S64, F32 = ElementType.S64, ElementType.F32


class Numbers:
    """Gives numbers to entries, and finds them."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def string(self, value: Any) -> int:
        self.entries.append(value)
        return len(self.entries) - 1

    def attribute(self, value: Any) -> Reference:
        found = Reference("builtin", ())
        found.number = self.string(value)
        return found

    type = location = attribute


class Found:
    """The entries by their numbers."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries

    def attribute(self, index: int, at: int) -> Any:
        return self._entries[index]

    type = location = string = attribute


def _read(field: str, data: bytes, entries: list[Any]) -> tuple[Any, bool]:
    entry = Entry(data, 0, len(data), Found(entries))
    return KINDS[field].read(entry), entry.is_empty


VALUES: dict[str, tuple[Any, ...]] = {
    "attribute": ("a", True), "attributes": ((), ("a", True)), "optional": (None, "a"),
    "optional after a flag": (None, "a"), "text": ("", "a"), "pairs": ({}, {"b": 1, "a": 2}), "type": (S64,),
    "types": ((), (S64, F32)), "location": (None, Location("n")), "locations": ((), (None, Location("n"))),
    "string": ("", "a"), "varint": (0, 1, 2**64 - 1), "signed": (0, -1, 2**63 - 1, -(2**63)),
    "signeds": ((), (1, -2)), "sizes": ((), (0, DYNAMIC, 7)), "double": (0.0, -1.5, float("inf")),
    "number": (
        (S64, 2**64 - 1), (IndexType(), 5), (ElementType.U8, 255), (ElementType.PRED, 1), (F32, 0x7FC00000),
    ),
    "doubles": ((), (0.5, -2.0)), "blob": (b"", b"abc"), "byte": (0, 255), "optional number": (None, 0, 9),
}  # fmt: skip


@pytest.mark.parametrize("field", KINDS)
def test_a_value_comes_back(field: str) -> None:
    for value in VALUES[field]:
        numbers = Numbers()
        data = b"".join(resolve(KINDS[field].write(value, numbers)))
        found, is_all = _read(field, data, numbers.entries)
        assert (bytes(found) if field == "blob" else found) == value and is_all
        for size in range(len(data)):
            with pytest.raises(BytecodeError):
                _read(field, data[:size], numbers.entries)


def test_nan_keeps_its_bits() -> None:
    for bits in (0x7FF8000000000123, 0xFFF8000000000000):
        given = float(np.uint64(bits).view(np.float64))
        data = b"".join(resolve(KINDS["double"].write(given, Numbers())))
        assert np.float64(_read("double", data, [])[0]).view(np.uint64) == bits
