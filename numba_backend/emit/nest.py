"""Emit the loop nests of a fused computation as a kernel.

A fusion without reductions is one nest over its result::

    def fused_add_maximum(lo, hi, x0, x1, out, n0, c0):
        for i in range(lo, hi):
            for j in range(n0):
                out[i * n0 + j] = maximum(x0[i * n0 + j] + x1[j], c0)

If an operand is transposed, its consecutive elements are along another loop than the innermost one. Then the two loops
are tiled, so that each cache line that is read is used whole::

    for i_tile in range(lo, hi, 32):
        for j_tile in range(0, n0, 32):
            for i in range(i_tile, minimum(i_tile + 32, hi)):
                for j in range(j_tile, minimum(j_tile + 32, n0)):
                    out[i * n0 + j] = x0[j * n1 + i]

Where both loops are long, whole tiles go through a local array: `emit_loop` shows it.

The nests of fusions with reductions are in `nest_stages.py`; nests that end in an in-place update are in this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ..emitted_kernel import HI, LO, EmittedKernel, memory_type, pointer_of, program_of
from ..loops.expressions import ZERO, Expr, Name, Number, call, is_number
from ..loops.nontemporal import streamed_row
from ..loops.statements import KernelParameter, LoopKind, PointerParameter
from ..loops.writer import Writer, cast
from ..machine import target_machine
from .collapse import FusedBody
from .copies import is_streamed
from .element import ElementEmitter, is_held_as_stored, loaded, stored
from .large_results import row_of
from .movement import clamped_starts
from .physical_index import ElementAddress, LoopDigit, TileLoops, guide_of, loop_digits, reached_parameters
from .physical_layouts import PhysicalLayout
from .sizes import Index, Sizes
from .transposes import Tiles, TransposeEmitter, moved_parameter, tiles_of

TILE = 32
"""Rows and columns of a tile: 32 x 32 floats are 64 cache lines on either side, well within the first level."""

LOOP_VARIABLES = ("i", "j", "k", "l", "m", "p", "q", "r")


def loop_variable(level: int) -> str:
    """The name of the loop variable at a nesting level."""
    return LOOP_VARIABLES[level] if level < len(LOOP_VARIABLES) else f"i{level}"


class NestEmitter:
    """Shared by all nests: one canonical fused computation, its pointers, and the program so far."""

    def __init__(self, fused: FusedBody, sharing: Mapping[int, int]) -> None:
        """`sharing`: output -> the operand that it overwrites."""
        body = fused.computation
        self.body = body
        self.fused = fused
        self.roots: tuple[HloInstruction, ...] = body.roots
        self.writer: Writer = Writer()
        self.sizes: Sizes = Sizes(body)
        self.elements: ElementEmitter = ElementEmitter(body, self.writer, self.sizes)
        self.elements.places.update(fused.parameter_places)
        self.sharing = sharing
        self._staged: tuple[Name, Expr] | None = None
        """The array and the index in it in which an element of a large result is now."""
        self._bytes: dict[tuple[int, Expr], list[Expr]] = {}
        """By output and offset of the byte: the known elements of the byte."""
        self.outputs: list[PointerParameter] = []
        shared = {operand: output for output, operand in sharing.items()}
        for parameter in body.parameters:
            number = parameter.attributes.number
            output = shared.get(number)
            name = f"x{number}" if output is None else f"io{number}"
            self.elements.pointers[number] = PointerParameter(name, parameter.shape.element, number, output)
        single = len(self.roots) == 1
        for k, root in enumerate(self.roots):
            if k in sharing:
                self.outputs.append(self.elements.pointers[sharing[k]])
                self.elements.used.add(sharing[k])
            else:
                self.outputs.append(PointerParameter("out" if single else f"out{k}", root.shape.element, None, k))

    def address(self, output: int, index: Index) -> ElementAddress:
        """Where an output's element is."""
        return self.elements.place_index.address(self.fused.root_places.get(output), self.roots[output], index)

    def store(self, output: int, address: ElementAddress, value: Expr) -> None:
        """Write an element of an output. An element of a packed output is written into the byte that it shares::

            out[at0 // 2] = uint8((int64(out[at0 // 2]) & ~(15 << (at0 % 2 * 4))) | ((int64(x) & 15) << (at0 % 2 * 4)))

        The elements of an unrolled loop fill the byte and are written together::

            out[i_0 * 32 + i_1] = uint8(((int64(x) & 15) << 0) | ((int64(y) & 15) << 4))
        """
        pointer, place = pointer_of(self.outputs[output]), self.fused.root_places.get(output)
        value = stored(self.outputs[output].element_type, value)
        if self._staged is not None:
            self.writer.store(*self._staged, value)
            return
        if place is None or address.shift is None:
            self.writer.store(pointer, address.offset, value)
            return
        mask = Number((1 << place.packed_bits) - 1)
        byte = (cast("int64", value) & mask) << address.shift
        if isinstance(address.shift, Number):
            parts = self._bytes.setdefault((output, address.offset), [])
            parts.append(byte)
            if len(parts) < 8 // place.packed_bits:
                return
            byte, *others = self._bytes.pop((output, address.offset))
            for other in others:
                byte = byte | other
        else:
            byte = (cast("int64", pointer[address.offset]) & ~(mask << address.shift)) | byte
        self.writer.store(pointer, address.offset, cast("uint8", byte))

    def stored_value(self, output: int, address: ElementAddress) -> Expr:
        """The current value of an output's element."""
        return self.elements.read(self.outputs[output], address, self.fused.root_places.get(output))

    def read_back(self, instruction: HloInstruction, output: int, index: Index) -> None:
        """From here on the value is read from an output that holds it."""
        self.elements.spilled[instruction, index] = lambda: self.stored_value(output, self.address(output, index))

    def tile_loops(self, domain: HloInstruction, digits: Sequence[LoopDigit], names: Mapping[int, str]) -> TileLoops:
        """Loops over `digits` of the indices of `domain`."""
        return TileLoops(self.elements.place_index, self.writer, self.sizes, domain, digits, names)

    def store_roots(self, index: Index) -> None:
        """Write all outputs at one index. An operand may be overwritten only when nothing reads it any more."""
        values = [self.elements.value(root, index) for root in self.roots]
        if len(self.sharing) > 1:
            for output in sorted(self.sharing):
                if not values[output].is_simple:
                    values[output] = self.writer.let(self.elements.stem(self.roots[output]), values[output])
        for output in sorted(range(len(self.roots)), key=lambda k: k in self.sharing):
            self.store(output, self.address(output, index), values[output])

    @contextmanager
    def loops(self, sizes: Sequence[Expr], first: int) -> Iterator[list[Name]]:
        """Nested loops over `range(size)`, variables named from level `first` on; gives the variables."""
        with ExitStack() as stack:
            yield [
                stack.enter_context(self.writer.neighbours(loop_variable(level), size, registers=()))
                for level, size in enumerate(sizes, first)
            ]

    @property
    def row(self) -> int:
        """How many of the last dimensions are a row of a large result: see `row_of`."""
        is_plain = len(self.roots) == 1 and not self.sharing and not self.fused.root_places
        return row_of(self.body) if is_plain else 0

    @contextmanager
    def row_loop(
        self, domain: HloInstruction, outer: Sequence[Expr], names: Sequence[str], bounds: tuple[Expr, Expr]
    ) -> Iterator[list[Expr]]:
        """The loops over a row of the large result, which has the elements of `domain`; gives their variables. `outer`:
        the index of the row."""
        inner = [ZERO] * (len(names) - 1)
        opened = streamed_row(
            self.writer, names, bounds, domain.shape.dimensions[-1] if inner else 1, pointer_of(self.outputs[0]),
            lambda component: self.sizes.offset(domain, (*outer, component, *inner)),
        )  # fmt: skip
        with opened as (variables, array, at):
            self._staged = array, at
            yield variables
            self._staged = None

    def finish(
        self, extent: int, *, whole_bytes: bool = False, notes: tuple[object, ...] = ()
    ) -> EmittedKernel:
        """The kernel of all that was written. `whole_bytes`: no two iterations of the outer loop write to the same byte
        of a packed output, so threads may split the loop. `notes`: see `LoopProgram`."""
        packed = any(place.packed_bits for place in self.fused.root_places.values())
        e = self.elements
        inputs = [p for number, p in sorted(e.pointers.items()) if number in e.used]
        fresh = [p for k, p in enumerate(self.outputs) if k not in self.sharing]
        parameters: tuple[KernelParameter, ...] = (*inputs, *fresh, *self.sizes.parameters, *e.scalars)
        program = program_of(kernel_name(self.body), parameters, self.writer, notes)
        return EmittedKernel(program, parameters, extent, is_serial=packed and not whole_bytes)


