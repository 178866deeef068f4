"""Settings of JAX that programs make and that change nothing here, each with the reason; and those that have one value.

A value is checked and stored, so that a program reads back its own value. A value that would have to change something
which hloom cannot change is an error, not a silence.
"""

from __future__ import annotations

from typing import Any

from ..sharding.devices import check_default_device, check_platform, set_device_count
from .setting import OfJax

_NO_TRANSFERS = "arrays are in the memory of the process: nothing is transferred"
_NO_TYPES = "over one device, types of values do not carry shardings"
_STORE = "kernels are kept on disk in the folder that HLOOM_CACHE_DIR names"
_XLA = "it is about XLA's compiler"
_ACCELERATORS = "it is about GPUs and TPUs"
_MESSAGES = "it is about JAX's messages"
_EXPORT = "it is about JAX's files"
_PROCESSES = "processes are joined by MPI"
_ALWAYS = "hloom always does so"

GUARDS = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")


def _platforms(value: str | None) -> None:
    for platform in (value or "").split(","):
        if platform:
            check_platform(platform)


def _device(value: Any) -> None:
    if value is not None:
        check_default_device(value, "jax_default_device")


def _one_value(default: Any, reason: str) -> OfJax:
    return OfJax(default, reason, only=True)


OF_JAX = {
    "jax_array_garbage_collection_guard": OfJax(
        "allow", "the library makes no cycles that hold arrays", values=(None, "allow", "log", "fatal")
    ),
    "jax_default_device": OfJax(
        None, "arrays are made on the first device of the process", types=(object,), check=_device
    ),
    "jax_disable_bwd_checks": _one_value(False, "the checks stay"),
    "jax_high_dynamic_range_gumbel": _one_value(False, 'random.gumbel(mode="high") draws so'),
    "jax_log_checkpoint_residuals": _one_value(
        False, "hloom.ad_checkpoint.print_saved_residuals shows them"
    ),
    "jax_mutable_array_checks": _one_value(True, "references are always checked"),
    "jax_num_cpu_devices": OfJax(
        -1, "the devices are settled when one is first used", check=set_device_count, hears=False
    ),
    "jax_platform_name": OfJax("", "there is one platform", types=(str, type(None)), check=_platforms),
    "jax_platforms": OfJax(None, "there is one platform", check=_platforms),
}
"""By name."""


def _more(reason: str, **defaults: Any) -> None:
    """Settings without effect here, for any value; each with JAX's default."""
    for name, default in defaults.items():
        types = (str, type(None)) if isinstance(default, str) else ()
        OF_JAX[name] = OfJax(default, reason, types=types)


for _direction in ("", "_device_to_device", "_device_to_host", "_host_to_device"):
    OF_JAX[f"jax_transfer_guard{_direction}"] = OfJax(None, _NO_TRANSFERS, values=GUARDS)
