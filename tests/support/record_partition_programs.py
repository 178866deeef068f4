"""Records programs that JAX lowers for several devices, and JAX's results: tests/partition_programs/.

    python tests/support/record_partition_programs.py

Each is a jitted function with shardings of arguments and results on a mesh of 4 x 2 devices, as text of HLO, with its
arguments and what JAX computes. If Shardy and GSPMD write a program's text differently, both forms are recorded.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

FOLDER = Path(__file__).resolve().parent.parent / "partition_programs"
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
numbers = np.random.default_rng(0)


def sharded(*names: Any) -> NamedSharding:
    return NamedSharding(mesh, P(*names))


def array(*sizes: int) -> Any:
    return numbers.normal(size=sizes).astype(np.float32)


def mlp(params: Any, x: Any, y: Any) -> Any:
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(x @ w + b) * y, -1))


def step(params: Any, x: Any, y: Any) -> Any:
    loss, gradient = jax.value_and_grad(mlp)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), loss


def steps(params: Any, x: Any, y: Any) -> Any:
    return jax.lax.scan(lambda p, _: step(p, x, y), params, None, length=3)


def attention(x: Any, *weights: Any) -> Any:
    def loss(weights: Any) -> Any:
        wq, wk, wv, wo = weights
        q, k, v = (jnp.einsum("btd,dhe->bhte", x, w) for w in (wq, wk, wv))
        mask = jnp.tril(jnp.ones((x.shape[1],) * 2, bool))
        scores = jax.nn.softmax(jnp.where(mask, jnp.einsum("bhte,bhse->bhts", q, k), -1e9))
        return jnp.mean(jnp.einsum("bhts,bhse,hed->btd", scores, v, wo) ** 2)

    return jax.grad(loss)(weights)


def convolution(x: Any, kernel: Any, y: Any) -> Any:
    def loss(kernel: Any) -> Any:
        dimensions = ("NHWC", "HWIO", "NHWC")
        made = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dimensions)
        return jnp.mean((made - y) ** 2)

    return jax.value_and_grad(loss)(kernel)


def embedding(table: Any, index: Any) -> Any:
    return jax.grad(lambda t: jnp.sum(t[index] ** 2))(table)


def order(x: Any) -> Any:
    return jnp.sort(x, -1), jnp.argmax(x, -1), jnp.argmax(x, 0), jnp.cumsum(x, 0)


def moves(x: Any) -> Any:
    turned = x.reshape(4, 2, 16).transpose(1, 0, 2) * jnp.arange(4.0)[None, :, None]
    return x.reshape(-1), turned, x.reshape(8, 2, 8).sum(1), x.T @ x


def solve(x: Any) -> Any:
    return jnp.linalg.solve(x @ x.transpose(0, 2, 1) + 5 * jnp.eye(4), x)


def mapped(x: Any, w: Any) -> Any:
    def each(x: Any, w: Any) -> Any:
        return jax.lax.psum(x @ w, "y") + jax.lax.axis_index("x")

    return jax.shard_map(each, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(x * 2, w).sum(0)


def mapped_over_some(x: Any, w: Any) -> Any:
    def each(x: Any, w: Any) -> Any:
        made = jax.lax.psum(jnp.tanh(x) @ w, "x") + jax.lax.axis_index("x")
        return made, jax.lax.ppermute(x, "x", [(k, (k + 1) % 4) for k in range(4)])

    specs = (P("x"), P(None, None))
    return jax.shard_map(each, mesh=mesh, in_specs=specs, out_specs=(P("x"), P("x")), axis_names={"x"})(x * 2, w)


def mapped_in_mapped(x: Any) -> Any:
    def inner(x: Any) -> Any:
        return jax.lax.psum(jnp.sin(x) * (1 + jax.lax.axis_index("y")), "y")

    def outer(x: Any) -> Any:
        return x.sum() + jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(x + 1)

    return jax.shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(x)


def loop(x: Any) -> Any:
    return jax.lax.fori_loop(0, 5, lambda i, x: x.at[i].set(x[i + 1] * 2 + i), x)


def branch(x: Any, p: Any) -> Any:
    return jax.lax.cond(p > 0, lambda x: x @ x.T, lambda x: -(x @ x.T), x)


def draw(key: Any) -> Any:
    return jax.random.normal(jax.random.wrap_key_data(key), (8, 16))


def constrained(x: Any) -> Any:
    return jax.lax.with_sharding_constraint(x * 2, sharded(P.UNCONSTRAINED, "y")).sum(0)


whole = sharded()
layers = [(array(16, 32), array(32)), (array(32, 32), array(32)), (array(32, 8), array(8))]
data = (layers, array(64, 16), np.eye(8, dtype=np.float32)[numbers.integers(0, 8, 64)])
by_batch = [(whole, whole)] * 3
tensor = [(sharded(None, "y"), sharded("y")), (sharded("y", None), whole), (whole, whole)]
stored = [(sharded("x", None), whole), (sharded("x", "y"), sharded("y")), (sharded("y", None), whole)]
batch, matrix = sharded("x"), sharded("x", "y")
PROGRAMS: dict[str, tuple[Any, Any, Any, Any]] = {
    "data_parallel": (step, data, (by_batch, batch, batch), None),
    "all_devices": (step, data, (by_batch, sharded(("x", "y")), sharded(("x", "y"))), None),
    "tensor_parallel": (step, data, (tensor, batch, batch), (tensor, whole)),
    "parameters_cut": (step, data, (stored, batch, batch), (stored, whole)),
    "steps": (steps, data, (tensor, batch, batch), None),
    "attention": (
        attention, (array(8, 6, 16), *(0.2 * array(16, 4, 4) for _ in range(3)), array(4, 4, 16)),
        (batch, *[sharded(None, "y")] * 3, sharded("y")), None,
    ),
    "convolution": (
        convolution, (array(8, 6, 6, 4), array(3, 3, 4, 8), array(8, 6, 6, 8)),
        (sharded("x", None, None, None), sharded(None, None, None, "y"), batch), None,
    ),
    "embedding": (
        embedding, (array(10, 8), numbers.integers(0, 10, (16,)).astype(np.int32)), (sharded(None, "y"), batch), None,
    ),
    "order": (order, (array(8, 16),), (matrix,), None),
    "moves": (moves, (array(8, 16),), (matrix,), None),
    "solve": (solve, (array(8, 4, 4),), (batch,), None),
    "mapped": (mapped, (array(8, 16), array(16, 4)), (batch, whole), None),
    "mapped_over_some": (mapped_over_some, (array(8, 16), array(16, 4)), (matrix, whole), None),
    "mapped_in_mapped": (mapped_in_mapped, (array(8, 16),), (matrix,), None),
    "loop_rows": (loop, (array(8, 16),), (sharded(None, "y"),), None),
    "loop": (loop, (array(8, 16),), (matrix,), None),
    "branch": (branch, (array(8, 16), np.float32(1)), (matrix, whole), None),
    "draw": (draw, (np.array([1, 2], np.uint32),), (whole,), matrix),
    "constrained": (constrained, (array(8, 16),), (batch,), None),
}  # fmt: skip
IN_BOTH_FORMS = ("tensor_parallel", "mapped", "constrained")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for shardy in (True, False):
        jax.config.update("jax_use_shardy_partitioner", shardy)
        for name, (function, arguments, given, wanted) in PROGRAMS.items():
            if not shardy and name not in IN_BOTH_FORMS:
                continue
            options = {} if wanted is None else {"out_shardings": wanted}
            jitted = jax.jit(function, in_shardings=given, **options)
            stem = name if shardy else f"{name}_gspmd"
            (FOLDER / f"{stem}.hlo").write_text(jitted.lower(*arguments).as_text("hlo"))
            named = {f"argument{k:03}": np.asarray(x) for k, x in enumerate(jax.tree.leaves(arguments))}
            results = jax.tree.leaves(jitted(*arguments))
            np.savez_compressed(
                FOLDER / f"{stem}.npz", **named, **{f"result{k:03}": np.asarray(x) for k, x in enumerate(results)}
            )


if __name__ == "__main__":
    main()
