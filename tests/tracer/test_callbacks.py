"""Python functions in programs: what they get and may return, when they run, and what becomes of their errors."""

from __future__ import annotations

import gc
import io
import logging
import pickle
import threading
import traceback
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode

import hloom
import hloom.numpy as jnp
from hloom import ShapeDtypeStruct, debug, lax, pure_callback
from hloom.errors import CustomCallError
from hloom.experimental import io_callback

F32 = ShapeDtypeStruct((), np.float32)
Log = list[Any]
ON = {"eager": lambda f: f, "jit": hloom.jit}


def pure(f: Callable[..., Any], x: Any, **options: Any) -> Any:
    """`f` of an array, which returns one like it."""
    return pure_callback(f, ShapeDtypeStruct(x.shape, x.dtype), x, **options)


@pytest.fixture(params=["numba", "evaluator"])
def backend(request: pytest.FixtureRequest) -> Any:
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", request.param)
    yield request.param
    hloom.config.update("hloom_backend", before)


# ---- where they run: each program notes what it does; what it returns and what is noted are as in JAX


def noted(log: Log, name: str = "") -> Callable[..., None]:
    def note(*values: Any) -> None:
        log.append((name, *[v.item() if v.ndim == 0 else v.tolist() for v in values]) if name else values[0].item())

    return note


def in_scan(log: Log, x: Any) -> Any:
    def step(c: Any, i: Any) -> Any:
        debug.callback(noted(log), c)
        return c + i, c * 2

    return lax.scan(step, x, jnp.arange(3.0))


def in_while(log: Log, x: Any) -> Any:
    def body(c: Any) -> Any:
        debug.callback(noted(log), c)
        return c + 1

    return lax.while_loop(lambda c: c < 3, body, x)


def in_condition(log: Log, x: Any) -> Any:
    def condition(c: Any) -> Any:
        debug.callback(noted(log), c)
        return c < 2

    return lax.while_loop(condition, lambda c: c + 1, x)


def in_cond(log: Log, x: Any) -> Any:
    def branch(name: str) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            debug.callback(noted(log, name), x)
            return x

        return run

    return lax.cond(x > 0, branch("yes"), branch("no"), x) + lax.cond(x > 5, branch("yes"), branch("no"), x)


def in_nested_jit(log: Log, x: Any) -> Any:
    @hloom.jit
    def inner(x: Any) -> Any:
        debug.callback(noted(log), x)
        return x * 2

    return inner(inner(x))


def in_fori(log: Log, x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: (debug.callback(noted(log), i), c + 1)[1], x)


def in_map(log: Log, x: Any) -> Any:
    return lax.map(lambda y: (io_callback(noted(log), None, y), y)[1], jnp.arange(3.0) + x)


def results_of_io(log: Log, x: Any) -> Any:
    a = io_callback(lambda x: (log.append("a"), x + 1)[1], F32, x)
    b = io_callback(lambda x: (log.append("b"), x * 2)[1], F32, x)
    io_callback(lambda: log.append("c"), None)
    return b - a


