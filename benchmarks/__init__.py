"""hloom compared with JAX, NumPy, hand-written Numba, PyTorch, IREE and others: `python -m benchmarks`.

Not installed with the package. `table/` declares the rows, `groups` names the groups, `harness` measures, `peers` runs
each peer in a process of its own. `startup` has what takes fresh processes (compiling, starting, memory), and `fresh`
what these do; `mlp` is the network of several cases. `report` prints; `results` and `plot` make `RESULTS.md` of a run's
JSON. `translated` has the peers that run a row's JAX text, `environments` makes interpreters for them, `limits` says
how long a call must take at least on this machine.

Groups beside the table: `loops`, programs that are loops; `pallas`, kernels beside JAX's interpreter;
`transformations`, `tracing`, `eager` (outside of jit), `scopes`, `recording`; `steady` has hloom beside itself, too, in
layouts and for other targets (`layouts`, `targets`).
"""
