"""Stencils, as slices and as rolls, and the movement of whole arrays."""

from __future__ import annotations

import numpy as np

from .declare import Gradient, Group, Row, floats, over, prange

STENCILS = Group("stencils")
MOVEMENT = Group("movement")
f4 = np.float32


@STENCILS.row("five-points", n=8)
def five_points(rng, n=2048):
    def f(np, u):
        return u[1:-1, 1:-1] + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])

    return Row(
        "five points, 2048x2048 f32",
        [floats(rng, n, n)],
        over(f),
        lambda u: f(np, u),
        five_points_numba,
        lambda torch: lambda u: f(torch, u),
    )


def five_points_numba(u):
    n, m = u.shape
    out = np.empty((n - 2, m - 2), u.dtype)
    for i in prange(n - 2):
        for j in range(m - 2):
            around = u[i + 2, j + 1] + u[i, j + 1] + u[i + 1, j + 2] + u[i + 1, j]
            out[i, j] = u[i + 1, j + 1] + f4(0.2) * (around - f4(4) * u[i + 1, j + 1])
    return out


@STENCILS.row("seven-points", n=6)
def seven_points(rng, n=128):
    def f(np, u):
        c = u[1:-1, 1:-1, 1:-1]
        x = u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1]
        y = u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
        z = u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2]
        return c + 0.1 * (x + y + z - 6 * c)

    return Row(
        "seven points, 128x128x128 f32",
        [floats(rng, n, n, n)],
        over(f),
        lambda u: f(np, u),
        seven_points_numba,
        lambda torch: lambda u: f(torch, u),
    )


def seven_points_numba(u):
    n, m, l = u.shape  # noqa: E741
    out = np.empty((n - 2, m - 2, l - 2), u.dtype)
    for i in prange(n - 2):
        for j in range(m - 2):
            for k in range(l - 2):
                x = u[i + 2, j + 1, k + 1] + u[i, j + 1, k + 1]
                y = u[i + 1, j + 2, k + 1] + u[i + 1, j, k + 1]
                z = u[i + 1, j + 1, k + 2] + u[i + 1, j + 1, k]
                c = u[i + 1, j + 1, k + 1]
                out[i, j, k] = c + f4(0.1) * (x + y + z - f4(6) * c)
    return out


@STENCILS.row("wave", n=8)
def wave(rng, n=1024):
    def f(np, now, before):
        around = np.roll(now, 1, 0) + np.roll(now, -1, 0) + np.roll(now, 1, 1) + np.roll(now, -1, 1)
        return 2 * now - before + 0.1 * (around - 4 * now)

    return Row(
        "wave equation with rolls, 1024x1024 f32",
        [floats(rng, n, n), floats(rng, n, n)],
        over(f),
        lambda a, b: f(np, a, b),
        wave_numba,
        lambda torch: lambda a, b: f(torch, a, b),
    )


def wave_numba(now, before):
    n, m = now.shape
    out = np.empty_like(now)
    for i in prange(n):
        above, below = i - 1 if i else n - 1, i + 1 if i + 1 < n else 0
        for j in range(m):
            left, right = j - 1 if j else m - 1, j + 1 if j + 1 < m else 0
            around = now[above, j] + now[below, j] + now[i, left] + now[i, right]
            out[i, j] = f4(2) * now[i, j] - before[i, j] + f4(0.1) * (around - f4(4) * now[i, j])
    return out


@STENCILS.row("upwind", n=20)
def upwind(rng, n=1_000_000):
    def f(np, u, v):
        left, right = u[1:-1] - u[:-2], u[2:] - u[1:-1]
        return u[1:-1] - 0.1 * v[1:-1] * np.where(v[1:-1] > 0, left, right)

    return Row(
        "upwind step, 1M f32",
        [floats(rng, n), floats(rng, n)],
        over(f),
        lambda u, v: f(np, u, v),
        upwind_numba,
        lambda torch: lambda u, v: f(torch, u, v),
    )


def upwind_numba(u, v):
    out = np.empty(u.size - 2, u.dtype)
    for i in prange(u.size - 2):
        slope = u[i + 1] - u[i] if v[i + 1] > 0 else u[i + 2] - u[i + 1]
        out[i] = u[i + 1] - f4(0.1) * v[i + 1] * slope
    return out


@STENCILS.row("life", n=8)
def life(rng, n=1024):
    def f(np, a):
        p = np.pad(a, 1)
        total = (
            p[:-2, :-2] + p[:-2, 1:-1] + p[:-2, 2:] + p[1:-1, :-2] + p[1:-1, 2:] + p[2:, :-2] + p[2:, 1:-1] + p[2:, 2:]
        )
        return ((total == 3) | ((total == 2) & (a == 1))) * np.ones_like(a)

    def in_torch(torch):
        class Names:
            pad = staticmethod(lambda a, by: torch.nn.functional.pad(a, (by,) * 4))
            ones_like = staticmethod(torch.ones_like)

        return lambda a: f(Names, a)

    return Row(
        "game of life with a border, 1024x1024 s32",
        [rng.integers(0, 2, (n, n)).astype(np.int32)],
        over(f),
        lambda a: f(np, a),
        life_numba,
        in_torch,
        tolerance=0,
    )


