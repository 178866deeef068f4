"""Sums of masked elements in native loops go over what the mask lets through, and give what a sum over all gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.masks import within_masks
from hloom.numba_backend.loops.printer import lines_of, to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import LoopProgram

import hloom
import hloom.numpy as jnp
from hloom import lax

N = 90
INDEX = np.arange(N)
X = np.random.default_rng(0).uniform(-1, 1, N).astype(np.float32)

MASKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "before": lambda k, xp, index: index < k,
    "up to": lambda k, xp, index: index <= k,
    "after": lambda k, xp, index: index > k,
    "from, mirrored": lambda k, xp, index: k <= index,
    "between": lambda k, xp, index: (index > k - 70) & (index < k),
    "beyond both ends": lambda k, xp, index: (index > k - 200) & (index < k + 10),
    "little": lambda k, xp, index: index < k - 100,
    "with another test": lambda k, xp, index: (index < k) & (index % 2 == 0),
    "only another test": lambda k, xp, index: index % 3 == 1,
}
STARTS = range(-5, N + 20, 5)


def program(mask: Callable[[Any, Any, Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            k, total = carry
            found = jnp.sum(jnp.where(mask(k, jnp, jnp.arange(N)), x * x + total * 0, 0))
            return (k + 5, found), found

        return lax.scan(step, (-5, jnp.float32(0)), None, length=len(STARTS))[1]

    return f


@pytest.mark.parametrize("name", MASKS)
def test_masked_sums(name: str) -> None:
    compiled = hloom.jit(program(MASKS[name])).lower(X).compile()
    expected = [np.where(MASKS[name](k, np, INDEX), X * X, 0).sum(dtype=np.float64) for k in STARTS]
    np.testing.assert_allclose(compiled(X), expected, rtol=1e-5, atol=1e-6)
    (text,) = [text for text in compiled.kernels().values() if "native_loop" in text]
    assert ("minimum(" in text or "maximum(" in text) == (name != "only another test"), text
    assert ("select(" in text) == ("another" in name), text


def test_what_is_masked_may_be_anything() -> None:
    """Elements that the mask hides take no part, even NaN and infinities."""
    x = X.copy()
    x[40:] = np.nan
    x[60:] = np.inf
    found = hloom.jit(program(MASKS["before"]))(x)
    expected = [np.where(k > INDEX, x * x, 0).sum() for k in STARTS]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("other", [1.0, -0.0, np.inf])
def test_other_numbers_than_zero_are_added(other: float) -> None:
    def f(x: Any) -> Any:
        def step(k: Any, _: Any) -> Any:
            return k + 1, jnp.sum(jnp.where(jnp.arange(N) < k, x, np.float32(other)))

        return lax.scan(step, 0, None, length=N)[1]

    expected = [np.where(k > INDEX, X, np.float32(other)).sum() for k in range(N)]
    np.testing.assert_allclose(hloom.jit(f)(X), expected, rtol=1e-4, atol=1e-5)


def test_integers_and_several_sums() -> None:
    def f(x: Any, y: Any) -> Any:
        def step(k: Any, _: Any) -> Any:
            mask = jnp.arange(N) < k
            return k + 1, (jnp.sum(jnp.where(mask, x, 0)), jnp.sum(jnp.where(mask, x * 2, 0)), jnp.sum(y * mask))

        return lax.scan(step, 0, None, length=N)[1]

    y = (X * 100).astype(np.int32)
    expected = [X[:k].sum() for k in range(N)], [2 * X[:k].sum() for k in range(N)], [y[:k].sum() for k in range(N)]
    for found, wanted in zip(hloom.jit(f)(X, y), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 7, 90])
@pytest.mark.parametrize("masked", ["both", "one vector twice", "one of two"])
def test_dot_products(masked: str, size: int) -> None:
    """Of two vectors under one mask; what the mask hides takes no part. A vector without a mask does, with its NaN, so
    that a short one is not cut."""
    x = X[:size].copy()
    y = X[::-1][:size].copy()
    x[size // 2 + 1 :] = np.nan
    y[size // 2 + 1 :] = np.nan if masked == "one of two" else np.inf

    def product(k: Any, x: Any, y: Any, xp: Any) -> Any:
        mask = xp.arange(size) < k
        left = xp.where(mask, x, np.float32(0))
        right = {"both": xp.where(mask, y, np.float32(0)), "one vector twice": left, "one of two": y}[masked]
        return xp.dot(left, right)

    def f(x: Any, y: Any) -> Any:
        return lax.scan(lambda k, _: (k + 1, product(k, x, y, jnp)), 0, None, length=size + 2)[1]

    compiled = hloom.jit(f).lower(x, y).compile()
    expected = [product(k, x, y, np) for k in range(size + 2)]
    np.testing.assert_allclose(compiled(x, y), expected, rtol=1e-5, atol=1e-6)
    (text,) = [text for text in compiled.kernels().values() if "native_loop" in text]
    assert size == 1 or ("minimum(" in text) == (masked != "one of two" or size == N), text


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", [name for name in MASKS if name != "only another test"])
def test_limits_that_are_no_limits(name: str, dtype: str) -> None:
    """The largest and the smallest integers have no neighbours on one side."""
    ends = np.iinfo(dtype)
    limits = np.array([ends.min, ends.min + 1, -1, 0, 1, N - 1, N, ends.max - 1, ends.max], dtype)
    with hloom.enable_x64(dtype == "int64"), np.errstate(over="ignore"):

        def f(x: Any, ks: Any) -> Any:
            def step(total: Any, k: Any) -> Any:
                found = jnp.sum(jnp.where(MASKS[name](k, jnp, jnp.arange(N, dtype=dtype)), x, 0))
                return total + found, found

            return lax.scan(step, jnp.float32(0), ks)[1]

        index = np.arange(N, dtype=dtype)
        expected = [np.where(MASKS[name](k, np, index), X, 0).sum(dtype=np.float64) for k in limits]
        np.testing.assert_allclose(hloom.jit(f)(X, limits), expected, rtol=1e-5, atol=1e-6)


EXTREMA = {
    "least": (jnp.min, np.inf, np.min),
    "largest": (jnp.max, -np.inf, np.max),
}


def extremum(which: str, mask: Callable[[Any, Any, Any], Any], other: Any) -> Callable[[Any], Any]:
    reduce, _, _ = EXTREMA[which]

    def f(x: Any) -> Any:
        def step(k: Any, _: Any) -> Any:
            found = reduce(jnp.where(mask(k, jnp, jnp.arange(N)), x, np.asarray(other, x.dtype)))
            return k + 5, found

        return lax.scan(step, -5, None, length=len(STARTS))[1]

    return f


@pytest.mark.parametrize("which", EXTREMA)
@pytest.mark.parametrize("name", MASKS)
def test_masked_extrema(name: str, which: str) -> None:
    """With NaN, -0 and infinities, of which the mask hides some."""
    x = X.copy()
    x[[3, 50]], x[20:22], x[80] = 0, -0.0, np.nan
    x[70] = EXTREMA[which][1]
    _, start, of = EXTREMA[which]
    compiled = hloom.jit(extremum(which, MASKS[name], start)).lower(x).compile()
    expected = np.array([of(np.where(MASKS[name](k, np, INDEX), x, np.float32(start))) for k in STARTS])
    np.testing.assert_array_equal(compiled(x), expected)
    (text,) = [text for text in compiled.kernels().values() if "native_loop" in text]
    loops = [line for line in text.splitlines() if "for i in range" in line]
    assert any("minimum(" in loop or "maximum(" in loop for loop in loops) == (name != "only another test"), text
    assert ("select(" in text) == (name == "with another test"), text  # the only other test is made before the loop


@pytest.mark.parametrize("which", EXTREMA)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16"])
def test_masked_extrema_of_other_types(which: str, dtype: str) -> None:
    x = np.random.default_rng(1).integers(0, 200, N).astype(dtype)
    ends = np.iinfo(dtype) if x.dtype.kind in "iu" else None
    start = {"least": ends.max, "largest": ends.min}[which] if ends else EXTREMA[which][1]
    mask = MASKS["between"]
    expected = [EXTREMA[which][2](np.where(mask(k, np, INDEX), x, np.array(start, dtype))) for k in STARTS]
    np.testing.assert_array_equal(hloom.jit(extremum(which, mask, start))(x), np.array(expected))


@pytest.mark.parametrize("which", EXTREMA)
@pytest.mark.parametrize("other", [0.25, -0.25, np.nan])
def test_hidden_elements_with_another_number_than_the_first_one_take_part(which: str, other: float) -> None:
    mask = MASKS["before"]
    expected = [EXTREMA[which][2](np.where(mask(k, np, INDEX), X, np.float32(other))) for k in STARTS]
    np.testing.assert_array_equal(hloom.jit(extremum(which, mask, other))(X), np.array(expected))


def test_an_extremum_and_a_sum_under_one_mask() -> None:
    def f(x: Any) -> Any:
        def step(k: Any, _: Any) -> Any:
            mask = jnp.arange(N) < k
            return k + 1, (jnp.sum(jnp.where(mask, x, 0)), jnp.max(jnp.where(mask, x, -jnp.inf)))

        return lax.scan(step, 0, None, length=N)[1]

    sums, largest = hloom.jit(f)(X)
    np.testing.assert_allclose(sums, [X[:k].sum() for k in range(N)], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(largest, [max(X[:k], default=-np.inf) for k in range(N)])


def test_a_sum_begins_where_it_was_last_assigned() -> None:
    body = """def kernel(lo, hi, out, x, c0, n0, k):
    acc0 = c0
    acc0, b = x[0], x[1]
    for i in range(n0):
        acc0 = reduce_add(acc0, select(i < k, x[i], c0))
    out[0] = acc0 + b
