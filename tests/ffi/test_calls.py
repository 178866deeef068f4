"""`ffi_call` and `ffi_lowering`: their arguments, batches, layouts, text, errors; and calls on several devices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import ShapeDtypeStruct, ffi, lax
from hloom.errors import UnsupportedError
from hloom.experimental.layout import Layout
from hloom.extend.core import Primitive, jaxpr_as_fun
from hloom.interpreters import mlir

X = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(np.float32)


def geqrf(x: Any, **options: Any) -> Any:
    """A QR factorisation by LAPACK, on matrices that are stored column by column."""
    columns = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    results = [
        ShapeDtypeStruct(x.shape, x.dtype),
        ShapeDtypeStruct((*x.shape[:-2], min(x.shape[-2:])), x.dtype),
    ]
    return ffi.ffi_call(
        "lapack_sgeqrf_ffi", results, input_layouts=[columns], output_layouts=[columns, None],
        input_output_aliases={0: 0}, **options,
    )(x)  # fmt: skip


METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("on", [lambda f: f, hloom.jit])
def test_batches(method: str, on: Callable[..., Any], backend: str) -> None:
    factors, expected_tau = np.linalg.qr(X, mode="raw")
    expected = np.swapaxes(factors, 1, 2), expected_tau
    for axis in (0, 1):
        f = on(hloom.vmap(partial(geqrf, vmap_method=method), axis))
        for found, wanted in zip(f(np.moveaxis(X, 0, axis)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "shapes"),
    {
        "sequential": [(2,), (3,)], "expand_dims": [(4, 2), (1, 3)], "broadcast_all": [(4, 2), (4, 3)],
        "legacy_vectorized": [(4, 2), (3,)],
    }.items(),
)  # fmt: skip
def test_operands_without_the_batch(method: str, shapes: Any, register: Callable[..., None]) -> None:
    seen = []

    def record(x: Any, y: Any) -> Any:
        seen.append((x.shape, y.shape))
        return x

    register("records", record)
    f = ffi.ffi_call("records", ShapeDtypeStruct((2,), np.float32), vmap_method=method)
    found = hloom.vmap(f, (0, None))(jnp.arange(8.0).reshape(4, 2), jnp.zeros(3))
    assert seen[-1] == tuple(shapes)
    np.testing.assert_array_equal(found, np.arange(8.0).reshape(4, 2))


@pytest.fixture
def register() -> Any:
    """`hloom.register_custom_call`, undone after the test."""
    names = []

    def register(name: str, function: Any) -> None:
        hloom.register_custom_call(name, function)
        names.append(name)

    yield register
    for name in names:
        hloom.unregister_custom_call(name)


def test_functions_of_python_get_attributes_as_keywords(register: Callable[..., None], backend: str) -> None:
    given: dict[str, Any] = {}

    def function(x: Any, **attributes: Any) -> Any:
        given.update(attributes)
        return x + 1

    register("plus_one", function)
    x = jnp.arange(3.0)
    attributes = {
        "a": True, "b": 2, "c": 0.5, "d": "e", "f": np.uint8(7), "g": {"h": 1}, "i": np.array([1, 2], np.int8),
    }  # fmt: skip
    found = hloom.jit(lambda x: ffi.ffi_call("plus_one", x)(x, **attributes))(x)
    np.testing.assert_array_equal(found, [1, 2, 3])
    array = given.pop("i")
    assert array.dtype == np.int8 and array.tolist() == attributes.pop("i").tolist()
    assert given == attributes and type(given["f"]) is int


def test_the_text_of_a_call() -> None:
    f = ffi.ffi_call(
        "text", [ShapeDtypeStruct((2, 3), np.float32), ShapeDtypeStruct((), np.int64)], has_side_effect=True,
        input_output_aliases={0: 0}, input_layouts=[(1, 0)], output_layouts=[Layout((1, 0)), None],
    )  # fmt: skip
    text = hloom.jit(lambda x: f(x, b=1, a="c")).lower(X[0, :2, :]).as_text()
    (line,) = [line for line in text.splitlines() if "custom-call(" in line]
    assert "= (f32[2,3]{0,1}, s64[]) custom-call(" in line
    assert "operand_layout_constraints={f32[2,3]{0,1}}" in line and "custom_call_has_side_effect=true" in line
    assert "output_to_operand_aliasing={{0}: (0, {})}" in line
    assert 'backend_config={a = "c", b = 1 : i64}' in line


def test_a_call_of_an_older_version() -> None:
    f = ffi.ffi_call("old", ShapeDtypeStruct((), np.float32), custom_call_api_version=2, legacy_backend_config="12345")
    text = hloom.jit(lambda: f()).lower().as_text()
    assert "api_version=API_VERSION_STATUS_RETURNING" in text and 'backend_config="12345"' in text


F32 = ShapeDtypeStruct((2, 3), np.float32)
WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no type": (lambda x: ffi.ffi_call("t", None), "All elements of result_shape_dtypes.*position 0"),
    "second no type": (lambda x: ffi.ffi_call("t", (F32, ())), "All elements of result_shape_dtypes.*position 1"),
    "method": (lambda x: ffi.ffi_call("t", F32, vmap_method="all"), "vmap_method must be one of"),
    "version": (lambda x: ffi.ffi_call("t", F32, custom_call_api_version=5), "custom_call_api_version must be 1 to 4"),
    "legacy": (lambda x: ffi.ffi_call("t", F32, legacy_backend_config="1"), "The use of the legacy_backend_config"),
    "attributes": (
        lambda x: ffi.ffi_call("t", F32, custom_call_api_version=2)(x, a=1),
        "The use of ffi_call attributes requires",
    ),
    "number of layouts": (
        lambda x: ffi.ffi_call("t", F32, input_layouts=[])(x),
        r"The number of input arguments \(1\) must equal the number of input layouts \(0\)",
    ),
    "number of output layouts": (
        lambda x: ffi.ffi_call("t", [F32], output_layouts=[None, None])(x),
        r"The number of outputs \(1\) must equal the number of output layouts \(2\)",
    ),
    "layout": (lambda x: ffi.ffi_call("t", F32, input_layouts=[(0, 0)])(x), "none of 2 dimensions"),
    "tiles": (lambda x: ffi.ffi_call("t", F32, output_layouts=Layout((0, 1), ((8,),)))(x), "layouts with tiling"),
    "aliased input": (lambda x: ffi.ffi_call("t", F32, input_output_aliases={1: 0})(x), "with input index 1 outside"),
    "aliased output": (lambda x: ffi.ffi_call("t", F32, input_output_aliases={0: 1})(x), "with output index 1 outside"),
    "aliased types": (
        lambda x: ffi.ffi_call("t", ShapeDtypeStruct((2, 3), np.int32), input_output_aliases={0: 0})(x),
        "referring to an input with abstract value",
    ),
    "aliased layouts": (
        lambda x: ffi.ffi_call("t", F32, input_output_aliases={0: 0}, input_layouts=[(1, 0)])(x),
        "referring to an input with layout",
    ),
    "derivative": (
        lambda x: hloom.jvp(lambda x: ffi.ffi_call("t", F32)(x, a={"b": 1}), (x,), (x,)),
        "The FFI call to `t` cannot be differentiated",
    ),
}


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("on", [lambda f: f, lambda f: hloom.jit(f).lower])
def test_wrong_arguments(how: str, on: Callable[..., Any]) -> None:
    f, message = WRONG[how]
    with pytest.raises(ValueError, match=message):
        on(f)(jnp.ones((2, 3)))


def test_a_batch_without_a_method() -> None:
    with pytest.raises(NotImplementedError, match=r"supported for the ffi_call primitive.*vmap_method=None"):
        hloom.vmap(lambda x: ffi.ffi_call("t", ShapeDtypeStruct((), np.float32))(x))(jnp.arange(3.0))


def test_tokens_are_no_arrays(register: Callable[..., None]) -> None:
    """They are no values of the traced program; a function gets () for each, and gives it."""
    register("plus_one", lambda token, x: (token, x + 1))
    call = ffi.ffi_call("plus_one", (ffi.abstract_token, ShapeDtypeStruct((3,), np.float32)), vmap_method="expand_dims")
    for on in (lambda f: f, hloom.jit):
        token, found = on(lambda x: call(lax.create_token(), x))(jnp.arange(3.0))
        assert token == lax.create_token()
        np.testing.assert_array_equal(found, [1, 2, 3])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(hloom.vmap(lambda x: call(lax.create_token(), x)[1])(x), x + 1)
    with pytest.raises(ValueError, match="referring to an input with abstract value"):
        ffi.ffi_call("plus_one", ffi.abstract_token, input_output_aliases={0: 0})(jnp.arange(3.0))


def test_keys_are_passed_as_their_words(register: Callable[..., None]) -> None:
    register("words", lambda key: key[1])
    f = ffi.ffi_call("words", ShapeDtypeStruct((), np.uint32))
    assert hloom.jit(f)(hloom.random.key(7)) == f(hloom.random.key(7)) == 7


def test_equal_calls_share_a_program_outside_of_jit(library: ctypes.CDLL) -> None:
    """A handler's state is that of its program."""
    call = ffi.ffi_call("counter", ShapeDtypeStruct((), np.int32))
    assert [int(call(start=700)) for _ in range(3)] == [700, 701, 702]
    assert int(call(start=900)) == 900


