"""make_jaxpr, the parts of jaxprs, interpreters, and the names around them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.core
import hloom.nn
import hloom.numpy as jnp
from hloom import lax
from hloom.extend import core

X = np.arange(1, 4, dtype=np.float32)


# ---- make_jaxpr


def test_static_arguments_keywords_and_shapes() -> None:
    def fun(x: Any, n: int, *, y: Any) -> dict[str, Any]:
        return {"a": x * n + y, "b": [y]}

    closed, shapes = hloom.make_jaxpr(fun, static_argnums=1, return_shape=True)(X, 3, y=1)
    assert str(closed) == (
        "{ lambda ; a:f32[3] b:i32[]. let\n    c:f32[3] = mul a 3.0:f32[]\n"
        "    d:f32[] = convert_element_type[new_dtype=float32 weak_type=False] b\n    e:f32[3] = add c d\n  in (e, b) }"
    )
    assert shapes == {
        "a": hloom.ShapeDtypeStruct((3,), np.float32),
        "b": [hloom.ShapeDtypeStruct((), np.int32, weak_type=True)],
    }
    assert [a.weak_type for a in closed.in_avals] == [False, True]
    assert [a.weak_type for a in closed.out_avals] == [False, True]


def test_constants_are_what_the_function_uses_from_outside() -> None:
    outer = jnp.arange(3.0) + 1
    closed = hloom.make_jaxpr(lambda x: x * outer + 2.0)(X)
    assert len(closed.jaxpr.constvars) == 1 and closed.consts[0] is outer and closed.literals is closed.consts
    assert [v.aval for v in closed.jaxpr.constvars] == [hloom.typeof(outer)]
    (result,) = hloom.core.eval_jaxpr(closed.jaxpr, closed.consts, X)
    np.testing.assert_array_equal(result, X * np.asarray(outer) + 2)
    with pytest.raises(TypeError, match="takes 1 constants and 1 arguments, and got 0 and 1"):
        hloom.core.eval_jaxpr(closed.jaxpr, [], X)


def test_an_interpreter_binds_what_equations_give() -> None:
    """As JAX's documents write one. A function with a derivative of its own is in `subfuns`."""

    def interpret(jaxpr: Any, consts: Any, *args: Any) -> list[Any]:
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, core.Literal) else env[atom]

        for eqn in jaxpr.eqns:
            params = eqn.primitive.get_bind_params(eqn.params)
            called.append((eqn.primitive.name, "subfuns" in params, eqn.primitive.call_primitive))
            found = eqn.primitive.bind(*map(read, eqn.invars), **params)
            env.update(zip(eqn.outvars, found if eqn.primitive.multiple_results else [found], strict=True))
        return [read(v) for v in jaxpr.outvars]

    def f(x: Any) -> Any:
        return hloom.nn.relu(x) * 2.0

    closed = hloom.make_jaxpr(f)(X)
    called: list[tuple[str, bool, bool]] = []
    np.testing.assert_array_equal(interpret(closed.jaxpr, closed.consts, X)[0], f(X))
    assert called == [("custom_jvp_call", True, False), ("mul", False, False)]
    again = hloom.make_jaxpr(lambda x: interpret(closed.jaxpr, closed.consts, x))(X)
    assert str(again) == str(closed)
    at_zero = hloom.grad(lambda x: interpret(closed.jaxpr, closed.consts, x)[0].sum())(X * 0)
    assert not np.any(at_zero), "by relu's own rule"


def test_values_of_an_outer_trace_are_constants_too() -> None:
    seen = []

    def outer(x: Any) -> Any:
        closed = hloom.make_jaxpr(lambda y: y * x)(X)
        seen.append(str(closed))
        return core.jaxpr_as_fun(closed)(X)[0]

    np.testing.assert_array_equal(hloom.jit(outer)(X), X * X)
    assert seen == ["{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = mul b a in (c,) }"]
    np.testing.assert_allclose(hloom.grad(lambda x: outer(x).sum())(jnp.asarray(X)), X)


