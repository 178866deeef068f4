"""`block_until_ready`, in the form of an object, so that machine code can take the place of its `__call__`."""

from __future__ import annotations

import functools
from typing import Any

from ..hlo.runners import SitesBlock
from ..hlo.support.tracebacks import boundary
from .arrays.array import ALWAYS_READY, Array, read_buffer
from .arrays.operators import ArrayBase
from .trees import tree


def _block_until_ready(x: Any) -> Any:
    """x (a pytree), when the elements of all its arrays are there (`Array.block_until_ready`).

    >>> hloom.block_until_ready(hloom.jit(jnp.sin)(jnp.zeros(2)))
    Array([0., 0.], dtype=float32)
    """
    if _is_there(x):  # the commonest case
        return x
    if type(x) is Array:
        return x.block_until_ready()
    for leaf in tree.leaves(x):
        if isinstance(leaf, ArrayBase):
            leaf.block_until_ready()
    return x


def _is_there(x: Any) -> bool:
    """True for an array that needs no wait, and for tuples and lists of such arrays. False says nothing."""
    kind = type(x)
    if kind is Array:
        try:
            return type(read_buffer(x)) in ALWAYS_READY
        except AttributeError:  # see `slot_is_set`
            return False
    if kind is tuple or kind is list:
        return all(map(_is_there, x))
    return False


_NAME = "block_until_ready"
_block_until_ready.__name__ = _block_until_ready.__qualname__ = _NAME
_block_until_ready.__code__ = _block_until_ready.__code__.replace(co_name=_NAME, co_qualname=_NAME)


class Waiting:
    """The class of `block_until_ready`."""

    __slots__ = ("__dict__", "_block")
    _block: SitesBlock
    """For machine code (`hlo/runners.py`). It is the first slot."""

    __call__ = staticmethod(boundary(_block_until_ready))

    def __init__(self) -> None:
        self._block = SitesBlock(8)
        functools.update_wrapper(self, _block_until_ready)

    def __repr__(self) -> str:
        return f"<function {_NAME}>"

    def __reduce__(self) -> str:
        return _NAME


block_until_ready = Waiting()