"""
    types = {"out": "float32*", "x": "float32*", "c0": "float32"} | dict.fromkeys(("lo", "hi", "n0", "k"), "int64")
    texts = body, body.replace("    acc0, b = x[0], x[1]", "    b = x[1]")
    unknown, known = (read(text, types).body for text in texts)
    found = ["\n".join(lines_of(within_masks(text, {"c0"}, {"c0"}))) for text in (unknown, known)]
    assert all("in range(minimum(n0, k))" in text for text in found)
    assert "reduce_add(acc0, c0 * float32(" in found[0] and "if" not in found[1]  # -0 + 0 is +0


@pytest.mark.parametrize("first", [2.0, -0.0, np.nan, np.inf])
@pytest.mark.parametrize("name", [name for name in MASKS if name != "only another test"])
def test_hidden_elements_that_are_equal_are_added_at_once(name: str, first: float) -> None:
    """As in a sparse matrix, whose rows are masked parts of one vector: 0 * x[0] is NaN where x[0] is not finite."""
    x, a = X.copy(), X[::-1].copy()
    x[0] = first
    columns = np.random.default_rng(1).integers(1, N, N).astype(np.int32)

    def row(k: Any, xp: Any) -> Any:
        mask = MASKS[name](k, xp, xp.arange(N))
        return xp.sum(xp.where(mask, a, np.float32(0)) * xp.asarray(x)[xp.where(mask, columns, 0)], dtype=np.float32)

    def f(start: Any) -> Any:
        return lax.scan(lambda k, _: (k + 5, row(k, jnp)), start, None, length=len(STARTS))[1]

    compiled = hloom.jit(f).lower(-5).compile()
    with np.errstate(invalid="ignore"):
        expected = [row(k, np) for k in STARTS]
    np.testing.assert_allclose(compiled(-5), expected, rtol=1e-4, atol=1e-5)
    (text,) = [text for text in compiled.kernels().values() if "native_loop" in text]
    assert ("for i in range(n0):" in text) == ("another" in name), text


def test_hidden_elements_of_which_one_is_different_stay() -> None:
    """A value of the iteration before, and a hidden term that depends on the counter."""
    body = """def kernel(lo, hi, out, x, c0, c1, n0, k):
    acc0 = c0
    v = c1
    for i in range(n0):
        acc0 = reduce_add(acc0, select(i < k, x[i], c1) * v)
        v = x[i]
    acc1 = c0
    for i in range(n0):
        acc1 = reduce_add(acc1, select(i < k, x[i], c1) * x[n0 - i - 1])
    acc2 = c0
    for i in range(n0):
        acc2 = reduce_add(acc2, select(i < k, x[i], c1) * c1)
    out[0] = acc0 + acc1 + acc2