def test_named_axes() -> None:
    def fun(x: Any) -> Any:
        return x / lax.psum(x, "rows")

    closed = hloom.make_jaxpr(fun, axis_env=[("rows", 2)])(X)
    text = "{ lambda ; a:f32[3]. let\n    b:f32[3] = psum[axes=('rows',) axis_index_groups=None] a\n"
    assert str(closed) == text + "    c:f32[3] = div a b\n  in (c,) }"
    rows = np.stack([X, X * 3])
    again = hloom.vmap(lambda x: core.jaxpr_as_fun(closed)(x)[0], axis_name="rows")(rows)
    np.testing.assert_allclose(again, rows / rows.sum(0))
    bound = hloom.vmap(lambda x: lax.psum_p.bind(x, axes=("rows",), axis_index_groups=None), axis_name="rows")(rows)
    np.testing.assert_allclose(bound, np.stack([rows.sum(0)] * 2))
    with pytest.raises(NameError, match="unbound axis name: rows"):
        hloom.make_jaxpr(fun)(X)


def test_a_batched_function() -> None:
    text = str(hloom.make_jaxpr(hloom.vmap(jnp.dot))(np.ones((4, 3), np.float32), np.ones((4, 3), np.float32)))
    assert "dimension_numbers=(([1], [1]), ([0], [0]))" in text


def test_bad_input_of_make_jaxpr() -> None:
    with pytest.raises(TypeError, match="make_jaxpr expects a function"):
        hloom.make_jaxpr(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"path x\. It is not an array"):
        hloom.make_jaxpr(jnp.sin)("x")
    with pytest.raises(ValueError, match=r"static_argnums has 3, but .* takes 1 positional"):
        hloom.make_jaxpr(lambda x: x, static_argnums=3)


def test_keys_are_shown_as_their_storage() -> None:
    closed = hloom.make_jaxpr(lambda k: hloom.random.bits(k, (2,)))(hloom.random.key(0))
    assert [str(a) for a in closed.in_avals] == ["uint32[2]"]
    key = hloom.random.key(7)
    (found,) = core.jaxpr_as_fun(closed)(key)
    np.testing.assert_array_equal(found, hloom.random.bits(key, (2,)))


def test_effects_name_the_op() -> None:
    text = "HloModule m\nENTRY e {\n  ROOT s = u64[2] rng-get-and-update-state(), delta=1\n}"
    from hloom.jaxpr.view import Views

    jaxpr = Views().of(hloom.hlo.parse(text).entry).jaxpr
    assert {str(e) for e in jaxpr.effects} == {"rng-get-and-update-state"} == {str(e) for e in jaxpr.eqns[0].effects}
    assert hloom.make_jaxpr(jnp.sin)(X).effects == core.no_effects == frozenset()


# ---- composites


@hloom.custom_jvp
def _square(x: Any) -> Any:
    return x * x


@_square.defjvp
def _square_jvp(primals: Any, tangents: Any) -> Any:
    return _square(*primals), 10 * tangents[0]


@hloom.custom_vjp
def _twice(x: Any) -> Any:
    return x * 2


_twice.defvjp(lambda x: (_twice(x), None), lambda _, g: (g * 7,))

_log_gap = core.Primitive("log_gap", lambda x, y, *, base: jnp.log(x - y) / base)

COMPOSITES: dict[str, tuple[Callable[..., Any], str, set[str]]] = {
    "jit": (hloom.jit(lambda x: x + 1), "jit", {"jaxpr", "name", "inline", "keep_unused", "donated_invars"}),
    "scan": (
        lambda x: lax.scan(lambda c, e: (c + e, c), x[0], x)[1],
        "scan",
        {"jaxpr", "length", "reverse", "num_consts", "num_carry", "unroll"},
    ),
    "while": (
        lambda x: lax.while_loop(lambda v: v.sum() < 30, lambda v: v * 2, x),
        "while",
        {"cond_jaxpr", "body_jaxpr", "cond_nconsts", "body_nconsts"},
    ),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), "cond", {"branches"}),
    "custom_jvp": (_square, "custom_jvp_call", {"call_jaxpr", "jvp_jaxpr_fun", "num_consts", "symbolic_zeros"}),
    "custom_vjp": (_twice, "custom_vjp_call", {"call_jaxpr", "fwd_jaxpr_thunk", "bwd", "num_consts", "symbolic_zeros"}),
    "checkpoint": (hloom.checkpoint(jnp.sin), "remat2", {"jaxpr", "prevent_cse", "policy", "differentiated"}),
    "library function": (hloom.nn.softplus, "custom_jvp_call", {"call_jaxpr"}),
    "user's primitive": (lambda x: _log_gap.bind(x + 2, x, base=2.0), "log_gap", {"base"}),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_composite_is_an_equation_that_differentiates_as_before(name: str) -> None:
    fun, primitive, params = COMPOSITES[name]
    closed = hloom.make_jaxpr(fun)(X)
    equation = closed.eqns[-1]
    assert equation.primitive.name == primitive and params <= equation.params.keys()
    assert all(isinstance(j, core.Jaxpr) for j in core.jaxprs_in_params(equation.params))
    again = core.jaxpr_as_fun(closed)
    np.testing.assert_allclose(again(X)[0], fun(X), rtol=1e-6)
    if name == "while":
        return  # has no reverse derivative
    x = jnp.asarray(X)
    np.testing.assert_allclose(
        hloom.grad(lambda v: again(v)[0].sum())(x), hloom.grad(lambda v: fun(v).sum())(x), rtol=1e-6
    )


