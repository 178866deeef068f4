"""jax._src.numpy.util: arguments of functions in NumPy's manner, as arrays of one dtype, of one rank."""

import warnings as _warnings
from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import numpy as _np

from .... import Array as _Array
from ....dtypes import float0 as _float0
from ....lax import broadcast_shapes as _broadcast_shapes
from ....numpy import asarray as _asarray
from ....numpy import expand_dims as _expand_dims
from ....tracer import dtypes as _dtypes
from ....tracer.ops import convert as _convert
from ..dtypes import to_numeric_dtype as _to_numeric

__all__ = [
    "check_arraylike",
    "check_arraylike_or_none",
    "check_no_float0s",
    "ensure_arraylike",
    "ensure_arraylike_tuple",
    "promote_args",
    "promote_args_complex",
    "promote_args_inexact",
    "promote_args_numeric",
    "promote_dtypes",
    "promote_dtypes_complex",
    "promote_dtypes_inexact",
    "promote_dtypes_numeric",
    "promote_shapes",
]


def _arraylike(x: _Any) -> bool:
    """Whether it is an array, a number, or has __jax_array__."""
    return isinstance(x, _np.ndarray | _Array) or getattr(x, "__jax_array__", None) is not None or bool(_np.isscalar(x))


def check_arraylike(fun_name: str, *args: _Any, emit_warning: bool = False, stacklevel: int = 3) -> None:
    """TypeError, or a warning, unless all are arrays or numbers."""
    for place, each in enumerate(args):
        if not _arraylike(each):
            message = f"{fun_name} requires ndarray or scalar arguments, got {type(each)} at position {place}."
            if not emit_warning:
                raise TypeError(message)
            _warnings.warn(
                f"{message} In a future JAX release this will be an error.", DeprecationWarning, stacklevel=stacklevel
            )


def check_arraylike_or_none(fun_name: str, *args: _Any) -> None:
    """TypeError unless all are arrays, numbers or None."""
    for place, each in enumerate(args):
        if each is not None and not _arraylike(each):
            raise TypeError(
                f"{fun_name} requires ndarray, scalar, or None arguments, got {type(each)} at position {place}."
            )


def check_no_float0s(fun_name: str, *args: _Any) -> None:
    """TypeError if one is the derivative with respect to an integer."""
    if any(getattr(each, "dtype", None) == _float0 for each in args):
        raise TypeError(f"Called {fun_name} with a float0 array: it is the derivative with respect to an integer.")


def ensure_arraylike(fun_name: str, /, *args: _Any) -> _Any:
    """One array, or a tuple of arrays; TypeError as of `check_arraylike`."""
    arrays = ensure_arraylike_tuple(fun_name, args)
    return arrays[0] if len(arrays) == 1 else arrays


def ensure_arraylike_tuple(fun_name: str, tup: _Sequence[_Any]) -> tuple[_Array, ...]:
    """A tuple of arrays; TypeError as of `check_arraylike`."""
    check_arraylike(fun_name, *tup)
    return tuple(map(_asarray, tup))


def _promoted(args: _Sequence[_Any], change: _Callable[[_Any], _Any]) -> list[_Array]:
    dtype, weak = _dtypes.result_type(*args, return_weak_type_flag=True)
    return [_convert(_asarray(each), change(dtype), weak) for each in args]


def promote_dtypes(*args: _Any) -> list[_Array]:
    """Arrays of one dtype."""
    return _promoted(args, lambda dtype: dtype) if len(args) > 1 else [_asarray(each) for each in args]


def promote_dtypes_inexact(*args: _Any) -> list[_Array]:
    """Arrays of one dtype, which is floating or complex."""
    return _promoted(args, _dtypes.to_inexact)


def promote_dtypes_numeric(*args: _Any) -> list[_Array]:
    """Arrays of one dtype, which is not bool."""
    return _promoted(args, _to_numeric)


def promote_dtypes_complex(*args: _Any) -> list[_Array]:
    """Arrays of one complex dtype."""
    return _promoted(args, _dtypes.to_complex)


def promote_shapes(fun_name: str, *args: _Any) -> list[_Array]:
    """Arrays of one rank: dimensions of 1 are put in front. Scalars stay scalars if all others have one rank.

    Errors are those of broadcasting.
    """
    arrays = [_asarray(each) for each in args]
    if len({x.ndim for x in arrays if x.ndim}) < 2:
        return arrays
    rank = len(_broadcast_shapes(*(x.shape for x in arrays)))
    return [_expand_dims(x, tuple(range(rank - x.ndim))) for x in arrays]


def _checked(fun_name: str, args: _Sequence[_Any]) -> _Sequence[_Any]:
    check_arraylike(fun_name, *args)
    found = [each.__jax_array__() if hasattr(each, "__jax_array__") else each for each in args]
    check_no_float0s(fun_name, *found)
    return found


def promote_args(fun_name: str, *args: _Any) -> list[_Array]:
    """Arrays of one dtype and one rank; TypeError as of `check_arraylike`."""
    return promote_shapes(fun_name, *promote_dtypes(*_checked(fun_name, args)))


def promote_args_inexact(fun_name: str, *args: _Any) -> list[_Array]:
    """Arrays of one floating or complex dtype and one rank; TypeError as of `check_arraylike`."""
    return promote_shapes(fun_name, *promote_dtypes_inexact(*_checked(fun_name, args)))


def promote_args_numeric(fun_name: str, *args: _Any) -> list[_Array]:
    """Arrays of one dtype, not bool, and one rank; TypeError as of `check_arraylike`."""
    return promote_shapes(fun_name, *promote_dtypes_numeric(*_checked(fun_name, args)))


def promote_args_complex(fun_name: str, *args: _Any) -> list[_Array]:
    """Arrays of one complex dtype and one rank; TypeError as of `check_arraylike`."""
    return promote_shapes(fun_name, *promote_dtypes_complex(*_checked(fun_name, args)))
