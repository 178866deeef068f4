"""Custom-call targets that need no registration: those that JAX and XLA use on the CPU, run by LAPACK, SciPy and NumPy.

`table.py` lists them with the types that they take and give; `library.py` calls LAPACK; the other files define each
target. A target is a function of a `Call`. It checks the static facts, and returns the function of the operands.
Nothing here imports SciPy before a target that needs it is bound.
"""
