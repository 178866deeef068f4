"""Functions of pytrees as computations: the first step of jit, of the control flow functions and of eval_shape."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..hlo.ir import HloComputation, HloModule
from ..hlo.support.records import dataclass
from ..hlo.support.snapshots import snapshot
from .arguments import NO_STATICS, ShapeDtypeStruct, StaticArguments, entered, identifier, merge_static
from .arrays.array import as_value
from .arrays.float0 import hide_float0
from .arrays.overlay import overlaid
from .aval import ShapedArray
from .caches import register_cache
from .core import Call, Primitive, Value, bind_call, current_trace, eval_computation, run_program
from .errors import ConcretizationTypeError, NonArrayArgumentError
from .execution import module_of
from .recording import run_computation, stand_in_for, trace_to_computation
from .references.refs import AbstractRef, Ref, refuse_result, replace_all, values_of_references
from .settings.context import current_context
from .source import function_line, warn_user
from .tracer import Tracer
from .trees import tree
from .wrapping import name_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A function traced for one combination of argument types."""

    name: str
    computation: HloComputation
    """Parameters: the leaves of the arguments, then the values that the function captures."""
    captured: tuple[Any, ...]
    """Values, and references to mutable arrays."""
    in_avals: tuple[Any, ...]
    """Types of values; AbstractRef for references."""
    out_avals: tuple[ShapedArray, ...]
    out_tree: Any
    donated: tuple[int, ...]
    written: tuple[int | Ref, ...] = ()
    """References that it writes, as positions among the arguments' leaves, or themselves if they are captured. Their
    new values are the computation's last results, which `out_avals` leaves out."""

    rules_take_references: bool = False
    """Whether rules of users may write to references from outside when gradients are known."""

    @property
    def may_be_kept(self) -> bool:
        """Whether another call with arguments of these types is the same program."""
        return self.is_closed

    @property
    def is_closed(self) -> bool:
        """False if it uses traced values from outside, which another call may not find again."""
        return not any(isinstance(v, Tracer) or (isinstance(v, Ref) and v.is_traced) for v in self.captured)

    def unchanged(self, count: int) -> list[int]:
        """The positions, among the first `count` leaves of the arguments, of those that it returns in their places."""
        returned, given = self.computation.root.operands, self.computation.parameters
        return [k for k in range(count) if returned[k] is given[k] and self.out_avals[k] == self.in_avals[k]]

    @property
    def has_references(self) -> bool:
        """Whether a reference to a mutable array is an argument, or is used from outside."""
        return any(isinstance(a, AbstractRef) for a in self.in_avals) or any(isinstance(v, Ref) for v in self.captured)

    @property
    def captured_avals(self) -> list[ShapedArray]:
        """The types of the values that it takes after the ordinary ones."""
        return [v.aval.inner_aval if isinstance(v, Ref) else v.aval for v in self.captured]

    def references_written(self, leaves: Sequence[Any]) -> list[Ref]:
        """The references that a call on `leaves` writes."""
        return [leaves[w] if isinstance(w, int) else w for w in self.written]

    def module(self) -> HloModule:
        """Its module. Warns of donated arguments that it uses and that no result can take the place of."""
        module = module_of(f"jit_{identifier(self.name)}", self.computation, self.donated)
        useless = {*self.donated} - {alias.parameter for alias in module.input_output_aliases}
        if useless:
            read = {o for i in self.computation.instructions for o in i.operands}
            shown = [self.in_avals[k].str_short() for k in sorted(useless) if self.computation.parameters[k] in read]
            if shown:
                warn_user(
                    f"Some donated buffers were not usable: {', '.join(shown)}. No result of {self.name} has the type "
                    "of these arguments, which are deleted all the same: do not donate them, or return such a result."
                )
        return module

    def bind(self, leaves: Sequence[Value], inline: bool) -> Any:
        """Call it within the current trace."""
        operands = values_of_references([*leaves, *self.captured])
        if inline:
            results = eval_computation(self.computation, operands)
        else:
            results = bind_call(jit_call(self.computation, self.name, len(self.captured)), operands)
        count = len(self.out_avals)
        replace_all(self.references_written(leaves), results[count:])
        return tree.unflatten(self.out_tree, with_avals(results[:count], self.out_avals))


JIT = Primitive("jit", evaluate=run_program)
"""A nested jit. It remains a call in derivatives, so that these are compiled once, too."""


