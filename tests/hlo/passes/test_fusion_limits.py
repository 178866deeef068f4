"""The number of values that a nest reads from memory is limited. Arrays of constants count, scalar constants do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hloom.hlo.ir import HloInstruction
from hloom.hlo.opcode import Opcode
from hloom.numba_backend.pipeline import KERNEL_LIMITS

import hloom

MOST = KERNEL_LIMITS.externals
NUMBERS = [1 + k / 64 for k in range(2 * MOST)]


def _fusions(f: Any, *args: Any) -> list[HloInstruction]:
    compiled = hloom.jit(f).lower(*args).compile()
    np.testing.assert_allclose(compiled(*args), f(*args), rtol=1e-5)
    return [i for i in compiled.runtime_executable().module.entry.instructions if i.opcode is Opcode.FUSION]


def _polynomial(x: Any) -> Any:
    total = x
    for number in NUMBERS:
        total = total * x * np.float32(0.5) + np.float32(number)
    return total


def _both(x: Any, y: Any) -> Any:
    """The end reads results of a nest with as many numbers."""
    tops = [x * np.float32(number) + y * y for number in NUMBERS[:20]]
    total = y
    for top, number in zip(tops * 2, NUMBERS[20:60]):
        total = (total + top * np.float32(number)) * np.float32(0.25)
    return total


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 3, 11)])
def test_numbers_are_not_counted(shape: tuple[int, ...]) -> None:
    x = np.linspace(-0.9, 0.9, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    assert len(_fusions(_polynomial, x)) == 1
    assert len(_fusions(_both, x, np.ones(shape, np.float32))) == 1


@pytest.mark.parametrize("of_program", [False, True])
def test_arrays_are_counted(of_program: bool) -> None:
    arrays = [np.linspace(0, 1 + k, 7, dtype=np.float32) for k in range(3 * MOST)]

    def f(x: Any, *given: Any) -> Any:
        total = x
        for array in arrays if of_program else given:
            total = total * np.float32(0.5) + array
        return total

    fusions = _fusions(f, np.ones(7, np.float32), *([] if of_program else arrays))
    assert len(fusions) > 2
    assert all(sum(bool(o.shape.rank) for o in i.operands) <= MOST for i in fusions)


@pytest.mark.parametrize(
    "whole",
    [
        lambda part, x: hloom.numpy.concatenate([x[:1], part(x[1:-1]), 2 * x[-1:]]),
        lambda part, x: hloom.numpy.pad(part(x), ((1, 2), (0, 3))),
    ],
    ids=["concatenate", "pad"],
)  # fmt: skip
def test_a_part_of_a_larger_array_is_computed_once(whole: Any) -> None:
    """The nest of the whole reads it at as many places as it has, so that its length does not matter."""

    def part(x: Any) -> Any:
        return x * np.float32(2) + x * x - x * x * x * np.float32(0.5)

    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
    assert len(_fusions(lambda x: whole(part, x), x)) == 1


def test_a_part_with_parts_of_its_own_has_its_own_kernel() -> None:
    """Else the loops of one are written in the loops of the other: a program of oscillators took twice as long to
    compile."""

    def slope(x: Any) -> Any:
        moved = hloom.numpy.roll(x[0], 1) - x[0]
        return hloom.numpy.stack([x[1], moved * np.float32(0.3) - moved * moved * moved * x[1]])

    fusions = _fusions(slope, np.ones((2, 30), np.float32))
    counts = [sum(i.opcode is Opcode.CONCATENATE for i in f.attributes.calls.instructions) for f in fusions]
    assert sorted(counts)[-2:] == [1, 1]
