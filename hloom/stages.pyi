from .tracer.deferred.jit_scope import JitScope as JitScope
from .tracer.jit import PjitFunction as _PjitFunction
from .tracer.stages import (
    ArgInfo as ArgInfo, Compiled as Compiled, CompilerOptions as CompilerOptions, Lowered as Lowered,
    Traced as Traced,
)

Wrapped = _PjitFunction
