"""The README's tour prints what the README says that it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(root: Path, file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools" / "readme.py"), str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("document", ["README.md", "docs/custom_calls.md", "docs/differences.md"])
def test_the_output_is_real(root: Path, document: str) -> None:
    text = (root / document).read_text()
    assert "```python" in text and "```text" in text
    ran = run(root, root / document)
    assert ran.returncode == 0, f"run: python tools/readme.py {document} --write\n{ran.stdout}{ran.stderr}"


def test_a_wrong_output_is_found(root: Path, tmp_path: Path) -> None:
    document = tmp_path / "wrong.md"
    document.write_text("```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n")
    ran = run(root, document)
    assert ran.returncode == 1
    assert "-41" in ran.stdout and "+42" in ran.stdout
