"""Collectives over named axes of vmap. The expected values are what they mean, written with NumPy on whole batches; JAX
0.10.2 gives the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

X = np.array([1.0, 2.0, 4.0], np.float32)
M = np.arange(9, dtype=np.float32).reshape(3, 3)
T = np.arange(36, dtype=np.float32).reshape(3, 6, 2)
N = np.arange(3.0, dtype=np.float32)
Q = np.arange(16, dtype=np.float32).reshape(4, 4)
PAIRS, PLACES = [[0, 3], [2, 1]], jnp.array([0, 1, 0, 1])


def over_i(fun: Callable[..., Any]) -> Callable[..., Any]:
    return hloom.vmap(fun, axis_name="i")


CASES: dict[str, tuple[Callable[[Any], Any], np.ndarray, Any]] = {
    "psum": (lambda x: lax.psum(x, "i"), X, [7, 7, 7]),
    "psum of what all share": (lambda x: lax.psum(jnp.float32(2), "i") + 0 * x, X, [6, 6, 6]),
    "psum of bool": (lambda x: lax.psum(x > 1, "i"), X, np.array([2, 2, 2], np.int32)),
    "psum of a tree": (lambda x: lax.psum({"a": x, "b": (x, 2)}, "i")["b"][0], X, [7, 7, 7]),
    "pmean": (lambda x: x - lax.pmean(x, "i"), X, X - X.mean()),
    "pmax": (lambda x: lax.pmax(x, "i"), X, [4, 4, 4]),
    "pmin of int": (lambda x: lax.pmin(x, "i"), np.array([3, -2, 5], np.int32), np.array([-2] * 3, np.int32)),
    "pmax of bool": (lambda x: lax.pmax(x > 3, "i"), X, [True] * 3),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), X, [0, 1, 2]),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 1]), X, [4, 1, 2]),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), M, M.T),
    "all_gather": (lambda x: lax.all_gather(x, "i"), X, [X] * 3),
    "all_gather along 1": (lambda x: lax.all_gather(x, "i", axis=1), M, [M.T] * 3),
    "all_gather tiled": (lambda x: lax.all_gather(x, "i", tiled=True), M, [M.ravel()] * 3),
    "all_gather of what all share": (lambda x: lax.all_gather(jnp.ones(2), "i"), X, np.ones((3, 3, 2))),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), M, M.sum(0)),
    "psum_scatter of booleans": (lambda x: lax.psum_scatter(x > 0, "i"), M, (M > 0).sum(0, dtype="int32")),
    "psum_scatter tiled": (lambda x: lax.psum_scatter(x, "i", tiled=True), T, T.sum(0).reshape(3, 2, 2)),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), M, M.T),
    "all_to_all tiled": (
        lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
        T,
        T.reshape(3, 3, 2, 2).transpose(1, 2, 0, 3).reshape(3, 2, 6),
    ),
    "axis_index": (lambda x: lax.axis_index("i"), X, np.arange(3, dtype=np.int32)),
    "axis_size": (lambda x: x * lax.axis_size("i"), X, X * 3),
    "psum of a number": (lambda x: x * lax.psum(1, "i"), X, X * 3),
    **{
        f"{name} in groups": (lambda x, f=f: f(x, "i", axis_index_groups=[[2, 0], [1]]), X, wanted)
        for name, f, wanted in (
            ("psum", lax.psum, [5, 2, 5]), ("pmax", lax.pmax, [4, 2, 4]), ("pmin", lax.pmin, [1, 2, 1]),
            ("pmean", lax.pmean, [2.5, 2, 2.5]),
        )
    },
    "psum of a number in groups": (lambda x: x * lax.psum(1, "i", axis_index_groups=[[2, 0], [1]]), X, [2, 2, 8]),
    "grad of psum in groups": (
        hloom.grad(lambda x: lax.psum(x * x, "i", axis_index_groups=[[2, 0], [1]])), X, [4, 4, 16],
    ),
    "all_gather in groups": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=PAIRS), Q, Q[[[0, 3], [2, 1], [2, 1], [0, 3]]],
    ),
    "psum_scatter in groups": (
        lambda x: lax.psum_scatter(x, "i", axis_index_groups=PAIRS), Q[:, :2],
        [(Q[0] + Q[3])[0], (Q[2] + Q[1])[1], (Q[2] + Q[1])[0], (Q[0] + Q[3])[1]],
    ),
    "all_to_all in groups": (
        lambda x: lax.all_to_all(x, "i", 0, 0, axis_index_groups=PAIRS), Q[:, :2],
        np.stack([Q[[0, 3], 0], Q[[2, 1], 1], Q[[2, 1], 0], Q[[0, 3], 1]]),
    ),
    "ragged_all_to_all in groups": (
        lambda x: lax.ragged_all_to_all(
            x, jnp.zeros(4), *(jnp.array(v) for v in ([0, 1], [1, 1])), jnp.full(2, PLACES[lax.axis_index("i")]),
            jnp.ones(2, int), axis_name="i", axis_index_groups=PAIRS,
        ), Q, [[Q[0, 0], Q[3, 0], 0, 0], [Q[2, 1], Q[1, 1], 0, 0], [Q[2, 0], Q[1, 0], 0, 0], [Q[0, 1], Q[3, 1], 0, 0]],
    ),
    "in jit": (hloom.jit(lambda x: x - lax.pmean(x, "i")), X, X - X.mean()),
    "in jit, nothing else is batched": (lambda x: x + _index_in_jit(1.0), X, X + N),
    "in a loop": (lambda x: lax.fori_loop(0, 3, lambda k, c: c + lax.psum(x, "i"), 0.0), X, [21, 21, 21]),
    "in a scan": (lambda x: lax.scan(lambda c, y: (c + lax.pmax(c * y, "i"), None), x, jnp.ones(2))[0], X, X + 4 + 8),
    "in a branch for all": (lambda x: lax.cond(True, lambda: x * lax.axis_index("i"), lambda: x), X, X * N),
    "in a branch for each": (lambda x: lax.cond(x > 1, lambda: lax.psum(x, "i"), lambda: x), X, [1, 7, 7]),
    "grad of psum": (hloom.grad(lambda x: lax.psum(x * x, "i")), X, 6 * X),
    "grad of pmean": (hloom.grad(lambda x: lax.pmean(x * x, "i")), X, 2 * X),
    "grad of pmax": (hloom.grad(lambda x: lax.pmax(x * x, "i")), X, [0, 0, 3 * 8]),
    "grad of ppermute": (hloom.grad(lambda x: lax.ppermute(x * x, "i", [(0, 1), (1, 2)])), X, [2, 4, 0]),
    "grad of all_gather": (hloom.grad(lambda x: (lax.all_gather(x * x, "i") * N).sum()), X, 3 * N * 2 * X),
    "grad of all_to_all": (hloom.grad(lambda x: (lax.all_to_all(x, "i", 0, 0) * N).sum()), M, np.outer(N, np.ones(3))),
    "grad of psum_scatter": (hloom.grad(lambda x: lax.psum_scatter(x, "i") ** 2), M, [2 * M.sum(0)] * 3),
    "grad of checkpoint": (
        hloom.grad(hloom.checkpoint(lambda x: jnp.sin(lax.psum(x, "i")))), X, [3 * np.cos(7.0)] * 3,
    ),
    "jvp of psum": (lambda x: hloom.jvp(lambda y: lax.psum(y * y, "i"), (x,), (1.0,))[1], X, [14, 14, 14]),
}  # fmt: skip


@hloom.jit
def _index_in_jit(x: Any) -> Any:
    return x * 0 + lax.axis_index("i")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_collective(name: str) -> None:
    fun, x, expected = CASES[name]
    for mapped in (over_i(fun), hloom.jit(over_i(fun))):
        found = np.asarray(mapped(x))
        if isinstance(expected, np.ndarray) and expected.dtype != np.float64:
            assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_the_result_is_the_same_for_all_elements() -> None:
    assert hloom.vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X) == 7


def test_gradient_through_vmap() -> None:
    """Here the sum is over all elements' results: each gets 3 times what its own copy gives."""
    np.testing.assert_allclose(hloom.grad(lambda x: over_i(lambda y: lax.psum(y * y, "i"))(x).sum())(X), 6 * X)


