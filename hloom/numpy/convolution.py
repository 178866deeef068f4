"""`convolve` and `correlate` of two sequences. Names and semantics follow NumPy, and jax.numpy where they differ."""

from __future__ import annotations

from typing import Any

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .promotion import check_arraylike, promote_dtypes, promote_dtypes_inexact
from .unary_ufuncs import conj


@compound(static=("mode", "precision", "preferred_element_type"))
def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Value:
    """The products of the vector `a` with `v` reversed and shifted, summed. Integers become floats, as in JAX, unless
    `preferred_element_type` is one of integers.

    mode: "full" has all shifts at which they overlap, len(a) + len(v) - 1; "valid" those at which one is inside of the
    other; and "same" as many, from the middle, as the longer one has elements.

    >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 1]))
    Array([1., 3., 5., 3.], dtype=float32)
    >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 1]), mode="valid")
    Array([3., 5.], dtype=float32)
    """
    x, y = _pair("convolve", a, v, preferred_element_type)
    if x.aval.size < y.aval.size:
        x, y = y, x
    return _slide(x, lax.rev(y, (0,)), mode, precision, preferred_element_type)


@compound(static=("mode", "precision", "preferred_element_type"))
def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None
) -> Value:
    """The products of the vector `a` with the conjugate of `v` shifted, summed. `mode` as for `convolve`, dtypes too.

    >>> jnp.correlate(jnp.array([1, 2, 3, 2]), jnp.array([1, 2]))
    Array([5., 8., 7.], dtype=float32)
    """
    x, y = _pair("correlate", a, v, preferred_element_type)
    y = conj(y)
    if x.aval.size >= y.aval.size:
        return _slide(x, y, mode, precision, preferred_element_type)
    return lax.rev(_slide(y, x, mode, precision, preferred_element_type), (0,))


def _pair(name: str, a: ArrayLike, v: ArrayLike, dtype: Any) -> tuple[Value, Value]:
    """The sequences in one dtype: of floats, unless `dtype` is an integer type."""
    check_arraylike(name, a, v)
    in_integers = dtype is not None and dtypes.is_integer(dtypes.requested_dtype(dtype, name))
    x, y = promote_dtypes(a, v) if in_integers else promote_dtypes_inexact(a, v)
    if x.aval.ndim != 1 or y.aval.ndim != 1 or not x.aval.size or not y.aval.size:
        raise OperandError(
            f"{name} of {x.aval.str_short()} and {y.aval.str_short()}: both must have one dimension, and elements\n"
            "  hloom.lax.conv_general_dilated has more dimensions; hloom.vmap makes batches.",
            "convolve_shapes",
        )
    return x, y


def _slide(x: Value, kernel: Value, mode: str, precision: Any, dtype: Any) -> Value:
    """The products of a kernel that is not longer than x, at each shift."""
    size = kernel.aval.size
    paddings = {"valid": (0, 0), "same": (size // 2, size - size // 2 - 1), "full": (size - 1, size - 1)}
    if mode not in paddings:
        raise ValueError(f"mode must be one of {sorted(paddings)}, got {mode!r}")
    found = lax.conv_general_dilated(
        lax.reshape(x, (1, 1, x.aval.size)), lax.reshape(kernel, (1, 1, size)), (1,), [paddings[mode]],
        precision=precision, preferred_element_type=dtype,
    )  # fmt: skip
    return lax.reshape(found, (found.aval.shape[2],))
