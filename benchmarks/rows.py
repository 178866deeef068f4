"""Cases of gather, scatter, sort and top-k: one text, with the names of hloom and with those of JAX."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .harness import Case, Program

RNG = np.random.default_rng(2)
COUNT = 1_000_000

NDArray = np.ndarray[Any, Any]
Make = Callable[[Any, Any], Callable[..., Any]]
"""`make(jax, jax.numpy)`, or with hloom and hloom.numpy in their place, returns the function to jit."""


def in_both(make: Make, arguments: Sequence[NDArray]) -> dict[str, Callable[[], Program]]:
    """hloom's program and JAX's."""

    def program(package: str) -> Callable[[], Program]:
        def build() -> Program:
            jax, jnp = importlib.import_module(package), importlib.import_module(f"{package}.numpy")
            jitted = jax.jit(make(jax, jnp))
            own = [jnp.asarray(a) for a in arguments]
            return Program(lambda: jitted(*own), jax.block_until_ready)

        return build

    return {package: program(package) for package in ("hloom", "jax")}


def _case(name: str, title: str, make: Make, arguments: Sequence[NDArray], in_numpy: Callable[[], Any]) -> Case:
    return Case(name, title, {**in_both(make, arguments), "numpy": lambda: Program(in_numpy)})


def gather() -> Case:
    x = RNG.standard_normal(COUNT).astype(np.float32)
    indices = RNG.integers(0, COUNT, COUNT).astype(np.int32)
    return _case(
        "gather", "gather of 1M of 1M f32", lambda jax, jnp: lambda x, i: x.at[i].get(mode="clip"), [x, indices],
        lambda: x.take(indices, mode="clip"),
    )  # fmt: skip


def scatter_add() -> Case:
    updates = RNG.standard_normal(COUNT).astype(np.float32)
    indices = RNG.integers(0, 1000, COUNT).astype(np.int32)
    zeros = np.zeros(1000, np.float32)

    def in_numpy() -> NDArray:
        result = zeros.copy()
        np.add.at(result, indices, updates)
        return result

    return _case(
        "scatter-add", "scatter-add of 1M f32 into 1000", lambda jax, jnp: lambda z, i, u: z.at[i].add(u),
        [zeros, indices, updates], in_numpy,
    )  # fmt: skip


def sort() -> Case:
    x = RNG.standard_normal(COUNT).astype(np.float32)
    return _case("sort", "sort of 1M f32", lambda jax, jnp: jnp.sort, [x], lambda: np.sort(x))


def sort_rows() -> Case:
    x = RNG.standard_normal((1024, 1024)).astype(np.float32)
    return _case("sort-rows", "sort of each row of 1024x1024 f32", lambda jax, jnp: jnp.sort, [x], lambda: np.sort(x))


def argsort() -> Case:
    x = RNG.permutation(COUNT).astype(np.float32)
    return _case("argsort", "argsort of 1M f32", lambda jax, jnp: jnp.argsort, [x], lambda: np.argsort(x))


def top_k() -> Case:
    x = RNG.permutation(1024 * 1024).astype(np.float32).reshape(1024, 1024)

    def in_numpy() -> tuple[NDArray, NDArray]:
        some = np.argpartition(x, -10)[:, -10:]
        order = np.argsort(-np.take_along_axis(x, some, 1))
        places = np.take_along_axis(some, order, 1)
        return np.take_along_axis(x, places, 1), places

    return _case(
        "top-k", "top 10 of each row of 1024x1024 f32", lambda jax, jnp: lambda x: jax.lax.top_k(x, 10), [x], in_numpy
    )


CASES: dict[str, Callable[[], Case]] = {
    "gather": gather,
    "scatter-add": scatter_add,
    "sort": sort,
    "sort-rows": sort_rows,
    "argsort": argsort,
    "top-k": top_k,
}
