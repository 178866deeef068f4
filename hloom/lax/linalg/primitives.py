"""The primitives that equations of jaxprs name for factorisations and solvers (`hloom/jaxpr/library.py`)."""

from __future__ import annotations

from ...jaxpr.primitives import JaxprPrimitive, primitive_named

cholesky_p: JaxprPrimitive = primitive_named("cholesky")
cholesky_update_p: JaxprPrimitive = primitive_named("cholesky_update")
eig_p: JaxprPrimitive = primitive_named("eig")
eigh_p: JaxprPrimitive = primitive_named("eigh")
hessenberg_p: JaxprPrimitive = primitive_named("hessenberg")
householder_product_p: JaxprPrimitive = primitive_named("householder_product")
lu_p: JaxprPrimitive = primitive_named("lu")
lu_pivots_to_permutation_p: JaxprPrimitive = primitive_named("lu_pivots_to_permutation")
ormqr_p: JaxprPrimitive = primitive_named("ormqr")
qr_p: JaxprPrimitive = primitive_named("qr")
schur_p: JaxprPrimitive = primitive_named("schur")
svd_p: JaxprPrimitive = primitive_named("svd")
symmetric_product_p: JaxprPrimitive = primitive_named("symmetric_product")
triangular_solve_p: JaxprPrimitive = primitive_named("triangular_solve")
tridiagonal_p: JaxprPrimitive = primitive_named("tridiagonal")
tridiagonal_solve_p: JaxprPrimitive = primitive_named("tridiagonal_solve")
