"""Targets that are composed of others: XLA's names for factorisations, perturbed and sparse solves.

XLA's CPU compiler expands `Qr`, `Eigh` and `ProductOfElementaryHouseholderReflectors` by itself; JAX lowers to them,
and to `LuDecomposition`, for TPUs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import CustomCallError, UnsupportedError
from .call import Call, NDArray, Run
from .factorize import geqrf, getrf, orgqr
from .spectral import syevd


def qr(call: Call) -> Run:
    """`Qr`: as geqrf."""
    return geqrf(call)


def householder_product(call: Call) -> Run:
    """`ProductOfElementaryHouseholderReflectors`: as orgqr."""
    return orgqr(call)


def eigh(call: Call) -> Run:
    """`Eigh`: (eigenvectors, eigenvalues in ascending order). The config is `lower,sort,max_iterations,tolerance`, of
    which the first decides which triangle is read; the others are of XLA's own algorithm."""
    text = str(call.config.get("backend_config", "1"))
    lower = text.split(",")[0].strip()
    if lower not in ("0", "1"):
        call.fail(f"its backend_config must begin with 0 or 1, not {text!r}")
    run_syevd = syevd(replace(call, config={"mode": ord("V"), "uplo": ord("L" if lower == "1" else "U")}))

    def run(a: NDArray) -> tuple[NDArray, ...]:
        vectors, values, info = run_syevd(a)
        failed = info != 0
        return np.where(failed[..., None, None], np.nan, vectors), np.where(failed[..., None], np.nan, values)

    return run


def lu_decomposition(call: Call) -> Run:
    """`LuDecomposition`: (L and U in one matrix, pivots counted from 0, the permutation that they make)."""
    run_getrf = getrf(call)
    m = call.sizes["m"]

    def run(a: NDArray) -> tuple[NDArray, ...]:
        lu, pivots, _ = run_getrf(a)
        flat = pivots.reshape(-1, pivots.shape[-1]) - 1
        order = np.tile(np.arange(m, dtype=np.int32), (len(flat), 1))
        rows = np.arange(len(flat))
        for k in range(flat.shape[1]):
            other = flat[:, k]
            order[rows, k], order[rows, other] = order[rows, other].copy(), order[rows, k].copy()
        return lu, flat.reshape(pivots.shape), order.reshape(*call.batch, m)

    return run


def tridiagonal_solve_perturbed(call: Call) -> Run:
    """`tridiagonal_solve_perturbed_ffi`: gtsv, but pivots too small to divide by are moved away from zero.

    By eps max |u_ij|, doubled until the quotient is finite, as LAPACK's lagts does with job -1.

    All systems of the batch advance together, a row at a time. dl[0] and du[n - 1] are not read.
    """
    n = call.sizes["n"]
    info = np.finfo(call.element_type.real.dtype)

    def run(dl: NDArray, d: NDArray, du: NDArray, b: NDArray) -> NDArray:
        if not n:
            return b
        # Rows of U: the diagonal, the one above it and, where rows were swapped, the one above that.
        first, second, third = d.copy(), du.copy(), np.zeros_like(d)
        second[..., -1] = 0
        x = b.copy()
        for i in range(n - 1):
            below = dl[..., i + 1]
            swap = np.abs(first[..., i]) < np.abs(below)
            pivot, other = np.where(swap, below, first[..., i]), np.where(swap, first[..., i], below)
            factor = np.where(pivot == 0, 0, other / np.where(pivot == 0, 1, pivot))
            upper, next_upper = second[..., i].copy(), second[..., i + 1].copy()
            next_diagonal = first[..., i + 1].copy()
            first[..., i] = pivot
            second[..., i] = np.where(swap, next_diagonal, upper)
            third[..., i] = np.where(swap, next_upper, 0)
            first[..., i + 1] = np.where(swap, upper, next_diagonal) - factor * second[..., i]
            second[..., i + 1] = np.where(swap, -factor * third[..., i], next_upper)
            here, there = x[..., i, :].copy(), x[..., i + 1, :].copy()
            mask = swap[..., None]
            x[..., i, :] = np.where(mask, there, here)
            x[..., i + 1, :] = np.where(mask, here, there) - factor[..., None] * x[..., i, :]
        largest = np.maximum.reduce([np.abs(u).max(-1) for u in (first, second, third)])
        tolerance = info.eps / 2 * np.where(largest == 0, 1, largest)
        for i in reversed(range(n)):
            value = x[..., i, :]
            if i + 1 < n:
                value = value - second[..., i, None] * x[..., i + 1, :]
            if i + 2 < n:
                value = value - third[..., i, None] * x[..., i + 2, :]
            pivot = _perturbed(first[..., i], np.abs(value).max(-1, initial=0), tolerance, info)
            x[..., i, :] = value / pivot[..., None]
        return x

    return run


def _perturbed(pivot: NDArray, size: NDArray, step: NDArray, info: np.finfo) -> NDArray:
    """The pivots, moved away from zero until `size` can be divided by them."""
    pivot = pivot.copy()
    sign = np.where(np.signbit(pivot.real), -1, 1)
    step = step * sign
    while True:
        small = (np.abs(pivot) < 1) & ((pivot == 0) | (size > np.abs(pivot) * info.max))
        if not small.any():
            return pivot
        pivot = np.where(small, pivot + step, pivot)
        step = step * 2


def csr_times_dense(call: Call) -> Run:
    """`cpu_csr_sparse_dense_ffi`: a sparse matrix, by its values, columns and row starts, times a dense one."""
    if len(call.operands) != 4:
        call.fail("it takes values, column indices, row starts and a dense array")
    values, columns, starts, dense = call.operands
    rows = call.result.dimensions[0] if call.result.rank else -1
    fits = (
        values.dimensions == columns.dimensions and values.rank == starts.rank == 1
        and starts.dimensions == (rows + 1,) and dense.rank in (1, 2)
        and call.result.dimensions == (rows, *dense.dimensions[1:])
        and values.element_type is dense.element_type is call.result.element_type
        and columns.element_type is starts.element_type and columns.element.is_integral
    )  # fmt: skip
    if not fits:
        call.fail("the operands do not fit together")
    try:
        from scipy.sparse import csr_array
    except ImportError as error:
        raise UnsupportedError(f"custom-call {call.target!r} needs SciPy: install scipy") from error

    def run(values: NDArray, columns: NDArray, starts: NDArray, dense: NDArray) -> NDArray:
        try:
            matrix = csr_array((values, columns, starts), shape=(rows, dense.shape[0]))
            matrix.check_format(full_check=True)  # SciPy's product trusts the indices
        except ValueError as error:
            raise CustomCallError(f"custom call {call.target!r}: {error}") from error
        product: NDArray = matrix @ dense
        return product

    return run
