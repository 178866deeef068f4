"""Names of JAX's inside that JAX does not publish, and that are in hloom under another name.

By the path of the module in `jax._src`. Each has JAX's meaning. `module:attribute` is in hloom; `module:` is a module.
"""

from __future__ import annotations

_TABLE = """
ad_checkpoint.saved_residuals = autodiff.saved:saved_residuals
array.ArrayImpl = :Array
checkify.JaxException = autodiff.checks:JaxRuntimeError
config.trace_context = tracer.settings.context:current_context
config.update = :config.update
core.EvalTrace = tracer.core:EvalTrace
core.ShardingTypeError = tracer.errors:ShardingTypeError
dispatch.wait_for_tokens = debug.callbacks:effects_barrier
distributed.initialize = distributed:initialize
distributed.is_initialized = distributed:is_initialized
distributed.shutdown = distributed:shutdown
lax.lax.asarray = numpy:asarray
mesh.thread_resources = interpreters.pxla:thread_resources
named_sharding.DuplicateSpecError = tracer.sharding.shardings:DuplicateSpecError
nn.initializers._compute_fans = nn.initializers.scaling:_fans
pjit.pjit = :jit
source_info_util.register_exclusion = hlo.support.source:add_internal_file
tree_util._registry = tracer.trees.nodes:CONTAINERS
tree_util.broadcast_prefix = tracer.trees.tree:broadcast_prefix
tree_util.treedef_is_strict_leaf = tracer.trees.tree:treedef_is_strict_leaf
"""


def _declared() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line in _TABLE.strip().splitlines():
        name, _, place = line.partition(" = ")
        path, _, last = name.rpartition(".")
        found.setdefault(path, {})[last] = place
    return found


DECLARED = _declared()
"""Module -> name -> place."""
