"""The installed files, from each kind of source, and the modules that an import loads."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from email import message_from_string
from pathlib import Path
from typing import Any, cast

import pytest

import hloom
import tools.distributions as distributions
import tools.lowest as lowest
from support.source_tree import (
    FOLDERS,
    SOURCE_FILES,
    copy_of_the_package,
    copy_of_the_rest,
    environment,
    is_distribution,
    modules,
    pip,
    run,
)

HEAVY = (
    "numba",
    "llvmlite",
    "scipy",
    "opt_einsum",
    "tqdm",
    "matplotlib",
    "sklearn",
    "jax",
    "mpmath",
    "concurrent.futures.process",
)
ROOT = Path(__file__).resolve().parents[2]
USE = "import hloom, hloom.numpy as jnp; print(hloom.jit(lambda x: jnp.sum(x * x))(jnp.arange(4.0)))"


checkout_only = pytest.mark.skipif(is_distribution(ROOT), reason="a source distribution has folders, no links")


@checkout_only
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_package_has_a_link_to_each_folder(folder: str, root: Path) -> None:
    """Python, type checkers and editors find `hloom.hlo` in the checkout by it."""
    assert (root / "hloom" / folder).samefile(root / folder)
    assert os.readlink(root / "hloom" / folder) == f"../{folder}"


LEVELS = ("aarch64_neon", "x86_64_v3", "x86_64_v4")
CODE = ("elementary", *(f"{n}-linux" for n in ("aarch64", "x86_64", *LEVELS, *(f"{n}_kernels" for n in LEVELS))))
STUBS = {p.relative_to(ROOT).as_posix() for p in (ROOT / "hloom").rglob("*.pyi")}
DATA = {
    *("hloom/errors.md", "hloom/py.typed", "hloom/jax_programs/sources.txt"),
    *STUBS,
    *(f"hloom/numba_backend/runtime/native_code/{name}.txt" for name in CODE),
    *(path.relative_to(ROOT).as_posix() for path in (ROOT / "hloom" / "viewer" / "page").iterdir()),
}
"""The files of the package that are no modules."""


def test_every_module_is_in_a_package(root: Path) -> None:
    for module in modules(root):
        assert (root / module).with_name("__init__.py").exists(), f"{module}: its folder has no __init__.py"


def test_searches_do_not_see_double(root: Path) -> None:
    """Tools that follow links read this file."""
    assert set(FOLDERS) == {Path(line).name for line in (root / ".ignore").read_text().splitlines() if line[0] == "/"}


@pytest.mark.parametrize("name", ["hloom", "hloom.hlo", "hloom.numpy", "hloom.numba_backend"])
def test_import_stays_light(name: str, tmp_path: Path) -> None:
    """Nothing that compiles is imported before something must be compiled."""
    loaded = run(sys.executable, f"import sys, {name}; print(*sys.modules)", tmp_path).split()
    assert name in loaded
    assert sorted({*HEAVY, "hashlib", "sysconfig", "hloom.hlo.text.printer"} & set(loaded)) == []


LATE = (
    *("hloom.autodiff.api", "hloom.autodiff.vmap", "hloom.tracer.control_flow.scan", "hloom.tracer.stages"),
    *("hloom.tracer.deferred.deferral", "hloom.tracer.sharding.divisions", "hloom.extend.protocol"),
    *("hloom.numpy.insert_delete", "hloom.numpy.sorting", "hloom.numpy.einstein_sums", "hloom.numpy.vectorizing"),
)


def test_a_program_without_derivatives_loads_none(tmp_path: Path) -> None:
    """Nor other parts that a call of a jitted function does not need."""
    text = "import sys, hloom, hloom.numpy as jnp; hloom.jit(lambda x: 2 * x)(jnp.ones(3)); print(*sys.modules)"
    assert sorted(set(LATE) & set(run(sys.executable, text, tmp_path).split())) == []


FIRST_JIT = """
import sys, hloom, hloom.numpy as jnp
before = set(sys.modules)
print(hloom.jit(lambda x: jnp.sin(x) + 1).lower(jnp.ones(3)).compile().passes()[-1].name)
for name in sorted(set(sys.modules) - before):
    print(name)
    for kind in list(vars(sys.modules[name]).values()) if name.startswith("hloom.") else ():
        parameters = vars(kind).get("__dataclass_params__") if isinstance(kind, type) else None
        if type(parameters).__module__ == "dataclasses" and kind.__module__ == name:
            print("compiles", kind)
