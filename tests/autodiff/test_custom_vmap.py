"""custom_vmap under derivatives, sequential_vmap under several vmaps, and methods of functions with several rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.custom_batching import custom_vmap, sequential_vmap

X = np.linspace(0.3, 1.2, 3, dtype=np.float32)
T = np.array([2, -1, 4], np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2) / 7
Y = np.array([5, 6, 7], np.float32)


def _sine(expected: list[bool] | None = None) -> Callable[..., Any]:
    """sin(x) * y of one element; the rule says cos(x) * y, so that it shows which of both was used."""

    @custom_vmap
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    @f.def_vmap
    def _(size: int, batched: list[bool], x: Any, y: Any) -> Any:
        if expected is not None:
            assert (size, batched) == (3, expected)
        return jnp.cos(x) * y, any(batched)

    return f


def _jvp_of(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, tx, ty: hloom.jvp(f, (x, y), (tx, ty))


def _both(x: Any, y: Any, tx: Any, ty: Any) -> tuple[Any, Any]:
    return np.cos(x) * y, -np.sin(x) * y * tx + np.cos(x) * ty


CASES: dict[str, tuple[list[bool], tuple[Any, ...], tuple[Any, ...]]] = {
    "all": ([True, True], (X, Y, T, X), (0, 0, 0, 0)),
    "one argument": ([True, False], (X, 2.0, T, 3.0), (0, None, 0, None)),
    "only tangents": ([False, False], (0.5, 2.0, T, 3.0), (None, None, 0, None)),
    "only primals": ([False, False], (X, 2.0, 4.0, 3.0), (0, None, None, None)),
    "one of each": ([True, False], (X, Y, T, 3.0), (0, 0, 0, None)),
    "a primal, another tangent": ([False, False], (X, 2.0, 1.0, T), (0, None, None, 0)),
}


@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CASES)
def test_vmap_of_jvp_follows_the_rule(name: str, wrap: Callable[..., Any]) -> None:
    batched, args, axes = CASES[name]
    found = wrap(hloom.vmap(_jvp_of(_sine(batched)), axes))(*args)
    for value, expected in zip(found, np.broadcast_arrays(*_both(*args)), strict=True):
        np.testing.assert_allclose(value, np.broadcast_to(expected, (3,)), rtol=1e-5)


def test_jvp_of_jvp_and_jvp_of_vmap() -> None:
    f = _sine()
    second = hloom.vmap(lambda x: hloom.jvp(lambda x: hloom.jvp(lambda x: f(x, 2.0), (x,), (1.0,))[1], (x,), (1.0,))[1])
    np.testing.assert_allclose(second(X), -2 * np.cos(X), rtol=1e-5)
    found = hloom.jvp(hloom.vmap(f), (X, Y), (T, X))
    for value, expected in zip(found, _both(X, Y, T, X), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_tangents_of_a_scanned_function() -> None:
    """The call is in a computation, which is differentiated, then batched."""
    f = _sine()
    loop = lambda x: lax.scan(lambda c, _: (f(c, 1.0), None), x, None, length=2)[0]  # noqa: E731
    found = hloom.vmap(lambda x, t: hloom.jvp(loop, (x,), (t,)))(X, T)
    np.testing.assert_allclose(found[0], np.cos(np.cos(X)), rtol=1e-5)
    np.testing.assert_allclose(found[1], np.sin(np.cos(X)) * np.sin(X) * T, rtol=1e-5)


def test_reverse_mode_follows_the_function() -> None:
    f = _sine()
    np.testing.assert_allclose(hloom.vmap(hloom.grad(f))(X, Y), np.cos(X) * Y, rtol=1e-5)
    np.testing.assert_allclose(hloom.grad(lambda x: hloom.vmap(f)(x, Y).sum())(X), -np.sin(X) * Y, rtol=1e-5)


def test_values_from_outside_have_derivatives() -> None:
    def outer(z: Any, x: Any) -> Any:
        inner = custom_vmap(lambda x: x * z)
        inner.def_vmap(lambda size, batched, x: (100 * x * z, batched[0]))
        return inner(x)

    assert hloom.jvp(outer, (2.0, 3.0), (1.0, 0.0)) == (6.0, 3.0)
    assert hloom.grad(outer)(2.0, 3.0) == 3.0
    found = hloom.vmap(lambda x: hloom.jvp(lambda x: outer(2.0, x), (x,), (1.0,)))(X)
    np.testing.assert_allclose(found, [200 * X, np.full(3, 200)], rtol=1e-6)


def test_an_integer_result_has_no_tangent() -> None:
    f = custom_vmap(lambda x: (x * 2, jnp.int32(1)))
    f.def_vmap(lambda size, batched, x: ((x * 3, jnp.int32(7)), (batched[0], False)))
    (value, count), (moved, _) = hloom.vmap(lambda x: hloom.jvp(f, (x,), (1.0,)))(X)
    np.testing.assert_allclose([value, moved], [3 * X, np.full(3, 3)], rtol=1e-6)
    np.testing.assert_array_equal(count, [7, 7, 7])


def test_several_vmaps_of_a_sequential_function() -> None:
    """Each of the six elements is computed alone."""
    f = sequential_vmap(lambda x: jnp.sin(x) + 1)
    twice = hloom.vmap(hloom.vmap(f))
    np.testing.assert_allclose(twice(ROWS), np.sin(ROWS) + 1, rtol=1e-6)
    types = [a for e in _equations(hloom.make_jaxpr(twice)(ROWS).jaxpr) for a in e.outvars if e.primitive.name == "sin"]
    assert [v.aval.shape for v in types] == [()]


def _equations(jaxpr: Any) -> list[Any]:
    found = []
    for e in jaxpr.eqns:
        found.append(e)
        for value in e.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                found += _equations(inner)
    return found


def test_rules_of_several_kinds() -> None:
    """The outer object has the methods of the inner one."""
    f = hloom.custom_vjp(custom_vmap(lambda x, y: jnp.sin(x) * y))
    f.def_vmap(lambda size, batched, x, y: (jnp.cos(x) * y, True))
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda kept, ct: (10 * kept[1] * ct, 20 * kept[0] * ct))
    np.testing.assert_allclose(hloom.vmap(f)(X, Y), np.cos(X) * Y, rtol=1e-6)
    assert hloom.grad(f, (0, 1))(2.0, 3.0) == (30, 40)
    g = custom_vmap(hloom.custom_jvp(lambda x: x))
    g.defjvp(lambda primals, tangents: (primals[0], 5 * tangents[0]))
    g.def_vmap(lambda size, batched, x: (x, batched[0]))
    assert hloom.grad(g)(1.0) == 5
    for each in (f, g):
        with pytest.raises(AttributeError, match="no attribute 'lower'"):
            _ = each.lower
        assert not hasattr(each, "deffoo")


# --- tangents without data


FLOAT0: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "results of jvp": (
        lambda: hloom.vmap(lambda x: hloom.jvp(lambda x: jnp.round(x).astype(int), (x,), (x,))[1], out_axes=-1)(ROWS),
        (2, 3),
    ),
    "results of grad": (lambda: hloom.vmap(hloom.grad(lambda i, x: i * x, allow_int=True))(np.arange(3), X), (3,)),
    "the same for all": (lambda: hloom.vmap(lambda x, z: z, (0, None), None)(X, np.zeros(2, hloom.float0)), (2,)),
    "arguments": (lambda: hloom.vmap(lambda z: z, 1, 2)(np.zeros((4, 3, 5), hloom.float0)), (4, 5, 3)),
}


@pytest.mark.parametrize("name", FLOAT0)
def test_vmap_of_float0(name: str) -> None:
    function, shape = FLOAT0[name]
    found = function()
    assert (found.dtype, found.shape) == (hloom.float0, shape)


def test_float0_tangents_under_vmap() -> None:
    zeros = np.zeros(3, hloom.float0)
    found = hloom.vmap(lambda i, t: hloom.jvp(lambda i: i * 2.0, (i,), (t,)))(np.arange(3), zeros)
    np.testing.assert_array_equal(found, [[0, 2, 4], [0, 0, 0]])
    with pytest.raises(ValueError, match=r"argument z of type float0\[3\]"):
        hloom.vmap(lambda i, z: i)(np.arange(2), zeros)


# --- rules of derivatives, batched


@hloom.custom_jvp
def constant(x: Any) -> Any:
    return jnp.zeros(())


@constant.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return jnp.zeros(()), primals[0] * tangents[0]


TANGENTS: dict[str, Callable[[Any], Any]] = {
    "grad of vmap": lambda x: hloom.grad(lambda x: hloom.vmap(constant)(x).sum())(x),
    "vmap of grad": lambda x: hloom.vmap(hloom.grad(constant))(x),
    "jvp of vmap": lambda x: hloom.jvp(hloom.vmap(constant), (x,), (jnp.ones(3),))[1],
    "in a loop": lambda x: hloom.grad(lambda x: hloom.vmap(lambda y: lax.map(constant, y[None])[0])(x).sum())(x),
    "in jit": lambda x: hloom.grad(lambda x: hloom.jit(hloom.vmap(constant))(x).sum())(x),
    "in two": lambda x: hloom.grad(lambda x: hloom.vmap(hloom.vmap(constant))(x[None]).sum())(x),
}


@pytest.mark.parametrize("name", TANGENTS)
def test_a_tangent_that_is_batched_where_the_result_is_not(name: str) -> None:
    np.testing.assert_allclose(TANGENTS[name](X), X)
    np.testing.assert_allclose(hloom.jit(TANGENTS[name])(X), X)


def _closing(x: Any, z: Any, kind: str) -> Any:
    """x * z, with rules that are closed over x, and give 5 times the derivative."""
    if kind == "jvp":
        g = hloom.custom_jvp(lambda y: x * y)
        g.defjvp(lambda primals, tangents: (x * primals[0], 5 * x * tangents[0]))
    elif kind == "nondiff_argnums":
        h = hloom.custom_jvp(lambda x, y: x * y, nondiff_argnums=(0,))
        h.defjvp(lambda x, primals, tangents: (x * primals[0], 5 * x * tangents[0]))
        return h(x, z)
    else:
        g = hloom.custom_vjp(lambda y: x * y)  # type: ignore[assignment]
        g.defvjp(lambda y: (x * y, ()), lambda kept, ct: (5 * x * ct,))
    return g(z)


@pytest.mark.parametrize("kind", ["jvp", "nondiff_argnums", "vjp"])
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None)])
def test_rules_may_be_closed_over_batched_values(kind: str, in_axes: Any) -> None:
    z = T if in_axes[1] == 0 else T[0]
    function = hloom.vmap(lambda x, z: _closing(x, z, kind), in_axes)
    found = hloom.grad(lambda z: function(X, z).sum())(z)
    np.testing.assert_allclose(found, 5 * X if in_axes[1] == 0 else 5 * X.sum(), rtol=1e-6)
    if kind != "vjp":
        value, moved = hloom.jvp(lambda z: function(X, z), (z,), (np.ones_like(z),))
        np.testing.assert_allclose([value, moved], [X * z, 5 * X], rtol=1e-6)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_rules_closed_over_differentiated_values_are_refused(kind: str) -> None:
    with pytest.raises(hloom.errors.UnexpectedTracerError, match="close"):
        hloom.grad(lambda x: hloom.vmap(lambda x, z: _closing(x, z, kind))(x, T).sum())(X)


def test_collectives_in_a_function_with_a_rule() -> None:
    """The result is the same for all, and stays so."""

    def function(rule: Callable[..., Any]) -> Callable[..., Any]:
        total = hloom.custom_jvp(lambda x: lax.psum(x, "i"))
        total.defjvp(lambda primals, tangents: (lax.psum(primals[0], "i"), rule(tangents[0])))
        return hloom.vmap(total, axis_name="i", out_axes=None)

    right = function(lambda t: 5 * lax.psum(t, "i"))
    for each in (right, hloom.jit(right)):
        value, moved = hloom.jvp(each, (X,), (T,))
        np.testing.assert_allclose([value, moved], [X.sum(), 5 * T.sum()], rtol=1e-6)
    with pytest.raises(ValueError, match="tangent that differs between the elements of axis 'i'"):
        hloom.jvp(function(lambda t: t), (X,), (T,))
