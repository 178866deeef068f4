"""checkpoint: a function whose intermediate values are computed again in the backward pass instead of being kept.

In a traced program it is a composite call named "checkpoint". Linearisation keeps only its arguments. Transposition
linearises it again behind an optimization barrier, so that no pass merges this with the first forward computation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.tracebacks import boundary
from ..tracer import tree
from ..tracer.arguments import check_function
from ..tracer.array import as_value
from ..tracer.aval import aval_of_shape
from ..tracer.core import Call, Primitive, Value, bind, bind_call, eval_computation, run_meaning
from ..tracer.overlay import overlaid_all
from ..tracer.recording import trace_to_computation
from ..tracer.traced import DerivedCache, jit_call
from .jvp import jvp_computation, jvp_flat, moving_mask, parameter_avals
from .linearize import Linearized, LinearTrace, linearize_flat
from .tangents import Operand, Tangent, Zero
from .transpose import transpose_program

P = ParamSpec("P")
R = TypeVar("R")

CHECKPOINT = Primitive("checkpoint", evaluate=run_meaning)
"""The parameters of a call: is there a barrier between the computation and its repetition?"""

_TANGENT = Primitive("checkpoint_tangent", evaluate=run_meaning)
"""The call in a linear program that represents a checkpointed function. Its parameters: an `_Again`."""


def checkpoint(
    fun: Callable[P, R], *, prevent_cse: bool = True, policy: Any = None, static_argnums: int | Sequence[int] = ()
) -> Callable[P, R]:
    """`fun`, differentiated with its arguments as the only residuals. JAX's `checkpoint` (`remat`).

    `static_argnums` are passed as they are; the other arguments are pytrees of arrays. `prevent_cse` False lets passes
    merge the second computation with the first. UnsupportedError for a `policy`.
    """
    check_function(fun, "checkpoint")
    if policy is not None:
        raise UnsupportedError("checkpoint with a policy: everything but the arguments is computed again")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    function: Callable[..., Any] = fun

    @functools.wraps(fun)
    @boundary
    def checkpointed(*args: P.args, **kwargs: P.kwargs) -> Any:
        fixed = {i % len(args): args[i] for i in static}
        leaves, structure = tree.flatten(([a for i, a in enumerate(args) if i not in fixed], kwargs))
        values: list[Value] = [as_value(leaf) for leaf in leaves]
        out_tree: Any = None

        def flat(values: list[Value]) -> list[Value]:
            nonlocal out_tree
            moving, keywords = tree.unflatten(structure, values)
            rest = iter(moving)
            result = function(*(fixed[i] if i in fixed else next(rest) for i in range(len(args))), **keywords)
            found, out_tree = tree.flatten(result)
            return [as_value(leaf) for leaf in found]

        name = getattr(fun, "__name__", "checkpoint")
        traced = trace_to_computation(flat, [v.aval for v in values], name)
        parameters = (("name", name), ("prevent_cse", str(prevent_cse).lower()))
        call = Call(CHECKPOINT, traced.computation, prevent_cse, name, parameters)
        results = bind_call(call, [*values, *traced.captured])
        return tree.unflatten(out_tree, overlaid_all(results, traced.out_avals))

    return checkpointed


@dataclass(frozen=True, slots=True)
class _Again:
    """What a recorded call needs to be run backwards: the function, the inputs that move, the results that move."""

    computation: HloComputation
    moving: tuple[bool, ...]
    moves: tuple[bool, ...]
    barrier: bool


@dataclass(frozen=True, slots=True)
class _Made:
    computation: HloComputation
    moves: tuple[bool, ...]
    captured: tuple[Value, ...]


_made = DerivedCache()


@CHECKPOINT.def_jvp
def _checkpoint_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    derived = jvp_computation(call.computation, moving_mask(tangents))
    given = [t for t in tangents if not isinstance(t, Zero)]
    again = replace(call, meaning=derived.computation)
    return derived.unpack(bind_call(again, [*primals, *given, *derived.captured]))


def _tangent_part(computation: HloComputation, moving: tuple[bool, ...]) -> tuple[_Made, bool]:
    """From the tangents of the moving inputs and all inputs, the tangents of the results that move."""
    avals = parameter_avals(computation)
    moves: tuple[bool, ...] = ()

    def run(values: list[Value]) -> list[Value]:
        nonlocal moves
        given, primals = iter(values[: sum(moving)]), values[sum(moving) :]
        tangents = [next(given) if m else Zero(a) for a, m in zip(avals, moving, strict=True)]
        _, found = jvp_flat(lambda xs: eval_computation(computation, xs), primals, tangents)
        moves = moving_mask(found)
        return [t for t in found if not isinstance(t, Zero)]

    inputs = [*(a for a, m in zip(avals, moving, strict=True) if m), *avals]
    traced = trace_to_computation(run, inputs, f"jvp_{computation.name}")
    return _Made(traced.computation, moves, tuple(traced.captured)), traced.is_closed


@CHECKPOINT.def_linearize
def _checkpoint_linearize(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Linearized:
    computation, moving = call.computation, moving_mask(tangents)
    part = _made.get((computation,), ("tangent", moving), lambda: _tangent_part(computation, moving))
    again = _Again(computation, moving, part.moves, bool(call.params))
    recorded = Call(_TANGENT, part.computation, again, call.label, call.attributes)

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        return linear.record_call(recorded, [*directions, *primals, *part.captured])

    return Linearized(bind_call(call, primals), part.moves, record)


def _backward_part(again: _Again, nonzero: tuple[bool, ...]) -> tuple[_Made, bool]:
    """From all inputs and the cotangents of results, the cotangents of moving inputs: forwards, then backwards."""
    computation = again.computation
    avals = parameter_avals(computation)
    out_avals = [aval_of_shape(s) for s, m in zip(computation.root.shape.elements, again.moves, strict=True) if m]
    moves: tuple[bool, ...] = ()

    def run(values: list[Value]) -> list[Value]:
        nonlocal moves
        primals, given = values[: len(avals)], iter(values[len(avals) :])
        if again.barrier:
            primals = [bind(Opcode.OPT_BARRIER, (p,)) for p in primals]
        _, program = linearize_flat(lambda xs: eval_computation(computation, xs), primals, again.moving)
        moving_results = iter(nonzero)
        cts = [next(given) if m and next(moving_results) else None for m in again.moves]
        found = transpose_program(program, cts)
        moves = tuple(ct is not None for ct in found)
        return [ct for ct in found if ct is not None]

    inputs = [*avals, *(a for a, n in zip(out_avals, nonzero, strict=True) if n)]
    traced = trace_to_computation(run, inputs, f"transpose_{computation.name}")
    return _Made(traced.computation, moves, tuple(traced.captured)), traced.is_closed


@_TANGENT.def_transpose
def _tangent_transpose(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]
) -> Sequence[Value | None]:
    again: _Again = call.params
    nonzero = tuple(ct is not None for ct in cts)
    key = ("transpose", again.moving, again.moves, again.barrier, nonzero)
    part = _made.get((again.computation,), key, lambda: _backward_part(again, nonzero))
    count = sum(again.moving)
    primals: list[Any] = list(operands[count : count + len(again.moving)])
    given = [ct for ct in cts if ct is not None]
    backward = jit_call(part.computation, again.computation.name)
    found = iter(bind_call(backward, [*primals, *given, *part.captured]))
    to_moving = [next(found) if m else None for m in part.moves]
    return [*to_moving, *(None for _ in operands[count:])]
