"""Cases that compile one program for two targets: the cost of a TPU's layouts on this CPU.

Arguments and results are row-major for both; for target tpu they are converted at the entry, and the time includes
this. The peers are hloom compiled for the cpu and hloom compiled for the tpu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import mlp
from .harness import Case, Program

RNG = np.random.default_rng(3)
PEERS = {"hloom": "cpu", "hloom-tpu": "tpu"}

NDArray = np.ndarray[Any, Any]


def _floats(*dimensions: int) -> NDArray:
    return RNG.standard_normal(dimensions).astype(np.float32)


def _case(
    name: str, title: str, make: Callable[[Any, Any], Callable[..., Any]], arguments: Callable[[], Sequence[NDArray]]
) -> Callable[[], Case]:
    """`make(hloom, hloom.numpy)` returns the function to compile for each target."""

    def case() -> Case:
        given = arguments()

        def builder(target: str) -> Callable[[], Program]:
            def build() -> Program:
                import hloom
                import hloom.numpy as jnp

                own = [jnp.asarray(a) for a in given]
                compiled = hloom.jit(make(hloom, jnp)).lower(*own).compile(target=target)
                return Program(lambda: compiled(*own))

            return build

        return Case(f"target-{name}", f"cpu, tpu: {title}", {peer: builder(target) for peer, target in PEERS.items()})

    return case


def training_step() -> Case:
    batch = 128

    def builder(target: str) -> Callable[[], Program]:
        def build() -> Program:
            step = mlp.training_step("hloom").lower(*mlp.arguments("hloom", batch)).compile(target=target)
            state, images, labels = mlp.arguments("hloom", batch)

            def run() -> Any:
                nonlocal state
                state, value = step(state, images, labels)
                return value

            def check() -> Any:
                fresh, *data = mlp.arguments("hloom", batch)
                fresh, _ = step(fresh, *data)
                return [layer[name] for part in step(fresh, *data)[0] for layer in part for name in ("w", "b")]

            return Program(run, check=check)

        return build

    programs = {peer: builder(target) for peer, target in PEERS.items()}
    return Case("target-mlp", f"cpu, tpu: MLP training step, {batch}x784-512-512-10, momentum", programs)


def _chain(hloom: Any, jnp: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        y = jnp.tanh(x) * 2 + jnp.exp(-x * x)
        return y / (1 + jnp.abs(y))

    return f


def _layers(hloom: Any, jnp: Any) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = hloom.nn.relu(x @ w) + x
        return x

    return f


_MANY = "tanh(x)*2 + exp(-x*x), y/(1+abs(y)),"

CASES: dict[str, Callable[[], Case]] = {
    "target-mlp": training_step,
    "target-elementwise": _case("elementwise", f"{_MANY} f32[1024,1024]", _chain, lambda: [_floats(1024, 1024)]),
    "target-vector": _case("vector", f"{_MANY} f32[1000000]", _chain, lambda: [_floats(1_000_000)]),
    "target-add": _case("add", "x + y, f32[1000,1000]", lambda _, jnp: lambda x, y: x + y,
                        lambda: [_floats(1000, 1000), _floats(1000, 1000)]),
    "target-bf16": _case("bf16", "x*2 + 1 in bf16, [1024,1024]", lambda _, jnp: lambda x: (
        x.astype(jnp.bfloat16) * 2 + 1).astype(jnp.float32), lambda: [_floats(1024, 1024)]),
    "target-softmax": _case("softmax", "softmax of 1024x1024 f32 rows",
                            lambda hloom, jnp: lambda x: hloom.nn.softmax(x, axis=1), lambda: [_floats(1024, 1024)]),
    "target-sum-0": _case("sum-0", "sum of 2048x2048 f32, axis 0", lambda _, jnp: lambda x: jnp.sum(x, axis=0),
                          lambda: [_floats(2048, 2048)]),
    "target-sum-1": _case("sum-1", "sum of 2048x2048 f32, axis 1", lambda _, jnp: lambda x: jnp.sum(x, axis=1),
                          lambda: [_floats(2048, 2048)]),
    "target-transpose": _case("transpose", "x.T + y, f32[1024,1024]", lambda _, jnp: lambda x, y: x.T + y,
                              lambda: [_floats(1024, 1024), _floats(1024, 1024)]),
    "target-dot": _case("dot", "x @ w, 512x512 f32", lambda _, jnp: lambda x, w: x @ w,
                        lambda: [_floats(512, 512), _floats(512, 512)]),
    "target-layers": _case("layers", "4 layers of relu(x @ w) + x, 256x256 f32", _layers,
                           lambda: [_floats(256, 256), _floats(256, 256) / 256]),
}  # fmt: skip