"""


def test_a_first_compilation_stays_light(tmp_path: Path) -> None:
    """It imports no reference that it does not use, and defines no class that compiles its methods at once."""
    lines = run(sys.executable, FIRST_JIT, tmp_path).splitlines()
    assert lines[0] == "code-generation"
    assert "hloom.hlo.passes.manager" in lines
    assert [line for line in lines if line.startswith(("hloom.hlo.evaluator", "hloom.hlo.passes.rule_check"))] == []
    assert [line for line in lines if line.startswith("compiles")] == []


def test_a_checkout_works_without_being_installed(root: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    assert float(run(python, USE, root)) == 14.0


@checkout_only
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_is_no_package_by_itself(folder: str, root: Path, tmp_path: Path) -> None:
    """Its modules would be loaded twice."""
    code = f"import sys; sys.path.insert(0, {str(root)!r}); import {folder}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert f"ImportError: {folder} is a part of hloom: import hloom.{folder}" in ran.stderr


@checkout_only
def test_a_checkout_without_links_says_so(root: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    source = copy_of_the_package(root, tmp_path / "source", links=False)
    ran = subprocess.run([python, "-c", "import hloom"], capture_output=True, text=True, cwd=source, timeout=120)
    said = ran.stderr.splitlines()[-1]  # one line
    assert said.startswith("ImportError: ") and "git config core.symlinks true; git checkout HEAD hloom" in said


def test_frames_of_the_library_are_not_the_users(root: Path, tmp_path: Path) -> None:
    """The user's line names an instruction, whatever the package's folders on disk."""
    shutil.copytree(root / "hloom", tmp_path / "site" / "hloom", ignore=shutil.ignore_patterns("__pycache__"))
    program = tmp_path / "program.py"
    program.write_text(
        "import hloom, hloom.numpy as jnp\nlowered = hloom.jit(lambda x: jnp.linalg.norm(x)).lower(jnp.ones(3))\n"
        "print(lowered.as_text(metadata=True))"
    )
    for folder in (root, tmp_path / "site"):
        variables = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, "-P", str(program)]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, env=variables)
        assert ran.returncode == 0, ran.stderr
        assert set(re.findall(r'source_file="([^"]*)"', ran.stdout)) == {str(program)}


def test_type_checkers_see_no_fallback(root: Path) -> None:
    """A module's `__getattr__` would make every misspelt name valid, so it is hidden from type checkers.

    They know the condition by its spelling: `_TYPE_CHECKING` would not do. Where there is a stub, they read only that.
    """
    hidden = 0
    for path in sorted([*(root / "hloom").rglob("*.py"), root / "hloom" / "hlo" / "__init__.py"]):
        if path.with_suffix(".pyi").exists():
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.If) and "__getattr__" in {getattr(inner, "name", "") for inner in node.body}:
                assert ast.unparse(node.test) in ("not TYPE_CHECKING", "not _typing.TYPE_CHECKING"), path
                hidden += 1
            assert getattr(node, "name", "") != "__getattr__", f"{path}: put it below `if not TYPE_CHECKING:`"
    assert hidden


# ---- declared versions


@pytest.mark.parametrize(
    ("requirement", "pin"),
    [
        ("numba>=0.62,<2", "numba==0.62"),
        ("scikit-learn >= 1.5", "scikit-learn==1.5"),
        ("ml_dtypes<1,>=0.6; python_version < '3.13'", "ml_dtypes==0.6"),
        ("jax==0.10.2", "jax==0.10.2"),
        ("numba<0.69", None),
        ("numba", None),
    ],
)
def test_the_lowest_version_of_a_requirement(requirement: str, pin: str | None) -> None:
    if pin is None:
        with pytest.raises(lowest.BoundError, match=re.escape(requirement)):
            lowest.lowest(requirement)
    else:
        assert lowest.lowest(requirement) == pin


def test_every_requirement_has_a_lowest_version(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    count = len(project["dependencies"])
    assert len(lowest.pins(project)) == count
    for extra in project["optional-dependencies"]:
        assert len(lowest.pins(project, [extra])) > count
    with pytest.raises(lowest.BoundError, match="no extra tests"):
        lowest.pins(project, ["tests"])
    other = {"dependencies": ["a>=1"], "optional-dependencies": {"b": ["a>=2"]}}
    with pytest.raises(lowest.BoundError, match="the extras declare several"):
        lowest.pins(other, ["b"])


def test_the_smoke_tests_are_there(root: Path) -> None:
    named = (root / "tests" / "smoke.txt").read_text().split()
    assert named == sorted(set(named)) and all((root / name).is_file() for name in named)


def test_the_smoke_tests_have_a_file_of_each_room(root: Path) -> None:
    rooms = {path.parent for path in (root / "tests").rglob("test_*.py")}
    assert rooms == {(root / name).parent for name in (root / "tests" / "smoke.txt").read_text().split()}


# ---- installations: each takes seconds


@checkout_only
def test_a_checkout_without_links_is_as_git_makes_it(root: Path, tmp_path: Path) -> None:
    """The copies without links are what other tests install."""
    if not (root / ".git").exists():
        pytest.skip("no checkout of git")
    links = [f"hloom/{folder}" for folder in FOLDERS]
    command = ["git", "-c", "core.symlinks=false", "checkout-index", f"--prefix={tmp_path}/git/", "--", *links]
    subprocess.run(command, cwd=root, check=True, timeout=60)
    copy = copy_of_the_package(root, tmp_path / "copy", links=False)
    for link in links:
        made = tmp_path / "git" / link
        assert made.is_file() and not made.is_symlink() and made.read_text() == (copy / link).read_text()


EPOCH = 1_767_225_600


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the tools of the extra `release`."""
    python = environment(tmp_path_factory.mktemp("builder") / "venv")
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["release"]
    pip("install", *extra, python=python)
    return python


