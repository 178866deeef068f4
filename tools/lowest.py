#!/usr/bin/env python3
"""The lowest versions that pyproject.toml declares, as constraints for pip: `make test-lowest` installs these.

    python tools/lowest.py test > lowest.txt        # of the dependencies, and of the extras that are named
    pip install --constraint lowest.txt ".[test]"   # in an environment of its own

They are tried with the lowest Python that is declared: for a later one, old releases may have no wheels.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class BoundError(Exception):
    """A requirement without a declared lowest version."""


def lowest(requirement: str) -> str:
    """`numba>=0.62` -> `numba==0.62`."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    bound = re.search(r"(?:>=|==)\s*([0-9][0-9A-Za-z.]*)\s*(?:,|;|$)", requirement)
    if name is None or bound is None:
        raise BoundError(f"{requirement!r} of pyproject.toml has no lowest version: write name>=version")
    return f"{name[0]}=={bound[1]}"


def pins(project: dict[str, object], extras: Sequence[str] = ()) -> list[str]:
    """A pin for each requirement of the package and of these extras."""
    optional = project.get("optional-dependencies", {})
    assert isinstance(optional, dict)
    if unknown := sorted({*extras} - {*optional}):
        raise BoundError(f"no extra {', '.join(unknown)} in pyproject.toml; there are {', '.join(optional)}")
    requirements = project["dependencies"]
    assert isinstance(requirements, list)
    found = {lowest(r): None for r in [*requirements, *(r for extra in extras for r in optional[extra])]}
    names = [pin.partition("==")[0] for pin in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BoundError(f"{', '.join(twice)}: the extras declare several lowest versions")
    return list(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="extras of pyproject.toml, such as test")
    options = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = re.search(r">=\s*(\d+)\.(\d+)", project["requires-python"])
    assert wanted is not None
    if sys.version_info[:2] != (int(wanted[1]), int(wanted[2])):
        running = ".".join(map(str, sys.version_info[:2]))
        print(f"the lowest versions are tried with Python {wanted[1]}.{wanted[2]}; this is {running}", file=sys.stderr)
        return 2
    try:
        print(*pins(project, options.extras), sep="\n")
    except BoundError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
