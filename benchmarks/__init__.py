"""hloom compared with JAX, NumPy, hand-written Numba and PyTorch: `python -m benchmarks`.

Not installed with the package. `harness` measures. `steady` has programs that run many times in one process, `rows`
those on gather, scatter, sort and topk, `windows` those on convolutions and pooling, `targets` and `layouts` those on
layouts; `loops` is a group of its own, of programs that are loops; `startup` has cases of fresh processes. `mlp` is the
network of several cases; `report` prints.
"""
