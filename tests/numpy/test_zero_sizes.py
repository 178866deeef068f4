"""Arrays without elements: functions, indexing and gradients, beside NumPy (jitted and not)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, nn
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

SHAPES = ((0,), (0, 3), (3, 0), (1, 0), (0, 1), (2, 0, 3))
Case = Callable[[Any, Any], Any]
s = slice

CASES: dict[str, Case] = {
    **{
        name: (lambda np, x, n=name: getattr(np, n)(x))
        for name in (
            *("abs", "negative", "exp", "sqrt", "sin", "tanh", "isnan", "sign", "square", "sinc", "nan_to_num"),
            *("sum", "prod", "mean", "var", "std", "any", "all", "nansum", "nanmean", "nanvar", "nanstd", "cumsum"),
            *("max", "min", "argmax", "argmin", "nanmax", "ptp", "count_nonzero", "cumprod", "diff"),
            *("ravel", "transpose", "squeeze", "atleast_2d", "zeros_like", "ones_like", "copy", "flip", "size"),
        )
    },
    **{
        f"{name} axis {axis}": (lambda np, x, n=name, a=axis: getattr(np, n)(x, axis=a))
        for name in (
            *("sum", "prod", "mean", "var", "std", "any", "all", "max", "min", "argmax", "argmin", "ptp"),
            *("cumsum", "cumprod", "nansum", "nanmax", "nanvar", "flip", "expand_dims", "diff"),
        )
        for axis in (0, -1)
    },
    "sum keepdims": lambda np, x: np.sum(x, axis=0, keepdims=True),
    "max initial": lambda np, x: np.max(x, initial=1.0),
    "std ddof": lambda np, x: np.std(np.ones((2, 3)), axis=0, ddof=2) * 0 + np.sum(x),
    "add": lambda np, x: x + x,
    "broadcast": lambda np, x: x + np.ones((1,) * x.ndim),
    "floor_divide": lambda np, x: x // x,
    "where": lambda np, x: np.where(x > 0, x, 1),
    "clip": lambda np, x: np.clip(x, 0, 1),
    "concatenate": lambda np, x: np.concatenate([x, x]),
    "concatenate -1": lambda np, x: np.concatenate([x, x], -1),
    "stack": lambda np, x: np.stack([x, x]),
    "vstack": lambda np, x: np.vstack([x, x]),
    "hstack": lambda np, x: np.hstack([x, x]),
    "dstack": lambda np, x: np.dstack([x, x]),
    "split": lambda np, x: np.split(x, 1),
    "array_split": lambda np, x: np.array_split(x, 2),
    "repeat": lambda np, x: np.repeat(x, 2, axis=0),
    "repeat flat": lambda np, x: np.repeat(x, 2),
    "tile": lambda np, x: np.tile(x, 2),
    "roll": lambda np, x: np.roll(x, 1),
    "unwrap": lambda np, x: np.unwrap(x),
    "unwrap axis": lambda np, x: np.unwrap(x, axis=0),
    "roll axis": lambda np, x: np.roll(x, 1, axis=0),
    "pad": lambda np, x: np.pad(x, 1),
    "reshape": lambda np, x: np.reshape(x, (5, 0)),
    "reshape 0": lambda np, x: np.reshape(x, (0, 7)),
    "moveaxis": lambda np, x: np.moveaxis(x, 0, -1),
    "rot90": lambda np, x: np.rot90(x),
    "kron": lambda np, x: np.kron(x, np.ones(2)),
    "outer": lambda np, x: np.outer(x, np.ones(2)),
    "inner": lambda np, x: np.inner(x, x),
    "dot": lambda np, x: np.dot(x, x.T),
    "dot T": lambda np, x: np.dot(x.T, x),
    "matmul": lambda np, x: np.matmul(x, np.swapaxes(x, 0, -1)),
    "vdot": lambda np, x: np.vdot(x, x),
    "tensordot": lambda np, x: np.tensordot(x, x, axes=x.ndim),
    "einsum all": lambda np, x: np.einsum("...i,...i->...", x, x),
    "einsum sum": lambda np, x: np.einsum("...i->...", x),
    "einsum ij": lambda np, x: np.einsum("ij,ij->i", x, x),
    "einsum ij one": lambda np, x: np.einsum("ij,ij->i", x, np.ones((1, 1))),
    "einsum ijk": lambda np, x: np.einsum("ij,kj->ik", x, x),
    "einsum three": lambda np, x: np.einsum("ij,jk,ij->i", x, x.T, x),
    "trace": lambda np, x: np.trace(x),
    "diagonal": lambda np, x: np.diagonal(x),
    "diagonal 1": lambda np, x: np.diagonal(x, 1),
    "diag": lambda np, x: np.diag(x),
    "tril": lambda np, x: np.tril(np.atleast_2d(x)),
    "norm": lambda np, x: np.linalg.norm(x),
    "norm axis": lambda np, x: np.linalg.norm(x, axis=0),
    "vector 1-norm": lambda np, x: np.linalg.norm(np.ravel(x), 1),
    "polyval": lambda np, x: np.polyval(x, 2.0),
    "cross": lambda np, x: np.cross(x, x),
    "meshgrid": lambda np, x: np.meshgrid(np.ravel(x), np.ravel(x)),
    "select": lambda np, x: np.select([x > 0], [x], 1),
    "linspace": lambda np, x: np.linspace(x, x, 0),
    "full": lambda np, x: np.full(x.shape, 1.0),
    "astype": lambda np, x: x.astype("int32"),
    "array_equal": lambda np, x: np.array_equal(x, x),
    "bool": lambda np, x: np.any(x == x),
    **{
        f"x[{index}]": (lambda np, x, i=index: x[i])
        for index in (
            *(s(None, None, -1), s(None, None, 2), s(None, None, -2), s(1, None), s(-1, None), s(5, 1, -1), s(None, 0)),
            *((Ellipsis, s(None, None, -1)), (s(None, None, -1), None), (None, Ellipsis, s(2, None, -3))),
            *(Ellipsis, None),
            *((s(None), s(None, None, -1)), (s(None, None, 2), s(None, None, -1)), 0, -1, (Ellipsis, 0), (0, Ellipsis)),
        )
    },
}


def run(np_like: Any, case: Case, x: Any) -> Any:
    """A list of results, or None for an error."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = case(np_like, x)
    except (ValueError, TypeError, IndexError):
        return None
    return list(found) if isinstance(found, list | tuple) else [found]


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    case = CASES[name]
    for shape in SHAPES:
        x = np.zeros(shape, np.float32)
        wanted, found = run(np, case, x), run(jnp, case, jnp.asarray(x))
        assert (wanted is None) == (found is None), (shape, wanted, found)
        if wanted is None:
            continue
        jitted = run(jnp, lambda _, y: hloom.jit(lambda z: case(jnp, z))(y), jnp.asarray(x))
        for results in (found, jitted):
            for a, b in zip(wanted, results, strict=True):
                assert np.shape(a) == np.shape(b), shape
                np.testing.assert_allclose(np.asarray(b, np.float64), np.asarray(a, np.float64))


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    """They exist, and are as empty as the array."""
    case = CASES[name]
    for shape in SHAPES:
        x = jnp.zeros(shape)
        results = run(jnp, case, x)
        if results is None or not all(getattr(r, "dtype", None) == np.float32 for r in results):
            continue

        def total(x: Any) -> Any:
            found = case(jnp, x)
            return sum(r.sum() for r in (found if isinstance(found, list | tuple) else [found]))

        for gradient in (hloom.grad(total)(x), hloom.jit(hloom.grad(total))(x)):
            assert gradient.shape == shape


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize(
    "index", [s(None, None, -1), s(None, None, 2), s(3, None, -2), (Ellipsis, s(None, None, -1))], ids=str
)
def test_updates_of_nothing(index: Any) -> None:
    for shape in SHAPES:
        x = jnp.zeros(shape)
        assert x.at[index].set(1.0).shape == shape
        assert hloom.grad(lambda x: (x.at[index].multiply(2.0) ** 2).sum())(x).shape == shape


