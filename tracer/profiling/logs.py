"""Log messages about traces and compilations and their causes: they show where the time goes.

Two switches enable them: `hloom.log_compiles()` and `hloom.explain_cache_misses()`. No program depends on them, so they
are not in the context. A third one, `hloom.no_tracing()`, forbids further traces. The messages are warnings of the
logger "hloom", as in JAX. `cache_misses.py` writes the messages of the second switch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..settings.setting import Setting
from ..source import user_line
from .monitoring import DURATIONS, record_event_duration_secs

LOGGER = logging.getLogger(__name__.partition(".")[0])

LOG_COMPILES = Setting(
    False,
    """Log each trace and each compilation, with its time, as warnings of the logger "hloom".

    >>> with hloom.log_compiles():
    ...     y = hloom.jit(lambda x: 2 * x)(1.0)  # "Compiling jit_lambda with types (f32[]), called at ..."
    """,
)
EXPLAIN_CACHE_MISSES = Setting(
    False,
    """Log why a jitted function is traced again, as warnings of the logger "hloom": which argument has a new type.

    >>> f = hloom.jit(lambda x: 2 * x)
    >>> y = f(jnp.ones(2))
    >>> with hloom.explain_cache_misses():
    ...     y = f(jnp.ones(3))  # "... the closest one differs: at x, now float32[3] and before float32[2]"
    """,
)
NO_TRACING = Setting(
    False,
    """A function that jit would trace again is a RuntimeError: for programs that should have compiled all by now.

    >>> f = hloom.jit(lambda x: 2 * x)
    >>> _ = f(1.0)
    >>> with hloom.no_tracing():
    ...     f(2.0)
    Array(4., dtype=float32, weak_type=True)
    """,
)


@contextmanager
def timed(what: str, event: str) -> Iterator[None]:
    """Log the time that the block took, if compilations are logged: ``Finished tracing f for jit in 0.002 sec``.
    Listeners to durations hear of it as `event` (`monitoring.py`)."""
    if not LOG_COMPILES.value and not DURATIONS:
        yield
        return
    start = time.perf_counter()
    try:
        yield
    finally:
        duration = time.perf_counter() - start
        record_event_duration_secs(event, duration, fun_name=what)
        if LOG_COMPILES.value:
            LOGGER.warning("Finished %s in %.6f sec", what, duration)


def compiling(name: str, types: Iterable[str]) -> None:
    """Log that a program is compiled, if compilations are logged."""
    if LOG_COMPILES.value:
        place = user_line() or "<unknown>"
        LOGGER.warning("Compiling %s with types (%s), called at %s", name, ", ".join(types), place)
