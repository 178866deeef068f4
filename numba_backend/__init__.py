"""The Numba backend: HLO modules become kernels (Numba source), a program that calls them, and an executable.

`compiler.py` finds programs that are stored, and `compiling.py` has the stages for all others; `emit/` writes kernels;
`runtime/` compiles, stores and runs them. Importing this package does not import LLVM: a process never needs it if all
its kernels are stored. Kernels follow Numba's rules. Numba itself is imported only for kernels that are no loop
programs, and for `kernel_globals`.
"""

if "." not in __name__:  # each module would be loaded twice: here, and in `hloom`
    raise ImportError("numba_backend is a part of hloom: import hloom.numba_backend")
