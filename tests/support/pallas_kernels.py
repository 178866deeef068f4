"""Kernels written for Pallas, each with arguments. `case(jax, pl, pltpu)` gives a function of them, in either library;
the expected results are those of NumPy, so that they need no JAX."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

CASES: dict[str, tuple[Callable[[Any], Callable[..., Any]], tuple[Any, ...], Any]] = {}
"""By name: a maker of the function, of a namespace with jax, jnp, lax, pl, pltpu and call; arguments; the result."""

_rng = np.random.default_rng(0)
_F32 = np.float32


def _floats(*shape: int) -> Any:
    return _rng.standard_normal(shape).astype(_F32)


def case(*arguments: Any, expected: Any) -> Callable[[Callable[[Any], Callable[..., Any]]], Any]:
    def add(make: Callable[[Any], Callable[..., Any]]) -> Any:
        CASES[make.__name__] = make, arguments, expected(*arguments)
        return make

    return add


def tools(jax: Any, jnp: Any, lax: Any, pl: Any, pltpu: Any) -> Any:
    """The namespace for makers: JAX runs kernels on the CPU with `interpret=True` only."""

    def call(*args: Any, **keywords: Any) -> Any:
        return pl.pallas_call(*args, **keywords, interpret=True)

    def like(*shape: int, dtype: Any = _F32) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype)

    return SimpleNamespace(jax=jax, jnp=jnp, lax=lax, pl=pl, pltpu=pltpu, call=call, like=like)


# ---- elementwise: the grid is a batch


@case(_floats(8, 4), _floats(8, 4), expected=lambda x, y: x + y)
def add(j: Any) -> Any:
    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...]

    block = j.pl.BlockSpec((2, 4), lambda i: (i, 0))
    return j.call(kernel, j.like(8, 4), grid=(4,), in_specs=[block, block], out_specs=block)


@case(_floats(6, 5), expected=lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True))
def softmax(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        e = j.jnp.exp(x[...] - x[...].max(-1))
        o[...] = e / e.sum(-1)

    block = j.pl.BlockSpec((None, 5), lambda i: (i, 0))
    return j.call(kernel, j.like(6, 5), grid=6, in_specs=[block], out_specs=block)


@case(_floats(7, 10), expected=lambda x: 2 * x.T)
def transposed_with_borders(j: Any) -> Any:
    """Neither size is a multiple of the block's."""

    def kernel(x: Any, o: Any) -> None:
        o[...] = 2 * x[...].T

    return j.call(
        kernel, j.like(10, 7), grid=(3, 3), in_specs=[j.pl.BlockSpec((3, 4), lambda i, k: (i, k))],
        out_specs=j.pl.BlockSpec((4, 3), lambda i, k: (k, i)),
    )  # fmt: skip


