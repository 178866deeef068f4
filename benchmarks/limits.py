"""The shortest time that the machine allows a call: by its memory, its arithmetic, and the call itself.

    memory      bytes of arguments and results, at the speed that `hloom.numba_backend.machine_speed` measured
    arithmetic  operations of the compiled program, at the speed of large matrix products
    call        a copy of eight numbers by NumPy, from Python

Data that is still in a cache moves faster than memory, so more than 100 % of the limit is possible. Steps that wait for
each other (a recurrence) are not counted: such a program is far from this limit and may still be as quick as it can be.
"""

from __future__ import annotations

import functools
import importlib
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .harness import Work, arrays


def work(jitted: Callable[..., Any], arguments: Sequence[Any]) -> Work:
    """What a call of hloom's jitted function must do at least."""
    cost = jitted.lower(*arguments).compile().cost_analysis()  # type: ignore[attr-defined]
    moved = arrays([*arguments, jitted(*arguments)])
    nbytes = min(sum(a.nbytes for a in moved), cost["bytes accessed"])
    wide = any(a.dtype in (np.float64, np.complex128) for a in moved)
    return Work(float(nbytes), float(cost["flops"] + cost["transcendentals"]), wide)


def seconds(of: Work) -> dict[str, float]:
    """By what bounds a call. The machine is measured once, or its measurement read from the kernel store."""
    speed = _machine()
    return {
        "memory": of.nbytes / speed.bytes_per_second,
        "arithmetic": of.flops / speed.flops_per_second["f64" if of.wide else "f32"],
        "call": _call(),
    }


@functools.cache
def _machine() -> Any:
    return importlib.import_module("hloom.numba_backend.machine_speed").machine_speed()


@functools.cache
def _call() -> float:
    return min(timeit.repeat(np.ones(8, np.float32).copy, number=1000, repeat=20)) / 1000
