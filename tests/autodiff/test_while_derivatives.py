"""Reverse mode of while loops: the numbers of the unrolled loop, at any number of checkpoints.

Loops here begin with a counter of an array's type, so that no path for known numbers of iterations is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.errors import UnsupportedError

Loop = Callable[[Callable[[Any, Any], Any], Any], Any]
"""loop(body, start): body(i, carry) -> carry, again and again."""


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with hloom.enable_x64():
        yield


def looped(n: Any) -> Loop:
    def loop(body: Callable[[Any, Any], Any], start: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, body(*s)), (0, start))[1]

    return loop


def unrolled(n: int) -> Loop:
    def loop(body: Callable[[Any, Any], Any], carry: Any) -> Any:
        for i in range(n):
            carry = body(i, carry)
        return carry

    return loop


@hloom.custom_vjp
def with_a_rule(x: Any) -> Any:
    return jnp.sin(x)


with_a_rule.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (2 * ct * jnp.cos(x),))


@hloom.custom_jvp
def with_tangents(x: Any) -> Any:
    return jnp.sin(x)


with_tangents.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), 3 * tangents[0] * primals[0]))

X, W = np.array([0.3, 0.8]), np.array([[1.0, 2.0], [0.3, 0.4]])


def inner(loop: Loop, x: Any) -> Any:
    """Loops in a loop, with other numbers of iterations each time."""

    def body(i: Any, y: Any) -> Any:
        if isinstance(i, int):
            for _ in range(i % 3 + 1):
                y = jnp.cos(y) * x
            return y
        return lax.while_loop(lambda s: s[0] < i % 3 + 1, lambda s: (s[0] + 1, jnp.cos(s[1]) * x), (0, y))[1]

    return loop(body, x)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a value from outside": (lambda L, x, w: L(lambda i, y: jnp.sin(y * w) + x, x), (X, X[::-1])),
    "a matrix from outside": (lambda L, x, w: L(lambda i, y: jnp.tanh(w @ y), x), (X, W)),
    "a rule for vjp": (lambda L, x: L(lambda i, y: with_a_rule(y) * y, x), (X,)),
    "a rule for jvp": (lambda L, x: L(lambda i, y: with_tangents(y) * y, x), (X,)),
    "stop_gradient": (lambda L, x: L(lambda i, y: lax.stop_gradient(y) * jnp.cos(y) * x, x), (X,)),
    "integers": (
        lambda L, x: L(lambda i, c: (c[0] * jnp.where(c[1] % 2 == 0, x, jnp.sin(x)), c[1] * 3 + 1, c[2] ^ True),
                       (x, 1, True))[0],
        (X,),
    ),
    "checkpoint around": (lambda L, x: hloom.checkpoint(lambda x: L(lambda i, y: jnp.sin(y) * x, x))(x), (X,)),
    "checkpoint within": (lambda L, x: L(hloom.checkpoint(lambda i, y: jnp.sin(y) * x), x), (X,)),
    "in a scan": (
        lambda L, x: lax.scan(lambda c, a: (L(lambda i, y: jnp.sin(y) * x + a, c), c), x, jnp.arange(3.0))[1], (X,)
    ),
    "a scan within": (
        lambda L, x: L(lambda i, y: lax.scan(lambda c, a: (jnp.sin(c) * x + a, c), y, jnp.arange(3.0))[0], x), (X,)
    ),
    "in a branch": (
        lambda L, x: lax.cond(x[0] > 0, lambda x: L(lambda i, y: jnp.sin(y) * x, x), lambda x: x, x), (X,)
    ),
    "branches within": (
        lambda L, x: L(lambda i, y: lax.cond(i % 2 == 0, lambda y: jnp.sin(y) * x, lambda y: y * y, y), x), (X,)
    ),
    "a loop within": (inner, (X,)),
    "jit within": (lambda L, x: L(lambda i, y: hloom.jit(jnp.sin)(y) * x, x), (X,)),
    "vmap within": (lambda L, x: L(lambda i, y: hloom.vmap(jnp.sin)(y) * x, x), (X,)),
    "complex numbers": (lambda L, x: jnp.real(L(lambda i, y: jnp.sin(y) * (x + 1j), x + 0j)), (X,)),
    "updates": (
        lambda L, x: L(lambda i, y: y.at[i % 2].set(y[0] * y[1] + x[0]).at[0].add(i * 0.1), x), (X,)
    ),
    "parts that change places": (lambda L, x: L(lambda i, c: (c[1], c[0] * x), (x, x**2))[0], (X,)),
    "a sum that nothing reads": (lambda L, x: L(lambda i, c: (c[1], c[1] * x, c[2] + c[0]), (x, x, x))[0], (X,)),
    "nothing but a constant": (lambda L, x: L(lambda i, y: 2 * y + 1, x), (X,)),
    "keys": (
        lambda L, x: L(lambda i, c: (c[0] * hloom.random.uniform(c[1]) + x, hloom.random.split(c[1])[0]),
                       (x, hloom.random.key(0)))[0],
        (X,),
    ),
}  # fmt: skip


def total(f: Callable[..., Any], loop: Callable[[Any], Loop]) -> Callable[..., Any]:
    def value(n: Any, *args: Any) -> Any:
        result = f(loop(n), *args)
        return jnp.sum(result * jnp.cos(jnp.arange(result.size)).reshape(result.shape))

    return value


def same(found: Any, expected: Any) -> None:
    for a, b in zip(hloom.tree.leaves(found), hloom.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_the_unrolled_loop(name: str) -> None:
    f, args = CASES[name]
    places, n = tuple(range(1, len(args) + 1)), 5
    one, other = total(f, looped), total(f, unrolled)

    def all_of(f: Callable[..., Any], n: Any) -> list[Any]:
        gradient = hloom.grad(f, places)
        found = [hloom.value_and_grad(f, places)(n, *args), hloom.jacrev(gradient, places)(n, *args)]
        if name != "a rule for vjp":
            found.append(hloom.jacfwd(gradient, places)(n, *args))
        return found

    expected = all_of(other, n)
    same(hloom.jit(lambda n: all_of(one, n))(n), expected)
    with hloom.loop_checkpoints(4):
        same(hloom.jit(lambda n: all_of(one, n))(n), expected)


@pytest.mark.parametrize("checkpoints", [0, 1, 4, 6, 8, 40])
def test_any_number_of_checkpoints_gives_the_same_gradient(checkpoints: int) -> None:
    """Bit for bit, as states are computed again by the same operations."""

    def f(n: Any, x: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, y: jnp.sin(y) + x * 1e-3, x)

    with hloom.loop_checkpoints(checkpoints):
        gradient = hloom.jit(hloom.grad(f, 1))
        for n in (*range(12), 15, 16, 17, 31, 32, 33, 100, 257, 3000):
            assert gradient(n, 0.7) == hloom.grad(f, 1)(n, 0.7)  # a scan, as the bounds are known


def test_iterations_are_repeated_as_often_as_binomial_checkpointing_needs() -> None:
    """With all states kept each iteration runs once forwards; with 8 slots, 100 iterations run some 3 times more."""
    counted: list[int] = []

    def count(y: Any) -> Any:
        counted.append(1)
        return np.sin(y)

    @hloom.custom_jvp
    def f(y: Any) -> Any:
        return hloom.pure_callback(count, hloom.ShapeDtypeStruct((), np.float64), y)

    f.defjvp(lambda primals, tangents: (f(primals[0]), tangents[0] * jnp.cos(primals[0])))
    calls = {}
    for checkpoints in (1000, 8):
        with hloom.loop_checkpoints(checkpoints):
            hloom.jit(hloom.grad(lambda y, n: looped(n)(lambda i, y: f(y), y)))(0.5, 100)
        calls[checkpoints] = len(counted)
        counted.clear()
    assert calls[1000] <= 200
    assert calls[8] <= 600


SQUARE_ROOTS = np.array([2.0, 9.0, 100.0, 1e4, 1.0])


def newton(a: Any) -> Any:
    return lax.while_loop(lambda s: jnp.abs(s * s - a) > 1e-9, lambda s: 0.5 * (s + a / s), a)


def shifted(x: Any) -> Any:
    """The derivative of one iteration more than an element makes is infinite."""
    return lax.while_loop(lambda s: s > 1.0, lambda s: jnp.sqrt(s - 1.0), x)


@pytest.mark.parametrize("checkpoints", [0, 4])
@pytest.mark.parametrize("f, xs", [(newton, SQUARE_ROOTS), (shifted, np.array([3.0, 1.0, 1.5, 0.2, 26.0]))])
def test_elements_of_a_batch_make_their_own_numbers_of_iterations(f: Any, xs: Any, checkpoints: int) -> None:
    first, second = [np.stack([g(x) for x in xs]) for g in (hloom.grad(f), hloom.grad(hloom.grad(f)))]
    with hloom.loop_checkpoints(checkpoints):
        same(hloom.vmap(hloom.grad(f))(xs), first)
        same(hloom.grad(lambda xs: jnp.sum(hloom.vmap(f)(xs)))(xs), first)
        same(hloom.vmap(hloom.grad(hloom.grad(f)))(xs), second)
        same(hloom.grad(lambda xs: jnp.sum(hloom.vmap(hloom.grad(f))(xs)))(xs), second)
        same(hloom.vmap(hloom.jacfwd(hloom.grad(f)))(xs), second)
        same(hloom.jit(hloom.vmap(hloom.grad(f)))(np.stack([xs, xs])[1]), first)


def test_batches_along_some_arguments() -> None:
    f, args = CASES["a matrix from outside"]
    one, other = total(f, looped), total(f, unrolled)
    for axes in ((0, None), (None, 0), (0, 0)):
        given = [np.stack([a, 2 * a]) if axis == 0 else a for a, axis in zip(args, axes)]
        found = hloom.jit(hloom.vmap(hloom.grad(one, (1, 2)), (None, *axes)))(3, *given)
        same(found, hloom.vmap(hloom.grad(lambda *a: other(3, *a), (0, 1)), axes)(*given))
    lengths = np.array([2, 0, 5])
    found = hloom.vmap(hloom.grad(one, 1), (0, None, None))(lengths, *args)
    same(found, np.stack([hloom.grad(other, 1)(int(n), *args) for n in lengths]))


def test_linear_programs_of_loops() -> None:
    f, (x, w) = CASES["a matrix from outside"]
    one, other = [total(f, loop) for loop in (looped, unrolled)]
    programs = [hloom.linearize(lambda x, w, g=g: g(4, x, w), x, w)[1] for g in (one, other)]
    xs = np.stack([x, 2 * x, x - 1])
    same(*[p(x, w) for p in programs])
    same(*[hloom.linear_transpose(p, x, w)(1.0) for p in programs])
    batched = [hloom.vmap(p, (0, None)) for p in programs]
    same(*[p(xs, w) for p in batched])
    same(*[hloom.linear_transpose(p, xs, w)(np.arange(3.0)) for p in batched])


def test_transposes_of_linear_loops() -> None:
    def power(d: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * 2.0), (0, d))[1]

    assert hloom.linear_transpose(power, 1.0)(3.0) == (48.0,)
    for refused in (
        lambda d: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * c[1]), (0, d))[1],
        lambda d: lax.while_loop(lambda y: y < 3, lambda y: y * 2, d),
    ):
        with pytest.raises(TypeError, match="not linear"):
            hloom.linear_transpose(refused, 1.0)(1.0)


def test_a_rule_whose_tangents_take_a_loop() -> None:
    @hloom.custom_jvp
    def power(x: Any) -> Any:
        return x**8

    power.defjvp(
        lambda p, t: (
            p[0] ** 8,
            8 * lax.while_loop(lambda c: c[0] < 7, lambda c: (c[0] + 1, c[1] * p[0]), (0, t[0]))[1],
        )
    )
    np.testing.assert_allclose(hloom.grad(power)(1.1), 8 * 1.1**7)


def test_integers_have_no_cotangent() -> None:
    def f(n: Any, x: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, y: jnp.sin(y), x)

    found = hloom.jit(hloom.grad(f, (0, 1), allow_int=True))(5, 0.3)
    assert found[0].dtype == hloom.float0
    same(found[1], hloom.grad(f, 1)(5, 0.3))


def test_effects_are_refused() -> None:
    def body(c: Any) -> Any:
        hloom.debug.print("{}", c[1])
        return c[0] + 1, jnp.sin(c[1])

    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 2, body, (0, x))[1]

    for function in (f, hloom.jit(f)):
        with pytest.raises(UnsupportedError, match="Reverse-mode differentiation of") as info:
            hloom.grad(function)(0.3)
        assert "test_while_derivatives.py" in str(info.value)


def test_a_backward_rule_that_is_not_linear_has_a_first_derivative_only() -> None:
    @hloom.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -0.5, 0.5),))

    def f(loop: Loop, x: Any) -> Any:
        return loop(lambda i, y: clipped(jnp.sin(y)), x)

    same(hloom.grad(lambda x: f(looped(3), x))(0.3), hloom.grad(lambda x: f(unrolled(3), x))(0.3))
    same(*[hloom.jacfwd(hloom.grad(lambda x, n=n: f(n, x)))(0.3) for n in (looped(3), unrolled(3))])
    with pytest.raises(UnsupportedError, match="not linear"):
        hloom.grad(hloom.grad(lambda x: f(looped(3), x)))(0.3)


def test_memory_is_that_of_the_checkpoints() -> None:
    def f(x: Any, n: Any) -> Any:
        return jnp.sum(lax.fori_loop(0, n, lambda i, y: jnp.sin(y) * x, x))

    x = np.ones(10_000)
    with hloom.loop_checkpoints(16):
        compiled = hloom.jit(hloom.grad(f)).lower(x, 1000).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 25 * x.nbytes


def test_slots_are_neither_written_first_nor_copied() -> None:
    """Two parts of the state have slots of the same type: each has its own memory, in which it stays."""

    def f(x: Any, n: Any) -> Any:
        y, z = lax.fori_loop(0, n, lambda i, c: (jnp.sin(c[0]) * c[1], jnp.cos(c[1])), (x, x))
        return jnp.sum(y + z)

    text = hloom.jit(hloom.grad(f)).lower(np.ones(1000), 5).compile().as_text()
    slots = [line for line in text.splitlines() if "hloom.unwritten" in line and "f64[4097,1000]" in line]
    assert len(slots) == 2
    assert " copy(" not in text


def test_settings_of_checkpoints_are_checked() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        hloom.config.update("hloom_loop_checkpoints", -4)
