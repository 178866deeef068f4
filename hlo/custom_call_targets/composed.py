"""Targets that are composed of others: XLA's names for factorisations, perturbed and sparse solves.

XLA's CPU compiler expands `Qr`, `Eigh` and `ProductOfElementaryHouseholderReflectors`; JAX lowers to them, and to
`LuDecomposition`, for TPUs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import CustomCallError, UnsupportedError
from .call import Call, NDArray, Run
from .factorize import geqrf, getrf, orgqr
from .routine import Routine
from .spectral import syevd


def qr(call: Call) -> Routine:
    """`Qr`: as geqrf."""
    return geqrf(call)


def householder_product(call: Call) -> Routine:
    """`ProductOfElementaryHouseholderReflectors`: as orgqr."""
    return orgqr(call)


def eigh(call: Call) -> Routine:
    """`Eigh`: (eigenvectors, eigenvalues in ascending order). The config is `lower,sort,max_iterations,tolerance`. The
    first says which triangle is read; the others are of XLA's own algorithm."""
    text = str(call.config.get("backend_config", "1"))
    lower = text.split(",")[0].strip()
    if lower not in ("0", "1"):
        call.fail(f"its backend_config must begin with 0 or 1, not {text!r}")

    def around(run: Run, a: NDArray) -> tuple[NDArray, ...]:
        vectors, values, info = run(a)
        failed = info != 0
        return np.where(failed[..., None, None], np.nan, vectors), np.where(failed[..., None], np.nan, values)

    config = {"mode": ord("V"), "uplo": ord("L" if lower == "1" else "U")}
    return replace(syevd(replace(call, config=config)), around=around)


def lu_decomposition(call: Call) -> Routine:
    """`LuDecomposition`: (L and U in one matrix, pivots counted from 0, the permutation that they make)."""
    routine, m = getrf(call), call.sizes["m"]

    def around(run: Run, a: NDArray) -> tuple[NDArray, ...]:
        lu, pivots = run(a)
        flat = pivots.reshape(-1, pivots.shape[-1]) - 1
        order = np.tile(np.arange(m, dtype=np.int32), (len(flat), 1))
        rows = np.arange(len(flat))
        for k in range(flat.shape[1]):
            other = flat[:, k]
            order[rows, k], order[rows, other] = order[rows, other].copy(), order[rows, k].copy()
        return lu, flat.reshape(pivots.shape), order.reshape(*call.batch, m)

    return replace(routine, results=routine.results[:2], around=around)


def tridiagonal_solve_perturbed(call: Call) -> Run:
    """`tridiagonal_solve_perturbed_ffi`: a tridiagonal solve that gives finite numbers for singular matrices too.

    Gaussian elimination that exchanges two rows where the lower one's element is larger relative to its row, as
    LAPACK's lagtf does; then back substitution with pivots that are moved away from zero where a quotient would be
    infinite, by eps max |u_ij| and more, as in lagts with job -1. Sums and maxima are over the same elements as in
    jaxlib's kernel, so that singular systems have its solutions. All systems of the batch advance together, a row at a
    time. dl[0] and du[n - 1] are not read.
    """
    n = call.sizes["n"]
    info = np.finfo(call.element_type.real.dtype)

    def run(dl: NDArray, d: NDArray, du: NDArray, b: NDArray) -> NDArray:
        if not n:
            return b
        x = b.copy()
        if n == 1:
            pivot, value = _perturbed(d[..., 0], x[..., 0, :], info.eps * np.abs(d[..., 0]), info)
            x[..., 0, :] = value / pivot[..., None]
            return x
        first, second, third, largest = _eliminated(dl, d, du, x)
        for i in reversed(range(n)):
            value = x[..., i, :]
            if i + 1 < n:
                value = value - second[..., i, None] * x[..., i + 1, :]
            if i + 2 < n:
                value = value - third[..., i, None] * x[..., i + 2, :]
            pivot, value = _perturbed(first[..., i], value, info.eps * largest, info)
            x[..., i, :] = value * (1 / pivot)[..., None]
        return x

    return run


def _eliminated(dl: NDArray, d: NDArray, du: NDArray, x: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """The rows of U, and the largest |u_ij|: the diagonal, the one above it and, where rows were exchanged, the one
    above that. `x` becomes the right-hand sides of these rows."""
    n = d.shape[-1]
    first, second, third = d.copy(), du.copy(), np.zeros_like(d)
    second[..., -1] = 0
    largest = np.maximum(np.abs(first[..., 0]), np.abs(second[..., 0]))
    scale = np.abs(first[..., 0]) + np.abs(second[..., 0])
    for i in range(n - 1):
        below, diagonal, above = dl[..., i + 1], d[..., i + 1], second[..., i + 1].copy()
        next_scale = np.abs(below) + np.abs(diagonal) + np.abs(above)
        here, upper = first[..., i].copy(), second[..., i].copy()
        is_done = below == 0  # the row stays as it is, with the signs of its zeros
        kept = is_done | (_ratio(below, next_scale) <= _ratio(here, scale))
        factor = _quotient(np.where(kept, below, here), np.where(kept, here, below))
        first[..., i] = np.where(kept, here, below)
        second[..., i] = np.where(kept, upper, diagonal)
        third[..., i] = np.where(kept, 0, above)
        rest = np.where(kept, diagonal, upper) - factor * second[..., i]
        first[..., i + 1] = np.where(is_done, diagonal, rest)
        second[..., i + 1] = np.where(kept, above, -factor * above)
        exchanged = np.abs(first[..., i + 1]) + np.abs(second[..., i + 1])
        scale = np.where(kept, next_scale, exchanged)
        row, other, mask = x[..., i, :].copy(), x[..., i + 1, :].copy(), kept[..., None]
        x[..., i, :] = np.where(mask, row, other)
        rest = np.where(mask, other, row) - factor[..., None] * x[..., i, :]
        x[..., i + 1, :] = np.where(is_done[..., None], other, rest)
        if i < n - 2:
            largest = np.maximum.reduce([largest, *(np.abs(u[..., i]) for u in (first, second, third))])
    return first, second, third, np.maximum(largest, np.abs(first[..., -1]))


def _ratio(element: NDArray, scale: NDArray) -> NDArray:
    """|element| / scale; 0 for 0."""
    return np.where(element == 0, 0, np.abs(element) / np.where(element == 0, 1, scale))


def _quotient(numerator: NDArray, denominator: NDArray) -> NDArray:
    """numerator / denominator, 0 for a denominator of 0."""
    return np.where(denominator == 0, 0, numerator / np.where(denominator == 0, 1, denominator))


def _perturbed(pivot: NDArray, row: NDArray, step: NDArray, info: np.finfo) -> tuple[NDArray, NDArray]:
    """The pivots, moved away from zero until `row` can be divided by them, and the row; where both are tiny, both are
    multiplied by a large number instead."""
    pivot, row = pivot.copy(), row.copy()
    safe = info.smallest_normal
    size = np.abs(row).max(-1, initial=0)
    step = np.copysign(np.maximum(step, safe), pivot.real)
    moving = np.abs(pivot) < 1
    while moving.any():
        magnitude = np.abs(pivot)
        is_tiny = magnitude < safe
        moved = moving & np.where(is_tiny, (magnitude == 0) | (size * safe > magnitude), size > magnitude / safe)
        lifted = moving & is_tiny & ~moved
        row = np.where(lifted[..., None], row / safe, row)
        pivot = np.where(lifted, pivot / safe, np.where(moved, pivot + step, pivot))
        step = np.where(moved, step * 2, step)
        moving = moved & (np.abs(pivot) < 1)
    return pivot, row


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
