"""`debug.step`: programs run in steps, with the user's lines, names and values; results are the compiled function's."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import UnsupportedError
from hloom.hlo.opcode import Opcode
from hloom.hlo.text.parser import parse

import hloom
import hloom.numpy as jnp
from hloom import debug, lax
from hloom.debug.stepping.calls import stepped_calls
from hloom.debug.stepping.programs import program_of_module
from hloom.debug.stepping.prompt import Prompt
from hloom.debug.stepping.stepper import Stepper

X = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)


def layer(w: Any, x: Any) -> Any:
    h = jnp.tanh(x @ w)
    return h * 2


def network(x: Any, w: Any) -> Any:
    y = layer(w, x) + 1
    z = jnp.log(y - 1)
    return z.sum()


def running_sum(x: Any) -> Any:
    def body(c: Any, r: Any) -> Any:
        c = c * 0.5 + r.sum()
        return c, c

    return lax.scan(body, 0.0, x)


def collatz(n: Any) -> Any:
    def body(c: Any) -> Any:
        n, steps = c
        return lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), steps + 1

    return lax.while_loop(lambda c: c[0] != 1, body, (n, 0))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a network": (network, (X, np.eye(3, dtype=np.float32))),
    "its gradient": (hloom.grad(network), (X, np.eye(3, dtype=np.float32))),
    "a scan": (running_sum, (X,)),
    "a while loop with branches": (collatz, (6,)),
    "a batch": (hloom.vmap(lambda r: jnp.sort(r)[::-1] @ r), (X,)),
    "trees": (lambda p: {"a": p["b"] * 2, "c": (p["a"], None)}, ({"a": X, "b": 1.5},)),
    "no work": (lambda x: x, (X,)),
    "nothing": (lambda: (), ()),
    "keys": (lambda k: hloom.random.split(k), (hloom.random.key(3),)),
    "complex": (lambda x: (x * 1j).conj(), (X,)),
    "jit in jit": (hloom.jit(lambda x: hloom.jit(jnp.sin)(x) + 1), (X,)),
}


def same(a: Any, b: Any) -> None:
    assert hloom.tree.structure(a) == hloom.tree.structure(b)
    for one, other in zip(hloom.tree.leaves(a), hloom.tree.leaves(b), strict=True):
        assert one.aval == other.aval
        if hloom.dtypes.issubdtype(one.dtype, hloom.dtypes.prng_key):
            one, other = hloom.random.key_data(one), hloom.random.key_data(other)
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("kernels", [False, True], ids=["traced", "kernels"])
@pytest.mark.parametrize("how", ["step_instruction", "next_instruction", "step", "next"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_the_compiled_functions(name: str, how: str, kernels: bool) -> None:
    function, args = PROGRAMS[name]
    with debug.step(function, *args, prompt=False, kernels=kernels) as run:
        while not run.is_over:
            getattr(run, how)()
        same(run.result(), hloom.jit(function)(*args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rest_can_run_at_once(name: str) -> None:
    function, args = PROGRAMS[name]
    expected = hloom.jit(function)(*args)
    with debug.step(function, *args, prompt=False) as run:
        run.step_instruction()
        same(run.resume(), expected)
    with debug.step(function, *args, prompt=False) as run:  # operation by operation
        run.stop_where(nan=True)
        same(run.resume(), expected)


def test_lines_names_and_values() -> None:
    function, (x, w) = PROGRAMS["a network"]
    with debug.step(function, x, w, prompt=False) as run:
        run.step()
        first = layer.__code__.co_firstlineno
        assert run.line == f"{__file__}:{first + 1}"
        run.next()
        assert run.line == f"{__file__}:{first + 2}"
        np.testing.assert_allclose(run.value("h"), np.tanh(x @ w), rtol=1e-6)
        assert run.value("x") is not None and "y" not in run.names()
        run.next()
        run.next()
        np.testing.assert_allclose(run.value("y"), np.tanh(x @ w) * 2 + 1, rtol=1e-6)
        with pytest.raises(NameError, match="z has no value here"):
            run.value("z")
        with pytest.raises(RuntimeError, match="the program is not over"):
            run.result()
        assert not run.value("y").flags.writeable
        assert run.instruction is not None and run.value(f"%{run.instruction.name}") is not None


def test_a_function_that_ran_before_has_names() -> None:
    """It is traced once more, with exact places."""

    @hloom.jit
    def f(x: Any) -> Any:
        h = jnp.tanh(x)
        return h * 2

    f(X)
    names: set[str] = set()
    with debug.step(f, X, prompt=False) as run:
        run.step_instruction()
        while run.frames:
            names |= run.names().keys()
            run.step_instruction()
    assert "h" in names


def test_a_call_of_a_function_of_ones_own_gives_no_wrong_name() -> None:
    """Its argument starts at another column than the call."""

    def f(x: Any) -> Any:
        y = layer(jnp.eye(3), x + 1)
        return y * 1

    with debug.step(f, X, prompt=False) as run:
        run.step_instruction()
        while run.frames:
            assert "y" not in run.names()
            run.step_instruction()


def test_a_stop_is_where_the_first_bad_value_is_made() -> None:
    def f(x: Any) -> Any:
        y = jnp.log(x)
        z = y * 0
        return z + 1

    with debug.step(f, jnp.array([1.0, 0.0]), prompt=False) as run:
        nan, infinity = *run.stop_where(nan=True), *run.stop_where(inf=True)
        assert run.resume() is None and run.reason == f"breakpoint {infinity.number}: an infinity"
        assert run.instruction is not None and run.instruction.opcode is Opcode.LOG
        run.resume()
        assert run.reason == f"breakpoint {nan.number}: a NaN"
        assert run.line.endswith(f":{f.__code__.co_firstlineno + 2}")
        np.testing.assert_array_equal(run.resume(), [1, np.nan])


def test_ranges_and_conditions() -> None:
    with debug.step(running_sum, np.ones((5, 3), np.float32), prompt=False) as run:
        run.stop_where(outside=(-1, 5))
        run.resume()
        assert run.frames[-1].iteration == 2 and run.value() > 5
        run.clear()
        run.stop_where(when="c > 5.5")
        run.resume()
        assert run.frames[-1].iteration == 3 and run.value("c") > 5.5


def test_breakpoints_at_lines_and_instructions() -> None:
    function, args = PROGRAMS["a scan"]
    line = running_sum.__code__.co_firstlineno + 2
    with debug.step(function, *args, prompt=False) as run:
        run.stop_at(line)
        at = []
        while run.resume() is None:
            at.append(run.frames[-1].iteration)
        assert at == [0, 1]
    for place, opcode in ((f"test_stepping.py:{line}", None), ("reduce", Opcode.REDUCE)):
        with debug.step(function, *args, prompt=False) as run:
            made = run.stop_at(place)
            run.resume()
            assert run.reason.startswith(f"breakpoint {made.number}: ")
            assert run.instruction is not None and opcode in (None, run.instruction.opcode)
    with debug.step(function, *args, prompt=False) as run, pytest.raises(KeyError, match="no breakpoint 4"):
        run.clear(4)


def test_frames_and_iterations() -> None:
    with debug.step(collatz, 6, prompt=False) as run:
        while not run.frames or run.frames[-1].role != "branch":
            run.step_instruction()
        assert [f.role for f in run.frames] == ["program", "body", "branch"]
        assert run.up() and run.frame.role == "body" and run.instruction is run.frames[2].caller
        assert run.up(-1) and not run.up(-1)
        run.iteration(4)
        assert run.frames[-1].iteration == 4
        with pytest.raises(RuntimeError, match="iteration 2 is over: this is iteration 4"):
            run.iteration(2)
        run.iteration()
        assert run.frames[-1].iteration == 5
        run.finish()
        run.iteration(1000)
        assert run.is_over or len(run.frames) == 1
        run.resume()
        assert [int(x) for x in run.result()] == [1, 8]
    with debug.step(jnp.sin, X, prompt=False) as run, pytest.raises(RuntimeError, match="not in a loop"):
        run.step_instruction()
        run.iteration()


@pytest.mark.parametrize("bad", [0, 1, 255, 256, 700, 5_999, None])
def test_the_iteration_of_a_long_loop_that_makes_a_nan(bad: int | None) -> None:
    def f(x: Any) -> Any:
        def body(c: Any, i: Any) -> Any:
            d = jnp.log(jnp.where(i == (-1 if bad is None else bad), -c, c))
            return c * 0.5 + 1 + d * 0, i

        return lax.scan(body, x, jnp.arange(6_000))

    with debug.step(f, jnp.ones(2), prompt=False) as run:
        run.stop_where(nan=True)
        found = run.resume()
        if bad is None:
            same(found, hloom.jit(f)(jnp.ones(2)))
        elif bad == 0:
            assert run.frames[-1].iteration == 0
        else:
            assert found is None and run.frames[-1].iteration == bad
            assert run.instruction is not None and run.instruction.opcode is Opcode.LOG
            same(run.resume(), hloom.jit(f)(jnp.ones(2)))


def transient(x: Any) -> Any:
    """A call, a branch and an inner loop of a long loop make bad values that its state does not keep."""

    def body(c: Any, i: Any) -> Any:
        root = lax.cond(i % 2 == 1, lambda v: hloom.jit(jnp.sqrt)(v), lambda v: v * 0, 90_000 - i)
        most = lax.fori_loop(0, 3, lambda k, v: v * 10, c)
        return c + 1 + jnp.nan_to_num(root) * 0, most

    return lax.scan(body, x, jnp.arange(100_000.0))[0]


@pytest.mark.parametrize(
    ("stop", "iterations"), [({"nan": True}, [90_001, 90_003]), ({"outside": (-1e6, 9e7)}, [90_001, 90_001, 90_002])]
)
def test_a_bad_value_that_the_state_does_not_keep(stop: dict[str, Any], iterations: list[int]) -> None:
    with debug.step(transient, 0.0, prompt=False) as run:
        run.stop_where(**stop)
        started = time.monotonic()
        for wanted in iterations:
            run.resume()
            assert next(f.iteration for f in run.frames if f.caller is not None and f.role == "body") == wanted
        assert time.monotonic() - started < 15
        run.clear()
        same(run.resume(), hloom.jit(transient)(0.0))


def test_a_range_of_one_variable() -> None:
    """Its operands may be outside, and so may other values; in a long loop it is found compiled."""

    def f(x: Any) -> Any:
        def body(c: Any, i: Any) -> Any:
            d = lax.cond(i < 50_000, lambda v: v, lambda v: -v, c)
            return c + 1, d

        return lax.scan(body, x, jnp.arange(100_000))

    with debug.step(f, 1.0, prompt=False) as run:
        run.stop_where(outside=(-50_003.5, 1e9), of="d")
        for wanted in (50_003, 50_004):
            assert run.resume() is None
            assert run.frame.iteration == wanted and run.value("d") == -wanted - 1
        assert run.kernel("d") == run.kernel() and isinstance(run.kernel("%add"), str)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int4", "uint32", "bool", "complex64"])
@pytest.mark.parametrize("kind", ["nan", "inf", "outside"])
def test_all_types_are_tested_in_compiled_loops(dtype: str, kind: str) -> None:
    """As they are in a step."""

    def body(c: Any, i: Any) -> Any:
        bad = {"nan": jnp.nan, "inf": jnp.inf, "outside": 1.0}[kind]
        real = jnp.where(i == 300, bad if jnp.issubdtype(dtype, jnp.inexact) else 1, 0)
        made = real.astype(dtype) * c.astype(dtype)
        return c, made

    def f(x: Any) -> Any:
        return lax.scan(body, x, jnp.arange(400))[1]

    wanted: dict[str, Any] = {"outside": (-0.7, 0.7)} if kind == "outside" else {kind: True}
    seen = []
    for into in (False, True):
        with debug.step(f, jnp.float32(1), prompt=False) as run:
            run.stop_where(**wanted, of="made")
            if into:  # an expression is not tested in compiled loops
                run.stop_where(when="False")
            run.resume()
            seen.append(None if run.is_over else run.frame.iteration)
    has_some = dtype != "complex64" if kind == "outside" else jnp.issubdtype(dtype, jnp.inexact)
    assert seen == [300 if has_some else None] * 2


def settling(x: Any) -> Any:
    def body(c: Any, _: Any) -> Any:
        c = c * 0.5
        c = jnp.cos(c)
        return c, None

    x = lax.scan(body, x, None, 50_000)[0]
    y = layer(jnp.eye(2), x * jnp.ones((1, 2)))
    return y + 1


@pytest.mark.parametrize("watched", [False, True], ids=["compiled", "stepped"])
def test_until_a_later_line(watched: bool) -> None:
    """It leaves the loop at once, and a function at its end."""
    in_settling, in_layer = settling.__code__.co_firstlineno, layer.__code__.co_firstlineno

    def line() -> int:
        return int(run.line.rpartition(":")[2])

    with debug.step(settling, 0.5, prompt=False) as run:
        while not run.frames or run.frames[-1].role != "body":
            run.step()
        if watched:
            run.iteration(49_990)
            run.step()
            run.stop_where(nan=True)
        assert line() == in_settling + 2
        run.until()
        assert line() == in_settling + 3 and run.frames[-1].role == "body"
        run.until()
        assert line() == in_settling + 6 and run.frames[-1].role != "body"  # the value of the loop
        run.until()
        assert line() == in_settling + 7
        run.step()
        assert line() == in_layer + 1
        with pytest.raises(RuntimeError, match=f"line {in_layer} is not after line {in_layer + 1}"):
            run.until(in_layer)
        run.until(in_layer + 2)
        assert line() == in_layer + 2
        run.until()
        assert line() == in_settling + 8
        run.until()
        same(run.result(), hloom.jit(settling)(0.5))


def test_a_jump_over_many_iterations() -> None:
    with debug.step(transient, 0.0, prompt=False) as run:
        while not run.frames or run.frames[-1].role != "body":
            run.step_instruction()
        started = time.monotonic()
        run.iteration(99_990)
        assert run.frames[-1].iteration == 99_990 and time.monotonic() - started < 15
        (state,) = run.frames[-1].computation.parameters
        assert 99_990.0 in run.frames[-1].values[state]
        run.iteration()
        assert run.frames[-1].iteration == 99_991
        same(run.resume(), hloom.jit(transient)(0.0))


def test_effects_happen_once_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        debug.print("before {}", x)
        y = x + 1
        debug.print("after {}", y)
        return y

    with debug.step(f, 1, prompt=False) as run:
        run.step_instruction()
        assert capsys.readouterr().out in ("before 1\n", "")
        assert run.resume() == 2
    assert capsys.readouterr().out.endswith("after 2\n")


def test_an_error_of_a_callback_is_the_callers() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("no")

    run = debug.step(lambda x: hloom.pure_callback(fail, x, x), X, prompt=False)
    with pytest.raises(ValueError, match="no"):
        run.step_instruction()


def test_donated_arguments_stay() -> None:
    f = hloom.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(3)
    with debug.step(f, x, prompt=False) as run:
        run.step_instruction()
        np.testing.assert_array_equal(run.value("x"), [1, 1, 1])


@pytest.mark.parametrize("how", ["resume", "step_instruction"])
def test_mutable_arrays_are_written_once_at_the_end(how: str) -> None:
    captured = hloom.new_ref(jnp.zeros(3))

    def f(given: Any, x: Any) -> Any:
        given[...] += x
        captured[1] = given[0] * 2
        return given[...] - x

    given = hloom.new_ref(jnp.ones(3))
    with debug.step(f, given, X[0], prompt=False) as run:
        run.step_instruction()
        np.testing.assert_array_equal(given[...], np.ones(3))
        while not run.is_over:
            getattr(run, how)()
        np.testing.assert_allclose(run.result(), np.ones(3), rtol=1e-6)
        run.result()
    np.testing.assert_allclose(given[...], 1 + X[0])
    np.testing.assert_allclose(captured[...], [0, 2 + 2 * X[0, 0], 0])


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="2 devices"):
        Stepper(program_of_module(parse(MODULE_OF_TWO), [X[0]], False))
    with debug.step(jnp.sin, X, prompt=False) as run, pytest.raises(ValueError, match="say where"):
        run.stop_where()


MODULE_OF_TWO = "HloModule m, replica_count=2\nENTRY main {\n  ROOT x = f32[3] parameter(0)\n}\n"

# ---- the prompt


def typed(function: Callable[..., Any], *args: Any, commands: str, **options: Any) -> tuple[Any, str]:
    out = io.StringIO()
    result = debug.step(function, *args, stdin=io.StringIO(commands), stdout=out, **options)
    return result, out.getvalue()


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ("c\n", ["the program is over"]),
        ("n\nlocals\nc\n", ["-> return h * 2", "h = float32[2,3] ["]),
        ("n\np h.shape\nc\n", ["(2, 3)"]),
        ("p nosuch\nc\n", ["*** NameError: name 'nosuch' is not defined"]),
        ("n\nh.shape + (1,)\nc\n", ["(2, 3, 1)"]),
        ("whatis x\nc\n", ["float32[2,3] ["]),
        ("stop nan\nb\ncl 1\ncl 1\nc\n", ["breakpoint 1: a NaN\n", "1  a NaN", "*** there is no breakpoint 1"]),
        (
            "stop\nstop outside 1\nstop when 1 +\nc\n",
            ["*** stop nan | inf | outside", "*** stop nan | inf", "*** invalid syntax"],
        ),
        ("b log\nc\no\nv\nw\nl\nc\n", ["breakpoint 1: %log", "subtract(", "%log (z): ", "program of network: ", "-> "]),
        ("stop outside 2 9 of y\nc\nk\nk z\nk what\nc\n", ["in y\n", "fusion", "*** no instruction is named what"]),
        ("stop nan of h\nb\nc\n", ["1  a NaN in h", "the program is over"]),
        ("it\nit x\nc\n", ["*** not in a loop", "*** invalid literal"]),
        ("u\nd\nc\n", ["*** the outermost one", "*** the innermost one"]),
        ("unt\nunt x\nunt 1\nc\n", ["-> return h * 2", "*** invalid literal", "*** line 1 is not after line"]),
        ("si\nni\ns\nr\nc\n", ["the program is over"]),
        ("help\nc\n", ["Documented commands"]),
    ],
)  # fmt: skip
def test_commands(commands: str, expected: list[str]) -> None:
    function, args = PROGRAMS["a network"]
    result, text = typed(function, *args, commands=commands)
    for part in expected:
        assert part in text
    same(result, hloom.jit(function)(*args))


def test_keys_are_shown_as_they_are() -> None:
    _, text = typed(*PROGRAMS["keys"][:1], *PROGRAMS["keys"][1], commands="locals\nwhatis k\nc\n")
    assert "k = key<fry>[]" in text and "\n***" not in text


@pytest.mark.parametrize("expression", ["h > 0", "1 / 0"])
def test_an_expression_that_fails_ends_nothing(expression: str) -> None:
    """`h > 0` is an array, which is neither true nor false."""
    function, args = PROGRAMS["a network"]
    result, text = typed(function, *args, commands=f"n\nstop when {expression}\nc\ncl\nc\n")
    assert f"*** stop when {expression}: " in text and text.endswith("the program is over\n")
    same(result, hloom.jit(function)(*args))


@pytest.mark.parametrize("error", [ValueError, KeyError, RuntimeError])
@pytest.mark.parametrize("commands", ["c\nc\n", "ni\n" * 20, "si\nit 5\nit\n"])
def test_an_error_of_a_callback_leaves_the_prompt(error: type[Exception], commands: str) -> None:
    def fail(x: Any) -> Any:
        raise error("no")

    def f(x: Any) -> Any:
        return lax.fori_loop(0, 9, lambda i, y: hloom.pure_callback(fail, y + i, y), x)

    with pytest.raises(error, match="no"):
        typed(f, X, commands=commands)


def test_texts_of_a_program_are_no_commands_for_the_terminal(tmp_path: Path) -> None:
    """The name of a module in a StableHLO file, and the line of a source, may be any text."""
    source = tmp_path / "odd.py"
    source.write_text("y = x  # \x1b[31m\n")
    module = parse(
        "HloModule m\nENTRY main {\n  x = f32[3] parameter(0)\n"
        f'  ROOT y = f32[3] sine(x), metadata={{source_file="{source}" source_line=1}}\n}}\n'
    )
    module = dataclasses.replace(module, name="m\x1b[31m")
    out = io.StringIO()
    Prompt(Stepper(program_of_module(module, [X[0]], False)), io.StringIO("l\nc\n"), out).run()
    assert "\x1b" not in out.getvalue() and "# \\033[31m" in out.getvalue() and "> m\\033[31m" in out.getvalue()


def test_end_of_input_leaves_the_program() -> None:
    with pytest.raises(SystemExit):
        typed(jnp.sin, X, commands="")


SCRIPT = """
import sys
import hloom, hloom.numpy as jnp

