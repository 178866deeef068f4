"""Indices of every integer type into dimensions that are longer than the type holds: their value counts, not the type.

Each way of indexing is told in Python's integers by `Way.expected`. It runs outside of jit, under jit, batched, and in
a loop. Unsigned indices beyond 2**31, and 64-bit ones beyond 2**63, are large, and none is negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

SIZES = {1: 300, 2: 70_000, 4: 300, 8: 300}
"""By bytes of the index: a dimension that the narrow types do not hold."""
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
CANDIDATES = (
    *(0, 1, 5, 127, 128, 200, 299, 300, -1, -3, -128, -129, -300, -301, 2**15 - 1, -(2**15), 2**16 - 1),
    *(2**31 - 1, 2**31, 2**31 + 5, 2**32 - 1, -(2**31), 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 300, -(2**63)),
)


def values_of(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    return sorted({v for v in CANDIDATES if info.min <= v <= info.max})


def from_end(i: int, size: int) -> int:
    return i + size if i < 0 else i


def clipped(i: int, size: int) -> int:
    return min(max(i, 0), size - 1)


@dataclass(frozen=True)
class Way:
    """A way to index: `call(x, i)` with a scalar index, and its result in NumPy, by an integer of Python."""

    call: Callable[[Any, Any], Any]
    expected: Callable[[Any, int], Any]
    arrays: Callable[[Any, Any], Any] | None = None
    """The same with a vector of indices."""


def read(place: Callable[[int, int], int], count: int | None = None) -> Callable[[Any, int], Any]:
    """Reads an element, or `count` of them; NaN out of bounds."""

    def expected(x: Any, i: int) -> Any:
        p, size = place(i, len(x)), len(x)
        if count is not None:
            p = min(max(p, 0), size - count)
            return x[p : p + count]
        return x[p] if 0 <= p < size else np.float32(np.nan)

    return expected


def write(place: Callable[[int, int], int], new: float, old: float = 0.0) -> Callable[[Any, int], Any]:
    """x with an element that becomes old * element + new; as it is out of bounds."""

    def expected(x: Any, i: int) -> Any:
        p, changed = place(i, len(x)), x.copy()
        if 0 <= p < len(x):
            changed[p] = old * changed[p] + new
        return changed

    return expected


def clip_from_end(i: int, size: int) -> int:
    return clipped(from_end(i, size), size)


def same(i: int, size: int) -> int:
    return i


def wrapped(i: int, size: int) -> int:
    return i % size


ONE = lax.GatherDimensionNumbers((), (0,), (0,))
INTO = lax.ScatterDimensionNumbers((), (0,), (0,))
PLACES = {"clip": clip_from_end, "fill": from_end, "drop": from_end, "promise_in_bounds": clip_from_end}
WRITES = {**PLACES, "promise_in_bounds": from_end}
UNWRAPPED = {"clip": clipped, "fill": same, "drop": same, "promise_in_bounds": clipped}


def both(f: Callable[[Any, Any], Any], expected: Callable[[Any, int], Any]) -> Way:
    return Way(f, expected, f)


WAYS: dict[str, Way] = {
    "x[i]": both(lambda x, i: x[i], read(clip_from_end)),
    "x[i, None]": Way(lambda x, i: x[i, None], lambda x, i: read(clip_from_end)(x, i)[None]),
    "x[:, i]": Way(lambda x, i: jnp.stack([x, x])[:, i], lambda x, i: np.stack([read(clip_from_end)(x, i)] * 2)),
    "x[1, i]": Way(lambda x, i: jnp.stack([x, -x])[1, i], lambda x, i: -read(clip_from_end)(x, i)),
    "x[[i]]": Way(lambda x, i: x[jnp.stack([i, i])], lambda x, i: np.stack([read(clip_from_end)(x, i)] * 2)),
    "x[ds(i, 3)]": Way(lambda x, i: x[hloom.ds(i, 3)], read(from_end, 3)),
    **{
        f"get {m}": both(lambda x, i, m=m: x.at[i].get(mode=m), read(place)) for m, place in PLACES.items()
    },
    **{
        f"get {m}, unwrapped": both(
            lambda x, i, m=m: x.at[i].get(mode=m, wrap_negative_indices=False), read(place)
        )
        for m, place in UNWRAPPED.items()
    },
    **{f"set {m}": Way(lambda x, i, m=m: x.at[i].set(7, mode=m), write(p, 7)) for m, p in WRITES.items()},
    **{f"add {m}": Way(lambda x, i, m=m: x.at[i].add(7, mode=m), write(p, 7, 1)) for m, p in WRITES.items()},
    **{
        f"set [i] {m}": Way(lambda x, i, m=m: x.at[jnp.stack([i])].set(7, mode=m), write(p, 7))
        for m, p in WRITES.items()
    },
    "add, unwrapped": Way(lambda x, i: x.at[i].add(7, wrap_negative_indices=False), write(same, 7, 1)),
    "take": both(jnp.take, read(from_end)),
    "take clip": both(lambda x, i: jnp.take(x, i, mode="clip"), read(clipped)),
    "take wrap": both(lambda x, i: jnp.take(x, i, mode="wrap"), read(wrapped)),
    "take_along_axis": Way(
        lambda x, i: jnp.take_along_axis(x, i[None], 0)[0], read(from_end), lambda x, i: jnp.take_along_axis(x, i, 0)
    ),
    "take_along_axis clip": Way(lambda x, i: jnp.take_along_axis(x, i[None], 0, mode="clip")[0], read(clip_from_end)),
    "put": Way(lambda x, i: jnp.put(x, i, 7, inplace=False), write(from_end, 7)),
    "put clip": Way(lambda x, i: jnp.put(x, i, 7, mode="clip", inplace=False), write(clipped, 7)),
    "put wrap": Way(lambda x, i: jnp.put(x, i, 7, mode="wrap", inplace=False), write(wrapped, 7)),
    "put_along_axis": Way(lambda x, i: jnp.put_along_axis(x, i[None], 7, 0, inplace=False), write(from_end, 7)),
    "dynamic_slice": Way(lambda x, i: lax.dynamic_slice(x, (i,), (3,)), read(from_end, 3)),
    "dynamic_slice of a vector": Way(lambda x, i: lax.dynamic_slice(x, i[None], (3,)), read(from_end, 3)),
    "dynamic_slice, unwrapped": Way(
        lambda x, i: lax.dynamic_slice(x, (i,), (3,), allow_negative_indices=False), read(same, 3)
    ),
    "dynamic_index_in_dim": Way(lambda x, i: lax.dynamic_index_in_dim(x, i, 0, False), read(clip_from_end)),
    "dynamic_update_slice": Way(
        lambda x, i: lax.dynamic_update_slice(x, np.float32([7]), (i,)), write(clip_from_end, 7)
    ),
    "dynamic_update_index_in_dim": Way(
        lambda x, i: lax.dynamic_update_index_in_dim(x, np.float32(7), i, 0), write(clip_from_end, 7)
    ),
    "gather": Way(lambda x, i: lax.gather(x, i[None], ONE, (1,)), read(clipped)),
    "gather clip": Way(lambda x, i: lax.gather(x, i[None], ONE, (1,), mode="clip"), read(clipped)),
    "gather fill": Way(lambda x, i: lax.gather(x, i[None], ONE, (1,), mode="fill"), read(same)),
    "scatter": Way(lambda x, i: lax.scatter(x, i[None], np.float32(7), INTO), write(same, 7)),
    "scatter_add": Way(lambda x, i: lax.scatter_add(x, i[None], np.float32(7), INTO), write(same, 7, 1)),
    "scatter clip": Way(lambda x, i: lax.scatter(x, i[None], np.float32(7), INTO, mode="clip"), write(clipped, 7)),
    "index_take": Way(lambda x, i: lax.index_take(x, [i[None]], [0])[0], read(wrapped)),
    "segment_sum": Way(
        lambda x, i: hloom.ops.segment_sum(np.float32([7]), i[None], len(x)), lambda x, i: write(same, 7)(0 * x, i)
    ),
    "one_hot": Way(lambda x, i: hloom.nn.one_hot(i, len(x)), lambda x, i: write(same, 1)(0 * x, i)),
    "choose clip": Way(
        lambda x, i: jnp.choose(i, list(range(10, 210)), mode="clip"), lambda x, i: np.int32(10 + clipped(i, 200))
    ),
    "choose wrap": Way(
        lambda x, i: jnp.choose(i, list(range(10, 210)), mode="wrap"), lambda x, i: np.int32(10 + i % 200)
    ),
    "unravel_index": Way(
        lambda x, i: jnp.stack([k.astype(np.float32) for k in jnp.unravel_index(i, (2, 150))]),
        lambda x, i: np.float32(
            [1, 149] if i >= 300 else [0, 0] if i < -300 else np.unravel_index(from_end(i, 300), (2, 150))
        ),
    ),
    "ravel_multi_index clip": Way(
        lambda x, i: jnp.ravel_multi_index((i, i), (300, 200), mode="clip"),
        lambda x, i: np.int32(200 * clipped(i, 300) + clipped(i, 200)),
    ),
    "ravel_multi_index wrap": Way(
        lambda x, i: jnp.ravel_multi_index((i, i), (300, 200), mode="wrap"),
        lambda x, i: np.int32(200 * (i % 300) + i % 200),
    ),
    "roll": Way(lambda x, i: jnp.roll(x, i), lambda x, i: np.roll(x, i % len(x))),
    "a reference": Way(lambda x, i: hloom.new_ref(x)[i], read(clip_from_end)),
}  # fmt: skip


def inputs(dtype: str) -> tuple[Any, list[int], Any]:
    values = values_of(dtype)
    size = SIZES[np.dtype(dtype).itemsize]
    return np.arange(size, dtype=np.float32) + 1, values, np.array(values, dtype)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", WAYS)
def test_every_way(name: str, dtype: str) -> None:
    way = WAYS[name]
    x, values, indices = inputs(dtype)
    with hloom.enable_x64(dtype.endswith("64")):
        wanted = [way.expected(x, v) for v in values]
        array = jnp.asarray(x)
        jitted = hloom.jit(way.call)
        for v, expected in zip(values, wanted, strict=True):
            if v in values[:3] + values[-3:]:
                found = way.call(array, jnp.asarray(np.array(v, dtype)))
                np.testing.assert_array_equal(np.asarray(found), expected, err_msg=f"{v} outside of jit")
            np.testing.assert_array_equal(np.asarray(jitted(array, np.array(v, dtype)[()])), expected, err_msg=f"{v}")
        if name == "a reference":
            return

        def several(x: Any, i: Any) -> dict[str, Any]:
            found = {
                "batched": hloom.vmap(way.call, (None, 0))(x, i),
                "in a loop": lax.map(lambda one: way.call(x, one), i),
            }
            return found if way.arrays is None else {**found, "a vector": way.arrays(x, i)}

        for what, result in hloom.jit(several)(array, indices).items():
            np.testing.assert_array_equal(np.asarray(result), np.stack(wanted), err_msg=what)
        if way.arrays is not None:
            np.testing.assert_array_equal(np.asarray(way.arrays(array, jnp.asarray(indices))), np.stack(wanted))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32"])
def test_counters(dtype: str) -> None:
    """Loops that count in a narrow type: values computed from the counter wrap before they are indices."""
    last = min(np.iinfo(dtype).max, 70_000)
    x = np.arange(last + 200, dtype=np.float32)
    count, step = min(last, 200), np.array(min(np.iinfo(dtype).max // 2 + 20, 16_403), dtype)[()]
    with np.errstate(over="ignore"):
        counters = np.arange(count).astype(dtype)
        places = [from_end(int(p), len(x)) for p in counters + step]

    def body(i: Any, carry: Any) -> Any:
        total, out = carry
        return total + x[i] - x[i + step], out.at[i + step].set(1)

    def by_slices(i: Any, carry: Any) -> Any:
        total, out = carry
        read = lax.dynamic_slice(x, (i,), (1,))[0] - lax.dynamic_slice(x, (i + step,), (1,))[0]
        return total + read, lax.dynamic_update_slice(out, np.float32([1]), (i + step,))

    x = jnp.asarray(x)
    for f in (body, by_slices):

        @hloom.jit
        def run(x: Any, f: Any = f) -> Any:
            low, high = np.array(0, dtype)[()], np.array(count, dtype)[()]
            return lax.fori_loop(low, high, f, (np.float32(0), jnp.zeros_like(x)))

        total, out = run(x)
        assert total == np.sum(np.arange(count) - np.asarray(x)[places], dtype=np.float64)
        assert sorted(np.flatnonzero(np.asarray(out))) == sorted(set(places))


MODULES = """
HloModule m
ENTRY e {{
  x = f32[300] parameter(0)
  i = {0}[] parameter(1)
  u = f32[2] constant({{7, 8}})
  read = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={{2}}
  written = f32[300] dynamic-update-slice(x, u, i)
  ROOT t = (f32[2], f32[300]) tuple(read, written)
}}
"""


@pytest.mark.parametrize("name, dtype", [("s8", "int8"), ("u8", "uint8"), ("u32", "uint32"), ("u64", "uint64")])
def test_modules(name: str, dtype: str) -> None:
    """XLA clamps the number that an index is, in all its types."""
    x = np.arange(300, dtype=np.float32)
    for v in values_of(dtype):
        read, written = hloom.run_hlo(MODULES.format(name), x, np.array(v, dtype))
        p = min(max(v, 0), 298)
        wanted = x.copy()
        wanted[p : p + 2] = 7, 8
        np.testing.assert_array_equal(np.asarray(read), x[p : p + 2])
        np.testing.assert_array_equal(np.asarray(written), wanted)


@pytest.mark.parametrize("k", [-(2**70), -(2**31), -5, -2, -1, 0, 1, 2, 3, 5, 2**31 - 1, 2**32 - 1, 2**70])
def test_numbers_of_diagonals(k: int) -> None:
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    same = max(-9, min(k, 9))
    eye = (lambda x, k: jnp.eye(2, 3, k)), np.eye(2, 3, same)
    for f, wanted in ((jnp.tril, np.tril(x, same)), (jnp.triu, np.triu(x, same)), eye):
        np.testing.assert_array_equal(np.asarray(f(x, k)), wanted)
        if -(2**31) <= k < 2**32:
            traced = np.uint32(k) if k >= 2**31 else np.int32(k)
            np.testing.assert_array_equal(np.asarray(hloom.jit(f)(x, traced)), wanted)


EMPTY = {
    "a scalar": (np.int32(3), ()), "a negative one": (np.int32(-1), ()), "an unsigned one": (np.uint32(2**32 - 1), ()),
    "an array": (np.int32([3, -1]), (2,)), "an int8 array": (np.int8([[5]]), (1, 1)),
    "no index": (np.zeros(0, np.int32), (0,)),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", [None, "fill", "drop", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("what", EMPTY)
def test_an_axis_of_size_zero(what: str, mode: Any) -> None:
    """It has no place to write to. Reading gives the value of an out-of-bounds read, if the mode has one."""
    i, shape = EMPTY[what]
    vector, matrix = jnp.zeros((0,)), jnp.zeros((2, 0))
    options = {} if mode is None else {"mode": mode}
    for x, place in ((vector, lambda i: i), (matrix, lambda i: (slice(None), i)), (matrix, lambda i: (1, i))):
        for method in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max"):
            def write(x: Any, i: Any, place: Any = place, method: str = method) -> Any:
                return getattr(x.at[place(i)], method)(2.0, **options)

            assert write(x, i).shape == hloom.jit(write)(x, i).shape == x.shape
        assert hloom.grad(lambda x, i=i, place=place: x.at[place(i)].add(2.0, **options).sum())(x).shape == x.shape

        def read(x: Any, i: Any, place: Any = place) -> Any:
            return x.at[place(i)].get(**options)

        for f in (read, hloom.jit(read)):
            if mode in ("fill", "drop") or what == "no index":
                found = np.asarray(f(x, i))
                assert found.shape == (shape if place(0) == 0 or place(0)[0] == 1 else (2, *shape))
                assert np.isnan(found).all()
            else:
                with pytest.raises(IndexError, match=r"is out of bounds for axis . with size 0"):
                    f(x, i)
