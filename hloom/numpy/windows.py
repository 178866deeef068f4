"""Windows: weights of M samples that fall towards both ends. Source for names and meaning: NumPy.

They depend on a number that is known while tracing, so they are constants, computed in double precision.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracer import dtypes
from ..tracer.array import array_from_numpy
from ..tracer.core import Value
from ..tracer.errors import ConcretizationTypeError, OperandError
from ..tracer.source import user_line

__all__ = [
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
]


def sample_count(name: str, M: int) -> int:
    """M as an integer that is not negative."""
    try:
        count = operator.index(M)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise OperandError(f"{name}: M must be an integer, not {M!r}\n  at {user_line()}", name) from None
    return max(count, 0)


def _window(name: str, M: int, weights: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Value:
    """The weights at places from -1 to 1."""
    count = sample_count(name, M)
    places = np.arange(1 - count, count, 2) / max(count - 1, 1)
    return array_from_numpy(np.asarray(weights(places) if count > 1 else np.ones(count), dtypes.default_float()))


def bartlett(M: int) -> Value:
    """A triangle of M weights, 0 at both ends.

    >>> import hloom.numpy as jnp
    >>> jnp.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("bartlett", M, lambda t: 1 - np.abs(t))


def blackman(M: int) -> Value:
    """M weights of two cosines, 0 at both ends.

    >>> import hloom.numpy as jnp
    >>> [round(w, 2) for w in jnp.blackman(5).tolist()]
    [-0.0, 0.34, 1.0, 0.34, -0.0]
    """
    return _window("blackman", M, lambda t: 0.42 + 0.5 * np.cos(np.pi * t) + 0.08 * np.cos(2 * np.pi * t))


def hamming(M: int) -> Value:
    """M weights of a raised cosine, 0.08 at both ends.

    >>> import hloom.numpy as jnp
    >>> [round(w, 2) for w in jnp.hamming(5).tolist()]
    [0.08, 0.54, 1.0, 0.54, 0.08]
    """
    return _window("hamming", M, lambda t: 0.54 + 0.46 * np.cos(np.pi * t))


def hanning(M: int) -> Value:
    """M weights of a raised cosine, 0 at both ends.

    >>> import hloom.numpy as jnp
    >>> [round(w, 2) for w in jnp.hanning(5).tolist()]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("hanning", M, lambda t: 0.5 + 0.5 * np.cos(np.pi * t))
