"""From a Python function to HLO: arrays, tracers, primitives, contexts, jit and its caches, pytrees, control flow.

Read `core` first. An operation with an HLO opcode is traced as that opcode; all others are primitives: there is no
second IR. The modules here import only `hlo`. Transformations (`autodiff`) add traces to `core`'s, and backends are
reached through `hlo/backend.py`. The functions that users call are in `hloom/`, above autodiff.
"""

if "." not in __name__:  # Python would load a second copy of each module, next to the one in `hloom`
    raise ImportError("tracer is a part of hloom: import hloom.tracer")
