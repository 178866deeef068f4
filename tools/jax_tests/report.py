"""Counts outcomes of JAX's tests: by file, and what failed by kind."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

Outcomes = dict[str, dict[str, Any]]


def read(path: Path) -> Outcomes:
    """Outcomes by the test's name."""
    lines = map(json.loads, path.read_text().splitlines())
    return {line["test"]: line for line in lines}


def wanted(outcomes: Outcomes, beside: Path | None) -> set[str]:
    """The tests that count: those that passed here, or with JAX in the other run, which may be of failures alone.
    Without another run all that are not skipped."""
    if beside is None:
        return {name for name, line in outcomes.items() if line["outcome"] != "skipped"}
    both = (outcomes, read(beside))
    return {name for lines in both for name, line in lines.items() if line["outcome"] == "passed"}


def kind(why: str) -> str:
    """A failure's kind: its message without names, numbers and shapes."""
    first = next((line for line in why.splitlines() if line.strip()), "")
    first = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", first)
    first = re.sub(r"\[[^]]*\]|\([^)]*\)", "(...)", first)
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "N", first)[:110]


def report(outcomes: Outcomes, names: set[str], kinds: int = 60) -> str:
    """The text of a report on the tests `names`."""
    files: dict[str, Counter[str]] = defaultdict(Counter)
    failures: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        line = outcomes.get(name, {"outcome": "missing", "why": "not collected"})
        files[name.partition("::")[0]][line["outcome"]] += 1
        if line["outcome"] != "passed":
            failures[kind(line["why"])].append(name)
    total = sum(files.values(), Counter())
    rows = [f"{sum(count.values()):6} {count['passed']:6}  {file}" for file, count in sorted(files.items())]
    rows.append(f"{len(names):6} {total['passed']:6}  {total['passed'] / max(1, len(names)):.2%}")
    most = sorted(failures.items(), key=lambda item: -len(item[1]))[:kinds]
    why = [f"{len(them):6}  {text}\n            {them[0]}" for text, them in most]
    return "\n".join(["  JAX  hloom", *rows, "", "what failed:", *why])
