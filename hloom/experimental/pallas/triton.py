"""`hloom.experimental.pallas.triton`: parts of kernels for GPUs, with names of jax.experimental.pallas.triton.

Loads and stores with masks, and atomic operations, run on the CPU as in JAX's interpreter: the points of a grid that
share an array run one after the other, so an atomic operation reads and writes.
"""

import dataclasses as _dataclasses
from collections.abc import Callable as _Callable
from typing import Any as _Any

from ... import lax as _lax
from ... import numpy as _jnp
from ...namespaces import publish as _publish
from ...namespaces.not_written import not_written as _not_written
from ...tracer.references.refs import get as _get
from ...tracer.references.refs import set as _set
from .helpers import masked_load as _masked_load
from .helpers import masked_store as _masked_store

_GPU = "elementwise_inline_asm get_gpu_info get_gpu_info_from_version is_gpu_device GpuInfo GpuVersion"
__all__ = [
    *("CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min"),
    *("atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load", "max_contiguous", "store"),
    *_GPU.split(),
]

globals().update(_not_written(__name__, _GPU, "it is about kernels for GPUs, and programs run on the CPU"))


@_dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Parameters of a compiler for GPUs: accepted by `pallas_call`, without effect."""

    num_warps: int | None = None
    num_stages: int | None = None


def load(
    ref: _Any, *, mask: _Any = None, other: _Any = None, cache_modifier: str | None = None,
    eviction_policy: str | None = None, volatile: bool = False,
) -> _Any:  # fmt: skip
    """The values in a reference or in a part of one; `other` where `mask` is false. The other parameters are accepted.

    >>> from hloom.experimental.pallas import triton
    >>> triton.load(hloom.new_ref(jnp.arange(3)), mask=jnp.array([True, False, True]), other=7)
    Array([0, 7, 2], dtype=int32)
    """
    return _masked_load(ref, mask, other)


def store(ref: _Any, val: _Any, *, mask: _Any = None, eviction_policy: str | None = None) -> None:
    """Write to a reference or to a part of one, where `mask` is true.

    >>> from hloom.experimental.pallas import triton
    >>> ref = hloom.new_ref(jnp.zeros(2))
    >>> triton.store(ref, jnp.ones(2), mask=jnp.array([True, False]))
    >>> ref[...]
    Array([1., 0.], dtype=float32)
    """
    _masked_store(ref, val, mask)


def _changed(ref: _Any, idx: _Any, val: _Any, mask: _Any, function: _Callable[[_Any, _Any], _Any]) -> _Any:
    """Read, compute, write; what was there before."""
    before = _get(ref, idx)
    after = _jnp.broadcast_to(function(before, val), before.shape).astype(before.dtype)
    _set(ref, idx, after if mask is None else _jnp.where(mask, after, before))
    return before


def atomic_add(x_ref_or_view: _Any, idx: _Any, val: _Any, *, mask: _Any = None) -> _Any:
    """Add to the elements at an index; what was there before.

    >>> from hloom.experimental.pallas import triton
    >>> ref = hloom.new_ref(jnp.arange(3))
    >>> triton.atomic_add(ref, 1, 5), ref[...]
    (Array(1, dtype=int32), Array([0, 6, 2], dtype=int32))
    """
    return _changed(x_ref_or_view, idx, val, mask, lambda x, y: x + y)


def atomic_max(x_ref_or_view: _Any, idx: _Any, val: _Any, *, mask: _Any = None) -> _Any:
    """The larger one at an index; what was there before. See `atomic_add`."""
    return _changed(x_ref_or_view, idx, val, mask, _jnp.maximum)


def atomic_min(x_ref_or_view: _Any, idx: _Any, val: _Any, *, mask: _Any = None) -> _Any:
    """The smaller one at an index; what was there before. See `atomic_add`."""
    return _changed(x_ref_or_view, idx, val, mask, _jnp.minimum)


def atomic_and(x_ref_or_view: _Any, idx: _Any, val: _Any, *, mask: _Any = None) -> _Any:
    """The bits of both at an index; what was there before. See `atomic_add`."""
    return _changed(x_ref_or_view, idx, val, mask, lambda x, y: x & y)


def atomic_or(x_ref_or_view: _Any, idx: _Any, val: _Any, *, mask: _Any = None) -> _Any:
    """The bits of one of both at an index; what was there before. See `atomic_add`."""
    return _changed(x_ref_or_view, idx, val, mask, lambda x, y: x | y)


def atomic_xor(x_ref_or_view: _Any, idx: _Any, val: _Any, *, mask: _Any = None) -> _Any:
    """The bits in which both differ at an index; what was there before. See `atomic_add`."""
    return _changed(x_ref_or_view, idx, val, mask, lambda x, y: x ^ y)


def atomic_xchg(x_ref_or_view: _Any, idx: _Any, val: _Any, *, mask: _Any = None) -> _Any:
    """Write at an index; what was there before. See `atomic_add`."""
    return _changed(x_ref_or_view, idx, val, mask, lambda x, y: y)


def atomic_cas(ref: _Any, cmp: _Any, val: _Any) -> _Any:
    """Write a scalar if the old one is `cmp`; the old one.

    >>> from hloom.experimental.pallas import triton
    >>> ref = hloom.new_ref(jnp.int32(3))
    >>> triton.atomic_cas(ref, 3, 4), ref[...]
    (Array(3, dtype=int32), Array(4, dtype=int32))
    """
    if _jnp.shape(cmp) or _jnp.shape(val) or ref.shape:
        raise ValueError(f"atomic_cas: cmp, val and ref must be scalars: {_jnp.shape(cmp)}, {_jnp.shape(val)}")
    return _changed(ref, (), val, None, lambda x, y: _jnp.where(x == cmp, y, x))


def debug_barrier() -> None:
    """Nothing: the points of a grid do not wait for one another.

    >>> from hloom.experimental.pallas import triton
    >>> triton.debug_barrier()
    """


def max_contiguous(x: _Any, values: _Any) -> _Any:
    """`x`; a promise about its elements, which is not used.

    >>> from hloom import numpy as jnp
    >>> from hloom.experimental.pallas import triton
    >>> triton.max_contiguous(jnp.arange(3), 4)
    Array([0, 1, 2], dtype=int32)
    """
    return _jnp.asarray(x)


def approx_tanh(x: _Any) -> _Any:
    """The hyperbolic tangent. TypeError for anything but floats of 16 to 64 bits.

    >>> from hloom.experimental.pallas import triton
    >>> triton.approx_tanh(jnp.float32(0.0))
    Array(0., dtype=float32)
    """
    if x.dtype.name not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(f"approx_tanh does not accept {x.dtype} arrays")
    return _jnp.tanh(x)


def dot(
    a: _Any, b: _Any, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None,
    precision: _Any = None,
) -> _Any:  # fmt: skip
    """The product of two matrices, transposed on demand, in float32, float64 or int32.

    >>> from hloom.experimental.pallas import triton
    >>> triton.dot(jnp.ones((2, 3)), jnp.ones((2, 3)), trans_b=True).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if (a.ndim, b.ndim) != (2, 2):
        raise ValueError("`a` and `b` must be 2D arrays.")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("Only one of allow_tf32 and precision can be specified")
        precision = _lax.Precision.HIGH if allow_tf32 else _lax.Precision.HIGHEST
    dtype = _jnp.promote_types(a.dtype, b.dtype)
    found = dtype if dtype.name == "float64" else "int32" if dtype.kind in "iu" else "float32"
    numbers = (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ()))
    return _lax.dot_general(a, b, numbers, precision=precision, preferred_element_type=_jnp.dtype(found))


_publish(__name__)
