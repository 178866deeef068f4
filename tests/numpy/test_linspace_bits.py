"""linspace of float32 has the bits of JAX's: recorded checksums, for numbers and arrays, short and long ranges.

`python tests/numpy/test_linspace_bits.py` records them with the JAX that is installed.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RECORDED = Path(__file__).parents[1] / "data" / "linspace_bits.json"
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "numbers": ((), ()),
    "to an array": ((), (3,)),
    "to a number": ((3,), ()),
    "arrays": ((3,), (3,)),
    "wide arrays": ((17,), (17,)),
    "matrices": ((2, 3), (2, 3)),
}
COUNTS = (5, 10, 18, 32, 34, 50, 100, 176, 225, 351, 400, 1000)


def checksums(jnp: Any, kind: str) -> list[int]:
    """Of the bytes of the ranges of this kind, one for each number of values."""
    found = []
    for count in COUNTS:
        random = np.random.default_rng(count)
        start, stop = (random.normal(size=shape).astype(np.float32) for shape in SHAPES[kind])
        found.append(zlib.crc32(np.asarray(jnp.linspace(jnp.asarray(start), jnp.asarray(stop), count)).tobytes()))
    return found


@pytest.mark.parametrize("kind", SHAPES)
def test_the_bits_are_those_of_jax(kind: str) -> None:
    import hloom.numpy as jnp

    recorded = json.loads(RECORDED.read_text())[kind]
    assert dict(zip(COUNTS, checksums(jnp, kind), strict=True)) == dict(zip(COUNTS, recorded, strict=True))


def test_short_ranges_hold_no_arrays() -> None:
    import hloom
    import hloom.numpy as jnp

    for stop in (1.0, jnp.ones(3)):
        traced = hloom.jit(lambda x, stop=stop: jnp.linspace(x, stop, 20)).trace(0.0)
        assert [v for v in traced.jaxpr.consts if v is not stop] == []


def test_equal_ranges_are_computed_once() -> None:
    """With all that follows from them: the bins of two histograms of the same numbers."""
    import hloom
    import hloom.numpy as jnp

    def mean_in_bins(x: Any, weights: Any) -> Any:
        return jnp.histogram(x, 1000, weights=weights)[0] / jnp.histogram(x, 1000)[0]

    with hloom.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).random(5000))
        lowered = hloom.jit(mean_in_bins).lower(x, x * x)
        assert "captured.1" not in lowered.as_text()
        once = hloom.jit(lambda x: jnp.histogram(x, 1000)[0]).lower(x).compile().as_text().count(" gather(")
        assert lowered.compile().as_text().count(" gather(") == once


def test_a_kernel_has_ranges_of_its_own() -> None:
    """Even if a program before it had an equal one: to a kernel, that one is an array from outside."""
    import hloom
    import hloom.numpy as jnp
    from hloom.experimental import pallas as pl

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * jnp.linspace(0.0, 1.0, 9)

    with hloom.enable_x64(True):
        shape = hloom.ShapeDtypeStruct((9,), jnp.float64)
        expected = hloom.jit(lambda x: jnp.linspace(0.0, 1.0, 9) * x)(2.0)
        found = pl.pallas_call(kernel, out_shape=shape, interpret=True)(jnp.full(9, 2.0))
    np.testing.assert_array_equal(found, expected)


if __name__ == "__main__":
    import jax.numpy

    table = {kind: checksums(jax.numpy, kind) for kind in SHAPES}
    RECORDED.write_text(json.dumps(table, indent=0) + "\n")
