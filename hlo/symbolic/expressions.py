"""Expressions of dimension variables with integer coefficients.

A `Dim` is a sum of terms with coefficients (`terms.py`). It is immutable, and has one normal form, ordered by `key`, so
that equal forms mean equal sizes. A result that is the same number for all values of the variables is an `int`.

A Dim takes the place of an int in shapes. It is no int, so code that needs a number (`int(b)`, `range(b)`) fails there.
Bounds on the variables (`bounds.py`) decide comparisons; if they do not, InconclusiveDimensionOperation is raised.
Equality must not raise, as hashing uses it: expressions are equal when their difference is known to be 0.

Source: JAX's documentation, "Shape polymorphism".
"""

from __future__ import annotations

from enum import IntEnum
from functools import reduce
from operator import mul
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from ..errors import InconclusiveDimensionOperation
from ..library import part_above
from ..sizes import SymbolicSize
from .terms import ONE, Factor, Pairs, Term, merged, sum_of

Size: TypeAlias = "int | Dim"
"""The size of a dimension."""
FLOORDIV, MOD, MAX, MIN = OPERATIONS = ("floordiv", "mod", "max", "min")


class Precision(IntEnum):
    """When bounds of an expression are good enough, so that the search for better ones ends."""

    SIGN = 0
    """It is known to be at least 0, or at most 0."""
    ORDER = 1
    """It is known to be at least 0, or less than 0."""
    BEST = 2

    def is_enough(self, low: float, high: float) -> bool:
        """Whether these bounds are good enough."""
        return self is not Precision.BEST and (low >= 0 or high < 0 or (self is Precision.SIGN and high <= 0))


class Scope(Protocol):
    """The scope of variables (`scope.py`), as far as expressions need it."""

    constraints: list[Any]
    equalities: dict[Term, tuple[Dim, int]]
    """For an equality ``k * term == size``, of the term: the size, and k."""
    bounds_cache: dict[Dim, tuple[tuple[float, float], Precision]]

    def bounds(self, size: Size, precision: Precision = Precision.BEST) -> tuple[float, float]:
        """The least and the largest value that a size may have, or infinity."""

    def check_same(self, size: Dim, what: str) -> None:
        """ValueError if a size is of another scope."""


def is_size(value: object) -> TypeGuard[Size]:
    """Whether it is an integer, of Python or NumPy, or an expression."""
    return isinstance(value, int | Dim | np.integer) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu"
    )


