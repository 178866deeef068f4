"""Indexing by arrays of integers and masks, against NumPy's own; derivatives and batches; indices out of bounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import NonConcreteBooleanIndexError
from hloom.test_util import check_grads

CUBE = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
TWO, GRID = np.array([2, 0]), np.array([[1, -1, 2]])
ROWS, PLACES = CUBE[:, 0, 0] > 10, CUBE % 7 < 2
ALL = slice(None)

INDICES: dict[str, Any] = {
    "one": TWO,
    "two dimensions": GRID,
    "negative": np.array([-1, -3, 2]),
    "small dtype": np.array([-1, 2], np.int8),
    "unsigned": np.array([1, 2], np.uint8),
    "a tuple": ((1, 0),),
    "tuples": ((1, 0), ALL, (2, 3)),
    "no indices": np.array([], np.int32),
    "after a slice": (ALL, TWO),
    "after an ellipsis": (..., GRID),
    "slices with steps": (slice(None, None, -2), TWO, slice(4, 0, -1)),
    "together": (TWO, TWO),
    "broadcast": (TWO[:, None], GRID),
    "separate": (TWO, ALL, GRID[0, :2]),
    "with an integer": (1, TWO),
    "with an integer apart": (1, ALL, TWO),
    "an integer after": (slice(1, 3), TWO, -1),
    "an integer before an ellipsis": (0, ..., TWO),
    "new dimensions": (None, TWO, None, TWO),
    "separated by a new dimension": (TWO, None, TWO),
    "all three": (TWO, TWO, TWO),
    "a scalar array": (np.int32(1), TWO),
    "mask": ROWS,
    "mask of all": PLACES,
    "mask of two dimensions": CUBE[:, :, 0] > 20,
    "mask after a slice": (ALL, ALL, CUBE[0, 0] > 2),
    "mask and integers": (ROWS, np.array([3])),
    "mask and an integer": (ROWS, ALL, 2),
    "mask of nothing": np.zeros(3, bool),
    "an empty slice": (slice(0), TWO),
}


@pytest.mark.parametrize("name", INDICES)
def test_reading_is_that_of_numpy(name: str) -> None:
    index = INDICES[name]
    expected = CUBE[index]
    x = jnp.asarray(CUBE)
    for found in (x[index], hloom.jit(lambda x: x[index])(CUBE), x.at[index].get()):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(item, np.ndarray) and item.dtype == bool for item in items):
        return
    places = [k for k, item in enumerate(items) if isinstance(item, np.ndarray | int | np.integer)]

    def read(x: Any, arrays: list[Any]) -> Any:
        given = list(items)
        for place, array in zip(places, arrays):
            given[place] = array
        return x[tuple(given)]

    np.testing.assert_array_equal(hloom.jit(read)(CUBE, [items[k] for k in places]), expected)


UPDATES: dict[str, Callable[[Any, Any, Any], None]] = {
    "set": lambda x, index, y: x.__setitem__(index, y),
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "divide": np.divide.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
    "power": np.power.at,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("method", ["set", "add", "multiply"])
def test_writing_is_that_of_numpy(name: str, method: str) -> None:
    index = INDICES[name]
    for values in (np.float32(3), np.linspace(2, 3, CUBE[index].size, dtype=np.float32).reshape(CUBE[index].shape)):
        expected = CUBE.copy()
        UPDATES[method](expected, index, values)
        for found in (
            getattr(jnp.asarray(CUBE).at[index], method)(values),
            hloom.jit(lambda x, y: getattr(x.at[index], method)(y))(CUBE, values),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "dtype"),
    [(m, d) for m in UPDATES for d in ("float32", "int32") if m != "set" and (m, d) != ("divide", "int32")],
)
def test_elements_that_are_named_several_times(method: str, dtype: str) -> None:
    index, x = np.array([1, 3, 1, 1]), np.arange(1, 6, dtype=dtype)
    values = np.array([2, 3, 2, 4], dtype)
    expected = x.copy()
    UPDATES[method](expected, index, values)
    np.testing.assert_allclose(getattr(jnp.asarray(x).at[index], method)(values), expected, rtol=1e-5)


def test_apply_and_dtypes() -> None:
    x = jnp.arange(5.0)
    np.testing.assert_array_equal(x.at[np.array([1, 3])].apply(lambda v: v * 10), [0, 10, 2, 30, 4])
    assert jnp.arange(5, dtype="bfloat16").at[TWO].add(1).dtype == "bfloat16"
    with pytest.warns(FutureWarning):
        np.testing.assert_array_equal(jnp.arange(3).at[np.array([1])].add(1.5), [0, 2, 2])
    np.testing.assert_array_equal(jnp.arange(4).at[TWO].divide(4), np.array([0.0, 1.0, 0.5, 3.0]))
    assert (jnp.arange(5) > 2)[TWO].dtype == bool


def test_indices_out_of_bounds() -> None:
    """The values are JAX's."""
    x, far = jnp.arange(10.0), jnp.array([11, -1, -20])
    nan = np.nan
    for use in (lambda f: f(x, far), lambda f: hloom.jit(f)(x, far)):
        np.testing.assert_array_equal(use(lambda x, i: x[i]), [9, 9, 0])
        np.testing.assert_array_equal(use(lambda x, i: x.at[i].get(mode="clip")), [9, 9, 0])
        np.testing.assert_array_equal(use(lambda x, i: x.at[i].get(mode="fill")), [nan, 9, nan])
        np.testing.assert_array_equal(use(lambda x, i: x.at[i].get(mode="fill", fill_value=-1)), [-1, 9, -1])
        np.testing.assert_array_equal(
            use(lambda x, i: x.at[i].get(mode="fill", wrap_negative_indices=False)), [nan, nan, nan]
        )
        np.testing.assert_array_equal(use(lambda x, i: x.at[i].set(50.0)), [*range(9), 50])
        np.testing.assert_array_equal(use(lambda x, i: x.at[i].add(50.0, mode="clip")), [50, *range(1, 9), 109])


