"""Clusters: the deferred operations of a batch, as one program, or one by one.

`settle` fills the results of a batch that still have references. The first time, it turns a sequence of operations into
a computation of the instructions that these results need; a program is looked up by its structure, or compiled. The
step at which the sequence ends then keeps a `Plan`, so that the next time nothing but the program's call is left to do.

Which results are held depends on names in the user's program, and on cycles that the garbage collector has not found
yet. So a plan that gives more results is used until the same results have been requested a few times.

A cluster runs op by op in three cases: it is a single operation that NumPy does well, its structure has not been seen
often enough (`hloom_jit_level` 1: before the second time), or if the backend cannot compile it; the report says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any
from weakref import ReferenceType

import numpy as np

from ...hlo.backend import Executable
from ...hlo.builder import make_computation, make_parameter, make_tuple
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation, HloInstruction, HloModule
from ...hlo.opcode import Opcode
from ...hlo.ops import SPECS, Trait
from ...hlo.ops.movement import BroadcastAttributes
from ...hlo.shape import Shape
from ...hlo.structural_key import structural_key
from ...hlo.support.records import dataclass
from ..arrays.array import Array, slot_is_set
from ..aval import aval_of_shape
from ..caches import BoundedCache, on_clear
from ..execution import compile_module, module_of
from ..settings.context import current_context
from .pending import Handle
from .steps import Step, forget

Entries = Sequence[tuple[Step, Any]]
RunOp = Callable[[Opcode, list[Any], Any, Shape], Any]
"""Carries out one operation at once: a value, or a list for a tuple."""
OFTEN = 3
"""How often the same results are requested before they get a program of their own, although another one gives them,
too.
"""
MAX_PLANS = 8
"""Programs for one sequence of operations; later ones give the results of all."""


@dataclass(eq=False)
class Cluster:
    """A program that was made of operations outside of jit."""

    name: str
    module: HloModule
    operations: int
    """How many were collected."""
    lines: tuple[str, ...]
    """The user's lines that they come from."""
    executable: Executable | None = None
    reason: str = ""
    """Why it is not compiled."""
    seconds: float = 0.0
    """The time that compiling it took."""
    hits: int = 0
    """How often it ran after the first time."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How a batch that ended at a step is run for certain results."""

    cluster: Cluster
    leaves: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Alone:
    """A batch of one operation, which runs alone."""

    needed: Sequence[int]
    operands: tuple[int, ...] | None
    """If the operation alone computes the result: its operands from outside. None if it is less simple."""


@dataclass(slots=True)
class Settled:
    """The outcome of `settle`, for reports."""

    cluster: Cluster | None
    """None if the operations ran one by one."""
    operations: int
    reason: str = ""
    is_new: bool = False
    single: list[Opcode] = field(default_factory=list)
    """The operations that ran one by one."""


MAX_CLUSTERS = 1024
_CLUSTERS: BoundedCache[Cluster] = BoundedCache(MAX_CLUSTERS)
_seen: BoundedCache[int] = BoundedCache(4096)
"""How often a structure ran op by op, for sequences that lead to another step each time."""
on_clear(_CLUSTERS.clear)
on_clear(_seen.clear)
_count = 0


def settle(entries: Entries, handles: Sequence[Handle], run_op: RunOp, often: int) -> Settled | None:
    """Fill the handles: all are results of the batch with these entries. None if there is nothing to do.

    often: the how manieth time a structure comes it is compiled.
    """
    if not handles:
        return None
    step = entries[-1][0]
    wanted = tuple([h.number for h in handles])
    plan = step.plans.get(wanted)
    if plan is None:
        return _settle_first(step, entries, handles, wanted, run_op, often)
    if plan.__class__ is Alone:
        return _run_alone(plan, entries, handles, run_op)
    _run(plan, entries, handles, plan.results == wanted)
    plan.cluster.hits += 1
    return Settled(plan.cluster, plan.cluster.operations)


def live_handles(entries: Entries) -> list[Handle]:
    """The results that still have references, and that are not computed yet."""
    alive = [r() for _, r in entries if r.__class__ is ReferenceType]
    return [h for h in alive if h is not None and h.batch is not None]


