"""The semantics of factorisations and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..element_type import ElementType
from ..opcode import Opcode
from ..ops.linalg import CholeskyAttributes, FftAttributes, FftType, TransposeKind, TriangularSolveAttributes
from ..shape import Shape
from .table import EVALUATE, NDArray

_NARROW = (ElementType.F16, ElementType.BF16)


def _wide(array: NDArray, shape: Shape) -> NDArray:
    """The array in the type that is used for computing: f32 for f16 and bf16."""
    return array.astype(np.float32) if shape.element in _NARROW else array


@EVALUATE.register(Opcode.CHOLESKY)
def _cholesky(shape: Shape, attributes: CholeskyAttributes, a: NDArray) -> NDArray:
    """L of a = L L^H, or with `lower=false` U of a = U^H U; zeros in the other triangle.

    Only the named triangle is read. Its diagonal is real: an imaginary part there is ignored, as LAPACK does. A matrix
    that is not positive definite gives NaN everywhere.
    """
    a = _wide(a, shape)
    lower = a if attributes.lower else a.conj().swapaxes(-1, -2)
    n = a.shape[-1]
    factor = np.zeros_like(lower)
    for j in range(n):
        row = factor[..., j, :j]
        pivot = np.sqrt(lower[..., j, j].real - (row * row.conj()).real.sum(-1))
        factor[..., j, j] = pivot
        below = lower[..., j + 1 :, j] - (factor[..., j + 1 :, :j] * row.conj()[..., None, :]).sum(-1)
        factor[..., j + 1 :, j] = below / pivot[..., None]
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1).real
    factor[~(diagonal > 0).all(-1)] = np.nan
    if not attributes.lower:
        factor = factor.conj().swapaxes(-1, -2)
    return factor.astype(shape.element.dtype, copy=False)


@EVALUATE.register(Opcode.TRIANGULAR_SOLVE)
def _triangular_solve(shape: Shape, attributes: TriangularSolveAttributes, a: NDArray, b: NDArray) -> NDArray:
    """x of op(a) x = b, or x op(a) = b; op(a) is a, its transpose or its adjoint. By substitution.

    Only the named triangle of a is read; with `unit_diagonal` its diagonal is not read.
    """
    a, b = _wide(a, shape), _wide(b, shape)
    lower = attributes.lower
    if attributes.transpose_a is TransposeKind.ADJOINT:
        a = a.conj()
    if attributes.transpose_a is not TransposeKind.NO_TRANSPOSE:
        a, lower = a.swapaxes(-1, -2), not lower
    if not attributes.left_side:  # x a = b is a^T x^T = b^T
        a, b, lower = a.swapaxes(-1, -2), b.swapaxes(-1, -2), not lower
    n = a.shape[-1]
    x = np.zeros_like(b)
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        rest = b[..., i, :] - (a[..., i, known, None] * x[..., known, :]).sum(-2)
        x[..., i, :] = rest if attributes.unit_diagonal else rest / a[..., i, i, None]
    if not attributes.left_side:
        x = x.swapaxes(-1, -2)
    return x.astype(shape.element.dtype, copy=False)


@EVALUATE.register(Opcode.FFT)
def _fft(shape: Shape, attributes: FftAttributes, x: NDArray) -> Any:
    """Discrete Fourier transforms of the last dimensions; the inverse ones divide by the number of values.

    RFFT keeps the half that determines the rest, IRFFT assumes the other half.
    """
    if 0 in shape.dimensions:
        return np.zeros(shape.dimensions, shape.element.dtype)
    lengths = attributes.fft_length
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    transforms = {FftType.FFT: np.fft.fftn, FftType.IFFT: np.fft.ifftn, FftType.RFFT: np.fft.rfftn}
    transform: Any = transforms.get(attributes.fft_type, np.fft.irfftn)
    return transform(x, lengths, axes).astype(shape.element.dtype, copy=False)
