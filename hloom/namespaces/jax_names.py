"""JAX's public names that hloom lacks, and replacements for them. Read by messages and by tests only.

`tests/data/jax_names.json` has all names of JAX, and `python tools/namespaces.py --write` writes those here that no
stub has.
"""

from __future__ import annotations

VERSION = "0.10.2"
"""The version of JAX that these names follow."""
_NAMED = """
ad_checkpoint api_util core custom_batching custom_derivatives debug dlpack dtypes errors example_libraries.optimizers
example_libraries.stax experimental experimental.hijax experimental.random experimental.rnn
experimental.scheduling_groups experimental.serialize_executable experimental.sparse.linalg experimental.xla_metadata
experimental.checkify experimental.jet experimental.layout experimental.mesh_utils experimental.multihost_utils
experimental.ode experimental.shard_map experimental.sparse export extend extend.core extend.core.primitives
extend.linear_util extend.random ffi flatten_util image interpreters.ad interpreters.batching interpreters.mlir
interpreters.partial_eval lax lax.linalg monitoring nn nn.initializers numpy numpy.fft numpy.linalg ops profiler random
ref scipy scipy.cluster.vq scipy.fft scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize
scipy.signal scipy.sparse.linalg scipy.spatial.transform scipy.special scipy.stats sharding stages test_util tree
tree_util typing extend.backend interpreters.xla interpreters.pxla experimental.colocated_python experimental.compute_on
experimental.custom_partitioning experimental.pallas
"""
NAMESPACES = ("", *_NAMED.split())
"""JAX's namespaces below `jax`; "" is `jax` itself."""
LACKING = {
    "": "lib",
    "ad_checkpoint": "checkpoint_name_fwd name_p",
    "custom_derivatives": "remat_opt_p",
    "debug": "DebugEffect OrderedDebugEffect",
    "experimental": """
EArray buffer_callback compilation_cache control_deps fused jax2tf mosaic overlap
primal_tangent_dtype profiler roofline shard_alike source_mapper thunky topologies transfer
""",
    "experimental.hijax": "TransformedRef bdims_at_front unmap_avals vmap_rule",
    "experimental.rnn": "lstm_bwd lstm_fwd rnn_abstract_eval rnn_bwd_abstract_eval",
    "experimental.scheduling_groups": "attr_get dce_jaxpr_xla_metadata_rule",
    "experimental.xla_metadata": "xla_metadata_call2",
    "experimental.jet": """
JetTrace JetTracer ZeroSeries ZeroTerm call_param_updaters def_comp def_deriv deflinear defzero
deriv_prop jet_fun jet_rules jet_subtrace linear_prop traceable zero_prop zero_series zero_term
""",
    "experimental.layout": "explicit_layout with_layout_constraint",
    "experimental.mesh_utils": "create_hybrid_device_mesh device_kind_handler_dict",
    "experimental.multihost_utils": """
ProcessFailureError global_array_to_host_local_array_impl gtl_abstract_eval
host_local_array_to_global_array_impl live_devices ltg_abstract_eval ltg_batcher
""",
    "experimental.ode": """
abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri mean_error_ratio optimal_step_size
ravel_first_arg ravel_first_arg_ runge_kutta_step
""",
    "experimental.shard_map": "jshmap traceback_util",
    "experimental.sparse": "SparseTracer bcoo_gather",
    "extend": "lowering pallas sharding xla",
    "extend.core": """
CallPrimitive Effects call_impl create_call_primitive eval_jaxpr_transpose
register_call_primitive_rules
""",
    "extend.core.primitives": """
create_call_primitive custom_lin_p empty2_p eval_jaxpr_transpose get_p log2_p one_minus_square_p
polynomial_p register_call_primitive_rules swap_p
""",
    "extend.linear_util": "Callable cache",
    "interpreters.ad": "add_jaxvals_p annotations backward_pass jvp jvp_jaxpr linearize",
    "interpreters.batching": "batch_jaxpr_axes batch_subtrace broadcast defreducer zero_if_mapped",
    "interpreters.mlir": """
AxisContext ConstantHandler DEVICE_TO_DEVICE_TYPE LoweringParameters LoweringResult LoweringRule
Mesh MeshAxisName ModuleContext RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE SPMDAxisContext
ShapePolyLoweringState ShardingContext Token Value aval_to_ir_type aval_to_ir_types
core_call_lowering dense_int_array dense_int_elements dtype_to_ir_type flatten_ir_types
flatten_ir_values i32_attr i64_attr ir ir_attribute ir_constant ir_constants ir_tree_registry
ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun lower_jaxpr_to_module make_ir_context
merge_mlir_modules module_to_bytecode module_to_string register_constant_handler shape_tensor
token_type unflatten_ir_values_like_types
""",
    "interpreters.partial_eval": """
DynamicJaxprTracer JaxprTracer Val abstract_eval_fun close_jaxpr convert_constvars_jaxpr
custom_partial_eval_rules dce_jaxpr dce_jaxpr_call_rule dce_jaxpr_closed_call_rule dce_jaxpr_consts
dce_rules lower_jaxpr lower_jaxpr2 move_binders_to_back new_eqn_recipe
partial_eval_jaxpr_custom_rules partial_eval_jaxpr_nounits prune_closed_jaxpr_outputs
trace_to_jaxpr_dynamic
""",
    "lax": "log2_p one_minus_square_p polynomial_p precv psend psum_scatter_start",
    "profiler": """
ProfileData ProfileEvent ProfileLine ProfilePlane ProfileSession export_profile_data
register_subprocess
""",
    "sharding": "UnreducedKind no_collectives",
    "extend.backend": "get_compile_options ifrt_proxy register_backend_factory",
    "interpreters.pxla": "create_compile_options",
    "experimental.colocated_python": "api func_backend obj_backend",
    "experimental.custom_partitioning": "ArrayMapping BATCHING CompoundFactor SdyShardingRule custom_partitioning_p",
    "experimental.pallas": "lower_as_mlir pallas_call_p pallas_export_experimental",
}
"""The names that JAX has in a namespace, and hloom lacks. `tools/namespaces.py` writes them."""


