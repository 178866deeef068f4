from .eigen import (
    eig as eig, eigh as eigh, EighImplementation as EighImplementation, EigImplementation as EigImplementation,
)
from .lu import lu as lu, lu_pivots_to_permutation as lu_pivots_to_permutation
from .polar import qdwh as qdwh
from .primitives import (
    cholesky_p as cholesky_p, cholesky_update_p as cholesky_update_p, eig_p as eig_p, eigh_p as eigh_p,
    hessenberg_p as hessenberg_p, householder_product_p as householder_product_p, lu_p as lu_p,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p, ormqr_p as ormqr_p, qr_p as qr_p, schur_p as schur_p,
    svd_p as svd_p, symmetric_product_p as symmetric_product_p, triangular_solve_p as triangular_solve_p,
    tridiagonal_p as tridiagonal_p, tridiagonal_solve_p as tridiagonal_solve_p,
)
from .qr import householder_product as householder_product, ormqr as ormqr, qr as qr
from .reduced import (
    hessenberg as hessenberg, schur as schur, tridiagonal as tridiagonal, tridiagonal_solve as tridiagonal_solve,
)
from .svd import svd as svd, SvdAlgorithm as SvdAlgorithm
from .triangular import (
    cholesky as cholesky, cholesky_update as cholesky_update, symmetric_product as symmetric_product,
    triangular_solve as triangular_solve,
)
