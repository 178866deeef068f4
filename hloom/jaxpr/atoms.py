"""Var, DropVar and Literal: the inputs and outputs of equations. Names and attributes follow jax.extend.core."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..hlo.support.shared_value import SharedValue
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray


class Var(SharedValue):
    """A variable: known by its identity, and by its type, `aval`. It gets a name when a jaxpr is printed.

    >>> hloom.make_jaxpr(lambda x: 2 * x)(1.5).jaxpr.invars[0].aval
    ShapedArray(float32[], weak_type=True)
    """

    __slots__ = ("aval",)

    aval: ShapedArray

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """An unused result.

    >>> DropVar(hloom.typeof(1.5))
    _
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A scalar constant as an operand: its value, as a NumPy scalar, and its type.

    >>> equation = hloom.make_jaxpr(lambda x: 2 * x)(1.5).eqns[0]
    >>> equation.invars[0].val, equation.invars[0].aval
    (np.float32(2.0), ShapedArray(float32[]))
    """

    __slots__ = ("aval", "val")

    val: Any
    aval: ShapedArray

    def __init__(self, val: Any, aval: ShapedArray | None = None) -> None:
        self.val = val
        self.aval = as_value(val).aval if aval is None else aval

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as in JAX: a Literal is no key of an environment

    def __repr__(self) -> str:
        return f"Literal({number(self.val)})"


Atom: TypeAlias = Var | Literal

ParamDict: TypeAlias = dict[str, Any]
"""The parameters of an equation."""
Value: TypeAlias = Any
"""A value of a variable of a jaxpr."""


def number(value: Any) -> str:
    """A scalar as it is printed."""
    return str(np.asarray(value).item())


def short(aval: ShapedArray) -> str:
    """A type as jaxprs show it: ``f32[2,3]``."""
    return aval.str_short(short_dtypes=True)
