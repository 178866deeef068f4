"""Handlers of XLA's typed FFI in C: what they get, what they may call, and what becomes of their errors."""

from __future__ import annotations

import ctypes
import gc
import gzip
import os
import signal
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo.backend import get_compiler
from hloom.hlo.mlir.attribute_reader import read_attributes
from hloom.hlo.mlir.python_values import attribute_text, write_values
from hloom.hlo.targets import target_named
from hloom.hlo.text.parser import parse
from hloom.numba_backend.runtime.executor import Op
from hloom.numba_backend.runtime.threads import get_num_threads, set_num_threads
from hloom.numba_backend.stored_programs import key_of

import hloom
import hloom.numpy as jnp
from hloom import ShapeDtypeStruct, ffi, lax
from hloom.errors import CustomCallError, JaxRuntimeError, UnsupportedError

pytestmark = pytest.mark.usefixtures("library")
F32 = np.dtype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ON: dict[str, Callable[..., Any]] = {"eager": lambda f: f, "jit": hloom.jit}


SCALE = np.float32(2.5)


def scaled(x: Any, scale: Any = SCALE, **options: Any) -> Any:
    """`scale * x` by the handler."""
    return ffi.ffi_call("scaled", ShapeDtypeStruct(x.shape, x.dtype), **options)(x, scale=scale)


def call(name: str, shape: Any, dtype: Any, *args: Any, **attributes: Any) -> Any:
    """One result of a handler."""
    return ffi.ffi_call(name, ShapeDtypeStruct(shape, dtype))(*args, **attributes)


@pytest.mark.parametrize("on", ON)
def test_a_call(on: str, backend: str) -> None:
    found = ON[on](scaled)(jnp.array(X))
    assert found.dtype == F32
    np.testing.assert_array_equal(found, 2.5 * X)


def test_a_call_among_other_operations(backend: str) -> None:
    f = hloom.jit(lambda x: jnp.sum(scaled(x + 1) * 2, axis=0))
    np.testing.assert_array_equal(f(X), (5 * (X + 1)).sum(axis=0))


CODES_OF_TYPES = {
    "bool": 1, "int8": 2, "uint16": 7, "int32": 4, "int64": 5, "float16": 10, "bfloat16": 16, "complex64": 15,
    "float8_e4m3fn": 20,
}  # fmt: skip


@pytest.mark.parametrize("dtype", CODES_OF_TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (1, 2, 3, 4, 5)])
def test_a_handler_sees_type_and_sizes(dtype: str, shape: tuple[int, ...], backend: str) -> None:
    results = [ShapeDtypeStruct(shape, dtype), ShapeDtypeStruct((24,), np.int64)]
    given = "int32" if dtype == "int64" else dtype  # only results may have 64 bits by default
    out = ffi.ffi_call("described", results)(jnp.zeros(shape, given))[1]
    expected = [CODES_OF_TYPES[given], len(shape), *shape, CODES_OF_TYPES[dtype], len(shape), *shape, 5, 1, 24]
    assert np.asarray(out)[: len(expected)].tolist() == expected


@pytest.mark.parametrize("on", ON)
def test_a_handler_sees_tokens(on: str, backend: str) -> None:
    """In their places, as buffers without dimensions; nothing comes before the first one."""
    results = (ffi.abstract_token, ShapeDtypeStruct((13,), np.int64), ffi.abstract_token)
    for acts in (False, True):
        f = ffi.ffi_call("described_with_tokens", results, has_side_effect=acts)
        token = lax.create_token()
        first, found, last = ON[on](lambda x, f=f, token=token: f(x, token))(jnp.zeros((2, 3)))
        assert np.asarray(found).tolist() == [11, 2, 2, 3, 17, 0, 17, 0, 5, 1, 13, 17, 0]
        assert first == last == token


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_layouts_are_those_that_the_call_states(order: tuple[int, int], backend: str) -> None:
    """The handler copies bytes from an array in one order to an array in the other."""
    f = ffi.ffi_call(
        "copied", ShapeDtypeStruct((3, 2), np.float32), input_layouts=[order], output_layouts=(1, 0)
    )
    found = hloom.jit(lambda x: f(-x, width=4))(X)
    source = -X if order == (0, 1) else -X.T
    np.testing.assert_array_equal(found, source.reshape(2, 3).T)


