"""Elementary functions that LLVM vectorises: exp, log, tanh, sin, pow, ... for f32 and f64, accurate to about an ulp
over the whole range.

Each function is written once, over `value.Float`, and works for both formats: what differs between them (polynomials,
bounds) stands in tables by `FloatFormat`. The algorithms are the classical ones: reduce the argument exactly with
fused multiply-adds, evaluate a minimax polynomial (fitted by `tests/support/minimax.py`), put the result together so
that the last operation dominates the error. `tests/test_math_accuracy.py` measures all of them against mpmath.

A room for mathematics only: nothing here knows of Numba, HLO or kernels. `..dialect` gives the functions their kernel
names.
"""
