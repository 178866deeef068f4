"""The values of dimension variables from the shapes of arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hloom.hlo.symbolic.arguments import solve
from hloom.hlo.symbolic.parser import parse_sizes
from hloom.hlo.symbolic.scope import SymbolicScope


def solution(*shapes: str, constraints: tuple[str, ...] = ()) -> Any:
    scope = SymbolicScope(constraints)
    found = [parse_sizes(shape, None, scope) for shape in shapes]
    return solve(found, [f"args[{k}]" for k in range(len(found))])


@pytest.mark.parametrize(
    ("shapes", "given", "values"),
    [
        (["b, 3"], [(4, 3)], {"b": 4}),
        (["b1+6, b1+14, b2"], [(16, 24, 32)], {"b1": 10, "b2": 32}),
        (["2*b1, 4*b2, b1+b2+18"], [(16, 24, 32)], {"b1": 8, "b2": 6}),
        (["b1+2*b2, 4*b2, b1*b1+16"], [(16, 24, 32)], {"b1": 4, "b2": 6}),
        (["a + b", "b"], [(7,), (2,)], {"b": 2, "a": 5}),
    ],
)
def test_variables_follow_from_shapes(shapes: list[str], given: Any, values: dict[str, int]) -> None:
    assert solution(*shapes).evaluate(given) == values


@pytest.mark.parametrize(
    ("shape", "given", "why"),
    [
        ("3*b, _b", (5, 36), "Division had remainder 2 when computing the value of 'b'"),
        ("3*b + 10, c", (10, 3), "Expected value >= 1 for dimension variable 'b'"),
        ("a, a", (2, 3), r"between dimension size args\[0\].shape\[1\] \(= 3\) and the specification 'a' \(= 2\)"),
    ],
)
def test_shapes_that_do_not_fit(shape: str, given: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        solution(shape).evaluate([given])


def test_constraints_are_checked() -> None:
    found = solution("a, b", constraints=("a >= 2", "max(a, b) == b"))
    assert found.evaluate([(2, 3)]) == {"a": 2, "b": 3}
    with pytest.raises(ValueError, match="Expected 'a - 2' to be greater or equal to 0, but found -1"):
        found.evaluate([(1, 3)])
    with pytest.raises(ValueError, match=r"Expected 'max\(a, b\) - b' to be equal to 0, but found 1"):
        found.evaluate([(3, 2)])


def test_what_cannot_be_solved_is_named() -> None:
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables \{'b'\}"):
        solution("b * b, b * d * d, d")


def test_messages_of_a_program_have_places_for_values() -> None:
    (check, *_) = solution("2*b").checks
    text, values = check.numbered_message()
    assert "Division had remainder {0} when" in text
    assert list(map(str, values)) == ["mod(args[0].shape[0], 2)"]