def _settle_first(
    step: Step, entries: Entries, handles: Sequence[Handle], wanted: tuple[int, ...], run_op: RunOp, often: int
) -> Settled:
    """The results of a sequence that has no plan yet."""
    runs = step.runs[wanted] = step.runs.get(wanted, 0) + 1
    wider = _wider(step, wanted)
    if wider is not None and runs < OFTEN:
        _run(wider, entries, handles, False)
        wider.cluster.hits += 1
        return Settled(wider.cluster, wider.cluster.operations)
    needed = _needed(entries, wanted)
    work = [n for n in needed if entries[n][0].opcode not in _NO_WORK]
    if len(work) == 1 and entries[work[0]][0].opcode is not Opcode.CALL:
        only = entries[work[0]][0]
        is_simple = wanted == (only.number,) and all(entries[o][0].opcode is Opcode.PARAMETER for o in only.operands)
        alone = Alone(needed, only.operands if is_simple else None)
        step.plans[wanted] = alone
        return _run_alone(alone, entries, handles, run_op)
    if runs < often and not step.fresh:
        return _one_by_one(entries, handles, needed, run_op, _FIRST)
    cluster, leaves, is_new = _cluster(entries, needed, wanted, len(work), runs >= often, often)
    if cluster is None:
        return _one_by_one(entries, handles, needed, run_op, _FIRST)
    if cluster.executable is None:
        return _one_by_one(entries, handles, needed, run_op, cluster.reason)
    plan = Plan(cluster, leaves, wanted)
    if len(step.plans) >= MAX_PLANS:
        step.plans.clear()
    step.plans[wanted] = plan
    step.runs.pop(wanted, None)
    _run(plan, entries, handles, True)
    if not is_new:
        cluster.hits += 1
    return Settled(cluster, cluster.operations, is_new=is_new)


_FIRST = "its structure was not seen often enough"
_NO_WORK = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.GET_TUPLE_ELEMENT})


def _run_alone(plan: Alone, entries: Entries, handles: Sequence[Handle], run_op: RunOp) -> Settled:
    if plan.operands is None:
        return _one_by_one(entries, handles, plan.needed, run_op, _ALONE)
    (handle,) = handles
    step = entries[handle.number][0]
    array = run_op(step.opcode, [entries[o][1] for o in plan.operands], step.attributes, step.shape)
    _fill(handle, array)
    return Settled(None, 1, _ALONE, single=[step.opcode])


_ALONE = "a single operation"


def _fill(handle: Handle, array: Array) -> None:
    buffer = array._buffer if slot_is_set(array, "_buffer") else None
    handle.fill(buffer, array._view if slot_is_set(array, "_view") else None)


def _wider(step: Step, wanted: tuple[int, ...]) -> Plan | None:
    """A plan that gives the wanted results, and more."""
    missing = set(wanted)
    plans = list(step.plans.items())
    found = [p for results, p in plans if p.__class__ is Plan and missing.issubset(results)]
    return min(found, key=lambda p: len(p.results), default=None)


def _run(plan: Plan, entries: Entries, handles: Sequence[Handle], is_exact: bool) -> None:
    executable = plan.cluster.executable
    assert executable is not None, f"{plan.cluster.name} is not compiled"
    buffers = executable.call([entries[n][1]._buffer for n in plan.leaves])
    if is_exact:
        for handle, buffer in zip(handles, buffers, strict=True):
            handle.fill(buffer, None)
    else:
        of_number = dict(zip(plan.results, buffers, strict=True))
        for handle in handles:
            handle.fill(of_number[handle.number], None)


def _needed(entries: Entries, wanted: tuple[int, ...]) -> list[int]:
    """The numbers of the values that the wanted ones are computed from, and these."""
    marked = bytearray(len(entries))
    for number in wanted:
        marked[number] = 1
    for number in range(len(entries) - 1, 0, -1):
        if marked[number]:
            for operand in entries[number][0].operands:
                marked[operand] = 1
    return [n for n in range(1, len(entries)) if marked[n]]


# ---- one by one


