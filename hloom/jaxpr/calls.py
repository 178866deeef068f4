"""Primitives with computations: calls, callbacks, and control flow.

Primitives of the tracer, of autodiff and of libraries are composite calls in HLO, and equations with nested jaxprs
here. A rule shows one of them. A call without a rule is shown under its own name, with its meaning as `call_jaxpr`.
Where the equation's parameters cannot say all, `call` holds the use itself, which is not printed: `bind` takes its
rules from it, and its meaning from the jaxpr.

In HLO while and conditional take one tuple; in a jaxpr they take its elements, and values that a loop does not change
are constants of its condition or its body. The custom call of a callback runs `callback`: a function of flat arrays,
which knows the user's function and the tree of its arguments. So `bind` needs nothing but an equation's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from ..autodiff.batching import call_of_element
from ..autodiff.custom import CUSTOM_JVP, CUSTOM_VJP
from ..autodiff.policies import nothing_saveable
from ..autodiff.remat import CHECKPOINT, Remat
from ..debug import callbacks
from ..debug.host import HostCallback
from ..extend.given import Given
from ..hlo.element_type import ElementType
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..lax.composite import CompositeUse
from ..tracer import core, dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import storages
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.control_flow.branches import while_loop
from ..tracer.control_flow.scan import SCAN, Scan, scan
from ..tracer.core import PLAIN_CALL, Call, Value, bind_call, bind_conditional, call_of
from ..tracer.recording import TracedComputation, run_computation, takes_one_tuple, trace_to_computation
from ..tracer.sharding.calls import CONSTRAINT
from ..tracer.sharding.shardings import NamedSharding
from ..tracer.traced import JIT, jit_call
from .atoms import Atom, Literal, Var
from .evaluate import eval_jaxpr, traced
from .library import linalg_params
from .nodes import ClosedJaxpr, JaxprEqn, OpEffect, no_effects
from .primitives import has_meaning, primitive, primitive_named
from .rules import SHOWN, Body, Shown

CallRule: TypeAlias = Callable[[Call, HloInstruction, Sequence[Atom], Body], "Shown | list[Atom]"]
"""rule(call, instruction, operands, body) -> the equation, or the atoms that are the result."""

CALLS: dict[core.Primitive, CallRule] = {}
"""How the primitives are shown that have more to show than their meaning."""


def _shows(of: core.Primitive) -> Callable[[CallRule], CallRule]:
    def decorate(rule: CallRule) -> CallRule:
        CALLS[of] = rule
        return rule

    return decorate


@SHOWN.register(Opcode.CALL)
def _call(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown | list[Atom]:
    call = call_of(i.attributes)
    rule = CALLS.get(call.primitive)
    if rule is not None:
        return rule(call, i, operands, body)
    if isinstance(call.params, Given):
        return _of_library(call, operands, body)
    if isinstance(call.params, CompositeUse):
        return _composite(call, operands, body)
    if call.primitive.axes is not None:
        return _collective(call, operands)
    if _is_of_lax(call.primitive.name):
        return Shown(call.primitive.name, operands, {})
    if (element := call_of_element(call)) is not call and _has_own_jvp(element):
        return _as_custom_jvp(call, *_jvp_names(element), operands, body)
    return _kept(call.primitive.name, call, operands, body)


@_shows(CONSTRAINT)
def _constraint(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    sharding = call.params
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        return Shown("reshard", operands, {"dst_sharding": sharding, "concrete_mesh": None})
    return Shown("sharding_constraint", operands, {"sharding": sharding, "layout": None})


def _is_of_lax(name: str) -> bool:
    """Whether `hloom.lax` has a primitive of this name, as JAX."""
    return f"{name}_p" in import_module("..lax", __package__).__all__


def _collective(call: Call, operands: Sequence[Atom]) -> Shown:
    """Its meaning is for the transformation that maps over the axis."""
    name = call.primitive.name
    assert call.primitive.axes is not None, f"{name} is no collective"
    _define_collective(name)
    groups = getattr(call.params, "groups", None) or None  # pvary has none
    return Shown(name, operands, {"axes": tuple(call.primitive.axes(call)), "axis_index_groups": groups, "call": call})


def _define_collective(name: str) -> None:
    if has_meaning(name):
        return

    @primitive(name)
    def apply(*operands: Value, call: Call | None = None, **params: Any) -> Any:
        if call is None:
            return _COLLECTIVES[name](import_module("..lax", __package__), *operands, **params)
        (result,) = bind_call(call, operands)
        return result


def _extremum(name: str) -> Callable[..., Any]:
    def bound(lax: Any, x: Value, *, axes: Any, axis_index_groups: Any = None) -> Any:
        return getattr(lax, name)(x, tuple(axes), axis_index_groups=axis_index_groups)

    return bound


def _all_gather(lax: Any, x: Value, *, all_gather_dimension: int, axis_name: Any, axis_size: int, **rest: Any) -> Any:
    return lax.all_gather(x, axis_name, axis=all_gather_dimension, **rest)


def _all_to_all(lax: Any, x: Value, *, axis_name: Any, split_axis: int, concat_axis: int, **rest: Any) -> Any:
    return lax.all_to_all(x, axis_name, split_axis, concat_axis, **rest)


_COLLECTIVES: dict[str, Callable[..., Any]] = {
    **{name: _extremum(name) for name in ("pmax", "pmin", "psum")},
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "axis_index": lambda lax, *, axis_name: lax.axis_index(axis_name),
    "ppermute": lambda lax, x, *, axis_name, perm: lax.ppermute(x, axis_name, perm),
    "ragged_all_to_all": lambda lax, *operands, **params: lax.ragged_all_to_all(*operands, **params),
}
"""The functions that bind collectives with JAX's parameters. Collectives in equations have their call."""