def test_a_users_primitive_is_the_object_itself() -> None:
    (_, equation) = hloom.make_jaxpr(COMPOSITES["user's primitive"][0])(X).eqns
    assert equation.primitive is _log_gap and equation.params == {"base": 2.0}


def test_arrays_from_outside_are_constants_of_any_size() -> None:
    """As in JAX: so that a function has as many constants as it has when the arrays are traced."""
    outer = jnp.array(3), jnp.ones((1,))
    counts = []

    def f(x: Any, a: Any, b: Any) -> Any:
        y = jnp.array(5) * x + a * np.float32(2) + b + hloom.lax.cond(x[0] > 0, lambda: a * 1.0, lambda: 2.0)
        counts.append(len(hloom.make_jaxpr(lambda v: v * a + v * b + 1)(x).consts))
        return y

    closed = hloom.make_jaxpr(lambda x: f(x, *outer))(X)
    assert all(c is o for c, o in zip(closed.consts, outer, strict=True))
    assert str(closed).count("5.0:f32[]") == 1  # a number that the function makes is none
    np.testing.assert_allclose(hloom.core.eval_jaxpr(closed.jaxpr, closed.consts, X)[0], f(X, *outer), rtol=1e-6)
    hloom.jit(f)(X, *outer)
    hloom.jit(lambda x: f(x, *outer))(X)
    assert counts == [2] * 4


def test_a_jitted_function_within_keeps_its_scalars() -> None:
    """Its program serves later calls, too, and would take them as hidden arguments."""
    outer = jnp.array(3.0)
    f = hloom.jit(lambda x: x * outer)
    assert hloom.make_jaxpr(f)(X).consts == []
    np.testing.assert_array_equal(f(X), 3 * X)
    assert f.lower(X).as_text().count("parameter(") == 1


def test_linear_functions_have_as_many_constants_for_known_and_for_traced_factors() -> None:
    counts = []

    def f(x: Any, factor: Any) -> Any:
        value, push = hloom.linearize(lambda v: 2 * v * factor, x)
        counts.append(len(hloom.make_jaxpr(push)(x).consts))
        return value, push(x)

    for run in (lambda: f(1.5, jnp.array(3.0)), lambda: hloom.jit(f)(1.5, 3.0),
                lambda: hloom.jit(lambda x: f(x, jnp.array(3.0)))(1.5)):  # fmt: skip
        assert run() == (9, 9)
    assert counts == [1] * 3


def test_a_closed_over_value_of_a_loop_is_a_constant_of_it() -> None:
    def fun(x: Any, y: Any) -> Any:
        return lax.while_loop(lambda v: v.sum() < y.sum(), lambda v: v + y, x)

    (equation,) = hloom.make_jaxpr(fun)(X, X).eqns
    assert (equation.params["cond_nconsts"], equation.params["body_nconsts"]) == (1, 1)
    assert len(equation.invars) == 3 and len(equation.outvars) == 1


# ---- interpreters


def _inverted(jaxpr: Any, consts: Sequence[Any], *results: Any) -> list[Any]:
    """As JAX's tutorial on interpreters has it: equations backwards, by a registry of primitives."""
    env = dict(zip(jaxpr.outvars, results, strict=True))
    for equation in reversed(jaxpr.eqns):
        rule = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh}[equation.primitive]
        env[equation.invars[0]] = rule(env[equation.outvars[0]])
    return [env[v] for v in jaxpr.invars]


def test_an_interpreter_that_inverts() -> None:
    def fun(x: Any) -> Any:
        return jnp.exp(jnp.tanh(x))

    closed = hloom.make_jaxpr(fun)(1.0)

    def inverse(y: Any) -> Any:
        return _inverted(closed.jaxpr, closed.literals, y)[0]

    assert abs(float(inverse(fun(1.0))) - 1) < 1e-5
    assert abs(float(hloom.jit(inverse)(fun(1.0))) - 1) < 1e-5
    assert str(hloom.make_jaxpr(inverse)(2.0)) == "{ lambda ; a:f32[]. let b:f32[] = log a; c:f32[] = atanh b in (c,) }"


