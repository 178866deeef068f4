"""Running something of which an error is a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hloom

from .case import NDArray


def flat(results: Any) -> list[NDArray]:
    """The arrays of a tree."""
    return [np.asarray(r) for r in hloom.tree.leaves(results)]


class Raised:
    """What a way to run a program raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {str(self.error).splitlines()[0] if str(self.error) else ''}"


def attempt(run: Callable[[], Any]) -> Any:
    """What `run` returns, or Raised. A lack of memory is no answer."""
    try:
        with np.errstate(all="ignore"):
            return run()
    except MemoryError:
        raise
    except Exception as error:
        return Raised(error)
