"""An HLO computation as a jaxpr, and `make_jaxpr`. Instructions become equations by the table of `rules.py`; tuples,
constants and parameters become atoms.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..api_util.wrapped_functions import WrappedFun
from ..hlo.effects import has_side_effect
from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..hlo.support.tracebacks import boundary
from ..tracer.arguments import (
    ShapeDtypeStruct,
    abstract_example,
    argument_spec,
    check_function,
    entered,
    leaf_describer,
    split_static,
)
from ..tracer.arrays.array import Array, as_value, younger_arrays
from ..tracer.arrays.float0 import hide_float0
from ..tracer.aval import ANY_OVER_DEVICES, ShapedArray, aval_of_shape
from ..tracer.recording import divisions
from ..tracer.references.refs import AbstractRef, Ref, values_of_references
from ..tracer.settings.context import Override, current_context
from ..tracer.traced import trace_function
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from . import calls, elementwise, foreign, library, movement, reduce  # each registers its rules
from .atoms import Atom, DropVar, Literal, Var
from .evaluate import jaxpr_as_fun, remember
from .movement import broadcast_in_dim
from .nodes import ClosedJaxpr, Effect, Jaxpr, JaxprEqn, OpEffect, SourceInfo, no_effects
from .primitives import primitive_named
from .rules import SHOWN, Plan, Shown, Source, plan_of, ranked

_FAMILIES = (calls, elementwise, foreign, library, movement, reduce)


class Views:
    """The jaxprs of one program: a computation that is called twice is one jaxpr."""

    def __init__(self) -> None:
        self._made: dict[tuple[HloComputation, tuple[int, ...]], ClosedJaxpr] = {}

    def of(self, computation: HloComputation, captured: Sequence[Any] = ()) -> ClosedJaxpr:
        """The jaxpr of a computation; tuples that it takes or returns are taken apart. `captured`: the values of its
        last parameters, which become constants."""
        key = computation, tuple(map(id, captured))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = _Body(self, computation, captured).closed()
            if not captured and all(not p.shape.is_tuple for p in computation.parameters):
                remember(found.jaxpr, computation)
        return found


def view_of(
    computation: HloComputation,
    captured: Sequence[Any],
    in_avals: Sequence[ShapedArray | AbstractRef],
    out_avals: Sequence[ShapedArray],
) -> ClosedJaxpr:
    """The jaxpr of a traced function. Its parameters are the arguments, then the captured values, which become
    constants. `in_avals` and `out_avals` say which types are weak.

    References to mutable arrays are the arrays that they have now; the values written to them follow the results.
    """
    inside = [a.inner_aval if isinstance(a, AbstractRef) else a for a in in_avals]
    written = len(computation.root.shape.elements) - len(out_avals)
    results = [*out_avals, *[ShapedArray((), np.dtype(np.float32))] * written]  # theirs are strong types
    return _Body(Views(), computation, values_of_references(captured), inside, results).closed()


class _Body:
    """A computation on its way to become a jaxpr."""

    def __init__(
        self,
        views: Views,
        computation: HloComputation,
        captured: Sequence[Any] = (),
        in_avals: Sequence[ShapedArray] | None = None,
        out_avals: Sequence[ShapedArray] | None = None,
    ) -> None:
        self._views = views
        self._computation = computation
        self._captured = captured
        self._in_avals = in_avals
        self._out_avals = out_avals
        self._plan: Plan = plan_of(computation)
        self._atoms: dict[Source, Any] = {}
        self._equations: list[JaxprEqn] = []
        self._constants: dict[Var, Any] = {}
        self._values: dict[int, Any] = {}
        """Of the constants from outside, by the identity of their variables."""
        self._shardings: Mapping[HloInstruction, Sequence[Any]] = {}
        if ANY_OVER_DEVICES and in_avals is not None:
            types = [a.storage for a in (*in_avals, *[as_value(v).aval for v in captured])]
            self._shardings = divisions().shardings_within(computation, types)

    def closed(self) -> ClosedJaxpr:
        computation = self._computation
        invars = self._parameters()
        constvars = invars[len(invars) - len(self._captured) :]
        self._values = dict(zip(map(id, constvars), self._captured, strict=True))
        for i in computation.instructions:
            if Source(i, True) in self._plan.needed:
                self._atoms[Source(i, True)] = self._ranked(i)
            if Source(i) in self._plan.needed and i.opcode is not Opcode.PARAMETER:
                self._atoms[Source(i)] = self._value(i)
        root = self._atoms[Source(computation.root)]
        outvars = root if isinstance(root, list) else [root]
        if self._out_avals is not None:
            weak = [a.weak_type and not a.is_extended for a in self._out_avals]
            outvars = [_as_weak(o) if w else o for o, w in zip(outvars, weak, strict=True)]
        used = self._drop_unused(outvars)
        effects = frozenset(e for equation in self._equations for e in equation.effects)
        kept = [v for v in constvars if id(v) in used]  # the others are constants of inner functions
        arguments = invars[: len(invars) - len(constvars)]
        jaxpr = Jaxpr([*kept, *self._constants], arguments, outvars, self._equations, effects)
        return ClosedJaxpr(jaxpr, [*[self._values[id(v)] for v in kept], *self._constants.values()])

    def _parameters(self) -> list[Var]:
        found: list[Var] = []
        for k, p in enumerate(self._computation.parameters):
            if p.shape.is_tuple:
                _refuse_nested(p.shape)
                elements = [Var(aval_of_shape(s)) for s in p.shape.elements]
                self._atoms[Source(p)] = elements
                found += elements
            else:
                given = self._in_avals[k] if self._in_avals is not None and k < len(self._in_avals) else None
                is_weak = given is not None and given.weak_type and not given.is_extended
                aval = aval_of_shape(p.shape, is_weak)
                var = Var(aval.divided(self._shardings[p][0]) if p in self._shardings else aval)
                self._atoms[Source(p)] = var
                found.append(var)
        return found

    def _value(self, i: HloInstruction) -> Any:
        match i.opcode:
            case Opcode.CONSTANT:
                return self._constant(i)
            case Opcode.TUPLE:
                _refuse_nested(i.shape)
                return [self._atoms[Source(o)] for o in i.operands]
            case Opcode.GET_TUPLE_ELEMENT:
                return self._atoms[Source(i.operands[0])][i.attributes.index]
        sources = self._plan.sources.get(i) or tuple([Source(o) for o in i.operands])
        shown = SHOWN[i.opcode](i, [self._atoms[s] for s in sources], self)
        if isinstance(shown, list):
            return shown
        found = self.emit(shown, self.result_avals(i), i)
        return found if i.shape.is_tuple else found[0]

    def _constant(self, i: HloInstruction) -> Atom:
        array = i.attributes.literal.array
        aval = aval_of_shape(i.shape)
        if not i.shape.rank:
            return Literal(np.asarray(array)[()], aval)
        var = Var(aval)
        self._constants[var] = Array(aval, array)
        return var

    def _ranked(self, i: HloInstruction) -> Atom:
        """A broadcast with an equation for the new dimensions of size 1 only."""
        sizes = ranked(i)
        shown = broadcast_in_dim(self._atoms[Source(i.operands[0])], sizes, i.attributes.dimensions)
        return self.emit(shown, [ShapedArray(sizes, i.shape.element.dtype)], i)[0]

    def _drop_unused(self, outvars: Sequence[Atom]) -> set[int]:
        """Unused results become DropVars; equations that a rule had no use for vanish. The atoms that are used."""
        used = {id(a) for a in outvars}
        kept: list[JaxprEqn] = []
        for equation in reversed(self._equations):
            results = [v if id(v) in used else DropVar(v.aval) for v in equation.outvars]
            if not equation.effects and all(isinstance(v, DropVar) for v in results):
                continue
            is_same = all(a is b for a, b in zip(results, equation.outvars))
            kept.append(equation if is_same else equation.replace(outvars=results))
            used.update(id(a) for a in equation.invars)
        self._equations = kept[::-1]
        return used

    # ---- interface for rules

    def result_avals(self, instruction: HloInstruction) -> list[ShapedArray]:
        """The types of the results of an instruction, with their divisions over a mesh."""
        shape = instruction.shape
        shapes: Sequence[Shape] = shape.elements if shape.is_tuple else (shape,)
        avals = [aval_of_shape(s) for s in shapes]
        found = self._shardings.get(instruction)
        return avals if found is None else [a.divided(s) for a, s in zip(avals, found, strict=True)]

    def emit(self, shown: Shown, avals: Sequence[ShapedArray], instruction: HloInstruction) -> list[Var]:
        """One more equation; returns its outputs."""
        outvars = [Var(a) for a in avals]
        primitive = primitive_named(shown.primitive) if isinstance(shown.primitive, str) else shown.primitive
        info = SourceInfo.of(instruction.metadata)
        effects = self._effects(instruction) if shown.effects is None else shown.effects
        self._equations.append(JaxprEqn(shown.operands, outvars, primitive, shown.params, effects, info))
        return outvars

    def _effects(self, i: HloInstruction) -> frozenset[Effect]:
        if not has_side_effect(i):
            return no_effects
        if not i.called_computations():
            return frozenset({OpEffect(i.opcode.value)})
        return frozenset(e for c in i.called_computations() for e in self._views.of(c).effects)

    def tuple_atoms(self, instruction: HloInstruction) -> list[Atom]:
        """The elements of a tuple."""
        found = self._atoms[Source(instruction)]
        return list(found) if isinstance(found, list) else [found]

    def nested(self, computation: HloComputation) -> ClosedJaxpr:
        """The jaxpr of a computation that an op calls."""
        return self._views.of(computation)

    def known(self, atom: Atom) -> Any:
        """The value of a constant that the function used from outside; None for all else."""
        return self._values.get(id(atom))

    def closed_over(self, computation: HloComputation, values: Sequence[Any]) -> ClosedJaxpr:
        """The jaxpr of a computation that an op calls; `values` of its last parameters are its constants."""
        return self._views.of(computation, values)

    def is_used(self, instruction: HloInstruction, index: int) -> bool:
        """Whether element `index` of an instruction's tuple is read."""
        users = self._computation.users[instruction]
        if instruction is self._computation.root:
            return True
        reads = [u for u in users if u.opcode is Opcode.GET_TUPLE_ELEMENT]
        return len(reads) < len(users) or any(u.attributes.index == index for u in reads)


