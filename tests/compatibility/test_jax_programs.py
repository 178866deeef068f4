"""Programs that say `import jax`, run on hloom: the command, `as_jax`, the messages, the report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hloom.command_line import main

PROGRAM = """\
import sys
import jax
import jax.numpy as jnp
import jaxlib
from jax import grad, lax
from jax.scipy.linalg import cho_solve
import jax.numpy.linalg
import jax.test_util

print(sys.argv[1:], __name__, __file__ == sys.argv[0])
print(jax.__version__, jax.__version_info__, jaxlib.__version__, jax.version.__version__)
print(jnp.__name__, lax.__name__, grad.__module__, cho_solve.__module__, jax.Array.__module__)
print(f"{grad(lambda x: jnp.sin(x) ** 2)(1.0):.5f}")
"""


def run(*arguments: str, folder: Path | None = None, program: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hloom", "jax", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, input=program)


def test_a_script_runs_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import jax\nVERSION = jax.__version__\n")
    script = tmp_path / "script.py"
    script.write_text(PROGRAM + "import beside\nprint(beside.VERSION)\n")
    ran = run(str(script), "--epochs", "3", "-m", "x")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "['--epochs', '3', '-m', 'x'] __main__ True",
        "0.10.2 (0, 10, 2) 0.10.2 0.10.2",
        "hloom.numpy hloom.lax hloom hloom.scipy.linalg hloom",
        "0.90930",
        "0.10.2",
    ]
    assert ran.stderr == ""


def test_modules_texts_and_the_standard_input(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("import jax, sys\nprint(jax.__version__, __name__, sys.argv[1:])\n")
    assert run("-m", "module", "-v", "a", folder=tmp_path).stdout == "0.10.2 __main__ ['-v', 'a']\n"
    text = "import jax, sys; print(jax.jit(abs)(-2), sys.argv)"
    assert run("-c", text, "--b").stdout == "2 ['-c', '--b']\n"
    assert run("-", "c", program=text).stdout == "2 ['-', 'c']\n"


def test_an_error_of_the_program_is_shown_from_its_own_first_line(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text("import jax.numpy as jnp\n\ndef f(x):\n    return jnp.dot(x, jnp.ones(7))\n\nf(jnp.ones(3))\n")
    ran = run(str(script))
    assert ran.returncode == 1
    lines = ran.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line for line in lines if line.startswith("  File")] == [
        f'  File "{script}", line 6, in <module>',
        f'  File "{script}", line 4, in f',
    ]
    script.write_text("import sys\nsys.exit(5)\n")
    assert run(str(script)).returncode == 5
    script.write_text("def f(:\n")
    ran = run(str(script))
    assert ran.returncode == 1 and ran.stderr.startswith("  File ") and "SyntaxError" in ran.stderr
    assert run("-m", "no_such_module_here").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the program"),
        (["-m"], "name the program"),
        (["no_such_file.py"], "there is no file no_such_file.py"),
        (["--what", "x.py"], "unrecognized arguments: --what"),
    ],
)
def test_a_command_line_that_is_wrong(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    try:
        code = main(["jax", *arguments])
    except SystemExit as exit:
        code = int(str(exit.code))
    assert code == 2
    assert message in capsys.readouterr().err


STATEMENTS = {
    "from jax.numpy import zork": "ModuleNotFoundError: module 'hloom.numpy' has no attribute 'zork'",
    "from jax.tree_util import map": "ModuleNotFoundError: module 'hloom.tree_util' has no attribute 'map'",
    "import jax.experimental.roofline": "ModuleNotFoundError: jax.experimental has 'roofline', hloom.experimental does",
    "from jax.export import zork": "ModuleNotFoundError: module 'hloom.export' has no attribute 'zork'",
    "from jax.experimental import mosaic": "ModuleNotFoundError: jax.experimental has 'mosaic', hloom.experimental",
    "import jax.lax; jax.lax.psend": "AttributeError: jax.lax has 'psend', hloom.lax",
    "import jax; jax.zork": "AttributeError: module 'hloom' has no attribute 'zork'",
    "import jax; jax.hlo": "AttributeError: JAX has no 'hlo'; it is here after `import hloom` as hloom.hlo",
    "from jax import hlo": "ModuleNotFoundError: JAX has no 'hlo'",
    "import jax.tracer": "ModuleNotFoundError: module 'hloom' has no attribute 'tracer'",
    "import jax.numpy.elementwise": "Error: module 'hloom.numpy' has no attribute 'elementwise'",
    "import jax.tree.zork": "ModuleNotFoundError: module 'hloom.tree' has no attribute 'zork'",
    "import jaxlib.mlir": "ModuleNotFoundError: no jaxlib.mlir: hloom runs in place of jaxlib, and has only a few",
    "from jaxlib.xla_client import OpSharding": "ModuleNotFoundError: no jaxlib.xla_client.OpSharding: hloom runs",
    "import jax._src.zork": "ModuleNotFoundError: JAX has no jax._src.zork: hloom follows the names of JAX 0.10.2",
    "from jax._src.core import zork": "ModuleNotFoundError: JAX has no jax._src.core.zork",
    "import jax._src.core; jax._src.core.zork": "AttributeError: JAX has no jax._src.core.zork: hloom follows",
    "from jax._src.pjit import JitWrapped; JitWrapped()": (
        "UnsupportedError: jax._src.pjit.JitWrapped can be imported, but not used: it is a part of JAX's tracing"
    ),
    "from jax._src.export.serialization import zork": "ModuleNotFoundError: JAX has no jax._src.export.serialization",
}
ASKING = f"""\
STATEMENTS = {list(STATEMENTS)!r}
for statement in STATEMENTS:
    try:
        exec(statement)
    except Exception as error:
        print(f"{{statement}} -> {{type(error).__name__}}: {{error}}")
