"""Primitives that are defined as JAX's are, and the small tools around them: interpreters, linear_util, api_util."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import api_util, lax
from hloom.core import ShapedArray
from hloom.extend import core, linear_util
from hloom.extend.core import Primitive
from hloom.extend.mlir.dialects import chlo, stablehlo
from hloom.interpreters import ad, batching, mlir, partial_eval

CALLS: list[str] = []


def _scaled() -> Any:
    """x * y * k, linear in x and in y, with all rules."""
    p = Primitive("scaled")

    def impl(x: Any, y: Any, *, k: float) -> Any:
        CALLS.append("impl")
        return x * y * k

    p.def_impl(impl)
    p.def_abstract_eval(lambda x, y, *, k: ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, *, k: x * y * k, multiple_results=False))
    ad.defbilinear(
        p,
        lambda ct, x, y, *, k: p.bind(ct, y, k=k),
        lambda ct, x, y, *, k: p.bind(x, ct, k=k),
    )
    batching.defbroadcasting(p)
    return p


scaled = _scaled()


def test_outside_of_jit_the_implementation_runs_and_under_jit_the_lowering() -> None:
    CALLS.clear()
    assert scaled.bind(2.0, 3.0, k=0.5) == 3.0 and CALLS == ["impl"]
    assert hloom.jit(lambda x, y: scaled.bind(x, y, k=0.5))(2.0, 3.0) == 3.0 and CALLS == ["impl"]
    assert str(hloom.make_jaxpr(lambda x: scaled.bind(x, x, k=2.0))(1.0)).count("scaled[k=2.0]") == 1


@pytest.mark.parametrize("jit", [False, True])
def test_its_derivatives_and_batches(jit: bool) -> None:
    def f(x: Any, y: Any) -> Any:
        return scaled.bind(x, y, k=2.0)

    def on(g: Any) -> Any:
        return hloom.jit(g) if jit else g

    assert on(hloom.grad(f, argnums=(0, 1)))(3.0, 5.0) == (10.0, 6.0)
    assert on(lambda x, t: hloom.jvp(f, (x, 5.0), (t, 0.0))[1])(3.0, 1.0) == 10.0
    assert on(hloom.grad(hloom.grad(lambda x: f(x, x))))(3.0) == 4.0
    x, y = jnp.arange(6.0).reshape(2, 3), jnp.arange(3.0)
    np.testing.assert_array_equal(on(hloom.vmap(f, (0, None)))(x, y), x * y * 2)
    np.testing.assert_array_equal(on(hloom.vmap(f, (1, 0)))(x, y), (x * y * 2).T)
    np.testing.assert_array_equal(on(hloom.vmap(hloom.grad(lambda a: f(a, a))))(y), 4 * y)


def test_a_primitive_with_a_meaning_takes_rules_too() -> None:
    """The meaning says what it computes; the rules come from the tables, registered before or after `def_evaluate`."""
    p = Primitive("double", lambda x: 2 * x)
    ad.defjvp(p, lambda t, x: 100 * t)
    batching.defvectorized(p)
    assert p.bind(3.0) == 6 and hloom.jit(p.bind)(3.0) == 6 and hloom.grad(p.bind)(3.0) == 100
    assert hloom.vmap(p.bind)(jnp.arange(3)).tolist() == [0, 2, 4]
    evaluated = Primitive("other", lambda x: 2 * x)
    evaluated.def_evaluate(lambda x: 2 * x + 1)
    ad.defjvp(evaluated, lambda t, x: 100 * t)
    assert evaluated.bind(3.0) == 7 and hloom.grad(evaluated.bind)(3.0) == 100


def test_several_results_symbolic_zeros_and_positions() -> None:
    p = Primitive("both")
    p.multiple_results = True
    seen: list[Any] = []

    def both(x: Any, n: Any) -> Any:
        return [x + n, x * 2]

    def jvp(primals: Any, tangents: Any) -> Any:
        x, n = primals
        seen.append([type(t) is ad.Zero for t in tangents])
        t = ad.instantiate_zeros(tangents[0])
        return p.bind(x, n), [t, ad.Zero(x.aval.to_tangent_aval())]

    def batch(axis_size: int, axis_name: Any, _: None, operands: Any, positions: Any) -> Any:
        seen.append((axis_size, axis_name, tuple(positions)))
        x, n = operands
        return [jnp.moveaxis(x + n[..., None], 0, -1), x * 2], [1, 0]

    p.def_impl(both)
    p.def_abstract_eval(lambda x, n: [ShapedArray(x.shape, x.dtype)] * 2)
    mlir.register_lowering(p, mlir.lower_fun(both))
    ad.primitive_jvps[p] = jvp
    batching.axis_primitive_batchers[p] = batch
    _, tangents = hloom.jvp(lambda x: p.bind(x, jnp.int32(3)), (1.0,), (1.0,))
    assert tangents == [1.0, 0.0] and seen.pop() == [False, True]
    x, n = jnp.arange(6.0).reshape(3, 2), jnp.arange(3)
    first, second = hloom.jit(hloom.vmap(lambda x, n: p.bind(x, n), axis_name="i"))(x, n)
    np.testing.assert_array_equal(first, x + n[:, None])
    np.testing.assert_array_equal(second, x * 2)
    assert seen == [(3, "i", (0, 0))]


def test_a_transpose_rule_gets_what_is_unknown_as_undefined_primals() -> None:
    p = Primitive("twice")
    with pytest.raises(NotImplementedError, match="Evaluation rule for 'twice' not implemented"):
        p.impl(1.0)
    p.def_impl(lambda x: x + x)
    assert p.impl(1.5) == 3
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x + x, multiple_results=False))
    seen: list[Any] = []

    def transpose(ct: Any, x: Any) -> Any:
        seen.append((ad.is_undefined_primal(x), x.aval.shape))
        return [ct * 2]

    ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), p.bind(*tangents))
    ad.primitive_transposes[p] = transpose
    np.testing.assert_array_equal(hloom.grad(lambda x: p.bind(x).sum())(jnp.ones(2)), [2, 2])
    assert seen == [(True, (2,))]
    assert ad.get_primitive_transpose(p) is transpose
    with pytest.raises(NotImplementedError, match="no transpose rule was set for the primitive"):
        ad.get_primitive_transpose(lax.sin_p)


def test_what_is_wrong_says_so() -> None:
    p = Primitive("unlowered")
    p.def_impl(lambda x: x)
    assert p.bind(1.0) == 1.0
    with pytest.raises(hloom.errors.UnsupportedError, match=r"unlowered has no lowering.*mlir\.lower_fun"):
        hloom.jit(p.bind)(1.0)
    mlir.register_lowering(p, lambda ctx, x: [x], platform="gpu")
    with pytest.raises(hloom.errors.UnsupportedError, match="has no lowering"):
        hloom.jit(p.bind)(1.0)
    mlir.register_lowering(p, lambda ctx, x: [x.type])
    with pytest.raises(hloom.errors.UnsupportedError, match=r"those in hloom\.extend\.mlir\.dialects take arrays"):
        hloom.jit(p.bind)(1.0)
    p.def_abstract_eval(lambda x: ShapedArray((3,), x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x, multiple_results=False))
    with pytest.raises(TypeError, match=r"gives float32\[\], but its abstract evaluation says float32\[3\]"):
        hloom.jit(p.bind)(1.0)
    with pytest.raises(hloom.errors.UnsupportedError, match="sin is an operation of the library"):
        ad.primitive_jvps[lax.sin_p] = lambda primals, tangents: (primals, tangents)
    with pytest.raises(KeyError, match="no batching rule was set"):
        batching.primitive_batchers[lax.sin_p]


def test_a_lowering_combines_functions_of_the_module() -> None:
    kept = object()

    def rule(ctx: mlir.LoweringRuleContext, x: hloom.Array, *, k: int) -> list[hloom.Array]:
        assert ctx.primitive is p and [a.shape for a in (*ctx.avals_in, *ctx.avals_out)] == [(2,), (2,)]
        ctx.module_context.add_keepalive(kept)
        (doubled,) = mlir.lower_fun(lambda x: 2 * x, multiple_results=False)(ctx.replace(avals_out=None), x)
        callback = lambda x: (np.asarray(x) * k,)  # noqa: E731
        results, token, keepalive = mlir.emit_python_callback(
            ctx, callback, None, [doubled], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )
        assert token is keepalive is None
        return results

    p = Primitive("by_python")
    p.def_abstract_eval(lambda x, *, k: ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, rule)
    np.testing.assert_array_equal(hloom.jit(lambda x: p.bind(x, k=5))(jnp.arange(2.0)), [0, 10])
    assert hloom.jit(lambda x: p.bind(x, k=5)).lower(jnp.arange(2.0)).as_text().count("custom-call(") == 1
    with pytest.raises(ValueError, match="Partitioned callback not supported with return values"):
        mlir.emit_python_callback(None, len, None, [], [], [1], has_side_effect=False, partitioned=True)


def test_a_lowering_applies_operations_of_stablehlo() -> None:
    names = ("add", "multiply", "sine", "select", "clamp", "maximum", "not_", "power")
    assert {*names} <= {*dir(stablehlo)} and {"erf", "cosh", "asin"} <= {*dir(chlo)}
    for module in (stablehlo, chlo):
        stub = Path(str(module.__file__)).with_suffix(".pyi").read_text()
        assert re.findall(r"^(\w+): ", stub, re.MULTILINE) == module.__all__
    p = Primitive("mixed")
    p.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, lambda ctx, x: [stablehlo.add(chlo.erf(x), stablehlo.sine(x))])
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(hloom.jit(p.bind)(x), hloom.jit(lambda x: lax.erf(x) + jnp.sin(x))(x))
    slope = hloom.jit(hloom.grad(lambda x: p.bind(x).sum()))(x)[0]
    np.testing.assert_allclose(slope, 1 + 2 / np.sqrt(np.pi), rtol=1e-6)
    with pytest.raises(hloom.errors.ShapeError, match="add"):
        stablehlo.add(x, x[:2])
    mlir.register_lowering(p, lambda ctx, x: [stablehlo.transpose(x, permutation=[0])])
    with pytest.raises(hloom.errors.UnsupportedError, match="stablehlo has no transpose"):
        hloom.jit(p.bind)(x)


def test_lowerings_of_platforms() -> None:
    """Each branch has the rules of its platforms, in nested primitives, too: `times` has none for tpu there."""
    times = {n: Primitive(f"times_{n}") for n in (2, 3)}
    for n, p in times.items():
        p.def_abstract_eval(lambda x: x)
        rule = lambda ctx, x, n=n: [stablehlo.multiply(x, jnp.full_like(x, n))]  # noqa: E731
        for platform in ("cpu",) if n == 2 else ("cuda", "rocm"):
            mlir.register_lowering(p, rule, platform)
    outer = Primitive("outer")
    outer.def_abstract_eval(lambda x: x)
    for platform, n in (("cpu", 2), ("cuda", 3), ("rocm", 3)):
        mlir.register_lowering(outer, mlir.lower_fun(times[n].bind, multiple_results=False), platform)
    mlir.register_lowering(outer, mlir.lower_fun(lambda x: 10 * x, multiple_results=False))
    f = hloom.jit(outer.bind)
    assert f(4.0) == 8
    made = hloom.export.export(f, platforms=("rocm", "cpu", "tpu", "cuda"))(4.0)
    assert made.call(4.0) == 8 and made.mlir_module().count("stablehlo.multiply") == 4
    with pytest.raises(hloom.errors.UnsupportedError, match="times_2 has no lowering for the platform tpu"):
        hloom.export.export(hloom.jit(times[2].bind), platforms=("tpu",))(4.0)
    mlir.register_lowering(times[2], None, "cpu")
    with pytest.raises(hloom.errors.UnsupportedError, match="the primitive times_2 has no lowering, so jit"):
        hloom.jit(times[2].bind)(1.0)


def test_what_a_lowering_knows_of_its_program() -> None:
    seen: list[Any] = []
    p = Primitive("looking")
    p.def_abstract_eval(lambda x: x)

    def rule(ctx: mlir.LoweringRuleContext, x: Any) -> list[Any]:
        found = ctx.module_context
        seen.append((found.platforms, found.lowering_parameters.for_export))
        assert len(ctx.tokens_in) == 0
        with pytest.raises(ValueError, match="has no ordered effects"):
            ctx.set_tokens_out(mlir.TokenSet.create(["an effect"]))
        return [x]

    mlir.register_lowering(p, rule)
    f = hloom.jit(p.bind)
    f(1.0)
    hloom.export.export(f, platforms=("cpu", "tpu"))(1.0)
    assert seen == [(("cpu",), False), (("cpu", "tpu"), True)]


def test_a_key_is_a_key_in_the_rules() -> None:
    p = Primitive("draw")
    draw = lambda key: hloom.random.uniform(key, (2,))  # noqa: E731
    p.def_impl(draw)
    p.def_abstract_eval(lambda key: ShapedArray((2,), np.dtype(np.float32)))
    mlir.register_lowering(p, mlir.lower_fun(draw, multiple_results=False))
    key = hloom.random.key(1)
    np.testing.assert_array_equal(hloom.jit(p.bind)(key), p.bind(key))
    np.testing.assert_array_equal(hloom.vmap(p.bind)(hloom.random.split(key))[1], p.bind(hloom.random.split(key)[1]))


# linear_util, api_util


@linear_util.transformation
def _doubled(factor: Any, *args: Any) -> Any:
    result = yield [factor * x for x in args], {}
    yield 2 * result


@linear_util.transformation_with_aux
def _counted(*args: Any) -> Any:
    result = yield args, {}
    yield result, len(args)


def test_transformations_of_functions() -> None:
    fun = linear_util.wrap_init(lambda x, y, k=1: (x + y) * k, {"k": 10})
    assert _doubled(fun, 3).call_wrapped(1, 2) == 180
    counted, count = _counted(_doubled(fun, 3))
    with pytest.raises(linear_util.StoreException, match="not called yet"):
        count()
    assert counted.call_wrapped(1, 2) == 180 and count() == 2
    with pytest.raises(linear_util.StoreException, match="called twice"):
        counted.call_wrapped(1, 2)
    _, never = _counted(fun)
    assert linear_util.merge_linear_aux(count, never) == (True, 2)
    assert linear_util.merge_linear_aux(never, count) == (False, 2)
    twice = linear_util.wrap_init(lambda x: (2 * x,))
    assert hloom.extend.core.primitives.call_p.bind(3.0, subfuns=(twice,)) == [6]
    assert hloom.jit(lambda x: hloom.extend.core.primitives.call_p.bind(x, subfuns=(twice,)))(3.0) == [6]


def test_functions_of_trees_as_functions_of_leaves() -> None:
    def f(x: Any, *, y: Any) -> Any:
        return {"a": x[0] + y, "b": [x[1]]}

    leaves, structure = hloom.tree.flatten((((1, 2),), {"y": 3}))
    info = api_util.debug_info("test", f, ((1, 2),), {"y": 3})
    assert "test_interpreters.py" in info.func_src_info
    flat, out_tree = api_util.flatten_fun(linear_util.wrap_init(f, debug_info=info), structure)
    results = flat.call_wrapped(*leaves)
    assert hloom.tree.unflatten(out_tree(), results) == {"a": 4, "b": [2]}
    assert api_util.safe_map(lambda a, b: a + b, [1, 2], (3, 4)) == [4, 6]
    with pytest.raises(ValueError, match=r"different lengths \[2, 1\]"):
        api_util.safe_map(max, [1, 2], [3])
    assert api_util.shaped_abstractify(np.ones((2, 3), np.float32)) is ShapedArray((2, 3), np.float32)


def test_what_is_known_is_computed_and_the_rest_is_recorded() -> None:
    def f(x: Any, y: Any) -> Any:
        inner = hloom.jit(lambda a, b: (a * 2, a + b))(x, y)
        return [inner[0] + 1, inner[1], 7.0]

    known, unknown = partial_eval.PartialVal.known, partial_eval.PartialVal.unknown
    jaxpr, results, consts = partial_eval.trace_to_jaxpr_nounits(
        linear_util.wrap_init(f), [known(jnp.float32(3)), unknown(ShapedArray((2,), np.dtype(np.float32)))]
    )
    assert [r.is_known() for r in results] == [True, False, True]
    assert results[0].get_known() == 7.0 and results[1].get_aval().shape == (2,)
    (found,) = hloom.core.eval_jaxpr(jaxpr, consts, jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(found, [4.0, 5.0])


def test_traces_that_programs_look_at() -> None:
    tag, other = core.TraceTag(), core.TraceTag()
    assert tag is not other

    @hloom.jit
    def f(x: Any) -> Any:
        with core.take_current_trace() as trace:
            computed = jnp.arange(3).sum() + 1
            assert not isinstance(computed, hloom.core.Tracer)
            with core.set_current_trace(trace):
                assert isinstance(x + 1, hloom.core.Tracer)
        return x * computed

    assert f(2) == 8
    assert core.primal_dtype_to_tangent_dtype(np.dtype(np.int32)) == hloom.float0
    assert ShapedArray((2,), np.dtype(np.int32)).to_tangent_aval().dtype == hloom.float0
    weak, strong = ShapedArray((2,), np.dtype(np.float32), True), ShapedArray((2,), np.dtype(np.float32))
    assert weak.to_tangent_aval() is strong and weak.strip_weak_type() is strong
    assert strong.update_weak_type(True) is weak


def test_pythons_numbers_in_residuals_stay_numbers() -> None:
    seen: list[Any] = []

    @hloom.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    def backward(residuals: Any, ct: Any) -> Any:
        seen.append(residuals[1:])
        return (ct * 2 if residuals[1] is True else None,)

    f.defvjp(lambda x: (x * 2, (x, True, 3)), backward)
    assert hloom.grad(f)(1.0) == hloom.jit(hloom.grad(f))(1.0) == hloom.grad(hloom.jit(f))(1.0) == 2.0
    np.testing.assert_array_equal(hloom.vmap(hloom.grad(f))(jnp.ones(2)), [2, 2])
    np.testing.assert_array_equal(hloom.grad(lambda x: hloom.vmap(f)(x).sum())(jnp.ones(2)), [2, 2])
    assert all(kept == (True, 3) and type(kept[0]) is bool for kept in seen) and len(seen) == 5


def test_the_transpose_of_stop_gradient_can_be_set() -> None:
    def transposed() -> Any:
        return hloom.linear_transpose(lambda x: lax.stop_gradient(x) * 2 + x, 1.0)(3.0)[0]

    before = dict(ad.primitive_transposes)
    assert transposed() == 9.0
    try:
        ad.primitive_transposes[lax.stop_gradient_p] = lambda ct, x: (ct * 10,)
        assert transposed() == 63.0
        ad.primitive_transposes[lax.stop_gradient_p] = lambda ct, x: (ct,)
        assert transposed() == 9.0 and hloom.grad(lambda x: lax.stop_gradient(x) * 2 + x)(1.0) == 1.0
    finally:
        ad.primitive_transposes.clear()
        ad.primitive_transposes.update(before)


def test_a_function_whose_types_are_asked_for_may_return_types() -> None:
    struct = hloom.ShapeDtypeStruct((2,), np.float32)
    assert hloom.eval_shape(lambda x: {"a": struct, "b": x}, 1.0)["a"] == struct
    assert hloom.eval_shape(hloom.jit(lambda x: (struct, x * 2)), struct) == (struct, struct)
    with pytest.raises(TypeError, match="returned a value of type ShapeDtypeStruct"):
        hloom.jit(lambda: struct)()


def test_an_object_whose_name_is_no_text_can_be_transformed() -> None:
    class Twice:
        __name__ = 3
        __annotations__ = 4

        def __call__(self, x: Any) -> Any:
            return x * 2

    twice: Any = Twice()
    assert hloom.jit(twice)(1.0) == hloom.grad(twice)(1.0) == hloom.jacrev(twice)(1.0) == 2.0
    assert hloom.checkpoint(twice)(1.0) == hloom.vmap(twice)(jnp.ones(1))[0] == 2.0
    assert "mul" in str(hloom.make_jaxpr(twice)(1.0))


def test_arrays_are_split_at_indices_in_an_array() -> None:
    for at in (jnp.array([2]), jnp.array([1, 3]), np.array([2]), np.int64(2), jnp.int32(2), (1,)):
        found = jnp.split(jnp.arange(4.0), at)
        wanted = np.split(np.arange(4.0), np.asarray(at).tolist())
        assert [f.tolist() for f in found] == [w.tolist() for w in wanted]