"""
    types = {"out": "float32*", "x": "float32*", "c0": "float32", "c1": "float32"}
    types |= dict.fromkeys(("lo", "hi", "n0", "k"), "int64")
    lines = lines_of(within_masks(read(body, types).body, {"c0"}, {"c0", "c1"}))
    loops = [line.strip() for line in lines if "for i" in line]
    assert loops == ["for i in range(n0):", "for i in range(n0):", "for i in range(minimum(n0, k)):"], lines
    assert "if n0 - maximum(minimum(n0, k), 0) > 0:" in "\n".join(lines)


@pytest.mark.parametrize("name", MASKS)
def test_masked_updates_go_over_what_changes(name: str) -> None:
    def step(k: Any, y: Any, x: Any, xp: Any) -> Any:
        mask = MASKS[name](k, xp, xp.arange(N))
        old = xp.where(mask, y, np.float32(0))
        return xp.where(mask, old * np.float32(0.5) + xp.where(mask, x, np.float32(0)) * k, y)

    def f(y: Any, x: Any) -> Any:
        def row(n: Any, y: Any) -> Any:
            return y.at[n % 2].set(step(5 * n - 5, y[n % 2], x, jnp))

        return lax.fori_loop(0, len(STARTS), row, y)

    y = np.stack([X, X[::-1]])
    y[0, 3:6], y[1, 60:63] = [-0.0, np.nan, np.inf], [np.nan, -0.0, -np.inf]
    compiled = hloom.jit(f).lower(y, X).compile()
    expected = y.copy()
    for n, k in enumerate(STARTS):
        expected[n % 2] = step(k, expected[n % 2], X, np)
    found = compiled(y, X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))
    (text,) = [text for text in compiled.kernels().values() if "native_loop" in text]
    assert ("minimum(" in text or "maximum(" in text) == (name != "only another test"), text
    assert ("select(" in text) == ("another" in name), text


def test_updates_that_store_something_else_go_over_all() -> None:
    body = """def kernel(lo, hi, out, y, x, n0, k):
    for i in range(n0):
        v0 = y[i]
        y[i] = select(i < k, x[i], v0)
    for i in range(n0):
        v1 = y[i + 1]
        y[i] = select(i < k, x[i], v1)
    v2 = y[0]
    for i in range(n0):
        y[i] = select(i < k, x[i], v2)
        v2 = y[i]
    for i in range(n0):
        v3 = y[i]
        y[i] = select(i < k, x[i], v3)
        out[i] = v3