def test_several_axes() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def both(fun: Callable[..., Any]) -> Any:
        return hloom.vmap(hloom.vmap(fun, axis_name="i"), axis_name="j")(x)

    np.testing.assert_array_equal(both(lambda v: lax.psum(v, ("i", "j"))), np.full((2, 3), 15))
    np.testing.assert_array_equal(both(lambda v: lax.psum(v, "j")), [x.sum(0)] * 2)
    np.testing.assert_array_equal(both(lambda v: lax.axis_index(("j", "i"))), np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(both(lambda v: lax.all_gather(v, ("j", "i"))), np.broadcast_to(x.ravel(), (2, 3, 6)))
    np.testing.assert_array_equal(both(lambda v: lax.all_gather(v, "j") * 1), np.broadcast_to(x.T, (2, 3, 2)))
    assert both(lambda v: v * lax.axis_size(("i", "j")))[1, 2] == 30


A = np.arange(144, dtype=np.float32).reshape(2, 3, 12, 2)
BLOCKS = A.reshape(2, 3, 2, 3, 2, 2)  # the third and fourth dimension: the receiving element of j and i
SEVERAL: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "all_to_all": (
        lambda v: lax.all_to_all(v, ("j", "i"), 0, 1), BLOCKS[..., 0, :],
        BLOCKS[..., 0, :].transpose(2, 3, 4, 0, 1).reshape(2, 3, 2, 6),
    ),
    "all_to_all tiled": (
        lambda v: lax.all_to_all(v, ("j", "i"), 0, 0, tiled=True), A,
        BLOCKS.transpose(2, 3, 0, 1, 4, 5).reshape(2, 3, 12, 2),
    ),
    "all_to_all, the other order": (
        lambda v: lax.all_to_all(v, ("i", "j"), 0, 0, tiled=True), A,
        A.reshape(2, 3, 3, 2, 2, 2).transpose(3, 2, 1, 0, 4, 5).reshape(2, 3, 12, 2),
    ),
    "psum_scatter": (lambda v: lax.psum_scatter(v, ("j", "i"), tiled=True), A, BLOCKS.sum((0, 1))),
    "psum_scatter of one": (
        lambda v: lax.psum_scatter(v.T, ("j", "i"), scatter_dimension=1), BLOCKS[..., 0, :],
        BLOCKS[..., 0, :].sum((0, 1)),
    ),
    "grad of all_to_all": (
        hloom.grad(lambda v: (lax.all_to_all(v, ("j", "i"), 0, 0, tiled=True) ** 2).sum()), A, 2 * A,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_exchanges_over_several_axes(name: str) -> None:
    fun, x, expected = SEVERAL[name]
    x = x.reshape(2, 3, -1, 2)
    found = hloom.vmap(hloom.vmap(fun, axis_name="i"), axis_name="j")(x)
    np.testing.assert_array_equal(found, expected)


def test_an_inner_axis_hides_an_outer_one_of_its_name() -> None:
    found = hloom.vmap(lambda x: over_i(lambda y: lax.psum(y, "i"))(x), axis_name="i")(M)
    np.testing.assert_array_equal(found, np.repeat(M.sum(1, keepdims=True), 3, 1))


ERRORS = {
    "unbound": (lambda x: lax.psum(x, "q"), NameError, "unbound axis name: q"),
    "unbound index": (lambda x: lax.axis_index("q"), NameError, "unbound axis name: q"),
    "two senders": (lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), ValueError, "must be unique"),
    "no such element": (lambda x: lax.ppermute(x, "i", [(0, 3)]), ValueError, r"in \[0, 3\)"),
    "no permutation": (lambda x: lax.pshuffle(x, "i", [0, 0, 1]), ValueError, "does not represent a permutation"),
    "split of another size": (lambda x: lax.all_to_all(jnp.ones((2, 2)), "i", 0, 0), ValueError, "they are 2 and 3"),
    "scatter of another size": (lambda x: lax.psum_scatter(jnp.ones(2), "i"), ValueError, "must match axis size 3"),
    "groups of two sizes": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2]]), ValueError, "must all be of the same size",
    ),
    "an empty group": (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2], []]), ValueError, "of the same size"),
    "groups without a place": (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]]), ValueError, "exactly once"),
    "axis out of range": (lambda x: lax.all_gather(x, "i", axis=2), ValueError, "axis 2 is out of bounds"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    fun, error, words = ERRORS[name]
    with pytest.raises(error, match=words):
        over_i(fun)(X)


# ---- collectives in functions with a rule of their own


@hloom.custom_vjp
def _total(x: Any) -> Any:
    return lax.psum(x, "i")


_total.defvjp(lambda x: (_total(x), None), lambda _, g: (g,))


@hloom.custom_jvp
def _total_forward(x: Any) -> Any:
    return lax.psum(x, "i")


_total_forward.defjvp(lambda primals, tangents: (_total_forward(*primals), *tangents))


@hloom.custom_vjp
def _total_and_product(x: Any, y: Any) -> Any:
    return lax.psum(x, "i"), x * y


_total_and_product.defvjp(
    lambda x, y: (_total_and_product(x, y), (x, y)), lambda kept, g: (g[0] * kept[0], g[1] * kept[0])
)

FOUR = np.arange(4, dtype=np.float32)
OF_RULES: dict[str, tuple[Any, Any, Any]] = {
    "vjp of what is not mapped": (lambda a, x: _total(x), None, 8.0),
    "jvp of what is not mapped": (lambda a, x: _total_forward(x), None, 8.0),
    "vjp of what is mapped": (lambda a, x: _total(a), None, 6.0),
    "jvp of what is mapped": (lambda a, x: _total_forward(a), None, 6.0),
    "given an axis": (lambda a, x: _total(a), 0, [6.0] * 4),
    "two results": (lambda a, x: _total_and_product(a, x), (None, 0), (6.0, 2 * FOUR)),
    "two results of what is not mapped": (lambda a, x: _total_and_product(x, x), None, (8.0, 4.0)),
    "gradient inside": (lambda a, x: hloom.grad(_total)(x), None, 1.0),
    "gradient inside, mapped": (lambda a, x: hloom.grad(_total)(a), None, 1.0),
    "in a loop": (lambda a, x: lax.fori_loop(0, 2, lambda _, c: _total(x), 0.0), None, 8.0),
    "in remat": (lambda a, x: hloom.remat(_total)(x), None, 8.0),
}


@pytest.mark.parametrize("name", OF_RULES)
def test_collectives_in_rules_of_users(name: str) -> None:
    f, out, wanted = OF_RULES[name]
    for g in (f, hloom.jit(f)):
        mapped = hloom.vmap(g, in_axes=(0, None), out_axes=out, axis_name="i")
        for run in (mapped, hloom.jit(mapped)):
            hloom.tree.map(np.testing.assert_array_equal, run(FOUR, 2.0), wanted)
        twice = hloom.vmap(lambda x, m=mapped: m(FOUR, x))(jnp.array([2.0, 2.0]))
        hloom.tree.map(lambda found, one: np.testing.assert_array_equal(found[1], one), twice, wanted)


def test_gradients_of_collectives_in_rules_of_users() -> None:
    def sums(f: Any, a: Any, x: Any) -> Any:
        return hloom.vmap(f, in_axes=(0, None), out_axes=None, axis_name="i")(a, x)

    assert hloom.grad(lambda x: sums(lambda a, x: _total(x), FOUR, x))(2.0) == 1.0
    np.testing.assert_array_equal(hloom.grad(lambda a: sums(lambda a, x: _total(a), a, 2.0))(FOUR), np.ones(4))


def test_a_forward_rule_that_is_not_reduced_is_refused() -> None:
    @hloom.custom_vjp
    def f(x: Any) -> Any:
        return lax.psum(x, "i")

    f.defvjp(lambda x: (x, None), lambda _, g: (g,))
    with pytest.raises(ValueError, match="forward rule of f gives a result that differs"):
        hloom.grad(lambda a: hloom.vmap(f, axis_name="i")(a).sum())(FOUR)
