"""The tool that runs JAX's own tests: the front end that it cuts out, its counts, its stand-ins for modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.jax_tests.checkout import cut, front_end
from tools.jax_tests.machinery import machinery
from tools.jax_tests.report import kind, read, report, wanted
from tools.jax_tests.suites import Suite

FILES = {
    "tests/small_test.py": """
import jax.numpy as jnp
from absl.testing import absltest
class SmallTest(absltest.TestCase):
    def test_sum(self): self.assertEqual(jnp.arange(3).sum(), 3)
""",
    "tests/gpu_things_test.py": "",
    "jax/_src/test_util.py": "",
    "jax/experimental/sparse/test_util.py": "LAYOUTS = [1, 2]",
    "jax/_src/lax/lax.py": "",
    "jax/_src/config.py": "",
    "jax/_src/dtypes.py": "",
    "jax/_src/secret.py": "",
    "jax/_src/tree_util.py": "",
    "jax/_src/state/discharge.py": "",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository that is laid out as JAX's."""
    folder = tmp_path_factory.mktemp("jax")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["tag", "v1"]):
        subprocess.run([*git, *command], check=True)
    return folder


def test_the_front_end_is_cut_out(repository: Path, tmp_path: Path) -> None:
    place = cut(repository, "v1", tmp_path)
    assert [f.name for f in front_end(place)] == ["small_test.py"]
    assert (place / "jax/_src/test_util.py").is_file() and not (place / "jax/_src/lax").exists()
    assert "jax._src.lax.lax" in (place / "modules.txt").read_text().split()
    assert (place / "jax/experimental/sparse/test_util.py").is_file()
    assert cut(repository, "v1", tmp_path) == place


def test_a_librarys_tests_are_cut_out(repository: Path, tmp_path: Path) -> None:
    suite = Suite("small", "", "v1", "tests")
    place = suite.cut(repository, "v1", tmp_path)
    assert [f.name for f in suite.files(place)] == ["gpu_things_test.py", "small_test.py"]
    assert not (place / "jax").exists() and suite.cut(place, "v1", tmp_path) == place  # as a source distribution


