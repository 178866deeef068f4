"""custom_jvp, custom_vjp and stop_gradient: eager, in traced programs, nested, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode
from hloom.tracer.core import Value, eval_computation
from hloom.tracer.errors import UnexpectedTracerError
from hloom.tracer.ops import sum_all
from hloom.tracer.recording import trace_to_computation

import hloom
import hloom.numpy as jnp
from hloom import (
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    float0,
    grad,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from hloom.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    linear_call,
    zero_from_primal,
)
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
    """x y, with a rule that gives 5 ct y for x and nothing for y."""

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
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
        jvp(f, (f32(X), f32(X)), (f32(X), f32(X)))
    _, push = linearize(f, f32(X), f32(X))
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
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
        (lambda p, t: (p[0], concrete(np.float16(1))), "corresponding shapes and dtypes"),
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
        (lambda x: (x, None), lambda r, ct: (concrete(np.complex64(1)),), ValueError, "complex64.*float32"),
        (lambda x: (x, None), lambda r, ct: (concrete(np.ones(2, np.float16)),), ValueError, r"at output\[0\]"),
    ],
)
def test_vjp_rule_must_fit(fwd: Any, bwd: Any, error: type[Exception], message: str) -> None:
    f = custom_vjp(identity)
    f.defvjp(fwd, bwd)
    with pytest.raises(error, match=message):
        grad(f)(f32(1))


@pytest.mark.parametrize("given", ["bool", "int32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("wanted", ["float16", "float32", "complex64"])
def test_cotangents_get_the_dtype_of_the_argument(given: str, wanted: str) -> None:
    f = custom_vjp(identity)
    f.defvjp(lambda x: (x, None), lambda r, ct: (np.ones((), given),))
    x = concrete(np.asarray(3, wanted))
    for transformed in (lambda x: hloom.vjp(f, x)[1](x)[0], jit(lambda x: hloom.vjp(lambda y: f(y + y), x)[1](x)[0])):
        found = transformed(x)
        assert found.dtype == wanted
        assert found in (1, 2)


def test_traced_rule_must_not_close_over_what_is_differentiated() -> None:
    def outer(y: Any) -> Any:
        @custom_jvp
        def f(x: Any) -> Any:
            return lax.mul(x, y)

        f.defjvp(lambda p, t: (f(*p), t[0]))
        return traced(f)(f32(X))

    with pytest.raises(UnexpectedTracerError, match="closes over a value"):
        grad(lambda y: sum_all(outer(y)))(f32(X))


# --- options


def test_nondiff_arguments_of_custom_vjp_are_not_differentiated_values() -> None:
    f = custom_vjp(lambda a, x: lax.mul(a, x), nondiff_argnums=(0,))
    f.defvjp(lambda a, x: (lax.mul(a, x), None), lambda a, _, ct: (lax.mul(ct, a),))
    assert float(jit(lambda a: grad(lambda x: f(a, x))(f32(2)))(f32(5))) == 5.0
    for g in (lambda a: f(a, f32(3)), lambda x: f(x, x)):
        with pytest.raises(UnexpectedTracerError, match=r"(?s)an argument that nondiff_argnums names.*return None"):
            grad(g)(f32(2))


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_numbers_stay_numbers_outside_of_transformations(kind: Any) -> None:
    f = kind(lambda x: (x, x * 2))
    (f.defjvp if kind is custom_jvp else partial(f.defvjp, identity))(identity)
    for number in (3, 1.5, True, 2j):
        assert f(number) == (number, number * 2)
        assert [*map(type, f(number))] == [type(number), type(number * 2)]
    for given in (np.float64(0.1), X.astype(np.float64), jnp.asarray(X)):
        assert [type(v) for v in f(given)] == [type(jnp.ones(()))] * 2
        assert [v.dtype for v in f(given)] == [np.float32] * 2
    assert isinstance(jit(f)(3)[0], hloom.Array)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        f("text")


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_results_outside_of_transformations_are_arrays(kind: Any) -> None:
    f = kind(lambda x: "text")
    (f.defjvp if kind is custom_jvp else partial(f.defvjp, identity))(identity)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        f(1.0)


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_closing_over_a_differentiated_value_says_so(kind: Any) -> None:
    def outer(y: Any) -> Any:
        f = kind(lambda x: lax.mul(x, y))
        if kind is custom_jvp:
            f.defjvp(lambda p, t: (f(*p), t[0]))
        else:
            f.defvjp(lambda x: (lax.mul(x, y), None), lambda _, ct: (ct,))
        return f(f32(3))

    with pytest.raises(UnexpectedTracerError, match=f"(?s)in the {kind.__name__} function <lambda> .*closure_convert"):
        grad(outer)(f32(2))
    with pytest.raises(UnexpectedTracerError, match="closes over a value"):
        grad(jit(outer))(f32(2))


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: custom_jvp(identity, nondiff_argnames="q"), ValueError, "'q', which is no argument of identity at"),
    (lambda: custom_jvp(identity, nondiff_argnums=(0,)).defjvps(None), TypeError, "defjvps with nondiff_argnums"),
    (lambda: custom_jvp(identity, nondiff_argnames="x").defjvps(None), TypeError, "defjvps with nondiff_argnums"),
    (lambda: _with_jvps(None, None)(f32(1)), ValueError, "given 2 rules for 1 arguments"),
    (lambda: custom_gradient(lambda x: x)(f32(1)), TypeError, "must return a pair .result, function of the cotangent."),
    (lambda: grad(custom_gradient(lambda x: (x, lambda ct: (ct, ct))))(f32(1)), TypeError, "got a tuple of length 2"),
    (lambda: closure_convert(identity, f32(1))[0]((f32(1),)), TypeError, "must have the structure of the example"),
    (lambda: linear_transpose(lax.sin, f32(1))(f32(1)), NotImplementedError, "sine is not supported: it is not linear"),
    (lambda: linear_transpose(lax.neg, f32(1))((f32(1),)), TypeError, "tree does not match function output"),
    (lambda: linear_transpose(lax.neg, f32(1))(f32(X)), TypeError, r"expected float32\[\] but got float32\[3\]"),
    (lambda: linear_transpose(lax.neg, f32(1), reduce_axes="i"), NotImplementedError, "reduce_axes"),
    (lambda: linear_call(_second, _pair, (), f32(1)), TypeError, "must return what is like the linear arguments"),
    (lambda: grad(lambda r: linear_call(lax.div, lax.div, r, r))(f32(1)), TypeError, "its residual arguments"),
    (lambda: custom_vjp_primal_tree_values([1.0]), TypeError, "is not a CustomVJPPrimal, but 1.0"),
]


def _second(r: Any, x: Any) -> Any:
    return x


def _pair(r: Any, x: Any) -> Any:
    return x, x


def _with_jvps(*rules: Any) -> Any:
    f = custom_jvp(identity)
    f.defjvps(*rules)
    return lambda x: grad(f)(x)


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


SOLVES: list[tuple[Any, str]] = [
    (lambda x: lax.custom_root(lambda y: (y, y), x, _second, _second), "custom_root: the function .*structure"),
    (lambda x: lax.custom_root(lambda y: f32(X), x, _second, _second), r"returns float32\[3\] where .* float32\[\]"),
    (lambda x: lax.custom_root(identity, x, _pair, _second), "custom_root: the solver _pair at"),
    (lambda x: lax.custom_root(identity, x, _second, _second, has_aux=True), "must return a pair .solution, aux."),
    (lambda x: lax.custom_linear_solve(lambda y: f32(X), x, _second), r"custom_linear_solve: the function .*\[3\]"),
    (lambda x: lax.custom_linear_solve(identity, x, _pair), "custom_linear_solve: the solver _pair at"),
]


@pytest.mark.parametrize(("solve", "message"), SOLVES)
def test_solvers_must_fit(solve: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"(?s){message}.*test_custom_rules.py"):
        jit(solve)(f32(1))


def test_reverse_mode_of_a_linear_solve_needs_a_solver_of_the_transpose() -> None:
    solve = lambda b: lax.custom_linear_solve(lambda x: times(x, 2), b, lambda _, b: times(b, 0.5))  # noqa: E731
    assert float(jvp(solve, (f32(3),), (f32(1),))[1]) == 0.5
    with pytest.raises(TypeError, match="transpose_solve required for backwards mode"):
        grad(solve)(f32(3))


def test_solves_run_as_they_are_where_nothing_is_traced() -> None:
    """A solver may read values then."""
    steps = []

    def solve(f: Any, x: Any) -> Any:
        while abs(float(f(x))) > 1e-4:
            x = times(lax.add(x, lax.div(f32(2), x)), 0.5)
            steps.append(x)
        return x

    root = lax.custom_root(lambda y: lax.sub(lax.mul(y, y), f32(2)), f32(1), solve, _second)
    np.testing.assert_allclose(root, np.sqrt(2), rtol=1e-5)
    assert len(steps) > 2


def test_symbolic_zeros_have_a_type() -> None:
    zero = SymbolicZero.from_primal_value(f32(X))
    assert (zero.shape, zero.dtype, zero.ndim, zero.size, repr(zero)) == ((3,), np.float32, 1, 3, "SymbolicZero")
    whole = zero_from_primal({"n": np.arange(3)}, symbolic_zeros=True)["n"]
    assert (whole.shape, whole.dtype, whole.aval.ndim, whole.size) == ((3,), float0, 1, 3)
    np.testing.assert_array_equal(zero_from_primal(f32(X)), np.zeros(3))
    primal = CustomVJPPrimal(f32(1), True)
    assert custom_vjp_primal_tree_values({"a": primal})["a"] is primal.value
    assert repr(CustomVJPPrimal(1, False)) == "CustomVJPPrimal(value=1, perturbed=False)"


RESULTS: list[tuple[Any, str]] = [
    (lambda x: (x, x), r"\(float32\[\], float32\[\]\)"),
    (lambda x: lax.full_like(x, 1, shape=(3,)), r"float32\[3\]"),
    (lambda x: lax.convert_element_type(x, np.float16), r"float16\[\]"),
]


@pytest.mark.parametrize(("result", "message"), RESULTS)
def test_rules_of_traced_functions_give_what_the_function_gives(result: Any, message: str) -> None:
    """The program has places for the function's own result: another one would be read as it."""
    f, g = custom_jvp(identity), custom_vjp(identity)
    f.defjvp(lambda p, t: (result(p[0]), result(t[0])))
    g.defvjp(lambda x: (result(x), None), lambda _, ct: (ct,))
    had = r"rule <lambda> for function identity must .* had (container/pytree structure|shapes/dtypes of):\n    "
    message = rf"{had}{message}\nwhile .*decorated function identity had .*:\n    float32\[\]\."
    with pytest.raises(TypeError, match=f"Custom JVP {message}"):
        jvp(jit(f), (f32(2),), (f32(1),))
    with pytest.raises(TypeError, match=f"Custom VJP fwd {message}"):
        vjp(jit(g), f32(2))


