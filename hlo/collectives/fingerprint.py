"""A short text that is the same for programs that do the same, in every process: names, and the user's lines, do not
matter."""

from __future__ import annotations

import hashlib
from weakref import WeakKeyDictionary

from ..instruction import HloComputation, HloInstruction
from ..ir import HloModule
from ..text.names import Names
from ..text.printer import operation_text

_known: WeakKeyDictionary[HloModule, str] = WeakKeyDictionary()


class _Positions(Names):
    """Names that tell where something is in the module."""

    def __init__(self, module: HloModule) -> None:
        self._computations = {c: f"c{k}" for k, c in enumerate(module.computations)}
        self._instructions = {i: str(k) for k, i in enumerate(module.instructions())}

    def of_computation(self, computation: HloComputation) -> str:
        """Its position."""
        return self._computations[computation]

    def of_instruction(self, instruction: HloInstruction) -> str:
        """Its position."""
        return self._instructions[instruction]


def fingerprint(module: HloModule) -> str:
    """32 hexadecimal digits.

    >>> from hloom import hlo
    >>> one = hlo.parse("HloModule m  ENTRY e { ROOT x = f32[2] parameter(0) }")
    >>> other = hlo.parse("HloModule n  ENTRY main { ROOT y = f32[2] parameter(0) }")
    >>> fingerprint(one) == fingerprint(other)
    True
    """
    found = _known.get(module)
    if found is None:
        names = _Positions(module)
        digest = hashlib.sha256(f"{module.replica_count} {module.num_partitions}\n".encode())
        for computation in module.computations:
            for instruction in computation.instructions:
                digest.update(operation_text(instruction, names).encode("utf-8", "surrogateescape"))
                digest.update(b"\n")
            digest.update(f"{names.of_instruction(computation.root)}\n".encode())
        found = _known[module] = digest.hexdigest()[:32]
    return found
