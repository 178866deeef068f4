"""`hloom.experimental.pallas.tpu`: parts of kernels for TPUs, with names of jax.experimental.pallas.tpu.

Descriptions of kernels (memory spaces, grids with prefetched scalars, parameters of a compiler) are accepted, and
functions that compute run. Copies, semaphores and generators of random bits of TPUs are refused: UnsupportedError at
their use.
"""

import dataclasses as _dataclasses
import enum as _enum
from collections import OrderedDict as _OrderedDict
from collections.abc import Iterator as _Iterator
from collections.abc import Sequence as _Sequence
from contextlib import contextmanager as _contextmanager
from typing import Any as _Any

import numpy as _np

from ... import lax as _lax
from ... import numpy as _jnp
from ...namespaces import publish as _publish
from ...namespaces.not_written import not_written as _not_written
from ...tracer.aval import ShapedArray as _ShapedArray
from ...tracer.dtypes import canonical_dtype as _canonical_dtype
from .block_spec import GridSpec as _GridSpec
from .block_spec import MemoryRef as _MemoryRef
from .block_spec import no_block_spec as _no_block_spec
from .helpers import masked_load as _masked_load
from .helpers import masked_store as _masked_store

_COPIES = """
BufferType BufferedRef BufferedRefBase LoweringException PipelineStep SemaphoreType async_copy
async_remote_copy core_barrier dma_semaphore emit_pipeline emit_pipeline_with_allocations
get_barrier_semaphore make_async_copy make_async_remote_copy matmul_acc_lhs matmul_lhs_fifo matmul_pop matmul_pop_fifo
matmul_push_rhs run_on_first_core sync_copy
"""
_RANDOM = """
prng_random_bits prng_seed sample_block stateful_bernoulli stateful_bits stateful_normal stateful_uniform
stochastic_round to_pallas_key
"""
_PACKED = "einshape pack_elementwise unpack_elementwise"
_HARDWARE = "ChipVersion Tiling TpuInfo get_tpu_info get_tpu_info_for_chip is_tpu_device trace_value"
_PARAMETERS = """
ARBITRARY CMEM CORE_PARALLEL CompilerParams CoreType GridDimensionSemantics HBM InterpretParams MemorySpace PARALLEL
PrefetchScalarGridSpec SEMAPHORE SMEM SUBCORE_PARALLEL SideEffectType TensorCoreMesh VMEM VMEM_SHARED bitcast
create_tensorcore_mesh force_tpu_interpret_mode load reset_tpu_interpret_mode_state roll set_tpu_interpret_mode store
touch with_memory_space_constraint
"""
__all__ = [*_COPIES.split(), *_RANDOM.split(), *_PACKED.split(), *_HARDWARE.split(), *_PARAMETERS.split()]

for _names, _why in (
    (_COPIES, "it is about copies between the memories of a TPU, and its cores"),
    (_RANDOM, "it is about the random bits of a TPU; hloom.random draws in kernels, too"),
    (_PACKED, "it is about the registers of a TPU; hloom.numpy reshapes and converts arrays"),
    (_HARDWARE, "it is about the hardware of a TPU"),
):
    globals().update(_not_written(__name__, _names, _why))


class MemorySpace(_enum.Enum):
    """The memories of a TPU. All of them are the process's memory here; calling one makes the type of an array in it.

    >>> from hloom.experimental.pallas import tpu
    >>> tpu.VMEM((8, 128), jnp.float32).shape
    (8, 128)
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    @property
    def memory_kind(self) -> str:
        """Where arrays in this memory are."""
        return "device"

    def from_type(self, ty: _Any) -> _MemoryRef:
        """The type of a reference to an array of a type in this memory."""
        return _MemoryRef(ty, self)

    def __call__(self, shape: _Any, dtype: _Any) -> _MemoryRef:
        return self.from_type(_ShapedArray(tuple(shape), _canonical_dtype(dtype)))

    def __str__(self) -> str:
        return str(self.value)


VMEM, VMEM_SHARED, SMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM
CMEM, SEMAPHORE, HBM = MemorySpace.CMEM, MemorySpace.SEMAPHORE, MemorySpace.HBM


class GridDimensionSemantics(_enum.Enum):
    """How points of a grid may run along an axis. Accepted and not used: hloom finds itself which axes can run as a
    batch."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, CORE_PARALLEL = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL, ARBITRARY = GridDimensionSemantics.SUBCORE_PARALLEL, GridDimensionSemantics.ARBITRARY