def test_a_jaxpr_that_is_rewritten() -> None:
    closed = hloom.make_jaxpr(lambda x: jnp.sin(x) + 1)(X)
    swapped = [e.replace(primitive=lax.cos_p) if e.primitive is lax.sin_p else e for e in closed.eqns]
    changed = core.ClosedJaxpr(closed.jaxpr.replace(eqns=swapped), closed.consts)
    np.testing.assert_allclose(core.jaxpr_as_fun(changed)(X)[0], np.cos(X) + 1, rtol=1e-6)
    with pytest.raises(TypeError, match="Jaxpr has no attribute nothing"):
        closed.jaxpr.replace(nothing=1)
    with pytest.raises(ValueError, match="has 0 constants, not 1"):
        core.ClosedJaxpr(closed.jaxpr, [X])


def test_a_jaxpr_that_is_built() -> None:
    aval = hloom.typeof(jnp.asarray(X))
    a, b = core.Var(aval), core.Var(aval)
    equation = core.new_jaxpr_eqn([a, core.Literal(np.float32(3))], [b], lax.mul_p, {"out_dtype": None})
    jaxpr = core.Jaxpr([], [a], [b], [equation])
    assert str(jaxpr) == "{ lambda ; a:f32[3]. let b:f32[3] = mul a 3.0:f32[] in (b,) }"
    np.testing.assert_array_equal(core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, []))(X)[0], X * 3)


BOUND: dict[str, tuple[Callable[[], Any], Any]] = {
    "argmin": (lambda: lax.argmin_p.bind(-X, axes=(0,), index_dtype=np.dtype(np.int32)), 2),
    "conj": (lambda: lax.conj_p.bind(X * 1j, input_dtype=np.complex64), X * -1j),
    "exp2": (lambda: lax.exp2_p.bind(X, accuracy=None), 2**X),
    "cumsum": (lambda: lax.cumsum_p.bind(X, axis=0, reverse=True), np.cumsum(X[::-1])[::-1]),
    "split": (lambda: lax.split_p.bind(X, sizes=(1, 2), axis=0)[1], X[1:]),
    "add": (lambda: lax.add_p.bind(X, 1.0), X + 1),
    "integer_pow": (lambda: lax.integer_pow_p.bind(X, y=3), X**3),
    "square": (lambda: lax.square_p.bind(X), X**2),
    "not": (lambda: lax.not_p.bind(X > 1), ~(X > 1)),
    "row and column": (lambda: lax.mul_p.bind(X[:, None], X[None]), X[:, None] * X[None]),
    "sort": (lambda: lax.sort_p.bind(-X, dimension=0, is_stable=True, num_keys=1)[0], np.sort(-X)),
    "sort by two keys": (
        lambda: lax.sort_p.bind(X * 0, -X, dimension=0, is_stable=True, num_keys=2)[1], np.sort(-X)
    ),
    "reduce_sum": (lambda: lax.reduce_sum_p.bind(X, axes=(0,)), X.sum()),
    "select_n": (lambda: lax.select_n_p.bind(np.array([2, 0, 1], np.int32), X, -X, X * 5), [5, 2, -3]),
    "all bits": (lambda: lax.reduce_and_p.bind(np.array([7, 14], np.uint8), axes=(0,)), 6),
    "signed bits": (lambda: lax.reduce_and_p.bind(np.array([-1, 14], np.int8), axes=(0,)), 14),
    "squeeze": (lambda: lax.squeeze_p.bind(X[None], dimensions=(0,)), X),
}


@pytest.mark.parametrize("name", BOUND)
def test_bind_takes_the_parameters_of_jax(name: str) -> None:
    run, wanted = BOUND[name]
    np.testing.assert_allclose(run(), wanted)


PRIMITIVES = [name for name in lax.__all__ if name.endswith("_p")]


@pytest.mark.parametrize("name", PRIMITIVES)
def test_each_primitive_that_is_offered_can_be_bound(name: str) -> None:
    primitive = getattr(lax, name)
    assert callable(primitive._function()) and primitive is pickle.loads(pickle.dumps(primitive))
    assert getattr(core.primitives, name) is primitive


def test_primitives_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    for name in PRIMITIVES:
        theirs = getattr(jax.lax, name, None)
        if theirs is None:  # the names are from 0.10.2
            assert jax.__version_info__ > (0, 10, 2), name
            continue
        assert getattr(lax, name).name == theirs.name, name
        assert getattr(lax, name).multiple_results == theirs.multiple_results, name


