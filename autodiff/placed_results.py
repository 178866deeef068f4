"""`out_sharding=` of functions: their results where it says, or as sums whose terms devices have."""

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
    """The result of the function `what` of operands in the place `out_sharding`; if that is None, where operands say.
    Types need not say how the result is divided that is put somewhere. Along unreduced axes each device computes its
    term (`partial_sums.py`; `is_scattered` is explained there): for functions that give their `operands`."""
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