def life_numba(a):
    n, m = a.shape
    p = np.zeros((n + 2, m + 2), a.dtype)
    p[1:-1, 1:-1] = a
    out = np.empty_like(a)
    for i in prange(n):
        for j in range(m):
            upper = p[i, j] + p[i, j + 1] + p[i, j + 2]
            total = upper + p[i + 1, j] + p[i + 1, j + 2] + p[i + 2, j] + p[i + 2, j + 1] + p[i + 2, j + 2]
            out[i, j] = total == 3 or (total == 2 and p[i + 1, j + 1] == 1)
    return out


@STENCILS.row("shallow-water", n=8)
def shallow_water(rng, n=512):
    def f(np, h, u, v):
        def ddx(a):
            return np.roll(a, -1, 1) - np.roll(a, 1, 1)

        def ddy(a):
            return np.roll(a, -1, 0) - np.roll(a, 1, 0)

        return (
            h - 0.01 * (ddx(h * u) + ddy(h * v)),
            u - 0.02 * ddx(h) - 0.01 * u * ddx(u),
            v - 0.02 * ddy(h) - 0.01 * v * ddy(v),
        )

    return Row(
        "shallow water, three fields 512x512 f32",
        [floats(rng, n, n) for _ in range(3)],
        over(f),
        lambda *a: f(np, *a),
        shallow_water_numba,
        lambda torch: lambda *a: f(torch, *a),
    )


def shallow_water_numba(h, u, v):
    n, m = h.shape
    new_h, new_u, new_v = np.empty_like(h), np.empty_like(h), np.empty_like(h)
    for i in prange(n):
        a, b = i - 1 if i else n - 1, i + 1 if i + 1 < n else 0
        for j in range(m):
            l, r = j - 1 if j else m - 1, j + 1 if j + 1 < m else 0  # noqa: E741
            flow = h[i, r] * u[i, r] - h[i, l] * u[i, l] + h[b, j] * v[b, j] - h[a, j] * v[a, j]
            new_h[i, j] = h[i, j] - f4(0.01) * flow
            new_u[i, j] = u[i, j] - f4(0.02) * (h[i, r] - h[i, l]) - f4(0.01) * u[i, j] * (u[i, r] - u[i, l])
            new_v[i, j] = v[i, j] - f4(0.02) * (h[b, j] - h[a, j]) - f4(0.01) * v[i, j] * (v[b, j] - v[a, j])
    return new_h, new_u, new_v


@MOVEMENT.row("transpose", n=8)
def transpose(rng, n=2048):
    return Row(
        "transpose of 2048x2048 f32",
        [floats(rng, n, n)],
        over(lambda np, x: x.T),
        lambda x: x.T.copy(),
        transpose_numba,
        lambda torch: lambda x: x.T.clone(memory_format=torch.contiguous_format),
    )


def transpose_numba(x):
    n, m = x.shape
    side = 32
    out = np.empty((m, n), x.dtype)
    for block in prange((m + side - 1) // side):
        for i in range(0, n, side):
            for j in range(block * side, min(m, (block + 1) * side)):
                for k in range(i, min(n, i + side)):
                    out[j, k] = x[k, j]
    return out


@MOVEMENT.row("transpose-add", n=8)
def transpose_add(rng, n=2048):
    return Row(
        "x.T + y, 2048x2048 f32",
        [floats(rng, n, n), floats(rng, n, n)],
        over(lambda np, x, y: x.T + y),
        lambda x, y: x.T + y,
        transpose_add_numba,
        lambda torch: lambda x, y: x.T + y,
    )


def transpose_add_numba(x, y):
    n, m = y.shape
    side = 32
    out = np.empty_like(y)
    for block in prange((n + side - 1) // side):
        for j in range(0, m, side):
            for i in range(block * side, min(n, (block + 1) * side)):
                for k in range(j, min(m, j + side)):
                    out[i, k] = x[k, i] + y[i, k]
    return out


@MOVEMENT.row("channels-last", n=2)
def channels_last(rng, n=32):
    return Row(
        "channels first to last, 32x64x28x28 f32",
        [floats(rng, n, 64, 28, 28)],
        over(lambda np, x: np.transpose(x, (0, 2, 3, 1))),
        lambda x: np.transpose(x, (0, 2, 3, 1)).copy(),
        channels_last_numba,
        lambda torch: lambda x: x.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format),
    )


def channels_last_numba(x):
    images, channels, height, width = x.shape
    out = np.empty((images, height, width, channels), x.dtype)
    for n in prange(images):
        for i in range(height):
            for j in range(width):
                for c in range(channels):
                    out[n, i, j, c] = x[n, c, i, j]
    return out


@MOVEMENT.row("concatenate", n=8)
def concatenate(rng, n=1024):
    return Row(
        "concatenate three 1024x1024 f32, axis 1",
        [floats(rng, n, n) for _ in range(3)],
        over(lambda np, *a: np.concatenate(a, axis=1)),
        lambda *a: np.concatenate(a, axis=1),
        concatenate_numba,
        lambda torch: lambda *a: torch.cat(a, 1),
    )


def concatenate_numba(a, b, c):
    n, m = a.shape
    out = np.empty((n, 3 * m), a.dtype)
    for i in prange(n):
        for j in range(m):
            out[i, j] = a[i, j]
        for j in range(m):
            out[i, m + j] = b[i, j]
        for j in range(m):
            out[i, 2 * m + j] = c[i, j]
    return out


@MOVEMENT.row("pad", n=2)
def pad(rng, n=32):
    def f(np, x):
        return np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))

    return Row(
        "pad by 1 with zeros, 32x64x28x28 f32",
        [floats(rng, n, 64, 28, 28)],
        over(f),
        lambda x: f(np, x),
        pad_numba,
        lambda torch: lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1)),
    )


