"""Programs on eight devices, written for JAX: each is an expression over the names that `environment` gives.

`python tests/support/sharded_cases.py jax` prints JAX's answers, `... hloom` ours, as JSON. The first are kept in
`tests/data/sharded_answers.json.gz` (`... record` writes them).
"""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

ANSWERS = Path(__file__).parent.parent / "data" / "sharded_answers.json.gz"


def environment(library: str) -> dict[str, Any]:
    """The names that expressions use: `jax` and its parts, meshes, arrays, and the functions below."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    if library == "jax":
        import jax
        import jax.experimental
        import jax.numpy as jnp
        from jax import lax, sharding
    else:
        import hloom as jax
        import hloom.numpy as jnp
        from hloom import lax, sharding
    P, named = sharding.PartitionSpec, sharding.NamedSharding
    auto = sharding.AxisType.Auto
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(auto, auto))
    grid = jax.make_mesh((4, 2), ("x", "y"))  # its axes are Explicit
    line = jax.make_mesh((8,), ("i",), axis_types=(auto,))
    rows = np.random.RandomState(0)
    a = jnp.array(rows.randn(8, 4), jnp.float32)
    b = jnp.array(rows.randn(4, 8), jnp.float32)
    params = {"w": jnp.array(rows.randn(4, 4) * 0.5, jnp.float32), "b": jnp.array(rows.randn(4), jnp.float32)}

    def put(x: Any, *spec: Any, on: Any = mesh) -> Any:
        return jax.device_put(x, named(on, P(*spec)))

    def smap(f: Any, ins: Any, outs: Any, on: Any = mesh, **options: Any) -> Any:
        return jax.shard_map(f, mesh=on, in_specs=ins, out_specs=outs, **options)

    def on(f: Any, *spec: Any) -> Any:
        """The result of `f` for `a`, divided so over axes of type Explicit."""
        with jax.set_mesh(grid):
            return f(jax.device_put(a, P(*spec)))

    def terms(f: Any, total: bool = False) -> Any:
        """The type of an array that `f` makes where `grid` is set, and each device's part; total: the whole of it."""
        with jax.set_mesh(grid):
            x = f()
            parts = jax.reshard(x, P()).tolist() if total else [s.data.tolist() for s in x.addressable_shards]
            return str(jax.typeof(x)), parts

    def cut(*spec: Any, shape: Any = (8, 4), **marks: Any) -> Any:
        """Small whole numbers over `grid`."""
        numbers = np.arange(math.prod(shape), dtype=np.float32).reshape(shape) % 7
        return jax.device_put(numbers, named(grid, P(*spec, **marks)))

    def counted(f: Any, *args: Any, what: str = "sdy.sharding_constraint") -> int:
        """How often a text is in the StableHLO of a function."""
        with jax.set_mesh(grid):
            return jax.jit(f).lower(*args).as_text("stablehlo").count(what)

    def own(x: Any) -> Any:
        """The sum of an array, with each part added once, and the size of a part."""
        names = [n for n in ("x", "y") if any(n in (e if isinstance(e, tuple) else (e,)) for e in typed(x))]
        total = jax.shard_map(lambda v: lax.psum(v.sum(), tuple(names)), out_specs=P())(x)
        parts = jax.shard_map(lambda v: jnp.full((1, 1), v.size), out_specs=P())
        return total, parts(x)[0, 0]

    def typed(x: Any) -> Any:
        return tuple(jax.typeof(x).sharding.spec)

    def calls(f: Any, *args: Any) -> Any:
        """The result of `f(*args, noted)`, and the argument shapes of the host's calls of `noted`, which doubles."""
        seen: list[str] = []

        def noted(v: Any) -> Any:
            seen.append(str(np.shape(v)))
            return np.asarray(v) * 2

        found = f(*args, noted)
        jax.effects_barrier()
        return found, sorted(seen)

    def pure(f: Any, v: Any, **options: Any) -> Any:
        return jax.pure_callback(f, jax.ShapeDtypeStruct(v.shape, v.dtype), v, **options)

    def io(f: Any, v: Any, **options: Any) -> Any:
        return jax.experimental.io_callback(f, jax.ShapeDtypeStruct(v.shape, v.dtype), v, **options)

    def shown(f: Any, v: Any) -> Any:
        jax.debug.callback(f, v)
        return v

    def loss(params: Any, x: Any) -> Any:
        return jnp.mean(jnp.tanh(x @ params["w"] + params["b"]) ** 2)

    def mean_loss(params: Any, x: Any) -> Any:
        return lax.pmean(loss(params, x), ("x", "y"))

    def scaled(closes: bool, check: bool) -> Any:
        """A function of a number that all devices need: it is closed over, or an argument."""
        if closes:
            return lambda y: smap(lambda v: jnp.sin(v) * jnp.cos(y), P("x"), P("x"), check_vma=check)(a).sum()
        spread = smap(lambda v, y: jnp.sin(v) * jnp.cos(y), (P("x"), P()), P("x"), check_vma=check)
        return lambda y: spread(a, y).sum()

    def ring_product(left: Any, right: Any) -> Any:
        """A product that passes its parts round the devices, as in the notebook on shard_map."""
        size = lax.axis_size("i")
        own = lax.axis_index("i")

        def step(k: Any, state: Any) -> Any:
            total, part = state
            block = lax.dynamic_slice_in_dim(right, ((own + k) % size) * part.shape[1], part.shape[1], 0)
            perm = [((j + 1) % size, j) for j in range(size)]
            return total + part @ block, lax.ppermute(part, "i", perm)

        zeros = lax.pcast(jnp.zeros((left.shape[0], right.shape[1])), "i", to="varying")
        return lax.fori_loop(0, size, step, (zeros, left))[0]

    def text(f: Any) -> str:
        return str(f()).replace("hloom.", "jax.")

    def error(f: Any) -> str:
        try:
            f()
        except Exception as found:
            base = next(c for c in type(found).__mro__ if c.__module__ == "builtins")
            return f"{base.__name__}: {str(found).splitlines()[0].replace('hloom.', 'jax.')}"
        return "no error"

    known = {**locals(), "np": np, "ns": SimpleNamespace}
    del known["library"]
    return known


