"""The steps of a schedule. A schedule is a tuple of them: data, which can be compared, printed, and given by hand.

    Part("j", "strip"), Part("i", "block")      threads share strips of columns and blocks of rows
    Split("j", "column", 16)                    columns in blocks of 16 ...
    Split("i", "row", 6)                        and rows in blocks of 6, the last one shifted back to have all
    Order("block", "strip", "column", "row", "p", "i", "j")
    Unroll("i"), Lanes("j")                     a block's 6 rows are written out, its 16 columns are vectors
    Pack("b", "panel", "column", (("p", 256), ("j", 16)))
    Accumulate("row")                           sums of a block of `row` are kept in registers
    Parallel("block", "strip")                  `lo, hi` counts blocks times strips

Names of variables (`names`, `start`, `count`, `above`) are for the text alone, and are not printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ...hlo.support.records import dataclass
from ..loops.expressions import Name

Tail = Literal["shift", "rest", "short"]
"""The treatment of a last iteration with fewer elements than the others. "shift": it begins earlier, so that results
are written twice. "rest": its elements have iterations of their own, one by one. "short": its inner loop is shorter. If
that loop is unrolled or a vector, the last element is computed again, or an unused value, and only elements of the
result are written."""


@dataclass(frozen=True, slots=True)
class Part:
    """A dimension in parts that threads share. The arguments `loop` and `loop`s say how long a part is, and how many
    there are; the last one has the rest, too."""

    dimension: str
    loop: str
    names: tuple[str, str, str] = field(default=("", "", ""), repr=False)
    """The number of a part; its first element, and the one after its last."""
    size: int = 0
    """The length of a part. 0: the policy chooses it for the sizes of the arrays."""

    def __repr__(self) -> str:
        size = f", size={self.size}" if self.size else ""
        return f"Part(dimension={self.dimension!r}, loop={self.loop!r}{size})"


@dataclass(frozen=True, slots=True)
class Split:
    """Split a loop into iterations of `size` elements: the new loop `outer` counts them, and the old loop goes through
    the elements of one."""

    loop: str
    outer: str
    size: int | Name
    """A parameter, too, if the inner loop is a plain one: the parameter `outer`s is the number of iterations."""
    tail: Tail = "shift"
    start: str = field(default="", repr=False)
    """The first element of an iteration."""
    count: str = field(default="", repr=False)
    """The number of elements of a short iteration."""


@dataclass(frozen=True, slots=True)
class Order:
    """All loops, outermost first."""

    loops: tuple[str, ...]

    def __init__(self, *loops: str) -> None:
        object.__setattr__(self, "loops", loops)


@dataclass(frozen=True, slots=True)
class Unroll:
    """Unroll a loop."""

    loop: str


@dataclass(frozen=True, slots=True)
class Partial:
    """Each iteration of an unrolled loop along a sum has a sum of its own. They are added at the end: so fewer
    additions wait for others."""

    loop: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """The elements of a loop are a vector, in one or more registers. Unrolled loops outside of it have a loop over
    lanes for each iteration; unrolled loops inside share one. Lanes along a sum are sums of their own, added at the
    end."""

    loop: str


@dataclass(frozen=True, slots=True)
class Pack:
    """Copy the elements of an operand that are read inside the loop `at` into the local array `into`, in the type of
    sums or as words of several elements. The copy is made at the beginning of each iteration, or once for all loops
    (""). `layout`: its loops, major to minor, and the most iterations of each."""

    operand: str
    into: str
    at: str
    layout: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Keep the sums of an iteration of the loop `at` ("": of all loops) in registers, and write them at its end. If a
    reduced loop outside of `at` has parts, the sums begin with the written values, or are added to them (`adds`):
    rounding errors grow with the length of a sum."""

    at: str
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Collect:
    """Add up the sums of an iteration of the loop `at` in the local array `into`. They are made in registers, one part
    after another. At the end of the iteration, the sums that belong to the result are written. `wide`: in f64. `most`:
    if more than 1, a loop over blocks of the result may be inside of the loops over parts, with up to `most`
    iterations. All blocks then read the same part of an operand while it is in the cache."""

    at: str
    into: str
    wide: bool = False
    most: int = 1

    def __repr__(self) -> str:
        most = f", most={self.most}" if self.most > 1 else ""
        return f"Collect(at={self.at!r}, into={self.into!r}, wide={self.wide!r}{most})"


