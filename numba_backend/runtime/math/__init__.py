"""Elementary functions that LLVM vectorises: exp, log, sin, pow, ... for f32 and f64, to about an ulp everywhere.

Each function is written once, over `value.Float`, and works for both formats; what differs between them (polynomials,
bounds) is in tables by `FloatFormat`. The algorithms are the classical ones: reduce the argument exactly with fused
multiply-adds, evaluate a minimax polynomial (fitted by `tests/support/minimax.py`), and combine the parts so that the
last operation dominates the error. `tests/numba_backend/runtime/test_math_accuracy.py` measures all of them against
mpmath.

They need a CPU with fused multiply-add for speed (x86-64 since 2013, every aarch64). Without it results are the same,
but each `fma` becomes a call into libm.

This folder is for mathematics only: nothing here depends on Numba, HLO or kernels. `..dialect` gives the functions
their names in kernels.
"""