PROGRAMS: list[tuple[Callable[[Log, Any], Any], float, Log]] = [
    (in_scan, 1.0, [1, 1, 2]),
    (in_while, 0.0, [0, 1, 2]),
    (in_condition, 0.0, [0, 1, 2]),
    (in_cond, 1.0, [("yes", 1.0), ("no", 1.0)]),
    (in_nested_jit, 1.0, [1, 2]),
    (in_fori, 1.0, [0, 1, 2]),
    (in_map, 1.0, [1, 2, 3]),
    (results_of_io, 1.0, ["a", "b", "c"]),
]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(("program", "x", "expected"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_effects_happen_once_and_in_order(
    program: Callable[..., Any], x: float, expected: Log, on: str, backend: str
) -> None:
    log: Log = []
    run = ON[on](partial(program, log))
    first = run(x)
    assert log == expected
    log.clear()
    assert hloom.tree.map(np.asarray, run(x)) is not None and log == expected
    with hloom.disable_jit():
        log.clear()
        for a, b in zip(hloom.tree.leaves(program(log, x)), hloom.tree.leaves(first), strict=True):
            np.testing.assert_allclose(a, b)
        assert log == expected


DERIVED: list[tuple[str, Callable[..., Any], int]] = [
    ("jvp", lambda f, x: hloom.jvp(f, (x,), (1.0,)), 1),
    ("grad", lambda f, x: hloom.grad(f)(x), 1),
    ("jit(grad)", lambda f, x: hloom.jit(hloom.grad(f))(x), 1),
    ("grad(jit)", lambda f, x: hloom.grad(hloom.jit(f))(x), 1),
    ("linearize", lambda f, x: hloom.linearize(f, x)[1](1.0), 1),
    ("grad(checkpoint)", lambda f, x: hloom.grad(hloom.checkpoint(f))(x), 1),  # 2 in JAX
    ("hessian", lambda f, x: hloom.grad(hloom.grad(f))(x), 1),
]
"""How often a debug callback on a primal runs; as recorded from JAX 0.10.2, but for checkpoint."""


@pytest.mark.parametrize(("name", "derive", "times"), DERIVED, ids=[d[0] for d in DERIVED])
@pytest.mark.parametrize("where", ["straight", "scan", "cond"])
def test_primal_values_act_in_derivatives(
    name: str, derive: Callable[..., Any], times: int, where: str
) -> None:
    log: Log = []

    def f(x: Any) -> Any:
        if where == "straight":
            debug.callback(noted(log), x)
            return jnp.sin(x)
        if where == "cond":
            return lax.cond(x > 0, lambda x: (debug.callback(noted(log), x), jnp.sin(x))[1], lambda x: x, x)
        return lax.scan(lambda c, i: (debug.callback(noted(log), i), (jnp.sin(c), None))[1], x, jnp.arange(2))[0]

    plain: Log = []
    expected = derive(lambda x: jnp.sin(jnp.sin(x)) if where == "scan" else jnp.sin(x), 0.5)
    np.testing.assert_allclose(np.ravel(derive(f, 0.5)), np.ravel(expected), rtol=1e-5)
    once = [0, 1] if where == "scan" else [0.5]
    assert log == once * times, plain


TANGENTS = [
    ("jvp", lambda h: hloom.jvp(h, (1.0,), (2.0,)), [2.0]),
    ("jit(jvp)", lambda h: hloom.jit(lambda x: hloom.jvp(h, (x,), (2.0,)))(1.0), [2.0]),
    ("linearize", lambda h: hloom.linearize(h, 1.0)[1](3.0), [3.0]),
    ("jit(linearize)", lambda h: hloom.jit(lambda x: hloom.linearize(hloom.jit(h), x)[1](3.0))(1.0), [3.0]),
    ("grad", lambda h: hloom.grad(h)(1.0), []),
    ("jit(grad)", lambda h: hloom.jit(hloom.grad(h))(1.0), []),
]
"""A callback on a tangent runs where tangents run forwards."""


@pytest.mark.parametrize(("name", "run", "expected"), TANGENTS, ids=[t[0] for t in TANGENTS])
def test_tangents_act_where_they_run_forwards(name: str, run: Callable[..., Any], expected: Log) -> None:
    log: Log = []

    @hloom.custom_jvp
    def h(x: Any) -> Any:
        return jnp.sin(x)

    @h.defjvp
    def h_jvp(primals: Any, tangents: Any) -> Any:
        debug.callback(noted(log), tangents[0])
        return h(*primals), jnp.cos(primals[0]) * tangents[0]

    run(h)
    assert log == expected


def test_a_cotangent_is_printed_by_a_custom_vjp(capsys: pytest.CaptureFixture[str]) -> None:
    @hloom.custom_vjp
    def seen(x: Any) -> Any:
        return x

    seen.defvjp(lambda x: (x, None), lambda _, g: (debug.print("cotangent {}", g), (g,))[1])
    assert hloom.jit(hloom.grad(lambda x: 3 * seen(x)))(1.0) == 3
    assert capsys.readouterr().out == "cotangent 3.0\n"


NO_DERIVATIVE = [
    (lambda x: pure(np.sin, x), "Pure callbacks do not support JVP. Please use `hloom.custom_jvp`"),
    (lambda x: io_callback(np.sin, F32, x), "IO callbacks do not support JVP"),
]


@pytest.mark.parametrize(("f", "message"), NO_DERIVATIVE)
def test_functions_have_no_derivative(f: Callable[..., Any], message: str) -> None:
    for derive in (hloom.grad(f), hloom.jit(hloom.grad(f)), hloom.grad(hloom.jit(f))):
        with pytest.raises(ValueError, match=message) as caught:
            derive(jnp.float32(1.0))
        assert __file__ in str(caught.value)
    assert hloom.grad(lambda x: x * f(jnp.float32(2.0)))(1.0) == np.sin(np.float32(2.0))  # what does not move is free


def test_a_pure_callback_with_its_own_derivative() -> None:
    @hloom.custom_jvp
    def sine(x: Any) -> Any:
        return pure(np.sin, x)

    sine.defjvps(lambda t, y, x: pure(np.cos, x) * t)
    x = jnp.float32(0.3)
    np.testing.assert_allclose(hloom.jit(hloom.grad(sine))(x), np.cos(0.3), rtol=1e-6)
    summed = hloom.grad(lambda x: lax.scan(lambda c, _: (sine(c), None), x, None, length=3)[0])
    exact = hloom.grad(lambda x: jnp.sin(jnp.sin(jnp.sin(x))))
    np.testing.assert_allclose(summed(x), exact(x), rtol=1e-6)


def test_a_pure_callback_of_a_tangent_cannot_be_transposed() -> None:
    @hloom.custom_jvp
    def h(x: Any) -> Any:
        return x

    h.defjvp(lambda p, t: (p[0], pure(lambda t: t * 2, t[0])))
    assert hloom.jvp(h, (jnp.float32(1),), (jnp.float32(3),))[1] == 6
    with pytest.raises(ValueError, match="Pure callbacks do not support transpose"):
        hloom.grad(h)(jnp.float32(1))


def test_pure_callbacks_that_nobody_uses_are_dropped_and_effects_are_not() -> None:
    log: Log = []

    @hloom.jit
    def f(x: Any) -> Any:
        pure(lambda x: (log.append("pure"), x)[1], x)
        io_callback(lambda x: (log.append("io"), x)[1], F32, x)
        debug.callback(lambda: log.append("debug"))
        return x

    f(jnp.float32(1))
    assert log == ["io", "debug"]


def test_effects_keep_their_order_among_much_other_work() -> None:
    """The scheduler orders instructions by memory, and fusion gathers them; effects stay in order."""
    log: Log = []

    @hloom.jit
    def f(x: Any) -> Any:
        total = x.sum()
        for k in range(40):
            big = jnp.sin(x * k) if k % 3 else jnp.outer(x, x).sum(0)
            ordered = {"ordered": True} if k % 2 else {}
            io_callback(partial(lambda k, v: log.append(k), k), None, big.sum() if k % 4 else total, **ordered)
            debug.callback(partial(lambda k, v: log.append(k), 100 + k), big)
            total = total + big.mean()
        return total

    f(jnp.arange(64.0))
    assert log == [k + shift for k in range(40) for shift in (0, 100)]


LOOPS: list[tuple[str, Callable[[Callable[[Any], Any]], Any], float, int]] = [
    ("grad", lambda f: hloom.grad(f)(1.0), 6, 3),
    ("jit(grad)", lambda f: hloom.jit(hloom.grad(f))(1.0), 6, 3),
    ("jvp", lambda f: hloom.jvp(f, (1.0,), (1.0,))[1], 6, 3),
    ("vmap(grad)", lambda f: hloom.vmap(hloom.grad(f))(jnp.ones(2))[0], 6, 3),
    ("grad(checkpoint)", lambda f: hloom.grad(hloom.checkpoint(f))(1.0), 6, 3),
]


@pytest.mark.parametrize(("name", "derive", "expected", "calls"), LOOPS, ids=[each[0] for each in LOOPS])
def test_derivatives_of_a_loop_use_the_values_that_its_effects_gave(
    name: str, derive: Callable[..., Any], expected: float, calls: int
) -> None:
    """Each turn draws another number, from no operands: it is not computed outside of the loop."""
    log: Log = []

    def draw() -> Any:
        log.append(1)
        return np.float32(len(log))

    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (c * io_callback(draw, F32), None), x, None, length=3)[0]

    assert derive(f) == expected and len(log) == calls


def test_a_condition_acts_in_derivatives() -> None:
    log: Log = []

    def f(x: Any) -> Any:
        def condition(s: Any) -> Any:
            debug.callback(noted(log), s[0])
            return s[0] < 2

        return lax.while_loop(condition, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]

    assert hloom.jvp(f, (1.0,), (1.0,)) == (4, 4) and log == [0, 1, 2]


# ---- what they get


@pytest.mark.parametrize("on", ON)
def test_arguments_are_read_only_arrays_that_may_be_kept(on: str, backend: str) -> None:
    kept: Log = []

    def step(c: Any, _: Any) -> Any:
        debug.callback(lambda c, d: kept.append((c, d["deep"][0])), c, {"deep": [c * 2]})
        return c + 1, None

    run = ON[on](lambda x: lax.scan(step, x, None, length=4))
    run(jnp.zeros(5))
    run(jnp.full(5, 100.0))
    for k, (c, d) in enumerate(kept):
        start = k % 4 + (100 if k >= 4 else 0)
        assert isinstance(c, hloom.Array) and not np.asarray(c).flags.writeable
        assert c.tolist() == [start] * 5 and d.tolist() == [2 * start] * 5


GIVEN: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("numbers are arrays", (1, 2.5, True), {}, "Array:int32[] Array:float32[] Array:bool[]"),
    ("arrays", (np.ones((2, 3), np.float16),), {}, "Array:float16[2,3]"),
    ("other objects", ("text", None, str), {}, "text None str"),
    ("containers", ([1.0, "a"],), {"k": (2,)}, "[Array:float32[],a] k=(Array:int32[],)"),
    ("keys", (hloom.random.key(3),), {}, "Array:key<fry>[]"),
    ("small types", (jnp.zeros(2, jnp.bfloat16), jnp.zeros(0, jnp.int8)), {}, "Array:bfloat16[2] Array:int8[0]"),
]


