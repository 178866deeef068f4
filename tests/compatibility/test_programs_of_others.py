"""tools/programs: the list of programs of others, their texts, and how numbers are compared. It runs none of them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

TOOLS = Path(__file__).parents[2] / "tools" / "programs"


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"programs_{name}", TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pytestmark = pytest.mark.skipif(not TOOLS.exists() or sys.platform == "win32", reason="needs the checkout, and POSIX")


def test_each_program_has_a_name_of_its_own() -> None:
    programs = _module("run").programs()
    assert len({program["name"] for program in programs}) == len(programs) >= 100
    assert all(Path(program["path"]).suffix in (".py", ".ipynb", ".md") for program in programs)


def test_notebooks_and_documents_become_scripts(tmp_path: Path) -> None:
    record = _module("record")
    cells = [("code", "%matplotlib inline\n%time x = 1\nif x:\n    !ls"), ("markdown", "# text"), ("code", "y = 2")]
    notebook = tmp_path / "a.ipynb"
    notebook.write_text(json.dumps({"cells": [{"cell_type": kind, "source": [text]} for kind, text in cells]}))
    assert record.text_of(notebook) == "pass\nx = 1\nif x:\n    pass\n\ny = 2\n"
    document = tmp_path / "a.md"
    document.write_text("# text\n```{code-cell} ipython3\n:tags: [hide]\nx = 1\n```\n```bash\nls\n```\n")
    assert record.text_of(document) == "x = 1\n"
    assert record.shortened("steps = 100\n", {r"steps = \d+": "steps = 2"}) == "steps = 2\n"
    with pytest.raises(SystemExit, match="has no 'epochs'"):
        record.shortened("steps = 100\n", {"epochs": ""})


def test_numbers_are_compared_relative_to_the_largest() -> None:
    run = _module("run")
    a = np.array([1.0, 100.0, np.nan])
    assert run.difference(a, a.copy()) == 0
    assert run.difference(a, np.array([2.0, 100.0, np.nan])) == pytest.approx(0.01)
    assert run.difference(a, np.array([1.0, 100.0, 0.0])) == run.difference(a, a[:2]) == np.inf
    assert run.printed("loss 1.5-2.25j\n12 it/s 0.5\nin 0.7 ms") == [1.5, -2.25]
    # Rounding of JAX's own moves the program as far: chaotic, not wrong.
    assert run.beyond({"x": 0.1, "y": 1e-6}, {}) == [("x", 0.1)]
    assert run.beyond({"x": 0.1}, {"x": 0.02}) == []