_UNNAMED = frozenset(
    (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BROADCAST, Opcode.RESHAPE)
)


def kernel_name(body: HloComputation) -> str:
    """A name made of the last few opcodes, so that people recognise the kernel."""
    named = [i.opcode.name.lower() for i in body.instructions if i.opcode not in _UNNAMED]
    distinct = list(dict.fromkeys(named)) or [i.opcode.name.lower() for i in body.instructions[-1:]]
    return "fused_" + "_".join(distinct[-3:])


def emit_loop(fused: FusedBody, sharing: Mapping[int, int]) -> EmittedKernel:
    """One nest over the roots' common dimensions; the outermost loop is shared between threads.  Transposed operands
    with rows and columns enough are transposed in blocks, which the compiler transposes in registers
    (`runtime/block_moves.py`). Tiles of up to 64 rows, each a few cache lines wide, go through a local array. A line is
    then read, and written, whole at once. Otherwise lines that are a power of two apart, as in a column, would evict
    each other from the cache before they are used up::

        edges = minimum(edge, 1) * 16
        whole = maximum(n0 - edges, 0) // 16 * 16
        for i_tile in range(lo, hi, 64):
            rows = minimum(64, hi - i_tile) // 16 * 16
            for j_tile in range(0, whole, 64):
                columns = minimum(64, whole - j_tile)
                for k in range(0, columns + edges, 16):
                    for l in range(0, rows, 16):
                        for m in range(16):
                            for p in range(16):
                                transposed0[(l + p) * 80 + (k + m)] = x0[(j_tile + k + m) * n1 + (i_tile + l + p)]
                for l in range(rows):
                    i = i_tile + l
                    shift = 0 - i * n0 & edge
                    first = j_tile + shift
                    for k in range(0, columns, 16):
                        if stream != 0:
                            for m in streamed(16):
                                out[i * n0 + (first + (k + m))] = transposed0[l * 80 + shift + (k + m)]
                        else:
                            ...                                          the same in a range

    Results that are too large for the caches are written by non-temporal stores, in whole lines (`stream`). If rows do
    not begin with a line, the rows of a tile begin with the first line in it (`shift`), and `edges` more columns are
    transposed. Operations on transposed elements come first, and their results go into the local array. Elements
    outside of all tiles are computed one by one: columns before the first line and after the last one, and rows that
    are left over.
    """
    nest = NestEmitter(fused, sharing)
    domain = nest.roots[0]
    rank = domain.shape.rank
    everywhere = tuple(range(rank))
    starts = [(root, everywhere, fused.root_places.get(k)) for k, root in enumerate(nest.roots)]
    digits = guide_of(starts, fused.parameter_places, rank)
    if digits:
        return _tiled_nest(nest, domain, digits, nest.store_roots)
    tiled = strided_dimension(nest.roots)
    cut = _cut(nest)
    if cut is None and tiled == 0 and rank > 1 and domain.shape.dimensions[0] <= _FEW < domain.shape.dimensions[-1]:
        nest.sizes.mark_outer(domain, rank - 1)
        return _across_nest(nest, domain)
    if cut is not None:
        return _transposed(nest, *cut)
    if rank:
        nest.sizes.mark_outer(domain, 0)
        nest.sizes.mark_loops(domain, range(rank))
    if _is_transposed(nest, domain):
        return _transposed_nest(nest, domain)
    return _sliced_nest(nest, domain, nest.store_roots)