def jit_call(computation: HloComputation, name: str, captured: int = 0) -> Call:
    """A call of a jitted function with the name `name` in the user's program. `captured`: how many of its last operands
    are not arguments."""
    return Call(JIT, computation, label=name, attributes=(("name", name),), captured=captured)


def taking_references(traced: Traced, references: Sequence[Ref], at: int, out_at: int | None) -> Traced:
    """The function with the arrays of `references` as arguments from position `at`, no longer captured, and with their
    new arrays as results from position `out_at` (None: it writes none). For loops and branches, which hand them on."""
    if not references:
        return traced
    places = {id(v): k for k, v in enumerate(traced.captured)}
    kept = [k for k, v in enumerate(traced.captured) if not any(v is r for r in references)]
    new_avals = [r.aval.inner_aval for r in references]
    in_avals = (*traced.in_avals[:at], *new_avals, *traced.in_avals[at:])
    count, results_end = len(in_avals), len(traced.out_avals)

    def run(values: list[Value]) -> list[Value]:
        given, arrays, rest = values[:count], values[at : at + len(references)], iter(values[count:])
        captured: list[Any] = [None] * len(traced.captured)
        for k in kept:
            captured[k] = next(rest)
        for r, array in zip(references, arrays, strict=True):
            if id(r) in places:
                captured[places[id(r)]] = array
        ordinary = [*given[:at], *given[at + len(references) :]]
        results = run_computation(traced.computation, [*ordinary, *captured])
        if out_at is None:
            return results
        changed = {id(r): v for r, v in zip(traced.written, results[results_end:], strict=True)}
        final = [changed.get(id(r), array) for r, array in zip(references, arrays, strict=True)]
        return [*results[:out_at], *final, *results[out_at:results_end]]

    avals = [*in_avals, *[traced.captured_avals[k] for k in kept]]
    computation = trace_to_computation(run, avals, traced.name).computation
    out_avals = traced.out_avals
    if out_at is not None:
        out_avals = (*out_avals[:out_at], *new_avals, *out_avals[out_at:])
    captured = tuple([traced.captured[k] for k in kept])
    return replace(
        traced, computation=computation, captured=captured, in_avals=in_avals, out_avals=out_avals, written=()
    )


def with_avals(results: Sequence[Value], avals: Sequence[ShapedArray]) -> list[Value]:
    """Results of a computation with the types that the function gave them: weak types, extended dtypes.

    The results of the computation itself are strongly typed, and have dtypes of HLO.
    """
    trace = current_trace()
    return [trace.with_weak_type(overlaid(r, a), a.weak_type) for r, a in zip(results, avals, strict=True)]


def trace_function(
    fun: Callable[..., Any],
    treedef: Any,
    avals: Sequence[Any],
    statics: StaticArguments = NO_STATICS,
    labels: Sequence[str] = (),
    donated: tuple[int, ...] = (),
    types_only: bool = False,
    float0_results: bool = False,
    what: str = "jit",
) -> Traced:
    """Trace a function of pytrees; `treedef` is the structure of (positional, keyword) dynamic arguments.

    types_only: for `eval_shape`; the computation will not be used.
    float0_results: the result may have float0 arrays, which are nodes of `out_tree`.
    what: the user's function that it is traced for, in messages.
    Arguments with an AbstractRef as their type are references for `fun`.
    """
    out_tree: Any = None
    references = {k: a for k, a in enumerate(avals) if isinstance(a, AbstractRef)}
    written: list[int | Ref] = []
    count = 0

    def flat(values: list[Value]) -> list[Value]:
        nonlocal out_tree, count
        given: list[Any] = list(values)
        for k in references:
            given[k] = Ref(values[k], labels[k] if labels else f"{k}", references[k].kind)
        args, kwargs = tree.unflatten(tree.ordered(treedef), given)
        full_args, full_kwargs = merge_static(args, kwargs, statics)
        (result,) = entered(fun(*full_args, **full_kwargs))
        results, out_tree = tree.flatten(hide_float0(result) if float0_results else result)
        for r in results:
            refuse_result(r, what, function_line(fun))
        found = [_result(fun, r, k, out_tree) for k, r in enumerate(results)]
        count = len(found)
        changed = [k for k in references if given[k].current() is not values[k]]
        written.extend(changed)
        return [*found, *(given[k].current() for k in changed)]

    name = name_of(fun)
    names = [(identifier(label), label) for label in labels]
    traced = trace_to_computation(
        *(flat, [a.inner_aval if isinstance(a, AbstractRef) else a for a in avals], name),
        parameter_names=names,
        description=function_line(fun),
        types_only=types_only,
        keep_references=True,
        tracks_varying=True,
    )
    return Traced(
        *(name, traced.computation, tuple(traced.captured), tuple(avals), traced.out_avals[:count], out_tree, donated),
        written=(*written, *traced.written),
        rules_take_references=traced.rules_take_references,
    )