class Dim(SymbolicSize):
    """An expression of dimension variables. Make one with `symbolic_shape`, or by arithmetic.

    >>> b, n = hloom.export.symbolic_shape("b, n")
    >>> 2 * b + b * n - 1, (4 * b + 2) // 2, b // 2, b + 3 - b
    (b*n + 2*b - 1, 2*b + 1, floordiv(b, 2), 3)
    >>> b + n > b, b == n
    (True, False)
    """

    __slots__ = ("_hash", "_scope", "key", "terms")
    __array_ufunc__ = None  # NumPy leaves arithmetic to the methods here

    def __init__(self, terms: Pairs, scope: Scope) -> None:
        """For terms in normal form; `dim_of` makes a size of any."""
        self.terms: Pairs = tuple(terms) or ((ONE, 0),)
        self._scope = scope
        self.key: tuple[Any, ...] = (
            sum([1 + abs(k) * t.key[0] for t, k in self.terms]),
            tuple([(t.key, k) for t, k in self.terms]),
        )
        """Its complexity first; orders expressions."""
        self._hash = 0

    @property
    def scope(self) -> Scope:
        """The scope of its variables."""
        return self._scope

    # ---- parts

    @property
    def constant(self) -> int | None:
        """The number that an expression of one constant term is."""
        term, k = self.terms[0]
        return None if term.factors else k

    @property
    def term(self) -> Term | None:
        """The only term, if the expression is no more than that."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 else None

    @property
    def variable(self) -> str | None:
        """The name of the variable, if the expression is no more than that."""
        return self.term.variable if self.term is not None else None

    def variables(self) -> set[str]:
        """The names of the variables in it."""
        return set().union(*[t.variables() for t, _ in self.terms])

    # ---- arithmetic

    def __add__(self, other: Any) -> Any:
        return combination(self, 1, other, 1) if is_size(other) else self.__jax_array__() + other

    def __radd__(self, other: Any) -> Any:
        return combination(self, 1, other, 1) if is_size(other) else other + self.__jax_array__()

    def __sub__(self, other: Any) -> Any:
        return combination(self, 1, other, -1) if is_size(other) else self.__jax_array__() - other

    def __rsub__(self, other: Any) -> Any:
        return combination(self, -1, other, 1) if is_size(other) else other - self.__jax_array__()

    def __neg__(self) -> Any:
        return combination(self, -1, 0, 1)

    def __pos__(self) -> Dim:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __mul__(self, other: Any) -> Any:
        if not is_size(other):
            return self.__jax_array__() * other
        pairs = as_dim(other, self.scope, "mul").terms
        return dim_of(sum_of([(s.times(t), k * n) for s, k in self.terms for t, n in pairs]), self.scope)

    def __rmul__(self, other: Any) -> Any:
        return self * other if is_size(other) else other * self.__jax_array__()

    def __pow__(self, power: Any) -> Any:
        if not is_size(power) and isinstance(power, int | float) and power != int(power):
            why = "Symbolic dimension cannot be raised to non-integer powers"
            raise ValueError(f"{why}: '{self}' ** '{power}'")
        if isinstance(power, Dim) or not isinstance(power, int | float | np.integer):
            return self.__jax_array__() ** power
        if power < 0:
            raise ValueError(f"Symbolic dimension cannot be raised to negative powers: '{self}' ** '{power}'")
        return reduce(mul, [self] * int(power), 1)

    def __rpow__(self, base: Any) -> Any:
        return base ** self.__jax_array__()

    def __divmod__(self, divisor: Any) -> Any:
        if is_size(divisor):
            return _divided(self, as_dim(divisor, self.scope, "floordiv"))
        return divmod(self.__jax_array__(), divisor)

    def __rdivmod__(self, dividend: Any) -> Any:
        if is_size(dividend):
            return _divided(as_dim(dividend, self.scope, "floordiv"), self)
        return divmod(dividend, self.__jax_array__())

    def __floordiv__(self, divisor: Any) -> Any:
        return divmod(self, divisor)[0] if is_size(divisor) else self.__jax_array__() // divisor

    def __rfloordiv__(self, dividend: Any) -> Any:
        return divmod(dividend, self)[0] if is_size(dividend) else dividend // self.__jax_array__()

    def __mod__(self, divisor: Any) -> Any:
        return divmod(self, divisor)[1] if is_size(divisor) else self.__jax_array__() % divisor

    def __rmod__(self, dividend: Any) -> Any:
        return divmod(dividend, self)[1] if is_size(dividend) else dividend % self.__jax_array__()

    def __truediv__(self, divisor: Any) -> Any:
        return self.__jax_array__() / divisor

    def __rtruediv__(self, dividend: Any) -> Any:
        return dividend / self.__jax_array__()

    # ---- comparison

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim):
            if other.scope is not self.scope:
                return False
            if other.key == self.key:
                return True
        elif not is_size(other):
            return False
        difference = self - other
        return not isinstance(difference, Dim) and difference == 0

    def __hash__(self) -> int:
        if not self._hash:
            self._hash = hash((self.key, id(self.scope)))
        return self._hash

    def __ge__(self, other: Any) -> Any:
        return _at_least(self, other, self, ">=", other) if is_size(other) else self.__jax_array__() >= other

    def __le__(self, other: Any) -> Any:
        return _at_least(other, self, self, "<=", other) if is_size(other) else self.__jax_array__() <= other

    def __gt__(self, other: Any) -> Any:
        return not _at_least(other, self, self, ">", other) if is_size(other) else self.__jax_array__() > other

    def __lt__(self, other: Any) -> Any:
        return not _at_least(self, other, self, "<", other) if is_size(other) else self.__jax_array__() < other

    def max(self, other: Any) -> Any:
        return max_of(self, other)

    def min(self, other: Any) -> Any:
        return min_of(self, other)

    def rmax(self, other: Any) -> Any:
        return max_of(other, self)

    def rmin(self, other: Any) -> Any:
        return min_of(other, self)

    def __bool__(self) -> bool:
        """Whether it is not 0. InconclusiveDimensionOperation if it may be 0 and may be another number."""
        return bool(self >= 1 or self <= -1)

    # ---- values

    def __int__(self) -> int:
        if self.constant is not None:
            return self.constant
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant"
        )

    def as_value(self, dtype: Any = None) -> Any:
        return part_above("sizes").size_as_value(self, dtype)

    __jax_array__ = dimension_as_value = as_value

    # ---- text

    def __str__(self) -> str:
        text = " ".join([_with_sign(t, k) for t, k in self.terms])
        return text.removeprefix("+ ")

    __repr__ = __str__

    def __deepcopy__(self, memo: Any) -> Dim:
        return self


def _with_sign(term: Term, k: int) -> str:
    if not k:
        return "0"
    size = f"{abs(k)}" if not term.factors else f"{term}" if abs(k) == 1 else f"{abs(k)}*{term}"
    return f"{'+' if k > 0 else '-'} {size}"


def as_dim(size: Size, scope: Scope, what: str) -> Dim:
    """The size as an expression, which has one constant term if it is a number. `what`: the operation, in the error.

    ValueError for an expression of another scope.
    """
    if isinstance(size, Dim):
        scope.check_same(size, f"for operation {what}")
        return size
    if not is_size(size):
        raise TypeError(f"Symbolic dimension {what} not supported for {size}.")
    return Dim(((ONE, int(size)),), scope)


def variable(name: str, scope: Scope) -> Size:
    """The variable `name`; what an equality of the scope says that it is."""
    return dim_of(((Term(((Factor(name), 1),)), 1),), scope)


def operation(name: str, x: Size, y: Size, scope: Scope) -> Size:
    """One of `OPERATIONS` on two sizes, without looking at them."""
    factor = Factor(name, (as_dim(x, scope, name), as_dim(y, scope, name)))
    return dim_of(((Term(((factor, 1),)), 1),), scope)


def combination(x: Size, k: int, y: Size, n: int) -> Size:
    """``k * x + n * y``; one of them at least is an expression. ValueError for expressions of two scopes."""
    scope = _scope_of(x, y)
    left, right = as_dim(x, scope, "linear combination"), as_dim(y, scope, "linear combination")
    return dim_of(merged(left.terms, k, right.terms, n), scope)


def dim_of(pairs: Pairs, scope: Scope) -> Size:
    """The sum of the terms in normal form, in which the scope's equalities hold: an int if it is a constant."""
    for term, k in pairs if scope.equalities else ():
        replacement = _replacement(term, k, scope)
        if replacement is not None:
            pairs = sum_of([*pairs, (term, -k), *replacement])
            break
    if not pairs or not pairs[0][0].factors:
        return pairs[0][1] if pairs else 0
    return Dim(pairs, scope)


