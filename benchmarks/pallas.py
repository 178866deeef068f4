"""Pallas kernels: hloom, which compiles them, beside JAX's interpreter, the only way in which JAX runs them on a CPU.

The kernels are those of docs/pallas.md. Each is one text for both.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .harness import Case
from .table.declare import traced

RNG = np.random.default_rng(13)
CASES: dict[str, Callable[[], Case]] = {}


def _floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def case(title: str, arguments: Callable[[], Sequence[Any]]) -> Callable[[Callable[..., Any]], Any]:
    """Declares a case: the function gets a namespace with `jnp`, `lax`, `pl`, `pltpu`, `call` and `like`, and the
    arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = "pallas-" + function.__name__.replace("_", "-")

        def make() -> Case:
            given = arguments()

            def of(jax: Any, jnp: Any) -> Callable[[], Any]:
                names, own = _names(jax, jnp), [jnp.asarray(a) for a in given]
                run = jax.jit(lambda *inputs: function(names, *inputs))
                return lambda: run(*own)

            return Case(name, title, traced(of), 1e-3)

        CASES[name] = make
        return function

    return add


def _names(jax: Any, jnp: Any) -> Any:
    pl = importlib.import_module(f"{jax.__name__}.experimental.pallas")
    pltpu = importlib.import_module(f"{jax.__name__}.experimental.pallas.tpu")

    def call(*args: Any, **keywords: Any) -> Any:
        return pl.pallas_call(*args, **keywords, interpret=True)

    def like(*shape: int, dtype: Any = np.float32) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype)

    return SimpleNamespace(jnp=jnp, lax=jax.lax, pl=pl, pltpu=pltpu, call=call, like=like)


# ---- blocks side by side


