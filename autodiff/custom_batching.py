"""custom_vmap: functions with batching that the user writes; sequential_vmap: functions that take one element at a
time.

A custom_vmap function is a primitive. Its meaning is the user's function; its rule of vmap is the user's. Its JVP is
such a primitive too, with the JVP of the user's rule as its rule: so `vmap(jvp(f))` is `jvp(vmap(f))`. Reverse mode
differentiates the function itself.

Names, arguments and errors follow jax.custom_batching.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast

from ..hlo.support.tracebacks import boundaries
from ..tracer import ops
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import overlaid, storage_of
from ..tracer.aval import ShapedArray
from ..tracer.control_flow.scan import map as map_rows
from ..tracer.core import EVAL, Call, Primitive, Value, bind_call, current_trace, run_meaning
from ..tracer.recording import with_computation, with_parameters
from ..tracer.source import function_line
from ..tracer.trees import tree
from ..tracer.wrapping import annotated_as_wrapped
from .batches import Axis
from .batching import batch_flat
from .custom import Arguments, OtherRules, Outputs, positional
from .jvp import jvp_computation, jvp_flat, moving_mask
from .linearize import linearize_meaning
from .tangents import Tangent, Zero, instantiate

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

BatchRule = Callable[[int, Sequence[bool], Sequence[Value]], tuple[list[Value], list[bool]]]
"""rule(axis size, which operands are batched, values) -> (results, which are batched)."""

CUSTOM_VMAP = Primitive("custom_vmap", evaluate=run_meaning, linearize=linearize_meaning)
"""The parameters of a call: its `BatchRule`."""


@CUSTOM_VMAP.def_batch
def _custom_vmap_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    own = len(operands) - call.captured
    if any(batched[own:]):
        raise ValueError(
            f"{call.label} closes over a value that is batched by vmap: its rule knows only of its arguments. Make "
            "that value an argument."
        )
    results, found = call.params(axis.size, list(batched[:own]), list(operands[:own]))
    return results, found


@CUSTOM_VMAP.def_jvp
def _custom_vmap_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    """One call, on the primals and those tangents that are not zero, which has a rule for `vmap` again."""
    own = len(primals) - call.captured
    moving = moving_mask(tangents)
    results = [s.element.is_inexact for s in call.computation.root.shape.elements]
    derived = jvp_computation(call.computation, moving, tuple(results))
    directions: list[Any] = [t for t in tangents[:own] if not isinstance(t, Zero)]
    outside: list[Any] = [*primals[own:], *(t for t in tangents[own:] if not isinstance(t, Zero))]
    middle, end = len(primals) + len(directions), len(derived.computation.parameters)
    order = [*range(own), *range(len(primals), middle), *range(own, len(primals)), *range(middle, end)]
    new = Call(
        CUSTOM_VMAP,
        with_parameters(derived.computation, order, derived.computation.name),  # captured values come after arguments
        _rule_of_jvp(call.params, own, moving[:own], derived.moves),
        call.label,
        call.attributes,
        len(outside) + len(derived.captured),
    )
    return derived.unpack(bind_call(new, [*primals[:own], *directions, *outside, *derived.captured]))


def _rule_of_jvp(rule: BatchRule, own: int, moving: Sequence[bool], moves: Sequence[bool]) -> BatchRule:
    """The rule of the JVP: the JVP of `rule`.

    An argument and its tangent may differ in whether they are batched. Then `rule` gets the argument as not batched,
    and its computation is batched over the one of them that is.
    """

    def rule_of_jvp(size: int, batched: Sequence[bool], values: Sequence[Value]) -> tuple[list[Value], list[bool]]:
        of_tangents = iter(batched[own:])
        both = [p and next(of_tangents) if m else p for p, m in zip(batched[:own], moving, strict=True)]
        both_moving = [b for b, m in zip(both, moving, strict=True) if m]
        extra = [b and not known for b, known in zip(batched, [*both, *both_moving], strict=True)]
        axis = Axis(None, size)
        inner: list[bool] = []

        def on_arguments(arguments: list[Value]) -> list[Value]:
            found, inner[:] = rule(size, both, arguments)
            return found

        def run(flat: list[Value]) -> list[Value]:
            given = iter(flat[own:])
            directions = [next(given) if m else Zero(v.aval) for v, m in zip(flat[:own], moving, strict=True)]
            results, tangents = jvp_flat(on_arguments, flat[:own], directions)
            return [*results, *(instantiate(t) for t, m in zip(tangents, moves, strict=True) if m)]

        found, outer = batch_flat(run, axis, values, extra)
        inner += [b for b, m in zip(inner, moves, strict=True) if m]
        out = [_diagonal(v, size) if i and o else v for v, i, o in zip(found, inner, outer, strict=True)]
        return out, [i or o for i, o in zip(inner, outer, strict=True)]

    return rule_of_jvp


def _diagonal(x: Value, size: int) -> Value:
    """The elements on the diagonal of the first two dimensions, both of `size`."""
    rows = ops.reshape(x, (size * size, *x.aval.shape[2:]))
    strides = (size + 1, *[1] * (rows.aval.ndim - 1))
    return ops.slice_(rows, [0] * rows.aval.ndim, rows.aval.shape, strides)


@boundaries
@annotated_as_wrapped
class custom_vmap(OtherRules, Generic[P, R]):
    """A function with its own rule for `vmap`. JAX's `custom_batching.custom_vmap`.

    ``rule(axis_size, in_batched, *args)``, which `def_vmap` takes, returns (result, which arrays of it are batched).
    `in_batched` has the structure of the arguments with a bool for each array: whether it has the batch, along axis 0.
    `jvp` and `vmap` together follow the rule, in either order. Reverse mode follows the function, unless `vmap` is
    applied first.

    >>> @hloom.custom_batching.custom_vmap
    ... def double(x):
    ...     return 2 * x
    >>> @double.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     print("a batch of", axis_size)
    ...     return 2 * x, True
    >>> hloom.vmap(double)(jnp.array([1, 2, 3]))
    a batch of 3
    Array([2, 4, 6], dtype=int32)
    """

    __qualname__: str

    def __init__(self, fun: Callable[P, R]) -> None:
        functools.update_wrapper(self, fun)
        self.fun: Callable[..., Any] = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: F) -> F:
        """Set the rule; returns it, for use as a decorator.

        >>> @hloom.custom_batching.custom_vmap
        ... def f(x):
        ...     return 2 * x
        >>> rule = f.def_vmap(lambda axis_size, in_batched, x: (2 * x + axis_size, True))
        >>> hloom.vmap(f)(jnp.zeros(3))
        Array([3., 3., 3.], dtype=float32)
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {function_line(self.fun)} using def_vmap."
            )
        user_rule = self.vmap_rule
        given = Arguments(self.fun, frozenset(), positional(self.fun, args, kwargs, "custom_vmap"))
        out = Outputs()

        def meaning(values: Sequence[Value]) -> list[Value]:
            return out.flatten(self.fun(*given.rebuilt(values)))

        def rule(size: int, batched: Sequence[bool], values: Sequence[Value]) -> tuple[list[Value], list[bool]]:
            full = [_with_batch(v, a, size, b) for v, a, b in zip(values, given.avals, batched, strict=True)]
            arguments = tree.unflatten(given.tree, full)
            answer = user_rule(size, list(tree.unflatten(given.tree, list(batched))), *arguments)
            return _checked(user_rule, out, size, answer)

        name = getattr(self.fun, "__name__", type(self.fun).__name__)
        call = Call(CUSTOM_VMAP, meaning, rule, name, (("name", name),))
        captured: list[Value] = []
        if current_trace() is not EVAL:  # the function may use traced values from outside
            call, captured = with_computation(call, given.values)
        results = bind_call(call, [*given.values, *captured])
        result: R = out.unflatten(results)
        return result


