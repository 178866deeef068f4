"""From a fused computation to a kernel: the loop nests.

A fusion without reductions is one nest over its result::

    def fused_add_maximum(lo, hi, x0, x1, out, n0, c0):
        for i in range(lo, hi):
            for j in range(n0):
                out[i * n0 + j] = maximum(x0[i * n0 + j] + x1[j], c0)

When the neighbours of an operand are along another loop than the innermost one (the operand is transposed), the two
loops are tiled, so that each cache line that is read is used whole::

    for i_tile in range(lo, hi, 32):
        for j_tile in range(0, n0, 32):
            for i in range(i_tile, minimum(i_tile + 32, hi)):
                for j in range(j_tile, minimum(j_tile + 32, n0)):
                    out[i * n0 + j] = x0[j * n1 + i]

Where both loops are long, whole tiles go through a local array: `emit_loop` shows it.

The nests of fusions with reductions are in `nest_reduce.py`; nests that end in an in-place update are in this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ..loops.expressions import ZERO, Expr, Name, Number, call, is_number
from ..loops.statements import KernelParameter, PointerParameter
from ..loops.writer import Writer, cast
from .alignment import roots_of
from .collapse import FusedBody
from .element import ElementEmitter, loaded, stored
from .kernel import HI, LO, EmittedKernel, memory_type, pointer_of, program_of
from .movement import clamped_starts
from .place_index import LoopDigit, Spot, TileLoops, guide_of, loop_digits, reached_parameters
from .places import Place
from .sizes import Index, Sizes

TILE = 32
"""Rows and columns of a tile: 32 x 32 floats are 64 cache lines on either side, well within the first level."""

LOOP_VARIABLES = ("i", "j", "k", "l", "m", "p", "q", "r")


def loop_variable(level: int) -> str:
    """The name of the loop variable at a nesting level."""
    return LOOP_VARIABLES[level] if level < len(LOOP_VARIABLES) else f"i{level}"


class NestEmitter:
    """Shared by all nests: one canonical fused computation, its pointers, and the program so far."""

    def __init__(self, fused: FusedBody, sharing: Mapping[int, int]) -> None:
        """`sharing`: output -> the operand whose buffer it overwrites."""
        body = fused.computation
        self.body = body
        self.fused = fused
        self.roots = roots_of(body)
        self.writer = Writer()
        self.sizes = Sizes(body)
        self.elements = ElementEmitter(body, self.writer, self.sizes)
        self.elements.places.update(fused.parameter_places)
        self.sharing = sharing
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

    def spot(self, output: int, index: Index) -> Spot:
        """Where an output's element is."""
        return self.elements.place_index.spot(self.fused.root_places.get(output), self.roots[output], index)

    def store(self, output: int, spot: Spot, value: Expr) -> None:
        """Write an element of an output. An element of a packed output is written into the byte that it shares::

            out[at0 // 2] = uint8((int64(out[at0 // 2]) & ~(15 << (at0 % 2 * 4))) | ((int64(x) & 15) << (at0 % 2 * 4)))

        The elements of an unrolled loop fill the byte and are written together::

            out[i_0 * 32 + i_1] = uint8(((int64(x) & 15) << 0) | ((int64(y) & 15) << 4))
        """
        pointer, place = pointer_of(self.outputs[output]), self.fused.root_places.get(output)
        value = stored(self.outputs[output].element_type, value)
        if place is None or spot.shift is None:
            self.writer.store(pointer, spot.offset, value)
            return
        mask = Number((1 << place.packed_bits) - 1)
        byte = (cast("int64", value) & mask) << spot.shift
        if isinstance(spot.shift, Number):
            parts = self._bytes.setdefault((output, spot.offset), [])
            parts.append(byte)
            if len(parts) < 8 // place.packed_bits:
                return
            byte, *others = self._bytes.pop((output, spot.offset))
            for other in others:
                byte = byte | other
        else:
            byte = (cast("int64", pointer[spot.offset]) & ~(mask << spot.shift)) | byte
        self.writer.store(pointer, spot.offset, cast("uint8", byte))

    def stored_value(self, output: int, spot: Spot) -> Expr:
        """The current value of an output's element."""
        return self.elements.read(self.outputs[output], spot, self.fused.root_places.get(output))

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
            self.store(output, self.spot(output, index), values[output])

    @contextmanager
    def loops(self, sizes: Sequence[Expr], first: int) -> Iterator[list[Name]]:
        """Nested loops over `range(size)`, variables named from level `first` on; gives the variables."""
        with ExitStack() as stack:
            yield [
                stack.enter_context(self.writer.loop(loop_variable(level), size))
                for level, size in enumerate(sizes, first)
            ]

    def sliced_loop(self) -> AbstractContextManager[Name]:
        """The outermost loop, over `range(lo, hi)`."""
        return self.writer.loop(loop_variable(0), LO, HI)

    def finish(self, extent: int, elements_per_iteration: int, *, whole_bytes: bool = False) -> EmittedKernel:
        """The kernel of all that was written. `whole_bytes`: no two iterations of the outer loop write to the same byte
        of a packed output, so threads may split the loop."""
        packed = any(place.packed_bits for place in self.fused.root_places.values())
        e = self.elements
        inputs = [p for number, p in sorted(e.pointers.items()) if number in e.used]
        fresh = [p for k, p in enumerate(self.outputs) if k not in self.sharing]
        parameters: tuple[KernelParameter, ...] = (*inputs, *fresh, *self.sizes.parameters, *e.scalars)
        program = program_of(kernel_name(self.body), parameters, self.writer)
        cost = elements_per_iteration * self._element_cost()
        return EmittedKernel(program, parameters, extent, cost, is_serial=packed and not whole_bytes)

    def _element_cost(self) -> float:
        """Nanoseconds an element, estimated: memory traffic plus arithmetic; decides only how work is split."""
        cost = 0.1 * len(self.outputs) + 0.1
        for instruction in self.body.instructions:
            if has_trait(instruction.opcode, Trait.EXPENSIVE):
                cost += 0.6
            elif instruction.opcode is Opcode.PARAMETER:
                cost += 0.1
            else:
                cost += 0.05
        return cost


