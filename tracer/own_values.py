"""Values of types that libraries declare (`hloom.experimental.hijax.HiType`), while functions are traced.

A program has arrays only. So a value of an own type is a container within transformations: of the arrays that the type
lowers it to, and of a tangent. An `OwnValue` is this container; an object of the library's class becomes one where it
enters a traced function, and one that leaves all transformations becomes such an object again. In trees the objects are
leaves, and the containers are nodes.

The type says which tangents its values have. If these are the tangents of the arrays, the arrays carry them.
Otherwise the container has a further array of the tangent's type, `carrier`: its elements are zeros that nothing reads,
and its tangent is the tangent of the value. So derivatives of such values need no rules in transformations.

Names and semantics follow jax.experimental.hijax.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..hlo.errors import UnsupportedError
from ..hlo.support.records import dataclass
from . import ops
from .arguments import OWN_TYPES, OWN_VALUES
from .arrays.array import Array, as_value
from .arrays.float0 import float0
from .aval import ShapedArray
from .core import EVAL, current_trace
from .trees import tree

_CLASSES: set[type] = set()
"""The libraries' classes."""


class OwnValue:
    """A value of an own type within transformations.

    Its attributes are those of the type: methods and properties that the type declares for its values, and others.
    """

    __slots__ = ("_arrays", "_carrier", "aval")

    aval: Any
    """The own type."""

    def __init__(self, aval: Any, arrays: tuple[Any, ...], carrier: Any) -> None:
        self.aval, self._arrays, self._carrier = aval, arrays, carrier

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            found = getattr(self.aval, name)
        except AttributeError:
            raise AttributeError(
                f"{type(self.aval).__name__} has no attribute {name!r}: within transformations a value is known by its "
                "type. Take it apart by an operation of its library"
            ) from None
        declared: Any = getattr(type(self.aval), name, None)
        if hasattr(declared, "fget") and not isinstance(declared, property):
            return declared.fget(self)
        if hasattr(declared, "fun"):
            return lambda *args, **kwargs: declared.fun(self, *args, **kwargs)
        return found

    def __repr__(self) -> str:
        return f"OwnValue<{self.aval}>"


def is_own(x: Any) -> bool:
    """Whether `x` is a value of an own type whose values cannot change."""
    kind = type(x)
    return kind is OwnValue or (kind in _CLASSES and not OWN_TYPES[kind](x).has_qdd)


def has_own(*trees: Any) -> bool:
    """Whether there is a value of an own type in one of the trees."""
    return any(map(is_own, tree.leaves(trees, is_own)))


# ---- types


def lowers(aval: Any) -> bool:
    """Whether the type says which arrays its values have. Others are opaque: only their tangents are traced."""
    return not getattr(type(aval).lo_ty, "is_missing", False)


def lowered_types(aval: Any) -> list[ShapedArray]:
    """The types of the arrays of a value."""
    return list(aval.lo_ty()) if lowers(aval) else []


def is_like_its_tangent(aval: Any) -> bool:
    """Whether the tangents of a value are the tangents of its arrays."""
    moved = None if getattr(type(aval).to_tangent_aval, "is_missing", False) else aval.to_tangent_aval()
    if moved is None or isinstance(moved, ShapedArray) or not lowers(moved):
        return False
    pairs = lowered_types(aval), lowered_types(moved)
    return len(pairs[0]) == len(pairs[1]) and all(_like(a.to_tangent_aval(), b) for a, b in zip(*pairs, strict=True))


def _like(one: Any, other: Any) -> bool:
    return bool(one.shape == other.shape and one.dtype == other.dtype)


def carrier_type(aval: Any) -> Any:
    """The type of the carrier of a value; None if the arrays carry its tangents, or if it is not differentiated."""
    if getattr(type(aval).to_tangent_aval, "is_missing", False) or is_like_its_tangent(aval):
        return None
    moved = aval.to_tangent_aval()
    if isinstance(moved, ShapedArray):
        return moved
    can_move = lowers(moved) and all(ops.is_inexact(a.dtype) for a in lowered_types(moved))
    return moved if can_move and is_like_its_tangent(moved) else None


def _no_carrier(aval: Any) -> Any:
    """The carrier of a value that does not move: zeros."""
    moved = carrier_type(aval)
    if moved is None or isinstance(moved, ShapedArray):
        return None if moved is None else ops.zeros(moved)
    return OwnValue(moved, tuple([ops.zeros(a) for a in lowered_types(moved)]), None)


