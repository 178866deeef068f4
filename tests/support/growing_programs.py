"""Programs of any length, and the steps (`support.steps`) that it takes to compile them, file by file.

LLVM compiles nothing here; the sizes of the kernels stand for its work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hloom.hlo import verify
from hloom.hlo.buffers.assignment import assign_buffers
from hloom.hlo.passes.manager import PassOptions
from hloom.hlo.support.memory_pressure import relieve
from hloom.hlo.text.parser import parse
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.lowering import lower_into
from hloom.numba_backend.pipeline import pipeline
from hloom.numba_backend.runtime import dialect
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import ProgramBuilder

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.steps import Steps

Program = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments."""

ROW, SCALAR = jnp.arange(100.0) / 100, jnp.float32(0.5)


def _chain(length: int) -> Program:
    def f(x: Any) -> Any:
        for _ in range(length // 2):
            x = jnp.sin(x) * 1.5
        return x

    return f, (ROW,)


def _scalars(length: int) -> Program:
    def f(x: Any) -> Any:
        for k in range(length // 2):
            x = jnp.sin(x) + k
        return x

    return f, (SCALAR,)


def _tree(length: int) -> Program:
    def f(x: Any) -> Any:
        values = [jnp.sin(x * k) for k in range(length // 3)]
        while len(values) > 1:
            pairs = [a + b for a, b in zip(values[::2], values[1::2], strict=False)]
            values = pairs + values[2 * len(pairs) :]
        return values[0]

    return f, (ROW,)


def _grid(length: int) -> Program:
    side = int((length / 3) ** 0.5)

    def f(x: Any) -> Any:
        row = [x * k for k in range(side)]
        for _ in range(side - 1):
            new = [row[0] * 0.5]
            for j in range(1, side):
                new.append(jnp.maximum(new[-1], row[j]) + row[j - 1] * 0.1)
            row = new
        return row[-1]

    return f, (ROW,)


def _pieces(length: int) -> Program:
    return lambda x: jnp.array([x[k % 50] * k for k in range(length // 4)]), (ROW,)


def _rows(length: int) -> Program:
    return lambda x: jnp.stack([jnp.sin(x) * k for k in range(length // 4)]).sum(), (ROW,)


def _equations(length: int) -> Program:
    count = length // 9

    def f(x: Any) -> Any:
        return jnp.array([x[k] * x[(k + 1) % count] - jnp.sin(x[(k + 2) % count]) for k in range(count)])

    return f, (jnp.ones(count),)


def _jacobian(length: int) -> Program:
    f, arguments = _equations(length // 4)
    return hloom.jacfwd(f), arguments


def _softmaxes(length: int) -> Program:
    def f(x: Any) -> Any:
        for _ in range(length // 10):
            weights = jnp.exp(x - jnp.max(x))
            x = weights / jnp.sum(weights) + x
        return x

    return f, (ROW,)


def _norms(length: int) -> Program:
    def f(x: Any) -> Any:
        for _ in range(length // 20):
            centred = x - x.mean(-1, keepdims=True)
            x = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return x

    return hloom.grad(lambda x: f(x).sum()), (ROW.reshape(4, 25),)


def _sums(length: int) -> Program:
    return lambda x: sum(jnp.sum(x * k) for k in range(length // 4)), (ROW,)


def _integrator(length: int) -> Program:
    def loss(a: Any, x: Any) -> Any:
        def f(x: Any) -> Any:
            return jnp.tanh(x @ a) - x

        for _ in range(length // 75):
            k1 = f(x)
            k2 = f(x + 0.05 * k1)
            k3 = f(x + 0.05 * k2)
            k4 = f(x + 0.1 * k3)
            x = x + (0.1 / 6) * (k1 + 2 * k2 + 2 * k3 + k4)
        return jnp.sum(x * x)

    return hloom.grad(loss), (jnp.eye(8), jnp.ones((16, 8)))


def _batched_gradient(length: int) -> Program:
    def f(x: Any) -> Any:
        for _ in range(length // 5):
            x = jnp.sin(x) * 1.5
        return x.sum()

    return hloom.vmap(hloom.grad(f)), (ROW.reshape(4, 25),)


def _updates(length: int) -> Program:
    def f(x: Any) -> Any:
        for k in range(length // 8):
            x = x.at[k % 50].add(x[k % 49] * 2)
        return x

    return f, (ROW,)


def _arguments(length: int) -> Program:
    return lambda *rows: [x * 2 + 1 for x in rows], (ROW,) * (length // 3)


def _sum_of_arguments(length: int) -> Program:
    return lambda *rows: sum(x * 2 for x in rows), (ROW,) * (length // 3)


def _loops(length: int) -> Program:
    def f(x: Any) -> Any:
        for k in range(length // 20):
            x = lax.fori_loop(0, 5, lambda i, a, k=k: jnp.sin(a) * k, x)
        return x

    return f, (ROW,)


def _long_step(length: int) -> Program:
    def step(carry: Any, x: Any) -> Any:
        values = list(carry)
        for k in range(length // 4):
            values[k % 8] = values[k % 8] * 0.9 + jnp.sin(values[(k + 1) % 8])
        return tuple(values), values[0]

    return lambda x: lax.scan(step, (x,) * 8, ROW), (SCALAR,)


def _wide_state(length: int) -> Program:
    count = length // 6

    def step(i: Any, rows: Any) -> Any:
        return tuple([a * 0.5 + b for a, b in zip(rows, (*rows[1:], rows[0]), strict=True)])

    return lambda x: lax.fori_loop(0, 5, step, (x,) * count), (jnp.ones(2000),)


def _nested_loops(length: int) -> Program:
    """Five loops in each other, with a part of the instructions in each."""

    def nest(depth: int, x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            for _ in range(length // 20):
                x = jnp.sin(x) * 0.5 + 1
            return nest(depth - 1, x) if depth else x

        return lax.fori_loop(0, 2, body, x)

    return lambda x: nest(4, x), (SCALAR,)


def _choices(length: int) -> Program:
    def f(x: Any) -> Any:
        for k in range(length // 20):
            x = lax.cond(x[0] > k, lambda x: x * 2, jnp.sin, x)
        return x

    return f, (ROW,)


def _gathers(length: int) -> Program:
    def f(x: Any) -> Any:
        places = jnp.arange(100)
        for k in range(length // 16):
            x = x + x[(places + k) % 100]
        return x

    return f, (ROW,)


def _rolls(length: int) -> Program:
    def f(x: Any) -> Any:
        for _ in range(length // 4):
            x = x + jnp.roll(x, 1)
        return x

    return f, (ROW,)


FORMS: dict[str, Callable[[int], Program]] = {
    form.__name__[1:]: form
    for form in (
        _chain, _scalars, _tree, _grid, _pieces, _rows, _equations, _jacobian, _softmaxes, _norms, _sums, _integrator,
        _batched_gradient, _updates, _arguments, _sum_of_arguments, _loops, _long_step, _wide_state, _nested_loops,
        _choices, _gathers, _rolls,
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Growth:
    """The cost of compiling one program."""

    instructions: int
    """Of the module, as traced."""
    steps: dict[str, int]
    """By file."""
    longest_kernel: int
    """Characters of its text."""
    all_kernels: int
    """The same of all distinct ones."""
    results: int
    """The most pointers of a kernel."""


def growth_of(form: str, length: int) -> Growth:
    """Traces, prints, reads, verifies, optimises and emits the program of a form that has about `length` instructions.
    """
    relieve()
    hloom.clear_caches()
    function, arguments = FORMS[form](length)
    steps = Steps()
    with steps.counting():
        module = hloom.make_hlo(function)(*arguments)
        verify(parse(module.to_text()))
        bodies = FusedComputations()
        optimized, _ = pipeline("cpu", bodies).run(module, PassOptions())
        assignment = assign_buffers(optimized, bodies.can_share)
        builder = ProgramBuilder()
        lower_into(builder, assignment, bodies)
        operands = [k for row in builder._rows for k in row.operands if isinstance(k, KernelSource)]
        kernels = {k.source: k for k in operands if k.convention == "kernel"}
        for kernel in kernels.values():
            to_llvm(kernel, dialect.SCOPE)
    return Growth(
        sum(1 for _ in module.instructions()),
        steps.by_file(),
        max(map(len, kernels)),
        sum(map(len, kernels)),
        max(sum(p.kind == "pointer" for p in k.parameters) for k in kernels.values()),
    )
