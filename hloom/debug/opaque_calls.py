"""Calls of code that transformations cannot look into, Python's or native: batches of them, calls in `shard_map`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.passes.rewrite import rewrite_computation
from ..tracer import ops
from ..tracer.control_flow.scan import scan
from ..tracer.core import Call, Value, bind_call
from ..tracer.recording import trace_to_computation
from ..tracer.sharding.manual_axes import ManualAxes

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")
"""The rules of `vmap` for such a call, with JAX's names."""


def region_of(manual: ManualAxes | None) -> tuple[tuple[str, str], ...]:
    """The frontend attribute of a call that acts within a `shard_map`: each device makes it, or the first one along the
    axes that are not known there, also where the operands are from outside."""
    if manual is None:
        return ()
    return (("hloom.region", "{manual}" if manual.region is None else manual.region.to_text()),)


def with_frontend_attributes(
    meaning: Callable[[list[Value]], list[Value]] | HloComputation,
    operands: Sequence[Value],
    attributes: tuple[tuple[str, str], ...],
) -> HloComputation:
    """The computation of a call with these frontend attributes."""
    if not isinstance(meaning, HloComputation):
        meaning = trace_to_computation(meaning, [o.aval.storage for o in operands], "call").computation

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        return replace(moved, frontend_attributes=attributes) if moved.opcode is Opcode.CUSTOM_CALL else moved

    return rewrite_computation(meaning, visit)


def one_by_one(call: Call, operands: Sequence[Value], batched: Sequence[bool]) -> list[Value]:
    """A call for each element of the batch, one after the other."""

    def body(carry: tuple[()], rows: list[Value]) -> tuple[tuple[()], list[Value]]:
        row = iter(rows)
        return (), bind_call(call, [next(row) if b else o for o, b in zip(operands, batched, strict=True)])

    results: list[Value] = scan(body, (), [o for o, b in zip(operands, batched, strict=True) if b])[1]
    return results


def in_batches(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], size: int, method: str,
    whole: Callable[[Sequence[Value]], list[Value]],
) -> list[Value]:  # fmt: skip
    """The results of a call for a batch of `size` by one of the `VMAP_METHODS`; each has the batch in front. `whole`:
    one call with the whole batch."""
    if method in ("sequential", "sequential_unrolled"):
        return one_by_one(call, operands, batched)
    repeats = {"expand_dims": 1, "broadcast_all": size}.get(method)
    if repeats is not None:
        operands = [o if b else _repeated(o, repeats) for o, b in zip(operands, batched, strict=True)]
    return whole(operands)


def _repeated(x: Value, size: int) -> Value:
    shape = x.aval.shape
    return ops.broadcast(x, (size, *shape), tuple(range(1, len(shape) + 1)))