def _cut(nest: NestEmitter) -> tuple[HloInstruction, tuple[int, ...], Tiles] | None:
    """For a nest that is a transpose: its operand, the dimensions of the operand in the result, and the tiles."""
    root = nest.roots[0]
    found = moved_parameter(root)
    if found is None or len(nest.roots) > 1 or nest.sharing or nest.fused.parameter_places:
        return None
    width = root.shape.element.byte_width
    cut = tiles_of(root.shape.dimensions, found[1], width) if root.shape.rank > 1 else None
    if cut is None or (root.shape.rank == 2 and min(root.shape.dimensions) <= _FEW):
        return None
    # `_transposed_nest` begins each row with a line, and streams it.
    by_lines = width > 1 and not cut.is_direct and (root.shape.rank == 2 or (cut.streams and not cut.begins_lines))
    return None if by_lines and _is_transposed(nest, root) else (*found, cut)


def _transposed(nest: NestEmitter, parameter: HloInstruction, where: tuple[int, ...], tiles: Tiles) -> EmittedKernel:
    """The kernel of a transpose, by `transposes.py`."""
    number = parameter.attributes.number
    nest.elements.used.add(number)
    emitter = TransposeEmitter(nest.writer, nest.sizes, nest.roots[0], parameter, where, tiles)
    count = emitter.write(pointer_of(nest.elements.pointers[number]), pointer_of(nest.outputs[0]))
    return nest.finish(count)


