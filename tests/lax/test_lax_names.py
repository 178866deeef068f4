"""Primitives by JAX's names and parameters, marks, tokens, composites, ragged exchanges, and `hloom.extend`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import parse

import hloom
import hloom.extend.core as extend
import hloom.extend.random
import hloom.numpy as jnp
from hloom import lax
from hloom.extend.core import primitives

RNG = np.random.default_rng(11)
X = RNG.standard_normal((4, 4)).astype(np.float32)
S = X + X.T
WINDOW = {"window_dimensions": (2, 1), "window_strides": (1, 1), "padding": ((0, 1), (0, 0))}
DILATION = {"base_dilation": (1, 1), "window_dilation": (1, 1)}
SVD = {"algorithm": None, "subset_by_index": None}
EIGH = {"algorithm": None, "sort_eigenvalues": True, "subset_by_index": None}

BINDS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("tile_p", (X,), {"reps": (2, 1)}),
    ("stack_p", (X, S), {"axis": 1}),
    ("unstack_p", (X,), {"axis": 1}),
    ("top_k_p", (X,), {"k": 2, "axis": 1}),
    ("add_jaxvals_p", (X, S), {}),
    ("select_and_scatter_add_p", (S, X), {"select_prim": "ge_p", **WINDOW}),
    ("select_and_scatter_add_p", (S, X), {"select_prim": "le_p", **WINDOW}),
    ("select_and_gather_add_p", (S, X), {"select_prim": "ge_p", **WINDOW, **DILATION}),
    ("threefry2x32_p", tuple(np.arange(n, n + 3, dtype=np.uint32) for n in range(4)), {}),
    ("cholesky_p", (X @ X.T + 4 * np.eye(4, dtype=np.float32),), {}),
    ("cholesky_update_p", (np.eye(4, dtype=np.float32), X[0]), {}),
    ("eigh_p", (S,), {"lower": True, **EIGH}),
    ("hessenberg_p", (X,), {}),
    ("householder_product_p", (np.tril(X, -1), X[0] / 9), {}),
    ("lu_p", (X,), {}),
    ("lu_pivots_to_permutation_p", (np.array([1, 2, 2, 3], np.int32),), {"permutation_size": 4}),
    ("ormqr_p", (np.tril(X, -1), X[0] / 9, S), {"left": False, "transpose": True}),
    ("qr_p", (X,), {"pivoting": True, "full_matrices": True, "use_magma": None}),
    ("schur_p", (X,), {"compute_schur_vectors": False, "sort_eig_vals": False, "select_callable": None}),
    ("svd_p", (X,), {"compute_uv": False, "full_matrices": False, **SVD}),
    ("symmetric_product_p", (X, S), {"alpha": 2.0, "beta": 0.5}),
    ("tridiagonal_p", (S,), {"lower": True}),
    ("tridiagonal_solve_p", (X[0], X[1] + 9, X[2], X), {"perturb_singular": False}),
]


def primitive_of(module: Any, name: str) -> Any:
    for space in (module.lax, module.lax.linalg, module.extend.core.primitives):
        if name in dir(space):
            return getattr(space, name)
    raise AssertionError(name)


@pytest.mark.parametrize(("name", "operands", "params"), BINDS, ids=[b[0] for b in BINDS])
def test_primitives_bind_what_those_of_jax_bind(name: str, operands: Any, params: dict[str, Any]) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax.extend.core.primitives")

    def results(module: Any) -> Any:
        own = {k: primitive_of(module, v) if k == "select_prim" else v for k, v in params.items()}
        primitive = primitive_of(module, name)
        if name == "top_k_p" and module is not hloom and module.__version_info__ > (0, 10, 2):
            own["is_stable"] = True
        found = primitive.bind(*operands, **own)
        assert isinstance(found, list | tuple) == primitive.multiple_results
        return found if primitive.multiple_results else [found]

    ours, theirs = results(hloom), results(jax)
    assert len(ours) == len(theirs)
    if name in ("cholesky_p", "symmetric_product_p"):  # one triangle is promised
        ours, theirs = [np.tril(o) for o in ours], [np.tril(t) for t in theirs]
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.abs(a) if name == "eigh_p" else a, np.abs(b) if name == "eigh_p" else b,
                                   rtol=2e-4, atol=2e-5)  # fmt: skip


FACTORS = ["eig", "eigh", "hessenberg", "lu", "qr", "schur", "svd", "tridiagonal"]


@pytest.mark.parametrize("name", FACTORS)
def test_factorisations_are_shown_as_jax_shows_them(name: str) -> None:
    jax = pytest.importorskip("jax")
    function = getattr(lax.linalg, name)
    jaxpr = hloom.make_jaxpr(function)(S)
    (equation,) = [e for e in jaxpr.eqns if e.primitive is getattr(lax.linalg, f"{name}_p")]
    (theirs,) = [e for e in jax.make_jaxpr(getattr(jax.lax.linalg, name))(S).eqns if str(e.primitive) == name]
    assert set(equation.params) == set(theirs.params)
    for result, expected in zip(hloom.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, S), hloom.tree.leaves(function(S))):
        np.testing.assert_array_equal(result, expected)


def test_collectives_bind_with_the_parameters_of_jax() -> None:
    def element(x: Any) -> Any:
        gathered = lax.all_gather_p.bind(
            x, all_gather_dimension=0, axis_name="i", axis_index_groups=None, axis_size=3, tiled=False
        )
        moved = lax.ppermute_p.bind(x, axis_name="i", perm=((0, 1), (1, 2), (2, 0)))
        swapped = lax.all_to_all_p.bind(
            x, axis_name="i", split_axis=0, concat_axis=0, axis_index_groups=None, tiled=True
        )
        return gathered.sum(0), moved, swapped, lax.axis_index_p.bind(axis_name="i")

    x = np.arange(9.0, dtype=np.float32).reshape(3, 3)
    total, moved, swapped, index = hloom.vmap(element, axis_name="i")(x)
    np.testing.assert_array_equal(total, np.broadcast_to(x.sum(0), (3, 3)))
    np.testing.assert_array_equal(moved, np.roll(x, 1, 0))
    np.testing.assert_array_equal(swapped, x.T)
    np.testing.assert_array_equal(index, [0, 1, 2])


def test_random_primitives() -> None:
    key = hloom.random.key(3)
    keys = hloom.random.split(key, 3)
    impl = hloom.extend.random.threefry_prng_impl
    seeds = primitives.random_seed_p.bind(np.arange(2), impl=impl)
    assert seeds.dtype == key.dtype and seeds.shape == (2,)
    np.testing.assert_array_equal(hloom.random.key_data(seeds[1]), hloom.random.key_data(hloom.random.key(1)))
    split = primitives.random_split_p.bind(keys, shape=(2,))
    np.testing.assert_array_equal(
        hloom.random.key_data(split[2]), hloom.random.key_data(hloom.random.split(keys[2], 2))
    )
    folded = primitives.random_fold_in_p.bind(keys, np.uint32(5))
    np.testing.assert_array_equal(
        hloom.random.key_data(folded[1]), hloom.random.key_data(hloom.random.fold_in(keys[1], 5))
    )
    bits = primitives.random_bits_p.bind(key, bit_width=16, shape=(3,))
    np.testing.assert_array_equal(bits, hloom.random.bits(key, (3,), "uint16"))


def test_approximate_top_k_is_exact() -> None:
    rest = {"reduction_dimension": 0, "recall_target": 0.9, "reduction_input_size_override": -1}
    values, places = lax.approx_top_k_p.bind(X, k=2, is_max_k=False, aggregate_to_topk=True, **rest)
    np.testing.assert_array_equal(values, np.sort(X, 0)[:2])
    np.testing.assert_array_equal(places, np.argsort(X, 0)[:2])


def test_placing_primitives() -> None:
    device = hloom.devices()[0]
    (there,) = lax.device_put_p.bind(X, devices=(device,), srcs=(None,), copy_semantics=(None,))
    sharding = hloom.sharding.SingleDeviceSharding(device)
    same = lax.sharding_constraint_p.bind(there, sharding=sharding, layout=None, context_mesh=None)
    assert there.devices() == same.devices() == {device}
    np.testing.assert_array_equal(same, X)


# ---- marks and tokens


def test_a_sink_keeps_what_computes_its_operand() -> None:
    def f(x: Any, *, keep: bool) -> Any:
        lax.dce_sink({"a": x + 1}, prevent_mlir_dce=keep)
        return x * 2

    kept = hloom.jit(f, static_argnames="keep").lower(1.0, keep=True).compile().as_text()
    assert "dce_sink" in kept and "add" in kept
    dropped = hloom.jit(f, static_argnames="keep").lower(1.0, keep=False).compile().as_text()
    assert "dce_sink" not in dropped and "add" not in dropped
    kept_f = hloom.jit(lambda x: f(x, keep=True))
    assert (kept_f(3.0), f(3.0, keep=True), hloom.grad(kept_f)(3.0)) == (6.0, 6.0, 2.0)
    np.testing.assert_array_equal(hloom.vmap(kept_f)(jnp.arange(3.0)), [0.0, 2.0, 4.0])


def test_staged_values_are_of_the_current_trace() -> None:
    assert isinstance(lax.stage(1.0), hloom.Array) and lax.stage(1.0).weak_type
    seen = []

    def f(key: Any) -> Any:
        seen.extend([lax.stage(1.0), lax.stage(key), lax.stage_p.bind(np.ones(2, np.float32))])
        return seen[0] + seen[2], seen[1]

    values, key = hloom.jit(f)(hloom.random.key(0))
    assert all(isinstance(v, hloom.core.Tracer) for v in seen) and seen[0].weak_type
    np.testing.assert_array_equal(values, [2.0, 2.0])
    assert key == hloom.random.key(0)


def test_tokens_pass_through_everything() -> None:
    token = lax.create_token_p.bind()
    out, after = hloom.jit(lambda x, t: (x + 1, lax.after_all(t, lax.create_token(x))))(1.0, token)
    assert out == 2.0 and isinstance(after, extend.Token) and after == token
    (x, t), _ = lax.scan(lambda c, _: ((c[0] * 2, lax.after_all_p.bind(c[1])), None), (1.0, token), length=3)
    assert x == 8.0 and t.block_until_ready() == token
    with pytest.raises(TypeError, match="Arguments to after_all must be tokens"):
        lax.after_all(token, 1.0)


# ---- composites


def tangent(x: Any, **_: Any) -> Any:
    return lax.sin(x) / lax.cos(x)


ATTRIBUTES: list[tuple[str, Any, str]] = [
    ("integer", 1, "1 : i64"),
    ("boolean", True, "true"),
    ("number", 1.5, "1.500000e+00 : f64"),
    ("digits", 0.123456789, "0.123456789 : f64"),
    ("not_a_number", np.float32(np.nan), "0x7FC00000 : f32"),
    ("numpy_number", np.int32(3), "3 : i32"),
    ("string", "bar", '"bar"'),
    ("type", np.dtype(np.float32), "f32"),
    ("numbers", (1, 2), "[1, 2]"),
    ("splat", np.zeros((1, 2), np.float32), "dense<0.000000e+00> : tensor<1x2xf32>"),
    ("infinite", np.array([1.5, np.inf], np.float32), "dense<[1.500000e+00, 0x7F800000]> : tensor<2xf32>"),
    ("small_type", np.ones(2, ml_dtypes.float8_e4m3fn), "dense<1.000000e+00> : tensor<2xf8E4M3FN>"),
    ("array", np.arange(3), "dense<[0, 1, 2]> : tensor<3xi64>"),
    ("table", np.array([[1, 0], [0, 1]], bool), "dense<[[true, false], [false, true]]> : tensor<2x2xi1>"),
]


@pytest.mark.parametrize(("name", "value", "text"), ATTRIBUTES, ids=[a[0] for a in ATTRIBUTES])
def test_a_composite_writes_its_attributes_as_jax_does(name: str, value: Any, text: str) -> None:
    def program(module: Any) -> Any:
        named = module.lax.composite(lambda x, **_: module.lax.sin(x) / module.lax.cos(x), "my.tangent", version=2)
        return module.jit(lambda x: named(x, **{name: value}, left_out=None))

    our_text = program(hloom).lower(np.float32(1)).as_text()
    marks = f'composite.attributes={{{name} = {text}}},composite.name="my.tangent",composite.version="2"'
    assert f"is_composite=true, frontend_attributes={{{marks}}}" in our_text
    assert marks in str(parse(our_text))
    jax = pytest.importorskip("jax")
    assert marks in program(jax).lower(np.float32(1)).as_text(dialect="hlo")


def test_a_composite_is_its_decomposition() -> None:
    named = lax.composite(tangent, "my.tangent")
    assert named.__name__ == "tangent"
    x = np.linspace(0, 1, 5, dtype=np.float32)
    for found in (named(x), hloom.jit(named)(x), hloom.vmap(named)(x)):
        np.testing.assert_allclose(found, np.tan(x), rtol=1e-6)
    np.testing.assert_allclose(hloom.vmap(hloom.grad(hloom.jit(named)))(x), 1 / np.cos(x) ** 2, rtol=1e-6)
    pair = lax.composite(lambda tree, scale=1: {"out": (tree["a"] * scale, tree["b"])}, "a.pair")
    found = hloom.jit(lambda t: pair(t, scale=3))({"a": x, "b": 2.0})
    np.testing.assert_array_equal(found["out"][0], x * np.float32(3))
    assert lax.composite(lambda: jnp.float32(1), "my.one")() == 1.0
    jaxpr = hloom.make_jaxpr(lax.composite(tangent, "sin", version=3))(x)  # not JAX's sin
    (equation,) = jaxpr.eqns
    assert (str(equation.primitive), equation.params["name"], equation.params["version"]) == ("composite", "sin", 3)
    np.testing.assert_allclose(hloom.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x)[0], np.tan(x), rtol=1e-6)


def test_a_composite_refuses_attributes_that_text_cannot_have() -> None:
    with pytest.raises(hloom.errors.UnexpectedTracerError, match=r"(?s)Found a JAX Tracer as an attribute.*numpy"):
        hloom.jit(lambda x: lax.composite(tangent, "t")(x, k=x))(1.0)
    with pytest.raises(TypeError, match="the attribute 'k' of the composite 't' cannot be a object"):
        lax.composite(tangent, "t")(1.0, k=object())


# ---- an exchange of slices


@pytest.mark.parametrize("size", [1, 3])
def test_ragged_all_to_all(size: int) -> None:
    """Against the definition: each element's slices, one after the other, in order of their senders."""
    rng = np.random.default_rng(size)
    sends = rng.integers(0, 3, (size, size)).astype(np.int32)
    operand = rng.standard_normal((size, 3 * size, 2)).astype(np.float32)
    starts = np.cumsum(sends, 1, dtype=np.int32) - sends
    targets = np.cumsum(sends, 0, dtype=np.int32) - sends
    output = np.full((size, 3 * size, 2), -1, np.float32)
    expected = output.copy()
    for s in range(size):
        for r in range(size):
            n = sends[s, r]
            expected[r, targets[s, r] :][:n] = operand[s, starts[s, r] :][:n]

    def exchange(*arrays: Any) -> Any:
        return lax.ragged_all_to_all(*arrays, axis_name="i")

    mapped = hloom.jit(hloom.vmap(exchange, axis_name="i"))
    arrays = (operand, output, starts, sends, targets, sends.T)
    np.testing.assert_array_equal(mapped(*arrays), expected)
    with pytest.raises(hloom.errors.OperandError, match="send_sizes must be integer type"):
        mapped(operand, output, starts, sends.astype(np.float32), targets, sends.T)


