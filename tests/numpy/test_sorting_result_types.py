"""Result types of the functions that sort, search, count and take, for all dtypes: a table beside JAX, traced only.

Values for some dtypes are compared with NumPy's in `test_sorting_and_searching.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from support.jax_facts import DTYPES, NARROW

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda xp, x: xp.sort(x),
    "argsort": lambda xp, x: xp.argsort(x, 0, descending=True),
    "lexsort": lambda xp, x: xp.lexsort((x, x)),
    "sort_complex": lambda xp, x: xp.sort_complex(x),
    "partition": lambda xp, x: (xp.partition(x, 1), xp.argpartition(x, 1)),
    "searchsorted": lambda xp, x: xp.searchsorted(x[0], x),
    "digitize": lambda xp, x: xp.digitize(x, x[0]),
    "take": lambda xp, x: (xp.take(x, np.array([0, 5]), 1), xp.take(x, 1, mode="wrap")),
    "take by it": lambda xp, x: xp.take(np.arange(9.0, dtype=np.float32), x),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, np.array([[0, 1]]), 1),
    "take_along_axis by it": lambda xp, x: xp.take_along_axis(np.ones((2, 3), np.float32), x, 1),
    "put": lambda xp, x: xp.put(x, np.array([0, 5]), x[0], inplace=False),
    "put_along_axis": lambda xp, x: xp.put_along_axis(x, np.array([[0, 1]]), x[:1, :1], 1, inplace=False),
    "place": lambda xp, x: xp.place(x, np.ones((2, 3), bool), x[0], inplace=False),
    "fill_diagonal": lambda xp, x: xp.fill_diagonal(x, x[0, 0], inplace=False),
    "choose": lambda xp, x: xp.choose(np.array([0, 1, 0]), [x, 2], mode="wrap"),
    "choose by it": lambda xp, x: xp.choose(x, [1.0, x], mode="clip"),
    "nonzero": lambda xp, x: xp.nonzero(x, size=3),
    "filled nonzero": lambda xp, x: xp.nonzero(x, size=3, fill_value=x[0, 0]),
    "flatnonzero": lambda xp, x: xp.flatnonzero(x, size=3, fill_value=7),
    "argwhere": lambda xp, x: xp.argwhere(x, size=3),
    "compress": lambda xp, x: xp.compress(np.array([True, False]), x, 0, size=1, fill_value=3.5),
    "extract": lambda xp, x: xp.extract(x, x, size=2),
    "delete": lambda xp, x: xp.delete(x, 1, 0),
    "delete by it": lambda xp, x: xp.delete(np.ones(99, np.float32), x[0], assume_unique_indices=True),
    "insert": lambda xp, x: xp.insert(x, 1, 2.5, 0),
    "piecewise": lambda xp, x: xp.piecewise(x, [x > 0], [lambda t: t * 2, 7.5]),
    "unique": lambda xp, x: xp.unique(x, True, True, True, size=4),
    "filled unique": lambda xp, x: xp.unique(x, size=4, fill_value=1.5),
    "union1d": lambda xp, x: xp.union1d(x, np.arange(3, dtype=np.int16), size=4),
    "intersect1d": lambda xp, x: xp.intersect1d(x, np.arange(3, dtype=np.uint8), size=4, return_indices=True),
    "setdiff1d": lambda xp, x: xp.setdiff1d(x, np.float32(3), size=4),
    "setxor1d": lambda xp, x: xp.setxor1d(x, x[0], size=4),
    "isin": lambda xp, x: xp.isin(x, x[0]),
    "median": lambda xp, x: (xp.median(x), xp.nanmedian(x, 0, keepdims=True)),
    "quantile": lambda xp, x: (xp.quantile(x, 0.5), xp.quantile(x, np.float32([0.1, 0.2]), axis=1, method="lower")),
    "nanquantile": lambda xp, x: xp.nanquantile(x, 0.5, axis=1),
    "percentile": lambda xp, x: (xp.percentile(x, 50), xp.nanpercentile(x, 50.0, 0)),
    "cov": lambda xp, x: (xp.cov(x), xp.cov(x, x, ddof=2), xp.corrcoef(x)),
    "weighted cov": lambda xp, x: xp.cov(np.ones((2, 3), np.float32), aweights=x[0]),
    "cov by it": lambda xp, x: xp.cov(np.ones((2, 3), np.float16), fweights=x[0]),
    "bincount": lambda xp, x: xp.bincount(x[0], length=4),
    "weighted bincount": lambda xp, x: xp.bincount(np.array([0, 1, 1]), x[0], length=4),
    "histogram": lambda xp, x: xp.histogram(x, 3),
    "weighted histogram": lambda xp, x: xp.histogram(np.ones(3, np.float32), 2, weights=x[0]),
    "density": lambda xp, x: xp.histogram(x, 3, range=(0, 2), density=True),
    "histogramdd": lambda xp, x: xp.histogramdd(x, 2),
    "histogram2d": lambda xp, x: xp.histogram2d(x[0], x[1], 2),
    "histogram_bin_edges": lambda xp, x: xp.histogram_bin_edges(x, 2),
    "nanargmax": lambda xp, x: (xp.nanargmax(x), xp.nanargmin(x, 0, keepdims=True)),
    "nancumsum": lambda xp, x: (xp.nancumsum(x), xp.nancumprod(x, 1)),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=0, include_initial=True),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(x, axis=0, include_initial=True),
    "unravel_index": lambda xp, x: xp.unravel_index(x, (2, 3)),
    "ravel_multi_index": lambda xp, x: xp.ravel_multi_index((x, x), (2, 3), mode="clip"),
    "indexed by it": lambda xp, x: xp.ones((2, 3), np.float32)[x[0]],
    "argmax": lambda xp, x: (xp.argmax(x), xp.cumsum(x, 0), xp.cumprod(x)),
    "methods": lambda xp, x: (x.sort(), x.argsort(), x.take(np.array([0])), x.nonzero(size=1)),
    "where": lambda xp, x: xp.where(x, size=2),
}
WEAK = ("i*", "f*", "c*")
ACCEPTED = {
    ("delete by it", "bool"): "a mask, whose values must be known",
    ("partition", "bool"): "refused in JAX, which negates the elements",
    **{("partition", weak): "JAX's indices are weak" for weak in WEAK},
    **{(name, "c*"): "not weak in JAX, where complex NaN are made one" for name in ("unique", "union1d", "setdiff1d")},
    ("weighted bincount", "bool"): "refused in JAX, which cannot add truth values",
    **{
        ("unravel_index", t): "floats as indices"
        for t in ("bool", "float16", "bfloat16", "float32", "float64", "f*")
    },
}


def _given(xp: Any, dtype: str, make: Callable[[Any], Any]) -> Any:
    if dtype in WEAK:
        return make({"i*": 1, "f*": 1.5, "c*": 1j}[dtype])
    return np.ones((2, 3), np.dtype(dtype) if dtype != "bfloat16" else jnp.bfloat16)


def _outcome(framework: Any, xp: Any, name: str, dtype: str) -> Any:
    """The types of all results, or that there is an error."""

    def call(x: Any) -> Any:
        if dtype in WEAK:  # an array of a weak type
            x = xp.broadcast_to(x, (2, 3))
        return CALLS[name](xp, x)

    try:
        found = framework.eval_shape(call, _given(xp, dtype, lambda number: number))
    except (TypeError, ValueError, IndexError, NotImplementedError, RuntimeError):
        return "refused"
    leaves = framework.tree.leaves(found)
    return [(leaf.shape, np.dtype(leaf.dtype).name, bool(leaf.weak_type)) for leaf in leaves]


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("name", CALLS)
def test_result_types_are_those_of_jax(name: str, wide: bool) -> None:
    jax = pytest.importorskip("jax")
    dtypes = [*(DTYPES if wide else NARROW), *WEAK]
    with jax.enable_x64(wide), hloom.enable_x64(wide):
        different = {}
        for dtype in dtypes:
            ours, theirs = _outcome(hloom, jnp, name, dtype), _outcome(jax, jax.numpy, name, dtype)
            if ours != theirs and (name, dtype) not in ACCEPTED:
                different[dtype] = (ours, theirs)
    assert not different