def described(value: Any) -> str:
    if isinstance(value, hloom.Array):
        return f"Array:{value.aval.str_short()}"
    if isinstance(value, list):
        return f"[{','.join(map(described, value))}]"
    if isinstance(value, tuple):
        return f"({','.join(map(described, value))},)"
    return value.__name__ if isinstance(value, type) else str(value)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(("name", "args", "kwargs", "expected"), GIVEN, ids=[g[0] for g in GIVEN])
def test_arguments_of_a_debug_callback(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], expected: str, on: str
) -> None:
    seen: list[str] = []

    def f(*args: Any, **kwargs: Any) -> None:
        seen.append(" ".join([*map(described, args), *(f"{k}={described(v)}" for k, v in kwargs.items())]))

    ON[on](lambda: debug.callback(f, *args, **kwargs))()
    assert seen == [expected]


def test_traced_keys_arrive_as_keys() -> None:
    seen: Log = []
    key = hloom.random.key(7)
    hloom.jit(lambda k: debug.callback(lambda k: seen.append(hloom.random.normal(k)), k))(key)
    assert seen[0] == hloom.random.normal(key)


# ---- what they may return

class Foreign:
    """An array of another library."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(42.0, np.float32)


GOOD: list[tuple[str, Any, Callable[..., Any], Any]] = [
    ("an array", F32, lambda x: x + 1, 2.0),
    ("a NumPy scalar", F32, lambda x: np.float32(3), 3.0),
    ("a number", F32, lambda x: 1.5, 1.5),
    ("a wide array", F32, lambda x: np.float64(1.25), 1.25),
    ("a tuple", (F32, [F32]), lambda x: (x, [x + 2]), (1.0, [3.0])),
    ("a list for a tuple", (F32, F32), lambda x: [x, x], (1.0, 1.0)),
    ("a dictionary", {"a": F32}, lambda x: {"a": x}, {"a": 1.0}),
    ("nothing", None, lambda x: None, None),
    ("no elements", ShapeDtypeStruct((0, 2), np.int32), lambda x: np.zeros((0, 2), np.int32), np.zeros((0, 2))),
    ("a strided array", ShapeDtypeStruct((2, 3), np.float32), lambda x: np.arange(6, dtype=np.float32).reshape(3, 2).T,
     np.arange(6).reshape(3, 2).T),
    ("a boolean", ShapeDtypeStruct((), np.bool_), lambda x: True, True),
    ("a list for what is in it", {"a": F32}, lambda x: {"a": [x]}, {"a": 1.0}),
    ("an array of another library", F32, lambda x: Foreign(), 42.0),
    ("an array as the type", jnp.zeros(2, jnp.int8), lambda x: np.array([1, 2], np.int8), [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("call", [pure_callback, io_callback])
@pytest.mark.parametrize(("name", "promised", "f", "expected"), GOOD, ids=[g[0] for g in GOOD])
def test_results(
    name: str, promised: Any, f: Callable[..., Any], expected: Any, call: Any, on: str, backend: str
) -> None:
    found = ON[on](lambda x: call(f, promised, x))(1.0)
    assert hloom.tree.structure(found) == hloom.tree.structure(promised)
    for a, b in zip(hloom.tree.leaves(found), hloom.tree.leaves(promised), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, False)
    if not isinstance(expected, dict | tuple):
        if expected is not None:
            np.testing.assert_array_equal(found, expected)
    else:
        assert hloom.tree.map(float, found) == expected


BAD: list[tuple[str, Any, Callable[..., Any], str]] = [
    ("a shape", ShapeDtypeStruct((3,), np.float32), lambda x: np.zeros(2, np.float32), "float32[2], not float32[3]"),
    ("a dtype", F32, lambda x: np.int32(1), "a result of int32[], not float32[]"),
    ("a kind of number", F32, lambda x: 1, "a result of int32[], not float32[]"),
    ("a number for an array", ShapeDtypeStruct((1,), np.float32), lambda x: 1.0, "float32[], not float32[1]"),
    ("nothing", F32, lambda x: None, "0 arrays"),
    ("too many", F32, lambda x: (x, x), "2 arrays, PyTreeDef((*, *)), not 1: float32[]"),
    ("too few", (F32, F32), lambda x: (x,), "1 arrays, PyTreeDef((*,)), not 2: float32[], float32[]"),
    ("another tree", {"a": F32}, lambda x: {"b": x}, "a tree PyTreeDef({'b': *}), not PyTreeDef({'a': *})"),
    ("no array", F32, lambda x: "text", "a result that is no array but a str"),
    ("one of two", (F32, F32), lambda x: (x, np.zeros(1, np.float32)), "result 1 of float32[1], not float32[]"),
]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(("name", "promised", "f", "message"), BAD, ids=[b[0] for b in BAD])
def test_wrong_results_are_named(
    name: str, promised: Any, f: Callable[..., Any], message: str, on: str, backend: str
) -> None:
    with pytest.raises(CustomCallError) as caught:
        ON[on](lambda x: pure_callback(f, promised, x))(1.0)
    text = str(caught.value)
    assert message in text and f"{__file__}" in text and "result_shape_dtypes" in text
    assert isinstance(caught.value, RuntimeError)


def test_64_bits_where_there_are_none() -> None:
    with pytest.raises(ValueError, match="cannot specify 64-bit types when `jax_enable_x64` is disabled"):
        pure_callback(lambda: 0, np.zeros(3, np.int64))
    with hloom.enable_x64():
        assert pure_callback(lambda: np.arange(3), np.zeros(3, np.int64)).dtype == np.int64


ARGUMENTS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: pure_callback(3, F32), TypeError, "must be callable, but got an object of type int"),
    (lambda: debug.callback(3), TypeError, "must be callable"),
    (lambda: pure_callback(abs, 3.0, 1.0), TypeError, "objects with a shape and a dtype"),
    (lambda: pure_callback(abs, F32, "text"), TypeError, "an array or a number is needed"),
    (lambda: pure_callback(abs, F32, 1.0, vmap_method="all"), ValueError, "vmap_method must be one of the allowed"),
    (lambda: pure_callback(abs, hloom.random.key(0)), TypeError, "cannot return an array of key<fry>"),
    (lambda: debug.print("a", x=1), ValueError, r"Unused keyword arguments to .* \['x'\]"),
    (lambda: debug.print("a", 1), ValueError, r"Unused positional arguments to .* \[1\]"),
    (lambda: debug.print("{} {}", 1), IndexError, "out of range"),
    (lambda: debug.print("{x}", 1), KeyError, "x"),
    (lambda: debug.print("{", 1), ValueError, "Single '{'"),
    (lambda: debug.print(3), TypeError, "must be a string, not int"),
    (lambda: debug.breakpoint(backend="web"), ValueError, "'cli' only"),
    (lambda: debug.breakpoint(ordered=True, token=1.0), ValueError, "mutually exclusive"),
]


@pytest.mark.parametrize(("call", "error", "message"), ARGUMENTS)
def test_bad_arguments(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        hloom.jit(call)()


# ---- printing

PRINTED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("{}", (1.5,), {}, "1.5"),
    ("x={x} {y!r}", (), {"x": np.arange(3), "y": "s"}, "x=[0 1 2] 's'"),
    ("{:.3f}|{:>6}|{:03d}", (np.pi, 2, 7), {}, "3.142|     2|007"),
    ("{0}{1}{0}", ("a", "b"), {}, "aba"),
    ("{x.shape} {x[1]} {{}}", (), {"x": np.ones((2, 2))}, "(2, 2) [1. 1.] {}"),
    ("{:>{width}}", (1.0,), {"width": "8"}, "     1.0"),
    ("plain", (), {}, "plain"),
    ("{}", (True,), {}, "True"),
    ("{!r}", (np.float32(2.0),), {}, "Array(2., dtype=float32)"),
]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(("fmt", "args", "kwargs", "expected"), PRINTED)
def test_print(
    fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any], expected: str, on: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    ON[on](lambda: debug.print(fmt, *args, **kwargs))()
    ON[on](lambda: debug.print(ordered=True, partitioned=True)(fmt, *args, **kwargs))()
    assert capsys.readouterr().out == f"{expected}\n" * 2


def test_print_of_traced_values_and_options(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    @hloom.jit
    def f(x: Any) -> Any:
        with np.printoptions(precision=2):
            debug.print("{x} {y:.1e}", x=x / 3, y=x[0] + 1)
        debug.print("{}", x, "more", skip_format_check=True)
        debug.print("{}", x[0], _use_logging=True)
        return x

    with caplog.at_level(logging.INFO, "hloom.debug"):
        f(jnp.arange(3.0))
    assert capsys.readouterr().out == "[0.   0.33 0.67] 1.0e+00\n[0. 1. 2.]\n"
    (record,) = caplog.records
    assert (record.getMessage(), record.pathname) == ("0.0", __file__)


# ---- errors


class Unusual(Exception):
    """An error of the user."""


class Awkward(ValueError):
    """An error that only its own constructor makes."""

    def __new__(cls, *, code: int) -> Any:
        return super().__new__(cls)

    def __init__(self, *, code: int) -> None:
        self.text = code

    def __init_subclass__(cls, *, needed: int) -> None:
        pass

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError

    def __str__(self) -> str:
        return f"code {self.text}"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Exception("anything"), "Exception: anything"),
        (OSError(2, "no", "file"), "FileNotFoundError: [Errno 2] no: 'file'"),
        (UnicodeDecodeError("ascii", b"a", 0, 1, "no"), "UnicodeDecodeError: 'ascii' codec can't decode byte 0x61"),
        (Awkward(code=3), "Awkward: code 3"),
    ],
)
def test_errors_of_all_classes_are_of_two(error: Exception, text: str) -> None:
    def failing(x: Any) -> Any:
        raise error

    with pytest.raises(type(error)) as caught:
        pure_callback(failing, F32, 1.0)
    for found in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(found, type(error)) and isinstance(found, hloom.errors.JaxRuntimeError)
        assert str(found).startswith(text) and found.args == error.args
        assert {k: v for k, v in vars(found).items() if k in vars(error)} == vars(error)


@pytest.mark.parametrize(
    "kind", [Unusual, RuntimeError, KeyError, SystemExit, KeyboardInterrupt, StopIteration, MemoryError]
)
@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("call", [debug.callback, pure_callback, io_callback])
def test_an_error_reaches_the_caller(call: Any, on: str, kind: type[BaseException], backend: str) -> None:
    raised: Log = []
    fails = True

    def failing(x: Any) -> Any:
        if fails:
            raised.append(kind("from the callback"))
            raise raised[-1]
        return x

    def program(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            if call is debug.callback:
                debug.callback(failing, c)
                return c, None
            return call(failing, F32, c) + 1, None

        return lax.scan(step, x, None, length=3)[0]

    run = ON[on](program)
    with pytest.raises(kind) as caught:
        run(1.0)
    if issubclass(kind, Exception):  # others, which end a program, stay what they are
        assert isinstance(caught.value, hloom.errors.JaxRuntimeError) and caught.value.__cause__ is raised[-1]
        assert f"{kind.__name__}: {raised[-1]}" in str(caught.value)
    else:
        assert caught.value is raised[-1]
    text = "".join(traceback.format_exception(caught.value))
    assert "raise raised[-1]" in text and "run(1.0)" in text and "failing at" in text
    fails = False
    assert run(1.0) == (1 if call is debug.callback else 4)


def test_effects_before_an_error_have_happened_and_those_after_it_have_not() -> None:
    log: Log = []

    def stop(i: Any) -> None:
        if i == 2:
            raise Unusual

    def step(c: Any, i: Any) -> Any:
        debug.callback(noted(log), i)
        debug.callback(stop, i)
        return c, None

    with pytest.raises(Unusual):
        hloom.jit(lambda: lax.scan(step, 0.0, jnp.arange(10)))()
    assert log == [0, 1, 2]


def test_nothing_is_left_of_a_program_that_stopped() -> None:
    from hloom.numba_backend.runtime import memory

    def fail(x: Any) -> None:
        raise Unusual

    @hloom.jit
    def f(x: Any) -> Any:
        y = jnp.cumsum(x * 2)
        debug.callback(fail, y)
        return jnp.cumsum(y) + x

    x = jnp.ones(300_000)
    for _ in range(3):
        with pytest.raises(Unusual):
            f(x)
    gc.collect()
    alive = [o for o in gc.get_objects() if type(o) in (memory.Memory, memory.LargeMemory)]
    with pytest.raises(Unusual):
        f(x)
    gc.collect()
    assert len([o for o in gc.get_objects() if type(o) in (memory.Memory, memory.LargeMemory)]) <= len(alive)


# ---- programs within programs, threads, life


@pytest.mark.parametrize("on", ON)
def test_a_callback_may_run_programs(on: str, backend: str) -> None:
    @hloom.jit
    def inner(x: Any) -> Any:
        return jnp.sin(x @ x).sum()

    def host(x: Any) -> Any:
        return inner(x) + hloom.grad(inner)(x).sum() + jnp.linalg.norm(x)

    def program(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            y = pure_callback(host, F32, c)
            return c + y * 1e-3, y

        return lax.scan(step, x, None, length=3)

    x = jnp.arange(40_000.0).reshape(200, 200) / 40_000
    carry, expected = x, []
    for _ in range(3):
        expected.append(host(carry))
        carry = carry + expected[-1] * 1e-3
    found_carry, found = ON[on](program)(x)
    np.testing.assert_allclose(found, np.array(expected), rtol=1e-4)
    np.testing.assert_allclose(found_carry, carry, rtol=1e-4)


def test_a_callback_may_call_the_program_that_calls_it() -> None:
    @hloom.jit
    def countdown(n: Any) -> Any:
        return n + pure_callback(lambda n: countdown(n - 1) if n > 0 else n, ShapeDtypeStruct((), np.int32), n)

    assert countdown(jnp.int32(10)) == 55


def test_a_callback_may_trace() -> None:
    """It runs outside of the trace of who calls it, even where that is not compiled."""
    f = hloom.jit(lambda x: x * 2)
    seen: Log = []

    def program(x: Any) -> Any:
        debug.callback(lambda x: seen.append(float(hloom.grad(lambda y: f(y) * y)(x))), x)
        return jnp.sin(x)

    for run in (program, hloom.grad(program), hloom.jit(program), hloom.jit(hloom.grad(program))):
        run(3.0)
    assert seen == [12.0] * 4


def test_threads() -> None:
    seen: dict[float, set[int]] = {}
    lock = threading.Lock()

    def host(x: Any) -> Any:
        with lock:
            seen.setdefault(float(x), set()).add(threading.get_ident())
        return x * 2

    f = hloom.jit(lambda x: lax.scan(lambda c, _: (pure(host, c) / 2, None), x, None, length=20)[0])
    f(jnp.float32(-1))
    results: dict[int, float] = {}

    def run(k: int) -> None:
        for _ in range(10):
            results[k] = float(f(jnp.float32(k)))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {k: float(k) for k in range(4)}
    assert all(len(seen[float(k)]) == 1 for k in range(4))  # in the thread of the caller


def test_an_error_in_another_thread() -> None:
    def fail(x: Any) -> None:
        raise Unusual

    f = hloom.jit(lambda x: (debug.callback(fail, x), x + 1)[1])
    caught: Log = []

    def run() -> None:
        try:
            f(1.0)
        except Unusual as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(caught) == 1


USES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "eager": lambda f: f(jnp.float32(1)),
    "grad(jit)": lambda f: hloom.grad(hloom.jit(f))(1.0),
    "jit(vmap(grad))": lambda f: hloom.jit(hloom.vmap(hloom.grad(f)))(jnp.ones(2)),
    "vmap(jit)": lambda f: hloom.vmap(hloom.jit(f))(jnp.ones(2)),
    "grad(scan)": lambda f: hloom.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])(1.0),
    "while": lambda f: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, jnp.float32(1))),
    "cond": lambda f: lax.cond(True, f, f, jnp.float32(1)),
    "grad(checkpoint)": lambda f: hloom.grad(hloom.checkpoint(f))(1.0),
}


@pytest.mark.parametrize("name", USES)
def test_no_cache_keeps_a_function(name: str) -> None:
    class Host:
        def __call__(self, x: Any) -> Any:
            return x

    host = Host()
    gone = weakref.ref(host)

    def f(x: Any, host: Any = host) -> Any:
        debug.callback(host, x)
        y = pure_callback(host, F32, lax.stop_gradient(x), vmap_method="sequential")
        return jnp.sin(x) * y

    USES[name](f)
    del host, f
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("on", ["jit", "scan outside of jit", "lowered"])
def test_a_function_lives_as_long_as_its_programs(on: str) -> None:
    class Host:
        def __call__(self, x: Any) -> Any:
            return x + 1

    host = Host()
    gone = weakref.ref(host)

    def program(x: Any, host: Any = host) -> Any:
        return lax.scan(lambda c, _: (pure(host, c), None), x, None, length=2)[0]

    x = jnp.float32(1)
    run: Any = {"jit": hloom.jit(program), "lowered": hloom.jit(program).lower(x).compile()}.get(on, program)
    assert run(x) == 3
    del host, program
    gc.collect()
    assert gone() is not None or on == "scan outside of jit"
    assert run(x) == 3 if on != "scan outside of jit" else True
    del run
    gc.collect()
    assert gone() is None


def test_the_instruction() -> None:
    """XLA's custom call; the text has no function, and is refused with the reason."""
    lowered = hloom.jit(lambda x: (debug.print("{}", x), pure(np.sin, x))[1]).lower(jnp.ones(3))
    calls = [i for i in lowered.compile().executable.module.instructions() if i.opcode is Opcode.CUSTOM_CALL]
    assert {c.attributes.custom_call_target for c in calls} == {"xla_ffi_python_cpu_callback"}
    assert sorted(c.attributes.has_side_effect for c in calls) == [False, True]
    text = lowered.as_text()
    assert 'composite.name="debug_print"' in text and "index = " in text
    with pytest.raises(hloom.errors.UnsupportedError, match="Python function of the process that lowered"):
        hloom.run_hlo(text, np.ones(3, np.float32))


