"""The ledger of random programs: which seeds were run on which version, and the findings.

A program is its seed, and a case is a program with a set of data. So a line of the ledger, a JSON object, is enough to
run the same cases again:

    {"kinds": ["array"], "seed": 7, "start": 0, "programs": 320, "data": 16, "cases": {"array": 5000},
     "version": "0.1.0+c733c66", "verdicts": {"ok": 4990}, "found": [], "date": "2026-11-26", "jax": "0.10.2"}

A program that is refused, or that shows a defect, has fewer cases than `data`. `python -m tools.fuzz --ledger` adds a
line; `python -m tools.fuzz.ledger` counts the programs and cases of all lines.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from hloom.version import __version__

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "tests" / "data" / "fuzz_ledger.jsonl"


class Seeds(NamedTuple):
    """The programs that a run drew: `start`, `start + 1`, ... of a seed, each with `data` sets of data."""

    seed: int
    start: int
    programs: int
    data: int


def add(
    kinds: Sequence[str], drawn: Seeds, cases: Mapping[tuple[str, str], int], found: Sequence[str], oracle: bool,
    file: Path = LEDGER,
) -> None:  # fmt: skip
    """Add the line of a run to the ledger. `cases`: how many, by kind and verdict."""
    by_kind, verdicts = Counter[str](), Counter[str]()
    for (kind, verdict), number in cases.items():
        by_kind[kind] += number
        verdicts[verdict] += number
    line: dict[str, Any] = {
        "kinds": list(kinds),
        **drawn._asdict(),
        "cases": dict(sorted(by_kind.items())),
        "version": f"{__version__}+{_commit()}",
        "verdicts": dict(sorted(verdicts.items())),
        "found": list(found),
        "date": datetime.date.today().isoformat(),
        "jax": version("jax") if oracle and importlib.util.find_spec("jax") else None,
    }
    with file.open("a") as ledger:
        ledger.write(json.dumps(line) + "\n")


def _commit() -> str:
    """The commit that is checked out; with a mark if files differ from it."""
    described = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True
    )
    return described.stdout.strip() or "unknown"


def lines(file: Path = LEDGER) -> list[dict[str, Any]]:
    """All lines."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def total(file: Path = LEDGER) -> tuple[Counter[str], Counter[str]]:
    """Programs and cases by kind; in a run of several kinds they take turns."""
    programs, cases = Counter[str](), Counter[str]()
    for line in lines(file):
        cases.update(line["cases"])
        each, more = divmod(line["programs"], len(line["kinds"]))
        for place, kind in enumerate(line["kinds"]):  # one may be there twice
            programs[kind] += each + (place < more)
    return programs, cases


if __name__ == "__main__":
    programs, cases = total()
    for kind in sorted(programs):
        print(f"{programs[kind]:9,} programs {cases[kind]:11,} cases  {kind}")
    print(f"{programs.total():9,} programs {cases.total():11,} cases  in all")
