"""The kinds of cases by name, and the paths that their files need: imported in the child."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

_TESTS = str(Path(__file__).resolve().parent.parent.parent / "tests")
if _TESTS not in sys.path:
    sys.path.append(_TESTS)  # the generators build on `tests/support`

from . import (  # noqa: E402
    array_cases,
    array_loops,
    hostile_cases,
    interrupt_cases,
    limit_cases,
    loop_cases,
    module_cases,
    op_cases,
    store_cases,
    text_cases,
)
from .case import Case  # noqa: E402
from .known import is_known  # noqa: E402

if TYPE_CHECKING:
    from .case import Kind

KINDS: dict[str, Kind] = {
    "op": op_cases, "text": text_cases, "hlo": module_cases, "array": array_cases, "loop": loop_cases,
    "loop-array": array_loops,
    "hostile": hostile_cases, "store": store_cases, "limit": limit_cases, "interrupt": interrupt_cases,
}  # fmt: skip
WITH_DATA: dict[str, Callable[[Case, int], Case]] = {
    "op": op_cases.with_data, "text": text_cases.with_data, "hlo": module_cases.with_data,
    "array": array_cases.with_data, "loop": loop_cases.with_data, "loop-array": array_loops.with_data,
}  # fmt: skip
"""By kind, for programs that run with many sets of data: the function that gives a case another set."""
HAS_JAX = importlib.util.find_spec("jax") is not None

__all__ = ["HAS_JAX", "KINDS", "WITH_DATA", "is_known", "use_oracle", "with_data"]


def with_data(case: Case, number: int) -> Case:
    """The case with another set of data."""
    return WITH_DATA[case.kind](case, number)


def use_oracle(wanted: bool) -> None:
    """Whether to compare with JAX, where it is installed."""
    for kind in (array_cases, loop_cases, module_cases):
        kind.use_oracle = wanted and HAS_JAX
