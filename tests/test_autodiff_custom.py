"""custom_jvp, custom_vjp and stop_gradient: eager, in traced programs, nested, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode
from hloom.tracer.core import Value, eval_computation
from hloom.tracer.errors import UnexpectedTracerError
from hloom.tracer.ops import sum_all
from hloom.tracer.recording import trace_to_computation

from hloom import custom_jvp, custom_vjp, float0, grad, jvp, lax, linearize, value_and_grad, vjp
from support.grad_check import concrete

X = np.array([0.3, -0.7, 1.1], np.float32)


def f32(value: Any) -> Value:
    return concrete(np.asarray(value, np.float32))


def eager(fun: Callable[..., Any]) -> Callable[..., Any]:
    return fun


def traced(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` as a computation that is traced first and differentiated later, as a jitted function is."""

    def call(*values: Any) -> Any:
        program = trace_to_computation(lambda xs: [fun(*xs)], [v.aval for v in values])
        (result,) = eval_computation(program.computation, [*values, *program.captured])
        return result

    return call


HOW = pytest.mark.parametrize("how", [eager, traced])


def times(x: Any, factor: float) -> Value:
    return lax.mul(x, lax.full_like(x, factor))


def triple_slope() -> custom_jvp:
    """sin, with three times its derivative."""

    @custom_jvp
    def f(x: Any) -> Any:
        return lax.sin(x)

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), times(lax.mul(lax.cos(x), t), 3)

    return f


@HOW
def test_jvp_rule_replaces_the_derivative(how: Any) -> None:
    f = how(triple_slope())
    np.testing.assert_allclose(f(f32(X)), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(grad(lambda x: sum_all(f(x)))(f32(X)), 3 * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (f32(X),), (f32(X),))[1], 3 * np.cos(X) * X, rtol=1e-6)
    np.testing.assert_allclose(linearize(f, f32(X))[1](f32(X)), 3 * np.cos(X) * X, rtol=1e-6)
    # The rule itself is differentiated: d (3 cos) = -3 sin.
    np.testing.assert_allclose(grad(grad(f))(f32(0.5)), -3 * np.sin(0.5), rtol=1e-6)
    np.testing.assert_allclose(jvp(grad(f), (f32(0.5),), (f32(1),))[1], -3 * np.sin(0.5), rtol=1e-6)


@HOW
def test_jvp_rule_of_several_arguments(how: Any) -> None:
    @custom_jvp
    def f(x: Any, y: Any) -> Any:
        return lax.mul(x, y)

    f.defjvps(lambda t, ans, x, y: times(lax.mul(t, y), 10), None)
    both = grad(how(lambda x, y: f(x, y)), argnums=(0, 1))(f32(2), f32(3))
    assert [float(g) for g in both] == [30.0, 0.0]
    assert float(grad(how(lambda x: f(f32(2), x)))(f32(3))) == 0.0


@HOW
def test_jvp_rule_sees_zeros_for_arguments_that_do_not_move(how: Any) -> None:
    @custom_jvp
    def f(tree: Any, n: Any) -> Any:
        return lax.mul(tree["a"], tree["b"])

    seen = []

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        tree, moved = primals[0], tangents[0]
        seen.append(tangents[1].dtype)
        return f(*primals), lax.add(lax.mul(moved["a"], tree["b"]), lax.mul(tree["a"], moved["b"]))

    gradient = grad(how(lambda a: f({"a": a, "b": f32(5)}, concrete(np.int32(1)))))(f32(2))
    assert float(gradient) == 5.0
    assert set(seen) == {float0}


def test_jvp_with_static_arguments_and_keywords() -> None:
    def scaled(g: Any, x: Any, factor: Any = 2.0) -> Any:
        return lax.mul(g(x), factor)

    f = custom_jvp(scaled, nondiff_argnums=(0,))

    @f.defjvp
    def f_jvp(g: Any, primals: Any, tangents: Any) -> Any:
        x, factor = primals
        return f(g, x, factor), lax.mul(tangents[0], factor)

    assert float(grad(lambda x: f(lax.exp, x, factor=f32(7)))(f32(1))) == 7.0
    assert f.__name__ == "scaled"


def test_rules_run_within_traced_gradients() -> None:
    f = triple_slope()
    program = trace_to_computation(lambda xs: [grad(f)(xs[0])], [f32(1).aval])
    opcodes = [i.opcode for i in program.computation.instructions]
    assert opcodes.count(Opcode.COS) == 1
    assert opcodes.count(Opcode.CALL) == 0 or Opcode.SIN not in opcodes


def scaled_product() -> custom_vjp:
    """x y, whose rule gives 5 ct y for x and nothing for y."""

    @custom_vjp
    def f(x: Any, y: Any) -> Any:
        return lax.mul(x, y)

    f.defvjp(lambda x, y: (lax.mul(x, y), {"y": y}), lambda kept, ct: (times(lax.mul(ct, kept["y"]), 5), None))
    return f


