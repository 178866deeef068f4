"""Shared by NumPy-like functions: converting arguments to values of one dtype and one shape, and reading axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, cast

import numpy as np

from ..hlo.sizes import as_size
from ..lax.movement import broadcast_in_dim, broadcast_shapes, canonical_axis
from ..namespaces.declaring import F, declared
from ..tracer import dtypes
from ..tracer.arrays.array import Array, array_from_numpy, array_from_scalar, as_value, refuse_masked
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.aval import ShapedArray
from ..tracer.caches import on_clear
from ..tracer.callers import is_call_of_user, leads_on
from ..tracer.core import Value, computes_at_once
from ..tracer.errors import ConcretizationTypeError, OperandError
from ..tracer.ops import convert
from ..tracer.settings.context import current_context
from ..tracer.source import user_line, warn_user

Axis = Any
"""None, an integer or a tuple of integers."""


def check_arraylike(name: str, *args: Any) -> None:
    """OperandError (a TypeError) unless all are arrays or numbers."""
    for position, arg in enumerate(args):
        if not isinstance(arg, _ARRAYLIKE) and not hasattr(arg, "__jax_array__"):
            raise OperandError(
                f"{name} requires ndarray or scalar arguments, got {type(arg).__name__} at position {position}\n"
                "  Lists and tuples become arrays with hloom.numpy.asarray.",
                f"{name}_arraylike",
            )


def ensure_arraylike(name: str, x: Any) -> Value:
    """The argument as a value; OperandError (a TypeError) unless it is an array or a number."""
    if isinstance(x, ArrayBase):
        return x
    check_arraylike(name, x)
    return as_value(x)


def elementwise(function: F) -> F:
    """A public function of single elements, which applies to elements that a traced mask chooses, too."""
    made = taking_selections(function)
    leads_on(cast("FunctionType", made).__code__)
    return declared(function, made)


def taking_selections(function: F) -> F:
    """A function of single elements that also takes elements that a traced mask chooses (`selections.py`)."""
    code = cast("FunctionType", function).__code__
    is_named = code.co_argcount > code.co_posonlyargcount or code.co_kwonlyargcount
    make = _of_any if is_named else _WITH_SELECTIONS.get(code.co_argcount, _of_any)
    return cast("F", make(function))


def _of_any(function: Callable[..., Any]) -> Callable[..., Any]:
    def op(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ConcretizationTypeError as error:
            return error.of_elements(op, *args, **kwargs)

    return op


def _of_one(function: Callable[..., Any]) -> Callable[..., Any]:
    def op(x: Any, /) -> Any:
        try:
            return function(x)
        except ConcretizationTypeError as error:
            return error.of_elements(op, x)

    return op


def _of_two(function: Callable[..., Any]) -> Callable[..., Any]:
    def op(x: Any, y: Any, /) -> Any:
        try:
            return function(x, y)
        except ConcretizationTypeError as error:
            return error.of_elements(op, x, y)

    return op


_WITH_SELECTIONS = {1: _of_one, 2: _of_two}
"""By the number of arguments, if they have no names: a call with the same parameters costs a third."""


def ensure_arraylikes(name: str, *args: Any) -> list[Value]:
    """`ensure_arraylike` of each argument."""
    check_arraylike(name, *args)
    return [as_value(a) for a in args]


def mask(name: str, where: ArrayLike) -> Value:
    """The argument `where` of a reduction as a value; OperandError unless it is boolean."""
    value = ensure_arraylike(name, where)
    if value.aval.dtype.kind != "b":
        raise OperandError(
            f"jnp.{name}: where must be None or a boolean array, not {value.aval.str_short()}\n  Compare with 0 to "
            "choose the elements that are not 0.",
            "where",
        )
    return value


def no_out(name: str, out: None) -> None:
    """OperandError for an `out` argument, which exists for NumPy's sake only."""
    if out is not None:
        raise OperandError(f"{name}: arrays are immutable, the out argument must be None", "out")


_NUMPY = (np.ndarray, np.generic)
_NUMBERS = (bool, int, float, complex)
_ARRAYLIKE = (ArrayBase, *_NUMPY, *_NUMBERS)


def to_dtype(x: Any, dtype: np.dtype[Any], weak: bool) -> Value:
    """`x` as a value of a canonical dtype; Python numbers become constants of it at once."""
    if isinstance(x, ArrayBase):
        aval = x.aval
        if aval.dtype is dtype and aval.weak_type is weak:
            return x
        return convert(as_value(x), dtype, weak)
    if dtypes.is_extended(dtype):
        return convert(as_value(x), dtype, weak)
    if isinstance(x, _NUMPY):
        if type(x) is not np.ndarray:
            refuse_masked(x)
        array = array_from_numpy(np.asarray(x).astype(dtype, copy=False), dtype)
        return array.with_aval(array.aval.with_weak_type(weak)) if weak else array
    if isinstance(x, _NUMBERS):
        # The number must fit its default dtype (OverflowError), but wraps or rounds on the way to another one.
        own = dtypes.python_scalar_dtype(type(x))
        if dtype is own or dtype.kind in "fc" or dtypes.is_inexact(dtype):
            scalar = array_from_scalar(x, dtype)
        else:
            scalar = Array(ShapedArray((), dtype), np.array(x, own).astype(dtype))
        return scalar.with_aval(scalar.aval.with_weak_type(weak)) if weak else scalar
    return convert(as_value(x), dtype, weak)


