from ..array_manipulation import matrix_transpose as matrix_transpose
from ..tensor_contractions import vecdot as vecdot
from .decompositions import (
    cholesky as cholesky, eig as eig, eigh as eigh, eigvals as eigvals, eigvalsh as eigvalsh, qr as qr, svd as svd,
    svdvals as svdvals,
)
from .determinants import det as det, matrix_rank as matrix_rank, slogdet as slogdet
from .diagonals import diagonal as diagonal, matmul as matmul, outer as outer, tensordot as tensordot, trace as trace
from .norms import cond as cond, matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm
from .products import cross as cross, matrix_power as matrix_power, multi_dot as multi_dot
from .solving import (
    inv as inv, lstsq as lstsq, pinv as pinv, solve as solve, tensorinv as tensorinv, tensorsolve as tensorsolve,
)
