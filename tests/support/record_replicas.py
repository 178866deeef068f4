#!/usr/bin/env python3
"""Records programs of several devices as JAX compiles them: python tests/support/record_replicas.py. Needs jax 0.10.

For each: the text of the module after XLA's partitioner and passes, and each device's arguments and results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

PATH = Path(__file__).resolve().parent.parent / "data" / "replicas.npz"
DEVICES = jax.devices()
MESH = Mesh(np.array(DEVICES).reshape(2, 2), ("x", "y"))
LINE = Mesh(np.array(DEVICES), ("i",))


class Program(NamedTuple):
    """A jitted function, and its arguments with their shardings."""

    function: Callable[..., Any]
    arguments: list[tuple[np.ndarray, NamedSharding]]


def _mapped(function: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, *arrays: np.ndarray) -> Program:
    mapped = jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    shardings = [NamedSharding(mesh, spec) for spec in in_specs]
    return Program(mapped, list(zip(arrays, shardings, strict=True)))


def _split(function: Callable[..., Any], mesh: Mesh, specs: list[P], *arrays: np.ndarray) -> Program:
    return Program(function, [(a, NamedSharding(mesh, s)) for a, s in zip(arrays, specs, strict=True)])


def _loss(w1: Any, w2: Any, x: Any, y: Any) -> Any:
    h = jnp.tanh(x @ w1)
    return jnp.mean((h @ w2 - y) ** 2)


def _step(w1: Any, w2: Any, x: Any, y: Any) -> Any:
    loss, (g1, g2) = jax.value_and_grad(_loss, argnums=(0, 1))(w1, w2, x, y)
    return loss, w1 - 0.1 * g1, w2 - 0.1 * g2


def programs() -> dict[str, Program]:
    """All of them."""
    rng = np.random.default_rng(0)

    def f(*dims: int) -> np.ndarray:
        return rng.standard_normal(dims).astype(np.float32)

    ring = [(k, (k + 1) % 4) for k in range(4)]
    weights = (f(6, 8), f(8, 2), f(12, 6), f(12, 2))
    return {
        "psum": _mapped(lambda a: lax.psum(a, "x"), MESH, (P("x", "y"),), P(None, "y"), f(4, 6)),
        "psum over both": _mapped(lambda a: lax.psum(a.sum(), ("x", "y")), MESH, (P("x", "y"),), P(), f(4, 6)),
        "pmax and pmean": _mapped(
            lambda a: (lax.pmax(a, "y"), lax.pmean(a, "x")), MESH, (P("x", "y"),), (P("x", None), P(None, "y")), f(4, 6)
        ),
        "psum of bf16": _mapped(
            lambda a: lax.psum(a.astype(jnp.bfloat16), "i").astype(jnp.float32), LINE, (P("i"),), P(), f(8, 5)
        ),
        "all_gather": _mapped(
            lambda a: lax.all_gather(a, "i", axis=1, tiled=True), LINE, (P(None, "i"),), P(), f(3, 8)
        ),
        "psum_scatter": _mapped(
            lambda a: lax.psum_scatter(a, "i", scatter_dimension=1, tiled=True), LINE, (P(None, None),), P(None, "i"),
            f(3, 8),
        ),
        "all_to_all": _mapped(
            lambda a: lax.all_to_all(a, "i", 1, 0, tiled=True), LINE, (P("i", None),), P(None, "i"), f(8, 4)
        ),
        "ppermute in a loop": _mapped(
            lambda a: lax.fori_loop(0, 3, lambda k, c: lax.ppermute(c, "i", ring) * 2 + a, a), LINE, (P("i"),), P("i"),
            f(8, 3),
        ),
        "axis_index": _mapped(
            lambda a: a * (lax.axis_index("x") * 10 + lax.axis_index("y")), MESH, (P("x", "y"),), P("x", "y"), f(4, 6)
        ),
        "a branch with a psum": _mapped(
            lambda a: lax.cond(lax.axis_index("x") > 0, lambda: lax.psum(a, "y"), lambda: a), MESH, (P("x", "y"),),
            P("x", "y"), f(4, 6),
        ),
        "psum until it is large": _mapped(
            lambda a: lax.while_loop(lambda c: lax.psum(c.sum(), "i") < 1e3, lambda c: c * 2, a), LINE, (P("i"),),
            P("i"), np.abs(f(8)),
        ),
        "data parallel step": _split(_step, LINE, [P(), P(), P("i"), P("i")], *weights),
        "tensor parallel step": _split(_step, MESH, [P(None, "y"), P("y"), P("x"), P("x")], *weights),
        "a product of shards": _split(lambda a, b: a @ b, MESH, [P("x", "y"), P("y", None)], f(8, 4), f(4, 6)),
        "a sum of columns": _split(lambda a: a.sum(0), LINE, [P("i")], f(8, 5)),
        "sorted rows, resharded": _split(
            lambda a: lax.with_sharding_constraint(jnp.sort(a, 1), NamedSharding(LINE, P(None, "i"))), LINE, [P("i")],
            f(8, 4),
        ),
    }  # fmt: skip


def _of_devices(arrays: list[jax.Array]) -> list[list[np.ndarray]]:
    """Each array's part on each device."""
    parts = [{s.device.id: np.asarray(s.data) for s in a.addressable_shards} for a in arrays]
    return [[part[device.id] for part in parts] for device in DEVICES]


def record() -> dict[str, np.ndarray]:
    """The arrays of the file."""
    found: dict[str, np.ndarray] = {}
    for name, program in programs().items():
        arguments = [jax.device_put(a, s) for a, s in program.arguments]
        compiled = jax.jit(program.function, keep_unused=True).lower(*arguments).compile()
        results = jax.tree.leaves(compiled(*arguments))
        found[f"{name}/text"] = np.frombuffer(compiled.as_text().encode(), np.uint8)
        for kind, arrays in (("argument", arguments), ("result", results)):
            for device, parts in enumerate(_of_devices(arrays)):
                found.update({f"{name}/{kind}/{device}/{k}": part for k, part in enumerate(parts)})
    return found


if __name__ == "__main__":
    np.savez_compressed(PATH, **record())
    sys.stdout.write(f"{len(programs())} programs in {PATH}, {PATH.stat().st_size:,} bytes\n")
