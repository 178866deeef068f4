"""Private functions of JAX on dtypes, keys and arrays."""

from __future__ import annotations

import enum
import functools
import itertools
from typing import Any

import numpy as np
from hloom.hlo.sizes import largest
from hloom.tracer import dtypes
from hloom.tracer.arrays.array import as_value
from hloom.tracer.arrays.dslice import Slice
from hloom.tracer.arrays.extended import ExtendedDType
from hloom.tracer.ops import convert

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.lax.linalg.qr import geqrf
from hloom.random.implementations import KeyDType, implementation

# ---- dtypes


def _dtype_and_weak_type(value: Any) -> tuple[Any, bool]:
    return dtypes.type_of(value)


def _type_of(dtype: Any, weak_type: bool) -> Any:
    """The dtype, or the Python type that has it if it is weak."""
    if not weak_type or dtype == np.bool_:
        return dtype
    if jnp.issubdtype(dtype, np.complexfloating):
        return complex
    return float if jnp.issubdtype(dtype, np.floating) else int


def _checked(dtype: Any, fun_name: str | None = None) -> Any:
    return dtypes.canonical_dtype(dtype)


def _lattice_result_type(*values: Any) -> tuple[Any, bool]:
    found = [dtypes.type_of(value) for value in values]
    return dtypes.result_type(*values), all(weak for _, weak in found)


def _to_floating(dtype: Any) -> Any:
    return np.finfo(dtypes.to_inexact(np.dtype(dtype))).dtype


def _int_for(size: int, signed: bool) -> Any:
    if hloom.export.is_symbolic_dim(size):
        return dtypes.default_int() if signed else dtypes.canonical_dtype(np.uint64)
    narrow, wide = (np.int32, np.int64) if signed else (np.uint32, np.uint64)
    return wide if size > np.iinfo(narrow).max else narrow


# ---- arrays


def convert_element_type(operand: Any, new_dtype: Any = None, weak_type: bool = False, *_: Any, **__: Any) -> Any:
    value = as_value(operand)
    dtype = value.aval.dtype if new_dtype is None else dtypes.canonical_dtype(new_dtype)
    return convert(value, dtype, weak_type and not np.issubdtype(dtype, np.bool_))


def _const(example: Any, value: Any) -> Any:
    """`value` as a constant that has the dtype of `example`."""
    if isinstance(example, (bool, int, float, complex)):
        return type(example)(value)
    return np.array(value, dtypes.type_of(example)[0])


def _delta(dtype: Any, shape: Any, axes: Any) -> Any:
    """Ones where the indices of the axes are equal, zeros at all other places."""
    iotas = [lax.broadcasted_iota(np.uint32, shape, axis) for axis in axes]
    equal = [lax.eq(a, b) for a, b in itertools.pairwise(iotas)]
    return lax.convert_element_type(functools.reduce(lax.bitwise_and, equal), dtype)


IndexingStrategy = enum.Enum("IndexingStrategy", ["AUTO", "GATHER", "SCATTER", "STATIC_SLICE", "DYNAMIC_SLICE"])
"""How elements are found: ways to one result."""


def _take(arr: Any, idx: Any, *, mode: Any = None, fill_value: Any = None, normalize_indices: bool = True,
          strategy: Any = None, **keywords: Any) -> Any:  # fmt: skip
    keywords |= {"mode": mode, "fill_value": fill_value, "wrap_negative_indices": normalize_indices}
    return jnp.asarray(arr).at[idx].get(**keywords)


def _windows(reducer: Any, start: Any, operand: Any, dims: Any, strides: Any, padding: Any) -> Any:
    return lax.reduce_window(operand, np.asarray(start, operand.dtype), reducer, dims, strides, padding)


def _maximum(select: Any, *window: Any) -> Any:
    reducer, start = (lax.max, -np.inf) if select is lax.ge_p else (lax.min, np.inf)
    return lambda x: _windows(reducer, start, x, *window)


def _select_and_gather_add(tangents: Any, operand: Any, select: Any, dims: Any, strides: Any, padding: Any,
                           *_: Any) -> Any:  # fmt: skip
    """The derivative of a maximum over windows. Of integers, which have none, by way of floats."""
    if not dtypes.is_inexact(operand.dtype):
        found = _select_and_gather_add(*[x.astype(float) for x in (tangents, operand)], select, dims, strides, padding)
        return found.astype(operand.dtype)
    return hloom.jvp(_maximum(select, dims, strides, padding), (operand,), (tangents,))[1]


