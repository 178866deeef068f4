"""The primitives that equations of jaxprs name for factorisations and solvers (`hloom/jaxpr/library.py`)."""

from __future__ import annotations

from ...jaxpr.primitives import primitive_named

cholesky_p = primitive_named("cholesky")
cholesky_update_p = primitive_named("cholesky_update")
eig_p = primitive_named("eig")
eigh_p = primitive_named("eigh")
hessenberg_p = primitive_named("hessenberg")
householder_product_p = primitive_named("householder_product")
lu_p = primitive_named("lu")
lu_pivots_to_permutation_p = primitive_named("lu_pivots_to_permutation")
ormqr_p = primitive_named("ormqr")
qr_p = primitive_named("qr")
schur_p = primitive_named("schur")
svd_p = primitive_named("svd")
symmetric_product_p = primitive_named("symmetric_product")
triangular_solve_p = primitive_named("triangular_solve")
tridiagonal_p = primitive_named("tridiagonal")
tridiagonal_solve_p = primitive_named("tridiagonal_solve")
