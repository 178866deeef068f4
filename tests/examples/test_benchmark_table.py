"""The table of benchmarks: every row computes the same in hloom, NumPy and by hand; peers as processes; the page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
from benchmarks import groups, harness, machine, peers, plot, report, results, startup, translated
from benchmarks.harness import Case, Mismatch, Outcome, arrays
from benchmarks.startup import Chosen
from benchmarks.table import algebra, grids
from benchmarks.table import every as table
from benchmarks.table.declare import Row, compiled

ROWS = [(group, name) for group in table.DECLARED for name in group.rows]
SMALL = [(group, name) for group, name in ROWS if group.tiny[name]]


def test_the_table_has_at_least_80_rows_and_names_are_unique() -> None:
    several = (*groups.TABLE, "transformations", "pallas", "tracing", "eager")
    names = [name for group in several for name in groups.group(group)]
    assert len(ROWS) >= 80 and len(names) == len({*names})
    assert all(groups.home(name) for name in names)
    with pytest.raises(KeyError, match="no such case"):
        groups.home("no such case")


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("group", "name"), SMALL, ids=[name for _, name in SMALL])
def test_a_row_is_the_same_work_for_all(group: Any, name: str, request: pytest.FixtureRequest) -> None:
    """At small sizes; the Numba version is run by Python."""
    row = group.make(name, **group.tiny[name])
    assert isinstance(row, Row)
    with hloom.enable_x64(row.wide):
        expected = arrays(hloom.jit(row.text(hloom, hloom.numpy))(*row.arguments))
    found = {"hloom": expected}
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # 32-bit integers wrap
        warnings.simplefilter("ignore")
        for peer, function in (("numpy", row.numpy), ("numba", row.numba)):
            if function is not None:
                found[peer] = arrays(function(*row.arguments))
    if row.moments:
        assert [a.shape for a in found.get("numpy", expected)] == [a.shape for a in expected]
    else:
        harness.compare(found, Case(name, name, {}, max(row.tolerance, 1e-5)))


def double(x: Any) -> Any:
    return x + x


def fourfold(x: Any) -> Any:
    return double(double(x))


def test_a_version_by_hand_is_compiled_with_what_it_calls() -> None:
    assert compiled(fourfold)(1.5) == 6.0


def test_results_are_compared_by_shape_type_and_value() -> None:
    one, case = np.ones(3, np.float32), Case("x", "x", {})
    harness.compare({"hloom": [one], "numpy": [one + np.float32(1e-6)]}, case)
    for other in (np.ones((3, 1), np.float32), np.ones(3), one + np.float32(0.1), np.full(3, np.nan, np.float32)):
        with pytest.raises(Mismatch, match="hloom and numpy differ"):
            harness.compare({"hloom": [one], "numpy": [other]}, case)
    with pytest.raises(Mismatch, match="results"):
        harness.compare({"hloom": [one], "numpy": [one, one]}, case)
    rounded = Case("x", "x", {}, tolerance=1e-2, equal=0.6)  # most elements have the same bits
    harness.compare({"hloom": [one], "numpy": [one + np.float32([0, 0, 1e-3])]}, rounded)
    with pytest.raises(Mismatch, match="round differently: 33% of the elements are equal"):
        harness.compare({"hloom": [one], "numpy": [one + np.float32([0, 1e-3, 1e-3])]}, rounded)
    rng = np.random.default_rng(0)
    drawn, again, scaled = (rng.random(100_000, np.float32) * s for s in (1, 1, np.float32(0.8)))
    moments = Case("x", "x", {}, moments=True)
    harness.compare({"hloom": [drawn], "numpy": [again]}, moments)
    shifted = again.copy()
    shifted[:50_000] *= np.float32(0.5)
    with pytest.raises(Mismatch, match="hloom and numpy differ"):
        harness.compare({"hloom": [drawn], "numpy": [shifted]}, moments)
    with pytest.raises(Mismatch, match="hloom and jax differ"):  # these two must have the same bits
        harness.compare({"hloom": [drawn], "jax": [again]}, moments)
    assert scaled.dtype == np.float32


def state_of(process: int) -> str:
    """As Linux has it; "R" also for one that is about to be stopped."""
    state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return "R" if state in "RS" else state


def test_cases_of_new_processes_measure_the_chosen_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "CHOSEN", Chosen({}, ["numpy"]))
    (outcome,) = startup.importing(1)
    assert [*outcome.samples] == ["hloom", "numpy"]
    assert startup.CHOSEN.about["numpy"].startswith(f"{np.__version__} on Python")


def test_peers_are_processes_that_are_stopped_while_others_work(tmp_path: Path) -> None:
    with peers.started(tmp_path, Chosen({}, ["numpy"])) as running:
        outcome = running.measure("chain-small", 2, 0.001, False)
        assert [*outcome.samples] == ["hloom", "numpy"] and all(len(s) == 2 for s in outcome.samples.values())
        assert all(min(samples) > 0 for samples in outcome.samples.values())
        assert running.chosen.about["numpy"].startswith(np.__version__)
        processes = running.processes()
        assert len(processes) == 2
        if sys.platform == "linux":
            while "R" in (states := [state_of(p) for p in processes]):
                time.sleep(0.01)
            assert states == ["T", "T"] and set(outcome.peak) == {"hloom", "numpy"}
        running.running["numpy"].close()  # one that has died is named, and is back for the next case
        again = running.measure("dispatch-one", 1, 0.001, False)
        assert [*again.samples] == ["hloom", "numpy"]
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{p}").exists() for p in processes) and time.monotonic() < deadline:
        time.sleep(0.01)
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


MLX = """
import numpy as np
__version__ = "7.5"
cpu, bool_, bfloat16, float32 = "cpu", bool, "bf16", np.float32
class array(np.ndarray):
    def __new__(cls, a): return np.asarray(a).view(cls)
