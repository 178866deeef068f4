"""What a type checker and an editor see of the package, in both kinds of installation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hloom
from support import jax_names
from support.source_tree import copy_of_the_package, environment, pip

pytestmark = pytest.mark.slow

ARRAY = "hloom.tracer.operators.ArrayBase"
HEAD = """\
import hloom
import hloom.numpy as jnp
from hloom import dtypes, errors, hlo, lax, nn, random, tree
from hloom.hlo.ir import HloModule
from hloom.nn import initializers
from hloom.numpy import linalg
from hloom.numpy.linalg import norm

x = jnp.ones((3, 4))
"""
REVEALED = [
    ("x", ARRAY),
    ("x + 1", ARRAY),
    ("1 - x", ARRAY),
    ("x @ x.T", ARRAY),
    ("-x < 2", ARRAY),
    ("x[0]", ARRAY),
    ("x.sum()", ARRAY),
    ("jnp.sin(x)", ARRAY),
    ("jnp.where(x > 0, x, 0)", ARRAY),
    ("jnp.pi", "float"),
    ("linalg.norm(x)", ARRAY),
    ("norm(x)", ARRAY),
    ("jnp.linalg.norm(x)", ARRAY),
    ("lax.add(x, x)", ARRAY),
    ("nn.relu(x)", ARRAY),
    ("random.normal(random.key(0))", ARRAY),
    ("hlo.parse('')", "hloom.hlo.ir.HloModule"),
    ("isinstance(hlo.parse(''), HloModule)", "bool"),
    ("errors.OperandError", "def ("),
]
"""Expressions of a user's file, with how the type that mypy reveals begins."""
REFUSED = [
    ("jnp.sinn(x)", 'has no attribute "sinn"'),
    ("hloom.jitt", 'has no attribute "jitt"'),
    ("hlo.parsee", 'has no attribute "parsee"'),
    ("lax.ad(x, x)", 'has no attribute "ad"'),
    ("nn.rellu(x)", 'has no attribute "rellu"'),
    ("random.normall", 'has no attribute "normall"'),
    ("errors.HloParsError", 'has no attribute "HloParsError"'),
    ("x.summ()", 'has no attribute "summ"'),
]
"""Expressions that mypy refuses, with words of its message."""


@pytest.fixture(scope="module", params=["editable", "wheel"])
def python(request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the package in it."""
    folder = tmp_path_factory.mktemp("static")
    source = copy_of_the_package(root, folder / "source")
    python = environment(folder / "venv")
    pip("install", "--no-deps", *(["--editable"] if request.param == "editable" else []), str(source), python=python)
    return python


def mypy(python: Path, folder: Path, program: str) -> dict[int, str]:
    """mypy's messages of a user's file, by line."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    (folder / "user.py").write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python)]
    command += ["--cache-dir", str(python.parent / "mypy"), "user.py"]
    ran = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=300)
    found: dict[int, str] = {}
    for line in ran.stdout.splitlines():
        if place := re.match(r"user\.py:(\d+): (.*)", line):
            found[int(place[1])] = found.get(int(place[1]), "") + place[2]
        else:
            assert re.match("Found|Success", line), ran.stdout + ran.stderr
    return found


def test_mypy_knows_the_types(python: Path, tmp_path: Path) -> None:
    lines = [f"reveal_type({expression})" for expression, _ in REVEALED]
    found = mypy(python, tmp_path, HEAD + "\n".join(lines) + "\n")
    first = HEAD.count("\n") + 1
    wrong = {
        expression: (expected, found.get(number))
        for number, (expression, expected) in enumerate(REVEALED, first)
        if not found.get(number, "").startswith(f'note: Revealed type is "{expected}')
    }
    assert wrong == {}
    assert len(found) == len(REVEALED), "messages about other lines"


def test_mypy_refuses_what_is_not_there(python: Path, tmp_path: Path) -> None:
    found = mypy(python, tmp_path, HEAD + "\n".join(expression for expression, _ in REFUSED) + "\n")
    first = HEAD.count("\n") + 1
    for number, (expression, message) in enumerate(REFUSED, first):
        assert message in found.get(number, ""), (expression, found.get(number))


class Jedi:
    """jedi, as an editor calls it, on a program with the cursor at its end."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._jedi = pytest.importorskip("jedi", reason="jedi is not installed")
        self._environment = self._jedi.create_environment(str(python.parent.parent), safe=False)
        self._folder = folder

    def completions(self, program: str) -> list[str]:
        """What may follow, without names that begin with an underscore."""
        return [c.name for c in self._script(program).complete() if not c.name.startswith("_")]

    def help(self, program: str) -> list[Any]:
        """What is known of the last name."""
        found: list[Any] = self._script(program).help()
        return found

    def _script(self, program: str) -> Any:
        project = self._jedi.Project(self._folder)
        return self._jedi.Script(
            program, path=self._folder / "user.py", environment=self._environment, project=project
        )


@pytest.mark.parametrize("name", [*jax_names.NAMESPACES, "hlo"])
def test_jedi_completes_the_namespaces(name: str, python: Path, tmp_path: Path) -> None:
    """Every public name; besides these only modules, which an editor finds on disk."""
    program = f"import hloom.{name} as space\nspace." if name else "import hloom as space\nspace."
    found = set(Jedi(python, tmp_path).completions(program))
    module = jax_names.namespace("hloom", name)
    public = set(module.__all__)
    assert public <= found, public - found
    folder = Path(str(module.__file__)).parent if hasattr(module, "__path__") else None
    files = {f.stem for f in folder.iterdir()} if folder else set()
    assert found - public - files <= {"annotations", "TYPE_CHECKING", "Any", "import_module"}


def test_jedi_completes_arrays(python: Path, tmp_path: Path) -> None:
    jedi = Jedi(python, tmp_path)
    methods = {name for name in dir(hloom.Array) if not name.startswith("_")}
    for expression in ("jnp.ones(3)", "(jnp.ones(3) + 1)", "jnp.sin(1.0)", "jnp.ones(3)[0]"):
        assert methods <= set(jedi.completions(f"import hloom.numpy as jnp\ny = {expression}\ny.")), expression


def test_the_link_leads_to_the_file(python: Path, tmp_path: Path) -> None:
    """Go to definition: a path that exists."""
    (found,) = Jedi(python, tmp_path).help("from hloom import hlo\nhlo.parse")
    assert os.path.isfile(found.module_path) and found.full_name == "hloom.hlo.text.parser.parse", found.full_name
