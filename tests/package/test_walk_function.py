"""The guide docs/adding_functions.md in a copy of the library, and a toy function with its own derivative."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.extend import Primitive

X = np.array([-300.0, -1.0, 0.0, 2.0, 300.0], np.float32)


def log_cosh(x: Any, scale: float = 1.0) -> Any:
    """log(cosh(scale * x)) without overflow."""
    (value,) = jnp.broadcast_arrays(jnp.asarray(x, jnp.float32))
    return _log_cosh.bind(value, scale=scale)


_log_cosh = Primitive("log_cosh")
runs: list[str] = []


@_log_cosh.def_meaning
def _log_cosh_meaning(x: Any, *, scale: float) -> Any:
    runs.append("meaning")
    y = abs(scale * x)
    return y + jnp.log1p(jnp.exp(-2 * y)) - np.log(2)


@_log_cosh.def_jvp
def _log_cosh_jvp(primals: Any, tangents: Any, *, scale: float) -> tuple[Any, Any]:
    runs.append("jvp")
    (x,), (t,) = primals, tangents
    return log_cosh(x, scale), t * scale * jnp.tanh(scale * x)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


VALUE = np.logaddexp(X.astype(float), -X.astype(float)) - np.log(2)
FIRST = np.tanh(X)
SECOND = 1 - np.tanh(X) ** 2


@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit, lambda f: hloom.jit(hloom.jit(f))])
def test_value_and_derivatives_outside_and_inside_of_jit(wrap: Any) -> None:
    close(wrap(log_cosh)(X), VALUE)
    close(wrap(hloom.grad(lambda x: log_cosh(x).sum()))(X), FIRST)
    close(wrap(hloom.grad(lambda x: hloom.grad(lambda y: log_cosh(y).sum())(x).sum()))(X), SECOND)
    close(wrap(lambda x, t: hloom.jvp(log_cosh, (x,), (t,))[1])(X, X), X * FIRST)


def test_the_derivative_is_the_one_beside_it() -> None:
    """Not the derivative of the expansion, which is NaN far out; a jitted function keeps it."""
    runs.clear()
    close(hloom.grad(hloom.jit(log_cosh))(3.0), np.tanh(3.0))
    assert "jvp" in runs


def test_nested_in_other_transformations() -> None:
    def through_a_loop(x: Any) -> Any:
        return lax.scan(lambda c, _: (log_cosh(c, scale=0.5) + x, None), x, None, length=3)[0].sum()

    def unrolled(x: Any) -> Any:
        c = x
        for _ in range(3):
            c = log_cosh(c, scale=0.5) + x
        return c.sum()

    x = jnp.asarray([0.3, 1.0])
    close(hloom.grad(through_a_loop)(x), np.asarray(hloom.grad(unrolled)(x)))
    close(hloom.grad(hloom.checkpoint(unrolled))(x), np.asarray(hloom.grad(unrolled)(x)))


def test_in_hlo_it_is_a_call_by_its_name_whose_meaning_is_traced_once() -> None:
    runs.clear()
    text = hloom.jit(lambda x: log_cosh(x, 3.0) * log_cosh(2 * x, 3.0)).lower(X).as_text()
    assert runs == ["meaning"]
    assert text.count("call(") == 2
    assert text.count('composite.name="log_cosh"') == 2
    assert "custom_jvp" not in text and "tanh" not in text
    optimized = hloom.jit(log_cosh).lower(X).compile().as_text()
    assert " call(" not in optimized and "fusion(" in optimized


# ---- the guide


PROGRAM = """
import doctest, inspect, pickle, sys
import numpy as np
import hloom, hloom.numpy as jnp
from hloom import nn
from hloom.nn import gaps

assert hloom.__file__.startswith(sys.argv[1]), hloom.__file__
assert "cube" in dir(jnp) and "log_gap" in dir(nn)
assert pickle.loads(pickle.dumps(jnp.cube)) is jnp.cube and jnp.cube.__module__ == "hloom.numpy"
for function in (jnp.cube, nn.log_gap):
    examples = doctest.DocTestParser().get_doctest(inspect.cleandoc(function.__doc__), {}, "", None, 0)
    assert doctest.DocTestRunner().run(examples).failed == 0
for wrap in (lambda f: f, hloom.jit):
    np.testing.assert_array_equal(wrap(jnp.cube)(jnp.arange(3.0)), [0, 1, 8])
    np.testing.assert_array_equal(wrap(hloom.vmap(hloom.grad(jnp.cube)))(jnp.arange(3.0)), [0, 3, 12])

x, y = np.array([2.0, 3.0], np.float32), np.float32(1.0)
runs = []
def noted(name, rule):
    return lambda *args, **params: runs.append(name) or rule(*args, **params)
gaps._log_gap.def_evaluate(noted("evaluate", gaps._log_gap_evaluate))
gaps._log_gap.def_jvp(noted("jvp", gaps._log_gap_jvp))
gaps._log_gap.def_batch(noted("batch", gaps._log_gap_batch))
value, slope = np.log(np.exp(x) - np.exp(y)), 1 / (1 - np.exp(y - x))
def used(*names):
    assert set(names) <= set(runs), (names, runs)
    runs.clear()
np.testing.assert_allclose(nn.log_gap(x, y), value, rtol=1e-5)
used("evaluate")
text = hloom.jit(nn.log_gap).lower(x, y).as_text()
assert 'composite.name="log_gap"' in text and "-> (f32[2]) {" in text, text
np.testing.assert_allclose(hloom.jit(nn.log_gap)(x, y), value, rtol=1e-5)
np.testing.assert_allclose(hloom.grad(lambda x: nn.log_gap(x, y).sum())(x), slope, rtol=1e-5)
used("jvp")
np.testing.assert_allclose(hloom.jit(hloom.vmap(nn.log_gap, (0, None)))(x, y), value, rtol=1e-5)
used("batch")
np.testing.assert_allclose(hloom.jit(hloom.vmap(hloom.grad(nn.log_gap), (0, None)))(x, y), slope, rtol=1e-5)
used("jvp", "batch")
print("done")
"""


def test_the_guide_is_followed_in_a_copy(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "hloom", tmp_path / "hloom", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("tools", "docs"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "images"))
    (tmp_path / "tests/data").mkdir(parents=True)
    shutil.copy(root / "tests/data/jax_names.json", tmp_path / "tests/data")
    guide = (root / "docs" / "adding_functions.md").read_text()
    function, function_line, primitive, primitive_line = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    edits = {
        "hloom/numpy/unary_ufuncs.py": f"\n\n{function}",
        "hloom/numpy/__init__.pyi": function_line,
        "hloom/nn/gaps.py": primitive,
        "hloom/nn/__init__.pyi": primitive_line,
    }
    for name, text in edits.items():
        assert f"`{name}`" in guide
        with (tmp_path / name).open("a") as file:
            file.write(text)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=300)

    assert "or run python tools/namespaces.py --write" in run("-c", "import hloom.numpy").stderr
    (command,) = re.findall(r"```\n(python .*)\n```", guide)
    assert (written := run(*command.split()[1:])).returncode == 0, written.stderr
    assert "cube as cube" in (tmp_path / "hloom/numpy/__init__.pyi").read_text()
    assert run("tools/namespaces.py").stdout == ""
    ran = run("-c", PROGRAM, str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.split() == ["done"]
