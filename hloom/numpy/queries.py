"""Questions about arrays and dtypes that are answered while tracing: sizes and kinds. And the kinds of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax
from ..tracer import dtypes
from ..tracer.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.operators import ArrayBase, ArrayLike
from ..tracer.source import user_line
from .promotion import canonical_axes, check_arraylike

__all__ = [
    "can_cast",
    "iscomplex",
    "iscomplexobj",
    "isdtype",
    "isreal",
    "isrealobj",
    "isscalar",
    "ndim",
    "shape",
    "size",
]


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return len(shape(a))


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of all dimensions."""
    return a.shape if hasattr(a, "shape") else np.shape(a)


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or of those along one axis or several axes. ValueError for an axis that is none."""
    sizes = shape(a)
    return math.prod([sizes[d] for d in canonical_axes(axis, len(sizes))])


def isscalar(element: Any) -> bool:
    """True for numbers and arrays without dimensions."""
    return bool(np.isscalar(element)) or (hasattr(element, "ndim") and element.ndim == 0)


def iscomplexobj(x: Any) -> bool:
    """True if the dtype of an array, a number or a sequence is complex."""
    if x is None:
        return False
    try:
        dtype = x.dtype
    except AttributeError:
        dtype = np.asarray(x).dtype
    return bool(dtype.kind == "c")


def isrealobj(x: Any) -> bool:
    """True if the dtype is not complex."""
    return not iscomplexobj(x)


@compound(small=True)
def iscomplex(x: ArrayLike) -> Value:
    """True where the imaginary part is not 0.

    >>> import hloom.numpy as jnp
    >>> jnp.iscomplex(jnp.array([1 + 1j, 2])).tolist()
    [True, False]
    """
    check_arraylike("iscomplex", x)
    value = as_value(x)
    if not dtypes.is_complex(value.aval.dtype):
        return lax.full_like(value, False, np.bool_)
    return lax.ne(lax.imag(value), lax.full_like(lax.imag(value), 0))


@compound(small=True)
def isreal(x: ArrayLike) -> Value:
    """True where the imaginary part is 0.

    >>> import hloom.numpy as jnp
    >>> jnp.isreal(jnp.array([1 + 1j, 2])).tolist()
    [False, True]
    """
    check_arraylike("isreal", x)
    return lax.bitwise_not(iscomplex(x))


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether NumPy converts one dtype, or the dtype of an array, to another under a rule ("safe", "same_kind", ...).

    >>> import hloom.numpy as jnp
    >>> jnp.can_cast(jnp.int32, jnp.int64), jnp.can_cast(jnp.float32, jnp.int32)
    (True, False)
    """
    given = from_.dtype if isinstance(from_, ArrayBase) else from_
    return bool(np.can_cast(given, np.dtype(to), casting))  # type: ignore[arg-type]


_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """True if a dtype is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric", another dtype, or one of a tuple of these.

    >>> import hloom.numpy as jnp
    >>> jnp.isdtype(jnp.float32, "real floating"), jnp.isdtype(jnp.int8, ("bool", "unsigned integer"))
    (True, False)
    """
    own = np.dtype(dtype)
    found = False
    for each in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(each, str) and each in _KINDS:
            found |= any(dtypes.issubdtype(own, k) for k in _KINDS[each])
            continue
        try:
            found |= own == np.dtype(each)
        except TypeError:
            raise OperandError(
                f"isdtype: a kind is a dtype, or one of {sorted(_KINDS)}, not {each!r}\n  at {user_line()}", "isdtype"
            ) from None
    return found
