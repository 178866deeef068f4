"""Options of `jit` with JAX's names (since 0.12): for inlining, and for the compiler."""

from __future__ import annotations

import enum


class CompilerEffortLevel(enum.Enum):
    """How much XLA tries, for its options. They mean nothing here.

    >>> hloom.CompilerEffortLevel.O1.name
    'O1'
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class Inline(enum.Enum):
    """Whether a jitted function leaves a call in the functions that call it: ``jit(f, inline=Inline.JAX_EARLY)`` leaves
    none in the traced program. The others leave one, which the compiler inlines as it sees fit.

    >>> f = hloom.jit(lambda x: 2 * x, inline=hloom.Inline.JAX_EARLY)
    >>> "call" in hloom.jit(lambda x: f(x)).lower(1.0).as_text()
    False
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"

    def __bool__(self) -> bool:
        return self is Inline.JAX_EARLY


CompilerEffortLevel.__module__ = Inline.__module__ = __name__.partition(".")[0]
