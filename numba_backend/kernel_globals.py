"""The globals that a printed kernel needs to run outside of this library, under plain Numba."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def kernel_globals() -> dict[str, object]:
    """Every name that a printed kernel may use, for `numba.njit`: ``globals().update(hloom.kernel_globals())``.

    These are the casts (``float32(1)``), the functions of the dialect (``tanh``, ``reduce_add``, ``convert_f32_bf16``),
    and what loops need (``local_array``, ``lanes``, ``interrupted``). Some hide names of Python: ``abs``, ``pow``.

    A kernel is ``name(lo, hi, ...)``, for the numbers lo to hi - 1 of its outermost loop. Its other parameters are

    * arrays, of one dimension, without gaps, in the order of the kernel's indices: pred as uint8, f16 and bf16 as
      uint16, floats of 8 bits and integers of less as uint8;
    * sizes (``n0``), as int64, and constants (``c0``), of the type that the kernel computes in:
      ``numpy.float32(0.5)``;
    * for a loop that looks for interrupts, ``watch``: eight zeros of int64.

    Compile it with ``numba.njit(fastmath={"contract"}, error_model="numpy")``, as this library does: products and sums
    may be contracted, and a division by zero gives infinity. Other settings change results.

    Imports Numba.

    >>> import hloom
    >>> "tanh" in hloom.kernel_globals()
    True
    """
    scope = import_module(".runtime.dialect", __package__).SCOPE
    names: dict[str, object] = import_module(".runtime.numba_dialect", __package__).numba_scope(scope)
    names["vectors"] = _vectors
    return names


def _vectors(bits: int) -> Callable[[Any], Any]:
    """``@vectors(256)``: the width of a kernel's vectors, which is for this library's own compiler."""
    return lambda function: function
