"""The kernel of the derivative of a convolution by its kernel, channels first.

An element of the result is the product of two long vectors: the cotangents of one output, and the inputs that one
element of the window covers, its *patch*. Both are contiguous in memory along the positions. A few patches are copied
next to each other, from the copy of the input with its padding, for a piece of the positions of one image; then each
tile of a few outputs and these patches runs along them, with a vector register of sums for each pair::

    for item in range(lo, hi):                  group, a few elements of inputs x window
        for image in range(images):
            for c in range(0, padded, chunk):
                patch[...] = x[...]
                for o in range(0, outputs, 6):
                    sums00[...], ... = 0
                    for v in range(0, length, 16):
                        sums00[q] += y[o, c + v + q] * patch[0, v + q]
                        ...
                    totals[o, ...] += sum of sums00, ...

The rows of cotangents are padded with zeros to whole registers, and so are the patches. The totals are f64: there are
many images and pieces, and their rounding errors would add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ...hlo.window import WindowDimension
from ..loops.expressions import ZERO, Expr, Name, Number, all_of, call, minimum, product
from ..loops.writer import cast
from ..machine import Machine
from .convolution import Sizes
from .convolution_copy import Cells, Geometry
from .kernel import HI, LO, EmittedKernel, memory_type
from .scalar_computations import KernelText
from .window_axes import Axis, row_major, take_apart

PATCHES = 4
LANES = 16
"""Sums of a pair: one or more registers. LLVM unrolls shorter loops before it makes vectors of them, and then fails."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """A tile: pairs of `rows` outputs and PATCHES patches, with `lanes` sums each."""

    rows: int
    lanes: int
    chunk: int
    """Positions of a piece: whole registers. All its patches take half of a first-level cache."""

    @property
    def stride(self) -> int:
        """The distance of two patches."""
        return self.chunk + self.lanes


def pairs_of(machine: Machine, element_type: ElementType, outputs: int) -> Pairs:
    """The tile for a machine's registers."""
    count, nbytes = machine.registers, machine.register_bytes
    each = max(1, LANES * element_type.byte_width // nbytes)
    most = max(1, (24 if count >= 32 else 12) // (PATCHES * each))
    rows = -(-outputs // -(-outputs // most)) if outputs < 2 * most else most
    return Pairs(rows, LANES, machine.first_cache // 2 // PATCHES // element_type.byte_width - LANES)


def padded_cotangents(sizes: Sizes, pairs: Pairs) -> Geometry:
    """The copy of the cotangents, with rows of whole registers. Unnecessary if the rows have such lengths anyway."""
    count = -(-sizes.positions // pairs.lanes) * pairs.lanes
    axis = Axis(sizes.positions, count, WindowDimension())
    seen = Sizes(sizes.element_type, False, sizes.batch, 1, sizes.made, 1, (axis,))
    return Geometry(seen, (Cells(axis, 1, count),))


def emit_gradient_first(
    geometry: Geometry, pairs: Pairs, padded: int, images: int, *, begins: bool, ends: bool
) -> EmittedKernel:
    """Operand 0: the copy of some images; operand 1: their cotangents, in rows of `padded` elements; operand 2: the
    offsets of the taps; output 0: the derivative; output 1: its elements in f64, which are cleared if it `begins`, and
    written to output 0 if it `ends`.

    The copy must be followed by as many elements, of any value, as a register has lanes.
    """
    sizes, cells = geometry.sizes, geometry.cells
    text = KernelText("convolution_gradient", guarded=True)
    writer, kind = text.writer, memory_type(sizes.element_type)
    x = text.operand("x", sizes.element_type, 0).pointer
    y = text.operand("y", sizes.element_type, 1).pointer
    offsets = text.operand("offsets", ElementType.S64, 2).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    totals = text.output("totals", ElementType.F64, 1).pointer
    groups, inputs, outputs = (
        text.size("groups", sizes.groups), text.size("inputs", sizes.inputs), text.size("outputs", sizes.outputs)
    )  # fmt: skip
    taps, plane = text.argument("taps", sizes.taps), text.argument("plane", geometry.plane)
    counts = [text.size(f"m{d}", c.axis.count) for d, c in enumerate(cells)]
    widths = [text.argument(f"c{d}", c.size) for d, c in enumerate(cells)]
    positions, row_length = text.argument("positions", sizes.positions), text.argument("row_length", padded)
    of_images = text.argument("images", images)
    beginning, ending = text.argument("begins", int(begins)), text.argument("ends", int(ends))
    count = sizes.inputs * sizes.taps
    parts, elements = text.argument("parts", -(-count // PATCHES)), text.argument("elements", count)
    patch = writer.local_array("patch", PATCHES * pairs.stride, kind)
    lanes = Number(pairs.lanes)
    sums = [
        [writer.local_array(f"sums{r}{s}", pairs.lanes, kind) for s in range(PATCHES)] for r in range(pairs.rows)
    ]

    def copy_patch(s: Name, image: Expr, c: Expr, length: Expr) -> None:
        """Positions c to c + length of the patch of one element. Lines are copied in whole registers: extra elements
        are overwritten by the next line, or by zeros."""
        element = writer.assign("element", minimum(first + s, elements - 1))
        feature = writer.assign("feature", product(group, inputs) + element // taps)
        number = row_major([image, feature], [ZERO, product(groups, inputs)])
        base = writer.assign("base", product(number, plane) + offsets[element % taps])
        to = writer.assign("to", product(s, Number(pairs.stride)))
        end = writer.assign("end", to + minimum(length, positions - c))
        stop = writer.assign("stop", to + length)
        *lines, column = take_apart(text, c, [*(f"line{d}" for d in range(len(cells) - 1)), "column"], counts)
        with writer.while_(to < end):
            some = writer.assign("some", minimum(counts[-1] - column, end - to))
            source = writer.assign("source", base + row_major([*lines, column], widths))
            with writer.loop("v", 0, some, step=pairs.lanes) as v:
                into = writer.assign("into", to + v)
                origin = writer.assign("origin", source + v)
                with writer.lanes("q", lanes) as q:
                    writer.store(patch, into + q, x[origin + q])
            writer.augment(to, "+", some)
            writer.assign(column, 0)
            if lines:
                writer.augment(lines[-1], "+", 1)
            for d in range(len(lines) - 1, 0, -1):
                with writer.if_(lines[d].eq(counts[d])):
                    writer.assign(lines[d], 0)
                    writer.augment(lines[d - 1], "+", 1)
        with writer.loop("v", end, stop) as v:
            writer.store(patch, v, cast(kind, 0))

    def multiply(o: Name, image: Expr, c: Expr, length: Expr) -> None:
        """Adds the products of outputs from o on and the patches. Outputs beyond the last one are that again, and are
        not written."""
        for of_row in sums:
            for total in of_row:
                with writer.lanes("q", lanes) as q:
                    writer.store(total, q, cast(kind, 0))
        made = writer.assign("made", row_major([image, group, ZERO], [ZERO, groups, outputs]))
        starts = []
        for r in range(pairs.rows):
            output = minimum(o + r, outputs - 1) if r else o
            starts.append(writer.assign(f"start{r}", product(made + output, row_length) + c))
        with writer.loop("v", 0, length, step=pairs.lanes) as v:
            for r, of_row in enumerate(sums):
                at = writer.assign(f"at{r}", starts[r] + v)
                for s, total in enumerate(of_row):
                    place = writer.assign(f"place{s}", v + s * pairs.stride)
                    with writer.lanes("q", lanes) as q:
                        writer.store(total, q, total[q] + y[at + q] * patch[place + q])
        for r, of_row in enumerate(sums):
            target = writer.assign("target", product(product(group, outputs) + o + r, elements) + first)
            for s, total in enumerate(of_row):
                value = writer.assign("value", cast(kind, 0))
                with writer.lanes("q", lanes) as q:
                    writer.assign(value, call("reduce_add", value, total[q]))
                test = first + s < elements
                with writer.if_(all_of([test, o + r < outputs]) if r else test):
                    writer.store(totals, target + s, totals[target + s] + cast("float64", value))

    def each(act: Callable[[Expr], None]) -> None:
        """Call `act` with the place of each element of these patches, for any output."""
        with writer.loop("o", outputs) as o:
            target = writer.assign("target", product(product(group, outputs) + o, elements))
            with writer.loop("s", first, minimum(first + PATCHES, elements)) as s:
                act(target + s)

    with writer.loop("item", LO, HI) as item:
        group, part = take_apart(text, item, ["group", "part"], [ZERO, parts])
        first = writer.assign("first", product(part, Number(PATCHES)))
        with writer.if_(beginning.eq(1)):
            each(lambda at: writer.store(totals, at, cast("float64", 0)))
        with writer.loop("image", of_images) as image, writer.loop("c", 0, row_length, step=pairs.chunk) as c:
            length = writer.assign("length", minimum(row_length - c, Number(pairs.chunk)))
            with writer.loop("s", Number(PATCHES)) as s:
                copy_patch(s, image, c, length)
            with writer.loop("o", 0, outputs, step=pairs.rows) as o:
                multiply(o, image, c, length)
        with writer.if_(ending.eq(1)):
            each(lambda at: writer.store(out, at, cast(kind, totals[at])))
    return text.finish(sizes.groups * -(-count // PATCHES))
