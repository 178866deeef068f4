"""`hloom doctor`: the page, what it finds degraded, and a self-test that can fail."""

from __future__ import annotations

import copy
import json
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo import array_address
from hloom.hlo.support import slots
from hloom.hlo.system import system
from hloom.numba_backend import machine
from hloom.numba_backend.runtime import loader

from hloom.command_line import doctor, main, self_test
from hloom.command_line.self_test import Result

FINE: dict[str, dict[str, Any]] = {
    "versions": {"scipy": "1.17"}, "threads": {"threads of programs": 2}, "BLAS": {"threads can be set": True},
    "processor": {"may use": 2, "may run": 2, "in the machine": 2}, "store": {"usable": True},
}  # fmt: skip
"""The facts on which `degraded` depends, where nothing is degraded."""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing is degraded."""
    monkeypatch.delenv("HLOOM_MACHINE", raising=False)
    kind = type(system)
    monkeypatch.setattr(kind, "name", "linux")
    monkeypatch.setattr("hloom.hlo.system.interface.architecture", lambda: "x86_64")
    monkeypatch.setattr(kind, "cpu_description", lambda self: "avx2")
    monkeypatch.setattr(kind, "cache_sizes", lambda self: {"1": 1 << 15, "2": 1 << 20})
    monkeypatch.setattr(kind, "fresh_huge_pages", lambda self, size, huge: 4096)
    monkeypatch.setattr(kind, "free_pages", lambda self, address, size: None)
    monkeypatch.setattr(loader, "LINKS", True)
    monkeypatch.setattr(slots, "HAS_SLOTS", True)
    monkeypatch.setattr(array_address, "HAS_FIELDS", True)
    monkeypatch.setattr(machine, "code_level", lambda: "x86_64_v3")


CHANGES: dict[str, tuple[Any, str]] = {
    "another system": ((type(system), "name", "darwin"), "darwin on x86_64: only Linux on x86-64 is"),
    "no images": ((loader, "LINKS", False), "LLVM loads all code"),
    "an old processor": ((machine, "code_level", lambda: ""), "elementary functions are compiled"),
    "no description": ((type(system), "cpu_description", lambda self: None), "every process loads LLVM"),
    "no sizes of caches": ((type(system), "cache_sizes", lambda self: {"1": 1 << 15}), "caches of usual sizes"),
    "no huge pages": ((type(system), "fresh_huge_pages", lambda self, size, huge: 0), "small pages"),
    "a quota": (("processor", {"may use": 1}), "the control group has 1 of 2 processors"),
    "affinity": (("processor", {"may use": 2, "may run": 2, "in the machine": 8}), "may run on 2 processors"),
    "fewer threads": (("threads", {"threads of programs": 1}), "1 threads: HLOOM_NUM_THREADS"),
    "another Python": ((slots, "HAS_SLOTS", False), "calls go through Python"),
    "another NumPy": ((array_address, "HAS_FIELDS", False), "calls with NumPy arrays go through Python"),
    "another BLAS": (("BLAS", {"threads can be set": False}), "it is no OpenBLAS"),
    "no SciPy": (("versions", {"scipy": "not installed"}), "SciPy is not installed"),
    "no store": (("store", {"usable": False, "why": "it is full"}), "every process compiles its kernels: it is full"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_degraded_is_told(name: str, here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sections = copy.deepcopy(FINE)
    assert list(doctor.degraded(sections)) == []
    change, told = CHANGES[name]
    if len(change) == 2:
        sections[change[0]].update(change[1])
    else:
        monkeypatch.setattr(*change)
    assert told in "\n".join(f"{what}: {why}" for what, why in doctor.degraded(sections))


def test_another_machine_is_told(here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOOM_MACHINE", "cores=1")
    assert [why for _, why in doctor.degraded(copy.deepcopy(FINE))] == ["HLOOM_MACHINE is set"]


def test_the_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HLOOM_CACHE_DIR", str(tmp_path / "store"))
    assert main(["doctor", "--no-test"]) == 0
    page = capsys.readouterr().out
    words = ("numpy", "processor", "caches", "BLAS", "usable               True", "degraded", "HLOOM_CACHE_DIR")
    assert [word for word in words if word not in page] == []
    assert max(map(len, page.splitlines())) < 200 and page.count("\n") < 60
    assert list((tmp_path / "store").iterdir()) == [], "the file that it writes is gone"


def test_a_store_that_cannot_be_used(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOOM_CACHE_DIR", __file__)
    assert main(["doctor", "--no-test", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["store"]["usable"] is False and __file__ in report["store"]["why"]
    assert any("every process compiles" in entry["what"] for entry in report["degraded"])
    monkeypatch.setenv("HLOOM_CACHE_DIR", "off")
    assert main(["doctor", "--no-test", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["store"]["folder"] == "none"


def test_the_self_test_passes_here(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    tests = json.loads(capsys.readouterr().out)["self-test"]
    assert code == 0 and len(tests) == len(list(self_test._programs())) and all(test["passed"] for test in tests)


def test_a_failure_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "results", lambda: [Result("sort", False, 0.5, "3 of 5 elements differ")])
    assert main(["doctor"]) == 1
    assert "FAILED sort                  0.50 s  3 of 5 elements differ" in capsys.readouterr().out


def test_wrong_results_are_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs whose result depends on the backend, or that raise."""
    from hloom import config

    programs = [
        ("right", lambda x: x + 1, (2.0,)),
        ("wrong", lambda x: x + (config.hloom_backend == "numba"), (2.0,)),
        ("raises", lambda x: x + "1", (2.0,)),
    ]
    arrays = [(name, function, tuple(map(np.float32, given))) for name, function, given in programs]
    monkeypatch.setattr(self_test, "_programs", lambda: iter(arrays))
    self_test._run()
    found = [Result(*json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    assert [(result.name, result.passed) for result in found] == [("right", True), ("wrong", False), ("raises", False)]
    assert "TypeError" in found[2].detail and config.hloom_backend == "numba"


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGILL)", f"signal {int(signal.SIGILL)}"),
        ("sys.exit(3)", "exit code 3"),
        ("time.sleep(60)", "it took longer than 2 s"),
    ],
)
def test_a_process_that_dies_is_a_result(
    ending: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    text = f"import os, signal, sys, time\nprint('[\"first\", true, 0.1, \"equal\"]', flush=True)\n{ending}\n"
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o700)
    monkeypatch.setattr(self_test.sys, "executable", str(program))
    first, last = self_test.results(2.0)
    assert first == Result("first", True, 0.1, "equal")
    assert not last.passed and told in last.detail
