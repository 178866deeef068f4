"""Tracebacks show the user's frames only: in every way in which an error can leave the library."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, get_origin

import numpy as np
import pytest
from hloom.hlo.support import tracebacks

import hloom
import hloom.numpy as jnp
from support import jax_names

PROGRAMS = """

# jit: main f
def f(x): return jnp.add(x, jnp.ones(3))
def main(): jit(f)(jnp.ones(4))

# jit, second call: main <lambda>
g = jit(lambda x: x.reshape(4))
g(jnp.ones(4))
def main(): g(jnp.ones(5))

# jit, keyword: main f
def f(x): return x @ x
def main(): jit(f)(x=jnp.ones((2, 3)))

# jit of a method: main f
class C:
    @jit
    def f(self, x): return x + 'a'
hloom.tree_util.register_pytree_node(C, lambda c: ((), None), lambda *_: C())
def main(): C().f(1.0)

# jit within jit: main f g
@jit
def g(x): return x + jnp.ones(9)
def f(x): return g(x)
def main(): jit(f)(jnp.ones(4))

# user error in jit: main f g
def g(x): raise KeyError(x.shape)
def f(x): return g(x)
def main(): jit(f)(1.0)

# bad argument: main
def f(x): return x
def main(): jit(f)('text')

# bool of a tracer: main f
def f(x):
    if x > 0: return x
def main(): jit(f)(1.0)

# numpy of a tracer: main f
def f(x): return np.sin(x)
def main(): jit(f)(1.0)

# numpy of a tracer, in NumPy's Python: main f inv _makearray
def f(x): return np.linalg.inv(x)
def main(): jit(f)(jnp.ones((2, 2)))

# leaked: main
def f(x): kept.append(x)
kept = []
def main():
    jit(f)(1.0)
    kept[0] + 1

# lower: main f
def f(x): return x[1.5]
def main(): jit(f).lower(jnp.ones(4))

# compiled: main
c = jit(lambda x: x).lower(1.0).compile()
def main(): c(jnp.ones(4))

# compile for an unknown target: main
c = jit(lambda x: x).lower(1.0)
def main(): c.compile('moon')

# make_hlo: main f
def f(x): return x[1.5]
def main(): hloom.make_hlo(f)(jnp.ones(4))

# eval_shape: main f
def f(x): return x[1.5]
def main(): hloom.eval_shape(f, jnp.ones(4))

# grad: main
def f(x): return jnp.sin(x) + jnp.ones(3)
def main(): hloom.grad(f)(1.0)

# grad, user error: main f
def f(x): return x / undefined
def main(): hloom.grad(f)(1.0)

# grad of jit of grad: main f
def f(x): return jnp.dot(x, x, x)
def main(): hloom.grad(jit(hloom.grad(f)))(1.0)

# vjp: main
def f(x): return x * 2
_, pull = hloom.vjp(f, 1.0)
def main(): pull(jnp.ones(3))

# jvp: main
def main(): hloom.jvp(jnp.sin, (1.0,), (jnp.ones(3),))

# linearize: main
_, push = hloom.linearize(jnp.sin, 1.0)
def main(): push(jnp.ones(3))

# jacfwd: main f
def f(x): return x[7.5]
def main(): hloom.jacfwd(f)(jnp.ones(3))

# hessian: main f
def f(x): return x[7.5]
def main(): hloom.hessian(f)(jnp.ones(3))

# checkpoint: main f
def f(x): return x[7.5]
def main(): hloom.checkpoint(f)(jnp.ones(3))

# custom_jvp: main rule
@hloom.custom_jvp
def f(x): return x
@f.defjvp
def rule(p, t): raise ValueError
def main(): hloom.grad(f)(1.0)

# custom_vjp: main bwd
@hloom.custom_vjp
def f(x): return x
def fwd(x): return x, x
def bwd(r, g): return g + 'a',
f.defvjp(fwd, bwd)
def main(): hloom.grad(f)(1.0)

# primitive: main meaning
p = Primitive('p')
@p.def_meaning
def meaning(x): return x[7.5]
def main(): p.bind(jnp.ones(3))

# scan: main
def f(c, x): return c + jnp.ones(2), x
def main(): lax.scan(f, 1.0, jnp.ones(3))

# scan, user error: main f
def f(c, x): return c[1.5], x
def main(): lax.scan(f, 1.0, jnp.ones(3))

