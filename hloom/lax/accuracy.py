"""`AccuracyMode` and `Tolerance`: the values of `accuracy=` of elementary functions. The names follow jax.lax.

Each function has one implementation here, which is within 4 units in the last place of its dtype: it serves every mode,
and every tolerance that is not tighter.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from ..hlo.errors import UnsupportedError
from ..tracer import dtypes

_ULPS = 4


class AccuracyMode(Enum):
    """Which implementation of a function to use where there are several. Here there is one of each.

    >>> lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST)
    Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """How far a function may be off: absolutely, relatively, and in units in the last place.

    Raises:
      ValueError: one is negative, or none is given.

    >>> lax.tanh(0.0, accuracy=lax.Tolerance(atol=1e-5, ulps=8))
    Array(0., dtype=float32, weak_type=True)
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError("Tolerances must be non-negative.")
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def check_accuracy(name: str, accuracy: Any, dtype: Any) -> None:
    """TypeError unless it is a mode, a tolerance or None; UnsupportedError for a tolerance that is tighter than the
    function `name` is accurate in `dtype`."""
    if accuracy is None or isinstance(accuracy, AccuracyMode):
        return
    if not isinstance(accuracy, Tolerance):
        raise TypeError(f"lax.{name}: accuracy must be an AccuracyMode, a Tolerance or None, not {accuracy!r}")
    eps = float(dtypes.finfo(dtype).eps) if np.dtype(dtype).kind not in "biu" else 0.0
    if accuracy.ulps < _ULPS and accuracy.rtol < _ULPS * eps and accuracy.atol < _ULPS * eps:
        raise UnsupportedError(
            f"lax.{name} is within {_ULPS} units in the last place of {np.dtype(dtype).name}, which is more than "
            f"{accuracy} allows"
        )
