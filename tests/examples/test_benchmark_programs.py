"""Programs of others: a clone with one small program is a case of each preset, with fresh arguments for each call."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import groups, harness, peers, programs
from benchmarks.startup import Chosen

INFO = {
    "name": "Toy", "relative_path": "a/toy", "module_name": "toy", "func_name": "kernel",
    "parameters": {"S": {"N": 8}, "M": {"N": 16}, "L": {"N": 32}},
    "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["x", "y"]},
    "input_args": ["N", "x", "y"], "array_args": ["x", "y"], "output_args": ["x"],
}  # fmt: skip
VERSIONS = {
    "": "import numpy as np\ndef initialize(N):\n    return np.arange(float(N)), np.ones(N)\n",
    "_numpy": "def kernel(N, x, y):\n    x += y * N\n",
    "_numba_n": "import numba\n@numba.njit\ndef kernel(N, x, y):\n    for k in range(N):\n        x[k] += y[k] * N\n",
    "_numba_np": "raise RuntimeError('a version that does not run')\n",
    "_jax": (
        "import jax, functools\n@functools.partial(jax.jit, static_argnums=0)\n"
        "def kernel(N, x, y):\n    return x.at[:].add(y * N)\n"
    ),
}


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bench_info").mkdir()
    (tmp_path / "bench_info" / "toy.json").write_text(json.dumps({"benchmark": INFO}))
    folder = tmp_path / "npbench" / "benchmarks" / "a" / "toy"
    folder.mkdir(parents=True)
    for postfix, text in VERSIONS.items():
        (folder / f"toy{postfix}.py").write_text(text)
    monkeypatch.setenv("HLOOM_NPBENCH", str(tmp_path))
    monkeypatch.setenv("HLOOM_BUILT", str(tmp_path / "built"))
    monkeypatch.setattr(programs, "BUILT", tmp_path / "built")
    monkeypatch.delenv("HLOOM_PYHPC", raising=False)
    monkeypatch.setattr(programs, "GROUPS", programs._groups())
    return tmp_path


def test_a_clone_is_a_group_for_each_preset(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clone / "bench_info" / "other.json").write_text(json.dumps({"benchmark": INFO | {"module_name": "other"}}))
    monkeypatch.setattr(programs, "GROUPS", programs._groups())  # without the program that has no version for JAX
    assert [list(groups.group(f"npbench-{preset}")) for preset in "SML"] == [[f"npbench-{p}-toy"] for p in "SML"]
    assert groups.home("npbench-M-toy") == "npbench-M" and not groups.group("pyhpc")


def test_all_versions_of_a_program_are_measured(clone: Path, tmp_path: Path) -> None:
    with peers.started(tmp_path, Chosen({}, ["numpy", "numba", "dace"])) as running:
        outcome = running.measure("npbench-S-toy", 1, 0.001, False)
    assert {"hloom", "numpy", "numba"} <= {*outcome.samples}
    assert all(note.startswith("dace: not measured") for note in outcome.notes)


def test_each_call_has_new_arguments(clone: Path) -> None:
    program = groups.make("npbench-S-toy").programs["numpy"]()
    local = harness.Local(program, wait_each=True, settle=0.0)
    for _ in range(2):
        assert local.sample(3) > 0
        np.testing.assert_array_equal(local.results()[0], np.arange(8.0) + 8)


def test_results_are_what_a_version_writes(clone: Path) -> None:
    """Whether it returns them or not, and whatever the description says."""
    (clone / "bench_info" / "toy.json").write_text(json.dumps({"benchmark": INFO | {"output_args": []}}))
    folder = clone / "npbench" / "benchmarks" / "a" / "toy"
    (folder / "toy_numpy.py").write_text("def kernel(N, x, y):\n    x += 1\n    return x[:2] * 4\n")
    local = harness.Local(groups.make("npbench-S-toy").programs["numpy"](), wait_each=True, settle=0.0)
    for _ in range(2):
        assert [a.tolist() for a in local.results()] == [[4.0, 8.0], [*np.arange(1.0, 9.0)]]
        local.sample(2)


def test_versions_may_have_more_results(clone: Path) -> None:
    case = groups.make("npbench-S-toy")
    a, b, c = np.ones(2), np.zeros(3), np.array(4.0)
    harness.compare_some({"one": [a, b, c], "other": [c, a + 1e-9]}, case)
    harness.compare_some({"one": [b], "other": [c, b]}, case)
    for few in ([a + 1], [c, np.ones(4)], []):
        with pytest.raises(harness.Mismatch):
            harness.compare_some({"one": [a, b, c], "other": few}, case)


def test_programs_are_prepared(clone: Path, tmp_path: Path) -> None:
    """In the processes of the peers that were asked for, which then have no case; Numba's code is kept."""
    with peers.started(tmp_path, Chosen({}, ["numba", "dace"])) as running:
        assert [*running.prepare("npbench-S-toy")] == ["dace"]
        assert running.running.keys() == {"numba", "dace"}
        with pytest.raises(peers.PeerFailed):
            running.running["numba"].ask(do="sample", calls=1)
    assert [*(clone / "built" / "numba").rglob("*kernel*.nbi")]


def test_a_source_is_compiled_once(clone: Path) -> None:
    source = clone / "program.py"
    made: list[str] = []

    def compiler(folder: Path) -> None:
        made.append(source.read_text())
        (folder / "code").write_text(made[-1])
        if made[-1] == "wrong":
            raise ValueError("no program")

    for text in ("one", "one", "two", "one"):
        source.write_text(text)
        assert (programs._built("numpy", source, compiler) / "code").read_text() == text
    source.write_text("wrong")
    for _ in range(2):
        with pytest.raises(ValueError, match="no program"):
            programs._built("numpy", source, compiler)
    assert made == ["one", "two", "wrong", "wrong"]
    assert len([*(clone / "built" / "numpy").iterdir()]) == 2


def test_without_clones_the_groups_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HLOOM_NPBENCH", "HLOOM_PYHPC"):
        monkeypatch.delenv(name, raising=False)
    found = programs._groups()
    assert [*found] == [*groups.PROGRAMS] and not any(found.values())
