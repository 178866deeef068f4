"""Cases of convolutions, pooling and cumulative sums: one text, with the names of hloom and with those of JAX."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .harness import Case, Program
from .rows import Make, in_both

RNG = np.random.default_rng(3)

NDArray = np.ndarray[Any, Any]


def _normal(*dimensions: int) -> NDArray:
    return RNG.standard_normal(dimensions).astype(np.float32)


def _case(
    name: str, title: str, make: Make, arguments: Sequence[NDArray],
    torch: Callable[[Any, Any], Any] | None = None, in_numpy: Callable[[], Any] | None = None,
) -> Case:  # fmt: skip
    programs = in_both(make, arguments)
    if in_numpy is not None:
        programs["numpy"] = lambda: Program(in_numpy)
    if torch is not None:
        programs["torch"] = _in_torch(torch, arguments)
    return Case(name, title, programs)


def _in_torch(function: Callable[[Any, Any], Any], arguments: Sequence[NDArray]) -> Callable[[], Program]:
    """`function(torch, arguments)` does the work."""

    def make() -> Program:
        torch = importlib.import_module("torch")
        torch.set_grad_enabled(False)
        own = [torch.from_numpy(a) for a in arguments]
        return Program(lambda: function(torch, own))

    return make


def convolution(batch: int, inputs: int, outputs: int, size: int, kernel: int, padding: int) -> Callable[[], Case]:
    """Channels first, as in PyTorch and by default in JAX."""

    def case() -> Case:
        x, w = _normal(batch, inputs, size, size), _normal(outputs, inputs, kernel, kernel)
        title = f"convolution of {batch}x{inputs}x{size}x{size}, {outputs} kernels of {kernel}x{kernel}"
        return _case(
            f"conv-{inputs}-{outputs}", title,
            lambda jax, jnp: lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), [(padding, padding)] * 2), [x, w],
            lambda torch, own: torch.nn.functional.conv2d(*own, padding=padding),
        )  # fmt: skip

    return case


def _pooled(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    return lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def max_pool() -> Case:
    x = _normal(128, 32, 28, 28)
    return _case(
        "max-pool", "max-pool 2x2 of 128x32x28x28", _pooled, [x],
        lambda torch, own: torch.nn.functional.max_pool2d(own[0], 2),
    )  # fmt: skip


def max_pool_gradient() -> Case:
    x, y = _normal(128, 32, 28, 28), _normal(128, 32, 14, 14)
    return _case(
        "max-pool-gradient", "gradient of that max-pool",
        lambda jax, jnp: lambda x, y: jax.vjp(_pooled(jax, jnp), x)[1](y)[0], [x, y],
    )  # fmt: skip


def cumulative_sum() -> Case:
    x = _normal(1_000_000) + np.float32(0.5)
    return _case(
        "cumsum", "cumulative sum of 1M f32", lambda jax, jnp: jnp.cumsum, [x],
        lambda torch, own: torch.cumsum(own[0], 0), lambda: np.cumsum(x),
    )  # fmt: skip


CASES: dict[str, Callable[[], Case]] = {
    "conv-64-64": convolution(32, 64, 64, 28, 3, 1),
    "conv-1-32": convolution(128, 1, 32, 28, 5, 0),
    "max-pool": max_pool,
    "max-pool-gradient": max_pool_gradient,
    "cumsum": cumulative_sum,
}
