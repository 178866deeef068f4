"""custom_jvp and custom_vjp: functions with a derivative that the user writes.

Each is a primitive. Its meaning is the user's function, which runs directly on concrete values, and is traced where a
program is recorded. The call carries its rules, which are pure functions of flat lists of values; so they can be
applied many times, in any trace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

import numpy as np

from ..hlo.ir import HloComputation, HloModule
from ..hlo.opcode import Opcode
from ..hlo.support.records import dataclass
from ..hlo.support.tracebacks import boundaries
from ..tracer import dtypes
from ..tracer.arguments import StaticArguments, leaf_names
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import overlaid_all, storages
from ..tracer.aval import ShapedArray
from ..tracer.core import EVAL, Call, Primitive, Tracer, Value, bind_call, call_of, current_trace, run_meaning
from ..tracer.errors import UnexpectedTracerError, UnsupportedError
from ..tracer.execution import look_at_modules
from ..tracer.ops import convert, full, is_inexact, zeros
from ..tracer.pickled_functions import is_global
from ..tracer.recording import is_recording, trace_to_computation
from ..tracer.references.refs import (
    Ref,
    check_aliases,
    hide_references,
    is_own_reference,
    refuse_result,
    show_references,
    values_of_references,
)
from ..tracer.settings.context import Override, current_context
from ..tracer.source import function_line
from ..tracer.traced import with_avals
from ..tracer.trees import tree
from ..tracer.trees.nodes import short_repr
from ..tracer.wrapping import SignatureOfFunction, annotated_as_wrapped, signature
from .jvp import JVPTracer, moving_mask
from .linearize import Linearized, LinearTrace
from .stopping import stop_gradient
from .symbolic_zeros import CustomVJPPrimal, SymbolicZero, tangent_for_user
from .tangents import Linear, Operand, Tangent, Zero

P = ParamSpec("P")
Rest = ParamSpec("Rest")
R = TypeVar("R", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

# --- the parameters of a call


def _own(call: Call, values: Sequence[Any]) -> Sequence[Any]:
    """The `values` (one for each operand) of the function's arguments. The values after them were captured."""
    return values[: len(values) - call.captured]


def _check_captured(call: Call, tangents: Sequence[Tangent]) -> None:
    if any(not isinstance(t, Zero) for t in tangents[len(tangents) - call.captured :]):
        raise UnexpectedTracerError(
            f"{call.label} closes over a value that is differentiated: its rule knows only of "
            "its arguments. Make that value an argument."
        )


def bind_custom(
    primitive: Primitive, fun: Callable[..., Any], meaning: Any, params: Any, values: Sequence[Value]
) -> list[Value]:
    """Call the primitive."""
    name = getattr(fun, "__name__", type(fun).__name__)
    return bind_call(Call(primitive, meaning, params, name, (("name", name),)), values)


class OtherRules:
    """Base of functions with a rule: `defjvp`, `defvjp`, `def_vmap` and so on, if this class lacks them, are taken from
    the function inside, so that the rules of `custom_vjp(custom_vmap(f))` can be set in any order."""

    fun: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("def"):
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


# --- arguments

_NUMBERS = (bool, int, float, complex)