try:
    from jax.nn import relu, zork
except ImportError as error:
    print("and ->", error)
"""


def test_what_is_not_here_says_so() -> None:
    ran = run("-c", ASKING)
    said = dict(line.split(" -> ", 1) for line in ran.stdout.splitlines())
    for statement, message in STATEMENTS.items():
        assert message in said[statement], statement
    assert said["and"].startswith("module 'hloom.nn' has no attribute 'zork'")


def test_the_report_lists_names_counts_and_places(tmp_path: Path) -> None:
    script = tmp_path / "asks.py"
    script.write_text(
        "import jax, jax.numpy as jnp\n"
        "for _ in range(3):\n"
        "    hasattr(jnp, 'zork')\n"
        "try:\n"
        "    from jax.experimental import roofline\n"
        "except ImportError:\n"
        "    roofline = None\n"
        "getattr(jax, '__wrapped__', None)\n"
        "raise SystemExit(3)\n"
    )
    ran = run("--report", str(script))
    assert ran.returncode == 3
    assert ran.stderr.splitlines() == [
        "hloom: names of JAX that the program used and hloom lacks (2)",
        f"  jax.numpy.zork: 3 times, at {script}:3",
        "      module 'hloom.numpy' has no attribute 'zork'",
        f"  jax.experimental.roofline: 1 time, at {script}:5",
        ran.stderr.splitlines()[-1],
    ]
    assert ran.stderr.splitlines()[-1].startswith("      jax.experimental has 'roofline', hloom.experimental does not")
    assert run("--report", "-c", "import jax").stderr.endswith("used no name of JAX that hloom lacks\n")


def test_as_jax_in_a_program() -> None:
    text = (
        "import hloom\n"
        "jax = hloom.as_jax()\n"
        "assert hloom.as_jax() is jax\n"
        "import jax.numpy as jnp, hloom.numpy, jax.tree_util\n"
        "assert jnp is hloom.numpy and jax.numpy is jnp and jax.jit is hloom.jit\n"
        "assert 'jit' in dir(jax) and 'hlo' not in dir(jax)\n"
        "import pickle\n"
        "assert (pickle.loads(pickle.dumps(jnp.arange(3))) == jnp.arange(3)).all()\n"
        "assert pickle.loads(pickle.dumps(jnp.sin)) is jnp.sin\n"
        "print(jnp.__spec__.name, jnp.__name__, jax)\n"
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "hloom.numpy hloom.numpy <module 'jax' (hloom)>\n", ran.stderr


def test_a_process_that_has_imported_jax_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("")
    text = "import jax, hloom\ntry:\n    hloom.as_jax()\nexcept ImportError as error:\n    print(error)\n"
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert ran.stdout.startswith(f"this process has imported JAX itself (jax from {tmp_path}"), ran.stderr
    assert "in a new process" in ran.stdout


def test_importing_hloom_changes_nothing() -> None:
    text = "import sys\nbefore = list(sys.meta_path)\nimport hloom.numpy, hloom.nn\nassert sys.meta_path == before\n"
    text += "assert not any(name.startswith('hloom.jax_programs') for name in sys.modules)\n"
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


PUBLISHED = """
lax.lax.add_p jax.lax.add_p
numpy.lax_numpy.argmax jax.numpy.argmax
numpy.ufuncs.sin jax.numpy.sin
core.Tracer jax.core.Tracer
typing.ArrayLike jax.typing.ArrayLike
scipy.special.gammaln jax.scipy.special.gammaln
nn.functions.relu jax.nn.relu
random.PRNGKey jax.random.PRNGKey
array.ArrayImpl jax.Array
tree_util.tree_map jax.tree_util.tree_map
ad_util.stop_gradient_p jax.lax.stop_gradient_p
numpy.util.safe_zip jax._src.util.safe_zip
"""
INSIDE = f"""\
from importlib import import_module
import jax
for line in {PUBLISHED.strip()!r}.splitlines():
    inner, public = line.split()
    module, _, name = inner.rpartition(".")
    space, _, other = public.rpartition(".")
    if getattr(import_module("jax._src." + module), name) is not getattr(import_module(space), other):
        print(line)
