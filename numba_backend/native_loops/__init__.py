"""Native loops: a `while` with a cheap body is one kernel.

`cost.py` decides which loops these are; `emit.py` joins the kernels of a loop's body into one loop program; `memory.py`
chooses what its values are: local variables, local arrays, or memory behind pointers; `products.py` has small matrix
products.
"""
