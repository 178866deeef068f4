"""Random number generators as objects: the functions that `hloom.random` needs, and the dtype of the keys.

A new generator is a file like `threefry.py` that registers a `PRNGImpl`; all functions of `hloom.random` then take its
keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from ..hlo.support.records import dataclass
from ..tracer.arrays.extended import ExtendedDType, prng_key
from ..tracer.core import Value
from ..tracer.settings.context import thread

Shape = tuple[int, ...]


class KeyDType(ExtendedDType):
    """The dtype of the keys of one generator: ``key<fry>``, stored as uint32 words."""

    __slots__ = ("impl",)

    type = prng_key

    def __init__(self, impl: PRNGImpl) -> None:
        super().__init__(f"key<{impl.tag}>", np.dtype(np.uint32), impl.key_shape)
        self.impl: PRNGImpl = impl

    def __reduce__(self) -> tuple[object, ...]:
        return _dtype_of, (self.impl.name,)


@dataclass(frozen=True, eq=False)
class PRNGImpl:
    """A generator. Its functions take and return keys as words, uint32[..., *key_shape], and are traced."""

    name: str
    """Its name in `key(seed, impl=name)`."""
    tag: str
    """A short name, for the dtype."""
    key_shape: Shape
    seed: Callable[[Value], Value]
    """seed(integer scalar) -> one key."""
    split: Callable[[Value, Shape], Value]
    """split(key, shape) -> keys of that shape."""
    random_bits: Callable[[Value, int, Shape], Value]
    """random_bits(key, 8, 16, 32 or 64, shape) -> unsigned integers of this number of bits."""
    fold_in: Callable[[Value, Value], Value]
    """fold_in(key, uint32 scalar) -> one key."""
    by_index: bool = False
    """Whether element i of `random_bits` and `split` depends only on the key and i, for any shape, with
    `jax_threefry_partitionable`."""
    dtype: KeyDType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", KeyDType(self))

    def __repr__(self) -> str:
        return f"<PRNGImpl {self.name}>"


_IMPLEMENTATIONS: dict[str, PRNGImpl] = {}


def register_implementation(impl: PRNGImpl) -> PRNGImpl:
    """Register `impl` under its name. ValueError if the name is taken."""
    if impl.name in _IMPLEMENTATIONS:
        raise ValueError(f"a random number generator named {impl.name!r} exists already")
    _IMPLEMENTATIONS[impl.name] = impl
    return impl


def spec_of(impl: PRNGImpl) -> str | PRNGImpl:
    """The value for an argument `impl` that selects this generator: its name if it is registered, else itself."""
    return impl.name if _IMPLEMENTATIONS.get(impl.name) is impl else impl


def implementation(spec: Any) -> PRNGImpl:
    """The generator that an argument `impl` means: None (the setting `jax_default_prng_impl`), a name, the dtype of
    keys, or a PRNGImpl."""
    if isinstance(spec, PRNGImpl):
        return spec
    if isinstance(spec, KeyDType):
        return spec.impl
    name = thread.settings.context.default_prng_impl if spec is None else spec
    if not isinstance(name, str):
        raise TypeError(f"unrecognized type {type(name)} for specifying PRNG implementation: {name!r} is no name")
    if name in _IMPLEMENTATIONS:
        return _IMPLEMENTATIONS[name]
    known = ", ".join(map(repr, _IMPLEMENTATIONS))
    raise ValueError(f"unrecognized PRNG implementation {name!r}; there is {known}")


def _dtype_of(name: str) -> KeyDType:
    """For unpickling."""
    return implementation(name).dtype
