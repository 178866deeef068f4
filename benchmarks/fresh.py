"""The work of a fresh process in the cases of `startup`: `python -m benchmarks.fresh TASK PEER [PROGRAM]`.

It prints one line of JSON. Only what the peer itself needs is imported.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import mlp

RATES = (1e-5, 2e-5)
"""The constant of a step, and the changed constant. The first one is the layer norm's epsilon, too, so the transformer
with the other one has a constant more, and another form: hloom goes over its instructions again."""


@dataclass(frozen=True)
class Stepped:
    """A program that is compiled: `make(package, constant)` returns a jitted function, `arguments(package, size)` what
    it is called with."""

    title: str
    make: Callable[[str, float], Any]
    arguments: Callable[[str, int], tuple[Any, ...]]
    size: int
    new_size: int


def _jnp(package: str) -> tuple[Any, Any]:
    return importlib.import_module(package), importlib.import_module(package + ".numpy")


def _chain(package: str, constant: float) -> Any:
    jax, jnp = _jnp(package)

    def f(x: Any) -> Any:
        y = jnp.tanh(x) * 2 + jnp.exp(-x * x)
        return y / (1 + constant * jnp.abs(y))

    return jax.jit(f)


def _oscillators(package: str, constant: float) -> Any:
    """Coupled oscillators, RK4 in a loop, a loss of all states, and its gradient. No two constants are equal, so that
    changing one does not change which products are."""
    jax, jnp = _jnp(package)

    def slope(x: Any) -> Any:
        return jnp.stack([x[1], -jnp.sin(x[0]) - 1e4 * constant * x[1] + 0.3 * (jnp.roll(x[0], 1) - x[0])])

    def step(x: Any, _: Any) -> Any:
        k1 = slope(x)
        k2 = slope(x + 0.005 * k1)
        k3 = slope(x + 0.005 * k2)
        k4 = slope(x + 0.01 * k3)
        x = x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x, x[0]

    return jax.jit(jax.grad(lambda x: (jax.lax.scan(step, x, None, length=100)[1] ** 2).mean()))


def _array(*before: int) -> Callable[[str, int], tuple[Any, ...]]:
    def arguments(package: str, size: int) -> tuple[Any, ...]:
        return (_jnp(package)[1].asarray(np.random.default_rng(1).standard_normal((*before, size)).astype(np.float32)),)

    return arguments


def _models() -> dict[str, Any]:
    """The networks of the table: a process that starts for something else does not import it."""
    found: dict[str, Any] = importlib.import_module("benchmarks.table.training").MODELS
    return found


def _trained(name: str) -> Stepped:
    model = _models()[name]
    title = model.title.partition(" training")[0]
    return Stepped(f"{title} step", model.step, model.arguments, model.size, model.size * 3 // 4)


PROGRAMS: dict[str, Callable[[], Stepped]] = {
    "mlp": lambda: Stepped("MLP step", mlp.training_step, mlp.arguments, 128, 96),
    "cnn": lambda: _trained("cnn"),
    "transformer": lambda: _trained("transformer"),
    "vae": lambda: _trained("vae"),
    "chain": lambda: Stepped("a chain of elementwise operations", _chain, _array(), 100_000, 70_000),
    "oscillators": lambda: Stepped("gradient through 100 steps of RK4", _oscillators, _array(2), 30, 40),
}


def compile_often(peer: str, name: str) -> dict[str, float]:
    """Seconds to trace, to compile with nothing stored, and for both again at another size and with another constant.
    Another program is compiled before."""
    if peer == "numba":
        numba = importlib.import_module("numba")
        numba.njit(lambda x: np.sin(x).sum())(np.ones((4, 5), np.float32))
        step = importlib.import_module("benchmarks.mlp_numba").step
        first, again = (_seconds(step, *mlp.numba_arguments(n)) for n in (128, 96))
        return {"compile": first, "new-shape": again}
    jax, jnp = _jnp(peer)
    jax.block_until_ready(jax.jit(lambda x: jnp.sin(x).sum())(jnp.ones((4, 5), jnp.float32)))
    program = PROGRAMS[name]()
    given, other = (program.arguments(peer, size) for size in (program.size, program.new_size))
    step = program.make(peer, RATES[0])
    began = time.perf_counter()
    lowered = step.lower(*given)
    traced = time.perf_counter() - began
    compiled = _seconds(lowered.compile)
    changed = program.make(peer, RATES[1])
    return {
        "trace": traced, "compile": traced + compiled,
        "new-shape": _seconds(lambda: step.lower(*other).compile()),
        "new-constant": _seconds(lambda: changed.lower(*given).compile()),
    }  # fmt: skip


def call_tiny(peer: str) -> dict[str, float]:
    """One call of a jitted a + b."""
    a = np.arange(8, dtype=np.float32)
    if peer == "numpy":
        return {"value": float((a + a)[1])}
    if peer == "numba":
        return {"value": float(importlib.import_module("benchmarks.tiny_numba").add(a, a)[1])}
    return {"value": float(importlib.import_module(peer).jit(lambda a, b: a + b)(a, a)[1])}


def call_model(peer: str, name: str, steps: int = 1) -> dict[str, float]:
    """One or more training steps; the largest memory of the process, in bytes."""
    if name == "mlp":
        return call_mlp(peer, steps)
    model = _models()[name]
    value: Any
    if peer == "torch":
        program = model.case(name).programs[peer]()
        for _ in range(steps):
            value = program.run()
        return _peak(float(value))
    step = model.step(peer)
    state, *batch = model.arguments(peer)
    for _ in range(steps):
        state, value = step(state, *batch)
    return _peak(float(value))


def call_mlp(peer: str, steps: int = 1) -> dict[str, float]:
    """The same of the MLP, which NumPy and Numba have, too."""
    value: Any
    if peer == "numpy":
        params, images, labels = mlp.inputs(128)
        velocity = [{name: np.zeros_like(p) for name, p in layer.items()} for layer in params]
        for _ in range(steps):
            value = mlp.numpy_step(params, velocity, images, labels)
    elif peer == "numba":
        step, arguments = importlib.import_module("benchmarks.mlp_numba").step, mlp.numba_arguments(128)
        for _ in range(steps):
            value = step(*arguments)
    elif peer == "torch":
        program = importlib.import_module("benchmarks.table.training").GROUP.case("mlp").programs[peer]()
        for _ in range(steps):
            value = program.run()
    else:
        step = mlp.training_step(peer)
        state, images, labels = mlp.arguments(peer, 128)
        for _ in range(steps):
            state, value = step(state, images, labels)
    return _peak(float(value))


def call_large(peer: str, name: str) -> dict[str, float]:
    """Seconds for the first call of a large program, for a step (the best of five) and for the first call at another
    size; the largest memory of the process until then, in bytes."""
    jax = importlib.import_module(peer)
    program = importlib.import_module("benchmarks.large").PROGRAMS[name]
    step = program.step(peer)
    state, *batch = program.arguments(peer, program.size)
    value: Any = None

    def call() -> None:
        nonlocal state, value
        state, value = jax.block_until_ready(step(state, *batch))

    first = _seconds(call)
    mean = float(np.asarray(value).mean())
    steps = [_seconds(call) for _ in range(5)]
    state, *batch = program.arguments(peer, program.size * 3 // 4)
    return {"first": first, "step": min(steps), "new-shape": _seconds(call)} | _peak(mean)


def _peak(value: float) -> dict[str, float]:
    """`value`, and the most memory that this process has had, in bytes.

    Linux's `ru_maxrss` counts what the process was before it became this program, so that nobody seems to take less
    than the one that measures: /proc says it without.
    """
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return {"value": value, "peak": peak * 1024}
    unit = 1 if sys.platform == "darwin" else 1024
    return {"value": value, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}


def _seconds(function: Any, *arguments: Any) -> float:
    began = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - began


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "compile": compile_often,
    "tiny": call_tiny,
    "first": call_model,
    "large": call_large,
    "memory": lambda peer, name: call_model(peer, name, 20),
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))