# ---- stages, types, and other names


def test_trace_of_a_jitted_function() -> None:
    def fun(x: Any, y: Any = 2) -> Any:
        return {"r": x * y}

    traced = hloom.jit(fun, donate_argnums=0).trace(X, y=3.0)
    assert traced.in_tree == traced.lower().in_tree and traced.out_tree == traced.lower().out_tree
    assert isinstance(traced.in_tree, hloom.tree.PyTreeDef) and isinstance(traced.out_tree, hloom.tree.PyTreeDef)
    assert str(traced.jaxpr) == "{ lambda ; a:f32[3] b:f32[]. let c:f32[3] = mul a b in (c,) }"
    assert traced.jaxpr is traced.jaxpr and traced.fun_name == "fun"
    assert traced.out_info == {"r": hloom.ShapeDtypeStruct((3,), np.float32)}
    (first,), rest = traced.args_info
    assert (first.shape, first.dtype, first.donated) == ((3,), np.float32, True) and not rest["y"].donated
    assert [str(a) for a in hloom.tree.leaves(traced.in_avals)] == ["float32[3]", "~float32[]"]
    assert str(traced.out_avals["r"]) == "float32[3]" and traced.donate_argnums == (0,)
    lowered = traced.lower()
    np.testing.assert_array_equal(lowered.compile()(jnp.array(X), y=3.0)["r"], X * 3)
    assert lowered.as_text() == hloom.jit(fun, donate_argnums=0).lower(X, y=3.0).as_text()


def test_typeof() -> None:
    assert str(hloom.typeof(X)) == "float32[3]" and hloom.typeof(1.0).weak_type
    assert repr(hloom.typeof(True)) == "ShapedArray(bool[])"
    seen = []
    hloom.jit(lambda x: seen.append(hloom.typeof(x)) or x)(X)
    assert seen[0] is hloom.typeof(X)
    with pytest.raises(TypeError, match=r"argument to typeof .*<class .str.>"):
        hloom.typeof("x")


def test_shape_dtype_struct() -> None:
    struct = hloom.ShapeDtypeStruct((2, 3), jnp.float32, sharding=None, vma=frozenset())
    assert (struct.shape, struct.dtype, struct.ndim, struct.size, len(struct)) == ((2, 3), np.float32, 2, 6, 2)
    assert struct.sharding is None and struct.vma == frozenset() and not struct.weak_type
    assert struct.update(shape=(4,)) == hloom.ShapeDtypeStruct((4,), np.float32)
    assert struct.update(dtype=jnp.int32, weak_type=True).weak_type
    assert hloom.ShapeDtypeStruct.like(1) == hloom.ShapeDtypeStruct((), np.int32, weak_type=True)
    with pytest.raises(ValueError, match=r"sharding should be an instance of `hloom\.sharding\.Sharding`"):
        hloom.ShapeDtypeStruct((2,), np.float32, sharding="x")
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        struct.update(colour=1)


def test_ensure_compile_time_eval() -> None:
    seen = []

    @hloom.jit
    def fun(x: Any) -> Any:
        with hloom.ensure_compile_time_eval():
            table = jnp.cumsum(jnp.ones(3))
            seen.append(bool(table[2] == 3))
        return x * table

    np.testing.assert_array_equal(fun(X), X * [1, 2, 3])
    assert seen == [True]

    @hloom.jit
    def mixed(x: Any) -> Any:
        with hloom.ensure_compile_time_eval():
            y, table = x + 1, hloom.jit(jnp.cumsum)(jnp.ones(3))
            seen.append(isinstance(y, hloom.core.Tracer) and not isinstance(table, hloom.core.Tracer))
            return hloom.grad(lambda z: (z * table).sum())(y) + hloom.vmap(lambda a: a * 2)(y)

    np.testing.assert_array_equal(mixed(X), (np.asarray(X) + 1) * 2 + [1, 2, 3])
    assert seen == [True, True]