# ---- containers


@dataclass(frozen=True, slots=True)
class _Kind:
    """The structure of an `OwnValue`."""

    aval: Any
    held: Any
    """The object, if it does not say its arrays."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and self.held is other.held and bool(self.aval == other.aval)

    def __hash__(self) -> int:
        return hash(self.aval)


def register(kind: type, type_of: Callable[[Any], Any]) -> None:
    """Let the objects of a class be values of own types: `type_of(object)`."""
    OWN_TYPES[kind] = type_of
    OWN_TYPES[OwnValue] = lambda value: value.aval
    _CLASSES.add(kind)
    OWN_VALUES[:] = [sys.modules[__name__]]


def _flatten(value: OwnValue) -> tuple[Any, Any]:
    if lowers(value.aval):
        return (*value._arrays, value._carrier), _Kind(value.aval, None)
    return (value._carrier,), _Kind(value.aval, value._arrays[0])


def _unflatten(kind: _Kind, children: Any) -> Any:
    *arrays, carrier = children
    made = OwnValue(kind.aval, tuple(arrays) if lowers(kind.aval) else (kind.held,), carrier)
    return left(made) if current_trace() is EVAL else made


tree.register_pytree_node(OwnValue, _flatten, _unflatten)


def entered(value: Any, aval: Any = None) -> OwnValue:
    """A value of an own type as a container. `aval`: the type that it must have."""
    if isinstance(value, OwnValue):
        return value
    aval = OWN_TYPES[type(value)](value) if aval is None else aval
    arrays = tuple([as_value(x) for x in aval.lower_val(value)]) if lowers(aval) else (value,)
    return OwnValue(aval, arrays, _no_carrier(aval))


def all_entered(value: Any) -> Any:
    """The tree with containers for its values of own types."""
    return tree.map(lambda x: entered(x) if is_own(x) else x, value, is_leaf=is_own) if _CLASSES else value


def for_programs(value: Any) -> Any:
    """The same, for a program; NotImplementedError for a value that does not say its arrays."""
    found = all_entered(value)
    for leaf in tree.leaves(found, is_own):
        if isinstance(leaf, OwnValue):
            required(leaf.aval, "lo_ty", "a program")
    return found


def raised(value: Any) -> Any:
    """The object of the library's class, with traced arrays perhaps: for the definition of an operation."""
    if not isinstance(value, OwnValue):
        return value
    return value.aval.raise_val(*value._arrays) if lowers(value.aval) else value._arrays[0]


def all_raised(value: Any) -> Any:
    """The tree with objects of the libraries' classes."""
    return tree.map(raised, value, is_leaf=is_own)


def left(value: OwnValue) -> Any:
    """The object of the library's class, if all is known; else the container."""
    known = all(isinstance(x, Array) for x in value._arrays) or not lowers(value.aval)
    return raised(value) if known else value


# ---- values, taken apart


@dataclass(slots=True)
class Opened:
    """A tree with tuples (arrays, carrier) in the places of its values of own types."""

    parts: Any
    structure: Any
    avals: list[Any]
    """The own type in the place of each leaf of `structure`; None where there is another leaf."""
    held: list[Any]

    @property
    def shown(self) -> str:
        """Its structure and own types, for messages."""
        own = ", ".join([str(a) for a in self.avals if a is not None])
        return f"{tree.describe(self.structure)} with {own}"

    def closed(self, parts: Any, change: Callable[[Any], Any] = lambda aval: aval) -> Any:
        """The tree with other arrays. `change`: from the types that the values had to those that they have. Outside of
        transformations its values are objects of their libraries."""
        leaves, structure = self.closed_leaves(parts, change)
        is_outside = current_trace() is EVAL
        return tree.unflatten(structure, [left(x) if is_outside and isinstance(x, OwnValue) else x for x in leaves])

    def closed_leaves(self, parts: Any, change: Callable[[Any], Any] = lambda aval: aval) -> tuple[list[Any], Any]:
        """The leaves of the tree with other arrays, and its structure."""
        leaves = list(parts)
        for k, aval in enumerate(self.avals):
            if aval is not None:
                arrays, carrier = leaves[k]
                leaves[k] = OwnValue(change(aval), tuple(arrays) if lowers(aval) else (self.held[k],), carrier)
        return leaves, self.structure


