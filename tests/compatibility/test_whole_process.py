"""`as_jax()` for a whole program: the processes that it starts, its versions and its metadata, notebooks."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import hloom
from hloom.jax_programs.children import sitecustomize

WORKERS = """\
import concurrent.futures, multiprocessing, sys
import jax

def found(x):
    import importlib.metadata
    version = importlib.metadata.version("JaxLib")
    import jax, hloom
    return jax.jit is hloom.jit and version == jax.__version__, float(jax.numpy.sin(x))

if __name__ == "__mp_main__":
    assert type(jax).__name__ == "_Jax"
if __name__ == "__main__":
    method = sys.argv[1]
    if method == "joblib":
        import joblib
        print(joblib.Parallel(2)(joblib.delayed(found)(x) for x in (0.0,)))
    elif method == "executor":
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            print(list(pool.map(found, [jax.numpy.zeros(())])))
    else:
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(found, [0.0]))
"""


def run(
    *arguments: str, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=folder, env=environment)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork", "executor", "joblib"])
def test_workers(tmp_path: Path, method: str) -> None:
    if method == "joblib":
        pytest.importorskip("joblib")
    (tmp_path / "program.py").write_text(WORKERS)
    ran = run("-m", "hloom", "jax", "program.py", method, folder=tmp_path)
    assert ran.stdout == "[(True, 0.0)]\n", ran.stderr


def test_workers_of_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_it.py").write_text(
        "import os, jax, hloom\n"
        "def test(): assert jax.jit is hloom.jit and 'PYTEST_XDIST_WORKER' in os.environ\n"
    )
    options = ("-q", "-n", "1", "-p", "no:cacheprovider")
    ran = run("-m", "hloom", "jax", "-m", "pytest", *options, "test_it.py", folder=tmp_path)
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


CHILD = """\
import os, sys
try:
    import jax
    print(type(jax).__name__, end=" ")
except ImportError:
    print("none", end=" ")
