"""jax.lax: loops, branches, scans, solvers, and other functions that take computations."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import case, f32, f64, pred, s32, spd

case("lax.cond", pred(), f32(3), call=lambda f, p, x: f(p, lambda a: a * 2, lambda a: a - 1, x))
case("lax.switch", s32(), f32(3), call=lambda f, i, x: f(i, [lambda a: a, lambda a: a + 1, lambda a: a * a], x))
case(
    "lax.while_loop",
    f32(),
    call=lambda f, x: f(lambda s: abs(s * s - 2) > 1e-4, lambda s: 0.5 * (s + 2 / s), abs(x) + 1),
)
case(
    "lax.while_loop",
    s32(),
    label="tuple",
    call=lambda f, n: f(lambda s: s[0] < 9, lambda s: (s[0] + 1, s[1] * 2), (n, n)),
)
case("lax.fori_loop", f32(4), call=lambda f, x: f(0, 5, lambda i, s: s * 0.5 + i, x))
case(
    "lax.fori_loop",
    s32(low=0),
    f32(4),
    label="dynamic",
    call=lambda f, n, x: f(0, n, lambda i, s: s.at[i % 4].add(1.0), x),
)
case("lax.scan", f32(), f32(6), call=lambda f, c, xs: f(lambda c, x: (c * x + 1, c - x), c, xs))
case(
    "lax.scan",
    f32(3),
    f32(6, 3),
    label="reverse",
    call=lambda f, c, xs: f(lambda c, x: (c + x, c.sum()), c, xs, reverse=True),
)
case(
    "lax.scan",
    f32(2),
    f32(7, 2),
    label="unroll",
    call=lambda f, c, xs: f(lambda c, x: (c * 0.5 + x, c), c, xs, unroll=3),
)
case("lax.map", f32(4, 3), call=lambda f, x: f(lambda row: row / (1 + abs(row).sum()), x))
case("lax.map", f32(5, 3), label="batch", call=lambda f, x: f(lambda row: row - row.max(), x, batch_size=2))
case("lax.associative_scan", f32(9), call=lambda f, x: f(lambda a, b: a * b + a + b, x))
case(
    "lax.associative_scan",
    f32(6, 2),
    f32(6, 2),
    label="pair",
    call=lambda f, *x: f(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), x),
)
case("lax.composite", f32(3), call=lambda f, x: f(lambda a: a * a, name="hloom.square")(x))
case("lax.platform_dependent", f32(3), call=lambda f, x: f(x, cpu=lambda a: a + 1, default=lambda a: a - 1))
case(
    "lax.custom_root", f32(3, low=1), call=lambda f, x: f(
        lambda y: y * y - x, x, lambda g, y0: y0 * 0 + x**0.5, lambda g, y: y / g(y * 0 + 1.0)),
)  # fmt: skip
case(
    "lax.custom_linear_solve", spd(3, 3), f32(3),
    call=lambda f, a, b: f(lambda x: a @ x, b, lambda g, r: r / a.diagonal(), symmetric=True),
)  # fmt: skip


def conjugate_gradients(f: Any, a: Any, b: Any) -> Any:
    return f(lambda x: a @ x, b, maxiter=20)[0]


for name in ("cg", "gmres", "bicgstab"):
    case(f"scipy.sparse.linalg.{name}", spd(4, 4, dtype="float64"), f64(4), call=conjugate_gradients)
case(
    "scipy.optimize.minimize",
    f32(2),
    call=lambda f, x: f(lambda v: ((v - np.float32(1)) ** 2).sum(), x, method="BFGS").x,
)
