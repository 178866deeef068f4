"""Where the slots of objects are: what machine code relies on, in this Python."""

from __future__ import annotations

import sys

from hloom.hlo.support.slots import HAS_SLOTS


def test_all_pythons_with_a_gil_are_as_expected() -> None:
    """A new Python may order its objects in another way. Without this test only calls would be slower."""
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert HAS_SLOTS or not has_gil or sys.implementation.name != "cpython"