@pytest.mark.parametrize("name", ["one", "two dimensions", "broadcast", "separate", "mask", "slices with steps"])
def test_derivatives(name: str) -> None:
    index = INDICES[name]
    check_grads(lambda x: x[index] ** 2, (CUBE / 60,), order=2)
    values = np.linspace(0.5, 1.5, CUBE[index].size, dtype=np.float32).reshape(CUBE[index].shape)
    check_grads(lambda x, y: x.at[index].set(y) ** 2, (CUBE / 60, values), order=2)
    check_grads(lambda x, y: x.at[index].add(y) ** 2, (CUBE / 60, values), order=2)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_batches(axes: tuple[int | None, int | None]) -> None:
    xs = CUBE[:, :, 0] if axes[0] == 0 else CUBE[0, :, 0]
    indices = np.array([[3, -1], [0, 2], [1, 1]]) if axes[1] == 0 else np.array([3, 0])
    for f in (lambda x, i: x[i], lambda x, i: x.at[i].add(1.0), lambda x, i: hloom.jit(lambda x: x[i] * 2)(x)):
        rows = [
            f(jnp.asarray(xs if axes[0] is None else xs[k]), jnp.asarray(indices if axes[1] is None else indices[k]))
            for k in range(3)
        ]
        found = hloom.vmap(f, axes)(jnp.asarray(xs), jnp.asarray(indices))
        np.testing.assert_array_equal(found, np.stack(rows))


def test_keys_are_chosen_too() -> None:
    keys = hloom.random.split(hloom.random.key(0), 4)
    found = hloom.random.key_data(keys[np.array([2, 0])])
    np.testing.assert_array_equal(found, hloom.random.key_data(keys)[np.array([2, 0])])


def test_checkify_sees_them() -> None:
    checkify = pytest.importorskip("hloom.experimental.checkify")
    checked = hloom.jit(checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks))
    x = jnp.arange(3.0)
    for indices, message in ((np.array([0, -3]), None), (np.array([0, 5]), "index 5"), (np.array([-4, 0]), "index -1")):
        error, _ = checked(x, indices)
        assert error.get() is None if message is None else message in error.get()


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda x: x[TWO, TWO, TWO, TWO], IndexError, "is 3-dimensional, but 4 were indexed"),
        (lambda x: x[np.array([1.5])], TypeError, "integer or boolean type, got indexer with type float"),
        (lambda x: x[TWO, GRID[0]], ValueError, r"broadcast together, but their shapes are \(2,\), \(3,\)"),
        (
            lambda x: x[np.zeros(2, bool)],
            IndexError,
            r"the mask has shape \(2,\), and the dimensions from 0 on are \(3,",
        ),
        (lambda x: x[..., np.zeros((4, 4), bool)], IndexError, r"from 1 on are \(4, 5\)"),
        (lambda x: x[..., TWO, ...], IndexError, "one Ellipsis"),
        (lambda x: jnp.zeros((0, 3))[np.array([0])], IndexError, "out of bounds for axis 0 with size 0"),
        (lambda x: x.at[TWO].set(np.ones(3, np.float32)), ValueError, "Incompatible shapes for broadcasting"),
        (lambda x: x[[0, 1]], TypeError, "non-tuple sequence"),
        (hloom.jit(lambda x: x[x > 3]), NonConcreteBooleanIndexError, "depends on the mask's values"),
        (hloom.jit(lambda x: x[TWO, x[0, 0] > 3]), IndexError, "depends on the mask's values"),
    ],
)
def test_errors(use: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use(jnp.asarray(CUBE))


KINDS: list[Any] = [
    *(True, False, None, Ellipsis, slice(1, None), slice(None, None, -2), 1, -1, TWO, TWO[:, None], ROWS),
    *(np.array(True), [0, 1], (1, 0), PLACES[:, :, 0], [], np.int8(2)),
]


@pytest.mark.parametrize("first", range(len(KINDS)))
def test_any_mixture_means_what_it_means_to_numpy(first: int) -> None:
    """All pairs of kinds of entries, and some triples; lists alone are refused, as in JAX."""
    x = jnp.asarray(CUBE)
    for number, (b, c) in enumerate(itertools.product(KINDS, [()] + KINDS)):
        if number % 7 and not (isinstance(c, tuple) and c == ()):
            continue
        index = (KINDS[first], b, *([] if isinstance(c, tuple) and c == () else [c]))
        try:
            expected = CUBE[index]
        except (IndexError, ValueError):
            with pytest.raises((IndexError, ValueError, TypeError)):
                x[index]
            continue
        np.testing.assert_array_equal(x[index], expected)
        if number % 5 == 0:
            written = CUBE.copy()
            written[index] = 9
            np.testing.assert_array_equal(x.at[index].set(9), written)


def test_masks_without_elements_and_wide_integers() -> None:
    x = jnp.asarray(CUBE)
    for shape in ((0,), (3, 0), (0, 4)):
        assert x[np.zeros(shape, bool)].shape == CUBE[np.zeros(shape, bool)].shape
    assert int(jnp.zeros(1, "uint32").at[0].set(2**32 - 1)[0]) == 2**32 - 1
