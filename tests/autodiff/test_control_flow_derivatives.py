"""Derivatives through nested jit, while and conditional: forward, reverse, to second order, traced and eager.

The ops are bound directly, with the operands and computations of the table of op cases. Programs run on the evaluator:
these tests are about programs, not about kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hloom.autodiff.linearize import linearize_computation
from hloom.autodiff.rules.while_loop import _cache
from hloom.hlo import HloComputation, Opcode
from hloom.tracer.core import Value, bind_conditional, bind_while
from hloom.tracer.ops import sum_all
from hloom.tracer.recording import takes_one_tuple, trace_to_computation

import hloom
import hloom.numpy as jnp
from hloom import config, grad, jit, jvp, lax, linearize, make_hlo, value_and_grad
from support.grad_check import check_derivatives, concrete

X = np.array([0.3, 0.7, 1.1])
Y = np.array([1.5, -0.4, 0.8])


@pytest.fixture(autouse=True)
def _evaluator() -> Iterator[None]:
    before = config.hloom_backend
    config.update("hloom_backend", "evaluator")
    yield
    config.update("hloom_backend", before)


def f64(value: Any) -> Value:
    return concrete(np.asarray(value, np.float64))


Body = Callable[[list[Value]], Sequence[Value]]


def branch(body: Body, operands: Sequence[Value]) -> HloComputation:
    traced = trace_to_computation(body, [v.aval for v in operands], "branch")
    assert not traced.captured
    return takes_one_tuple(traced.computation)


def switch(index: Value, branches: Sequence[Body], *operands: Value) -> list[Value]:
    return bind_conditional([branch(b, operands) for b in branches], index, operands)


def repeat(times: int, body: Body, *state: Value) -> list[Value]:
    """`body` on `state`, `times` times, as a while loop."""
    full = [concrete(np.int32(0)), *state]
    condition = trace_to_computation(lambda s: [lax.lt(s[0], concrete(np.int32(times)))], [v.aval for v in full])
    whole = takes_one_tuple(condition.computation)
    test = HloComputation("condition", whole.instructions[:-1], whole.root.operands[0])
    step = branch(lambda s: [lax.add(s[0], concrete(np.int32(1))), *body(s[1:])], full)
    return bind_while(test, step, full)[1:]


# --- nested jit


def test_nested_jit_to_second_order() -> None:
    inner = jit(lambda x, y: (lax.sin(lax.mul(x, y)), x, lax.floor(y)))

    @jit
    def outer(x: Any, y: Any) -> Any:
        first, second, third = inner(x, y)
        return lax.mul(first, lax.add(second, third)), inner(y, y)[1]

    check_derivatives(lambda xs: outer(*xs), [X, Y])


def test_gradients_compose_with_jit_in_any_order() -> None:
    def f(x: Any) -> Value:
        return sum_all(lax.mul(lax.sin(x), x))

    def second(gradient: Any) -> Any:
        return lambda x: sum_all(lax.mul(gradient(x), f64(Y)))

    expected = (2 * np.cos(X) - X * np.sin(X)) * Y
    for inner in (grad(f), jit(grad(f)), grad(jit(f)), jit(grad(jit(f)))):
        np.testing.assert_allclose(inner(f64(X)), np.sin(X) + X * np.cos(X), rtol=1e-12)
        for outer in (grad(second(inner)), jit(grad(second(inner))), grad(jit(second(inner)))):
            np.testing.assert_allclose(outer(f64(X)), expected, rtol=1e-12)


def test_derived_programs_are_made_once() -> None:
    f = jit(lambda x, y: sum_all(lax.mul(lax.sin(x), y)))
    f(f64(X), f64(Y))
    (traced,) = f._programs.traced.values()
    moving = (True, False)
    parts = linearize_computation(traced.computation, moving)
    grad(f)(f64(X), f64(Y))
    assert linearize_computation(traced.computation, moving) is parts
    # sin x is needed by no tangent of x; cos x is the one residual that is not an argument.
    assert [r.place for r in parts.residuals] == ["result", "input"]
    opcodes = [i.opcode for i in parts.linear.instructions]
    assert Opcode.COS not in opcodes and Opcode.SIN not in opcodes


def test_constants_are_made_again_not_kept() -> None:
    f = jit(lambda x: lax.mul(x, lax.full_like(x, 3)))
    f(f64(X))
    (traced,) = f._programs.traced.values()
    assert linearize_computation(traced.computation, (True,)).residuals == ()


def test_nested_jit_stays_a_call() -> None:
    inner = jit(lambda x: lax.sin(lax.sin(x)))
    module = make_hlo(grad(lambda x: sum_all(inner(x))))(f64(X))
    calls = [i for i in module.entry.instructions if i.opcode is Opcode.CALL]
    assert len(calls) == 2
    assert not any(i.opcode is Opcode.SIN for i in module.entry.instructions)


def test_jit_that_captures_an_outer_value() -> None:
    def outer(x: Any) -> Value:
        return sum_all(jit(lambda y: lax.mul(x, lax.mul(y, y)))(f64(Y)))

    np.testing.assert_allclose(grad(outer)(f64(X)), Y * Y)
    check_derivatives(lambda xs: [jit(lambda y: lax.mul(xs[0], lax.mul(y, xs[0])))(xs[1])], [X, Y])


def test_result_that_does_not_move_and_argument_that_is_a_result() -> None:
    f = jit(lambda x, y: (x, lax.exp(y), lax.mul(x, y)))
    (_, value), gradient = value_and_grad(lambda x: (sum_all(f(x, f64(Y))[2]), f(x, f64(Y))[1]), has_aux=True)(f64(X))
    np.testing.assert_allclose(value, np.exp(Y))
    np.testing.assert_allclose(gradient, Y)
    np.testing.assert_allclose(grad(lambda x: sum_all(f(x, f64(Y))[0]))(f64(X)), np.ones(3))


# --- conditional

BRANCHES: list[Body] = [
    lambda v: [lax.sin(v[0]), v[1]],
    lambda v: [lax.mul(lax.exp(v[0]), lax.tanh(v[1])), v[1]],
    lambda v: [lax.full_like(v[0], 1), lax.mul(v[0], lax.cos(v[1]))],
]


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("how", ["eager", "jit"])
def test_conditional(index: int, how: str) -> None:
    def f(x: Any, y: Any) -> list[Value]:
        return switch(concrete(np.int32(index)), BRANCHES, x, y)

    function = jit(f) if how == "jit" else f
    check_derivatives(lambda xs: function(*xs), [X, Y])


@pytest.mark.parametrize("taken", [True, False])
def test_conditional_by_a_predicate_that_is_computed(taken: bool) -> None:
    sign = 1 if taken else -1

    @jit
    def f(x: Any, y: Any) -> Any:
        positive = lax.gt(sum_all(x), f64(0))
        return switch(positive, BRANCHES[:2], x, y)

    check_derivatives(lambda xs: f(*xs), [sign * X, Y])


def test_conditional_without_a_moving_result() -> None:
    def f(x: Any, y: Any) -> Value:
        return sum_all(switch(concrete(np.bool_(True)), [lambda v: [v[1]], lambda v: [lax.neg(v[1])]], x, y)[0])

    np.testing.assert_array_equal(grad(f)(f64(X), f64(Y)), np.zeros(3))
    opcodes = [i.opcode for i in make_hlo(grad(f))(f64(X), f64(Y)).entry.instructions]
    assert opcodes.count(Opcode.CONDITIONAL) <= 1


def test_branches_share_slots_for_residuals() -> None:
    def f(x: Any) -> Value:
        cases: list[Body] = [lambda v: [lax.sin(v[0])], lambda v: [lax.exp(lax.sin(v[0]))]]
        return sum_all(switch(concrete(np.bool_(True)), cases, x)[0])

    module = make_hlo(grad(f))(f64(X))
    first = next(i for i in module.entry.instructions if i.opcode is Opcode.CONDITIONAL)
    # the result; then cos x, and exp(sin x): the second branch needs two, the first one of these
    assert len(first.shape.elements) <= 3


# --- while


def newton(x: Any, y: Any) -> list[Value]:
    """Three steps in which the second part of the state starts without a tangent and gets one."""

    def body(state: list[Value]) -> list[Value]:
        a, b, c = state
        return [lax.sin(lax.add(a, c)), lax.mul(a, b), c]

    return repeat(3, body, x, lax.full_like(x, 1), y)


def test_while() -> None:
    check_derivatives(lambda xs: newton(*xs), [X, Y])
    jitted = jit(newton)
    check_derivatives(lambda xs: jitted(*xs), [X, Y])
    check_derivatives(lambda xs: newton(xs[0], f64(Y)), [X])


def test_while_linearised() -> None:
    _, push = linearize(lambda x: newton(x, f64(Y))[1], f64(X))
    expected = jvp(lambda x: newton(x, f64(Y))[1], (f64(X),), (f64(Y),))[1]
    np.testing.assert_allclose(push(f64(Y)), expected)


def test_while_over_no_elements_in_reverse_mode() -> None:
    """Nothing moves that has no elements, so no state is kept."""

    def total(x: Any) -> Any:
        return jnp.sum(lax.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + 1.0, s[1] * 2.0), (0.0, x))[1])

    for wrap in (lambda f: f, jit):
        assert wrap(hloom.grad(total))(jnp.zeros((2, 0))).shape == (2, 0)


def test_while_that_does_not_move_is_no_obstacle_to_reverse_mode() -> None:
    def f(x: Any) -> Value:
        (n,) = repeat(3, lambda s: [lax.mul(s[0], f64(2))], f64(1))
        stopped = repeat(2, lambda s: [lax.sin(s[0])], lax.stop_gradient(x))[0]
        return sum_all(lax.mul(lax.mul(x, stopped), lax.broadcast(n, (3,))))

    np.testing.assert_allclose(grad(f)(f64(X)), 8 * np.sin(np.sin(X)))
    np.testing.assert_allclose(jit(grad(f))(f64(X)), 8 * np.sin(np.sin(X)))


def test_while_that_captures_nothing_is_compiled_once() -> None:
    """The loop with tangents is kept, so that its executable is found again."""
    state = [concrete(np.int32(0)), f64(X)]
    condition = takes_one_tuple(
        trace_to_computation(lambda s: [lax.lt(s[0], concrete(np.int32(2)))], [v.aval for v in state]).computation
    )
    test = HloComputation("condition", condition.instructions[:-1], condition.root.operands[0])
    step = branch(lambda s: [lax.add(s[0], concrete(np.int32(1))), lax.sin(s[1])], state)
    for _ in range(2):
        jvp(lambda x: bind_while(test, step, [state[0], x])[1], (f64(X),), (f64(X),))
        assert len(_cache._entries((step, test))) == 1


def test_reverse_mode_through_a_loop_that_hands_on_what_moves() -> None:
    """The loop reads x without changing it, and nothing that it computes from x has a derivative."""

    def f(x: Any) -> Any:
        def more(state: Any) -> Any:
            return lax.lt(state[0], concrete(np.int32(3)))

        def step(state: Any) -> Any:
            return lax.add(state[0], concrete(np.int32(1))), state[1]

        _, y = lax.while_loop(more, step, (concrete(np.int32(0)), x))
        return sum_all(lax.mul(y, y))

    np.testing.assert_allclose(grad(f)(f64(X)), 2 * X)
