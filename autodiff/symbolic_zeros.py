"""The arguments of custom rules with `symbolic_zeros=True`: zeros without arrays, and arguments that know whether they
move."""

from __future__ import annotations

from typing import Any

from ..hlo.support.records import dataclass
from ..tracer.arrays.array import as_value
from ..tracer.aval import Float0Type, HasType, ShapedArray
from ..tracer.core import Value
from ..tracer.ops import is_inexact
from ..tracer.trees import tree
from .tangents import Tangent, Zero, float0_zeros, instantiate


@dataclass(frozen=True, slots=True, eq=False)
class SymbolicZero(HasType):
    """A tangent or cotangent that is known to be zero: it has a type and no elements. JAX's `SymbolicZero`.

    Rules may return it in place of an array of zeros.

    >>> zero = hloom.custom_derivatives.zero_from_primal(jnp.ones(2), symbolic_zeros=True)
    >>> zero
    SymbolicZero
    """

    aval: ShapedArray | Float0Type

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """The zero tangent of `value`."""
        return symbolic_zero(as_value(value).aval)

    def __repr__(self) -> str:
        return "SymbolicZero"


class CustomVJPPrimal:
    """An argument of a forward rule: its `value`, and whether it is `perturbed`, which means differentiated.

    >>> import hloom
    >>> from hloom.custom_derivatives import custom_vjp
    >>> @custom_vjp
    ... def mul(x, y):
    ...     return x * y
    >>> def fwd(x, y):
    ...     print(x.perturbed, y.perturbed)
    ...     return x.value * y.value, (x.value, y.value)
    >>> mul.defvjp(fwd, lambda kept, ct: (ct * kept[1], ct * kept[0]), symbolic_zeros=True)
    >>> hloom.grad(mul)(2.0, 3.0)
    True False
    Array(3., dtype=float32, weak_type=True)
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed: bool = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def symbolic_zero(aval: ShapedArray) -> SymbolicZero:
    """The zero tangent of a value of type `aval`."""
    return SymbolicZero(aval if is_inexact(aval.dtype) else Float0Type(aval.shape))


def tangent_for_user(tangent: Tangent | None, aval: ShapedArray, symbolic_zeros: bool) -> Any:
    """A tangent or cotangent of a value of type `aval`, as a user's rule gets it; None is zero."""
    if symbolic_zeros and (tangent is None or isinstance(tangent, Zero)):
        return symbolic_zero(aval)
    if not is_inexact(aval.dtype):
        return float0_zeros(aval)
    return instantiate(Zero(aval) if tangent is None else tangent)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of `val` (a pytree), as arrays or as `SymbolicZero`. JAX's `zero_from_primal`.

    >>> zero_from_primal(jnp.array([1.5, 2.5]))
    Array([0., 0.], dtype=float32)
    """

    def zero(leaf: Any) -> Any:
        value: Value = as_value(leaf)
        return tangent_for_user(None, value.aval, symbolic_zeros)

    return tree.map(zero, val)


def custom_vjp_primal_tree_values(tree_of_primals: Any) -> Any:
    """The values in a tree of `CustomVJPPrimal`; TypeError if a leaf is none.

    >>> import hloom
    >>> from hloom.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
    >>> custom_vjp_primal_tree_values({"w": CustomVJPPrimal(2.0, True)})
    {'w': 2.0}
    """

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, CustomVJPPrimal):
            raise TypeError(f"a leaf is not a CustomVJPPrimal, but {leaf!r} of type {type(leaf).__name__}")
        return leaf.value

    return tree.map(value, tree_of_primals)
