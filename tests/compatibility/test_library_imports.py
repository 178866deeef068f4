"""`tools/library_imports`: modules of a library, names of JAX in its files, and the process that imports them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.library_imports.table import BEGIN, DOCUMENT, END, looked_up_again
from tools.library_imports.uses import names_in
from tools.library_imports.walk import _inside, _requires_jax

TEXT = """\
import jax, jax._src.core
import jax.numpy as jnp
from jax._src import util as u, typing
from jax.experimental import pallas
from . import jax as other
def f(x: typing.Shape):
    from jax.lax import scan as loop
    return jnp.sin(x), u.safe_map, loop, jax._src.core.Tracer, pallas.triton.load, other.x, x.jax
"""


def test_the_names_in_a_text() -> None:
    assert names_in(TEXT) - {"jax"} == {
        *("jax._src.core", "jax.numpy", "jax.numpy.sin", "jax._src.util", "jax._src.util.safe_map", "jax._src.typing"),
        *("jax._src.typing.Shape", "jax.experimental.pallas", "jax.experimental.pallas.triton", "jax.lax.scan"),
        *("jax.experimental.pallas.triton.load", "jax._src", "jax._src.core.Tracer"),
    }


@pytest.mark.parametrize(
    ("requirement", "requires"),
    [
        ("jax", True),
        ("jax>=0.4.6,!=0.7", True),
        ("jax (>=0.4)", True),
        ('jax>=0.4; python_version < "3.14"', True),
        ("jax>=0.11; extra == 'jax'", True),
        ('jax[cpu]>=0.4; extra == "docs"', False),
        ("jaxlib", False),
        ("jax-md", False),
        ("jaxtyping>=0.2", False),
    ],
)
def test_who_requires_jax(requirement: str, requires: bool) -> None:
    assert _requires_jax(requirement) is requires


def test_the_modules_of_a_folder(tmp_path: Path) -> None:
    for name in ("__init__", "a", "a_test", "test_b", "__main__", "inner/c", "tests/d", "no-module/e"):
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    assert list(_inside("p", tmp_path)) == ["p.a", "p.inner", "p.inner.c"]


def test_a_process_imports_modules_and_says_what_they_lack(tmp_path: Path) -> None:
    package = tmp_path / "library"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("print('hello')\n")
    (package / "fine.py").write_text("from jax._src.pjit import JitWrapped\n")
    (package / "inner" / "__init__.py").write_text("import jax.experimental.mosaic\n")
    (package / "inner" / "below.py").write_text("")
    command = [sys.executable, "-m", "tools.library_imports.child", "hloom", str(tmp_path)]
    modules = "library library.fine library.inner library.inner.below"
    ran = subprocess.run(
        command, input=modules, capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={"PYTHONPATH": f"{Path(__file__).resolve().parents[2]}:{tmp_path}"},
    )  # fmt: skip
    outcomes = [outcome for outcome in map(json.loads, ran.stdout.splitlines()) if "module" in outcome]
    assert [(outcome["module"], outcome["error"][:41]) for outcome in outcomes] == [
        ("library", ""),
        ("library.fine", ""),
        ("library.inner", "ModuleNotFoundError: jax.experimental has"),
        ("library.inner.below", "as library.inner"),
    ], ran.stderr
    assert [outcome["asked"] for outcome in outcomes][1:3] == [
        {"jax._src.pjit.JitWrapped": {"library": 1}},
        {"jax.experimental.mosaic": {"library": 1}},
    ]


def test_the_names_in_the_document_are_not_here() -> None:
    """`python -m tools.library_imports names --write` looks them up again."""
    text = DOCUMENT.read_text()
    assert looked_up_again(text) == text


def test_names_are_looked_up_again() -> None:
    rows = "| `jax.numpy.sin` | optax | not here |\n| `jax._src.earray.EArray` | flax | not here |\n"
    text = f"before\n{BEGIN}Of these, 7 are not\nhere:\n\n{rows}{END}after\n"
    kept = "| `jax._src.earray.EArray` | flax | in name only |\n"
    assert looked_up_again(text) == f"before\n{BEGIN}Of these, 1 are not\nhere:\n\n{kept}{END}after\n"
