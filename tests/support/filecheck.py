"""Golden files: text in, passes, text out that must match. A small version of LLVM's FileCheck.

A file begins with `// RUN: pass, pass` (each once), or `// RUN-UNTIL-SETTLED: pass, pass` (in turn, until nothing
changes), and holds modules with a line `// -----` between them. In a module's comments:

    // CHECK: text         some later line contains it
    // CHECK-NEXT: text    the line after the last match contains it
    // CHECK-NOT: text     no line between the matches around it contains it

Inside the text, `{{...}}` is a regular expression; runs of blanks are one blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DIRECTIVE = re.compile(r"^\s*//\s*(CHECK(?:-NEXT|-NOT)?):\s*(.*?)\s*$")
_RUN = re.compile(r"^\s*//\s*RUN(-UNTIL-SETTLED)?:\s*(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Check:
    kind: str
    text: str
    line: int

    def matches(self, line: str) -> bool:
        parts = re.split(r"\{\{(.*?)\}\}", " ".join(self.text.split()))
        pattern = "".join(part if n % 2 else re.escape(part) for n, part in enumerate(parts))
        return re.search(pattern, " ".join(line.split())) is not None


@dataclass(frozen=True)
class GoldenCase:
    file: str
    number: int
    passes: tuple[str, ...]
    until_settled: bool
    text: str
    checks: tuple[Check, ...]


def checks_in(text: str, first_line: int = 1) -> tuple[Check, ...]:
    """The directives in a text."""
    matches = ((n, _DIRECTIVE.match(line)) for n, line in enumerate(text.splitlines(), first_line))
    return tuple(Check(found[1], found[2], n) for n, found in matches if found is not None)


def golden_cases(path: Path) -> Iterator[GoldenCase]:
    """The modules of one file."""
    text = path.read_text(encoding="utf-8")
    run = _RUN.search(text)
    assert run is not None, f"{path} has no RUN line"
    passes = tuple(name.strip() for name in run[2].split(","))
    line = 1
    for number, part in enumerate(text.split("// -----\n")):
        checks = checks_in(part, line)
        assert checks, f"{path}: module {number} checks nothing"
        yield GoldenCase(path.name, number, passes, run[1] is not None, part, checks)
        line += part.count("\n") + 1


def check_output(output: str, case: GoldenCase) -> None:
    """AssertionError that shows the output if it does not match."""
    lines = output.splitlines()
    position = 0
    forbidden: list[Check] = []

    def fail(check: Check, why: str) -> None:
        raise AssertionError(f"{case.file}:{check.line}: {check.kind}: {check.text}\n{why}, in:\n{output}")

    def look_for_forbidden(upto: int) -> None:
        for check in forbidden:
            for line in lines[position:upto]:
                if check.matches(line):
                    fail(check, f"found in {line!r}")
        forbidden.clear()

    for check in case.checks:
        if check.kind == "CHECK-NOT":
            forbidden.append(check)
            continue
        last = position + 1 if check.kind == "CHECK-NEXT" else len(lines)
        found = next((n for n in range(position, last) if n < len(lines) and check.matches(lines[n])), None)
        if found is None:
            fail(check, f"not found from line {position + 1} on")
            return
        look_for_forbidden(found)
        position = found + 1
    look_for_forbidden(len(lines))
