"""A type checker's and an editor's view of the package, in both kinds of installation."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NewType, get_origin

import pytest

import hloom
from hloom.namespaces.not_written import NotWritten
from support import jax_names
from support.source_tree import copy_of_the_package, environment, pip

pytestmark = pytest.mark.slow

ARRAY = "hloom.tracer.arrays.operators.ArrayBase"
HEAD = """\
import functools
from typing import Any
import numpy as np
import hloom
import hloom.numpy as jnp
from hloom import dtypes, errors, hlo, lax, nn, random, tree
from hloom.hlo.ir import HloModule
from hloom.nn import initializers
from hloom.numpy import linalg
from hloom.numpy.linalg import norm
from hloom.typing import ArrayLike, DTypeLike

x = jnp.ones((3, 4))
flag = bool(x[0, 0] > 0)

def loss(w: hloom.Array, x: hloom.Array, scale: float = 1.0) -> hloom.Array:
    return ((x @ w) ** 2).sum() * scale

def with_aux(w: hloom.Array) -> tuple[hloom.Array, dict[str, int]]:
    return w.sum(), {"count": w.size}

@hloom.jit
def compiled(x: hloom.Array) -> hloom.Array:
    return x * 2

@functools.partial(hloom.jit, static_argnames="n")
def compiled_partly(x: hloom.Array, n: int) -> hloom.Array:
    return x * n

@hloom.jit(static_argnames="n")
def compiled_with(x: hloom.Array, n: int) -> list[hloom.Array]:
    return [x * n]

class Model:
    @hloom.jit
    def apply(self, x: hloom.Array, scale: float = 1.0) -> hloom.Array:
        return x * scale

    @hloom.custom_jvp
    def own(self, x: hloom.Array) -> hloom.Array:
        return x

@hloom.custom_jvp
def forward(x: hloom.Array) -> hloom.Array:
    return x

@forward.defjvp
def forward_rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    return primals[0], tangents[0]

@hloom.custom_vjp
def backward(x: hloom.Array) -> hloom.Array:
    return x

def anything(x: ArrayLike, dtype: DTypeLike) -> hloom.Array:
    return jnp.asarray(x, dtype) + x