@pytest.fixture(scope="module")
def wheel(builder: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return distributions.build_wheel(copy_of_the_package(root, folder / "source"), folder, EPOCH, str(builder))


@pytest.fixture(scope="module")
def archive(
    builder: Path, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, set[str]]:
    """The source distribution, and the names of the files that it must have besides the package."""
    folder = tmp_path_factory.mktemp("distribution")
    source = copy_of_the_package(root, folder / "source")
    names = copy_of_the_rest(root, source)
    return distributions.build_sdist(source, folder, EPOCH, str(builder)), names | {*SOURCE_FILES}


@pytest.mark.slow
def test_the_wheel_holds_everything_and_works(wheel: Path, root: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as zipped:
        names = zipped.namelist()
    assert len(names) == len(set(names))
    assert {name for name in names if ".dist-info/" not in name} == modules(root) | DATA

    python = environment(tmp_path / "venv")
    before = files_of(tmp_path / "venv")
    pip("install", "--no-deps", "--no-index", str(wheel), python=python)
    where = str(tmp_path / "venv")
    code = f"{USE}; assert hloom.__file__.startswith({where!r}) and hloom.hlo.__file__.startswith({where!r})"
    assert float(run(python, code, tmp_path)) == 14.0
    subprocess.run([str(python.parent / "hloom"), "--help"], check=True, capture_output=True, timeout=120)
    pip("uninstall", "--yes", "hloom", python=python)
    assert files_of(tmp_path / "venv") == before


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.slow
def test_the_readme_says_how_large_the_wheel_is(wheel: Path, root: Path) -> None:
    said = re.search(r"The wheel has (\d+\.\d) MB", (root / "README.md").read_text())
    assert said is not None and float(said[1]) == pytest.approx(wheel.stat().st_size / 1e6, rel=0.05)


@pytest.mark.slow
def test_every_source_makes_the_same_wheel(
    builder: Path, wheel: Path, archive: tuple[Path, set[str]], root: Path, tmp_path: Path
) -> None:
    """Another folder with other modes, times and no links; and the source distribution."""
    other = copy_of_the_package(root, tmp_path / "another name", links=is_distribution(root))
    for path in (other / "README.md", other / "hloom" / "version.py"):
        path.chmod(0o600)
        os.utime(path, (1, 1))
    sources = [other, distributions.unpack(archive[0], tmp_path / "unpacked")]
    for k, source in enumerate(sources):
        (tmp_path / str(k)).mkdir()
        made = distributions.build_wheel(source, tmp_path / str(k), EPOCH, str(builder))
        assert made.name == wheel.name
        assert made.read_bytes() == wheel.read_bytes(), source


@pytest.mark.slow
def test_the_source_distribution_has_the_same_bits(
    builder: Path, archive: tuple[Path, set[str]], root: Path, tmp_path: Path
) -> None:
    source = copy_of_the_package(root, tmp_path / "source")
    copy_of_the_rest(root, source)
    os.utime(source / "README.md", (1, 1))
    assert distributions.build_sdist(source, tmp_path, EPOCH, str(builder)).read_bytes() == archive[0].read_bytes()


@pytest.mark.slow
def test_the_tools_of_the_index_find_nothing(
    builder: Path, wheel: Path, archive: tuple[Path, set[str]], tmp_path: Path
) -> None:
    distributions.check(archive[0], wheel, str(builder))
    bad = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as good, zipfile.ZipFile(bad, "w") as changed:
        for name in good.namelist():
            more = b"hloom/ir.pyc,,\n" if name.endswith("/RECORD") else b""
            changed.writestr(name, good.read(name) + more)
        changed.writestr("hloom/ir.pyc", b"")
    with pytest.raises(distributions.CheckError, match="W001"):
        distributions.check(archive[0], bad, str(builder))


@pytest.mark.slow
def test_a_bare_environment_gets_all_that_is_needed(wheel: Path, tmp_path: Path) -> None:
    """From wheels in a folder, without an index."""
    house = tmp_path / "wheels"
    pip("download", "--only-binary", ":all:", "--dest", str(house), str(wheel))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True, timeout=120)
    python = tmp_path / "venv" / "bin" / "python"
    pip("install", "--no-index", "--find-links", str(house), "hloom", python=python)
    pip("check", python=python)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [str(python), "-I", "-c", USE], capture_output=True, text=True, cwd=tmp_path, timeout=120, env=variables
    )
    assert ran.stdout.strip() == "14.0", ran.stderr


