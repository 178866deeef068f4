"""Gather, scatter, sorting, windows, convolution and ragged products of hloom.lax against jax.lax: values, derivatives
in both modes, batches of both, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(7)


def floats(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype(np.float32)


X1, X2, X3 = floats(9), floats(7, 5), floats(3, 7, 4)
TIES = np.array([2, 1, 3, 3, 1, 3, 0, 2, 2], np.float32)
AT = np.array([[3], [11], [-1], [3], [0], [7]], np.int32)
INSIDE = np.array([[3], [6], [0], [3]], np.int32)
UNIQUE = np.array([[3], [8], [1], [0]], np.int32)
PAIRS = np.array([[1, 2], [5, 4], [6, 0], [-2, 3]], np.int32)
IMAGE, KERNEL = floats(2, 4, 6, 7), floats(6, 4, 3, 2)
POINTS = ((), (0,), (0,))
ROWS = ((1,), (0,), (0,))


def gather_rows(lx: Any, x: Any, mode: Any, **options: Any) -> Any:
    return lx.gather(x, AT, lx.GatherDimensionNumbers(*ROWS), (1, 5), mode=mode, **options)


def scatter(lx: Any, how: str, x: Any, at: Any, u: Any, **options: Any) -> Any:
    return getattr(lx, how)(x, at, u, lx.ScatterDimensionNumbers(*POINTS), **options)


Case = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of the lax module and of arrays, and these."""