"""
LOSS = f"w: {ARRAY}, x: {ARRAY}, scale: float ="
REVEALED = [
    ("x", ARRAY),
    ("x + 1", ARRAY),
    ("1 - x", ARRAY),
    ("2.0 / x", ARRAY),
    ("x + np.ones(4)", ARRAY),
    ("x @ x.T", ARRAY),
    ("x @ np.ones((4, 2))", ARRAY),
    ("-x < 2", ARRAY),
    ("x == 2", ARRAY),
    ("abs(x) ** 2 % 3 // 2", ARRAY),
    ("~(x > 0) & True", ARRAY),
    ("divmod(x, 2)", f"tuple[{ARRAY}, {ARRAY}]"),
    ("x[0]", ARRAY),
    ("x[0, ::2]", ARRAY),
    ("[row for row in x]", f"list[{ARRAY}]"),
    ("x.T", ARRAY),
    ("x.sum()", ARRAY),
    ("x.reshape(-1).astype(jnp.bfloat16)", ARRAY),
    ("x.block_until_ready()", ARRAY),
    ("x.shape", "tuple[int, ...]"),
    ("float(x[0, 0])", "float"),
    ("np.asarray(x)", "numpy.ndarray["),
    ("np.sum(np.asarray(x))", ""),
    ("jnp.sin(x)", ARRAY),
    ("jnp.sin(1.0)", ARRAY),
    ("jnp.maximum(x, 0)", ARRAY),
    ("jnp.where(x > 0, x, 0)", ARRAY),
    ("jnp.einsum('ij,kj->ik', x, x)", ARRAY),
    ("jnp.pi", "float"),
    ("linalg.norm(x)", ARRAY),
    ("norm(x)", ARRAY),
    ("jnp.linalg.norm(x)", ARRAY),
    ("lax.add(x, x)", ARRAY),
    ("lax.exp(x)", ARRAY),
    ("nn.relu(x)", ARRAY),
    ("random.normal(random.key(0))", ARRAY),
    ("anything(1, 'float32')", ARRAY),
    ("anything(np.float32(1), np.float32)", ARRAY),
    ("hlo.parse('')", "hloom.hlo.ir.HloModule"),
    ("isinstance(hlo.parse(''), HloModule)", "bool"),
    ("errors.OperandError", "def ("),
    ("compiled", f"hloom.tracer.jit.PjitFunction[[x: {ARRAY}], {ARRAY}]"),
    ("compiled(x)", ARRAY),
    ("compiled.lower(x).compile()", "hloom.tracer.stages.Compiled"),
    ("compiled_partly(x, n=2)", "Any"),  # a partial of an overloaded function: beyond mypy
    ("compiled_with(x, 2)", f"list[{ARRAY}]"),
    ("hloom.jit(lambda a: x)(2)", ARRAY),
    ("Model().apply(x, scale=2.0)", ARRAY),
    ("Model().own(x)", ARRAY),
    ("forward(x)", ARRAY),
    ("forward_rule", "def (primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]"),
    ("backward(x)", ARRAY),
    ("hloom.checkpoint(loss)", f"def ({LOSS}) -> {ARRAY}"),
    ("hloom.grad(loss)", f"def ({LOSS}) -> Any"),
    ("hloom.jit(hloom.grad(loss))", f"hloom.tracer.jit.PjitFunction[[{LOSS}], Any]"),
    ("hloom.grad(with_aux, has_aux=True)(x)", "tuple[Any, dict[str, int]]"),
    ("hloom.value_and_grad(loss)", f"def ({LOSS}) -> tuple[{ARRAY}, Any]"),
    ("hloom.value_and_grad(with_aux, has_aux=True)(x)", f"tuple[tuple[{ARRAY}, dict[str, int]], Any]"),
    ("hloom.value_and_grad(with_aux, has_aux=flag)(x)", f"tuple[tuple[{ARRAY}, dict[str, int]], Any]"),
    ("hloom.hessian(loss)", f"def ({LOSS}) -> Any"),
    ("hloom.jacrev(with_aux, has_aux=True)(x)", "tuple[Any, dict[str, int]]"),
    ("hloom.jvp(loss, (x, x), (x, x))", f"tuple[{ARRAY}, {ARRAY}]"),
    ("hloom.jvp(with_aux, (x,), (x,), has_aux=True)", f"tuple[{ARRAY}, {ARRAY}, dict[str, int]]"),
    ("hloom.vjp(loss, x, x)", f"tuple[{ARRAY}, hloom.autodiff.api.PullbackFunction]"),
    ("hloom.vjp(loss, x, x)[1](x)", "tuple[Any, ...]"),
    ("hloom.vjp(with_aux, x, has_aux=True)[2]", "dict[str, int]"),
    ("hloom.vjp(with_aux, x, has_aux=flag)", "tuple[Any, ...]"),
    ("hloom.linearize(loss, x, x)[1](x, x)", ARRAY),
    ("hloom.make_hlo(loss)(x, x)", "hloom.hlo.ir.HloModule"),
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
    ("x + 'text'", "Unsupported operand types"),
    ("'text' - x", "Unsupported operand types"),
    ("x @ [1.0]", "Unsupported operand types"),
    ("jnp.sin('text')", "incompatible type"),
    ("jnp.maximum(x, [1])", "incompatible type"),
    ("compiled()", "Missing positional argument"),
    ("compiled(x, 2)", "Too many arguments"),
    ("compiled('text')", "incompatible type"),
    ("compiled_with(x, m=2)", "Unexpected keyword argument"),
    ("Model().apply(x, 'text')", "incompatible type"),
    ("Model().own()", "Too few arguments"),
    ("forward(x, x)", "Too many arguments"),
    ("backward()", "Missing positional argument"),
    ("hloom.grad(loss)(x)", "Too few arguments"),
    ("hloom.value_and_grad(loss)(x, x, scael=2.0)", "Unexpected keyword argument"),
    ("hloom.checkpoint(loss)(x)", "Too few arguments"),
    ("hloom.jit(2)", "No overload variant"),
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
    """One run of mypy: what it reveals, what it refuses, and that it says nothing else."""
    lines = [*(f"reveal_type({expression})" for expression, _ in REVEALED), *(expression for expression, _ in REFUSED)]
    found = mypy(python, tmp_path, HEAD + "\n".join(lines) + "\n")
    first = HEAD.count("\n") + 1
    revealed = {e: f'note: Revealed type is "{expected}' for e, expected in REVEALED}
    wrong = {}
    for number, (expression, expected) in enumerate([*revealed.items(), *REFUSED], first):
        message = found.pop(number, "")
        if not (message.startswith(expected) if expression in revealed else expected in message):
            wrong[expression] = (expected, message)
    assert not wrong, "\n".join(f"{e}: {w}" for e, w in wrong.items())
    assert found == {}, "messages about other lines"


class Jedi:
    """jedi, as an editor calls it, on a program with the cursor at its end."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._jedi = pytest.importorskip("jedi", reason="jedi is not installed")
        # parso drops trees that it has not used for ten minutes; later requests raise KeyError
        importlib.import_module("parso.cache").parser_cache.clear()
        self._environment = self._jedi.create_environment(str(python.parent.parent), safe=False)
        self._folder = folder

    def completions(self, program: str) -> list[str]:
        """The completions, without names that begin with an underscore."""
        return [c.name for c in self._script(program).complete() if not c.name.startswith("_")]

    def help(self, program: str) -> list[Any]:
        """The help on the last name."""
        found: list[Any] = self._script(program).help()
        return found

    def documentation(self, program: str) -> str:
        """The text that an editor shows for the last name, without its signature."""
        return "\n".join(found.docstring(raw=True) for found in self._script(program).infer()[:1])

    def signature(self, program: str) -> str:
        """How the last name is called."""
        return "\n".join(found.to_string() for found in self._script(program + "(").get_signatures()[:1])

    def _script(self, program: str) -> Any:
        project = self._jedi.Project(self._folder)
        return self._jedi.Script(
            program, path=self._folder / "user.py", environment=self._environment, project=project
        )


