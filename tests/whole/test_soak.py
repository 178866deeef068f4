"""Everything at once, for minutes: threads, forks, interrupts, damaged stores, donation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SECONDS = 25


def start(root: Path, store: Path, module: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"support.{module}", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root / "tests",
        env={**os.environ, "HLOOM_CACHE_DIR": str(store)},
    )  # fmt: skip


def said(process: subprocess.Popen[str], seconds: float) -> list[int]:
    """The numbers that a process printed; it must end well, and in time."""
    try:
        out, errors = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, f"exit status {process.returncode}\n{out[-2000:]}\n{errors[-10_000:]}"
    return [int(word) for word in out.split()]


def test_threads_forks_and_interrupts(root: Path, tmp_path: Path) -> None:
    process = start(root, tmp_path / "store", "soak_threads", SECONDS, 1)
    tasks, interrupts, forks = said(process, SECONDS + 150)
    assert tasks > 100 and interrupts > 20 and forks > 2


def test_processes_share_a_damaged_store(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    workers = [start(root, folder, "soak_store", "work", folder, SECONDS, k) for k in range(4)]
    vandal = start(root, folder, "soak_store", "damage", folder, SECONDS, 9)
    numbers = [said(worker, SECONDS + 60) for worker in workers]
    said(vandal, 30)
    compiled, loaded, told = (sum(column) for column in zip(*numbers))
    assert compiled > 50 and loaded > 25 and told > 10


def test_one_thread_gets_a_donated_array(root: Path, tmp_path: Path) -> None:
    won, _ = said(start(root, tmp_path / "store", "soak_memory", 60), 120)
    assert won == 60