"""
    types = {"out": "float32*", "x": "float32*", "y": "float32*"} | dict.fromkeys(("lo", "hi", "n0", "k"), "int64")
    lines = lines_of(within_masks(read(body, types).body, {"c0"}, {"c0"}))
    loops = [line.strip() for line in lines if "for i" in line]
    assert loops == ["for i in range(minimum(n0, k)):"] + ["for i in range(n0):"] * 3


@pytest.mark.parametrize("between", [True, False])
def test_a_short_part_of_a_long_row(between: bool) -> None:
    """Such as a row of a sparse matrix: the loop is one kernel, however many elements the mask hides."""
    count, rows = 1 << 17, 40
    random = np.random.default_rng(3)
    starts = np.sort(random.integers(0, count, rows + 1)).astype(np.int32)
    values, x = random.random(count), random.random(1000)
    columns = random.integers(0, 1000, count).astype(np.int32)

    def product(starts: Any, columns: Any, values: Any, x: Any) -> Any:
        index = jnp.arange(count)

        def row(i: Any, y: Any) -> Any:
            mask = (index >= starts[i]) & (index < starts[i + 1]) if between else index >= starts[i]
            return y.at[i].set(jnp.where(mask, values, 0) @ x[jnp.where(mask, columns, 0)])

        return lax.fori_loop(0, rows, row, jnp.empty(rows, values.dtype))

    with hloom.enable_x64(True):
        compiled = hloom.jit(product).lower(starts, columns, values, x).compile()
        found = [str(text) for text in compiled.kernels().values() if "native_loop" in text]
        assert bool(found) == between and all("& 4095), minimum(n0" in text for text in found)
        terms = values * x[columns]
        stops = starts[1:] if between else [count] * rows
        expected = [terms[i:j].sum() for i, j in zip(starts, stops)]
        np.testing.assert_allclose(compiled(starts, columns, values, x), expected, rtol=1e-12)


BLOCKS = """def kernel(lo, hi, out, x, y, c0, c1, n0, a, b):
    acc0 = c0
    total0 = float64(acc0)
    acc0 = c1
    for start in range(0, n0, 8):
        for i in range(start, minimum(start + 8, n0)):
            acc0 = reduce_add(acc0, TERM)
        total0 = reduce_add(total0, float64(acc0))
        acc0 = c1
    out[0] = float32(total0)
