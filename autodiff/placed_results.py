"""`out_sharding=` of functions: it states the place of the result, whole or as a sum with a term on each device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..hlo.support.loading import load
from ..tracer.arrays.array import as_value
from ..tracer.core import Value
from ..tracer.sharding.lenience import not_refused
from ..tracer.sharding.placement import asked_place, check_explicit, in_asked_place


def computed_in(
    out_sharding: Any, what: str, compute: Callable[..., Value], *operands: Any, is_scattered: bool = False
) -> Value:
    """`compute(*operands)`, the result of the function `what`, in the place `out_sharding`. If that is None, the
    operands determine the place; otherwise an ambiguous division of the result is no error.

    Along unreduced axes of the place each device computes its term of the result (`partial_sums.py`, which also
    explains `is_scattered`). Without `operands` the whole result is computed, and then put there.
    """
    if out_sharding is None:
        return compute(*operands)
    place = asked_place(out_sharding, what)
    assert place is not None, f"{what} without a place"
    check_explicit(place, what)
    if place.spec.unreduced and operands:
        values = [as_value(o) for o in operands]
        found: Value = load(".partial_sums", __package__).sum_of_parts(place, what, compute, values, is_scattered)
        return found
    with not_refused():
        return in_asked_place(compute(*operands), None, out_sharding, what)
