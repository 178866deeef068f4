"""Classes of libraries as arrays: tables by class. `hloom.interpreters.xla` and `hloom.core` offer them.

An object of a class in `canonicalize_dtype_handlers` is an argument of all functions of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..tracer.arguments import OWN_TYPES, typeof
from ..tracer.arrays.array import CONVERSIONS, Array, as_value
from ..tracer.core import Value
from ..tracer.sharding.devices import Client as Backend

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]

_SCALARS = tuple({np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"})
_OWN = (Array, np.ndarray, *_SCALARS, bool, int, float, complex)
"""The classes of arrays and numbers that the library knows itself."""

Handler = Callable[[Any], Any]


class _Handlers(dict[type, Handler]):
    """Functions by class. One for a further class is also put into the table that the library reads."""

    def __init__(self, own: Iterable[type], handler: Handler, table: dict[type, Handler]) -> None:
        super().__init__(dict.fromkeys(own, handler))
        self._own, self._table = frozenset(self), table

    def __setitem__(self, kind: type, handler: Handler) -> None:
        if kind in self._own:
            raise TypeError(f"{kind.__name__}: its handler is the library's own, and cannot be replaced")
        self._table[kind] = handler
        super().__setitem__(kind, handler)

    def __delitem__(self, kind: type) -> None:
        super().__delitem__(kind)
        self._table.pop(kind, None)


canonicalize_dtype_handlers: _Handlers = _Handlers(_OWN, as_value, CONVERSIONS)
"""By class: handler(object) -> the array that the object stands for."""
pytype_aval_mappings: _Handlers = _Handlers(_OWN, typeof, OWN_TYPES)
"""By class: handler(object) -> the type of the object, as `hloom.typeof` gives it."""


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Value | list[Value]:
    """The result of a primitive for arrays.

    >>> from hloom.lax import add_p
    >>> apply_primitive(add_p, 1.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return prim.bind(*args, **params)  # type: ignore[no-any-return]
