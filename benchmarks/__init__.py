"""hloom beside JAX, NumPy, hand-written Numba and PyTorch: `python -m benchmarks`.

Not installed with the package. `harness` measures, `steady` holds programs that run again and again in one process,
`startup` those that are about a fresh process, `mlp` the network that both use, `report` prints.
"""