def _with_batch(storage: Value, aval: ShapedArray, size: int, is_batched: bool) -> Value:
    """An argument of the rule: keys are keys there."""
    return overlaid(storage, ShapedArray((size, *aval.shape), aval.dtype) if is_batched else aval)


def _checked(rule: Callable[..., Any], out: Outputs, size: int, answer: Any) -> tuple[list[Value], list[bool]]:
    """The rule's results, as storage, and which are batched."""
    where, name = f"the batching rule {function_line(rule)}", getattr(rule, "__name__", str(rule))
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise ValueError(
            f"{where} must return a pair (result, which arrays of it are batched), but got {type(answer).__name__}"
        )
    leaves, structure = tree.flatten(answer[0])
    flags, flags_structure = tree.flatten(answer[1])
    if structure != flags_structure:
        raise ValueError(
            f"structure of output value and output batching specification returned by custom vmap rule ({name}) do not "
            f"match: {where} returned {structure} and {flags_structure}"
        )
    if structure != out.tree:
        raise ValueError(
            f"structure of output returned by custom vmap rule ({name}) does not match that of original custom-vmapped "
            f"function: {where} returned {structure}, the function {out.tree}"
        )
    values = [as_value(leaf) for leaf in leaves]
    for value, flag, aval in zip(values, flags, out.avals, strict=True):
        wanted = (size, *aval.shape) if flag else aval.shape
        if value.aval.shape != wanted or value.aval.dtype != aval.dtype:
            expected = ShapedArray(wanted, aval.dtype).str_short()
            raise ValueError(f"{where} returned {value.aval.str_short()} where {expected} must be")
    return [storage_of(v) for v in values], [bool(f) for f in flags]


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """`f`, which `vmap` computes one element after the other, by `lax.map`.

    >>> @hloom.custom_batching.sequential_vmap
    ... def f(x):
    ...     return jnp.sum(x) * x  # written for one element; needs the memory of one
    >>> hloom.vmap(f)(jnp.array([[1, 2], [3, 4]]))
    Array([[ 3,  6],
           [21, 28]], dtype=int32)
    """
    function = custom_vmap(f)
    one = cast("Callable[..., Any]", function)  # which a further vmap finds in the loop

    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, Any]:
        flags, structure = tree.flatten(tuple(in_batched))
        values = tree.leaves(args)
        moving = [v for v, b in zip(values, flags, strict=True) if b]

        def element(rows: list[Any]) -> Any:
            given = iter(rows)
            full = [next(given) if b else v for v, b in zip(values, flags, strict=True)]
            return one(*tree.unflatten(structure, full))

        result = map_rows(element, moving)
        return result, tree.map(lambda _: True, result)

    function.def_vmap(rule)
    return function
