from .construction import block_diag as block_diag, hankel as hankel, hilbert as hilbert, toeplitz as toeplitz
from .factorizations import (
    cho_factor as cho_factor, cho_solve as cho_solve, cholesky as cholesky, det as det, eigh as eigh,
    hessenberg as hessenberg, inv as inv, lu as lu, lu_factor as lu_factor, lu_solve as lu_solve, qr as qr,
    qr_multiply as qr_multiply, schur as schur, solve as solve, solve_triangular as solve_triangular, svd as svd,
)
from .functions import (
    expm as expm, expm_frechet as expm_frechet, funm as funm, rsf2csf as rsf2csf, solve_sylvester as solve_sylvester,
    sqrtm as sqrtm,
)
from .polar_factors import polar as polar
from .special_matrices import (
    circulant as circulant, companion as companion, convolution_matrix as convolution_matrix, dft as dft,
    fiedler as fiedler, fiedler_companion as fiedler_companion, hadamard as hadamard, helmert as helmert,
    invhilbert as invhilbert, invpascal as invpascal, leslie as leslie, pascal as pascal,
)
from .tridiagonal import eigh_tridiagonal as eigh_tridiagonal
