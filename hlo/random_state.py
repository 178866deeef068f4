"""The process's random state: rng-get-and-update-state reads and advances it, and rng draws from it.

A counter of 128 bits that all backends and all threads share. A caller that advances it by n gets the n values that
start at the old one. Its first value comes from XLA's CPU compiler or from the environment variable HLOOM_RANDOM_STATE,
so a program gives the same numbers in every process that runs the same programs in the same order.
"""

from __future__ import annotations

import os

from .support.forking import Order, fork_lock

_MASK = (1 << 128) - 1
_INITIAL = 0x7012395


class RandomState:
    """A counter modulo 2**128 that several threads may advance."""

    def __init__(self, value: int = _INITIAL) -> None:
        self._lock = fork_lock(Order.LEAF)
        self._value = value & _MASK

    def advance(self, delta: int) -> int:
        """Add `delta`; return the value before."""
        with self._lock:
            before = self._value
            self._value = (before + delta) & _MASK
            return before

    def reset(self, value: int = _INITIAL) -> None:
        """Set the counter, so that later draws can be repeated."""
        with self._lock:
            self._value = value & _MASK


def _from_environment() -> int:
    text = os.environ.get("HLOOM_RANDOM_STATE", "")
    if not text:
        return _INITIAL
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"environment variable HLOOM_RANDOM_STATE must be an integer, not {text!r}") from None


RANDOM_STATE = RandomState(_from_environment())
