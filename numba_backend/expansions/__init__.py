"""What the pass `expand` does for this backend: the rules of `hlo/passes/expand/`, and those for what its kernels, BLAS
and LAPACK have no types or forms for. A rule that helps every backend belongs there, not here.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...hlo.opcode import Opcode
from ...hlo.passes.expand.dot import dot_in_one_type, dot_of_integers
from ...hlo.passes.expand.expand import EXPANSIONS, Expansion
from .convolution import canonical_dimensions
from .linalg import half_in_f32
from .sort import large_topk

NUMBA_EXPANSIONS: Mapping[Opcode, tuple[Expansion, ...]] = {
    **EXPANSIONS,
    Opcode.CHOLESKY: (half_in_f32,),
    Opcode.CONVOLUTION: (*EXPANSIONS[Opcode.CONVOLUTION], canonical_dimensions),
    Opcode.DOT: (dot_in_one_type, dot_of_integers),
    Opcode.TOPK: (large_topk,),
    Opcode.TRIANGULAR_SOLVE: (half_in_f32,),
}
"""By opcode: the rules that are tried, in this order."""
