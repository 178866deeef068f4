"""Normalisations of groups: the operations before and after a reshape are one nest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.passes.fuse.align_reshapes import first_cut

import hloom
from hloom import numpy as jnp


def _first(m: Any, x: Any, scale: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Channels first, or any array with a scaled dimension 1."""
    y = x.reshape(shape)
    mean = y.mean(axes, keepdims=True)
    deviation = m.sqrt(((y - mean) ** 2).mean(axes, keepdims=True) + 1e-5)
    return ((y - mean) / deviation).reshape(x.shape) * scale[:, None, None] + x


def _last(m: Any, x: Any, scale: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    y = x.reshape(shape)
    return (y - y.max(axes, keepdims=True)).reshape(x.shape) * scale


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "groups": (_first, (4, 6, 5, 7), (4, 3, 2, 5, 7), (2, 3, 4)),
    "groups as rows": (_first, (4, 6, 5, 7), (4, 3, -1), (2,)),
    "one group": (_first, (4, 6, 5, 7), (4, -1), (1,)),
    "batch and groups": (_first, (4, 6, 5, 7), (12, 70), (1,)),
    "channels last": (_last, (4, 5, 7, 6), (4, 35, 3, 2), (1, 3)),
    "whole rows": (_last, (4, 5, 6), (20, 6), (1,)),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_programs_are_one_kernel(name: str) -> None:
    function, whole, shape, axes = _PROGRAMS[name]
    rng = np.random.default_rng(5)
    x = rng.normal(size=whole).astype(np.float32)
    scale = rng.normal(size=whole[1] if function is _first else whole[-1]).astype(np.float32)
    program = hloom.jit(lambda x, scale: function(jnp, x, scale, shape, axes))
    np.testing.assert_allclose(np.asarray(program(x, scale)), function(np, x, scale, shape, axes), rtol=2e-5, atol=2e-5)
    assert len(program.lower(x, scale).compile().kernels()) == 1


def test_dimensions_without_elements() -> None:
    program = hloom.jit(lambda x, scale: _first(jnp, x, scale, (0, 3, 2, 5, 7), (2, 3, 4)))
    assert program(np.zeros((0, 6, 5, 7), np.float32), np.zeros(6, np.float32)).shape == (0, 6, 5, 7)


@pytest.mark.parametrize(
    ("own", "others", "cut"),
    [
        ((16, 64, 784), (16, 8, 6272), (1, 8)),
        ((16, 8, 6272), (16, 8, 8, 784), (2, 8)),
        ((12,), (2, 3, 2), (0, 2)),
        ((4, 3), (12,), None),
        ((6, 4), (4, 6), None),
        ((6, 1), (2, 3), None),
        ((0, 6), (0, 2, 3), None),
    ],
)
def test_cuts(own: tuple[int, ...], others: tuple[int, ...], cut: tuple[int, int] | None) -> None:
    assert first_cut(own, others) == cut
