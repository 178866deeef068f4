"""jax._src.public_test_util: comparisons for tests."""

from typing import Any as _Any

import numpy as _np

from ...autodiff.finite_differences import check_grads, check_jvp, check_vjp
from ...dtypes import canonicalize_dtype as _canonicalize_dtype
from ...namespaces import publish as _publish
from ...tracer.trees import tree as _tree

__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp", "default_tolerance"]

_TOLERANCES = {
    **dict.fromkeys(("float64", "complex128"), 1e-15),
    **dict.fromkeys(("float32", "complex64"), 1e-6),
    "float16": 1e-3,
    "bfloat16": 1e-2,
}
"""Of values, by dtype; 1/10 for narrower floats, 0 for others."""


def _default(dtype: _np.dtype[_Any]) -> float:
    return _TOLERANCES.get(dtype.name, 0.1 if dtype.name.startswith("float") else 0.0)


def default_tolerance() -> dict[_np.dtype[_Any], float]:
    """By dtype, how far values that should be equal may be apart."""
    return {_np.dtype(name): tolerance for name, tolerance in _TOLERANCES.items()}


def _tolerance(dtype: _np.dtype[_Any], given: _Any) -> float:
    if given is not None and not isinstance(given, dict):
        return float(given)
    own = {_np.dtype(key): value for key, value in (given or {}).items()}
    dtype = _np.dtype(_canonicalize_dtype(dtype))
    return float(own.get(dtype, _default(dtype)))


def check_close(xs: _Any, ys: _Any, atol: _Any = None, rtol: _Any = None, err_msg: str = "") -> None:
    """AssertionError unless trees of one structure have arrays of equal shapes with close elements.

    atol, rtol: a number, or a mapping from dtypes; times the number of elements. By default the dtype's tolerance.
    """

    def compare(x: _Any, y: _Any) -> None:
        x, y = _np.asarray(x), _np.asarray(y)
        if x.shape != y.shape:
            raise AssertionError(f"{err_msg} shapes differ: {x.shape} and {y.shape}".lstrip())
        absolute = max(_tolerance(x.dtype, atol), _tolerance(y.dtype, atol)) * x.size
        relative = max(_tolerance(x.dtype, rtol), _tolerance(y.dtype, rtol)) * y.size
        wide = _np.complex128 if "c" in x.dtype.kind + y.dtype.kind else _np.float64
        if x.dtype.kind not in "iub" or y.dtype.kind not in "iub":
            x, y = x.astype(wide), y.astype(wide)
        _np.testing.assert_allclose(x, y, atol=absolute, rtol=relative, err_msg=err_msg)

    _tree.map(compare, xs, ys)


_publish(__name__)
