"""Values of extended dtypes, and the storage under them.

An array of keys overlays an array of words: it holds that array (`_storage`) and has another type. Traces,
derivative rules and computations see only the storage. For an op on keys, `bind` looks up its rule on the storage in
`EXTENDED`. Functions that run a computation give it the storage of their operands, and overlay its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ...hlo.opcode import Opcode
from ...hlo.rules import RuleTable
from ...hlo.shape import Shape
from ..aval import ShapedArray
from ..tracer import Tracer, shallow_copy
from .array import Array, with_storage
from .operators import Value

ExtendedRule: TypeAlias = Callable[[Opcode, tuple[Value, ...], Any, Shape | None], Value]
"""rule(opcode, operands, attributes, declared type of the result's storage) -> result. At least one operand is of an
extended dtype."""

EXTENDED: RuleTable[ExtendedRule] = RuleTable("keys")
"""For each op on elements of an extended dtype, its rule on their storage; `extended_ops.py` fills it."""


def overlaid(value: Value, aval: ShapedArray) -> Value:
    """`value`, the storage of an array of type `aval`, as that array; itself where the type is not extended."""
    if value.aval is aval or not aval.is_extended:
        return value
    aval = aval.like_storage(value.aval)
    assert value.aval is aval.storage, f"{value.aval} is not the storage of {aval}"
    if isinstance(value, Array):
        return with_storage(aval, value)
    assert isinstance(value, Tracer), f"{value!r} is no value"
    other = shallow_copy(value)
    other.aval, other._storage = aval, value
    return other


def overlaid_all(values: Sequence[Value], avals: Sequence[ShapedArray]) -> list[Value]:
    """`overlaid` for each value and its type."""
    return [overlaid(v, a) for v, a in zip(values, avals, strict=True)]


def storage_of(value: Value) -> Value:
    """The array that a value overlays; itself if its dtype is not extended. The same object for each call."""
    if not value.aval.is_extended:
        return value
    assert isinstance(value, Array | Tracer), f"{value!r} is no value"
    return value._storage


def storages(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """`storage_of` each."""
    for value in values:  # mostly there is nothing to do
        if value.aval.is_extended:
            return tuple([storage_of(v) for v in values])
    return values
