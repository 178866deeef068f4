"""custom_jvp and custom_vjp: functions whose derivative the user writes; and the rule of lax.stop_gradient.

Called on concrete values, the function just runs. While it is differentiated, the user's rule runs instead. While it is
traced, it becomes a composite call that carries its rule, so that a later differentiation finds it; whoever else meets
the call sees a call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloComputation
from ..hlo.ops.control_flow import CallAttributes, Composite
from ..hlo.shape import Shape
from ..tracer import tree
from ..tracer.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.core import (
    EvalTrace,
    Value,
    bind_call,
    current_trace,
    set_current_trace,
    trace_to_computation,
)
from ..tracer.errors import UnexpectedTracerError
from ..tracer.ops import full, is_inexact
from ..tracer.source import function_line
from .jvp import JVPTrace
from .linearize import LinearizeTrace, LinearTrace
from .rules.control_flow import linear_trace
from .rules.tables import (
    COMPOSITE_JVP,
    COMPOSITE_LINEARIZE,
    COMPOSITE_TRANSPOSE,
    JvpRule,
    Linear,
    Operand,
    Tangent,
    Zero,
    instantiate,
)

float0 = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents of integers and booleans: there is only zero, and it takes no memory. JAX's `float0`."""

FlatFunction = Callable[[Sequence[Value]], list[Value]]


def float0_zeros(aval: ShapedArray) -> Any:
    """The tangent of an integer or boolean value."""
    return np.zeros(aval.shape, float0)


# --- how a call with a rule is processed