ATTRIBUTES: dict[str, tuple[Any, str]] = {
    "bool": (True, "s1x01"),
    "int": (-2, "s5xfeffffffffffffff"),
    "float": (0.1, "s12x9a9999999999b93f"),
    "infinite": (float("-inf"), "s12x000000000000f0ff"),
    "nan": (np.float32("nan"), "s11x0000c07f"),
    "large": (1e22, "s12x" + np.float64(1e22).tobytes().hex()),
    "text": ('a "b" \\ \u2713', '"a "b" \\ \u2713"'),
    "u8": (np.uint8(200), "s6xc8"),
    "s16": (np.int16(-3), "s3xfdff"),
    "u64": (np.uint64(2**64 - 1), "s9xffffffffffffffff"),
    "f16": (np.float16(1.5), "s10x003e"),
    "bf16": (ml_dtypes.bfloat16(1.5), "s16xc03f"),
    "array": (np.array([1, 2], np.int32), "a4x0100000002000000"),
    "matrix": (np.array([[1.5], [np.inf]], np.float32), "a11x0000c03f0000807f"),
    "one": (np.array([7], np.int8), "a2x07"),
    "equal": (np.full(3, 7, np.int8), "a2x070707"),
    "none": (np.zeros(0, np.float32), "a11x"),
    "flags": (np.array([True, False]), "a1x0100"),
    "numpy_text": (np.str_("c"), '"c"'),
    "numpy_bytes": (np.bytes_(b"c"), '"c"'),
    "dictionary": ({"b": 1, "a": {"c": "d"}}, '{a:{c:"d";};b:s5x0100000000000000;}'),
    "empty": ({}, "{}"),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute(name: str, backend: str) -> None:
    value, expected = ATTRIBUTES[name]
    out = np.asarray(call("attributes_of", (120,), np.uint8, **{name: value})).tobytes()
    assert out.decode().rstrip() == f"{name}:{expected};"
    text = write_values({name: value})
    assert attribute_text(read_attributes(text)) == text


def test_attributes_are_sorted_by_name() -> None:
    out = np.asarray(call("attributes_of", (120,), np.uint8, b=True, a_b=True, ab=True, B=True)).tobytes()
    assert [part[:-6] for part in out.decode().rstrip().split(";")[:-1]] == ["B", "a_b", "ab", "b"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1j, "cannot be a complex"),
        (object(), "cannot be a object"),
        (None, "cannot be a NoneType"),
        (np.array(["a"]), "cannot be a ndarray"),
        ({1: 2}, "has the key 1: the keys of a dictionary must be strings"),
        ({"a": {2: 3}}, r"\['a'\] has the key 2"),
        ({"a": [object()]}, r"\['a'\] cannot be a object"),
    ],
)
def test_a_value_that_is_no_attribute(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"the attribute 'scale'.* ?{message}"):
        scaled(jnp.array(X), scale=value)


def test_attributes_of_text(backend: str) -> None:
    """MLIR's other forms, which JAX does not write."""
    text = """HloModule m
    ENTRY e {
      ROOT r = u8[60] custom-call(), custom_call_target="attributes_of", api_version=API_VERSION_TYPED_FFI,
        backend_config={a = array<i16: 1, -1>, b, c = dense<3> : tensor<2xui8>, d = 5 : index}
    }"""
    (found,) = hloom.run_hlo(text, backend=backend)
    assert found.tobytes().decode().rstrip() == "a:a3x0100ffff;b:s1x01;c:a6x0303;d:s5x0500000000000000;"


@pytest.mark.parametrize("config", ["{a = [1, 2]}", "{a = @symbol}", "{a = tensor<2xf32>}"])
def test_an_attribute_that_handlers_cannot_get(config: str, backend: str) -> None:
    text = f"""HloModule m
    ENTRY e {{
      ROOT r = u8[60] custom-call(), custom_call_target="attributes_of", api_version=API_VERSION_TYPED_FFI,
        backend_config={config}
    }}"""
    with pytest.raises(UnsupportedError, match=r"custom call 'attributes_of': the attribute 'a'"):
        hloom.run_hlo(text, backend=backend)


# ---- errors


CODES = {0: "OK", 3: "INVALID_ARGUMENT", 8: "RESOURCE_EXHAUSTED", 16: "UNAUTHENTICATED", 77: "code 77"}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("on", ON)
def test_the_error_of_a_handler(code: int, on: str, backend: str) -> None:
    f = ON[on](lambda: call("always_fails", (), np.float32, code=code))
    for _ in range(3):
        with pytest.raises(JaxRuntimeError) as caught:
            f()
        assert str(caught.value) == f"{CODES[code]}: it \u2717 fails"
        assert "raised by the handler of custom call 'always_fails'" in caught.value.__notes__