# while_loop: main
def f(c): return 'a'
def main(): lax.while_loop(lambda c: True, f, 1)

# fori_loop: main f
def f(i, c): return undefined
def main(): lax.fori_loop(0, 3, f, 1)

# cond: main f
def f(c): return undefined
def main(): lax.cond(True, f, f, 1)

# lax.map: main f
def f(c): return undefined
def main(): lax.map(f, jnp.ones(3))

# tree.map: main f
def f(a): return 1 / a
def main(): hloom.tree.map(f, [1, 0])

# a library function: main
def main(): jnp.add(jnp.ones(3), jnp.ones(4))

# a compound function: main
def main(): jnp.var(jnp.ones(3), axis=5)

# a library function with too few arguments: main
def main(): jnp.sin()

# nn: main
def main(): hloom.nn.softmax('text')

# initializers: main
def main(): hloom.nn.initializers.he_normal()(hloom.random.key(0), (3,))

# random: main
def main(): hloom.random.normal(3)

# operator: main
def main(): jnp.ones(3) + jnp.ones(4)

# method: main
def main(): jnp.ones(3).reshape(5)

# property: main
def main(): jnp.ones(3).mT

# at: main
def main(): jnp.ones(3).at[0].set(jnp.ones(7))

# at, assigned: main
def main(): jnp.ones(3)[0] = 1

# float: main
def main(): float(jnp.ones(3))

# a missing attribute: main
def main(): jnp.ones(3).sine

# a deleted array: main
x = jnp.ones(3); x.delete()
def main(): np.asarray(x)

# a missing name: main
def main(): jnp.sinn

# a missing name of hloom: main
def main(): hloom.exports

# a missing name of hlo: main
def main(): hloom.hlo.pars

# run_hlo: main
def main(): hloom.run_hlo('HloModule m\\nENTRY e { x = f32[2] parameter(0) }', 1.0)

# hlo.parse: main
def main(): hloom.hlo.parse('nonsense')

# custom call: f | main
def f(x): return 1 / 0
hloom.register_custom_call('f', f)
op = 'y = f32[] custom-call(x), custom_call_target="f"'
text = 'HloModule m\\nENTRY e { x = f32[] parameter(0) ROOT ' + op + ' }'
def main(): hloom.run_hlo(text, 1.0)

# builder: main
b = hloom.hlo.ComputationBuilder('b')
def main(): b.build()

# config: main
def main(): hloom.config.update('jax_enable_x64', 3)

# a setting that is not there: main
def main(): hloom.config.jax_enable

# KeyboardInterrupt: main f
def f(x): raise KeyboardInterrupt
def main(): jit(f)(1.0)

# a generator: main f <lambda>
def f():
    yield jit(lambda x: x[1.5])(jnp.ones(3))
def main(): next(f())

# a cause: f | main f
def f(x):
    try: x[1.5]
    except TypeError as e: raise RuntimeError from e
def main(): jit(f)(jnp.ones(3))

# a context: f | main f
def f(x):
    try: x[1.5]
    except TypeError: 1 / 0
def main(): jit(f)(jnp.ones(3))

# an earlier error of the user's: main | main
def main():
    try: 1 / 0
    except ZeroDivisionError: jnp.ones(3) + jnp.ones(4)

# a group: f | f | main f
def f(x):
    try: x[1.5]
    except TypeError as e: raise ExceptionGroup('g', [e])
def main(): jit(f)(jnp.ones(3))

# a callback in a decorated function: main f
@hloom.enable_x64()
def f(x): return x[1.5]
def main(): jit(f)(jnp.ones(3))
"""
"""Each program after its name, and the functions that the traceback shows, outermost first. "main" calls the library.
Tracebacks of errors that led to the last one are before it."""

CASES = {
    name: (program, frames)
    for name, frames, program in re.findall(r"^# (.*?): (.*)\n((?:(?!#).*\n)*)", PROGRAMS, re.MULTILINE)
}

RUNNER = """
import json, sys, traceback
import numpy as np
import hloom, hloom.numpy as jnp
import hloom.hlo
from hloom import jit, lax
from hloom.extend import Primitive
found = {}
def stacks(error):  # those of what led to it first, as they are printed
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    members = [s for each in getattr(error, "exceptions", ()) for s in stacks(each)]
    own = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    return [*(stacks(before) if before else ()), *members, own]