@case(_floats(5), expected=lambda x: np.where(np.arange(8) < 5, np.resize(x, 8), np.nan).astype(_F32))
def beyond_the_border(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    block = j.pl.BlockSpec((4,), lambda i: (i,))
    return j.call(kernel, j.like(8), grid=(2,), in_specs=[block], out_specs=block)


@case(_floats(4), expected=lambda x: (np.full(4, np.nan, _F32), np.full(4, -(2**31), np.int32), x))
def a_result_that_is_only_read(j: Any) -> Any:
    def kernel(x: Any, o: Any, n: Any, p: Any) -> None:
        p[...] = j.jnp.where(j.jnp.isnan(o[...]) & (n[...] < 0), x[...], 0)

    block = j.pl.BlockSpec((2,), lambda i: (i,))
    results = j.like(4), j.like(4, dtype=np.int32), j.like(4)
    return j.call(kernel, results, grid=(2,), in_specs=[block], out_specs=(block, j.pl.BlockSpec((2,)), block))


@case(np.arange(3, dtype=np.int8), expected=lambda x: np.array([-128, 0, 1, 2, -128], np.int8))
def elements_with_padding(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    block = j.pl.BlockSpec((j.pl.Element(5, (1, 1)),), lambda i: (i,))
    return j.call(kernel, j.like(5, dtype=np.int8), grid=(1,), in_specs=[block])


@case(_floats(9), expected=lambda x: x[:-2] + x[1:-1] + x[2:])
def overlapping_windows(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[0] = x[0] + x[1] + x[2]

    return j.call(
        kernel, j.like(7), grid=(7,), in_specs=[j.pl.BlockSpec((j.pl.Element(3),), lambda i: (i,))],
        out_specs=j.pl.BlockSpec((1,), lambda i: (i,)),
    )  # fmt: skip


@case(_floats(4, 3), expected=lambda x: x[::-1])
def reversed_rows(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    return j.call(
        kernel, j.like(4, 3), grid=(4,), in_specs=[j.pl.BlockSpec((1, 3), lambda i: (3 - i, 0))],
        out_specs=j.pl.BlockSpec((1, 3), lambda i: (i, 0)),
    )  # fmt: skip


@case(np.arange(140, dtype=np.int32), expected=lambda x: np.concatenate([x[:128], x[12:24]]))
def positions_of_eight_bits(j: Any) -> Any:
    """From the 128th point on they are negative, so they count from the end."""

    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    return j.call(
        kernel, j.like(140, dtype=np.int32), grid=(140,),
        in_specs=[j.pl.BlockSpec((1,), lambda i: (i.astype(np.int8).astype(np.int32),))],
        out_specs=j.pl.BlockSpec((1,), lambda i: (i,)),
    )  # fmt: skip


@case(_floats(140), expected=lambda x: np.concatenate([x[:12], x[128:], x[24:128], np.full(12, np.nan)]).astype(_F32))
def results_at_positions_of_eight_bits(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    return j.call(
        kernel, j.like(140), grid=(140,), in_specs=[j.pl.BlockSpec((1,), lambda i: (i,))],
        out_specs=j.pl.BlockSpec((1,), lambda i: (i.astype(np.int8).astype(np.int32),)),
    )  # fmt: skip


@case(expected=lambda: np.array([[0, 1, 2], [10, 11, 12]], np.int32))
def program_ids(j: Any) -> Any:
    def kernel(o: Any) -> None:
        o[...] = j.jnp.full(o.shape, 10 * j.pl.program_id(0) + j.pl.program_id(1))

    spec = j.pl.GridSpec(grid=(2, 3), out_specs=j.pl.BlockSpec((None, 1), lambda i, k: (i, k)))
    return j.call(kernel, j.like(2, 3, dtype=np.int32), grid_spec=spec)


@case(_floats(2, 3, 4), expected=lambda x: (x.sum((1, 2)), x.max()))
def two_results(j: Any) -> Any:
    def kernel(x: Any, total: Any, largest: Any) -> None:
        total[0] = x[...].sum()

        @j.pl.when(j.pl.program_id(0) == 0)
        def _() -> None:
            largest[...] = x[...].max()

        largest[...] = j.jnp.maximum(largest[...], x[...].max())

    return j.call(
        kernel, (j.like(2), j.like()), grid=(2,), in_specs=[j.pl.BlockSpec((None, 3, 4), lambda i: (i, 0, 0))],
        out_specs=(j.pl.BlockSpec((1,), lambda i: (i,)), j.pl.BlockSpec((), lambda i: ())),
    )  # fmt: skip


# ---- state from turn to turn


@case(_floats(12, 16), _floats(16, 8), expected=lambda x, y: x @ y)
def product_with_scratch(j: Any) -> Any:
    def kernel(x: Any, y: Any, o: Any, total: Any) -> None:
        @j.pl.when(j.pl.program_id(2) == 0)
        def _() -> None:
            total[...] = j.jnp.zeros_like(total)

        total[...] += j.jnp.dot(x[...], y[...], preferred_element_type=j.jnp.float32)

        @j.pl.when(j.pl.program_id(2) == j.pl.num_programs(2) - 1)
        def _() -> None:
            o[...] = total[...]

    return j.call(
        kernel, j.like(12, 8), grid=(3, 2, 4), scratch_shapes=[j.pltpu.VMEM((4, 4), _F32)],
        in_specs=[j.pl.BlockSpec((4, 4), lambda i, k, m: (i, m)), j.pl.BlockSpec((4, 4), lambda i, k, m: (m, k))],
        out_specs=j.pl.BlockSpec((4, 4), lambda i, k, m: (i, k)),
    )  # fmt: skip


@case(_floats(8, 3), expected=lambda x: np.cumsum(x, 0, dtype=_F32))
def scratch_that_goes_on(j: Any) -> Any:
    """Each point needs what the one before has left: the points run one after the other."""

    def kernel(x: Any, o: Any, *, total: Any) -> None:
        @j.pl.when(j.pl.program_id(0) == 0)
        def _() -> None:
            total[...] = j.jnp.zeros_like(total)

        total[...] += x[...]
        o[...] = total[...]

    block = j.pl.BlockSpec((1, 3), lambda i: (i, 0))
    return j.call(
        kernel, j.like(8, 3), grid=(8,), in_specs=[block], out_specs=block,
        scratch_shapes={"total": j.pltpu.VMEM((1, 3), _F32)},
    )  # fmt: skip


@case(np.ones((2, 3), _F32), expected=lambda x: np.arange(1, 7, dtype=_F32).reshape(2, 3))
def scratch_set_once(j: Any) -> Any:
    """At the first turn of the inner loop the scratch memory is set in the first row only."""

    def kernel(x: Any, o: Any, total: Any) -> None:
        @j.pl.when((j.pl.program_id(0) == 0) & (j.pl.program_id(1) == 0))
        def _() -> None:
            total[...] = j.jnp.zeros_like(total)

        total[...] += x[...]
        o[...] = total[...]

    block = j.pl.BlockSpec((1, 1), lambda i, k: (i, k))
    return j.call(
        kernel, j.like(2, 3), grid=(2, 3), in_specs=[block], out_specs=block,
        scratch_shapes=[j.pltpu.VMEM((1, 1), _F32)],
    )  # fmt: skip


@case(_rng.integers(0, 5, 24).astype(np.int32), expected=lambda x: np.bincount(x, minlength=5).astype(np.int32))
def histogram(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        @j.pl.when(j.pl.program_id(0) == 0)
        def _() -> None:
            o[...] = j.jnp.zeros_like(o)

        def count(k: Any, _: None) -> None:
            o[x[k]] += 1

        j.lax.fori_loop(0, x.shape[0], count, None)

    block = j.pl.BlockSpec((6,), lambda i: (i,))
    return j.call(kernel, j.like(5, dtype=np.int32), grid=(4,), in_specs=[block])


@case(_floats(3, 8), expected=lambda x: x.sum(1))
def sums_of_parts_of_rows(j: Any) -> Any:
    """A block of the result is visited once for each part: the rows are a batch."""

    def kernel(x: Any, o: Any) -> None:
        @j.pl.when(j.pl.program_id(1) == 0)
        def _() -> None:
            o[...] = j.jnp.zeros_like(o)

        o[...] += x[...].sum(1)

    return j.call(
        kernel, j.like(3), grid=(3, 4), in_specs=[j.pl.BlockSpec((1, 2), lambda i, k: (i, k))],
        out_specs=j.pl.BlockSpec((1,), lambda i, k: (i,)),
    )  # fmt: skip


@case(_floats(10), expected=lambda x: np.concatenate([2 * x[:4], x[4:]]))
def update_in_place(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[0:4] = 2 * x[0:4]

    return j.call(kernel, j.like(10), input_output_aliases={0: 0})


@case(np.array([2, 0, 0, 3], np.int32), _floats(4, 3), expected=lambda order, x: x[order])
def prefetched_order(j: Any) -> Any:
    def kernel(order: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    spec = j.pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(4,), in_specs=[j.pl.BlockSpec((1, 3), lambda i, order: (order[i], 0))],
        out_specs=j.pl.BlockSpec((1, 3), lambda i, order: (i, 0)),
    )  # fmt: skip
    return j.call(kernel, j.like(4, 3), grid_spec=spec)


@case(np.array([7, -1, -9], np.int32), _floats(4, 3), expected=lambda order, x: x[[3, 3, 0]])
def prefetched_out_of_range(j: Any) -> Any:
    """Blocks are moved inside; negative positions count from the end."""
    return prefetched(j, 3)


def prefetched(j: Any, count: int) -> Any:
    def kernel(order: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    spec = j.pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(count,), in_specs=[j.pl.BlockSpec((1, 3), lambda i, order: (order[i], 0))],
        out_specs=j.pl.BlockSpec((1, 3), lambda i, order: (i, 0)),
    )  # fmt: skip
    return j.call(kernel, j.like(count, 3), grid_spec=spec)


@case(np.array([1, 0, 2], np.int32), _floats(3), expected=lambda order, x: x[np.argsort(order)])
def scattered_results(j: Any) -> Any:
    def kernel(order: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    spec = j.pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(3,), in_specs=[j.pl.BlockSpec((1,), lambda i, order: (i,))],
        out_specs=j.pl.BlockSpec((1,), lambda i, order: (order[i],)),
    )  # fmt: skip
    return j.call(kernel, j.like(3), grid_spec=spec)


# ---- references inside of kernels


@case(_floats(6, 4), expected=lambda x: x[2:4] + x[3:5])
def blocks_at_traced_places(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        i = j.pl.program_id(0)
        o[...] = x[j.pl.ds(2 + i, 2), :] + x[j.pl.ds(i + 3, 2)]

    return j.call(kernel, j.like(2, 4), grid=(1,))


@case(_floats(6), expected=lambda x: np.concatenate([x[4:], x[4:]]))
def blocks_that_do_not_fit(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        i = j.pl.program_id(0)
        o[j.pl.ds(100 * i, 2)] = x[j.pl.ds(i + 5, 2)]

    return j.call(kernel, j.like(4), grid=(2,))


@case(_floats(6), expected=lambda x: np.sort(x).cumsum(dtype=_F32))
def nested_loops(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

        def outer(i: Any, _: None) -> None:
            def inner(k: Any, _: None) -> None:
                low, high = j.jnp.minimum(o[k], o[k + 1]), j.jnp.maximum(o[k], o[k + 1])
                o[k], o[k + 1] = low, high

            j.lax.fori_loop(0, 5 - i, inner, None)

        j.lax.fori_loop(0, 5, outer, None)

        @j.pl.loop(1, 6)
        def _(i: Any) -> None:
            o[i] += o[i - 1]

    return j.call(kernel, j.like(6))


@case(np.int32(1), _floats(4), expected=lambda i, x: -x)
def switched(j: Any) -> Any:
    def kernel(i: Any, x: Any, o: Any) -> None:
        o[...] = j.lax.switch(i[...], (lambda x: x**2, lambda x: -x), x[...])

    block = j.pl.BlockSpec((2,), lambda i: (i,))
    return j.call(
        kernel, j.like(4), grid=(2,), in_specs=[j.pl.BlockSpec((), lambda i: ()), block], out_specs=block
    )


@case(np.array([3, 0, 5], np.int32), expected=lambda x: x)
def data_dependent_loop(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = j.jnp.zeros_like(o)

        def body(k: Any) -> Any:
            o[...] += 1
            return k + 1

        j.lax.while_loop(lambda k: k < x[0], body, 0)

    block = j.pl.BlockSpec((1,), lambda i: (i,))
    return j.call(kernel, j.like(3, dtype=np.int32), grid=(3,), in_specs=[block], out_specs=block)


@case(_floats(2, 4), expected=lambda x: x.sum(0) * np.arange(4, dtype=_F32))
def memory_within_a_kernel(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        def scoped(ref: Any) -> None:
            ref[...] = x[0] + x[1]
            o[...] = ref[...] * j.jnp.arange(4, dtype=j.jnp.float32)

        j.pl.run_scoped(scoped, j.pltpu.VMEM((4,), _F32))

    return j.call(kernel, j.like(4))


def _powers(x: Any, y: Any) -> Any:
    for _ in range(5):
        x = x * y + 1
    return x


@case(_floats(6, 4), _floats(6, 4), expected=_powers)
def loops_side_by_side(j: Any) -> Any:
    """The blocks along both axes are the batch of one loop."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = j.lax.fori_loop(0, 5, lambda _, z: z * y[...] + 1, x[...])

    block = j.pl.BlockSpec((3, 1), lambda i, k: (i, k))
    return j.call(kernel, j.like(6, 4), grid=(2, 4), in_specs=[block, block], out_specs=block)


@case(_floats(6, 4), _floats(4), expected=_powers)
def loops_with_a_shared_row(j: Any) -> Any:
    """An array has blocks along the second axis only."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = j.lax.fori_loop(0, 5, lambda _, z: z * y[...] + 1, x[...])

    block, row = j.pl.BlockSpec((3, 2), lambda i, k: (i, k)), j.pl.BlockSpec((2,), lambda i, k: (k,))
    return j.call(kernel, j.like(6, 4), grid=(2, 2), in_specs=[block, row], out_specs=block)


@case(
    _floats(4, 6, 3),
    expected=lambda x: 3 * x.sum(1).T + 10 * np.arange(3, dtype=_F32)[:, None] + np.arange(4, dtype=_F32),
)
def loops_on_two_axes(j: Any) -> Any:
    """The points along the first and the last axis are a batch; their order differs in the argument and the result."""

    def kernel(x: Any, o: Any) -> None:
        place = j.pl.program_id(0) + 10 * j.pl.program_id(1)

        @j.pl.when(j.pl.program_id(2) == 0)
        def _() -> None:
            o[...] = j.jnp.full(o.shape, place, _F32)

        o[...] += 3 * x[...].sum(1).T

    return j.call(
        kernel, j.like(3, 4), grid=(4, 3, 3), in_specs=[j.pl.BlockSpec((1, 2, 1), lambda i, k, m: (i, m, k))],
        out_specs=j.pl.BlockSpec((1, 1), lambda i, k, m: (k, i)),
    )  # fmt: skip


@case(np.int32(3), _floats(4), expected=lambda n, x: np.concatenate([x[:3] + 3, x[3:]]))
def traced_grid(j: Any) -> Any:
    def run(n: Any, x: Any) -> Any:
        def kernel(x: Any, o: Any) -> None:
            i = j.pl.program_id(0)
            o[i] = x[i] + j.pl.num_programs(0).astype(j.jnp.float32)

        return j.call(kernel, j.like(4), grid=(n,), input_output_aliases={0: 0})(x)

    return run


@case(_floats(2, 2, 2, 3), expected=lambda x: x + np.arange(8, dtype=_F32).reshape(2, 2, 2, 1))
def four_axes(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        i, k, m = (j.pl.program_id(d) for d in range(3))
        o[...] = x[...] + (4 * i + 2 * k + m).astype(j.jnp.float32)

    block = j.pl.BlockSpec((None, None, None, 3), lambda i, k, m, n: (i, k, m, n))
    return j.call(kernel, j.like(2, 2, 2, 3), grid=(2, 2, 2, 1), in_specs=[block], out_specs=block)


@case(_floats(5), expected=lambda x: np.array([np.nan, 1, np.nan], _F32))
def blocks_never_written(j: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = j.jnp.ones_like(o)

    return j.call(kernel, j.like(3), grid=(1,), out_specs=j.pl.BlockSpec((1,), lambda i: (i + 1,)))


@case(np.zeros(0, _F32), expected=lambda x: np.full(2, np.nan, _F32))
def empty_grid(j: Any) -> Any:
    def kernel(o: Any) -> None:
        o[...] = j.jnp.ones_like(o)

    return lambda x: j.call(kernel, j.like(2), grid=(0,), out_specs=j.pl.BlockSpec((1,), lambda i: (i,)))()