@case("softmax of 1,024 rows of 1,024, 8 rows in a block", lambda: [_floats(1024, 1024)])
def softmax(j: Any, x: Any) -> Any:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        e = j.jnp.exp(x_ref[...] - x_ref[...].max(-1, keepdims=True))
        o_ref[...] = e / e.sum(-1, keepdims=True)

    rows = j.pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
    return j.call(kernel, x, grid=(x.shape[0] // 8,), in_specs=[rows], out_specs=rows)(x)


@case(
    "Mandelbrot set, 256 x 256, blocks of 32 x 32, 50 iterations",
    lambda: np.meshgrid(*[np.linspace(-2, 1, 256, dtype=np.float32)] * 2),
)
def mandelbrot(j: Any, real: Any, imaginary: Any) -> Any:
    def kernel(real_ref: Any, imaginary_ref: Any, o_ref: Any) -> None:
        a, b = real_ref[...], imaginary_ref[...]

        def step(_: Any, state: Any) -> Any:
            x, y, count = state
            inside = x * x + y * y < 4.0
            x, y = j.jnp.where(inside, x * x - y * y + a, x), j.jnp.where(inside, 2 * x * y + b, y)
            return x, y, count + inside

        zero = j.jnp.zeros_like(a)
        o_ref[...] = j.lax.fori_loop(0, 50, step, (zero, zero, zero.astype(np.int32)))[2]

    block = j.pl.BlockSpec((32, 32), lambda i, k: (i, k))
    return j.call(kernel, j.like(256, 256, dtype=np.int32), grid=(8, 8), in_specs=[block, block], out_specs=block)(
        real, imaginary
    )


# ---- scratch memory


def _product(j: Any, x: Any, y: Any, size: int) -> Any:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any, total_ref: Any) -> None:
        @j.pl.when(j.pl.program_id(2) == 0)
        def _() -> None:
            total_ref[...] = j.jnp.zeros_like(total_ref)

        total_ref[...] += x_ref[...] @ y_ref[...]

        @j.pl.when(j.pl.program_id(2) == j.pl.num_programs(2) - 1)
        def _() -> None:
            o_ref[...] = total_ref[...]

    (rows, inner), columns = x.shape, y.shape[1]
    return j.call(
        kernel, j.like(rows, columns), grid=(rows // size, columns // size, inner // size),
        in_specs=[
            j.pl.BlockSpec((size, size), lambda i, k, m: (i, m)), j.pl.BlockSpec((size, size), lambda i, k, m: (m, k)),
        ],
        out_specs=j.pl.BlockSpec((size, size), lambda i, k, m: (i, k)),
        scratch_shapes=[j.pltpu.VMEM((size, size), np.float32)],
    )(x, y)  # fmt: skip


@case("product of 512 x 512 matrices, blocks of 64", lambda: [_floats(512, 512), _floats(512, 512)])
def product(j: Any, x: Any, y: Any) -> Any:
    return _product(j, x, y, 64)


@case("product of 512 x 512 matrices, blocks of 128", lambda: [_floats(512, 512), _floats(512, 512)])
def product_128(j: Any, x: Any, y: Any) -> Any:
    return _product(j, x, y, 128)


@case("attention of 4 x 512 x 64, blocks of 64", lambda: [_floats(4, 512, 64) for _ in range(3)])
def attention(j: Any, q: Any, k: Any, v: Any) -> Any:
    jnp, pl = j.jnp, j.pl

    def kernel(q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any, most_ref: Any, sum_ref: Any, total_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            most_ref[...] = jnp.full_like(most_ref, -1e30)
            sum_ref[...] = jnp.zeros_like(sum_ref)
            total_ref[...] = jnp.zeros_like(total_ref)

        scores = q_ref[...] @ k_ref[...].T
        most = jnp.maximum(most_ref[...], scores.max(-1, keepdims=True))
        parts, factor = jnp.exp(scores - most), jnp.exp(most_ref[...] - most)
        sum_ref[...] = sum_ref[...] * factor + parts.sum(-1, keepdims=True)
        total_ref[...] = total_ref[...] * factor + parts @ v_ref[...]
        most_ref[...] = most

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            o_ref[...] = total_ref[...] / sum_ref[...]

    heads, rows, depth = q.shape
    queries = pl.BlockSpec((None, 64, depth), lambda h, i, n: (h, i, 0))
    keys = pl.BlockSpec((None, 64, depth), lambda h, i, n: (h, n, 0))
    memory = [j.pltpu.VMEM(shape, np.float32) for shape in ((64, 1), (64, 1), (64, depth))]
    return j.call(
        kernel, q, grid=(heads, rows // 64, rows // 64), in_specs=[queries, keys, keys], out_specs=queries,
        scratch_shapes=memory,
    )(q, k, v)  # fmt: skip


@case("running sums of 4,096 x 128, 8 rows in a block", lambda: [_floats(4096, 128)])
def running_sums(j: Any, x: Any) -> Any:
    def kernel(x_ref: Any, o_ref: Any, total_ref: Any) -> None:
        @j.pl.when(j.pl.program_id(0) == 0)
        def _() -> None:
            total_ref[...] = j.jnp.zeros_like(total_ref)

        total_ref[...] += x_ref[...].sum(0, keepdims=True)
        o_ref[...] = total_ref[...]

    count = x.shape[0] // 8
    return j.call(
        kernel, j.like(count, 128), grid=(count,), in_specs=[j.pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=j.pl.BlockSpec((1, 128), lambda i: (i, 0)), scratch_shapes=[j.pltpu.VMEM((1, 128), np.float32)],
    )(x)  # fmt: skip


# ---- updates


def _histogram(j: Any, x: Any) -> Any:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        @j.pl.when(j.pl.program_id(0) == 0)
        def _() -> None:
            o_ref[...] = j.jnp.zeros_like(o_ref)

        def count(k: Any, _: None) -> None:
            o_ref[x_ref[k]] += 1

        j.lax.fori_loop(0, x_ref.shape[0], count, None)

    return j.call(
        kernel, j.like(16, dtype=np.int32), grid=(x.size // 100,), in_specs=[j.pl.BlockSpec((100,), lambda i: (i,))]
    )(x)


@case("histogram of 1,000,000 numbers, blocks of 100", lambda: [RNG.integers(0, 16, 1_000_000).astype(np.int32)])
def histogram(j: Any, x: Any) -> Any:
    return _histogram(j, x)


@case("histogram of 10,000 numbers, blocks of 100", lambda: [RNG.integers(0, 16, 10_000).astype(np.int32)])
def histogram_small(j: Any, x: Any) -> Any:
    return _histogram(j, x)


@case(
    "sums of 2,000 rows by prefetched segments",
    lambda: [RNG.integers(0, 32, 2000).astype(np.int32), _floats(2000, 64)],
)
def segments(j: Any, segment: Any, x: Any) -> Any:
    def kernel(segment_ref: Any, x_ref: Any, o_ref: Any) -> None:
        @j.pl.when(j.pl.program_id(0) == 0)
        def _() -> None:
            o_ref[...] = j.jnp.zeros_like(o_ref)

        o_ref[j.pl.ds(segment_ref[j.pl.program_id(0)], 1), :] += x_ref[...]

    spec = j.pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(segment.size,), in_specs=[j.pl.BlockSpec((1, 64), lambda i, _: (i, 0))]
    )
    return j.call(kernel, j.like(32, 64), grid_spec=spec)(segment, x)


@case("update of 4 of 1,000 elements", lambda: [_floats(1000)])
def update(j: Any, x: Any) -> Any:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[0:4] = x_ref[0:4] * 2

    return j.call(kernel, x, input_output_aliases={0: 0})(x)