_UNNAMED = frozenset(
    (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BROADCAST, Opcode.RESHAPE)
)


def kernel_name(body: HloComputation) -> str:
    """A name made of the last few opcodes, so that people recognise the kernel."""
    named = [i.opcode.name.lower() for i in body.instructions if i.opcode not in _UNNAMED]
    distinct = list(dict.fromkeys(named)) or [i.opcode.name.lower() for i in body.instructions[-1:]]
    return "fused_" + "_".join(distinct[-3:])


def emit_loop(fused: FusedBody, sharing: Mapping[int, int]) -> EmittedKernel:
    """One nest over the roots' common dimensions; the outermost loop is the one that is sliced.

    Transposed operands with rows and columns enough are turned in tiles of 64 rows, each a few lines of the cache wide,
    in a local array. A line is then read, and written, whole at once: lines that lie a power of two apart, as those of
    a column may, would drive each other out of the cache before they are used up. LLVM makes vectors of the first loop,
    since its stores are neighbours. What is left over of the tiles is done without it::

        for i_tile in range(lo, hi, 64):
            first = 0
            if i_tile + 64 <= hi:
                for j_tile in range(0, n0 - 63, 64):
                    for k in range(8):
                        for l in range(64):
                            i = i_tile + l
                            at0 = k * 512 + l * 8
                            turned0[at0] = x0[(j_tile + k * 8) * n1 + i]
                            turned0[at0 + 1] = x0[(j_tile + k * 8 + 1) * n1 + i]
                            ...                                             and six others
                    for l in range(64):
                        i = i_tile + l
                        for k in range(8):
                            for m in range(8):
                                j = j_tile + k * 8 + m
                                out[i * n0 + j] = turned0[k * 512 + l * 8 + m]
                first = n0 // 64 * 64
            for j_tile in range(first, n0, 32):
                for i in range(i_tile, minimum(i_tile + 64, hi)):
                    for j in range(j_tile, minimum(j_tile + 32, n0)):
                        out[i * n0 + j] = x0[j * n1 + i]
    """
    nest = NestEmitter(fused, sharing)
    domain = nest.roots[0]
    rank = domain.shape.rank
    everywhere = tuple(range(rank))
    starts = [(root, everywhere, fused.root_places.get(k)) for k, root in enumerate(nest.roots)]
    digits = guide_of(starts, fused.parameter_places, rank)
    if digits:
        return _tiled_nest(nest, domain, digits, nest.store_roots)
    if rank:
        nest.sizes.mark_outer(domain, 0)
    if _is_turned(nest, domain):
        return _turned_nest(nest, domain)
    return _sliced_nest(nest, domain, nest.store_roots)