print(jax._src.numpy.util.__name__, hasattr(jax._src.core, "zork"), "Tracer" in dir(jax._src.core))

from typing import Optional
from jax._src.pjit import JitWrapped, JitWrapped as again
annotations = Optional[JitWrapped], JitWrapped | None, int | JitWrapped, list[JitWrapped]
def call(): JitWrapped(3)
def attribute(): JitWrapped.lower
def instance(): isinstance(3, JitWrapped)
def instance_of_several(): isinstance(3, (str, JitWrapped))
def subclass():
    class Own(JitWrapped): pass
for use in (call, attribute, instance, instance_of_several, subclass):
    try:
        use()
    except NotImplementedError as error:
        print(use.__name__, "jax._src.pjit.JitWrapped" in str(error))
print(JitWrapped is again, JitWrapped, len({{JitWrapped, again}}))
"""
INSIDE_SAYS = """\
jax._src.numpy.util False True
call True
attribute True
instance True
instance_of_several True
subclass True
True <jax._src.pjit.JitWrapped, which hloom does not have> 1
"""


def test_internal_modules_follow_from_public_ones() -> None:
    ran = run("--report", "-c", INSIDE)
    assert ran.stdout == INSIDE_SAYS, ran.stderr
    assert "\n  jax._src.pjit.JitWrapped: 2 times, at <string>:" in ran.stderr
    assert "      jax._src.pjit.JitWrapped can be imported, but not used: it is a part of JAX's tracing" in ran.stderr


def test_internal_modules_that_examples_of_jax_import() -> None:
    text = (
        "from jax._src import api\nfrom jax._src.lax import lax\nfrom jax._src.util import *\n"
        "from jax._src.util import safe_map, safe_zip, split_list, partition_list, merge_lists, unzip2\n"
        "print(api.grad(lambda x: lax.mul(x, x))(3.0), safe_map(pow, [2, 3], (2, 1)), safe_zip([1, 2], [3, 4]))\n"
        "print(split_list([1, 2, 3], [1]), partition_list([True, False], 'ab'), merge_lists([True, False], 'b', 'a'))\n"
        "wrong = lambda: safe_zip([1], [2, 3]), lambda: split_list([1], [2]), lambda: merge_lists([1], [], [])\n"
        "for each in wrong:\n"
        "    try:\n        each()\n    except ValueError as e:\n        print(unzip2([(1, 2)]), len(str(e)) > 9)\n"
    )
    expected = ["6.0 [4, 3] [(1, 3), (2, 4)]", "[[1], [2, 3]] (['b'], ['a']) ['a', 'b']"]
    assert run("-c", text).stdout.splitlines() == [*expected, *["((1,), (2,)) True"] * 3]


def test_jax_itself_is_not_asked_before_a_compilation() -> None:
    """Another module of the name `jax._src.compiler` belongs to JAX."""
    text = (
        "import sys, types\nsys.modules['jax._src.compiler'] = types.ModuleType('jax._src.compiler')\n"
        "import hloom.jax_programs.src.compiler, hloom\nprint(hloom.jit(lambda x: x * 2.5)(3.0))\n"
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "7.5\n", ran.stderr


def test_a_library_may_forbid_compilation() -> None:
    text = (
        "import jax\nfrom jax._src import compiler\n"
        "def refuse(backend, *args): raise RuntimeError(f'no programs for {backend.platform}')\n"
        "compiler.backend_compile_and_load = refuse\n"
        "try:\n    jax.jit(lambda x: x * 2.5)(3.0)\nexcept RuntimeError as error:\n    print(error)\n"
    )
    assert run("-c", text).stdout == "no programs for cpu\n"
