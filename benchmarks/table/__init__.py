"""The table: rows in groups, the same work for hloom, JAX, NumPy, Numba, PyTorch and torch.compile.

`declare` says what a row is, `every` has all groups; each other module has a group or two. Nothing is imported here: a
process that starts for one model does not wait for the rows of others.
"""
