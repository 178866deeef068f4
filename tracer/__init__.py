"""From a Python function to HLO: arrays, tracers, jit and its caches, pytrees, control flow, and the NumPy-like names.

`core` is the room to read first. What HLO has an opcode for is traced as that opcode: there is no second IR. The
modules here import only `hlo`; transformations (`autodiff`) and the backends stand outside and are reached through
`core`'s traces and `hlo/backend.py`.
"""
