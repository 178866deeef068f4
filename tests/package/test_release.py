"""`make release`: the checks before it, what it writes, and a dry run of the whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.source_tree import copy_of_the_package, copy_of_the_rest, environment, pip
from tools import distributions, release

CHANGELOG = "# Changelog\n\n## Unreleased\n\n* A.\n\n## 0.1.0 - 2026-01-31\n\n* B.\n"
DAY = "2026-11-28"


def commit_all(root: Path) -> None:
    """Put a folder under git."""
    for name, value in (("user.name", "A Person"), ("user.email", "person@example.org")):
        subprocess.run(["git", "init", "--quiet"], cwd=root, check=True, timeout=60)
        release.git(root, "config", name, value)
    release.git(root, "add", "--all")
    release.git(root, "commit", "--quiet", "--message", "start")


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """The files that a release changes, with 0.1.0 released."""
    made = tmp_path / "checkout"
    for name in release.FILES:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, made / name)
    (made / "CHANGELOG.md").write_text(CHANGELOG)
    release.write(made, "0.1.0", "2026-01-31")
    (made / "CHANGELOG.md").write_text(CHANGELOG)
    commit_all(made)
    return made


def state(root: Path) -> tuple[object, ...]:
    """All that a release may change."""
    files = tuple((root / name).read_text() for name in release.FILES)
    return files, *(release.git(root, *c.split()) for c in ("rev-parse HEAD", "status --porcelain", "tag --list"))


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("0.1.0", "is not newer than 0.1.0, which CHANGELOG.md has as released"),
        ("0.0.9", "is not newer"),
        ("0.2", "is no version: three numbers"),
        ("0.02.0", "is no version"),
        ("v0.2.0", "is no version"),
        ("0.3.0", "the tag v0.3.0 is there already"),
    ],
)
def test_what_is_refused(checkout: Path, version: str, problem: str) -> None:
    release.git(checkout, "tag", "v0.3.0")
    release.require(checkout, "0.2.0")
    with pytest.raises(release.ReleaseError, match=problem):
        release.require(checkout, version)


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new.txt"])
def test_changes_are_refused(checkout: Path, name: str) -> None:
    with (checkout / name).open("a") as file:
        file.write("more\n")
    with pytest.raises(release.ReleaseError, match="the checkout has changes"):
        release.require(checkout, "0.2.0")


@pytest.mark.parametrize("text", ["## Unreleased\n\n## 0.1.0 - 2026-01-31\n\n* B.\n", "# Changelog\n"])
def test_an_empty_section_is_refused(checkout: Path, text: str) -> None:
    (checkout / "CHANGELOG.md").write_text(text)
    release.git(checkout, "commit", "--quiet", "--all", "--message", "change")
    with pytest.raises(release.ReleaseError, match="has nothing below '## Unreleased'"):
        release.require(checkout, "0.2.0")


def test_what_is_written(checkout: Path) -> None:
    before = [(checkout / name).read_text().splitlines() for name in release.FILES]
    release.write(checkout, "0.2.0", DAY)
    after = [(checkout / name).read_text().splitlines() for name in release.FILES]
    new = [[line for line in b if line not in a] for a, b in zip(before, after, strict=True)]
    assert new[:2] == [['__version__ = "0.2.0"'], ["version: 0.2.0"]]
    assert new[2] == ['  version: "0.2.0"  # `make release` writes it'] and new[3] == [f"## 0.2.0 - {DAY}"]
    text = CHANGELOG.replace("## Unreleased\n", f"## Unreleased\n\n## 0.2.0 - {DAY}\n")
    assert (checkout / "CHANGELOG.md").read_text() == text and release.released(text) == ["0.2.0", "0.1.0"]


@pytest.mark.parametrize("failing", ["tests", "build"])
def test_a_failure_leaves_all_as_before(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def build(root: Path, to: Path) -> tuple[Path, Path]:
        assert release.current(root) == "0.2.0" and release.git(root, "status", "--porcelain") == ""
        raise distributions.CheckError("a wheel without a licence")

    monkeypatch.setattr(distributions, "build", build)
    before = state(checkout)
    tests = "false" if failing == "tests" else "true"
    with pytest.raises((release.ReleaseError, distributions.CheckError)):
        release.release(checkout, "0.2.0", tmp_path / "dist", tests, DAY)
    assert state(checkout) == before


@pytest.mark.slow
@pytest.mark.skipif(not (Path(__file__).parents[2] / "hloom" / "hlo").is_symlink(), reason="no checkout")
def test_a_dry_run_changes_nothing(root: Path, tmp_path: Path) -> None:
    checkout = copy_of_the_package(root, tmp_path / "checkout")
    copy_of_the_rest(root, checkout)
    python = environment(tmp_path / "venv")
    extra = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["release"]
    pip("install", *extra, python=python)
    commit_all(checkout)
    before = state(checkout)
    smoke = f"{sys.executable} -c 'import hloom; assert hloom.__version__ == \"9.8.7\"'"
    command = [str(python), "-m", "tools.release", "9.8.7", "--dry-run", "--tests", smoke]
    ran = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=500)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for said in ("release: version 9.8.7", "hloom-9.8.7.tar.gz", "hloom-9.8.7-py3-none-any.whl", "sha256: "):
        assert said in ran.stdout
    assert state(checkout) == before and not (checkout / "dist").exists()


def test_the_recipe_has_the_dependencies_of_the_package(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    recipe = (root / "recipe" / "recipe.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    found = [line.strip().removeprefix("- ").replace(" ", "") for line in run.splitlines()]
    assert found == ["__linux", "python>=${{python_min}}", *project["dependencies"]]
    assert f'python_min: "{project["requires-python"].removeprefix(">=")}"' in recipe
    assert f'summary: "{project["description"]}"' in recipe and f"license: {project['license']}" in recipe
    (entry,) = project["scripts"].items()
    assert f"- {entry[0]} = {entry[1]}" in recipe


def test_rattler_build_renders_the_recipe(root: Path) -> None:
    rattler_build = pytest.importorskip("rattler_build")
    (variant,) = rattler_build.Stage0Recipe.from_file(root / "recipe" / "recipe.yaml").render()
    made = variant.recipe.to_dict()
    assert made["package"] == {"name": "hloom", "version": release.current(root)}
    assert made["build"]["noarch"] == "python" and "python 3.11.*" in made["requirements"]["host"]
