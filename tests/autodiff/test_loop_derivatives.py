"""Gradients of loops: what they keep for each iteration, how many loops they are, and that they are right.

A program is written once, and run with hloom's loops, with the same loops unrolled in Python, and with JAX's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hloom.autodiff.residuals import plain, repeatable, values_to_keep
from hloom.hlo import HloComputation, HloInstruction, HloModule, Opcode, optimize
from hloom.hlo.passes.simplify.loops import unchanged_elements
from hloom.tracer.control_flow.scan import Scan
from hloom.tracer.recording import trace_to_computation

import hloom.numpy as jnp
from hloom import clear_caches, config, grad, hessian, jit, jvp, lax, make_hlo

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _evaluator() -> Iterator[None]:
    before = config.hloom_backend, config.jax_enable_x64
    config.update("hloom_backend", "evaluator")
    config.update("jax_enable_x64", True)
    yield
    config.update("hloom_backend", before[0])
    config.update("jax_enable_x64", before[1])


def _python_scan(f: Any, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False) -> Any:
    """scan, unrolled."""
    leaves = xs if isinstance(xs, tuple) else () if xs is None else (xs,)
    count = length if not leaves else leaves[0].shape[0]
    assert count is not None
    carry, rows = init, []
    for i in range(count)[:: -1 if reverse else 1]:
        row = tuple(x[i] for x in leaves)
        carry, y = f(carry, row if isinstance(xs, tuple) else row[0] if row else None)
        rows.append(y)
    ordered = rows[::-1] if reverse else rows
    if ordered[0] is None:
        return carry, None
    if isinstance(ordered[0], tuple):
        return carry, tuple(jnp.stack([r[k] for r in ordered]) for k in range(len(ordered[0])))
    return carry, jnp.stack(ordered)


def _python_fori(start: int, stop: int, f: Any, init: Any) -> Any:
    for i in range(start, stop):
        init = f(i, init)
    return init


LOOPS = SimpleNamespace(np=jnp, scan=lax.scan, fori=lax.fori_loop, cond=lax.cond)
UNROLLED = SimpleNamespace(np=jnp, scan=_python_scan, fori=_python_fori, cond=lax.cond)


def lorenz(s: Any, p: Any, n: Any) -> Any:
    def step(s: Any, _: Any) -> Any:
        x, y, z = s[0], s[1], s[2]
        d = n.np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])
        return s + 0.01 * d, None

    return n.np.sum(n.scan(step, s, None, length=6)[0] ** 2)


def leapfrog(q: Any, p: Any, n: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        q, p = c
        p = p - 0.05 * n.np.sin(q)
        q = q + 0.1 * p
        return (q, p - 0.05 * n.np.sin(q)), q

    (_, p), qs = n.scan(step, (q, p), None, length=5)
    return n.np.sum(qs * qs) + n.np.sum(p)


def rnn(w: Any, h: Any, xs: Any, n: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = n.np.tanh(w @ h + x)
        return h, h

    return n.np.sum(n.scan(step, h, xs)[1] ** 2)


def rnn_last(w: Any, h: Any, xs: Any, n: Any) -> Any:
    return n.np.sum(n.scan(lambda h, x: (n.np.tanh(w @ h + x), None), h, xs)[0] ** 2)


def rnn_reverse(w: Any, h: Any, xs: Any, n: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = n.np.tanh(w @ h + x)
        return h, h

    last, hs = n.scan(step, h, xs, reverse=True)
    return n.np.sum(hs * xs) + n.np.sum(last)


def gates(w: Any, h: Any, xs: Any, n: Any) -> Any:
    def step(s: Any, x: Any) -> Any:
        h, c = s
        z = w @ h + x
        forget = 1 / (1 + n.np.exp(-z))
        c = forget * c + (1 - forget) * n.np.tanh(z)
        return (n.np.tanh(c), c), None

    (h, c), _ = n.scan(step, (h, h), xs)
    return n.np.sum(h * c)


def wide(w: Any, u: Any, b: Any, h: Any, xs: Any, n: Any) -> Any:
    """Matrices that are large beside the state, one used twice."""

    def step(h: Any, x: Any) -> Any:
        h = n.np.tanh(h @ w + x @ u + b)
        return h + 0.1 * n.np.sin(w @ h.T).T, None

    return n.np.sum(n.scan(step, h, xs)[0] ** 2)


def rk4(y: Any, m: Any, n: Any) -> Any:
    def slope(y: Any) -> Any:
        return n.np.tanh(m @ y) - 0.5 * y

    def step(y: Any, _: Any) -> Any:
        a = slope(y)
        b = slope(y + 0.05 * a)
        c = slope(y + 0.05 * b)
        return y + 0.1 / 6 * (a + 2 * b + 2 * c + slope(y + 0.1 * c)), None

    return n.np.sum(n.scan(step, y, None, length=4)[0] ** 2)


def recurrence(a: Any, b: Any, x: Any, us: Any, n: Any) -> Any:
    """Linear in the carry."""

    def step(x: Any, u: Any) -> Any:
        x = a @ x + b * u
        return x, x

    return n.np.sum(n.scan(step, x, us)[1] ** 2)


def averages(rate: Any, xs: Any, n: Any) -> Any:
    def step(s: Any, x: Any) -> Any:
        s = (1 - rate) * s + rate * x
        return s, s

    return n.np.sum((n.scan(step, 0.0 * rate, xs)[1] - xs) ** 2)


def logistic(r: Any, x: Any, n: Any) -> Any:
    return n.scan(lambda x, _: (r * x * (1 - x), None), x, None, length=6)[0]


def powers(x: Any, n: Any) -> Any:
    """The counter is the index of the loop."""
    return n.np.sum(n.fori(2, 6, lambda i, c: n.np.sin(c * i) + x * x * i, x))


def elements(w: Any, n: Any) -> Any:
    return n.fori(1, 5, lambda i, c: n.np.sin(c + w[i] * w[i - 1]), w[0])


def in_place(a: Any, n: Any) -> Any:
    def step(j: Any, a: Any) -> Any:
        return a.at[:, j].set(n.np.sin(a[:, j - 1]) * 0.5 + a[:, j - 2] * a[:, j])

    return n.np.sum(n.fori(2, 5, step, a) ** 2)


def own_counter(x: Any, w: Any, n: Any) -> Any:
    """Integers in the carry: one that counts down by 2, one that does not change, one that is multiplied."""

    def step(s: Any, _: Any) -> Any:
        i, k, m, c = s
        return (i - 2, k, m * 2 + 1, n.np.sin(c * w[i] + k) * m), i

    start = (n.np.int32(8), n.np.int32(3), n.np.int32(1), x)
    (_, _, m, c), seen = n.scan(step, start, None, length=4)
    return n.np.sum(c) + n.np.sum(seen) * n.np.sum(x) + m


def masks(x: Any, w: Any, ts: Any, n: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        c = n.np.where(t > 0, n.np.maximum(c * w, 0.5 * c), c * 0.9 + 0.1 * w)
        return n.np.clip(c, -1.0, 1.0), None

    return n.np.sum(n.scan(step, x, ts)[0] ** 2)


def branches(x: Any, w: Any, ts: Any, n: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        return n.cond(t > 0, lambda c: n.np.sin(c * w), lambda c: c * c * 0.5, c), None

    return n.np.sum(n.scan(step, x, ts)[0])


def nested(x: Any, ws: Any, n: Any) -> Any:
    def outer(c: Any, w: Any) -> Any:
        d, _ = n.scan(lambda d, _: (n.np.sin(d * w) + 0.1 * c, None), c, None, length=3)
        return d, d

    last, ds = n.scan(outer, x, ws)
    return n.np.sum(last) + n.np.sum(ds * ws)


def delayed(x: Any, us: Any, n: Any) -> Any:
    """A value is part of the carry for two iterations."""

    def step(c: Any, u: Any) -> Any:
        now, before = c
        return (n.np.sin(now) * before + u, now), now * before

    (a, b), ys = n.scan(step, (x, x + 1), us)
    return n.np.sum(a * b) + n.np.sum(ys)


def unused(x: Any, us: Any, n: Any) -> Any:
    """Two of three parts of the carry, and one of two results, do not affect the value."""

    def step(c: Any, u: Any) -> Any:
        a, b, s = c
        return (n.np.sin(a * u), n.np.exp(b) * a, s + n.np.cos(b)), (a * a, n.np.tanh(b))

    (a, _, _), (ys, _) = n.scan(step, (x, x, x), us)
    return n.np.sum(a) + n.np.sum(ys)


@dataclass(frozen=True)
class Case:
    """`stacked`: the bytes that the forward loop writes in an iteration at most, results included, in double precision.
    `loops`: while loops after all passes."""

    program: Callable[..., Any]
    arguments: tuple[Any, ...]
    moving: tuple[int, ...]
    stacked: int
    loops: int = 2

    @property
    def name(self) -> str:
        return f"{self.program.__name__}-{''.join(map(str, self.moving))}"


V3, V3B, M3, US = RNG.uniform(-1, 1, 3), RNG.uniform(-1, 1, 3), RNG.uniform(-1, 1, (3, 3)), RNG.uniform(-1, 1, 5)
X53 = RNG.uniform(-1, 1, (5, 3))
W20, U20 = RNG.uniform(-0.3, 0.3, (20, 20)), RNG.uniform(-1, 1, (30, 20))
H20, X30 = RNG.uniform(-1, 1, (2, 20)), RNG.uniform(-1, 1, (4, 2, 30))
CASES = [
    Case(lorenz, (V3, np.array([10.0, 28.0, 8 / 3])), (0, 1), 24),  # the state
    Case(lorenz, (V3, np.array([10.0, 28.0, 8 / 3])), (0,), 24),
    Case(leapfrog, (V3, V3B), (0, 1), 24 + 48),  # ys; two cosines
    Case(rnn, (M3, V3, X53), (0, 1, 2), 24),  # ys alone: they are the state after each iteration
    Case(rnn_last, (M3, V3, X53), (0, 1, 2), 24),  # the state, before or after
    Case(rnn_last, (M3, V3, X53), (1,), 24),
    Case(rnn_reverse, (M3, V3, X53), (0, 1), 24),
    Case(gates, (M3, V3, X53), (0, 1), 24 + 24 + 24 + 24 + 24),  # h = tanh(c), c, exp, tanh
    Case(wide, (W20, U20, W20[0], H20, X30), (0, 1, 2, 3, 4), 4 * 320),
    Case(wide, (W20, U20, W20[0], H20, X30), (0, 1), 4 * 320),
    Case(rk4, (V3, M3), (0, 1), 5 * 24),  # the state and four tanh
    Case(recurrence, (M3, V3, V3B, US), (0, 1, 2, 3), 24),
    Case(recurrence, (M3, V3, V3B, US), (3,), 24),
    Case(averages, (np.float64(0.3), US), (0,), 8),
    Case(averages, (np.float64(0.3), US), (1,), 8),
    Case(logistic, (np.float64(3.7), np.float64(0.4)), (0, 1), 8),
    Case(powers, (V3,), (0,), 48),
    Case(elements, (US,), (0,), 8),
    Case(in_place, (M3[:, :1] * RNG.uniform(0.5, 1, (3, 6)),), (0,), 72),
    Case(own_counter, (V3, RNG.uniform(-1, 1, 9)), (0, 1), 24 + 24 + 4 + 4),  # c, cos, m; the result i
    Case(masks, (V3, V3B, US), (0, 1), 24 + 4 * 24),
    Case(branches, (V3, V3B, US), (0, 1), 48),
    Case(nested, (np.float64(0.3), US), (0, 1), 8 + 3 * 8 + 3 * 8, 4),
    Case(delayed, (np.float64(0.3), US), (0, 1), 8 + 8 + 8 + 8),
    Case(unused, (np.float64(0.3), US), (0, 1), 6 * 8),  # passes remove dead instructions
]
cases = pytest.mark.parametrize("case", CASES, ids=operator.attrgetter("name"))


def _loss(case: Case, loops: Any) -> Callable[..., Any]:
    return lambda *arguments: case.program(*arguments, loops)


def _gradient(case: Case, loops: Any) -> list[Any]:
    return [np.asarray(g) for g in grad(_loss(case, loops), case.moving)(*map(jnp.asarray, case.arguments))]


def _close(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * max(1.0, np.max(np.abs(b), initial=0.0)))


@cases
def test_gradient_is_that_of_the_loop_unrolled(case: Case) -> None:
    _close(_gradient(case, LOOPS), _gradient(case, UNROLLED))


@pytest.mark.one_in(3)
@cases
def test_second_derivatives_are_those_of_the_loop_unrolled(case: Case) -> None:
    """Reverse over reverse, and forward over reverse."""
    arguments = [jnp.asarray(a) for a in case.arguments]
    directions = [jnp.asarray(RNG.uniform(-1, 1, np.shape(case.arguments[k]))) for k in case.moving]

    def products(loops: Any) -> Any:
        gradient = grad(_loss(case, loops), case.moving)

        def along(*moving: Any) -> Any:
            filled = list(arguments)
            for k, value in zip(case.moving, moving, strict=True):
                filled[k] = value
            return gradient(*filled)

        def weighed(*moving: Any) -> Any:
            return sum(jnp.sum(g * d) for g, d in zip(along(*moving), directions, strict=True))

        moving = [arguments[k] for k in case.moving]
        forward = jit(lambda *m: jvp(along, m, tuple(directions))[1])(*moving)
        backward = jit(grad(weighed, tuple(range(len(moving)))))(*moving)
        return [np.asarray(a) for a in forward], [np.asarray(a) for a in backward]

    (forward, backward), (forward_unrolled, backward_unrolled) = products(LOOPS), products(UNROLLED)
    _close(forward, forward_unrolled)
    _close(backward, backward_unrolled)
    _close(forward, backward)  # a Hessian is symmetric


@cases
def test_gradient_is_the_slope(case: Case) -> None:
    arguments = [np.asarray(a) for a in case.arguments]
    slope = 0.0
    along = 0.0
    for k, g in zip(case.moving, _gradient(case, LOOPS), strict=True):
        direction = RNG.uniform(-1, 1, arguments[k].shape)
        ends = []
        for sign in (1, -1):
            moved = list(arguments)
            moved[k] = arguments[k] + sign * 1e-6 * direction
            ends.append(float(_loss(case, LOOPS)(*map(jnp.asarray, moved))))
        slope += (ends[0] - ends[1]) / 2e-6
        along += float(np.sum(g * direction))
    np.testing.assert_allclose(along, slope, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@cases
def test_gradient_is_jaxs(case: Case) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    try:
        loops = SimpleNamespace(np=jax.numpy, scan=jax.lax.scan, fori=jax.lax.fori_loop, cond=jax.lax.cond)
        expected = jax.grad(_loss(case, loops), case.moving)(*map(jax.numpy.asarray, case.arguments))
        _close(_gradient(case, LOOPS), [np.asarray(g) for g in expected])
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.slow
@cases
def test_compiled_gradient_is_right(case: Case) -> None:
    """With the default backend, in single precision."""
    expected = _gradient(case, LOOPS)
    config.update("hloom_backend", "numba")
    config.update("jax_enable_x64", False)
    found = jit(grad(_loss(case, LOOPS), case.moving))(*[np.asarray(a, np.float32) for a in case.arguments])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * max(1.0, np.max(np.abs(b))))


# --- what the loops keep


def _module(case: Case) -> HloModule:
    return make_hlo(jit(grad(_loss(case, LOOPS), case.moving)))(*map(jnp.asarray, case.arguments))


def _scans(module: HloModule) -> list[Scan]:
    found: list[Scan] = []

    def look(computation: HloComputation) -> None:
        for i in computation.instructions:
            if i.opcode is Opcode.CALL:
                composite = i.attributes.composite
                if composite is not None and composite.name == "scan":
                    found.append(composite.rule.params)
                else:
                    look(i.attributes.to_apply)

    look(module.entry)
    return found


def _bytes_stacked(rule: Scan) -> int:
    shapes = rule.body.root.shape.elements[rule.num_carry :]
    return sum(s.element.dtype.itemsize * int(np.prod(s.dimensions)) for s in shapes)


def _whiles(module: HloModule) -> list[HloInstruction]:
    """The loops that are left after all passes of the default backend."""
    optimized, _ = optimize(module, backend="numba")
    return [i for c in optimized.computations for i in c.instructions if i.opcode is Opcode.WHILE]


@cases
def test_what_is_kept(case: Case) -> None:
    module = _module(case)
    forward = _scans(module)[0]
    assert _bytes_stacked(forward) <= case.stacked
    assert len(_whiles(module)) == case.loops


def test_a_linear_loop_needs_no_loop_forwards() -> None:
    """The derivative by what enters linearly needs nothing of the loop but its matrix."""

    def f(us: Any, a: Any, x: Any) -> Any:
        return jnp.sum(lax.scan(lambda x, u: (a @ x + u, None), x, us)[0])

    module = make_hlo(jit(grad(f, (0, 2))))(US, M3, V3)
    (backward,) = _scans(module)
    assert backward.reverse
    assert len(_whiles(module)) == 1


def test_cotangents_that_stay_zero_are_not_carried() -> None:
    """Of `unused`, the loop backwards carries one cotangent of three; the other loop loses its dead elements."""
    case = next(c for c in CASES if c.program is unused)
    forward, backward = _scans(_module(case))
    assert (forward.num_carry, backward.num_carry) == (3, 1)
    for loop in _whiles(_module(case)):
        changing = [s for k, s in enumerate(loop.shape.elements) if k not in unchanged_elements(loop)]
        assert sum(s.rank == 0 for s in changing) == 2  # the counter and one scalar


def test_the_counter_of_a_loop_is_carried_once() -> None:
    case = next(c for c in CASES if c.program is powers)
    for rule in _scans(_module(case)):
        assert all(p.shape.element.is_inexact for p in rule.body.parameters[: rule.num_consts + rule.num_carry])
    for loop in _whiles(_module(case)):
        assert sum(not s.element.is_inexact for s in loop.shape.elements) == 1


def test_reading_an_element_adds_to_that_element() -> None:
    """The loop backwards updates the sum of cotangents in one place; it adds no array of zeros."""
    case = next(c for c in CASES if c.program is elements)
    backward = _scans(_module(case))[1]
    adds = [i for i in backward.body.instructions if i.opcode is Opcode.ADD and i.shape.rank == 1]
    assert all(i.shape.dimensions == (1,) for i in adds)
    large = [i for i in backward.body.instructions if i.opcode is Opcode.BROADCAST and i.shape.dimensions == US.shape]
    assert not large


def test_outer_products_are_summed_after_the_loop() -> None:
    """The loop backwards carries the cotangents of state and bias; those for matrices are dots of stacked factors."""
    case = next(c for c in CASES if c.program is wide)
    module = _module(case)
    _, backward = _scans(module)
    assert [tuple(s.dimensions) for s in backward.body.root.shape.elements[: backward.num_carry]] == [(2, 20), (20,)]
    assert _bytes_stacked(backward) == 8 * 2 * (30 + 3 * 20)  # of xs; factors that no array has yet
    small = next(c for c in CASES if c.program is rnn)
    carried = _scans(_module(small))[1]
    assert (3, 3) in [s.dimensions for s in carried.body.root.shape.elements[: carried.num_carry]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308])
def test_special_values(value: float) -> None:
    """A value that is computed again is the value that was: also where it is no number."""
    for case in CASES:
        if case.program not in (lorenz, rnn, gates, masks, logistic, delayed):
            continue
        first = np.array(case.arguments[0], np.float64)
        first.flat[0] = value
        changed = Case(case.program, (first, *case.arguments[1:]), case.moving, 0)
        with np.errstate(all="ignore"):
            for a, b in zip(_gradient(changed, LOOPS), _gradient(changed, UNROLLED), strict=True):
                np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b), str(case.program))
                np.testing.assert_allclose(a[np.isfinite(a)], b[np.isfinite(a)], rtol=1e-9)


def test_hessian_through_a_loop() -> None:
    case = next(c for c in CASES if c.program is rk4)
    found, expected = (
        hessian(lambda y, n=loops: rk4(y, jnp.asarray(M3), n))(jnp.asarray(V3)) for loops in (LOOPS, UNROLLED)
    )
    assert case.name
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


# --- the choice


def _computation(function: Callable[..., Any], *arguments: Any) -> HloComputation:
    avals = [jnp.asarray(a).aval for a in arguments]
    return trace_to_computation(lambda values: list(function(*values)), avals).computation


def test_steps_of_rounded_values_are_not_repeated() -> None:
    """x * y + x may be rounded once or twice, so its comparison must be kept; a comparison of x + y may be repeated."""

    def f(x: Any, y: Any) -> Any:
        return x * y + x > y, x + y > y, jnp.floor(x * y - y), jnp.maximum(x * y + x, y)

    body = _computation(f, V3, V3B)
    again = repeatable(body, lambda v: False)
    assert [v in again for v in body.root.operands] == [False, True, False, True]
    total = next(i for i in body.instructions if i.opcode is Opcode.ADD)
    assert body.root.operands[0] in repeatable(body, lambda v: v is total)


def test_cheapest_values_are_kept() -> None:
    def f(x: Any, y: Any) -> Any:
        both = jnp.exp(x) * y
        return jnp.stack([both, both + 1]), both * 3

    body = _computation(f, V3, V3B)
    exp = next(i for i in body.instructions if i.opcode is Opcode.EXP)
    x, y = body.parameters
    again = repeatable(body, lambda v: False)
    costs = {x: 5.0, y: 0.0, exp: 5.0}

    def cost_again(value: Any) -> float:
        return 0.5 if value in again else float("inf")

    kept = values_to_keep(body.root.operands, lambda v: costs.get(v, 20.0), cost_again)
    assert kept - {i for i in body.instructions if i.opcode in (Opcode.CONSTANT, Opcode.BROADCAST)} == {exp, y}
    kept = values_to_keep(body.root.operands, lambda v: 0.1 if v in body.root.operands else 20.0, cost_again)
    assert kept == set(body.root.operands)


def test_a_gradient_has_one_text() -> None:
    """The residuals do not depend on the addresses of Python's objects: the store finds kernels by their text."""

    def loss(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            q, p = c
            a = -q / (q @ q + 0.1) ** 1.5
            p = p + 0.1 * a
            q = q + jnp.tanh(p) * jnp.sin(q)
            return (q, p - 0.1 * q / (q @ q + 1) ** 1.5), jnp.cos(q @ p)

        (q, p), ys = lax.scan(step, (x, x + 1), None, length=5)
        return (q * p).sum() + ys.sum()

    texts, kept = set(), []
    for k in range(12):
        kept.append([object() for _ in range(97 * k)])
        texts.add(jit(lambda x: grad(loss)(x)).lower(jnp.ones(3)).as_text())
        clear_caches()
    assert len(texts) == 1


def test_equal_values_and_nested_jits_are_seen_through() -> None:
    @jit
    def inner(x: Any) -> Any:
        return jnp.exp(x) + 1

    body = plain(_computation(lambda x: (inner(x), jnp.exp(x), inner(x) * 2), V3))
    assert [i.opcode for i in body.instructions].count(Opcode.EXP) == 1
    assert all(i.opcode is not Opcode.CALL for i in body.instructions)


# --- random bodies


def _random_program(seed: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A loop over a random body: vectors and counters that are handed on, delayed, counted, masked and mixed."""
    rng = np.random.default_rng(seed)
    parts, width, count = int(rng.integers(1, 5)), 3, int(rng.integers(1, 5))
    counter = int(rng.integers(0, 3))
    steps = [(str(rng.choice(list("+-*/smwxeacfi"))), *rng.integers(0, 1 << 30, 3)) for _ in range(rng.integers(1, 14))]
    handed_on = rng.integers(0, 1 << 30, parts)
    results = rng.integers(0, 1 << 30, int(rng.integers(0, 4)))
    used = rng.integers(0, 2, parts + len(results))
    used[int(rng.integers(0, len(used)))] = 1
    reverse, is_counted = bool(rng.integers(0, 2)), not rng.integers(0, 3)

    def body(values: list[Any], i: Any, w: Any, n: Any) -> list[Any]:
        """`values`, and a new one for each step."""
        np_ = n.np
        for kind, a, b, c in steps:
            x, y, z = (values[k % len(values)] for k in (a, b, c))
            match kind:
                case "+":
                    new = x + 0.5 * y
                case "-":
                    new = y - x
                case "*":
                    new = 0.5 * x * y
                case "/":
                    new = x / (2 + y * y)
                case "s":
                    new = np_.sin(x)
                case "m":
                    new = np_.maximum(x, 0.7 * y)
                case "w":
                    new = w @ x
                case "x":
                    new = np_.where(x * y > z, x, 0.3 * z)
                case "e":
                    new = np_.exp(-x * x)
                case "a":
                    new = np_.stack([x[2], y[0], z[1] * x[0]])
                case "c":
                    new = np_.clip(x, -0.5, 0.5) + np_.floor(y)
                case "f":
                    new = x.at[i].set(y[2] * 0.5)
                case _:
                    new = w[i] * x[0]
            values = [*values, new]
        return values

    def run(w: Any, start: Any, xs: Any, n: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            i, own = carry
            at = n.np.clip(i, 0, width - 1)
            values = body([*own, *(() if x is None else (x,)), w[0]], at, w, n)
            new = tuple(values[-1 - k % len(values)] for k in handed_on)
            ys = tuple(values[k % len(values)] for k in results)
            return ((i + 1, i * 2, i)[counter], new), ys

        first = tuple(start * (k + 1) for k in range(parts))
        if is_counted:
            own = n.fori(0, count, lambda i, own: step((i, own), None)[0][1], first)
            ys: Any = ()
        else:
            (_, own), ys = n.scan(step, (n.np.int32(1), first), xs[:count], reverse=reverse)
        found = [v for v, u in zip([*own, *ys], used, strict=False) if u]
        return sum((n.np.sum(v * v) for v in found), 0.0 * n.np.sum(start))

    return run, (RNG.uniform(-0.6, 0.6, (3, 3)), RNG.uniform(-1, 1, 3), RNG.uniform(-1, 1, (5, 3)))


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_bodies(first: int) -> None:
    """Gradients, and one product with the Hessian, agree with the unrolled loop's."""
    for seed in range(first * 1000, first * 1000 + (300 if first else 25)):
        program, arguments = _random_program(seed)
        values = [jnp.asarray(a) for a in arguments]
        directions = tuple(jnp.asarray(RNG.uniform(-1, 1, a.shape)) for a in arguments)

        def derivatives(loops: Any, program: Any = program, values: Any = values, ds: Any = directions) -> list[Any]:
            gradient = grad(lambda *v: program(*v, loops), (0, 1, 2))
            return [np.asarray(a) for pair in jvp(gradient, tuple(values), ds) for a in pair]

        for a, b in zip(derivatives(LOOPS), derivatives(UNROLLED), strict=True):
            scale = max(1.0, float(np.max(np.abs(b))))
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * scale, err_msg=f"seed {seed}")
