"""Operators and methods of arrays call functions of `hloom.numpy`, which is above `hloom.lax`.

Importing `hloom.numpy` sets these functions. In a program that imports only `hloom.lax`, the first operator on one of
its arrays loads them.
"""

from __future__ import annotations

from importlib import import_module

from ..tracer.arrays.operators import functions_come_from
from ..tracer.stages import jaxprs_come_from


def load_when_used() -> None:
    """Have `hloom.numpy` imported when an operator or a method of an array needs it, and `hloom.jaxpr` when a jaxpr is
    first made."""
    functions_come_from(lambda: import_module("..numpy", __package__))
    jaxprs_come_from(lambda: import_module("..jaxpr.view", __package__).view_of)
