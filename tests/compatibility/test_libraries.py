"""Libraries that are built on JAX, run on hloom: small programs of theirs, each in a process where `jax` is hloom.

    pip install --no-deps einops jaxtyping ...        # docs/jax_programs.md has the list

A program is skipped if its library is not installed. JAX is not required.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

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