def test_a_loop_with_a_callback_stays_in_rows() -> None:
    def step(c: Any, _: Any) -> Any:
        return pure(np.cos, c * 2), None

    compiled = hloom.jit(lambda x: lax.scan(step, x, None, length=5)[0]).lower(jnp.ones(3)).compile()
    assert "custom-call" in compiled.as_text() and "while(" in compiled.as_text()


def test_effects_barrier() -> None:
    log: Log = []
    hloom.jit(lambda x: debug.callback(noted(log), x))(1.0)
    assert log == [1.0] and hloom.effects_barrier() is None


# ---- the prompt


def prompted(commands: str, **options: Any) -> Callable[[Any], str]:
    out = io.StringIO()

    def f(x: Any) -> Any:
        y = jnp.sin(x)
        parts = {"a": [y, "text"], "b": (x,)}
        debug.breakpoint(stdin=io.StringIO(commands), stdout=out, backend="cli", **options)
        return y + len(parts)

    def run(x: Any) -> str:
        hloom.jit(f)(x)
        return out.getvalue()

    return run


PROMPT: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("continue", "c", {}, ["Entering jdb:\n(jdb) "]),
    ("value", "p x\nc", {}, ["(jdb) Array(2., dtype=float32)\n(jdb) "]),
    ("expression", "x * 2 + y\nc", {}, ["(jdb) Array(4.9092975, dtype=float32)\n"]),
    ("tree", "pp parts['a'][1], parts['b'][0]\nc", {}, ["('text', Array(2., dtype=float32))"]),
    ("error", "nothing\nc", {}, ["*** NameError: name 'nothing' is not defined"]),
    ("locals", "locals\nc", {}, ["y = Array(0.90929", "parts = {'a': [Array("]),
    ("list", "l\nc", {}, ["->          debug.breakpoint(", "y = jnp.sin(x)", f"> {__file__}("]),
    ("where", "bt\nc", {}, ["Traceback:", "in f\n    debug.breakpoint(", "in run\n    hloom.jit(f)(x)"]),
    ("up and down", "u\np commands\nd\nd\nc", {}, ["hloom.jit(f)(x)", "At bottommost frame."]),
    ("one frame", "u\nc", {"num_frames": 1}, ["At topmost frame."]),
    ("all frames", "bt\nc", {"filter_frames": False}, ["recording.py"]),
    ("help", "help p\nc", {}, ["print the value of an expression"]),
]


