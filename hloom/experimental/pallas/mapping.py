"""A block specification checked against the array that it takes blocks of."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation
from ...hlo.support.records import dataclass
from ...tracer import dtypes
from ...tracer.arrays.array import as_value
from ...tracer.arrays.dslice import Slice
from ...tracer.aval import ShapedArray
from ...tracer.core import Value
from ...tracer.ops import convert, read_block, write_block
from ...tracer.recording import run_computation
from ...tracer.references.refs import Ref
from ...tracer.source import function_line
from ...tracer.trees import tree
from .block_spec import (
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    Indirect,
    Squeezed,
    no_block_spec,
    squeezed,
)
from .dependences import Form, constant_form, forms_of
from .grid_points import Point, within
from .user_functions import call, parameters_of, traced

_INT32 = np.dtype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class BlockMapping:
    """The blocks of one array."""

    dims: tuple[BlockDim, ...]
    array: ShapedArray
    """The array as the user passes it."""
    index: HloComputation | None
    """From the grid's indices and the prefetched arrays to one number for each dimension, to a start and a size for
    bounded slices. None: the first block."""
    captured: tuple[Value, ...]
    """Further operands of `index`."""
    forms: tuple[Form, ...]
    """The first element of the block along each dimension."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of a block along the array's dimensions."""
        return tuple([1 if isinstance(d, Squeezed) else d.block_size for d in self.dims])

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that the kernel's reference has."""
        return tuple([k for k, d in enumerate(self.dims) if not isinstance(d, Squeezed)])

    @property
    def block(self) -> ShapedArray:
        """The type of the array in the kernel's reference."""
        sizes = self.sizes
        return ShapedArray(tuple([sizes[k] for k in self.kept]), self.array.dtype)

    @property
    def low(self) -> tuple[int, ...]:
        """How many elements are added before the first one, along each dimension."""
        return tuple([d.padding[0] if isinstance(d, Element) else 0 for d in self.dims])

    @property
    def padded(self) -> tuple[int, ...]:
        """The sizes of the array that blocks are taken of: a multiple of the block, with the padding that the user
        asked for. A bounded slice has room for a whole block after the last element."""
        return tuple([_padded(size, d) for size, d in zip(self.array.shape, self.dims, strict=True)])

    def pad(self, value: Value) -> Value:
        """The array with its padding."""
        if self.padded == self.array.shape:
            return value
        low = self.low
        high = [p - n - before for p, n, before in zip(self.padded, self.array.shape, low, strict=True)]
        config = [(b, h, 0) for b, h in zip(low, high, strict=True)]
        return lax.pad(value, filler(self.array.dtype), config)

    def crop(self, value: Value) -> Value:
        """The array without its padding."""
        if self.padded == self.array.shape:
            return value
        limits = [b + n for b, n in zip(self.low, self.array.shape, strict=True)]
        return lax.slice(value, self.low, limits)

    def places(self, ids: Sequence[Value], prefetched: Sequence[Value]) -> Places:
        """Where the block of a point of the grid is."""
        if self.index is None:
            return Places([0] * len(self.dims), {})
        found = iter(run_computation(self.index, [*ids, *prefetched, *self.captured]))
        starts, counts = [], {}
        for k, (dim, size) in enumerate(zip(self.dims, self.sizes, strict=True)):
            start = convert(next(found), _INT32, False)
            if isinstance(dim, BoundedSlice):
                counts[k] = convert(next(found), _INT32, False)
            elif isinstance(dim, Blocked) and size != 1:
                start = start * np.int32(size)
            starts.append(start)
        return Places(starts, counts)


@dataclass(frozen=True, slots=True)
class Places:
    """Where a block is in its array."""

    starts: list[Any]
    """The first element along each dimension."""
    counts: dict[int, Value]
    """How many elements are valid, for dimensions with bounded slices."""


