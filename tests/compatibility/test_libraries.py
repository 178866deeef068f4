"""Libraries that are built on JAX, run on hloom: small programs of theirs, each in a process where `jax` is hloom.

    pip install --no-deps einops jaxtyping ...        # docs/jax_programs.md has the list

A program is skipped if its library is not installed. JAX is not required. A sample of a library's own tests is run if
they are here: installed with the library, or in a checkout, HLOOM_LIBRARIES/LIBRARY.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.jax_tests.report import read
from tools.jax_tests.suites import SUITES

PROGRAMS = sorted((Path(__file__).parents[1] / "libraries").glob("use_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem.removeprefix("use_"))
def test_a_program_of_the_library_runs(program: Path) -> None:
    library = program.stem.removeprefix("use_").partition("_")[0]
    if importlib.util.find_spec(library) is None:  # not imported here: it would import JAX
        pytest.skip(f"{library} is not installed")
    command = [sys.executable, "-m", "hloom", "jax", "--report", str(program)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def folder_of_tests(library: str) -> Path | None:
    """The folder or checkout with the library's own tests; None if it is not here, or the library is not installed."""
    found = importlib.util.find_spec(library)
    if found is None or found.origin is None:
        return None
    checkout = Path(os.environ.get("HLOOM_LIBRARIES", os.devnull)) / library
    installed = Path(found.origin).parents[1]
    if checkout.is_dir():
        return checkout
    return installed if SUITES[library].folder == library and SUITES[library].files(installed) else None


@pytest.mark.slow
@pytest.mark.parametrize("library", [library for library in SUITES if library != "jax"])
def test_a_sample_of_the_librarys_own_tests_passes(library: str, tmp_path: Path) -> None:
    folder = folder_of_tests(library)
    if folder is None:
        pytest.skip(f"{library} is not installed, or its tests are not here")
    command = [sys.executable, "-m", "tools.jax_tests", "run", str(folder), "--suite", library, "--workers", "0"]
    command += [
        "--one-in",
        str(SUITES[library].sample),
        "--folder",
        str(tmp_path),
        "--out",
        str(tmp_path / "out.jsonl"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    outcomes = [line["outcome"] for line in read(tmp_path / "out.jsonl").values()]
    passed, failed = outcomes.count("passed"), outcomes.count("failed")  # files that need TensorFlow are neither
    assert passed and failed <= 0.03 * (passed + failed), ran.stdout + ran.stderr