def test_a_lowering(register: Callable[..., None]) -> None:
    register("scaled_by", lambda x, by: x * np.float32(by))
    scaled = Primitive("scaled")
    scaled.def_abstract_eval(lambda x, by: x)
    mlir.register_lowering(scaled, ffi.ffi_lowering("scaled_by", operand_layouts=[None], result_layouts=[(0, 1)]))
    f = hloom.jit(lambda x: scaled.bind(x, by=3))
    np.testing.assert_array_equal(f(X[0]), 3 * X[0])
    assert "-> f32[4,3]{0,1}" in f.lower(X[0]).as_text() or "f32[4,3]{0,1} custom-call" in f.lower(X[0]).as_text()

    build = ffi.build_ffi_lowering_function("scaled_by", backend_config={"by": 4})
    plain = Primitive("plain")
    plain.def_abstract_eval(lambda x: x)
    mlir.register_lowering(plain, lambda context, x: build(context, x).results)
    np.testing.assert_array_equal(hloom.jit(plain.bind)(X), 4 * X)


def test_wrong_lowerings() -> None:
    with pytest.raises(UnsupportedError, match="'result_types' is an argument for MLIR"):
        ffi.ffi_lowering("t", result_types=[])
    with pytest.raises(UnsupportedError, match=r"the extra attribute 'mhlo\.sharding'"):
        ffi.ffi_lowering("t", extra_attributes={"mhlo.sharding": "{replicated}"})
    with pytest.raises(ValueError, match="backend_config must be a dictionary"):
        ffi.ffi_lowering("t", backend_config="text")
    bare = Primitive("bare")
    mlir.register_lowering(bare, ffi.ffi_lowering("t"))
    with pytest.raises(UnsupportedError, match="the primitive needs def_abstract_eval"):
        hloom.jit(bare.bind).lower(X)