exp, sqrt, contiguous = np.exp, np.sqrt, np.ascontiguousarray
def set_default_device(device): assert device == cpu
def grad(f, argnums=0): raise NotImplementedError
value_and_grad = vmap = grad
def compile(f): return f
def eval(result): return result
"""


def interpreter(folder: Path, more: str = "") -> str:
    """A Python that has an `mlx` of its own, made of NumPy."""
    package = folder / "site" / "mlx"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '7.5'\n")
    (package / "core.py").write_text(MLX + more)
    (package / "nn.py").write_text("")
    (package / "utils.py").write_text("tree_map = None\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/site:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return str(python)


def test_a_peer_with_an_interpreter_of_its_own_runs_the_text_of_a_row(tmp_path: Path) -> None:
    """Or it is named with the reason: names that it lacks, other results, not installed."""
    right, wrong = interpreter(tmp_path / "right"), interpreter(tmp_path / "wrong", "exp = np.cos\n")
    with peers.started(tmp_path, Chosen({"mlx": right}, ["mlx", "iree"])) as running:
        outcome = running.measure("chain-small", 2, 0.001, False)
        assert [*outcome.samples] == ["hloom", "mlx"] and running.chosen.about["mlx"].startswith("7.5 on Python")
        assert outcome.notes == ["iree: not measured, not installed"]
        assert outcome.limit["memory"] > 0 and {*outcome.limit} == {"memory", "arithmetic", "call"}
        lacking = running.measure("gelu", 1, 0.001, False)
        assert [*lacking.samples] == ["hloom"]
        assert "mlx: not measured, AttributeError: mlx has no tanh" in lacking.notes
    with peers.started(tmp_path, Chosen({"mlx": wrong}, ["mlx"])) as running:
        differing = running.measure("chain-small", 1, 0.001, False)
        assert [*differing.samples] == ["hloom"] and [*differing.peak] in ([], ["hloom"])
        (note,) = differing.notes
        assert note.startswith("mlx: not measured, other results: hloom and mlx differ")


def test_a_case_of_loops_is_rewritten_for_pythran() -> None:
    source = translated._source(grids.five_points_numba)
    assert source.count("    #omp parallel for\n    for i in range(n - 2):\n") == 1 and "prange" not in source
    compile(source, "source", "exec")
    assert "GROUP" not in translated._source(algebra.cholesky_numba)  # the row's factory has the attribute's name
    assert translated._pythran_type(np.ones((2, 3), np.float32)) == "float32[:,:]"
    assert [translated._pythran_type(v) for v in (1, 2.5, True, np.float32(1))] == ["int", "float", "bool", "float32"]


def outcomes() -> list[Outcome]:
    limit = {"memory": 0.25e-3, "call": 1e-7}
    ratios = {"hloom": [1e-3], "jax": [4e-3], "numba": [2e-3], "torch": [0.5e-3]}
    return [
        Outcome("gelu", "GELU", samples=ratios, group="chains", peak={"hloom": 5.0}, limit=limit),
        Outcome("sum-0", "sum", samples={"hloom": [2e-3], "jax": [1e-3]}, group="reductions", notes=["noisy: yes"]),
        Outcome("dispatch", "a call", samples={"hloom": [1e-6], "jax": [4e-6]}, group="dispatch"),
        Outcome("memory-mlp", "memory", "byte", {"hloom": [1e6], "jax": [4e6]}, group="memory"),
        Outcome("broken", "broken", notes=["failed: why"], group="chains"),
    ]


def test_the_page_has_every_row_and_says_what_is_met() -> None:
    about = machine.describe()
    again, machine_again = report.from_json(json.loads(json.dumps(report.as_json(outcomes(), about))))
    assert again == outcomes() and machine_again == about
    text = results.page(again, about)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert ["JAX, all steady cases, mean", "at least 2x", "1.41x", "missed"] in cells
    assert ["JAX, the worst steady case", "at least 0.95x", "0.50x", "missed"] in cells
    assert ["hand-written Numba, all steady cases, mean", "at least 1.2x", "2.00x", "met"] in cells
    assert ["memory of training steps, part of JAX's, worst", "at most 0.3x", "0.25x", "met"] in cells
    assert ["call with its own arrays, us", "at most 1.1", "1.00", "met"] in cells
    assert ["compiling the MLP step, part of JAX's time", "at most 0.6x", "", "not measured"] in cells
    assert ["the best of all peers, the worst steady case", "at least 0.95x", "0.50x", "missed"] in cells
    assert ["all steady cases", "2", "1.41", "2.00", "0.50", "0.50"] in cells
    assert "* JAX (1 of 4): sum-0 0.50\n" in text and "* PyTorch (1 of 1): gelu 0.50\n" in text
    assert "* the best of all (2 of 4): gelu 0.50 (PyTorch), sum-0 0.50 (JAX)\n" in text
    assert any(row[-3:] == ["PyTorch", "0.50", "25% (memory)"] for row in cells)
    assert "broken: failed: why." in text
    assert "Not installed, so not measured: NumPy, torch.compile, IREE, MLX, PyTensor, Pythran." in text
    for outcome in outcomes():
        assert f"{outcome.title} ({outcome.name})" in text
    assert "during 1 of 5 cases: sum-0" in text


def test_the_tables_of_documents_are_those_of_the_last_run(root: Path) -> None:
    """`python -m benchmarks.results` writes them, and the page."""
    run, about = report.from_json(json.loads((results.HERE / results.JSON).read_text()))
    assert results.page(run, about) == (results.HERE / results.PAGE).read_text()
    for document, tables in zip(results.DOCUMENTS, (["jax"], ["peers", "large", "programs"]), strict=True):
        text = (root / document).read_text()
        assert re.findall(r"<!-- made by benchmarks/results\.py: (\w+) -->", text) == tables
        assert results.with_tables(text, run, about) == text


def test_a_table_of_a_document_is_replaced() -> None:
    about = machine.describe() | {"peers": {"hloom": "0.1.0 on Python 3", "jax": "0.12.0 on Python 3"}}
    text = "a\n\n<!-- made by benchmarks/results.py: jax -->\n| old |\n<!-- end -->\n\nb\n"
    new = results.with_tables(text, outcomes(), about)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in new.splitlines()]
    assert ["", "cases", "times as fast as JAX 0.12.0", "the slowest case"] in cells
    assert ["all programs", "2", "1.41", "0.50 (sum-0)"] in cells
    assert ["memory of a training process", "1", "4.00", "4.00 (memory-mlp)"] in cells
    assert "old" not in new and "training steps" not in new  # none was measured
    assert new.startswith("a\n\n<!--") and new.endswith("<!-- end -->\n\nb\n")
    assert results.with_tables(new, outcomes(), about) == new
    alone = [Outcome(o.name, o.title, samples={"hloom": [1.0]}, group=o.group) for o in outcomes()]
    assert "all programs" not in results.with_tables(text, alone, about)


def test_large_programs_are_compared_measure_by_measure() -> None:
    found = [
        Outcome("first-unet", "", samples={"hloom": [2.0], "jax": [3.0]}),
        Outcome("peak-unet", "", unit="byte", samples={"hloom": [2.0**20], "jax": [2.0**22]}),
        Outcome("first-lorenz-50", "", samples={"hloom": [0.5]}, notes=["jax: no result after 300 s", "noisy: others"]),
    ]
    text = results.TABLES["large"].text(found, machine.describe())
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[:4]]
    assert head[1:] == [
        cell for m in ("first call", "another size", "a step", "most memory") for cell in (m, "JAX ÷ hloom")
    ]
    assert rows[0] == ["U-Net of 3 levels", "2.00 s", "1.50", "", "", "", "", "1 MiB", "4.00"]
    assert rows[1][:3] == ["Lorenz, 50 steps of RK4 unrolled", "500 ms", ""]
    assert "\n\nLorenz, 50 steps of RK4 unrolled: jax: no result after 300 s.\n\n" in text and "noisy" not in text


def test_a_large_program_that_a_peer_does_not_finish_is_measured_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: list[str], *_: Any, limit: float | None = None, **__: Any) -> tuple[float, str]:
        if "jax" in arguments:
            raise subprocess.TimeoutExpired(arguments, limit or 0)
        return 1.0, json.dumps({"first": 0.5, "step": 0.1, "new-shape": 0.2, "peak": 1e6, "value": 3.0})

    monkeypatch.setattr(startup, "run", run)
    monkeypatch.setattr(startup, "installed", lambda *_: ["hloom", "jax"])
    first, *others = startup.large("lorenz-400")(2)
    assert first.samples == {"hloom": [0.5, 0.5]} and first.notes == ["jax: no result after 300 s"]
    assert all(list(other.samples) == ["hloom"] for other in others)


def test_results_that_are_no_numbers_are_not_equal() -> None:
    with pytest.raises(Mismatch):
        startup._same({"hloom": 1.0, "jax": float("nan")})


def test_programs_of_others_are_compared_by_group() -> None:
    found = [
        Outcome("npbench-S-a", "", group="npbench-S", samples={"hloom": [1.0], "jax": [4.0], "dace": [0.5]}),
        Outcome("npbench-S-b", "", group="npbench-S", samples={"hloom": [1.0], "jax": [9.0]}),
        Outcome("pyhpc-c", "", group="pyhpc", samples={"hloom": [1.0], "jax": [2.0]}),
    ]
    text = results.TABLES["programs"].text(found, machine.describe())
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[:4]]
    assert head == ["times as fast as", "programs", "JAX", "DaCe", "the best of all", "below 0.95 of the best"]
    assert rows == [["npbench-S", "2", "6.00", "0.50 (1)", "2.12", "1"], ["pyhpc", "1", "2.00", "", "2.00", "0"]]
    assert "* npbench-S: a 0.50 (DaCe)\n" in text and "* pyhpc" not in text


def test_runs_of_parts_become_one(tmp_path: Path) -> None:
    about = machine.describe()
    parts = {
        "first": [Outcome("npbench-S-a", "a", group="npbench-S", samples={"hloom": [1.0, 2.0, 9.0]})],
        "second": [
            Outcome("npbench-S-a", "a", group="npbench-S", samples={"hloom": [3.0], "jax": [4.0]}),
            Outcome("mlp", "b", group="training", samples={"hloom": [1.0]}),
        ],
    }
    for name, found in parts.items():
        written = report.as_json(found, about | {"peers": {name: "1.0"}})
        (tmp_path / name).write_text(json.dumps(written))
    results.main(["--join", *(str(tmp_path / name) for name in ("all", *parts))])
    found, about = results.read(tmp_path / "all")
    assert [(o.name, o.samples) for o in found] == [
        ("mlp", {"hloom": [1.0]}), ("npbench-S-a", {"hloom": [3.0], "jax": [4.0]})
    ]  # fmt: skip
    assert about["peers"] == {"first": "1.0", "second": "1.0"}
    results.main(["--join", *(str(tmp_path / name) for name in ("all", "second", "first"))])
    assert results.read(tmp_path / "all")[0][1].samples == {"hloom": [2.0]}


def test_the_plot_has_a_dot_for_each_ratio() -> None:
    picture = plot.ratios(outcomes(), results.PEERS, results.speed)
    assert picture.count("<title>") == 6 and picture.count("<circle") == 6 + len(results.PEERS)
    assert "GELU: 4.00 of JAX" in picture
