from . import (
    ad as ad, ad_checkpoint as ad_checkpoint, aot as aot, api_util as api_util, core as core,
    custom_batching as custom_batching, custom_derivatives as custom_derivatives, debug as debug,
    distributed as distributed, dlpack as dlpack, dtypes as dtypes, errors as errors,
    example_libraries as example_libraries, experimental as experimental, export as export, extend as extend,
    ffi as ffi, flatten_util as flatten_util, hlo as hlo, image as image, interpreters as interpreters, lax as lax,
    memory as memory, monitoring as monitoring, nn as nn, numpy as numpy, ops as ops, profiler as profiler,
    random as random, ref as ref, scipy as scipy, sharding as sharding, stages as stages, tree as tree,
    tree_util as tree_util, typing as typing, version as version,
)
from .autodiff.api import (
    grad as grad, jvp as jvp, linearize as linearize, value_and_grad as value_and_grad, vjp as vjp,
)
from .autodiff.custom import custom_jvp as custom_jvp, custom_vjp as custom_vjp
from .autodiff.functions import (
    closure_convert as closure_convert, custom_gradient as custom_gradient, fwd_and_bwd as fwd_and_bwd,
    linear_transpose as linear_transpose,
)
from .autodiff.jacobian import hessian as hessian, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev
from .autodiff.mapped import pmap as pmap
from .autodiff.policies import checkpoint_policies as checkpoint_policies
from .autodiff.remat import checkpoint as _checkpoint, checkpoint as checkpoint
from .autodiff.sharded import shard_map as shard_map, smap as smap
from .autodiff.vmap import vmap as vmap
from .debug.callbacks import effects_barrier as effects_barrier, pure_callback as pure_callback
from .hlo.client.local_client import LocalClient as LocalClient
from .hlo.custom_calls import (
    register_custom_call as register_custom_call, registered_custom_calls as registered_custom_calls,
    unregister_custom_call as unregister_custom_call,
)
from .jax_programs.switch import as_jax as as_jax
from .jaxpr.view import make_jaxpr as make_jaxpr
from .numba_backend.kernel_globals import kernel_globals as kernel_globals
from .scheduling import schedule as schedule
from .tracer.arguments import ShapeDtypeStruct as ShapeDtypeStruct, typeof as typeof
from .tracer.arrays.assembly import (
    copy_to_host_async as copy_to_host_async, live_arrays as live_arrays,
    make_array_from_callback as make_array_from_callback,
    make_array_from_process_local_data as make_array_from_process_local_data,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from .tracer.arrays.dslice import ds as ds
from .tracer.arrays.float0 import float0 as float0
from .tracer.arrays.operators import ArrayBase as _ArrayBase
from .tracer.caches import clear_caches as clear_caches
from .tracer.control_flow.progress import progress as progress
from .tracer.deferred.jit_scope import jit_scope as jit_scope, jit_scope_report as jit_scope_report
from .tracer.inlining import CompilerEffortLevel as CompilerEffortLevel, Inline as Inline
from .tracer.jit import device_get as device_get, eval_shape as eval_shape, jit as jit, make_hlo as make_hlo
from .tracer.references.refs import (
    empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref, Ref as Ref,
)
from .tracer.run_hlo import run_hlo as run_hlo
from .tracer.scopes import (
    ensure_compile_time_eval as ensure_compile_time_eval, named_call as named_call, named_scope as named_scope,
)
from .tracer.settings.config import (
    allow_f16_reductions as allow_f16_reductions, array_garbage_collection_guard as array_garbage_collection_guard,
    auto_pcast as auto_pcast, check_tracer_leaks as check_tracer_leaks, checking_leaks as checking_leaks,
    config as config, debug_infs as debug_infs, debug_key_reuse as debug_key_reuse, debug_nans as debug_nans,
    default_device as default_device, default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl, disable_jit as disable_jit, enable_checks as enable_checks,
    enable_custom_prng as enable_custom_prng, enable_x64 as enable_x64, explain_cache_misses as explain_cache_misses,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions, legacy_prng_key as legacy_prng_key,
    log_compiles as log_compiles, loop_checkpoints as loop_checkpoints, memory_budget as memory_budget,
    no_execution as no_execution, no_tracing as no_tracing, numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion, progress_bars as progress_bars,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp as softmax_custom_jvp, thread_guard as thread_guard,
    threefry_partitionable as threefry_partitionable, transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from .tracer.settings.user_context import make_user_context as make_user_context
from .tracer.sharding.current_mesh import (
    get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh, set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from .tracer.sharding.devices import (
    CpuDevice as _CpuDevice, default_backend as default_backend, device_count as device_count, devices as devices,
    environment_info as _environment_info, host_count as host_count, host_id as host_id, host_ids as host_ids,
    local_device_count as local_device_count, local_devices as local_devices, process_count as process_count,
    process_index as process_index, process_indices as process_indices,
)
from .tracer.sharding.mesh import make_mesh as make_mesh
from .tracer.sharding.partition_spec import PartitionSpec as _PartitionSpec
from .tracer.sharding.placement import device_put as device_put, reshard as reshard
from .tracer.sharding.shardings import NamedSharding as NamedSharding, Shard as Shard
from .tracer.stages import Compiled as Compiled, Lowered as Lowered
from .tracer.waiting import block_until_ready as block_until_ready
from .viewer.view import view as view

Array = _ArrayBase
Device = _CpuDevice
P = _PartitionSpec
__version__: str
print_environment_info = _environment_info
remat = _checkpoint
