"""The names of instructions and computations in text: their own if these are valid and unique.

A name may be any text, or missing while a pass builds a computation; HLO text needs a unique identifier.
Source: XLA's NameUniquer, and the names that its parser refuses.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..instruction import HloComputation, HloInstruction
from .escape import sanitized
from .scanner import pattern

_TYPES = r"pred|token|opaque|[su](?:1|2|4|8|16|32|64)|b?f16|f32|f64|c64|c128|f[48]e[0-9a-z]+"
_KEYWORDS = (
    "HloModule|ENTRY|ROOT|true|false|inf|nan|maximal|replicated|manual|unknown|unreduced|last_tile_dim_replicate|"
    "shard_as|shard_like"
)


class Namer:
    """Hands out unique identifiers: the wanted name made valid, if necessary with the lowest free `.N` suffix."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, wanted: str, fallback: str) -> str:
        name = sanitized(wanted, fallback, pattern(_TYPES))
        number = self._next.get(name, 1)
        candidate = name
        while candidate in self._used:
            candidate = f"{name}.{number}"
            number += 1
        self._next[name] = number
        self._used.add(candidate)
        return candidate


def module_name(name: str) -> str:
    """A module's name in text."""
    return sanitized(name, "module", pattern(f"{_TYPES}|{_KEYWORDS}"))


class Names:
    """The names of all instructions of `computations`, and of those that these call."""

    def __init__(self, computations: Iterable[HloComputation]) -> None:
        self._instructions: dict[HloInstruction, str] = {}
        self._computations: dict[HloComputation, str] = {}
        self._instruction_namer, self._computation_namer = Namer(), Namer()
        for computation in computations:
            self.of_computation(computation)
            for instruction in computation.instructions:
                self.of_instruction(instruction)

    def of_instruction(self, instruction: HloInstruction) -> str:
        """The name of an instruction. One outside of all computations gets a name too, so that broken modules can be
        printed."""
        name = self._instructions.get(instruction)
        if name is None:
            name = self._instruction_namer.unique(instruction.name, instruction.opcode.value)
            self._instructions[instruction] = name
        return name

    def of_computation(self, computation: HloComputation) -> str:
        """The name of a computation, whether its instructions are named here or not."""
        name = self._computations.get(computation)
        if name is None:
            name = self._computations[computation] = self._computation_namer.unique(computation.name, "computation")
        return name
