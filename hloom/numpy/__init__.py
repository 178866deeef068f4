"""`hloom.numpy`: NumPy's functions, with JAX's promotion. See `tracer/numpy`."""

from typing import Any

from .. import backends as backends
from ..tracer import numpy as _namespace
from ..tracer.numpy import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # what the import system asks for is this module's own affair
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_namespace, name)  # which says what is missing, and why
