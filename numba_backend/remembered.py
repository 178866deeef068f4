"""`remembered`: an emitter of kernels that returns the kernel of equal arguments again.

Equal layers of a network, and the same network with another batch, need many kernels several times. The key is all that
the kernel depends on: the arguments, which must be hashable, and the machine that is compiled for. Kernels are
immutable. Fused computations have a memory of their own, by structure (`fused_computations.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..hlo.support.memory_pressure import on_pressure
from .machine import target_machine

P = ParamSpec("P")
T = TypeVar("T")

MOST = 256
"""Results of one function that are kept, the latest: some megabytes of loop programs at most."""


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, a function of hashable arguments and of the target machine alone, computed once for the same ones."""

    made: Any = functools.lru_cache(MOST, typed=True)(lambda machine, *args, **options: function(*args, **options))
    on_pressure(made.cache_clear)

    @functools.wraps(function)
    def remembering(*args: P.args, **options: P.kwargs) -> T:
        found: T = made(target_machine(), *args, **options)
        return found

    return remembering
