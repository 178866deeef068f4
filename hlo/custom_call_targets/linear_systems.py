"""Targets of whole linear systems: the library's functions of LU factors, as one call each.

A composite call of the library says which of them computes the same (`known-composites`); a backend that has a kernel
for it runs that in place of the composite's parts. Here they have the definition of the parts: LAPACK's getrf and trsm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .call import Call, NDArray, Run
from .composed import lu_decomposition
from .factorize import trsm

_LOWER, _UPPER = ("L", "U"), ("U", "N")
"""Which triangle, and whether its diagonal is 1."""


def lu_solve(call: Call) -> Run:
    """`hloom.lu_solve`: x of op(a) x = b. Operands: a, which is not read; its factors; the permutation of its rows; b.
    `trans`: 0 for a itself, 1 for its transpose, 2 for its adjoint."""
    trans = call.integer("trans")
    if trans not in (0, 1, 2):
        call.fail(f"its backend_config must have trans = 0, 1 or 2, not {trans}")
    triangles = [_triangular(call, *how, "NTC"[trans]) for how in (_LOWER, _UPPER)[:: -1 if trans else 1]]

    def run(_: NDArray, factors: NDArray, permutation: NDArray, b: NDArray) -> NDArray:
        places = np.clip(permutation, 0, max(call.sizes["n"] - 1, 0))[..., None]
        x = b if trans else np.take_along_axis(b, places, -2)
        for solve_one in triangles:
            x = solve_one(factors, x)
        if trans:
            moved = np.zeros_like(x)
            np.put_along_axis(moved, places, x, -2)
            x = moved
        return x

    return run


def _triangular(call: Call, uplo: str, diag: str, trans: str) -> Run:
    """trsm of a triangle of the factors, from the left."""
    letters = {"side": "L", "uplo": uplo, "diag": diag, "trans_x": trans}
    sizes = {"a": call.sizes["n"], "m": call.sizes["n"], "n": call.sizes["b"]}
    return trsm(replace(call, config={key: ord(letter) for key, letter in letters.items()}, sizes=sizes))


def _factors(call: Call) -> Run:
    sizes = {**call.sizes, "m": call.sizes["n"], "k": call.sizes["n"]}
    return lu_decomposition(replace(call, sizes=sizes))


def solve(call: Call) -> Run:
    """`hloom.solve`: x of a x = b, by LU factors with partial pivoting."""
    factor, finish = _factors(call), lu_solve(replace(call, config={"trans": 0}))

    def run(a: NDArray, b: NDArray) -> NDArray:
        factors, _, permutation = factor(a)
        found: NDArray = finish(a, factors, permutation, b)
        return found

    return run


def inverse(call: Call) -> Run:
    """`hloom.inverse`: `hloom.solve` with identities on the right."""
    n = call.sizes["n"]
    run_solve = solve(replace(call, sizes={**call.sizes, "b": n}))

    def run(a: NDArray) -> NDArray:
        found: NDArray = run_solve(a, np.broadcast_to(np.eye(n, dtype=a.dtype), a.shape))
        return found

    return run


def determinant(call: Call) -> Run:
    """`hloom.determinant`: the product of the pivots, each with the sign of its exchange of rows."""
    factor = _factors(call)

    def run(a: NDArray) -> NDArray:
        factors, pivots, _ = factor(a)
        own = np.diagonal(factors, axis1=-2, axis2=-1)
        signed: NDArray = np.where(pivots != np.arange(call.sizes["n"]), -own, own)
        return np.asarray(signed.prod(-1), a.dtype)

    return run