@pytest.mark.parametrize(("name", "commands", "options", "expected"), PROMPT, ids=[p[0] for p in PROMPT])
def test_breakpoint(name: str, commands: str, options: dict[str, Any], expected: list[str]) -> None:
    text = prompted(commands, **options)(2.0)
    for part in expected:
        assert part in text


def test_breakpoint_that_quits_and_its_token() -> None:
    with pytest.raises(SystemExit, match="0"):
        prompted("q")(1.0)
    with pytest.raises(SystemExit, match="0"):
        prompted("")(1.0)
    out = io.StringIO()

    def f(x: Any) -> Any:
        y = x * 2
        y = debug.breakpoint(stdin=io.StringIO("p y\nc\n" * 9), stdout=out, token=y)
        return y + 1

    assert hloom.jit(f)(1.0) == 3 and "Array(2., dtype=float32)" in out.getvalue()


def test_breakpoint_in_a_loop_and_outside_of_jit() -> None:
    out = io.StringIO()
    stdin = io.StringIO("p c\nc\n" * 6)

    def step(c: Any, _: Any) -> Any:
        debug.breakpoint(stdin=stdin, stdout=out, num_frames=1)
        return c + 1, None

    lax.scan(step, jnp.float32(0), None, length=2)
    with hloom.disable_jit():
        lax.scan(step, jnp.float32(5), None, length=1)
    shown = [line for line in out.getvalue().splitlines() if "Array" in line]
    assert [s.split("Array(")[1][0] for s in shown] == ["0", "1", "5"]