SUMS = [  # what each device has, and the type
    "jax.reshard(jnp.arange(4), P(unreduced={'x'}))",
    "jax.reshard(cut('x', 'y'), P('x', unreduced={'y'}))",
    "jax.reshard(cut('x', 'y'), P(None, 'y', unreduced={'x'}))",
    "jax.reshard(jax.reshard(cut('x', 'y'), P('x', unreduced={'y'})), P('x', 'y'))",
    "jax.reshard(jax.reshard(cut(), P(unreduced={'x', 'y'})), P('x', unreduced={'y'}))",
    "jax.jit(lambda v: v, out_shardings=P(unreduced={'x'}))(jnp.arange(4))",
    "jnp.einsum('ab,bc->ac', cut(None, 'x', shape=(2, 4)), cut('x', shape=(4, 2)), out_sharding=P(unreduced={'x'}))",
    "jax.jit(lambda u, v: jnp.dot(u, v, out_sharding=P('x', unreduced={'y'})))(cut('x', 'y'), cut('y', shape=(4, 2)))",
    "jnp.matmul(cut(None, ('x', 'y'), shape=(2, 8)), cut(('x', 'y'), shape=(8, 2)), "
    "out_sharding=P(unreduced={'x', 'y'}))",
    "jnp.einsum('ab->b', cut('x', 'y'), out_sharding=P('y', unreduced={'x'}))",
    "lax.reduce_sum(cut('x', 'y'), axes=(0, 1), out_sharding=P(unreduced={'x'}))",
    "lax.reduce_sum(jnp.dot(cut('x', 'y'), cut('y', shape=(4, 2)), out_sharding=P('x', unreduced={'y'})), axes=(0,), "
    "out_sharding=P(unreduced={'x', 'y'}))",
    *[
        f"jax.jit(lambda v: {e})(jax.reshard(cut('x', 'y'), P('x', unreduced={{'y'}})))"
        for e in (
            "v + v", "jnp.concatenate([v, v], 1)", "v.T", "lax.split(v, [2, 2], axis=1)[1]", "v.astype(int)",
            "jnp.reshape(v, (4, 2, 4))", "lax.reduce_sum(v, axes=(0,))", "lax.slice(v, (0, 1), (8, 3))",
            "jnp.pad(v, ((0, 0), (1, 1)))",
            "lax.select(True, v, v + v)", "v[:, None]", "v * jax.reshard(jnp.float32(2), P(reduced={'y'}))",
            "jax.reshard(v + v, P('y', 'x'))", "lax.cond(True, lambda u: u + u, lambda u: u, v)",
        )
    ],
    "jax.jit(lambda v: lax.scan(lambda c, r: (c + jnp.einsum('a,a->', r, r, out_sharding=P(unreduced={'x'})), ()), "
    "jax.reshard(jnp.zeros(()), P(unreduced={'x'})), v)[0])(cut(None, 'x'))",
    *[f"jax.jit(lambda v: {e})(cut('x', reduced={{'y'}}))" for e in ("v * 2", "jnp.sin(v) + v", "v[:, ::2]", "v.T")],
    "jax.jit(jax.grad(lambda v: jax.reshard(v, P('x')).sum()))(cut(reduced={'x'}))",
    "jax.jit(jax.grad(lambda v: lax.reduce_sum(v, axes=(0, 1), out_sharding=P(unreduced={'x'}))))(cut('x', 'y'))",
    *[
        f"jax.random.{e}, out_sharding=P('x'))"
        for e in (
            "bernoulli(jax.random.key(0), shape=(8, 2)", "permutation(jax.random.key(0), 8",
            "gumbel(jax.random.key(0), (8,)", "categorical(jax.random.key(0), np.ones((8, 3))",
        )
    ],
    "jnp.arange(4)", "jnp.zeros((2, 2))", "jnp.asarray(np.ones(2))", "jnp.sin(jnp.ones(2))", "jnp.linspace(0, 1, 3)",
    "lax.full((2,), 1)", "jax.jit(lambda: jnp.ones(3))()", "jax.jit(lambda v: v + 1)(np.ones(3))",
    "jax.random.bits(jax.random.key(0), (3,))", "jnp.arange(4) + cut('x', shape=(4,))",
]
TOTALS = [  # types, and whole arrays: devices may share a sum in another way
    "cut('x').repeat(2, 0, out_sharding=P('x'))", "cut('x').reshape(4, 8, out_sharding=P('x'))",
    "cut('x').ravel(out_sharding=P('x'))", "cut(None, 'x').flatten(out_sharding=P('y'))",
    "jnp.linalg.tensordot(cut('x', 'y'), cut('y', shape=(4, 2)), axes=1, out_sharding=P('y'))",
    *[
        f"jnp.repeat(cut('x', shape=({n}, 2)), {counts}, 0, out_sharding=P('x'))"
        for n, counts in ((8, 2), (8, "np.array([1, 2] * 4)"), (32, "np.array([1, 2] * 16)"))
    ],
    "jnp.einsum('d,dh,d->h', cut('x', shape=(4,)), cut('x', 'y', shape=(4, 2)), cut('x', shape=(4,)), "
    "out_sharding=P('y', unreduced={'x'}))",
    "jax.ops.segment_sum(cut('x', shape=(8,)), jax.device_put(np.array([0, 0, 1, 1, 1, 2, 2, 3]), P('x')), "
    "num_segments=4, out_sharding=P(unreduced={'x'}))",
    *[
        f"jax.jit(jax.grad(lambda v: {e}))(cut(reduced={{'x'}}))"
        for e in (
            "(v * v).sum()", "(v @ cut(None, 'x', shape=(4, 8))).sum()", "(jnp.sin(v) * 2).sum()", "v[1:3].sum()",
            "jnp.concatenate([v, v])[:, 1].sum()", "jax.checkpoint(jnp.sin)(v).sum()", "v.reshape(2, 16).sum()",
            "lax.broadcast_in_dim(v, (4, 8, 4), (1, 2), out_sharding=P('x')).sum()",
            "lax.select(v > 3, v, 2 * v).sum()", "lax.reduce_precision(v, 8, 7).sum()",
        )
    ],
    "jax.jit(jax.grad(lambda v: jax.reshard(v + v, P()).sum()))(jax.reshard(cut(), P(unreduced={'x'})))",
    "jax.vjp(lambda u, v: v, cut(reduced={'x'}), cut(reduced={'x'}))[1](jax.reshard(cut(), P(unreduced={'x'})))[1]",
    "jax.jit(lambda u, v: jax.reshard(jnp.einsum('xy,yz->xz', u, v, out_sharding=P('x', unreduced={'y'})), P('x')))"
    "(cut('x', 'y'), cut('y', shape=(4, 2)))",
    *[
        "jax.jit(jax.grad(lambda u, v: (jax.reshard(jnp.einsum('xy,yz->xz', u, v, "
        f"out_sharding=P('x', unreduced={{'y'}})), P('x')) ** 2).sum(), argnums={k}))(cut('x', 'y'), "
        "cut('y', shape=(4, 2)))"
        for k in (0, 1)
    ],
]
SUM_ERRORS = [  # the first words
    *[
        f"jnp.einsum('xy,yz->xz', cut({u}), cut({v}, shape=(4, 2)), out_sharding=P('x', unreduced={{'y'}}))"
        for u, v in (("'x', 'y'", "None"), ("'x', None", "None"), ("'x', 'y'", "None, 'y'"))
    ],
    "(lambda u: u @ u)(jax.reshard(cut(shape=(4, 4)), P(unreduced={'x'})))",
    "(lambda u: u + u * 0)(jax.reshard(cut(), P(unreduced={'x'})))",
    "jax.reshard(cut(), P(unreduced={'x'})) + jax.reshard(cut(), P(unreduced={'y'}))",
    "jax.reshard(cut(), P(unreduced={'x'})) + cut()",
    "jax.jit(lambda u, v: u * v)(cut(reduced={'x'}), cut('x'))",
    "jax.jit(lambda u, v: u + v)(cut(reduced={'x'}), cut())",
    "lax.reduce_sum(cut('y'), axes=(0,), out_sharding=P(None, unreduced={'x'}))",
    "jnp.concatenate([cut('x'), cut(None, 'y')])",
    "jax.vmap(lambda u, v: u @ v, in_axes=(0, 1))(cut('x'), cut(None, 'y', shape=(4, 8)))",
    "jax.vmap(lambda u: u + 1, spmd_axis_name='y')(cut('x'))",
    "jax.vmap(lambda u, v: v @ u, in_axes=(0, None))(cut('x'), cut('x', shape=(4, 4)))",
    "lax.scan(lambda c, x: (c, x), 0, cut('x'))",
    "jnp.cumsum(cut('x'))",
    "jnp.unstack(cut('x'))",
    "lax.split(cut('x'), (1, 7))",
    "jax.jit(lambda v: lax.with_sharding_constraint(v, P('x')))(cut())",
    "jnp.reshape(cut(), (4, 8), out_sharding=P(unreduced={'x'}))",
]