_more(
    _NO_TYPES, check_vma=False, jax_auto_pcast=True, jax_remove_size_one_mesh_axis_from_type=False,
)  # fmt: skip
_more(_ALWAYS, jax_enable_checks=False)
_more("memory of kernels that nothing has written always is NaN or the least integer", jax_pallas_poison_buffers=False)
_more("calls from several threads are safe", jax_thread_guard=False)
_more("both forms of the derivative agree", jax_softmax_custom_jvp=False)
_more("cumulative sums have one form", jax2tf_associative_scan_reductions=False)
_more("constants are operands of programs", jax_captured_constants_warn_bytes=2_000_000_000)
_more("a call returns when it is done", jax_cpu_enable_async_dispatch=True)
_more("HLOOM_DISABLE_PASSES leaves out passes by name", jax_disable_most_optimizations=False)
_more("both ways to make a mesh current stay", jax_disallow_mesh_context_manager=False)
_more("HLOOM_DUMP_TO names a folder for all stages", jax_dump_ir_to="")
_more("hloom logs to the logger hloom; Python sets its level", jax_logging_level="NOTSET")
_more("there is one way to linearize", jax_use_direct_linearize=True)
_more("there is one partitioner", jax_use_shardy_partitioner=True)
_more("HLOOM_BACKEND names the backend", jax_xla_backend="")
_more(
    _PROCESSES, jax_check_proxy_envs=True, jax_cpu_collectives_implementation="gloo",
    jax_cpu_get_global_topology_timeout_minutes=5, jax_cpu_get_local_topology_timeout_minutes=2,
    jax_distributed_debug=False, jax_distributed_verify_secure_credentials=True, jax_enable_preemption_service=True,
    jax_enable_recoverability=False, jax_mtls_ca_file="", jax_mtls_cert_file="", jax_mtls_key_file="",
    jax_mtls_peer_uri_prefix="", jax_sort_devices_by_process_index=True,
)  # fmt: skip
_more(
    _STORE, jax_compilation_cache_check_contents=False, jax_compilation_cache_dir=None,
    jax_compilation_cache_expect_pgle=False, jax_compilation_cache_include_metadata_in_key=False,
    jax_compilation_cache_max_size=-1, jax_enable_compilation_cache=True,
    jax_persistent_cache_enable_xla_caches="xla_gpu_per_fusion_autotune_cache_dir",
    jax_persistent_cache_min_compile_time_secs=1.0, jax_persistent_cache_min_entry_size_bytes=0,
    jax_raise_persistent_cache_errors=False, jax_remove_custom_partitioning_ptr_from_cache_key=False,
    jax_share_binary_between_hosts=False, jax_share_binary_between_hosts_timeout_ms=1200000,
)  # fmt: skip
_more(
    _XLA, eager_constant_folding=False, jax_compiler_detailed_logging_min_ops=10, jax_compiler_enable_remat_pass=True,
    jax_embedded_constants_max_bytes=32, jax_enable_pgle=False, jax_exec_time_optimization_effort=0.0,
    jax_experimental_unsafe_xla_runtime_errors=False, jax_memory_fitting_effort=0.0, jax_memory_fitting_level="O2",
    jax_optimization_level="UNKNOWN", jax_pgle_aggregation_percentile=90, jax_pgle_profiling_runs=3,
    jax_pjrt_client_create_options=None, jax_ragged_dot_use_ragged_dot_instruction=True,
    jax_use_hlo_logistic_lowering=None, jax_use_rgv3=True, jax_use_simplified_jaxpr_constants=False,
    jax_xla_profile_version=0,
)  # fmt: skip
_more(
    _ACCELERATORS, jax_backend_target="", jax_bcoo_cusparse_lowering=False, jax_cross_host_transfer_socket_address="",
    jax_cross_host_transfer_timeout_seconds=None, jax_cross_host_transfer_transfer_size=None,
    jax_cross_host_transport_addresses="", jax_cuda_visible_devices="all", jax_force_dcn_cross_host_transfers=False,
    jax_mock_gpu_topology="", jax_mosaic_allow_hlo=False, jax_mosaic_unzip_debug_locations=False,
    jax_oneapi_visible_devices="all", jax_pallas_auto_assign_collective_ids=False,
    jax_pallas_auto_assign_collective_ids_limit=0, jax_pallas_use_mosaic_gpu=True, jax_pallas_verbose_errors=False,
    jax_ragged_dot_use_gpu_pallas_triton_lowering=False, jax_rocm_visible_devices="all",
    jax_threefry_gpu_kernel_lowering=False, jax_use_emit_pipeline_primitive=False, jax_use_magma="auto",
    mock_num_gpu_processes=0,
)  # fmt: skip
_more(
    _MESSAGES, jax_captured_constants_report_frames=0, jax_debug_leaked_clients_on_clear_backends=False,
    jax_debug_log_modules="", jax_dump_ir_modes="stablehlo", jax_hlo_source_file_canonicalization_regex=None,
    jax_include_debug_info_in_dumps=True, jax_include_full_tracebacks_in_locations=True, jax_pprint_use_color=True,
    jax_send_traceback_to_runtime="off", jax_source_url_schema=None, jax_traceback_in_locations_limit=10,
    jax_tracer_error_num_traceback_frames=5,
)  # fmt: skip
_more(
    "exported functions have this number, 9 or 10; their programs are the same",
    jax_export_calling_convention_version=10,
)
_more(
    _EXPORT, jax2tf_default_native_serialization=True, jax_export_deserialize_expired_versions=False,
    jax_export_ignore_forward_compatibility=False, jax_serialization_version=0,
)  # fmt: skip
_more(
    "JAX's older and newer implementations mean the same", jax_accurate_erf_inv=True, jax_custom_jvp3=False,
    jax_custom_vjp3=False, jax_disable_vmap_shmap_error=False, jax_raise_on_ppermute_sort_diff=True,
    jax_refs_to_pins=False, jax_remat3=False, jax_remat_barrier_no_cotangents=False, jax_scan3=False,
    jax_use_cpp_shard_args=False,
)  # fmt: skip