@dataclass(frozen=True, slots=True)
class _CustomRule:
    """The rule that a composite call carries, for its first `count` operands. What follows was captured."""

    name: str
    count: int
    rule: JvpRule

    def __call__(self, primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[list[Value], list[Tangent]]:
        if any(not isinstance(t, Zero) for t in tangents[self.count :]):
            raise UnexpectedTracerError(
                f"{self.name} closes over a value with respect to which it is differentiated: its rule knows only of "
                "its arguments. Make that value an argument."
            )
        results, tangents_out = self.rule(primals[: self.count], tangents[: self.count], None, None)  # type: ignore[arg-type]
        return results, tangents_out


def _call_with_rule(kind: str, name: str, fun: FlatFunction, rule: JvpRule, values: Sequence[Value]) -> list[Value]:
    """Run `fun` on `values` under the current trace, with `rule` as its derivative."""
    trace = current_trace()
    if isinstance(trace, EvalTrace):
        return fun(values)
    if isinstance(trace, LinearTrace):
        if any(trace.owns(v) for v in values):
            return fun(values)
        with set_current_trace(trace.parent):
            return _call_with_rule(kind, name, fun, rule, values)
    if isinstance(trace, JVPTrace):
        primals, tangents = trace.split(values)
        if all(isinstance(t, Zero) for t in tangents):
            with set_current_trace(trace.parent):
                return _call_with_rule(kind, name, fun, rule, primals)
        if kind == "custom_vjp" and not isinstance(trace, LinearizeTrace):
            raise _forward_mode_error(name)
        with set_current_trace(trace.rule_trace):
            results, tangents_out = _CustomRule(name, len(values), rule)(primals, tangents)
        return [trace.join(p, t) for p, t in zip(results, tangents_out, strict=True)]
    traced = trace_to_computation(lambda xs: fun(xs), [v.aval for v in values], name)
    composite = Composite(kind, (("name", name),), _CustomRule(name, len(values), rule))
    return bind_call(traced.computation, [*values, *traced.captured], composite)


def _composite_rule(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    assert attributes.composite is not None and isinstance(attributes.composite.rule, _CustomRule)
    return attributes.composite.rule(primals, tangents)


def _composite_vjp_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    assert attributes.composite is not None and isinstance(attributes.composite.rule, _CustomRule)
    raise _forward_mode_error(attributes.composite.rule.name)


def _forward_mode_error(name: str) -> TypeError:
    return TypeError(
        f"can't apply forward-mode differentiation (jvp) to a custom_vjp function, here {name}: its rule gives "
        "cotangents only. Use custom_jvp, or reverse mode (grad, vjp)."
    )


COMPOSITE_JVP["custom_jvp"] = _composite_rule
COMPOSITE_JVP["custom_vjp"] = _composite_vjp_jvp
COMPOSITE_LINEARIZE["custom_vjp"] = _composite_rule


# --- arguments


class _Arguments:
    """The arguments of one call: those that are differentiated as a flat list of values, the others as they are.

    `values` is for the call itself: a rule that is kept uses the rest only.
    """

    def __init__(self, static: frozenset[int], args: tuple[Any, ...]) -> None:
        self._static = {i: args[i] for i in sorted(static)}
        self._count = len(args)
        leaves, self.tree = tree.flatten(tuple(a for i, a in enumerate(args) if i not in static))
        self.values: list[Value] = [as_value(leaf) for leaf in leaves]
        self.static_args = tuple(self._static.values())

    def rebuilt(self, values: Sequence[Value]) -> tuple[Any, ...]:
        """All arguments in order, with `values` in place of the leaves."""
        moving = iter(tree.unflatten(self.tree, list(values)))
        return tuple(self._static[i] if i in self._static else next(moving) for i in range(self._count))


class _Outputs:
    """The tree of a function's results, known once it has run."""

    def __init__(self) -> None:
        self.tree: Any = None

    def flatten(self, result: Any) -> list[Value]:
        leaves, self.tree = tree.flatten(result)
        return [as_value(leaf) for leaf in leaves]


def _positional(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, defaults filled in; TypeError if one cannot be given by position."""
    if not kwargs:
        try:
            bound = inspect.signature(fun).bind(*args)
        except (TypeError, ValueError):
            return args  # the call itself says what is wrong; builtins may have no signature
    else:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"the keyword arguments {sorted(bound.kwargs)} of {function_line(fun)} cannot be given by position, as the "
            "rule of a function with a custom derivative needs"
        )
    return bound.args


def _static_positions(fun: Callable[..., Any], nondiff_argnums: Sequence[int], count: int) -> frozenset[int]:
    for i in nondiff_argnums:
        if not -count <= i < count:
            raise ValueError(f"nondiff_argnums has {i}, but {function_line(fun)} is called with {count} arguments")
    return frozenset(i % count for i in nondiff_argnums)


def _as_sequence(argnums: int | Sequence[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


# --- custom_jvp


class custom_jvp:
    """A function with a JVP rule of its own. JAX's `custom_jvp`.

        @custom_jvp
        def f(x, y): ...

        @f.defjvp
        def f_jvp(primals, tangents):    # -> (result, tangent of the result)

    With `nondiff_argnums` the rule takes these arguments first: rule(*nondiff, primals, tangents).
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _as_sequence(nondiff_argnums)
        self.jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule; returns it, so that it can be used as a decorator. Zero tangents come to it as zeros."""
        if symbolic_zeros:
            raise UnsupportedError("custom_jvp with symbolic_zeros=True: rules get zeros as arrays")
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """One rule an argument: jvp(tangent, result, *primals) -> its part of the result's tangent; None for zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use defjvps with nondiff_argnums.")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            result = self(*primals)
            parts = [rule(t, result, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            if not parts:
                return result, tree.map(lambda leaf: leaf * 0, result)
            return result, functools.reduce(lambda a, b: tree.map(lambda x, y: x + y, a, b), parts)

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {function_line(self.fun)} using defjvp.")
        rule = self.jvp
        args = _positional(self.fun, args, kwargs)
        given = _Arguments(_static_positions(self.fun, self.nondiff_argnums, len(args)), args)
        out = _Outputs()

        def flat_fun(values: Sequence[Value]) -> list[Value]:
            return out.flatten(self.fun(*given.rebuilt(values)))

        def flat_rule(
            primals: Sequence[Value], tangents: Sequence[Tangent], attributes: None, shape: None
        ) -> tuple[list[Value], list[Tangent]]:
            directions = [float0_zeros(t.aval) if not is_inexact(t.aval.dtype) else instantiate(t) for t in tangents]
            pair = rule(
                *given.static_args, tree.unflatten(given.tree, list(primals)), tree.unflatten(given.tree, directions)
            )
            results, tangents_out = _checked_pair(rule, pair)
            return out.flatten(results), _checked_tangents(rule, out, results, tangents_out)

        results = _call_with_rule("custom_jvp", _name(self.fun), flat_fun, flat_rule, given.values)  # type: ignore[arg-type]
        return tree.unflatten(out.tree, results)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _name(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


def _checked_pair(rule: Callable[..., Any], pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(
            f"Custom JVP rule {function_line(rule)} must produce a pair (list or tuple of length two) representing "
            f"primal and tangent outputs, but got {type(pair).__name__}."
        )
    return pair[0], pair[1]


def _checked_tangents(rule: Callable[..., Any], out: _Outputs, results: Any, tangents: Any) -> list[Tangent]:
    """The rule's tangents, of the types that its results have."""
    leaves, structure = tree.flatten(tangents)
    primals = [as_value(leaf) for leaf in tree.leaves(results)]
    if structure != out.tree:
        raise TypeError(
            f"Custom JVP rule {function_line(rule)} must produce primal and tangent outputs with equal container "
            f"(pytree) structures, but got {out.tree} and {structure} respectively."
        )
    found: list[Tangent] = []
    for primal, leaf in zip(primals, leaves, strict=True):
        if not is_inexact(primal.aval.dtype):
            found.append(Zero(primal.aval))
            continue
        tangent = as_value(leaf)
        if (tangent.aval.shape, tangent.aval.dtype) != (primal.aval.shape, primal.aval.dtype):
            raise TypeError(
                f"Custom JVP rule {function_line(rule)} must produce primal and tangent outputs with equal shapes and "
                f"dtypes, but got {primal.aval.str_short()} and {tangent.aval.str_short()}."
            )
        found.append(tangent)
    return found


# --- custom_vjp


class custom_vjp:
    """A function with a reverse-mode rule of its own. JAX's `custom_vjp`.

        @custom_vjp
        def f(x, y): ...

        def f_fwd(x, y): return f(x, y), residuals
        def f_bwd(residuals, cotangent): return cotangent_of_x, cotangent_of_y     # None for zero
        f.defvjp(f_fwd, f_bwd)

    With `nondiff_argnums`, fwd takes all arguments in their places, and bwd takes these first.
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _as_sequence(nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False) -> None:
        """Set the rule: the forward pass, which also returns what the backward pass needs, and the backward pass."""
        if symbolic_zeros:
            raise UnsupportedError("custom_vjp with symbolic_zeros=True: rules get zeros as arrays")
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {function_line(self.fun)} using defvjp.")
        fwd, bwd = self.fwd, self.bwd
        args = _positional(self.fun, args, kwargs)
        given = _Arguments(_static_positions(self.fun, self.nondiff_argnums, len(args)), args)
        out = _Outputs()

        def flat_fun(values: Sequence[Value]) -> list[Value]:
            return out.flatten(self.fun(*given.rebuilt(values)))

        def flat_rule(
            primals: Sequence[Value], tangents: Sequence[Tangent], attributes: None, shape: None
        ) -> tuple[list[Value], list[Tangent]]:
            pair = fwd(*given.rebuilt(primals))
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(
                    f"Custom VJP fwd rule {function_line(fwd)} must produce a pair (list or tuple of length two) where "
                    "the first element represents the primal output and the second element represents residuals (i.e. "
                    f"values stored from the forward-pass for use on the backward-pass), but got {type(pair).__name__}."
                )
            results = out.flatten(pair[0])
            return results, _recorded(bwd, given, out, results, tangents, pair[1])

        results = _call_with_rule("custom_vjp", _name(self.fun), flat_fun, flat_rule, given.values)  # type: ignore[arg-type]
        return tree.unflatten(out.tree, results)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


TANGENT_OF_CUSTOM_VJP = "custom_vjp_tangent"
"""The composite that stands in a linear program for a custom_vjp function: it can only be transposed."""


@dataclass(frozen=True, slots=True)
class _Backward:
    """The backward rule of one call: (residuals, results' cotangents) -> cotangents of the `count` moving inputs."""

    count: int
    run: Callable[[Sequence[Value], Sequence[Value | None]], list[Value | None]]


def _recorded(
    bwd: Callable[..., Any],
    given: _Arguments,
    out: _Outputs,
    results: Sequence[Value],
    tangents: Sequence[Tangent],
    residuals: Any,
) -> list[Tangent]:
    """Record, for the transposition to come, a call from the moving inputs' tangents to those of the results."""
    linear = linear_trace()
    leaves, residual_tree = tree.flatten(residuals)
    held = [as_value(leaf) for leaf in leaves]
    out_tree = out.tree
    moving = [i for i, t in enumerate(tangents) if not isinstance(t, Zero)]
    inexact = [k for k, r in enumerate(results) if is_inexact(r.aval.dtype)]
    out_avals = [r.aval for r in results]
    in_avals = [t.aval for t in tangents]

    def run(residual_values: Sequence[Value], cotangents: Sequence[Value | None]) -> list[Value | None]:
        by_result = dict(zip(inexact, cotangents, strict=True))
        full_cotangents = [
            float0_zeros(a) if k not in by_result else instantiate(_or_zero(by_result[k], a))
            for k, a in enumerate(out_avals)
        ]
        found = bwd(
            *given.static_args,
            tree.unflatten(residual_tree, list(residual_values)),
            tree.unflatten(out_tree, full_cotangents),
        )
        flat = _checked_cotangents(bwd, given, in_avals, found)
        return [flat[i] for i in moving]

    directions = [t for t in tangents if not isinstance(t, Zero)]
    operands: list[Value] = [*directions, *held]
    computation = _never_run([v.aval for v in operands], [out_avals[k] for k in inexact])
    composite = Composite(TANGENT_OF_CUSTOM_VJP, rule=_Backward(len(moving), run))
    moved = dict(zip(inexact, linear.record_call(computation, operands, composite), strict=True))
    return [moved[k] if k in moved else Zero(a) for k, a in enumerate(out_avals)]


def _or_zero(cotangent: Value | None, aval: ShapedArray) -> Tangent:
    return Zero(aval) if cotangent is None else cotangent


def _never_run(avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]) -> HloComputation:
    """A computation of the right type. It gives NaN: linear programs with it in them are transposed, never run."""
    traced = trace_to_computation(lambda _: [full(a, np.nan) for a in out_avals], avals, TANGENT_OF_CUSTOM_VJP)
    return traced.computation


def _checked_cotangents(
    bwd: Callable[..., Any], given: _Arguments, avals: Sequence[ShapedArray], found: Any
) -> list[Value | None]:
    """The backward rule's results, one a leaf of the arguments; None is zero, for a leaf or a whole argument."""
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
        positions = tree.leaves(places)
        leaves, structure = tree.flatten(part, is_leaf=lambda x: x is None)
        if structure != tree.structure(places):
            raise TypeError(
                f"Custom VJP bwd rule {function_line(bwd)} must produce cotangents with the same container (pytree) "
                f"structure as the arguments: {tree.structure(places)}, but got {structure}."
            )
        for i, leaf in zip(positions, leaves, strict=True):
            if leaf is None or not is_inexact(avals[i].dtype):
                continue
            value = as_value(leaf)
            if (value.aval.shape, value.aval.dtype) != (avals[i].shape, avals[i].dtype):
                raise ValueError(
                    f"Custom VJP bwd rule {function_line(bwd)} must produce a cotangent of the argument's type "
                    f"{avals[i].str_short()}, but got {value.aval.str_short()}."
                )
            flat[i] = value
    return flat


def _described(value: object) -> str:
    return f"a tuple of length {len(value)}" if isinstance(value, tuple) else type(value).__name__


def _tangent_transpose(
    cts: Sequence[Value | None], operands: Sequence[Operand], attributes: CallAttributes, shape: Shape
) -> Sequence[Value | None]:
    assert attributes.composite is not None and isinstance(attributes.composite.rule, _Backward)
    rule = attributes.composite.rule
    residuals = [o for o in operands[rule.count :] if not isinstance(o, Linear)]
    return [*rule.run(residuals, cts), *(None for _ in residuals)]


COMPOSITE_TRANSPOSE[TANGENT_OF_CUSTOM_VJP] = _tangent_transpose


# --- stop_gradient


def _stop_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    results = bind_call(attributes.to_apply, primals, attributes.composite)
    return results, [Zero(r.aval) for r in results]


COMPOSITE_JVP["stop_gradient"] = _stop_jvp