@dataclass(frozen=True, slots=True)
class Padded:
    """All lanes of a short iteration may be read from an operand; values for lanes outside of the result are not
    written. If `step` is given, the operand has been packed: the iterations of the lanes' loop are not contiguous, and
    the distance of their first elements is `step` times as large."""

    operand: str
    step: Name | None = None


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """Terms may be added in any order, so that LLVM makes vectors along the innermost loop."""


@dataclass(frozen=True, slots=True)
class Band:
    """Skip elements outside of a band of the array (the result, or an operand). The band's elements [i, j] have ``i +
    low <= j <= i + high`` along the array's two last dimensions.  Other elements of the result are never read. Other
    elements of an operand are equal in each row (`by_columns`: column). If they are 0, and the other operand's packed
    elements finite, products with them are left out: this is tested."""

    array: str
    low: Name
    high: Name
    by_columns: bool = False


@dataclass(frozen=True, slots=True)
class Padding:
    """Leave out terms along the dimension `terms` that meet only zeros around an array, in an iteration of the loop
    over lanes. If an element of the operand `other` is infinite or NaN, no term is left out: this is tested for all
    `weights` elements of it.

    Results come in lines of `of_line`, from number `last_line` on only the last one again; a line begins `line_stride`
    cells after the one before, and `line_low` cells are before the array's `line_size`. A line covers `window`
    elements, which are `line_dilation` cells apart, and have `of_window` terms each."""

    terms: str
    strips: str
    """The dimension of the result that counts strips of `lines` lines."""
    other: str


@dataclass(frozen=True, slots=True)
class Parallel:
    """``lo, hi`` counts the iterations of these loops, which are parts or whole dimensions, outermost first."""

    loops: tuple[str, ...]
    above: tuple[str, ...] = field(default=(), repr=False)
    """By loop: the number of the iteration, counted over all loops outside of it."""


@dataclass(frozen=True, slots=True)
class Slice:
    """``lo, hi`` is a range of a dimension, and all loops of the dimension go through that range: in place of
    `Parallel`."""

    dimension: str


@dataclass(frozen=True, slots=True)
class Vectors:
    """The size of vectors in bits: 128, 256 or 512. Any kernel has this step; without it they have the machine's."""

    bits: int


@dataclass(frozen=True, slots=True)
class Share:
    """A thread's share of a kernel takes at least so long, as estimated. 0: one thread computes all of it. Any kernel
    has this step."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Jumps:
    """Loops of a program are kernels and jumps, even if one kernel could have a whole loop. It is for programs, "*"."""


Step = (
    Part | Split | Order | Unroll | Partial | Lanes | Pack | Accumulate | Collect | AnyOrder | Band | Padded | Padding
    | Parallel | Slice
)  # fmt: skip
Schedule = tuple[Step, ...]
KernelStep = Vectors | Share | Jumps
"""The steps that kernels without an algorithm have, too."""

EVERY = "*"
"""The name of all kernels of a program."""

Steps = tuple[Step | KernelStep, ...]
Schedules = Mapping[str, Steps]
"""Schedules by the name of a kernel, or `EVERY`."""


def names_of(step: Step) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The loops and dimensions that a step names, and the loops that it makes."""
    match step:
        case Part(dimension=name, loop=outer) | Split(loop=name, outer=outer):
            return (name,), (outer,)
        case Order(loops=loops) | Parallel(loops=loops):
            return loops, ()
        case Unroll(loop=name) | Partial(loop=name) | Lanes(loop=name) | Slice(dimension=name):
            return (name,), ()
        case Accumulate(at=name) | Collect(at=name) if name:
            return (name,), ()
        case Pack(at=at, layout=layout):
            return (*((at,) if at else ()), *(name for name, _ in layout)), ()
    return (), ()


def size_of(block: Part | Split | None) -> int:
    """How many elements a block has; 0 without blocks, or where a parameter says so."""
    return block.size if block is not None and isinstance(block.size, int) else 0
