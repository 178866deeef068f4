"""Custom calls: the registry, functions in Python, Numba and C, built-in targets, and what is refused."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode, Shape, custom_calls, make_computation, make_instruction, make_module, make_parameter
from hloom.hlo.backend import get_compiler, optimize
from hloom.hlo.custom_call_targets.table import BUILT_IN, IDENTITIES
from hloom.hlo.custom_calls import call_of
from hloom.hlo.mlir.python_values import read_values
from hloom.hlo.ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from hloom.hlo.text.parser import parse

import hloom
from hloom.errors import CustomCallError, ExecutionError, ShapeError, UnsupportedError

BACKENDS = ("numba", "evaluator")
NDArray = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def nothing_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests before these may have left targets there."""
    monkeypatch.setattr(custom_calls, "_registered", {})


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """`hloom.register_custom_call`, undone after the test."""
    names: list[str] = []

    def register(name: str, fn: Any, **options: bool) -> None:
        hloom.register_custom_call(name, fn, **options)
        names.append(name)

    yield register
    for name in dict.fromkeys(names):
        hloom.unregister_custom_call(name)


def module(result: str, operands: str, target: str, rest: str = "") -> str:
    """A module with one custom call of its parameters as its entry."""
    shapes = operands.split("; ") if operands else []
    lines = [f"  p{k} = {shape} parameter({k})" for k, shape in enumerate(shapes)]
    names = ", ".join(f"p{k}" for k in range(len(shapes)))
    call = f'  ROOT r = {result} custom-call({names}), custom_call_target="{target}"{rest}'
    return "\n".join(["HloModule m", "ENTRY e {", *lines, call, "}"])


TYPED = ", api_version=API_VERSION_TYPED_FFI, backend_config="
X = np.array([1, 2], np.float32)
Y = np.array([[10, 20, 30], [40, 50, 60]], np.float32)
MYFUNC = module("f32[3,3]", "f32[2]; f32[2,3]", "myfunc")


def myfunc(x: NDArray, y: NDArray) -> NDArray:
    """The function of the section "CustomCall" of the operation semantics, its elements filled in to the end."""
    assert x.tolist() == [1, 2] and y.tolist() == [[10, 20, 30], [40, 50, 60]]
    return np.stack([x[1] + y[1], x[0] + y[0], y[0] * 0]).astype(np.float32)


EXPECTED = np.array([[42, 52, 62], [11, 21, 31], [0, 0, 0]], np.float32)


@pytest.mark.parametrize("backend", BACKENDS)
def test_seeds_section_custom_call_in_python(backend: str, register: Callable[..., None]) -> None:
    register("myfunc", myfunc)
    (result,) = hloom.run_hlo(MYFUNC, X, Y, backend=backend)
    np.testing.assert_array_equal(result, EXPECTED)


@pytest.fixture(scope="module")
def numba_cfunc() -> Any:
    import numba
    from numba import types

    @numba.cfunc(types.void(types.voidptr, types.CPointer(types.voidptr)))  # type: ignore[untyped-decorator]
    def native(out, arguments):  # type: ignore[no-untyped-def]
        x = numba.carray(arguments[0], (2,), numba.float32)
        y = numba.carray(arguments[1], (2, 3), numba.float32)
        z = numba.carray(out, (3, 3), numba.float32)
        for j in range(3):
            z[0, j] = x[1] + y[1, j]
            z[1, j] = x[0] + y[0, j]
            z[2, j] = 0

    return native


@pytest.mark.parametrize("backend", BACKENDS)
def test_seeds_section_custom_call_natively(backend: str, register: Callable[..., None], numba_cfunc: Any) -> None:
    register("myfunc", numba_cfunc)
    (result,) = hloom.run_hlo(MYFUNC, X, Y, backend=backend)
    np.testing.assert_array_equal(result, EXPECTED)
    assert hloom.registered_custom_calls()["myfunc"] is numba_cfunc