# ---- batches


def each(log: Log, *values: Any) -> Any:
    log.append(tuple(v.tolist() for v in values))
    return sum([np.asarray(v) for v in values])


METHODS: list[tuple[str, Log]] = [
    ("sequential", [(0, 9), (1, 9), (2, 9)]),
    ("sequential_unrolled", [(0, 9), (1, 9), (2, 9)]),
    ("expand_dims", [([0, 1, 2], [9])]),
    ("broadcast_all", [([0, 1, 2], [9, 9, 9])]),
    ("legacy_vectorized", [([0, 1, 2], 9)]),
]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(("method", "expected"), METHODS, ids=[m[0] for m in METHODS])
def test_vmap_of_a_pure_callback(method: str, expected: Log, on: str) -> None:
    log: Log = []

    def f(x: Any, y: Any) -> Any:
        return pure_callback(lambda x, y: each(log, x, y) * np.float32(1), F32, x, y, vmap_method=method)

    run = ON[on](hloom.vmap(f, in_axes=(0, None)))
    assert run(jnp.arange(3.0), jnp.float32(9)).tolist() == [9, 10, 11]
    assert log == expected


def test_vmap_of_vmap_of_a_pure_callback() -> None:
    shapes: Log = []

    def f(x: Any, y: Any) -> Any:
        def host(x: Any, y: Any) -> Any:
            shapes.append((x.shape, y.shape))
            return x * y

        return pure_callback(host, F32, x, y, vmap_method="expand_dims")

    x, y = jnp.arange(2.0), jnp.arange(3.0)
    both = hloom.vmap(hloom.vmap(f, (None, 0)), (0, None))
    np.testing.assert_array_equal(hloom.jit(both)(x, y), np.outer(x, y))
    assert shapes == [((2, 1), (1, 3))] or shapes == [((2, 1), (2, 3))]


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: pure(np.sin, x), NotImplementedError, "only supported .* when vmap_method is one of"),
    (lambda x: io_callback(np.sin, F32, x, ordered=True), ValueError, "Cannot `vmap` ordered IO callback"),
    (lambda x: lax.cond(x > 0, lambda x: io_callback(np.sin, F32, x), lambda x: x, x), NotImplementedError,
     "IO effect not supported in vmap-of-cond"),
    (lambda x: lax.while_loop(lambda c: c < 3, lambda c: (io_callback(np.sin, None, c), c + 1)[1], x),
     NotImplementedError, "not supported in while_loop with batched predicate"),
    (lambda x: lax.cond(x > 0, lambda x: hloom.jit(lambda x: io_callback(np.sin, F32, x))(x), lambda x: x, x),
     NotImplementedError, "IO effect not supported in vmap-of-cond"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "error", "message"), REFUSED)