for _collective_name in _COLLECTIVES:
    _define_collective(_collective_name)


class Rule(NamedTuple):
    """A derivative rule, by its name."""

    name: str


# ---- calls


@_shows(PLAIN_CALL)
def _plain(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("closed_call", operands, {"call_jaxpr": body.nested(call.computation)})


@primitive("call", multiple_results=True)
@primitive("closed_call", multiple_results=True)
def _bind_plain(*values: Value, call_jaxpr: Any = None, subfuns: Sequence[Any] = ()) -> list[Value]:
    """subfuns: one WrappedFun in place of the jaxpr, which is called at once."""
    if subfuns:
        (function,) = subfuns
        return [as_value(leaf) for leaf in function.call_wrapped(*values)]
    found = traced(call_jaxpr, "closed_call")
    return bind_call(Call(PLAIN_CALL, found.computation), [*values, *found.captured])


@_shows(JIT)
def _jit(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """Arrays from outside that the function uses are its constants; traced values are its first operands, and so are
    arrays beside them, as in JAX."""
    own = len(operands) - call.captured
    arguments, captured = operands[:own], operands[own:]
    values = [body.known(a) for a in captured]
    if all(v is not None for v in values):
        return _as_jit(call.label, body.closed_over(call.computation, values), arguments)
    closed = body.nested(call.computation)
    invars = closed.jaxpr.invars
    jaxpr = closed.jaxpr.replace(invars=[*invars[own:], *invars[:own]])
    return _as_jit(call.label, ClosedJaxpr(jaxpr, closed.consts), [*captured, *arguments])


def _as_jit(name: str, jaxpr: ClosedJaxpr, operands: Sequence[Atom]) -> Shown:
    flags = {"donated_invars": (False,) * len(operands), "inline": False, "keep_unused": False}
    return Shown("jit", operands, {"name": name, "jaxpr": jaxpr, **flags})


@primitive("jit", multiple_results=True)
def _bind_jit(
    *values: Value, jaxpr: Any, name: str = "jit", donated_invars: Any = (), inline: bool = False,
    keep_unused: bool = False,
) -> list[Value]:  # fmt: skip
    found = traced(jaxpr, name)
    return bind_call(jit_call(found.computation, name), [*values, *found.captured])


# ---- loops


@_shows(SCAN)
def _scan(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown | list[Atom]:
    """The body's index is a further carry where the loop counts: the first, as in JAX."""
    rule: Scan = call.params
    closed = body.nested(rule.body)
    jaxpr = closed.jaxpr
    index, split = jaxpr.invars[-1], rule.num_consts
    read = [*jaxpr.outvars, *[a for e in jaxpr.eqns for a in e.invars]]
    counts = rule.is_counted or any(a is index for a in read)
    invars, taken = jaxpr.invars[:-1], list(operands)
    if counts:
        number = ShapedArray((), dtypes.int32)
        step = Var(number)
        one = Literal(dtypes.int32.type(1), number)
        advance = JaxprEqn([index, one], [step], primitive_named("sub" if rule.reverse else "add"), {})
        first = Literal(dtypes.int32.type(rule.length - 1 if rule.reverse else 0), number)
        invars, taken = [*invars[:split], index, *invars[split:]], [*taken[:split], first, *taken[split:]]
        jaxpr = jaxpr.replace(outvars=[step, *jaxpr.outvars], eqns=[advance, *jaxpr.eqns])
    params = {
        "reverse": rule.reverse,
        "length": rule.length,
        "jaxpr": ClosedJaxpr(jaxpr.replace(invars=invars), closed.consts),
        "num_consts": rule.num_consts,
        "num_carry": rule.num_carry + counts,
        "unroll": 1,
    }
    if not counts:
        return Shown("scan", taken, params)
    results = body.emit(Shown("scan", taken, params), [ShapedArray((), dtypes.int32), *body.result_avals(i)], i)
    return list(results[1:])


@primitive("scan", multiple_results=True)
def _bind_scan(
    *values: Value, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int, reverse: bool = False,
    unroll: int = 1, **others: Any,
) -> list[Value]:  # fmt: skip
    consts, carry = values[:num_consts], list(values[num_consts : num_consts + num_carry])

    def step(carry: list[Value], slices: list[Value]) -> tuple[list[Any], list[Any]]:
        results = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *slices)
        return results[:num_carry], results[num_carry:]

    last, stacked = scan(step, carry, list(values[num_consts + num_carry :]), length, reverse)
    return [*last, *stacked]


# ---- functions with derivatives of their own, checkpoint


def _kept(name: str, call: Call, operands: Sequence[Atom], body: Body, /, **params: Any) -> Shown:
    """An equation that keeps the call."""
    if not has_meaning(name):
        primitive(name, multiple_results=True)(_bind_kept)
    return Shown(name, operands, {"call_jaxpr": body.nested(call.computation), "call": call, **params})


def _bind_kept(
    *values: Value, call: Call, call_jaxpr: Any = None, subfuns: Sequence[Any] = (), **params: Any
) -> list[Value]:
    """subfuns: one WrappedFun in place of the jaxpr."""
    if subfuns:
        (function,) = subfuns

        def run(given: list[Value]) -> Sequence[Value]:
            return storages(tuple([as_value(leaf) for leaf in function.call_wrapped(*given)]))

        found = trace_to_computation(run, [v.aval.storage for v in values], call.label)
    else:
        found = traced(call_jaxpr, call.label)
    return bind_call(replace(call, meaning=found.computation), [*values, *found.captured])


def _composite(call: Call, operands: Sequence[Atom], body: Body) -> Shown:
    """A function that the program names (`hloom/lax/composite.py`)."""
    use: CompositeUse = call.params
    params = {"attributes": use.attributes, "name": use.name, "version": use.version, "call": call}
    return Shown("composite", operands, {"jaxpr": body.nested(call.computation), **params})


@primitive("composite", multiple_results=True)
def _bind_composite(*values: Value, jaxpr: Any, call: Call, **params: Any) -> list[Value]:
    return _bind_kept(*values, call_jaxpr=jaxpr, call=call)


@_shows(CUSTOM_JVP)
def _custom_jvp(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return _as_custom_jvp(call, *_jvp_names(call), operands, body)


def _has_own_jvp(call: Call) -> bool:
    """Whether it is a function with a derivative of its own, a user's or one of the library."""
    if call.primitive is CUSTOM_JVP:
        return True
    given = call.params
    return isinstance(given, Given) and given.owner.is_of_library and call.primitive.jvp is not None


def _jvp_names(call: Call) -> tuple[str, str]:
    """The names of such a function and of its rule."""
    if call.primitive is CUSTOM_JVP:
        return call.label, _name_of(call.params, "jvp")
    return call.primitive.name, f"{call.primitive.name}_jvp"


def _as_custom_jvp(call: Call, name: str, rule: str, operands: Sequence[Atom], body: Body) -> Shown:
    params = {"name": name, "jvp_jaxpr_fun": Rule(rule), "num_consts": 0, "symbolic_zeros": False}
    return _kept("custom_jvp_call", call, operands, body, **params)


@_shows(CUSTOM_VJP)
def _custom_vjp(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    forward = Rule(_name_of(getattr(call.params, "forward", None), "fwd"))
    backward = Rule(_name_of(getattr(call.params, "backward", None), "bwd"))
    rules = {"fwd_jaxpr_thunk": forward, "bwd": backward}
    return _kept("custom_vjp_call", call, operands, body, name=call.label, num_consts=0, symbolic_zeros=False, **rules)


def _name_of(rule: Any, otherwise: str) -> str:
    """The user's name of the rule."""
    return str(getattr(rule, "__name__", otherwise))


for _custom in ("custom_jvp_call", "custom_vjp_call", "custom_linear_solve", "name"):
    primitive(_custom, multiple_results=True)(_bind_kept)


@_shows(CHECKPOINT)
def _checkpoint(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    closed = body.nested(call.computation)
    prevents = dict(call.attributes).get("prevent_cse") != "false"
    remat: Remat = call.params
    policy = None if remat.policy is nothing_saveable else remat.policy
    params = {"prevent_cse": prevents, "differentiated": False, "policy": policy, "call": call}
    return Shown("remat2", operands, {"jaxpr": closed if closed.consts else closed.jaxpr, **params})


@primitive("remat2", multiple_results=True)
def _bind_checkpoint(*values: Value, jaxpr: Any, call: Call, **params: Any) -> list[Value]:
    return _bind_kept(*values, call_jaxpr=jaxpr, call=call)


# ---- primitives of libraries


def _of_library(call: Call, operands: Sequence[Atom], body: Body) -> Shown:
    """A user's primitive is itself. A function of hloom's library is shown as the form that JAX has for it: a primitive
    of its own, a function with its own derivative, or a jitted function."""
    given: Given = call.params
    own = operands[: len(given.avals)]
    if given.owner.is_shown or not given.owner.is_of_library:
        return Shown(given.owner, own, dict(given.params), given.effects or None)
    name = call.primitive.name
    if _is_of_lax(name):
        return Shown(name, own, dict(given.params))
    factors = linalg_params(name, given.params)
    if factors is not None:
        return Shown(name, own, factors)
    if call.primitive.jvp is None:
        return _as_jit(name, body.nested(call.computation), operands)
    return _as_custom_jvp(call, *_jvp_names(call), operands, body)


DEBUG, ORDERED_DEBUG, IO, ORDERED_IO = map(OpEffect, ("Debug", "OrderedDebug", "IO", "OrderedIO"))
_EFFECTS = {callbacks.IO: (IO, ORDERED_IO), callbacks.DEBUG: (DEBUG, ORDERED_DEBUG)}
_EFFECTS[callbacks.PRINT] = _EFFECTS[callbacks.DEBUG]


def _shown(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    use: callbacks.Callback = call.params
    name, params = call.primitive.name, _PARAMS[call.primitive](use)
    kinds = _EFFECTS.get(call.primitive)
    effects = no_effects if kinds is None else frozenset({kinds[use.ordered]})
    return Shown(name, operands, {"callback": use.host, **params}, effects)


_PARAMS = {
    callbacks.PURE: lambda use: {
        "result_avals": use.host.results,
        "sharding": None,
        "vmap_method": use.vmap_method,
    },
    callbacks.IO: lambda use: {"ordered": use.ordered, "result_avals": use.host.results, "sharding": None},
    callbacks.DEBUG: lambda use: {"ordered": use.ordered, "partitioned": False},
    callbacks.PRINT: lambda use: {"fmt": use.host.name, "ordered": use.ordered, "partitioned": False},
}


def _define(of: core.Primitive) -> None:
    CALLS[of] = _shown

    @primitive(of.name, multiple_results=True)
    def bind(
        *values: Value, callback: HostCallback, ordered: bool = False, vmap_method: str | None = None, **others: Any
    ) -> list[Value]:
        return callbacks.Callback(callback, ordered, vmap_method).bind(of, values)


for _primitive in _PARAMS:
    _define(_primitive)


@SHOWN.register(Opcode.WHILE)
def _while(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown | list[Atom]:
    start = body.tuple_atoms(i.operands[0])
    condition, step = i.attributes.condition, i.attributes.body
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
    if not i.shape.is_tuple:
        return Shown("while", taken, params)
    types = body.result_avals(i)
    avals = [types[k] for k in carried]
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