def _result(fun: Callable[..., Any], leaf: Any, position: int, out_tree: Any) -> Value:
    if isinstance(leaf, ShapeDtypeStruct) and (value := stand_in_for(leaf.aval)) is not None:
        return value  # `eval_shape` accepts a function that returns a type
    try:
        return as_value(leaf)
    except ConcretizationTypeError:
        raise
    except TypeError:
        path = tree.keystr(tree.paths_of_structure(out_tree)[position])
        stands_for = "A ShapeDtypeStruct does not have a value. " if isinstance(leaf, ShapeDtypeStruct) else ""
        raise NonArrayArgumentError(
            f"{stands_for}function {function_line(fun)} returned a value of type {type(leaf).__name__}"
            f"{path and f' at output component {path}'}, which is not a valid JAX type, an array or a number: "
            f"{leaf!r}\n  Return arrays, numbers, None, or containers of them."
        ) from None


def are_known(captured: Sequence[Value]) -> bool:
    """Whether all are arrays. An object that holds a tracer belongs to its trace, and must not be kept for others."""
    return not any(isinstance(value, Tracer) for value in captured)


class DerivedCache:
    """Objects made from functions or computations, by a key and the trace context; kept while all of these live.

    Loops on concrete arrays run compiled programs, and so do derivatives of jitted functions: the second use must find
    the program of the first. All sources are held weakly, because one may refer to another: a branch that calls the
    other branch, for example.
    """

    def __init__(self) -> None:
        self._found = _Table()
        register_cache(self)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()

    def get(self, sources: Sequence[Any], key: Hashable, make: Callable[[], tuple[T, bool]]) -> T:
        """The result; `make` returns it, and whether it may be kept."""
        full_key = (len(sources), key, current_context())
        try:
            entries = self._entries(sources)
            found: T | None = entries.get(full_key)
        except TypeError:  # a function that cannot be hashed, or referred to weakly
            return make()[0]
        if found is not None:
            return found
        result, keep = make()
        if keep:
            entries[full_key] = result
        return result

    def _entries(self, sources: Sequence[Any]) -> dict[Any, Any]:
        """The results for `sources`: nested tables, one for each source; the last one holds the results."""
        table = self._found
        for source in sources[:-1]:
            table = table.branch(source).further
        return table.branch(sources[-1]).results


_NUMBERS = itertools.count()


class _Table:
    """For each source, the objects made from it. It is held weakly.

    A computation holds it itself: objects made from a computation often refer to it, and a dictionary outside of it
    would then never release it.
    """

    __slots__ = ("_name", "_others", "_owners")

    def __init__(self) -> None:
        self._others: weakref.WeakKeyDictionary[Any, _Branch] = weakref.WeakKeyDictionary()
        self._owners: weakref.WeakSet[HloComputation] = weakref.WeakSet()
        self._name = f"_made_{next(_NUMBERS)}"

    def branch(self, source: Any) -> _Branch:
        """That of `source`. TypeError for a source that cannot be hashed, or referred to weakly."""
        if not isinstance(source, HloComputation):
            return self._others.setdefault(source, _Branch())
        found: _Branch | None = vars(source).get(self._name)
        if found is None:
            found = vars(source).setdefault(self._name, _Branch())
            self._owners.add(source)
        return found

    def clear(self) -> None:
        """Forget all."""
        self._others.clear()
        for owner in snapshot(self._owners):
            vars(owner).pop(self._name, None)


class _Branch:
    """The entries of a DerivedCache for some sources: results for these alone, and tables for one more source."""

    __slots__ = ("_further", "results")

    def __init__(self) -> None:
        self.results: dict[Any, Any] = {}
        self._further: _Table | None = None

    @property
    def further(self) -> _Table:
        """The table for one more source."""
        if self._further is None:
            self._further = _Table()
        return self._further
