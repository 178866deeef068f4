"""`hloom.stages`: the stages of a jitted function, with the names of jax.stages."""

from .namespaces import publish as _publish
from .tracer.deferred.jit_scope import JitScope
from .tracer.jit import JitFunction as Wrapped
from .tracer.stages import ArgInfo, Compiled, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "JitScope", "Lowered", "Traced", "Wrapped"]

CompilerOptions = dict[str, str | bool]
"""Options for XLA, which mean nothing here."""

_publish(__name__)