def _as_weak(atom: Atom) -> Atom:
    """A result with a weak type: the variable itself gets it, while the jaxpr is in the making."""
    aval = atom.aval.with_weak_type(True)
    if isinstance(atom, Literal):
        return Literal(atom.val, aval)
    atom.aval = aval
    return atom


def _refuse_nested(shape: Shape) -> None:
    if any(s.is_tuple for s in shape.elements):
        raise UnsupportedError(f"a jaxpr has no tuples in tuples, as {shape} is; no traced function makes them")


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that takes fun's arguments, or ShapeDtypeStruct, and returns the program it is traced to as a
    ClosedJaxpr: a view of its HLO, before any pass.

    static_argnums: arguments that are Python values.
    return_shape: also return the results' types, as ShapeDtypeStruct in the structure of the result.
    axis_env: names and sizes of axes that the function's collectives may use.

    For a reference to a mutable array the program takes the array, and the written value is a further result.

    >>> hloom.make_jaxpr(lambda x: jnp.sin(2 * x))(jnp.ones(3))
    { lambda ; a:f32[3]. let b:f32[3] = mul 2.0:f32[] a; c:f32[3] = sin b in (c,) }
    """
    check_function(fun, "make_jaxpr")
    axes = tuple([(name, operator.index(size)) for name, size in axis_env or ()])
    static = argument_spec(fun, "static", static_argnums, None)

    @wraps(fun)
    @boundary
    def make(*args: Any, **kwargs: Any) -> Any:
        dynamic, keywords, statics = split_static(fun, static, args, kwargs)
        dynamic, keywords = hide_float0(entered(dynamic, keywords))
        leaves, treedef = tree.flatten((dynamic, keywords))
        describe = leaf_describer(fun, dynamic, keywords, statics)
        avals = [
            x.aval if isinstance(x, Ref) else abstract_example(x, functools.partial(describe, k))
            for k, x in enumerate(leaves)
        ]
        with Override(axis_names=(*current_context().axis_names, *axes)), younger_arrays(captures=True):
            traced = trace_function(fun, treedef, avals, statics, float0_results=True)
        closed = view_of(traced.computation, traced.captured, traced.in_avals, traced.out_avals)
        if not return_shape:
            return closed
        structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in traced.out_avals]
        return closed, tree.unflatten(traced.out_tree, structs)

    name = getattr(fun, "__name__", type(fun).__name__)
    make.__name__, make.__qualname__ = f"make_jaxpr({name})", f"make_jaxpr({getattr(fun, '__qualname__', name)})"
    make.__module__ = "hloom"
    return make


# ---- operations by JAX's names


_FUNCTIONS = {
    "not": "bitwise_not", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "regularized_incomplete_beta": "betainc",
}
"""Primitives that are called otherwise in `hloom.lax`."""
_SEVERAL = frozenset({
    "eig", "hessenberg", "lu", "qr", "schur", "split", "top_k", "tridiagonal", "unstack",
})  # fmt: skip
"""Functions of `hloom.lax` and `hloom.lax.linalg` that return several arrays."""


def wrapped_jaxpr(closed: ClosedJaxpr) -> WrappedFun:
    """The jaxpr as a function that primitives take in `subfuns`."""
    return WrappedFun(jaxpr_as_fun(closed))


def operation_of(name: str) -> tuple[Callable[..., Any], bool]:
    """The function that a primitive binds which no family defines, and whether it returns a list: that of its name in
    `hloom.lax` or `hloom.lax.linalg`."""
    function = _FUNCTIONS.get(name, name)
    lax = import_module("..lax", __package__)
    for namespace in (lax, lax.linalg):
        if function in namespace.__all__:
            return getattr(namespace, function), function in _SEVERAL
    raise UnsupportedError(f"hloom has no operation for JAX's primitive {name}")
