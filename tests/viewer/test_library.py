"""The library of the viewer's page: it is what its record says, and what npm makes of the locked packages."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support.node import VIEWER_PAGE

TOOL = Path(__file__).resolve().parents[2] / "tools" / "viewer_library"
MADE = ("dagre.min.js", "dagre.LICENSE", "dagre.json")


def test_the_script_is_the_recorded_one() -> None:
    record = json.loads((VIEWER_PAGE / "dagre.json").read_text())
    script = (VIEWER_PAGE / "dagre.min.js").read_bytes()
    assert hashlib.sha256(script).hexdigest() == record["sha256"]
    locked = json.loads((TOOL / "package-lock.json").read_text())["packages"]
    assert record["versions"] == {name: locked[f"node_modules/{name}"]["version"] for name in record["versions"]}
    for name in ("@dagrejs/dagre", "@dagrejs/graphlib"):
        assert f"{name} {record['versions'][name]}".encode() in script.splitlines()[0]
        assert locked[f"node_modules/{name}"]["license"] == "MIT"
        assert name in (VIEWER_PAGE / "dagre.LICENSE").read_text()
    assert "Permission is hereby granted, free of charge" in (VIEWER_PAGE / "dagre.LICENSE").read_text()
    assert b"</script" not in script  # it is also put into a page


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_npm_makes_the_same_script(tmp_path: Path) -> None:
    for name in ("package.json", "package-lock.json", "build.js"):
        shutil.copy(TOOL / name, tmp_path)
    install = ["npm", "ci", "--no-audit", "--no-fund"]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if done.returncode and "network" in done.stderr:
        pytest.skip("npm does not reach its registry")
    assert done.returncode == 0, done.stderr
    (tmp_path / "made").mkdir()
    built = subprocess.run(
        ["npm", "run", "build", "--", "made"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert built.returncode == 0, built.stderr
    for name in MADE:
        assert (tmp_path / "made" / name).read_bytes() == (VIEWER_PAGE / name).read_bytes(), name
