"""Writes commands for simple tasks on arrays in memory: copy, compute element by element, multiply matrices.

Work that does not fit into the scratchpad at once is done in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hloom.hlo import ElementType, HloComputation, HloInstruction, Opcode, Shape, UnsupportedError
from hloom.hlo.builder import make_parameter
from hloom.hlo.passes.map_inliner import apply_to_arrays

from .isa import SCRATCHPAD, SCRATCHPAD_BYTES, SIDE, Command, Dma, Gather, Iota, Label, MatMul, Scatter, Vector, View

ALIGNMENT = 64
_ROWS = 128
"""Rows of a product that are computed together."""
STRUCTURE = frozenset((Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT))


def rounded(nbytes: int) -> int:
    """Bytes up to the next place where an array may begin."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Assembler:
    """Commands, the constants that they read, and temporary arrays for the current task."""

    def __init__(self, scratch: int, first_free: int) -> None:
        """`scratch`: the number of the block of scratch memory, free from byte `first_free` on. The block of constants
        comes after it."""
        self.commands: list[Command] = []
        self.constants = bytearray()
        self.scratch_bytes = self._first_free = self._free = rounded(first_free)
        self._scratch = scratch
        self._known: dict[bytes, int] = {}

    # ---- memory

    def temporary(self, element: ElementType, sizes: Sequence[int]) -> View:
        """A dense array, until the next `release`."""
        view = View.dense(self._scratch, self._free, sizes, element.dtype.itemsize)
        self._free += rounded(view.count * view.itemsize)
        self.scratch_bytes = max(self.scratch_bytes, self._free)
        return view

    def release(self) -> None:
        """Give back all temporary arrays."""
        self._free = self._first_free

    def constant(self, data: bytes, sizes: Sequence[int], itemsize: int) -> View:
        """An array of constants."""
        offset = self._known.get(data)
        if offset is None:
            self.constants.extend(bytes(rounded(len(self.constants)) - len(self.constants)))
            offset = self._known[data] = len(self.constants)
            self.constants.extend(data)
        return View.dense(self._scratch + 1, offset, sizes, itemsize)

    # ---- tasks

    def place(self, label: Label) -> None:
        """The label is here."""
        label.position = len(self.commands)

    def copy(self, target: View, source: View) -> None:
        """Copy an array to one of equal dimensions."""
        assert target.sizes == source.sizes and target.itemsize == source.itemsize, f"{target} <- {source}"
        if target.count and target != source:
            self.commands.append(Dma(target, source))

    def iota(self, target: View, element: ElementType) -> None:
        """0, 1, 2, ... in an array of one dimension."""
        most = SCRATCHPAD_BYTES // target.itemsize
        for (first,), (count,) in pieces(target.sizes, most):
            self.commands.append(Iota(element, 0, first, count))
            self.copy(target.part(0, first, count), View.dense(SCRATCHPAD, 0, (count,), target.itemsize))

    def apply(
        self, computation: HloComputation | HloInstruction, operands: Sequence[View], results: Sequence[View]
    ) -> None:
        """Compute elementwise: a computation on scalars, or one op, on arrays of equal dimensions. A result may be an
        operand. UnsupportedError for a computation with other ops."""
        plan = _plan(computation)
        most = SCRATCHPAD_BYTES // plan.bytes_an_element // 16 * 16
        for starts, sizes in pieces(results[0].sizes, most):
            count = math.prod(sizes)
            at = [offset * most for offset in plan.offsets]
            steps = [1] * len(sizes)
            for slot, operand in zip(plan.operands, operands, strict=True):
                here = View.dense(SCRATCHPAD, at[slot], sizes, operand.itemsize)
                self.copy(here, operand.slice(starts, steps, sizes))
            for op, target, sources in plan.steps:
                inputs = tuple((o.shape.element, at[slot]) for o, slot in zip(op.operands, sources, strict=True))
                if op.opcode is Opcode.CONSTANT:
                    value = op.attributes.literal.array.tobytes()
                    itemsize = op.shape.element.dtype.itemsize
                    one = self.constant(value, (), itemsize)
                    self.copy(View.dense(SCRATCHPAD, at[target], (count,), itemsize), one.broadcast((), (count,)))
                else:
                    self.commands.append(Vector(op.opcode, op.attributes, op.shape.element, at[target], inputs, count))
            for slot, result in zip(plan.results, results, strict=True):
                self.copy(result.slice(starts, steps, sizes), View.dense(SCRATCHPAD, at[slot], sizes, result.itemsize))

    def gather(self, result: View, memory: View, indices: View) -> None:
        """result[i] = memory[indices[i]] for dense arrays of one dimension; indices are s64, and inside."""
        item = result.itemsize
        most = SCRATCHPAD_BYTES // (item + 8) // 16 * 16
        for (first,), (count,) in pieces(result.sizes, most):
            self.copy(View.dense(SCRATCHPAD, 0, (count,), 8), indices.part(0, first, count))
            self.commands.append(Gather(most * 8, memory, 0, count))
            self.copy(result.part(0, first, count), View.dense(SCRATCHPAD, most * 8, (count,), item))

    def combine(
        self, combiner: HloComputation, arrays: Sequence[View], indices: View, updates: Sequence[View]
    ) -> None:
        """arrays[indices[i]] = combiner(arrays[indices[i]], updates[i]) for dense arrays of one dimension. No index
        occurs twice, and those that are negative are skipped."""
        plan = _plan(combiner)
        most = SCRATCHPAD_BYTES // (plan.bytes_an_element + 8) // 16 * 16
        for (first,), (count,) in pieces(indices.sizes, most):
            old = [self._staged(array, count) for array in arrays]
            start = most * plan.bytes_an_element
            self.copy(View.dense(SCRATCHPAD, start, (count,), 8), indices.part(0, first, count))
            for array, here in zip(arrays, old, strict=True):
                self.commands.append(Gather(0, array, start, count))
                self.copy(here, View.dense(SCRATCHPAD, 0, (count,), array.itemsize))
            self.apply(combiner, [*old, *(update.part(0, first, count) for update in updates)], old)
            self.copy(View.dense(SCRATCHPAD, start, (count,), 8), indices.part(0, first, count))
            for array, here in zip(arrays, old, strict=True):
                self.copy(View.dense(SCRATCHPAD, 0, (count,), array.itemsize), here)
                self.commands.append(Scatter(array, 0, start, count))

    def _staged(self, array: View, count: int) -> View:
        view = View.dense(self._scratch, self._free, (count,), array.itemsize)
        self._free += rounded(count * array.itemsize)
        self.scratch_bytes = max(self.scratch_bytes, self._free)
        return view

    def multiply(self, element: ElementType, c: View, a: View, b: View) -> None:
        """c[m,n] = a[m,k] b[k,n], tile by tile."""
        k, item = a.sizes[1], element.dtype.itemsize
        if not k:
            zero = self.constant(bytes(item), (), item)
            self.copy(c, zero.broadcast((), c.sizes))
            return
        side = SIDE * 4 // item  # a tile of each of the three fits, for every type
        for (i, j), (rows, columns) in pieces(c.sizes, _ROWS * side, (_ROWS, side)):
            at_b = rounded(_ROWS * side * item)
            at_c = at_b + rounded(side * side * item)
            tile = View.dense(SCRATCHPAD, at_c, (rows, columns), item)
            for start in range(0, k, side):
                deep = min(side, k - start)
                left = View.dense(SCRATCHPAD, 0, (rows, deep), item)
                right = View.dense(SCRATCHPAD, at_b, (deep, columns), item)
                self.copy(left, a.slice((i, start), (1, 1), (rows, deep)))
                self.copy(right, b.slice((start, j), (1, 1), (deep, columns)))
                self.commands.append(MatMul(element, at_c, 0, at_b, rows, deep, columns, start > 0))
            self.copy(c.slice((i, j), (1, 1), (rows, columns)), tile)


