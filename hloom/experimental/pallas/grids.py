"""A kernel on all points of its grid, as one program of HLO.

In general the grid becomes nested loops. Their state is the arrays that the kernel writes and its scratch memory: each
iteration reads blocks (dynamic-slice), runs the kernel, and writes blocks in place (dynamic-update-slice).

Along some axes no point of the grid reads values that another point has written. Points along these run as a batch:
blocks become further dimensions of the arrays, and the kernel is batched by `vmap`. So a kernel of rows becomes
operations on whole arrays, a blocked product becomes one large product for each iteration of the loop over the
contracted axis, and threads share both. `Grid.batched` chooses the axes for which that is right:

* each point along the axis has its own blocks of each array that the kernel writes;
* all points take the same way through the loops and branches of the kernel;
* the kernel does not depend on the initial contents of the scratch memory. The first iteration of the remaining loops
  shows that: there `pl.when(pl.program_id(2) == 0)` has overwritten it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ...autodiff.vmap import vmap
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass
from ...tracer.aval import ShapedArray
from ...tracer.core import Value
from ...tracer.recording import run_computation
from ...tracer.references.refs import Ref
from .dependences import Form, Live, constant_form, diverges
from .mapping import BlockMapping, Window, unwritten
from .traced_kernels import Kernel

_INT32 = np.dtype(np.int32)
MOST_BYTES = 1 << 28
"""The most memory for the values of a batch of points, in addition to four times the memory of the arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A kernel and its grid. `sizes`: integers, None for those that are traced."""

    kernel: Kernel
    sizes: tuple[int | None, ...]
    mappings: tuple[BlockMapping, ...]

    # ---- which axes are a batch

    def batched(self) -> tuple[int, ...]:
        """The axes along which the points run as a batch."""
        kernel = self.kernel
        if kernel.acts or kernel.written_outside:
            return ()
        axes = [g for g, size in enumerate(self.sizes) if size is not None and size > 1 and self._is_independent(g)]
        if self._live_scratch({}):
            axes = self._leading(axes)
        while axes and self._bytes(axes) > MOST_BYTES + 4 * sum(_bytes_of(m.array) for m in self.mappings):
            axes.pop()
        return tuple(axes)

    def _is_independent(self, axis: int) -> bool:
        kernel, found = self.kernel, {axis}
        for k, mapping in enumerate(self.mappings):
            if any(axis in f.depends for f in mapping.forms):
                found.add(kernel.first_block + k)
            if k in kernel.written and self.split(mapping, axis) is None:
                return False
        found.update(range(kernel.first_scratch, kernel.first_captured))
        return not diverges(kernel.computation, found)

    def split(self, mapping: BlockMapping, axis: int) -> int | None:
        """The dimension of an array along which the points of an axis have blocks that follow one another; None if
        there is no such dimension, or another one depends on the axis too."""
        dims = [d for d, form in enumerate(mapping.forms) if axis in form.depends]
        size = self.sizes[axis]
        if len(dims) != 1 or size is None:
            return None
        (d,) = dims
        block = mapping.sizes[d]
        fits = mapping.forms[d].is_multiple_of(axis, block) and size * block <= mapping.padded[d]
        return d if fits else None

    def _live_scratch(self, known: dict[int, int]) -> bool:
        """Whether results depend on the scratch memory that a point finds, where some indices are known."""
        kernel = self.kernel
        live = Live(kernel.computation, known).of_results(range(len(kernel.written)))
        return any(kernel.first_scratch <= p < kernel.first_captured for p in live)

    def _leading(self, axes: list[int]) -> list[int]:
        """The longest run of leading axes of the grid that are among `axes`, such that the first iteration of the other
        loops does not depend on scratch memory."""
        found: list[int] = []
        for g, size in enumerate(self.sizes):
            if g in axes:
                found.append(g)
            elif size != 1:
                break
        while found:
            others = [g for g in range(len(self.sizes)) if g not in found]
            if not self._live_scratch(dict.fromkeys(others, 0)):
                break
            found.pop()
        return found

    def _bytes(self, axes: Sequence[int]) -> int:
        """The memory of products and the like, which are not fused, for a batch along these axes."""
        count = math.prod([self.sizes[g] or 0 for g in axes])
        large = (Opcode.DOT, Opcode.CONVOLUTION, Opcode.SORT, Opcode.GATHER, Opcode.SCATTER, Opcode.CUSTOM_CALL)
        found = [i for i in self.kernel.computation.instructions if i.opcode in large]
        return count * sum([s.num_elements * s.element.byte_width for i in found for s in i.shape.leaves()])

    # ---- running

    def run(
        self, sizes: Sequence[Any], prefetched: Sequence[Value], arrays: Sequence[Value | None]
    ) -> list[Value]:
        """The arrays of all mappings after the kernel has run on the grid. None among `arrays`: a result that nothing
        has written yet."""
        if 0 in self.sizes:
            return [unwritten(m.array) if a is None else a for a, m in zip(arrays, self.mappings, strict=True)]
        run = _Run(self, sizes, prefetched, self.batched())
        padded = [None if a is None else m.pad(a) for a, m in zip(arrays, self.mappings, strict=True)]
        found = run.all(padded)
        results = []
        for a, f, m in zip(arrays, found, self.mappings, strict=True):
            results.append(m.crop(f) if f is not None else unwritten(m.array) if a is None else a)
        return results


def _bytes_of(aval: ShapedArray) -> int:
    return aval.size * aval.dtype.itemsize


class _Run:
    """One run of a kernel on a grid."""

    def __init__(
        self, grid: Grid, sizes: Sequence[Any], prefetched: Sequence[Value], batch: tuple[int, ...]
    ) -> None:
        self.grid, self.kernel = grid, grid.kernel
        self.sizes, self.prefetched, self.batch = sizes, prefetched, batch
        self.used = self.kernel.used
        self.written = [k for k in self.kernel.written if k < self.kernel.blocks]
        self.memory = [k for k in self.kernel.written if k >= self.kernel.blocks]
        """The scratch memory that the kernel writes."""
        self.loops = [g for g, n in enumerate(grid.sizes) if g not in batch and n != 1]
        self.parts = [_Parts(grid, m, batch) for m in grid.mappings]

    def all(self, arrays: Sequence[Value | None]) -> list[Value | None]:
        """The arrays that the kernel writes, after all points; None for the others."""
        given: list[Value | None] = []
        for k, (array, part) in enumerate(zip(arrays, self.parts, strict=True)):
            if array is None and self._is_needed(k):
                array = unwritten(ShapedArray(part.mapping.padded, part.mapping.array.dtype))
            given.append(None if array is None or not self._is_needed(k) else part.apart(array))
        results = self._batched(0, {}, given)
        found: list[Value | None] = [None] * len(arrays)
        for k, result in zip(self.written, results, strict=True):
            part = self.parts[k]
            found[k] = part.together(result, arrays[k])
        return found

    def _is_overwritten(self, k: int) -> bool:
        """Whether the kernel writes all of a result, so that nothing has to be there before."""
        part = self.parts[k]
        first = self.kernel.first_block + k
        return not self.loops and first not in self.used and part.is_whole and part.covers

    def _is_needed(self, k: int) -> bool:
        """Whether the points use what is in the array."""
        if k in self.written:
            return not self._is_overwritten(k)
        return self.kernel.first_block + k in self.used

    def _batched(self, level: int, ids: dict[int, Value], arrays: Sequence[Value | None]) -> list[Value]:
        """The results for all points along the axes of the batch from `level` on."""
        if level == len(self.batch):
            return self._sequential(ids, arrays)
        axis = self.batch[level]
        size = self.grid.sizes[axis] or 0
        present = [k for k, a in enumerate(arrays) if a is not None]

        def one(index: Value, *values: Any) -> list[Value]:
            inner: list[Value | None] = [None] * len(arrays)
            for k, value in zip(present, values, strict=True):
                inner[k] = value
            return self._batched(level + 1, {**ids, axis: index}, inner)

        places = [part.place(axis, level) for part in self.parts]
        in_axes = (0, *[places[k] for k in present])
        out_axes = [places[k] for k in self.written]
        given: list[Any] = [arrays[k] for k in present]
        return vmap(one, in_axes, out_axes)(lax.iota(_INT32, size), *given)

    def _sequential(self, ids: dict[int, Value], arrays: Sequence[Value | None]) -> list[Value]:
        """The results of the loops over the other axes."""
        kernel = self.kernel
        state = [a for k in self.written if (a := arrays[k]) is not None]
        scratch = range(kernel.blocks, kernel.blocks + kernel.scratch)
        memory = {k: unwritten(_aval_of(kernel, k)) for k in scratch}
        outside = [r.current() for r in kernel.written_outside]
        start = [*state, *[memory[k] for k in self.memory], *outside]

        def loop(axes: Sequence[int], ids: dict[int, Value], state: list[Value]) -> list[Value]:
            if not axes:
                return self._step(ids, arrays, memory, state)
            g = axes[0]
            stop = self.sizes[g]
            stop = np.int32(stop) if isinstance(stop, int) else lax.convert_element_type(stop, _INT32)
            return list(lax.fori_loop(np.int32(0), stop, lambda i, s: loop(axes[1:], {**ids, g: i}, s), state))

        found = loop(self.loops, ids, start)
        if kernel.written_outside:
            for reference, value in zip(kernel.written_outside, found[len(found) - len(outside) :], strict=True):
                reference.replace(value)
        return found[: len(self.written)]

    def _step(
        self, ids: dict[int, Value], arrays: Sequence[Value | None], memory: dict[int, Value], state: Sequence[Value]
    ) -> list[Value]:
        """The state after one point: the arrays that are written, scratch memory, references from outside."""
        kernel, rest = self.kernel, iter(state)
        now = list(arrays)
        for k in self.written:
            now[k] = None if arrays[k] is None else next(rest)
        memory = {**memory, **{k: next(rest) for k in self.memory}}
        outside = {id(r): next(rest) for r in kernel.written_outside}
        captured = [
            outside[id(v)] if id(v) in outside else v.current() if isinstance(v, Ref) else v for v in kernel.captured
        ]
        zero = lax.full((), 0, _INT32)
        indices = [ids.get(g, zero) for g in range(len(self.grid.sizes))]
        dynamic = [
            lax.convert_element_type(s, _INT32)
            for s, known in zip(self.sizes, self.grid.sizes, strict=True) if known is None
        ]  # fmt: skip
        windows = [part.window(indices, self.prefetched) for part in self.parts]
        blocks: list[Any] = []
        for k, (array, window) in enumerate(zip(now, windows, strict=True)):
            is_used = kernel.first_block + k in self.used
            blocks.append(window.read(array) if is_used and array is not None else None)
        values = [*indices, *dynamic, *self.prefetched, *blocks, *memory.values(), *captured]
        results = run_computation(kernel.computation, values)
        count = len(self.written)
        after = [windows[k].write(now[k], r) for k, r in zip(self.written, results[:count], strict=True)]
        return [*after, *results[count:]]


def _aval_of(kernel: Kernel, k: int) -> ShapedArray:
    shape = kernel.computation.parameters[kernel.first_block + k].shape
    return ShapedArray(shape.dimensions, shape.element.dtype)


class _Parts:
    """An array, taken apart along the axes of a batch.

    A dimension with blocks along an axis becomes two: the axis and the block. `labels` are the dimensions then: an axis
    of the grid, or None. Elements after the last block stay where they are.
    """

    def __init__(self, grid: Grid, mapping: BlockMapping, batch: Sequence[int]) -> None:
        self.mapping = mapping
        self.batch = batch
        self.axis_of = {d: g for g in batch if (d := grid.split(mapping, g)) is not None}
        self.counts = {d: grid.sizes[g] or 0 for d, g in self.axis_of.items()}
        self.labels = [label for d in range(len(mapping.dims)) for label in self._labels(d)]

    def _labels(self, d: int) -> list[int | None]:
        return [self.axis_of[d], None] if d in self.axis_of else [None]

    @property
    def used(self) -> tuple[int, ...]:
        """The elements along each dimension that blocks of the batch have."""
        sizes, padded = self.mapping.sizes, self.mapping.padded
        return tuple([self.counts[d] * sizes[d] if d in self.counts else n for d, n in enumerate(padded)])

    @property
    def shape(self) -> tuple[int, ...]:
        """The array of one point of the batch."""
        sizes, padded = self.mapping.sizes, self.mapping.padded
        return tuple([sizes[d] if d in self.axis_of else n for d, n in enumerate(padded)])

    @property
    def forms(self) -> tuple[Form, ...]:
        """The first element of a block in the array of one point of the batch."""
        return tuple([constant_form(0) if d in self.axis_of else f for d, f in enumerate(self.mapping.forms)])

    @property
    def is_whole(self) -> bool:
        """Whether a block is all that a point of the batch has."""
        zero = all(f.is_zero for f in self.forms)
        return zero and self.shape == self.mapping.sizes

    @property
    def covers(self) -> bool:
        """Whether the points of the batch have all of the array."""
        return self.used == self.mapping.padded

    def apart(self, array: Value) -> Value:
        """The array with a dimension for each axis."""
        if not self.axis_of:
            return array
        if not self.covers:
            array = lax.slice(array, [0] * len(self.used), self.used)
        sizes = self.mapping.sizes
        shape: list[int] = []
        for d, used in enumerate(self.used):
            shape += [used // sizes[d], sizes[d]] if d in self.axis_of else [used]
        return lax.reshape(array, shape)

    def together(self, array: Value, before: Value | None) -> Value:
        """The array again. `before`: what is in the elements after the last block."""
        whole = lax.reshape(array, self.used)
        if self.covers:
            return whole
        if before is None:
            before = unwritten(ShapedArray(self.mapping.padded, self.mapping.array.dtype))
        return lax.dynamic_update_slice(before, whole, [0] * len(self.used))

    def place(self, axis: int, level: int) -> int | None:
        """Where the axis is, once those before it in the batch are gone."""
        gone = self.batch[:level]
        left = [label for label in self.labels if label not in gone or label is None]
        return left.index(axis) if axis in left else None

    def window(self, indices: Sequence[Value], prefetched: Sequence[Value]) -> Window:
        """The block at a point, in the array of one point of the batch."""
        return Window(self.mapping, self.shape, self.forms, self.mapping.places(indices, prefetched))
