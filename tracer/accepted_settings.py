"""Settings of JAX that programs make and that change nothing here, each with the reason; and those that have one value.

A value is checked and remembered, so that a program reads what it wrote. A value that would have to change something
which hloom cannot change is an error, not a silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..hlo.errors import UnsupportedError
from ..hlo.records import dataclass
from .devices import check_default_device, check_platform, set_device_count

__all__ = ["ACCEPTED", "Accepted"]


@dataclass(slots=True)
class Accepted:
    """A setting on which no program depends."""

    default: Any
    check: Callable[[str, Any], None]
    """check(name, value) raises an error for a value that the setting cannot have."""
    reason: str
    """Why it changes nothing."""
    value: Any = None

    @property
    def kind(self) -> type:
        """Of its values, as a text in the environment says them."""
        if self.check is _number:
            return float if isinstance(self.default, float) else int
        return str if self.default is None else type(self.default)

    @contextmanager
    def within(self, name: str, value: Any) -> Iterator[None]:
        """Within the block, it reads as `value`."""
        self.check(name, value)
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {value!r}")


def _number(name: str, value: Any) -> None:
    if not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {value!r}")


def _text(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a str or None, not {value!r}")


def _one_of(*values: Any) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if value not in values:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, values))}, not {value!r}")

    return check


def _only(*values: Any, because: str) -> Callable[[str, Any], None]:
    """A setting that could have other values in JAX."""

    def check(name: str, value: Any) -> None:
        if not any(value is v or (type(value) is type(v) and value == v) for v in values):
            possible = " or ".join(map(repr, values))
            raise UnsupportedError(f"{name} can only be {possible} here, not {value!r}: {because}")

    return check


def _platforms(name: str, value: Any) -> None:
    _text(name, value)
    for platform in (value or "").split(","):
        if platform:
            check_platform(platform)


def _device(name: str, value: Any) -> None:
    if value is not None:
        check_default_device(value, name)


def _count(name: str, value: Any) -> None:
    _number(name, value)
    set_device_count(value)


GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_guard = _one_of(None, *GUARDS)
_NO_TRANSFERS = "arrays are in the memory of the process: nothing is transferred"
_NO_TYPES = "over one device, types of values do not carry shardings"
_STORE = "kernels are kept on disk in the folder that HLOOM_CACHE_DIR names"
_XLA = "it is about XLA's compiler"
_ACCELERATORS = "it is about GPUs and TPUs"
_MESSAGES = "it is about JAX's messages"
_EXPORT = "it is about JAX's files"
_ALWAYS = "hloom always does so"


ACCEPTED = {
    "check_vma": Accepted(False, _flag, _NO_TYPES),
    "jax2tf_associative_scan_reductions": Accepted(False, _flag, "cumulative sums have one form, whose results agree"),
    "jax_array_garbage_collection_guard": Accepted(
        "allow", _one_of(None, "allow", "log", "fatal"), "arrays are in no cycles of the library's making"
    ),
    "jax_auto_pcast": Accepted(True, _flag, _NO_TYPES),
    "jax_captured_constants_report_frames": Accepted(0, _number, _MESSAGES),
    "jax_captured_constants_warn_bytes": Accepted(2_000_000_000, _number, "constants are operands of programs"),
    "jax_check_proxy_envs": Accepted(True, _flag, "there is one process"),
    "jax_compilation_cache_dir": Accepted(None, _text, _STORE),
    "jax_compilation_cache_max_size": Accepted(-1, _number, _STORE),
    "jax_cpu_collectives_implementation": Accepted("gloo", _text, "there is one process"),
    "jax_cpu_enable_async_dispatch": Accepted(True, _flag, "a call returns when it is done"),
    "jax_default_device": Accepted(None, _device, "arrays are made on the first device of the process"),
    "jax_disable_most_optimizations": Accepted(False, _flag, "HLOOM_DISABLE_PASSES leaves out passes by name"),
    "jax_disallow_mesh_context_manager": Accepted(False, _flag, "both ways to make a mesh current stay"),
    "jax_distributed_debug": Accepted(False, _flag, "there is one process"),
    "jax_dump_ir_to": Accepted("", _text, "HLOOM_DUMP_TO names a folder for all stages"),
    "jax_enable_checks": Accepted(False, _flag, _ALWAYS),
    "jax_enable_compilation_cache": Accepted(True, _flag, _STORE),
    "jax_enable_custom_prng": Accepted(
        False, _only(False, because="hloom.random.key makes typed keys"), "hloom.random.key makes typed keys"
    ),
    "jax_error_checking_behavior_divide": Accepted("ignore", _only("ignore", because="use checkify"), "use checkify"),
    "jax_error_checking_behavior_nan": Accepted("ignore", _only("ignore", because="use checkify"), "use checkify"),
    "jax_error_checking_behavior_oob": Accepted("ignore", _only("ignore", because="use checkify"), "use checkify"),
    "jax_exec_time_optimization_effort": Accepted(0.0, _number, _XLA),
    "jax_hlo_source_file_canonicalization_regex": Accepted(None, _text, _MESSAGES),
    "jax_include_debug_info_in_dumps": Accepted(True, _flag, _MESSAGES),
    "jax_include_full_tracebacks_in_locations": Accepted(True, _flag, _MESSAGES),
    "jax_legacy_prng_key": Accepted(
        "allow", _only("allow", because="raw keys are always accepted"), "raw keys are always accepted"
    ),
    "jax_log_checkpoint_residuals": Accepted(
        False, _only(False, because="hloom.ad_checkpoint.print_saved_residuals shows them"), "nothing is logged"
    ),
    "jax_logging_level": Accepted("NOTSET", _text, "hloom logs to the logger hloom, whose level Python sets"),
    "jax_memory_fitting_effort": Accepted(0.0, _number, _XLA),
    "jax_mutable_array_checks": Accepted(True, _only(True, because="references are always checked"), _ALWAYS),
    "jax_num_cpu_devices": Accepted(-1, _count, "the devices are settled when one is first asked for"),
    "jax_optimization_level": Accepted("UNKNOWN", _text, _XLA),
    "jax_persistent_cache_enable_xla_caches": Accepted("xla_gpu_per_fusion_autotune_cache_dir", _text, _STORE),
    "jax_persistent_cache_min_compile_time_secs": Accepted(1.0, _number, _STORE),
    "jax_persistent_cache_min_entry_size_bytes": Accepted(0, _number, _STORE),
    "jax_platform_name": Accepted("", _platforms, "there is one platform"),
    "jax_platforms": Accepted(None, _platforms, "there is one platform"),
    "jax_pprint_use_color": Accepted(True, _flag, _MESSAGES),
    "jax_raise_persistent_cache_errors": Accepted(False, _flag, _STORE),
    "jax_random_seed_offset": Accepted(0, _only(0, because="seeds are what the program gives"), _ALWAYS),
    "jax_remove_size_one_mesh_axis_from_type": Accepted(False, _flag, _NO_TYPES),
    "jax_serialization_version": Accepted(0, _number, _EXPORT),
    "jax_softmax_custom_jvp": Accepted(False, _flag, "both forms of the derivative agree"),
    "jax_thread_guard": Accepted(False, _flag, "calls from several threads are safe"),
    "jax_threefry_partitionable": Accepted(
        True, _only(True, because="other bits would come out"), "the bits are those of partitionable keys"
    ),
    "jax_traceback_in_locations_limit": Accepted(10, _number, _MESSAGES),
    "jax_tracer_error_num_traceback_frames": Accepted(5, _number, _MESSAGES),
    "jax_transfer_guard": Accepted(None, _guard, _NO_TRANSFERS),
    "jax_transfer_guard_device_to_device": Accepted(None, _guard, _NO_TRANSFERS),
    "jax_transfer_guard_device_to_host": Accepted(None, _guard, _NO_TRANSFERS),
    "jax_transfer_guard_host_to_device": Accepted(None, _guard, _NO_TRANSFERS),
    "jax_use_direct_linearize": Accepted(True, _flag, "there is one way to linearize"),
    "jax_use_shardy_partitioner": Accepted(True, _flag, "there is one partitioner"),
    "jax_xla_backend": Accepted("", _text, "HLOOM_BACKEND names the backend"),
}
"""By name."""



def _more(reason: str, **defaults: Any) -> None:
    """Settings on which nothing here depends, whatever they are; each with JAX's default."""
    for name, default in defaults.items():
        check = _flag if isinstance(default, bool) else _number if isinstance(default, int) else _text
        ACCEPTED[name] = Accepted(default, check, reason)