# ---- extend, core, dtypes


def test_generators_of_a_program() -> None:
    """One that is made of threefry's parts draws its numbers."""
    own = hloom.extend.random.threefry_prng_impl
    impl = hloom.extend.random.define_prng_impl(
        key_shape=own.key_shape, seed=own.seed, split=own.split, random_bits=own.random_bits, fold_in=own.fold_in,
        name="mine", tag="me",
    )  # fmt: skip
    key = hloom.random.key(7, impl=impl)
    assert str(key.dtype) == "key<me>" and hloom.extend.random.seed_with_impl(impl, 7) == key
    assert hloom.random.key_impl(key) is impl and hloom.random.key_impl(hloom.random.key(7)) == "threefry2x32"
    first = hloom.random.split(key)[0]
    expected = hloom.random.normal(hloom.random.split(hloom.random.key(7))[0], (3,))
    np.testing.assert_array_equal(hloom.random.normal(first, (3,)), expected)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_the_cipher(shape: tuple[int, ...]) -> None:
    theirs = pytest.importorskip("jax.extend.random")
    counters, pair = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape), np.array([3, 9], np.uint32)
    found = hloom.extend.random.threefry_2x32(pair, counters)
    np.testing.assert_array_equal(found, theirs.threefry_2x32(pair, counters))
    with pytest.raises(TypeError, match="threefry_2x32 requires uint32 arguments"):
        hloom.extend.random.threefry_2x32(pair, counters.astype(np.int32))