GATHERS: dict[str, Case] = {
    "rows": (lambda lx, x: lx.gather(x, INSIDE, lx.GatherDimensionNumbers(*ROWS), (1, 5)), (X2,)),
    "rows-clip": (lambda lx, x: gather_rows(lx, x, "clip"), (X2,)),
    "rows-fill": (lambda lx, x: gather_rows(lx, x, "fill", fill_value=0.5), (X2,)),
    "windows": (
        lambda lx, x: lx.gather(x, PAIRS, lx.GatherDimensionNumbers((1, 2), (), (0, 1)), (3, 2), mode="clip"),
        (X2,),
    ),
    "batching": (
        lambda lx, x: lx.gather(
            x, np.abs(AT[:6].reshape(3, 2, 1)), lx.GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,)), (1, 1, 4),
            mode="clip",
        ),
        (X3,),
    ),
}  # fmt: skip
SCATTERS: dict[str, Case] = {
    **{
        f"{how}-{mode}": (lambda lx, x, u, how=how, m=mode: scatter(lx, how, x, AT, u, mode=m), (X1, floats(6)))
        for how in ("scatter", "scatter_add", "scatter_sub", "scatter_min", "scatter_max")
        for mode in (None, "clip")
        # With "clip" JAX's derivatives of extrema are wrong; of several updates of an element it may take any.
        if not (mode == "clip" and how in ("scatter", "scatter_min", "scatter_max"))
    },
    **{
        f"{how}-unique": (
            lambda lx, x, u, how=how: scatter(lx, how, x, UNIQUE, u, unique_indices=True),
            (X1, floats(4)),
        )
        for how in ("scatter", "scatter_add", "scatter_mul", "scatter_max")
    },
    "scatter_max-ties": (lambda lx, x, u: scatter(lx, "scatter_max", x, AT, u), (TIES, np.float32([3, 1, 1, 3, 2, 2]))),
    "scatter-windows": (
        lambda lx, x, u: lx.scatter_add(x, PAIRS, u, lx.ScatterDimensionNumbers((1, 2), (), (0, 1)), mode="clip"),
        (X2, floats(4, 3, 2)),
    ),
}
SORTS: dict[str, Case] = {
    "sort": (lambda lx, x: lx.sort(x), (X2,)),
    "sort-axis": (lambda lx, x: lx.sort(x, 1, False), (X3,)),
    "sort-ties": (lambda lx, x: lx.sort(x), (TIES,)),
    "sort-two-keys": (lambda lx, x, y: lx.sort([x, y, x * y], num_keys=2), (TIES, X1)),
    "sort-complex": (lambda lx, x, y: lx.real(lx.sort(lx.complex(x, y))), (TIES, X1)),
    "sort_key_val": (lambda lx, x, y: lx.sort_key_val(x, y, dimension=0), (X2, floats(7, 5))),
    "top_k": (lambda lx, x: lx.top_k(x, 3), (X2,)),
    "top_k-axis": (lambda lx, x: lx.top_k(x, 2, axis=1), (X3,)),
    "approx_max_k": (lambda lx, x: lx.approx_max_k(x, 2), (X2,)),
    "approx_min_k": (lambda lx, x: lx.approx_min_k(x, 3, 0), (X2,)),
}
ALL_WAYS = ((3, 2), (2, 1), ((1, 2), (0, 1)), (1, 2), (2, 1))
WINDOWS: dict[str, Case] = {
    "sum": (lambda lx, x: lx.reduce_window(x, 0.0, lx.add, *ALL_WAYS), (X2,)),
    "sum-cropped": (lambda lx, x: lx.reduce_window(x, 0.0, lx.add, (2, 2), (2, 1), ((-1, 0), (1, -1))), (X2,)),
    "max": (lambda lx, x: lx.reduce_window(x, -np.inf, lx.max, *ALL_WAYS[:-1]), (X2,)),
    "max-same": (lambda lx, x: lx.reduce_window(x, -np.inf, lx.max, (1, 3, 2), (1, 2, 2), "SAME"), (X3,)),
    "max-ties": (lambda lx, x: lx.reduce_window(x, -np.inf, lx.max, (4,), (2,), "SAME_LOWER"), (TIES,)),
    "min": (lambda lx, x: lx.reduce_window(x, np.inf, lx.min, (3, 3), (1, 1), "SAME"), (X2,)),
}
FORWARD: dict[str, Case] = {
    "max-dilated": (lambda lx, x: lx.reduce_window(x, -np.inf, lx.max, *ALL_WAYS), (X2,)),
    "product": (lambda lx, x: lx.reduce_window(x, np.float32(1), lx.mul, (3, 2), (2, 1), "SAME"), (X2,)),
    "two-arrays": (
        lambda lx, x, y: lx.reduce_window(
            (x, y), (np.float32(0), np.float32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (3,)
        ),
        (X1, floats(9)),
    ),
}


def convolution(*arguments: Any, **options: Any) -> Callable[..., Any]:
    return lambda lx, x, y: lx.conv_general_dilated(x, y, *arguments, **options)


PADS = ((2, 1), (0, -1))
CONVOLUTIONS: dict[str, Case] = {
    "conv": (lambda lx, x, y: lx.conv(x, y, (1, 2), "SAME"), (IMAGE, KERNEL)),
    "dilated": (convolution((2, 1), PADS, (1, 2), (2, 3)), (IMAGE, KERNEL)),
    "padded": (lambda lx, x, y: lx.conv_with_general_padding(x, y, (1, 1), PADS, (2, 1), None), (IMAGE, KERNEL)),
    "groups": (convolution((1, 1), "VALID", feature_group_count=2), (IMAGE, floats(6, 2, 3, 2))),
    "depthwise": (convolution((2, 2), "SAME_LOWER", feature_group_count=4), (IMAGE, floats(8, 1, 3, 2))),
    "batch-groups": (convolution((1, 1), "SAME", batch_group_count=2), (floats(4, 4, 6, 7), KERNEL)),
    "channels-last": (
        convolution((2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (floats(2, 6, 7, 4), floats(3, 2, 4, 6)),
    ),
    "one-dimension": (
        convolution((1,), "VALID", dimension_numbers=("NWC", "WIO", "NCW")),
        (floats(2, 9, 3), floats(4, 3, 5)),
    ),
    "patches": (lambda lx, x: lx.conv_general_dilated_patches(x, (2, 3), (2, 1), "SAME"), (IMAGE,)),
    "patches-last": (
        lambda lx, x: lx.conv_general_dilated_patches(
            x, (3, 2), (1, 1), PADS, (2, 1), (1, 2), dimension_numbers=("NWHC", "OIHW", "HNWC")
        ),
        (floats(2, 5, 6, 3),),
    ),
    "local": (
        lambda lx, x, y: lx.conv_general_dilated_local(
            x, y, (1, 1), "VALID", (2, 3), dimension_numbers=("NHWC", "WHIO", "NWHC")
        ),
        (floats(2, 4, 7, 2), floats(6, 2, 12, 5)),
    ),
    **{
        f"transpose-{pad}-{kernel}-{same}": (
            lambda lx, x, y, pad=pad, kernel=kernel, same=same: lx.conv_transpose(
                x, y, (2, 3), pad, transpose_kernel=kernel, use_consistent_padding=same
            ),
            (floats(2, 4, 5, 3), floats(3, 2, 3, 3)),
        )
        for pad, kernel, same in (("SAME", False, False), ("VALID", True, False), (((1, 0), (0, 1)), False, True))
    },
}  # fmt: skip


def ragged(lhs_batch: Any, rhs_batch: Any, contracting: Any, ragged_dims: Any, group_dims: Any) -> Callable[..., Any]:
    def function(lx: Any, x: Any, y: Any) -> Any:
        numbers = lx.RaggedDotDimensionNumbers((contracting, (lhs_batch, rhs_batch)), ragged_dims, group_dims)
        return lx.ragged_dot_general(x, y, np.array([3, 1, 2], np.int32), numbers)

    return function


PRODUCTS: dict[str, Case] = {
    "ragged": (lambda lx, x, y: lx.ragged_dot(x, y, np.array([2, 0, 4], np.int32)), (floats(8, 5), floats(3, 5, 2))),
    "reduce_precision": (lambda lx, x: lx.reduce_precision(x, 5, 4), (X2,)),
}

FORWARD |= {
    "ragged-contracting": (ragged((), (), ((0,), (0,)), (0,), ()), (floats(6, 4), floats(6, 5))),
    "ragged-batch": (ragged((0,), (0,), ((2,), (1,)), (0,), ()), (floats(6, 2, 4), floats(6, 4, 3))),
}
"""JAX has no reverse mode for them."""

CASES = {**GATHERS, **SCATTERS, **SORTS, **WINDOWS, **CONVOLUTIONS, **PRODUCTS}


def leaves(tree: Any) -> list[Any]:
    return list(tree) if isinstance(tree, tuple | list) else [tree]


def check(found: Any, expected: Any) -> None:
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def moving(function: Callable[..., Any]) -> Callable[..., Any]:
    """The results that are floats."""
    return lambda *xs: [y for y in leaves(function(*xs)) if y.dtype.kind == "f"]


def loss(function: Callable[..., Any], n: Any) -> Callable[..., Any]:
    """A number that depends on the results in a curved way, and differently on each."""
    return lambda *xs: sum(
        (n.sin(y) * n.cos(n.arange(y.size, dtype=y.dtype)).reshape(y.shape)).sum() for y in moving(function)(*xs)
    )


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("name", [*CASES, *FORWARD])
def test_values_and_derivatives(name: str) -> None:
    function, arrays = {**CASES, **FORWARD}[name]

    def ours(*xs: Any) -> Any:
        return function(lax, *xs)

    def theirs(*xs: Any) -> Any:
        return function(jax.lax, *map(jax.numpy.asarray, xs))

    tangents = tuple(np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape) for x in arrays)
    places = tuple(range(len(arrays)))

    @jax.jit
    def everything(*xs: Any) -> Any:
        pushed = jax.jvp(moving(theirs), xs, tangents)[1]
        return theirs(*xs), pushed, () if name in FORWARD else jax.grad(loss(theirs, jax.numpy), places)(*xs)

    result, pushed, pulled = everything(*arrays)
    check(ours(*arrays), result)
    check(hloom.jit(ours)(*arrays), result)
    check(hloom.jvp(moving(ours), arrays, tangents)[1], pushed)
    if name not in FORWARD:
        check(hloom.grad(loss(ours, jnp), places)(*arrays), pulled)
        check(hloom.jit(hloom.grad(loss(ours, jnp), places))(*arrays), pulled)


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("name", [*CASES, *FORWARD])
def test_batches_of_derivatives(name: str) -> None:
    function, arrays = {**CASES, **FORWARD}[name]
    rows = [np.stack([x, 0.5 - x, x * 0.75]).astype(np.float32) for x in arrays]
    gradient = hloom.grad(loss(lambda *xs: function(lax, *xs), jnp), tuple(range(len(arrays))))
    for axes in ([0] * len(rows), *([0 if k == j else None for k in range(len(rows))] for j in range(len(rows)))):
        given = [r if a == 0 else r[0] for r, a in zip(rows, axes, strict=True)]
        found = hloom.vmap(gradient, in_axes=tuple(axes))(*given)
        for k in range(3):
            one = gradient(*[r[k] if a == 0 else r[0] for r, a in zip(rows, axes, strict=True)])
            check([np.asarray(f)[k] for f in leaves(found)], one)


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "top_k of more": (lambda lx: lx.top_k(X1, 10), ValueError),
    "top_k of a negative number": (lambda lx: lx.top_k(X1, -1), ValueError),
    "sort of nothing": (lambda lx: lx.sort([]), TypeError),
    "sort by more keys": (lambda lx: lx.sort([X1, X1], num_keys=3), ValueError),
    "sort by keys of one": (lambda lx: lx.sort(X1, num_keys=2), ValueError),
    "windows of two ranks": (lambda lx: lx.reduce_window(X2, 0.0, lx.add, (2,)), TypeError),
    "padding word": (lambda lx: lx.padtype_to_pads((3,), (2,), (1,), "WIDE"), RuntimeError),
    "padding number": (lambda lx: lx.padtype_to_pads((3,), (2,), (1,), 3), TypeError),
    "kernel of another rank": (lambda lx: lx.conv(IMAGE, KERNEL[0], (1, 1), "SAME"), TypeError),
    "features": (lambda lx: lx.conv(IMAGE, KERNEL[:, :3], (1, 1), "SAME"), ValueError),
    "dimension characters": (
        lambda lx: convolution((1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWD"))(lx, IMAGE, KERNEL),
        TypeError,
    ),
    "padding of holes": (lambda lx: convolution((1, 1), "SAME", (2, 2))(lx, IMAGE, KERNEL), ValueError),
    "indices of floats": (lambda lx: scatter(lx, "scatter_add", X1, AT.astype(np.float32), X1[:6]), ValueError),
    "updates of another shape": (lambda lx: scatter(lx, "scatter", X1, AT, X1), (TypeError, ValueError)),
    "unknown mode": (lambda lx: gather_rows(lx, X2, "nearest"), ValueError),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error = REFUSED[name]
    with pytest.raises(error):
        call(jax.lax)
    with pytest.raises(error) as caught:
        call(lax)
    assert "test_lax_against_jax.py" in str(caught.value), "the error names the user's line"


def test_an_offset_of_groups_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"(?s)group_offset.*\n  at .*test_lax_against_jax"):
        lax.ragged_dot(X2, X3, np.array([1, 2, 3]), group_offset=np.array([0]))  # type: ignore[arg-type]


def test_scatter_apply() -> None:
    numbers = lax.ScatterDimensionNumbers(*POINTS)
    found = lax.scatter_apply(X1, AT, lambda x: x * 2 + 1, numbers, update_shape=(6,))
    expected = jax.lax.scatter_apply(
        X1, AT, lambda x: x * 2 + 1, jax.lax.ScatterDimensionNumbers(*POINTS), update_shape=(6,)
    )
    check(found, expected)


@pytest.mark.usefixtures("on_the_evaluator")
def test_integers_are_sorted_and_gathered() -> None:
    n = np.array([3, -1, 7, 0, 3], np.int32)
    check(lax.sort([n, n * 2]), jax.lax.sort([jax.numpy.asarray(n), jax.numpy.asarray(n * 2)]))
    check(lax.top_k(n.astype(np.uint8), 2), jax.lax.top_k(n.astype(np.uint8), 2))
    numbers = [lx.GatherDimensionNumbers(*POINTS) for lx in (lax, jax.lax)]
    for dtype in (np.int32, np.uint8, np.bool_):
        found, expected = (
            lx.gather(n.astype(dtype), AT, d, (1,), mode="fill")
            for lx, d in zip((lax, jax.lax), numbers, strict=True)
        )
        check(found, expected)


def _multiplied(x: Any, u: Any) -> Any:
    """scatter_mul by one update after the other; it drops updates outside."""
    x = jax.numpy.asarray(x)
    for k, (i,) in enumerate(AT):
        x = x.at[i].multiply(u[k]) if 0 <= i < x.size else x
    return jax.numpy.sin(x).sum()


@pytest.mark.usefixtures("on_the_evaluator")
def test_products_of_repeated_updates() -> None:
    """JAX has no derivative of these."""
    xs, us = floats(3, 9), floats(3, 6)

    def multiplied(x: Any, u: Any) -> Any:
        return jnp.sin(scatter(lax, "scatter_mul", x, AT, u)).sum()

    gradient = hloom.grad(multiplied, (0, 1))
    expected = jax.jit(jax.vmap(jax.grad(_multiplied, (0, 1))))(xs, us)
    check(hloom.vmap(gradient)(xs, us), expected)
    check(hloom.jit(hloom.vmap(gradient))(xs, us), expected)
    check(hloom.grad(lambda x, u: hloom.vmap(multiplied)(x, u).sum(), (0, 1))(xs, us), expected)
    check(hloom.hessian(multiplied, 1)(xs[0], us[0]), jax.jit(jax.hessian(_multiplied, 1))(xs[0], us[0]))


def _in_a_loop(lx: Any, n: Any, wrapped: Any) -> Any:
    """Each iteration scatters, sorts, and takes the largest."""

    def function(x: Any, u: Any) -> Any:
        def step(c: Any, v: Any) -> Any:
            c = scatter(lx, "scatter_max", scatter(lx, "scatter_add", c, AT, v), AT, v * 2)
            return lx.sort(n.sin(c)), lx.top_k(c, 2)[0]

        c, y = lx.scan(wrapped(step), x, u)
        return (c * n.arange(9.0)).sum() + y.sum()

    return function


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("name", ["checkpoint", "jit"])
def test_loops(name: str) -> None:
    ours = hloom.grad(_in_a_loop(lax, jnp, getattr(hloom, name)), (0, 1))
    theirs = jax.grad(_in_a_loop(jax.lax, jax.numpy, getattr(jax, name)), (0, 1))
    xs, us = floats(3, 9), floats(4, 6)
    check(hloom.jit(ours)(xs[0], us), jax.jit(theirs)(xs[0], us))
    check(hloom.vmap(ours, (0, None))(xs, us), jax.jit(jax.vmap(theirs, (0, None)))(xs, us))
