"""Descriptions of blocks, grids and memory, as users write them: data without behaviour.

The names, fields and defaults are those of jax.experimental.pallas. `mapping.py` checks them against arrays.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np

from ...hlo.support.tracebacks import boundary
from ...tracer.arguments import ShapeDtypeStruct
from ...tracer.arrays.operators import ArrayBase
from ...tracer.aval import ShapedArray
from ...tracer.dtypes import canonical_dtype
from ...tracer.references.refs import AbstractRef
from ...tracer.source import user_line


class MemorySpace(enum.Enum):
    """Kinds of memory. All of them are the process's memory here; calling one makes the type of an array in it.

    >>> from hloom.experimental import pallas as pl
    >>> pl.MemorySpace.ANY((8, 128), jnp.float32).shape
    (8, 128)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"

    @property
    def memory_kind(self) -> str:
        """Where arrays in this memory are."""
        return "device"

    def from_type(self, type: Any) -> MemoryRef:
        """The type of a reference to an array of `type` in this memory."""
        return MemoryRef(type, self)

    @boundary
    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return self.from_type(ShapedArray(tuple(shape), canonical_dtype(dtype)))

    def __str__(self) -> str:
        return str(self.value)


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """The type of an array in some memory: scratch memory of a kernel, or a result.

    >>> from hloom.experimental import pallas as pl
    >>> pl.MemoryRef(hloom.core.ShapedArray((2, 3), jnp.float32), pl.ANY).shape
    (2, 3)
    """

    inner_aval: Any
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(self.inner_aval.shape)

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.inner_aval.dtype

    def get_array_aval(self) -> ShapedArray:
        """The type of the array."""
        return ShapedArray(self.shape, canonical_dtype(self.dtype))

    def get_ref_aval(self) -> AbstractRef:
        """The type of a reference to the array."""
        return AbstractRef(self.get_array_aval(), self.memory_space)


@dataclasses.dataclass(frozen=True)
class Element:
    """A dimension of a block. Its position is the position of its first element. `padding` adds elements before and
    after the array: NaN, for integers the least number."""

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        padding = "" if self.padding == (0, 0) else f", padding={self.padding}"
        return f"Element({self.block_size}{padding})"


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A dimension of a block with one element that the kernel's reference does not have."""


squeezed: Squeezed = Squeezed()


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A dimension of a block. Its position counts blocks. An integer in a block's shape means the same."""

    block_size: int

    def __str__(self) -> str:
        return f"Blocked({self.block_size})"


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A dimension of a block. The index map returns `pl.ds(start, size)` for it, at most `block_size` elements.
    The rest of the block is NaN when it is read, and is not written."""

    block_size: int

    def __repr__(self) -> str:
        return f"BoundedSlice({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Indirect:
    """A dimension indexed by an array of indices, which TPUs have: `pallas_call` refuses it (UnsupportedError)."""

    block_size: int

    def __repr__(self) -> str:
        return f"Indirect({self.block_size})"


BlockDim: TypeAlias = Element | Squeezed | Blocked | BoundedSlice | Indirect


@enum.unique
class RevisitMode(enum.Enum):
    """When a block of a result may be visited again. All modes are ANY here."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many buffers a pipeline has for a block: accepted; blocks are parts of arrays here."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None
    prefetched_count: int = 0


@dataclasses.dataclass
class BlockSpec:
    """Which block of an array a kernel sees at each point of its grid.

    block_shape: for each dimension of the array an integer, None (a squeezed dimension of size 1), `Squeezed`,
      `Blocked`, `Element` or `BoundedSlice`. None: all of the array.
    index_map: a function of the grid's indices to a position for each dimension, in blocks (`Element`: in elements).
      None: the first block.
    memory_space, pipeline_mode: accepted; all memory is that of the process.

    >>> from hloom.experimental import pallas as pl
    >>> pl.BlockSpec((8, 128), lambda i: (i, 0)).block_shape
    (8, 128)
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any = dataclasses.field(default=None, kw_only=True)
    pipeline_mode: Buffered | None = None

    replace: ClassVar[Callable[..., BlockSpec]] = dataclasses.replace

    def __post_init__(self) -> None:
        shape: Any = self.block_shape
        index_map: Any = self.index_map
        if callable(shape) or not (index_map is None or callable(index_map)):
            raise TypeError(
                f"BlockSpec takes the shape of a block, then the index map, not BlockSpec({shape!r}, {index_map!r})"
                f"\n  at {user_line() or '<unknown>'}"
            )


class NoBlockSpec:
    """The type of `no_block_spec`."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec: NoBlockSpec = NoBlockSpec()
