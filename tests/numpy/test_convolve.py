"""numpy.convolve and numpy.correlate, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import OperandError
from hloom.test_util import check_grads

PAIRS = {
    "longer": (np.array([1.0, 2, 4, 3, 5], np.float32), np.array([2.0, 1, 3], np.float32)),
    "even kernel": (np.array([1.0, 2, 4, 3, 5], np.float32), np.array([2.0, 1, 3, 5], np.float32)),
    "shorter": (np.array([1.0, 2], np.float32), np.array([2.0, 1, 3], np.float32)),
    "one": (np.array([3.0], np.float32), np.array([2.0], np.float32)),
    "complex": (np.array([1 + 2j, 2, 3j], np.complex64), np.array([2.0, 1j], np.complex64)),
    "two dtypes": (np.array([1, 2, 3]), np.array([0.5, 1, 2], np.float16)),
}


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("pair", PAIRS)
def test_values_are_those_of_numpy(name: str, mode: str, pair: str) -> None:
    a, v = PAIRS[pair]
    expected = getattr(np, name)(a, v, mode)
    f = getattr(jnp, name)
    for found in (f(a, v, mode), hloom.jit(lambda a, v: f(a, v, mode=mode))(a, v)):
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_dtypes() -> None:
    """As in JAX, integers become floats."""
    ones = np.ones(2, np.int32)
    assert jnp.convolve(ones, ones).dtype == "float32"
    assert jnp.convolve(ones == 1, ones == 1).dtype == "float32"
    exact = jnp.convolve(ones, ones, preferred_element_type="int32")
    assert exact.dtype == "int32" and exact.tolist() == [1, 2, 1]
    assert jnp.correlate(np.ones(2, np.float16), ones).dtype == "float16"


def test_defaults_batches_and_derivatives() -> None:
    a, v = PAIRS["longer"]
    assert jnp.convolve(a, v).shape == (7,) and jnp.correlate(a, v).shape == (3,)
    rows, kernels = np.stack([a, a * 2]), np.stack([v, v + 1])
    for axes, expected in [
        ((0, None), [np.convolve(r, v) for r in rows]),
        ((None, 0), [np.convolve(a, k) for k in kernels]),
        ((0, 0), [np.convolve(r, k) for r, k in zip(rows, kernels, strict=True)]),
    ]:
        args = [x if axis == 0 else x[0] for x, axis in zip((rows, kernels), axes, strict=True)]
        np.testing.assert_allclose(hloom.vmap(jnp.convolve, axes)(*args), np.stack(expected), rtol=1e-6)
    check_grads(jnp.convolve, (a, v), order=2)
    check_grads(jnp.correlate, (a, v), order=2)


@pytest.mark.parametrize(
    ("a", "v", "mode", "error", "message"),
    [
        (np.ones((2, 2)), np.ones(2), "full", OperandError, "both must have one dimension"),
        (np.ones(0), np.ones(2), "full", OperandError, "and elements"),
        (2.0, 3.0, "full", ValueError, "one dimension"),
        (np.ones(2), np.ones(2), "most", ValueError, "mode must be one of"),
        ([1, 2], np.ones(2), "full", TypeError, "list at position 0"),
    ],
)
def test_errors(a: Any, v: Any, mode: str, error: type[Exception], message: str) -> None:
    for f in (jnp.convolve, jnp.correlate):
        with pytest.raises(error, match=message):
            f(a, v, mode)