def test_a_librarys_tests_run(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("absl")
    command = [sys.executable, "-m", "tools.jax_tests", "run", str(repository), "--suite", "equinox", "--ref", "v1"]
    command += ["--folder", str(tmp_path), "--out", str(tmp_path / "out.jsonl"), "--workers", "0"]
    ran = subprocess.run(command, check=True, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert "100.00%" in ran.stdout
    assert {name: line["outcome"] for name, line in read(tmp_path / "out.jsonl").items()} == {
        "small_test.py::SmallTest::test_sum": "passed"
    }


def test_internal_modules_have_stand_ins(repository: Path, tmp_path: Path) -> None:
    place = cut(repository, "v1", tmp_path)
    code = f"""
from pathlib import Path
from tools.jax_tests import private, stand_ins
stand_ins.install(Path({str(place)!r}))
import jax
from jax._src import config, dtypes
from jax._src.lax import lax
from jax._src.secret import thing
from jax.experimental.nothing import more
assert lax.sin is jax.lax.sin and dtypes.bfloat16 is jax.dtypes.bfloat16
assert not config.enable_x64.value
with config.config_states["jax_enable_x64"](True):
    assert config.enable_x64.value and jax.numpy.arange(2.0).dtype == "float64"
config.bool_flag("jax_skip_slow_tests", False)
assert config._read("jax_skip_slow_tests") is False and config._read("jax_enable_x64") is False
from jax.experimental.sparse import test_util
assert test_util.LAYOUTS == [1, 2]
from jax.experimental.sparse import bcoo
assert bcoo.BCOO is jax.experimental.sparse.BCOO
weak = lax._convert_element_type(0, "int8", weak_type=True)
assert weak.weak_type and weak.dtype == "int8" and not dtypes.safe_to_cast("float32", "int8")
class Derived(thing): pass
from jax._src import tree_util
errors = tree_util.prefix_errors(((1,), (2,)), ([3], [4]))
assert "axes[1]" in str(errors[1]("axes")) and len(errors) == 2
from jax._src.state.discharge import run_state
assert run_state(lambda refs: refs[0].addupdate(refs[1][...]))((1, 2))[0] == 3
from jax.experimental.sparse import csr
import numpy
assert csr._csr_todense(*csr._csr_fromdense(numpy.eye(2), nse=2), shape=(2, 2)).tolist() == [[1, 0], [0, 1]]
assert [type(case) for case in thing.cases] == [private.Private]
private.Private.testing = True
for use in (lambda: thing(), lambda: thing.x, lambda: more[0], lambda: isinstance(1, thing)):
    try: use()
    except private.PrivateName: pass
    else: raise SystemExit("used")
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


RUN = """
import jax, jax.numpy as jnp
from absl.testing import absltest
from jax._src import util
from jax._src.secret import thing
counted = []
util.test_event_listener = lambda name, *args: counted.append(name)
class RunTest(absltest.TestCase):
    def test_count(self):
        jax.jit(lambda x: x * 3)(jnp.ones(3))
        self.assertIn("trace_to_jaxpr", counted)
    def test_fails(self): self.assertEqual(jnp.arange(3).sum(), 4)
    def test_private(self): thing()
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outcomes of three tests; one of them passes."""
    pytest.importorskip("absl")
    place = tmp_path_factory.mktemp("place")
    (place / "tests").mkdir()
    (place / "tests/run_test.py").write_text(RUN)
    (place / "modules.txt").write_text("jax._src.util\njax._src.secret")
    found, _ = run_tests(place, place / "first.jsonl")
    assert found == {"test_count": "passed", "test_fails": "failed", "test_private": "failed"}
    return place / "first.jsonl"


def run_tests(place: Path, out: Path, **chosen: str) -> tuple[dict[str, str], Path]:
    choice = {"SUITE": "jax", "WITH": "hloom", "OUT": str(out), "ONE_IN": "1", "PIECE": "0", **chosen}
    environment = {**os.environ, "HLOOM_JAX_TESTS": str(place), "JAX_PLATFORMS": "cpu"}
    environment |= {f"HLOOM_JAX_TESTS_{name}": value for name, value in choice.items()}
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(place), "-n", "0"]
    command += ["-p", "tools.jax_tests.plugin", "-p", "no:cacheprovider", str(place / "tests/run_test.py")]
    subprocess.run(command, env=environment, cwd=Path(__file__).parents[2], capture_output=True)
    return {name.rpartition("::")[2]: line["outcome"] for name, line in read(out).items()}, out


def test_what_needs_machinery_of_jax_is_counted_apart(outcomes: Path) -> None:
    found = read(outcomes)
    text = report(found, wanted(found, None))
    assert "     3      1  33.33%" in text and "     3      1  33.33%, without" in text  # no part of the machinery
    found["run_test.py::RunTest::test_private"]["why"] = "PrivateName: not here: jax._src.error_check.wrap_for_export"
    assert "     2      1  50.00%, without" in report(found, wanted(found, None))


def test_pieces_are_the_whole_and_failures_run_again(outcomes: Path) -> None:
    place = outcomes.parent
    pieces = [run_tests(place, place / f"{k}.jsonl", ONE_IN="2", PIECE=str(k))[0] for k in range(2)]
    assert sum(map(len, pieces)) == 3 and len(pieces[0] | pieces[1]) == 3
    assert set(run_tests(place, place / "again.jsonl", FAILED=str(outcomes))[0]) == {"test_fails", "test_private"}


@pytest.mark.parametrize(
    ("why", "found"),
    [
        ("tools.jax_tests.private.PrivateName: not here: jax._src.interpreters.mlir.ir", True),
        ("tools.jax_tests.private.PrivateName: not here: jax._src.something", False),
        ("AttributeError: 'Compiled' object has no attribute '_params'", True),
        ("AttributeError: 'Array' object has no attribute 'params'", False),
        ("AttributeError: module 'hloom.lax' has no attribute '_steps'", True),
        ("AttributeError: module 'hloom.lax' has no attribute 'steps'", False),
        ("AttributeError: 'JaxprPrimitive' object has no attribute 'impl'", True),
        ("TypeError: Mesh: devices must be those of hloom.devices(), not MockTpuDevice(id=0)", True),
        ("AssertionError: 1 != 2", False),
    ],
)
def test_what_is_machinery(why: str, found: bool) -> None:
    assert (machinery(why) is not None) == found


def test_outcomes_are_counted(tmp_path: Path) -> None:
    def write(name: str, outcomes: dict[str, str]) -> Path:
        lines = [{"test": t, "outcome": o, "why": f"ValueError: {t} of (3, 4)"} for t, o in outcomes.items()]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
        return tmp_path / name

    ours = read(write("hloom", {"a_test.py::x": "passed", "a_test.py::y": "failed", "b_test.py::z": "failed"}))
    theirs = write("jax", {"a_test.py::y": "passed", "b_test.py::z": "failed"})
    assert wanted(ours, None) == set(ours)
    assert wanted(ours, [theirs]) == {"a_test.py::x", "a_test.py::y"}
    text = report(ours, wanted(ours, [theirs]))
    assert "50.00%" in text and "b_test.py" not in text
    assert kind("ValueError: 'x' of (3, 4) and 5.0e-3") == "ValueError: '...' of (...) and N"