@pytest.mark.parametrize(
    "attributes", [{}, {"scale": 2.0}, {"scale": "2"}, {"scale": np.float32([2])}, {"scales": np.float32(2)}]
)
def test_wrong_attributes_are_the_handlers_errors(attributes: dict[str, Any], backend: str) -> None:
    with pytest.raises(CustomCallError, match="INVALID_ARGUMENT: scale must be an f32"):
        call("scaled", (2, 3), F32, X, **attributes)


def test_wrong_operands_are_the_handlers_errors(backend: str) -> None:
    with pytest.raises(CustomCallError, match="x must be f32"):
        scaled(jnp.array(X, np.float16))
    with pytest.raises(CustomCallError, match="one array, please"):
        call("scaled", (2, 3), F32, X, X)


def test_an_error_stops_the_program_and_the_next_call_is_as_before() -> None:
    f = hloom.jit(lambda x, n: hloom.lax.fori_loop(0, n, lambda i, y: scaled(y, np.float64(1.0)) + 1, x))
    np.testing.assert_array_equal(f(X, 0), X)
    for _ in range(3):
        with pytest.raises(CustomCallError, match="scale must be"):
            f(X, 5)
    np.testing.assert_array_equal(f(X, 0), X)


def test_a_target_that_is_not_registered() -> None:
    with pytest.raises(UnsupportedError, match=r"custom call of target 'sealed' is not known; did you mean 'scaled'\?"):
        call("sealed", (2, 3), F32, X)


def test_a_call_of_another_version_is_refused(backend: str) -> None:
    f = ffi.ffi_call("scaled", ShapeDtypeStruct((2, 3), F32), custom_call_api_version=1)
    with pytest.raises(UnsupportedError, match=r"'scaled' has api_version=API_VERSION_ORIGINAL.*needs api_version"):
        f(X)


# ---- XLA's older interfaces


@pytest.mark.parametrize("on", ON)
def test_a_function_that_returns_a_status(on: str, backend: str) -> None:
    f = ON[on](ffi.ffi_call("with_status", ShapeDtypeStruct((), F32), custom_call_api_version=2))
    assert f(1.0) == 2
    for _ in range(2):
        with pytest.raises(JaxRuntimeError, match="INTERNAL: more than 5 \u2717") as caught:
            f(7.0)
        assert "raised by the function of custom call 'with_status'" in caught.value.__notes__
    assert f(5.0) == 6


@pytest.mark.parametrize("on", ON)
def test_a_function_that_takes_opaque_bytes(on: str, backend: str) -> None:
    results = [ShapeDtypeStruct((), F32), ShapeDtypeStruct((4,), np.uint8)]
    f = ON[on](
        ffi.ffi_call("with_opaque_and_status", results, custom_call_api_version=3, legacy_backend_config="abcd")
    )
    total, opaque = f(1.0, 2.0)
    assert total == 3 and bytes(np.asarray(opaque)) == b"abcd"
    with pytest.raises(JaxRuntimeError, match="INTERNAL: abcd"):
        f(7.0, 2.0)


