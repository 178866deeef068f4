"""The rules of the pass `expand` for this backend: the rules of `hlo/passes/expand/`, and rules for types and forms
that the backend's kernels, BLAS and LAPACK do not support. A rule that helps every backend belongs in
`hlo/passes/expand/`."""

from __future__ import annotations

from ...hlo.opcode import Opcode
from ...hlo.passes.expand.expand import EXPANSIONS
from ...hlo.passes.rules import RuleSet, rule
from .convolution import (
    batch_groups,
    canonical_dimensions,
    complex_convolution,
    in_one_type,
    not_reversed,
    strided_pointwise,
)
from .linalg import half_in_f32
from .power import small_power
from .product import dot_in_type_of_blas, small_dot_of_integers
from .sort import large_topk
from .stencil import convolution_as_stencil

NUMBA_EXPANSIONS = RuleSet(
    (
        *EXPANSIONS.without(
            "topk_by_sort",  # large_topk calls it where it pays
            "batch_groups_as_feature_groups",  # batch_groups calls it where it pays
            "convolution_in_one_type",  # so does in_one_type
            "reversed_window",  # so does not_reversed
        ),
        rule(half_in_f32, Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE),
        rule(in_one_type, Opcode.CONVOLUTION),
        rule(complex_convolution, Opcode.CONVOLUTION),
        rule(batch_groups, Opcode.CONVOLUTION),
        rule(not_reversed, Opcode.CONVOLUTION),
        rule(convolution_as_stencil, Opcode.CONVOLUTION),
        rule(strided_pointwise, Opcode.CONVOLUTION),
        rule(canonical_dimensions, Opcode.CONVOLUTION),
        rule(dot_in_type_of_blas, Opcode.DOT),
        rule(small_dot_of_integers, Opcode.DOT),
        rule(large_topk, Opcode.TOPK),
        rule(small_power, Opcode.POWER),
    )
)
"""The rules, in the order in which they are tried."""