def test_check_jaxpr() -> None:
    jaxpr = hloom.make_jaxpr(lambda x: lax.scan(lambda c, _: (c @ c, None), lax.sin(x), length=2)[0])(X).jaxpr
    extend.check_jaxpr(jaxpr)
    with pytest.raises(extend.JaxprTypeError, match="is not defined"):
        extend.check_jaxpr(jaxpr.replace(eqns=jaxpr.eqns[1:]))
    with pytest.raises(extend.JaxprTypeError, match="is bound twice"):
        extend.check_jaxpr(jaxpr.replace(eqns=[jaxpr.eqns[0], *jaxpr.eqns]))
    wrong = jaxpr.eqns[0].replace(outvars=[extend.Var(hloom.core.ShapedArray((3,), np.float32))])
    with pytest.raises(extend.JaxprTypeError, match=r"binds .*\(3,\).*, but its results are .*\(4, 4\)"):
        extend.check_jaxpr(jaxpr.replace(eqns=[wrong], outvars=wrong.outvars))


def test_what_is_being_traced() -> None:
    def state() -> tuple[Any, ...]:
        return (
            extend.unsafe_am_i_under_a_jit_DO_NOT_USE(), extend.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
            extend.nonempty_axis_env_DO_NOT_USE(), extend.unsafe_get_axis_names_DO_NOT_USE(),
        )  # fmt: skip

    seen = []

    def f(x: Any) -> Any:
        seen.append(state())
        with hloom.core.eval_context():
            assert isinstance(jnp.ones(2) + 1, hloom.Array)
        return x

    hloom.vmap(f, axis_name="i")(jnp.ones(2))
    hloom.jit(f)(1.0)
    assert seen == [(False, True, True, ["i"]), (True, False, False, [])]
    assert state() == (False, False, False, [])
    assert (hloom.core.max_dim(2, 3), hloom.core.min_dim(2, 3)) == (3, 2)


