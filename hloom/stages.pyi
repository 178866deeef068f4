from .tracer.deferred.jit_scope import JitScope as JitScope
from .tracer.jit import JitFunction as _JitFunction
from .tracer.stages import (
    ArgInfo as ArgInfo, Compiled as Compiled, CompilerOptions as CompilerOptions, Lowered as Lowered,
    Traced as Traced,
)

Wrapped = _JitFunction
