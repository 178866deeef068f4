"""Defects that are known and not mended yet: what the generators leave out meanwhile. The list must be empty.

An entry takes a class of cases out of the run, so that the fuzzer finds unknown defects. `tests/whole/test_fuzz.py`
fails while there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hloom.hlo.element_type import ElementType

from hloom.backend_check.op_table import OpCase


@dataclass(frozen=True, slots=True)
class Known:
    """A defect, and the cases that are left out for it."""

    what: str
    op_case: Callable[[OpCase], bool] | None = None
    """Cases of the table from which no operation of a module is drawn."""
    element_type: ElementType | None = None
    """A type that parameters of modules do not have."""
    statement: str = ""
    """A statement of array programs, by the name in `array_statements`."""
    message: str = ""
    """A pattern that signature and message of a finding match: it is counted, and not reported."""


KNOWN: tuple[Known, ...] = ()


def excluded_case(case: OpCase) -> bool:
    """Is the case left out?"""
    return any(known.op_case is not None and known.op_case(case) for known in KNOWN)


def excluded_type(element: ElementType) -> bool:
    """Is the type left out?"""
    return any(known.element_type is element for known in KNOWN)


def excluded_statement(name: str) -> bool:
    """Is the statement left out?"""
    return any(known.statement == name for known in KNOWN)


def is_known(signature: str, message: str) -> bool:
    """Is a finding one of the list?"""
    text = f"{signature}\n{message}"
    return any(known.message and re.search(known.message, text) for known in KNOWN)
