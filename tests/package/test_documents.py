"""Documents name files that there are: every link leads to one, and so does every path in the text.

`docs/architecture.md` is a map of one page, which leads to every page of `docs/architecture/`.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path, PurePath

import pytest

from hloom.version import __version__, __version_info__
from support import source_tree
from tools.release import numbers, released

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)")
PATH = re.compile(r"`([\w./-]+(?:\.(?:py|pyi|md)|/)|[\w./-]+/[\w.-]+\.hlo)`")
ELSEWHERE = {
    *("out/", "out/fuzz/", "plugins/profile/", "utils_test.py", "test_special_cases.py", "test_array_object.py"),
    *("test_creation_functions.py", "test_dlpack.py", "test_data_type_functions.py", "test_searching_functions.py"),
    *("test_statistical_functions.py", "hloom/nn/gaps.py", "autodidax.md", "jax-primitives.md", "sharding-ad.md"),
}
"""Folders that a command makes, files of the tests and documents of JAX and of the array API, the file that a guide
adds."""
LONGEST_MAP = 100
"""Lines of `docs/architecture.md`."""


@cache
def endings() -> frozenset[str]:
    """The ends of the paths of all files and folders: a name, with the folder before it, ..."""
    found = {p.name for p in ROOT.iterdir()}
    for top in ("hloom", *source_tree.OTHER_FOLDERS):
        for folder, folders, files in os.walk(ROOT / top, followlinks=True):
            for name in (*folders, *files):
                parts = PurePath(folder, name).relative_to(ROOT).parts
                found.update("/".join(parts[k:]) for k in range(len(parts)))
    return frozenset(found)


def missing(page: str, text: str) -> list[str]:
    """The links and paths of a page that lead nowhere."""
    links = [to for to in LINK.findall(text) if ":" not in to and not ((ROOT / page).parent / to).exists()]
    paths = [path for path in PATH.findall(text) if path not in ELSEWHERE and path.rstrip("/") not in endings()]
    return links + paths


@pytest.mark.parametrize("page", PAGES)
def test_documents_name_files_that_there_are(page: str) -> None:
    assert missing(page, (ROOT / page).read_text()) == []


def test_what_is_missing_is_found() -> None:
    text = "[a](nowhere.md), [b](settings.md#x), [c](https://x.org), `hlo/ir.py`, `ir.py`, `hlo/nowhere.py`, `tracer/`"
    assert missing("docs/x.md", text) == ["nowhere.md", "hlo/nowhere.py"]


def test_the_version_is_said_everywhere() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'\n  version: "{__version__}" ' in (ROOT / "recipe" / "recipe.yaml").read_text()
    versions = released((ROOT / "CHANGELOG.md").read_text())
    assert versions[:1] in ([], [__version__]) and __version_info__ == numbers(__version__)


def test_the_map_is_one_page_and_leads_to_all() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert text.count("\n") <= LONGEST_MAP
    pages = {f"architecture/{p.name}" for p in (ROOT / "docs" / "architecture").glob("*.md")}
    assert pages - set(LINK.findall(text)) == set() and len(pages) >= 10
