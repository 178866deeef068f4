"""checkpoint: a function that keeps only some values for the backward pass; the others are computed again.

In a traced program it is a composite call named "checkpoint". Linearisation splits the function in two: a forward part,
which returns the results and the values that the policy keeps, and a linear part, which recomputes the other residuals
from these and from the arguments. An optimization barrier is between them, so that no pass merges the second
computation with the first. The transpose of the linear part is again a "checkpoint": so second derivatives keep as
little.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from ..hlo.builder import make_computation, make_tuple
from ..hlo.effects import effects_of
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.support.records import dataclass
from ..hlo.support.tracebacks import boundary
from ..tracer.arguments import check_function, signature_of
from ..tracer.arrays.array import as_value
from ..tracer.arrays.float0 import hide_float0
from ..tracer.arrays.overlay import overlaid_all
from ..tracer.checks.key_uses import Uses
from ..tracer.core import (
    Call,
    Primitive,
    Tracer,
    Value,
    bind,
    bind_call,
    current_trace,
    places_are_exact,
    run_meaning,
    run_program,
)
from ..tracer.recording import TracedComputation, run_computation, trace_to_computation
from ..tracer.references.refs import Ref, check_aliases, refuse_result, replace_all, values_of_references
from ..tracer.source import function_line
from ..tracer.traced import JIT, DerivedCache, are_known, with_avals
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from .jvp import jvp_computation, moving_mask, parameter_avals
from .linearize import Linearized, LinearTrace, linearize_computation
from .operations import NAME
from .policies import Policy, may_keep, nothing_saveable
from .residuals import computed_again, plain
from .tangents import Operand, Tangent, Zero
from .transpose import transpose_call

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Remat:
    """The parameters of a call of CHECKPOINT."""

    barrier: bool
    """Is there a barrier between the computation and its repetition?"""
    policy: Policy
    is_program: bool = False
    """Outside of jit it runs as a compiled program; else operation by operation, as the user's function would."""


def _evaluate(call: Call, arrays: Sequence[Any]) -> list[Any]:
    remat: Remat = call.params
    return run_program(call, arrays) if remat.is_program else run_meaning(call, arrays)


CHECKPOINT = Primitive("checkpoint", evaluate=_evaluate)

CHECKPOINT_TANGENT = Primitive("checkpoint_tangent", evaluate=run_meaning)
"""The call in a linear program that represents a checkpointed function: from tangents, arguments and kept values to
tangents. Its parameters: a `Remat`."""


_traces = DerivedCache()
"""Functions under `checkpoint` that were traced, with the structures of their results, by the types of arguments."""


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Callable[P, R]:
    """`fun`, differentiated with few residuals: its arguments, and the values that `policy` keeps. JAX's `checkpoint`
    (`remat`).

    The derivative is the same; it computes `fun` a second time, in place of keeping its intermediate results.

    Args:
      fun: takes and returns pytrees of arrays.
      prevent_cse: False lets passes merge the second computation with the first. A sequence says so for each argument;
        there is a barrier if one of them needs it.
      policy: one of `hloom.checkpoint_policies`, or a function policy(primitive, *types, **parameters) -> bool that
        says which results may be kept. None: nothing but the arguments.
      static_argnums, static_argnames: arguments that are passed as they are.
      concrete: was removed from JAX; NotImplementedError if it is true.

    Raises:
      TypeError: `policy` is not callable, or returns something else than a bool.
      ValueError: (when called) there is no argument with a number of `static_argnums`.

    >>> layer = hloom.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> hloom.grad(layer)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    check_function(fun, "checkpoint")
    if concrete:
        raise NotImplementedError("the `concrete` option of checkpoint was removed: use `static_argnums`")
    if policy is not None and not callable(policy):
        raise TypeError(f"the policy of checkpoint must be a function, as in checkpoint_policies: {policy!r}")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = frozenset((static_argnames,) if isinstance(static_argnames, str) else static_argnames)
    barrier = prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)
    remat = Remat(barrier, nothing_saveable if policy is None else policy)
    name = getattr(fun, "__name__", "checkpoint")
    asked = _Asked(remat, name, static, names, tuple(signature_of(fun) or ()) if names else ())

    @wraps(fun)
    @boundary
    def checkpointed(*args: P.args, **kwargs: P.kwargs) -> Any:
        return _call(fun, asked, args, kwargs)

    return checkpointed


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of `checkpoint`."""

    remat: Remat
    name: str
    static: tuple[int, ...]
    static_names: frozenset[str]
    signature: tuple[inspect.Parameter, ...]
    """Empty without static names."""


