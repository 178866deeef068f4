"""`x[mask]` where the mask's values are not known: elements whose number is not known.

No array has such a shape. A `Selection` stands for these elements until a reduction makes an array of them: it holds
the array from which the mask chooses, and the mask. Functions of single elements make another Selection; reductions
(functions with the arguments `axis` and `where`) and products of matrices make an array; `x.at[mask].set` takes one,
too. Everything else asks for an array, as all functions do, by `__jax_array__`, which raises JAX's error. Functions of
elements and reductions catch it and come here (`ConcretizationTypeError.of_elements`, `.of_all`), so that they cost
nothing where there is no Selection.

An element that the mask does not choose is replaced by the first one that it does choose. So no function meets an
element that `x[mask]` does not have, and the derivative of `jnp.log(x[x > 0]).sum()` is a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from .. import lax
from ..hlo.effects import has_side_effect
from ..hlo.ir import HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.support.records import dataclass
from ..lax.reduce import limits
from ..tracer import dtypes
from ..tracer.arrays.operators import ArrayBase, implementation
from ..tracer.core import Value
from ..tracer.errors import ConcretizationTypeError
from ..tracer.recording import RecordedTracer
from .promotion import canonical_axes

_EXTREMA = {"max": 0, "amax": 0, "min": 1, "amin": 1}
"""Reductions without a value for no elements: they start from the dtype's least (0) or greatest (1) value."""
_WITHOUT_NAN = {"nanmax": 0, "nanmin": 1}
"""As `_EXTREMA`, but of floats without one that is not NaN the result is NaN."""
_PRODUCTS = frozenset({"dot", "matmul", "vdot", "inner"})
_OF_ELEMENTS = frozenset({
    "bitwise_count", "clip", "copysign", "divmod", "floor_divide", "fmax", "fmin", "fmod", "frexp", "gcd", "heaviside",
    "hypot", "isclose", "lcm", "ldexp", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "mod",
    "modf", "remainder", "sinc", "spacing",
})  # fmt: skip
"""Functions of single elements that are programs of their own (`compound`)."""
_DEPTH = 16
"""How many operations deep two masks are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The elements of an array that a traced mask chooses: the result of `x[mask]`."""

    values: Value
    """The array; its dimension `axis` has an entry for each element of the mask."""
    axis: int
    """The dimension of the chosen elements, from the end: -1 is the last one."""
    chosen: Value
    """The mask, as a vector."""
    mask: Value
    """The mask as it was given."""
    error: ConcretizationTypeError
    """It is raised where the number of elements is needed."""

    __array_priority__ = 200
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    @classmethod
    def of(cls, array: Value, start: int, place: int, mask: Value, error: ConcretizationTypeError) -> Selection:
        """The elements that `mask` chooses along the dimensions of `array` from `start` on, as the dimension `place` of
        the result."""
        rank, shape = mask.aval.ndim, array.aval.shape
        size = math.prod(mask.aval.shape)
        values = lax.reshape(array, (*shape[:start], size, *shape[start + rank :]))
        if place != start:
            order = [d for d in range(values.aval.ndim) if d != start]
            order.insert(place, start)
            values = lax.transpose(values, order)
        error.unread = cls
        found = cls(values, place - values.aval.ndim, lax.reshape(mask, (size,)), mask, error)
        return found.with_values(found._without_others(), found.axis) if size else found

    def _without_others(self) -> Value:
        """The values with the first chosen one in place of each that is not chosen; 1 if none is."""
        place = lax.argmax(lax.convert_element_type(self.chosen, np.int8), 0, np.int32)
        first = lax.dynamic_slice_in_dim(self.values, place, 1, self.values.aval.ndim + self.axis)
        is_chosen = lax.dynamic_slice_in_dim(self.chosen, place, 1, 0)
        first = lax.select(lax.reshape(is_chosen, ()), first, lax.full_like(first, 1))
        shape = self.values.aval.shape
        return lax.select(self._along(self.chosen), self.values, lax.broadcast_in_dim(first, shape, range(len(shape))))

    def _along(self, vector: Value) -> Value:
        """A vector of the mask's size, broadcast to the shape of the values."""
        shape = self.values.aval.shape
        return lax.broadcast_in_dim(vector, shape, (len(shape) + self.axis,))

    def with_values(self, values: Value, axis: int) -> Selection:
        """Other elements at the same places."""
        return Selection(values, axis, self.chosen, self.mask, self.error)

    def is_beside(self, mask: Value) -> bool:
        """Whether a mask chooses the same places: it is this one, or computed in the same way from the same values."""
        if self.mask is mask:
            return True
        if not (isinstance(self.mask, RecordedTracer) and isinstance(mask, RecordedTracer)):
            return False
        return _same(self.mask.instruction, mask.instruction, _DEPTH)

    def at_mask(self, mask: Value) -> Value:
        """The values, for an update of the elements that a mask chooses: it must be this one."""
        if not self.is_beside(mask):
            raise self.error
        return self.values

    # ---- as an array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.values.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.values.aval.ndim

    @property
    def T(self) -> Selection:
        """The same elements, the dimensions in reverse order."""
        return self.with_values(lax.transpose(self.values, range(self.ndim)[::-1]), -1 - self.ndim - self.axis)

    def astype(self, dtype: Any) -> Selection:
        """The same elements in another dtype."""
        return self.with_values(lax.convert_element_type(self.values, dtype), self.axis)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(ArrayBase, name):
            raise AttributeError(f"the elements of a traced mask have no attribute {name!r}")
        raise self.error

    def _refuse(self, *_: Any) -> Any:
        raise self.error

    __jax_array__ = __array__ = __len__ = __iter__ = __bool__ = __float__ = __int__ = __index__ = _refuse
    __complex__ = __getitem__ = __round__ = _refuse

    def __repr__(self) -> str:
        sizes = list(map(str, self.values.aval.shape))
        sizes[self.axis] = "n"
        return f"Selection({self.dtype.name}[{','.join(sizes)}])"

    # ---- functions of it

    @staticmethod
    def at(index: Any, read: Callable[[Any], Value], error: ConcretizationTypeError) -> Selection:
        """The elements of an array at an index of vectors of chosen elements, such as those of `nonzero`. They index
        its first dimensions; `read` gives the elements at an index of arrays."""
        items = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(i, Selection) and items[0]._fits(i) and i.ndim == 1 for i in items):
            raise error
        found = read(tuple(map(values_of, items)))
        first: Selection = items[0]
        return first.with_values(found, -found.aval.ndim)

    @staticmethod
    def of_elements(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A function of single elements. The other arguments are Selections by the same mask, or broadcast along the
        chosen elements."""
        given = [*args, *kwargs.values()]
        first = next(a for a in given if isinstance(a, Selection))
        if not all(map(first._fits, given)):
            raise first.error
        found = function(*[values_of(a) for a in args], **{k: values_of(a) for k, a in kwargs.items()})
        if isinstance(found, tuple):
            return tuple([first.with_values(f, first.axis) for f in found])
        return first.with_values(found, first.axis)

    def _fits(self, other: Any) -> bool:
        if isinstance(other, Selection):
            return other.axis == self.axis and self.is_beside(other.mask)
        shape = getattr(other, "shape", ())
        return len(shape) < -self.axis or shape[self.axis] == 1

    @staticmethod
    def of_all(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A function that may need no more than the chosen elements: a reduction, a product of matrices, or a function
        of elements."""
        first = next(a for a in (*args, *kwargs.values()) if isinstance(a, Selection))
        name = getattr(function, "__name__", "")
        if name in _OF_ELEMENTS:
            return Selection.of_elements(function, args, kwargs)
        if name in _PRODUCTS and len(args) == 2:
            return first._product(function, args[0], args[1], kwargs)
        bound = signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        operand, where = given.pop(next(iter(given))), given.pop("where", first)
        is_reduction = operand is first and "axis" in given and where is not first
        if not is_reduction or not first._fits(where) or any(isinstance(a, Selection) for a in given.values()):
            raise first.error
        return first._reduced(function, bound)

    def _reduced(self, function: Callable[..., Any], bound: Any) -> Any:
        given, place = bound.arguments, self.ndim + self.axis
        where = values_of(given["where"])
        axes = canonical_axes(given["axis"], self.ndim)
        given[next(iter(given))] = self.values
        if place not in axes:
            given["where"] = where
            later = 0 if given.get("keepdims") else len([d for d in axes if d > place])
            return self.with_values(function(*bound.args, **bound.kwargs), self.axis + later)
        chosen = self._along(self.chosen)
        given["where"] = chosen if where is None else implementation("bitwise_and")(chosen, where)
        kind = (_EXTREMA | _WITHOUT_NAN).get(function.__name__)
        if kind is not None and given["initial"] is None:
            if function.__name__ in _WITHOUT_NAN and dtypes.is_inexact(self.dtype):
                chosen, nan = given.pop("where"), lax.full_like(self.values, np.nan)
                given[next(iter(given))] = lax.select(chosen, self.values, nan)
            elif dtypes.is_complex(self.dtype):
                raise self.error
            else:
                given["initial"] = np.asarray(limits(self.dtype)[kind], self.dtype)
        return function(*bound.args, **bound.kwargs)

    def _product(self, function: Callable[..., Any], a: Any, b: Any, kwargs: Mapping[str, Any]) -> Any:
        """A product of vectors or matrices. Chosen elements are added, or are rows or columns of the result."""
        ranks = [len(s.values.aval.shape if isinstance(s, Selection) else getattr(s, "shape", ())) for s in (a, b)]
        terms = -1, -2 if ranks[1] == 2 and function.__name__ != "inner" else -1
        if set(ranks) <= {1, 2}:
            if isinstance(a, Selection) and isinstance(b, Selection):
                if (a.axis, b.axis) == terms and a.is_beside(b.mask):
                    return function(a._or_zeros(), b._or_zeros(), **kwargs)
            elif self.axis != terms[self is b] and function.__name__ != "vdot":
                is_row = self is a and ranks[1] == 2
                return self.with_values(function(values_of(a), values_of(b), **kwargs), -2 if is_row else -1)
        raise self.error

    def _or_zeros(self) -> Value:
        return lax.select(self._along(self.chosen), self.values, lax.full_like(self.values, 0))


# ---- operators and methods


def _binary(name: str, is_swapped: bool) -> Callable[[Selection, Any], Any]:
    def method(self: Selection, other: Any) -> Any:
        function = Selection.of_all if name in _PRODUCTS else Selection.of_elements
        return function(implementation(name), (other, self) if is_swapped else (self, other), {})

    return method


def _of_itself(name: str) -> Callable[..., Any]:
    def method(self: Selection, *args: Any, **kwargs: Any) -> Any:
        function = Selection.of_all if name in _REDUCTIONS or name in _PRODUCTS else Selection.of_elements
        return function(implementation(name), (self, *args), kwargs)

    return method


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "mod",
    "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "divmod": "divmod",
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_not"}
_REDUCTIONS = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")

for _symbol, _name in (_OPERATORS | _COMPARISONS).items():
    setattr(Selection, f"__{_symbol}__", _binary(_name, False))
for _symbol, _name in _OPERATORS.items():
    setattr(Selection, f"__r{_symbol}__", _binary(_name, True))
for _symbol, _name in _UNARY.items():
    setattr(Selection, f"__{_symbol}__", _of_itself(_name))
for _name in (*_REDUCTIONS, "dot", "clip", "conj", "round"):
    setattr(Selection, _name, _of_itself(_name))


def values_of(given: Any) -> Any:
    return given.values if isinstance(given, Selection) else given


def _same(a: HloInstruction, b: HloInstruction, depth: int) -> bool:
    """Whether two instructions compute the same from the same values."""
    if a is b:
        return True
    if not depth or (a.opcode, a.shape) != (b.opcode, b.shape) or has_side_effect(a) or a.called_computations():
        return False
    if a.opcode is Opcode.CONSTANT:
        return bool(a.attributes.literal.array.tobytes() == b.attributes.literal.array.tobytes())
    if a.attributes != b.attributes or len(a.operands) != len(b.operands) or not a.operands:
        return False
    return all(_same(x, y, depth - 1) for x, y in zip(a.operands, b.operands, strict=True))
