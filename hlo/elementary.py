"""Ops with last bits that depend on the implementation: elementary functions, and arithmetic of complex numbers.

A function has one implementation for each backend, so nothing else may compute one in its place: neither NumPy outside
of jit (`tracer/functions.py`) nor constant folding. All other elementwise ops are exact, or rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .element_type import ElementType
from .opcode import Opcode

_O = Opcode
_EVERYWHERE = frozenset(
    {
        *(_O.ACOS, _O.ACOSH, _O.ASIN, _O.ASINH, _O.ATANH, _O.CBRT, _O.COS, _O.COSH, _O.ERF, _O.EXP, _O.EXPM1, _O.LOG),
        *(_O.LOG1P, _O.LOGISTIC, _O.SIN, _O.SINH, _O.TAN, _O.TANH, _O.ATAN2, _O.POWER),
    }
)
_OF_COMPLEX = frozenset({_O.ABS, _O.DIVIDE, _O.MULTIPLY, _O.RSQRT, _O.SIGN, _O.SQRT})
"""Those with several roundings where numbers are complex, and one where they are real."""

FUNCTIONS = _EVERYWHERE | _OF_COMPLEX
"""The ops that are functions of some types."""

_COMPLEX = frozenset(t.dtype for t in ElementType if t.is_complex)
_INEXACT = _COMPLEX | {t.dtype for t in ElementType if t.is_floating and not t.is_small}


def is_function(opcode: Opcode, dtype: np.dtype[Any]) -> bool:
    """Whether an op of FUNCTIONS, on operands of this type, is a function of the backend. Of floats of a byte none is:
    they are rounded to few of the bits that are computed."""
    return dtype in (_COMPLEX if opcode in _OF_COMPLEX else _INEXACT)
