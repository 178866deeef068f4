"""hloom: JAX's programming model for the CPU, in Python that a person can read.

    import hloom
    import hloom.numpy as jnp

    f = hloom.jit(lambda x: jnp.tanh(x) * 2)
    hloom.grad(lambda x: f(x).sum())(jnp.ones(3))

Names are loaded when they are first used: `import hloom` is fast, and `import hloom.hlo` needs NumPy alone.
"""

import importlib as _importlib
import os as _os
import typing as _typing

if _typing.TYPE_CHECKING:
    from . import (
        ad,
        ad_checkpoint,
        aot,
        api_util,
        core,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dlpack,
        dtypes,
        errors,
        example_libraries,
        experimental,
        extend,
        flatten_util,
        hlo,
        image,
        interpreters,
        lax,
        memory,
        monitoring,
        nn,
        numpy,
        ops,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        stages,
        tree,
        tree_util,
        typing,
        version,
    )
    from .autodiff.api import grad, jvp, linearize, value_and_grad, vjp
    from .autodiff.custom import custom_jvp, custom_vjp
    from .autodiff.functions import closure_convert, custom_gradient, fwd_and_bwd, linear_transpose
    from .autodiff.jacobian import hessian, jacfwd, jacobian, jacrev
    from .autodiff.policies import checkpoint_policies
    from .autodiff.remat import checkpoint
    from .autodiff.remat import checkpoint as remat
    from .autodiff.mapped import pmap
    from .autodiff.sharded import shard_map, smap
    from .autodiff.tangents import float0
    from .autodiff.vmap import vmap
    from .debug.callbacks import effects_barrier, pure_callback
    from .hlo.client import LocalClient
    from .hlo.custom_calls import register_custom_call, registered_custom_calls, unregister_custom_call
    from .numba_backend.kernel_globals import kernel_globals
    from .jax_programs import as_jax
    from .jaxpr.make import make_jaxpr
    from .tracer.arguments import ShapeDtypeStruct, typeof
    from .tracer.caches import clear_caches
    from .tracer.settings.config import (
        allow_f16_reductions,
        array_garbage_collection_guard,
        auto_pcast,
        check_tracer_leaks,
        checking_leaks,
        config,
        debug_infs,
        debug_key_reuse,
        debug_nans,
        default_device,
        default_matmul_precision,
        default_prng_impl,
        disable_jit,
        enable_checks,
        enable_custom_prng,
        enable_x64,
        explain_cache_misses,
        jax2tf_associative_scan_reductions,
        legacy_prng_key,
        log_compiles,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from .tracer.inlining import Inline
    from .tracer.sharding.current_mesh import get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh
    from .tracer.sharding.devices import CpuDevice as Device
    from .tracer.sharding.devices import (
        default_backend,
        device_count,
        devices,
        host_count,
        host_id,
        host_ids,
        local_device_count,
        local_devices,
        process_count,
        process_index,
        process_indices,
    )
    from .tracer.sharding.devices import environment_info as print_environment_info
    from .tracer.jit import (
        block_until_ready,
        device_get,
        eval_shape,
        jit,
        make_hlo,
    )
    from .tracer.deferred.jit_scope import jit_scope, jit_scope_report
    from .tracer.arrays.assembly import (
        copy_to_host_async,
        live_arrays,
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from .tracer.sharding.mesh import make_mesh
    from .tracer.arrays.operators import ArrayBase as Array
    from .tracer.sharding.partition_spec import PartitionSpec as P
    from .tracer.sharding.placement import device_put, reshard
    from .tracer.arrays.dslice import ds
    from .tracer.references.refs import Ref, empty_ref, free_ref, freeze, new_ref
    from .tracer.run_hlo import run_hlo
    from .tracer.scopes import ensure_compile_time_eval, named_call, named_scope
    from .tracer.sharding.shardings import NamedSharding, Shard
    from .tracer.stages import Compiled, Lowered
    from .tracer.settings.user_context import make_user_context

if _os.path.isfile(_os.path.join(__path__[0], "hlo")):
    from importlib.util import find_spec as _find_spec

    if _find_spec(f"{__name__}.hlo") is None:
        raise ImportError(
            f"{__path__[0]} has files where links to the folders beside it must be, so hloom.hlo and others are not "
            "found. Either make the links (`git config core.symlinks true`, then `git checkout HEAD hloom`), or "
            "install the package (`pip install .`) and run Python in another folder."
        )

_importlib.import_module(".hlo.forking", __name__)  # before the other modules, since a fork waits for their imports

from .hlo.loading import load as _load  # noqa: E402
from .version import __version__ as __version__  # noqa: E402  # after the fork is prepared

_MODULES = (
    *("ad_checkpoint", "api_util", "core", "custom_batching", "custom_derivatives", "debug", "dtypes", "errors"),
    *("example_libraries", "experimental", "extend"),
    *("hlo", "image", "interpreters", "lax", "nn", "numpy", "ops", "random"),
    *("flatten_util", "scipy", "tree", "tree_util", "typing"),
    *("aot", "distributed", "dlpack", "memory", "monitoring", "profiler", "ref", "sharding", "stages", "version"),
    "ad",
)
_RENAMED = {
    "Device": (".tracer.sharding.devices", "CpuDevice"),
    "P": (".tracer.sharding.partition_spec", "PartitionSpec"),
    "print_environment_info": (".tracer.sharding.devices", "environment_info"),
}
"""Names under which an object of another name is public."""
_NAMES = {
    **dict.fromkeys(("grad", "jvp", "linearize", "value_and_grad", "vjp"), ".autodiff.api"),
    **dict.fromkeys(("custom_jvp", "custom_vjp"), ".autodiff.custom"),
    **dict.fromkeys(("hessian", "jacfwd", "jacobian", "jacrev"), ".autodiff.jacobian"),
    "vmap": ".autodiff.vmap",
    **dict.fromkeys(("closure_convert", "custom_gradient", "fwd_and_bwd", "linear_transpose"), ".autodiff.functions"),
    **dict.fromkeys(("checkpoint", "remat"), ".autodiff.remat"),
    "checkpoint_policies": ".autodiff.policies",
    "float0": ".autodiff.tangents",
    **dict.fromkeys(("effects_barrier", "pure_callback"), ".debug.callbacks"),
    **dict.fromkeys(
        (
            *("block_until_ready", "device_get"),
            *("eval_shape", "jit", "make_hlo"),
        ),
        ".tracer.jit",
    ),
    "LocalClient": ".hlo.client",
    **dict.fromkeys(
        ("register_custom_call", "registered_custom_calls", "unregister_custom_call"), ".hlo.custom_calls"
    ),
    "kernel_globals": ".numba_backend.kernel_globals",
    "as_jax": ".jax_programs",
    "make_jaxpr": ".jaxpr.make",
    "ShapeDtypeStruct": ".tracer.arguments",
    "typeof": ".tracer.arguments",
    "clear_caches": ".tracer.caches",
    **dict.fromkeys(
        (
            *("allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "check_tracer_leaks"),
            *("checking_leaks", "config", "debug_infs", "debug_key_reuse", "debug_nans", "default_device"),
            *("default_matmul_precision", "default_prng_impl", "disable_jit", "enable_checks"),
            *("enable_custom_prng", "enable_x64", "explain_cache_misses", "jax2tf_associative_scan_reductions"),
            *("legacy_prng_key", "log_compiles", "no_tracing", "numpy_dtype_promotion", "numpy_rank_promotion"),
            *("remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "thread_guard"),
            *("threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device"),
            *("transfer_guard_device_to_host", "transfer_guard_host_to_device"),
        ),
        ".tracer.settings.config",
    ),
    **dict.fromkeys(
        (
            *("default_backend", "device_count", "devices", "host_count", "host_id", "host_ids"),
            *("local_device_count", "local_devices", "process_count", "process_index", "process_indices"),
        ),
        ".tracer.sharding.devices",
    ),
    **dict.fromkeys(
        (
            *("copy_to_host_async", "live_arrays", "make_array_from_callback"),
            *("make_array_from_process_local_data", "make_array_from_single_device_arrays"),
        ),
        ".tracer.arrays.assembly",
    ),
    "ds": ".tracer.arrays.dslice",
    **dict.fromkeys(("Ref", "empty_ref", "free_ref", "freeze", "new_ref"), ".tracer.references.refs"),
    "Inline": ".tracer.inlining",
    **dict.fromkeys(
        ("get_abstract_mesh", "get_mesh", "set_mesh", "use_abstract_mesh"), ".tracer.sharding.current_mesh"
    ),
    "make_mesh": ".tracer.sharding.mesh",
    "make_user_context": ".tracer.settings.user_context",
    **dict.fromkeys(("NamedSharding", "Shard"), ".tracer.sharding.shardings"),
    **dict.fromkeys(("device_put", "reshard"), ".tracer.sharding.placement"),
    "pmap": ".autodiff.mapped",
    **dict.fromkeys(("shard_map", "smap"), ".autodiff.sharded"),
    **dict.fromkeys(("jit_scope", "jit_scope_report"), ".tracer.deferred.jit_scope"),
    "run_hlo": ".tracer.run_hlo",
    **dict.fromkeys(("ensure_compile_time_eval", "named_call", "named_scope"), ".tracer.scopes"),
    "Compiled": ".tracer.stages",
    "Lowered": ".tracer.stages",
}

__all__ = [
    "Array",
    "Compiled",
    "Device",
    "Inline",
    "LocalClient",
    "Lowered",
    "NamedSharding",
    "P",
    "Ref",
    "ShapeDtypeStruct",
    "Shard",
    "ad",
    "ad_checkpoint",
    "allow_f16_reductions",
    "aot",
    "api_util",
    "array_garbage_collection_guard",
    "as_jax",
    "auto_pcast",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "core",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "dlpack",
    "ds",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "example_libraries",
    "experimental",
    "explain_cache_misses",
    "extend",
    "flatten_util",
    "float0",
    "free_ref",
    "freeze",
    "fwd_and_bwd",
    "get_abstract_mesh",
    "get_mesh",
    "grad",
    "hessian",
    "hlo",
    "host_count",
    "host_id",
    "host_ids",
    "image",
    "interpreters",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax2tf_associative_scan_reductions",
    "jit",
    "jit_scope",
    "jit_scope_report",
    "jvp",
    "kernel_globals",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_hlo",
    "make_jaxpr",
    "make_mesh",
    "make_user_context",
    "memory",
    "monitoring",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "pmap",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "ref",
    "register_custom_call",
    "registered_custom_calls",
    "remat",
    "remove_size_one_mesh_axis_from_type",
    "reshard",
    "run_hlo",
    "scipy",
    "set_mesh",
    "shard_map",
    "sharding",
    "smap",
    "softmax_custom_jvp",
    "stages",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "unregister_custom_call",
    "use_abstract_mesh",
    "value_and_grad",
    "version",
    "vjp",
    "vmap",
]


if not _typing.TYPE_CHECKING:  # to type checkers, a name that is not imported above is an error

    def __getattr__(name: str) -> _typing.Any:
        if name in _MODULES:
            return _load(f".{name}", __name__)
        namespaces = _importlib.import_module(".namespaces", __name__)
        if name == "Array":
            found = _load(".numpy", __name__).ndarray
        elif name in _NAMES:
            _load(".numpy", __name__)  # arrays get their methods, and backends are made known
            found = getattr(_importlib.import_module(_NAMES[name], __name__), name)
        elif name in _RENAMED:
            module, own = _RENAMED[name]
            found = getattr(_importlib.import_module(module, __name__), own)
        else:
            error = namespaces.missing(__name__, name)
            try:
                raise error
            except AttributeError:
                namespaces.hide(error)
                raise
        found = globals()[name] = namespaces.published(found, name, __name__)
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
