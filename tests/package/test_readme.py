"""The code in the README and in the documents prints what they say; the README stays short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


def run(root: Path, file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools" / "readme.py"), str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


DOCUMENTS = (
    *("aot", "custom_calls", "debugging", "differences", "hlo_files", "jax_programs", "layouts", "new_backend"),
    *("notebooks", "primitives", "scaling", "schedules", "stablehlo", "tour", "index", "quickstart", "questions"),
    *sorted(f"tutorials/{p.stem}" for p in (Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md")),
)
LONGEST_README = 170
"""Lines. What a stranger need not know at first is on a page of `docs/`."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "document",
    ["README.md", "hloom/errors.md", *(f"docs/{n}.md" for n in DOCUMENTS)],
)
def test_the_output_is_real(root: Path, document: str) -> None:
    text = (root / document).read_text()
    assert "```python" in text and "```text" in text
    ran = run(root, root / document)
    assert ran.returncode == 0, f"run: python tools/readme.py {document} --write\n{ran.stdout}{ran.stderr}"


def test_the_readme_is_short(root: Path) -> None:
    text = (root / "README.md").read_text()
    assert text.count("\n") <= LONGEST_README and text.count("![") == 1
    for command in ("pip install .", "make mnist", "make test", "hloom jax train.py"):
        assert command in text


def test_the_pasted_kernel_is_the_printed_one(root: Path) -> None:
    kernel = re.compile(r"^def fused_subtract_reduce_divide\(.*\n(?: .*\n)+", re.MULTILINE)
    printed, pasted = kernel.findall((root / "docs" / "tour.md").read_text())
    assert pasted == printed


def test_a_wrong_output_is_found(root: Path, tmp_path: Path) -> None:
    document = tmp_path / "wrong.md"
    document.write_text("```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n")
    ran = run(root, document)
    assert ran.returncode == 1
    assert "-41" in ran.stdout and "+42" in ran.stdout


PICTURE = "```sh\nhloom layout 'f32[2]{0}' --svg two.svg\n```\n\n![two](images/page/two.svg)\n"


def test_a_picture_that_is_missing_or_old_is_found(root: Path, tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(PICTURE)
    ran = run(root, document)
    assert ran.returncode == 1 and "two.svg: is not there" in ran.stdout
    tool = str(root / "tools" / "readme.py")
    subprocess.run([sys.executable, tool, str(document), "--write"], check=True, timeout=60)
    stored = tmp_path / "images" / "page" / "two.svg"
    assert stored.read_text().startswith("<svg ") and run(root, document).returncode == 0
    stored.write_text(stored.read_text().replace("fill", "stroke"))
    assert "two.svg: has changed" in run(root, document).stdout
    document.write_text(PICTURE.replace("![two]", "[two]").replace("two.svg)", "other.svg)"))
    assert "two.svg is not shown" in run(root, document).stdout
    document.write_text("Nothing.\n")
    assert "two.svg: no command makes" in run(root, document).stdout


def test_only_commands_of_hloom_are_run(root: Path, tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("```sh\ntouch somewhere\n```\n")
    ran = run(root, document)
    assert ran.returncode == 1 and "only `hloom` commands are run, not 'touch'" in ran.stderr
    document.write_text("```sh\nhloom layout 'f32[2]{7}'\n```\n")
    assert "exit code 1 of: hloom layout" in run(root, document).stderr


_EXCERPT = re.compile(r"^```\w+ (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block that shows a part of a file of the repository."""


def excerpts(text: str) -> list[tuple[str, str]]:
    """The file and the lines of each block."""
    return [(match["file"], match["text"]) for match in _EXCERPT.finditer(text)]


def test_the_guide_shows_what_is_in_the_files(root: Path) -> None:
    found = excerpts((root / "docs" / "new_backend.md").read_text())
    assert len(found) >= 10
    for file, text in found:
        path = root / file if (root / file).is_file() else root / "hloom" / file  # where a source distribution has it
        assert text in path.read_text(), f"{file} has no such lines:\n{text}"
        assert text.count("\n") >= 2
    assert excerpts("```python a.py\nx = 1\n```\n") == [("a.py", "x = 1\n")]
