#!/usr/bin/env python3
"""A release by one command: `make release VERSION=0.2.0`. It ends with a commit and a tag here; nothing is uploaded.

In this order: refuse what cannot be released, write the version and the changelog, run the tests, commit, build the
wheel and the source distribution of that commit into dist/, check them, tag. If anything fails, the files and the
branch are as before.

With `--dry-run` (`make release VERSION=0.2.0 DRY=1`) the same happens in a clone in a temporary folder.
The command of the tests: `--tests "python -m pytest ..."`.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import distributions

ROOT = Path(__file__).resolve().parent.parent
TESTS = f"{shlex.quote(sys.executable)} -m pytest -q -n 2 --dist worksteal"
UNRELEASED = "## Unreleased"
_FORM = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
FILES = ("hloom/version.py", "CITATION.cff", "recipe/recipe.yaml", "CHANGELOG.md")
"""The files that a release changes. The first has the version; CITATION.cff and the recipe repeat it."""


class ReleaseError(Exception):
    """Why this cannot be released."""


def numbers(version: str) -> tuple[int, ...]:
    """`0.2.0` -> (0, 2, 0)."""
    if not _FORM.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version: three numbers, as in 0.2.0")
    return tuple(map(int, version.split(".")))


def git(root: Path, *arguments: str) -> str:
    """What a command of git prints."""
    ran = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=300)
    if ran.returncode:
        raise ReleaseError(f"git {' '.join(arguments)}: {ran.stderr.strip()}")
    return ran.stdout


def released(changelog: str) -> list[str]:
    """The versions that have a section with a date."""
    return re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)


def require(root: Path, version: str) -> None:
    """Refuse a dirty checkout, a version that is there or not newer, and a changelog with nothing to say."""
    wanted = numbers(version)
    if git(root, "status", "--porcelain"):
        raise ReleaseError("the checkout has changes: commit or remove them (git status)")
    if git(root, "tag", "--list", f"v{version}"):
        raise ReleaseError(f"the tag v{version} is there already")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    for old in released(changelog):
        if wanted <= numbers(old):
            raise ReleaseError(f"{version} is not newer than {old}, which CHANGELOG.md has as released")
    now = current(root)
    if wanted < numbers(now):
        raise ReleaseError(f"{version} is not newer than {now}, the version in {FILES[0]}")
    section = re.search(rf"^{UNRELEASED}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise ReleaseError(f"CHANGELOG.md has nothing below {UNRELEASED!r}")


def current(root: Path) -> str:
    """The version of the sources."""
    found = re.search(r'^__version__ = "(.*)"$', (root / FILES[0]).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def write(root: Path, version: str, day: str) -> None:
    """Write the version and the section of the changelog."""
    changes = {
        FILES[0]: (r'^__version__ = ".*"$', f'__version__ = "{version}"'),
        FILES[1]: (r"^version: .*$", f"version: {version}"),
        FILES[2]: (r'^  version: ".*?"', f'  version: "{version}"'),
        FILES[3]: (rf"^{UNRELEASED}$", f"{UNRELEASED}\n\n## {version} - {day}"),
    }
    for name, (pattern, text) in changes.items():
        path = root / name
        new, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if count != 1:
            raise ReleaseError(f"{name}: {count} lines, not one, are like {pattern}")
        path.write_text(new, encoding="utf-8")


def release(root: Path, version: str, to: Path, tests: str, day: str) -> tuple[Path, Path]:
    """Make the release in this checkout: its source distribution and its wheel."""
    require(root, version)
    before = git(root, "rev-parse", "HEAD").strip()
    try:
        write(root, version, day)
        if subprocess.run(shlex.split(tests), cwd=root).returncode:
            raise ReleaseError(f"the tests fail: {tests}")
        if git(root, "status", "--porcelain"):  # none if the version was there and only the tests were missing
            git(root, "commit", "--quiet", "--message", f"release: version {version}", "--", *FILES)
        made = distributions.build(root, to)
        git(root, "tag", "--annotate", f"v{version}", "--message", f"hloom {version}")
    except BaseException:
        git(root, "reset", "--quiet", "--soft", before)
        git(root, "checkout", "--quiet", before, "--", *FILES)
        raise
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("version", help="three numbers, such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="in a clone, which is removed")
    parser.add_argument("--tests", default=TESTS, help="the command that runs the tests: %(default)s")
    options = parser.parse_args()
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        if options.dry_run:
            require(ROOT, options.version)
            with tempfile.TemporaryDirectory() as name:
                copy = Path(name, "clone")
                git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(copy))
                made = release(copy, options.version, copy / "dist", options.tests, day)
                print(git(copy, "show", "--stat", f"v{options.version}"))
                report(made)
            print("a dry run: nothing has changed here")
        else:
            report(release(ROOT, options.version, ROOT / "dist", options.tests, day))
            print(f"to publish: git push --follow-tags; twine upload dist/hloom-{options.version}*")
    except (ReleaseError, distributions.CheckError) as error:
        print(f"not released: {error}", file=sys.stderr)
        return 1
    return 0


def report(made: tuple[Path, Path]) -> None:
    """Print the files, and the source of a conda-forge feedstock."""
    for path in made:
        print(f"{path.name}  {path.stat().st_size / 1e6:.1f} MB")
    sdist = made[0]
    print(f"source:\n  url: https://pypi.org/packages/source/h/hloom/{sdist.name}")
    print(f"  sha256: {hashlib.sha256(sdist.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    sys.exit(main())