def pad_numba(x):
    images, channels, height, width = x.shape
    out = np.zeros((images, channels, height + 2, width + 2), x.dtype)
    for n in prange(images):
        for c in range(channels):
            for i in range(height):
                for j in range(width):
                    out[n, c, i + 1, j + 1] = x[n, c, i, j]
    return out


@MOVEMENT.row("vmap-columns", n=8)
def over_columns(rng, n=1024):
    def f(np, v):
        return np.concatenate([v[1:] - v[:-1], v[:1]])

    return Row(
        f"differences in each column of {n}x{n} f32, by vmap",
        [floats(rng, n, n)],
        lambda jax, jnp: jax.vmap(lambda v: f(jnp, v), in_axes=1, out_axes=1),
        lambda x: f(np, x),
        over_columns_numba,
        lambda torch: torch.vmap(lambda v: torch.cat([v[1:] - v[:-1], v[:1]]), in_dims=1, out_dims=1),
    )


def over_columns_numba(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        if i < x.shape[0] - 1:
            for j in range(x.shape[1]):
                out[i, j] = x[i + 1, j] - x[i, j]
        else:
            for j in range(x.shape[1]):
                out[i, j] = x[0, j]
    return out


@MOVEMENT.row("grad-neighbours", n=50)
def grad_neighbours(rng, n=1_000_000):
    return Row(
        "gradient of the sum of x[::2] * x[1::2], 1M f32",
        [floats(rng, n)],
        lambda jax, jnp: jax.grad(lambda x: jnp.sum(x[::2] * x[1::2])),
        numba=grad_neighbours_numba,
        torch=lambda torch: Gradient(lambda x: (x[::2] * x[1::2]).sum()),
    )


def grad_neighbours_numba(x):
    out = np.empty_like(x)
    for i in prange(x.size // 2):
        out[2 * i] = x[2 * i + 1]
        out[2 * i + 1] = x[2 * i]
    return out


@MOVEMENT.row("reverse", n=8)
def reverse(rng, n=2048):
    return Row(
        "2048x2048 f32 with its columns in reverse order",
        [floats(rng, n, n)],
        over(lambda np, x: x[:, ::-1]),
        lambda x: x[:, ::-1].copy(),
        reverse_numba,
        lambda torch: lambda x: torch.flip(x, (1,)),
    )


def reverse_numba(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, x.shape[1] - 1 - j]
    return out


@MOVEMENT.row("interleave", n=20)
def interleave(rng, n=1_000_000):
    def f(np, x, y):
        return np.stack([x, y], 1).reshape(-1)

    return Row(
        "two arrays of 1M f32 interleaved",
        [floats(rng, n), floats(rng, n)],
        over(f),
        lambda x, y: f(np, x, y),
        interleave_numba,
        lambda torch: lambda x, y: f(torch, x, y),
    )


def interleave_numba(x, y):
    out = np.empty(2 * x.size, x.dtype)
    for i in prange(x.size):
        out[2 * i] = x[i]
        out[2 * i + 1] = y[i]
    return out


@MOVEMENT.row("slice", n=8)
def strided(rng, n=2048):
    return Row(
        "every second row and column of 2048x2048 f32",
        [floats(rng, n, n)],
        over(lambda np, x: x[::2, ::2]),
        lambda x: x[::2, ::2].copy(),
        strided_numba,
        lambda torch: lambda x: x[::2, ::2].clone(memory_format=torch.contiguous_format),
    )


def strided_numba(x):
    out = np.empty(((x.shape[0] + 1) // 2, (x.shape[1] + 1) // 2), x.dtype)
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[2 * i, 2 * j]
    return out


@MOVEMENT.row("repeat", n=8)
def repeat(rng, n=512):
    def f(np, x):
        return np.repeat(np.repeat(x, 4, 0), 4, 1)

    return Row(
        "each element of 512x512 f32 becomes 4x4",
        [floats(rng, n, n)],
        over(f),
        lambda x: f(np, x),
        repeat_numba,
        lambda torch: lambda x: x.repeat_interleave(4, 0).repeat_interleave(4, 1),
    )


def repeat_numba(x):
    n, m = x.shape
    out = np.empty((4 * n, 4 * m), x.dtype)
    for i in prange(4 * n):
        for j in range(m):
            for k in range(4):
                out[i, 4 * j + k] = x[i // 4, j]
    return out