def _padded(size: int, dim: BlockDim) -> int:
    block = 1 if isinstance(dim, Squeezed) else dim.block_size
    if isinstance(dim, BoundedSlice):
        return size + block
    if isinstance(dim, Element):
        size += sum(dim.padding)
    return max(1, -(-size // block)) * block if block else size


def filler(dtype: Any) -> Value:
    """The element of memory that nothing has written: NaN, the least integer, False. As JAX's interpreter has it."""
    if dtypes.is_floating(dtype) or dtypes.is_complex(dtype):
        return lax.full((), np.nan, dtype)
    if dtype == np.bool_:
        return lax.full((), False, dtype)
    return lax.full((), dtypes.iinfo(dtype).min, dtype)


def unwritten(aval: ShapedArray) -> Value:
    """An array that nothing has written."""
    return lax.broadcast(filler(aval.dtype), aval.shape)


class Window:
    """The blocks of one array at a point of the grid: reads and writes them.

    The array may have fewer elements than the mapping says, where a batch has taken some of its blocks apart: `forms`
    and `sizes` are those of this array.
    """

    def __init__(self, mapping: BlockMapping, shape: Sequence[int], forms: Sequence[Form], places: Places) -> None:
        self.mapping, self.shape, self.forms, self.places = mapping, tuple(shape), forms, places

    @property
    def is_whole(self) -> bool:
        """Whether the block is all of the array."""
        return (
            self.shape == self.mapping.sizes and all(f.is_zero for f in self.forms) and not self.places.counts
        )

    def starts(self) -> list[Value]:
        """The first element along each dimension; a negative one counts from the end."""
        found: list[Value] = []
        for start, form, size in zip(self.places.starts, self.forms, self.shape, strict=True):
            if form.is_zero or not hasattr(start, "aval"):
                found.append(as_value(np.int32(start if not hasattr(start, "aval") else 0)))
            elif form.is_natural:
                found.append(start)
            else:
                found.append(lax.select(lax.lt(start, np.int32(0)), start + np.int32(size), start))
        return found

    def read(self, array: Value) -> Value:
        """The block, as the kernel sees it."""
        if self.is_whole:
            return lax.reshape(array, self.mapping.block.shape)
        return lax.reshape(self._masked(self._read(array), None), self.mapping.block.shape)

    def _read(self, array: Value) -> Value:
        return read_block(array, self.starts(), self.mapping.sizes)

    def write(self, array: Value | None, block: Value) -> Value:
        """The array with the block. An array is needed unless the block is all of it."""
        new = lax.reshape(block, self.mapping.sizes)
        if self.is_whole:
            return new
        assert array is not None, "the block is a part of it"
        if self.places.counts:
            new = self._masked(new, self._read(array))
        return write_block(array, new, self.starts())

    def _masked(self, block: Value, other: Value | None) -> Value:
        """The block with other elements beyond the sizes of bounded slices."""
        for d, count in self.places.counts.items():
            inside = lax.lt(lax.broadcasted_iota(_INT32, block.aval.shape, d), lax.broadcast(count, block.aval.shape))
            rest = lax.broadcast(filler(block.aval.dtype), block.aval.shape) if other is None else other
            block = lax.select(inside, block, rest)
        return block


# ---- from a BlockSpec


def _dim(dim: Any) -> BlockDim:
    if dim is None:
        return squeezed
    if isinstance(dim, Indirect):
        raise UnsupportedError(f"{dim!r} is for TPUs: take rows by an index map with prefetched indices")
    if isinstance(dim, Squeezed | Blocked | Element | BoundedSlice):
        return dim
    try:
        return Blocked(operator.index(dim))
    except TypeError as error:
        raise ValueError(
            f"Unsupported block dimension type: {type(dim)}. Allowed types: `pl.Squeezed`, `pl.Blocked`, `pl.Element`, "
            "`int`, `None`."
        ) from error


def mapping_of(
    spec: Any, origin: str, array: ShapedArray, grid: Sequence[Any], prefetched: Sequence[ShapedArray], structure: Any
) -> BlockMapping:
    """The mapping of a BlockSpec, or of `no_block_spec`.

    origin: what the array is, in messages. grid: sizes, None for those that are traced. structure: of the prefetched
    arguments, whose leaves are of the types `prefetched`.
    ValueError if block and array, or the index map's results, do not fit.
    """
    if spec is no_block_spec:
        spec = BlockSpec()
    if not isinstance(spec, BlockSpec):
        raise ValueError(f"The specification for {origin} must be a BlockSpec or no_block_spec, not {spec!r}.")
    if spec.block_shape is None:
        dims: tuple[BlockDim, ...] = tuple([Blocked(n) for n in array.shape])
    else:
        dims = tuple([_dim(d) for d in spec.block_shape])
        if len(dims) != len(array.shape):
            raise ValueError(
                f"Block shape for {origin} (= {dims}) must have the same number of dimensions as the array shape "
                f"{array.shape}."
            )
    if any(not isinstance(d, Squeezed) and d.block_size < 0 for d in dims):
        raise ValueError(f"Block shape for {origin} (= {dims}) has a negative size.")
    if spec.index_map is None:
        return BlockMapping(dims, array, None, (), tuple([constant_form(0) for _ in dims]))
    return _with_index_map(spec.index_map, dims, origin, array, grid, prefetched, structure)


def _with_index_map(
    index_map: Any, dims: tuple[BlockDim, ...], origin: str, array: ShapedArray, grid: Sequence[Any],
    prefetched: Sequence[ShapedArray], structure: Any,
) -> BlockMapping:  # fmt: skip
    count = len(grid)
    where = f"Index map function {function_line(index_map)} for {origin}"

    def flat(values: list[Value]) -> list[Value]:
        ids = values[:count]
        arguments = tree.unflatten(structure, [Ref(v) for v in values[count:]])

        def explained() -> str:
            more = f" and {len(arguments)} prefetched arguments" if arguments else ""
            indices = "1 index" if count == 1 else f"{count} indices"
            return f"{where} takes {parameters_of(index_map)}. It is given {indices} of the grid{more}."

        with within(Point(ids, grid)):
            found = call(index_map, [*ids, *arguments], {}, explained)
        entries = list(found) if isinstance(found, tuple | list) else [found]
        if len(entries) != len(dims):
            raise ValueError(
                f"{where} must return {len(dims)} values to match block_shape={dims}. Currently returning "
                f"{len(entries)} values:"
            )
        return _numbers(entries, dims, where)

    avals = [*[ShapedArray((), _INT32)] * count, *prefetched]
    found, outside = traced(flat, avals, "index_map")
    if outside:
        raise ValueError(f"{where} must not capture constants: {outside}")
    forms, all_forms = [], iter(forms_of(found.computation, count))
    for dim in dims:
        form = next(all_forms)
        if isinstance(dim, BoundedSlice):
            form = Form(None, 0, form.depends | next(all_forms).depends)
        forms.append(form.scaled(dim.block_size) if isinstance(dim, Blocked) else form)
    return BlockMapping(dims, array, found.computation, tuple(found.captured), tuple(forms))


def _numbers(entries: Sequence[Any], dims: Sequence[BlockDim], where: str) -> list[Value]:
    """The results of an index map as integers. ValueError for anything else."""
    found: list[Value] = []
    for k, (entry, dim) in enumerate(zip(entries, dims, strict=True)):
        if isinstance(dim, BoundedSlice) is not isinstance(entry, Slice):
            wanted = "pl.Slice" if isinstance(dim, BoundedSlice) else "a scalar"
            raise ValueError(
                f"index_map returned a value of type {type(entry)} at position {k} with block dimension {dim} when it "
                f"should be {wanted}"
            )
        parts = [entry.start, entry.size] if isinstance(entry, Slice) else [entry]
        for part in parts:
            value = as_value(part)
            if value.aval.shape or value.aval.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
                raise ValueError(
                    f"{where} must return integer scalars. Output[{k}] has type {value.aval.str_short()}."
                )
            found.append(value)
    return found