# --- forms of arguments and cotangents


@pytest.mark.parametrize(
    "back, expected",
    [
        (lambda ct: (ct, (2 * ct, None)), (1.0, (2.0, 0.0))),
        (lambda ct: (ct, 3 * ct), (1.0, (3.0, 3.0))),
        (lambda ct: 4 * ct, (4.0, (4.0, 4.0))),
        (lambda ct: (None, 5 * ct), (0.0, (5.0, 5.0))),
        (lambda ct: None, (0.0, (0.0, 0.0))),
    ],
)
def test_cotangents_are_a_prefix_of_the_arguments(back: Any, expected: Any) -> None:
    function = custom_vjp(lambda x: x[0] * 1.0)
    function.defvjp(lambda x: (function(x), None), lambda _, ct: (back(ct),))
    assert grad(function)((1.0, (2.0, 3.0))) == expected


def test_cotangents_of_an_argument_with_an_empty_node() -> None:
    function = custom_vjp(lambda x: x["a"] * 1.0)
    function.defvjp(lambda x: (function(x), None), lambda _, ct: ({"a": 2 * ct, "b": None},))
    assert grad(function)({"a": 1.0, "b": None}) == {"a": 2.0, "b": None}


def test_keyword_only_arguments_keep_their_defaults() -> None:
    def scaled(x: Any, y: Any, *, by: Any = 0.5) -> Any:
        return x + y * by

    for inner, factor in ((scaled, 0.5), (partial(scaled, by=0.25), 0.25)):
        function = custom_jvp(inner)
        function.defjvp(lambda p, t, inner=inner: jvp(inner, p, t))
        assert grad(function, 1)(1.0, 2.0) == factor
        with pytest.raises(TypeError, match="could not be resolved to positions: by"):
            function(1.0, 2.0, by=1.0)


