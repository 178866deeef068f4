"""The rules of the pass `expand` for this backend: those of `hlo/passes/expand/`, and those for types and forms that
its kernels, BLAS and LAPACK do not support. A rule that helps every backend belongs in `hlo/passes/expand/`. """

from __future__ import annotations

from ...hlo.opcode import Opcode
from ...hlo.passes.expand.dot import dot_in_one_type, dot_of_integers
from ...hlo.passes.expand.expand import EXPANSIONS
from ...hlo.passes.rules import RuleSet, rule
from .convolution import canonical_dimensions
from .linalg import half_in_f32
from .power import small_power
from .sort import large_topk

NUMBA_EXPANSIONS = RuleSet(
    (
        *EXPANSIONS.without("topk_by_sort"),  # large_topk calls it where it pays
        rule(half_in_f32, Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE),
        rule(canonical_dimensions, Opcode.CONVOLUTION),
        rule(dot_in_one_type, Opcode.DOT),
        rule(dot_of_integers, Opcode.DOT),
        rule(large_topk, Opcode.TOPK),
        rule(small_power, Opcode.POWER),
    )
)
"""In the order in which they are tried."""
