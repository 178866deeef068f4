"""The values of dimension variables for a call. They give the arguments of the program the shapes of the call.

Each symbolic size of an argument is an equation. Linear equations in one variable are solved, and their solutions put
into the others, until all variables are known. The other equations, and the constraints of the scope, are checks, and
so is that variables are at least 1. Values and checks are expressions of the sizes of the given arguments,
`args[0].shape[1]`, so that a program can compute them as well. Source: JAX's documentation, "Shape polymorphism", with
its messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InconclusiveDimensionOperation
from ..support.records import dataclass
from .evaluate import Operations, UnknownVariableError, evaluate
from .expressions import Dim, Size, variable


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on the sizes of arguments."""

    is_equality: bool
    left: Size
    right: Size
    """The left one is equal to it, or at least that."""
    pieces: tuple[str | Size, ...]
    """The message if it does not hold: text, and sizes, which are shown by their values."""

    def message(self, values: Mapping[str, Any]) -> str:
        """The message for sizes of arguments that are numbers."""
        return "".join([p if isinstance(p, str) else str(evaluate(p, values)) for p in self.pieces])

    def numbered_message(self) -> tuple[str, list[Size]]:
        """The message with `{0}`, `{1}`, ... in the place of values, and the sizes that these are."""
        found: dict[Size, str] = {}
        text = ""
        for piece in self.pieces:
            if isinstance(piece, str):
                text += piece
            elif piece in found or len(found) < MAX_VALUES:
                text += found.setdefault(piece, f"{{{len(found)}}}")
            else:
                text += "N/A"
        return text, list(found)


