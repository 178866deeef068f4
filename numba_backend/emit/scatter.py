"""The kernel of scatter: a loop over the indices; for each index inside the array, a loop over its window.

    def scatter_add(lo, hi, io0, x1, x2, n0, u0, m0, s0):
        for i in range(n0):
            start0 = int64(x1[i])
            if 0 <= start0 and start0 <= m0:
                for j in range(lo, hi):
                    at0 = start0 * s0 + j
                    of0 = i * u0 + j
                    io0[at0] = io0[at0] + x2[of0]

Updates of one element happen in the order of the indices. Threads therefore split updates of different offsets: the
indices, if they are declared unique; the members of a batch; a wide window. Where there is nothing of the kind, many
updates of a small array are combined in parts (`scatter_parts.py`).

A maximum that stays as it was is not written again, so that the next update of the element does not wait for it::

                if not x2[i] < io0[start0]:
                    io0[start0] = maximum(io0[start0], x2[i])
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace

from ...hlo.analyses.in_bounds import in_bounds
from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.indexing import ScatterAttributes
from ...hlo.passes.patterns import reducer_opcode
from ..emitted_kernel import HI, LO, EmittedKernel, memory_type
from ..loops.expressions import ZERO, Binary, Expr, Name, Number, Unary, all_of, call, minimum, plus
from ..loops.writer import cast
from ..machine import target_machine
from .inlined import Inlined
from .nest import loop_variable
from .scalar_computations import KernelText
from .scatter_plan import PlanLoop, scatter_plan
from .sizes import LITERAL_LIMIT

SHARED_LINES = 16
"""The least width of a thread's part of a window. Each thread reads all indices; with narrower parts, the cache would
also load the elements between them."""

OWNED_LINES = 4
"""The least size of windows that threads share by owners: each thread reads all indices. With rows of 256 bytes, two
threads take 0.7 of the time of one to set 8,192, and 0.63 to add to them; with rows of 128 bytes 1.0 and 0.87."""

OWNERS = 4
"""Owners of windows, a power of 2."""

_SORTED_OUT = 1024
"""Indices that are looked at before the windows of those that a thread owns are updated."""

_LEAVES: dict[Opcode, tuple[str, str]] = {Opcode.MAXIMUM: ("<", "<="), Opcode.MINIMUM: (">", ">=")}
"""How an update compares with an element that it leaves unchanged: for floats, since zeros have signs; for integers."""

_OFTEN = 32
"""Updates for each element of an array: with fewer, the processor cannot predict whether one changes a maximum, and
waits for the element."""

_BLOCK = 256
"""Indices that are prepared together where single elements are updated."""

Offsets = tuple[Expr, Expr, Expr]
"""Offsets in the array, in the indices and in the updates."""


def emit_scatter(instruction: HloInstruction, threads: int, given: Inlined | None = None) -> EmittedKernel:
    """The kernel of a scatter. Its outputs already hold its arrays (operands 0 to N - 1). `given`: the operands that it
    computes itself."""
    return ScatterEmitter(instruction, given=given).emit(threads)


class ScatterEmitter:
    """The text of one kernel, and the loops and updates in it. `stem`: the end of the kernel's name; `given`: the
    operands that the kernel computes; `combiner`: replaces the instruction's own combiner, and gives the type of the
    kernel's array."""

    def __init__(
        self,
        instruction: HloInstruction,
        stem: str = "",
        given: Inlined | None = None,
        combiner: HloComputation | None = None,
    ) -> None:
        self.attributes: ScatterAttributes = instruction.attributes
        self.count: int = len(instruction.operands) // 2
        shapes = [o.shape for o in instruction.operands]
        self.shapes = shapes
        self.plan = scatter_plan(shapes[0], shapes[self.count], shapes[-1], self.attributes, in_bounds(instruction))
        self.combiner = combiner = combiner or self.attributes.to_apply
        plain = combiner.root.opcode in (Opcode.PARAMETER, Opcode.TUPLE)
        name = "scatter" if plain else f"scatter_{combiner.root.opcode.name.lower()}"
        self.text: KernelText = KernelText(name + stem, combiner if given is None else given.computation)
        self.writer = self.text.writer
        types = [parameter.shape.element for parameter in combiner.parameters[: self.count]]
        self.arrays = [self.text.output(f"io{n}", element, n) for n, element in enumerate(types)]
        self._columns = {} if given is None else given.columns
        self._buffers = {
            n: self.text.operand(f"x{n}", shape.element, n)
            for n, shape in enumerate(shapes)
            if n >= self.count and n not in self._columns
        }
        if given is not None:
            self.text.read_parameters(given.computation)
        self._across = len(self._columns.get(self.count, (None,)))
        """The number of index vectors, which are the columns of a matrix."""
        self._roles: dict[str, int] = {}
        self._extents: dict[PlanLoop, Expr] = {}
        self._steps: dict[PlanLoop, Offsets] = {}
        self._starts: list[tuple[Expr, Expr, Expr | None]] = []

    def size(self, role: str, value: int) -> Expr:
        """A number of the shapes, as an argument of the kernel unless it is 0 or 1."""
        if value in (0, 1):
            return Number(value)
        number = self._roles[role] = self._roles.get(role, -1) + 1
        return self.text.argument(f"{role}{number}", value)

    @property
    def owned(self) -> int | None:
        """The component of the index that says which thread updates a window, where threads share whole windows."""
        sizes = [start.last if start.single else 0 for start in self.plan.starts]
        window = self.plan.window * self.shapes[0].element.byte_width
        owned = OWNED_LINES * target_machine().cache_line
        if self.shared[0] is not None or window < owned or max(sizes, default=0) < OWNERS:
            return None
        return sizes.index(max(sizes))

    @property
    def shared(self) -> tuple[PlanLoop | None, int]:
        """The loop that threads may split, if any, and the least number of its steps for a thread."""
        outer = self.plan.outer
        if self.attributes.unique_indices and outer:
            return outer[0], 1
        for loop in outer:
            if loop.array:  # a batch: its members update elements of their own
                return loop, 1
        window = max(self.plan.inner, key=lambda loop: loop.extent, default=None)
        widest = max(shape.element.byte_width for shape in self.shapes[: self.count])
        least = max(1, SHARED_LINES * target_machine().cache_line // widest)
        return (window, least) if window is not None and window.extent >= 2 * least else (None, 1)

    def emit(self, threads: int) -> EmittedKernel:
        """The kernel that updates the arrays themselves. One thread needs no owners, which take up to twice the time
        there."""
        sliced, least = self.shared
        owned = self.owned if threads > 1 else None
        if owned is not None and len(self.plan.outer) == 1:
            self._update_owned(self.plan.outer[0], owned)
        elif self.has_places:
            (loop,) = self.plan.outer
            self.update_places(loop, *((LO, HI) if sliced is loop else (ZERO, self.extent(loop))))
        else:
            with ExitStack() as stack:
                self.update_all(self.loops(stack, self.plan.outer, sliced, 0), sliced, owned=owned)
        extent = sliced.extent if sliced is not None else 1 if owned is None else OWNERS
        return replace(self.text.finish(extent), least=least)

    def update_all(
        self, at: Offsets, sliced: PlanLoop | None = None, base: Expr = ZERO, owned: int | None = None
    ) -> None:
        """The update of one window, if it is inside the array. `at`: the terms that the loops over the indices add to
        offsets; `base`: the first element of the array; `owned`: see there."""
        array, indices, updates = at
        array, tests = self._target(base + array, indices, owned)
        with self.writer.if_(all_of(tests), guarded=True) if tests else nullcontext(), ExitStack() as stack:
            within, _, source = self.loops(stack, self.plan.inner, sliced, len(self.plan.outer))
            self._update(array + within, updates + source)

    def _target(self, array: Expr, indices: Expr, owned: int | None) -> tuple[Expr, list[Expr]]:
        """The offset of a window in the array, and the tests that it is inside, and of one of this thread's owners."""
        tests: list[Expr] = []
        values: list[Name] = []
        for number, (distance, stride, last) in enumerate(self._start_sizes()):
            found, value = self._start(number, indices + distance, last)
            array = array + value * stride
            tests += found
            values.append(value)
        if owned is not None:
            owner = values[owned] & (OWNERS - 1)
            tests += [Binary("<=", LO, owner), Binary("<", owner, HI)]
        return array, tests

    def _update_owned(self, loop: PlanLoop, owned: int) -> None:
        """The updates of whole windows by their owners. Branches on the owner would be mispredicted, so a loop without
        branches first selects the thread's own indices in a block::

            for block in range(0, n0, 1024):
                count = 0
                for i in range(block, minimum(block + 1024, n0)):
                    start0 = int64(x1[i])
                    there[count] = start0 * s0
                    given[count] = i * u0
                    count += int64((0 <= start0) & (start0 <= m0) & (lo <= start0 & 3) & (start0 & 3 < hi))
                for k in range(count):
                    to = there[k]
                    of = given[k]
                    for j in range(n1):
                        io0[to + j] = io0[to + j] + x2[of + j]
        """
        writer = self.writer
        there, given = (writer.local_array(name, _SORTED_OUT, "int64") for name in ("there", "given"))
        size = self.extent(loop)
        with writer.loop("block", ZERO, size, step=_SORTED_OUT) as block:
            count = writer.assign("count", 0)
            with writer.loop(loop_variable(0), block, minimum(block + _SORTED_OUT, size)) as i:
                array, indices, updates = self.step(loop, i)
                array, tests = self._target(array, indices, owned)
                writer.store(there, count, array)
                writer.store(given, count, updates)
                holds = tests[0]
                for test in tests[1:]:
                    holds = holds & test
                writer.assign(count, count + cast("int64", holds))
            with writer.loop("k", count) as k, ExitStack() as stack:
                to, of = writer.assign("to", there[k]), writer.assign("of", given[k])
                within, _, source = self.loops(stack, self.plan.inner, None, 1)
                self._update(to + within, of + source)

    @property
    def has_places(self) -> bool:
        """Whether single elements are updated, more than a few of them, and an index may be outside of the array."""
        outer, starts = self.plan.outer, self.plan.starts
        one_by_one = len(outer) == 1 and not self.plan.inner and outer[0].extent > LITERAL_LIMIT
        return one_by_one and not all(start.fits for start in starts)

    def update_places(
        self, loop: PlanLoop, begin: Expr, end: Expr, base: Expr = ZERO, spare: Expr | None = None
    ) -> None:
        """The updates of single elements of the array that begins at `base`. The places of a block of indices are
        computed first, by a loop over vectors: a processor that finds out place by place whether it is inside of the
        array reads an element later than it could, 0.6 times as fast. `spare`: the place of an element to which
        updates go that are outside; without one, their place is -1. ::

            for block in range(begin, end, 256):
                some = minimum(block + 256, end) - block
                for k in range(some):
                    start0 = int64(x1[block + k])
                    places[k] = int32(select((0 <= start0) & (start0 <= m0), start0 * s0, -1))
                for k in range(some):
                    place = int64(places[k])
                    if place >= 0:
                        io0[place] = io0[place] + x2[block + k]
        """
        writer, number = self.writer, self.shapes[0].num_elements
        kind = "int32" if number < (1 << 31) - 1 else "int64"
        places = writer.local_array("places", _BLOCK, kind)
        with writer.loop("block", begin, end, step=_BLOCK) as block:
            some = writer.assign("some", minimum(block + _BLOCK, end) - block)
            with writer.loop("k", some) as k:
                array, indices, _ = self.step(loop, writer.let("i", block + k))
                array, tests = self._target(array, indices, None)
                inside = functools.reduce(lambda a, b: a & b, tests)
                place = call("select", inside, array, Number(-1) if spare is None else spare)
                writer.store(places, k, place if kind == "int64" else cast(kind, place))
            with writer.loop("k", some) as k:
                place = writer.assign("place", cast("int64", places[k]))
                _, _, updates = self.step(loop, writer.let("i", block + k))
                with writer.if_(place >= 0, guarded=True) if spare is None else nullcontext():
                    self._update(plus(base, place), updates)

    def update_step(self, first: PlanLoop, others: Sequence[PlanLoop], step: Expr, base: Expr) -> None:
        """The updates of one step of the outermost loop over the indices, in a copy of the array that begins at
        `base`."""
        with ExitStack() as stack:
            outer = self.step(first, step)
            inner = self.loops(stack, others, None, 1)
            array, indices, updates = (a + b for a, b in zip(outer, inner, strict=True))
            self.update_all((array, indices, updates), base=base)

    def step(self, loop: PlanLoop, i: Expr) -> Offsets:
        """The terms that step `i` of a loop adds to the offsets."""
        strides = self._steps.get(loop)
        if strides is None:
            array, indices, updates = loop.array, loop.indices // self._across, loop.updates
            strides = self._steps[loop] = self.size("s", array), self.size("t", indices), self.size("u", updates)
        return i * strides[0], i * strides[1], i * strides[2]

    def loops(self, stack: ExitStack, loops: Sequence[PlanLoop], sliced: PlanLoop | None, first: int) -> Offsets:
        """Opens the loops; gives the offsets that their variables add."""
        array: Expr = ZERO
        indices: Expr = ZERO
        updates: Expr = ZERO
        for number, loop in enumerate(loops):
            bounds: tuple[Expr, ...]
            if loop is sliced:
                bounds = LO, HI
            elif loop.extent <= LITERAL_LIMIT and number == len(loops) - 1:
                bounds = (Number(loop.extent),)
            else:
                bounds = (self.extent(loop),)
            i = stack.enter_context(self.writer.loop(loop_variable(first + number), *bounds))
            a, b, c = self.step(loop, i)
            array, indices, updates = array + a, indices + b, updates + c
        return array, indices, updates

    def extent(self, loop: PlanLoop) -> Expr:
        """The number of steps of a loop."""
        found = self._extents.get(loop)
        if found is None:
            found = self._extents[loop] = self.size("n", loop.extent)
        return found

    def _start_sizes(self) -> list[tuple[Expr, Expr, Expr | None]]:
        """For each component of the index: its distance, its stride, its largest value if that must be tested."""
        if not self._starts:
            for start in self.plan.starts:
                last = None if start.fits else self.size("m", start.last)
                distance = self.size("t", start.distance if self._across == 1 else 0)
                self._starts.append((distance, self.size("s", start.stride), last))
        return self._starts

    def _element(self, operand: int, offset: Expr, column: int = 0) -> Expr:
        """The element of an operand at an offset. `column` chooses a vector, if the operand consists of several."""
        columns = self._columns.get(operand)
        if columns is None:
            return self._buffers[operand].load(offset).at(self.writer.depth)
        if not offset.is_simple:
            offset = self.writer.let("of", offset)
        return self.text.elements.value(columns[column], (offset,))

    def _start(self, number: int, offset: Expr, last: Expr | None) -> tuple[list[Expr], Name]:
        """A component of the index, and the tests that the window fits there."""
        component = self._element(self.count, offset, number if self._across > 1 else 0)
        # (A u64 beyond s64 becomes negative here, which is outside too.)
        name = self.writer.let("start", cast("int64", component))
        return [] if last is None else [Binary("<=", ZERO, name), name <= last], name

    @property
    def leaves(self) -> str | None:
        """How an update compares with the element that it leaves as it is, where one element at a time is updated by a
        maximum or minimum."""
        signs = _LEAVES.get(reducer_opcode(self.attributes.to_apply) or Opcode.TUPLE)
        element = self.shapes[0].element
        if signs is None or self.plan.inner or element is ElementType.PRED or element.is_small:
            return None
        if self.plan.steps < _OFTEN * self.shapes[0].num_elements:
            return None
        return signs[element.is_integral]

    def _changes(self, old: list[Expr], new: list[Expr]) -> Expr | None:
        """The test whether an update may change its element; None if there is none. The elements of both lists get
        names."""
        sign = self.leaves
        if sign is None:
            return None
        old[0], new[0] = self.writer.let("old", old[0]), self.writer.let("new", new[0])
        return Unary("not", Binary(sign, new[0], old[0]))

    def _update(self, target: Expr, source: Expr) -> None:
        """Combine the updates at offset `source` into the arrays at offset `target`."""
        to, origin = (e if isinstance(e, Name) else self.writer.let(s, e) for e, s in ((target, "at"), (source, "of")))
        old = [array.load(to).at(self.writer.depth) for array in self.arrays]
        new = [self._element(n, origin) for n in range(self.count + 1, len(self.shapes))]
        if self.combiner is not self.attributes.to_apply:
            types = [memory_type(array.element_type) for array in self.arrays]
            new = [cast(type_, value) for type_, value in zip(types, new, strict=True)]
        test = self._changes(old, new)
        with nullcontext() if test is None else self.writer.if_(test, guarded=True):
            results = self.text.apply(self.combiner, [*old, *new])
            if self.count > 1:
                results = [self.writer.let("next", r) for r in results]
            for array, result in zip(self.arrays, results, strict=True):
                self.text.store(array, to, result)