def test_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        folder = ffi.include_dir()
    except UnsupportedError:
        pytest.skip("jaxlib is not installed")
    assert {"c_api.h", "api.h", "ffi.h"} <= {p.name for p in Path(folder, "xla", "ffi", "api").iterdir()}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match="XLA's headers come with jaxlib, which is not installed"):
        ffi.include_dir()


def test_ahead_of_time_a_call_is_refused_by_name(library: ctypes.CDLL) -> None:
    f = hloom.jit(lambda x: ffi.ffi_call("scaled", x)(x, scale=np.float32(2)))
    with pytest.raises(UnsupportedError, match="'scaled': it is no target of hloom's own"):
        hloom.aot.compile(f, (ShapeDtypeStruct((3,), np.float32),))


def test_a_jaxpr_shows_and_runs_a_call(register: Callable[..., None]) -> None:
    register("scaled_by", lambda x, by: x * np.float32(by))

    def f(x: Any) -> Any:
        return ffi.ffi_call("scaled_by", ShapeDtypeStruct(x.shape, x.dtype), vmap_method="expand_dims")(x, by=3)

    jaxpr = hloom.make_jaxpr(f)(X)
    (equation,) = jaxpr.eqns
    assert equation.primitive.name == "ffi_call" and not equation.effects
    shown = [equation.params[name] for name in ("target_name", "attributes", "vmap_method")]
    assert shown == ["scaled_by", "{by = 3 : i64}", "expand_dims"]
    again = jaxpr_as_fun(jaxpr)
    np.testing.assert_array_equal(again(X)[0], 3 * X)
    np.testing.assert_array_equal(hloom.jit(hloom.vmap(again))(X[None])[0], 3 * X[None])
    acting = hloom.make_jaxpr(lambda: ffi.ffi_call("scaled_by", F32, has_side_effect=True)())()
    assert [str(e) for e in acting.effects] == ["FFI"]


def test_a_call_under_control_flow_and_checkpoint(register: Callable[..., None], backend: str) -> None:
    register("plus_one", lambda x: x + 1)
    x = jnp.zeros(3)

    def step(x: Any) -> Any:
        return ffi.ffi_call("plus_one", ShapeDtypeStruct(x.shape, x.dtype))(x)

    np.testing.assert_array_equal(hloom.jit(lambda x: lax.fori_loop(0, 5, lambda i, y: step(y), x))(x), [5, 5, 5])
    np.testing.assert_array_equal(hloom.jit(lambda x: lax.cond(x[0] > 0, step, lambda y: y - 1, x))(x), [-1, -1, -1])
    np.testing.assert_array_equal(hloom.checkpoint(step)(x), [1, 1, 1])
    np.testing.assert_array_equal(lax.scan(lambda c, _: (step(c), c[0]), x, None, 4)[1], [0, 1, 2, 3])


def test_a_function_that_is_registered_anew_is_called(register: Callable[..., None]) -> None:
    register("changes", lambda x: x + 1)
    f = ffi.ffi_call("changes", ShapeDtypeStruct((), np.float32))
    program = hloom.jit(f)
    assert f(1.0) == program(1.0) == 2
    hloom.register_custom_call("changes", lambda x: x + 2, replace=True)
    assert f(1.0) == 3  # a program keeps its function
    assert program(1.0) == 2
