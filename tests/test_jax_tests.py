"""The tool that runs JAX's own tests: what it cuts out, how it counts, what stands in for internal modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.jax_tests.checkout import cut, front_end
from tools.jax_tests.report import kind, read, report, wanted

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


def test_internal_modules_have_stand_ins(repository: Path, tmp_path: Path) -> None:
    place = cut(repository, "v1", tmp_path)
    code = f"""
from pathlib import Path
from tools.jax_tests import stand_ins
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
assert [type(case) for case in thing.cases] == [stand_ins.Private]
stand_ins.Private.testing = True
for use in (lambda: thing(), lambda: thing.x, lambda: more[0]):
    try: use()
    except stand_ins.PrivateName: pass
    else: raise SystemExit("used")
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])


def test_outcomes_are_counted(tmp_path: Path) -> None:
    def write(name: str, outcomes: dict[str, str]) -> Path:
        lines = [{"test": t, "outcome": o, "why": f"ValueError: {t} of (3, 4)"} for t, o in outcomes.items()]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
        return tmp_path / name

    ours = read(write("hloom", {"a_test.py::x": "passed", "a_test.py::y": "failed", "b_test.py::z": "failed"}))
    theirs = write("jax", {"a_test.py::y": "passed", "b_test.py::z": "failed"})
    assert wanted(ours, None) == set(ours)
    assert wanted(ours, theirs) == {"a_test.py::x", "a_test.py::y"}
    text = report(ours, wanted(ours, theirs))
    assert "50.00%" in text and "b_test.py" not in text
    assert kind("ValueError: 'x' of (3, 4) and 5.0e-3") == "ValueError: '...' of (...) and N"
