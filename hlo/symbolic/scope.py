"""Scopes of dimension variables: the constraints between these, which hold for all programs with sizes of the scope."""

from __future__ import annotations

from collections.abc import Sequence

from ..support.records import dataclass
from ..support.source import user_line
from .bounds import Known
from .expressions import FLOORDIV, MOD, Dim, Precision, Size, as_dim, operation
from .parser import parse_sizes
from .terms import Term

_SIGNS = ("==", ">=", "<=")


@dataclass(frozen=True, slots=True)
class Constraint:
    """An equality or an inequality between sizes."""

    text: str
    """As the user wrote it."""
    is_equality: bool
    difference: Size
    """It is 0, or at least 0."""


class SymbolicScope:
    """The variables of symbolic sizes, and the constraints between them. Sizes of two scopes do not mix.

    constraints: strings ``"a >= b"``, ``"a <= b"`` or ``"a == b"`` of expressions. The left side of an equality is a
    term, with a number in front: expressions have the right side in its place. The sizes of each call of an exported
    function must satisfy them.

    ValueError for a constraint that is malformed, or that is not satisfied for any sizes.

    >>> a, b = hloom.export.symbolic_shape("a, b", scope=hloom.export.SymbolicScope(["a >= 4", "b == 2*a"]))
    >>> a >= 3, b
    (True, 2*a)
    """

    def __init__(self, constraints: Sequence[str] = ()) -> None:
        if isinstance(constraints, str):
            raise ValueError(f"The symbolic constraints should be a sequence of strings. Got {constraints!r}")
        self.constraints: list[Constraint] = []
        self.equalities: dict[Term, tuple[Dim, int]] = {}
        """For an equality ``k * term == size``, of the term: the size, and k."""
        self.bounds_cache: dict[Dim, tuple[tuple[float, float], Precision]] = {}
        self._line = user_line()
        self._known: Known | None = None
        for text in constraints:
            self._add(text)
        self._known = self._all_known()

    def _add(self, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
        sign = next((s for s in _SIGNS if s in text), None)
        if sign is None:
            raise ValueError(
                f"Constraint parsing error: must contain one of '==' or '>=' or '<='. Got {text!r}"
            )
        left, _, right = text.partition(sign)
        (x,), (y,) = parse_sizes(left, None, self), parse_sizes(right, None, self)
        if sign == "<=":
            x, y = y, x
        difference = x - y
        if not isinstance(difference, Dim):
            if difference < 0 or (sign == "==" and difference):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        if sign == "==":
            self._add_equality(x, y, text)
        self.constraints.append(Constraint(text, sign == "==", difference))
        self.bounds_cache.clear()

    def _add_equality(self, x: Size, y: Size, text: str) -> None:
        if not isinstance(x, Dim) or len(x.terms) != 1:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand-side must be of the form `term * coefficient`."
            )
        ((term, k),) = x.terms
        if term in self.equalities:
            raise NotImplementedError(f"Found multiple equality constraints with the same left-hand-side: {term}")
        self.equalities[term] = as_dim(y, self, "constraint"), k
        factor = term.factor
        is_remainder = k == 1 and factor is not None and factor.name == MOD
        if is_remainder and factor is not None and factor.operands and not isinstance(y, Dim) and y == 0:
            dividend, divisor = factor.operands
            if divisor.constant is not None:  # it divides: n * floordiv(x, n) is x
                ((whole, _),) = as_dim(operation(FLOORDIV, dividend, divisor, self), self, "constraint").terms
                multiple = Dim(((whole, divisor.constant),), self)
                difference = multiple - dividend
                text = f"{multiple} == {dividend}"
                self._add_equality(multiple, dividend, text)
                if isinstance(difference, Dim):
                    self.constraints.append(Constraint(text, True, difference))

    def _all_known(self) -> Known:
        """The consequences of the constraints, in their order."""
        known = Known(self)
        for constraint in self.constraints:
            if isinstance(constraint.difference, Dim):
                known.add_implied(constraint.difference)
            known.add(constraint.is_equality, constraint.difference, 0, constraint.text)
            self.bounds_cache.clear()
        return known

    def known(self) -> Known:
        """A copy of the consequences of the constraints. The caller adds the consequences of an expression."""
        return self._all_known() if self._known is None else self._known.copy()

    def bounds(self, size: Size, precision: Precision = Precision.BEST) -> tuple[float, float]:
        """The least and the largest value that a size may have, or infinity."""
        if not isinstance(size, Dim):
            return size, size
        found = self.bounds_cache.get(size)
        if found is not None and (precision.is_enough(*found[0]) or found[1] >= precision):
            return found[0]
        known = self.known()
        known.add_implied(size)
        return known.bounds(size, precision)

    def check_same(self, size: Dim, what: str) -> None:
        """ValueError if a size is of another scope. `what`: for what both are used."""
        if size.scope is not self:
            raise ValueError(
                f"Invalid mixing of symbolic scopes {what}.\nExpected scope {self}\nand found for '{size}' scope "
                f"{size.scope}\n  Make all sizes of a program by one call of symbolic_shape or symbolic_args_specs, or "
                "pass scope=b.scope of a size b."
            )

    def __str__(self) -> str:
        listed = "".join([f"\n  {c.text}" for c in self.constraints])
        return f"{id(self)} created at {self._line}{' with constraints:' + listed if listed else ''}"

    __repr__ = __str__
