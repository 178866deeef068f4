"""Rotations as unit quaternions (x, y, z, w), in the last dimension of arrays; other dimensions are batch dimensions.

q and -q are the same rotation. Derivatives are right for rotations by angle 0 too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import numpy as jnp
from ....extend.primitive import Primitive
from ....tracer.compound import compound

SMALL = 1e-3
"""Functions of angles below it are computed by the first terms of a series in their squares."""


def _norm(x: Any) -> Any:
    """The lengths, [..., 1]; its derivative at 0 is 0."""
    square = (x * x).sum(-1, keepdims=True)
    is_zero = square == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, square)))


@compound()
def normalized(q: Any) -> Any:
    return q / _norm(q)


@compound()
def inverse(q: Any) -> Any:
    return q * np.array([-1, -1, -1, 1], q.dtype)


@compound()
def product(p: Any, q: Any) -> Any:
    """First q, then p."""
    u, s, v, t = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    real = s * t - (u * v).sum(-1, keepdims=True)
    return jnp.concatenate([s * v + t * u + jnp.cross(u, v), real], -1)


@compound()
def magnitude(q: Any) -> Any:
    """The angle, from 0 to pi."""
    return 2 * jnp.arctan2(_norm(q[..., :3]), jnp.abs(q[..., 3:]))[..., 0]


@compound()
def canonical(q: Any) -> Any:
    """Of q and -q, the one in which the last nonzero number among w, x, y, z, in this order, is positive."""
    x, y, z, w = (q[..., k : k + 1] for k in range(4))
    decisive = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
    return jnp.where(decisive < 0, -q, q)


@compound()
def as_matrix(q: Any) -> Any:
    """[..., 3, 3]."""
    x, y, z, w = (q[..., k] for k in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


@compound()
def from_matrix(matrix: Any) -> Any:
    """From the largest of the four numbers, which divides the others: it is the one of the largest of the diagonal and
    the trace."""
    m = [[matrix[..., i, j] for j in range(3)] for i in range(3)]
    trace = m[0][0] + m[1][1] + m[2][2]
    sums = {(i, j): m[i][j] + m[j][i] for i, j in ((0, 1), (0, 2), (1, 2))}
    turns = [m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]]
    candidates = [
        [1 - trace + 2 * m[0][0], sums[0, 1], sums[0, 2], turns[0]],
        [sums[0, 1], 1 - trace + 2 * m[1][1], sums[1, 2], turns[1]],
        [sums[0, 2], sums[1, 2], 1 - trace + 2 * m[2][2], turns[2]],
        [*turns, 1 + trace],
    ]
    choice = jnp.argmax(jnp.stack([m[0][0], m[1][1], m[2][2], trace], -1), -1)[..., None]
    rows = [jnp.stack(c, -1) for c in candidates]
    chosen = jnp.where(choice == 0, rows[0], jnp.where(choice == 1, rows[1], jnp.where(choice == 2, rows[2], rows[3])))
    return normalized(chosen)


@compound(static=("degrees",))
def from_rotvec(rotvec: Any, degrees: bool) -> Any:
    v = jnp.deg2rad(rotvec) if degrees else rotvec
    square = (v * v).sum(-1, keepdims=True)
    is_small = square <= SMALL**2
    half = jnp.sqrt(jnp.where(is_small, 1, square)) / 2
    scale = jnp.where(is_small, 0.5 - square / 48 + square * square / 3840, jnp.sin(half) / (2 * half))
    real = jnp.where(is_small, 1 - square / 8 + square * square / 384, jnp.cos(half))
    return jnp.concatenate([scale * v, real], -1)


@compound(static=("degrees",))
def as_rotvec(q: Any, degrees: bool) -> Any:
    """The sine of half the angle is the length s of (x, y, z); the angle divided by it is 2 + s^2 / 3 + ..."""
    q = jnp.where(q[..., 3:] < 0, -q, q)
    square = (q[..., :3] * q[..., :3]).sum(-1, keepdims=True)
    is_small = square <= SMALL**2
    sine = jnp.sqrt(jnp.where(is_small, 1, square))
    scale = jnp.where(is_small, 2 + square / 3 + 3 * square * square / 20, 2 * jnp.arctan2(sine, q[..., 3:]) / sine)
    return (jnp.rad2deg(scale) if degrees else scale) * q[..., :3]


@compound()
def from_mrp(mrp: Any) -> Any:
    above = (mrp * mrp).sum(-1, keepdims=True) + 1
    return jnp.concatenate([2 * mrp, 2 - above], -1) / above


@compound()
def as_mrp(q: Any) -> Any:
    sign = jnp.where(q[..., 3:] < 0, -1.0, 1.0).astype(q.dtype)
    return sign * q[..., :3] / (1 + sign * q[..., 3:])


@compound(static=("axes", "intrinsic", "degrees"))
def from_euler(angles: Any, axes: tuple[int, ...], intrinsic: bool, degrees: bool) -> Any:
    """angles: [..., k], about the k axes one after another."""
    half = (jnp.deg2rad(angles) if degrees else angles) / 2
    found: Any = None
    for k, axis in enumerate(axes):
        none = jnp.zeros_like(half[..., k])
        numbers = [jnp.sin(half[..., k]) if d == axis else none for d in range(3)]
        turn = jnp.stack([*numbers, jnp.cos(half[..., k])], -1)
        found = turn if found is None else product(found, turn) if intrinsic else product(turn, found)
    return found


@compound(static=("axes", "extrinsic", "degrees"))
def as_euler(q: Any, axes: tuple[int, ...], extrinsic: bool, degrees: bool) -> Any:
    """E. Bernardes, S. Viollet, "Quaternion to Euler angles conversion" (2022). Where the second angle makes the first
    and the third axis one, only the sum or difference of their angles is determined: the third is 0."""
    i, j, k = axes if extrinsic else axes[::-1]
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    n = [q[..., d] for d in range(4)]
    if symmetric:
        a, b, c, d = n[3], n[i], n[j], sign * n[k]
    else:
        a, b, c, d = n[3] - n[j], n[i] + sign * n[k], n[j] + n[3], sign * n[k] - n[i]
    second = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    is_zero, is_turned = jnp.abs(second) <= 1e-7, jnp.abs(second - math.pi) <= 1e-7
    total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    lone = jnp.where(is_zero, 2 * total, (-2 if extrinsic else 2) * difference)
    is_locked = is_zero | is_turned
    near, far = total - difference, total + difference
    if not extrinsic:
        near, far = far, near
    first, third = jnp.where(is_locked, lone, near), jnp.where(is_locked, 0, far)
    if not symmetric:
        first, third = (first, third * sign) if extrinsic else (first * sign, third)
        second = second - math.pi / 2
    found = jnp.stack([first, second, third], -1)
    found = (found + math.pi) % (2 * math.pi) - math.pi
    return jnp.rad2deg(found) if degrees else found


# ---- means


def leading(a: Any) -> Any:
    """The eigenvector [n] of the largest eigenvalue of a symmetric, semidefinite matrix [n, n].

    It is smooth where that eigenvalue is simple. The other eigenvalues may be equal, as for the mean of one or two
    rotations, where they are 0: there the derivatives of `eigh`, which has all vectors, do not exist.
    """
    return _leading.bind(a)


_leading = Primitive("leading_eigenvector")


@_leading.def_meaning
def _leading_meaning(a: Any) -> Any:
    return jnp.linalg.eigh(a)[1][:, -1]


@_leading.def_jvp
def _leading_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """(l - a) dv = da v - v v^T da v, and v^T dv = 0, which l v v^T on the left side says."""
    (a,), (da,) = primals, tangents
    v: Any = _leading.bind(a)
    moved = jnp.dot((da + da.T) / 2, v)
    size = jnp.dot(v, jnp.dot(a, v))
    system = size * (jnp.eye(a.shape[0], dtype=a.dtype) + jnp.outer(v, v)) - (a + a.T) / 2
    return v, jnp.linalg.solve(system, moved - v * jnp.dot(v, moved))
