"""How much the reference says: for which functions it names errors, shapes, dtypes, and has an example.

    python -m tools.website.described

A function is one of arrays if its namespace is (`calls.SPACES`); only those must say shapes and dtypes.
"""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Iterator
from typing import Any

from . import calls, reference

WORDS = {
    "errors": r"\w+(Error|Warning|Exception)\b",
    "shapes": r"\bshapes?\b|\bdimensions?\b|\bax[ie]s\b|\bsizes?\b|\bscalars?\b|\bmatri(x|ces)\b|\bvectors?\b"
    r"|broadcast|each element|\w+\d*\[[\d,]*\]",
    "dtypes": r"dtype|element type|\bf(16|32|64)\b|\b[su](8|16|32|64)\b|bool|\bint|float|complex|promot",
    "examples": r">>>",
}
"""What a text names, as patterns."""


def functions(spaces: list[str]) -> Iterator[tuple[str, Any]]:
    """The full names of the public functions of namespaces; classes and names of types are none."""
    for space in spaces:
        module = reference.namespaces()[space]
        for name in module.__all__:
            found = getattr(module, name)
            if not callable(found) or isinstance(found, type) or typing.get_origin(found) is not None:
                continue
            if getattr(found, "__module__", "").partition(".")[0] == "hloom":
                yield f"{space}.{name}", found


def without(names: dict[str, Any]) -> dict[str, list[str]]:
    """For each of `WORDS` the functions whose texts in the reference do not have it."""
    missing: dict[str, list[str]] = {kind: [] for kind in WORDS}
    with calls.in_a_corner():
        for name, found in names.items():
            text = "\n".join([getattr(found, "__doc__", None) or "", *reference.behaviour_of(name, found)])
            for kind, pattern in WORDS.items():
                if not re.search(pattern, text):
                    missing[kind].append(name)
    return missing


def main() -> int:
    every = list(reference.namespaces())
    for title, spaces in (("all functions", every), ("functions of arrays", calls.spaces(every))):
        names = dict(functions(spaces))
        shares = {kind: 1 - len(absent) / len(names) for kind, absent in without(names).items()}
        print(f"{title}, {len(names)}: " + ", ".join(f"{kind} {share:.1%}" for kind, share in shares.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
