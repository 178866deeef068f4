"""The value of a symbolic size, for values of its variables: numbers, other sizes, or values of a program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from .expressions import FLOORDIV, MAX, MIN, MOD, Dim, max_of, min_of, variable
from .terms import Factor, Term

Operations = Mapping[str, Callable[[Any, Any], Any]]
ON_SIZES: Operations = {FLOORDIV: operator.floordiv, MOD: operator.mod, MAX: max_of, MIN: min_of}
"""The operations on numbers and sizes."""


class UnknownVariableError(ValueError):
    """A variable that occurs in no shape of the arguments."""


def evaluate(size: Any, values: Mapping[str, Any], operations: Operations = ON_SIZES) -> Any:
    """The value of `size` for these values of the variables. `operations`: those of `expressions.OPERATIONS` on values.

    UnknownVariableError for a variable without a value.
    """
    if not isinstance(size, Dim):
        return size
    total: Any = None
    for term, k in size.terms:
        value = _product(k, term, size, values, operations)
        total = value if total is None else total + value
    return total


def _product(k: int, term: Term, size: Dim, values: Mapping[str, Any], operations: Operations) -> Any:
    found: Any = None
    for factor, exponent in term.factors:
        value = _factor(factor, size, values, operations)
        for _ in range(exponent):
            found = value if found is None else found * value
    return k if found is None else found if k == 1 else found * k


def _factor(factor: Factor, size: Dim, values: Mapping[str, Any], operations: Operations) -> Any:
    if factor.operands:
        x, y = [evaluate(o, values, operations) for o in factor.operands]
        return operations[factor.name](x, y)
    if factor.name in values:
        return values[factor.name]
    known = variable(factor.name, size.scope)  # an equality of the scope may say what it is
    if not isinstance(known, Dim) or known.variable != factor.name:
        return evaluate(known, values, operations)
    raise UnknownVariableError(
        f"Encountered dimension variable '{factor.name}' that is not appearing in the shapes of the function "
        "arguments.\nThe following dimension variables are appearing in the shapes of the function arguments: "
        f"{list(values)}."
    )
