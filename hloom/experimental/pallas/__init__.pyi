from . import mosaic_gpu as mosaic_gpu, ops as ops, tpu as tpu, triton as triton
from ...tracer.arrays.dslice import ds as _dslice, ds as ds, Slice as Slice
from .accelerators import (
    delay as delay, DeviceIdType as DeviceIdType, get_global as get_global, select_ref as select_ref,
    semaphore as semaphore, semaphore_read as semaphore_read, semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait,
)
from .block_spec import (
    BlockDim as BlockDim, Blocked as Blocked, BlockSpec as BlockSpec, BoundedSlice as BoundedSlice,
    Buffered as Buffered, CompilerParams as CompilerParams, CostEstimate as CostEstimate, Element as Element,
    GridSpec as GridSpec, Indirect as Indirect, MemoryRef as MemoryRef, MemorySpace as MemorySpace,
    no_block_spec as no_block_spec, RevisitMode as RevisitMode, Squeezed as Squeezed, squeezed as squeezed,
)
from .calls import pallas_call as pallas_call
from .cores import core_map as core_map, kernel as kernel
from .costs import estimate_cost as estimate_cost
from .grid_points import num_programs as num_programs, program_id as program_id
from .helpers import (
    ANY as ANY, broadcast_to as broadcast_to, debug_check as debug_check, debug_print as debug_print, empty as empty,
    empty_like as empty_like, empty_ref_like as empty_ref_like, enable_debug_checks as enable_debug_checks,
    enable_poison_buffers as enable_poison_buffers, HOST as HOST, loop as loop, multiple_of as multiple_of,
    reciprocal as reciprocal, run_scoped as run_scoped, run_state as run_state, when as when,
    with_scoped as with_scoped,
)
from .utils import (
    align_to as align_to, cdiv as cdiv, next_power_of_2 as next_power_of_2, strides_from_shape as strides_from_shape,
)

dslice = _dslice
