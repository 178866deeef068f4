"""The report, and the table in docs/jax_programs.md between two marks."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from pathlib import Path

from .results import read
from .uses import HERE, look_up_all, look_up_in_hloom, of_library

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "jax_programs.md"
BEGIN, END = "<!-- made by tools.library_imports -->\n", "<!-- end -->\n"


def report(libraries: dict[str, list[str]]) -> str:
    """What was found, in Markdown: counts, the libraries with modules that fail, the names that are not there."""
    counts: dict[str, tuple[int, int]] = {}
    failing = []
    for library in libraries:
        with_jax = {module for module, outcome in read(library, "jax").items() if not outcome["error"]}
        outcomes = read(library, "hloom")
        if not with_jax or not outcomes:
            continue  # with JAX, it does not import, either
        errors = [o["error"] for m, o in outcomes.items() if m in with_jax and o["error"]]
        counts[library] = len(with_jax) - len(errors), len(with_jax)
        if errors:
            first = next(error for error in errors if not error.startswith("as "))
            failing.append(f"| {library} | {counts[library][0]} of {len(with_jax)} | {_cell(first)} |")
    fine, all_modules = (sum(pair[i] for pair in counts.values()) for i in range(2))
    whole = sum(here == there for here, there in counts.values())
    others = [f"{library.partition(' ')[0]} {here}" for library, (here, there) in counts.items() if here == there]
    lines = [
        f"Of {all_modules:,} modules in {len(counts)} libraries that import with JAX, {fine:,} import with hloom; "
        f"{whole} libraries do as a whole.",
        "",
        f"Their numbers of modules: {', '.join(others)}.",
        "",
    ]
    if failing:
        lines += ["| library | modules | the first error |", "|---|---|---|", *failing, ""]
    return "\n".join(filled for line in [*lines, *_names(libraries)] for filled in _filled(line)) + "\n"


def _filled(line: str) -> list[str]:
    """A paragraph in lines of the document's width."""
    return [line] if line.startswith("|") or not line else textwrap.wrap(line, 120, break_on_hyphens=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _names(libraries: dict[str, list[str]]) -> list[str]:
    """The table of names of JAX that libraries use, by their text, and that are not here or cannot be used."""
    users: dict[str, set[str]] = defaultdict(set)
    for library in libraries:
        fine = [module for module, outcome in read(library, "jax").items() if not outcome["error"]]
        for name in of_library(fine):
            users[name].add(library.partition(" ")[0])
    in_jax = look_up_all(sorted(users))
    here = look_up_in_hloom(sorted(name for name, (_, where) in in_jax.items() if where == HERE))
    lacking: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, (part, where) in here.items():
        if where != HERE:
            lacking[part, where] |= users[name]
    rows = [
        f"| `{part}` | {', '.join(sorted(who))} | {where} |"
        for (part, where), who in sorted(lacking.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return [
        f"Their files name {len({part for part, _ in here.values()}):,} functions, classes and modules of JAX, also in "
        f"functions that no import runs. Of these, {len(rows)} are not here:",
        "",
        "| name | who uses it | |",
        "|---|---|---|",
        *rows,
    ]


_ROW = re.compile(r"\| `([\w.]+)` \| (.*) \| (?:not here|in name only) \|\n")


def looked_up_again(text: str) -> str:
    """The document with the names in its table looked up in this version of hloom. No library is needed."""
    before, begin, rest = text.partition(BEGIN)
    table, end, after = rest.partition(END)
    here = look_up_in_hloom([row[1] for row in _ROW.finditer(table)])

    def row_of(row: re.Match[str]) -> str:
        part, where = here[row[1]]
        return "" if where == HERE else f"| `{part}` | {row[2]} | {where} |\n"

    table = _ROW.sub(row_of, table)
    table = re.sub(r"\d+(?=\s+are\s+not\s+here:)", str(len(_ROW.findall(table))), table)
    return f"{before}{begin}{table}{end}{after}"


def write(text: str) -> None:
    """Put the report in the document."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}{text}{END}{after}")