def pieces(
    sizes: Sequence[int], most: int, limits: Sequence[int] | None = None
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Boxes of at most `most` elements that together are an array: where each starts, and its sizes. `limits`: the most
    along each dimension."""
    if 0 in sizes:
        return
    if not sizes:
        yield (), ()
        return
    inner = math.prod(sizes[1:])
    step = min(max(1, most // inner), sizes[0], limits[0] if limits else sizes[0])
    for start in range(0, sizes[0], step):
        for starts, rest in pieces(sizes[1:], most, limits[1:] if limits else None):
            yield (start, *starts), (min(step, sizes[0] - start), *rest)


# ---- a place in the scratchpad for each value of a computation


class Plan(NamedTuple):
    """An elementwise computation as steps on slots of the scratchpad."""

    operands: tuple[int, ...]
    steps: tuple[tuple[HloInstruction, int, tuple[int, ...]], ...]
    """An op, the slot of its result, and the slots of its operands."""
    results: tuple[int, ...]
    offsets: tuple[int, ...]
    """Of each slot, for arrays of one element."""
    bytes_an_element: int


def _plan(computation: HloComputation | HloInstruction) -> Plan:
    if isinstance(computation, HloInstruction):
        parameters = [make_parameter(k, Shape.array(o.shape.element)) for k, o in enumerate(computation.operands)]
        scalar = Shape.array(computation.shape.element)
        root: HloInstruction | None = HloInstruction(
            computation.opcode, scalar, tuple(parameters), computation.attributes
        )
    elif computation.root.shape.is_array and computation.root.shape.rank:  # the body of a fusion
        parameters, root = list(computation.parameters), computation.root
    else:
        parameters = [make_parameter(k, p.shape) for k, p in enumerate(computation.parameters)]
        root = apply_to_arrays(computation, parameters, ())
    if root is None:
        raise not_elementwise(computation)
    order = [i for i in _ordered(_source(root), {}) if i.opcode not in (Opcode.PARAMETER, *STRUCTURE)]
    roots = [_source(r) for r in elements_of(root)]
    last = {o: number for number, i in enumerate(order) for o in map(_source, i.operands)}
    slots: dict[HloInstruction, int] = {}
    sizes: list[int] = []
    free: list[int] = []

    def slot(instruction: HloInstruction) -> int:
        nbytes = instruction.shape.element.dtype.itemsize
        found = next((s for s in free if sizes[s] == nbytes), None)
        if found is None:
            sizes.append(nbytes)
            found = len(sizes) - 1
        else:
            free.remove(found)
        slots[instruction] = found
        return found

    inputs = tuple(map(slot, parameters))
    steps = []
    for number, i in enumerate(order):
        sources = tuple(slots[_source(o)] for o in i.operands)
        dying = dict.fromkeys(o for o in map(_source, i.operands) if last[o] == number and o not in roots)
        steps.append((i, slot(i), sources))  # before its operands' slots are free: a result is in none of them
        free += [slots[o] for o in dying]
    offsets = tuple(sum(sizes[:s]) for s in range(len(sizes)))
    return Plan(inputs, tuple(steps), tuple(slots[r] for r in roots), offsets, max(1, sum(sizes)))


def not_elementwise(computation: HloComputation | HloInstruction) -> UnsupportedError:
    """Why the vector unit cannot apply a computation."""
    return UnsupportedError(f"computation {computation.name} is not elementwise: the vector unit has no control flow")


def elements_of(root: HloInstruction) -> tuple[HloInstruction, ...]:
    """The elements of a tuple, or the array."""
    return root.operands if root.opcode is Opcode.TUPLE else (root,)


def _source(instruction: HloInstruction) -> HloInstruction:
    """Through a broadcast of a scalar: every element of an array in the scratchpad is a scalar."""
    while instruction.opcode is Opcode.BROADCAST:
        instruction = instruction.operands[0]
    return instruction


def _ordered(root: HloInstruction, seen: dict[HloInstruction, None]) -> dict[HloInstruction, None]:
    """The instructions from which the root is computed, operands first."""
    stack = [root]
    while stack:
        top = stack[-1]
        waiting = [o for o in map(_source, top.operands) if o not in seen]
        if waiting and top not in seen:
            stack += waiting
        else:
            seen[stack.pop()] = None
    return seen
