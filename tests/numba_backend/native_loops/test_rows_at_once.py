"""Tables that are filled row by row: which loops run several rows at once and in place, and that all are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.machine import target_machine

import hloom
import hloom.numpy as jnp
from hloom import lax

Array = np.ndarray[Any, Any]
SIZES = ((20, 66), (21, 65), (22, 81), (23, 70), (22, 33), (3, 70), (20, 1), (32, 65), (55, 99))
"""Numbers of rows and columns: with rows that are left over, too few to run at once, and enough for vectors."""


def nested(row: Callable[..., Any], start: Any, xs: Any) -> Any:
    return lax.scan(row, start, xs)[0]


def distance(a: Any, b: Any) -> Any:
    """Reads the element above, which it then replaces; the corner is a variable."""

    def row(above: Any, at: Any) -> Any:
        letter, start = at

        def element(state: Any, at: Any) -> Any:
            left, corner = state
            up, other = at
            best = jnp.minimum(jnp.minimum(left, up) + 1, corner + (letter != other))
            return (best, up), best

        _, rest = lax.scan(element, (start, above[0]), (above[1:], b))
        return jnp.concatenate([start[None], rest]), None

    return nested(row, jnp.arange(b.shape[0] + 1), (a, jnp.arange(1, a.shape[0] + 1)))


def distance_by_hand(a: Array, b: Array) -> Array:
    row = np.arange(len(b) + 1, dtype=np.int32)
    for i, letter in enumerate(a):
        above = row.copy()
        row[0] = i + 1
        for j, other in enumerate(b):
            row[j + 1] = min(min(row[j], above[j + 1]) + 1, above[j] + (letter != other))
    return row


def warping(a: Any, b: Any) -> Any:
    """The same in floating point, with bytes beside it, and a comparison that chooses."""

    def row(above: Any, letter: Any) -> Any:
        def element(state: Any, at: Any) -> Any:
            left, corner = state
            up, other, skips = at
            best = jnp.abs(letter - other) + jnp.minimum(jnp.minimum(left, up), corner)
            best = jnp.where(skips == 2, up, best)
            return (best, up), best

        end = jnp.float32(jnp.inf)
        return lax.scan(element, (end, end), (above, b, (b * 2).astype(jnp.uint8)))[1], None

    return nested(row, jnp.where(jnp.arange(b.shape[0]) > 3, jnp.inf, 0).astype(jnp.float32), a)


def warping_by_hand(a: Array, b: Array) -> Array:
    row = np.where(np.arange(len(b)) > 3, np.float32(np.inf), np.float32(0))
    for letter in a:
        left = corner = np.float32(np.inf)
        for j, other in enumerate(b):
            up = row[j]
            left = np.abs(letter - other) + np.minimum(np.minimum(left, up), corner)
            if other * 2 == 2:
                left = up
            corner, row[j] = up, left
    return row


def corners(a: Any, b: Any) -> Any:
    """The corner is loaded, after the element left of it was stored: not in place."""

    def row(above: Any, letter: Any) -> Any:
        def element(left: Any, at: Any) -> Any:
            up, corner, other = at
            best = jnp.maximum(left, up) + corner * (letter == other)
            return best, best

        _, rest = lax.scan(element, letter, (above[1:], above[:-1], b))
        return jnp.concatenate([letter[None], rest]), None

    return nested(row, jnp.arange(b.shape[0] + 1), a)


def corners_by_hand(a: Array, b: Array) -> Array:
    row = np.arange(len(b) + 1, dtype=np.int32)
    for letter in a:
        above = row.copy()
        row[0] = letter
        for j, other in enumerate(b):
            row[j + 1] = max(row[j], above[j + 1]) + above[j] * (letter == other)
    return row


def table(rule: Callable[..., Any], from_right: int = 1) -> Callable[..., Any]:
    """A table with `rule` of the elements left, above, in the corner and (`from_right` columns) to the right above."""

    def f(a: Any, b: Any) -> Any:
        rows, columns = a.shape[0], b.shape[0]
        start = jnp.zeros((rows + 1, columns + 2), a.dtype)

        def element(i: Any, j: Any, t: Any) -> Any:
            above = t[i - 1, j + 1] if from_right else t[i - 1, j]
            return t.at[i, j].set(rule(t[i, j - 1], t[i - 1, j], t[i - 1, j - 1], above, a[i - 1], b[j - 1]))

        def row(i: Any, t: Any) -> Any:
            return lax.fori_loop(1, columns + 1, lambda j, t: element(i, j, t), t)

        return lax.fori_loop(1, rows + 1, row, start)

    return f


def table_by_hand(rule: Callable[..., Any], from_right: int = 1) -> Callable[..., Array]:
    def f(a: Array, b: Array) -> Array:
        t = np.zeros((len(a) + 1, len(b) + 2), a.dtype)
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                above = t[i - 1, j + 1] if from_right else t[i - 1, j]
                t[i, j] = rule(t[i, j - 1], t[i - 1, j], t[i - 1, j - 1], above, a[i - 1], b[j - 1])
        return t

    return f


def mixed(left: Any, up: Any, corner: Any, right: Any, x: Any, y: Any) -> Any:
    return (left * type(left)(3) if isinstance(left, np.generic) else left * 3) + up - corner + x * y


def with_right(left: Any, up: Any, corner: Any, right: Any, x: Any, y: Any) -> Any:
    return left - up + right + x - y


def sweeps(u: Any, f: Any) -> Any:
    """Gauss-Seidel: also the elements below and to the right, before they are replaced."""
    rows, columns = u.shape

    def element(i: Any, j: Any, u: Any) -> Any:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        return u.at[i, j].set(0.25 * (around - f[i, j]))

    def sweep(_: Any, u: Any) -> Any:
        return lax.fori_loop(
            1, rows - 1, lambda i, u: lax.fori_loop(1, columns - 1, lambda j, u: element(i, j, u), u), u
        )

    return lax.fori_loop(0, 2, sweep, u)


def sweeps_by_hand(u: Array, f: Array) -> Array:
    u = u.copy()
    for _ in range(2):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                u[i, j] = np.float32(0.25) * (around - f[i, j])
    return u


def total_over_rows(a: Any, b: Any) -> Any:
    """A variable goes from row to row."""

    def row(i: Any, state: Any) -> Any:
        def element(j: Any, state: Any) -> Any:
            total, out = state
            total = total * 3 + a[i] * b[j]
            return total, out.at[j].set(total)

        return lax.fori_loop(0, b.shape[0], element, state)

    return lax.fori_loop(0, a.shape[0], row, (a[0], b))[1]


def total_by_hand(a: Array, b: Array) -> Array:
    total, out = a[0], b.copy()
    for i in range(len(a)):
        for j in range(len(b)):
            total = total * np.int32(3) + a[i] * b[j]
            out[j] = total
    return out


def letters(rng: np.random.Generator, rows: int, columns: int) -> list[Array]:
    return [rng.integers(0, 4, n).astype(np.int32) for n in (rows, columns)]


def numbers(rng: np.random.Generator, rows: int, columns: int) -> list[Array]:
    """Powers of two and what is not a number: no operation rounds, so that contraction changes nothing."""
    u = rng.integers(-64, 64, (rows + 2, columns + 2)).astype(np.float32) * np.float32(1024)
    u[rows // 2, columns // 2] = np.inf
    return [u, np.zeros_like(u)]


def lengths(rng: np.random.Generator, rows: int, columns: int) -> list[Array]:
    """Some numbers that are none, or infinite."""
    a, b = (np.float32(x) for x in letters(rng, rows, columns))
    a[rows // 2], a[-1] = np.nan, np.inf
    return [a, b]


CASES = {
    "warping": (warping, warping_by_hand, lengths, True, True),
    "distance": (distance, distance_by_hand, letters, True, True),
    "corners": (corners, corners_by_hand, letters, False, None),
    "table": (table(mixed, 0), table_by_hand(mixed, 0), letters, True, True),
    "right above": (table(with_right), table_by_hand(with_right), letters, False, True),
    "sweeps": (sweeps, sweeps_by_hand, numbers, True, True),
    "total": (total_over_rows, total_by_hand, letters, False, None),
}
"""Programs, by hand, arguments, whether rows run at once, and whether there is one array (None: not asked)."""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_rows_at_once(name: str, size: tuple[int, int]) -> None:
    program, by_hand, arguments, at_once, is_in_place = CASES[name]
    args = arguments(np.random.default_rng(7), *size)
    f = hloom.jit(program)
    with np.errstate(all="ignore"):
        want = by_hand(*args)
    np.testing.assert_array_equal(np.asarray(f(*args)), want)
    if size[0] < 8 or size[1] <= 64:
        return
    (text,) = [t for t in map(str, f.lower(*args).compile().kernels().values()) if "native_loop" in t]
    assert ("rest0" in text) == at_once
    if is_in_place:
        assert "w0" not in text
    lanes = target_machine().register_bytes // 4
    enough = lanes >= 8 and min(size) >= 2 * lanes
    assert ("[maximum(r - 1, 0)]" in text) == (enough and name in ("distance", "warping"))


def test_a_new_row_that_is_longer_than_the_old_one_is_a_row_of_its_own() -> None:
    """Its first elements are the old one's next; stored there, the others would be behind its end."""
    size = 70

    def f(x: Any, y: Any) -> Any:
        def step(t: Any, x: Any) -> Any:
            return lax.scan(lambda s, v: (s * 0.5 + v, s), x[size - 1] + y[t], y)[1][:size]

        return lax.fori_loop(0, 9, step, x)

    x, y = np.zeros(size, np.float32), np.arange(size + 20, dtype=np.float32)
    expected = x
    for t in range(9):
        row = [expected[-1] + y[t]]
        for v in y[: size - 1]:
            row.append(row[-1] * np.float32(0.5) + v)
        expected = np.array(row, np.float32)
    compiled = hloom.jit(f).lower(x, y).compile()
    np.testing.assert_array_equal(compiled(x, y), expected)
    (text,) = [t for t in map(str, compiled.kernels().values()) if "native_loop" in t]
    assert "io0[i] = w0[i]" in text
