"""Exported functions here: fields, calls, derivatives, files, platforms, sizes. `test_export_jax.py` has JAX's side."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.element_type import ElementType
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.custom_call import CustomCallAttributes
from hloom.hlo.shape import Shape
from hloom.tracer.core import bind_declared

import hloom
import hloom.numpy as jnp
from hloom import export, lax
from hloom.dtypes import float0

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 7


def exported(
    f: Callable[..., Any], *args: Any, order: int = 0, named: dict[str, Any] | None = None, **options: Any
) -> export.Exported:
    """The exported function, out of its bytes. `named`: its keyword arguments."""
    made = export.export(hloom.jit(f), **options)(*args, **(named or {}))
    read = export.deserialize(made.serialize(vjp_order=order))
    for field in dataclasses.fields(made):
        own, other = getattr(made, field.name), getattr(read, field.name)
        if field.name != "_get_vjp" and "avals" not in field.name:
            assert own == other, field.name
    assert [str(a) for a in made.in_avals + made.out_avals] == [str(a) for a in read.in_avals + read.out_avals]
    return read


def same(found: Any, wanted: Any, rtol: float = 1e-6) -> None:
    assert hloom.tree.structure(found) == hloom.tree.structure(wanted)
    for f, w in zip(hloom.tree.leaves(found), hloom.tree.leaves(wanted), strict=True):
        assert f.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(f), np.asarray(w), rtol=rtol, atol=1e-6)


def test_fields() -> None:
    def scaled(x: Any, *, by: Any) -> Any:
        return {"y": x * by, "n": [x.sum(), None]}

    found = exported(scaled, X, named={"by": np.float32(2)})
    assert (found.fun_name, found.platforms, found.nr_devices) == ("scaled", ("cpu",), 1)
    assert found.in_tree == hloom.tree.structure(((X,), {"by": 1}))
    assert found.out_tree == hloom.tree.structure({"y": 1, "n": [1, None]})
    assert [str(a) for a in found.in_avals] == ["float32[4,3]", "float32[]"]
    assert [str(a) for a in found.out_avals] == ["float32[]", "float32[4,3]"]
    assert (found.calling_convention_version, found.module_kept_var_idx) == (10, (0, 1))
    assert (found.uses_global_constants, found.ordered_effects, found.unordered_effects) == (False, (), ())
    assert str(found) == "Exported(fun_name=scaled, ...)" and not found.has_vjp()
    text = found.mlir_module()
    assert "func.func public @main(" in text and "jax.uses_shape_polymorphism = false" in text
    assert found.mlir_module(serialized=False).name == "builtin.module"
    same(found.call(X, by=np.float32(3)), scaled(jnp.array(X), by=jnp.float32(3)))


W = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "captured arrays": lambda x: jnp.tanh(x @ W) + jnp.arange(3.0),
    "nested jit": lambda x: hloom.jit(jnp.sin)(x) + hloom.nn.softmax(x),
    "loops": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 1.5 + i, x) + lax.scan(lambda c, r: (c + r, c), x[0], x)[1],
    "branches": lambda x: lax.cond(x.sum() > 1, jnp.sin, jnp.cos, x),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: 2 * c, x),
    "sort": lambda x: (jnp.sort(x, axis=0), jnp.argsort(-x, axis=1), lax.top_k(x, 2)),
    "of MHLO": lambda x: (lax.erf(x), jnp.arcsinh(x), jnp.cosh(x), jnp.arccos(x / 2)),
    "factorisations": lambda x: (jnp.linalg.svd(x)[1], jnp.linalg.inv(x.T @ x + jnp.eye(3)), jnp.linalg.qr(x)[1]),
    "random": lambda x: x + hloom.random.normal(hloom.random.key(3), (4, 3)),
    "updates": lambda x: x.at[1:3].add(2.0)[::-1, 1:],
    "dtypes": lambda x: (x.astype(jnp.bfloat16), x.astype(jnp.int8), x > 1, x.astype(jnp.complex64) * 1j),
    "windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME"),
    "convolution": lambda x: lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), "SAME"),
    "ragged products": lambda x: lax.ragged_dot(x, jnp.ones((2, 3, 2)), jnp.array([1, 3])),
    "cumulative": lambda x: (jnp.cumsum(x, axis=0), lax.cummax(x, axis=1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_give_what_the_function_gives(name: str) -> None:
    f = FUNCTIONS[name]
    found = exported(f, X)
    same(found.call(X), hloom.jit(f)(X), 1e-5)


def test_calls_in_other_transformations() -> None:
    f = lambda x: jnp.sin(x) * x  # noqa: E731
    call = exported(f, X[0], order=2).call
    same(hloom.jit(call)(X[0]), f(X[0]))
    same(hloom.vmap(call)(X), f(X))
    same(hloom.grad(lambda x: call(x).sum())(X[0]), hloom.grad(lambda x: f(x).sum())(X[0]))
    second = [hloom.grad(lambda x, g=g: hloom.grad(lambda x: g(x).sum())(x).sum())(X[0]) for g in (call, f)]
    same(*second)
    assert hloom.eval_shape(call, X[0]) == hloom.eval_shape(f, X[0])
    again = exported(lambda x: call(call(x)), X[0])
    same(again.call(X[0]), f(f(X[0])), 1e-5)
    with pytest.raises(ValueError, match="No VJP is available"):
        hloom.grad(lambda x: again.call(x).sum())(X[0])


def test_cotangents_of_integers() -> None:
    def f(n: Any, x: Any) -> Any:
        return 2 * n.T, x.T * x.T

    n = np.arange(6, dtype=np.int32).reshape(2, 3)
    read = exported(f, n, X, order=2)
    (rn, rx), pull = hloom.vjp(read.call, n, X)
    _, own = hloom.vjp(f, n, X)
    cotangents = np.zeros(rn.shape, float0), jnp.ones_like(rx)
    found, wanted = pull(cotangents), own(cotangents)
    assert found[0].dtype == float0 and found[0].shape == (2, 3)
    same(found[1], wanted[1])
    _, twice = hloom.vjp(pull, cotangents)
    _, own_twice = hloom.vjp(own, cotangents)
    same(twice(found)[0][1], own_twice(wanted)[0][1])


Pair = collections.namedtuple("Pair", "first second")
export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")


def test_containers() -> None:
    ordered = collections.OrderedDict(b=X, a=X + 1)
    read = exported(lambda d, p: (d, Pair(p.second, [p.first, None])), ordered, Pair(X, {"k": X}))
    same(read.call(ordered, Pair(X, {"k": 2 * X})), (ordered, Pair({"k": 2 * X}, [X, None])))
    with pytest.raises(TypeError, match="dictionaries with string keys"):
        exported(lambda d: d[1], {1: X})
    other = collections.namedtuple("Other", "x")
    with pytest.raises(ValueError, match=r"Cannot serialize PyTreeDef containing an unregistered type .*Other"):
        exported(lambda o: o.x, other(X))
    with pytest.raises(ValueError, match="Duplicate serialization registration for type"):
        export.register_namedtuple_serialization(Pair, serialized_name="tests.Another")
    with pytest.raises(ValueError, match=r"Duplicate serialization registration for serialized_name `tests.Pair`"):
        export.register_namedtuple_serialization(other, serialized_name="tests.Pair")
    with pytest.raises(ValueError, match="If `from_children` is not present"):
        export.register_pytree_node_serialization(
            other, serialized_name="o", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None
        )
    with pytest.raises(ValueError, match=r"Use `hloom.export.register_pytree_node_serialization`"):
        export.register_namedtuple_serialization(str, serialized_name="s")


@pytest.mark.parametrize("name", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_keys(name: str) -> None:
    key = hloom.random.key(7, impl=name)
    read = exported(lambda k: (hloom.random.split(k, 3), hloom.random.uniform(k, (2,))), key)
    keys, values = read.call(key)
    assert keys.dtype == key.dtype and keys.shape == (3,)
    same(hloom.random.key_data(keys), hloom.random.key_data(hloom.random.split(key, 3)))
    same(values, hloom.random.uniform(key, (2,)))


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "shape": (lambda e: e.call(X[:3], b=X), r"Shape mismatch for args\[0\].shape\[0\] \(expected same constant\)"),
    "keyword": (lambda e: e.call(X, b=X[:, :2]), r"Shape mismatch for kwargs\['b'\].shape\[1\]"),
    "rank": (lambda e: e.call(X[0], b=X), r"Rank mismatch for args\[0\]: expected \(4, 3\) and called with \(3,\)"),
    "dtype": (lambda e: e.call(X.astype(np.int32), b=X), r"Dtype mismatch for args\[0\]"),
    "structure": (lambda e: e.call(X, X, b=X), "must have the same pytree structure"),
    "container": (lambda e: e.call([X], b=X), r"args\[0\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    read = exported(lambda a, *, b: a + b, X, named={"b": X})
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        call(read)


def test_what_cannot_be_exported() -> None:
    with pytest.raises(ValueError, match="Function to be exported must be the result of `jit`"):
        export.export(lambda x: x)
    with pytest.raises(NotImplementedError, match="serialization of host_callbacks is not yet implemented"):
        export.export(hloom.jit(lambda x: hloom.pure_callback(np.sin, x, x)))(X)
    ref = hloom.new_ref(1.0)
    with pytest.raises(NotImplementedError, match="mutable arrays"):
        export.export(hloom.jit(lambda x: x + ref[...]))(X)
    with pytest.raises(hloom.errors.UnsupportedError, match="rules for lowering"):
        export.export(hloom.jit(jnp.sin), _override_lowering_rules=())
    for version in (8, 11):
        hloom.config.update("jax_export_calling_convention_version", version)
        try:
            with pytest.raises(ValueError, match=rf"calling convention version {version} is outside the range"):
                export.export(hloom.jit(jnp.sin))(X)
        finally:
            hloom.config.update("jax_export_calling_convention_version", 10)


def test_custom_calls_need_a_word() -> None:
    shape = Shape.array(ElementType.F32, (4, 3))
    f = hloom.jit(lambda x: bind_declared(Opcode.CUSTOM_CALL, [x], CustomCallAttributes("tests.doubled"), shape) + 1)
    with pytest.raises(ValueError, match="Cannot serialize code with custom calls whose targets have no compatib"):
        export.export(f)(X)
    hloom.register_custom_call("tests.doubled", lambda x: 2 * x)
    try:
        for name in ("tests.doubled", "ALL"):
            made = export.export(f, disabled_checks=[export.DisabledSafetyCheck.custom_call(name)])(X)
            same(made.call(X), 2 * X + 1)
    finally:
        hloom.unregister_custom_call("tests.doubled")


def test_donated_arguments() -> None:
    made = export.export(hloom.jit(lambda x: x + 1, donate_argnums=0))(X)
    assert "tf.aliasing_output = 0 : i32" in made.mlir_module()
    same(hloom.jit(lambda x: made.call(x) + x)(X), 2 * X + 1)
    with pytest.raises(NotImplementedError, match="either all or no lowering platforms should support donation"):
        export.export(hloom.jit(lambda x: x + 1, donate_argnums=0), platforms=("cpu", "other"))(X)


# ---- platforms


def by_platform(x: Any) -> Any:
    return lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x + 2, default=lambda x: x + 3)


def test_several_platforms() -> None:
    f = lambda x: hloom.jit(by_platform)(x) + lax.fori_loop(0, 2, lambda _, c: by_platform(c), x)  # noqa: E731
    read = exported(f, X, platforms=("tpu", "cpu", "cuda"))
    text = read.mlir_module()
    assert '@main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"}' in text
    assert read.uses_global_constants
    same(read.call(X), f(X))
    nested = exported(lambda x: read.call(x) * 2, X, platforms=("cuda", "cpu"))
    same(nested.call(X), 2 * f(X))
    assert exported(lambda x: read.call(x), X).uses_global_constants


def test_another_platform() -> None:
    with pytest.raises(ValueError, match=r"Function 'by_platform' was exported for platforms '\('tpu',\)'"):
        exported(by_platform, X, platforms=("tpu",)).call(X)
    checks = [export.DisabledSafetyCheck.platform()]
    same(exported(by_platform, X, platforms=("tpu",), disabled_checks=checks).call(X), X + 2)


# ---- sizes


def test_a_program_for_all_sizes_compiles_nothing_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    from hloom.numba_backend.runtime import compile as compiler

    def f(x: Any) -> Any:
        return hloom.nn.softmax(jnp.tanh(x @ W)) + jnp.mean(x, axis=0)

    (b,) = export.symbolic_shape("b")
    read = exported(f, hloom.ShapeDtypeStruct((b, 3), np.float32))
    rows = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    same(read.call(rows[:5]), hloom.jit(f)(rows[:5]), 1e-5)  # rows fewer than 5 are written out in the kernel's code

    def refuse(kernels: Any) -> Any:
        raise AssertionError(f"{len(kernels)} kernels are compiled")

    with monkeypatch.context() as patched:
        patched.setattr(compiler, "compile_kernels", refuse)
        found = {n: read.call(rows[:n]) for n in (6, 7, 16, 33, 64)}
    for n, y in found.items():
        same(y, hloom.jit(f)(rows[:n]), 1e-5)


SIZES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "elementwise": ("b, c", lambda x: jnp.where(x > 0.5, x, 0) + x.shape[0]),
    "shapes": ("b, c", lambda x: (x.reshape(-1), x.T, jnp.concatenate([x, x]), jnp.broadcast_to(x, (2, *x.shape)))),
    "slices": ("b, c", lambda x: (x[1:], x[:, ::2], x[::-1], jnp.pad(x, ((1, 2), (0, 1))))),
    "sizes": ("b, c", lambda x: jnp.ones((x.shape[0] // 2, x.shape[1] * 2 + x.shape[0] % 3))),
    "ranges": ("b, c", lambda x: jnp.arange(x.shape[0] * x.shape[1])),
    "products": ("b, c", lambda x: (x @ x.T, jnp.einsum("ij,ij->j", x, x))),
    "reductions": ("b, c", lambda x: (x.sum(0), x.max(), jnp.mean(x, 1), jnp.argmax(x, 1))),
    "gather": ("b, c", lambda x: (x[jnp.array([1, 0])], x.at[0].set(7.0))),
    "elements that may be out of bounds": (
        "b, c", lambda x: (
            x.at[1].set(7.0), x.at[3, -2].add(7.0), x.at[-4].set(7.0, mode="clip"), x.at[:, 4].get(mode="fill"),
            x.at[..., -5].get(mode="fill", fill_value=2.0),
        )
    ),
    "functions": ("b, c", lambda x: hloom.jit(hloom.nn.softmax)(x) + lax.fori_loop(0, 2, lambda _, y: y * 2, x)),
    "convolution": ("b, c", lambda x: lax.conv(x[None, None], jnp.ones((1, 1, 2, 2)), (2, 2), "SAME")),
    "cumulative": ("b, c", lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0, reverse=True))),
    "pooling": ("b, c", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 1), "SAME")),
    "windows as large as the array": (
        "b, c", lambda x: lax.reduce_window(x, 0.0, lax.add, (x.shape[0], 1), (1, 1), "VALID")
    ),
    "windows of two arrays": (
        "b, c", lambda x: lax.reduce_window(
            (x, x + 1), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (2, 2), (1, 1), "SAME"
        )
    ),
    "random bits": (
        "b, c", lambda x: lax.rng_bit_generator(
            jnp.arange(4, dtype=jnp.uint32), x.shape, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY
        )
    ),
    "largest": ("b, c", lambda x: lax.top_k(x, x.shape[1] - 1)),
    "functions of MHLO": ("b, 3", lambda x: (hloom.scipy.special.erf(x), lax.top_k(x, 2))),
    "expressions": ("2*b, c + 1", lambda x: x.reshape(2, -1, x.shape[1])),
}


@pytest.mark.parametrize("name", SIZES)
def test_symbolic_sizes(name: str) -> None:
    sizes, f = SIZES[name]
    read = exported(f, hloom.ShapeDtypeStruct(export.symbolic_shape(sizes), np.float32))
    assert read.uses_global_constants and "@_wrapped_jax_export_main(" in read.mlir_module()
    draws = np.random.default_rng(1)
    for shape in ((4, 3), (6, 3)) if sizes.endswith("3") else ((4, 3), (6, 2), (2, 5)):
        x = draws.normal(size=shape).astype(np.float32)
        same(read.call(x), hloom.jit(f)(x), 1e-5)


def test_symbolic_sizes_with_platforms_and_calls() -> None:
    spec = hloom.ShapeDtypeStruct(export.symbolic_shape("b, c"), np.float32)
    inner = exported(lambda x: (by_platform(x), x.sum(0)), spec, platforms=("tpu", "cpu"))
    outer = exported(lambda x: inner.call(x), spec, platforms=("cpu", "tpu"))
    same(outer.call(X), (X + 1, X.sum(0)))
    derived = exported(lambda x: (x**2).sum(0), spec, order=1)
    same(hloom.grad(lambda x: derived.call(x).sum())(X), 2 * X)


def test_symbolic_sizes_with_calls_of_functions_with_the_same_names() -> None:
    """Both programs have a function for their window, which a custom call names."""
    def window(x: Any, op: Callable[..., Any], start: float) -> Any:
        return lax.reduce_window(x, start, op, (x.shape[0],), (1,), "SAME")

    spec = hloom.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32)
    inner = exported(lambda x: window(x, lax.add, 0.0), spec)
    outer = exported(lambda x: (inner.call(x), window(x, lax.max, -np.inf)), spec)
    same(outer.call(X[:, 0]), (window(X[:, 0], lax.add, 0.0), window(X[:, 0], lax.max, -np.inf)))


CONSTRAINTS: list[tuple[str, tuple[int, ...], str]] = [
    ("3, a, a+8", (3, 4, 13), r"Found inconsistency between dimension size args\[0\].shape\[2\] \(= 13\)"),
    ("3, 4, 6*a", (3, 4, 13), r"Division had remainder 1 when computing the value of 'a'"),
    ("3, 4, a+1", (3, 4, 1), r"Expected value >= 1 for dimension variable 'a'"),
    ("3, 4, 12", (3, 4, 13), r"Shape mismatch for args\[0\].shape\[2\] \(expected same constant\)"),
]


@pytest.mark.parametrize(("sizes", "shape", "message"), CONSTRAINTS)
def test_sizes_that_do_not_fit(sizes: str, shape: tuple[int, ...], message: str) -> None:
    read = exported(lambda x: x + 1, hloom.ShapeDtypeStruct(export.symbolic_shape(sizes), np.float32))
    with pytest.raises(ValueError, match=message):
        read.call(np.zeros(shape, np.float32))


def test_constraints_of_the_scope() -> None:
    spec = hloom.ShapeDtypeStruct(export.symbolic_shape("b", constraints=["b >= 4"]), np.float32)
    made = export.export(hloom.jit(lambda x: x + 1))(spec)
    for one in (made, export.deserialize(made.serialize())):  # a file has them as assertions of the program
        same(one.call(np.zeros(4, np.float32)), np.ones(4, np.float32))
        with pytest.raises(ValueError, match="Input shapes do not match the symbolic shape constraint b >= 4"):
            one.call(np.zeros(3, np.float32))


def test_scopes_do_not_mix() -> None:
    specs = [hloom.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32) for _ in range(2)]
    with pytest.raises(ValueError, match=r"Invalid mixing of symbolic scopes when exporting (.|\n)*args\[1\]"):
        export.export(hloom.jit(jnp.add))(*specs)


# ---- files


def test_damaged_files_raise_errors() -> None:
    """Each byte of a file, changed: an error that is declared, or an exported function."""
    good = bytes(export.export(hloom.jit(lambda x: {"a": jnp.sin(x)}))(X).serialize(vjp_order=1))
    draws = np.random.default_rng(0)
    expected = (ValueError, NotImplementedError, TypeError, hloom.errors.HloError)
    refused = 0
    for k in range(0, len(good), 7):
        data = bytearray(good)
        data[k] = draws.integers(256)
        try:
            export.deserialize(data).call(X)
        except expected:
            refused += 1
    assert refused > len(good) // 70
    for size in range(0, len(good), 101):
        with pytest.raises(expected):
            export.deserialize(good[:size]).call(X)


def test_no_file() -> None:
    with pytest.raises(TypeError, match="deserialize takes the bytes"):
        export.deserialize("text")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no flatbuffer of this schema"):
        export.deserialize(b"not a file of an exported function")


def test_disabled_checks() -> None:
    checks = [export.DisabledSafetyCheck.custom_call("some"), export.DisabledSafetyCheck.platform()]
    read = exported(lambda x: x, X, disabled_checks=checks)
    assert list(read.disabled_safety_checks) == checks and checks[0].is_custom_call() == "some"
    assert {repr(c) for c in checks} == {"custom_call:some", "platform"} and checks[1].is_custom_call() is None
