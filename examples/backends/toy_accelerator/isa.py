"""The instruction set: arrays in memory, the eight commands, their cycles.

The machine has a large memory and a scratchpad. Arithmetic reads and writes the scratchpad only; between the two, and
within the memory, arrays move by DMA. A command names memory by the number of a block and an offset; it gets the
block's address when a program is launched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hloom.hlo import ElementType, Opcode
from hloom.hlo.ir import Attributes
from hloom.hlo.ops import Trait, has_trait

SCRATCHPAD = -1
"""The block number of the scratchpad."""
SCRATCHPAD_BYTES = 256 << 10
LANES = 1024
"""Elements that the vector unit computes at once: 8 x 128."""
SIDE = 128
"""The matrix unit multiplies by tiles of 128 x 128 weights, a row each cycle."""
BYTES_A_CYCLE = 64
"""Of the DMA engine, for contiguous bytes; other elements take a cycle each."""
START = 32
"""Cycles until a command does something."""


class Start(NamedTuple):
    """A start index that the DMA engine reads when it runs: clamped to 0..limit, and multiplied by a stride."""

    block: int
    offset: int
    element: ElementType
    limit: int
    stride: int


@dataclass(frozen=True, slots=True)
class View:
    """An array in memory: element (i, j, ...) is at offset + i * strides[0] + j * strides[1] + ... bytes."""

    block: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    starts: tuple[Start, ...] = ()

    @staticmethod
    def dense(block: int, offset: int, sizes: Sequence[int], itemsize: int) -> View:
        """An array without gaps, in row-major order."""
        strides = [itemsize * math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
        return View(block, offset, tuple(sizes), tuple(strides), itemsize)

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)

    @property
    def is_dense(self) -> bool:
        """True for an array without gaps, in row-major order."""
        return self == View.dense(self.block, self.offset, self.sizes, self.itemsize)

    def transpose(self, order: Sequence[int]) -> View:
        """Dimension d of the result is dimension order[d] of this."""
        return replace(self, sizes=tuple(self.sizes[d] for d in order), strides=tuple(self.strides[d] for d in order))

    def slice(self, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]) -> View:
        """Every `steps`-th element from `starts` on, `sizes` of them. A negative step goes backwards."""
        offset = self.offset + sum(a * b for a, b in zip(starts, self.strides, strict=True))
        strides = tuple(a * b for a, b in zip(steps, self.strides, strict=True))
        return replace(self, offset=offset, sizes=tuple(sizes), strides=strides)

    def part(self, dimension: int, start: int, size: int, step: int = 1) -> View:
        """A slice along one dimension."""
        starts, steps, sizes = [0] * len(self.sizes), [1] * len(self.sizes), list(self.sizes)
        starts[dimension], steps[dimension], sizes[dimension] = start, step, size
        return self.slice(starts, steps, sizes)

    def broadcast(self, dimensions: Sequence[int], sizes: Sequence[int]) -> View:
        """An array of `sizes` in which dimension d of this is dimension dimensions[d], and others repeat it."""
        strides = [0] * len(sizes)
        for d, stride in zip(dimensions, self.strides, strict=True):
            strides[d] = stride
        return replace(self, sizes=tuple(sizes), strides=tuple(strides))

    def reshape(self, *sizes: int) -> View:
        """A dense array with other dimensions."""
        assert self.is_dense and math.prod(sizes) == self.count, f"{self} as {sizes}"
        return View.dense(self.block, self.offset, sizes, self.itemsize)

    def __str__(self) -> str:
        where = "pad" if self.block == SCRATCHPAD else f"b{self.block}"
        moved = "".join(f"+[b{s.block}+{s.offset}]*{s.stride}" for s in self.starts)
        steps = "" if self.is_dense else f":{list(self.strides)}"
        return f"{where}+{self.offset}{moved}{list(self.sizes)}{steps}x{self.itemsize}"


@dataclass(eq=False, slots=True)
class Label:
    """A place in a program: the target of a jump."""

    position: int = -1


@dataclass(frozen=True, slots=True)
class Dma:
    """Copy an array to one of equal dimensions. It reads all before it writes."""

    target: View
    source: View

    @property
    def cycles(self) -> int:
        row = min(_contiguous(self.target), _contiguous(self.source))
        rows = self.target.count // max(1, row)
        return START + rows * max(1, -(-row * self.target.itemsize // BYTES_A_CYCLE))

    def __str__(self) -> str:
        return f"dma     {self.target} <- {self.source}"


@dataclass(frozen=True, slots=True)
class Vector:
    """One arithmetic op, an HLO opcode, on `count` elements; operands and result are offsets in the scratchpad."""

    opcode: Opcode
    attributes: Attributes
    element: ElementType
    target: int
    sources: tuple[tuple[ElementType, int], ...]
    count: int

    @property
    def cycles(self) -> int:
        slow = 16 if has_trait(self.opcode, Trait.EXPENSIVE) else 1
        return START + slow * -(-self.count // LANES) * -(-self.element.byte_width // 4)

    def __str__(self) -> str:
        sources = ", ".join(f"{e.value} pad+{o}" for e, o in self.sources)
        return f"vector  {self.element.value} pad+{self.target} <- {self.opcode.value}({sources}) x{self.count}"


@dataclass(frozen=True, slots=True)
class Iota:
    """first, first + 1, ... into the scratchpad."""

    element: ElementType
    target: int
    first: int
    count: int

    @property
    def cycles(self) -> int:
        return START + -(-self.count // LANES)

    def __str__(self) -> str:
        return f"iota    {self.element.value} pad+{self.target} <- {self.first} x{self.count}"


@dataclass(frozen=True, slots=True)
class MatMul:
    """c[m,n] = a[m,k] b[k,n], or c += a b, dense in the scratchpad."""

    element: ElementType
    c: int
    a: int
    b: int
    m: int
    k: int
    n: int
    adds: bool

    @property
    def cycles(self) -> int:
        tiles = -(-self.k // SIDE) * -(-self.n // SIDE)
        return START + tiles * (SIDE + self.m) * (1 if self.element is ElementType.F32 else 4)

    def __str__(self) -> str:
        sign = "+=" if self.adds else "="
        c, a, b = (f"pad+{offset}" for offset in (self.c, self.a, self.b))
        return f"matmul  {self.element.value} {c}[{self.m},{self.n}] {sign} {a}[{self.m},{self.k}] {b}"


@dataclass(frozen=True, slots=True)
class Gather:
    """target[i] = memory[indices[i]], for indices (s64, in the scratchpad) that are not negative."""

    target: int
    memory: View
    indices: int
    count: int

    @property
    def cycles(self) -> int:
        return START + self.count

    def __str__(self) -> str:
        return f"gather  pad+{self.target} <- {self.memory}[pad+{self.indices}] x{self.count}"


@dataclass(frozen=True, slots=True)
class Scatter:
    """memory[indices[i]] = source[i], for indices that are not negative; no index twice."""

    memory: View
    source: int
    indices: int
    count: int

    @property
    def cycles(self) -> int:
        return START + self.count

    def __str__(self) -> str:
        return f"scatter {self.memory}[pad+{self.indices}] <- pad+{self.source} x{self.count}"


@dataclass(frozen=True, slots=True)
class Jump:
    """Continue at a label. With `unless`, the place of a byte: only if that is 0."""

    target: Label
    unless: View | None = None
    cycles: int = field(default=4, init=False)

    def __str__(self) -> str:
        return f"jump    {self.target.position}" + (f" unless {self.unless}" if self.unless else "")


@dataclass(frozen=True, slots=True)
class Switch:
    """Continue at the label that an s32 in memory numbers; at the last one if there is none of this number."""

    index: View
    targets: tuple[Label, ...]
    cycles: int = field(default=4, init=False)

    def __str__(self) -> str:
        return f"switch  {self.index} {[label.position for label in self.targets]}"


Command = Dma | Vector | Iota | MatMul | Gather | Scatter | Jump | Switch


@dataclass(frozen=True, slots=True)
class ToyProgram:
    """Commands for the blocks of memory that a launch names."""

    name: str
    commands: tuple[Command, ...]

    def __str__(self) -> str:
        return "\n".join(f"{number:5}  {command}" for number, command in enumerate(self.commands))


def _contiguous(view: View) -> int:
    """The number of contiguous elements in the innermost dimensions; all elements if the view repeats one."""
    if not any(view.strides):
        return view.count
    row, expected = 1, view.itemsize
    for size, stride in zip(view.sizes[::-1], view.strides[::-1], strict=True):
        if size != 1 and stride != expected:
            break
        row, expected = row * size, expected * size
    return row
