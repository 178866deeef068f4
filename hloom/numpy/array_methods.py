"""The functions behind the operators and methods of arrays: functions of this folder, handed to `ArrayBase` once."""

from __future__ import annotations

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
from .cumulative_reductions import cumprod, cumsum
from .indexing import IndexUpdateHelper, index_get
from .indexing_routines import choose, take
from .insert_delete import compress
from .reductions import all, any, argmax, argmin, max, mean, min, prod, ptp, std, sum, var
from .repetition import repeat
from .searching import nonzero
from .selection import clip
from .sorting import argpartition, argsort, searchsorted, sort
from .tensor_contractions import dot, matmul
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
    cumprod,
    cumsum,
    diagonal,
    divmod,
    dot,
    equal,
    floor_divide,
    greater,
    greater_equal,
    imag,
    index_get,
    left_shift,
    less,
    less_equal,
    matmul,
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
    repeat,
    reshape,
    right_shift,
    round,
    sort,
    squeeze,
    std,
    subtract,
    sum,
    swapaxes,
    trace,
    transpose,
    divide,
    var,
    argpartition,
    argsort,
    choose,
    compress,
    nonzero,
    searchsorted,
    take,
    view,
)