NAMES = ["bool", "int2", "int4", "uint4", "int8", "uint64", "float16", "bfloat16", "float8_e4m3fn", "float32"]
NAMES += ["float64", "complex64", "complex128", "float4_e2m1fn"]


@pytest.mark.parametrize("name", NAMES)
def test_bits_and_scalar_types(name: str) -> None:
    jax = pytest.importorskip("jax")
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    with jax.enable_x64(True):
        assert hloom.dtypes.itemsize_bits(dtype) == jax.dtypes.itemsize_bits(dtype)
        assert hloom.dtypes.scalar_type_of(dtype) is jax.dtypes.scalar_type_of(dtype)
        assert hloom.dtypes.scalar_type_of(np.zeros(2, dtype)) is jax.dtypes.scalar_type_of(np.zeros(2, dtype))


def test_no_dtypes() -> None:
    with pytest.raises(ValueError, match="dtype cannot be None"):
        hloom.dtypes.itemsize_bits(None)
    with pytest.raises(ValueError, match="no dtype of numbers"):
        hloom.dtypes.itemsize_bits("datetime64[s]")
    with pytest.raises(TypeError, match="Invalid scalar value"):
        hloom.dtypes.scalar_type_of(np.array("x"))


# ---- arguments and corners of known functions


@pytest.mark.parametrize(("dtypes", "out"), [(("int32", "float32"), "float16"), (("float32", "float32"), "bfloat16"),
                                             (("int8", "int8"), "int32")])  # fmt: skip
