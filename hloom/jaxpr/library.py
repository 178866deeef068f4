"""Primitives that are functions of `hloom.lax` under other parameters. Those with the same parameters need no entry
(`primitives.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..autodiff.api import jvp, vjp
from ..autodiff.vmap import vmap
from ..tracer import dtypes, ops
from ..tracer.core import Value
from ..tracer.sharding.placement import device_put
from .primitives import primitive


def _lax() -> Any:
    """The library is above this folder: its functions carry primitives, which the view shows."""
    return import_module("..lax", __package__)


def _define_arg_reduction(name: str) -> None:
    @primitive(name)
    def apply(x: Value, *, axes: Sequence[int], index_dtype: Any) -> Any:
        (axis,) = axes
        return getattr(_lax(), name)(x, axis, index_dtype)


for _name in ("argmax", "argmin"):
    _define_arg_reduction(_name)


@primitive("exp2")
def _exp2(x: Value, *, accuracy: None = None) -> Any:
    return _lax().exp2(x)


@primitive("stack")
def _stack(*operands: Value, axis: int = 0) -> Any:
    return _lax().stack(operands, axis)


@primitive("unstack", multiple_results=True)
def _unstack(x: Value, *, axis: int = 0) -> list[Any]:
    return list(_lax().unstack(x, axis))


@primitive("approx_top_k", multiple_results=True)
def _approx_top_k(x: Value, *, k: int, is_max_k: bool = True, **params: Any) -> list[Any]:
    return list((_lax().approx_max_k if is_max_k else _lax().approx_min_k)(x, k, **params))


@primitive("dce_sink", multiple_results=True)
def _dce_sink(x: Value, *, prevent_mlir_dce: bool = False) -> list[Any]:
    _lax().dce_sink(x, prevent_mlir_dce=prevent_mlir_dce)
    return []


@primitive("sharding_constraint")
def _sharding_constraint(x: Value, *, sharding: Any, **params: Any) -> Any:
    return _lax().with_sharding_constraint(x, sharding)


@primitive("device_put", multiple_results=True)
def _device_put(*operands: Value, devices: Sequence[Any], srcs: Any = (), copy_semantics: Any = ()) -> list[Any]:
    """To the only device, from any place."""
    return [device_put(x, device) for x, device in zip(operands, devices, strict=True)]


@primitive("add_any")
def _add_any(x: Value, y: Value) -> Any:
    """The sum of two cotangents."""
    return ops.add(x, y)


# ---- derivatives of extrema of windows


def _extremum(select_prim: Any, window: Sequence[int], strides: Sequence[int], padding: Any, **dilation: Any) -> Any:
    """The reduction of windows to the element that `select_prim`, `ge_p` or `le_p`, chooses."""
    lax, is_max = _lax(), str(select_prim) == "ge"

    def reduced(x: Any) -> Any:
        first = lax.full((), *_limits(x.aval.dtype, is_max))
        return lax.reduce_window(x, first, lax.max if is_max else lax.min, window, strides, padding, **dilation)

    return reduced


def _limits(dtype: Any, is_max: bool) -> tuple[Any, Any]:
    """The value that every number replaces, and the dtype."""
    if dtypes.is_inexact(dtype):
        return (-np.inf if is_max else np.inf), dtype
    return (dtypes.iinfo(dtype).min if is_max else dtypes.iinfo(dtype).max), dtype


@primitive("select_and_scatter_add")
def _select_and_scatter_add(
    source: Value, operand: Value, *, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any
) -> Any:
    """The transpose of the derivative of `reduce_window_max`, at `operand`."""
    (found,) = vjp(_extremum(select_prim, window_dimensions, window_strides, padding), operand)[1](source)
    return found


@primitive("select_and_gather_add")
def _select_and_gather_add(
    tangents: Value, operand: Value, *, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any,
    base_dilation: Any, window_dilation: Any,
) -> Any:  # fmt: skip
    """The derivative of `reduce_window_max`, at `operand`."""
    dilation = {"base_dilation": base_dilation, "window_dilation": window_dilation}
    reduced = _extremum(select_prim, window_dimensions, window_strides, padding, **dilation)
    return jvp(reduced, (operand,), (tangents,))[1]


# ---- random numbers


def _random() -> Any:
    return import_module("..random", __package__)


@primitive("random_seed")
def _random_seed(seeds: Value, *, impl: Any) -> Any:
    return import_module("..extend.random", __package__).random_seed(seeds, impl)


@primitive("random_split")
def _random_split(keys: Value, *, shape: Sequence[int]) -> Any:
    return _on_each(lambda key: _random().split(key, tuple(shape)), keys)


@primitive("random_fold_in")
def _random_fold_in(keys: Value, data: Value) -> Any:
    """Keys and data are broadcast to each other, as arrays are."""
    sizes = np.broadcast_shapes(keys.aval.shape, data.aval.shape)
    lax = _lax()
    both = [lax.broadcast_in_dim(v, sizes, range(len(sizes) - v.aval.ndim, len(sizes))) for v in (keys, data)]
    return _on_each(_random().fold_in, *both)


@primitive("random_bits")
def _random_bits(keys: Value, *, bit_width: int, shape: Sequence[int]) -> Any:
    return _on_each(lambda key: _random().bits(key, tuple(shape), f"uint{bit_width}"), keys)


def _on_each(function: Any, *arrays: Value) -> Any:
    """The function of each element."""
    for _ in range(arrays[0].aval.ndim):
        function = vmap(function)
    return function(*arrays)


@primitive("threefry2x32", multiple_results=True)
def _threefry2x32(k1: Value, k2: Value, x1: Value, x2: Value) -> list[Any]:
    """The cipher: two words of a key, two of the plaintext."""
    cipher = import_module("..random.threefry", __package__).threefry_2x32
    return list(cipher((k1, k2), x1, x2))


@primitive("conj")
def _conj(x: Value, *, input_dtype: Any = None) -> Any:
    if x.aval.dtype.kind != "c":
        x = ops.make_complex(x, ops.full_like(x, 0))
    return _lax().conj(x)