CASES = [
    *[f"terms(lambda: {e})" for e in SUMS],
    *[f"terms(lambda: {e}, total=True)" for e in TOTALS],
    *[f"error(lambda: terms(lambda: {e}))[:60]" for e in SUM_ERRORS],
    "terms(lambda: jax.jit(lambda u, v: jnp.einsum('ab,bc->ac', u, v, out_sharding=P(unreduced={'x'})))"
    ".lower(cut(None, 'x', shape=(2, 4)), cut('x', shape=(4, 2))).compile().as_text().count('all-reduce(') * cut())",
    "counted(lambda v: v * 2 * v, cut('x', 'y'))",
    "counted(lambda v: jnp.sin(v).sum(0), cut('x', 'y'))",
    "counted(lambda v: jax.reshard(v + v, P('y', 'x')), cut('x', 'y'))",
    "counted(lambda v: lax.reduce_sum(v, axes=(0, 1), out_sharding=P(unreduced={'x'})), cut('x'), what='unreduced')",
    # arrays
    "[str(d) for d in jax.devices()]",
    "(jax.device_count(), jax.local_device_count(), jax.process_count(), jax.devices()[3].local_hardware_id)",
    "repr(mesh)",
    "put(a, 'x', 'y').sharding",
    "[str(s) for s in put(a, 'x').addressable_shards]",
    "[(s.replica_id, s.index, str(s.device)) for s in put(a, 'y', 'x').global_shards]",
    "[(s.replica_id, s.data.tolist()) for s in put(jnp.arange(8), ('x', 'y')).addressable_shards]",
    "put(a, 'x').addressable_data(3)",
    "put(a, 'x').addressable_data(3).sharding",
    "repr(put(jnp.arange(4.0), 'x'))",
    "(put(a, 'x').is_fully_replicated, put(a).is_fully_replicated, put(a, 'x').is_fully_addressable)",
    "sorted(map(str, put(a, 'x').devices()))",
    "put(a, 'x').device",
    "jax.device_put(a, jax.devices()[5]).device",
    "(jax.device_put(a, jax.devices()[5]) + 1).device",
    *[
        f"{like}.sharding.{part}"
        for like, part in (
            ("jnp.zeros_like(put(a, 'x'))", "spec"), ("jnp.ones_like(put(a, 'x'), dtype=int)", "spec"),
            ("jnp.empty_like(put(a, 'x'))", "spec"), ("lax.full_like(put(a, 'x'), 2, shape=(8, 4))", "spec"),
            ("lax.full_like(put(a, 'x'), 2, shape=(3,))", "device_set"),
            ("lax.full_like(put(a), 2, shape=(3,))", "spec"),
            ("jnp.full_like(jax.device_put(a, jax.devices()[5]), 3)", "device_set"),
            ("lax.full((8, 4), 2, sharding=named(mesh, P('x')))", "spec"),
            ("jnp.eye(8, device=named(mesh, P('x')))", "spec"),
            ("jnp.linspace(0, 1, 8, device=named(mesh, P('x')))", "spec"),
            ("put(a, 'x').astype(int, device=named(mesh, P(None, 'y')))", "spec"),
        )
    ],
    "jax.device_put(put(a, 'x'), named(mesh, P(None, 'y'))).addressable_data(1)",
    "named(mesh, P('y', 'x')).devices_indices_map((8, 4))",
    "named(mesh, P(('y', 'x'))).shard_shape((8, 4))",
    "named(mesh, P('x')).is_equivalent_to(named(mesh, P('x', None)), 2)",
    "jax.make_array_from_callback((8, 4), named(mesh, P('x', 'y')), lambda i: np.asarray(a)[i])",
    "jax.make_array_from_single_device_arrays((8,), named(line, P('i')), "
    "[jax.device_put(jnp.ones(1) * k, d) for k, d in enumerate(jax.devices())])",
    "jax.make_array_from_process_local_data(named(mesh, P('x')), np.arange(8.0)).addressable_data(2)",
    "error(lambda: jax.make_mesh((16,), ('x',)))[:46]",
    "error(lambda: put(jnp.arange(7.0), 'x'))[:10]",
    "error(lambda: jax.make_array_from_single_device_arrays((8,), named(line, P('i')), [jnp.ones(1)]))",
    # operations and jit: where results are
    *[
        f"({e}).sharding"
        for e in (
            "put(a, 'x') + 1", "put(a, 'x', 'y').T", "put(a, 'x', 'y').sum(0)", "put(a, 'x', 'y').sum()",
            "put(a, 'x')[1]", "put(a, 'x').reshape(32)", "jnp.sin(put(a, None, 'y'))", "put(a, 'x') * put(a, 'x')",
            "put(a, 'x') @ put(b, None, 'y')", "jax.jit(lambda v: v * 2)(put(a, 'y'))",
            "jax.jit(lambda v: v + 1, out_shardings=named(mesh, P('x')))(a)",
            "jax.jit(lambda v: v + 1, in_shardings=named(mesh, P('x')))(a)",
            "jax.jit(lambda v: (v + 1, v * 2), out_shardings=(named(mesh, P('x')), None))(a)[1]",
            "jax.jit(lambda v: lax.with_sharding_constraint(v * 2, named(mesh, P(None, 'y'))))(put(a, 'x'))",
        )
    ],
    "put(a, 'x') + 1",
    "put(a, 'x', 'y').T @ put(a, 'x', 'y')",
    "put(a, 'x', 'y').sum(0)",
    "put(a, 'x')[1:7:2]",
    "put(a, 'x').reshape(2, 16)",
    "jnp.sort(put(a, 'x'), axis=0)",
    "jnp.cumsum(put(a, 'x', 'y'), axis=0)",
    "put(a, 'x').at[3].set(0.0)",
    "jnp.concatenate([put(a, 'x'), a])",
    "jax.nn.softmax(put(a, 'x', 'y'))",
    "jnp.linalg.norm(put(a, 'x'))",
    "put(a, 'x')[jnp.array([5, 0, 5])]",
    "jax.jit(lambda v, w: jnp.tanh(v @ w), out_shardings=named(mesh, P()))(put(a, 'x'), put(b, None, 'y'))",
    "jax.jit(jax.grad(loss))(params, put(a, 'x'))['w']",
    "jax.grad(loss)(put(params), put(a, 'x', 'y'))['b']",
    "jax.jit(lambda v: lax.scan(lambda c, x: (c + x, c), jnp.zeros(4), v)[1])(put(a, 'x'))",
    "jax.jit(lambda v: lax.cond(v.sum() > 0, jnp.sin, jnp.cos, v))(put(a, 'x'))",
    "jax.vmap(lambda r: r / r.max())(put(a, 'x'))",
    "jax.vmap(lambda k: jax.random.normal(k))(put(jax.random.split(jax.random.key(0), 8), 'x'))",
    "(lambda x: (jax.jit(lambda v: v * 2, donate_argnums=0)(x), x.is_deleted())[1])(put(a, 'x'))",
    "error(lambda: jax.jit(lambda u, v: u + v)(put(a, 'x'), jax.device_put(a, jax.devices()[1])))[:80]",
    "error(lambda: put(a, 'x') + jax.device_put(a, jax.devices()[1]))",
    "error(lambda: jax.jit(lambda v: v, in_shardings=named(mesh, P('y')))(put(a, 'x')))",
    *[
        f"error(lambda: jax.jit(lambda u, v: u + v).lower({of}, 2.0).compile()(*{given}))[:10]"
        for second, third in [[f"jax.device_put(a, jax.devices()[{k}])" for k in (1, 2)]]
        for of, given in (
            ("a", "(a, 2.0)"), ("a", "(jax.device_put(a, jax.devices()[0]), 2.0)"), ("a", f"({second}, 2.0)"),
            ("a", "(put(a), 2.0)"), (third, "(a, 2.0)"), (third, f"({third}, jax.device_put(2.0, jax.devices()[2]))"),
            (third, f"({second}, 2.0)"), (third, f"({third}, jax.device_put(2.0, jax.devices()[1]))"),
        )
    ],
    *[
        f"(lambda v: (v.tolist(), v.committed, sorted(d.id for d in v.devices())))({e})"
        for third in ("sharding.SingleDeviceSharding(jax.devices()[2])",)
        for e in (
            f"jax.jit(lambda v: v + 1, in_shardings={third})(a)",
            f"jax.jit(lambda v: v + 1, in_shardings={third})(np.ones(2))",
            f"jax.jit(lambda v: (v + 1, v * 2), out_shardings=({third}, None))(a)[1]",
            f"jax.jit(lambda v: v + 1, in_shardings={third})(jax.device_put(a, jax.devices()[1]))",
            f"jax.jit(lambda v: v + 1, in_shardings={third})(put(a))",
            "jax.jit(lambda v: v + 1, in_shardings=named(mesh, P()))(jax.device_put(a, jax.devices()[1]))",
            # captured arrays go where the arguments are
            *[
                f"(lambda c: jax.jit(lambda v: v + c)({v}))({c})"
                for third in ("jax.device_put(a, jax.devices()[2])",)
                for c, v in (
                    (third, "put(a, 'x')"), ("put(a, 'x')", third), (third, "jax.device_put(a, jax.devices()[1])"),
                    ("put(a, 'x')", "put(a)"),
                )
            ],
            "jnp.zeros(2).addressable_shards[0].data", "put(jnp.zeros(2)).addressable_shards[3].data",
        )
    ],
    # shard_map
    "smap(lambda v: lax.psum(v, 'x'), P('x'), P())(jnp.arange(8.0))",
    "smap(lambda v: lax.psum(v, 'x'), P('x'), P())(jnp.arange(8.0)).sharding",
    "smap(lambda v: lax.psum(v, 'x'), P(), P())(jnp.arange(4.0))",
    "smap(lambda v: lax.pmean(v, ('x', 'y')), P(('x', 'y')), P())(a)",
    "smap(lambda v: (lax.pmax(v, 'x'), lax.pmin(v, 'y')), P('x', 'y'), (P(None, 'y'), P('x')))(a)",
    "smap(lambda v: lax.all_gather(v, 'x', tiled=True), P('x'), P(), check_vma=False)(a)",
    "smap(lambda v: lax.all_gather(v, 'y')[None], P('x', 'y'), P('x', 'y'))(a).shape",
    "smap(lambda v: lax.psum_scatter(v, 'x', tiled=True), P(None, 'y'), P('x', 'y'))(a)",
    "smap(lambda v: lax.all_to_all(v, 'x', 1, 0, tiled=True), P('x', None), P(None, 'x'))(a)",
    "smap(lambda v: lax.ppermute(v, 'x', [(0, 1), (1, 2), (2, 3)]), P('x'), P('x'))(a)",
    "smap(lambda v: v * 0 + lax.axis_index(('y', 'x')), P('x', 'y'), P('x', 'y'))(a)",
    "smap(lambda v: v * 0 + lax.axis_index('x'), P('x'), P('x'), "
    "sharding.Mesh(np.array(jax.devices())[[3, 0, 7, 5]], ('x',)))(jnp.zeros(8))",
    "smap(lambda v: v * lax.axis_size('x') + v.shape[0], P('x'), P('x'))(jnp.arange(8.0))",
    "smap(lambda p, v: mean_loss(p, v), (P(), P(('x', 'y'))), P())(params, a)",
    "jax.grad(smap(mean_loss, (P(), P(('x', 'y'))), P()))(params, a)['w']",
    "jax.jit(jax.grad(smap(mean_loss, (P(), P(('x', 'y'))), P()), argnums=1))(params, put(a, 'x'))",
    "jax.grad(smap(mean_loss, (P(), P(('x', 'y'))), P(), check_vma=False))(params, a)['b']",
    "jax.jvp(lambda v: smap(mean_loss, (P(), P(('x', 'y'))), P())(params, v), (a,), (a,))",
    "jax.vmap(smap(mean_loss, (P(), P(('x', 'y'))), P()), in_axes=(None, 0))(params, jnp.stack([a, 2 * a]))",
    "jax.hessian(lambda v: smap(mean_loss, (P(), P(('x', 'y'))), P())({'w': params['w'], 'b': v}, a))(params['b'])",
    "smap(lambda p, v: jax.grad(loss)(p, v), (P(), P(('x', 'y'))), P())(params, a)['b']",
    "smap(lambda p, v: lax.pmean(jax.grad(loss)(p, v), ('x', 'y')), (P(), P(('x', 'y'))), P())(params, a)['b']",
    "smap(lambda p, v: lax.pmean(jax.grad(jax.jit(loss))(lax.pcast(p, ('x', 'y'), to='varying'), v), ('x', 'y')), "
    "(P(), P(('x', 'y'))), P())(params, a)['b']",
    "smap(lambda p, v: jax.grad(loss)(p, v)['b'][None], (P(), P('x')), P('x'), check_vma=False)(params, a)",
    "smap(lambda p, v: jax.grad(jax.checkpoint(loss))(p, v), (P(), P(('x', 'y'))), P())(params, a)['w']",
    "smap(lambda w, v: jax.hessian(lambda w: jnp.sum(jnp.tanh(v @ w) ** 2))(w), (P(), P('x')), P())(params['b'], a)",
    "smap(lambda w, v: jax.grad(lambda w: lax.scan(lambda c, r: (jnp.tanh(c * w + r), None), "
    "lax.pcast(jnp.zeros(4), 'x', to='varying'), v)[0].sum())(w), (P(), P('x')), P())(params['b'], a)",
    "jax.grad(lambda v: smap(lambda v: lax.fori_loop(0, 3, lambda k, c: c + lax.psum(c, 'x'), v), "
    "P('x'), P('x'))(v).sum())(a)",
    "smap(lambda v: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, v))[1], P('x'), P('x'))(a)",
    "smap(lambda v: lax.cond(v[0, 0] > 0, lambda: v, lambda: -v), P('x'), P('x'))(a)",
    "smap(lambda k, v: v + jax.random.normal(jax.random.fold_in(k, lax.axis_index('x')), v.shape), "
    "(P(), P('x')), P('x'))(jax.random.key(1), a)",
    "smap(lambda t: {'s': lax.psum(t['p'] + t['q'], 'i')}, ({'p': P('i'), 'q': P()},), P(), line)"
    "({'p': jnp.arange(8.0), 'q': jnp.ones(1)})['s']",
    "smap(ring_product, (P('i', None), P(None, None)), P('i', None), line)"
    "(jnp.arange(8.0).reshape(8, 1), jnp.arange(64.0).reshape(8, 8))",
    "smap(lambda u, v: lax.psum(u @ v, 'i'), (P(None, 'i'), P('i')), P(), line)(b, a)",
    "smap(lambda u, v: lax.psum_scatter(u @ v, 'i', tiled=True), (P(None, 'i'), P('i', None)), P('i'), line)"
    "(jnp.arange(64.0).reshape(8, 8), a)",
    "jax.jit(lambda u, v: smap(lambda u: lax.psum(u, 'x'), P('x'), P())(u).sum() + v.sum())(put(a, 'x'), a)",
    "error(lambda: smap(lambda v: v, P('x'), P())(a))[:46]",
    "error(lambda: smap(lambda v: v, P('x'), P('x'))(jnp.arange(5.0)))[:120]",
    "error(lambda: smap(lambda v: lax.psum(v, 'x'), P('z'), P())(a))[:30]",
    # some axes: along the others the partitioner divides
    *[
        f"jax.jit(smap(lambda v: {e}, P('x'), {out}, axis_names={{'x'}}))({given})"
        for e, out in (
            ("lax.psum(jnp.sin(v), 'x') + lax.axis_index('x')", "P('x')"),
            ("lax.psum(v @ v.T, 'x')", "P()"),
            ("lax.fori_loop(0, 3, lambda k, c: c + lax.ppermute(c, 'x', [(i, (i + 1) % 4) for i in range(4)]), v)",
             "P('x')"),
            ("v.reshape(-1).sum()[None] + lax.psum(jnp.ones(1), 'x')", "P('x')"),
            ("lax.all_gather(v, 'x', tiled=True) * lax.axis_index('x')", "P('x')"),
            ("lax.psum_scatter(v, 'x', scatter_dimension=1)", "P('x')"),
            ("lax.all_to_all(v, 'x', 1, 0, tiled=True)", "P(None, 'x')"),
            ("jnp.sort(v, 1)[:, ::-1] / lax.axis_size('x')", "P('x')"),
            ("lax.cond(v.sum() > 40, lambda: v, lambda: -v)", "P('x')"),
            ("lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(4) + 0 * v[0], v)[1]", "P('x')"),
            ("jax.grad(lambda u: lax.psum((u ** 2).sum(), 'x'))(v)", "P('x')"),
            ("jnp.concatenate([v, v[:, ::-1]], 1).T[1:3].T", "P('x')"),
        )
        for given in ("a", "put(a, 'x', 'y')", "put(a, ('y', 'x'))", "put(a, None, 'y')")
    ],
    *[
        f"(smap(lambda v: {e}, {specs}, axis_names={{'y'}})({given})).sharding"
        for e, specs in (("v * 2", "P('y'), P('y')"), ("v + v", "P(None, 'y'), P(None, 'y')"))
        for given in ("put(a, 'x')", "put(a, 'y', 'x')", "put(a, 'x', 'y')")
    ],
    *[
        f"{e}(lambda w, v: smap(lambda w, v: lax.pmean(loss(w, v), 'x'), (P(), P('x')), P(), axis_names={{'x'}}, "
        f"check_vma={vma})(w, v).sum(){k})(params, a)"
        for vma, e, k in (
            *((True, "jax.grad", ""), (True, "jax.jit(jax.grad", ")"), (True, "jax.grad", ", 1")),
            *((False, "jax.jit(jax.grad", ")"), (False, "jax.jit(jax.grad", ", 1)")),
        )
    ],
    "jax.vmap(smap(lambda v: lax.psum(v @ v.T, 'x'), P('x'), P(), axis_names={'x'}))(jnp.stack([a, 2 * a]))",
    "smap(lambda v: lax.psum(v, 'x') + jax.random.normal(jax.random.key(0), v.shape), P('x'), P(), axis_names={'x'})"
    "(put(a, 'x', 'y'))",
    "error(lambda: smap(lambda v: lax.psum(v, 'y'), P('x'), P('x'), axis_names={'x'})(a))[:10]",
    "error(lambda: smap(lambda v: v, P('x'), P(), axis_names={'x'})(a))[:46]",
    "error(lambda: smap(lambda v: v, P('y'), P('y'), axis_names={'x'})(a))[:20]",
    "smap(lambda v: str(jax.typeof(v)) and v, P('x'), P('x'), axis_names={'x'})(a).shape",
    "jax.jit(smap(lambda v: v * lax.psum(v, 'o') + lax.axis_index('o') + lax.all_gather(v, 'o', tiled=True), P('o'), "
    "P('o'), jax.make_mesh((1, 4, 2), ('o', 'x', 'y'), axis_types=(auto,) * 3), axis_names={'o'}, check_vma=False))(a)",
    "jax.jit(smap(lambda: jnp.zeros(()).reshape(1), (), P('x'), axis_names={'x'}, check_vma=False))()",
    "jax.jit(smap(lambda: a[:2] + lax.axis_index('x'), (), P('x'), axis_names={'x'}, check_vma=False))()",
    "jax.jit(smap(lambda: a[:2] * 2, (), P('x'), check_vma=False))()",
    "error(lambda: smap(lambda v: lax.with_sharding_constraint(v, named(mesh, P('x'))), P('x'), P('x'), "
    "axis_names={'x'})(a))[:10]",
    "jax.jit(smap(lambda v: jax.typeof(v).mat.varying == {'x'} and v, P('x'), P('x'), axis_names={'x'}))(a).shape",
    # one in another
    *[
        f"jax.jit(smap(lambda v: lax.psum(jax.shard_map(lambda u: {e}, in_specs=P(None, 'y'), out_specs={out}, "
        f"axis_names={{'y'}})(v), 'x'), P('x'), P(), axis_names={{'x'}}))({given})"
        for e, out in (
            ("lax.psum(u, 'y')", "P()"),
            ("u * (1 + lax.axis_index('y') + 10 * lax.axis_index('x'))", "P(None, 'y')"),
            ("lax.psum(u * lax.axis_index('x'), ('x', 'y'))", "P()"),
        )
        for given in ("a", "put(a, 'x', 'y')", "put(a, 'y', 'x')")
    ],
    *[
        f"jax.jit(jax.grad(lambda v: smap(lambda v: lax.psum(jax.shard_map(lambda u: lax.psum(jnp.sin(u) @ u.T, 'y'), "
        f"in_specs=P(None, 'y'), out_specs=P(), axis_names={{'y'}}, check_vma={inner})(v), 'x'), P('x'), P(), "
        f"axis_names={{'x'}}, check_vma={outer})(v).sum()))(a)"
        for inner, outer in ((False, False),)
    ],
    "jax.jit(smap(lambda v: jax.shard_map(lambda u: lax.fori_loop(0, 2, lambda k, c: lax.psum(c, 'y') + u.sum(), u), "
    "in_specs=P(), out_specs=P(), axis_names={'y'}, check_vma=False)(v), P('x'), P('x'), axis_names={'x'}, "
    "check_vma=False))(a)",
    # groups of places along an axis
    "smap(lambda v: lax.psum(v, 'i', axis_index_groups=[[0, 2, 4, 6], [1, 3, 5, 7]]), P('i'), P('i'), line, "
    "check_vma=False)(a)",
    "smap(lambda v: lax.pmean(v, 'i', axis_index_groups=[[0, 1], [2, 3], [6, 7], [5, 4]]), P('i'), P('i'), line, "
    "check_vma=False)(a)",
    *[
        f"smap(lambda v: {e}, P('i'), P('i'), line, check_vma={vma})(a)"
        for vma in (False, True)
        for e in (
            "lax.pmax(v, 'i', axis_index_groups=[[7, 0, 1, 2], [3, 4, 5, 6]]) + lax.psum(1, 'i')",
            "lax.psum(2, 'i', axis_index_groups=[[0, 1], [2, 3], [6, 7], [5, 4]]) * v",
            "lax.all_gather(v, 'i', axis_index_groups=[[0, 7], [1, 6], [2, 5], [4, 3]], tiled=True)",
            "lax.psum_scatter(v, 'i', scatter_dimension=1, axis_index_groups=[[0, 2, 4, 6], [7, 5, 3, 1]])",
            "lax.all_to_all(v, 'i', 1, 1, axis_index_groups=[[0, 1, 2, 3], [5, 4, 7, 6]], tiled=True)",
        )
    ],
    "jax.grad(lambda v: (smap(lambda v: lax.psum(v ** 2, 'i', axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]), "
    "P('i'), P('i'), line, check_vma=False)(v) * b.T).sum())(a)",
    "smap(lambda v: lax.psum(v, 'x', axis_index_groups=[[0, 3], [1, 2]]), P('x', 'y'), P('x', 'y'), "
    "check_vma=False)(a)",
    *[
        f"smap(lambda v: {e}, P(None, ('x', 'y')), P(None, ('x', 'y')), check_vma=False)(b)"
        for e in (
            "lax.psum(v, ('x', 'y'), axis_index_groups=[[0, 2, 4, 6], [1, 3, 5, 7]])",
            "lax.pmax(v, ('y', 'x'), axis_index_groups=[[0, 2, 4, 6], [1, 3, 5, 7]])",
            "lax.all_gather(v, ('x', 'y'), axis=1, axis_index_groups=[[0, 7], [2, 5], [4, 3], [6, 1]], tiled=True)",
            "lax.psum_scatter(v, ('x', 'y'), axis_index_groups=[[0, 2, 4, 6], [1, 3, 5, 7]], tiled=True)",
            "lax.all_to_all(v, ('x', 'y'), 0, 1, axis_index_groups=[[0, 2, 4, 6], [1, 3, 5, 7]], tiled=True)",
        )
    ],
    "jax.pmap(lambda v: lax.psum(v, 'i', axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]), axis_name='i')(a)",
    # pmap
    "jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')(a)",
    "jax.pmap(lambda v: lax.pmean(v, 'i') - v, axis_name='i')(a)",
    "jax.pmap(lambda v: v * 2)(a).sharding.spec[0] is not None",
    "jax.pmap(lambda u, v: u @ v, in_axes=(0, None), out_axes=0)(a, params['w'])",
    "jax.pmap(lambda v: v + 1, in_axes=1, out_axes=1)(b)",
    "jax.pmap(lambda v: v.sum(), devices=jax.devices()[:2])(a[:2])",
    "jax.pmap(lambda v: v + lax.axis_index('i'), axis_name='i')(jnp.zeros(4))",
    "jax.pmap(lambda n, v: v * n, static_broadcasted_argnums=0)(3, a)",
    "jax.pmap(lambda t: {'s': t['u'] + t['v']})({'u': a, 'v': a})['s']",
    "jax.pmap(lambda p, v: lax.pmean(jax.grad(loss)(p, v), 'i'), axis_name='i', in_axes=(None, 0))"
    "(params, a.reshape(8, 1, 4))['b']",
    "jax.pmap(lambda v: v.sum(), axis_name='i')(a).sharding",
    # axes of type Explicit: results are divided as operands are, and so do functions get them that name no in_specs
    *[
        f"({way.format(f=f'lambda x: {e}')}).sharding"
        for e in (
            "x + 1", "x.T", "x.sum(0)", "x.sum()", "jnp.sin(x) * x", "x + jnp.ones(4)", "x[None] * 2", "x.max(1)",
            "jax.nn.softmax(x.T, 0)", "x.reshape(4, 2, 4)", "x + jax.reshard(x, P(None, 'y'))",
            "jnp.where(x > 0, x, 0)", "x.astype(jnp.bfloat16)", "jnp.cumsum(x, 1)", "x @ jnp.ones((4, 3))",
            "lax.scan(lambda c, r: (c + r.sum(), r), 0.0, x.T)[1]", "lax.fori_loop(0, 3, lambda i, c: c * 2, x)",
            "jax.grad(lambda v: (v ** 2).sum())(x)", "jnp.exp(jax.reshard(x, P()))", "jnp.fft.fft(x, axis=0)",
            "jnp.fft.rfft2(x)", "jnp.ones_like(x)",
        )
        for way in ("on({f}, 'x')", "on(jax.jit({f}), 'x')")
    ],
    *[
        f"on(lambda x: {way}, 'x', 'y')"
        for e in (
            "x", "x * 2 + 1", "x.T", "x.sum(0)", "x.reshape(4, 2, 4)", "jax.reshard(x, P('x', None))", "jnp.ones(4)",
            "lax.fori_loop(0, 3, lambda i, c: c * 0.5, x)", "lax.cond(x.sum() > 0, lambda v: v, lambda v: -v, x)",
            "jax.jit(jnp.cos)(x)", "jax.reshard(x, P()) @ jax.reshard(x, P(None, 'y')).T",
        )
        for way in (f"own({e})", f"jax.jit(lambda x: own({e}))(x)")
    ],
    *[
        f"on(lambda x: {e}, 'x', 'y')"
        for e in (
            "jax.grad(lambda v: own(v * v)[0])(x)", "jax.jit(jax.grad(lambda v: own(v * v)[0]))(x)",
            "jax.grad(jax.jit(lambda v: own(v * v)[0]))(x)", "jax.grad(jax.checkpoint(lambda v: own(v * v)[0]))(x)",
            "jax.jit(lambda x: lax.scan(lambda c, _: (c + own(c)[0], None), x, length=3)[0])(x)",
            "jax.jit(lambda x: lax.while_loop(lambda c: own(c)[0] < 100, lambda c: c * c + 1, x))(x)",
            "jax.jit(lambda x: lax.cond(x.sum() > 0, own, lambda v: (v.sum(), 1), x)[0])(x)",
            "lax.map(lambda r: own(r)[0], jax.reshard(x, P(None, 'y')))",
            "[own(v) for v in (x, x.T, x.sum(0))]", "jax.jit(own).lower(x).compile()(x)",
            "jax.jit(lambda: own(x))()", "jax.jit(lambda v: jax.jit(lambda: own(v + 1))())(x)",
            "jax.smap(lambda v: lax.psum(v.sum(0), 'x'), out_axes=None, axis_name='x')(jax.reshard(x, P('x', None)))",
            "jax.shard_map(lambda v: lax.psum(v, 'x'), out_specs=P(None), axis_names={'x'})"
            "(jax.reshard(x, P('x', None)))",
            "(str(jax.typeof(x)), typed(x), str(jax.typeof(x.T)), str(jax.typeof(jnp.ones(3))))",
            "(lambda seen: jax.jit(lambda x: seen.extend(map(typed, (x.T, jnp.sin(x), x.sum(1)))) or x)(x) is None "
            "or seen)([])",
            "sharding.auto_axes(lambda v: v @ v.T, out_sharding=P('x', 'y'))(x).sharding",
        )
    ],
    # functions of the host: once with whole arrays, and within shard_map by each device
    *[
        f"calls(lambda x, f: {way}, put(a, 'x', 'y'))"
        for way in (
            "pure(f, x)", "io(f, x)", "shown(f, x)", "jax.jit(lambda x: pure(f, x))(x)",
            "jax.jit(lambda x: io(f, x))(x)", "jax.jit(lambda x: shown(f, x))(x)",
            "jax.jit(lambda x: pure(f, x + 1).sum())(x)", "jax.jit(lambda x: pure(f, x).T @ x)(x)",
        )
    ],
    *[
        f"calls(lambda x, f: jax.jit(lambda x: {e})(x), put(a, 'x', 'y'))"
        for e in (
            "lax.scan(lambda c, _: (pure(f, c), None), x, length=2)[0]", "(pure(f, x), x)[1].sum()",
            "lax.while_loop(lambda c: pure(f, abs(c).sum()) < 1e3, lambda c: c * 2, x)",
            "lax.cond(x.sum() > 99, lambda v: pure(f, v), lambda v: v, x)",
            "jax.vmap(lambda v: pure(f, v, vmap_method='sequential'))(x)",
            "jax.vmap(lambda v: pure(f, v, vmap_method='expand_dims'))(x)",
            "jax.pure_callback(lambda u, v: (f(u), f(v)), (x, x.T), x, x.T)[1]",
            "jax.pure_callback(lambda: f(np.float32(1)), jax.ShapeDtypeStruct((), jnp.float32)) + x",
            "jax.grad(lambda v: (shown(f, v) ** 2).sum())(x)",
            "smap(lambda v: pure(f, v), P('x', 'y'), P('x', 'y'))(x)",
            "smap(lambda v: io(f, v), P('x', 'y'), P('x', 'y'))(x)",
            "smap(lambda v: shown(f, v), P('x', 'y'), P('x', 'y'))(x)",
            "smap(lambda v: shown(f, jnp.ones(3)).sum() + v, P('x', 'y'), P('x', 'y'))(x)",
            "smap(lambda v: shown(f, v), P('x'), P('x'), axis_names={'x'})(x)",
            "smap(lambda v: shown(f, v), P(None, 'y'), P(None, 'y'), axis_names={'y'})(x)",
        )
    ],
    *[
        f"on(lambda x: calls(lambda x, f: {way}, x), 'x', 'y')"
        for way in (
            "pure(f, x)", "io(f, x)", "jax.jit(lambda x: pure(f, x + 1))(x)", "jax.jit(lambda x: pure(f, x).T @ x)(x)",
            "str(jax.typeof(pure(f, x)))", "jax.vmap(lambda v: pure(f, v, vmap_method='expand_dims'), 1)(x)",
        )
    ],
    "on(lambda x: abs(jnp.fft.fft2(x)), 'x', 'y')",
    "calls(lambda x, f: jax.jit(lambda x: pure(f, x))(x), put(a))",
    "calls(lambda x, f: jax.pmap(lambda v: pure(f, v))(x), a)",
    # closed-over values, and second derivatives
    *[
        f"{transformed}(3.0)".replace("f(", f"scaled({closes}, {check})(")
        for closes in (True, False)
        for check in (True, False)
        for transformed in (
            "jax.grad(lambda y: f(y))", "jax.jit(jax.grad(lambda y: f(y)))", "jax.grad(jax.grad(lambda y: f(y)))",
            "jax.jit(jax.grad(jax.jit(jax.grad(lambda y: f(y)))))", "jax.jit(lambda y: f(y))",
            "(lambda y: jax.jvp(lambda u: f(u), (y,), (1.0,)))",
            "(lambda y: jax.vmap(jax.grad(lambda u: f(u)))(y + a[0]))",
        )
    ],
    "jnp.nonzero(put(a > 0, 'x'))[0].sharding",
    "on(lambda x: str(jax.make_jaxpr(lambda v: jax.reshard(jnp.sin(v).T, P('y', None)))(x)), 'x', 'y')",
    # types: how Explicit axes divide results, and what is refused
    *[
        f"on(lambda x: [str(jax.typeof(v)) for v in jax.tree.leaves(({e},))], 'x', 'y')"
        for e in (
            "x", "jnp.sin(x)", "x + 1", "x.T", "x.sum(1)", "x.sum()", "x.max(0)",
            "jnp.argmax(x, 0)",
            "x.reshape(4, 2, 4)", "x.reshape(8, 2, 2)", "jnp.expand_dims(x, 1)", "jnp.broadcast_to(x, (3, 8, 4))",
            "lax.slice(x, (0, 0), (4, 2))", "x.reshape(32)", "jnp.pad(x, ((0, 8), (0, 0)))",
            "jnp.concatenate([x, x])", "jnp.flip(x, 0)",
            "jnp.stack([x, x])", "x.astype(jnp.int32)", "jnp.where(x > 0, x, 0)", "lax.rev(x, (0,))", "x > 0",
            "x @ jax.reshard(x.T, P(None, None))", "jnp.matmul(x, x.T, out_sharding=P('x', None))",
            "jnp.einsum('ij,kj->ik', x, x, out_sharding=P(None, 'y'))", "jnp.reshape(x, (32,), out_sharding=P('x'))",
            "jnp.sort(jax.reshard(x, P('x', None)), 1)", "jnp.cumsum(jax.reshard(x, P('x', None)), 1)",
            "jnp.zeros((8, 4), out_sharding=P('x'))", "jnp.broadcast_to(x.sum(1), (4, 8), out_sharding=P('y', 'x'))",
            "jax.vmap(lambda r: r * 2)(jax.reshard(x, P(None, 'y')))", "jax.grad(lambda v: (v ** 2).sum())(x)",
            "x.at[jnp.array([0, 1])].get(out_sharding=P(None, 'y'))", "lax.dynamic_slice(x, (0, 0), (8, 2))",
            "lax.scan(lambda c, r: (c + r, r), jax.reshard(jnp.zeros(4), P('y')), jax.reshard(x, P(None, 'y')))",
            "jax.random.normal(jax.random.key(0), (8, 4), out_sharding=P('x'))",
            "lax.conv_general_dilated(jnp.expand_dims(jax.reshard(x, P('x', None)), 1), jnp.ones((2, 1, 3)), (1,), "
            "'SAME', out_sharding=P('x', None, 'y'))",
            "jnp.linalg.norm(jax.reshard(x, P(None, 'y')))", "jnp.linalg.norm(x, axis=1)",
            "jax.sharding.auto_axes(lambda v: v @ v.T, out_sharding=P('x', None))(x)",
            "jax.sharding.auto_axes(lambda v: v.T, axes='x', out_sharding=P('y', 'x'))(x)",
        )
    ],
    *[
        f"on(lambda x: error(lambda: {way})[:68], 'x', 'y')"
        for e in (
            "x @ x.T", "jnp.reshape(jax.reshard(x, P(None, 'y')), 32)",
            "jnp.concatenate([x, jax.reshard(x, P('y', None))])",
            "jnp.where(x > 0, x, jax.reshard(x, P('y', 'x')))", "jnp.sort(x, 0)",
            "x + jax.reshard(x, P('y', 'x'))",
        )
        for way in (e, f"jax.jit(lambda x: {e})(x)")
    ],
]


def plain(value: Any) -> Any:
    """An answer as JSON has it."""
    if isinstance(value, bool | str | int | float | None):
        return value
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return np.asarray(value).tolist()
    return str(value)


def answers(library: str) -> dict[str, Any]:
    """Each case's answer, or the error that it raises."""
    known = environment(library)
    found = {}
    for case in CASES:
        try:
            found[case] = plain(eval(case, known))
        except Exception as error:
            found[case] = f"raised {type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    if sys.argv[1] == "record":
        with gzip.GzipFile(ANSWERS, "wb", mtime=0) as file:
            file.write(json.dumps(answers("jax"), indent=1).encode())
    else:
        print(json.dumps(answers(sys.argv[1])))