TURNED_ROWS, _FEW_ROWS = 64, 256
"""Rows of a tile that is turned, which are neighbours in the operand. Of few rows it has half as many, so that several
threads have some."""

_MOST_COLUMNS, _ROW_BYTES = 64, 256
"""Its columns: a few lines of the cache, which processors fetch together."""

_TOGETHER = 8
"""Rows of an operand that one loop reads side by side."""

_MOST_TURNED = 2
"""Operands that are turned in one nest."""


def _turned_operands(nest: NestEmitter, domain: HloInstruction) -> dict[tuple[HloInstruction, tuple[int, ...]], None]:
    """The parameters that are read across the innermost loop, all along the same other one; for each, which dimensions
    of the domain its own dimensions are."""
    tiled, last = strided_dimension(nest.roots), domain.shape.rank - 1
    everywhere = tuple(range(domain.shape.rank))
    found: dict[tuple[HloInstruction, tuple[int, ...]], None] = {}
    for parameter, where in reached_parameters([(root, everywhere) for root in nest.roots]):
        if where and where[-1] == tiled and last in where and len(set(where)) == len(where):
            found[parameter, where] = None
    return found


def _is_turned(nest: NestEmitter, domain: HloInstruction) -> bool:
    sizes, tiled = domain.shape.dimensions, strided_dimension(nest.roots)
    if tiled is None or nest.fused.root_places or nest.fused.parameter_places:
        return False
    if sizes[tiled] < TURNED_ROWS or sizes[-1] < TURNED_ROWS:
        return False
    operands = _turned_operands(nest, domain)
    shared = {nest.sharing[k] for k in nest.sharing}
    return 1 <= len(operands) <= _MOST_TURNED and not any(p.attributes.number in shared for p, _ in operands)


