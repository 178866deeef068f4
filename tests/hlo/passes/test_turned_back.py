"""A dimension that is moved to the front, worked along and moved back: no array is transposed for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.passes.layout.flow import turns_back

import hloom
import hloom.numpy as jnp

N = 130
"""Rows and columns: 66 KB of f32."""


def moved(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jnp.moveaxis(function(jnp.moveaxis(x, -1, 0)), 0, -1)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "elementwise": hloom.vmap(lambda v: jnp.tanh(v) + v[::-1], in_axes=1, out_axes=1),
    "slices": moved(lambda x: jnp.concatenate([x[:1], x[2:] - x[:-2], 2 * x[-1:]])),
    "pad": moved(lambda x: jnp.pad(x, ((1, 2), (0, 0)))[1:]),
    "sums": moved(lambda x: jnp.cumsum(x, 0)),
    "gradient": lambda x: jnp.gradient(x, axis=1),
    "softmax": hloom.vmap(hloom.nn.softmax, in_axes=1, out_axes=1),
    "three dimensions": lambda x: jnp.transpose(jnp.sin(jnp.transpose(x.reshape(13, 10, N), (2, 0, 1))), (1, 2, 0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_array_is_transposed(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((N, N)).astype(np.float32)
    compiled = hloom.jit(PROGRAMS[name]).lower(x).compile()
    assert " transpose(" not in compiled.as_text()
    with hloom.disable_jit():
        np.testing.assert_allclose(compiled(x), PROGRAMS[name](x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("between", "back", "size", "expected"),
    [
        ("negate(t)", "{2,0,1}", 40, True),
        ("negate(t)", "{1,2,0}", 40, False),  # goes on in the same direction
        ("negate(t)", "{2,0,1}", 10, False),  # little memory
        ("reshape(t)", "{2,0,1}", 40, False),  # may not keep dimensions apart
    ],
)
def test_when_layouts_are_searched(between: str, back: str, size: int, expected: bool) -> None:
    cube = f"f32[{size},{size},{size}]"
    text = f"""HloModule m
ENTRY e {{
  x = {cube} parameter(0)
  t = {cube} transpose(x), dimensions={{1,2,0}}
  b = {cube} {between}
  ROOT r = {cube} transpose(b), dimensions={back}
}}"""
    assert turns_back(parse(text)) is expected