def lacking(space: str) -> frozenset[str]:
    """The names that hloom lacks in a namespace."""
    return frozenset(LACKING.get(space, "").split())


SEARCHED = ("", "numpy", "lax", "nn", "random", "tree", "numpy.linalg", "nn.initializers", "tree_util", "flatten_util")
"""Namespaces in which a name is looked for that another one lacks."""

_DEVICES = "not written yet; docs/scaling.md says how programs use several devices and processes"
_ACCELERATORS = "it is for GPUs and TPUs"
_INSIDE = "it belongs to the inside of JAX's compiler, which hloom does not have"
_NOT_YET = "not written yet"
_TRACES = "traces are JSON in the Trace Event format, which json.load reads"
_STORED = "compiled programs are stored by themselves, in HLOOM_CACHE_DIR"


def _all(spaces: str, names: str, reason: str) -> dict[str, str]:
    """The same for several names of several namespaces."""
    return {f"{space}.{name}": reason for space in spaces.split() for name in names.split()}


ADVICE = {
    **_all("experimental.multihost_utils experimental.mesh_utils", "*", _DEVICES),
    **_all("experimental", "shard_alike topologies transfer", _DEVICES),
    **_all("experimental.colocated_python experimental.custom_partitioning", "*", _DEVICES),
    **_all("experimental", "buffer_callback fused mosaic roofline", _ACCELERATORS),
    **_all("experimental.pallas", "*", _ACCELERATORS),
    **_all("experimental", "compilation_cache", _STORED),
    **_all("experimental extend extend.backend extend.core extend.linear_util extend.random core", "*", _INSIDE),
    **_all("interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval", "*", _INSIDE),
    **_all("interpreters.pxla", "*", _INSIDE),
    **_all("debug", "DebugEffect OrderedDebugEffect", _INSIDE),
    **_all("experimental.jet experimental.ode experimental.rnn", "*", "it is a piece of JAX's implementation"),
    **_all("experimental.hijax experimental.sparse.linalg", "*", _NOT_YET),
    **_all("experimental.scheduling_groups", "*", _INSIDE),
    **_all("experimental.shard_map", "*", "hloom.shard_map is the function"),
    **_all("experimental.layout", "*", "layouts of arguments are chosen in HLO text, by entry_computation_layout"),
    **_all("experimental.sparse", "*", _NOT_YET),
    **_all("lax", "precv psend psum_scatter_start", _DEVICES),
    **_all("ad_checkpoint experimental.xla_metadata extend.core.primitives", "*", _INSIDE),
    **_all("lax dtypes nn custom_derivatives sharding", "*", _NOT_YET),
    **_all("profiler", "ProfileEvent ProfileLine ProfilePlane ProfileSession export_profile_data", _TRACES),
    "experimental.jax2tf": "TensorFlow's programs are neither read nor written; HLO text is",
    "lib": "it has the version of jaxlib, and after hloom.as_jax() the version of JAX",
    "profiler.ProfileData": _TRACES,
    "profiler.register_subprocess": "a process writes its own trace",
}
"""Why a name is missing, or what to use instead: by namespace and name, and `NAMESPACE.*` for all others of one. The
other messages follow from the lists of names."""


def reason(space: str, name: str) -> str | None:
    """Why hloom lacks a name of JAX; None: nothing is known but that it is not there."""
    own = ADVICE.get(f"{space}.{name}".lstrip("."))
    if own is not None or name not in lacking(space):
        return own
    return "no operation is shown as this primitive" if name.endswith("_p") else ADVICE.get(f"{space}.*".lstrip("."))