def test_products_of_a_given_dtype(dtypes: tuple[str, str], out: str) -> None:
    x, y = (np.arange(1, 5).astype(d) * 40 for d in dtypes)
    dtype = np.dtype(getattr(ml_dtypes, out, out))
    found = lax.mul(x, y, out_dtype=dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x.astype(dtype) * y.astype(dtype))
    if dtype.kind == "f":
        gradient = hloom.grad(lambda a: lax.mul(a, a, out_dtype=dtype).sum().astype(np.float32))(np.float32(3))
        assert (gradient, gradient.dtype) == (6.0, np.float32)


@pytest.mark.parametrize(("shape", "axis"), [((0,), 0), ((3, 0), 1), ((3, 0), 0)])
def test_derivatives_of_sorting_nothing(shape: tuple[int, ...], axis: int) -> None:
    x = np.zeros(shape, np.float32)
    found, tangent = hloom.jvp(lambda v: lax.sort(v, dimension=axis), (x,), (x,))
    assert found.shape == tangent.shape == shape
    assert hloom.grad(lambda v: lax.sort(v, dimension=axis).sum())(x).shape == shape


def test_a_loop_over_numbers_that_are_differentiated() -> None:
    """The bounds are known under a derivative, and the counter has the derivative of its start."""

    def loop(x: Any) -> Any:
        return lax.fori_loop(x, x + 3.0, lambda i, total: total + i * i, x)

    value, gradient = hloom.value_and_grad(loop)(2.0)
    assert (value, gradient) == (2.0 + 4 + 9 + 16, 1.0 + 4 + 6 + 8)
    assert hloom.jvp(loop, (2.0,), (1.0,)) == (value, gradient)
    assert hloom.linearize(loop, 2.0)[1](1.0) == gradient
    assert hloom.grad(lambda x: lax.fori_loop(0.0, x, lambda i, c: c * 2, x))(3.0) == 8.0
    assert hloom.grad(hloom.jit(loop))(2.0) == gradient


