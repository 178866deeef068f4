"""The Numba backend: HLO modules become kernels (Numba source), a program that calls them, and an executable.

`compiler.py` finds programs that are stored, and `compiling.py` has the stages for all others; `emit/` writes kernels;
`runtime/` compiles, stores and runs them. Importing this package does not import LLVM: a process whose kernels are all
stored never needs it. Numba, whose rules kernels follow, is imported only for what is no loop program, and for
`kernel_globals`.
"""

if "." not in __name__:  # a second copy of each module would be loaded beside that of `hloom`
    raise ImportError("numba_backend is a part of hloom: import hloom.numba_backend")