def test_vmap_that_is_refused(f: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    for run in (hloom.vmap(f), hloom.jit(hloom.vmap(f)), hloom.vmap(hloom.jit(f))):
        with pytest.raises(error, match=message) as caught:
            run(jnp.arange(2.0))
        assert __file__ in str(caught.value)


def printing_scan(log: Log, x: Any) -> Any:
    return lax.scan(lambda c, i: (debug.callback(noted(log, "s"), c), (c * 2, None))[1], x, jnp.arange(2.0))[0]


def printing_while(log: Log, x: Any) -> Any:
    return lax.while_loop(lambda c: c < 3, lambda c: (debug.callback(noted(log, "w"), c), c + 1)[1], x)


BATCHED: list[tuple[str, Callable[[Log, Any], Any], Log]] = [
    ("debug.callback", lambda log, x: (debug.callback(noted(log), x), jnp.sin(x))[1], [1, 2]),
    ("of what is shared", lambda log, x: (debug.callback(noted(log), jnp.float32(7)), jnp.sin(x))[1], [7]),
    ("io_callback", lambda log, x: io_callback(lambda x: (log.append(float(x)), x)[1], F32, x), [1, 2]),
    ("scan", printing_scan, [("s", 1.0), ("s", 2.0), ("s", 2.0), ("s", 4.0)]),
    ("while", printing_while, [("w", 1.0), ("w", 2.0), ("w", 2.0), ("w", 3.0)]),
    ("cond", lambda log, x: lax.cond(x > 1, partial(passed, log, "yes"), partial(passed, log, "no"), x),
     [("no", 1.0), ("no", 2.0), ("yes", 1.0), ("yes", 2.0)]),
    ("keys", lambda log, x: (debug.callback(lambda k: log.append(k.shape), hloom.random.key(x.astype(int))), x)[1],
     [(), ()]),
]  # fmt: skip
"""The recorded calls for the batch (1, 2); both branches of a batched cond run, as in JAX, in either order."""


def passed(log: Log, name: str, x: Any) -> Any:
    debug.callback(noted(log, name), x)
    return x


@pytest.mark.parametrize("on", ["vmap", "jit(vmap)", "vmap(jit)", "vmap(grad)", "grad(vmap)", "jit(vmap(grad))"])
@pytest.mark.parametrize(("name", "f", "expected"), BATCHED, ids=[b[0] for b in BATCHED])
def test_effects_in_vmap(name: str, f: Callable[[Log, Any], Any], expected: Log, on: str) -> None:
    if "grad" in on and name in ("io_callback", "while"):
        pytest.skip("it has no derivative")
    log: Log = []
    g = partial(f, log)
    run = {
        "vmap": hloom.vmap(g),
        "jit(vmap)": hloom.jit(hloom.vmap(g)),
        "vmap(jit)": hloom.vmap(hloom.jit(g)),
        "vmap(grad)": hloom.vmap(hloom.grad(g)),
        "grad(vmap)": hloom.grad(lambda x: hloom.vmap(g)(x).sum()),
        "jit(vmap(grad))": hloom.jit(hloom.vmap(hloom.grad(g))),
    }[on]
    run(jnp.arange(1.0, 3.0))
    assert sorted(log) == expected if name == "cond" else log == expected
