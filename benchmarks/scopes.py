"""Programs outside of jit: op by op, in a `hloom.jit_scope`, under jit, in JAX, and in NumPy. The text is the same.

A program does some steps and returns the last state; nothing asks for a value before. `python -m benchmarks.scopes`
prints what the first call takes, in a process of its own for each peer, and what later ones take.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import mlp
from .harness import Case, Program
from .table.declare import Builder

STEPS = 10
PEERS = ("hloom", "hloom scope", "hloom jit", "jax", "numpy")
Step = Callable[[Any], Any]


def heat(np_: Any, size: int) -> tuple[Step, Any]:
    """Explicit Euler on a square grid with fixed edges."""
    grid = np.zeros((size, size), np.float32)
    grid[size // 4 : size // 2, size // 3 : size // 2] = 1

    def step(u: Any) -> Any:
        inner = u[1:-1, 1:-1]
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return np_.pad(inner + 0.2 * (around - 4.0 * inner), 1)

    return step, np_.asarray(grid)


def bodies(np_: Any, count: int) -> tuple[Step, Any]:
    """Newton's law between all pairs, leapfrog."""
    rng = np.random.default_rng(2)
    places, speeds = (rng.standard_normal((count, 3)).astype(np.float32) for _ in range(2))
    masses = np_.asarray(rng.random(count).astype(np.float32))

    def step(state: Any) -> Any:
        x, v = state
        apart = x[None, :, :] - x[:, None, :]
        square = (apart * apart).sum(axis=2) + 0.01
        weight = masses / (square * np_.sqrt(square))
        v = v + 0.001 * (apart * weight[:, :, None]).sum(axis=1)
        return x + 0.001 * v, v

    return step, (np_.asarray(places), np_.asarray(speeds))


def network(package: str, batch: int, sizes: tuple[int, ...]) -> tuple[Step, Any]:
    """The training step of `mlp.py`, `value_and_grad` in it, outside of jit; in NumPy, by hand."""
    if package == "numpy":
        params, images, labels = mlp.inputs(batch, sizes)
        velocity = [{k: np.zeros_like(v) for k, v in layer.items()} for layer in params]

        def by_hand(_: Any) -> Any:
            mlp.numpy_step(params, velocity, images, labels)
            return params, velocity

        return by_hand, None
    step = mlp.training_step(package).__wrapped__
    state, images, labels = mlp.arguments(package, batch, sizes)
    return (lambda s: step(s, images, labels)[0]), state


def _numeric(make: Callable[[Any, int], tuple[Step, Any]], size: int) -> Callable[[str], tuple[Step, Any]]:
    return lambda package: make(importlib.import_module(package if package == "numpy" else package + ".numpy"), size)


PROGRAMS: dict[str, tuple[str, Callable[[str], tuple[Step, Any]]]] = {
    "heat-small": ("heat, 64x64", _numeric(heat, 64)),
    "heat-large": ("heat, 1000x1000", _numeric(heat, 1000)),
    "bodies-small": ("20 bodies", _numeric(bodies, 20)),
    "bodies-large": ("500 bodies", _numeric(bodies, 500)),
    "mlp-small": ("training, 32-64-10, batch 32", lambda package: network(package, 32, (32, 64, 10))),
    "mlp-large": ("training, 784-512-512-10, batch 128", lambda package: network(package, 128, mlp.SIZES)),
}


def program(name: str, peer: str) -> Callable[[], Any]:
    """`STEPS` steps, from the same state each time."""
    package, _, how = peer.partition(" ")
    step, state = PROGRAMS[name][1](package)
    library = importlib.import_module(package)
    if how == "jit":
        step = library.jit(step)

    def run() -> Any:
        s = state
        for _ in range(STEPS):
            s = step(s)
        return s

    if how == "scope":
        return library.jit_scope()(run)  # type: ignore[no-any-return]
    return run if package == "numpy" else lambda: library.block_until_ready(run())


def case(name: str) -> Callable[[], Case]:
    def builder(peer: str) -> Builder:
        return lambda: Program(program(name, peer), check=list if name.startswith("mlp") else None)

    title = f"{STEPS} steps outside of jit: {PROGRAMS[name][0]}"
    return lambda: Case(f"scope-{name}", title, {peer: builder(peer) for peer in PEERS}, 1e-3)


CASES: dict[str, Callable[[], Case]] = {f"scope-{name}": case(name) for name in PROGRAMS}


def main() -> None:
    """A line for each program and peer: milliseconds a step, of the first call and of the best of later ones."""
    if len(sys.argv) == 3:
        run = program(sys.argv[1], sys.argv[2])
        times = []
        while len(times) < 8 or (sum(times) < 1 and len(times) < 200):
            began = time.perf_counter()
            run()
            times.append(time.perf_counter() - began)
        print(*(f"{1e3 * t / STEPS:.3f}" for t in (times[0], min(times[1:]))))
        return
    for name, (title, _) in PROGRAMS.items():
        for peer in PEERS:
            command = [sys.executable, "-m", "benchmarks.scopes", name, peer]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            first, later = done.stdout.split()
            print(f"{title:40s} {peer:12s} first {first:>10s}  later {later:>10s}", flush=True)


if __name__ == "__main__":
    main()