import sitecustomize
print(getattr(sitecustomize, "OTHER", ""), os.environ.get("PYTHONPATH"), "HLOOM_AS_JAX" in os.environ)
"""
STARTS_A_CHILD = f"""\
import subprocess, sys
import hloom
hloom.as_jax(**eval(sys.argv[1]))
subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
"""


@pytest.mark.parametrize("asked", [False, True])
def test_subprocesses_if_asked(tmp_path: Path, asked: bool) -> None:
    """The `sitecustomize` of the user runs in any case; in a process that is not asked, all is as before."""
    (tmp_path / "sitecustomize.py").write_text("OTHER = 'other'\n")
    (tmp_path / "jax.py").write_text("")
    path = f"{tmp_path}{os.pathsep}{Path(hloom.__file__).parent.parent}"
    ran = run("-c", STARTS_A_CHILD, f"dict(subprocesses={asked})", env={"PYTHONPATH": path})
    expected = f"_Jax other {sitecustomize.FOLDER}{os.pathsep}{path} True" if asked else f"module other {path} False"
    assert ran.stdout == f"{expected}\n", ran.stderr


LISTS = """\
from importlib import metadata
listed = {d.metadata["Name"]: d.metadata["Summary"] for d in reversed([*metadata.distributions()])}
print(listed["jax"], listed["jaxlib"], "numpy" in listed, sep=", ")
"""


def test_a_child_lists_distributions_before_it_imports_jax() -> None:
    program = "import subprocess, sys, hloom; hloom.as_jax(subprocesses=True)\n"
    program += f"subprocess.run([sys.executable, '-c', {LISTS!r}], check=True)"
    ran = run("-c", program)
    assert ran.stdout == "hloom in place of jax, hloom in place of jaxlib, True\n", ran.stderr


@pytest.mark.parametrize(("value", "which"), [("all", "all"), ("workers", "workers"), ("", None)])
def test_another_python_is_not_asked(monkeypatch: pytest.MonkeyPatch, value: str, which: str | None) -> None:
    monkeypatch.setenv(sitecustomize.VARIABLE, f"{value}:{sys.prefix}")
    assert sitecustomize.asked() == which
    monkeypatch.setenv(sitecustomize.VARIABLE, f"{value}:/another")
    assert sitecustomize.asked() is None


ASKS = """\
import importlib.metadata as metadata
import importlib.machinery
import importlib.util
import os
import hloom
jax = hloom.as_jax()
import jaxlib, jax.version
assert metadata.version("jax") == metadata.version("JaxLib") == jax.__version__ == jaxlib.__version__
assert jax.__version__ == jax.version.__version__ == jaxlib.version.__version__
assert metadata.distribution("jax").metadata["Name"] == "jax" and metadata.distribution("jax").files is None
assert "jax" in metadata.packages_distributions()["jax"]
assert metadata.version("numpy")
names = [d.metadata["Name"] for d in metadata.distributions()]
assert "jax" in names and "jaxlib" in names and "numpy" in names
find = importlib.util.find_spec
assert find("jax") and find("jaxlib") and find("jax.numpy") and find("jax.scipy.stats").origin
assert [find(f"jax.{n}") for n in ("zork", "experimental.pallas_zork", "numpy.zork")] == [None] * 3
assert find("jaxlib.zork") is None and find("jax._src.zork") is None
[folder] = jax.__path__
assert os.path.samefile(folder, os.path.dirname(jax.__file__))
assert find("jax").submodule_search_locations == [folder]
assert importlib.machinery.PathFinder.find_spec("jax.test_util", jax.__path__) is None  # as pytest searches
import jax.test_util
assert jax.test_util is hloom.test_util
print(jax.__version__, jax.__version_info__)
hloom.config.update("hloom_jax_version", "0.9.1.dev3")
print(jax.__version__, jaxlib.__version_info__, metadata.version("jax"), "__version__" in dir(jax))
"""


def test_versions_and_metadata() -> None:
    ran = run("-c", ASKS, env={"HLOOM_JAX_VERSION": "0.12.0"})
    assert ran.stdout == "0.12.0 (0, 12, 0)\n0.9.1.dev3 (0, 9, 1) 0.9.1.dev3 True\n", ran.stderr
    ran = run("-c", "import hloom; hloom.as_jax()", env={"HLOOM_JAX_VERSION": "new"})
    assert "hloom_jax_version must be a version such as '0.12.0', not 'new'" in ran.stderr


def test_in_a_notebook(tmp_path: Path) -> None:
    """By its command, and by the first cell."""
    if not all(importlib.util.find_spec(name) for name in ("nbconvert", "nbformat", "ipykernel")):
        pytest.skip("needs nbconvert, nbformat and ipykernel")
    import nbformat

    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell("import jax\njax.jit(lambda x: x * 2)(jax.numpy.arange(3))")]
    nbformat.write(notebook, tmp_path / "n.ipynb")
    arguments = ("-m", "nbconvert", "--to", "markdown", "--execute", "--stdout", "n.ipynb")
    ran = run("-m", "hloom", "jax", *arguments, folder=tmp_path)
    assert "Array([0, 2, 4], dtype=int32)" in ran.stdout, ran.stderr
    notebook.cells.insert(0, nbformat.v4.new_code_cell("import hloom\nhloom.as_jax()"))
    nbformat.write(notebook, tmp_path / "n.ipynb")
    ran = run(*arguments, folder=tmp_path)
    assert "<module 'jax' (hloom)>" in ran.stdout and "Array([0, 2, 4], dtype=int32)" in ran.stdout, ran.stderr


def test_in_ipython() -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell")
    assert shell
    text = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_cell('import hloom; hloom.as_jax()', silent=True)\n"
        "shell.run_cell('import jax; jax.numpy.arange(2)')\n"
    )
    assert "Array([0, 1], dtype=int32)" in run("-c", text).stdout