for name, program in json.load(sys.stdin).items():
    space = {**globals(), "__name__": "__main__"}
    exec(compile(program, "<user>", "exec"), space)
    try:
        space["main"]()
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next  # without this file's frame
        found[name] = stacks(error), "".join(traceback.format_exception(error))
print(json.dumps(found))
"""


def run(programs: dict[str, str], **environment: str) -> dict[str, Any]:
    command = [sys.executable, "-c", RUNNER]
    variables = {**os.environ, **environment}
    ran = subprocess.run(
        command, input=json.dumps(programs), capture_output=True, text=True, timeout=300, env=variables
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return run({name: program for name, (program, _) in CASES.items()})


@pytest.mark.parametrize("name", CASES)
def test_the_frames_are_the_users(told: dict[str, Any], name: str) -> None:
    assert name in told, "it raised nothing"
    stacks, text = told[name]
    assert " | ".join(" ".join(stack) for stack in stacks) == CASES[name][1], text
    assert "hloom.tracer" not in text and "hloom.autodiff" not in text


def test_all_frames_on_request() -> None:
    program = {"f": "def f(x): return x[1.5]\ndef main(): jit(f)(jnp.ones(3))"}
    everything = [{"HLOOM_TRACEBACK": "full"}, {"JAX_TRACEBACK_FILTERING": "off"}]
    for environment in [{}, {"HLOOM_TRACEBACK": "short", "JAX_TRACEBACK_FILTERING": "off"}, *everything]:
        ((stack,), _) = run(program, **environment)["f"]
        assert (len(stack) > 4) == (environment in everything)
        assert stack[0] == "main" and "f" in stack


@pytest.mark.parametrize("variable, value", [("HLOOM_TRACEBACK", "some"), ("JAX_TRACEBACK_FILTERING", "none")])
def test_an_unknown_value_is_refused(variable: str, value: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import hloom.numpy"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, variable: value},
    )
    assert ran.returncode == 1 and value in ran.stderr.splitlines()[-1]


@pytest.fixture
def mode() -> Iterator[Callable[[str], None]]:
    before = hloom.config.jax_traceback_filtering
    yield lambda new: hloom.config.update("jax_traceback_filtering", new)
    hloom.config.update("jax_traceback_filtering", before)


def failing(x: Any) -> Any:
    return x[1.5]


def caught(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


def functions(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("chosen", tracebacks.MODES)
def test_the_setting(mode: Callable[[str], None], chosen: str) -> None:
    mode(chosen)
    assert hloom.config.jax_traceback_filtering == chosen
    error = caught(lambda: hloom.jit(failing)(jnp.ones(3)))
    if chosen in ("off", "tracebackhide"):
        assert len(functions(error)) > 6
    else:
        assert functions(error) == ["caught", "<lambda>", "failing"]
    if chosen == "tracebackhide":
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        shown = [f.f_code.co_name for f in frames if "__tracebackhide__" not in f.f_locals]
        assert shown == ["caught", "<lambda>", "failing"]
    noted = [note for note in getattr(error, "__notes__", ()) if note == tracebacks.REMOVED]
    assert len(noted) == (chosen == "quiet_remove_frames")
    assert isinstance(error.__cause__, tracebacks.UnfilteredStackTrace) == (chosen == "remove_frames")


def nested(x: Any) -> Any:
    try:
        return hloom.jit(failing)(x)
    except TypeError as error:
        raise KeyError("outside") from error


@pytest.mark.parametrize("fun", [failing, nested, lambda x: 1 / 0], ids=["alone", "with a cause", "of the user"])
def test_all_frames_are_those_of_the_cause(mode: Callable[[str], None], fun: Callable[[Any], Any]) -> None:
    """An error that passes several boundaries has each frame once, in order, and keeps the cause that it had."""
    call = lambda: hloom.jit(lambda x: hloom.jit(fun)(x) + 1)(jnp.ones(3))  # noqa: E731
    mode("off")
    all_frames = caught(call)
    mode("remove_frames")
    error = caught(call)
    cause = error.__cause__
    assert isinstance(cause, tracebacks.UnfilteredStackTrace) and type(error).__name__ in str(cause)
    found = functions(cause)
    assert found == functions(all_frames)[-len(found) :] and set(found) > set(functions(error)[2:])
    assert type(cause.__cause__) is type(all_frames.__cause__)
    assert "".join(traceback.format_exception(error)).count("UnfilteredStackTrace") >= 1


def test_a_setting_that_is_not_one(mode: Callable[[str], None]) -> None:
    with pytest.raises(ValueError, match=r"tracebackhide, .* not 'short'"):
        mode("short")


@pytest.mark.parametrize("fault", [AssertionError, KeyError, NameError])
def test_a_fault_of_the_library_says_how_to_see_it(monkeypatch: pytest.MonkeyPatch, fault: type[Exception]) -> None:
    """Without its frames such an error says little."""
    from hloom.tracer import jit

    def broken(*_: object, **__: object) -> None:
        raise fault("an invariant")

    broken.__code__ = broken.__code__.replace(co_filename=jit.__file__)
    monkeypatch.setattr(jit, "trace_function", broken)
    error = caught(lambda: hloom.jit(lambda x: x)(1.0))
    assert error.__notes__ == [tracebacks.NOTE]
    assert not hasattr(caught(lambda: hloom.jit(failing)({}["key"])), "__notes__"), "the user's own"
    assert not hasattr(caught(lambda: jnp.ones(3) + jnp.ones(4)), "__notes__"), "on purpose"


def test_debuggers_and_pytest_see_the_users_frame(tmp_path: Path) -> None:
    program = tmp_path / "test_user.py"
    program.write_text(
        "import hloom, hloom.numpy as jnp\ndef f(x):\n    seven = 7\n    return x[1.5]\n"
        "def test():\n    hloom.jit(f)(jnp.ones(3))\n"
    )
    code = (
        "import test_user, pdb, sys\ntry: test_user.test()\nexcept TypeError as e: sys.last_value = sys.last_exc = e\n"
        "sys.last_traceback = sys.last_value.__traceback__\npdb.pm()"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, input="p seven\nq\n", capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert "(Pdb) 7" in ran.stdout, ran.stdout + ran.stderr
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(program)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert ran.returncode == 1 and "return x[1.5]" in ran.stdout
    assert "tracer/" not in ran.stdout and "hlo/" not in ran.stdout


# ---- everything public


def public() -> Iterator[tuple[str, Any]]:
    """Every public function and class."""
    for name in (*jax_names.NAMESPACES, "hlo"):
        module = jax_names.namespace("hloom", name)
        for each in module.__all__:
            found = getattr(module, each)
            if callable(found) and not isinstance(found, ModuleType) and get_origin(found) is None:
                yield f"{name}.{each}".lstrip("."), found


FUNCTIONS = {name: found for name, found in public() if not isinstance(found, type)}


NOT_CALLED = {"as_jax", "debug.breakpoint", "experimental.pallas.with_scoped"}
"""`import jax` would find hloom in all later tests; the second one reads from the terminal, and the third one keeps any
arguments until the function that it decorates is called."""


SPACES = sorted({f"hloom.{name}".rpartition(".")[0] for name in FUNCTIONS})


def functions_in(space: str) -> dict[str, Any]:
    """The functions of one namespace; a test for each function would take longer to report than to run."""
    return {name: found for name, found in FUNCTIONS.items() if f"hloom.{name}".rpartition(".")[0] == space}


@pytest.mark.parametrize("space", SPACES)
def test_no_public_function_shows_the_library(space: str) -> None:
    """Called with an argument that is no array, and with too many arguments."""
    for name, function in functions_in(space).items():
        if name in NOT_CALLED:
            continue
        told = 0
        for arguments in ([object()] * 2, [object()] * 30, [], [np.ones((2, 3)), "text", object()]):
            try:
                function(*arguments)
            except Exception as error:
                told += 1
                assert functions(error) == ["test_no_public_function_shows_the_library"], "".join(
                    [name, *traceback.format_exception(error)]
                )
        assert told, name


@pytest.mark.parametrize("space", SPACES)
def test_no_public_function_names_a_file_of_the_library(space: str) -> None:
    for name, found in functions_in(space).items():
        if isinstance(found, FunctionType):
            assert found.__module__ == space, name
            home = sys.modules[found.__module__]
            assert getattr(home, found.__qualname__) is found, f"{name}: pickled by reference"
            inspect.signature(found)
            assert found.__doc__, name
