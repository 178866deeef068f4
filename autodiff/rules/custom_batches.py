"""Batches of functions with a derivative that the user wrote: the rule is the user's, run on batches. And of
checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.support.records import dataclass
from ...tracer.checks.key_uses import batches_are_made_by
from ...tracer.core import Call, Value
from ..batches import Axis, to_operand
from ..batching import BatchTrace, Mask, along_axis, batch_computation, batch_flat, bind_batched
from ..custom import CUSTOM_VJP, Forward, VjpRule
from ..operations import NAME
from ..remat import CHECKPOINT, CHECKPOINT_TANGENT
from ..tangents import Tangent, Zero


@CHECKPOINT_TANGENT.def_batch
@CHECKPOINT.def_batch
@NAME.def_batch
def _checkpoint_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    found = batch_computation(call.computation, axis, batched)
    return bind_batched(call, found, operands)


@batches_are_made_by
def _key_use_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    found = batch_computation(call.computation, axis, batched)
    return bind_batched(call, found, operands, params=call.params.of_batch(axis.size, batched))


@CUSTOM_VJP.def_batch
def _custom_vjp_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    """All results are batches: which results are batches may differ between the function and its forward pass.

    Not so where collectives work along the axis: their results are the same for all on purpose.
    """
    found = batch_computation(call.computation, axis, batched, not along_axis(axis, call.computation))
    own = tuple(batched[: len(batched) - call.captured])
    rule = _BatchedVjp(call.params, axis, own, found.batched, call.label, call.batch_trace)
    forwards = rule.forwards if call.params.forwards else None
    return bind_batched(call, found, operands, params=VjpRule(rule.forward, rule.backward, forwards))


@dataclass(frozen=True, slots=True)
class _BatchedForward(Forward):
    """The results of a forward pass on batches."""

    element: Forward
    """Of one element; its values belong to a trace that has ended."""
    kept: Mask
    """Which residuals are batched."""


@dataclass(frozen=True, slots=True)
class _BatchedVjp:
    """The two passes on batches of the arguments that `batched` names."""

    rule: VjpRule
    axis: Axis
    batched: Mask
    results: Mask
    """Which results of the function are batches."""
    label: str
    earlier: BatchTrace | None
    """The trace with tracers that the passes may use from outside."""

    def forward(self, primals: Sequence[Value], moving: Sequence[bool]) -> Forward:
        element: Any = None

        def run(values: list[Value]) -> list[Value]:
            nonlocal element
            element = self.rule.forward(values, moving)
            return [*element.results, *element.residuals]

        values, mask = batch_flat(run, self.axis, primals, self.batched, earlier=self.earlier)
        count = len(element.results)
        if any(m and not wanted for m, wanted in zip(mask, self.results, strict=False)):
            raise ValueError(
                f"the forward rule of {self.label} gives a result that differs between the elements of axis "
                f"{self.axis.name!r}, and the function one that does not: reduce it as the function does."
            )
        results = [to_operand(self.axis, v, m, w) for v, m, w in zip(values, mask, self.results, strict=False)]
        kept = tuple(mask[count:])
        return _BatchedForward(
            results, values[count:], element.out_tree, element.out_avals, element.rebuilt, element, kept
        )

    def backward(
        self, found: Forward, residuals: Sequence[Value], cotangents: Sequence[Value | None]
    ) -> list[Value | None]:
        assert isinstance(found, _BatchedForward)
        given = [ct for ct in cotangents if ct is not None]
        count = len(residuals)
        present: list[bool] = []

        def run(values: list[Value]) -> list[Value]:
            rest = iter(values[count:])
            cts = [None if ct is None else next(rest) for ct in cotangents]
            back = self.rule.backward(found.element, values[:count], cts)
            present[:] = [ct is not None for ct in back]
            return [ct for ct in back if ct is not None]

        masks = [*found.kept, *(m for m, ct in zip(self.results, cotangents, strict=True) if ct is not None)]
        values, mask = batch_flat(run, self.axis, [*residuals, *given], masks, earlier=self.earlier)
        rest = iter(zip(values, mask, strict=True))
        own = zip(present, self.batched, strict=True)
        return [to_operand(self.axis, *next(rest), was_batched) if p else None for p, was_batched in own]

    def forwards(self, primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[list[Value], list[Tangent]]:
        """The rule for forward mode."""
        count = len(primals)
        moves: list[bool] = []

        def run(values: list[Value]) -> list[Value]:
            assert self.rule.forwards is not None
            rest = iter(values[count:])
            every = [Zero(v.aval) if isinstance(t, Zero) else next(rest) for v, t in zip(values, tangents)]
            results, found = self.rule.forwards(values[:count], every)
            moves[:] = [not isinstance(t, Zero) for t in found]
            return [*results, *(t for t in found if not isinstance(t, Zero))]

        moving = [(t, b) for t, b in zip(tangents, self.batched, strict=True) if not isinstance(t, Zero)]
        given, masks = [*primals, *(t for t, _ in moving)], [*self.batched, *(b for _, b in moving)]
        values, mask = batch_flat(run, self.axis, given, masks, earlier=self.earlier)
        wanted = [*self.results, *(w for w, m in zip(self.results, moves, strict=True) if m)]
        found = [to_operand(self.axis, v, m, w) for v, m, w in zip(values, mask, wanted, strict=True)]
        results, rest = found[: len(moves)], iter(found[len(moves) :])
        return results, [next(rest) if m else Zero(r.aval) for r, m in zip(results, moves, strict=True)]
