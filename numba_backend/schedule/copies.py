"""The step `Pack`: copies of the elements of an operand that are read inside a loop."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..loops.expressions import ZERO, Expr, Name, Number, times
from .algorithm import Access
from .nest import Loop
from .offsets import OpenLoops, scaled
from .steps import Pack


class Copies:
    """The arrays into which operands are packed."""

    def __init__(self, here: OpenLoops) -> None:
        self.here, self.nest, self.algorithm = here, here.nest, here.algorithm
        self.writer = here.writer
        kind = self.algorithm.total_type
        self.arrays = {
            pack.into: self.writer.local_array(pack.into, math.prod(most for _, most in pack.layout), kind)
            for pack in self.nest.packs
        }
        self.packed: dict[str, tuple[Name, Pack]] = {}
        """The packed elements, by operand."""

    def element(self, access: Access) -> Expr:
        """An operand's element, in the type of sums."""
        copy = self.packed.get(access.name)
        if copy is None:
            return self.algorithm.held(access.pointer[self.here.offset(access)])
        array, pack = copy
        return array[self._place(pack)]

    def _place(self, pack: Pack) -> Expr:
        """The offset of an element in a copy."""
        steps: dict[str, int] = {}
        step = 1
        for name, most in reversed(pack.layout):
            steps[name], step = step, step * most
        total: Expr = ZERO
        for loop in self.nest.loops:
            if loop.name in steps:
                total = total + scaled(self.here.starts[loop.name], Number(steps[loop.name]))
        return total

    def pack(self, pack: Pack) -> tuple[Name, Expr]:
        """Copies, and gives the array and how many elements it has. Along memory: the layout's last loop is the
        innermost one if it goes from neighbour to neighbour, and the outermost one otherwise. ::

            if b1 == 1:                                          else:
                for p in range(k):                                   for j in range(16):
                    for j in range(16):                                  for p in range(k):
                        panel[p * 16 + j] = x1[from_b + p * b0 + j]          panel[...] = x1[from_b + ... + j * b1]
        """
        writer = self.writer
        access = self.algorithm.operand(pack.operand)
        outer = dict(self.here.known)
        self.packed.pop(access.name, None)
        self.here.name_start(access, f"from_{access.name}")
        array = self.arrays[pack.into]
        loops = [self.nest[name] for name, _ in pack.layout]
        stride = access.stride(loops[-1].dimension)

        def copy(access: Access, order: Sequence[Loop], counts: Sequence[Expr]) -> None:
            self.here.each(order, counts, lambda: writer.store(
                array, self._place(pack), self.algorithm.held(access.pointer[self.here.offset(access)])
            ))  # fmt: skip

        counts = [self.here.turns(loop) for loop in loops]
        turned = (*loops[-1:], *loops[:-1]), (*counts[-1:], *counts[:-1])
        if isinstance(stride, Number) or access.table(loops[-1].dimension):
            copy(access, *((loops, counts) if stride == Number(1) else turned))
        else:
            with writer.if_(stride.eq(1)):
                copy(access.with_neighbours(loops[-1].dimension), loops, counts)
            with writer.else_():
                copy(access, *turned)
        if self.nest.lanes in loops:
            self._fill(pack, array, loops, counts)
        self.here.known = outer
        self.packed[access.name] = array, pack
        count = counts[0]
        for other in counts[1:]:
            count = times(count, other)
        return array, count

    def _fill(self, pack: Pack, array: Name, loops: Sequence[Loop], counts: Sequence[Expr]) -> None:
        """Write zeros into lanes that a short iteration does not have."""
        writer, lanes = self.writer, self.nest.lanes
        assert lanes is not None
        count, all_lanes = self.here.turns(lanes), Number(lanes.extent)
        if count == all_lanes:
            return
        others = [(loop, turns) for loop, turns in zip(loops, counts, strict=True) if loop is not lanes]

        def fill() -> None:
            with writer.loop(lanes.name, count, all_lanes) as lane:
                self.here.starts[lanes.name] = lane
                writer.store(array, self._place(pack), self.algorithm.zero)
            del self.here.starts[lanes.name]

        with writer.if_(count < all_lanes):
            self.here.each([loop for loop, _ in others], [turns for _, turns in others], fill)