_FEW = 8
"""Rows, or columns, that are not worth a tile: they are the innermost loop, which is unrolled."""


def _across_nest(nest: NestEmitter, domain: HloInstruction) -> EmittedKernel:
    """A few rows, with the elements of a column together in an operand. Threads share the columns::

        for j in range(lo, hi):
            for i in range(3):
                out[i * n0 + j] = x0[j * 3 + i]
    """
    dimensions, last = domain.shape.dimensions, domain.shape.rank - 1
    with ExitStack() as stack:
        index: dict[int, Expr] = {last: stack.enter_context(nest.writer.loop(loop_variable(last), LO, HI))}
        for d in (*range(1, last), 0):
            index[d] = stack.enter_context(nest.writer.loop(loop_variable(d), nest.sizes.of(domain, d)))
        nest.store_roots(tuple(index[d] for d in range(last + 1)))
    return nest.finish(dimensions[last])


TRANSPOSED_ROWS, _MOST_COLUMNS, _ROW_LINES = 64, 128, 4
"""Rows of a tile that is transposed, which are neighbours in the operand, and its columns: a few lines of the cache,
which processors fetch together."""

BLOCK = 16
"""The most rows, and columns, of a block."""

_MOST_TRANSPOSED = 2
"""Most operands that one nest transposes."""


def _transposed_operands(
    nest: NestEmitter, domain: HloInstruction
) -> dict[tuple[HloInstruction, tuple[int, ...]], None]:
    """The parameters that are read across the innermost loop, all along the same other one; for each, which dimensions
    of the domain its own dimensions are."""
    tiled, last = strided_dimension(nest.roots), domain.shape.rank - 1
    everywhere = tuple(range(domain.shape.rank))
    found: dict[tuple[HloInstruction, tuple[int, ...]], None] = {}
    for parameter, where in reached_parameters([(root, everywhere) for root in nest.roots]):
        if where and where[-1] == tiled and last in where and len(set(where)) == len(where):
            found[parameter, where] = None
    return found


