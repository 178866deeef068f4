"""The counts in JAX's tests: how often functions are traced and compiled.

JAX calls a function of its tests at these moments; the listeners of `hloom.monitoring` are called at the same ones.
"""

from __future__ import annotations

import sys
from typing import Any

from hloom.tracer.profiling.monitoring import COMPILE_EVENT, DURATIONS, TRACE_EVENT

NAMES = {
    TRACE_EVENT: ("trace_to_jaxpr", "jit_cpp_cache_miss"),
    COMPILE_EVENT: ("lower_jaxpr_to_module", "pxla_cached_compilation", "compile_after_persistent_compilation_miss"),
}
"""The names that JAX gives to an event."""


def tell(event: str, duration: float, **_: Any) -> None:
    """Listens to hloom's events, and tells the tests."""
    told = getattr(sys.modules.get("jax._src.util"), "test_event_listener", None)
    for name in NAMES.get(event, ()) if told is not None else ():
        told(name)


def count() -> None:
    """Tell the tests from now on. Before each test: some remove all listeners."""
    if tell not in DURATIONS:
        DURATIONS.append(tell)
