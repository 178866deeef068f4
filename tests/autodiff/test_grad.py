"""grad, value_and_grad, jvp, vjp and linearize: what they accept, what they return, how they nest, what they refuse."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode
from hloom.tracer.core import Value, eval_computation
from hloom.tracer.errors import UnexpectedTracerError
from hloom.tracer.ops import broadcast, sum_all
from hloom.tracer.recording import trace_to_computation

import hloom
import hloom.numpy as jnp
from hloom import float0, grad, jvp, lax, linearize, tree, value_and_grad, vjp
from support.grad_check import check_derivatives, concrete

X = np.array([0.3, -0.7, 1.1], np.float32)


def f32(value: Any) -> Value:
    return concrete(np.asarray(value, np.float32))


def norm(x: Any) -> Value:
    """The sum of x sin x."""
    return sum_all(lax.mul(lax.sin(x), x))


def norm_gradient(x: np.ndarray) -> np.ndarray:
    return np.sin(x) + x * np.cos(x)


# --- forms of arguments and results


def test_gradient_of_an_array() -> None:
    np.testing.assert_allclose(grad(norm)(f32(X)), norm_gradient(X), rtol=1e-6)
    assert grad(norm)(f32(X)).dtype == np.float32


def test_numbers_and_numpy_arrays_are_arguments() -> None:
    gradient = grad(lambda x: lax.mul(x, x))(3.0)
    assert float(gradient) == 6.0
    assert gradient.weak_type
    np.testing.assert_allclose(grad(norm)(X), norm_gradient(X), rtol=1e-6)


def test_argnums() -> None:
    def f(x: Any, y: Any, z: Any) -> Value:
        return sum_all(lax.add(lax.mul(x, y), lax.mul(z, z)))

    x, y, z = f32([1, 2]), f32([3, 4]), f32([5, 6])
    np.testing.assert_array_equal(grad(f, argnums=1)(x, y, z), [1, 2])
    np.testing.assert_array_equal(grad(f, argnums=-1)(x, y, z), [10, 12])
    both = grad(f, argnums=(2, 0))(x, y, z)
    assert isinstance(both, tuple)
    np.testing.assert_array_equal(both[0], [10, 12])
    np.testing.assert_array_equal(both[1], [3, 4])
    (alone,) = grad(f, argnums=(1,))(x, y, z)
    np.testing.assert_array_equal(alone, [1, 2])


def test_pytrees_and_keywords() -> None:
    def f(params: Any, *, scale: float) -> Value:
        return sum_all(lax.mul(lax.mul(params["w"], params["b"][0]), f32([scale, scale])))

    params = {"w": f32([1, 2]), "b": [f32([3, 4]), None]}
    gradient = grad(f)(params, scale=2.0)
    assert gradient.keys() == params.keys()
    np.testing.assert_array_equal(gradient["w"], [6, 8])
    np.testing.assert_array_equal(gradient["b"][0], [2, 4])
    assert gradient["b"][1] is None


def test_aux() -> None:
    def f(x: Any) -> Any:
        return norm(x), {"half": lax.mul(x, f32([0.5] * 3)), "note": "text"}

    (value, aux), gradient = value_and_grad(f, has_aux=True)(f32(X))
    np.testing.assert_allclose(value, (X * np.sin(X)).sum(), rtol=1e-6)
    np.testing.assert_array_equal(aux["half"], X / 2)
    assert aux["note"] == "text"
    gradient_alone, aux = grad(f, has_aux=True)(f32(X))
    np.testing.assert_array_equal(gradient, gradient_alone)
    np.testing.assert_array_equal(aux["half"], X / 2)
    _, _, aux = jvp(f, (f32(X),), (f32(X),), has_aux=True)
    np.testing.assert_array_equal(aux["half"], X / 2)
    _, _, aux = vjp(f, f32(X), has_aux=True)
    np.testing.assert_array_equal(aux["half"], X / 2)


def test_integers_have_float0_tangents() -> None:
    def f(x: Any, n: Any) -> Value:
        return lax.mul(x, lax.convert_element_type(n, np.float32))

    three = concrete(np.int32(3))
    gradient = grad(f, argnums=(0, 1), allow_int=True)(f32(2), three)
    assert float(gradient[0]) == 3.0
    assert gradient[1].dtype == float0
    _, back = vjp(f, f32(2), three)
    assert back(f32(1))[1].dtype == float0
    value, tangent = jvp(f, (f32(2), three), (f32(1), np.zeros((), float0)))
    assert (float(value), float(tangent)) == (6.0, 3.0)
    whole, tangent = jvp(lambda x: (x, lax.convert_element_type(x, np.int32)), (f32(2.5),), (f32(1),))
    assert int(whole[1]) == 2
    assert tangent[1].dtype == float0


@pytest.mark.parametrize(
    "make",
    [
        lambda: jnp.zeros((2,), float0),
        lambda: jnp.ones(2, dtype=float0),
        lambda: jnp.full(2, 1, float0),
        lambda: jnp.zeros_like(np.zeros(2, float0)),
        lambda: jnp.zeros_like(np.arange(2), dtype=float0),
        lambda: lax.full_like(np.zeros(3, float0), 1, shape=(2,)),
    ],
)
def test_float0_arrays_are_made_as_others(make: Any) -> None:
    found = make()
    assert (type(found), found.shape, found.dtype) == (np.ndarray, (2,), float0)


def test_float0_has_a_kind_but_no_operation() -> None:
    zeros = np.zeros(2, float0)
    assert jnp.result_type(zeros) == jnp.result_type(zeros, float0) == lax.dtype(zeros) == float0
    assert hloom.dtypes.canonicalize_dtype(float0) == jnp.dtype(float0) == float0
    assert jnp.issubdtype(float0, float0) and jnp.isdtype(float0, float0)
    assert not any(jnp.issubdtype(float0, kind) for kind in (jnp.floating, jnp.integer, jnp.number, np.bool_))
    assert not jnp.isdtype(float0, "numeric")
    for operation in (jnp.add, jnp.result_type, jnp.arctan2):
        with pytest.raises(TypeError, match="float0"):
            operation(zeros, 1.0)


def test_linearize_and_vjp_may_be_called_many_times() -> None:
    value, push = linearize(lambda x, y: lax.mul(lax.sin(x), y), f32(X), f32(X))
    np.testing.assert_allclose(value, np.sin(X) * X, rtol=1e-6)
    for t in (np.ones_like(X), X):
        np.testing.assert_allclose(push(f32(t), f32(0 * t)), np.cos(X) * X * t, rtol=1e-6)
    _, pull = vjp(lambda x: {"sin": lax.sin(x), "one": f32(1)}, f32(X))
    for ct in (np.ones_like(X), X):
        np.testing.assert_allclose(pull({"sin": f32(ct), "one": f32(0)})[0], np.cos(X) * ct, rtol=1e-6)


def test_linear_functions_are_pytrees_of_their_residuals() -> None:
    """So that a jitted function may return them."""
    structures = []

    def traced(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for make in (vjp, linearize):
            _, function = make(lambda x: lax.mul(lax.sin(x), lax.full_like(x, 2)), values[0])
            leaves, structure = tree.flatten(function)
            structures.append((len(leaves), structure))
            found += leaves
        return found

    program = trace_to_computation(traced, [f32(X).aval])
    values = eval_computation(program.computation, [f32(X)])
    for count, structure in structures:
        function, values = tree.unflatten(structure, values[:count]), values[count:]
        result = function(f32(X))
        np.testing.assert_allclose(result[0] if isinstance(result, tuple) else result, 2 * np.cos(X) * X, rtol=1e-6)


def test_linearised_program_is_hlo_with_few_residuals() -> None:
    def f(x: Any) -> Value:
        return lax.mul(lax.exp(lax.sin(x)), f32(2 * X))

    _, push = linearize(f, f32(X))
    opcodes = [i.opcode for i in push.computation.instructions]
    # t cos(x), by exp(sin(x)), by the constant: one residual and one product each
    assert opcodes.count(Opcode.MULTIPLY) == 3
    assert opcodes.count(Opcode.PARAMETER) == 1 + 3


def test_function_that_does_not_depend_on_its_argument() -> None:
    np.testing.assert_array_equal(grad(lambda x: f32(1))(f32(X)), np.zeros_like(X))
    value, tangent = jvp(lambda x: f32(2), (f32(X),), (f32(X),))
    assert (float(value), float(tangent)) == (2.0, 0.0)


# --- nesting


def test_higher_orders() -> None:
    def derivative(order: int) -> Any:
        f: Any = lax.sin
        for _ in range(order):
            f = grad(f)
        return f

    expected = [np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin]
    for order, function in enumerate(expected):
        np.testing.assert_allclose(derivative(order)(f32(0.4)), function(np.float32(0.4)), rtol=1e-5)


def test_modes_nest_in_any_order() -> None:
    x, v = f32(X), f32([0.5, 1.0, -2.0])
    second = 2 * np.cos(X) - X * np.sin(X)
    expected = second * np.asarray(v)
    np.testing.assert_allclose(jvp(grad(norm), (x,), (v,))[1], expected, rtol=1e-5)
    np.testing.assert_allclose(grad(lambda x: jvp(norm, (x,), (v,))[1])(x), expected, rtol=1e-5)
    np.testing.assert_allclose(vjp(grad(norm), x)[1](v)[0], expected, rtol=1e-5)
    np.testing.assert_allclose(linearize(grad(norm), x)[1](v), expected, rtol=1e-5)
    np.testing.assert_allclose(grad(lambda x: sum_all(lax.mul(grad(norm)(x), v)))(x), expected, rtol=1e-5)
    np.testing.assert_allclose(
        jvp(lambda x: jvp(norm, (x,), (v,))[1], (x,), (v,))[1], (second * np.asarray(v) ** 2).sum(), rtol=1e-5
    )


def test_perturbations_are_not_confused() -> None:
    """d/dx [x d/dy (x + y)] = 1, and d/dx [x d/dy (x y)] = 2x."""
    assert float(grad(lambda x: lax.mul(x, grad(lambda y: lax.add(x, y))(f32(1))))(f32(1))) == 1.0
    assert float(grad(lambda x: lax.mul(x, grad(lambda y: lax.mul(x, y))(f32(1))))(f32(3))) == 6.0
    inner = jvp(lambda x: lax.mul(x, jvp(lambda y: lax.add(x, y), (f32(1),), (f32(1),))[1]), (f32(1),), (f32(1),))
    assert float(inner[1]) == 1.0


def test_closures_over_outer_values_are_differentiated() -> None:
    def outer(x: Any) -> Value:
        def inner(y: Any) -> Value:
            return lax.mul(lax.mul(x, x), y)

        value, gradient = value_and_grad(inner)(f32(5))
        return lax.add(value, gradient)

    assert float(grad(outer)(f32(3))) == 2 * 3 * (5 + 1)


def test_python_control_flow_on_concrete_values() -> None:
    def f(x: Any) -> Any:
        return lax.mul(x, x) if lax.gt(x, f32(0)) else lax.neg(x)

    assert float(grad(f)(f32(3))) == 6.0
    assert float(grad(f)(f32(-3))) == -1.0
    assert float(grad(grad(f))(f32(3))) == 2.0

    def loop(x: Any) -> Any:
        while lax.lt(x, f32(100)):
            x = lax.mul(x, x)
        return x

    assert float(grad(loop)(f32(2))) == 8 * 2.0**7


def test_traced_gradient_equals_the_eager_one() -> None:
    traced = trace_to_computation(lambda values: [grad(norm)(values[0])], [f32(X).aval])
    assert traced.captured == []
    opcodes = [i.opcode for i in traced.computation.instructions]
    assert Opcode.WHILE not in opcodes and Opcode.CALL not in opcodes
    check_derivatives(lambda xs: [norm(xs[0])], [X.astype(np.float64)])


def test_ten_thousand_operations() -> None:
    def f(x: Any) -> Any:
        for _ in range(5000):
            x = lax.sin(lax.add(x, f32(1e-3)))
        return x

    start = time.process_time()
    assert np.isfinite(float(grad(f)(f32(0.5))))
    assert time.process_time() - start < 20


# --- the emitted program


def _opcodes(function: Any, *arrays: np.ndarray) -> list[Opcode]:
    traced = trace_to_computation(lambda values: list(function(*values)), [concrete(a).aval for a in arrays])
    return [i.opcode for i in traced.computation.instructions]


def test_zero_tangents_cost_nothing() -> None:
    def f(x: Any, y: Any) -> Value:
        return lax.add(lax.mul(x, lax.exp(y)), lax.sin(y))

    opcodes = _opcodes(lambda x, y: [grad(lambda x: sum_all(f(x, y)))(x)], X, X)
    assert opcodes.count(Opcode.EXP) == 1
    assert opcodes.count(Opcode.COS) == 0
    forward = _opcodes(lambda x, y: [jvp(lambda x: f(x, y), (x,), (x,))[1]], X, X)
    assert forward.count(Opcode.MULTIPLY) == 1
    assert forward.count(Opcode.ADD) == 0


def test_gradient_of_a_network_is_as_small_as_it_can_be() -> None:
    """Five dots (two forwards, three backwards), no transposes, broadcasts of biases and cotangents only."""

    def loss(params: Any, x: Any) -> Value:
        (w1, b1), (w2, b2) = params
        h = lax.dot(x, w1)
        h = lax.tanh(lax.add(h, broadcast(b1, h.shape, (1,))))
        y = lax.dot(h, w2)
        y = lax.add(y, broadcast(b2, y.shape, (1,)))
        return sum_all(lax.mul(y, y))

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((4, 6), (6,), (6, 3), (3,), (5, 4))]

    def step(w1: Any, b1: Any, w2: Any, b2: Any, x: Any) -> list[Value]:
        (one, two) = grad(loss)(((w1, b1), (w2, b2)), x)
        return [*one, *two]

    opcodes = _opcodes(step, *arrays)
    assert opcodes.count(Opcode.DOT) == 5
    assert opcodes.count(Opcode.TRANSPOSE) == 0
    assert opcodes.count(Opcode.REDUCE) == 2
    assert opcodes.count(Opcode.TANH) == 1
    wide = [a.astype(np.float64) for a in arrays]
    check_derivatives(lambda v: [loss(((v[0], v[1]), (v[2], v[3])), v[4])], wide, order=1)


# --- what is refused


def _raised(error: type[Exception], function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(error) as info:
        function(*args, **kwargs)
    return str(info.value)


def identity(x: Any) -> Any:
    return x


def test_output_must_be_a_real_scalar() -> None:
    message = _raised(TypeError, grad(identity), f32(X))
    assert "Gradient only defined for scalar-output functions. Output had shape: (3,)" in message
    assert "differentiating identity at " in message
    assert "test_grad.py" in message.split("called at")[1]
    assert "Output was a pytree" in _raised(TypeError, grad(lambda x: (x, x)), f32(1))
    assert "Output was a pytree" in _raised(TypeError, grad(lambda x: None), f32(1))
    assert "not an array" in _raised(TypeError, grad(lambda x: "text"), f32(1))
    to_int = grad(lambda x: lax.convert_element_type(x, np.int32))
    assert "requires real-valued outputs" in _raised(TypeError, to_int, f32(1))
    to_complex = grad(lambda x: lax.complex(x, x))
    assert "holomorphic=True" in _raised(TypeError, to_complex, f32(1))


def test_inputs_must_be_floating() -> None:
    message = _raised(TypeError, grad(identity), concrete(np.int32(1)))
    assert "grad requires real- or complex-valued inputs" in message
    assert "but got int32" in message
    assert "allow_int" in message
    assert "bool" in _raised(TypeError, grad(identity), True)
    assert "str" in _raised(TypeError, grad(identity), "text")
    assert "complex dtype" in _raised(TypeError, grad(identity, holomorphic=True), f32(1))


def test_argnums_must_name_arguments() -> None:
    message = _raised(TypeError, grad(identity, argnums=1), f32(1))
    assert "argnums=1 requires at least 2 positional arguments" in message
    assert "but got only 1" in message
    assert "at least 3" in _raised(TypeError, grad(identity, argnums=(0, -3)), f32(1))
    assert "integer" in _raised(TypeError, grad, identity, argnums="x")
    assert "twice" in _raised(ValueError, grad(lambda x, y: x, argnums=(0, -2)), f32(1), f32(1))
    assert "expects a function" in _raised(TypeError, grad, 3)


def test_aux_needs_a_pair() -> None:
    assert "pair" in _raised(TypeError, grad(identity, has_aux=True), f32(1))


def test_tangents_must_fit() -> None:
    assert "tuples or lists" in _raised(TypeError, jvp, identity, f32(1), f32(1))
    assert "same tree structure" in _raised(TypeError, jvp, identity, (f32(1),), (f32(1), f32(1)))
    assert "dtypes must be equal" in _raised(TypeError, jvp, identity, (f32(1),), (concrete(np.float16(1)),))
    assert "float0" in _raised(TypeError, jvp, identity, (concrete(np.int32(1)),), (concrete(np.int32(1)),))
    assert "shapes" in _raised(ValueError, jvp, identity, (f32(X),), (f32(1),))
    _, push = linearize(identity, f32(X))
    assert "inconsistent" in _raised(ValueError, push, f32(1))
    assert "tree structure" in _raised(TypeError, push, (f32(X), f32(X)))


def test_cotangents_must_fit() -> None:
    _, pull = vjp(identity, f32(X))
    assert "tree structure" in _raised(ValueError, pull, (f32(X),))
    message = _raised(ValueError, pull, f32(1))
    assert "got float32[]" in message
    assert "expected float32[3]" in message


def test_leaked_values_are_found() -> None:
    kept = []

    def f(x: Any) -> Value:
        kept.append(lax.sin(x))
        return norm(x)

    grad(f)(f32(X))
    message = _raised(UnexpectedTracerError, lax.cos, kept[0])
    assert "leaked" in message
    assert "test_grad.py" in message


# --- what belongs to outer transformations stays with them


def test_aux_keeps_the_tangents_of_outer_transformations() -> None:
    inner = grad(lambda b, a: (b * b, a * 3.0), has_aux=True)
    assert grad(lambda a: inner(1.0, a)[1])(2.0) == 3.0
    assert grad(lambda a: value_and_grad(lambda b: (b * b, a * 3.0), has_aux=True)(1.0)[0][1])(2.0) == 3.0
    assert grad(lambda a: jvp(lambda b: (b * b, a * b), (5.0,), (1.0,), has_aux=True)[2])(2.0) == 5.0
    assert jvp(lambda a: vjp(lambda b: (b * b, a * b), 5.0, has_aux=True)[2], (2.0,), (1.0,)) == (10.0, 5.0)
    assert grad(lambda a: linearize(lambda b: (b * b, a * a * b), 5.0, has_aux=True)[2])(2.0) == 20.0


def test_aux_has_no_tangents_of_its_own_transformation() -> None:
    _, aux = grad(lambda b: (b * b, b * 3.0), has_aux=True)(1.0)
    assert aux == 3.0


REFUSED: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (grad(lambda p: p["a"]), ({"a": 1.0, "b": [1.0, 2]},), TypeError, r"got int32\. .*\n  for argument p\['b'\]\[1\]"),
    (grad(lambda x, y: x, argnums=1), (1.0, True), TypeError, r"got bool\. .*\n  for argument y\n"),
    (value_and_grad(lambda x, y: x), (1, 2.0), TypeError, r"value_and_grad requires .*int32\..*\n  for argument x\n"),
    (grad(lambda x: x), ("text",), TypeError, r"type <class 'str'> is not a valid JAX(.|\n)*for argument x\n"),
    (grad(lambda x: 1.0), ([object()],), TypeError, r"<class 'object'> is not a valid(.|\n)*for argument x\[0\]\n"),
    (grad(lambda x: x, holomorphic=True), (1.0,), TypeError, r"complex dtype.*got float32\.\n  for argument x"),
    (lambda x: grad(lax.neg, argnums="x")(x), (1.0,), TypeError, "must be an integer"),
    (grad(lambda x: x, argnums=-2), (1.0,), ValueError, "at least 2 positional .* only 1 positional"),
    (grad(lambda x: x), (), TypeError, "at least 1 positional .* only 0 positional"),
    (grad(lambda x: (x, x)), (1.0,), TypeError, r"Output was a pytree: PyTreeDef\(\(\*, \*\)\)"),
    (grad(lambda x: None), (1.0,), TypeError, "Output was a pytree"),
    (grad(lambda x: x), (X,), TypeError, r"Output had shape: \(3,\)\.\n  differentiating <lambda> at .*test_grad"),
    (lambda x: vjp(lambda x: (x, x), x)[1](x, x), (1.0,), TypeError, "2 arguments, but it takes one.*give a tuple"),
    (grad(lambda x: x, has_aux=True), (1.0,), TypeError, "must return a pair"),
    (lambda x: vjp(lax.mul, x, x, saveable_args=(True,)), (1.0,), ValueError, "saveable_args has 1 children .* 2 ch"),
    (lambda x: vjp(lax.neg, x, saveable_args=((True,),)), (1.0,), ValueError, r"saveable_args\[0\] has 1 .* is a leaf"),
    (lambda x: vjp(lax.neg, x, saveable_args=(1,)), (1.0,), ValueError, r"saveable_args\[0\] is 1 of type int"),
    (
        lambda x: vjp(lambda d: d["a"] * d["b"], {"a": x, "b": 2.0}, saveable_args=False)[1](x),
        (1.0,), ValueError, r"not-saveable residuals.*args\[0\]\['a'\] of the .* <lambda> at .*args\[0\]\['b'\]",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "args", "error", "message"), REFUSED)
def test_errors_name_the_argument(call: Any, args: Any, error: type[Exception], message: str) -> None:
    """The rules are JAX's; the argument's path, the function and the line are added."""
    with pytest.raises(error, match=f"(?s){message}"):
        call(*args)


def test_a_pullback_does_not_keep_what_saveable_args_excludes() -> None:
    def f(d: Any, y: Any) -> Any:
        return d["a"] * lax.sin(d["b"] * y)

    d, y = {"a": f32(2), "b": f32(3)}, f32(5)
    _, whole = vjp(f, d, y)
    _, part = vjp(f, d, y, saveable_args=((True, False), False))
    assert str(part.args_res) == "[(Array(2., dtype=float32), NotSaveable()), NotSaveable()]"
    assert len(tree.leaves(part)) == len(tree.leaves(whole)) - 2
    wanted = whole(y)
    assert part.replace(args_res=[d, y])(y) == wanted
    restore = hloom.jit(lambda pull, d, y: pull.replace(args_res=[d, y])(y))
    assert tree.leaves(restore(part, d, y)) == tree.leaves(wanted)
    part.args_res[0] = d
    part.args_res[1] = y
    assert part(y) == wanted


def test_reduce_axes_is_refused_if_it_says_anything() -> None:
    for transform in (grad, value_and_grad):
        assert transform(lax.neg, reduce_axes=())(1.0) is not None
        with pytest.raises(NotImplementedError, match=r"lax\.psum"):
            transform(lax.neg, reduce_axes=("i",))
    with pytest.raises(NotImplementedError, match=r"lax\.psum"):
        vjp(lax.neg, 1.0, reduce_axes=("i",))


@pytest.mark.parametrize("transform", ["vjp", "linearize"])
def test_residuals_of_a_jitted_function_have_one_structure(transform: str) -> None:
    """So that a jitted function which takes them is not traced again."""
    forward = hloom.jit(lambda x: getattr(hloom, transform)(lambda y: jnp.sin(y) * y, x)[1])
    backward = hloom.jit(lambda linear, t: linear(t))
    first = backward(forward(2.0), 1.0)
    with hloom.no_tracing():
        again, other = backward(forward(2.0), 1.0), backward(forward(3.0), 1.0)
    assert hloom.tree.leaves(first) == hloom.tree.leaves(again) != hloom.tree.leaves(other)
    scaled = hloom.tree.map(lambda leaf: leaf, forward(2.0))
    assert hloom.tree.leaves(backward(scaled, 1.0)) == hloom.tree.leaves(first)