@pytest.mark.parametrize("backend", BACKENDS)
def test_native_function_of_tuples(backend: str, register: Callable[..., None]) -> None:
    """A tuple operand is its leaves; for a tuple result `out` points to the addresses of its leaves."""

    @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p))
    def native(out: Any, arguments: Any) -> None:
        x, y, z = (ctypes.cast(arguments[k], ctypes.POINTER(ctypes.c_int32)) for k in range(3))
        ctypes.cast(out[0], ctypes.POINTER(ctypes.c_int32))[0] = x[0] + y[0]
        ctypes.cast(out[1], ctypes.POINTER(ctypes.c_int32))[1] = z[1]
        ctypes.cast(out[1], ctypes.POINTER(ctypes.c_int32))[0] = 7

    register("native", native)
    text = """HloModule m
    ENTRY e {
      x = s32[] parameter(0)
      y = s32[] parameter(1)
      z = s32[2] parameter(2)
      t = (s32[], s32[]) tuple(x, y)
      ROOT r = (s32[], s32[2]) custom-call(t, z), custom_call_target="native"
    }"""
    total, pair = hloom.run_hlo(text, 3, 4, np.array([5, 6], np.int32), backend=backend)
    assert total == 7 and pair.tolist() == [7, 6]


@pytest.mark.parametrize("where", [*BACKENDS, "tpu"])
@pytest.mark.parametrize("wanted", ["{1,0}", "{0,1}"])
@pytest.mark.parametrize("given", ["{1,0}", "{0,1}"])
def test_native_function_sees_the_layouts_that_it_asks_for(
    where: str, wanted: str, given: str, register: Callable[..., None]
) -> None:
    """It copies bytes: from an array in one layout to one in another, for any layouts of the caller."""

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def native(out: int, arguments: Any) -> None:
        ctypes.memmove(out, arguments[0], 24)

    register("bytes", native)
    text = f"""HloModule m, entry_computation_layout={{(f32[2,3]{given})->f32[3,2]{given}}}
    ENTRY e {{
      x = f32[2,3] parameter(0)
      y = f32[2,3] negate(x)
      c = f32[3,2]{{0,1}} custom-call(y), custom_call_target="bytes", operand_layout_constraints={{f32[2,3]{wanted}}}
      ROOT r = f32[3,2] add(c, c)
    }}"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    source = -2 * (x if wanted == "{1,0}" else x.T)
    module = parse(text)
    if where == "evaluator":
        (result,) = hloom.run_hlo(module, x, backend=where)
    else:
        (result,) = get_compiler("numba").compile(module, target="tpu" if where == "tpu" else "cpu").execute([x])
    np.testing.assert_array_equal(result, source.reshape(2, 3).T)


def test_a_function_gets_no_tiles(register: Callable[..., None]) -> None:
    register("tiles", lambda x: x)
    text = """HloModule m
    ENTRY e {
      x = f32[2,3] parameter(0)
      ROOT c = f32[2,3] custom-call(x), custom_call_target="tiles", operand_layout_constraints={f32[2,3]{1,0:T(2,2)}}
    }"""
    with pytest.raises(UnsupportedError, match=r"'tiles' wants an array as f32\[2,3\]\{1,0:T\(2,2\)\}"):
        get_compiler("numba").compile(parse(text))


def test_native_function_runs_without_python(register: Callable[..., None], numba_cfunc: Any) -> None:
    register("myfunc", numba_cfunc)
    executable = get_compiler("numba").compile(parse(MYFUNC))
    results: list[NDArray] = []

    def run() -> None:
        for _ in range(20):
            results.extend(executable.execute([X, Y]))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    for result in results:
        np.testing.assert_array_equal(result, EXPECTED)


@pytest.mark.parametrize("backend", BACKENDS)
def test_function_compiled_by_numba(backend: str, register: Callable[..., None]) -> None:
    import numba

    register("scaled", numba.njit(lambda x, factor: x * np.float32(factor)))
    text = module("f32[2]", "f32[2]", "scaled", TYPED + "{factor = 3.0 : f32}")
    (result,) = hloom.run_hlo(text, X, backend=backend)
    np.testing.assert_array_equal(result, X * 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_backend_config_arrives_as_keywords(backend: str, register: Callable[..., None]) -> None:
    seen: dict[str, Any] = {}

    def fn(**config: Any) -> float:
        seen.update(config)
        return 1.5

    register("fn", fn)
    config = '{a = 76 : ui8, b = -2.5e+00 : f64, c = true, d = "x, y", e = array<i64: 1, 2>, f = [1, "z"], g}'
    (result,) = hloom.run_hlo(module("f32[]", "", "fn", TYPED + config), backend=backend)
    assert result == np.float32(1.5)
    assert seen == {"a": 76, "b": -2.5, "c": True, "d": "x, y", "e": (1, 2), "f": (1, "z"), "g": True}
    seen.clear()
    hloom.run_hlo(module("f32[]", "", "fn", ', backend_config="plain"'), backend=backend)
    assert seen == {"backend_config": "plain"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{x = 0x7F800000 : f32}", np.inf),
        ("{x = dense<[1, 2]> : tensor<2xi64>}", np.array([1, 2])),
        ("{x = dense<3> : tensor<2x2xi32>}", np.full((2, 2), 3)),
        ("{x = {y = 1 : i32}}", {"y": 1}),
        ("{x = dense<1> : tensor<0x4xi32>}", np.ones((0, 4))),
        ("{x = []}", ()),
        ("{x = array<i32>}", ()),
        ("{x = f32}", "f32"),
        ('{x = "\\0A"}', "\n"),
        ("{x = 1.0}", 1.0),
        ("{x = -1}", -1),
        ("{x = 255 : i8}", -1),
        ("{x = [1, 2.5, @f]}", (1, 2.5, "@f")),
        ('{x = dense<"0x0100000002000000"> : tensor<2xi32>}', np.array([1, 2])),
        ("{x = sparse<[[0, 1]], [7]> : tensor<2x2xi32>}", np.array([[0, 7], [0, 0]])),
        ("{x = #dialect<something>}", "#dialect<something>"),
    ],
)
def test_values_of_a_backend_config(text: str, value: Any) -> None:
    np.testing.assert_equal(read_values(text)["x"], value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "{x = }", "x = 1", "{x = dense<[1, 2]> : tensor<3xi64>}", '{x = "a}', "{x = 1} y", "{x = 300 : i8}"],
)
def test_malformed_backend_config(text: str) -> None:
    with pytest.raises(ValueError):
        read_values(text)


def test_a_hostile_backend_config_costs_nothing() -> None:
    huge = read_values("{x = dense<1> : tensor<9999999x9999999xi64>}")["x"]
    assert huge.shape == (9999999, 9999999)
    nested = CustomCallAttributes("Qr", "{a = " * 100_000 + "1" + "}" * 100_000, CustomCallApiVersion.TYPED_FFI)
    with pytest.raises(CustomCallError, match="cannot be read"):
        call_of(nested, [], Shape.parse("f32[]"))
    digits = CustomCallAttributes("Qr", "{a = " + "9" * 100_000 + " : i64}", CustomCallApiVersion.TYPED_FFI)
    with pytest.raises(CustomCallError, match="cannot be read"):
        call_of(digits, [], Shape.parse("f32[]"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_operands_are_read_only_and_results_are_copied(backend: str, register: Callable[..., None]) -> None:
    kept: list[NDArray] = []

    def fn(x: NDArray) -> NDArray:
        assert not x.flags.writeable
        kept.append(np.arange(2, dtype=np.float32))
        return kept[-1]

    register("fn", fn)
    (result,) = hloom.run_hlo(module("f32[2]", "f32[2]", "fn"), X, backend=backend)
    kept[0][:] = 9
    assert result.tolist() == [0, 1]


KEEP: dict[str, Callable[[NDArray], Any]] = {
    "the operand": lambda x: x,
    "a view": lambda x: x[::2],
    "a memoryview": memoryview,
    "an iterator": iter,
    "a row of bytes": lambda x: x.view(np.uint8),
}
LOOP = """
HloModule m
body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = f32[] constant(2)
  twos = f32[4] broadcast(two), dimensions={}
  scaled = f32[4] multiply(x, twos)
  y = f32[4] custom-call(scaled), custom_call_target="fn", custom_call_has_side_effect=true
  ROOT r = (s32[], f32[4]) tuple(j, y)
}
condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(s), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
}
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("what", KEEP)
def test_a_function_may_keep_its_operands(what: str, backend: str, register: Callable[..., None]) -> None:
    """In a loop that uses its memory again, and after the program has ended."""
    kept: list[Any] = []

    def fn(x: NDArray) -> NDArray:
        kept.append((KEEP[what](x), np.array(KEEP[what](np.array(x)) if what != "an iterator" else x)))
        return x + 1

    register("fn", fn)
    x = np.arange(4, dtype=np.float32)
    (result,) = hloom.run_hlo(LOOP, x, backend=backend)
    hloom.run_hlo(LOOP, x + 50, backend=backend)
    assert result.tolist() == [7, 15, 23, 31]
    x[:] = -1
    for now, then in kept:
        np.testing.assert_array_equal(np.array(list(now) if what == "an iterator" else now), then)
    assert [float(then[0]) for _, then in kept[:3]] == ([0, 2, 6] if what != "a row of bytes" else [0, 0, 0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_may_change_what_it_returned(backend: str, register: Callable[..., None]) -> None:
    same = np.zeros(4, np.float32)

    def fn(x: NDArray) -> NDArray:
        same[:] = -5
        same[:] = x + 1
        return same

    register("fn", fn)
    text = """
HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] custom-call(x), custom_call_target="fn", custom_call_has_side_effect=true
  z = f32[4] custom-call(y), custom_call_target="fn", custom_call_has_side_effect=true
  ROOT r = (f32[4], f32[4]) tuple(y, z)
}
"""
    y, z = hloom.run_hlo(text, np.arange(4, dtype=np.float32), backend=backend)
    same[:] = 9
    assert (y.tolist(), z.tolist()) == ([1, 2, 3, 4], [2, 3, 4, 5])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_may_return_its_operand(backend: str, register: Callable[..., None]) -> None:
    register("fn", lambda x: x)
    x = np.arange(2, dtype=np.float32)
    (result,) = hloom.run_hlo(module("f32[2]", "f32[2]", "fn"), x, backend=backend)
    x[:] = 7
    assert result.tolist() == [0, 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_cannot_change_its_config(backend: str, register: Callable[..., None]) -> None:
    seen = []

    def fn(x: NDArray, inner: dict[str, Any], values: NDArray) -> NDArray:
        assert not values.flags.writeable
        seen.append(dict(inner))
        inner["more"] = 1
        return x

    register("fn", fn)
    config = "{inner = {y = 1 : i32}, values = dense<[1, 2]> : tensor<2xi64>}"
    text = module("f32[2]", "f32[2]", "fn", TYPED + config)
    for _ in range(2):
        hloom.run_hlo(text, X, backend=backend)
    assert seen == [{"y": 1}] * len(seen) and len(seen) == 2


WRONG: list[tuple[str, str, Any, str]] = [
    ("f32[2]", "a float64", lambda x: x.astype(np.float64), "must be f32[2] (dtype float32), not an array of float64"),
    ("f32[2]", "three elements", lambda x: np.zeros(3, np.float32), "with shape (3,)"),
    ("f32[2]", "nothing", lambda x: None, "must be f32[2]"),
    ("(f32[2], f32[2])", "one array", lambda x: x, "must be a tuple of 2, not one ndarray"),
    ("(f32[2], f32[2])", "one of two", lambda x: (x,), "must be a tuple of 2, not 1 values"),
    ("f32[2]", "an exception", lambda x: 1 / 0, "raised ZeroDivisionError: division by zero"),
    ("f32[2]", "wrong arguments", lambda: 0, "raised TypeError"),
    ("u8[]", "a number that is too large", lambda x: 300, "out of bounds"),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("result", "what", "fn", "message"), WRONG, ids=[w[1] for w in WRONG])
def test_wrong_results(
    backend: str, result: str, what: str, fn: Any, message: str, register: Callable[..., None]
) -> None:
    register("wrong", fn)
    with pytest.raises(CustomCallError) as caught:
        hloom.run_hlo(module(result, "f32[2]", "wrong"), X, backend=backend)
    assert "custom call 'wrong'" in str(caught.value) and message in str(caught.value)
    assert isinstance(caught.value, ExecutionError)


@pytest.mark.parametrize("backend", BACKENDS)
def test_unknown_target_is_refused_at_compile_time(backend: str) -> None:
    compiler = get_compiler(backend)
    with pytest.raises(UnsupportedError, match=r"'nobody' is not known.*register_custom_call"):
        compiler.compile(parse(module("f32[2]", "f32[2]", "nobody")))
    with pytest.raises(UnsupportedError, match="did you mean 'lapack_spotrf_ffi'"):
        compiler.compile(parse(module("f32[2]", "f32[2]", "lapack_spotrf")))
    with pytest.raises(UnsupportedError, match="calls a Python function of the process that lowered"):
        compiler.compile(parse(module("f32[2]", "f32[2]", "xla_ffi_python_cpu_callback")))


def test_registry(register: Callable[..., None]) -> None:
    register("one", abs)
    assert hloom.registered_custom_calls() == {"one": abs}
    with pytest.raises(ValueError, match="'one' is registered already"):
        hloom.register_custom_call("one", len)
    register("one", len, replace=True)
    assert hloom.registered_custom_calls()["one"] is len
    with pytest.raises(ValueError, match="'Qr' is built in already"):
        hloom.register_custom_call("Qr", len)
    with pytest.raises(TypeError, match="needs a function"):
        hloom.register_custom_call("two", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a string"):
        hloom.register_custom_call("", len)
    with pytest.raises(KeyError, match="not registered"):
        hloom.unregister_custom_call("two")


def test_cfunc_of_another_signature() -> None:
    import numba
    from numba import types

    native = numba.cfunc(types.float64(types.float64))(lambda x: x)
    with pytest.raises(TypeError, match="must have the signature"):
        hloom.register_custom_call("native", native)


def test_a_compiled_program_keeps_its_function() -> None:
    hloom.register_custom_call("fn", lambda x: x + 1)
    executable = get_compiler("numba").compile(parse(module("f32[2]", "f32[2]", "fn")))
    hloom.unregister_custom_call("fn")
    assert executable.execute([X])[0].tolist() == [2, 3]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_registered_function_replaces_a_built_in_one(backend: str, register: Callable[..., None]) -> None:
    register("Sharding", lambda x: -x, replace=True)
    (result,) = hloom.run_hlo(module("f32[2]", "f32[2]", "Sharding"), X, backend=backend)
    assert result.tolist() == [-1, -2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_side_effects_happen_once_each_and_in_order(backend: str, register: Callable[..., None]) -> None:
    """Equal calls are not merged, and unused calls are made; without the attribute both may go."""
    seen: list[int] = []

    def note(x: NDArray, number: int) -> NDArray:
        seen.append(number)
        return x

    register("note", note)
    lines = [
        f'  n{k} = f32[2] custom-call(x), custom_call_target="note", custom_call_has_side_effect=true{TYPED}'
        f"{{number = {number} : i32}}"
        for k, number in enumerate((3, 1, 1, 2))
    ]
    entry = ["  x = f32[2] parameter(0)", *lines, "  ROOT r = f32[2] negate(x)"]
    text = "\n".join(["HloModule m", "ENTRY e {", *entry, "}"])
    hloom.run_hlo(text, X, backend=backend)
    assert seen == [3, 1, 1, 2]
    seen.clear()
    hloom.run_hlo(text.replace(", custom_call_has_side_effect=true", ""), X, backend="numba")
    assert seen == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_custom_calls_in_a_loop(backend: str, register: Callable[..., None]) -> None:
    register("step", lambda x: x * 2)
    text = """HloModule m
    condition {
      s = (s32[], f32[2]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(5)
      ROOT more = pred[] compare(i, n), direction=LT
    }
    body {
      s = (s32[], f32[2]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      x = f32[2] get-tuple-element(s), index=1
      one = s32[] constant(1)
      j = s32[] add(i, one)
      y = f32[2] custom-call(x), custom_call_target="step"
      ROOT t = (s32[], f32[2]) tuple(j, y)
    }
    ENTRY e {
      x = f32[2] parameter(0)
      zero = s32[] constant(0)
      t = (s32[], f32[2]) tuple(zero, x)
      w = (s32[], f32[2]) while(t), condition=condition, body=body
      ROOT r = f32[2] get-tuple-element(w), index=1
    }"""
    (result,) = hloom.run_hlo(text, X, backend=backend)
    assert result.tolist() == [32, 64]


@pytest.mark.parametrize("backend", BACKENDS)
def test_tokens_are_empty_tuples(backend: str, register: Callable[..., None]) -> None:
    register("fn", lambda token, x: (x + 1, ()))
    text = """HloModule m
    ENTRY e {
      x = f32[2] parameter(0)
      before = token[] after-all()
      t = (f32[2], token[]) custom-call(before, x), custom_call_target="fn", custom_call_has_side_effect=true
      ROOT r = f32[2] get-tuple-element(t), index=0
    }"""
    (result,) = hloom.run_hlo(text, X, backend=backend)
    assert result.tolist() == [2, 3]


@pytest.mark.parametrize("target", IDENTITIES)
def test_annotations_are_their_operands(target: str) -> None:
    text = module("f32[2]", "f32[2]", target)
    optimized, _ = optimize(parse(text))
    assert [i.opcode for i in optimized.entry.instructions] == [Opcode.PARAMETER]
    for backend in BACKENDS:
        (result,) = hloom.run_hlo(text, X, backend=backend)
        assert result.tolist() == [1, 2]
        with pytest.raises(ShapeError, match="custom-call_target"):
            hloom.run_hlo(module("f32[1]", "f32[2]", target), X, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_unwritten_memory_is_zeros(backend: str) -> None:
    (result,) = hloom.run_hlo(module("s32[2,3]", "", "AllocateBuffer"), backend=backend)
    assert result.dtype == np.int32 and result.shape == (2, 3) and not result.any()


LAPACK_REFUSED = [
    ("lapack_spotrf_ffi", "(f32[3,3], s32[])", "f32[3,3]", "{uplo = 88 : ui8}", "uplo = 76 ('L') or 85 ('U')"),
    ("lapack_spotrf_ffi", "(f32[3,3], s32[])", "f32[3,3]", "{}", "uplo"),
    ("lapack_spotrf_ffi", "(f32[3,3], s32[])", "f32[3,2]", "{uplo = 76 : ui8}", "expected T[*,n,n]"),
    ("lapack_spotrf_ffi", "(f32[2,2], s32[])", "f32[3,3]", "{uplo = 76 : ui8}", "expected T[*,n,n], s32[*]"),
    ("lapack_spotrf_ffi", "(f32[2,3,3], s32[])", "f32[2,3,3]", "{uplo = 76 : ui8}", "expected"),
    ("lapack_dpotrf_ffi", "(f32[3,3], s32[])", "f32[3,3]", "{uplo = 76 : ui8}", "with T = f64"),
    ("lapack_sgesdd_ffi", "(f32[3,2], f32[2], f32[3,9], f32[2,2], s32[])", "f32[3,2]", "{mode = 65 : ui8}", "columns"),
    ("lapack_sgehrd_ffi", "(f32[3,3], f32[2], s32[])", "f32[3,3]", "{low = 1 : i32, high = 9 : i32}", "high"),
    ("lapack_strsm_ffi", "f32[3,2]", "f32[2,2]; f32[3,2]", "{side = 76 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, "
     "diag = 78 : ui8}", "do not fit"),
    ("lapack_sormqr_ffi", "f32[3,2]", "f32[4,2]; f32[2]; f32[3,2]", "{left = true, transpose = false}", "as long as"),
    ("lapack_sormqr_ffi", "f32[3,2]", "f32[3,2]; f32[2]; f32[3,2]", "{left = 1, transpose = false}", "true or false"),
    ("lapack_sorgqr_ffi", "f32[2,3]", "f32[2,3]; f32[2]", "{}", "as many columns as rows"),
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("target", "result", "operands", "config", "message"), LAPACK_REFUSED)
def test_lapack_calls_that_would_leave_their_buffers(
    backend: str, target: str, result: str, operands: str, config: str, message: str
) -> None:
    compiler = get_compiler(backend)
    with pytest.raises(ShapeError) as caught:
        compiler.compile(parse(module(result, operands, target, TYPED + config)))
    assert message in str(caught.value) and target in str(caught.value) and caught.value.label == "custom-call_target"


def test_every_built_in_target_has_its_function() -> None:
    from importlib import import_module

    for name, target in BUILT_IN.items():
        assert callable(getattr(import_module(f"hloom.hlo.custom_call_targets.{target.module}"), target.function)), name


@pytest.mark.parametrize("backend", BACKENDS)
def test_lu_of_a_large_batch(backend: str) -> None:
    """Pieces of the batch run on several threads, each with its own workspace."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((5000, 4, 4))
    text = module("(f64[5000,4,4], s32[5000,4], s32[5000])", "f64[5000,4,4]", "lapack_dgetrf_ffi", TYPED + "{}")
    lu, pivots, info = hloom.run_hlo(text, a, backend=backend)
    lower, upper = np.tril(lu, -1) + np.eye(4), np.triu(lu)
    product = lower @ upper
    rows = np.arange(len(a))
    for k in reversed(range(4)):
        other = pivots[:, k] - 1
        product[rows, k], product[rows, other] = product[rows, other].copy(), product[rows, k].copy()
    np.testing.assert_allclose(product, a, atol=1e-12)
    assert not info.any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_eigenvectors_of_a_large_batch(backend: str) -> None:
    a = np.random.default_rng(1).standard_normal((3000, 6, 6))
    a = a + a.swapaxes(1, 2)
    text = module(
        "(f64[3000,6,6], f64[3000,6], s32[3000])", "f64[3000,6,6]", "lapack_dsyevd_ffi",
        TYPED + "{mode = 86 : ui8, uplo = 76 : ui8}",
    )  # fmt: skip
    vectors, values, info = hloom.run_hlo(text, a, backend=backend)
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None], atol=1e-11)
    assert not info.any()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("lower", [True, False])
def test_eigh_of_xla(backend: str, lower: bool) -> None:
    """Reads one triangle; a matrix that LAPACK fails on gives NaN."""
    rng = np.random.default_rng(2)
    full = rng.standard_normal((3, 4, 4)) + 1j * rng.standard_normal((3, 4, 4))
    full = full + full.conj().swapaxes(1, 2)
    full[2, 0, 0] = np.nan
    triangle = np.tril(full) if lower else np.triu(full)
    config = f', backend_config="{int(lower)},1,100,1e-6"'
    text = module("(c128[3,4,4], f64[3,4])", "c128[3,4,4]", "Eigh", config)
    vectors, values = hloom.run_hlo(text, triangle, backend=backend)
    np.testing.assert_allclose(full[:2] @ vectors[:2], vectors[:2] * values[:2, None], atol=1e-12)
    assert np.isnan(values[2]).all() and np.isnan(vectors[2]).all()
    with pytest.raises(ShapeError, match="begin with 0 or 1"):
        hloom.run_hlo(text.replace('"1,1', '"x,1').replace('"0,1', '"x,1'), triangle, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("m", "n"), [(4, 3), (3, 4), (3, 3)])
def test_lu_decomposition_of_jax(backend: str, m: int, n: int) -> None:
    a = np.random.default_rng(3).standard_normal((2, m, n)).astype(np.float32)
    k = min(m, n)
    result = f"(f32[2,{m},{n}], s32[2,{k}], s32[2,{m}])"
    lu, pivots, order = hloom.run_hlo(module(result, f"f32[2,{m},{n}]", "LuDecomposition"), a, backend=backend)
    lower, upper = np.tril(lu, -1)[..., :k] + np.eye(m, k, dtype=np.float32), np.triu(lu)[:, :k]
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(a, order[..., None], 1), atol=1e-5)
    assert (pivots >= np.arange(k)).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("direction", "expected"), [("GT", [3, 2]), ("LT", [1, 2])])
def test_topk_with_a_comparator(backend: str, direction: str, expected: list[float]) -> None:
    text = f"""HloModule m
    compare {{
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = pred[] compare(a, b), direction={direction}
    }}
    ENTRY e {{
      x = f32[3] parameter(0)
      ROOT r = (f32[2], s32[2]) custom-call(x), custom_call_target="TopK", called_computations={{compare}}
    }}"""
    values, places = hloom.run_hlo(text, np.array([1, 3, 2], np.float32), backend=backend)
    assert values.tolist() == expected and places.tolist() == [1 if direction == "GT" else 0, 2]
    with pytest.raises(ShapeError, match="by GT or LT"):
        hloom.run_hlo(text.replace(direction, "EQ"), np.zeros(3, np.float32), backend=backend)


PERTURBED: list[tuple[list[float], list[float], list[float], list[float], list[float]]] = [
    # dl, d, du, b, and what jaxlib's kernel makes of these in f32
    ([9, 1, 2], [0, 0, 0], [0, 0, 0], [0, 2, 4], [2, 2, 0]),
    ([9, 1, 2], [0, 0, 0], [0, 0, 0], [1, 3, 5], [3, 2.5, -8388608]),
    ([1, 0, 0, -1, 0], [0, 2, 0, 1, 0], [2, 0, 0, 1, 1], [-1, 0, 0, 0, 1], [-4194304, 0, 4194304, 0, 4194304]),
    ([0, 0], [0, 0], [-2, -1], [0, -2], [-70368744177664, -8388608]),
    ([-2, 0], [0, -2], [-1, 0], [-1, 2], [-8388608, -1]),
    ([1, -2, 0, 0], [1, 2, 1, -0.0], [0, -2, 0, -1], [0, 1, -2, 2], [0, -1.5, -2, -8388608]),
    ([0], [1e-20], [0], [1e30], [4.547473928873373e37]),
    ([0], [0], [0], [2], [5.671372951035721e37]),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("dl", "d", "du", "b", "expected"), PERTURBED)
def test_perturbed_tridiagonal_solve_of_a_singular_system(
    backend: str, dl: list[float], d: list[float], du: list[float], b: list[float], expected: list[float]
) -> None:
    """The results of jaxlib's `tridiagonal_solve_perturbed_ffi`; two systems at once, the other a regular one."""
    n = len(d)
    ones = np.ones(n, np.float32)
    three = [np.float32([x, y]) for x, y in zip((dl, d, du), (0 * ones, ones, 0 * ones))]
    kind = f"f32[2,{n}]"
    text = module(
        f"f32[2,{n},1]", f"{kind}; {kind}; {kind}; f32[2,{n},1]", "tridiagonal_solve_perturbed_ffi", TYPED + "{}"
    )
    (x,) = hloom.run_hlo(text, *three, np.float32([b, ones])[..., None], backend=backend)
    np.testing.assert_allclose(x[0, :, 0], np.float32(expected), rtol=1e-6)
    np.testing.assert_array_equal(x[1, :, 0], ones)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sparse_product(backend: str) -> None:
    values, columns = np.array([1, 2, 3], np.float32), np.array([0, 2, 1], np.int32)
    starts, dense = np.array([0, 2, 3], np.int32), np.arange(6, dtype=np.float32).reshape(3, 2)
    text = module(
        "f32[2,2]", "f32[3]; s32[3]; s32[3]; f32[3,2]", "cpu_csr_sparse_dense_ffi", TYPED + "{}"
    )
    (x,) = hloom.run_hlo(text, values, columns, starts, dense, backend=backend)
    np.testing.assert_array_equal(x, np.array([[1, 0, 2], [0, 3, 0]], np.float32) @ dense)
    with pytest.raises(CustomCallError, match="cpu_csr_sparse_dense_ffi"):
        hloom.run_hlo(text, values, columns + 100, starts, dense, backend=backend)



def test_a_typed_call_of_a_registered_function_with_a_bad_config(register: Callable[..., None]) -> None:
    register("fn", lambda x: x)
    attributes = CustomCallAttributes("fn", "{x", CustomCallApiVersion.TYPED_FFI)
    parameter = make_parameter(0, Shape.parse("f32[2]"), "p")
    call = make_instruction(Opcode.CUSTOM_CALL, [parameter], attributes, Shape.parse("f32[2]"))
    computation = make_computation("main", call, [parameter])
    with pytest.raises(CustomCallError, match="backend_config cannot be read"):
        get_compiler("numba").compile(make_module("m", computation))
