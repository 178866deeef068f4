"""`hloom.numpy.pad` in all modes, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp

X = np.arange(6.0, dtype=np.float32).reshape(2, 3) ** 2 - 3
CASES: list[Any] = [(X, ((0, 1), (5, 7))), (X.astype(np.int32)[:, :1], (2, 0))]
MODES: list[tuple[str, dict[str, Any]]] = [
    ("constant", {"constant_values": ((1, 2), (3, 4))}),
    ("edge", {}),
    ("linear_ramp", {"end_values": (2, -3)}),
    ("maximum", {}),
    ("mean", {"stat_length": ((1, 2),)}),
    ("median", {}),
    ("minimum", {"stat_length": 2}),
    ("reflect", {}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {}),
    ("symmetric", {"reflect_type": "odd"}),
    ("wrap", {}),
]


@pytest.mark.parametrize("mode, options", MODES)
def test_modes(mode: str, options: dict[str, Any]) -> None:
    for array, widths in CASES:
        wanted = np.pad(array, widths, mode, **options)  # type: ignore[call-overload]
        with hloom.numpy_dtype_promotion("strict"), hloom.numpy_rank_promotion("raise"):
            found = jnp.pad(jnp.asarray(array), widths, mode, **options)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["edge", "linear_ramp", "maximum", "mean", "reflect", "symmetric", "wrap", "empty"])
def test_weak_type(mode: str) -> None:
    assert jnp.pad(jnp.asarray(1.0)[None], 1, mode).weak_type


def test_function() -> None:
    def framed(vector: Any, widths: tuple[int, int], axis: int, options: dict[str, Any]) -> Any:
        return vector.at[: widths[0]].set(options["value"] + axis)

    found = jnp.pad(jnp.ones((1, 2), np.int32), 1, framed, value=5)
    assert found.tolist() == [[6, 5, 5, 5], [6, 1, 1, 0], [6, 0, 0, 0]]


def test_derivative() -> None:
    slope = hloom.grad(lambda x: (jnp.pad(x, 2, "reflect") * jnp.arange(7.0)).sum())(jnp.arange(3.0))
    assert slope.tolist() == [2.0 + 6.0, 1.0 + 3.0 + 5.0, 0.0 + 4.0]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: jnp.pad(X, 1, "wrap", reflect_type="odd"), ValueError, "keyword arguments for mode 'wrap'"),
        (lambda: jnp.pad(X, 1, None), NotImplementedError, "Unimplemented padding mode 'None'"),
        (lambda: jnp.pad(X, 1.5), TypeError, "widths must be integers"),
        (lambda: jnp.pad(X, (1, 2, 3)), ValueError, r"of shape \(3,\) does not fit 2 axes"),
        (lambda: jnp.pad(X, -1), ValueError, "must not be negative"),
        (lambda: jnp.pad(X[:0], 1, "edge"), ValueError, "axis 0 is empty"),
        (lambda: jnp.pad(X, 1, "mean", stat_length=0), ValueError, "stat_length of 0"),
        (lambda: jnp.pad(X, 1, "reflect", reflect_type="both"), ValueError, "reflect_type must be"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