@pytest.mark.slow
def test_the_types_of_the_public_names_are_known(builder: Path, wheel: Path, tmp_path: Path) -> None:
    """NumPy's own unknown types do not count. Pyright loads itself from npm at its first use."""
    python = environment(tmp_path / "venv")
    pip("install", "--no-deps", "--no-index", str(wheel), python=python)
    binaries = f"{python.parent}{os.pathsep}{builder.parent}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, "PATH": binaries, "VIRTUAL_ENV": str(tmp_path / "venv")}
    command = [str(builder), "-m", "pyright", "--verifytypes", "hloom", "--ignoreexternal", "--outputjson"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=400, env=variables)
    if not ran.stdout.startswith("{"):
        pytest.skip(f"pyright cannot run: {(ran.stdout + ran.stderr)[-200:]}")
    found = json.loads(ran.stdout)["typeCompleteness"]
    assert sum(found["exportedSymbolCounts"].values()) > 10_000
    assert found["completenessScore"] >= LEAST_KNOWN_TYPES


LEAST_KNOWN_TYPES = 0.90
"""docs/public_api.md says what was measured."""


@pytest.mark.slow
@pytest.mark.parametrize("links", [True, pytest.param(False, marks=checkout_only)])
def test_an_editable_install_works(links: bool, root: Path, tmp_path: Path) -> None:
    source = copy_of_the_package(root, tmp_path / "source", links)  # no folder "hloom" where the program runs
    python = environment(tmp_path / "venv")
    pip("install", "--no-deps", "--editable", str(source), python=python)
    code = f"{USE}; import sys; print(*(m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] == 'hloom'))"
    result, files = run(python, code, tmp_path).splitlines()
    assert float(result) == 14.0
    real = [os.path.realpath(file) for file in files.split()]
    assert len(real) > 100 and len(real) == len(set(real)) and all(f.startswith(f"{source.resolve()}/") for f in real)