def _turned_nest(nest: NestEmitter, domain: HloInstruction) -> EmittedKernel:
    """The nest of `emit_loop` that turns tiles of operands."""
    writer, elements, last = nest.writer, nest.elements, domain.shape.rank - 1
    tiled = strided_dimension(nest.roots)
    assert tiled is not None
    width = max(root.shape.element.byte_width for root in nest.roots)
    rows = TURNED_ROWS if domain.shape.dimensions[tiled] >= _FEW_ROWS else TURNED_ROWS // 2
    columns = min(_MOST_COLUMNS, _ROW_BYTES // width)
    groups = columns // _TOGETHER
    bounds = [(LO, HI), *[(ZERO, nest.sizes.of(domain, d)) for d in range(1, last + 1)]]
    names = [loop_variable(d) for d in range(last + 4)]
    size, high = bounds[last][1], bounds[tiled][1]
    turned = []
    for number, (parameter, where) in enumerate(_turned_operands(nest, domain)):
        pointer = elements.pointers[parameter.attributes.number]
        array = writer.local_array(f"turned{number}", rows * columns, memory_type(pointer.element_type))
        elements.used.add(parameter.attributes.number)
        turned.append((parameter, where, pointer, array))
    with ExitStack() as stack:
        index: dict[int, Expr] = {}
        for d in range(last):
            both = bounds[d] if d in (0, tiled) else (bounds[d][1],)
            loop = writer.loop(f"{names[d]}_tile", *both, step=rows) if d == tiled else writer.loop(names[d], *both)
            index[d] = stack.enter_context(loop)
        row = index[tiled]

        def in_tile() -> AbstractContextManager[Name]:
            return writer.loop(names[last + 2], rows)

        def in_groups() -> AbstractContextManager[Name]:
            return writer.loop(names[last + 1], groups)

        first = writer.assign("first", ZERO)
        with writer.if_(row + rows <= high, guarded=True):
            with writer.loop(f"{names[last]}_tile", ZERO, size - (columns - 1), step=columns) as column:
                with in_groups() as group, in_tile() as k:
                    here = {**index, tiled: writer.assign(names[tiled], row + k)}
                    to = writer.assign(writer.fresh("at"), group * (rows * _TOGETHER) + k * _TOGETHER)
                    for parameter, where, pointer, array in turned:
                        for part in range(_TOGETHER):
                            here[last] = column + group * _TOGETHER + part
                            spot = elements.place_index.spot(None, parameter, tuple(here[d] for d in where))
                            writer.store(array, to + part, pointer_of(pointer)[spot.offset])
                with in_tile() as k:
                    here = {**index, tiled: writer.assign(names[tiled], row + k)}
                    with in_groups() as group, writer.loop(names[last + 3], _TOGETHER) as c:
                        here[last] = writer.assign(names[last], column + group * _TOGETHER + c)
                        for parameter, where, pointer, array in turned:
                            value = loaded(
                                pointer.element_type, array[group * (rows * _TOGETHER) + k * _TOGETHER + c]
                            )
                            writer.know(parameter, value.at(writer.depth), tuple(here[d] for d in where))
                        nest.store_roots(tuple(here[d] for d in range(last + 1)))
            writer.assign(first, size // columns * columns)
        with (
            writer.loop(f"{names[last]}_tile", first, size, step=TILE) as column,
            writer.loop(names[tiled], row, call("minimum", row + rows, high)) as index[tiled],
            writer.loop(names[last], column, call("minimum", column + TILE, size)) as index[last],
        ):
            nest.store_roots(tuple(index[d] for d in range(last + 1)))
    kernel = nest.finish(domain.shape.dimensions[0], math.prod(domain.shape.dimensions[1:]))
    return replace(kernel, least=1 if tiled else rows)


PACKED_BLOCK = 64
"""For a packed array of one dimension: how many elements one iteration of the outer loop reads or writes. They are
whole bytes of any type."""


def _tiled_nest(
    nest: NestEmitter, domain: HloInstruction, digits: Sequence[LoopDigit], write: Callable[[Index], None]
) -> EmittedKernel:
    """A nest in the physical order of an array; see `place_index.py`. The loops over tiles are sliced as one."""
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
    return nest.finish(extent, nest.sizes.count(domain) // max(extent, 1) + 1, whole_bytes=whole_bytes)


def _in_whole_bytes(place: Place, outer: Sequence[LoopDigit]) -> bool:
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
        return nest.finish(1, 1)
    inner = math.prod(dimensions[sliced + 1 :])
    tiled = strided_dimension(nest.roots) if len(dimensions) > sliced + 1 else None
    last = len(dimensions) - 1
    bounds = {sliced: (LO, HI), **{d: (ZERO, nest.sizes.of(domain, d)) for d in range(sliced + 1, len(dimensions))}}
    with ExitStack() as stack:
        starts: dict[int, Name] = {}
        index: dict[int, Expr] = dict.fromkeys(range(sliced), ZERO)
        for d, (low, high) in bounds.items():
            name = loop_variable(d - sliced)
            if tiled is not None and d in (tiled, last):
                starts[d] = stack.enter_context(nest.writer.loop(f"{name}_tile", low, high, step=TILE))
            else:
                both = (high,) if is_number(low, 0) else (low, high)
                index[d] = stack.enter_context(nest.writer.loop(name, *both))
        for d in () if tiled is None else (tiled, last):
            stop = call("minimum", starts[d] + TILE, bounds[d][1])
            index[d] = stack.enter_context(nest.writer.loop(loop_variable(d - sliced), starts[d], stop))
        write(tuple(index[d] for d in range(len(dimensions))))
    return nest.finish(dimensions[sliced], inner)


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
    starts = clamped_starts(nest.elements, root, 2)

    def write(index: Index) -> None:
        target = tuple(s + i for s, i in zip(starts, index, strict=True))
        value = nest.elements.value(update, index)
        nest.store(0, nest.spot(0, target), value)

    place = fused.root_places.get(0)
    rank = update.shape.rank
    elsewhere = [d for d, start in enumerate(starts) if not is_number(start, 0)]  # not known from the loops
    if place is not None and rank > len(elsewhere):
        kernel = _tiled_nest(nest, update, loop_digits(place, range(rank), rank, elsewhere), write)
    else:
        kernel = _sliced_nest(nest, update, write, sliced)
    copied = () if 0 in sharing else ((operand.attributes.number, 0),)
    return replace(kernel, copied_operands=copied)