class Arguments:
    """The arguments of one call: those that are differentiated as a flat list of values, the others as they are.

    Only the call itself uses `values`: a rule may be kept longer and uses the other fields. Operands and results of a
    call are the storage of keys; the user's functions take and return keys.

    A reference to a mutable array is no leaf, unless an enclosing function has made it, so that its array may be
    differentiated or an element of a batch (`by_value`): that is a leaf, and each pass has its own reference to it.
    """

    def __init__(
        self, fun: Callable[..., Any], static: frozenset[int], args: tuple[Any, ...], by_value: bool = False
    ) -> None:
        self._static = {i: args[i] for i in sorted(static)}
        self._count = len(args)
        moving = tuple(a for i, a in enumerate(args) if i not in static)
        hidden = hide_references(moving, is_own_reference if by_value else None)
        self.has_references: bool = hidden is not moving
        """Whether references to mutable arrays are among the arguments that are no leaves."""
        if any(isinstance(leaf, Ref) for leaf in tree.leaves(moving)):
            names = leaf_names(fun, moving, {}, StaticArguments(tuple([(i, object, None) for i in sorted(static)]), ()))
            check_aliases(tree.leaves(moving), names, (), "a function with a rule of its own")
        leaves, self.tree = tree.flatten(hidden)
        self._leaves = leaves
        self._kinds = {k: leaf.aval.kind for k, leaf in enumerate(leaves) if isinstance(leaf, Ref)}
        """Of the references that are leaves."""
        self.values: list[Value] = [as_value(v) for v in values_of_references(leaves)]
        self.avals: list[ShapedArray] = [v.aval for v in self.values]
        self.static_args: tuple[Any, ...] = tuple(self._static.values())

    def numbers_and_arrays(self) -> list[Any]:
        """The leaves: Python's numbers as they are, all others as arrays."""
        return [x if type(x) in _NUMBERS else v for x, v in zip(self._leaves, self.values, strict=True)]

    def references(self) -> Any:
        """The arguments that are references, among others."""
        return show_references(tree.unflatten(self.tree, [0] * len(self.values)))

    def rebuilt(self, values: Sequence[Value]) -> tuple[Any, ...]:
        """All arguments in order, with `values` in place of the leaves."""
        return self.with_leaves(with_avals(values, self.avals))

    def with_leaves(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """All arguments in order, with `leaves` in place of the leaves."""
        shown = tree.unflatten(self.tree, leaves)
        moving = iter(show_references(shown) if self.has_references else shown)
        return tuple(self._static[i] if i in self._static else next(moving) for i in range(self._count))

    def called(self, what: str, fun: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        """`fun`, a pass of the function, on all arguments in order, with `leaves` in place of the leaves."""
        if not self._kinds:
            return fun(*self.with_leaves(leaves))
        given = list(leaves)
        for k, kind in self._kinds.items():
            leaf = given[k]
            given[k] = Ref(leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf, f"{k} of {_name(fun)}", kind)
        before = {k: given[k].current() for k in self._kinds}
        result = fun(*self.with_leaves(given))
        for k, value in before.items():
            if given[k].current() is not value:
                raise UnsupportedError(
                    f"{what} function {function_line(fun)} writes to {given[k].aval}, a reference to a mutable array "
                    "that the function around has made: its rule says nothing about that derivative.\n  Return the "
                    "new value, and write it outside."
                )
        own = {id(given[k]): _OfReference(value, self._kinds[k]) for k, value in before.items()}
        return tree.map(lambda leaf: own.get(id(leaf), leaf) if isinstance(leaf, Ref) else leaf, result)

    def unflatten(self, values: Sequence[Value]) -> Any:
        """The arguments that are differentiated, with `values` in place of the leaves."""
        shown = tree.unflatten(self.tree, with_avals(values, self.avals))
        return show_references(shown) if self.has_references else shown


class _OfReference:
    """The stand-in for a pass's own reference in its results: the array, and the kind of the reference."""

    def __init__(self, value: Any, kind: str | None) -> None:
        self.value = value
        self.kind = kind


tree.register_pytree_node(_OfReference, lambda r: ((r.value,), r.kind), lambda kind, held: _OfReference(held[0], kind))


def _as_references(residuals: Any) -> tuple[Any, list[tuple[Ref, Value]]]:
    """Residuals with references to the arrays that `_OfReference` holds, and these references with their arrays."""
    made: list[tuple[Ref, Value]] = []

    def shown(leaf: Any) -> Any:
        if not isinstance(leaf, _OfReference):
            return leaf
        ref = Ref(as_value(leaf.value), "of the function's forward pass", leaf.kind)
        made.append((ref, ref.current()))
        return ref

    return tree.map(shown, residuals, is_leaf=lambda x: isinstance(x, _OfReference)), made


class Outputs:
    """The tree of a function's results and their types, known once it has run."""

    def __init__(self) -> None:
        self.tree: Any = None
        self.avals: list[ShapedArray] = []
        self._of_function: tuple[Any, list[ShapedArray]] | None = None

    def of_function(self, result: Any) -> list[Value]:
        """As `flatten`, for the result of the function itself."""
        values = self.flatten(result)
        self._of_function = self.tree, self.avals
        return values

    def of_rule(
        self, result: Any, what: str, rule: Callable[..., Any], fun: Callable[..., Any]
    ) -> list[Value]:
        """As `flatten`, for the result of `rule`: TypeError unless it is like the function's own result, if this is
        known. A program that was traced already has places for the latter."""
        values = self.flatten(result)
        if self._of_function is not None:
            wanted_tree, wanted = self._of_function
            pairs = zip(self.avals, wanted, strict=False)
            if self.tree != wanted_tree or any((a.shape, a.dtype) != (w.shape, w.dtype) for a, w in pairs):
                forwards = "fwd" in what
                decorated = f"the custom_{'vjp' if forwards else 'jvp'}-decorated function {_name(fun)}"
                same_tree = self.tree == wanted_tree
                if forwards:
                    says = f"equal to the output of {decorated}) and {_RESIDUALS}"
                else:
                    says = f"equal in value to the output of {decorated}, and in particular {_ALIKE[same_tree]})"
                had = "shapes/dtypes of" if same_tree else "container/pytree structure"
                raise TypeError(
                    f"{_of(what, rule, fun)} must produce a pair (list or tuple of length two) where the first element "
                    f"represents the primal output ({says}, but instead the {'fwd' if forwards else 'JVP'} rule "
                    f"output's first element had {had}:\n    {_typed(self.tree, self.avals)}\nwhile {decorated} had "
                    f"output {had}:\n    {_typed(wanted_tree, wanted)}.\n  The rule is {function_line(rule)}"
                )
        return values

    def flatten(self, result: Any) -> list[Value]:
        leaves, self.tree = tree.flatten(result)
        for node in tree.leaves(result, is_leaf=lambda x: isinstance(x, _OfReference)):
            leaf = Ref(node.value, kind=node.kind) if isinstance(node, _OfReference) else node
            refuse_result(leaf, "a function with a rule of its own", "with a custom derivative")
        values = tuple([as_value(leaf) for leaf in leaves])
        self.avals = [v.aval for v in values]
        return list(storages(values))

    def unflatten(self, results: Sequence[Value]) -> Any:
        """The function's result, with `results` in place of the leaves."""
        return tree.unflatten(self.tree, overlaid_all(results, self.avals))


_ALIKE = ("of the same container/pytree structure", "with leaves of the same shape/dtype")
_RESIDUALS = (
    "the second element represents residuals (i.e. values stored from the forward pass for use on the backward pass)"
)


def _typed(structure: Any, avals: Sequence[ShapedArray]) -> str:
    """A container of types, for messages: ``(float32[], float32[3])``."""
    return str(tree.unflatten(structure, [aval.str_short() for aval in avals])).replace("'", "")


def _unresolved(fun: Callable[..., Any], what: str, why: str) -> TypeError:
    return TypeError(
        f"The input arguments to the {what}-decorated function {_name(fun)} could not be resolved to positional-only "
        f"arguments. Binding failed with the error:\n{why}\n  calling {function_line(fun)}"
    )


def positional(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], what: str
) -> tuple[Any, ...]:
    """All arguments by position, defaults filled in; TypeError if one cannot be given by position. what: the decorator
    of `fun`."""
    try:
        bound = signature(fun).bind(*args, **kwargs)
    except ValueError:  # builtins may have no signature
        if kwargs:
            raise
        return args
    except TypeError as error:
        raise _unresolved(fun, what, str(error)) from None
    bound.apply_defaults()
    given = sorted(n for n in bound.kwargs if n in kwargs)  # the others keep their defaults, for the rule, too
    if given:
        why = f"The following keyword arguments could not be resolved to positions: {', '.join(given)}"
        raise _unresolved(fun, what, why)
    return bound.args


def _static_positions(fun: Callable[..., Any], nondiff: _Nondiff, count: int) -> frozenset[int]:
    for i in nondiff.argnums:
        if not -count <= i < count:
            why = f"nondiff_argnums has {i}, which must be below the number of arguments, {count}"
            raise ValueError(f"{why}, of {function_line(fun)}")
    found = frozenset(i % count for i in nondiff.argnums)
    return found | nondiff.places if nondiff.places else found


class _Nondiff:
    """The arguments that are not differentiated: their numbers, and where the signature has those given by name."""

    def __init__(self, fun: Callable[..., Any], argnums: int | Sequence[int], argnames: str | Sequence[str]) -> None:
        self.argnums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
        self.places: frozenset[int] = frozenset()
        if names:
            known = [p.name for p in signature(fun).parameters.values()]
            missing = [n for n in names if n not in known]
            if missing:
                raise ValueError(f"nondiff_argnames has {missing[0]!r}, which is no argument of {function_line(fun)}")
            self.places = frozenset(known.index(n) for n in names)

    def __bool__(self) -> bool:
        return bool(self.argnums or self.places)


@contextmanager
def _closures_explained(what: str, fun: Callable[..., Any]) -> Iterator[None]:
    """A tracer of a differentiation that does not apply here is, most likely, in the closure of `fun`."""
    try:
        yield
    except UnexpectedTracerError as error:
        if getattr(error, "is_explained", False):
            raise
        explained = UnexpectedTracerError(
            f"{error}\n  This happened in the {what} function {function_line(fun)} or in its rule. They must not "
            "close over values that are differentiated: make such a value an argument (hloom.closure_convert finds "
            "those of a function that is an argument)."
        )
        explained.is_explained = True  # type: ignore[attr-defined]
        raise explained from None


def _with_x64(is_on: bool) -> AbstractContextManager[object]:
    """Rules run with the setting of the call, wherever the derivative is taken."""
    return nullcontext() if current_context().enable_x64 is is_on else Override(enable_x64=is_on)


@boundaries
@annotated_as_wrapped
class _Differentiable(OtherRules, Generic[P, R]):
    """The common base of functions with a derivative of their own."""

    __qualname__: str
    __signature__: SignatureOfFunction = SignatureOfFunction()

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(cast("Any", self), fun)
        self.fun: Callable[..., Any] = fun
        self._nondiff = _Nondiff(fun, nondiff_argnums, nondiff_argnames)
        self.nondiff_argnums: tuple[int, ...] = self._nondiff.argnums
        self.symbolic_zeros = False

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__qualname__ if is_global(self) else super().__reduce_ex__(protocol)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> _Differentiable[P, R]: ...
    @overload
    def __get__(
        self: _Differentiable[Concatenate[Any, Rest], R], instance: object, owner: type | None = None
    ) -> Callable[Rest, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        call: Any = self
        return self if instance is None else functools.partial(call, instance)


# --- custom_jvp

CUSTOM_JVP = Primitive("custom_jvp", evaluate=run_meaning)
"""The parameters of a call: rule(primals, tangents) -> (results, tangents), on flat lists."""


@CUSTOM_JVP.def_jvp
def _custom_jvp_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    _check_captured(call, tangents)
    results, tangents_out = call.params(_own(call, primals), _own(call, tangents))
    return results, tangents_out


@boundaries
@annotated_as_wrapped
class custom_jvp(_Differentiable[P, R]):
    """A function with its own JVP rule: for all derivatives, in forward and in reverse mode. JAX's `custom_jvp`.

    ``rule(primals, tangents)``, which `defjvp` takes, returns (result, tangent of the result). With `nondiff_argnums`
    or `nondiff_argnames` it takes these arguments first: rule(*nondiff, primals, tangents). They may be functions;
    arrays among them have a derivative of zero.

    >>> @hloom.custom_jvp
    ... def log1pexp(x):
    ...     return jnp.log(1 + jnp.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t / (1 + jnp.exp(-x))
    >>> hloom.grad(log1pexp)(100.0)
    Array(1., dtype=float32, weak_type=True)
    """

    jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Set the rule; returns it, for use as a decorator.

        symbolic_zeros: tangents that are known to be zero are `SymbolicZero` objects, not arrays of zeros.

        >>> @hloom.custom_jvp
        ... def f(x):
        ...     return x**2
        >>> rule = f.defjvp(lambda primals, tangents: (f(*primals), 100 * tangents[0]))
        >>> hloom.grad(f)(3.0)
        Array(100., dtype=float32, weak_type=True)
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """A rule for each argument: jvp(tangent, result, *primals) -> part of the result's tangent; None for zero.

        >>> @hloom.custom_jvp
        ... def f(x, y):
        ...     return x * y
        >>> f.defjvps(lambda t, result, x, y: t * y, None)
        >>> hloom.grad(f, argnums=(0, 1))(2.0, 3.0)
        (Array(3., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
        """
        if self._nondiff:
            raise TypeError("Can't use defjvps with nondiff_argnums.")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            call: Callable[..., Any] = self
            result = call(*primals)
            if len(jvps) != len(tangents):
                raise ValueError(
                    f"defjvps of {function_line(self.fun)} was given {len(jvps)} rules for {len(tangents)} arguments"
                )
            parts = [rule(t, result, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            if not parts:
                return result, tree.map(lambda leaf: leaf * 0, result)
            return result, functools.reduce(lambda a, b: tree.map(lambda x, y: x + y, a, b), parts)

        self.defjvp(jvp)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {_name(self.fun)} using defjvp: call its defjvp(rule) first.\n"
                f"  It is {function_line(self.fun)}"
            )
        rule, symbolic_zeros = self.jvp, self.symbolic_zeros
        every = positional(self.fun, args, kwargs, "custom_jvp")
        static = _static_positions(self.fun, self._nondiff, len(every))
        if static:
            every = tuple([_stopped(a) if i in static else a for i, a in enumerate(every)])
        given = Arguments(self.fun, static, every)
        if current_trace() is EVAL:
            plain: R = _untransformed("custom_jvp", self.fun, given)
            return plain
        out = Outputs()
        x64 = current_context().enable_x64

        def meaning(values: Sequence[Value]) -> list[Value]:
            with _closures_explained("custom_jvp", self.fun), _with_x64(x64):
                return out.of_function(self.fun(*given.rebuilt(values)))

        flat_rule = _flat_jvp("custom_jvp", self.fun, rule, given, out, symbolic_zeros)
        flat_rule.__name__ = getattr(rule, "__name__", "jvp")  # which jaxprs show
        results = bind_custom(CUSTOM_JVP, self.fun, meaning, flat_rule, given.values)
        result: R = out.unflatten(results)
        return result


FlatJvp = Callable[[Sequence[Value], Sequence[Tangent]], tuple[list[Value], list[Tangent]]]
"""(primals, tangents) -> (results, their tangents), on flat lists."""


def _flat_jvp(
    what: str, fun: Callable[..., Any], rule: Callable[..., Any], given: Arguments, out: Outputs, symbolic_zeros: bool
) -> FlatJvp:
    """A user's JVP rule on flat lists."""
    x64 = current_context().enable_x64

    def flat_rule(primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[list[Value], list[Tangent]]:
        directions = [tangent_for_user(t, a, symbolic_zeros) for a, t in zip(given.avals, tangents, strict=True)]
        with _closures_explained(what, fun), _with_x64(x64):
            pair = rule(*given.static_args, given.unflatten(primals), tree.unflatten(given.tree, directions))
        results, tangents_out = _checked_pair(rule, fun, pair)
        found = out.of_rule(results, "Custom JVP rule", rule, fun)
        return found, _checked_tangents(rule, fun, out, results, tangents_out)

    return flat_rule


def _untransformed(what: str, fun: Callable[..., Any], given: Arguments) -> Any:
    """The result of `fun` outside of every transformation. As in JAX, it is not converted, nor are Python's numbers
    among the arguments."""
    with _closures_explained(what, fun):
        result = fun(*given.with_leaves(given.numbers_and_arrays()))
    Outputs().flatten(result)  # refuses anything that is no array
    return result


def _stopped(argument: Any) -> Any:
    """An argument that is not differentiated: the traced values in it are constants to differentiation."""
    return tree.map(lambda leaf: stop_gradient(leaf) if isinstance(leaf, Tracer) else leaf, argument)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _of(what: str, rule: Callable[..., Any], fun: Callable[..., Any]) -> str:
    """How messages name a rule."""
    return f"{what} {_name(rule)} for function {_name(fun)}"


def _checked_pair(rule: Callable[..., Any], fun: Callable[..., Any], pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(
            f"{_of('Custom JVP rule', rule, fun)} must produce a pair (list or tuple of length two) representing "
            f"primal and tangent outputs, but got {short_repr(pair)}.\n  The rule is {function_line(rule)}"
        )
    return pair[0], pair[1]


def _checked_tangents(
    rule: Callable[..., Any], fun: Callable[..., Any], out: Outputs, results: Any, tangents: Any
) -> list[Tangent]:
    """The rule's tangents, with the types of its results."""
    leaves, structure = tree.flatten(tangents)
    primals = [as_value(leaf) for leaf in tree.leaves(results)]
    if structure != out.tree:
        raise TypeError(
            f"{_of('Custom JVP rule', rule, fun)} must produce primal and tangent outputs with equal container "
            f"(pytree) structures, but got {out.tree} and {structure} respectively.\n"
            f"  The rule is {function_line(rule)}"
        )
    found: list[Tangent] = []
    for primal, leaf in zip(primals, leaves, strict=True):
        if not is_inexact(primal.aval.dtype) or (isinstance(leaf, SymbolicZero) and leaf.shape == primal.aval.shape):
            found.append(Zero(primal.aval.storage))
            continue
        tangent = as_value(leaf)
        if (tangent.aval.shape, tangent.aval.dtype) != (primal.aval.shape, primal.aval.dtype):
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. "
                f"Expected {primal.aval.str_short()} (tangent type of {primal.aval.str_short()}) but got "
                f"{tangent.aval.str_short()}.\n  The rule is {function_line(rule)} for function {_name(fun)}"
            )
        found.append(tangent)
    return found


# --- custom_vjp

CUSTOM_VJP = Primitive("custom_vjp", evaluate=run_meaning)
"""The parameters of a call: a `VjpRule`."""


@dataclass(frozen=True, slots=True)
class VjpRule:
    """The two passes of one call, as pure functions of flat lists."""

    forward: Callable[[Sequence[Value], Sequence[bool]], Forward]
    """forward(arguments, which of them are differentiated)"""
    backward: Callable[[Forward, Sequence[Value], Sequence[Value | None]], list[Value | None]]
    """backward(trees, residuals, cotangents of the results) -> a cotangent for each argument; None is zero."""
    forwards: FlatJvp | None = None
    """The rule for forward mode, if there is one."""


@dataclass(frozen=True, slots=True)
class Forward:
    """The results of the forward pass."""

    results: list[Value]
    residuals: list[Value]
    out_tree: Any
    out_avals: list[ShapedArray]
    """The types of the results; `results` and `residuals` are the storage of keys."""
    rebuilt: Callable[[Sequence[Value]], Any]
    """The residuals as the user's function returned them, with other values in place of the leaves."""


@CUSTOM_VJP.def_jvp
def _custom_vjp_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    """A recorded program may contain operations that its results do not need, and may be transposed; it is refused
    where it is lowered with the tangents in it. Values are refused at once. A rule for forward mode is used."""
    rule: VjpRule = call.params
    if rule.forwards is not None:
        _check_captured(call, tangents)
        return rule.forwards(_own(call, primals), _own(call, tangents))
    if not is_recording(current_trace()):
        raise forward_refused(call)
    forward = _custom_vjp_linearize(call, primals, tangents)
    look_at_modules(refuse_forward)
    moved: Iterator[Value] = iter(())
    if any(forward.moves):
        bound, operands = forward.of_tangents([t for t in tangents if not isinstance(t, Zero)])
        moved = iter(bind_call(bound, operands))
    zipped = zip(forward.results, forward.moves, strict=True)
    return forward.results, [next(moved) if m else Zero(r.aval) for r, m in zipped]


@CUSTOM_VJP.def_linearize
def _linearize(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Linearized:
    forward = _custom_vjp_linearize(call, primals, tangents)

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        return linear.record_call(*forward.of_tangents(directions))

    return Linearized(forward.results, forward.moves, record)


@dataclass(frozen=True, slots=True)
class _Forwards:
    """The results, which of them move, and the call for their tangents, with its operands."""

    results: list[Value]
    moves: tuple[bool, ...]
    of_tangents: Callable[[list[Value]], tuple[Call, list[Value]]]


def _custom_vjp_linearize(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> _Forwards:
    """Run the forward pass now. The transpose of the call of tangents is the backward pass. Its meaning is the rule for
    forward mode; without such a rule it can only be transposed."""
    _check_captured(call, tangents)
    rule: VjpRule = call.params
    found = rule.forward(_own(call, primals), moving_mask(_own(call, tangents)))
    avals = [r.aval for r in found.results]
    moves = tuple([is_inexact(a.dtype) for a in avals])
    moving = [k for k, t in enumerate(tangents) if not isinstance(t, Zero)]

    def transpose(residuals: Sequence[Value], cotangents: Sequence[Value | None]) -> list[Value | None]:
        given = iter(cotangents)
        every = [next(given) if m else None for m in moves]
        back = rule.backward(found, residuals[: len(found.residuals)], every)
        return [back[k] for k in moving]

    def call_of_tangents(directions: list[Value]) -> tuple[Call, list[Value]]:
        params = len(directions), transpose
        operands = [*directions, *found.residuals]
        if rule.forwards is None:
            computation = _never_run([v.aval for v in operands], [a for a, m in zip(avals, moves, strict=True) if m])
            return Call(_BACKWARD, computation, params, call.label), operands
        operands += _own(call, primals)

        def tangents_out(values: list[Value]) -> list[Value]:
            assert rule.forwards is not None
            of_moving = iter(values)
            every = [Zero(t.aval) if isinstance(t, Zero) else next(of_moving) for t in _own(call, tangents)]
            _, out = rule.forwards(values[len(values) - len(every) :], every)
            return [zeros(t.aval) if isinstance(t, Zero) else t for t, m in zip(out, moves, strict=True) if m]

        traced = trace_to_computation(tangents_out, [v.aval for v in operands], _BOTH.name, tracks_varying=True)
        return Call(_BOTH, traced.computation, params, call.label), [*operands, *traced.captured]

    return _Forwards(found.results, moves, call_of_tangents)


def forward_refused(call: Call) -> TypeError:
    """The error of a custom_vjp function in forward mode."""
    return TypeError(
        f"can't apply forward-mode autodiff (jvp) to a custom_vjp function. The rule of {call.label} gives cotangents "
        "only. Use custom_jvp, or reverse mode (grad, vjp)."
    )


def refuse_forward(module: HloModule) -> None:
    """TypeError if a program that is lowered needs the tangent of a custom_vjp function."""
    for computation in module.computations:
        refuse_forward_in(computation)


def refuse_forward_in(computation: HloComputation) -> None:
    """TypeError if the computation, apart from those that it calls, needs the tangent of a custom_vjp function."""
    for instruction in computation.instructions:
        if instruction.opcode is Opcode.CALL and (call := call_of(instruction.attributes)).primitive.is_backward_only:
            raise forward_refused(call)


def _refuse(call: Call, *_: Any) -> Any:
    raise forward_refused(call)


_BACKWARD = Primitive("custom_vjp_tangent", evaluate=_refuse, is_backward_only=True, jvp=_refuse)
"""The call in a linear program that represents a custom_vjp function. Its parameters: how many operands are tangents,
and (residuals, cotangents of the results that move) -> cotangents of these operands."""

_BOTH = Primitive("custom_vjp_tangent", evaluate=run_meaning)
"""As `_BACKWARD`, of a function that has a rule for forward mode, too: the call's meaning."""


@_BOTH.def_transpose
@_BACKWARD.def_transpose
def _backward_transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> Sequence[Value | None]:
    count, run = call.params
    residuals = [o for o in operands[count:] if not isinstance(o, Linear)]
    return [*run(residuals, cts), *(None for _ in residuals)]


def _never_run(avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]) -> HloComputation:
    """A computation of the right type. It gives NaN: linear programs that contain it are transposed, never run."""
    return trace_to_computation(lambda _: [full(a, np.nan) for a in out_avals], avals, _BACKWARD.name).computation


@boundaries
@annotated_as_wrapped
class custom_vjp(_Differentiable[P, R]):
    """A function with its own reverse-mode rule. JAX's `custom_vjp`.

    ``defvjp(fwd, bwd)``: fwd(*args) returns (result, residuals); bwd(residuals, cotangent) a tuple with a cotangent for
    each argument, None for zero. With `nondiff_argnums` or `nondiff_argnames`, fwd takes all arguments in their order,
    and bwd takes these first. Forward mode is a TypeError.

    >>> @hloom.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1, 1),))
    >>> hloom.grad(lambda x: 5 * clip_gradient(x))(2.0)
    Array(1., dtype=float32, weak_type=True)
    """

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    forwards: Callable[..., Any] | None = None
    """A JVP rule, for forward mode. It has no name in JAX; `experimental.hijax` sets it."""

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rule: the forward pass, which also returns the residuals for the backward pass, and the backward
        pass.

        symbolic_zeros: fwd gets a `CustomVJPPrimal` (.value, .perturbed) for each array, and bwd gets `SymbolicZero`
        objects for cotangents that are known to be zero. `optimize_remat` is accepted: under `checkpoint`, unused
        residuals are never computed here.

        >>> @hloom.custom_vjp
        ... def f(x):
        ...     return x**2
        >>> f.defvjp(lambda x: (x**2, x), lambda x, ct: (100 * ct * x,))
        >>> hloom.grad(f)(3.0)
        Array(300., dtype=float32, weak_type=True)
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {_name(self.fun)} using defvjp: "
                "call its defvjp(fwd, bwd) first.\n"
                f"  It is {function_line(self.fun)}"
            )
        fwd, bwd, symbolic_zeros = self.fwd, self.bwd, self.symbolic_zeros
        every = positional(self.fun, args, kwargs, "custom_vjp")
        given = Arguments(self.fun, _static_positions(self.fun, self._nondiff, len(every)), every, by_value=True)
        if given.has_references:
            _tell_recorders(given)
        _refuse_moving(self.fun, given.static_args)
        if current_trace() is EVAL:
            plain: R = _untransformed("custom_vjp", self.fun, given)
            return plain
        out = Outputs()
        x64 = current_context().enable_x64

        def meaning(values: Sequence[Value]) -> list[Value]:
            with _closures_explained("custom_vjp", self.fun), _with_x64(x64):
                leaves = with_avals(values, given.avals)
                return out.of_function(given.called("custom_vjp", self.fun, leaves))

        def forward(primals: Sequence[Value], moving: Sequence[bool]) -> Forward:
            leaves: list[Any] = with_avals(primals, given.avals)
            if symbolic_zeros:
                leaves = [CustomVJPPrimal(v, m) for v, m in zip(leaves, moving, strict=True)]
            with _closures_explained("custom_vjp", self.fun), _with_x64(x64):
                pair = given.called("custom_vjp fwd", fwd, leaves)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(
                    f"{_of('Custom VJP fwd rule', fwd, self.fun)} must produce a pair (list or tuple of length two) "
                    f"where the first element represents the primal output and {_RESIDUALS}, but got "
                    f"{short_repr(pair)}.\n  The rule is {function_line(fwd)}"
                )
            results = out.of_rule(pair[0], "Custom VJP fwd rule", fwd, self.fun)
            held = _Held(_without_references(pair[1], given, fwd))
            rebuilt = held.rebuilt
            return Forward(results, held.values, out.tree, out.avals, lambda values: show_references(rebuilt(values)))

        def backward(
            found: Forward, residuals: Sequence[Value], cotangents: Sequence[Value | None]
        ) -> list[Value | None]:
            full_cotangents = [
                tangent_for_user(ct, a, symbolic_zeros) for a, ct in zip(found.out_avals, cotangents, strict=True)
            ]
            cotangent = tree.unflatten(found.out_tree, full_cotangents)
            with _closures_explained("custom_vjp", self.fun), _with_x64(x64):
                shown, made = _as_references(found.rebuilt(residuals))
                answer = bwd(*given.static_args, shown, cotangent)
            for ref, value in made:
                if ref.current() is not value:
                    raise UnsupportedError(
                        f"custom_vjp bwd function {function_line(bwd)} writes to {ref.aval}, a reference to a mutable "
                        "array that the differentiated function made: it is gone by then.\n  Make the reference "
                        "outside of the differentiated function."
                    )
            return _checked_cotangents(bwd, given, given.avals, answer)

        forward.__name__, backward.__name__ = (getattr(f, "__name__", "<unnamed>") for f in (fwd, bwd))
        forwards = self.forwards and _flat_jvp("custom_vjp", self.fun, self.forwards, given, out, False)
        results = bind_custom(CUSTOM_VJP, self.fun, meaning, VjpRule(forward, backward, forwards), given.values)
        result: R = out.unflatten(results)
        return result


def _tell_recorders(arguments: Arguments) -> None:
    """A program that is recorded takes the references from outside that the rule may write to."""
    for leaf in tree.leaves(arguments.references()):
        if isinstance(leaf, Ref):
            for recorder in leaf.recorders():
                recorder.rules_take_references = True
            leaf.current()


def _without_references(result: Any, arguments: Arguments, fwd: Callable[..., Any]) -> Any:
    """The residuals of a forward rule; references that are among its arguments are no leaves of it."""
    own = [leaf for leaf in tree.leaves(arguments.references()) if isinstance(leaf, Ref)]
    for leaf in tree.leaves(result):
        if isinstance(leaf, Ref) and not any(leaf is o for o in own):
            raise ValueError(
                f"custom_vjp fwd function {function_line(fwd)} returned a mutable array reference of type "
                f"{leaf.aval} as a residual, which is none of its arguments.\n\n{leaf.origin()}"
            )
    return hide_references(result)


class _Held:
    """The residuals of a forward rule, for the backward rule. Python's numbers are not converted: rules keep flags."""

    def __init__(self, residuals: Any) -> None:
        leaves, self._tree = tree.flatten(residuals)
        self._numbers = [leaf if type(leaf) in _NUMBERS else None for leaf in leaves]
        arrays = [as_value(leaf) for leaf, n in zip(leaves, self._numbers, strict=True) if n is None]
        self._avals = [a.aval for a in arrays]
        self.values: list[Value] = list(storages(tuple(arrays)))

    def rebuilt(self, values: Sequence[Value]) -> Any:
        """The same, with other arrays."""
        arrays = iter(with_avals(values, self._avals))
        return tree.unflatten(self._tree, [next(arrays) if n is None else n for n in self._numbers])


def _refuse_moving(fun: Callable[..., Any], static_args: Sequence[Any]) -> None:
    """UnexpectedTracerError if a value that is being differentiated is among the arguments that are not."""
    for leaf in tree.leaves(static_args):
        if isinstance(leaf, JVPTracer):
            raise UnexpectedTracerError(
                f"{function_line(fun)} got {leaf.aval.str_short()}, a value that is differentiated, for an argument "
                "that nondiff_argnums names. For custom_vjp these are functions and other values that are not "
                "arrays: leave the argument out of nondiff_argnums, and return None as its cotangent"
            )


def _checked_cotangents(
    bwd: Callable[..., Any], given: Arguments, avals: Sequence[ShapedArray], found: Any
) -> list[Value | None]:
    """The backward rule's results, one for each leaf of the arguments. They may be a prefix of the arguments' tree:
    None is zero for all that is below it, and a value is the cotangent of each leaf below it."""
    if isinstance(found, list):
        found = tuple(found)
    template = tree.unflatten(given.tree, list(range(len(avals))))
    if not isinstance(found, tuple) or len(found) != len(template):
        raise TypeError(
            f"Custom VJP bwd rule {function_line(bwd)} must produce a tuple of length equal to the primal args tuple "
            f"({len(template)}), but got {_described(found)}."
        )
    flat: list[Value | None] = [None] * len(avals)
    for part, places in zip(found, template, strict=True):
        if part is None:
            continue
        leaves, structure = tree.flatten(part, is_leaf=lambda x: x is None)
        try:
            subtrees = tree.flatten_up_to(structure, places)
        except ValueError:
            raise TypeError(
                f"Custom VJP bwd rule {function_line(bwd)} must produce cotangents with the same container (pytree) "
                f"structure as the arguments: {tree.structure(places)}, but got {structure}."
            ) from None
        pairs = [(i, leaf) for leaf, below in zip(leaves, subtrees, strict=True) for i in tree.leaves(below)]
        for i, leaf in pairs:
            if leaf is None or not is_inexact(avals[i].dtype):
                continue
            if isinstance(leaf, SymbolicZero):
                if leaf.shape == avals[i].shape:
                    continue
                raise ValueError(
                    f"Custom VJP bwd rule {function_line(bwd)} produced a SymbolicZero with a shape/dtype that does "
                    f"not match the corresponding input tangent shape/dtype: at output{_path(given, i)} the "
                    f"SymbolicZero had shape/dtype {leaf.dtype}{list(leaf.shape)} while the corresponding input had "
                    f"shape/dtype {avals[i].str_short()}. Consider just returning a None here instead of a "
                    "SymbolicZero object."
                )
            value = as_value(leaf)
            dtype, wanted = value.aval.dtype, avals[i].dtype
            if dtype != wanted and (dtypes.is_complex(wanted) or not dtypes.is_complex(dtype)):
                value = convert(value, wanted, False)  # a rule may compute in more or fewer digits
            if (value.aval.shape, value.aval.dtype) != (avals[i].shape, avals[i].dtype):
                raise ValueError(
                    f"Custom VJP bwd rule {function_line(bwd)} must produce an output with the same type as the args "
                    f"tuple of the primal function, but at output{_path(given, i)} the bwd rule produced an output of "
                    f"type {value.aval.str_short()} corresponding to an input of type {avals[i].str_short()}."
                )
            flat[i] = value
    return flat


def _path(given: Arguments, leaf: int) -> str:
    return tree.keystr(tree.paths_of_structure(given.tree)[leaf])


def _described(value: object) -> str:
    return f"a tuple of length {len(value)}" if isinstance(value, tuple) else type(value).__name__