@pytest.mark.parametrize("shape", [(0, 1), (1, 0), (0,)])
def test_compiled(shape: tuple[int, ...]) -> None:
    """On the Numba backend."""
    x = jnp.zeros(shape)
    assert hloom.jit(lambda a: a[::-1])(x).shape == shape
    assert hloom.jit(lambda a: jnp.einsum("...i,...i->...", a, a))(x).tolist() == np.zeros(shape[:-1]).tolist()
    assert hloom.jit(hloom.grad(lambda a: (nn.softmax(a[..., ::-2]) ** 2).sum()))(x).shape == shape
    assert hloom.jit(lambda a: lax.rev(a, [0]))(x).shape == shape


# ---- what has no element: NaN where NumPy gives NaN, and updates of nothing

EMPTY = np.zeros((2, 0, 3), np.float32)


@pytest.mark.parametrize("axis", [None, 1, (0, 1), (1, 2), -1])
@pytest.mark.parametrize("name", ["median", "nanmedian", "nanquantile", "nanpercentile"])
def test_quantiles_of_nothing_are_those_of_numpy(name: str, axis: Any) -> None:
    q = () if "median" in name else (0.5,)
    for keepdims in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = getattr(np, name)(EMPTY, *q, axis=axis, keepdims=keepdims)
        for f in (getattr(jnp, name), hloom.jit(getattr(jnp, name), static_argnames=("axis", "keepdims"))):
            np.testing.assert_array_equal(f(EMPTY, *q, axis=axis, keepdims=keepdims), expected)


NO_ROWS = np.zeros(0, int)


@pytest.mark.parametrize("index", [slice(0), NO_ROWS, (slice(None), slice(0)), (NO_ROWS, NO_ROWS), (1, slice(2, 2))])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0, 3), (5, 7)])
@pytest.mark.parametrize("operation", ["set", "add", "multiply", "min", "max"])
def test_updates_where_an_index_names_nothing(index: Any, shape: tuple[int, ...], operation: str) -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    update = lambda x, v: getattr(x.at[index], operation)(v)  # noqa: E731
    for f in (update, hloom.jit(update)):
        np.testing.assert_array_equal(f(x, jnp.ones(shape)), x)
