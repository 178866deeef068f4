"""jit: a Python function becomes a program for each combination of argument types, traced and compiled once.

Dispatch has four ways. Machine code of the backend takes the place of `PjitFunction.__call__`: it compares arguments
(Arrays, NumPy arrays, numbers, and containers of them) with those of earlier calls, and runs the program
(`hlo/runners.py`); `__call__` has the other ways, for all that it does not know. Where all arguments are Arrays, the
tuple of their (interned) types finds a function that runs the executable. Other calls (keyword arguments, static ones,
containers) are first taken apart by a plan, which is made once for each form of call. These ways are learned from the
general one, which traces and compiles where needed. While another function is traced, a jitted function becomes a
composite call of its computation, named "jit". While a timeline is recorded, it records each call; with several
devices, arguments that are placed take the general way.

Programs belong to the Python function: if it is jitted again with the same options, it finds them again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from time import perf_counter_ns
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloModule
from ..hlo.runners import NO_SITES, CallableSlots, NativeRunner, SitesBlock, ThreadSettings
from ..hlo.support.garbage import collecting_seldom
from ..hlo.support.loading import load
from ..hlo.support.shared_value import SharedValue
from ..hlo.support.snapshots import snapshot
from ..hlo.support.tracebacks import boundary, hide
from ..hlo.timeline.spans import RECORDERS
from . import bottom as bottom  # defines the layers of operations
from .arguments import (
    NO_STATICS,
    ArgumentSpec,
    LeafName,
    ShapeDtypeStruct,
    StaticArguments,
    abstract,
    abstract_example,
    argument_spec,
    check_function,
    compile_options,
    entered,
    leaf_describer,
    leaf_names,
    overflow,
    site_parameter,
    split_static,
    temporary,
    without_elements,
)
from .arrays.array import PLACES, Array, as_value, capturing_block, is_placed
from .arrays.float0 import hide_float0
from .arrays.overlay import storages
from .aval import ShapedArray
from .caches import BoundedCache, FastTable, belonging_to, caches_of, register_cache
from .call_forms import call_form
from .checks.nan_checks import checked, is_checking
from .core import places_are_exact, thread_state
from .errors import NonArrayArgumentError
from .execution import CompileOptions, check_is_alone, compile_module, runner
from .inlining import Inline
from .pickled_functions import is_global
from .profiling.cache_misses import explain_miss
from .profiling.logs import EXPLAIN_CACHE_MISSES, NO_TRACING, timed
from .profiling.monitoring import TRACE_EVENT
from .recording import MAX_CONSTANT_SIZE, stand_in_for
from .references.programs import module_with_references, running_on_references
from .references.refs import Ref, check_aliases
from .settings.context import IS_OF_THREADS, Override, Settings, current_context, thread
from .sharding.current_mesh import mesh_of_thread
from .sharding.devices import check_device, devices
from .sharding.devices import devices as known_devices
from .sharding.jit_shardings import JitShardings, placing, shardings_of
from .sharding.placed_operations import places_on_one_device
from .sharding.placement import placed
from .sharding.shardings import UNSPECIFIED, Sharding
from .sharding.spmd import places_of
from .sharding.spmd_jit import OverDevices, compiled_over_devices, moved
from .source import function_line
from .traced import Traced, trace_function, with_avals
from .tracer import Tracer, leaked
from .trees import tree
from .trees.nodes import on_change, raise_incomparable
from .trees.patterns import Pattern, pattern_of
from .waiting import block_until_ready
from .wrapping import SignatureOfFunction, annotated_as_wrapped, wraps

if TYPE_CHECKING:  # `lower` and `trace` load it
    from .stages import Lowered
    from .stages import Traced as TracedStage

P = ParamSpec("P")
Rest = ParamSpec("Rest")
R = TypeVar("R", covariant=True)
Run: TypeAlias = Callable[[Sequence[Array]], Any]

CALLS: list[Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = []
"""Functions that may take the place of a call outside of a trace: its result, or NotImplemented. They are asked where a
call has no fast way in its context: one that wants each call is for a context of its own."""

_WHERE = ThreadSettings(thread, "running", Settings, "context")
_avals = attrgetter("aval")
_places = attrgetter("_placed")
_HELD = (Array, Ref)
"""The types of leaves that a call takes as they are."""
_ALL_ARRAYS = {Array}
_LEAVES = frozenset({np.ndarray, float, int, bool, complex})
"""The types of arguments, other than Array, that are no containers."""


class Programs:
    """The traced and compiled programs of one function."""

    def __init__(self) -> None:
        self.generation: object = object()
        """Another one after `clear`: outer traces keep by it the programs that use their values."""
        self.fast: dict[Any, FastTable[Run]] = {}
        """By the options of jit, which affect the call; then by context and by the form of the call."""
        self.traced: BoundedCache[Traced] = BoundedCache()
        self.shown: BoundedCache[Traced] = BoundedCache()
        """Traced for `make_jaxpr`: they capture arrays of any size."""
        # Not a method of this object: that would be a cycle, and programs would wait for the garbage collector.
        self.runners: BoundedCache[Run] = BoundedCache(dropped=functools.partial(_forget_fast_ways, self.fast))
        register_cache(self)

    def clear(self) -> None:
        """Forget all."""
        self.generation = object()
        self.traced.clear()
        self.shown.clear()
        self.runners.clear()
        _forget_fast_ways(self.fast)


class _NotCalled(FastTable[Run]):
    """The table of a function that has not been called: it has nothing, in any context."""

    def __missing__(self, context: Any) -> dict[Any, Run]:
        return {}


_NOT_CALLED = _NotCalled()
_NONE_DONATED = ArgumentSpec(frozenset(), frozenset())


def _forget_fast_ways(tables: dict[Any, FastTable[Run]]) -> None:
    for table in tables.values():
        table.clear()


def _forget_all_fast_ways() -> None:
    for programs in caches_of(Programs):
        _forget_fast_ways(programs.fast)


on_change(_forget_all_fast_ways)  # machine code knows a named tuple by its class


class _Plan:
    """How a form of call (the number of positional arguments, and which keywords) is taken apart."""

    __slots__ = ("by_name", "has_statics", "places", "static_keywords", "static_places")

    def __init__(self, static: ArgumentSpec, count: int, names: Sequence[str]) -> None:
        positions = static.positional(count)
        self.places = [p for p in range(count) if p not in positions]
        keywords = sorted(n for n in names if n not in static.names)  # the order of leaves in a dictionary
        self.by_name: Callable[[dict[str, Any]], Sequence[Any]] = _items(keywords)
        """The arguments that are given by name."""
        self.static_places = sorted(positions)
        self.static_keywords = sorted(n for n in names if n in static.names)
        self.has_statics = bool(self.static_places or self.static_keywords)


def _items(keys: list[str]) -> Callable[[dict[str, Any]], Sequence[Any]]:
    """A function that takes the values of these keys from a dictionary."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda named: [named[key] for key in keys]