STATUS = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.custom_call @with_status(%x) {api_version = 2 : i32} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
UNIFIED = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0:2 = stablehlo.custom_call @with_opaque_and_status(%x, %x) {api_version = 3 : i32, backend_config = "abcd"} :
    (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<4xui8>)
  return %0#0 : tensor<f32>
}"""


@pytest.mark.parametrize(("text", "expected"), [(STATUS, 3), (UNIFIED, 4)])
def test_a_status_in_stablehlo(text: str, expected: int, backend: str) -> None:
    (found,) = hloom.run_hlo(text, np.float32(2), backend=backend)
    assert found == expected
    with pytest.raises(CustomCallError, match="INTERNAL"):
        hloom.run_hlo(text, np.float32(6), backend=backend)


# ---- registration


def test_registration_twice(library: ctypes.CDLL) -> None:
    ffi.register_ffi_target("scaled", ffi.pycapsule(library.scaled))
    with pytest.raises(JaxRuntimeError, match="ALREADY_EXISTS: custom call 'scaled' is registered already"):
        ffi.register_ffi_target("scaled", ffi.pycapsule(library.copied))
    with pytest.raises(JaxRuntimeError, match="ALREADY_EXISTS"):
        ffi.register_ffi_target("lapack_sgetrf_ffi", ffi.pycapsule(library.copied))
    with pytest.raises(ValueError, match="registered already"):
        hloom.register_custom_call("scaled", lambda x: x)


@pytest.mark.parametrize(
    ("handler", "error", "message"),
    [
        ("too_new", UnsupportedError, r"'too_new': its handler was compiled for version 0\.99 of XLA's FFI"),
        ("no_metadata", CustomCallError, r"'no_metadata': its handler for the stage 'execute' does not answer"),
        ("refuses_metadata", CustomCallError, r"FAILED_PRECONDITION: not today"),
    ],
)
def test_a_handler_that_is_refused(library: ctypes.CDLL, handler: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ffi.register_ffi_target(handler, ffi.pycapsule(library[handler]))
    assert handler not in hloom.registered_custom_calls()


def test_wrong_registrations(library: ctypes.CDLL) -> None:
    capsule = ffi.pycapsule(library.scaled)
    with pytest.raises(TypeError, match="must be a PyCapsule"):
        ffi.register_ffi_target("wrong", library.scaled)
    with pytest.raises(ValueError, match="'run' is no stage"):
        ffi.register_ffi_target("wrong", {"run": capsule})
    with pytest.raises(ValueError, match="no handler for the stage 'execute'"):
        ffi.register_ffi_target("wrong", {"prepare": capsule})
    with pytest.raises(ValueError, match="api_version must be 0 or 1"):
        ffi.register_ffi_target("wrong", capsule, api_version=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        ffi.register_ffi_target("wrong", capsule, color=1)
    with pytest.raises(ValueError, match="null"):
        ffi.pycapsule(0)
    with pytest.raises(UnsupportedError, match="register_ffi_type"):
        ffi.register_ffi_type_id("wrong", capsule)
    ffi.register_ffi_target("wrong", capsule, platform="CUDA")
    assert "wrong" not in hloom.registered_custom_calls()


def test_a_type_has_one_number(library: ctypes.CDLL) -> None:
    number, other = (ctypes.c_int64(value) for value in (0, 12345))
    capsules = [ffi.pycapsule(ctypes.addressof(n)) for n in (number, other)]
    ffi.register_ffi_type("some type", {"type_id": capsules[0]})
    assert number.value > 0
    ffi.register_ffi_type("some type", {"type_id": capsules[0]})
    with pytest.raises(ValueError, match="'some type' is registered already"):
        ffi.register_ffi_type("some type", {"type_id": capsules[1]})
    ffi.register_ffi_type("another type", {"type_id": capsules[1]})
    assert other.value == 12345
    with pytest.raises(ValueError, match="cannot have number 12345"):
        ffi.register_ffi_type("third type", {"type_id": capsules[1]})
    with pytest.raises(ValueError, match="needs a capsule `type_id`"):
        ffi.register_ffi_type("fourth type", {})


def test_registration_from_native_code(backend: str) -> None:
    with hloom.enable_x64():
        assert call("registers", (), np.int64) > 0
    np.testing.assert_array_equal(call("registered_from_c", (2, 3), F32, X, scale=np.float32(3)), 3 * X)


def test_a_function_without_the_typed_ffi(library: ctypes.CDLL, backend: str) -> None:
    ffi.register_ffi_target("untyped", ffi.pycapsule(library.untyped), api_version=0)
    x = jnp.arange(3.0)
    found = ffi.ffi_call("untyped", x, custom_call_api_version=1)(x)
    np.testing.assert_array_equal(found, [1, 2, 3])


# ---- states


def test_a_state_lives_as_long_as_its_program(library: ctypes.CDLL, backend: str) -> None:
    alive = ctypes.c_int64.in_dll(library, "alive")
    hloom.clear_caches()
    gc.collect()
    before = alive.value
    call("counter", (), np.int32, start=2)
    f = hloom.jit(lambda: call("counter", (), np.int32, start=5))
    assert [int(f()) for _ in range(3)] == [5, 6, 7]
    g = hloom.jit(lambda: (call("counter", (), np.int32, start=1), call("counter", (), np.int32, start=1)))
    g()
    assert alive.value > before
    del f, g
    hloom.clear_caches()
    gc.collect()
    assert alive.value == before


def test_stages_run_in_order(library: ctypes.CDLL, backend: str) -> None:
    logged = ctypes.c_int64.in_dll(library, "stages_logged")
    log = (ctypes.c_int64 * 16).in_dll(library, "log_of_stages")
    alive = ctypes.c_int64.in_dll(library, "alive")
    logged.value = 0
    results = [ShapeDtypeStruct((), np.int32)] * 2
    f = hloom.jit(lambda: ffi.ffi_call("staged_counter", results)(start=5))
    program = f.lower().compile()
    assert list(log[: logged.value]) == [0]
    before = alive.value
    for k in range(2):
        assert [int(v) for v in program()] == [5 + k, 10100]
    assert list(log[: logged.value]) == [0, 1, 2, 3, 1, 2, 3]
    assert alive.value == before


def test_an_error_while_a_program_is_compiled(backend: str) -> None:
    f = hloom.jit(lambda: call("counter", (), np.int32, start=-1))
    with pytest.raises(CustomCallError, match="INVALID_ARGUMENT: start must not be negative"):
        f.lower().compile()


def test_a_state_that_is_not_there(library: ctypes.CDLL, backend: str) -> None:
    if "stateless" not in hloom.registered_custom_calls():
        ffi.register_ffi_target("stateless", ffi.pycapsule(library.counter_execute))
    with pytest.raises(CustomCallError, match="NOT_FOUND: the state is not set"):
        call("stateless", (), np.int32)
    if "wrong_stage" not in hloom.registered_custom_calls():
        ffi.register_ffi_target(
            "wrong_stage", {s: ffi.pycapsule(library.counter_instantiate) for s in ("instantiate", "execute")}
        )
    with pytest.raises(CustomCallError, match="FAILED_PRECONDITION: the state is set already"):
        call("wrong_stage", (), np.int32, start=1)


# ---- what handlers call


@pytest.mark.parametrize("alignment", [1, 64, 4096])
@pytest.mark.parametrize("count", [0, 1, 1000, 1 << 18])
def test_scratch_memory(alignment: int, count: int, backend: str) -> None:
    x = jnp.arange(float(count))
    np.testing.assert_array_equal(call("reversed", (count,), F32, x, alignment=alignment), np.arange(count)[::-1])


def test_scratch_memory_that_there_is_not(backend: str) -> None:
    with pytest.raises(CustomCallError, match="RESOURCE_EXHAUSTED"):
        call("too_much_scratch", (), F32)
    with pytest.raises(CustomCallError, match="INVALID_ARGUMENT: an alignment must be a power of two"):
        call("reversed", (3,), F32, jnp.arange(3.0), alignment=3)


@pytest.mark.parametrize("name", ["squared", "squared_later"])
@pytest.mark.parametrize("threads", [1, 2])
def test_tasks_of_the_thread_pool(name: str, threads: int, backend: str) -> None:
    set_num_threads(threads)
    try:
        x = jnp.arange(1000.0)
        f = hloom.jit(lambda x: call(name, (1000,), F32, x + 1))
        for _ in range(20):
            np.testing.assert_array_equal(f(x), np.square(np.arange(1000.0) + 1))
    finally:
        set_num_threads(None)


def test_a_future_with_an_error(backend: str) -> None:
    for _ in range(5):
        with pytest.raises(CustomCallError, match="DATA_LOSS: lost on the way"):
            call("fails_later", (100,), F32, jnp.arange(100.0))


def test_a_future_of_the_handlers_own_thread(backend: str) -> None:
    assert call("by_own_thread", (), F32) == 7


def test_what_a_handler_knows_about_its_run(backend: str) -> None:
    where = ffi.ffi_call("where", ShapeDtypeStruct((3,), np.int64), has_side_effect=True)
    f = hloom.jit(lambda: [where(), where()])
    first, second = np.stack(f()), np.stack(f())
    assert (first[:, 0] > 0).all() and second[:, 0].min() > first[:, 0].max()
    if backend == "numba":
        assert first[0, 0] == first[1, 0] and second[0, 0] == second[1, 0]
    assert (first[:, 1] == 0).all()
    assert (first[:, 2] == get_num_threads()).all()


def test_what_there_is_not_on_a_cpu(backend: str) -> None:
    with pytest.raises(CustomCallError, match="UNIMPLEMENTED: there is no stream"):
        call("asks_for", (), F32, entry=1)
    with pytest.raises(CustomCallError, match="NOT_FOUND: there is no user data"):
        call("asks_for", (), F32, entry=0)


# ---- aliases


def incremented(x: Any, **options: Any) -> Any:
    """x with 1 added to its first element, in place."""
    return ffi.ffi_call("first_incremented", x, input_output_aliases={0: 0}, **options)(x)


@pytest.mark.parametrize("on", ON)
def test_an_aliased_result_begins_as_its_operand(on: str, backend: str) -> None:
    x = jnp.array(X)
    np.testing.assert_array_equal(ON[on](incremented)(x)[0], [1, 1, 2])
    np.testing.assert_array_equal(x, X)


def test_aliased_operands_that_are_used_again(backend: str) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        once = incremented(y)
        both = ffi.ffi_call("first_incremented", y, input_output_aliases={1: 0})(once, once)
        return y, once, both, incremented(incremented(y))

    y, once, both, twice = (np.asarray(v)[0, 0] for v in hloom.jit(f)(X))
    assert (y, once, both, twice) == (0, 1, 2, 2)


def test_an_aliased_operand_that_dies_is_not_copied() -> None:
    f = hloom.jit(lambda x: incremented(x * 2) * 3)
    executable: Any = get_compiler("numba").compile(f.lower(X).module)
    assert not [row for row in executable._program.rows if row.op is Op.COPY]


def test_a_donated_argument_is_changed_in_place() -> None:
    f = hloom.jit(incremented, donate_argnums=0)
    x = jnp.array(X)
    address = x.unsafe_buffer_pointer()
    y = f(x)
    assert y.unsafe_buffer_pointer() == address and x.is_deleted()
    np.testing.assert_array_equal(y[0], [1, 1, 2])


# ---- many threads, forks, stored programs


def test_calls_in_many_threads() -> None:
    f = hloom.jit(lambda x: call("squared_later", (1000,), F32, scaled(x)))
    x = np.arange(1000, dtype=np.float32)
    expected = np.square(2.5 * x)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: np.asarray(f(x)), range(60)):
            np.testing.assert_array_equal(found, expected)


def test_handlers_run_without_the_gil() -> None:
    """A handler of another thread sleeps, and Python goes on."""
    counted = 0
    done = threading.Event()

    def run() -> None:
        assert f() == 7
        done.set()

    f = hloom.jit(lambda: call("by_own_thread", (), F32))
    f()
    thread = threading.Thread(target=run)
    thread.start()
    while not done.is_set():
        counted += 1
    thread.join()
    assert counted > 100


def test_calls_in_a_forked_child() -> None:
    f = hloom.jit(lambda x: call("squared_later", (1000,), F32, scaled(x)))
    x = np.arange(1000, dtype=np.float32)
    f(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(int(np.asarray(f(x)).tolist() != np.square(2.5 * x).tolist()))
    assert os.waitpid(child, 0)[1] == 0
    f(x)


def test_a_program_with_handlers_is_not_stored() -> None:
    """Its words are addresses of this process."""
    text = """HloModule m
    ENTRY e {
      x = f32[2,3] parameter(0)
      ROOT r = f32[2,3] custom-call(x), custom_call_target="scaled", api_version=API_VERSION_TYPED_FFI,
        backend_config={scale = 2.5 : f32}
    }"""
    module = parse(text)
    assert key_of(module, target_named("cpu")) is None
    executable = get_compiler("numba").compile(module)
    np.testing.assert_array_equal(executable.execute([X])[0], 2.5 * X)


def test_a_timeline_names_the_handler(tmp_path: Any) -> None:
    f = hloom.jit(lambda x: jnp.sin(scaled(x)) + 1)
    f(X)
    with hloom.profiler.trace(tmp_path):
        f(X).block_until_ready()
    text = b"".join([gzip.decompress(p.read_bytes()) for p in tmp_path.rglob("*.gz")])
    assert b"scaled" in text


def test_the_state_of_a_program_that_is_dropped_while_it_runs(library: ctypes.CDLL) -> None:
    """The last reference to the program goes away in another thread."""
    alive = ctypes.c_int64.in_dll(library, "alive")
    hloom.clear_caches()
    gc.collect()
    before = alive.value
    for k in range(20):
        f = hloom.jit(lambda k=k: call("counter", (), np.int32, start=k))
        assert int(f()) == k
        with ThreadPoolExecutor(4) as pool:
            found = [pool.submit(f) for _ in range(8)]
            del f
            assert sorted(int(v.result()) for v in found) == list(range(k + 1, k + 9))
        del found
    hloom.clear_caches()
    gc.collect()
    assert alive.value == before