def test_small_functions() -> None:
    assert core.valid_jaxtype(1.5) and core.valid_jaxtype(X) and not core.valid_jaxtype("x")
    assert core.concrete_or_error(int, jnp.asarray(3)) == 3 and core.concrete_or_error(None, 4) == 4
    with pytest.raises(hloom.errors.ConcretizationTypeError, match=r"(?s)is traced while tracing.*the size"):
        hloom.jit(lambda x: core.concrete_or_error(int, x, "the size"))(3)
    aval = hloom.core.ShapedArray((2, 3), np.float32)
    assert core.mapped_aval(3, 1, aval).shape == (2,) and core.unmapped_aval(5, 0, aval).shape == (5, 2, 3)
    states = [core.get_opaque_trace_state()]
    hloom.jit(lambda x: states.append(core.get_opaque_trace_state()) or x)(X)
    assert states[0] == core.get_opaque_trace_state() != states[1]
    assert isinstance(states[0], object) and core.find_top_trace() is core.find_top_trace([])
    hloom.jit(lambda x: states.append(isinstance(x, hloom.core.Tracer)) or x)(X + 1)
    assert len(list(core.subjaxprs(hloom.make_jaxpr(hloom.jit(jnp.sin))(X).jaxpr))) == 1
    assert core.gensym()(aval).aval is aval


# ---- callbacks


def test_callbacks_are_equations_with_jaxs_parameters_and_effects() -> None:
    log: list[Any] = []
    scalar = hloom.ShapeDtypeStruct((), np.float32)

    def fun(x: Any) -> Any:
        hloom.debug.print("at {}", x, ordered=True)
        hloom.debug.callback(lambda x: log.append(float(x)), x)
        hloom.experimental.io_callback(lambda x: log.append(-float(x)), None, x, ordered=True)
        y = hloom.experimental.io_callback(lambda x: 2 * x, scalar, x)
        return hloom.pure_callback(lambda x: 3 * x, scalar, y, vmap_method="sequential")

    closed = hloom.make_jaxpr(fun)(1.0)
    names = ["debug_print", "debug_callback", "io_callback", "io_callback", "pure_callback"]
    assert [e.primitive.name for e in closed.eqns] == names
    found = ["".join(map(str, e.effects)) for e in closed.eqns]
    assert found == ["OrderedDebug", "Debug", "OrderedIO", "IO", ""]
    assert {str(e) for e in closed.effects} == {"OrderedDebug", "Debug", "OrderedIO", "IO"}
    params = [{k: v for k, v in e.params.items() if k != "callback"} for e in closed.eqns]
    assert params[0] == {"fmt": "at {}", "ordered": True, "partitioned": False}
    assert params[3] == {"ordered": False, "result_avals": (hloom.typeof(np.float32(1)),), "sharding": None}
    assert params[4]["vmap_method"] == "sequential" and closed.eqns[4].params["callback"](np.float32(2)) == 6
    for run in (core.jaxpr_as_fun(closed), hloom.jit(core.jaxpr_as_fun(closed))):
        log.clear()
        assert run(2.0) == [12.0] and log == [2.0, -2.0]
    assert hloom.core.eval_jaxpr(closed, closed.consts, 1.0) == [6.0]  # the parts of its jaxpr are its own
    loop = hloom.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: (hloom.debug.print("{}", c), c)[1], x))(1.0)
    assert {str(e) for e in loop.effects} == {"Debug"}


def test_arrays_that_inner_functions_use_are_their_constants() -> None:
    scale, shift = jnp.array(5.0), jnp.arange(3.0)
    inner = hloom.jit(lambda y: y * scale + shift)
    closed = hloom.make_jaxpr(lambda x: (inner(x), inner(x) * scale, hloom.jit(lambda y: y + 2)(x)))(shift)
    first, second, *_, last = closed.eqns
    assert first.params["jaxpr"] is second.params["jaxpr"]
    assert [c.shape for c in first.params["jaxpr"].consts] == [(), (3,)] and len(first.invars) == 1
    assert closed.consts == [scale] and "add" in str(last.params["jaxpr"]) and not last.params["jaxpr"].consts
    x = jnp.ones(3)
    wanted = [x * 5 + shift, (x * 5 + shift) * 5, x + 2]
    for got, expected in zip(core.jaxpr_as_fun(closed)(x), wanted, strict=True):
        np.testing.assert_array_equal(got, expected)
    traced = hloom.make_jaxpr(lambda x, w: hloom.jit(lambda y: y * w + scale)(x))(x, x)
    (equation,) = traced.eqns  # beside a traced value all are operands, the first ones
    assert len(equation.invars) == 3 and equation.invars[0] is traced.jaxpr.invars[1] and len(traced.consts) == 1
    np.testing.assert_array_equal(core.jaxpr_as_fun(traced)(x, shift)[0], shift + 5)
    assert inner(x).tolist() == [5, 6, 7]