def strong(x: Value) -> Value:
    """The value, its dtype no longer weak."""
    return convert(x, x.aval.dtype, False)


def strong_array(x: Value) -> Value:
    """The value, no longer weak if it has dimensions: JAX's result where a weak array meets a constant of its dtype."""
    return strong(x) if x.aval.shape else x


_scalars: dict[tuple[object, ...], Value | None] = {}
"""The results of `scalar_beside`; emptied when there are many."""
_MOST_SCALARS = 1024
on_clear(_scalars.clear)


def scalar_beside(aval: ShapedArray, number: Any) -> Value | None:
    """A number of Python as a scalar of an array's type, if that is the type that both promote to, and if an operation
    on them is computed at once: the same scalar for all operations. None for anything else."""
    kind = type(number)
    if (kind is not float and kind is not int) or not computes_at_once():
        return None
    key = number or repr(number), kind, aval, current_context()  # -0.0 is another number than 0.0
    try:
        return _scalars[key]
    except KeyError:
        pass
    dtype, weak = dtypes.promote([(aval.dtype, aval.weak_type), dtypes.type_of(number)])
    is_same = dtype is aval.dtype and weak is aval.weak_type and aval.is_plain
    if len(_scalars) >= _MOST_SCALARS:
        _scalars.clear()
    found = _scalars[key] = to_dtype(number, dtype, weak) if is_same else None
    return found


def promote_dtypes(*args: Any, name: str | None = None) -> list[Value]:
    """Values in the dtype that all promote to. `name`: of the function that refuses what is no array or number."""
    if name is not None:
        check_arraylike(name, *args)
    dtype, weak = dtypes.promote([dtypes.type_of(a) for a in args])
    return [to_dtype(a, dtype, weak) for a in args]


def promote_dtypes_inexact(*args: Any, name: str | None = None) -> list[Value]:
    """As `promote_dtypes`; the dtype is made a float if it is not a float or complex."""
    if len(args) == 1 and isinstance(args[0], ArrayBase) and args[0].aval.dtype.kind == "f":
        return [args[0]]
    if name is not None:
        check_arraylike(name, *args)
    dtype, weak = dtypes.promote([dtypes.type_of(a) for a in args])
    inexact = dtypes.to_inexact(dtype)
    return [to_dtype(a, inexact, weak) for a in args]


def broadcast_values(values: Sequence[Value], name: str = "broadcasting") -> list[Value]:
    """Values broadcast to one shape, for the function `name`."""
    if len(values) == 1:
        return list(values)
    shapes = [v.aval.shape for v in values]
    if shapes.count(shapes[0]) == len(shapes):
        return list(values)
    check_ranks(name, shapes)
    shape = broadcast_shapes(*shapes)
    return [broadcast_to_shape(v, shape) for v in values]


def check_ranks(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """The check of `numpy_rank_promotion` for a user's arrays of different ranks; scalars have all ranks."""
    mode = current_context().numpy_rank_promotion
    if mode == "allow" or len({len(shape) for shape in shapes if shape}) < 2 or not is_call_of_user():
        return
    listed = " ".join(map(str, shapes))
    if mode == "warn":
        warn_user(
            f"Following NumPy automatic rank promotion for {name} on shapes {listed}, at {user_line()}. "
            "hloom.numpy_rank_promotion('allow') ends this warning."
        )
        return
    raise OperandError(
        f"Operands could not be broadcast together for {name} on shapes {listed} and with the config option "
        "jax_numpy_rank_promotion='raise'.\n  Give the array with fewer dimensions those that it lacks, as in "
        "x[None, :].",
        "rank_promotion",
    )


def broadcast_to_shape(x: Value, shape: tuple[int, ...]) -> Value:
    """One value broadcast to a shape."""
    if x.aval.shape == shape:
        return x
    return broadcast_in_dim(x, shape, range(len(shape) - len(x.aval.shape), len(shape)))


def promote(name: str, *args: Any) -> list[Value]:
    """Values of one dtype and shape; OperandError if an argument is not an array or the shapes do not fit."""
    return broadcast_values(promote_dtypes(*args, name=name), name)


def promote_inexact(name: str, *args: Any) -> list[Value]:
    """As `promote`, with a floating or complex dtype."""
    return broadcast_values(promote_dtypes_inexact(*args, name=name), name)


def scalars_apart(values: list[Value], name: str = "broadcasting") -> list[Value]:
    """Two values broadcast to one shape, unless one is a scalar: lax functions of two operands take scalars."""
    x, y = values
    return values if not (x.aval.shape and y.aval.shape) else broadcast_values(values, name)


def index_tuple(what: str, given: Any) -> tuple[int, ...]:
    """An integer, or a sequence (an array, too) of integers, as a tuple of integers; TypeError for anything else."""
    try:
        return (as_size(given),)
    except ConcretizationTypeError:
        raise
    except TypeError:
        pass
    try:
        return tuple([as_size(n) for n in given])
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise OperandError(
            f"{what} must be an integer or a sequence of integers, not {given!r}", "index_tuple"
        ) from None


def canonical_axes(axis: Axis, rank: int) -> tuple[int, ...]:
    """None (all), an integer or a sequence as sorted distinct axes; ValueError if out of bounds or repeated."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple | list | range) else (axis,)
    axes = tuple(canonical_axis(a, rank) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}: a repeated axis")
    return tuple(sorted(axes))
