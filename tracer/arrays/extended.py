"""Extended dtypes: element types that HLO lacks, stored as small arrays of a type that it has.

A key of a random number generator is an element: ``key<fry>[3]`` is an array of three keys, stored as ``u32[3,2]``. The
type of such an array (`ShapedArray`) has the shape that users see, and `storage`, the type in HLO. `overlay.py` has the
values, `extended_ops.py` defines ops on such elements by their storage.

Names follow jax.dtypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...hlo.library import set_module


class extended(np.generic):
    """The scalar type of all extended dtypes, for `issubdtype`.

    >>> jnp.issubdtype(hloom.random.key(0).dtype, hloom.dtypes.extended)
    True
    """


class prng_key(extended):
    """The scalar type of keys of random number generators, for `issubdtype`.

    >>> jnp.issubdtype(hloom.random.key(0).dtype, hloom.dtypes.prng_key)
    True
    """


set_module("dtypes", extended, prng_key)


class ExtendedDType:
    """A dtype with elements that are arrays of `storage_shape` and `storage_dtype`. Equal means identical.

    It has the attributes of `numpy.dtype` that functions read from all dtypes. A class of a user says how elements are
    stored as for JAX: by `_rules.physical_element_aval`, which gives an object with a shape and a dtype.
    """

    __slots__ = ("name", "storage_dtype", "storage_shape")

    kind = "V"
    type: Any = extended
    """The scalar type."""

    def __init__(self, name: str, storage_dtype: np.dtype[Any], storage_shape: tuple[int, ...]) -> None:
        self.name: str = name
        self.storage_dtype: np.dtype[Any] = storage_dtype
        self.storage_shape: tuple[int, ...] = storage_shape

    def __getattr__(self, name: str) -> Any:
        if name not in ("storage_dtype", "storage_shape"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        stored = self._rules.physical_element_aval(self)
        return np.dtype(stored.dtype) if name == "storage_dtype" else tuple(stored.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.storage_dtype.itemsize * int(np.prod(self.storage_shape))

    def __repr__(self) -> str:
        return self.name
