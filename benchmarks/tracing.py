"""Times of tracing alone: a program becomes HLO here, a jaxpr in JAX. Nothing is compiled.

Loops with 10, 100 or 1,000 operations in the body, and loops in loops: both transformed, to show a time that grows
faster than the program. Each sample traces a function that was made anew. Results are compared for a body of 10
operations, since JAX compiles the large ones for minutes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .harness import Case, Program
from .table.declare import TRACED, Builder

Transformation = Callable[[Any, Callable[..., Any]], Callable[..., Any]]
"""transformation(jax, function of (carry, arrays)) -> a function of the same arguments."""

TRANSFORMATIONS: dict[str, Transformation] = {
    "scan": lambda jax, f: f,
    "grad": lambda jax, f: jax.grad(f),
    "hessian": lambda jax, f: jax.jacfwd(jax.jacrev(f)),
    "vmap-vmap": lambda jax, f: jax.vmap(jax.vmap(f, (None, 1)), (0, None)),
}
ARGUMENTS = np.ones(4, np.float32), np.ones((5, 4), np.float32)


def chain(jnp: Any, c: Any, x: Any, operations: int) -> Any:
    """About as many elementwise operations."""
    for k in range(operations // 2):
        c = (jnp.sin(c) * x, c + x * 0.5, jnp.tanh(c) - x)[k % 3]
    return c


def body_of(operations: int) -> Callable[[Any], Callable[..., Any]]:
    """A loop with so many operations in its body."""

    def make(jax: Any) -> Callable[..., Any]:
        def f(c: Any, xs: Any) -> Any:
            return jax.lax.scan(lambda c, x: (chain(jax.numpy, c, x, operations), c), c, xs)[0].sum()

        return f

    return make


def nested(depth: int) -> Callable[[Any], Callable[..., Any]]:
    """Loops in loops, the innermost with 10 operations."""

    def make(jax: Any) -> Callable[..., Any]:
        def level(depth: int) -> Callable[[Any, Any], Any]:
            if depth == 1:
                return lambda c, x: (chain(jax.numpy, c, x, 10), None)
            inner = level(depth - 1)
            return lambda c, x: (jax.lax.scan(lambda c, _: inner(c, x), c, None, length=3)[0], None)

        return lambda c, xs: jax.lax.scan(level(depth), c, xs)[0].sum()

    return make


PROGRAMS: dict[str, tuple[str, Callable[[Any], Callable[..., Any]]]] = {
    "10": ("a body of 10 operations", body_of(10)),
    "100": ("a body of 100 operations", body_of(100)),
    "1000": ("a body of 1,000 operations", body_of(1_000)),
    "depth-2": ("2 loops in one another", nested(2)),
    "depth-4": ("4 loops in one another", nested(4)),
}


def tracing(kind: str, size: str) -> Callable[[], Case]:
    transformation, (title, make) = TRANSFORMATIONS[kind], PROGRAMS[size]

    def builder(package: str) -> Builder:
        def build() -> Program:
            jax = importlib.import_module(package)
            own = [importlib.import_module(package + ".numpy").asarray(a) for a in ARGUMENTS]
            if kind == "vmap-vmap":
                own[0] = own[0] + own[1][:3] * 0

            def trace() -> Any:
                function = jax.jit(transformation(jax, make(jax)))
                return function.lower(*own) if package == "hloom" else function.trace(*own)

            checked = make if size.startswith("depth") else body_of(10)
            return Program(trace, check=lambda: jax.jit(transformation(jax, checked(jax)))(*own))

        return build

    name = {"scan": "scan", "grad": "gradient of a scan", "hessian": "Hessian of a scan"}.get(kind, "vmap of vmap")
    programs = {package: builder(package) for package in TRACED}
    return lambda: Case(f"trace-{kind}-{size}", f"tracing: {name}, {title}", programs, 1e-3)


CASES: dict[str, Callable[[], Case]] = {
    f"trace-{kind}-{size}": tracing(kind, size) for kind in TRANSFORMATIONS for size in PROGRAMS
}
