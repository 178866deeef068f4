"""x.at[mask].set(y) with a traced mask: NumPy's results, for masks anywhere in an index and values of any shape."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import NonConcreteBooleanIndexError, OperandError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)


def mask_of(*shape: int) -> Any:
    mask = RNG.random(shape) > 0.4
    mask.flat[:2] = True, False
    return mask


A, B, C = mask_of(3), mask_of(4), mask_of(5)
INDICES: dict[str, Any] = {
    "m": (A,),
    "m over two": (mask_of(3, 4),),
    "m over all": (mask_of(3, 4, 5),),
    ":, m": (slice(None), B),
    ":, m over two": (slice(None), mask_of(4, 5)),
    "..., m": (..., C),
    "..., m over two": (..., mask_of(4, 5)),
    "1, m": (1, B),
    "1, :, m": (1, slice(None), C),
    "m, 1, :": (A, 1, slice(None)),
    "m, :, -1": (A, slice(None), -1),
    "0:2, m, 2": (slice(0, 2), B, 2),
    "1:3, 1, m": (slice(1, 3), 1, C),
    "2, m over two": (2, mask_of(4, 5)),
    "m over two, 3": (mask_of(3, 4), 3),
    "None, m, ..., None": (None, A, ..., None),
    "m, :, None, :": (A, slice(None), None, slice(None)),
    "m, ::-2": (A, slice(None, None, -2)),
    "::-1, m, 1:4:2": (slice(2, None, -1), B, slice(1, 4, 2)),
    "m over two, ::2": (mask_of(3, 4), slice(None, None, 2)),
}


def updated(method: str, x: Any, index: Any, y: Any) -> Any:
    at = jnp.asarray(x).at[index]
    return at.apply(jnp.sin) if method == "apply" else getattr(at, method)(y)


def under_jit(method: str, x: Any, index: tuple[Any, ...], y: Any) -> Any:
    """The update, with all masks of the index as arguments of a jitted function."""
    is_mask = [isinstance(i, np.ndarray) for i in index]

    def f(x: Any, masks: list[Any], y: Any) -> Any:
        given = iter(masks)
        return updated(method, x, tuple([next(given) if m else i for i, m in zip(index, is_mask)]), y)

    return hloom.jit(f)(x, [i for i in index if isinstance(i, np.ndarray)], y)


@pytest.mark.parametrize("name", INDICES)
def test_set_is_that_of_numpy(name: str) -> None:
    index = INDICES[name]
    shape = X[index].shape
    sizes = {tuple(s[k:]) for s in itertools.product(*[(1, n) for n in shape]) for k in range(len(shape) + 1)}
    for size in sorted(sizes):
        y = np.asarray(RNG.standard_normal(size), np.float32)
        expected = X.copy()
        expected[index] = y
        np.testing.assert_array_equal(under_jit("set", X, index, y), expected)


@pytest.mark.parametrize("method", ["add", "subtract", "multiply", "divide", "power", "min", "max", "apply"])
@pytest.mark.parametrize("name", ["m", ":, m over two", "m, ::-2", "1, :, m"])
def test_other_methods_are_those_of_known_masks(method: str, name: str) -> None:
    index, x = INDICES[name], np.abs(X)
    for y in (np.float32(1.5), np.asarray(RNG.random(X[index].shape), np.float32)):
        np.testing.assert_allclose(under_jit(method, x, index, y), updated(method, x, index, y), rtol=1e-6)


def test_derivatives_and_batches() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.sum(jnp.sin(x.at[x > 0.2].set(y)) * jnp.arange(5.0))

    x, y = np.array([0.1, 0.5, -1.0, 0.3, 0.25], np.float32), np.array([1.0, 2.0, 3.0], np.float32)
    for found, expected in zip(hloom.jit(hloom.grad(f, (0, 1)))(x, y), hloom.grad(f, (0, 1))(x, y)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = hloom.vmap(lambda x: x.at[x > 0].multiply(2))(jnp.stack([x, -x]))
    np.testing.assert_array_equal(found, [np.where(v > 0, 2 * v, v) for v in (x, -x)])


def test_a_traced_flag() -> None:
    set_all = hloom.jit(lambda x, flag: x.at[flag].set(7))
    x = jnp.arange(3)
    assert set_all(x, True).tolist() == [7, 7, 7]
    assert set_all(x, False).tolist() == [0, 1, 2]


def test_true_elements_without_a_value_stay() -> None:
    found = hloom.jit(lambda x, m: x.at[m].set(jnp.array([7, 8])))(jnp.arange(4), np.array([True, False, True, True]))
    assert found.tolist() == [7, 1, 8, 3]
    found = hloom.jit(lambda x, m: x.at[m].set(jnp.zeros(0, int)))(jnp.arange(4), np.array([True, False, True, True]))
    assert found.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "f, error, message",
    [
        (lambda x, m: x.at[m].set(x), OperandError, r"Use where\(mask, values, x\)"),
        (lambda x, m: x.at[m].set(jnp.ones((2, 2))), OperandError, r"shape of x\[...\], which is \(n\)"),
        (lambda x, m: jnp.ones((4, 3)).at[m].set(jnp.ones((2, 2))), OperandError, r"which is \(n, 3\)"),
        (lambda x, m: x[:3].at[m].set(0), IndexError, "did not match shape of indexed array"),
        (lambda x, m: jnp.ones((4, 4)).at[m, m].set(0), NonConcreteBooleanIndexError, "must be concrete"),
        (lambda x, m: jnp.ones((4, 4)).at[m, jnp.arange(2)].set(0), NonConcreteBooleanIndexError, "must be concrete"),
        (lambda x, m: x[m], NonConcreteBooleanIndexError, "must be concrete"),
    ],
)
def test_refusals(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        hloom.jit(f)(jnp.arange(4.0), np.array([True, False, True, False]))
