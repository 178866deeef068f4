"""Make kernels of an algorithm, in three forms.

For any size: sizes are arguments, and a matrix is worked on where it is stored at the end, or in scratch memory.

Small matrices one after the other: a matrix is read into a local array, is worked on there, and is stored at the end.
Rows of the array are as long as vector registers. Sizes are literals, and loops along rows (over `j`) have literal
lengths, so that LLVM makes straight vector code of them: a row is updated as a whole, and a select keeps the elements
that must not change.

Interleaved small matrices: a row of a local array holds element (i, j) of as many matrices as a vector register has
numbers. So every operation is one of vectors, whatever the size of the matrices is. Selects exchange rows. Where fewer
matrices are left, the last one is computed several times and stored once. All numbers of the smallest matrices are in
registers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...hlo.element_type import ElementType
from ...hlo.support.records import dataclass
from ..emit.text_kernels import kernel_of_text
from ..emit.texts import LANES, Text, View, indented
from ..emitted_kernel import EmittedKernel
from ..loops.inward import Inward
from ..loops.registers import Registers, Unroll
from ..loops.typing import SHORT
from .factorize import Lines, lines

MOST_ROWS = 32
"""The largest small matrix."""
_MOST_LOCAL_BYTES = 32 << 10
"""All local arrays of a kernel: more would not stay in the first-level cache."""
_MOST_REGISTERS = 32
"""Numbers of a matrix and its right-hand sides that are local variables: there are as many vector registers."""
_MOST_ELEMENTS = 4096
"""Most elements of a local array of many matrices."""
_S32 = ElementType.S32


def fits_lanes(element_type: ElementType, count: int, *arrays: int) -> bool:
    """Whether interleaving so many matrices is faster. `arrays`: how many numbers of one matrix each local array
    holds."""
    lanes = LANES.get(element_type)
    return lanes is not None and 2 * count >= lanes and max(arrays) * lanes <= _MOST_ELEMENTS


@dataclass(frozen=True)
class Matrix:
    """A matrix of a text: in memory it is rows x columns."""

    name: str
    rows: str
    columns: str
    source: str = ""
    """The operand that it is at the beginning."""
    target: str = ""
    """The output that it is at the end."""
    is_work: bool = False
    """A matrix with a source and no target is worked on; else it is only read."""
    transposed: bool = False
    """The text has its transpose."""
    conjugated: bool = False
    """The text has its conjugate."""
    source_order: str = ""
    """Row i is row order[i] of the source."""
    target_order: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether the text stores to it."""
        return self.is_work or bool(self.target)

    @property
    def shape(self) -> tuple[str, str]:
        """The sizes that the text uses."""
        return (self.columns, self.rows) if self.transposed else (self.rows, self.columns)

    def place(self, row: str, column: str, order: str = "", item: str = "it") -> str:
        """Where an element of the text's matrix is in memory."""
        if self.transposed:
            row, column = column, row
        if order:
            row = f"int64(minimum(maximum({order}[{item} * {self.rows} + {row}], int32(0)), int32({self.rows} - 1)))"
        return f"{item} * {self.rows} * {self.columns} + {row} * {self.columns} + {column}"

    def read(self, width: int = 0) -> Lines:
        """The matrix from its source. `width`: of its rows, with zeros at their ends."""
        rows, columns = self.shape
        value = f"{self.source}[{self.place('i', 'c', self.source_order)}]"
        text = lines(f"""
for i in range({rows}):
    for c in range({columns}):
        {self.name}[i, c] = {f"conj({value})" if self.conjugated else value}
""")
        if width:
            text += [f"    for c in range({columns}, {width}):", f"        {self.name}[i, c] = T(R(0))"]
        return text

    def written(self) -> Lines:
        """The matrix to its target."""
        rows, columns = self.shape
        value = f"{self.name}[i, c]"
        return lines(f"""
for i in range({rows}):
    for c in range({columns}):
        {self.target}[{self.place("i", "c", self.target_order)}] = {f"conj({value})" if self.conjugated else value}
""")


