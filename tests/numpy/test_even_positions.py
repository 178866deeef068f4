"""Positions among evenly spaced elements are found by distances, and are those of a binary search, on any line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.numpy import sorting

ELEMENTS, POINTS = 33, 400


def _lines(dtype: Any, random: np.random.Generator) -> list[np.ndarray]:
    """Even ones, even but for rounding, uneven ones, and such as no search expects."""
    k = np.arange(ELEMENTS)
    found = [k, k - 16, 2.0 ** random.integers(-30, 30) * k, np.linspace(-1, 1, ELEMENTS) ** 3, k * 0 + 1, -k]
    for _ in range(20):
        low, size = random.normal() * 10.0 ** random.integers(-3, 9), 10.0 ** random.integers(-5, 5)
        found += [np.linspace(low, low + size, ELEMENTS), np.sort(low + size * random.random(ELEMENTS))]
        found += [found[-2] + random.choice([0.05, 0.12, 0.13, 0.3, 0.7]) * size / 32 * random.uniform(-1, 1, ELEMENTS)]
        found[-1].sort()
    tiny = float(np.finfo(dtype).smallest_subnormal)
    found += [k * tiny, k * 1e-320 if dtype is np.float64 else k * 1e-44, np.where(k == 7, np.nan, k)]
    found += [np.where(k == 32, np.inf, k), np.where(k == 0, -np.inf, k), (k - 16) * (float(np.finfo(dtype).max) / 16)]
    with np.errstate(over="ignore"):
        return [line.astype(dtype) for line in found]


def _points(line: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Elements, their neighbours in the dtype, points between them and around them, and special values."""
    around = [line, np.nextafter(line, -np.inf), np.nextafter(line, np.inf), line + 0.5, line * 1.01, -line]
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30], line.dtype)
    low, high = (np.nan_to_num(float(line[k]), posinf=9, neginf=-9) for k in (0, -1))
    t = random.random(POINTS)
    inside = low * (1 - t) + high * t
    return np.concatenate([*around, special, inside.astype(line.dtype)])[:POINTS].astype(line.dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_are_those_of_a_search(dtype: Any, side: str) -> None:
    random = np.random.default_rng(5)
    with hloom.enable_x64(True):
        find = hloom.jit(lambda line, points: jnp.searchsorted(line, points, side))
        is_even = hloom.jit(sorting._is_even)
        evens = 0
        for line in _lines(dtype, random):
            points = _points(line, random)
            expected = [jnp.searchsorted(line, part, side) for part in np.split(points, POINTS // 50)]  # too few
            np.testing.assert_array_equal(find(line, points), np.concatenate(expected))
            evens += bool(is_even(line))
    assert evens > 20


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("limits", [None, (-1.0, 1.0), (2.0, -2.0), (1e9, 1e9 + 1)])
def test_histograms_count_each_number_once(limits: Any) -> None:
    x = np.random.default_rng(1).normal(size=900).astype(np.float32)
    x[:6] = -1, 1, 0, -0.0, x.min(), x.max()
    edges = np.asarray(jnp.histogram_bin_edges(x, 20, limits))
    np.testing.assert_array_equal(jnp.histogram(x, 20, limits)[0], _counted(x, edges))


def _counted(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    places = np.concatenate([np.asarray(jnp.searchsorted(edges, part, "right")) for part in np.split(x, 18)])
    places[x == edges[-1]] = len(edges) - 1
    return np.bincount(places, minlength=len(edges) + 1)[1:-1]


def test_an_even_line_is_read_once() -> None:
    x = np.zeros(1000, np.float32)
    find = hloom.jit(lambda x: jnp.histogram(x, 20, weights=x)[0] + jnp.histogram(x, 20)[0])
    text = find.lower(x).compile().as_text()
    assert text.count(" conditional(") == 1  # both histograms use the places that one finds
    branches = [c for c in text.split("\n\n") if "s32[1000]" in c and "gather(" in c]
    assert min(c.count(" gather(") for c in branches) == 1


def test_vectors_of_lines() -> None:
    lines = np.stack([np.linspace(0, 1, 20), np.linspace(0, 1, 20) ** 2]).astype(np.float32)
    x = np.random.default_rng(2).random((2, 200)).astype(np.float32)
    found = hloom.vmap(jnp.searchsorted)(lines, x)
    np.testing.assert_array_equal(found, np.stack([np.searchsorted(*pair) for pair in zip(lines, x, strict=True)]))