GATHER = hloom.lax.GatherDimensionNumbers
SCATTER = hloom.lax.ScatterDimensionNumbers
INDEX_ERRORS: list[tuple[Any, tuple[int, ...] | None, str]] = [
    (GATHER((1,), (0, 0), (0,)), (1, 3), r"collapsed_slice_dims in gather op must not repeat, got \[0, 0\]"),
    (GATHER((1,), (1, 0), (0,)), (1, 3), r"collapsed_slice_dims in gather op must be sorted"),
    (GATHER((1,), (7,), (0,)), (1, 3), r"Invalid collapsed_slice_dims set in gather op; valid range is \[0, 2\)"),
    (GATHER((1,), (0,), (5,)), (1, 3), r"Invalid start_index_map mapping in gather op; valid range is \[0, 2\)"),
    (GATHER((1,), (0,), (0, 1)), (1, 3), r"Gather op has 2 elements in start_index_map .* of indices is 1\."),
    (GATHER((1,), (0,), (0,)), (1,), r"Gather op must have one slice size for every input dimension"),
    (GATHER((1,), (0,), (0,)), (1, 9), r"Slice size at index 1 in gather op is out of range"),
    (GATHER((1,), (0,), (0,)), (2, 3), r"only collapse slice dims with bound 1, but bound is 2 for index 0"),
    (GATHER((1,), (), (0,)), (1, 3), r"must either be a offset dimension or explicitly collapsed/batching"),
    (GATHER((), (0,), (0,), (1,), (1,)), (1, 1), r"cannot have the index vector dimension as a batching dimension"),
    (GATHER((), (0,), (0,), (1,), ()), (1, 1), r"Gather op requires equal numbers of operand_batching_dims and start"),
    (GATHER((), (0,), (0,), (1,), (0,)), (1, 1), r"operand batching dimensions and indices batching .* the same shape"),
    (GATHER((), (0, 1), (0,), (1,), (0,)), (1, 1), r"collapsed_slice_dims and operand_batching_dims in gather op must"),
    (SCATTER((1,), (3,), (0,)), None, r"Invalid inserted_window_dims set in scatter op; valid range is \[0, 2\)"),
    (SCATTER((1, 1), (), (0,)), None, r"update_window_dims in scatter op must not repeat"),
    (SCATTER((1,), (), (0,)), None, r"Scatter op has window of size 1; doesn't match operand of rank 2"),
    (SCATTER((1,), (0,), (0, 1)), None, r"Scatter op has 2 elements in scatter_dims_to_operand_dims"),
    (SCATTER((0,), (0,), (0,)), None, r"Bounds of the window dimensions of updates .* dimension 0 is 4, more than 3"),
    (SCATTER((0, 1), (), (0,)), None, r"Updates tensor must be of rank 3; got 2"),
]


@pytest.mark.parametrize(("numbers", "sizes", "text"), INDEX_ERRORS, ids=[e[2][:30] for e in INDEX_ERRORS])
def test_errors_of_indexing_name_the_dimension(numbers: Any, sizes: Any, text: str) -> None:
    x, indices = np.zeros((5, 3), np.float32), np.zeros((4, 1), np.int32)
    with pytest.raises(hloom.errors.OperandError, match=f"(?s){text}"):
        if sizes is None:
            lax.scatter(x, indices, np.zeros((4, 3), np.float32), numbers)
        else:
            lax.gather(x, indices, numbers, sizes)
