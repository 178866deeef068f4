"""`remembered`: one kernel for equal arguments, and another one for another machine."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hloom.hlo.element_type import ElementType
from hloom.hlo.window import WindowDimension
from hloom.numba_backend.emit.convolution import Sizes
from hloom.numba_backend.emit.convolution_copy import emit_copy, emit_panels, geometry_of
from hloom.numba_backend.emit.convolution_rows import Rows, emit_rows
from hloom.numba_backend.emit.scalar_computations import KernelText
from hloom.numba_backend.emit.window_axes import Axis
from hloom.numba_backend.emitted_kernel import EmittedKernel
from hloom.numba_backend.machine import compiling_for, target_machine
from hloom.numba_backend.remembered import MOST, remembered, remembered_by_form


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


def test_a_form_is_emitted_once_for_its_sizes() -> None:
    calls: list[object] = []

    @remembered_by_form
    def kernel(axes: tuple[Axis, ...], count: int, *, literal: bool = False) -> EmittedKernel:
        calls.append(count)
        text = KernelText("k")
        text.size("n", axes[0].size)
        if count > 16:
            text.argument("many", count * axes[0].count)
        if literal:
            text.size("s", 8 - count % 8, literal=True)
        return text.finish(count // 2)

    def numbers(size: int, count: int, **options: bool) -> tuple[list[object], int, str]:
        made = kernel((Axis(size, size, WindowDimension()),), count, **options)
        assert made is kernel((Axis(size, size, WindowDimension()),), count, **options)
        return [p.value for p in made.parameters], made.extent, made.source  # type: ignore[union-attr]

    assert numbers(30, 40)[:2] == ([30, 1200], 20)
    assert numbers(40, 40)[:2] == ([40, 1600], 20)
    assert numbers(40, 50) == ([40, 2000], 25, numbers(30, 40)[2])
    assert len(calls) == 1
    assert numbers(40, 10)[:2] == ([40], 5)
    assert numbers(2, 10)[:2] == ([2], 5)  # a size of so few is part of the form
    assert len(calls) == 3
    assert numbers(40, 50, literal=True)[:2] == ([40, 2000], 25)
    assert numbers(40, 52, literal=True)[:2] == ([40, 2080], 26)
    assert len(calls) == 5  # another number in the text
    assert numbers(40, 58, literal=True)[:2] == ([40, 2320], 29)
    assert len(calls) == 5


def test_an_emitter_that_cannot_be_observed_gets_numbers() -> None:
    @remembered_by_form
    def kernel(count: int) -> EmittedKernel:
        return KernelText("k").finish({30: 1, 40: 2}[count])

    assert [kernel(n).extent for n in (30, 40, 30)] == [1, 2, 1]


def _sizes(rng: random.Random) -> Sizes:
    def axis() -> Axis:
        part = WindowDimension(
            rng.randint(1, 5), rng.choice((1, 1, 2, 3, 6)), rng.randint(0, 6), 0, 1, rng.choice((1, 1, 2, 5))
        )
        return Axis(rng.choice((7, 12, 28, 64, 100)), rng.choice((1, 2, 4, 8, 24, 64)), part)

    inputs, outputs = rng.choice(((1, 1), (1, 8), (3, 16), (16, 16)))
    return Sizes(
        ElementType.F32, rng.random() < 0.4, rng.choice((1, 2, 8, 16, 48, 64)), rng.choice((1, 1, 8)), inputs, outputs,
        tuple([axis() for _ in range(rng.randint(1, 3))]),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_kernels_of_convolutions_are_those_of_their_own_sizes(seed: int) -> None:
    """Whatever was emitted before."""
    rng = random.Random(seed)
    for _ in range(60):
        sizes = _sizes(rng)
        last = replace(sizes, channels_last=True)
        spread = rng.random() < 0.3 and not sizes.channels_last
        given = [
            (emit_copy, (geometry_of(sizes, spread=spread), rng.choice((0, 2, 16)), rng.choice((1, 8, 30)))),
            (emit_panels, (last, last.groups, last.depth, 16)),
        ]
        if sizes.inputs == 1 and sizes.taps <= 25:
            given.append((emit_rows, (sizes, Rows(4, 16, 4096, rng.choice((1, 4, 14)), rng.choice((8, 16, 40))))))
        for emit, arguments in given:
            made = emit(*arguments)  # type: ignore[operator]
            alone = emit.__wrapped__.__wrapped__(*arguments)  # type: ignore[attr-defined]
            assert made.source == alone.source
            assert (made.parameters, made.extent, made.cost) == (alone.parameters, alone.extent, alone.cost)
            assert made.nanoseconds == alone.nanoseconds
