"""`remembered`: one kernel for equal arguments, and another one for another machine."""

from __future__ import annotations

from dataclasses import replace

from hloom.numba_backend.machine import compiling_for, target_machine
from hloom.numba_backend.remembered import MOST, remembered


def test_a_result_is_returned_again() -> None:
    calls: list[tuple[int, int]] = []

    @remembered
    def pair(a: int, *, b: int = 0) -> list[int]:
        """Two numbers."""
        calls.append((a, b))
        return [a, b, target_machine().second_cache]

    first = pair(1, b=2)
    assert pair(1, b=2) is first
    assert pair(1, b=3) is not first
    assert pair.__name__ == "pair" and pair.__doc__ == "Two numbers."
    other = replace(target_machine(), second_cache=target_machine().second_cache + 64)
    with compiling_for(other):
        assert pair(1, b=2) == [1, 2, other.second_cache]
    assert pair(1, b=2) is first
    assert calls == [(1, 2), (1, 3), (1, 2)]


def test_as_many_are_kept_as_it_says() -> None:
    calls: list[int] = []

    @remembered
    def same(a: int) -> int:
        calls.append(a)
        return a

    for k in (*range(MOST + 1), MOST, 0):
        same(k)
    assert calls == [*range(MOST + 1), 0]