"""In the place of a BlockSpec, or of all of them: the whole array."""


class GridSpec:
    """The grid of a kernel and its blocks, as one object. See `pallas_call` for the parameters.

    grid: sizes, or pairs of a name and a size.

    >>> from hloom.experimental import pallas as pl
    >>> pl.GridSpec(grid=(("i", 4),)).grid
    (4,)
    """

    num_scalar_prefetch = 0
    """How many of the first arguments are for index maps too."""

    def __init__(
        self, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec, scratch_shapes: Any = ()
    ) -> None:
        if in_specs is not no_block_spec and not isinstance(in_specs, Sequence):
            raise ValueError(f"`in_specs` must be a tuple or a list. Found: {in_specs}")
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        if not isinstance(scratch_shapes, dict | Sequence):
            raise ValueError(f"`scratch_shapes` must be a sequence or a dictionary. Found: {scratch_shapes}")
        self.scratch_shapes = scratch_shapes if isinstance(scratch_shapes, dict) else tuple(scratch_shapes)
        self.grid_names: tuple[Hashable, ...] | None = None
        sizes = (grid,) if isinstance(grid, int) else tuple(grid)
        if sizes and isinstance(sizes[0], tuple):
            names, sizes = zip(*sizes, strict=True)
            self.grid_names = tuple(names)
        if not all(isinstance(size, int | np.integer | ArrayBase) for size in sizes):
            raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid}")
        if any(isinstance(size, int | np.integer) and size < 0 for size in sizes):
            raise ValueError(f"The sizes of a grid must not be negative, got {grid}")
        self.grid: tuple[Any, ...] = tuple([int(s) if isinstance(s, np.integer) else s for s in sizes])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(grid={self.grid}, grid_names={self.grid_names}, in_specs={self.in_specs}, "
            f"out_specs={self.out_specs}, scratch_shapes={self.scratch_shapes})"
        )


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """The work of a kernel, for schedulers: accepted, and not used. ValueError for a field that is no integer."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int):
                raise ValueError(
                    f"All fields in CostEstimate must be ints. {name} is not an int: {type(value)}({value})"
                )

    def to_json(self) -> bytes:
        """The fields as JSON.

        >>> from hloom.experimental import pallas as pl
        >>> pl.CostEstimate(1, 2, 3).to_json()
        b'{"flops": 1, "transcendentals": 2, "bytes_accessed": 3, "remote_bytes_transferred": 0}'
        """
        fields = ", ".join(f'"{name}": {value}' for name, value in dataclasses.asdict(self).items())
        return f"{{{fields}}}".encode("ascii")


@runtime_checkable
class CompilerParams(Protocol):
    """Parameters for the compiler of one platform: a dataclass such as `pallas.tpu.CompilerParams`."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


def aval_of_result(given: Any) -> ShapedArray:
    """The type of a result from an entry of `out_shape`. ValueError if it has no shape and dtype."""
    if isinstance(given, ShapeDtypeStruct | ArrayBase):
        aval: ShapedArray = given.aval
        return aval.with_weak_type(False)
    if isinstance(given, ShapedArray):
        return given
    if not (hasattr(given, "shape") and hasattr(given, "dtype")):
        raise ValueError(f"Invalid out_shape type: {type(given)}")
    return ShapedArray(tuple(given.shape), canonical_dtype(given.dtype))