def _replacement(term: Term, k: int, scope: Scope) -> Pairs | None:
    """The terms that ``k * term`` equals by an equality of the scope: one for the term, or for a factor of it."""
    for part in (term, *[Term((f,)) for f in term.factors if len(term.factors) > 1]):
        known = scope.equalities.get(part)
        if known is not None and k % known[1] == 0:
            rest = term.over(part)
            assert rest is not None, f"{part} is a factor of {term}"
            return [(t.times(rest), n * (k // known[1])) for t, n in known[0].terms]
    return None


def _divided(dividend: Dim, divisor: Dim) -> tuple[Size, Size]:
    """Quotient and remainder: of polynomials, if that gives integers, otherwise as operations."""
    scope = dividend.scope
    scope.check_same(divisor, "for operation floordiv")
    if divisor.constant == 0:
        raise ZeroDivisionError(f"division of a symbolic dimension by zero: '{dividend}'")
    quotient: Size = 0
    rest: Size = dividend
    leading, divisor_k = divisor.terms[0]
    while isinstance(rest, Dim) and rest.constant is None:
        term, k = rest.terms[0]
        ratio = term.over(leading)
        if ratio is None or k % divisor_k:
            break
        part = dim_of(((ratio, k // divisor_k),), scope)
        quotient, rest = quotient + part, rest - part * divisor
    else:
        number = int(rest)
        if divisor.constant is not None:
            return quotient + number // divisor.constant, number % divisor.constant
        if number == 0:
            return quotient, 0
    return operation(FLOORDIV, dividend, divisor, scope), operation(MOD, dividend, divisor, scope)


def _at_least(x: Size, y: Size, left: Size, sign: str, right: Size) -> bool:
    """Whether ``x >= y``; the others are for the message."""
    scope = _scope_of(x, y)
    what = f"'{left}' {sign} '{right}'"
    for side in (x, y):
        if isinstance(side, Dim):
            scope.check_same(side, f"when comparing {what}")
    low, high = scope.bounds(x - y, Precision.ORDER)
    if low >= 0 or high < 0:
        return low >= 0
    known = f"\nUsing symbolic scope {scope}" if scope.constraints else ""
    raise InconclusiveDimensionOperation(
        f"Symbolic dimension comparison {what} is inconclusive.{known}\n\nThis error arises for comparison operations "
        "with shapes that are non-constant, and the result of the operation cannot be represented as a boolean value "
        'for all values of the symbolic dimensions involved.\n\nA constraint may decide it: symbolic_shape("b", '
        'constraints=["b >= 2"]).'
    )


def max_of(x: Size, y: Size) -> Size:
    """The larger of two sizes; an expression, if neither is known to be that."""
    return _extreme(MAX, x, y)


def min_of(x: Size, y: Size) -> Size:
    """The smaller of two sizes; an expression, if neither is known to be that."""
    return _extreme(MIN, x, y)


def _extreme(name: str, x: Size, y: Size) -> Size:
    if not isinstance(x, Dim) and not isinstance(y, Dim):
        return max(x, y) if name == MAX else min(x, y)
    scope = _scope_of(x, y)
    low, high = scope.bounds(x - y, Precision.SIGN)
    if low >= 0:
        return x if name == MAX else y
    if high <= 0:
        return y if name == MAX else x
    return operation(name, x, y, scope)


def _scope_of(x: Size, y: Size) -> Scope:
    return x.scope if isinstance(x, Dim) else y.scope  # type: ignore[union-attr]
