"""The Numba backend: HLO modules become kernels (Numba source), a program that calls them, and an executable.

`compiler.py` has the stages; `emit/` writes kernels; `runtime/` compiles, stores and runs them. Importing this package
does not import Numba: a process whose kernels are all stored never needs it.
"""

if "." not in __name__:  # a second copy of each module would be loaded beside that of `hloom`
    raise ImportError("numba_backend is a part of hloom: import hloom.numba_backend")
