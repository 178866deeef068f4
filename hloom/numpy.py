"""`hloom.numpy`: NumPy's functions, with JAX's promotion. See `tracer/numpy`."""

from typing import Any

from . import backends as backends
from .tracer import numpy as _namespace
from .tracer.numpy import *  # noqa: F403
from .tracer.numpy import linalg as linalg


def __getattr__(name: str) -> Any:
    return getattr(_namespace, name)  # which says what is missing, and why