class CoreType(_enum.Enum):
    """The kinds of cores of a TPU."""

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


class SideEffectType(_enum.Enum):
    """Which side effects a kernel has, for a compiler for TPUs."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@_dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Parameters of a compiler for TPUs: accepted by `pallas_call`, without effect.

    >>> from hloom.experimental.pallas import tpu
    >>> tpu.CompilerParams(dimension_semantics=["parallel"]).dimension_semantics
    ('parallel',)
    """

    dimension_semantics: _Any = None
    allow_input_fusion: _Any = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: dict[str, _Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False
    opt_level: _Any = None

    def __post_init__(self) -> None:
        for name in ("dimension_semantics", "allow_input_fusion"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else tuple(value))

    replace = _dataclasses.replace


@_dataclasses.dataclass(frozen=True)
class InterpretParams:
    """Parameters of JAX's interpreter of kernels for TPUs, as `interpret` of `pallas_call`: accepted."""

    dma_execution_mode: str = "on_wait"
    detect_races: bool = False
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    random_seed: int | None = None
    grid_point_recorder: _Any = None
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None


class PrefetchScalarGridSpec(_GridSpec):
    """A grid whose index maps get the first arguments of the call, too, as references.

    >>> from hloom.experimental import pallas as pl
    >>> from hloom.experimental.pallas import tpu
    >>> def copy(order_ref, x_ref, o_ref):
    ...     o_ref[...] = x_ref[...]
    >>> spec = tpu.PrefetchScalarGridSpec(
    ...     num_scalar_prefetch=1, grid=(3,), in_specs=[pl.BlockSpec((1,), lambda i, order: (order[i],))],
    ...     out_specs=pl.BlockSpec((1,), lambda i, order: (i,)),
    ... )
    >>> pl.pallas_call(copy, hloom.ShapeDtypeStruct((3,), jnp.int32), grid_spec=spec)(
    ...     jnp.array([2, 0, 1]), jnp.array([10, 11, 12]))
    Array([12, 10, 11], dtype=int32)
    """

    def __init__(
        self, num_scalar_prefetch: int, grid: _Any = (), in_specs: _Any = _no_block_spec,
        out_specs: _Any = _no_block_spec, scratch_shapes: _Any = (),
    ) -> None:  # fmt: skip
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


@_dataclasses.dataclass(frozen=True, init=False, eq=False)
class TensorCoreMesh:
    """The cores of a TPU, for `pallas.kernel` and `pallas.core_map`. Here they run one after the other.

    >>> from hloom.experimental.pallas import tpu
    >>> dict(tpu.create_tensorcore_mesh("core", num_cores=2).shape)
    {'core': 2}
    """

    devices: _Any
    """An array of the cores, with as many dimensions as there are names."""
    axis_names: _Sequence[_Any]

    def __init__(self, devices: _Any, axis_names: _Sequence[_Any]) -> None:
        object.__setattr__(self, "devices", devices)
        object.__setattr__(self, "axis_names", tuple(axis_names))

    @property
    def shape(self) -> _OrderedDict[_Any, int]:
        """The sizes of the axes by name."""
        return _OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def core_type(self) -> CoreType:
        """The kind of the cores."""
        return CoreType.TC


def create_tensorcore_mesh(
    axis_name: str, devices: _Sequence[_Any] | None = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """A mesh of so many cores along one axis. ValueError without their number: a CPU has no tensor cores."""
    if devices is not None or num_cores is None:
        raise ValueError("create_tensorcore_mesh needs num_cores: the devices are CPUs, which have no tensor cores")
    return TensorCoreMesh(_np.arange(num_cores), [axis_name])


@_contextmanager
def force_tpu_interpret_mode(params: _Any = None) -> _Iterator[None]:
    """A context in which JAX interprets kernels for TPUs: here all kernels are compiled, with the same results."""
    yield


def set_tpu_interpret_mode(params: _Any = None) -> None:
    """As `force_tpu_interpret_mode`, for the process."""


def reset_tpu_interpret_mode_state() -> None:
    """Nothing: there is no state.

    >>> from hloom.experimental.pallas import tpu
    >>> tpu.reset_tpu_interpret_mode_state()
    """


def load(ref: _Any, *, mask: _Any = None) -> _Any:
    """The values in a reference or in a part of one. mask: accepted; where it is false, the values are not specified.

    >>> from hloom.experimental.pallas import tpu
    >>> tpu.load(hloom.new_ref(jnp.arange(2)))
    Array([0, 1], dtype=int32)
    """
    return _masked_load(ref, mask, None)


def store(ref: _Any, val: _Any, *, mask: _Any = None) -> None:
    """Write to a reference or to a part of one, where `mask` is true.

    >>> from hloom.experimental.pallas import tpu
    >>> ref = hloom.new_ref(jnp.zeros(2))
    >>> tpu.store(ref, jnp.ones(2), mask=jnp.array([True, False]))
    >>> ref[...]
    Array([1., 0.], dtype=float32)
    """
    _masked_store(ref, val, mask)


def touch(ref: _Any) -> None:
    """Nothing: operations on references have the order of the program."""


def with_memory_space_constraint(x: _Any, memory_space: _Any) -> _Any:
    """`x`: there is one memory.

    >>> from hloom import numpy as jnp
    >>> from hloom.experimental.pallas import tpu
    >>> tpu.with_memory_space_constraint(jnp.arange(3), tpu.VMEM)
    Array([0, 1, 2], dtype=int32)
    """
    return x


def roll(x: _Any, shift: _Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> _Any:
    """The elements moved along an axis, around its end: by `shift`, and by `stride` more for each index along
    `stride_axis`. ValueError for an axis that is not there, and for negative numbers.

    >>> from hloom.experimental.pallas import tpu
    >>> tpu.roll(jnp.arange(4), 1, 0)
    Array([3, 0, 1, 2], dtype=int32)
    """
    if isinstance(shift, int) and shift < 0:
        raise ValueError("shift must be non-negative.")
    if not 0 <= axis < x.ndim:
        raise ValueError("axis is out of range.")
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both specified or not.")
    if stride is None or stride_axis is None:
        return _jnp.roll(x, shift, axis)
    if stride < 0:
        raise ValueError("stride must be non-negative.")
    if not 0 <= stride_axis < x.ndim:
        raise ValueError("stride_axis is out of range")
    if axis == stride_axis:
        raise ValueError("expected axis and stride_axis are different.")
    size = x.shape[axis]
    by = shift + stride * _lax.broadcasted_iota("int32", x.shape, stride_axis)
    places = (_lax.broadcasted_iota("int32", x.shape, axis) - by) % size
    return _jnp.take_along_axis(x, places, axis)


def bitcast(x: _Any, ty: _Any) -> _Any:
    """The bits of an array as elements of another type. With a type of another width the last dimension but one is that
    much shorter or longer. ValueError where that is not possible.

    >>> from hloom.experimental.pallas import tpu
    >>> tpu.bitcast(jnp.ones((1, 2), jnp.float32), jnp.int32).tolist()
    [[1065353216, 1065353216]]
    """
    dtype = _canonical_dtype(ty)
    if x.ndim < 2:
        raise ValueError("Not implemented: bitcast 1D")
    old, new = x.dtype.itemsize, dtype.itemsize
    *leading, m, n = x.shape
    if m * old % new:
        raise ValueError("Not implemented: the 2nd minor dim can not be perfectly packed or unpacked")
    if old < new:
        packed = _jnp.swapaxes(x.reshape(*leading, m * old // new, new // old, n), -1, -2)
        return _lax.bitcast_convert_type(packed, dtype)
    found = _lax.bitcast_convert_type(x, dtype)
    return found if old == new else _jnp.swapaxes(found, -1, -2).reshape(*leading, m * old // new, n)


_publish(__name__)
