"""while and conditional. In HLO each takes one tuple; in a jaxpr they take their elements, and values that a loop does
not change are constants of its condition or its body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..hlo.element_type import ElementType
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..tracer import dtypes
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.control_flow.branches import while_loop
from ..tracer.core import Value, bind_conditional
from ..tracer.recording import TracedComputation, run_computation, takes_one_tuple, trace_to_computation
from .atoms import Atom, Var
from .computations import traced
from .evaluate import eval_jaxpr
from .nodes import ClosedJaxpr
from .primitives import primitive
from .shown import SHOWN, Body, Shown


@SHOWN.register(Opcode.WHILE)
def _while(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown | list[Atom]:
    start = body.tuple_atoms(i.operands[0])
    condition, step = i.attributes.condition, i.attributes.body
    shapes = i.shape.elements if i.shape.is_tuple else (i.shape,)
    fixed = {k for k in _unchanged(step) if not body.is_used(i, k)}
    carried = [k for k in range(len(start)) if k not in fixed]
    of_condition = [k for k in sorted(fixed) if k in _read(condition)]
    of_step = [k for k in sorted(fixed) if k in _read(step)]
    params = {
        "cond_jaxpr": _of_elements(body.nested(condition), [*of_condition, *carried], None),
        "cond_nconsts": len(of_condition),
        "body_jaxpr": _of_elements(body.nested(step), [*of_step, *carried], carried),
        "body_nconsts": len(of_step),
    }
    taken = [start[k] for k in (*of_condition, *of_step, *carried)]
    avals = [aval_of_shape(shapes[k]) for k in carried]
    if not i.shape.is_tuple:
        return Shown("while", taken, params)
    results = dict(zip(carried, body.emit(Shown("while", taken, params), avals, i), strict=True))
    return [results.get(k, atom) for k, atom in enumerate(start)]


def _unchanged(step: HloComputation) -> set[int]:
    """The elements that the body of a loop returns as it gets them."""
    parameter = step.parameters[0]
    users = {u.opcode for u in step.users[parameter]}
    if step.root.opcode is not Opcode.TUPLE or users - {Opcode.GET_TUPLE_ELEMENT}:
        return set()
    return {
        k
        for k, o in enumerate(step.root.operands)
        if o.opcode is Opcode.GET_TUPLE_ELEMENT and o.operands[0] is parameter and o.attributes.index == k
    }


def _read(computation: HloComputation) -> set[int]:
    """The elements of its parameter that a computation uses for more than to return them."""
    parameter, root = computation.parameters[0], computation.root
    if not parameter.shape.is_tuple:
        return {0}
    found = set()
    for i in computation.users[parameter]:
        k, users = i.attributes.index, set(computation.users[i])
        if root.opcode is Opcode.TUPLE:
            users -= {root}
            is_moved = any(o is i and j != k for j, o in enumerate(root.operands))
        else:
            is_moved = root is i
        if users or is_moved:
            found.add(k)
    return found


def _of_elements(closed: ClosedJaxpr, taken: Sequence[int], returned: Sequence[int] | None) -> ClosedJaxpr:
    """The jaxpr with some of its arguments and results; it does not use the others."""
    jaxpr = closed.jaxpr
    outvars = jaxpr.outvars if returned is None else [jaxpr.outvars[k] for k in returned]
    return ClosedJaxpr(jaxpr.replace(invars=[jaxpr.invars[k] for k in taken], outvars=outvars), closed.consts)


@primitive("while", multiple_results=True)
def _bind_while(
    *values: Value, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int
) -> list[Value]:
    of_condition, of_step = values[:cond_nconsts], values[cond_nconsts : cond_nconsts + body_nconsts]

    def condition(carry: list[Value]) -> Any:
        return eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *of_condition, *carry)[0]

    def step(carry: list[Value]) -> list[Value]:
        return eval_jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, *of_step, *carry)

    result: list[Value] = while_loop(condition, step, list(values[cond_nconsts + body_nconsts :]))
    return result


@SHOWN.register(Opcode.CONDITIONAL)
def _conditional(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """JAX's index counts from the branch for false; HLO's branch 0 is the one for true."""
    index, branches = operands[0], [body.nested(c) for c in i.attributes.branch_computations]
    taken = list(i.operands[1:])
    if i.operands[0].shape.element is ElementType.PRED:
        params = {"new_dtype": dtypes.int32, "weak_type": False, "sharding": None}
        (index,) = body.emit(Shown("convert_element_type", [index], params), [ShapedArray((), dtypes.int32)], i)
        branches, taken = branches[::-1], taken[::-1]
    different = list(dict.fromkeys(taken))
    if len(different) > 1:
        branches = [_with_others(b, different, t) for b, t in zip(branches, taken, strict=True)]
    arguments = [a for t in different for a in body.tuple_atoms(t)]
    return Shown("cond", [index, *arguments], {"branches": tuple(branches)})


def _with_others(
    branch: ClosedJaxpr, operands: Sequence[HloInstruction], own: HloInstruction
) -> ClosedJaxpr:
    """A branch that takes the operands of all branches."""
    invars: list[Var] = []
    for o in operands:
        shapes = o.shape.elements if o.shape.is_tuple else (o.shape,)
        invars += branch.jaxpr.invars if o is own else [Var(aval_of_shape(s)) for s in shapes]
    return ClosedJaxpr(branch.jaxpr.replace(invars=invars), branch.consts)


@primitive("cond", multiple_results=True)
def _bind_cond(index: Value, *values: Value, branches: Sequence[ClosedJaxpr]) -> list[Value]:
    """The index is in range: nothing clamps it."""
    found = [traced(b, f"branch_{k}") for k, b in enumerate(branches)]
    captured = [v for f in found for v in f.captured]
    avals = [v.aval.storage for v in (*values, *captured)]
    computations, begin = [], len(values)
    for f in found:
        own = slice(begin, begin + len(f.captured))

        def run(given: list[Value], f: TracedComputation = f, own: slice = own) -> list[Value]:
            return run_computation(f.computation, [*given[: len(values)], *given[own]])

        computations.append(takes_one_tuple(trace_to_computation(run, avals, f.computation.name).computation))
        begin = own.stop
    return bind_conditional(computations, index, [*values, *captured])
