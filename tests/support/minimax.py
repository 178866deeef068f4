"""Minimax polynomials: how the coefficients in `numba_backend/runtime/math` were made.

`fit` minimises the largest |f(x) - p(x)| * weight(x) over an interval, by linear programs on a grid with iterative
refinement in mpmath. Coefficients are rounded to the target format one at a time, lowest power first, and the others
are fitted again around each rounded one; without that, f32 coefficients lose a factor of ten.

    from support.minimax import fit
    fit(lambda r: (mp.exp(r) - 1 - r) / r**2, (-0.35, 0.35), degree=4, bits=24)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import scipy.optimize

Function = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True, slots=True)
class Fit:
    coefficients: tuple[float, ...]  # constant term first
    error: float  # the largest weighted error of the rounded coefficients


def round_to_bits(value: mp.mpf, bits: int) -> mp.mpf:
    with mp.workprec(bits):
        return +value


def evaluate(coefficients: Sequence[mp.mpf | float], x: mp.mpf) -> mp.mpf:
    """sum(c * x**k), constant term first."""
    value = mp.mpf(0)
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def fit(
    f: Function,
    interval: tuple[float, float],
    degree: int,
    bits: int,
    weight: Function = lambda x: mp.mpf(1),
    fixed: Sequence[float] = (),
) -> Fit:
    """The polynomial of that degree with coefficients of `bits` bits; the lowest coefficients may be `fixed`."""
    with mp.workdps(50):
        samples = _samples(interval, 40 * (degree + 2))
        values = [f(x) for x in samples]
        weights = [weight(x) for x in samples]
        known = [mp.mpf(c) for c in fixed]
        solved = _solve(samples, values, weights, known, degree)
        while len(known) <= degree:
            known.append(round_to_bits(solved[len(known)], bits))
            solved = _solve(samples, values, weights, known, degree)
        error = max(abs(value - evaluate(solved, x)) * w for x, value, w in zip(samples, values, weights))
        return Fit(tuple(float(c) for c in solved), float(error))


def _samples(interval: tuple[float, float], count: int) -> list[mp.mpf]:
    low, high = mp.mpf(interval[0]), mp.mpf(interval[1])
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count) for k in range(count)]


def _solve(
    samples: list[mp.mpf], values: list[mp.mpf], weights: list[mp.mpf], known: list[mp.mpf], degree: int
) -> list[mp.mpf]:
    """All coefficients: the known ones, then the best others; each round adds digits."""
    solved = known + [mp.mpf(0)] * (degree + 1 - len(known))
    if len(known) > degree:
        return solved
    basis = [[w * x**k for k in range(len(known), degree + 1)] for x, w in zip(samples, weights)]
    for _ in range(3):
        residual = [w * (value - evaluate(solved, x)) for x, value, w in zip(samples, values, weights)]
        for k, correction in enumerate(_chebyshev_solution(basis, residual), len(known)):
            solved[k] += correction
    return solved


def _chebyshev_solution(matrix: list[list[mp.mpf]], target: list[mp.mpf]) -> list[mp.mpf]:
    """argmin of the largest |target - matrix @ c|: a linear program over an orthogonal basis of the columns."""
    scale = max(abs(t) for t in target)
    if scale == 0:
        return [mp.mpf(0)] * len(matrix[0])
    columns = [mp.matrix([row[k] for row in matrix]) for k in range(len(matrix[0]))]
    count = len(columns)
    triangle = mp.zeros(count)
    for k in range(count):  # Gram-Schmidt
        for j in range(k):
            triangle[j, k] = mp.fdot(columns[j], columns[k])
            columns[k] -= triangle[j, k] * columns[j]
        triangle[k, k] = mp.norm(columns[k])
        columns[k] /= triangle[k, k]
    orthogonal = np.array([[float(v) for v in column] for column in columns]).T * np.sqrt(len(target))
    goal = np.array([float(t / scale) for t in target])
    ones = np.ones((len(goal), 1))
    program = scipy.optimize.linprog(
        np.r_[np.zeros(count), 1.0],
        A_ub=np.block([[orthogonal, -ones], [-orthogonal, -ones]]),
        b_ub=np.r_[goal, -goal],
        bounds=(None, None),
    )
    solution = mp.matrix([mp.mpf(float(v)) for v in program.x[:count]]) * (scale * mp.sqrt(len(target)))
    return list(mp.lu_solve(triangle, solution))