def _one_by_one(
    entries: Entries, handles: Sequence[Handle], needed: Sequence[int], run_op: RunOp, reason: str
) -> Settled:
    """As outside of the scope; each value is dropped after its last use."""
    last: dict[int, int] = {}
    for number in needed:
        for operand in entries[number][0].operands:
            last[operand] = number
    of_handle = {h.number: h for h in handles}
    values: dict[int, Any] = {}
    done: list[Opcode] = []
    for number in needed:
        step, leaf = entries[number]
        if step.opcode is Opcode.PARAMETER:
            values[number] = leaf
        elif step.opcode is Opcode.CONSTANT:
            array = step.attributes.literal.array
            values[number] = Array(aval_of_shape(step.shape), array)
        elif step.opcode is Opcode.GET_TUPLE_ELEMENT:
            values[number] = values[step.operands[0]][step.attributes.index]
        else:
            values[number] = run_op(step.opcode, [values[o] for o in step.operands], step.attributes, step.shape)
            done.append(step.opcode)
        handle = of_handle.get(number)
        if handle is not None:
            _fill(handle, values[number])
        for operand in step.operands:
            if last[operand] == number:
                values.pop(operand, None)
    return Settled(None, len(done), reason, single=done)


# ---- as a program


def _cluster(
    entries: Entries, needed: Sequence[int], wanted: tuple[int, ...], operations: int, now: bool, often: int
) -> tuple[Cluster | None, tuple[int, ...], bool]:
    """The program, the numbers of its arguments, and whether it is new. None if its structure is too new."""
    global _count
    computation, leaves = _computation(entries, needed, wanted)
    context = current_context()
    structure = structural_key(computation)
    key = (context.backend, context.target, structure)
    if structure is not None:
        found = _CLUSTERS.get(key)
        if found is not None:
            return found, leaves, False
        if not now:
            _seen[key] = times = (_seen.get(key) or 0) + 1
            if times < often:
                return None, leaves, False
    _count += 1
    if _count % MAX_CLUSTERS == 0:  # nodes keep programs, too
        forget()
    name = f"cluster_{_count}"
    lines = dict.fromkeys(
        f"{m.source_file}:{m.source_line}" for n in needed if (m := entries[n][0].metadata) and m.source_file
    )
    cluster = Cluster(name, module_of(name, computation), operations, tuple(lines))
    began = time.perf_counter()
    try:
        cluster.executable = compile_module(cluster.module)
    except (UnsupportedError, NotImplementedError) as error:
        cluster.reason = f"the backend cannot compile it: {error}"
    cluster.seconds = time.perf_counter() - began
    if structure is not None:
        _CLUSTERS[key] = cluster
    return cluster, leaves, True


def _computation(
    entries: Entries, needed: Sequence[int], wanted: tuple[int, ...]
) -> tuple[HloComputation, tuple[int, ...]]:
    """The computation of the wanted values from the values from outside; the numbers of those."""
    made: dict[int, HloInstruction] = {}
    parameters: list[HloInstruction] = []
    leaves: list[int] = []
    for number in needed:
        step = entries[number][0]
        if step.opcode is Opcode.PARAMETER:
            made[number] = make_parameter(len(parameters), step.shape)
            parameters.append(made[number])
            leaves.append(number)
            continue
        operands = [made[o] for o in step.operands]
        if len(operands) == 2 and step.opcode in SPREADING and step.shape.dimensions:
            operands = [_spread(o, step) for o in operands]
        made[number] = HloInstruction(step.opcode, step.shape, tuple(operands), step.attributes, "", step.metadata)
    root = make_tuple([made[n] for n in wanted])
    return make_computation("main", root, parameters), tuple(leaves)


SPREADING = frozenset(o for o, spec in SPECS.items() if Trait.ELEMENTWISE in spec.traits and spec.arity == 2)
"""Ops of two operands; one may be a scalar here, as for NumPy. HLO wants it broadcast."""


def _spread(operand: HloInstruction, step: Step) -> HloInstruction:
    if operand.shape.dimensions:
        return operand
    shape = Shape.array(operand.shape.element, step.shape.dimensions)
    return HloInstruction(Opcode.BROADCAST, shape, (operand,), BroadcastAttributes(()), "", step.metadata)


def constant_bytes(array: Array) -> bytes:
    """The bytes that distinguish a scalar constant from others of its type."""
    return np.ascontiguousarray(array._view).tobytes()
