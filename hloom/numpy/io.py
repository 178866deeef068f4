"""Arrays from files, buffers and texts, and as texts. Printing follows NumPy's options.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from ..hlo.element_type import element_type_of
from ..hlo.errors import UnsupportedElementTypeError
from ..tracer.arrays.array import resolved
from ..tracer.core import Value
from .array_creation import asarray


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file or a path, in NumPy's format. Arguments as for numpy.save; arrays are not pickled.

    >>> import io, hloom.numpy as jnp
    >>> jnp.save(io.BytesIO(), jnp.arange(3))
    """
    np.save(file, arr, allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to a file or a path, under the names "arr_0", ... and under the keywords' names.

    >>> import io, hloom.numpy as jnp
    >>> jnp.savez(io.BytesIO(), jnp.arange(3), x=jnp.ones(2))
    """
    np.savez(file, *args, allow_pickle=allow_pickle, **kwds)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """The array that `save` wrote; a file of `savez` as NumPy's mapping from names to NumPy arrays.

    Arguments as for numpy.load. Files do not know bfloat16: elements of two bytes without a type are taken for it.
    Other contents, such as arrays of objects (with `allow_pickle`) or of strings, stay NumPy arrays.

    >>> import io, hloom.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    if found.dtype == np.dtype("V2"):
        found = found.view(ml_dtypes.bfloat16)
    try:
        element_type_of(found.dtype)
    except UnsupportedElementTypeError:
        return found
    return asarray(found)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Value:
    """The bytes of a buffer from `offset` as elements of a dtype: `count`, or all. `float` means float64 in the buffer.

    >>> jnp.frombuffer(bytes([1, 0, 2, 0]), dtype="int16")
    Array([1, 2], dtype=int16)
    """
    return asarray(np.frombuffer(buffer, np.dtype(dtype), count, offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Value:
    """The numbers in a text, which `sep` separates: `count`, or all.

    >>> jnp.fromstring("1 2 3", dtype=int, sep=" ")
    Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, np.dtype(dtype), count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> NoReturn:
    """Not implemented, as in JAX: reading a file depends on more than arguments. Use asarray(numpy.fromfile(...)).

    >>> import tempfile
    >>> import numpy as np
    >>> import hloom.numpy as jnp
    >>> with tempfile.TemporaryFile() as file:
    ...     np.array([1, 2], np.int32).tofile(file)
    ...     _ = file.seek(0)
    ...     jnp.asarray(np.fromfile(file, np.int32))
    Array([1, 2], dtype=int32)
    """
    raise _impure("fromfile")


def fromiter(*args: Any, **kwargs: Any) -> NoReturn:
    """Not implemented, as in JAX: an iterator gives its items once. Use asarray(numpy.fromiter(...)).

    >>> import numpy as np, hloom.numpy as jnp
    >>> jnp.asarray(np.fromiter((k * k for k in range(4)), np.int32))
    Array([0, 1, 4, 9], dtype=int32)
    """
    raise _impure("fromiter")


def _impure(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name} depends on more than its arguments, and so has no meaning inside of jit: use "
        f"hloom.numpy.asarray(numpy.{name}(...)) outside of it"
    )


# ---- texts


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The text of `repr` for an array, with other options.

    >>> jnp.array_repr(jnp.array([1.234]), precision=2)
    'Array([1.23], dtype=float32)'
    """
    return np.array_repr(resolved(arr), max_line_width, precision, suppress_small)


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The text of `str` for an array, with other options.

    >>> jnp.array_str(jnp.array([1.234]), precision=2)
    '[1.23]'
    """
    return np.array_str(resolved(a), max_line_width, precision, suppress_small)


def get_printoptions() -> dict[str, Any]:
    """How arrays are printed: NumPy's options, which hold for both.

    >>> jnp.get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Change how arrays are printed, NumPy's too. Arguments as for numpy.set_printoptions: precision, threshold, ...

    `printoptions` does it for a while.

    >>> jnp.set_printoptions(precision=3)
    >>> jnp.array([1 / 3])
    Array([0.333], dtype=float32)
    >>> jnp.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """`set_printoptions` for the duration of a `with` block.

    >>> with jnp.printoptions(precision=2):
    ...     print(jnp.array([1.234]))
    [1.23]
    """
    inspect.signature(np.set_printoptions).bind(*args, **kwargs)  # TypeError here, and not in the `with` block
    return np.printoptions(*args, **kwargs)


def iterable(y: Any) -> bool:
    """True if a loop can go over it.

    >>> jnp.iterable(jnp.ones(2)), jnp.iterable(2)
    (True, False)
    """
    return bool(np.iterable(resolved(y)))
