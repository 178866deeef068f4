"""What is traced and compiled, and why, as log messages: for who wants to know where the time goes.

Two switches turn them on: `hloom.log_compiles()` and `hloom.explain_cache_misses()`. No program depends on them, so
they are not in the context. A third one, `hloom.no_tracing()`, forbids to trace anew. The messages are warnings of the
logger "hloom", as in JAX. `cache_misses.py` writes those of the second switch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .monitoring import DURATIONS, record_event_duration_secs
from .source import user_line

LOGGER = logging.getLogger(__name__.partition(".")[0])


class _Own(threading.local):
    value: bool | None = None


class Switch:
    """A setting of the process that a thread may override within a block."""

    def __init__(self) -> None:
        self.of_process = False
        self._thread = _Own()

    @property
    def is_on(self) -> bool:
        """As this thread sees it."""
        own = self._thread.value
        return self.of_process if own is None else own

    @contextmanager
    def within(self, value: bool) -> Iterator[None]:
        """Within the block, or the decorated function, this thread's value is `value`."""
        before = self._thread.value
        self._thread.value = value
        try:
            yield
        finally:
            self._thread.value = before


LOG_COMPILES, EXPLAIN_CACHE_MISSES, NO_TRACING = Switch(), Switch(), Switch()
SWITCHES = {
    "jax_log_compiles": LOG_COMPILES,
    "jax_explain_cache_misses": EXPLAIN_CACHE_MISSES,
    "jax_no_tracing": NO_TRACING,
}
"""By the names of the settings."""


@contextmanager
def timed(what: str, event: str) -> Iterator[None]:
    """Log the time that the block took, if compilations are logged: ``Finished tracing f for jit in 0.002 sec``.
    Listeners to durations hear of it as `event` (`monitoring.py`)."""
    if not LOG_COMPILES.is_on and not DURATIONS:
        yield
        return
    start = time.perf_counter()
    try:
        yield
    finally:
        duration = time.perf_counter() - start
        record_event_duration_secs(event, duration, fun_name=what)
        if LOG_COMPILES.is_on:
            LOGGER.warning("Finished %s in %.6f sec", what, duration)


def compiling(name: str, types: Iterable[str]) -> None:
    """Log that a program is compiled, if compilations are logged."""
    if LOG_COMPILES.is_on:
        place = user_line() or "<unknown>"
        LOGGER.warning("Compiling %s with types (%s), called at %s", name, ", ".join(types), place)