# --- what may be given to linear functions


def test_tangents_of_integers_are_float0() -> None:
    pushed = linearize(lambda i: i, np.ones(2, np.int32))[1]
    assert pushed(np.zeros(2, float0)).dtype == float0
    for wrong in (np.ones(2, np.int32), np.zeros(3, float0), np.ones((3, 2), np.float32), 1.0):
        with pytest.raises(ValueError, match="tangent values inconsistent with the original primal values"):
            pushed(wrong)


def test_linear_transpose_of_integers() -> None:
    with pytest.raises(TypeError, match="linear_transpose only supports"):
        linear_transpose(lambda x: 2.0 * x, 1)
    assert linear_transpose(lambda x: 2 * x, 1)(3) == (6,)


def test_a_transposed_function_is_a_pytree() -> None:
    made = jit(lambda y: linear_transpose(lambda x: x * y, 1.0))(2.0)
    assert jit(lambda f, x: f(x))(made, 3.0) == (6.0,)
    assert made(4.0) == (8.0,)


# ---- tangents that no rule gives: a program may hold them if they are unused, or if it is transposed


@hloom.custom_vjp
def _same(x: Any) -> Any:
    return x * 1.0


_same.defvjp(lambda x: (_same(x), None), lambda _, g: (g,))


@hloom.custom_vjp
def _norm(x: Any) -> Any:
    return jnp.sum(x**2)


