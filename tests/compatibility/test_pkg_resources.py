"""`pkg_resources` under `as_jax()` sees the distributions that stand in for JAX: the real one where it is installed,
and a module with the same interface."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAND_IN = """
class Distribution:
    def __init__(self, location, project_name, version=None):
        self.location, self.project_name = location, project_name


class WorkingSet:
    def __init__(self):
        self.entries, self.by_key = ["site-packages"], {"jax": "another JAX"}

    def add(self, dist, entry=None, insert=True, replace=False):
        assert entry in self.entries and not insert and replace
        self.by_key[dist.project_name] = dist


working_set = WorkingSet()
get_distribution = working_set.by_key.__getitem__
"""
PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
import hloom
if sys.argv[1] == "before":
    import pkg_resources
jax = hloom.as_jax()
import pkg_resources
assert type(pkg_resources.__loader__).__name__ == type(pkg_resources.__spec__.loader).__name__ == "SourceFileLoader"
versions = [pkg_resources.get_distribution(name).version for name in ("jax", "jaxlib")]
assert versions == [jax.__version__] * 2, versions
hloom.config.update("hloom_jax_version", "0.12.0")
assert pkg_resources.get_distribution("jax").version == "0.12.0"
print("found")
"""


def run(when: str, *folders: str) -> str:
    path = f"import sys; sys.path[:0] = {[*folders, str(ROOT)]!r}\n"
    ran = subprocess.run([sys.executable, "-c", path + PROGRAM, when], capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_working_set_has_jax(tmp_path: Path, when: str) -> None:
    (tmp_path / "pkg_resources.py").write_text(STAND_IN)
    assert run(when, str(tmp_path)) == "found\n"


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_real_one(when: str) -> None:
    if importlib.util.find_spec("pkg_resources") is None:
        pytest.skip("setuptools with pkg_resources is not installed")
    assert run(when) == "found\n"
