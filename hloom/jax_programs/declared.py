"""Names of JAX's inside that JAX does not publish, and that are in hloom under another name.

By the path of the module in `jax._src`. Each has JAX's meaning. `module:attribute` is in hloom; `module:` is a module.
"""

from __future__ import annotations

_TABLE = """
array.ArrayImpl = :Array
checkify.JaxException = autodiff.checks:JaxRuntimeError
dispatch.wait_for_tokens = debug.callbacks:effects_barrier
source_info_util.register_exclusion = hlo.support.source:add_internal_file
tree_util._registry = tracer.trees.nodes:CONTAINERS
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
