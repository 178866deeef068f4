"""Minimax polynomials and rational functions: how the coefficients in `numba_backend/runtime/math` were made.

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
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]  # (1.0,) for a polynomial
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
    denominator_degree: int = 0,
    fixed: Sequence[float] = (),
) -> Fit:
    """p/q with deg p = `degree`, deg q = `denominator_degree` and q(0) = 1; the lowest coefficients of p may be
    `fixed`."""
    with mp.workdps(50):
        samples = _samples(interval, 40 * (degree + denominator_degree + 2))
        values = [f(x) for x in samples]
        weights = [weight(x) for x in samples]
        numerator: list[mp.mpf | None] = [mp.mpf(c) for c in fixed] + [None] * (degree + 1 - len(fixed))
        denominator: list[mp.mpf | None] = [mp.mpf(1)] + [None] * denominator_degree
        p, q = _solve(samples, values, weights, numerator, denominator)
        for unknown in (numerator, denominator):
            for k in range(len(unknown)):
                if unknown[k] is None:
                    unknown[k] = round_to_bits((p if unknown is numerator else q)[k], bits)
                    p, q = _solve(samples, values, weights, numerator, denominator)
        error = max(
            abs(value - evaluate(p, x) / evaluate(q, x)) * w
            for x, value, w in zip(samples, values, weights)
        )
        return Fit(tuple(float(c) for c in p), tuple(float(c) for c in q), float(error))


def _samples(interval: tuple[float, float], count: int) -> list[mp.mpf]:
    low, high = mp.mpf(interval[0]), mp.mpf(interval[1])
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count) for k in range(count)]


def _solve(
    samples: list[mp.mpf],
    values: list[mp.mpf],
    weights: list[mp.mpf],
    numerator: list[mp.mpf | None],
    denominator: list[mp.mpf | None],
) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """The coefficients that are None. A rational function is made linear, f q - p, with the q of the round before in
    the weight; a few rounds settle it."""
    p = [c if c is not None else mp.mpf(0) for c in numerator]
    q = [c if c is not None else mp.mpf(0) for c in denominator]
    free_p = [k for k, c in enumerate(numerator) if c is None]
    free_q = [k for k, c in enumerate(denominator) if c is None]
    if not free_p and not free_q:
        return p, q
    powers = [[x**k for k in range(max(len(p), len(q)))] for x in samples]
    basis = [[row[k] for k in free_p] + [-value * row[k] for k in free_q] for row, value in zip(powers, values)]
    for _ in range(6 if free_q else 3):
        scaled = [w / abs(evaluate(q, x)) for x, w in zip(samples, weights)]
        residual = [
            w * (value * evaluate(q, x) - evaluate(p, x))
            for x, value, w in zip(samples, values, scaled)
        ]
        correction = _chebyshev_solution([[w * b for b in row] for row, w in zip(basis, scaled)], residual)
        for k, c in zip(free_p, correction):
            p[k] += c
        for k, c in zip(free_q, correction[len(free_p) :]):
            q[k] += c
    return p, q


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
