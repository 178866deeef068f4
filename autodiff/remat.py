"""checkpoint: a function whose intermediate values are computed again in the backward pass instead of being kept.

In a traced program it is a composite call named "checkpoint". Linearised, it keeps its arguments alone; transposed, it
is linearised anew behind an optimization barrier, so that no pass finds the forward computation and merges the two.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.ops.control_flow import CallAttributes, Composite
from ..hlo.shape import Shape
from ..tracer import tree
from ..tracer.array import as_value
from ..tracer.aval import aval_of_shape
from ..tracer.core import Tracer, Value, bind, bind_call, eval_computation, trace_to_computation
from .jvp import jvp_computation, jvp_flat, parameter_avals
from .linearize import linearize_flat
from .rules.control_flow import linear_trace
from .rules.tables import COMPOSITE_JVP, COMPOSITE_LINEARIZE, COMPOSITE_TRANSPOSE, Operand, Tangent, Zero
from .transpose import transpose_program

_TANGENT = "checkpoint_tangent"


def checkpoint(
    fun: Callable[..., Any], *, prevent_cse: bool = True, policy: Any = None, static_argnums: int | Sequence[int] = ()
) -> Callable[..., Any]:
    """`fun`, differentiated with its arguments as the only residuals. JAX's `checkpoint` (`remat`).

    `static_argnums` are passed as they are; the other arguments are pytrees of arrays. `prevent_cse` False lets passes
    merge the second computation with the first. UnsupportedError for a `policy`.
    """
    if policy is not None:
        raise UnsupportedError("checkpoint with a policy: everything but the arguments is computed again")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        fixed = {i % len(args): args[i] for i in static}
        leaves, structure = tree.flatten(([a for i, a in enumerate(args) if i not in fixed], kwargs))
        values: list[Value] = [as_value(leaf) for leaf in leaves]
        out_tree: Any = None

        def flat(values: list[Value]) -> list[Value]:
            nonlocal out_tree
            moving, keywords = tree.unflatten(structure, values)
            rest = iter(moving)
            result = fun(*(fixed[i] if i in fixed else next(rest) for i in range(len(args))), **keywords)
            found, out_tree = tree.flatten(result)
            return [as_value(leaf) for leaf in found]

        name = getattr(fun, "__name__", "checkpoint")
        traced = trace_to_computation(flat, [v.aval for v in values], name)
        parameters = (("name", name), ("prevent_cse", str(prevent_cse).lower()))
        results = bind_call(
            traced.computation, [*values, *traced.captured], Composite("checkpoint", parameters, prevent_cse)
        )
        return tree.unflatten(out_tree, results)

    return checkpointed


@dataclass(frozen=True, slots=True)
class _Again:
    """What a recorded call needs to be run backwards: the function, which inputs move, which results do."""

    computation: HloComputation
    moving: tuple[bool, ...]
    moves: tuple[bool, ...]
    barrier: bool


@dataclass(frozen=True, slots=True)
class _Made:
    computation: HloComputation
    moves: tuple[bool, ...]
    captured: tuple[Value, ...]


_made: WeakKeyDictionary[HloComputation, dict[Any, _Made]] = WeakKeyDictionary()


def _kept(computation: HloComputation, key: Any, make: Callable[[], _Made]) -> _Made:
    """`make()`, made once if it uses no traced values from outside."""
    made = _made.setdefault(computation, {})
    found = made.get(key)
    if found is None:
        found = make()
        if not any(isinstance(c, Tracer) for c in found.captured):
            made[key] = found
    return found


def _moving(tangents: Sequence[Tangent]) -> tuple[bool, ...]:
    return tuple(not isinstance(t, Zero) for t in tangents)


def _checkpoint_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    derived = jvp_computation(attributes.to_apply, _moving(tangents))
    given = [t for t in tangents if not isinstance(t, Zero)]
    return derived.unpack(bind_call(derived.computation, [*primals, *given, *derived.captured], attributes.composite))


def _tangent_part(computation: HloComputation, moving: tuple[bool, ...]) -> _Made:
    """From the tangents of the moving inputs and all inputs, the tangents of the results that move."""
    avals = parameter_avals(computation)
    moves: tuple[bool, ...] = ()

    def run(values: list[Value]) -> list[Value]:
        nonlocal moves
        given, primals = iter(values[: sum(moving)]), values[sum(moving) :]
        tangents = [next(given) if m else Zero(a) for a, m in zip(avals, moving, strict=True)]
        _, found = jvp_flat(lambda xs: eval_computation(computation, xs), primals, tangents)
        moves = _moving(found)
        return [t for t in found if not isinstance(t, Zero)]

    inputs = [*(a for a, m in zip(avals, moving, strict=True) if m), *avals]
    traced = trace_to_computation(run, inputs, f"jvp_{computation.name}")
    return _Made(traced.computation, moves, tuple(traced.captured))


def _checkpoint_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    computation, composite = attributes.to_apply, attributes.composite
    assert composite is not None
    moving = _moving(tangents)
    part = _kept(computation, ("tangent", moving), lambda: _tangent_part(computation, moving))
    results = bind_call(computation, primals, composite)
    if not any(part.moves):
        return results, [Zero(r.aval) for r in results]
    again = _Again(computation, moving, part.moves, bool(composite.rule))
    given = [t for t in tangents if not isinstance(t, Zero)]
    moved = iter(
        linear_trace().record_call(
            part.computation, [*given, *primals, *part.captured], Composite(_TANGENT, composite.parameters, again)
        )
    )
    return results, [next(moved) if m else Zero(r.aval) for r, m in zip(results, part.moves, strict=True)]


def _backward_part(again: _Again, nonzero: tuple[bool, ...]) -> _Made:
    """From all inputs and the cotangents of results, the cotangents of moving inputs: forwards anew, then backwards."""
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
    return _Made(traced.computation, moves, tuple(traced.captured))


def _tangent_transpose(
    cts: Sequence[Value | None], operands: Sequence[Operand], attributes: CallAttributes, shape: Shape
) -> Sequence[Value | None]:
    assert attributes.composite is not None and isinstance(attributes.composite.rule, _Again)
    again = attributes.composite.rule
    nonzero = tuple(ct is not None for ct in cts)
    key = ("transpose", again.moving, again.moves, again.barrier, nonzero)
    part = _kept(again.computation, key, lambda: _backward_part(again, nonzero))
    count = sum(again.moving)
    primals: list[Any] = list(operands[count : count + len(again.moving)])
    given = [ct for ct in cts if ct is not None]
    name = (("name", again.computation.name),)
    found = iter(bind_call(part.computation, [*primals, *given, *part.captured], Composite("jit", name)))
    to_moving = [next(found) if m else None for m in part.moves]
    return [*to_moving, *(None for _ in operands[count:])]


COMPOSITE_JVP["checkpoint"] = _checkpoint_jvp
COMPOSITE_LINEARIZE["checkpoint"] = _checkpoint_linearize
COMPOSITE_TRANSPOSE[_TANGENT] = _tangent_transpose
