"""Private names that JAX's tests of Pallas use: masked accesses of references, and the indices of references."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import hloom
import hloom.numpy as jnp
from hloom.experimental.pallas import triton


def _elements(ref: Any, idx: Any) -> Any:
    """The index with positions in place of one block: elements of a block that does not fit are left out."""
    if isinstance(idx, hloom.experimental.pallas.Slice):
        return idx.start + jnp.arange(idx.size) * idx.stride
    return idx


def _swap(ref: Any, idx: Any, val: Any, *, mask: Any = None, **_: Any) -> Any:
    place = ref.at[_elements(ref, ... if idx is None else idx)]
    before = place[...]
    place[...] = val if mask is None else jnp.where(mask, val, before)
    return before if mask is None else jnp.where(mask, before, val)


def _load(ref: Any, idx: Any, *, mask: Any = None, other: Any = None, **_: Any) -> Any:
    return triton.load(ref.at[... if idx is None else idx], mask=mask, other=other)


def _store(ref: Any, idx: Any, val: Any, *, mask: Any = None, **_: Any) -> None:
    triton.store(ref.at[... if idx is None else idx], val, mask=mask)


class _NDIndexer:
    """An index of a reference: which shape it has, and which it refuses, is what indexing a reference says."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape

    @classmethod
    def from_indices_shape(cls, indices: Any, shape: tuple[int, ...]) -> _NDIndexer:
        ref = hloom.new_ref(jnp.zeros(shape))
        return cls(hloom.eval_shape(lambda: ref[indices]).shape)

    def get_indexer_shape(self) -> tuple[int, ...]:
        return self._shape


PRIVATE: dict[tuple[str, str], Any] = {
    ("pallas.primitives", "swap"): _swap,
    ("pallas.primitives", "load"): _load,
    ("pallas.primitives", "store"): _store,
    ("state.indexing", "NDIndexer"): _NDIndexer,
}

PUBLIC: dict[tuple[str, str], Any] = {
    ("experimental.mosaic.gpu", "core"): SimpleNamespace(
        artificial_shared_memory_limit=lambda *_: contextlib.nullcontext()
    ),
}
