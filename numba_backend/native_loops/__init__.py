"""Native loops: a `while` with a cheap body is one kernel.

`cost.py` decides which loops these are, and `joining.py` which operations they may hold. `emit.py` joins the kernels of
a loop's body into one loop program; `storage.py` has its names and arguments, and chooses the form of its values:
variables, local arrays, or memory behind pointers (`memory.py`). `products.py` has small matrix products. `batch.py` is
about loops over many problems, which threads share.
"""