@HOW
def test_vjp_rule_replaces_the_derivative(how: Any) -> None:
    f = how(scaled_product())
    value, gradients = value_and_grad(lambda x, y: sum_all(f(x, y)), argnums=(0, 1))(f32(X), f32(2 * X))
    np.testing.assert_allclose(value, (2 * X * X).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradients[0], 10 * X, rtol=1e-6)
    np.testing.assert_array_equal(gradients[1], 0 * X)
    np.testing.assert_allclose(vjp(f, f32(X), f32(X))[1](f32(X))[0], 5 * X * X, rtol=1e-6)
    # The rule is differentiated in turn: d/dx (5 y) is 0 through the rule of x, 5 through y.
    assert float(grad(lambda y: grad(f)(f32(2), y))(f32(3))) == 5.0
    assert float(jvp(lambda y: grad(f)(f32(2), y), (f32(3),), (f32(1),))[1]) == 5.0


@HOW
def test_vjp_rule_refuses_forward_mode(how: Any) -> None:
    f = how(scaled_product())
    with pytest.raises(TypeError, match="can't apply forward-mode differentiation"):
        jvp(f, (f32(X), f32(X)), (f32(X), f32(X)))
    _, push = linearize(f, f32(X), f32(X))
    with pytest.raises(TypeError, match="can't apply forward-mode differentiation"):
        push(f32(X), f32(X))


@HOW
def test_vjp_rule_with_several_results(how: Any) -> None:
    @custom_vjp
    def f(x: Any) -> Any:
        return lax.sin(x), lax.cos(x)

    f.defvjp(lambda x: (f(x), x), lambda x, cts: (lax.sub(times(cts[0], 2), times(cts[1], 3)),))
    assert float(grad(how(lambda x: f(x)[0]))(f32(1))) == 2.0
    assert float(grad(how(lambda x: f(x)[1]))(f32(1))) == -3.0
    assert float(grad(how(lambda x: lax.add(*f(x))))(f32(1))) == -1.0


def test_vjp_with_static_arguments() -> None:
    def clipped(limit: float, x: Any) -> Any:
        return x

    f = custom_vjp(clipped, nondiff_argnums=(0,))
    f.defvjp(lambda limit, x: (x, None), lambda limit, _, ct: (times(ct, limit),))
    assert float(grad(lambda x: f(0.25, x))(f32(1))) == 0.25


@HOW
def test_stop_gradient(how: Any) -> None:
    f = how(lambda x: lax.mul(lax.stop_gradient(x), x))
    assert float(f(f32(3))) == 9.0
    assert float(grad(f)(f32(3))) == 3.0
    assert float(grad(grad(f))(f32(3))) == 0.0
    assert float(jvp(f, (f32(3),), (f32(1),))[1]) == 3.0


# --- what is refused


def test_rules_must_be_defined() -> None:
    with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function identity"):
        custom_jvp(identity)(f32(1))
    with pytest.raises(AttributeError, match="No VJP defined for custom_vjp function identity"):
        custom_vjp(identity)(f32(1))


def identity(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda p, t: p[0], "must produce a pair"),
        (lambda p, t: (p[0], t), "equal container"),
        (lambda p, t: (p[0], concrete(np.float16(1))), "equal shapes and dtypes"),
    ],
)
def test_jvp_rule_must_fit(rule: Any, message: str) -> None:
    f = custom_jvp(identity)
    f.defjvp(rule)
    with pytest.raises(TypeError, match=message):
        grad(f)(f32(1))


@pytest.mark.parametrize(
    ("fwd", "bwd", "error", "message"),
    [
        (lambda x: x, lambda r, ct: (ct,), TypeError, "must produce a pair"),
        (lambda x: (x, None), lambda r, ct: ct, TypeError, "tuple of length equal to the primal args"),
        (lambda x: (x, None), lambda r, ct: (ct, ct), TypeError, "got a tuple of length 2"),
        (lambda x: (x, None), lambda r, ct: ((ct, ct),), TypeError, "same container"),
        (lambda x: (x, None), lambda r, ct: (concrete(np.float16(1)),), ValueError, "float32.*float16"),
    ],
)
def test_vjp_rule_must_fit(fwd: Any, bwd: Any, error: type[Exception], message: str) -> None:
    f = custom_vjp(identity)
    f.defvjp(fwd, bwd)
    with pytest.raises(error, match=message):
        grad(f)(f32(1))


def test_traced_rule_must_not_close_over_what_is_differentiated() -> None:
    def outer(y: Any) -> Any:
        @custom_jvp
        def f(x: Any) -> Any:
            return lax.mul(x, y)

        f.defjvp(lambda p, t: (f(*p), t[0]))
        return traced(f)(f32(X))

    with pytest.raises(UnexpectedTracerError, match="closes over a value"):
        grad(lambda y: sum_all(outer(y)))(f32(X))
