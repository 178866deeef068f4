"""How long tracing and compiling a loop takes with nothing stored.

All peers compile in one process with a kernel store in memory only. A peer's caches are emptied before each
compilation; another loop is compiled before the first one, so that no peer's own start counts.
"""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..harness import Outcome
from .case import TRACED, Loop

COMPILE_ROUNDS = 3
SUFFIX = " (compile)"
"""Ends the name of an outcome with samples of compile times."""


def compiling(loop: Loop, rounds: int, best: bool = False) -> Outcome:
    outcome = Outcome(loop.name + SUFFIX, f"{loop.title}: trace and compile", best=best)
    builds: dict[str, Callable[[], float]] = {}
    for peer in TRACED:
        try:
            package = importlib.import_module(peer)
        except ImportError:
            if peer == "hloom":
                raise
            continue
        importlib.import_module(peer + ".numpy")
        _compile(package, _other, [package.numpy.ones(3, "float32")])
        builds[peer] = _builder(package, loop)
    outcome.samples = {peer: [] for peer in builds}
    for _ in range(rounds):
        for peer, build in builds.items():
            outcome.samples[peer].append(build())
    return outcome


def _builder(package: ModuleType, loop: Loop) -> Callable[[], float]:
    own = [package.numpy.asarray(a) for a in loop.inputs(loop.sizes)]

    def build() -> float:
        package.clear_caches()
        gc.collect()
        return _compile(package, lambda: loop.function(package, loop.sizes), own)

    return build


def _compile(package: ModuleType, make: Callable[..., Any], arguments: list[Any]) -> float:
    """Seconds."""
    function = make(package) if make is _other else make()
    began = time.perf_counter()
    package.jit(function).lower(*arguments).compile()
    return time.perf_counter() - began


def _other(package: ModuleType) -> Callable[[Any], Any]:
    jnp, lax = package.numpy, package.lax
    return lambda x: lax.while_loop(lambda x: jnp.sum(x) < 9, lambda x: jnp.exp(x) @ jnp.ones((3, 3)), x)
