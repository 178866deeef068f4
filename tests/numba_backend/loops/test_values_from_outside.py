"""Values in a loop, in names from outside of it."""

from __future__ import annotations

from hloom.numba_backend.loops.expressions import Binary, Expr, Load, Name, Number
from hloom.numba_backend.loops.statements import Assign, Block
from hloom.numba_backend.loops.straight_lines import FromOutside

COUNTER, N = Name("i"), Name("n")


def assign(name: str, value: Expr) -> Assign:
    return Assign((Name(name),), (value,))


def values(body: Block, start: Expr | None = None) -> FromOutside:
    found = FromOutside(body, {} if start is None else {"i": start})
    for statement in body:
        assert isinstance(statement, Assign)
        found.assign(statement)
    return found


def test_values_are_written_in_names_from_outside() -> None:
    body: Block = [assign("a", Binary("+", COUNTER, N)), assign("b", Binary("*", Name("a"), Name("a")))]
    wanted = values(body, Number(3)).of(Name("b"))
    assert wanted is not None and wanted.text == "(3 + n) * (3 + n)"


def test_what_is_in_memory_or_comes_from_the_iteration_before_has_no_value() -> None:
    pointer = Name("x0", "pointer int64")
    body: Block = [assign("a", Load(pointer, COUNTER)), assign("b", Binary("+", Name("c"), N)), assign("c", N)]
    found = values(body, Number(0))
    assert found.of(Name("a")) is None and found.of(Name("b")) is None and found.of(Name("c")) is N


def test_a_chain_of_squares_is_not_written_out() -> None:
    for first, start in ((COUNTER, None), (COUNTER, Number(0)), (Number(3), None)):
        body: Block = [assign("v0", first)]
        body += [assign(f"v{n}", Binary("*", Name(f"v{n - 1}"), Name(f"v{n - 1}"))) for n in range(1, 200)]
        found = values(body, start)
        short = found.of(Name("v4"))
        assert short is not None and short.text.count("*") == 15
        assert found.of(Name("v199")) is None
