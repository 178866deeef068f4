"""Run a function; an error counts as a result."""

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
    """The error that a way to run a program raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {str(self.error).splitlines()[0] if str(self.error) else ''}"


def attempt(run: Callable[[], Any]) -> Any:
    """The result of `run`, or Raised. A MemoryError is raised again."""
    try:
        with np.errstate(all="ignore"):
            return run()
    except MemoryError:
        raise
    except Exception as error:
        return Raised(error)