def _select_and_scatter_add(cotangents: Any, operand: Any, select: Any, *window: Any) -> Any:
    """Its transpose."""
    return hloom.vjp(_maximum(select, *window), operand)[1](cotangents)[0]


def _place_of(best: Any, x: Any, axis_name: Any) -> Any:
    """The least index along a mapped axis where x is the best."""
    there = jnp.where(x == best, lax.axis_index(axis_name), lax.axis_size(axis_name))
    return lax.pmin(there, axis_name)


def pargmax(x: Any, axis_name: Any) -> Any:
    return _place_of(lax.pmax(x, axis_name), x, axis_name)


def pargmin(x: Any, axis_name: Any) -> Any:
    return _place_of(lax.pmin(x, axis_name), x, axis_name)


# ---- keys


class _KeyType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, hloom.Array) and isinstance(value.dtype, ExtendedDType)


class PRNGKeyArray(metaclass=_KeyType):
    """Arrays of keys: they have no class of their own."""


def _wrap(words: Any, *, impl: Any) -> Any:
    return hloom.random.wrap_key_data(words, impl=impl)


def _bits(key: Any, *, bit_width: int, shape: Any) -> Any:
    return hloom.random.bits(key, shape, f"uint{bit_width}")


_THREEFRY = implementation("threefry2x32")

METHODS: list[tuple[type, str, Any]] = [
    (hloom.Array, "_base_array", property(lambda self: hloom.random.key_data(self))),
    (hloom.Array, "_impl", property(lambda self: self.dtype.impl)),
]

PRIVATE: dict[tuple[str, str], Any] = {
    ("dtypes", "_dtype_and_weaktype"): _dtype_and_weak_type,
    ("dtypes", "_jax_type"): _type_of,
    ("dtypes", "check_and_canonicalize_user_dtype"): _checked,
    ("dtypes", "lattice_result_type"): _lattice_result_type,
    ("dtypes", "to_floating_dtype"): _to_floating,
    ("indexing", "Slice"): Slice,
    ("lax.lax", "_const"): _const,
    ("lax.lax", "_convert_element_type"): convert_element_type,
    ("lax.lax", "_delta"): _delta,
    ("lax.linalg", "geqrf"): geqrf,
    ("lax.parallel", "pargmax"): pargmax,
    ("lax.parallel", "pargmin"): pargmin,
    ("numpy.indexing", "IndexingStrategy"): IndexingStrategy,
    ("numpy.indexing", "rewriting_take"): _take,
    ("lax.utils", "int_dtype_for_dim"): lambda size, *, signed: _int_for(size, signed),
    ("lax.utils", "int_dtype_for_shape"): lambda shape, *, signed: _int_for(largest(shape), signed),
    ("lax.windowed_reductions", "_select_and_gather_add"): _select_and_gather_add,
    ("lax.windowed_reductions", "_select_and_scatter_add"): _select_and_scatter_add,
    ("random.prng", "KeyTy"): KeyDType,
    ("random.prng", "PRNGKeyArray"): PRNGKeyArray,
    ("random.prng", "random_bits"): _bits,
    ("random.prng", "random_unwrap"): lambda keys: hloom.random.key_data(keys),
    ("random.prng", "random_wrap"): _wrap,
    ("random.threefry2x32", "threefry_fold_in"): lambda key, data: _THREEFRY.fold_in(as_value(key), as_value(data)),
    ("random.threefry2x32", "threefry_prng_impl"): _THREEFRY,
    ("random.threefry2x32", "threefry_random_bits"): lambda key, *args: _THREEFRY.random_bits(as_value(key), *args),
    ("random.threefry2x32", "threefry_seed"): lambda seed: _THREEFRY.seed(as_value(seed)),
    ("random.threefry2x32", "threefry_split"): lambda key, shape: _THREEFRY.split(as_value(key), shape),
    ("scipy.special", "_xlogx"): lambda x: hloom.scipy.special.xlogy(x, x),
}
