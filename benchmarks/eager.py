"""Times of single calls outside of jit: common functions on small arrays, as a notebook or a test calls them.

Only the library's own work is seen: the arrays have about 100 elements. No result is waited for but the last one, since
JAX returns before the work is done.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .harness import Case, Program
from .table.declare import TRACED, Builder

RNG = np.random.default_rng(5)
ARGUMENTS = {
    "x": RNG.standard_normal(100).astype(np.float32),
    "y": RNG.standard_normal(100).astype(np.float32),
    "A": RNG.standard_normal((10, 10)).astype(np.float32),
    "B": RNG.standard_normal((10, 10)).astype(np.float32),
    "S": (lambda a: a @ a.T + 10 * np.eye(10))(RNG.standard_normal((10, 10))).astype(np.float32),
    "i": RNG.integers(0, 100, 20).astype(np.int32),
}

CALLS: dict[str, str] = {
    # arithmetic
    "add": "x + y", "add-number": "x + 1", "compare": "x > y", "tanh": "jnp.tanh(x)", "power": "x ** 2",
    "where": "jnp.where(x > 0, x, y)", "clip": "jnp.clip(x, -1, 1)", "maximum": "jnp.maximum(x, 0)",
    # reductions
    "sum": "x.sum()", "mean-axis": "A.mean(axis=0)", "var": "x.var()", "std-axis": "jnp.std(A, axis=1)",
    "max": "x.max()", "argmax": "jnp.argmax(x)", "all": "jnp.all(x > 0)", "cumsum": "jnp.cumsum(x)",
    "norm": "jnp.linalg.norm(x)", "logsumexp": "jax.nn.logsumexp(x)", "allclose": "jnp.allclose(x, x)",
    # order and shape
    "sort": "jnp.sort(x)", "argsort": "jnp.argsort(x)", "median": "jnp.median(x)", "take": "jnp.take(x, i)",
    "reshape": "A.reshape(100)", "transpose": "A.T", "concatenate": "jnp.concatenate([x, y])",
    "stack": "jnp.stack([x, y])", "arange": "jnp.arange(10)", "zeros": "jnp.zeros((3, 3))", "eye": "jnp.eye(4)",
    "linspace": "jnp.linspace(0.0, 1.0, 50)", "asarray": "jnp.asarray([1.0, 2.0, 3.0])",
    # indexing
    "get": "x[3]", "slice": "x[2:5]", "gather": "x[i]", "at-set": "x.at[1].set(2.0)", "at-add": "x.at[i].add(1.0)",
    # linear algebra
    "matmul": "A @ B", "einsum": "jnp.einsum('ij,jk->ik', A, B)", "dot": "jnp.dot(x, y)",
    "solve": "jnp.linalg.solve(S, B)", "cholesky": "jnp.linalg.cholesky(S)", "inv": "jnp.linalg.inv(S)",
    # neural networks
    "softmax": "jax.nn.softmax(x)", "relu": "jax.nn.relu(x)", "gelu": "jax.nn.gelu(x)",
    "one-hot": "jax.nn.one_hot(i, 100)",
    # random numbers
    "key": "jax.random.key(0)", "split": "jax.random.split(key)", "normal": "jax.random.normal(key, (4,))",
    "uniform": "jax.random.uniform(key, (1000,))", "permutation": "jax.random.permutation(key, 10)",
}  # fmt: skip
"""The calls to measure: `x` and `y` have 100 numbers, `A`, `B` and `S` are 10x10, and `i` holds 20 indices."""
NOT_COMPARED = {"key", "split"}
"""Their results are no numbers."""


def call(name: str, text: str) -> Callable[[], Case]:
    def builder(package: str) -> Builder:
        def build() -> Program:
            jax = importlib.import_module(package)
            numpy = importlib.import_module(package + ".numpy")
            names: dict[str, Any] = {"jax": jax, "jnp": numpy, "key": jax.random.key(1)}
            names |= {n: numpy.asarray(a) for n, a in ARGUMENTS.items()}
            run = eval(f"lambda: {text}", names)
            return Program(run, jax.block_until_ready, check=(list) if name in NOT_COMPARED else None)

        return build

    programs = {package: builder(package) for package in TRACED}
    return lambda: Case(f"eager-{name}", f"outside of jit: `{text}`", programs, 1e-3, wait_each=False)


CASES: dict[str, Callable[[], Case]] = {f"eager-{name}": call(name, text) for name, text in CALLS.items()}