@annotated_as_wrapped
class PjitFunction(SharedValue, Generic[P, R]):
    """A compiled function: call it as the original. Made by `jit`.

    >>> isinstance(hloom.jit(lambda x: 2 * x), hloom.stages.Wrapped)
    True
    """

    __slots__ = ("__dict__", "__weakref__", "_sites")  # machine code reads `_sites`, the first slot
    __wrapped__: Callable[P, R]
    __qualname__: str
    _sites: SitesBlock
    __signature__: SignatureOfFunction = SignatureOfFunction()
    _is_library = False
    """True for functions of this library, which are compiled outside of jit, too."""
    _made_by = "jit"

    def __init__(
        self,
        fun: Callable[P, R],
        static: ArgumentSpec,
        donated: ArgumentSpec,
        inline: bool,
        shardings: JitShardings | None = None,
        options: CompileOptions = frozenset(),
    ) -> None:
        functools.update_wrapper(self, fun)
        self._fun = fun
        self._name = getattr(fun, "__name__", None) or type(fun).__name__
        self._static = static
        self._may_be_static = bool(static)
        self._donated = donated
        self._inline = inline
        self._shardings = shardings
        self._options = options
        """Settings of the context, and their values, with which it is compiled."""
        self._state = thread_state()
        self._settings = thread
        self._made: Programs | None = None
        self._fast: FastTable[Run] = _NOT_CALLED
        self._sites = NO_SITES
        self._pattern: Pattern | None = None
        self._unmatched = 0
        """How many calls with containers had a program, but no site in machine code (`CallSites`)."""

    def changed(self, options: Mapping[str, object], *, donates: bool = True) -> PjitFunction[P, R]:
        """The same function, compiled with other settings of the context. `donates`: it may delete arguments."""
        more = frozenset({**dict(self._options), **options}.items())
        donated = self._donated if donates else _NONE_DONATED
        return PjitFunction(self._fun, self._static, donated, self._inline, self._shardings, more)

    def with_programs_of(self, owner: Any, kind: Hashable) -> PjitFunction[P, R]:
        """The same function, with programs that belong to `owner`: functions that are made from it again have them,
        too. `kind`: what they depend on besides `owner`."""
        self._made = belonging_to(owner, kind, Programs)
        return self

    @property
    def _programs(self) -> Programs:
        """Made when the function is first called: most functions of a library are not."""
        made = self._made
        if made is None:
            made = self._made = belonging_to(self._fun, "programs", Programs)
        return made

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            call = self._fast.call
            if call is not None:
                result = call(args, kwargs)
                if result is not NotImplemented:
                    if (sites := self._fast.sites) is not None:
                        self._sites = sites.block  # the next call is machine code (`CallableSlots`)
                    return result
            settings = self._settings.running
            if settings is None:  # something is traced
                return self._call(args, kwargs)
            table = self._fast[settings.context]
            run: Any = None
            count = len(args)
            if RECORDERS:
                return self._call_in_timeline(args, kwargs, table)
            if kwargs:
                pass
            elif count == 2:
                first, second = args
                if type(first) is not Array or type(second) is not Array:
                    pass
                elif not PLACES or first._placed is second._placed is None:
                    run = table.get((first.aval, second.aval))
            elif count == 1:
                (first,) = args
                if type(first) is not Array:
                    pass
                elif not PLACES or first._placed is None:
                    run = table.get((first.aval,))
                else:
                    run = table.get((first.aval, first._placed))
            else:
                for argument in args:
                    if type(argument) is not Array:
                        break
                else:
                    if not PLACES or not any(map(_places, args)):
                        run = table.get(tuple(map(_avals, args)))
            return self._call_by_plan(args, kwargs, table) if run is None else run(args)
        except BaseException as error:
            hide(error)
            raise

    def _call_in_timeline(self, args: tuple[Any, ...], kwargs: dict[str, Any], table: dict[Any, Run]) -> Any:
        """A call while a timeline is recorded. Calls inside of a function that is traced are a part of that."""
        recorder = next(iter(RECORDERS), None)
        if recorder is None or recorder.detail < 2:
            return self._call_by_plan(args, kwargs, table)
        started = perf_counter_ns()
        try:
            return self._call_by_plan(args, kwargs, table)
        finally:
            recorder.calls.append((self._name, started, perf_counter_ns(), recorder.own.number))

    def _call_by_plan(self, args: tuple[Any, ...], kwargs: dict[str, Any], table: dict[Any, Run]) -> Any:
        """The fast way for calls that are not all Arrays by position; the general way for the first of its form."""
        if self._fast is _NOT_CALLED:
            self._plans: dict[Any, _Plan] = {}
            options = self._static, self._donated, self._shardings, self._options
            self._fast = self._programs.fast.setdefault(options, FastTable())
            table = self._fast[self._settings.settings.context]
        form: Any = None
        dynamic: Any = args
        statics: Any = None
        if kwargs or self._may_be_static:
            form = (len(args), *kwargs)
            plan = self._plans.get(form)
            if plan is None:
                plan = self._plans[form] = _Plan(self._static, len(args), tuple(kwargs))
            if plan.has_statics:
                dynamic = [args[p] for p in plan.places]
            if kwargs:
                dynamic = [*dynamic, *plan.by_name(kwargs)]
            elif not plan.has_statics:
                form = None  # as if no argument could be static: the types alone find the program
            if plan.has_statics:
                values = [args[p] for p in plan.static_places]
                if kwargs:
                    values += [kwargs[n] for n in plan.static_keywords]
                statics = (*map(type, values), *values)
        treedef: Any = None  # or the places of arguments that are None, which have no leaves: bits of a number
        arrays: list[Any] = []
        avals: Any = []
        try:
            for argument in dynamic:
                kind = type(argument)
                array: Any = argument if kind is Array else None
                if array is None:
                    if kind in _LEAVES:
                        array = temporary(argument)
                    elif argument is None:
                        treedef = (treedef or 0) | 1 << len(arrays) + (treedef or 0).bit_count()
                        continue
                    else:
                        arrays, avals, treedef = self._flattened(dynamic)
                        break
                arrays.append(array)
                avals.append(array.aval)
            key: Any = tuple(avals)
        except (AttributeError, OverflowError):  # no program takes it: a float0 array, no array at all, too large
            key = None
        else:
            if PLACES and any(map(_places, arrays)):
                key = (*avals, *places_of(arrays))
            if form is not None or treedef is not None:
                key = (form, statics, treedef, key)
            try:
                run = table.get(key)
            except TypeError:  # a static argument that cannot be hashed: the general way says which
                key = None
            except Exception as error:
                hash(key)  # raises the user's own error, if hashing was the cause
                raise_incomparable(error)
        if key is None:  # here, since raising in a handler would show the handled error, too
            return self._call(args, kwargs)
        if run is None:
            return self._call(args, kwargs, table, key)
        if treedef is not None and statics is None:
            # A dictionary may have its keys in another order than in the call that made the program. Such calls get a
            # site, too, but only the first, second, fourth ... is looked at: a site may be impossible.
            self._unmatched += 1
            if self._unmatched & (self._unmatched - 1) == 0 and key[-1] == tuple(avals):
                self._learn(run, args, kwargs, NO_STATICS, avals, table)
        return run(arrays)

    def _flattened(self, dynamic: Sequence[Any]) -> tuple[list[Any], Sequence[Any], Any]:
        """The leaves of arguments as arrays, their types, and a key for their structure in the key of a call.

        AttributeError if a leaf is nothing that a program takes."""
        pattern = self._pattern
        if pattern is not None:
            leaves = pattern.leaves(dynamic)
            if leaves is not None:
                if {*map(type, leaves)} == _ALL_ARRAYS:
                    return leaves, tuple(map(_avals, leaves)), pattern
                arrays: list[Any] = [x if type(x) in _HELD else temporary(x) for x in leaves]
                try:
                    return arrays, [x.aval for x in arrays], pattern
                except AttributeError:  # not a leaf, or none that a program takes
                    pass
        leaves, treedef = tree.flatten(dynamic)
        arrays = [x if type(x) in _HELD else temporary(x) for x in leaves]
        avals = [x.aval for x in arrays]
        try:
            self._pattern = pattern_of(treedef, dynamic)
        except (TypeError, ValueError):  # the look-up of the program meets it again
            return arrays, avals, treedef
        return arrays, avals, self._pattern or treedef

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> PjitFunction[P, R]: ...
    @overload
    def __get__(
        self: PjitFunction[Concatenate[Any, Rest], R], instance: object, owner: type | None = None
    ) -> Callable[Rest, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    # ---- copies: as with Python's functions, a copy is the function itself, and pickles name it

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By its own name if it has one; else by its function, if the pickler can pickle that, and options."""
        if is_global(self):
            return self.__qualname__
        return PjitFunction, (self._fun, self._static, self._donated, self._inline, self._shardings, self._options)

    def __repr__(self) -> str:
        return f"<PjitFunction of {self._fun!r}>"

    # ---- the general way

    def _call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], table: dict[Any, Run] | None = None, fast_key: Any = None
    ) -> Any:
        """Any call. A program that it runs at once is entered in `table` as `fast_key`."""
        context = current_context()
        if context.disable_jit:
            return self._fun(*args, **kwargs)
        for call in CALLS if self._state.direct else ():
            result = call(self, args, kwargs)
            if result is not NotImplemented:
                return result
        if self._options and not all(getattr(context, name) == value for name, value in self._options):
            with Override(**dict(self._options)):
                return self._call(args, kwargs, table, fast_key)
        dynamic, keywords, statics = split_static(self._fun, self._static, args, kwargs)
        dynamic, keywords = hide_float0(entered(dynamic, keywords))
        leaves, treedef = tree.flatten((dynamic, keywords))
        direct = self._state.direct
        describe = functools.partial(self._describe, args, kwargs)
        try:
            values: list[Any] = [x if type(x) in _HELD else temporary(x) if direct else None for x in leaves]
            for k, x in enumerate(leaves):
                if values[k] is None:  # a tracer, a NumPy array that the trace may keep, or something that is no array
                    aval = abstract(x, functools.partial(describe, k))
                    values[k] = stand_in_for(aval) if isinstance(x, ShapeDtypeStruct) else as_value(x)
                    if values[k] is None:
                        raise without_elements(x, *describe(k))
        except OverflowError:
            raise overflow(leaves, describe) from None
        avals = tuple(map(_avals, values))
        if self._shardings is not None:
            avals = self._shardings.divided(dynamic, keywords, avals)
        key = (treedef, avals, statics, context)
        if Ref in map(type, values):
            check_aliases(values, self._leaf_names(dynamic, keywords, statics), (), "jit")
            if self._state.trace.differentiates:
                return self._fun(*args, **kwargs)
        if not direct:
            traced = self._trace(key, dynamic, keywords)
            if traced.rules_take_references and self._state.trace.differentiates:
                return self._fun(*args, **kwargs)
            if traced.has_references:
                check_aliases(values, self._leaf_names(dynamic, keywords, statics), traced.captured, "jit")
            if self._shardings is None:
                return traced.bind(values, self._inline)
            ins, outs = self._shardings.check(dynamic, keywords, avals, traced)
            values = [v if s is None else placed(v, s, "jit in_shardings") for v, s in zip(values, ins, strict=True)]
            return _placed_leaves(traced.bind(values, self._inline), outs)
        places = places_of(values) if any(map(is_placed, values)) else ()
        run = self._programs.runners.get((key, self._donated, self._shardings, places))
        if run is None:
            run = self._compiled(key, dynamic, keywords, places)
        if context.no_execution:  # no call of this context has a fast way
            load(".checks.no_execution", __package__).refuse(self._name)
        if context.debug_key_reuse:
            run = load(".checks.key_reuse", __package__).watched(run, self._trace(key, dynamic, keywords))
        if table is not None:
            table[fast_key] = run
            if not places and avals == tuple(map(_avals, values)):
                self._learn(run, args, kwargs, statics, avals, table)
        return run(values)

    def _learn(
        self, run: Run, args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticArguments,
        avals: Sequence[ShapedArray], table: dict[Any, Run],
    ) -> None:  # fmt: skip
        """Add a site in machine code, if `run` is machine code: calls with such arguments, whose leaves have the types
        `avals`, in the context of `table`, then run the program without a look-up."""
        runner, fast = getattr(run, "__self__", None), self._fast
        context = next((c for c, t in snapshot(fast.items()) if t is table), None)
        if isinstance(runner, NativeRunner) and context is not None and IS_OF_THREADS:
            form = call_form(args, kwargs, statics)
            if form is not None and len(form.places) == len(avals):
                parameters = [*map(site_parameter, form.places, avals)]
                sites = fast.sites = runner.add_site(
                    fast.sites, _WHERE, context, form.containers, parameters, form.constants
                )
                fast.call = sites.call
                runner.take_calls(_FUNCTIONS)
                runner.take_waits(block_until_ready)

    @collecting_seldom()  # once for both: the collector would look through all that tracing has made
    def _compiled(
        self,
        key: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        places: tuple[Sharding | None, ...] = (),
        traced: Traced | None = None,
    ) -> Run:
        """`places`: of the arguments' leaves; () if none is anywhere."""
        if traced is None:
            traced = self._trace(key, args, kwargs)
            may_wait = traced.is_closed and not traced.has_references and not traced.donated
            if self._is_library and may_wait and not places and mesh_of_thread() is None:
                return self._run_or_put_off(traced, key, args, kwargs)
        runner_key = (key, self._donated, self._shardings, places)
        if traced.has_references:
            run = running_on_references(traced, options=self._options)
            self._programs.runners[runner_key] = run
            return run
        captured = [v for v in traced.captured if isinstance(v, Array)]
        if len(captured) < len(traced.captured):
            raise leaked(next(v for v in traced.captured if isinstance(v, Tracer)))
        none: list[Sharding | None] = [None] * len(traced.in_avals)
        outs: list[Sharding | None] = [None] * len(traced.out_avals)
        asked = none, outs
        if self._shardings is not None:
            asked = self._shardings.check(args, kwargs, key[1], traced)
        what = self._name if self._is_library else f"jit of {function_line(self._fun)}"
        if len(known_devices()) > 1:
            labels = functools.partial(self._leaf_names, args, kwargs, key[2])
            found = compiled_over_devices(
                traced, captured, places or none, asked, self._name, labels, what, self._is_library
            )
            if found is not None:
                check_is_alone(self._options)
                self._programs.runners[runner_key] = found.run
                return found.run
        module = traced.module()
        executable = compile_module(module, donated=traced.donated, options=self._options)
        run = runner(executable, captured, traced.out_avals, traced.out_tree, traced.donated)
        if is_checking(key[3]):
            run = checked(run, module, captured, bool(traced.donated), what, is_library=self._is_library)
        outs = asked[1]
        own = moved(places or none, asked[0], traced.in_avals)
        outs = places_on_one_device(module.entry, [*own, *places_of(captured)], outs, asked[0])
        if any(outs):
            run = placing(run, outs)
        self._programs.runners[runner_key] = run
        return run

    def _run_or_put_off(self, traced: Traced, key: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Run:
        """A function of the library: its program, which is compiled when it first runs. While operations are deferred,
        the call is deferred too."""
        state, compiled = self._state, self._compiled
        types, structure = traced.out_avals, traced.out_tree
        is_plain = len(types) == 1 and tree.treedef_is_strict_leaf(structure) and types[0] is types[0].storage
        is_plain = is_plain and not types[0].weak_type
        captured = storages(tuple(traced.captured))
        program: Run | None = compiled(key, args, kwargs, (), traced) if state.recorder is None else None

        def run(arrays: Sequence[Array]) -> Any:
            nonlocal program
            if state.recorder is not None:
                given = (*storages(tuple(arrays)), *captured)
                results = _deferral().recorded_call(traced.computation, given)
                if results is not None:
                    return results[0] if is_plain else tree.unflatten(structure, with_avals(results, types))
            if program is None:
                try:
                    program = compiled(key, (), {}, (), traced)
                except (UnsupportedError, NotImplementedError):  # it was deferred before, so that this went unnoticed
                    return traced.bind(arrays, inline=True)
            return program(arrays)

        self._programs.runners[key, self._donated, self._shardings, ()] = run
        return run

    def _trace(self, key: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Traced:
        """The function traced for the types in `key`. One that uses values of an outer trace is kept within that."""
        treedef, avals, statics, _ = key
        trace = self._state.trace
        is_shown = capturing_block() != 0
        known = self._programs.shown if is_shown else self._programs.traced
        kept = (*key, "exact places") if places_are_exact() else key
        traced = known.get(kept)
        if traced is None and trace.programs is not None:
            traced, contents = trace.programs.get((self._programs.generation, kept), (None, ()))
            if traced is not None and [*map(id, contents)] != [*map(id, _closure_contents(self._fun))]:
                traced = None
        if traced is None:
            if NO_TRACING.value and not self._is_library:
                raise RuntimeError(
                    f"re-tracing function {self._name} for `jit`, but 'no_tracing' is set: its arguments are of types "
                    "for which it has not been traced"
                )
            labels = leaf_names(self._fun, args, kwargs, statics)
            if EXPLAIN_CACHE_MISSES.value and not self._is_library:
                others = [k[:4] for k in self._programs.traced.keys()]  # noqa: SIM118  # it has no __iter__
                explain_miss(self._fun, key, others, labels)
            with timed(f"tracing {self._name} for jit", TRACE_EVENT), collecting_seldom():
                traced = trace_function(self._fun, treedef, avals, statics, labels, float0_results=True)
            if key[3].debug_key_reuse:
                load(".checks.key_reuse", __package__).check(traced)
            if traced.is_closed:
                known[kept] = traced
                if is_shown and all(v.aval.size > MAX_CONSTANT_SIZE for v in traced.captured if isinstance(v, Array)):
                    self._programs.traced[kept] = traced
            elif trace.parent is not None and not traced.has_references:
                trace.programs = trace.programs or {}
                trace.programs[self._programs.generation, kept] = traced, _closure_contents(self._fun)
        return replace(traced, donated=self._donated_leaves(args, kwargs, statics)) if self._donated else traced

    def _donated_leaves(self, args: Sequence[Any], kwargs: dict[str, Any], statics: StaticArguments) -> tuple[int, ...]:
        """Which leaves are donated."""
        taken = {position for position, _, _ in statics.positional}
        positions = self._donated.positional(len(args) + len(taken))
        places = [p for p in range(len(args) + len(taken)) if p not in taken]
        flags = [p in positions for p, a in zip(places, args, strict=True) for _ in tree.leaves(a)]
        flags += [key in self._donated.names for key in sorted(kwargs) for _ in tree.leaves(kwargs[key])]
        return tuple([k for k, flag in enumerate(flags) if flag])

    def _leaf_names(self, args: Sequence[Any], kwargs: dict[str, Any], statics: StaticArguments) -> list[str]:
        return leaf_names(self._fun, args, kwargs, statics)

    def _describe(self, args: tuple[Any, ...], kwargs: dict[str, Any], position: int) -> LeafName:
        """For messages: which argument a leaf is."""
        dynamic, keywords, statics = split_static(self._fun, self._static, args, kwargs)
        return leaf_describer(self._fun, dynamic, keywords, statics)(position)

    # ---- ahead of time

    @boundary
    def trace(self, /, *args: Any, **kwargs: Any) -> TracedStage:
        """The function traced for arguments like these (arrays, or ShapeDtypeStruct): its jaxpr, its types."""
        dynamic, keywords, statics = split_static(self._fun, self._static, args, kwargs)
        dynamic, keywords = hide_float0(entered(dynamic, keywords))
        leaves, treedef = tree.flatten((dynamic, keywords))
        describe = [functools.partial(self._describe, args, kwargs, k) for k in range(len(leaves))]
        avals = tuple(
            [x.aval if isinstance(x, Ref) else abstract_example(x, d) for x, d in zip(leaves, describe, strict=True)]
        )
        if self._shardings is not None:
            avals = self._shardings.divided(dynamic, keywords, avals)
        key = (treedef, avals, statics, current_context())
        places = [_place_of_example(x) for x in leaves]
        traced = self._trace(key, dynamic, keywords)
        over_devices = None
        if len(known_devices()) > 1:
            over_devices = functools.partial(self._over_devices, traced, places, dynamic, keywords, statics)
        stages = load(".stages", __package__)
        signature = stages.Signature(
            *(self._fun, self._static, treedef, avals, statics),
            *(traced.out_tree, traced.out_avals, traced.donated),
            traced if traced.has_references else None,
            self._options,
            over_devices,
            functools.partial(self._on_one_device, traced, places, dynamic, keywords),
            functools.partial(self._stated, traced, places, dynamic, keywords),
        )

        def lower() -> Lowered:
            if not traced.is_closed:
                raise NonArrayArgumentError(
                    f"{function_line(self._fun)} uses traced values from outside: it cannot be lowered on its own"
                )
            module = module_with_references(traced)[0] if traced.has_references else traced.module()
            lowered: Lowered = stages.Lowered(module, traced.captured, signature)
            return lowered

        found: TracedStage = stages.Traced(traced.name, traced.computation, traced.captured, signature, lower)
        return found

    def _stated(
        self, traced: Traced, places: Sequence[Sharding | None], args: Any, kwargs: Any
    ) -> tuple[Sequence[Sharding | None], Sequence[Sharding | None]]:
        """The places of the arguments' and of the results' leaves that examples and jit's arguments say."""
        ins: Sequence[Sharding | None] = [None] * len(traced.in_avals)
        outs: Sequence[Sharding | None] = [None] * len(traced.out_avals)
        if self._shardings is not None:
            ins, outs = self._shardings.check(args, kwargs, traced.in_avals, traced)
        return [p or i for p, i in zip(places, ins, strict=True)], outs

    def _on_one_device(
        self, traced: Traced, places: Sequence[Sharding | None], args: Any, kwargs: Any
    ) -> tuple[Sequence[Sharding | None], Sequence[Sharding | None]]:
        """The places of the arguments' and of the results' leaves, for arguments in `places`."""
        asked: Any = [None] * len(traced.in_avals), [None] * len(traced.out_avals)
        if self._shardings is not None:
            asked = self._shardings.check(args, kwargs, traced.in_avals, traced)
        count, entry = len(traced.out_avals), traced.computation
        outs = [*asked[1], *[None] * (len(entry.root.shape.elements) - count)]  # what is written to references
        own = moved(places, asked[0], traced.in_avals)
        results = places_on_one_device(entry, [*own, *places_of(traced.captured)], outs, asked[0])
        return [p or a for p, a in zip(own, asked[0], strict=True)], results[:count]

    def _over_devices(
        self, traced: Traced, places: Sequence[Sharding | None], args: Any, kwargs: Any, statics: StaticArguments
    ) -> OverDevices | None:
        """The program over several devices for arguments in `places`; None if it is for one."""
        captured = [v for v in traced.captured if isinstance(v, Array)]
        if traced.has_references or len(captured) < len(traced.captured):
            return None
        asked: Any = [None] * len(traced.in_avals), [None] * len(traced.out_avals)
        if self._shardings is not None:
            asked = self._shardings.check(args, kwargs, traced.in_avals, traced)
        labels = functools.partial(self._leaf_names, args, kwargs, statics)
        what = f"jit of {function_line(self._fun)}"
        return compiled_over_devices(traced, captured, places, asked, self._name, labels, what)

    @boundary
    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """The traced program for arguments like these (arrays, or ShapeDtypeStruct), not yet compiled."""
        return self.trace(*args, **kwargs).lower()

    @boundary
    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """The types of the results, as ShapeDtypeStruct; nothing is computed."""
        found = eval_shape(self._fun, *args, **kwargs)
        return found if self._shardings is None else self._shardings.of_types(found)

    def clear_cache(self) -> None:
        """Forget all traced and compiled programs of this function."""
        self._programs.clear()

    def _cache_size(self) -> int:
        return len(self._programs.runners)


@functools.cache
def _deferral() -> Any:
    """There is a recorder, so that it is loaded already."""
    return load(".deferred.deferral", __package__)


def _raised(self: Any, /, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise an error of a call in machine code, the first argument, as `__call__` does."""
    error, args = args[0], args[1:]
    try:
        raise error
    except BaseException as error:
        hide(error)
        raise


_raised.__code__ = _raised.__code__.replace(co_name="__call__", co_qualname=PjitFunction.__call__.__qualname__)
_FUNCTIONS = CallableSlots(PjitFunction, "_sites", _raised)


def _closure_contents(fun: Any) -> list[Any]:
    """The objects in the closure of a function, and in those of the functions there. A variable that gets another value
    between two calls has another object here."""
    found: list[Any] = [fun]
    met: set[int] = set()
    for value in found:  # which grows
        while isinstance(value, (MethodType, PjitFunction)):
            value = value.__func__ if isinstance(value, MethodType) else value._fun
        if isinstance(value, FunctionType) and id(value) not in met:
            met.add(id(value))
            for cell in value.__closure__ or ():
                try:
                    found.append(cell.cell_contents)
                except ValueError:  # a variable without a value
                    found.append(cell)
    return found


def _place_of_example(leaf: Any) -> Sharding | None:
    """The place of an argument, or the place that an example of it names."""
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf.sharding
    return leaf.sharding if is_placed(leaf) else None


def _placed_leaves(result: Any, places: Sequence[Sharding | None]) -> Any:
    """The result of a nested call, with its leaves in `places`."""
    leaves, structure = tree.flatten(result)
    found = [v if s is None else placed(v, s, "jit out_shardings") for v, s in zip(leaves, places, strict=True)]
    return tree.unflatten(structure, found)


# ---- public

_NO_FUNCTION: Any = object()
"""`jit(static_argnums=0)` returns a decorator; `jit(None)` is a mistake."""


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    static_argnums: Any = ...,
    static_argnames: Any = ...,
    donate_argnums: Any = ...,
    donate_argnames: Any = ...,
    keep_unused: bool = ...,
    inline: bool | Inline = ...,
    device: Any = ...,
    backend: Any = ...,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> PjitFunction[P, R]: ...
@overload
def jit(
    *,
    static_argnums: Any = ...,
    static_argnames: Any = ...,
    donate_argnums: Any = ...,
    donate_argnames: Any = ...,
    keep_unused: bool = ...,
    inline: bool | Inline = ...,
    device: Any = ...,
    backend: Any = ...,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> Callable[[Callable[P, R]], PjitFunction[P, R]]: ...
def jit(
    fun: Any = _NO_FUNCTION,
    /,
    *,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: Any = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile a function: traced once for each combination of argument types (shape, dtype, weak type, structure).

    fun: takes and returns arrays, numbers and containers of them (pytrees); without side effects.
    static_argnums, static_argnames: arguments that are Python values, hashable; there is a program for each value.
    donate_argnums, donate_argnames: arguments that the call may overwrite with results; they are deleted by the call.
    inline: within another jit, leave no trace of the call: True, or `Inline.JAX_EARLY`.
    in_shardings, out_shardings: trees of shardings that are prefixes of the arguments and of the result. They are
      checked. Arguments that are on no device yet are put there; others must be there. The places of the arguments, and
      the compiler, decide the rest.
    keep_unused, device, backend: for JAX's sake; all arguments are kept, and programs run where their arguments are.
    compiler_options: {"autotune": True} times variants of each program when it is compiled, such as fewer threads or
      other vectors, and keeps the fastest, in the store too. {"schedule": TEXT} gives kernels other schedules, which
      `hloom.schedule` does too. {"memory_budget": BYTES} computes values again where the program would need more: see
      the setting `hloom_memory_budget`. {"xla_allow_excess_precision": True} lets a kernel keep
      bfloat16 and float16 in float32 until they are stored; without it each operation is rounded to its type, as JAX's
      are on CPUs. Other options of XLA ("xla_...") mean nothing here.

    Use it as a decorator, with or without arguments, on functions and methods.

    >>> @hloom.jit
    ... def normalized(x):
    ...     return x / jnp.sqrt(jnp.sum(x * x))
    >>> normalized(jnp.array([3.0, 4.0]))
    Array([0.6, 0.8], dtype=float32)
    >>> power = hloom.jit(lambda x, n: x**n, static_argnums=1)
    >>> power(jnp.array([1, 2, 3]), 2)
    Array([1, 4, 9], dtype=int32)
    """
    if fun is _NO_FUNCTION:
        options = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(jit, **options)
    check_function(fun, "jit")
    static = argument_spec(fun, "static", static_argnums, static_argnames)
    donated = argument_spec(fun, "donate", donate_argnums, donate_argnames)
    both = [*sorted(static.positions & donated.positions), *sorted(static.names & donated.names)]
    if both:
        raise ValueError(
            f"jit: static_argnames and donate_argnames cannot intersect, nor their argnums: arguments {both} cannot be "
            "both static and donated"
        )
    if device is not None or backend is not None:
        _check_places(device, backend, in_shardings=in_shardings, out_shardings=out_shardings)
    shardings = shardings_of(in_shardings, out_shardings)
    return PjitFunction(fun, static, donated, bool(inline), shardings, compile_options(compiler_options, "jit"))


def _check_places(device: Any, backend: Any, **shardings: Any) -> None:
    for name, given in shardings.items():
        if given is not UNSPECIFIED:
            raise ValueError(f"If backend or device is specified on jit, then {name} should not be specified.")
    if device is not None and backend is not None:
        raise ValueError(f"can't specify both a device and a backend for jit, got {device=} and {backend=}")
    if device is not None:
        check_device(device, "jit's device")
    if backend is not None:
        devices(backend)


def make_hlo(fun: Callable[P, Any], static_argnums: Any = ()) -> Callable[P, HloModule]:
    """A function that takes fun's arguments and returns the HLO module it is traced to, before any pass.

    >>> print(hloom.make_hlo(lambda x: 2 * x)(jnp.ones(3)).as_text())
    HloModule jit_lambda, entry_computation_layout={(f32[3]{0})->(f32[3]{0})}
    <BLANKLINE>
    ENTRY %_lambda_ (x: f32[3]) -> (f32[3]) {
      %x = f32[3]{0} parameter(0)
      %constant = f32[] constant(2)
      %broadcast = f32[3]{0} broadcast(%constant), dimensions={}
      %multiply = f32[3]{0} multiply(%broadcast, %x)
      ROOT %tuple = (f32[3]{0}) tuple(%multiply)
    }
    """
    jitted = fun if isinstance(fun, PjitFunction) else jit(fun, static_argnums=static_argnums)

    @wraps(fun)
    @boundary
    def traced(*args: Any, **kwargs: Any) -> HloModule:
        return jitted.lower(*args, **kwargs).module

    return traced


def eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The types of fun's results as ShapeDtypeStruct, for arguments or ShapeDtypeStruct; nothing is computed.

    >>> hloom.eval_shape(jnp.matmul, jnp.ones((1000, 500)), hloom.ShapeDtypeStruct((500, 2), jnp.float32))
    ShapeDtypeStruct(shape=(1000, 2), dtype=float32)
    """
    check_function(fun, "eval_shape")
    args, kwargs = hide_float0((args, kwargs))
    leaves, treedef = tree.flatten((args, kwargs))
    describe = leaf_describer(fun, args, kwargs)
    avals = [abstract_example(x, functools.partial(describe, k)) for k, x in enumerate(leaves)]
    traced = trace_function(fun, treedef, avals, types_only=True, float0_results=True)
    structs = [ShapeDtypeStruct.of(a) for a in traced.out_avals]
    return tree.unflatten(traced.out_tree, structs)


def device_get(x: Any) -> Any:
    """x (a pytree) with all arrays as NumPy arrays; keys and traced values stay as they are.

    >>> hloom.device_get({"w": jnp.ones(2), "n": 3})
    {'w': array([1., 1.], dtype=float32), 'n': 3}
    """
    def one(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, Array) and not leaf.aval.is_extended else leaf

    return tree.map(one, x)
