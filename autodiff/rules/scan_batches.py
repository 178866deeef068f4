"""Batches of scan: a scan with batches as its carry and slices. The loop's axis stays before the batch's."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.support.records import dataclass
from ...tracer.control_flow.scan import SCAN, Scan
from ...tracer.core import Call, Value
from ...tracer.ops import transpose
from ..batches import Axis, with_batch
from ..batching import Mask, batch_computation
from .scan import Loop, derived_loop, is_closed, loop_of, parts_of, rule_of


@dataclass(frozen=True, slots=True)
class _BatchedScan:
    loop: Loop
    carry: Mask
    """Which parts of the carry are batched."""
    ys: Mask


@derived_loop
def _batched_scan(rule: Scan, axis: Axis, batched: Mask) -> tuple[_BatchedScan, bool]:
    """A part of the carry is batched if it starts so or if an iteration makes it so."""
    consts, carry, xs = (tuple(m) for m in parts_of(rule, batched))
    results = len(rule.body.root.shape.elements)
    while True:
        forced = (*carry, *[False] * (results - rule.num_carry))
        body = batch_computation(rule.body, axis, (*consts, *carry, *xs, False), forced)
        if body.batched[: rule.num_carry] == carry:
            break
        carry = body.batched[: rule.num_carry]
    loop = loop_of(body.computation, body.captured, rule.num_consts, rule.num_carry, rule, rule.reverse)
    return _BatchedScan(loop, carry, body.batched[rule.num_carry :]), is_closed(loop)


@SCAN.def_batch
def _scan_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    rule = rule_of(call)
    found = _batched_scan(rule, axis, tuple(batched))
    consts, carry, xs = parts_of(rule, operands)
    _, of_carry, of_xs = parts_of(rule, batched)
    starts = zip(carry, of_carry, found.carry, strict=True)
    start = [with_batch(axis, c, b) if wanted else c for c, b, wanted in starts]
    arrays = [_swapped(x) if b else x for x, b in zip(xs, of_xs, strict=True)]
    returned = found.loop.bind([*consts, *found.loop.captured, *start, *arrays])
    final, ys = returned[: len(carry)], returned[len(carry) :]
    stacked = [_swapped(y) if b else y for y, b in zip(ys, found.ys, strict=True)]
    return [*final, *stacked], [*found.carry, *found.ys]


def _swapped(x: Value) -> Value:
    """`x` with its first two axes exchanged."""
    return transpose(x, (1, 0, *range(2, x.aval.ndim)))