@hloom.jit
def step(w):
    y = jnp.log(w)
    return y * 2

@hloom.jit
def other(w):
    return w + 1

w = other(jnp.zeros(3) - 1.5)
print(step(w), sys.argv[1:])
"""


def command(*arguments: str, typed: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hloom", "debug", *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120, cwd=folder)


@pytest.mark.parametrize(
    ("options", "typed", "expected"),
    [
        (["--stop", "nan"], "p w\nc\n", ["-> y = jnp.log(w)", "Array([-0.5, -0.5, -0.5]", "[nan nan nan] ['7']"]),
        (["--stop", "outside -1 9 of y"], "p y\nc\n", ["a value outside of -1 to 9 in y", "-> y = jnp.log(w)"]),
        (["--function", "other"], "c\n", ["-> return w + 1", "[nan nan nan]"]),
        (["--break", "script.py:8"], "c\nc\n", ["breakpoint 1: script.py:8"]),
    ],
)
def test_a_script(options: list[str], typed: str, expected: list[str], tmp_path: Path, root: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = command(*options, str(tmp_path / "script.py"), "7", typed=typed, folder=root)
    assert ran.returncode == 0, ran.stderr
    for part in expected:
        assert part in ran.stdout


def test_a_stop_that_is_none(tmp_path: Path, root: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = command("--stop", "what", str(tmp_path / "script.py"), typed="", folder=root)
    assert ran.returncode == 2 and "--stop 'what': stop nan | inf | outside" in ran.stderr


def test_a_module(tmp_path: Path, root: Path) -> None:
    (tmp_path / "m.hlo").write_text(
        "HloModule m\nENTRY main {\n x = f32[3] parameter(0)\n y = f32[3] exponential(x)\n"
        " ROOT z = f32[3] multiply(y, x)\n}\n"
    )
    ran = command(str(tmp_path / "m.hlo"), "--random", typed="p %y.max() > 0\nsi\nc\n", folder=root)
    assert ran.returncode == 0, ran.stderr
    assert "%y = f32[3]{0} exponential(%x)" in ran.stdout and "result 0: f32[3]" in ran.stdout
    ran = command("nowhere.py", typed="", folder=root)
    assert ran.returncode == 2 and "there is no file nowhere.py" in ran.stderr


def test_each_call_is_stepped_in_a_block_only() -> None:
    """Also of a function that was called before, or in a step."""
    double = hloom.jit(lambda x: x * 2)
    seen: list[Any] = []

    def step(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seen.append(function)
        return function(*args, **kwargs) + double(1.0)

    plain = [float(double(3.0)), float(double(jnp.float32(3)))]
    for _ in range(2):
        seen.clear()
        with stepped_calls(step):
            assert [float(double(3.0)), float(double(jnp.float32(3))), float(double(3.0))] == [8.0] * 3
            assert hloom.jit(lambda x: double(x))(1.0) == 4
        assert len(seen) == 4 and seen[:3] == [double] * 3
        assert [float(double(3.0)), float(double(jnp.float32(3)))] == plain == [6.0, 6.0]
    with stepped_calls(step, "other"):
        assert double(3.0) == 6
    assert len(seen) == 4
