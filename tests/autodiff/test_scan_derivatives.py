"""Derivatives of scan and fori_loop: forward, reverse, to second order; which values the loops keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo import HloInstruction, Opcode
from hloom.tracer.control_flow.scan import Scan, fori_loop, scan
from hloom.tracer.core import Value
from hloom.tracer.ops import sum_all

from hloom import config, custom_jvp, custom_vjp, grad, jit, lax, make_hlo, vjp
from support.grad_check import check_derivatives, concrete

RNG = np.random.default_rng(0)
W = RNG.standard_normal((3, 3)) * 0.5
H = RNG.standard_normal((2, 3))
XS = RNG.standard_normal((4, 2, 3))


@pytest.fixture(autouse=True)
def _evaluator() -> Iterator[None]:
    before = config.hloom_backend, config.jax_enable_x64
    config.update("hloom_backend", "evaluator")
    config.update("jax_enable_x64", True)
    yield
    config.update("hloom_backend", before[0])
    config.update("jax_enable_x64", before[1])


def f64(value: Any) -> Value:
    return concrete(np.asarray(value, np.float64))


def recurrent(w: Any, h: Any, xs: Any, **options: Any) -> list[Value]:
    """A recurrent network: the last state, and a result from each step."""

    def step(h: Any, x: Any) -> Any:
        h = lax.tanh(lax.add(lax.dot(h, lax.sin(w)), x))
        return h, lax.mul(h, x)

    last, ys = scan(step, h, xs, **options)
    return [last, ys]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("how", ["eager", "jit"])
def test_recurrent_network(how: str, reverse: bool) -> None:
    def f(*values: Any) -> list[Value]:
        return recurrent(*values, reverse=reverse)

    function = jit(f) if how == "jit" else f
    check_derivatives(lambda v: function(*v), [W, H, XS])


def test_gradient_equals_that_of_the_loop_unrolled() -> None:
    def unrolled(w: Any, h: Any, xs: Any) -> list[Value]:
        ys = []
        for i in range(len(XS)):
            x = lax.reshape(lax.slice(xs, (i, 0, 0), (i + 1, 2, 3)), (2, 3))
            h = lax.tanh(lax.add(lax.dot(h, lax.sin(w)), x))
            ys.append(lax.expand_dims(lax.mul(h, x), [0]))
        return [h, lax.concatenate(ys, 0)]

    cotangents = [f64(RNG.standard_normal((2, 3))), f64(RNG.standard_normal((4, 2, 3)))]
    arguments = [f64(a) for a in (W, H, XS)]
    for a, b in zip(vjp(recurrent, *arguments)[1](cotangents), vjp(unrolled, *arguments)[1](cotangents), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_each_argument_alone() -> None:
    arrays = [W, H, XS]
    for k in range(3):

        def of_one(values: list[Any], k: int = k) -> list[Value]:
            full: list[Any] = [f64(a) for a in arrays]
            full[k] = values[0]
            return recurrent(*full)

        check_derivatives(of_one, [arrays[k]])


def test_carry_that_starts_still() -> None:
    """The sum starts as a constant; its tangent comes from the first iteration."""

    def f(xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            total, count, product = carry
            total = lax.add(total, lax.mul(x, x))
            return (total, lax.add(count, concrete(np.int32(1))), lax.mul(product, total)), count

        start = (f64([0, 0]), concrete(np.int32(0)), f64([1, 1]))
        (total, _, product), counts = scan(step, start, xs)
        return [total, product, counts]

    check_derivatives(lambda v: f(*v), [RNG.standard_normal((3, 2))])


def test_fori_loop_with_constant_bounds() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            return lax.mul(lax.sin(c), lax.dynamic_index_in_dim(x, i, 0, keepdims=False))

        return fori_loop(0, 4, body, f64([0.3, 0.4]))

    check_derivatives(lambda v: [f(v[0])], [RNG.standard_normal((4, 2))])
    gradient = grad(lambda x: sum_all(f(x)))
    np.testing.assert_allclose(jit(gradient)(f64(XS[:, 0, :2])), gradient(f64(XS[:, 0, :2])), rtol=1e-12)


def test_loops_of_length_zero_and_one() -> None:
    for length in (0, 1):
        check_derivatives(lambda v: recurrent(*v), [W, H, XS[:length]], order=1)


def test_nested_scans_and_jitted_bodies() -> None:
    @jit
    def inner(w: Any, x: Any) -> Any:
        return scan(lambda c, _: (lax.sin(lax.mul(c, w)), None), x, None, length=2)[0]

    def f(w: Any, xs: Any) -> Any:
        last, ys = scan(lambda c, x: (inner(w, lax.add(c, x)), c), w, xs)
        return [last, ys]

    check_derivatives(lambda v: f(*v), [W[0], XS[:3, 0]])


def test_custom_rules_within_scan() -> None:
    tripled = custom_jvp(lambda x: lax.sin(x))
    tripled.defjvp(lambda p, t: (tripled(*p), lax.mul(lax.mul(t[0], lax.cos(p[0])), lax.full_like(p[0], 3))))
    doubled = custom_vjp(lambda x: lax.sin(x))
    doubled.defvjp(lambda x: (lax.sin(x), x), lambda x, ct: (lax.mul(ct, lax.mul(lax.cos(x), lax.full_like(x, 2))),))
    for function, factor in ((tripled, 3), (doubled, 2)):
        f = grad(lambda x, f=function: scan(lambda c, _: (f(c), None), x, None, length=2)[0])
        expected = factor**2 * np.cos(0.5) * np.cos(np.sin(0.5))
        np.testing.assert_allclose(f(f64(0.5)), expected)
        np.testing.assert_allclose(jit(f)(f64(0.5)), expected)


def test_result_that_does_not_move() -> None:
    def f(x: Any) -> Any:
        last, _ = scan(lambda c, _: (lax.add(c, concrete(np.int32(1))), None), concrete(np.int32(0)), None, length=3)
        return sum_all(lax.mul(x, lax.broadcast(lax.convert_element_type(last, np.float64), (3,))))

    np.testing.assert_array_equal(grad(f)(f64(W[0])), [3, 3, 3])


# --- what the loops keep


def _scans(function: Any, *arrays: Any) -> list[HloInstruction]:
    module = make_hlo(function)(*[f64(a) for a in arrays])
    return [i for i in module.entry.instructions if i.opcode is Opcode.CALL and i.attributes.composite.name == "scan"]


def test_reverse_mode_is_one_loop_forwards_and_one_backwards() -> None:
    forward, backward = _scans(grad(lambda w, h, xs: sum_all(recurrent(w, h, xs)[0])), W, H, XS)
    rules = [i.attributes.composite.rule.params for i in (forward, backward)]
    assert all(isinstance(r, Scan) for r in rules)
    assert [r.reverse for r in rules] == [False, True]
    assert [r.length for r in rules] == [4, 4]


def test_what_all_iterations_share_is_not_stacked() -> None:
    """sin(w) and cos(w) are computed once, outside; stacked is the state, from which tanh's derivative follows."""
    module = make_hlo(grad(lambda w, h, xs: sum_all(recurrent(w, h, xs)[0])))(f64(W), f64(H), f64(XS))
    opcodes = [i.opcode for i in module.entry.instructions]
    assert opcodes.count(Opcode.COS) == 1
    forward = next(i for i in module.entry.instructions if i.opcode is Opcode.CALL)
    stacked = [s for s in forward.shape.elements if s.rank == 3]
    assert len(stacked) == 1 + 1  # the result ys, and the state


def test_derived_loops_are_made_once() -> None:
    def step(h: Any, x: Any) -> Any:
        return lax.tanh(lax.mul(h, x)), h

    def f(h: Any, xs: Any) -> Value:
        return sum_all(scan(step, h, xs)[1])

    first, second = (_scans(lambda *v: list(grad(f, argnums=(0, 1))(*v)), H, XS) for _ in range(2))
    assert [i.attributes.composite.rule for i in first] == [i.attributes.composite.rule for i in second]
