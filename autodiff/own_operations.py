"""Operations on values of own types within transformations: functions of the arrays of these values, with the rules
that the operations state. `hloom.experimental.hijax` has the classes of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tracer.arguments import ShapeDtypeStruct
from ..tracer.aval import ShapedArray
from ..tracer.own_values import (
    Opened,
    OwnValue,
    all_entered,
    all_raised,
    carrier_type,
    entered,
    is_like_its_tangent,
    lowered_types,
    opened,
    parts_of_tangent,
    tangent_from,
    zero_of,
)
from ..tracer.trees import tree
from .custom import custom_jvp, custom_vjp
from .functions import linear_transpose

Rule = Callable[..., Any]


class _Taken:
    """A function of values of own types as one of their arrays, with the result that it returned last."""

    def __init__(self, args: Any, out_avals: Sequence[Any], out_tree: Any) -> None:
        self.given = opened(all_entered(args))
        self._out_avals, self._out_tree = out_avals, out_tree
        self._made: Opened | None = None

    def args(self, parts: Sequence[Any]) -> Any:
        """The arguments, as containers."""
        leaves, structure = self.given.closed_leaves(parts)
        return tree.unflatten(structure, leaves)

    def objects(self, parts: Sequence[Any]) -> Any:
        """The arguments, as objects of the libraries."""
        return all_raised(self.args(parts))

    def parts(self, result: Any) -> list[Any]:
        """The result taken apart."""
        leaves = tree.flatten_up_to(self._out_tree, result)
        kinds = [isinstance(a, ShapedArray) for a in self._out_avals]
        full = [x if is_array else entered(x, a) for x, is_array, a in zip(leaves, kinds, self._out_avals, strict=True)]
        self._made = opened(tree.unflatten(self._out_tree, full))
        found: list[Any] = self._made.parts
        return found

    def result(self, parts: Sequence[Any]) -> Any:
        """The result, by its parts."""
        assert self._made is not None, "the function was not called"
        return self._made.closed(parts)

    def tangents(self, parts: Sequence[Any]) -> Any:
        """The tangents of the arguments."""
        return tree.unflatten(self.given.structure, _tangents(parts, self.given.avals))

    def tangent(self, parts: Sequence[Any]) -> Any:
        """The tangent, or the cotangent, of the result."""
        own = [None if isinstance(a, ShapedArray) else a for a in self._out_avals]
        return tree.unflatten(self._out_tree, _tangents(parts, own))

    def parts_of_tangent(self, tangent: Any) -> list[Any]:
        """The tangents of the parts of the result."""
        leaves = tree.flatten_up_to(self._out_tree, tangent)
        return [
            x if isinstance(a, ShapedArray) else parts_of_tangent(a, x, zero_of)
            for x, a in zip(leaves, self._out_avals, strict=True)
        ]

    def by(self, rule: Rule) -> Rule:
        """A rule for forward mode on arrays: `rule(arguments, tangents)` returns (result, its tangent)."""

        def run(primals: Any, tangents: Any) -> Any:
            result, moved = rule(self.args(primals), self.tangents(tangents))
            return self.parts(result), self.parts_of_tangent(moved)

        return run


def _tangents(parts: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    return [x if a is None else tangent_from(a, *x) for x, a in zip(parts, avals, strict=True)]


def operation_on_own_values(operation: Any, args: tuple[Any, ...]) -> Any:
    """A `VJPHiPrimitive` on values of own types, which are traced."""
    taken = _Taken(args, operation.out_avals_flat, operation.out_tree)

    def run(*parts: Any) -> Any:
        return taken.parts(operation.expand(*taken.objects(parts)))

    def forward(*parts: Any) -> Any:
        result, residuals, *_ = operation.vjp_fwd(operation._all_move(), *taken.args(parts))
        return taken.parts(result), all_entered(residuals)

    def backward(residuals: Any, cotangent: Any) -> Any:
        sums = operation._pulled_back(residuals, taken.tangent(cotangent))
        return tuple([_cotangent(x, a) for x, a in zip(sums, operation.in_avals_flat, strict=True)])

    run.__name__ = type(operation).__name__
    forwards = operation._forward_rule()
    forwards = forwards and taken.by(forwards)
    types = *operation.in_avals_flat, *operation.out_avals_flat
    if operation._has_reverse_rule() or (forwards is None and any(not _is_array(a) and carrier_type(a) for a in types)):
        reverse = custom_vjp(run)
        reverse.defvjp(forward, backward)
        reverse.forwards = forwards
        found = reverse(*taken.given.parts)
    elif forwards is not None:
        moving = custom_jvp(run)
        moving.defjvp(forwards)
        found = moving(*taken.given.parts)
    else:
        found = run(*taken.given.parts)
    return taken.result(found)


def _is_array(aval: Any) -> bool:
    return isinstance(aval, ShapedArray)


def _cotangent(value: Any, aval: Any) -> Any:
    """The cotangents of the parts of an argument."""
    if value is None or _is_array(aval):
        return value
    return parts_of_tangent(aval, value, lambda _: None)


def primitive_on_own_values(
    primitive: Any, operands: Sequence[Any], results: Sequence[Any], params: dict[str, Any]
) -> Any:
    """A `HiPrimitive` on values of own types, which are traced. `results`: the types of its results."""
    several = primitive.multiple_results
    taken = _Taken(tuple(operands), results, tree.structure([0] * len(results) if several else 0))

    def run(*parts: Any) -> Any:
        return taken.parts(primitive.to_lojax(*taken.objects(parts), **params))

    def rule(primals: Any, tangents: Any) -> Any:
        return primitive.jvp(primals, tangents, **params)

    run.__name__ = primitive.name
    if primitive._has_jvp():
        moving = custom_jvp(run)
        moving.defjvp(taken.by(rule))
        return taken.result(moving(*taken.given.parts))
    return taken.result(run(*taken.given.parts))


def linear_pullback(linear: Rule, in_tree: Any, in_avals: Sequence[Any], cotangent: Any) -> tuple[Any, ...]:
    """The cotangents of the arguments of a function that is linear in their tangents; `in_avals` are the types of the
    arguments themselves."""
    own = [None if _is_array(a) else a for a in in_avals]

    def flat(*parts: Any) -> Any:
        return opened(all_entered(linear(*tree.unflatten(in_tree, _tangents(parts, own))))).parts

    examples = [_example(a) for a in in_avals]
    parts = linear_transpose(flat, *examples)(opened(all_entered(cotangent)).parts)
    found: tuple[Any, ...] = tuple(tree.unflatten(in_tree, _tangents(parts, own)))
    return found


def _example(aval: Any) -> Any:
    """The type of the tangent of an argument, taken apart."""
    if _is_array(aval):
        return ShapeDtypeStruct(aval.shape, aval.dtype)
    if is_like_its_tangent(aval):
        return tuple([ShapeDtypeStruct(a.shape, a.dtype) for a in lowered_types(aval)]), None
    moved = carrier_type(aval)
    if moved is None or _is_array(moved):
        return (), moved and ShapeDtypeStruct(moved.shape, moved.dtype)
    arrays = tuple([ShapeDtypeStruct(a.shape, a.dtype) for a in lowered_types(moved)])
    return (), OwnValue(moved, arrays, None)
