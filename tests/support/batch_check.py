"""Checks vmap of a function against a loop over the elements, for all choices of batched arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import hloom

NDArray = np.ndarray[Any, Any]


def complex_ones_slow(names: Any) -> list[Any]:
    """Parameters of a test: those with complex numbers run in the second step."""
    return [pytest.param(n, marks=pytest.mark.slow) if "c16" in n or "complex" in n else n for n in names]


def check_batches(
    function: Callable[..., Any], inputs: Sequence[NDArray], *, count: int = 3, tolerance: float = 1e-9
) -> None:
    """AssertionError unless vmap of `function` gives what the elements give one by one.

    Element i of a batched input is that input times 1 + i / 8. The batch is the last axis of every second one.
    """
    axes_of = [-1 if k % 2 else 0 for k in range(len(inputs))]
    for mask in product((True, False), repeat=len(inputs)):
        if not any(mask):
            continue
        axes = [axis if m else None for axis, m in zip(axes_of, mask, strict=True)]
        rows = [[(x * (1 + i / 8)).astype(x.dtype) if m else x for x, m in zip(inputs, mask)] for i in range(count)]
        given = [
            np.stack([row[k] for row in rows], axis) if axis is not None else rows[0][k] for k, axis in enumerate(axes)
        ]
        found = hloom.tree.leaves(hloom.vmap(function, tuple(axes))(*given))
        expected = [hloom.tree.leaves(function(*row)) for row in rows]
        for k, batch in enumerate(found):
            wanted = np.stack([np.asarray(leaves[k]) for leaves in expected])
            assert batch.shape == wanted.shape and batch.dtype == wanted.dtype
            np.testing.assert_allclose(np.asarray(batch), wanted, rtol=tolerance, atol=tolerance)
