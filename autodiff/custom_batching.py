"""custom_vmap: functions whose batching the user writes; sequential_vmap: functions that take one element at a time.

A custom_vmap function is a primitive. Its meaning is the user's function, which its derivatives follow too; its rule of
vmap is the user's.

Source for names, arguments and errors: jax.custom_batching.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast

from ..hlo.tracebacks import boundaries
from ..tracer import tree
from ..tracer.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.core import Call, Primitive, Value, run_meaning
from ..tracer.overlay import overlaid, storage_of
from ..tracer.scan import map as map_rows
from ..tracer.source import function_line, user_line
from .batches import Axis
from .custom import Arguments, Outputs, bind_custom, positional

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

CUSTOM_VMAP = Primitive("custom_vmap", evaluate=run_meaning)
"""The parameters of a call: rule(axis size, which operands are batched, values) -> (results, which are batched)."""


@CUSTOM_VMAP.def_batch
def _custom_vmap_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    own = len(operands) - call.captured
    if any(batched[own:]):
        raise ValueError(
            f"{call.label} closes over a value that is batched by vmap: its rule knows only of its arguments. Make "
            f"that value an argument.\n  at {user_line()}"
        )
    results, found = call.params(axis.size, list(batched[:own]), list(operands[:own]))
    return results, found


@boundaries
class custom_vmap(Generic[P, R]):
    """A function with its own rule for `vmap`. JAX's `custom_batching.custom_vmap`.

        @custom_vmap
        def f(x, y): ...

        @f.def_vmap
        def f_vmap(axis_size, in_batched, x, y):    # -> (result, which arrays of it are batched)

    `in_batched` has the structure of the arguments with a bool for each array: whether it has the batch, along axis 0.
    The rule returns such a tree for its result. Derivatives are those of the function itself.
    """

    __qualname__: str

    def __init__(self, fun: Callable[P, R]) -> None:
        functools.update_wrapper(self, fun)
        self.fun: Callable[..., Any] = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: F) -> F:
        """Set the rule; returns it, for use as a decorator."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {function_line(self.fun)} using def_vmap."
            )
        user_rule = self.vmap_rule
        given = Arguments(frozenset(), positional(self.fun, args, kwargs))
        out = Outputs()

        def meaning(values: Sequence[Value]) -> list[Value]:
            return out.flatten(self.fun(*given.rebuilt(values)))

        def rule(size: int, batched: Sequence[bool], values: Sequence[Value]) -> tuple[list[Value], list[bool]]:
            full = [_with_batch(v, a, size, b) for v, a, b in zip(values, given.avals, batched, strict=True)]
            arguments = tree.unflatten(given.tree, full)
            answer = user_rule(size, list(tree.unflatten(given.tree, list(batched))), *arguments)
            return _checked(user_rule, out, size, answer)

        results = bind_custom(CUSTOM_VMAP, self.fun, meaning, rule, given.values)
        result: R = out.unflatten(results)
        return result


def _with_batch(storage: Value, aval: ShapedArray, size: int, is_batched: bool) -> Value:
    """An argument of the rule: keys are keys there."""
    return overlaid(storage, ShapedArray((size, *aval.shape), aval.dtype) if is_batched else aval)


def _checked(
    rule: Callable[..., Any], out: Outputs, size: int, answer: Any
) -> tuple[list[Value], list[bool]]:
    """The rule's results, as storage, and which are batched."""
    where = f"the batching rule {function_line(rule)}"
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise ValueError(
            f"{where} must return a pair (result, which arrays of it are batched), but got {type(answer).__name__}"
        )
    leaves, structure = tree.flatten(answer[0])
    flags, flags_structure = tree.flatten(answer[1])
    if structure != flags_structure:
        raise ValueError(
            f"structure of output value and output batching must match: {where} returned {tree.shown(structure)} and "
            f"{tree.shown(flags_structure)}"
        )
    if structure != out.tree:
        raise ValueError(
            f"structure of primal outputs must match: {where} returned {tree.shown(structure)}, the function "
            f"{tree.shown(out.tree)}"
        )
    values = [as_value(leaf) for leaf in leaves]
    for value, flag, aval in zip(values, flags, out.avals, strict=True):
        wanted = (size, *aval.shape) if flag else aval.shape
        if value.aval.shape != wanted or value.aval.dtype != aval.dtype:
            expected = ShapedArray(wanted, aval.dtype).str_short()
            raise ValueError(f"{where} returned {value.aval.str_short()} where {expected} must be")
    return [storage_of(v) for v in values], [bool(f) for f in flags]


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """`f`, of which `vmap` computes one element after the other, by `lax.map`."""
    function, one = custom_vmap(f), cast("Callable[..., Any]", f)

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
