"""Primitives that are functions of `hloom.lax` under other parameters. Those with the same parameters need no entry
(`primitives.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..tracer import ops
from ..tracer.core import Value
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


@primitive("conj")
def _conj(x: Value, *, input_dtype: Any = None) -> Any:
    if x.aval.dtype.kind != "c":
        x = ops.make_complex(x, ops.full_like(x, 0))
    return _lax().conj(x)