@pytest.mark.slow
@checkout_only
def test_pip_installs_a_checkout_without_links(root: Path, tmp_path: Path) -> None:
    """As a user does it: with an environment of pip's own for the build."""
    python = environment(tmp_path / "venv")
    source = copy_of_the_package(root, tmp_path / "source", links=False)
    pip("install", "--no-deps", str(source), python=python)
    assert float(run(python, USE, tmp_path)) == 14.0


@pytest.mark.slow
def test_the_source_distribution_holds_plain_files(archive: tuple[Path, set[str]], root: Path) -> None:
    path, others = archive
    with tarfile.open(path) as tar:
        members = tar.getmembers()
    assert all(member.isfile() for member in members)
    names = [member.name.partition("/")[2] for member in members]
    assert len(names) == len(set(names))
    made = {name for name in names if name.startswith("hloom.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    assert set(names) == modules(root) | DATA | others | made


@pytest.mark.slow
def test_tests_run_in_an_unpacked_source_distribution(archive: tuple[Path, set[str]], tmp_path: Path) -> None:
    with tarfile.open(archive[0]) as tar:
        tar.extractall(tmp_path, filter="data")
    (source,) = tmp_path.glob("hloom-*")
    python = environment(tmp_path / "venv")
    pip("install", "--no-deps", "--editable", str(source), python=python)
    every = [python, "-m", "pytest", "-q", "--collect-only", "-m", "", "-p", "no:cacheprovider", "tests"]
    some = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TOUCHY]
    for command in (every, some):
        ran = subprocess.run(command, capture_output=True, text=True, cwd=source, timeout=300)
        assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr


TOUCHY = [
    "tests/hlo/test_adding_an_op.py",
    "tests/hlo/test_ops_table.py",
    *(f"tests/package/test_{name}.py" for name in ("command_line", "imports", "namespaces", "packaging", "readme")),
]
"""The tests that read files of the checkout."""


# ---- what an index shows


def test_a_page_of_the_index_has_no_link_to_a_file(root: Path) -> None:
    readme = (
        "See [docs/a.md](docs/a.md), [the plan](docs/b.md#c), [a site](https://a.org/b) and [above](#top).\n"
        "![f32[3,5]{1,0}](docs/images/tiles.svg)\n![far](https://a.org/b.png)\n"
    )
    assert description(root)(readme) == (
        "See `docs/a.md`, the plan (`docs/b.md#c`), [a site](https://a.org/b) and [above](#top).\n"
        "(picture `docs/images/tiles.svg` in the source distribution)\n![far](https://a.org/b.png)\n"
    )
    shown = description(root)((root / "README.md").read_text())
    assert set(re.findall(r"\]\(([^)]*)\)", shown)) == set(re.findall(r"\]\((https?:[^)]*|#[^)]*)\)", shown))


def description(root: Path) -> Callable[[str], str]:
    """The function of setup.py, read alone, so that setuptools is not required."""
    tree = ast.parse((root / "setup.py").read_text())
    (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "description")
    space: dict[str, Any] = {"re": re}
    exec(compile(ast.Module([function], []), "setup.py", "exec"), space)
    return cast(Callable[[str], str], space["description"])


@pytest.mark.slow
def test_the_metadata(wheel: Path, root: Path) -> None:
    with zipfile.ZipFile(wheel) as zipped:
        (name,) = (name for name in zipped.namelist() if name.endswith(".dist-info/METADATA"))
        found = message_from_string(zipped.read(name).decode())
    assert found["Version"] == hloom.__version__
    assert found["Description-Content-Type"] == "text/markdown"
    assert found["License-Expression"] == "Apache-2.0"
    assert found.get_all("Project-URL")
    assert found.get_payload().strip() == description(root)((root / "README.md").read_text()).strip()
    assert any(r.startswith("tqdm") and "extra" not in r for r in found.get_all("Requires-Dist"))


@pytest.mark.parametrize("name", ["hloom.numpy.linalg", "hloom.nn.initializers"])
def test_modules_that_jax_programs_import(name: str, tmp_path: Path) -> None:
    parent, _, attribute = name.rpartition(".")
    code = f"import {name} as module, {parent}; from {parent} import {attribute}; assert {attribute} is module"
    run(sys.executable, code, tmp_path)
