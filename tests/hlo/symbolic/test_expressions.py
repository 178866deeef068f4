"""Symbolic sizes: arithmetic, normal forms, text, bounds, comparisons, constraints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hloom.hlo.symbolic.evaluate import UnknownVariableError, evaluate
from hloom.hlo.symbolic.expressions import Dim, max_of, min_of, operation
from hloom.hlo.symbolic.parser import parse_sizes
from hloom.hlo.symbolic.scope import SymbolicScope
from hypothesis import given
from hypothesis import strategies as st

from hloom.errors import InconclusiveDimensionOperation

INFINITY = math.inf


def sizes(text: str, constraints: Sequence[str] = ()) -> Any:
    return parse_sizes(text, None, SymbolicScope(constraints))


def bounds(size: Any) -> tuple[float, float]:
    return size.scope.bounds(size) if isinstance(size, Dim) else (size, size)


A, B = sizes("a, b")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2*b*a", "2*a*b"),
        ("-2 * b * a^2 + b^2", "- 2*a^2*b + b^2"),
        ("a - b", "- b + a"),
        ("a + -1", "a - 1"),
        ("+ 2", "2"),
        ("3 * a * mod(a + 2, b + 2)", "3*a*mod(a + 2, b + 2)"),
        ("3 * floordiv(a + 2, b + 2) * 2", "6*floordiv(a + 2, b + 2)"),
        ("max(a, b)", "max(a, b)"),
        ("min(a, a + 3)", "a"),
        ("a*floordiv(b, 8)*mod(b, 4)", "a*floordiv(b, 8)*mod(b, 4)"),
    ],
)
def test_text_is_the_normal_form_and_is_read_again(text: str, found: str) -> None:
    scope = SymbolicScope()
    (size,) = parse_sizes(text, None, scope)
    assert str(size) == found
    assert parse_sizes(found, None, scope) == (size,)


@pytest.mark.parametrize(
    "text",
    ["2.5", "a + a a", "a ^ a", "a; a", "_", "...", ")(", "2a", "a@", "'a'", "mod(a)", "floordiv(a, b, c)", "a,,"],
)
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="syntax error in symbolic shape"):
        sizes(text)


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        (3 * A + 5, 3, "a + 1, 2"),
        (3 * A - 2, 3, "a - 1, 1"),
        (A * A - B * B, A + B, "- b + a, 0"),
        (2 * A * B + B * B, A + B, "floordiv(2*a*b + b^2, b + a), mod(2*a*b + b^2, b + a)"),
        (3, A, "floordiv(3, a), mod(3, a)"),
        (A * B, B, "a, 0"),
    ],
)
def test_division(dividend: Any, divisor: Any, expected: str) -> None:
    assert ", ".join(map(str, divmod(dividend, divisor))) == expected


def test_results_that_are_numbers_are_integers() -> None:
    assert type(A + 2 - A) is int
    assert type(2 * A // A) is int
    assert math.prod([A, 2, B]) == 2 * A * B
    assert np.int32(2) * A == 2 * A
    assert np.array(3) + A - 3 == A
    assert A != 3


def test_a_size_is_no_number() -> None:
    with pytest.raises(InconclusiveDimensionOperation, match="'a' used in a context that requires a constant"):
        int(A)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        range(A)
    with pytest.raises(InconclusiveDimensionOperation, match="inconclusive"):
        bool(A - 1)
    assert bool(A)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (A, (1, INFINITY)),
        (5 - A, (-INFINITY, 4)),
        (2 * A - 3 * B, (-INFINITY, INFINITY)),
        (3 * A * B * B + 5 * A - 7, (1, INFINITY)),
        (A % 5 + 5 - A, (-INFINITY, 8)),
        (-5 - A % (-5), (-5, -1)),
        (A - 5 % A, (1, INFINITY)),
        ((A + 4) // -2, (-INFINITY, -3)),
        (-11 // (A + 1), (-6, -1)),
        (A - 2 * (A // 2), (0, 1)),
        ((A + 6) - 3 * ((A + 6) // 4), (2, INFINITY)),
        (max_of(15 - A, 0) // 3, (0, 4)),
        (B - max_of(B - A, 0), (1, INFINITY)),
        (A * (B % 2), (0, INFINITY)),
    ],
)
def test_bounds(size: Any, expected: tuple[float, float]) -> None:
    assert bounds(size) == expected


def test_division_by_what_may_be_zero_is_refused() -> None:
    with pytest.raises(InconclusiveDimensionOperation, match="Possible division by 0"):
        bounds(A // (A - 3))
    with pytest.raises(ZeroDivisionError):
        A // 0


def test_comparison_names_both_sides_and_the_constraints() -> None:
    (a,) = sizes("a", ["a >= 5"])
    assert a >= 4
    with pytest.raises(InconclusiveDimensionOperation, match=r"'a' >= '6' is inconclusive.\n[\s\S]*a >= 5"):
        assert a >= 6


@pytest.mark.parametrize(
    ("names", "constraints", "expression", "expected"),
    [
        ("a, b", ["a + 2 <= b", "b <= a + 5"], "b - a", (2, 5)),
        ("a, b, c", ["max(a, b) == c"], "max(a, b) - c + 3", (3, 3)),
        ("a", ["2 * a >= 5", "3 * a <= 10"], "5*a - 2", (13, 13)),
        ("a, d, m", ["a >= 4*d + m", "a <= 4*d + m", "m >= 0", "m <= 3"], "a - 4*d", (1, 3)),
        ("a1, a2, a3", ["a1 >= a2", "a2 >= a3"], "a1 - a3", (0, INFINITY)),
        ("a", ["a >= 4", "max(a, 2) >= 6"], "a", (6, INFINITY)),
        ("b", ["mod(b, 4) == 0"], "b - 3*floordiv(b, 4)", (1, INFINITY)),
    ],
)
def test_constraints(names: str, constraints: list[str], expression: str, expected: tuple[float, float]) -> None:
    *_, size = sizes(f"{names}, {expression}", constraints)
    assert bounds(size) == expected


def test_equalities_replace_terms() -> None:
    a, b, c, d = sizes("a, b, c, d", ["b == a", "c == a + b", "d == 5"])
    assert (b, str(c), d) == (a, "2*a", 5)
    b, c, d = sizes("b, c, d", ["mod(b, 4) == 0"])
    assert math.prod([b, c, d]) == math.prod([b // 4, c, d, 2, 2])


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        (["a >= a + 1"], "Unsatisfiable explicit constraint: a >= a"),
        (["a == a + 1"], "Unsatisfiable explicit constraint"),
        (["a <= 0"], "Unsatisfiable constraint: a <= 0"),
        (["a >= c + 1", "c >= 4", "a <= d + 2", "d <= 2"], "Unsatisfiable constraint"),
        (["a != 0"], "must contain one of"),
        ("a >= 0", "should be a sequence of strings"),
        (["a + b == 4"], "must be of the form"),
    ],
)
def test_wrong_constraints(constraints: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        sizes("a", constraints)


def test_scopes_do_not_mix() -> None:
    (other,) = sizes("a")
    assert other != A
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        A + other


def test_a_variable_without_a_value_is_named() -> None:
    with pytest.raises(UnknownVariableError, match="'b' that is not appearing"):
        evaluate(A + B, {"a": 1})


_LEAVES = st.sampled_from([A, B, 1, 2, 3, -1])
_OPERATIONS = st.sampled_from(["+", "-", "*", "floordiv", "mod", "max", "min"])


def _combined(draw: Any, depth: int) -> Any:
    if not depth or draw(st.booleans()):
        return draw(_LEAVES)
    name, x, y = draw(_OPERATIONS), _combined(draw, depth - 1), _combined(draw, depth - 1)
    match name:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case "max":
            return max_of(x, y)
        case "min":
            return min_of(x, y)
    divisor = draw(st.sampled_from([2, 3, A + 1, B, -2]))
    quotient, rest = divmod(x, divisor)
    return quotient if name == "floordiv" else rest


@given(st.data())
def test_bounds_hold_for_all_values(data: st.DataObject) -> None:
    size = _combined(data.draw, 3)
    low, high = bounds(size)
    assert low <= high
    for a, b in itertools.product((1, 2, 5, 11), repeat=2):
        assert low <= evaluate(size, {"a": a, "b": b}) <= high


@given(st.integers(-30, 30), st.integers(-6, 6).filter(bool), st.integers(1, 9))
def test_operations_are_those_of_integers(k: int, n: int, a: int) -> None:
    quotient, rest = divmod(3 * A + k, n)
    assert (evaluate(quotient, {"a": a}), evaluate(rest, {"a": a})) == divmod(3 * a + k, n)
    forced = operation("mod", A + k, n, A.scope)
    assert evaluate(forced, {"a": a}) == (a + k) % n
