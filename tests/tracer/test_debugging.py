"""Settings for finding faults: NaN and infinity, leaked values, what is compiled and why, programs as plain Python."""

from __future__ import annotations

import gc
import importlib
import inspect
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hloom.tracer.checks import leaks
from hloom.tracer.core import CheckingLayer
from hloom.tracer.layers import LAYERS

import hloom
import hloom.numpy as jnp
from hloom import ShapeDtypeStruct, debug, lax
from hloom.errors import UnexpectedTracerError
from hloom.experimental import io_callback


def line_of(function: Callable[..., Any], text: str) -> str:
    """``file:line`` of the first line of a function that contains `text`."""
    lines, first = inspect.getsourcelines(function)
    return f"{__file__}:{next(first + k for k, line in enumerate(lines) if text in line)}"


# ---- NaN and infinity: the operation and its line


def outside(x: Any) -> Any:
    y = x + 1
    z = jnp.log(-y)  # here
    return z * 2


def with_a_scalar(x: Any) -> Any:
    y = jnp.ones(3) * x
    return y / (x * 0) * 0 - y / (x * 0)  # here


def in_scan(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        c = jnp.sqrt(c)  # here
        return c - 1, c

    return lax.scan(step, x + 0.5, None, length=5)[0]


def in_while(x: Any) -> Any:
    def body(s: Any) -> Any:
        i, c = s
        return i + 1, jnp.log(c - 1)  # here

    return lax.while_loop(lambda s: s[0] < 4, body, (0, x + 1))[1]


def in_cond(x: Any) -> Any:
    return lax.cond(x > 0, lambda x: jnp.log(-x), lambda x: x, x)  # here


def in_derivative(x: Any) -> Any:
    def f(x: Any) -> Any:
        return jnp.sqrt(x) * 0  # here

    return hloom.grad(f)(x * 0)


def in_nested_jit(x: Any) -> Any:
    @hloom.jit
    def inner(x: Any) -> Any:
        return jnp.log(-x)  # here

    return inner(x) + 1


def in_vmap(x: Any) -> Any:
    return hloom.vmap(lambda y: jnp.log(y - x))(jnp.arange(3.0))  # here


BAD: list[tuple[Callable[..., Any], str]] = [
    (outside, "log"),
    (with_a_scalar, "subtract|multiply"),
    (in_scan, "sqrt"),
    (in_while, "log"),
    (in_cond, "log"),
    (in_derivative, "multiply"),
    (in_nested_jit, "log"),
    (in_vmap, "log"),
]


@pytest.mark.parametrize("on", ["eager", "jit"])
@pytest.mark.parametrize(("f", "op"), BAD, ids=[b[0].__name__ for b in BAD])
def test_nan_names_the_operation_and_its_line(f: Callable[..., Any], op: str, on: str) -> None:
    run = hloom.jit(f) if on == "jit" else f
    np.testing.assert_array_equal(np.isnan(np.asarray(run(1.0))).any(), True)  # without the setting: silence
    for _ in range(2):
        with hloom.debug_nans(True), pytest.raises(FloatingPointError, match="debug_nans") as caught:
            run(1.0)
        message = str(caught.value)
        assert any(f"invalid value (nan) encountered in {o}" in message for o in op.split("|"))
        assert line_of(f, "# here") in message
    run(1.0)


@pytest.mark.parametrize("on", ["eager", "jit"])
def test_infinity(on: str) -> None:
    def f(x: Any) -> Any:
        return 1 / x  # here

    run = hloom.jit(f) if on == "jit" else f
    with hloom.debug_nans(True):
        assert run(jnp.zeros(2)).tolist() == [np.inf, np.inf]
    with hloom.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in divide") as caught:
        run(jnp.zeros(2))
    assert line_of(f, "# here") in str(caught.value)


GOOD = [
    ("hidden by where", lambda x: jnp.where(x > 0, jnp.log(x), 0.0), -1.0),
    ("integers", lambda x: x // 2, 3),
    ("complex numbers", lambda x: x * 1j, 2.0),
    ("small floats", lambda x: x.astype(jnp.bfloat16) * 2, jnp.ones(3)),
    ("no elements", lambda x: jnp.log(x), jnp.zeros(0)),
    ("keys", lambda x: hloom.random.split(hloom.random.key(x)), 3),
    ("the largest", lambda x: jnp.max(x), jnp.ones(3)),
]


@pytest.mark.parametrize(("name", "f", "x"), GOOD, ids=[g[0] for g in GOOD])
def test_results_that_are_good(name: str, f: Callable[..., Any], x: Any) -> None:
    with hloom.debug_nans(True), hloom.debug_infs(True):
        found = hloom.jit(f)(x)
    assert found.shape == jnp.shape(f(x))


def test_all_ways_of_a_program_are_checked() -> None:
    """Keyword arguments, donated ones, captured arrays, and programs that are lowered first."""
    big = jnp.arange(3.0)

    def f(x: Any, *, y: Any) -> Any:
        return jnp.log(x + y - big), y

    with hloom.debug_nans(True):
        for options in ({}, {"donate_argnums": 0}):
            run = hloom.jit(f, **options)
            assert run(jnp.full(3, 5.0), y=1.0)[1] == 1
            with pytest.raises(FloatingPointError, match=r"log of \(f32\[3\]\)"):
                run(jnp.zeros(3), y=0.5)
        compiled = hloom.jit(f).lower(jnp.ones(3), y=1.0).compile()
        with pytest.raises(FloatingPointError, match="encountered in log"):
            compiled(jnp.zeros(3), y=0.5)


def test_library_functions_that_are_programs_name_the_callers_line() -> None:
    with hloom.debug_nans(True):
        hloom.nn.softmax(jnp.ones(3))
        with pytest.raises(FloatingPointError) as caught:
            hloom.nn.softmax(jnp.array([1, np.inf]))  # bad
    assert line_of(test_library_functions_that_are_programs_name_the_callers_line, "# bad") in str(caught.value)
    assert "softmax" in str(caught.value)


GIVEN: list[tuple[str, Callable[..., Any], Any, str]] = [
    ("an argument that is used", lambda x: x * 3.0, np.nan, "produce it, it is in an input"),
    ("an argument that is returned", lambda x: (x, 3.0), np.nan, "produce it, it is in an input"),
    ("a literal that is returned", lambda x: (jnp.nan, x + 2), 3.0, "produce it, it is a literal"),
    ("a literal that is used", lambda x: x + jnp.full(2, jnp.nan), 3.0, "produce it, it is a literal"),
]


@pytest.mark.parametrize(("name", "f", "x", "words"), GIVEN, ids=[g[0] for g in GIVEN])
def test_a_nan_that_no_operation_made(name: str, f: Callable[..., Any], x: Any, words: str) -> None:
    with hloom.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        hloom.jit(f)(x)
    assert words in str(caught.value)
    with hloom.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        hloom.jit(lambda x: jnp.log(x))(-1.0)
    assert "did not produce" not in str(caught.value)


def test_effects_do_not_happen_twice() -> None:
    log: list[float] = []

    def f(x: Any) -> Any:
        debug.callback(lambda x: log.append(float(x)), x)
        return jnp.log(x)

    with hloom.debug_nans(True), pytest.raises(FloatingPointError, match="encountered in log"):
        hloom.jit(f)(-1.0)
    assert log == [-1.0]
    scalar = ShapeDtypeStruct((), np.float32)

    def g(x: Any) -> Any:
        y = io_callback(lambda x: (log.append(float(x)), x)[1], scalar, x)
        return jnp.log(y)

    with hloom.debug_nans(True), pytest.raises(FloatingPointError, match="it acts on the world"):
        hloom.jit(g)(-2.0)
    assert log == [-1.0, -2.0]


def test_operations_pay_nothing_until_results_are_checked() -> None:
    """A fresh process: the bottom trace has no layers until the setting is first on."""
    code = (
        "import hloom, hloom.numpy as jnp; from hloom.tracer.layers import LAYERS\n"
        "jnp.sin(1.0); print(type(LAYERS.top).__name__)\n"
        "with hloom.debug_nans(True): print(type(LAYERS.top).__name__)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "HLOOM_JIT_LEVEL"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["NoneType", "CheckingLayer"]
    with hloom.debug_nans(True):
        layers, layer = [], LAYERS.top
        while layer is not None:
            layers.append(layer)
            layer = getattr(layer, "below", None)
        assert any(isinstance(layer, CheckingLayer) for layer in layers)


def test_the_environment_and_the_process() -> None:
    code = "import hloom, hloom.numpy as jnp; print(hloom.config.jax_debug_nans); jnp.log(-1.0)"
    environment = {"JAX_DEBUG_NANS": "1", "PATH": "", "JAX_LOG_COMPILES": "true"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "True\n" and "invalid value (nan) encountered in log" in done.stderr
    before = hloom.config.jax_debug_nans
    seen: list[bool] = []
    try:
        hloom.config.update("jax_debug_nans", True)
        with hloom.debug_nans(False):
            jnp.log(-1.0)
            thread = threading.Thread(target=lambda: seen.append(hloom.config.jax_debug_nans))
            thread.start()
            thread.join()
        with pytest.raises(FloatingPointError):
            jnp.log(-1.0)
    finally:
        hloom.config.update("jax_debug_nans", before)
    assert seen == [True]


# ---- leaks


LEAKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "into_a_list": (lambda leaking: leaking.kept[0], "kept[0]"),
    "into_an_attribute": (lambda leaking: leaking.holder.layers["h"][1][0], "holder.layers['h'][1][0]"),
    "into_a_class": (lambda leaking: leaking.Holder.best, "Holder.best"),
    "into_a_closure": (lambda leaking: leaking.holder.layers["later"](), "holder.layers['later'].__closure__<y>"),
    "into_a_default": (lambda leaking: leaking.kept[0](), "kept[0].__defaults__[0]"),
}


@pytest.fixture
def leaking(monkeypatch: pytest.MonkeyPatch) -> Any:
    """support/leaking.py, imported anew."""
    monkeypatch.delitem(sys.modules, LEAKING, raising=False)
    return importlib.import_module(LEAKING)


LEAKING = "tests.support.leaking"


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leaked_value_is_named(leak: str, leaking: Any) -> None:
    get, name = LEAKS[leak]
    name = f"{LEAKING}.{name}"

    def f(x: Any) -> Any:
        y = x * 2  # made here
        getattr(leaking, leak)(y)
        return y

    made = line_of(f, "# made here")
    with hloom.checking_leaks(), pytest.raises(UnexpectedTracerError, match="Leaked tracer") as caught:
        hloom.jit(f)(1.0)
    assert name in str(caught.value) and made in str(caught.value)
    del caught
    leaking.clear()
    hloom.jit(f)(1.0)
    with pytest.raises(UnexpectedTracerError) as used:
        get(leaking) + 1
    assert name in str(used.value) and f"was created on line {made}" in str(used.value)


def test_one_search_serves_all_leaked_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a search visits all objects of the process."""
    steps: list[int] = []

    def get_referrers(*objects: object) -> list[Any]:
        steps.append(len(objects))
        return gc.get_referrers(*objects)

    counting = SimpleNamespace(get_referrers=get_referrers, get_referents=gc.get_referents, collect=gc.collect)
    monkeypatch.setattr(leaks, "gc", counting)
    counts = []
    for count in (1, 12):
        kept: dict[int, Any] = {}
        steps.clear()
        with hloom.checking_leaks(), pytest.raises(UnexpectedTracerError) as caught:
            hloom.jit(lambda *xs, kept=kept: kept.update(enumerate(xs)))(*range(count))
        assert str(caught.value).count("it is still alive as kept[") == count
        counts.append(len(steps))
    assert counts[0] == counts[1]


def test_a_leak_into_a_variable_of_a_function_that_runs() -> None:
    cache: dict[str, Any] = {}

    def f(x: Any) -> Any:
        cache["x"] = x
        return x

    with hloom.checking_leaks(), pytest.raises(UnexpectedTracerError) as caught:
        hloom.jit(f)(1.0)
    assert "it is the argument x\n" in str(caught.value)
    assert "cache['x'] in test_a_leak_into_a_variable_of_a_function_that_runs at" in str(caught.value)


TRANSFORMED: list[tuple[str, Callable[[Callable[..., Any]], Any]]] = [
    ("jit", lambda f: hloom.jit(f)(1.0)),
    ("vmap", lambda f: hloom.vmap(f)(jnp.ones(2))),
    ("grad", lambda f: hloom.grad(f)(1.0)),
    ("jvp", lambda f: hloom.jvp(f, (1.0,), (1.0,))),
    ("scan", lambda f: lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2)),
    ("cond", lambda f: hloom.jit(lambda x: lax.cond(x > 0, f, lambda x: x, x))(1.0)),
    ("checkpoint", lambda f: hloom.grad(hloom.checkpoint(f))(1.0)),
]


@pytest.mark.parametrize(("name", "run"), TRANSFORMED, ids=[name for name, _ in TRANSFORMED])
def test_leaks_of_transformations(name: str, run: Callable[..., Any], leaking: Any) -> None:
    def leaks(x: Any) -> Any:
        leaking.into_a_list(x)
        return x * 2

    with hloom.checking_leaks():
        with pytest.raises(UnexpectedTracerError, match=rf"{LEAKING}.kept\[0\]"):
            run(leaks)
        leaking.clear()
        run(lambda x: jnp.sin(x) * 2)  # what does not leak is no error
    leaking.clear()
    run(leaks)  # without the setting there is no check


@pytest.mark.slow  # each check of the many looks through all objects
def test_what_the_library_keeps_is_no_leak() -> None:
    @hloom.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), jnp.cos(p[0]) * t[0]))

    @hloom.custom_vjp
    def g(x: Any) -> Any:
        return jnp.sin(x)

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (jnp.cos(x) * ct,))

    def program(x: Any) -> Any:
        return lax.scan(lambda c, y: (f(c) + g(c) * hloom.checkpoint(jnp.sin)(y), y), x, jnp.ones(3))[0]

    with hloom.checking_leaks():
        hloom.jit(hloom.grad(program))(1.0)
        hloom.vmap(hloom.grad(hloom.jit(program)))(jnp.ones(2))
        hloom.hessian(lambda x: f(x) ** 2)(1.0)


# ---- what is compiled, and why


def logged(caplog: pytest.LogCaptureFixture) -> str:
    assert all(r.levelno == logging.WARNING and r.name == "hloom" for r in caplog.records)
    text = "\n".join(r.getMessage() for r in caplog.records)
    caplog.clear()
    return text


def test_log_compiles(caplog: pytest.LogCaptureFixture) -> None:
    @hloom.jit
    def stepping(x: Any, y: Any = 1.0) -> Any:
        return x + y

    stepping(jnp.ones(2))
    assert not caplog.records
    with hloom.log_compiles():
        assert hloom.config.jax_log_compiles
        stepping(jnp.ones(2))
        assert not caplog.records  # it is compiled already
        stepping(jnp.ones(3))
    text = logged(caplog)
    for part in ("Finished tracing stepping for jit in 0.", "Compiling jit_stepping with types (f32[3])", __file__,
                 "Finished compilation of jit_stepping in "):  # fmt: skip
        assert part in text
    stepping(jnp.ones(4))
    hloom.config.update("jax_log_compiles", True)
    try:
        with hloom.log_compiles(False):
            stepping(jnp.ones(5))
        assert not caplog.records
        stepping(jnp.ones(6))
    finally:
        hloom.config.update("jax_log_compiles", False)
    assert "f32[6]" in logged(caplog)
    with pytest.raises(TypeError, match="must be a bool"):
        hloom.log_compiles(3)  # type: ignore[arg-type]


MISSES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("shape", lambda f: f(jnp.ones(4)), "* different input types: at x, now f32[4] and before f32[3]"),
    ("dtype", lambda f: f(jnp.ones(3, jnp.int8)), "* different input types: at x, now i8[3] and before f32[3]"),
    ("weak type", lambda f: f(1.0), "now f32[]{weak_type=True} and before f32[3]{weak_type=False}"),
    ("static", lambda f: f(jnp.ones(3), n=5), "* static argument 'n', now 5 and before 2"),
    ("tree", lambda f: f([jnp.ones(3)]), "* different input pytree"),
    ("keyword", lambda f: f(jnp.ones(3), y=1), "* different input pytree"),
]


@pytest.mark.parametrize(("name", "call", "expected"), MISSES, ids=[m[0] for m in MISSES])
def test_explain_cache_misses(
    name: str, call: Callable[[Any], Any], expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    @hloom.jit
    def program(x: Any, y: Any = 0, n: int = 2) -> Any:
        return hloom.tree.map(lambda x: x + n + y, x)

    f = hloom.jit(program.__wrapped__, static_argnames="n")
    with hloom.explain_cache_misses():
        f(jnp.ones(3), n=2)
        text = logged(caplog)
        assert "TRACING CACHE MISS at" in text and "never seen function" in text and __file__ in text
        f(jnp.ones(3), n=2)
        assert not caplog.records
        call(lambda *args, **options: f(*args, **{"n": 2, **options}))
    text = logged(caplog)
    assert expected in text and "program at" in text


def test_a_setting_that_differs_is_named(caplog: pytest.LogCaptureFixture) -> None:
    f = hloom.jit(lambda x: x + 1)
    f(jnp.ones(2))
    with hloom.explain_cache_misses(), hloom.default_matmul_precision("highest"):
        f(jnp.ones(2))
    assert "different tracing context: setting default_matmul_precision, now highest and before None" in logged(caplog)


# ---- programs as plain Python


def seen_by(log: list[str], x: Any) -> Any:
    log.append(type(x).__name__)
    return x


PLAIN: list[tuple[str, Callable[[Any], Any], str]] = [
    ("jit", lambda see: hloom.jit(see)(jnp.ones(2)), "Array"),
    ("scan", lambda see: lax.scan(lambda c, x: (see(c), x), 1.0, jnp.ones(1)), "Array"),
    ("while", lambda see: lax.while_loop(lambda c: c < 1, lambda c: see(c) + 1, 0.0), "Array"),
    ("fori", lambda see: lax.fori_loop(0, 1, lambda i, c: see(c), 1.0), "Array"),
    ("cond", lambda see: lax.cond(True, see, lambda x: x, jnp.ones(2)), "Array"),
    ("switch", lambda see: lax.switch(1, [lambda x: x, see], jnp.ones(2)), "Array"),
    ("map", lambda see: lax.map(see, jnp.ones(1)), "Array"),
    ("jit in vmap", lambda see: hloom.vmap(hloom.jit(see))(jnp.ones(2)), "BatchTracer"),
    ("cond in vmap", lambda see: hloom.vmap(lambda x: lax.cond(True, see, see, x))(jnp.ones(2)), "BatchTracer"),
    ("scan in vmap", lambda see: hloom.vmap(lambda x: lax.scan(lambda c, _: (see(c), c), x, None, 1))(jnp.ones(2)),
     "BatchTracer"),
    ("fori in vmap", lambda see: hloom.vmap(lambda x: lax.fori_loop(0, 1, lambda i, c: see(c), x))(jnp.ones(2)),
     "BatchTracer"),
    ("jit in grad", lambda see: hloom.grad(hloom.jit(lambda x: see(x) * 2))(1.0), "JVPTracer"),
    ("scan in grad", lambda see: hloom.grad(lambda x: lax.scan(lambda c, _: (see(c), None), x, None, 1)[0])(1.0),
     "JVPTracer"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "run", "expected"), PLAIN, ids=[p[0] for p in PLAIN])
def test_without_jit_functions_run_as_python(name: str, run: Callable[..., Any], expected: str) -> None:
    log: list[str] = []
    with hloom.disable_jit():
        run(lambda x: seen_by(log, x))
    assert log == [expected]


@pytest.mark.parametrize("form", [debug.callback, debug.print])
def test_options_and_arguments_come_in_two_calls(form: Any) -> None:
    name = form.__name__.removeprefix("debug_")
    for call in (lambda: form(ordered=True, a=42), lambda: form(None, 42)):
        with pytest.raises(TypeError, match=rf"debug_{name} received unexpected arguments in the two-call form: .*42"):
            call()
