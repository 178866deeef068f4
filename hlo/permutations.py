"""Permutations: where things go, as a sequence of the numbers 0 to n-1."""

from __future__ import annotations

from collections.abc import Sequence


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes this one: at `permutation[i]` it has i."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))
