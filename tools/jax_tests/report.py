"""Counts outcomes of JAX's tests: by file, and what failed by kind."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .machinery import machinery

Outcomes = dict[str, dict[str, Any]]


def read(*paths: Path) -> Outcomes:
    """Outcomes by the test's name, of several runs; the last run of a test counts."""
    lines = (json.loads(line) for path in paths for line in path.read_text().splitlines())
    return {line["test"]: line for line in lines}


def wanted(outcomes: Outcomes, beside: Sequence[Path] | None) -> set[str]:
    """The tests that count: those that passed here, or with JAX in the other runs, which may be of failures alone.
    Without other runs all that are not skipped."""
    if not beside:
        return {name for name, line in outcomes.items() if line["outcome"] != "skipped"}
    both = (outcomes, read(*beside))
    return {name for lines in both for name, line in lines.items() if line["outcome"] == "passed"}


def kind(why: str) -> str:
    """A failure's kind: its message without names, numbers and shapes."""
    first = next((line for line in why.splitlines() if line.strip()), "")
    first = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", first)
    first = re.sub(r"\[[^]]*\]|\([^)]*\)", "(...)", first)
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "N", first)[:110]


def report(outcomes: Outcomes, names: set[str], kinds: int = 60) -> str:
    """The text of a report on the tests `names`: all of them, and without those that want machinery of JAX."""
    files: dict[str, Counter[str]] = defaultdict(Counter)
    failures: dict[str, list[str]] = defaultdict(list)
    private: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        line = outcomes.get(name, {"outcome": "missing", "why": "not collected"})
        files[name.partition("::")[0]][line["outcome"]] += 1
        if line["outcome"] != "passed":
            reason = machinery(line["why"])
            (failures[kind(line["why"])] if reason is None else private[reason]).append(name)
    passed = sum(files.values(), Counter())["passed"]
    rows = [f"{sum(count.values()):6} {count['passed']:6}  {file}" for file, count in sorted(files.items())]
    apart = len(names) - sum(map(len, private.values()))
    rows.append(f"{len(names):6} {passed:6}  {passed / max(1, len(names)):.2%}")
    rows.append(f"{apart:6} {passed:6}  {passed / max(1, apart):.2%}, without tests that fail for machinery of JAX")
    why = ["", "what failed:", *_most(failures, kinds), "", "machinery of JAX:", *_most(private, 99)]
    return "\n".join(["  JAX  hloom", *rows, *why])


def _most(groups: dict[str, list[str]], count: int) -> list[str]:
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))[:count]
    return [f"{len(them):6}  {text}\n            {them[0]}" for text, them in ordered]