def _columns_together(nest: NestEmitter) -> int:
    """Columns that are written together: whole lines of each result, and whole blocks."""
    return max(BLOCK, target_machine().cache_line // min(root.shape.element.byte_width for root in nest.roots))


def _is_transposed(nest: NestEmitter, domain: HloInstruction) -> bool:
    sizes, tiled = domain.shape.dimensions, strided_dimension(nest.roots)
    if tiled is None or nest.fused.root_places or nest.fused.parameter_places:
        return False
    if sizes[tiled] < BLOCK or sizes[-1] < _columns_together(nest):
        return False
    operands = _transposed_operands(nest, domain)
    shared = {nest.sharing[k] for k in nest.sharing}
    return 1 <= len(operands) <= _MOST_TRANSPOSED and not any(p.attributes.number in shared for p, _ in operands)


def _transposed_nest(nest: NestEmitter, domain: HloInstruction) -> EmittedKernel:
    """The nest of `emit_loop` that transposes tiles of operands."""
    writer, elements, sizes, last = nest.writer, nest.elements, domain.shape.dimensions, domain.shape.rank - 1
    tiled = strided_dimension(nest.roots)
    assert tiled is not None
    for d in range(last):
        nest.sizes.mark_outer(domain, d)
    widths = [root.shape.element.byte_width for root in nest.roots]
    together, line = _columns_together(nest), target_machine().cache_line
    widest = max(*widths, *(p.shape.element.byte_width for p, _ in _transposed_operands(nest, domain)))
    most = max(together, min(_MOST_COLUMNS, _ROW_LINES * line // widest))
    pitch = most + together
    bounds = [(LO, HI), *[(ZERO, nest.sizes.of(domain, d)) for d in range(1, last + 1)]]
    names = [loop_variable(d) for d in range(last + 5)]
    size, high = bounds[last][1], bounds[tiled][1]
    streams = is_streamed(sum(widths) * math.prod(sizes))
    lanes = line // min(widths)
    stream = nest.sizes.argument("stream", int(streams))
    edge = nest.sizes.argument("edge", lanes - 1 if streams and sizes[-1] % lanes else 0)
    transposed = []
    for number, (parameter, where) in enumerate(_transposed_operands(nest, domain)):
        pointer = elements.pointers[parameter.attributes.number]
        array = writer.local_array(f"transposed{number}", TRANSPOSED_ROWS * pitch, memory_type(pointer.element_type))
        elements.used.add(parameter.attributes.number)
        transposed.append((parameter, where, pointer, array))
    staged = [] if all(map(_only_moves, nest.roots)) else [
        writer.local_array(f"row{k}", most, memory_type(root.shape.element)) for k, root in enumerate(nest.roots)
    ]  # fmt: skip
    edges = writer.assign("edges", call("minimum", edge, 1) * together)
    whole = writer.assign("whole", call("maximum", size - edges, ZERO) // together * together)
    with ExitStack() as stack:
        index: dict[int, Expr] = {}
        for d in range(last):
            both = bounds[d] if d in (0, tiled) else (bounds[d][1],)
            name, step = (f"{names[d]}_tile", TRANSPOSED_ROWS) if d == tiled else (names[d], 1)
            index[d] = stack.enter_context(writer.loop(name, *both, step=step))
        row = index[tiled]
        rows = writer.assign("rows", call("minimum", Number(TRANSPOSED_ROWS), high - row) // BLOCK * BLOCK)

        def begin(i: Expr) -> Name:
            """The first column of a row that begins a line."""
            start = {**index, tiled: i, last: ZERO}
            at = nest.sizes.offset(domain, tuple(start[d] for d in range(last + 1)))
            return writer.assign("shift", (ZERO - at) & edge)

        with writer.loop(f"{names[last]}_tile", ZERO, whole, step=most) as column:
            columns = writer.assign("columns", call("minimum", Number(most), whole - column))
            for parameter, where, pointer, array in transposed:
                side = min(BLOCK, line // pointer.element_type.byte_width)
                with (
                    writer.loop(names[last + 1], ZERO, columns + edges, step=side) as k,
                    writer.loop(names[last + 2], ZERO, rows, step=side) as low,
                    writer.lanes(names[last + 3], side) as m,
                    writer.loop(names[last + 4], side) as p,
                ):
                    here = {**index, tiled: row + (low + p), last: column + (k + m)}
                    address = elements.place_index.address(None, parameter, tuple(here[d] for d in where))
                    writer.store(array, (low + p) * pitch + (k + m), pointer_of(pointer)[address.offset])
            with writer.loop(names[last + 2], rows) as low:
                here = {**index, tiled: writer.assign(names[tiled], row + low)}
                shift = begin(here[tiled])
                first = writer.assign("first", column + shift)

                def values(step: Expr) -> tuple[Expr, ...]:
                    """Makes the elements of the operands at a column of the row known; its index in the result."""
                    here[last] = writer.assign(names[last], first + step) if staged else first + step
                    for parameter, where, pointer, array in transposed:
                        value = loaded(pointer.element_type, array[low * pitch + shift + step])
                        writer.know(parameter, value.at(writer.depth), tuple(here[d] for d in where))
                    return tuple(here[d] for d in range(last + 1))

                if staged:
                    with writer.loop(names[last + 3], columns) as m:
                        at = values(m)
                        for array, root in zip(staged, nest.roots, strict=True):
                            writer.store(array, m, stored(root.shape.element, elements.value(root, at)))
                with writer.loop(names[last + 1], ZERO, columns, step=together) as k:
                    kinds: tuple[LoopKind, ...] = ("streamed", "lanes")
                    for kind in kinds:
                        with writer.if_(stream.ne(0)) if kind == "streamed" else writer.else_():
                            for number in range(len(staged) or 1):
                                with writer.loop(names[last + 3], Number(together), kind=kind) as m:
                                    if staged:
                                        to = nest.address(number, (*[here[d] for d in range(last)], first + (k + m)))
                                        writer.store(pointer_of(nest.outputs[number]), to.offset, staged[number][k + m])
                                    else:
                                        nest.store_roots(values(k + m))
        with writer.loop("part", 3) as part:
            top = writer.assign("top", row)
            below = writer.assign("below", row + rows)
            left = writer.assign("left", ZERO)
            right = writer.assign("right", edges)
            with writer.if_(part.eq(1)):
                writer.assign(left, whole)
                writer.assign(right, size)
            with writer.if_(part.eq(2)):
                writer.assign(top, below)
                writer.assign(below, call("minimum", row + TRANSPOSED_ROWS, high))
                writer.assign(right, size)
            with (
                writer.loop(f"{names[last]}_tile", left, right, step=TILE) as column,
                writer.loop(names[tiled], top, below) as index[tiled],
            ):
                shift = begin(index[tiled])
                start = writer.assign("start", column)
                stop = writer.assign("stop", call("minimum", column + TILE, right))
                with writer.if_(part.eq(0)):
                    writer.assign(stop, call("minimum", stop, shift))
                with writer.if_(part.eq(1)):
                    writer.assign(start, call("maximum", start, whole + shift))
                with writer.loop(names[last], start, stop) as index[last]:
                    nest.store_roots(tuple(index[d] for d in range(last + 1)))
    kernel = nest.finish(sizes[0])
    return replace(kernel, least=1 if tiled else TRANSPOSED_ROWS)


def _only_moves(root: HloInstruction) -> bool:
    """True for a result that is an operand in another order, with elements that are held as they are stored."""
    return is_held_as_stored(root.shape.element) and moved_parameter(root) is not None


PACKED_BLOCK = 64
"""For a packed array of one dimension: how many elements one iteration of the outer loop reads or writes. They are
whole bytes of any type."""


def _tiled_nest(
    nest: NestEmitter, domain: HloInstruction, digits: Sequence[LoopDigit], write: Callable[[Index], None]
) -> EmittedKernel:
    """A nest in the physical order of an array; see `physical_index.py`. The loops over tiles are sliced as one."""
    packed = [place for place in nest.fused.root_places.values() if place.packed_bits]
    places = (*nest.fused.root_places.values(), *nest.fused.parameter_places.values())
    linear = [place for place in places if place.packed_bits and place.is_linear]
    in_blocks = len(digits) == 1 and bool(linear) and all(place.is_linear for place in packed)
    if in_blocks:
        in_byte = 8 // min(place.packed_bits for place in linear)
        digits = (
            LoopDigit(0, PACKED_BLOCK, None),
            LoopDigit(0, in_byte, PACKED_BLOCK // in_byte),
            LoopDigit(0, 1, in_byte, in_words=True),
        )
    outer = [digits[0]]
    for digit in digits[1:-1]:
        if digit.modulus is not None or digit.divisor == 1:
            break
        outer.append(digit)
    inner = digits[len(outer) :]
    if len(outer) == 1 and outer[0].divisor == 1:
        nest.sizes.mark_outer(domain, outer[0].dimension)
    names = {d: loop_variable(d) for d in range(domain.shape.rank)}
    loops = nest.tile_loops(domain, digits, names)
    extent = math.prod(loops.number(digit) for digit in outer)
    with ExitStack() as stack:
        variable = loops.name(outer[0]) if len(outer) == 1 else "tile"
        rest: Expr = stack.enter_context(nest.writer.loop(variable, LO, HI))
        for digit in reversed(outer[1:]):
            count = loops.count(digit)
            loops.let(digit, rest % count)
            rest = rest // count
        if len(outer) == 1:
            loops.set(outer[0], rest)
        else:
            loops.let(outer[0], rest)
        rows = loops.unrolled(inner)
        stack.enter_context(loops.over([digit for digit in inner if digit is not rows]))
        dimensions = range(domain.shape.rank)
        if rows is None:
            write(tuple(loops.index(d) for d in dimensions))
        else:
            for number in range(rows.modulus or 0):
                with loops.word_part(rows, number):
                    write(tuple(loops.index(d) for d in dimensions))
        assert not nest._bytes, "bytes that lack an element"
    whole_bytes = in_blocks or all(_in_whole_bytes(place, outer) for place in packed)
    return nest.finish(extent, whole_bytes=whole_bytes)


def _in_whole_bytes(place: PhysicalLayout, outer: Sequence[LoopDigit]) -> bool:
    """True when elements of a packed array that differ in a digit of the outer loops never share a byte: these digits
    are the most major ones of the place, and the digits below them fill whole bytes."""
    major, minor = place.digits[: len(outer)], place.digits[len(outer) :]
    known = {(digit.dimension, digit.divisor, digit.modulus) for digit in outer}
    if {(digit.source, digit.divisor, digit.modulus) for digit in major} != known:
        return False
    return math.prod(digit.extent for digit in minor) * place.packed_bits % 8 == 0


def _sliced_nest(
    nest: NestEmitter, domain: HloInstruction, write: Callable[[Index], None], sliced: int = 0
) -> EmittedKernel:
    """`sliced`: the dimension of the outermost loop; those before it have size 1."""
    dimensions = domain.shape.dimensions
    if not dimensions:
        write(())
        return nest.finish(1)
    tiled = strided_dimension(nest.roots) if len(dimensions) > sliced + 1 else None
    last = len(dimensions) - 1
    row = last + 1 - nest.row if tiled is None and domain is nest.roots[0] else last + 1
    innermost = None
    if tiled is not None and min(dimensions[tiled], dimensions[last]) <= _FEW:
        innermost = tiled if dimensions[tiled] <= _FEW and tiled != sliced else None
        tiled = None
    for d in range(sliced, last if tiled is not None else sliced):  # around tiles, or cut to tiles
        nest.sizes.mark_outer(domain, d)
    bounds = {sliced: (LO, HI), **{d: (ZERO, nest.sizes.of(domain, d)) for d in range(sliced + 1, len(dimensions))}}
    if innermost is not None:
        bounds[innermost] = bounds.pop(innermost)
    with ExitStack() as stack:
        starts: dict[int, Name] = {}
        index: dict[int, Expr] = dict.fromkeys(range(sliced), ZERO)
        for d, (low, high) in bounds.items():
            name = loop_variable(d - sliced)
            if d >= row:
                if d == row:
                    names, outer = [loop_variable(e) for e in range(row, last + 1)], [index[e] for e in range(row)]
                    variables = stack.enter_context(nest.row_loop(domain, outer, names, (low, high)))
                    index.update(zip(range(row, last + 1), variables, strict=True))
            elif tiled is not None and d in (tiled, last):
                starts[d] = stack.enter_context(nest.writer.loop(f"{name}_tile", low, high, step=TILE))
            else:
                is_whole = is_number(low, 0)
                loop = nest.writer.neighbours(name, high, ()) if is_whole else nest.writer.loop(name, low, high)
                index[d] = stack.enter_context(loop)
        for d in () if tiled is None else (tiled, last):
            stop = call("minimum", starts[d] + TILE, bounds[d][1])
            index[d] = stack.enter_context(nest.writer.loop(loop_variable(d - sliced), starts[d], stop))
        write(tuple(index[d] for d in range(len(dimensions))))
    return nest.finish(dimensions[sliced])


def strided_dimension(roots: Sequence[HloInstruction]) -> int | None:
    """The domain dimension along which an operand is contiguous, if it is not the innermost one; None if there is none.

    Dimensions are followed from the roots through element-wise ops, transposes and broadcasts; an operand that does
    not vary along the innermost dimension does not count.
    """
    last = roots[0].shape.rank - 1
    for _, where in reached_parameters([(r, tuple(range(r.shape.rank))) for r in roots]):
        if where and last in where and where[-1] != last:
            return where[-1]
    return None


def emit_update(fused: FusedBody, sharing: Mapping[int, int]) -> EmittedKernel:
    """A nest over the update of a dynamic-update-slice at the root; writes the update into the output.

    The output must already hold the operand: it shares the operand's buffer, or a copy is made before::

        def fused_add_dynamic_update_slice(lo, hi, io0, x1, x2, n0, n1, k0):
            start0 = minimum(maximum(int64(x1[0]), 0), n0 - k0)
            for i in range(lo, hi):
                for j in range(n1):
                    io0[(start0 + i) * n1 + j] = x2[i * n1 + j]

    The update's first dimension that is not of size 1 is sliced.
    """
    nest = NestEmitter(fused, sharing)
    root = nest.roots[0]
    operand, update = root.operands[:2]
    assert operand.opcode is Opcode.PARAMETER, "the operand of an in-place update comes from outside the fusion"
    sizes = update.shape.dimensions
    sliced = next((d for d, size in enumerate(sizes) if size != 1), 0)  # one row of many: threads share its elements
    if sizes:
        nest.sizes.mark_outer(update, sliced)
        nest.sizes.mark_loops(update, range(sliced, len(sizes)))
    starts = clamped_starts(nest.elements, root, 2)

    def write(index: Index) -> None:
        target = tuple(s + i for s, i in zip(starts, index, strict=True))
        value = nest.elements.value(update, index)
        nest.store(0, nest.address(0, target), value)

    place = fused.root_places.get(0)
    rank = update.shape.rank
    elsewhere = [d for d, start in enumerate(starts) if not is_number(start, 0)]  # not known from the loops
    if place is not None and rank > len(elsewhere):
        kernel = _tiled_nest(nest, update, loop_digits(place, range(rank), rank, elsewhere), write)
    else:
        kernel = _sliced_nest(nest, update, write, sliced)
    copied = () if 0 in sharing else ((operand.attributes.number, 0),)
    return replace(kernel, copied_operands=copied)
