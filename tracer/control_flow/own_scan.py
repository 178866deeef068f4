"""`scan` over values of own types (`own_values.py`): the body gets the element types that their types say, along the
leading axis, and stacks of results have the types that theirs say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...hlo.errors import UnsupportedError
from ..errors import TreeStructureError
from ..own_values import Opened, all_entered, batch_axes, opened, required
from ..trees import tree


def scan_own(scan: Callable[..., Any], f: Callable[..., Any], init: Any, xs: Any, length: Any, reverse: bool) -> Any:
    """`scan(f, init, xs, length, reverse)`, with values of own types taken apart."""
    start = opened(init)
    given = opened(xs)
    arrays = [leaf for leaf, aval in zip(given.parts, given.avals, strict=True) if aval is None]
    if length is None and not tree.leaves(arrays):
        raise ValueError("scan over values of own types alone must provide `length`")
    count = length if length is not None else tree.leaves(arrays)[0].shape[0]
    stacked: list[Opened] = []

    def element_of(aval: Any) -> Any:
        element = required(aval, "dec_rank", "scan")(count, _leading(aval))
        _check_leading(element, count, aval)
        return element

    def body(carry: Any, slices: Any) -> Any:
        carry, y = f(start.closed(carry), given.closed(slices, element_of))
        ends, made = opened(all_entered(carry)), opened(all_entered(y))
        if ends.structure != start.structure or ends.avals != start.avals:
            raise TreeStructureError(
                "scan body function carry input and carry output must have equal types, but they differ: "
                f"{start.shown} and {ends.shown}"
            )
        stacked[:] = [made]
        return ends.parts, made.parts

    body.__name__ = getattr(f, "__name__", "body")
    carry, ys = scan(body, start.parts, given.parts, count, reverse)

    def stack_of(aval: Any) -> Any:
        return required(aval, "inc_rank", "scan")(count, _leading(aval))

    return start.closed(carry), stacked[0].closed(ys, stack_of)


def _leading(aval: Any) -> Any:
    return required(aval, "leading_axis_spec", "scan")()


def _check_leading(element: Any, count: int, whole: Any) -> None:
    arrays, moved = batch_axes(element, count, _leading(whole))
    if any(a != 0 for a in (*arrays, *moved)):
        raise UnsupportedError(f"scan over {whole}: its arrays hold elements along the axes {arrays}, not the first")
