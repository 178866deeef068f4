"""Matrices and spectra: jax.numpy.linalg, jax.lax.linalg, jax.scipy.linalg, and the Fourier transforms.

Eigenvectors and singular vectors are determined up to a factor only: the recorded results are free of it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .cases import c64, c128, case, cases, f32, f64, spd, typed

linalg = partial(cases, within="numpy.linalg")
scipy = partial(cases, within="scipy.linalg")
lax = partial(cases, within="lax.linalg")
fft = partial(cases, within="numpy.fft")


def projections(vectors: Any) -> Any:
    """v v^H of each column: what eigenvectors of simple eigenvalues determine."""
    return vectors[..., :, None, :] * vectors[..., None, :, :].conj()


def eigensystem(f: Any, x: Any, **options: Any) -> Any:
    """Eigenvalues and the projections on their vectors."""
    values, vectors = f(x, **options)
    return values, projections(vectors)


def schur_product(f: Any, x: Any) -> Any:
    """The product of Schur's factors, and what makes them Schur's. The vectors are determined up to signs, and up to a
    rotation for a pair of complex eigenvalues."""
    triangle, vectors = f(x)
    return vectors @ triangle @ vectors.T, vectors.T @ vectors, triangle[2, 0]


# jax.numpy.linalg

typed("numpy.linalg.cholesky", [lambda *s: spd(*s), lambda *s: spd(*s, dtype="complex64")], (3, 3))
case("numpy.linalg.cholesky", spd(2, 4, 4, dtype="float64"), label="batch", upper=True)
linalg("inv det slogdet cond pinv matrix_norm", f32(3, 3))
linalg("inv det slogdet", c64(2, 3, 3), label="c64")
linalg(
    "inv det solve",
    spd(4, 4, dtype="float64"),
    call=lambda f, x: f(x) if "solve" not in str(f) else f(x, x[0]),
    label="f64",
)
case("numpy.linalg.solve", f32(3, 3), f32(3, 2))
case("numpy.linalg.solve", c64(2, 3, 3), c64(2, 3, 1), label="c64")
linalg("eigh", spd(4, 4), call=eigensystem)
linalg("eigh", spd(2, 3, 3, dtype="complex64"), call=eigensystem, label="c64")
linalg("eigvalsh svdvals", spd(4, 4))
case("numpy.linalg.eigvals", f64(4, 4), call=lambda f, x: sort_complex(f(x)))
case("numpy.linalg.eig", np.array([[1.0, 2, 0], [0.5, -1, 3], [0, 1, 2.5]]), call=eigensystem)


def sort_complex(values: Any) -> Any:
    """In the order of the real parts, then of the imaginary parts."""
    order = (values.real + 1e-3 * values.imag).argsort()
    return values[order]


def svd_product(f: Any, x: Any, **options: Any) -> Any:
    """Singular values, and what the factors multiply to."""
    u, s, vh = f(x, **options)
    return s, (u * s[..., None, :]) @ vh


case("numpy.linalg.svd", f32(4, 3), call=svd_product, full_matrices=False)
case("numpy.linalg.svd", c128(2, 3, 4), label="c128", call=svd_product, full_matrices=False)
case("numpy.linalg.svd", f64(3, 5), label="values", compute_uv=False)
case("numpy.linalg.qr", f32(4, 3))
case("numpy.linalg.qr", c64(3, 4), label="complete", mode="complete")
case("numpy.linalg.lstsq", f32(5, 3), f32(5))
case("numpy.linalg.matrix_power", f32(3, 3), n=5)
case("numpy.linalg.matrix_rank", f32(3, 4))
linalg("matrix_transpose diagonal trace", f32(2, 3, 3))
case("numpy.linalg.multi_dot", [f32(2, 3), f32(3, 4), f32(4, 2)])
linalg("norm vector_norm", f32(3, 4), axis=1)
case("numpy.linalg.norm", f32(3, 3), label="nuclear", ord="nuc")
case("numpy.linalg.tensorinv", f32(2, 3, 6))
case("numpy.linalg.tensorsolve", f32(2, 3, 6), f32(2, 3))
linalg("outer", f32(3), f32(4))
linalg("cross vecdot", f32(4, 3), f32(4, 3))
linalg("matmul", f32(3, 4), f32(4, 2))
linalg("tensordot", f32(3, 4), f32(4, 2), axes=1)

# jax.lax.linalg

case("lax.linalg.cholesky", spd(3, 3))
case("lax.linalg.cholesky_update", spd(4, 4), f32(4), call=lambda f, a, w: f(np_cholesky(a), w))


def np_cholesky(a: Any) -> Any:
    """An upper triangle with a positive diagonal."""
    return abs(a) * np.triu(np.ones(a.shape, a.dtype))


case("lax.linalg.eig", f64(3, 3), call=lambda f, x: sort_complex(f(x, compute_left_eigenvectors=False)[0]))
case("lax.linalg.eigh", spd(3, 3), call=lambda f, x: (f(x)[1], projections(f(x)[0])))
case("lax.linalg.hessenberg", f32(4, 4))
case("lax.linalg.householder_product", f32(4, 3), f32(3))
case("lax.linalg.ormqr", f32(4, 3), f32(3), f32(4, 2))
case("lax.linalg.lu", f32(4, 4))
case("lax.linalg.lu", c64(2, 3, 4), label="c64")
case("lax.linalg.lu_pivots_to_permutation", np.array([2, 2, 3], np.int32), permutation_size=5)
case("lax.linalg.qdwh", spd(4, 4))
case("lax.linalg.qr", f64(4, 3), full_matrices=False)
case("lax.linalg.schur", f32(3, 3), call=schur_product)
case("lax.linalg.svd", f32(3, 3), call=lambda f, x: svd_product(lambda y: tuple(f(y)), x))
case("lax.linalg.symmetric_product", f32(4, 3), spd(4, 4), alpha=2.0, beta=0.5, symmetrize_output=True)
case("lax.linalg.triangular_solve", spd(3, 3), f32(3, 2), left_side=True, lower=True)
case(
    "lax.linalg.triangular_solve", spd(2, 3, 3, dtype="complex64"), c64(2, 4, 3), label="c64",
    left_side=False, conjugate_a=True, transpose_a=True, unit_diagonal=True,
)  # fmt: skip
case("lax.linalg.tridiagonal", spd(4, 4))
case("lax.linalg.tridiagonal_solve", f32(5), f32(5, low=5, high=6), f32(5), f32(5, 2))

# jax.scipy.linalg

scipy("block_diag", f32(2, 2), f32(1, 3))
case("scipy.linalg.cho_factor", spd(3, 3), call=lambda f, x: f(x)[0])
case("scipy.linalg.cho_solve", spd(3, 3), f32(3), call=lambda f, a, b: f((a, True), b))
scipy("cholesky det inv", spd(3, 3))
scipy("circulant toeplitz hankel fiedler", f32(4))
scipy("companion fiedler_companion", f32(4, low=1))
scipy("convolution_matrix", f32(3), n=4)
scipy("dft hadamard helmert hilbert invhilbert pascal invpascal", call=lambda f: f(4))
scipy("eigh", spd(3, 3), call=eigensystem)
scipy("eigh_tridiagonal", f32(4), f32(3), eigvals_only=True)
scipy("expm", f32(3, 3))
scipy("expm_frechet", f32(3, 3), f32(3, 3))
scipy("funm", spd(3, 3), call=lambda f, x: f(x, lambda v: v * v, disp=False)[0])
scipy("hessenberg", f32(4, 4), calc_q=True)
scipy("leslie", f32(4), f32(3))
scipy("lu lu_factor polar", f32(3, 3))
scipy("lu_solve", f32(3, 3), f32(3), call=lambda f, a, b: f((a, np.array([1, 1, 2], np.int32)), b))
scipy("qr", f32(3, 2), mode="economic")
scipy("qr_multiply", f32(3, 3), f32(2, 3))
scipy("rsf2csf", f32(3, 3), f32(3, 3))
scipy("schur", f32(3, 3), call=schur_product)
scipy("solve", spd(3, 3), f32(3), assume_a="pos")
scipy("solve_sylvester", spd(3, 3), spd(2, 2), f32(3, 2))
scipy("solve_triangular", spd(3, 3), f32(3), lower=True, trans=1)
scipy("sqrtm", spd(3, 3))
scipy("svd", f32(3, 4), call=svd_product, full_matrices=False)

# Fourier transforms

fft("fft ifft fftshift ifftshift", c64(3, 8))
fft("fft ifft", c128(7), label="c128")
fft("rfft ihfft", f32(3, 9))
fft("rfft", f64(8), label="f64")
fft("irfft hfft", c64(2, 5))
fft("irfft", c64(5), label="odd", n=7)
fft("fft2 ifft2 fftn ifftn", c64(2, 4, 3))
fft("rfft2 rfftn", f32(2, 4, 5))
fft("irfft2 irfftn", c64(2, 4, 3))
fft("fftfreq rfftfreq", call=lambda f: f(7, 0.5))
fft("fft", f32(3, 8), label="axis", axis=0, n=5, norm="ortho")
case("lax.fft", c64(2, 6), call=lambda f, x: f(x, "FFT", (6,)))
cases("dct idct", f32(3, 6), within="scipy.fft")
cases("dctn idctn", f32(3, 4), within="scipy.fft", norm="ortho")