def _call(function: Callable[..., Any], asked: _Asked, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call of a checkpointed function. A function of the module, which a pickle of the checkpointed one names."""
    name, names = asked.name, asked.static_names
    by_name = {n for n, p in enumerate(asked.signature) if p.name in names and p.kind in _POSITIONAL}
    fixed = {i: args[i] for i in _positions(function, asked.static, len(args)) | by_name if i < len(args)}
    fixed_by_name = {k: v for k, v in kwargs.items() if k in names}
    dynamic = {k: v for k, v in kwargs.items() if k not in names}
    leaves, structure = tree.flatten(hide_float0(([a for i, a in enumerate(args) if i not in fixed], dynamic)))
    places = {k: leaf for k, leaf in enumerate(leaves) if isinstance(leaf, Ref)}
    check_aliases(leaves, [f"leaf {k} of the arguments" for k in range(len(leaves))] if places else (), (), name)
    values: list[Value] = [as_value(leaf) for k, leaf in enumerate(leaves) if k not in places]

    def make() -> tuple[tuple[TracedComputation, Any], bool]:  # references are used as those from outside
        out_tree: Any = None

        def flat(values: list[Value]) -> list[Value]:
            nonlocal out_tree
            own = iter(values)
            given = [places[k] if k in places else next(own) for k in range(len(leaves))]
            moving, keywords = tree.unflatten(structure, given)
            rest = iter(moving)
            every = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
            found, out_tree = tree.flatten(hide_float0(function(*every, **keywords, **fixed_by_name)))
            for leaf in found:
                refuse_result(leaf, "checkpoint", function_line(function))
            return [as_value(leaf) for leaf in found]

        description = f"{function_line(function)} for checkpoint"
        avals = [v.aval for v in values]
        traced = trace_to_computation(
            flat, avals, name, description=description, keep_references=True, tracks_varying=True
        )
        captured: list[Any] = traced.captured
        outside = [v.is_traced if isinstance(v, Ref) else isinstance(v, Tracer) for v in captured]
        return (traced, out_tree), not (places or any(outside))

    statics = [(k, type(v), v) for k, v in (*fixed.items(), *sorted(fixed_by_name.items()))]
    key = structure, tuple([v.aval for v in values]), len(args), tuple(statics), places_are_exact()
    traced, out_tree = _traces.get((function,), key, make)
    if traced.rules_take_references and current_trace().differentiates:
        return function(*args, **kwargs)  # a rule will write to them: it runs as it is, and keeps all
    parameters = (("name", name), ("prevent_cse", str(asked.remat.barrier).lower()))
    call = Call(CHECKPOINT, traced.computation, asked.remat, name, parameters)
    results = bind_call(call, [*values, *values_of_references(traced.captured)])
    count = len(traced.out_avals)
    replace_all(traced.written, results[count:])
    return tree.unflatten(out_tree, with_avals(results[:count], traced.out_avals))


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _positions(fun: Callable[..., Any], static: Sequence[int], count: int) -> set[int]:
    """Positions counted from 0."""
    if any(not -count <= i < count for i in static):
        raise ValueError(
            f"the static_argnums of checkpoint must be at least -len(args) and less than len(args), but got {static} "
            f"for a call of {function_line(fun)} with {count} arguments"
        )
    return {i % count for i in static}


def checkpoint_name(x: Any, name: str) -> Any:
    """`x` (a pytree), with a name that the policy of a checkpoint can refer to. JAX's `checkpoint_name`.

    >>> keep = hloom.checkpoint_policies.save_only_these_names("wave")
    >>> f = hloom.checkpoint(lambda x: jnp.exp(checkpoint_name(jnp.sin(x), "wave")), policy=keep)
    >>> hloom.grad(f)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """

    def named(leaf: Any) -> Value:
        value: Value = as_value(leaf)
        meaning = trace_to_computation(lambda values: values, [value.aval], "name").computation
        results = bind_call(Call(NAME, meaning, name, str(name), (("name", str(name)),)), [value])
        return overlaid_all(results, [value.aval])[0]

    return tree.map(named, x)


@CHECKPOINT.def_key_uses
@CHECKPOINT_TANGENT.def_key_uses
def _key_uses(call: Call) -> Uses | None:
    """Values that are computed again use no key again."""
    is_repetition = call.primitive is CHECKPOINT_TANGENT or call.params.is_program
    return Uses() if is_repetition else None


# --- derivatives


@CHECKPOINT.def_jvp
def _checkpoint_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    derived = jvp_computation(call.computation, moving_mask(tangents))
    given = [t for t in tangents if not isinstance(t, Zero)]
    again = replace(call, meaning=derived.computation)
    return derived.unpack(bind_call(again, [*primals, *given, *derived.captured]))


@dataclass(frozen=True, slots=True)
class _Split:
    """A checkpointed function in two parts."""

    forward: HloComputation
    """From the arguments and `captured`: the results, then the values to keep."""
    linear: HloComputation
    """From the tangents of arguments that move, some arguments, and the kept values: the tangents of results that move.
    """
    arguments: tuple[int, ...]
    """Which of the arguments and of `captured` the linear part takes."""
    moves: tuple[bool, ...]
    captured: tuple[Value, ...]


_splits = DerivedCache()


def _split(computation: HloComputation, moving: tuple[bool, ...], remat: Remat) -> tuple[_Split, bool]:
    """The two parts when the inputs that `moving` names have tangents."""
    parts = linearize_computation(computation, moving)
    body = plain(parts.primal, inlined=(JIT,))
    results = body.root.operands[: len(parts.moves)]
    needed = [(body.parameters if r.place == "input" else body.root.operands)[r.index] for r in parts.residuals]
    again, leaves = computed_again(needed, {*body.parameters, *_kept(body, remat.policy)})
    arguments = sorted(
        [leaf for leaf in leaves if leaf.opcode is Opcode.PARAMETER], key=lambda p: p.attributes.number
    )
    kept = [leaf for leaf in leaves if leaf.opcode is not Opcode.PARAMETER]
    forward = computation
    if kept or parts.captured:
        forward = make_computation(computation.name, make_tuple([*results, *kept]), body.parameters, effects_of(body))
    computes = any(i.opcode is not Opcode.PARAMETER and i is not again.root for i in again.instructions)
    inputs = parameter_avals(computation)
    directions = [a for a, m in zip(inputs, moving, strict=True) if m]
    order = {leaf: k for k, leaf in enumerate([*arguments, *kept])}

    def run(values: list[Value]) -> list[Value]:
        known = values[len(directions) :]
        if remat.barrier and computes:
            known = [bind(Opcode.OPT_BARRIER, (v,)) for v in known]
        residuals = run_computation(again, [known[order[leaf]] for leaf in leaves])
        return run_computation(parts.linear, [*values[: len(directions)], *residuals])

    given = [aval for leaf, aval in sorted(zip(leaves, parameter_avals(again), strict=True), key=lambda p: order[p[0]])]
    traced = trace_to_computation(run, [*directions, *given], f"linear_{computation.name}")
    assert not traced.captured, "the linear part gets all that it uses"
    numbers = tuple([a.attributes.number for a in arguments])
    split = _Split(forward, traced.computation, numbers, parts.moves, parts.captured)
    return split, are_known(parts.captured)


def _kept(body: HloComputation, policy: Policy) -> set[HloInstruction]:
    """The values that the policy keeps, and those that would not be the same if they were computed again."""
    found = set(effects_of(body))
    for i in body.instructions:
        if i.opcode in _FREE:
            continue
        if i.opcode is Opcode.GET_TUPLE_ELEMENT:
            if i.operands[0] in found:
                found.add(i)
        elif may_keep(policy, i):
            found.add(i)
    return {i for i in found if not i.shape.is_tuple}


_FREE = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE})
"""The ops that policies are not asked about."""


@CHECKPOINT.def_linearize
def _checkpoint_linearize(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Linearized:
    computation, moving = call.computation, moving_mask(tangents)
    remat: Remat = call.params
    split = _splits.get((computation,), (moving, remat), lambda: _split(computation, moving, remat))
    inputs = [*primals, *split.captured]
    forward = replace(call, meaning=split.forward)
    returned = bind_call(forward, inputs if split.forward is not computation else primals)
    results = returned[: len(split.moves)]
    known = [*(inputs[n] for n in split.arguments), *returned[len(split.moves) :]]
    recorded = Call(CHECKPOINT_TANGENT, split.linear, remat, call.label, call.attributes)

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        return linear.record_call(recorded, [*directions, *known])

    return Linearized(results, split.moves, record)


@CHECKPOINT_TANGENT.def_transpose
def _tangent_transpose(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]
) -> Sequence[Value | None]:
    """The residuals again, then the linear part backwards: another checkpoint."""
    changed = {"primitive": CHECKPOINT, "params": replace(call.params, is_program=True)}
    return transpose_call(call, cts, operands, lambda back: replace(call, meaning=back, **changed))


remat = checkpoint