_more(
    _XLA, eager_constant_folding=False, jax_compiler_detailed_logging_min_ops=10, jax_compiler_enable_remat_pass=True,
    jax_embedded_constants_max_bytes=32, jax_experimental_unsafe_xla_runtime_errors=False,
    jax_memory_fitting_level="O2", jax_pjrt_client_create_options=None, jax_ragged_dot_use_ragged_dot_instruction=True,
    jax_use_hlo_logistic_lowering=None, jax_use_rgv3=True, jax_use_simplified_jaxpr_constants=False,
    jax_xla_profile_version=0, jax_enable_pgle=False, jax_pgle_aggregation_percentile=90, jax_pgle_profiling_runs=3,
)  # fmt: skip
_more(
    _STORE, jax_compilation_cache_check_contents=False, jax_compilation_cache_expect_pgle=False,
    jax_compilation_cache_include_metadata_in_key=False, jax_remove_custom_partitioning_ptr_from_cache_key=False,
    jax_share_binary_between_hosts=False, jax_share_binary_between_hosts_timeout_ms=1200000,
)  # fmt: skip
_more(
    _ACCELERATORS, jax_backend_target="", jax_bcoo_cusparse_lowering=False, jax_cross_host_transfer_socket_address="",
    jax_cross_host_transfer_timeout_seconds=None, jax_cross_host_transfer_transfer_size=None,
    jax_cross_host_transport_addresses="", jax_cuda_visible_devices="all", jax_force_dcn_cross_host_transfers=False,
    jax_mock_gpu_topology="", jax_mosaic_allow_hlo=False, jax_mosaic_unzip_debug_locations=False,
    jax_oneapi_visible_devices="all", jax_pallas_auto_assign_collective_ids=False,
    jax_pallas_auto_assign_collective_ids_limit=0, jax_pallas_enable_debug_checks=False,
    jax_pallas_poison_buffers=False, jax_pallas_use_mosaic_gpu=True, jax_pallas_verbose_errors=False,
    jax_ragged_dot_use_gpu_pallas_triton_lowering=False, jax_rocm_visible_devices="all",
    jax_threefry_gpu_kernel_lowering=False, jax_use_emit_pipeline_primitive=False, jax_use_magma="auto",
    mock_num_gpu_processes=0,
)  # fmt: skip
_more(
    "processes are joined by MPI", jax_cpu_get_global_topology_timeout_minutes=5,
    jax_cpu_get_local_topology_timeout_minutes=2, jax_distributed_verify_secure_credentials=True,
    jax_enable_preemption_service=True, jax_enable_recoverability=False, jax_mtls_ca_file="", jax_mtls_cert_file="",
    jax_mtls_key_file="", jax_mtls_peer_uri_prefix="", jax_sort_devices_by_process_index=True,
)  # fmt: skip
_more(
    _MESSAGES, jax_debug_leaked_clients_on_clear_backends=False, jax_debug_log_modules="",
    jax_dump_ir_modes="stablehlo", jax_send_traceback_to_runtime="off", jax_source_url_schema=None,
)  # fmt: skip
_more(
    _EXPORT, jax2tf_default_native_serialization=True, jax_export_calling_convention_version=10,
    jax_export_deserialize_expired_versions=False, jax_export_ignore_forward_compatibility=False,
)  # fmt: skip
_more(
    "JAX's older and newer implementations mean the same", jax_custom_jvp3=False, jax_custom_vjp3=False,
    jax_remat3=False, jax_remat_barrier_no_cotangents=False, jax_scan3=False, jax_use_cpp_shard_args=False,
    jax_refs_to_pins=False, jax_disable_vmap_shmap_error=False, jax_raise_on_ppermute_sort_diff=True,
    jax_accurate_erf_inv=True,
)  # fmt: skip
ACCEPTED["jax_disable_bwd_checks"] = Accepted(False, _only(False, because="the checks stay"), _ALWAYS)
ACCEPTED["jax_explicit_x64_dtypes"] = Accepted(
    "warn", _only("warn", because="without x64 all types have 32 bits"), "a type that is asked for in vain is warned of"
)
ACCEPTED["jax_high_dynamic_range_gumbel"] = Accepted(
    False, _only(False, because='random.gumbel(mode="high") draws so'), "the mode is an argument of random.gumbel"
)
ACCEPTED["jax_no_execution"] = Accepted(
    False, _only(False, because="jit(f).lower(...).compile() compiles without running"), "nothing forbids to run"
)
for _setting in ACCEPTED.values():
    _setting.value = _setting.default
