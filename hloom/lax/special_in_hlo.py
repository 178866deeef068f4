"""Functions of the library as computations, for programs that name functions which HLO has no opcode for.

`hlo/stablehlo/reading_chlo.py` asks for them: it is below the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..hlo.builder import make_computation
from ..hlo.instruction import HloComputation
from ..hlo.shape import Shape
from ..tracer.aval import ShapedArray
from ..tracer.recording import trace_to_computation
from ..tracer.settings.config import enable_x64
from .bessel import bessel_i1e
from .error_functions import erfc
from .gamma_functions import digamma, lgamma, polygamma, zeta
from .special import erf_inv, nextafter

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (bessel_i1e, digamma, erf_inv, erfc, lgamma, nextafter, polygamma, zeta)
}


def computation_of(name: str, shapes: Sequence[Shape]) -> HloComputation:
    """The function as a computation of arrays of these shapes; it returns one array. Its name is one of lax's."""
    function = _FUNCTIONS[name]
    avals = [ShapedArray(shape.dimensions, shape.element.dtype) for shape in shapes]
    with enable_x64(True):
        traced = trace_to_computation(lambda values: [function(*values)], avals, name).computation
    (result,) = traced.root.operands
    return make_computation(name, result, traced.parameters)