"""
BLOCK_TYPES = {"out": "float32*", "x": "float32*", "y": "float32*", "c0": "float32", "c1": "float32"}
BLOCK_TYPES |= dict.fromkeys(("lo", "hi", "n0", "a", "b"), "int64")
TERMS = {
    "nothing is hidden": "select((i >= a) & (i < b), x[i], c0)",
    "below": "select(i < b, x[i], c0)",
    "above": "select(i > a, x[i], c0)",
    "hidden terms": "select((i >= a) & (i < b), x[i], c0) * y[select((i >= a) & (i < b), i, 0)]",
    "hidden numbers": "select((i >= a) & (i <= b), x[i], y[0])",
}


def in_blocks(text: str, neutral: set[str]) -> str:
    program = read(text, BLOCK_TYPES)
    block = within_masks(program.body, {"c0"}, {"c0", "c1"}, neutral)
    return to_text(LoopProgram("kernel", program.parameters, block))


@pytest.mark.parametrize("name", TERMS)
def test_blocks_in_which_all_is_hidden_are_left_out(name: str) -> None:
    """Whatever the ends of the mask are, the result is the same."""
    text = BLOCKS.replace("TERM", TERMS[name])
    new = in_blocks(text, {"c0", "c1"})
    (blocks,) = [line for line in new.splitlines() if "for start in" in line]
    assert ("& 7)" in blocks) == ("i >= a" in text or "i > a" in text)
    assert ("minimum(n0" in blocks) == ("i <" in text)
    scope: dict[str, Any] = {
        "float32": np.float32, "float64": np.float64, "minimum": min, "maximum": max,
        "reduce_add": lambda a, b: a + b, "select": lambda test, a, b: a if test else b,
    }  # fmt: skip
    functions = []
    for source in (text, new):
        exec(source, scope)
        functions.append(scope["kernel"])
    random = np.random.default_rng(0)
    for n0 in (0, 1, 7, 8, 9, 40):
        x, y = (random.integers(1, 9, n0 + 1).astype(np.float32) for _ in range(2))
        if n0 % 2:
            y[0] = np.nan
        for a in (-9, 0, 3, 8, 15, 16, 39, 40, 41, 99):
            for b in (-9, 0, 1, 7, 8, 9, 33, 40, 99):
                results = []
                for f in functions:
                    out = np.zeros(1, np.float32)
                    f(0, 1, out, x, y, np.float32(0), np.float32(-0.0), n0, a, b)
                    results.append(out[0])
                np.testing.assert_array_equal(*results)


def test_blocks_that_begin_with_a_number_are_all_there() -> None:
    text = BLOCKS.replace("TERM", TERMS["nothing is hidden"])
    assert "for start in range(0, n0, 8):" in in_blocks(text, {"c0"})
    other = text.replace("    acc0 = c1\n    for", "    acc0 = c0\n    for")
    assert "for start in range(0, n0, 8):" in in_blocks(other, {"c0", "c1"})
