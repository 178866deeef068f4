"""The functions behind the operators and methods of arrays: functions of this folder, handed to `ArrayBase` once."""

from __future__ import annotations

from ..hlo.support.loading import load
from ..tracer.arrays.operators import use_functions
from .array_api import array_namespace
from .array_creation import copy
from .array_manipulation import diagonal, matrix_transpose, ravel, reshape, squeeze, swapaxes, trace, transpose
from .binary_ufuncs import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    divmod,
    equal,
    floor_divide,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    mod,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
)
from .casting import astype, byteswap, view
from .indexing import IndexUpdateHelper, index_get
from .reductions import all, any, argmax, argmin, max, mean, min, prod, ptp, std, sum, var
from .searching import nonzero
from .selection import clip
from .unary_ufuncs import abs, bitwise_not, conj, imag, negative, positive, real, round

use_functions(
    IndexUpdateHelper,
    abs,
    add,
    all,
    any,
    argmax,
    argmin,
    array_namespace,
    astype,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    byteswap,
    clip,
    conj,
    copy,
    diagonal,
    divmod,
    equal,
    floor_divide,
    greater,
    greater_equal,
    imag,
    index_get,
    left_shift,
    less,
    less_equal,
    matrix_transpose,
    max,
    mean,
    min,
    mod,
    multiply,
    negative,
    not_equal,
    positive,
    power,
    prod,
    ptp,
    ravel,
    real,
    reshape,
    right_shift,
    round,
    squeeze,
    std,
    subtract,
    sum,
    swapaxes,
    trace,
    transpose,
    divide,
    var,
    nonzero,
    view,
    later=[
        (("cumprod", "cumsum"), lambda: load(".cumulative_reductions", __package__)),
        (("choose", "take"), lambda: load(".indexing_routines", __package__)),
        (("compress",), lambda: load(".insert_delete", __package__)),
        (("repeat",), lambda: load(".repetition", __package__)),
        (("argpartition", "argsort", "searchsorted", "sort"), lambda: load(".sorting", __package__)),
        (("dot", "matmul"), lambda: load(".tensor_contractions", __package__)),
    ],
)
