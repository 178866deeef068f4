"""hloom.ops and hloom.image against NumPy's loops, recorded numbers of JAX, and JAX itself where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import image, ops

RNG = np.random.default_rng(0)
IDS = np.array([0, 2, 2, -1, 5, 1, 0, 9], np.int32)
REDUCE: dict[str, Callable[..., Any]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
DATA = {
    "f32[8]": RNG.normal(size=8).astype(np.float32),
    "f32[8,3]": RNG.normal(size=(8, 3)).astype(np.float32),
    "s32[8]": np.arange(1, 9, dtype=np.int32),
    "u8[8]": np.arange(1, 9, dtype=np.uint8),
}


def identity(name: str, dtype: np.dtype[Any]) -> Any:
    if name in ("sum", "prod"):
        return int(name == "prod")
    if dtype.kind == "f":
        return -np.inf if name == "max" else np.inf
    return np.iinfo(dtype).min if name == "max" else np.iinfo(dtype).max


@pytest.mark.one_in(2)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", REDUCE)
def test_segments(name: str, data: str) -> None:
    x, function = DATA[data], getattr(ops, f"segment_{name}")
    for count, options in ((6, {}), (4, {}), (6, {"bucket_size": 3}), (None, {}), (12, {"mode": "drop"})):
        found = np.asarray(function(x, IDS, count, **options))
        rows = [x[k == IDS] for k in range(10 if count is None else count)]
        empty = np.full(x.shape[1:], identity(name, x.dtype), x.dtype)
        expected = np.stack([REDUCE[name](r, axis=0) if len(r) else empty for r in rows]).astype(x.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert found.dtype == x.dtype
    inside = hloom.jit(lambda d, i: function(d, i, num_segments=6))(x, IDS)
    np.testing.assert_allclose(np.asarray(inside), np.asarray(function(x, IDS, 6)), rtol=1e-6)


def test_modes_and_derivatives_of_segments() -> None:
    x = DATA["f32[8]"]
    clipped = np.asarray(ops.segment_sum(x, IDS, 6, mode="clip"))
    np.testing.assert_allclose(clipped[0], x[[0, 3, 6]].sum(), rtol=1e-6)
    np.testing.assert_allclose(clipped[5], x[[4, 7]].sum(), rtol=1e-6)
    weights = np.arange(6, dtype=np.float32)
    gradient = hloom.grad(lambda d: (ops.segment_sum(d, IDS, 6) * weights).sum())(x)
    assert np.asarray(gradient).tolist() == [0, 2, 2, 0, 5, 1, 0, 0]
    batched = hloom.vmap(lambda d: ops.segment_max(d, IDS, 6))(np.stack([x, -x]))
    np.testing.assert_array_equal(np.asarray(batched)[1], np.asarray(ops.segment_max(-x, IDS, 6)))


PIXELS = np.array([[1.0, 2, 4, 8], [3, 1, 0, 5], [2, 2, 9, 1]], np.float32)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", list(image.ResizeMethod))
@pytest.mark.parametrize("shape", [(5, 2), (2, 9), (3, 4), (6, 4)], ids=str)
def test_a_constant_image_stays_constant(method: image.ResizeMethod, shape: tuple[int, int]) -> None:
    for antialias in (True, False):
        found = image.resize(np.full((3, 4), 2.5, np.float32), shape, method, antialias)
        np.testing.assert_allclose(np.asarray(found), np.full(shape, 2.5), rtol=1e-5)


def test_images() -> None:
    nearest = image.resize(PIXELS, (5, 2), "nearest")
    assert np.asarray(nearest).tolist() == [[2, 8], [2, 8], [1, 5], [2, 1], [2, 1]]
    doubled = np.asarray(image.resize(np.array([1.0, 3.0], np.float32), (4,), "linear"))
    np.testing.assert_allclose(doubled, [1, 1.5, 2.5, 3])
    halved = np.asarray(image.resize(np.arange(8, dtype=np.float32), (4,), "area"))
    np.testing.assert_allclose(halved, [0.5, 2.5, 4.5, 6.5])
    moved = image.scale_and_translate(PIXELS, (3, 4), (0, 1), np.ones(2, np.float32), np.float32([1, 0]), "linear")
    np.testing.assert_allclose(np.asarray(moved), np.concatenate([np.zeros((1, 4)), PIXELS[:2]]), atol=1e-6)
    assert image.resize(np.arange(6).reshape(2, 3), (4, 3), "linear").dtype == np.float32


@pytest.mark.slow
def test_images_are_those_of_jax() -> None:
    of_jax = pytest.importorskip("jax.image")
    x = RNG.normal(size=(5, 7, 3)).astype(np.float32)
    scale, move = np.float32([1.3, 0.7]), np.float32([0.5, -0.2])

    def both(m: Any, method: str, antialias: bool) -> list[Any]:
        resized = m.resize(x, (9, 4, 3), method, antialias)
        return [resized, m.scale_and_translate(x, (6, 6, 3), (0, 1), scale, move, method, antialias)]

    for method in ("linear", "lanczos3", "lanczos5", "cubic", "cubic-pytorch", "area"):
        for antialias in (True, False):
            for found, expected in zip(both(image, method, antialias), both(of_jax, method, antialias)):
                np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-5, atol=2e-5)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "traced ids": (lambda: hloom.jit(lambda i: ops.segment_sum(DATA["f32[8]"], i))(IDS), TypeError, "num_segments"),
    "floats as ids": (lambda: ops.segment_sum(jnp.ones(2), jnp.ones(2), 2), TypeError, "must be integers"),
    "too few ids": (lambda: ops.segment_sum(jnp.ones(3), IDS, 2), ValueError, "one for each row"),
    "a negative number": (lambda: ops.segment_sum(jnp.ones(8), IDS, -1), ValueError, "non-negative"),
    "unknown method": (lambda: image.resize(PIXELS, (2, 2), "sinc"), ValueError, "Unknown resize method"),
    "rank": (lambda: image.resize(PIXELS, (2,), "linear"), ValueError, "number of dimensions"),
    "nearest": (
        lambda: image.scale_and_translate(PIXELS, (2, 2), (0,), jnp.ones(1), jnp.ones(1), "nearest"),
        ValueError, "NEAREST",
    ),
    "scales": (
        lambda: image.scale_and_translate(PIXELS, (2, 2), (0,), jnp.ones(2), jnp.ones(1), "linear"),
        ValueError, "an element for each",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