@dataclass(frozen=True)
class Vector:
    """Numbers of a matrix: an operand, or an output."""

    name: str
    length: str
    element_type: ElementType
    is_output: bool = True

    @property
    def view(self) -> View:
        """Where they are in memory."""
        return View(self.name, self.name, f"it * {self.length} + I")


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A text with its matrices and vectors, and the operands and outputs of an instruction that they are."""

    name: str
    lines: Lines
    element_type: ElementType
    count: int
    """Matrices of the batch."""
    sizes: Mapping[str, int]
    matrices: tuple[Matrix, ...]
    vectors: tuple[Vector, ...]
    roles: Mapping[str, tuple[int | None, int | None]]
    """The operand or output of the instruction, for each of the kernel's pointers."""
    one: float
    """Nanoseconds for a matrix, one after the other."""
    many: float
    """Nanoseconds for a matrix among many."""
    has_long_rows: bool = False
    """One after the other is better, however many there are."""
    whole_rows: bool = False
    """In a row, elements before the start of a loop over j may be overwritten."""

    def of_small(self) -> EmittedKernel | None:
        """The kernel for small matrices; None for others, or if there are none."""
        shapes = {m.name: (self.sizes[m.rows], self.sizes[m.columns]) for m in self.matrices}
        if not self.count or any(0 in shape or shape[0] > MOST_ROWS for shape in shapes.values()):
            return None
        numbers = [self.sizes[m.shape[0]] * self.width(m) for m in self.matrices if m.is_changed]
        if sum(numbers) * self.element_type.byte_width > _MOST_LOCAL_BYTES:
            return None
        side_by_side = fits_lanes(self.element_type, self.count, *(rows * columns for rows, columns in shapes.values()))
        return self._side_by_side() if side_by_side and not self.has_long_rows else self._one_by_one()

    def of_any_size(self) -> tuple[Text, dict[str, int], dict[str, str]]:
        """The text with sizes as arguments; the scratch memory that it needs, by name; and the operand that must be
        copied to an output before the text runs, by output."""
        before: Lines = []
        after: Lines = []
        views = [v.view for v in self.vectors]
        scratch = {"sums": max(1, *self.sizes.values())}
        copies: dict[str, str] = {}
        for m in self.matrices:
            rows, columns = m.shape
            if not m.is_changed:
                views.append(View(m.name, m.source, m.place("I", "J")))
            elif m.target and not (m.transposed or m.source_order or m.target_order):
                views.append(View(m.name, m.target, m.place("I", "J")))
                copies |= {m.target: m.source} if m.source else {}
            else:
                views.append(View(m.name, m.name, f"I * {columns} + J"))
                scratch[m.name] = self.sizes[rows] * self.sizes[columns]
                before += m.read() if m.source else []
                after += m.written() if m.target else []
        pointers = (*self.pointers(), *dict.fromkeys(scratch, self.element_type).items())
        text = Text(
            self.name, (*before, *self.lines, *after), self.element_type, pointers, tuple(self.sizes), tuple(views),
            (("it", "b"),), (Inward("j", arrays=(("dot", "sums"),)),),
        )  # fmt: skip
        return text, scratch, copies

    def pointers(self) -> tuple[tuple[str, ElementType], ...]:
        """The pointers, in the order of their roles."""
        kinds = dict.fromkeys((p for m in self.matrices for p in (m.source, m.target) if p), self.element_type)
        kinds |= {v.name: v.element_type for v in self.vectors}
        return tuple((key, kinds.get(key, _S32)) for key in self.roles)

    def width(self, m: Matrix) -> int:
        """The length of its rows in a local array: whole vector registers of 32 bytes, or of 16 if that is enough."""
        n, lanes = self.sizes[m.shape[1]], 32 // self.element_type.byte_width
        if n <= lanes // 2:
            lanes = max(1, lanes // 2)
        return 1 if n == 1 else -(-n // lanes) * lanes

    def _one_by_one(self) -> EmittedKernel:
        before: Lines = []
        after: Lines = []
        views = [v.view for v in self.vectors]
        widths: dict[int, int] = {}
        for m in self.matrices:
            if not m.is_changed:
                views.append(View(m.name, m.source, m.place("I", "J")))
                continue
            rows, columns = (self.sizes[name] for name in m.shape)
            width = widths[columns] = self.width(m)
            views.append(View(m.name, m.name, f"I * {width} + J"))
            before.append(f"{m.name} = local_array({rows * width}, T)")
            before += m.read(width) if m.source else []
            after += m.written() if m.target else []
        text = Text(
            self.name, (*before, *self.lines, *after), self.element_type, self.pointers(), (), tuple(views),
            (*self.sizes.items(), ("it", "b")), (Inward("j", tuple(widths.items()), whole=self.whole_rows),),
        )  # fmt: skip
        return kernel_of_text(text, {}, self.roles, self.count, self.one)

    def _side_by_side(self) -> EmittedKernel:
        lanes, sizes = LANES[self.element_type], self.sizes
        before: Lines = []
        after: Lines = []
        views: list[View] = []
        moved = [sizes[m.rows] * sizes[m.columns] for m in self.matrices if m.source or m.target]
        before.append(f"transposed = local_array({4 * max(moved)}, R)")
        for m in self.matrices:
            rows, columns = sizes[m.rows], sizes[m.columns]
            down, across = (1, columns) if m.transposed else (columns, 1)
            for name, lane in ((m.name, "l"), (f"{m.name}_lane", "lane")):
                views.append(View(name, m.name, f"(I * {down} + J * {across}) * {lanes} + {lane}"))
            views.append(View(f"{m.name}_all", m.name, "I"))
            before.append(f"{m.name} = local_array({rows * columns * lanes}, R)")
            if m.source:
                before += _in_order(m, lanes, m.source_order) if m.source_order else _packed(m, rows * columns, lanes)
            if m.target:
                after += _in_order(m, lanes, m.target_order) if m.target_order else _unpacked(m, rows * columns, lanes)
        item = f"minimum(b * {lanes} + l, items - 1)"
        for v in self.vectors:
            if not v.is_output:
                views.append(v.view)
                continue
            views += [View(v.name, f"{v.name}_of", f"I * {lanes} + l"), View(f"{v.name}_all", f"{v.name}_of", "I")]
            views.append(View(f"{v.name}_out", v.name, "I"))
            length = sizes.get(v.length, 1 if v.length == "1" else min(sizes.values()))
            before.append(f"{v.name}_of = local_array({length * lanes}, R)")
            number = f"{v.name}_all[i * {lanes} + lane]"
            after += lines(f"""
for i in range({length}):
    for lane in range(minimum({lanes}, items - b * {lanes})):
        {v.name}_out[(b * {lanes} + lane) * {length} + i] = {f"int32({number})" if v.element_type is _S32 else number}
""")
        core = [f"for l in range({lanes}):", *indented(self.lines)]
        inward = Inward("l", numbers=SHORT[self.element_type.value])
        in_registers = sum(sizes[m.rows] * sizes[m.columns] for m in self.matrices) <= _MOST_REGISTERS
        steps = (Unroll("l"), inward, Registers("l")) if in_registers and math.isfinite(self.one) else (inward,)
        text = Text(
            f"{self.name}_lanes", (*before, *core, *after), self.element_type, self.pointers(), ("items",),
            tuple(views), (*sizes.items(), ("it", item)), steps,
        )  # fmt: skip
        blocks = -(-self.count // lanes)
        return kernel_of_text(text, {"items": self.count}, self.roles, blocks, self.many * lanes)


def _in_order(m: Matrix, lanes: int, order: str) -> Lines:
    """Rows of a matrix, read from or written to the places that an order gives."""
    item = f"minimum(b * {lanes} + lane, items - 1)"
    here, there = f"{m.name}_lane[i, c]", f"{m.source if m.source_order else m.target}[start + c]"
    return lines(f"""
for lane in range({lanes}):
    for i in range({m.rows}):
        start = {m.place("i", "0", order, item)}
        for c in range({m.columns}):
            {f"{here} = {there}" if m.source_order else f"{there} = {here}"}
""")


def _packed(m: Matrix, size: int, lanes: int) -> Lines:
    """Read matrices four at a time and interleave them; LLVM makes shuffles of this code."""
    name = f"{m.name}_all"
    copies = "\n".join(f"            transposed[4 * i + {c}] = {m.source}[start + {c * size} + i]" for c in range(4))
    return lines(f"""
if items - b * {lanes} >= {lanes}:
    for g in range({lanes // 4}):
        start = (b * {lanes} + g * 4) * {size}
        for i in independent({size}):
{copies}
        for i in range({size}):
            for c in range(4):
                {name}[i * {lanes} + g * 4 + c] = transposed[4 * i + c]
else:
    for lane in range({lanes}):
        start = minimum(b * {lanes} + lane, items - 1) * {size}
        for i in range({size}):
            {name}[i * {lanes} + lane] = {m.source}[start + i]
""")


def _unpacked(m: Matrix, size: int, lanes: int) -> Lines:
    """The matrices one after the other again."""
    name = f"{m.name}_all"
    copies = "\n".join(f"            {m.target}[start + {c * size} + i] = transposed[4 * i + {c}]" for c in range(4))
    return lines(f"""
if items - b * {lanes} >= {lanes}:
    for g in range({lanes // 4}):
        start = (b * {lanes} + g * 4) * {size}
        for i in range({size}):
            for c in range(4):
                transposed[4 * i + c] = {name}[i * {lanes} + g * 4 + c]
        for i in independent({size}):
{copies}
else:
    for lane in range(minimum({lanes}, items - b * {lanes})):
        for i in range({size}):
            {m.target}[(b * {lanes} + lane) * {size} + i] = {name}[i * {lanes} + lane]
""")


def work_of(element_type: ElementType, a: int, b: int, c: int) -> float:
    """Nanoseconds of a factorisation. It updates whole rows, though half would do, and reads and stores the
    matrices."""
    lanes = 32 / element_type.byte_width
    return 0.2 * a * b * math.ceil(c / lanes) * (4 if element_type.is_complex else 1) + 0.3 * (a * b + b * c)