def opened(value: Any) -> Opened:
    """A tree with values of own types, taken apart."""
    leaves, structure = tree.flatten(value, is_own)
    parts: list[Any] = []
    avals: list[Any] = []
    held: list[Any] = []
    for leaf in leaves:
        own = entered(leaf) if is_own(leaf) else None
        avals.append(own and own.aval)
        held.append(own and (None if lowers(own.aval) else own._arrays[0]))
        parts.append(leaf if own is None else (own._arrays if lowers(own.aval) else (), own._carrier))
    return Opened(parts, structure, avals, held)


# ---- tangents


def tangent_from(aval: Any, arrays: Sequence[Any], carrier: Any) -> Any:
    """The tangent of a value of type `aval`, by the tangents of its arrays and of its carrier."""
    if carrier is not None:
        return carrier
    required(aval, "to_tangent_aval", "a derivative")
    if not is_like_its_tangent(aval):
        raise UnsupportedError(
            f"{aval} has tangents of type {aval.to_tangent_aval()}, an own type with arrays that are no floats: "
            "values of such types are not differentiated\n  Let to_tangent_aval return the type of an array, or a type "
            "with the tangents of its arrays."
        )
    made = OwnValue(aval.to_tangent_aval(), tuple(arrays), None)
    return left(made) if current_trace() is EVAL else made


def parts_of_tangent(aval: Any, tangent: Any, zero: Callable[[ShapedArray], Any]) -> tuple[tuple[Any, ...], Any]:
    """(the tangents of the arrays, the tangent of the carrier) of a value of type `aval`, from its tangent. `zero`
    makes the tangent of an array that does not move."""
    if is_like_its_tangent(aval):
        given = tangent if isinstance(tangent, OwnValue) else entered(tangent, aval.to_tangent_aval())
        return tuple(given._arrays), None
    if carrier_type(aval) is None:
        tangent_from(aval, (), None)
    moved = entered(tangent) if is_own(tangent) else tangent
    return tuple([zero(a) for a in lowered_types(aval)]), moved


def zero_of(aval: ShapedArray) -> Any:
    """The tangent of an array that does not move."""
    return ops.zeros(aval) if ops.is_inexact(aval.dtype) else np.zeros(aval.shape, float0)


# ---- batches


def batch_axes(element: Any, size: int, spec: Any) -> tuple[list[int | None], list[int | None]]:
    """The batch axes of the arrays of a batch of `size` values of type `element`, and of its carrier's arrays; None for
    an array that all elements share. UnsupportedError if the type of a batch has no dimension of its size."""
    sizes = {d for a in (*lowered_types(element), *_moved_types(element)) for d in a.shape}
    unique = next(n for n in range(size + 1, size + len(sizes) + 2) if n not in sizes)
    other = required(element, "inc_rank", "vmap")(unique, spec)
    arrays = [_axis(a, b, unique) for a, b in zip(lowered_types(element), lowered_types(other), strict=True)]
    moved = [_axis(a, b, unique) for a, b in zip(_moved_types(element), _moved_types(other), strict=True)]
    return arrays, moved


def element_axes(whole: Any, element: Any, size: int, spec: Any) -> tuple[list[int | None], list[int | None]]:
    """As `batch_axes`, where the type of the batch is known: arrays with the type of an element's are shared."""
    arrays, moved = batch_axes(element, size, spec)
    for axes, types in ((arrays, lowered_types), (moved, _moved_types)):
        for k, (a, b) in enumerate(zip(types(element), types(whole), strict=True)):
            if a.shape == b.shape:
                axes[k] = None
    return arrays, moved


def required(aval: Any, method: str, what: str) -> Callable[..., Any]:
    """A method that a type must have for a transformation; NotImplementedError where its class does not define it."""
    found = getattr(aval, method)
    if getattr(getattr(type(aval), method), "is_missing", False):
        raise NotImplementedError(f"{what} requires {type(aval)} to implement the `{method}` method")
    return found  # type: ignore[no-any-return]


def _moved_types(aval: Any) -> list[ShapedArray]:
    """The types of the arrays of a carrier."""
    moved = carrier_type(aval)
    if moved is None or isinstance(moved, ShapedArray):
        return [] if moved is None else [moved]
    return lowered_types(moved)


def _axis(element: ShapedArray, batch: ShapedArray, size: int) -> int | None:
    if len(batch.shape) <= len(element.shape):
        return None
    if size not in batch.shape:
        raise UnsupportedError(f"a batch of {size} elements of {element} as {batch}: no dimension holds the elements")
    return batch.shape.index(size)
