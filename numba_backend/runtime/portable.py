"""Write a program as plain data without addresses, so that another process can build the same program.

A program's words hold addresses of four kinds, and each has a place in a table here: kernels, by the names of their
entries in the store; functions of libraries and blocks of the runtime, by their `NamedAddress`; constants, stored as
bytes in the data; and the words of the program itself, which are offsets. A word that looks like an address and has no
name makes the program one that cannot be moved: `NotPortable`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...hlo.support.named_address import NamedAddress
from .kernel import KernelSource, StoredKernel


class NotPortable(Exception):
    """The program cannot leave this process; the text says why."""


class PortableProgram(NamedTuple):
    """The data. Words are signed 64-bit integers; those that hold an address in a process are 0 here."""

    code: array[int]
    values: array[int]
    bases: array[int]
    """For each argument, the base that its value is relative to; -1: none."""
    kernels: tuple[StoredKernel, ...]
    entries: tuple[tuple[int, int], ...]
    """(word of the code, which kernel)."""
    code_addresses: tuple[tuple[int, str, str], ...]
    """(word of the code, kind, name) of a NamedAddress."""
    value_addresses: tuple[tuple[int, str, str], ...]
    """(argument, kind, name)."""
    value_constants: tuple[tuple[int, int, int], ...]
    """(argument, which constant, byte in it)."""
    constants: tuple[bytes, ...]
    parallel: bool
    brief: bool

    def to_parts(self) -> tuple[dict[str, Any], bytes]:
        """A header that JSON can hold, and all blocks as bytes."""
        blocks = [self.code.tobytes(), self.values.tobytes(), self.bases.tobytes(), *self.constants]
        header = {
            "kernels": self.kernels, "entries": self.entries, "code_addresses": self.code_addresses,
            "value_addresses": self.value_addresses, "value_constants": self.value_constants,
            "parallel": self.parallel, "brief": self.brief, "blocks": [len(block) for block in blocks],
        }  # fmt: skip
        return header, b"".join(blocks)

    @staticmethod
    def from_parts(header: dict[str, Any], data: bytes) -> PortableProgram:
        """The program of `to_parts`."""
        blocks, start = [], 0
        for length in header["blocks"]:
            blocks.append(data[start : start + length])
            start += length
        code, values, bases = [array("q", block) for block in blocks[:3]]
        entries, in_code, in_values, of_constants = (
            tuple([tuple(row) for row in header[name]])
            for name in ("entries", "code_addresses", "value_addresses", "value_constants")
        )
        kernels = tuple([StoredKernel(*kernel) for kernel in header["kernels"]])
        constants = tuple(blocks[3:])
        return PortableProgram(
            code, values, bases, kernels, entries, in_code, in_values, of_constants, constants,
            header["parallel"], header["brief"],
        )  # fmt: skip


_LEAST_ADDRESS, _MOST_ADDRESS = 1 << 32, 1 << 57
"""Between these, a word may be an address, and is one unless it is a number of a program for very large arrays."""


def portable(
    code: Sequence[int | KernelSource], arguments: Sequence[Any], constants: Sequence[np.ndarray], *,
    parallel: bool, brief: bool,
) -> PortableProgram:  # fmt: skip
    """The program with these words, arguments (`program.Argument`) and constants as data. NotPortable if a word is an
    address without a name."""
    numbers: dict[str, int] = {}
    kernels: list[StoredKernel] = []
    entries, code_addresses = [], []
    words = array("q")
    for place, word in enumerate(code):
        if isinstance(word, KernelSource):
            if word.identity not in numbers:
                numbers[word.identity] = len(kernels)
                kernels.append(StoredKernel(word.identity, word.name, word.convention))
            entries.append((place, numbers[word.identity]))
            word = 0
        elif isinstance(word, NamedAddress):
            code_addresses.append((place, word.kind, word.name))
            word = 0
        else:
            _check(word)
        words.append(word)
    values, bases = array("q"), array("q")
    value_addresses, value_constants = [], []
    starts = sorted([(c.ctypes.data, k) for k, c in enumerate(constants)])
    used: dict[int, int] = {}
    for place, argument in enumerate(arguments):
        kind, base, word = argument.kind, argument.base, argument.word
        if isinstance(word, NamedAddress):
            value_addresses.append((place, word.kind, word.name))
            word = 0
        elif kind == "pointer" and base < 0:
            found = bisect_right(starts, (word, len(starts))) - 1
            if found >= 0 and word - starts[found][0] < max(constants[starts[found][1]].nbytes, 1):
                start, number = starts[found]
                value_constants.append((place, used.setdefault(number, len(used)), word - start))
                word = 0
            else:
                _check(word)
        elif kind != "scalar" and base < 0:
            _check(word)
        values.append(word)
        bases.append(base)
    return PortableProgram(
        *(words, values, bases, tuple(kernels), tuple(entries)),
        *(tuple(code_addresses), tuple(value_addresses), tuple(value_constants)),
        tuple([constants[number].tobytes() for number in used]),
        *(parallel, brief),
    )


def _check(word: int) -> None:
    if _LEAST_ADDRESS <= word < _MOST_ADDRESS:
        raise NotPortable(f"one of its words, {word:#x}, may be an address")


def address_of(kind: str, name: str) -> int:
    """The address in this process. KeyError: there is no such kind. Errors of the function that finds it pass
    through."""
    module, function = _FINDERS[kind]
    address: int = getattr(import_module(module, __package__), function)(name)
    return address


_FINDERS = {
    "blas": (".blas", "_address"),
    "blas threads": (".blas", "thread_function"),
    "lapack": ("...hlo.custom_call_targets.library", "address_of"),
    "pool": (".threads", "pool_pointer"),
}
"""For each kind of address, the function that finds it by name, and its module."""
