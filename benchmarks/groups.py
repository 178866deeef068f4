"""All groups of cases, by name. A group's module is imported at the first use of the group.

So the process of a peer imports no more than the case needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from . import startup
from .harness import Case
from .table import every as table

FRESH: dict[str, dict[str, Callable[..., Any]]] = {
    "latency": startup.LATENCY, "start": startup.START, "memory": startup.MEMORY, "large": startup.LARGE
}  # fmt: skip
"""Groups that start a new process for each sample."""
TABLE = (*table.GROUPS, "latency", "start", "memory")
"""The groups that a run without `--group` measures."""
MODULES = ("steady", "loops", "transformations", "pallas", "tracing", "eager", "recording", "scopes")
"""Further groups, each a module of its name."""
PROGRAMS = ("npbench-S", "npbench-M", "npbench-L", "pyhpc")
"""Programs of others, from clones that environment variables name."""
NAMES = (*TABLE, "startup", "large", *MODULES, *PROGRAMS)


def group(name: str) -> Mapping[str, Any]:
    """The cases of a group by name: functions that make them, of `loops` the loops, of new processes what measures."""
    if name in table.GROUPS:
        return table.GROUPS[name]
    if name in FRESH:
        return FRESH[name]
    if name == "startup":
        return startup.CASES
    if name in PROGRAMS:
        return importlib.import_module("benchmarks.programs").GROUPS[name]  # type: ignore[no-any-return]
    return importlib.import_module(f"benchmarks.{name}").CASES  # type: ignore[no-any-return]


def home(case: str) -> str:
    """The group that has the case. Raises KeyError."""
    for name in (*TABLE, *PROGRAMS, *NAMES):  # the modules of others import more than DaCe's interpreter has
        if case in group(name):
            return name
    raise KeyError(case)


def is_fresh(case: str) -> bool:
    """Whether each sample is a new process."""
    return any(case in cases for cases in FRESH.values())


def make(case: str) -> Case:
    """A case with programs."""
    found = group(home(case))[case]
    return found() if callable(found) else found.case()  # type: ignore[no-any-return]
