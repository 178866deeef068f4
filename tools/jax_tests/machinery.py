"""Parts of JAX that its tests use and that cannot have a meaning here: no function that JAX publishes is behind them.

A test that fails because it touched one of them says nothing about programs; `report` counts such tests apart. A
private name with public behaviour behind it does not belong here: it gets a stand-in (`internals`).
"""

from __future__ import annotations

import re

MACHINERY: dict[str, tuple[str, ...]] = {
    "errors at run time in exported functions": ("jax._src.error_check",),
    "types, effects and discharge of references in jaxprs; here references leave no trace in jaxprs": (
        *("jax._src.state.", "jax._src.effects", "jax._src.core.abstract_token"),
        *("jax._src.checkify.ErrorEffect", "jax._src.checkify.FailedCheckError", "jax._src.checkify.OOBError"),
    ),
    "passes over jaxprs": (
        *("jax._src.interpreters.partial_eval", "jax._src.lax.eval_jaxpr", "jax._src.core.call"),
        *("jax._src.interpreters.ad.", "jax._src.custom_derivatives", "jax._src.linear_util"),
        *("jax._src.debugging", "jax._src.source_info_util", "jax._src.api_util", "jax._src.core.initial_result_paths"),
    ),
    "XLA's client, its messages, and JAX's tables for arrays and executables": (
        *("jax._src.lib.", "jax._src.interpreters.pxla", "jax._src.dispatch", "jax._src.pjit.", "jax._src.xla_bridge"),
        *("jax._src.sharding_impls.parse_flatten_op_sharding", "jax._src.array._array_mlir_constant_handler"),
        *("jax._src.sharding_impls.named_sharding_to_xla_hlo_sharding", "jax._src.pretty_printer"),
        *("jax._src.core.pytype_aval_mappings", "jax._src.dtypes.register_canonicalize_value_handler"),
    ),
    "lowering to MLIR": ("jax._src.interpreters.mlir",),
    "how TPUs are arranged": ("jax._src.mesh_utils", "jax._src.tpu", "jax._src.distributed.State"),
    "collectives in two steps or outside of maps, which JAX has not published": (
        "jax._src.shard_map.top_level_all_gather",
        *(f"jax._src.lax.parallel.{name}_start" for name in ("all_gather", "psum", "psum_scatter", "all_to_all")),
        *(f"jax._src.lax.parallel.{name}_start" for name in ("pbroadcast", "ppermute")),
    ),
    "primitives of random numbers": ("jax._src.random.",),
    "signatures of jaxprs for key reuse": ("jax.experimental.key_reuse._core",),
    "registries of tree nodes": ("jax._src.tree_util.dispatch_registry",),
    "numbers with a dtype in jaxprs": ("jax._src.literals",),
    "the parts of sparsify": ("jax.experimental.sparse.transform.",),
    "steps of solvers and shape rules, called one by one": (
        *("jax._src.lax.linalg._lu_python", "jax._src.scipy.sparse.linalg._kth_arnoldi_iteration"),
        *("jax._src.lax.lax._ragged_dot_general_shape_rule", "jax._src.api._std_basis"),
        *("jax._src.random.core._safe_int_to_float", "jax._src.random.core._check_broadcast_shapes"),
    ),
}
"""Why, and the names: each with all that begins so."""

_UNPUBLISHED = {"JaxprPrimitive": ("impl", "def_impl"), "JaxprEqn": ("ctx",)}
"""Attributes of objects that JAX does not publish though their names do not say so, by hloom's class."""

_NAME = re.compile(r"PrivateName: not here: ([\w.]+)")
_ATTRIBUTE = re.compile(r"AttributeError: (?:module )?'([\w.]+)'(?: object)? has no attribute '(\w+)'")
_LOWERING = re.compile(r"the lowering of the primitive \w+ fails on traced arrays|rules for lowering write MLIR")
_CLASS = re.compile(r"'\.\*ArrayImpl'")
_DEVICES = re.compile(r"devices must be those of hloom\.devices\(\), not Mock\w+")


def machinery(why: str) -> str | None:
    """Which part of JAX a test wanted that failed in this way; None if it failed for another reason."""
    if found := _NAME.search(why):
        names = found[1]
        return next((reason for reason, starts in MACHINERY.items() if names.startswith(starts)), None)
    if _LOWERING.search(why):
        return "lowering to MLIR"
    if _DEVICES.search(why):
        return "how TPUs are arranged"
    if _CLASS.search(why):
        return "the name of the private class of arrays"
    found = _ATTRIBUTE.search(why)
    if found and (re.match("_[a-z]", found[2]) or found[2] in _UNPUBLISHED.get(found[1], ())):
        return "private attributes of objects"
    return None