MAX_VALUES = 32
"""The most values in the message of an assertion in StableHLO."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The variables in the shapes of a program's arguments, and how to find their values."""

    values: Mapping[str, Size]
    """For each variable, an expression of the sizes of arguments."""
    checks: tuple[Check, ...]
    sizes: tuple[tuple[str, int, int], ...]
    """The names of the sizes in these expressions, each with the numbers of the argument and the dimension."""

    def evaluate(self, shapes: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The values of the variables for arguments of these shapes; symbolic sizes have symbolic values.

        ValueError for arguments whose shapes do not fit the specification.
        """
        given = {name: shapes[argument][d] for name, argument, d in self.sizes}
        for check in self.checks:
            left, right = evaluate(check.left, given), evaluate(check.right, given)
            try:
                holds = left == right if check.is_equality else left >= right
            except InconclusiveDimensionOperation as error:
                raise ValueError(check.message(given)) from error
            if not holds:
                raise ValueError(check.message(given))
        return {name: evaluate(value, given) for name, value in self.values.items()}

    def computed(self, sizes: Mapping[str, Any], operations: Operations) -> dict[str, Any]:
        """The values of the variables as values of a program, from the values of its arguments' sizes."""
        return {name: evaluate(value, sizes, operations) for name, value in self.values.items()}


def variables_of(shapes: Sequence[Sequence[Any]]) -> list[str]:
    """The names of the variables that occur in shapes, sorted."""
    return sorted(set().union(*[d.variables() for shape in shapes for d in shape if isinstance(d, Dim)]))


def solve(shapes: Sequence[Sequence[Any]], names: Sequence[str]) -> Solution:
    """How to find the values of the variables in the shapes of arguments. `names`: of the arguments, `args[0]`.

    ValueError if the shapes do not determine a variable.
    """
    return _Solver(shapes, names).solve()


_PAGE = "https://docs.jax.dev/en/latest/export/shape_poly.html"
"""JAX's page explains these messages; hloom's docs/export.md has no such section."""


def _see(section: str) -> str:
    return f". Please see {_PAGE}#{section} for more details."


_SEE = _see("shape-assertion-errors")
_MISMATCH = "Input shapes do not match the polymorphic shapes specification. "


class _Solver:
    def __init__(self, shapes: Sequence[Sequence[Any]], names: Sequence[str]) -> None:
        self._equations: list[tuple[Dim, str]] = []
        self._sizes: list[tuple[str, int, int]] = []
        specifications = []
        for k, shape in enumerate(shapes):
            symbolic = [(d, size) for d, size in enumerate(shape) if isinstance(size, Dim)]
            if symbolic:
                specifications.append(f"{names[k]}.shape = {tuple(shape)}")
            for d, size in symbolic:
                name = f"{names[k]}.shape[{d}]"
                self._equations.append((size, name))
                self._sizes.append((name, k, d))
        self._specified = f" Using the following polymorphic shapes specifications: {','.join(specifications)}."
        self._values: dict[str, Size] = {}
        self._checks: list[Check] = []
        self._obtained: list[str | Size] = [" Obtained dimension variables: "]

    def solve(self) -> Solution:
        waiting = self._equations
        while waiting:
            later = [e for e in waiting if not self._use(*e)]
            if len(later) == len(waiting):
                self._refuse(later)
            waiting = later
        if self._equations:
            self._add_constraints(self._equations[0][0])
        return Solution(self._values, tuple(self._checks), tuple(self._sizes))

    def _use(self, size: Dim, name: str) -> bool:
        """Use the equation ``size == name``, with at most one unknown variable. False if it has more."""
        given = variable(name, size.scope)
        rest: Size = given
        unknown: tuple[str, int] | None = None
        for term, k in size.terms:
            try:
                rest = rest - evaluate(Dim(((term, k),), size.scope), self._values)
            except UnknownVariableError:
                if term.variable is None or unknown is not None:
                    return False
                unknown = term.variable, k
        if unknown is None:
            value = evaluate(size, self._values)
            found = f"Found inconsistency between dimension size {name} (= "
            self._check(
                True, given, value, f"{_MISMATCH}{found}", given, f") and the specification '{size}' (= ", value,
                f").{self._specified}",
            )  # fmt: skip
            return True
        self._solve_for(*unknown, rest, size, name)
        return True

    def _solve_for(self, name: str, k: int, rest: Size, size: Dim, given: str) -> None:
        """The value of a variable from the equation ``k * name == rest``."""
        value = rest
        if k != 1:
            value, remainder = divmod(rest, k)
            why = f" when computing the value of '{name}'.{self._specified}"
            self._check(True, remainder, 0, f"{_MISMATCH}Division had remainder ", remainder, why)
        self._values[name] = value
        source = f" from specification '{size}' for dimension {given} (= "
        self._obtained += [f"'{name}' = ", value, source, variable(given, size.scope), "), "]
        expected = f"Expected value >= 1 for dimension variable '{name}'."
        self._check(False, value, 1, f"{_MISMATCH}{expected}{self._specified}")

    def _add_constraints(self, size: Dim) -> None:
        for c in size.scope.constraints:
            value = evaluate(c.difference, self._values)
            relation = "equal" if c.is_equality else "greater or equal"
            wanted = f"Expected '{c.difference}' to be {relation} to 0, but found "
            start = f"Input shapes do not match the symbolic shape constraint {c.text}. {wanted}"
            self._check(c.is_equality, value, 0, start, value, f". {self._specified}")

    def _check(self, is_equality: bool, left: Size, right: Size, *pieces: str | Size) -> None:
        self._checks.append(Check(is_equality, left, right, (*pieces, *self._obtained, _SEE)))

    def _refuse(self, equations: Sequence[tuple[Dim, str]]) -> None:
        unknown = set().union(*[size.variables() for size, _ in equations]) - self._values.keys()
        listed = ", ".join([f"'{size}' for dimension size {name}" for size, name in equations])
        raise ValueError(
            f"Cannot solve for values of dimension variables {unknown}. We can only solve linear uni-variate "
            f"constraints.{self._specified} Unprocessed specifications: {listed}"
            f"{_see('dimension-variables-must-be-solvable-from-the-input-shapes')} Pass a variable as the size of a "
            "dimension of its own."
        )