_norm.defvjp(lambda x: (_norm(x), x), lambda x, g: (2 * g * x,))


def _while(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, _same(c[1])), (0, x))[1]


AROUND_LOOPS: dict[str, Any] = {
    "loop": _while,
    "jit": hloom.jit(_while),
    "remat": hloom.remat(_while),
    "jit of remat": hloom.jit(hloom.remat(_while)),
    "jit of cond": hloom.jit(lambda x: lax.cond(x > 0, _while, lambda x: x, x)),
}


@pytest.mark.parametrize("name", AROUND_LOOPS)
def test_unneeded_tangents_of_a_loop(name: str) -> None:
    value, push = hloom.linearize(AROUND_LOOPS[name], 5.0)
    assert value == 5.0
    for run in (push, hloom.jit(push), lambda t: hloom.jvp(AROUND_LOOPS[name], (5.0,), (t,))):
        with pytest.raises(TypeError, match=r"can't apply forward-mode autodiff \(jvp\)"):
            run(1.0)
    assert hloom.jit(lambda x: hloom.jvp(AROUND_LOOPS["loop"], (x,), (1.0,))).eval_shape(5.0)[1].shape == ()


def test_unneeded_tangents_in_a_program() -> None:
    found = hloom.jit(lambda x: hloom.jvp(lambda x: (_same(x), x * 2)[1], (x,), (1.0,)))(5.0)
    assert found == (10.0, 2.0)


X3 = np.arange(3, dtype=np.float32)
TRANSPOSED: dict[str, Any] = {
    "plain": lambda x: hloom.linear_transpose(hloom.linearize(_norm, x)[1], x)(1.0)[0],
    "of jit": lambda x: hloom.linear_transpose(hloom.jit(hloom.linearize(_norm, x)[1]), x)(1.0)[0],
    "of remat": lambda x: hloom.linear_transpose(hloom.linearize(hloom.jit(hloom.remat(_norm)), x)[1], x)(1.0)[0],
    "of jvp": lambda x: hloom.linear_transpose(lambda t: hloom.jvp(_norm, (x,), (t,))[1], x)(1.0)[0],
    "of a multiple": lambda x: hloom.linear_transpose(lambda t: hloom.linearize(_norm, x)[1](t) / 2, x)(2.0)[0],
    "of a loop": lambda x: hloom.linear_transpose(
        hloom.linearize(lambda x: lax.fori_loop(0, 2, lambda _, c: _same(c), x), 5.0)[1], 5.0
    )(1.0)[0] * 2 * x,
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSPOSED)
def test_linearized_rules_are_transposed(name: str) -> None:
    gradient = TRANSPOSED[name]
    for run in (gradient, hloom.jit(gradient), lambda x: hloom.vmap(gradient)(jnp.stack([x, x]))[1]):
        np.testing.assert_array_equal(run(X3), 2 * X3)
    np.testing.assert_array_equal(hloom.grad(lambda x: gradient(x).sum())(X3), np.full(3, 2, np.float32))


def test_rules_get_arguments_as_weak_as_the_function_does() -> None:
    """Also where a program that was traced before is differentiated, in which no type is weak."""
    seen: list[tuple[str, list[bool]]] = []

    def told(name: str, *values: Any) -> None:
        seen.append((name, [v.weak_type for v in values]))

    @hloom.custom_vjp
    def f(x: Any, k: Any) -> Any:
        return x * 2.0

    def forward(x: Any, k: Any) -> Any:
        told("fwd", x, k)
        return x * 2.0, k

    def backward(k: Any, ct: Any) -> Any:
        told("bwd", k)
        return ct * k, None

    f.defvjp(forward, backward)

    @hloom.custom_jvp
    def g(x: Any, k: Any) -> Any:
        return x

    @g.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        told("jvp", *primals)
        return primals[0], tangents[0] * primals[1]

    x = jnp.float32(3.0)
    for rule in (f, g):

        def calls(x: Any, rule: Any = rule) -> Any:
            return rule(x, jnp.where(x > 1, 2, 3))

        def in_scan(x: Any, calls: Any = calls) -> Any:
            return hloom.lax.scan(lambda c, _: (calls(c), None), x, None, 1)[0]

        with hloom.numpy_dtype_promotion("strict"):
            for function in (calls, hloom.jit(calls), in_scan):
                assert hloom.grad(function)(x) == 2
    wanted = {"fwd": [False, True], "bwd": [True], "jvp": [False, True]}
    assert dict(seen) == wanted and all(flags == wanted[name] for name, flags in seen)
