"""Cases of convolutions, pooling and cumulative sums: hloom runs them as HLO text, in the form that JAX prints."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .harness import FROM_HLO, Case, Program
from .rows import in_hloom, in_jax

RNG = np.random.default_rng(3)

NDArray = np.ndarray[Any, Any]

ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] add(x, y)\n}\n"
MAX = "max {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] maximum(x, y)\n}\n"
GE = "ge {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = pred[] compare(x, y), direction=GE\n}\n"
POOL = "size=1x1x2x2 stride=1x1x2x2"


def _normal(*dimensions: int) -> NDArray:
    return RNG.standard_normal(dimensions).astype(np.float32)


def _type(array: NDArray) -> str:
    return f"f32[{','.join(map(str, array.shape))}]"


def _case(
    name: str, title: str, text: str, arguments: Sequence[NDArray], jax: Callable[..., Callable[..., Any]],
    torch: Callable[[Any, Any], Any] | None = None,
) -> Case:  # fmt: skip
    programs = {"hloom": in_hloom(text, arguments), "jax": in_jax(jax, arguments)}
    if torch is not None:
        programs["torch"] = _in_torch(torch, arguments)
    return Case(name, title + FROM_HLO, programs)


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
        places = size + 2 * padding - kernel + 1
        pad = f" pad={padding}_{padding}x{padding}_{padding}" if padding else ""
        text = f"""HloModule convolution
ENTRY main {{
  x = {_type(x)} parameter(0)
  w = {_type(w)} parameter(1)
  ROOT r = f32[{batch},{outputs},{places},{places}] convolution(x, w), window={{size={kernel}x{kernel}{pad}}},
      dim_labels=bf01_oi01->bf01
}}"""
        title = f"convolution of {batch}x{inputs}x{size}x{size}, {outputs} kernels of {kernel}x{kernel}"
        return _case(
            f"conv-{inputs}-{outputs}", title, text, [x, w],
            lambda jax, jnp: lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), [(padding, padding)] * 2),
            lambda torch, own: torch.nn.functional.conv2d(*own, padding=padding),
        )  # fmt: skip

    return case


def max_pool() -> Case:
    x = _normal(128, 32, 28, 28)
    text = f"""HloModule pool
{MAX}
ENTRY main {{
  x = {_type(x)} parameter(0)
  lowest = f32[] constant(-inf)
  ROOT r = f32[128,32,14,14] reduce-window(x, lowest), window={{{POOL}}}, to_apply=max
}}"""
    return _case(
        "max-pool", "max-pool 2x2 of 128x32x28x28", text, [x],
        lambda jax, jnp: lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
        lambda torch, own: torch.nn.functional.max_pool2d(own[0], 2),
    )  # fmt: skip


def max_pool_gradient() -> Case:
    x, y = _normal(128, 32, 28, 28), _normal(128, 32, 14, 14)
    text = f"""HloModule pool_gradient
{ADD}
{GE}
ENTRY main {{
  x = {_type(x)} parameter(0)
  y = {_type(y)} parameter(1)
  zero = f32[] constant(0)
  ROOT r = {_type(x)} select-and-scatter(x, y, zero), window={{{POOL}}}, select=ge, scatter=add
}}"""

    def gradient(jax: Any, jnp: Any) -> Callable[..., Any]:
        def pool(x: Any) -> Any:
            return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

        return lambda x, y: jax.vjp(pool, x)[1](y)[0]

    return _case("max-pool-gradient", "gradient of that max-pool", text, [x, y], gradient)


def cumulative_sum() -> Case:
    count = 1_000_000
    x = _normal(count) + np.float32(0.5)
    text = f"""HloModule cumsum
{ADD}
ENTRY main {{
  x = {_type(x)} parameter(0)
  zero = f32[] constant(0)
  ROOT r = {_type(x)} reduce-window(x, zero), window={{size={count} pad={count - 1}_0}}, to_apply=add
}}"""
    case = _case(
        "cumsum", "cumulative sum of 1M f32", text, [x], lambda jax, jnp: jnp.cumsum,
        lambda torch, own: torch.cumsum(own[0], 0),
    )  # fmt: skip
    programs = {**case.programs, "numpy": lambda: Program(lambda: np.cumsum(x))}
    return Case(case.name, case.title.removesuffix(FROM_HLO), programs)


CASES: dict[str, Callable[[], Case]] = {
    "conv-64-64": convolution(32, 64, 64, 28, 3, 1),
    "conv-1-32": convolution(128, 1, 32, 28, 5, 0),
    "max-pool": max_pool,
    "max-pool-gradient": max_pool_gradient,
    "cumsum": cumulative_sum,
}
