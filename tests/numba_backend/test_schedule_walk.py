"""The walk of `docs/schedules.md`: from a kernel to the file that chose its schedule; a new step; a new machine."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import hloom.numba_backend.policy.products as policy
import numpy as np
import pytest
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.machine import ANY_TARGET, compiling_for
from hloom.numba_backend.schedule import steps, text

import hloom
import schedule_by_hand
from support.known_kernels import forget_known
from support.registers import NARROW


def test_from_a_kernel_to_its_policy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((300, 64), np.float32)
    module = hloom.make_hlo(lambda x, y: x @ y)(x, x.T)
    (split,) = [s for s in _schedule(module) if isinstance(s, steps.Split) and s.outer == "row"]
    assert split.size == policy.ROWS, "1. the schedule says it; 2. one number in the policy's file decides it"
    monkeypatch.setattr(policy, "ROWS", 3)
    forget_known()
    changed = _schedule(module)
    forget_known()
    assert replace(split, size=3) in changed
    page = (root / "docs" / "schedules.md").read_text()
    assert " ".join(re.findall(r"`ROWS = 6`.*?\"(.*?)\"", page, re.DOTALL)[0].split()) in " ".join(
        (root / "numba_backend" / "policy" / "products.py").read_text().split()
    )
    folder = root / "numba_backend" / "schedule"
    listed = re.findall(r"^    (\w+\.py)", (folder / "__init__.py").read_text(), re.MULTILINE)
    assert {"steps.py", "copies.py", "sums.py", *listed} <= {p.name for p in folder.glob("*.py")}


def _schedule(module: hloom.hlo.HloModule) -> tuple[object, ...]:
    with compiling_for(NARROW):
        found: tuple[object, ...] = NumbaCompiler().compile(module).kernels()["dot"].schedule
    return found


def test_every_step_is_on_the_page(root: Path) -> None:
    page = (root / "docs" / "schedules.md").read_text()
    table = page[page.index("| step |") : page.index("## Another schedule")]
    assert set(re.findall(r"`([A-Z]\w+)[(`]", table)) == set(text.STEPS)


def test_a_new_machine() -> None:
    """Kernels follow it, with nothing else changed."""
    module = hloom.make_hlo(lambda x: x.T)(np.ones((1024, 1024), np.float32))
    texts = set()
    for third in (4 << 20, 32 << 20):
        with compiling_for(replace(ANY_TARGET, third_cache=third)):
            texts |= set(NumbaCompiler().compile(module).kernels().values())
    assert len(texts) == 2


@pytest.mark.parametrize(("of", "kernel"), [("product", "product_of_columns"), ("columns", "fused_multiply_reduce")])
def test_the_example(
    of: str, kernel: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["schedule_by_hand.py", "--rounds", "2", "--full", "--of", of])
    schedule_by_hand.main()
    printed = capsys.readouterr().out
    assert "outer='rows', size=4" in printed and "outer='rows', size=8" in printed
    assert re.search(r"By hand: \d\.\d\d times as fast", printed) and printed.count(f"def {kernel}(") == 2
