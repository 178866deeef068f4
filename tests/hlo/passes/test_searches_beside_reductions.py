"""A reduction that is split leaves a binary search over the same array as it is: one nest for all of its steps."""

from __future__ import annotations

from typing import Any

import numpy as np

import hloom
import hloom.numpy as jnp


def bins(x: Any) -> Any:
    return jnp.searchsorted(jnp.linspace(x.min(), x.max(), 101), x, side="right")


def test_the_steps_of_a_search_are_one_kernel() -> None:
    x = np.random.default_rng(0).uniform(0, 1, 1 << 17).astype(np.float32)
    compiled = hloom.jit(bins).lower(x).compile()
    names = [*compiled.kernels()]
    assert not any("gather" in name for name in names) and len(names) <= 8, names  # also those of even edges
    edges = np.asarray(jnp.linspace(x.min(), x.max(), 101))
    np.testing.assert_array_equal(compiled(x), np.searchsorted(edges, x, side="right"))


def test_other_values_are_split_with_the_reduction() -> None:
    f = hloom.jit(lambda x: (jnp.sum(x * x), x * x + 1))
    text = f.lower(np.zeros(1 << 17, np.float32)).compile().as_text()
    assert text.count(" fusion(") <= 2, text
