"""A module's attributes for its kernels: their schedules, and their compiler; and for its memory.

All are attributes of the module, so they are seen in its text, and are a part of the key under which its program is
stored: ``frontend_attributes={hloom_schedules="*:\\n    Vectors(bits=256)\\n"}``. Users give schedules
(`hloom.schedule`), and `autotuning.py` finds such by measuring; a request for that is an attribute too (`AUTOTUNE`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ..hlo.backend import AUTOTUNE, DEFAULT_KERNEL_COMPILER, KERNEL_COMPILER, MEMORY_BUDGET, SCHEDULES
from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloModule
from ..hlo.support.loading import load
from .schedule.steps import Schedules


def with_schedules(module: HloModule, schedules: Schedules) -> HloModule:
    """The module with schedules in the place of earlier ones, or of a request for some."""
    others = [a for a in module.frontend_attributes if a[0] not in (SCHEDULES, AUTOTUNE[0])]
    chosen = [(SCHEDULES, load(".schedule.text", __package__).to_text(schedules))] if schedules else []
    return replace(module, frontend_attributes=(*others, *chosen))


def schedules_of(module: HloModule) -> Schedules:
    """The schedules of a module. ScheduleError for a text that has no such."""
    text = dict(module.frontend_attributes).get(SCHEDULES, "")
    found: Schedules = load(".schedule.text", __package__).parse(text) if text else {}
    return found


def budget_of(module: HloModule) -> int | None:
    """The most bytes that the program of a module may need, where it has such a limit."""
    text = dict(module.frontend_attributes).get(MEMORY_BUDGET)
    if text is None:
        return None
    if not text.isdecimal():
        raise UnsupportedError(f"{MEMORY_BUDGET} is a number of bytes, not {text!r}")
    return int(text)


def compiler_of(module: HloModule) -> Literal["numba"] | None:
    """The compiler that a module, or else HLOOM_COMPILER, names for its kernels; None: this library's own.

    UnsupportedError for a compiler that there is not.
    """
    name = dict(module.frontend_attributes).get(KERNEL_COMPILER, DEFAULT_KERNEL_COMPILER)
    if name not in ("llvm", "numba"):
        raise UnsupportedError(f'the compilers of kernels are "llvm" and "numba", not {name!r}')
    return "numba" if name == "numba" else None
