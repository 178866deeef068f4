"""What may be chosen for one program by measuring it, and how a module says what was chosen.

The choice is an attribute of the module, so it is seen in its text, and is a part of the key under which the program is
stored: `frontend_attributes={hloom_tuning="native_loops=0"}`. What the attribute does not name is as in other
programs. `autotuning.py` measures; a request for that is an attribute too (`AUTOTUNE`).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Literal

from ..hlo.backend import AUTOTUNE, DEFAULT_KERNEL_COMPILER, KERNEL_COMPILER
from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloModule
from ..hlo.records import dataclass

_CHOSEN = "hloom_tuning"


@dataclass(frozen=True, slots=True)
class Tuning:
    """One choice for a program."""

    native_loops: int = 1
    """0: a loop is rows and jumps, even if it could be one kernel."""
    piece_nanoseconds: int = -1
    """A thread's share of a kernel takes at least this long. -1: as lowering thinks best; 0: no kernel is shared."""
    vector_bits: int = 0
    """How wide the vectors of kernels are; 0: as LLVM thinks best for the processor."""

    def to_text(self) -> str:
        """The fields that differ from the default: "native_loops=0,vector_bits=256"."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return ",".join([f"{name}={value}" for name, value in values.items()])


def with_tuning(module: HloModule, tuning: Tuning) -> HloModule:
    """The module with a choice in the place of a request or of an earlier choice."""
    others = [a for a in module.frontend_attributes if a[0] not in (_CHOSEN, AUTOTUNE[0])]
    text = tuning.to_text()
    chosen = [(_CHOSEN, text)] if text else []
    return replace(module, frontend_attributes=(*others, *chosen))


def tuning_of(module: HloModule) -> Tuning:
    """What a module says. UnsupportedError, with what there is, for another text."""
    text = dict(module.frontend_attributes).get(_CHOSEN, "")
    return parse(text) if text else Tuning()


def compiler_of(module: HloModule) -> Literal["numba"] | None:
    """Which compiler a module, or else HLOOM_COMPILER, names for its kernels; None: this library's own.

    UnsupportedError for a compiler that there is not.
    """
    name = dict(module.frontend_attributes).get(KERNEL_COMPILER, DEFAULT_KERNEL_COMPILER)
    if name not in ("llvm", "numba"):
        raise UnsupportedError(f'the compilers of kernels are "llvm" and "numba", not {name!r}')
    return "numba" if name == "numba" else None


def parse(text: str) -> Tuning:
    """The opposite of `to_text`."""
    found: dict[str, int] = {}
    allowed = {"native_loops": (0, 1), "vector_bits": (0, 128, 256, 512)}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        is_number = value.isascii() and value.isdigit() and len(value) < 10
        if not is_number or name not in _NAMES or int(value) not in allowed.get(name, (int(value),)):
            raise UnsupportedError(
                f"{_CHOSEN}={text!r}: {part!r} is not one of native_loops=0 or 1, piece_nanoseconds=a number, "
                "vector_bits=0, 128, 256 or 512"
            )
        found[name] = int(value)
    return Tuning(**found)


_NAMES = frozenset(f.name for f in fields(Tuning))