@pytest.mark.parametrize("name", [*jax_names.NAMESPACES, "hlo"])
def test_jedi_completes_the_namespaces(name: str, python: Path, tmp_path: Path) -> None:
    """Every public name that can be used; besides these only modules, which an editor finds on disk."""
    program = f"import hloom.{name} as space\nspace." if name else "import hloom as space\nspace."
    found = set(Jedi(python, tmp_path).completions(program))
    module = jax_names.namespace("hloom", name)
    public = {name for name in module.__all__ if not isinstance(getattr(module, name), NotWritten)}
    assert public <= found, public - found
    folder = Path(str(module.__file__)).parent if hasattr(module, "__path__") else None
    files = {f.stem for f in folder.iterdir()} if folder else set()
    known = {*module.__all__, *files}
    assert found - known <= {"annotations", "TYPE_CHECKING", "Any", "import_module", "primitive_named"}


def test_jedi_completes_arrays(python: Path, tmp_path: Path) -> None:
    jedi = Jedi(python, tmp_path)
    methods = {name for name in dir(hloom.Array) if not name.startswith("_")}
    for expression in ("jnp.ones(3)", "(jnp.ones(3) + 1)", "jnp.sin(1.0)", "jnp.ones(3)[0]"):
        assert methods <= set(jedi.completions(f"import hloom.numpy as jnp\ny = {expression}\ny.")), expression


@pytest.mark.parametrize("python", ["editable"], indirect=True)  # a wheel has the same files
@pytest.mark.parametrize("name", [name for name in jax_names.NAMESPACES if name not in ("errors", "extend")])
def test_jedi_knows_every_function(name: str, python: Path, tmp_path: Path) -> None:
    """Its parameters, and what it does. Another name of a function has no text of its own: editors follow it. Of an
    object that is called as a function, they show its class."""
    jedi, module = Jedi(python, tmp_path), jax_names.namespace("hloom", name)
    program = f"import {module.__name__} as space\nspace."
    unknown = {}
    for function in module.__all__:
        value = getattr(module, function)
        is_type = isinstance(value, (type, NewType)) or get_origin(value) is not None
        if not callable(value) or is_type or getattr(value, "__doc__", None) is None:
            continue
        documentation, signature = jedi.documentation(program + function), jedi.signature(program + function)
        first = documentation.strip().partition("\n")[0]
        texts = f"{inspect.getdoc(value)} {inspect.getdoc(type(value))} {inspect.getdoc(getattr(value, 'func', None))}"
        if not first or first not in texts or not signature:
            unknown[function] = (documentation, signature)
    assert not unknown


def test_the_link_leads_to_the_file(python: Path, tmp_path: Path) -> None:
    """Go to definition: a path that exists."""
    (found,) = Jedi(python, tmp_path).help("from hloom import hlo\nhlo.parse")
    assert os.path.isfile(found.module_path) and found.full_name == "hloom.hlo.text.parser.parse", found.full_name
