"""The work of a fresh process in the cases of `startup`: `python -m benchmarks.fresh TASK PEER`.

It prints one line of JSON. Only what the peer itself needs is imported.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from typing import Any

import numpy as np

from . import mlp

BATCH, NEW_BATCH = 128, 96


def compile_twice(peer: str) -> dict[str, float]:
    """Seconds to trace and compile the MLP step, and again at another batch size. Another program is compiled
    before."""
    if peer == "numba":
        numba = importlib.import_module("numba")
        numba.njit(lambda x: np.sin(x).sum())(np.ones((4, 5), np.float32))
        step = importlib.import_module("benchmarks.mlp_numba").step
        return {f"batch {n}": _seconds(step, *mlp.numba_arguments(n)) for n in (BATCH, NEW_BATCH)}
    jax, jnp = importlib.import_module(peer), importlib.import_module(peer + ".numpy")
    other = jax.jit(lambda x: jnp.sin(x).sum())
    jax.block_until_ready(other(jnp.ones((4, 5), jnp.float32)))
    step = mlp.training_step(peer)
    seconds = {}
    for batch in (BATCH, NEW_BATCH):
        arguments = mlp.arguments(peer, batch)
        seconds[f"batch {batch}"] = _seconds(lambda a: step.lower(*a).compile(), arguments)
    return seconds


def call_tiny(peer: str) -> dict[str, float]:
    """One call of a jitted a + b."""
    a = np.arange(8, dtype=np.float32)
    if peer == "numpy":
        return {"value": float((a + a)[1])}
    if peer == "numba":
        return {"value": float(importlib.import_module("benchmarks.tiny_numba").add(a, a)[1])}
    return {"value": float(importlib.import_module(peer).jit(lambda a, b: a + b)(a, a)[1])}


def call_mlp(peer: str, steps: int = 1) -> dict[str, float]:
    """One or more training steps; the largest memory of the process, in bytes."""
    value: Any
    if peer == "numpy":
        params, images, labels = mlp.inputs(BATCH)
        velocity = [{name: np.zeros_like(p) for name, p in layer.items()} for layer in params]
        for _ in range(steps):
            value = mlp.numpy_step(params, velocity, images, labels)
    elif peer == "numba":
        step, arguments = importlib.import_module("benchmarks.mlp_numba").step, mlp.numba_arguments(BATCH)
        for _ in range(steps):
            value = step(*arguments)
    else:
        step = mlp.training_step(peer)
        state, images, labels = mlp.arguments(peer, BATCH)
        for _ in range(steps):
            state, value = step(state, images, labels)
    return {"value": float(value), "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def _seconds(function: Any, *arguments: Any) -> float:
    began = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - began


TASKS = {
    "compile": compile_twice,
    "tiny": call_tiny,
    "mlp": call_mlp,
    "memory": lambda peer: call_mlp(peer, 20),
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](sys.argv[2])))
