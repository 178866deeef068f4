"""The ledger of random programs: which seeds were run on which version, and what they found.

A case is its seed, so a line of the ledger, a JSON object, says how to run the same cases again:

    {"kinds": ["array"], "seed": 7, "start": 0, "cases": 5000, "version": "0.1.0+c733c66", "verdicts": {"ok": 4990},
     "found": [], "date": "2026-11-26", "jax": "0.10.2"}

`python -m tools.fuzz --ledger` adds a line; `python -m tools.fuzz.ledger` counts the cases of all lines.
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
from typing import Any

from hloom.version import __version__

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "tests" / "data" / "fuzz_ledger.jsonl"


def add(
    kinds: Sequence[str], seed: int, start: int, verdicts: Mapping[str, int], found: Sequence[str], oracle: bool,
    file: Path = LEDGER,
) -> None:  # fmt: skip
    """Add the line of a run to the ledger."""
    line: dict[str, Any] = {
        "kinds": list(kinds),
        "seed": seed,
        "start": start,
        "cases": sum(verdicts.values()),
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


def total(file: Path = LEDGER) -> Counter[str]:
    """Cases by kind; a run of several kinds takes turns."""
    count: Counter[str] = Counter()
    for line in lines(file):
        each, more = divmod(line["cases"], len(line["kinds"]))
        for place, kind in enumerate(line["kinds"]):
            count[kind] += each + (place < more)
    return count


if __name__ == "__main__":
    for kind, cases in sorted(total().items()):
        print(f"{cases:9,} {kind}")
    print(f"{sum(total().values()):9,} in all")
