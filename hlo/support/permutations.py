"""Permutations of the numbers 0 to n-1."""

from __future__ import annotations

from collections.abc import Sequence


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """The inverse permutation: its entry at `permutation[i]` is i."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))
