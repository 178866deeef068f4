"""Chains of operations on elements: one pass over the memory, if they are fused."""

from __future__ import annotations

import math

import numpy as np

from .declare import Group, Row, floats, over, prange

GROUP = Group("chains")
f4 = np.float32


@GROUP.row("elementwise", n=50)
def elementwise(rng, n=1_000_000):
    def f(np, x):
        y = np.tanh(x) * 2 + np.exp(-x * x)
        return y / (1 + np.abs(y))

    return Row(
        "tanh(x)*2 + exp(-x*x), y/(1+abs(y)), 1M f32",
        [floats(rng, n)],
        over(f),
        lambda x: f(np, x),
        elementwise_numba,
        lambda torch: lambda x: f(torch, x),
    )


def elementwise_numba(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        y = np.tanh(x[i]) * f4(2) + np.exp(-x[i] * x[i])
        out[i] = y / (f4(1) + abs(y))
    return out


@GROUP.row("chain-small", n=50)
def small(rng, n=4096):
    def f(np, x, y):
        return np.sqrt(x * x + y * y) * np.exp(-x)

    return Row(
        "sqrt(x*x + y*y) * exp(-x), 4,096 f32",
        [floats(rng, n), floats(rng, n)],
        over(f),
        lambda x, y: f(np, x, y),
        small_numba,
        lambda torch: lambda x, y: f(torch, x, y),
    )


def small_numba(x, y):
    out = np.empty_like(x)
    for i in range(x.size):  # too little for threads
        out[i] = np.sqrt(x[i] * x[i] + y[i] * y[i]) * np.exp(-x[i])
    return out


@GROUP.row("gelu", n=50)
def gelu(rng, n=1_000_000):
    def f(np, x):
        return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    return Row(
        "GELU by tanh, 1M f32",
        [floats(rng, n)],
        over(f),
        lambda x: f(np, x),
        gelu_numba,
        lambda torch: lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    )


def gelu_numba(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        out[i] = f4(0.5) * x[i] * (f4(1) + np.tanh(f4(0.7978845608) * (x[i] + f4(0.044715) * x[i] * x[i] * x[i])))
    return out


@GROUP.row("polynomial", n=50)
def polynomial(rng, n=4_000_000):
    def f(np, x):
        y = 0.3 * x + 0.2
        for c in (0.5, -0.4, 0.3, -0.2, 0.1, 0.7, -0.6):
            y = y * x + c
        return y

    return Row(
        "polynomial of degree 8, 4M f32",
        [rng.uniform(-1, 1, n).astype(f4)],
        over(f),
        lambda x: f(np, x),
        polynomial_numba,
        lambda torch: lambda x: f(torch, x),
    )


def polynomial_numba(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        t = x[i]
        y = f4(0.3) * t + f4(0.2)
        y = y * t + f4(0.5)
        y = y * t - f4(0.4)
        y = y * t + f4(0.3)
        y = y * t - f4(0.2)
        y = y * t + f4(0.1)
        y = y * t + f4(0.7)
        out[i] = y * t - f4(0.6)
    return out


@GROUP.row("softplus", n=50)
def softplus(rng, n=1_000_000):
    def f(np, x, y):
        return np.log1p(np.exp(-np.abs(x))) + np.where(x > 0, x, 0) - x * y

    return Row(
        "logistic loss of each element, 1M f32",
        [floats(rng, n), (rng.random(n) < 0.5).astype(f4)],
        over(f),
        lambda x, y: f(np, x, y),
        softplus_numba,
        lambda torch: lambda x, y: f(torch, x, y),
    )


def softplus_numba(x, y):
    out = np.empty_like(x)
    for i in prange(x.size):
        out[i] = np.log1p(np.exp(-abs(x[i]))) + max(x[i], f4(0)) - x[i] * y[i]
    return out


@GROUP.row("black-scholes", n=50)
def black_scholes(rng, n=1_000_000):
    def price(np, erf, s, k, t):
        root = 0.3 * np.sqrt(t)
        d1 = (np.log(s / k) + (0.02 + 0.045) * t) / root
        d2 = d1 - root
        below = lambda d: 0.5 * (1 + erf(d * 0.70710678))  # noqa: E731
        return s * below(d1) - k * np.exp(-0.02 * t) * below(d2)

    arguments = [rng.uniform(low, high, n).astype(f4) for low, high in ((50, 150), (80, 120), (0.2, 2))]
    return Row(
        "Black-Scholes price, 1M f32",
        arguments,
        lambda jax, jnp: lambda s, k, t: price(jnp, jax.lax.erf, s, k, t),
        numba=black_scholes_numba,
        torch=lambda torch: lambda s, k, t: price(torch, torch.erf, s, k, t),
        tolerance=2e-4,
    )


def black_scholes_numba(s, k, t):
    out = np.empty_like(s)
    for i in prange(s.size):
        root = f4(0.3) * np.sqrt(t[i])
        d1 = (np.log(s[i] / k[i]) + f4(0.065) * t[i]) / root
        d2 = d1 - root
        below1 = f4(0.5) * (f4(1) + f4(math.erf(d1 * f4(0.70710678))))
        below2 = f4(0.5) * (f4(1) + f4(math.erf(d2 * f4(0.70710678))))
        out[i] = s[i] * below1 - k[i] * np.exp(f4(-0.02) * t[i]) * below2
    return out


@GROUP.row("normal-cdf", n=50)
def normal_cdf(rng, n=1_000_000):
    return Row(
        "distribution function of the normal distribution, 1M f32",
        [floats(rng, n)],
        lambda jax, jnp: jax.scipy.stats.norm.cdf,
        numba=normal_cdf_numba,
        torch=lambda torch: torch.special.ndtr,
    )


def normal_cdf_numba(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        out[i] = f4(0.5 * math.erfc(-0.7071067811865476 * x[i]))
    return out


@GROUP.row("adam-update", n=50)
def adam(rng, n=1_000_000):
    def f(np, p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 0.001 * m / (np.sqrt(v) + 1e-8), m, v

    arguments = [floats(rng, n), floats(rng, n), floats(rng, n), np.abs(floats(rng, n))]
    return Row(
        "Adam's update, 1M parameters",
        arguments,
        over(f),
        lambda *a: f(np, *a),
        adam_numba,
        lambda torch: lambda *a: f(torch, *a),
    )


def adam_numba(p, g, m, v):
    new_p, new_m, new_v = np.empty_like(p), np.empty_like(p), np.empty_like(p)
    for i in prange(p.size):
        new_m[i] = f4(0.9) * m[i] + f4(0.1) * g[i]
        new_v[i] = f4(0.999) * v[i] + f4(0.001) * g[i] * g[i]
        new_p[i] = p[i] - f4(0.001) * new_m[i] / (np.sqrt(new_v[i]) + f4(1e-8))
    return new_p, new_m, new_v


@GROUP.row("broadcast", n=8)
def broadcast(rng, n=2048):
    def f(np, x, y, z):
        return np.where(z > 0, x[:, None] * y[None, :], x[:, None] + y[None, :]) + z

    return Row(
        "where(z > 0, outer product, outer sum) + z, 2048x2048 f32",
        [floats(rng, n), floats(rng, n), floats(rng, n, n)],
        over(f),
        lambda x, y, z: f(np, x, y, z),
        broadcast_numba,
        lambda torch: lambda x, y, z: f(torch, x, y, z),
    )


def broadcast_numba(x, y, z):
    out = np.empty_like(z)
    for i in prange(z.shape[0]):
        for j in range(z.shape[1]):
            out[i, j] = (x[i] * y[j] if z[i, j] > 0 else x[i] + y[j]) + z[i, j]
    return out


@GROUP.row("hash", n=50)
def hash32(rng, n=1_000_000):
    def f(np, x):
        x = (x ^ (x >> 15)) * 739982445
        x = (x ^ (x >> 12)) * 695872825
        return x ^ (x >> 15)

    return Row(
        "mixing of bits, 1M s32",
        [rng.integers(0, 2**31 - 1, n).astype(np.int32)],
        over(f),
        lambda x: f(np, x),
        hash_numba,
        lambda torch: lambda x: f(torch, x),
    )


def hash_numba(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        a = np.int32((x[i] ^ (x[i] >> 15)) * np.int32(739982445))
        a = np.int32((a ^ (a >> 12)) * np.int32(695872825))
        out[i] = a ^ (a >> 15)
    return out


@GROUP.row("chain-bf16")
def bf16(rng, n=1_000_000):
    def f(np, x, y):
        return np.tanh(x * y + x) * y - x

    return Row(
        "tanh(x*y + x) * y - x, 1M bf16",
        [floats(rng, n), floats(rng, n)],
        over(f),
        torch=lambda torch: lambda x, y: f(torch, x, y),
        element="bfloat16",
        tolerance=4e-2,
        equal=0.99,  # IREE keeps f32 from one operation to the next
    )


@GROUP.row("chain-bf16-in-f32")
def bf16_in_f32(rng, n=1_000_000):
    def f(np, x, y):
        a, b = x.astype(np.float32), y.astype(np.float32)
        return (np.tanh(a * b + a) * b - a).astype(x.dtype)

    def in_torch(torch):
        def run(x, y):
            a, b = x.float(), y.float()
            return (torch.tanh(a * b + a) * b - a).to(x.dtype)

        return run

    return Row(
        "the same in f32, and rounded at the end",
        [floats(rng, n), floats(rng, n)],
        over(f),
        torch=in_torch,
        element="bfloat16",
        tolerance=4e-2,
        equal=0.99,
    )


@GROUP.row("chain-complex", n=50)
def complex64(rng, n=500_000):
    def f(np, z, w):
        return (z * w + z) / (1 + w * np.conj(w)) - z * z

    z, w = ((floats(rng, n) + 1j * floats(rng, n)).astype(np.complex64) for _ in range(2))
    return Row(
        "(z*w + z) / (1 + abs(w)^2) - z*z, 500k c64",
        [z, w],
        over(f),
        lambda z, w: f(np, z, w),
        complex_numba,
        lambda torch: lambda z, w: f(torch, z, w),
        compiled=False,
    )


def complex_numba(z, w):
    out = np.empty_like(z)
    for i in prange(z.size):
        square = w[i].real * w[i].real + w[i].imag * w[i].imag
        out[i] = (z[i] * w[i] + z[i]) / (f4(1) + square) - z[i] * z[i]
    return out


@GROUP.row("chain-f64", n=50)
def doubles(rng, n=500_000):
    def f(np, x, y):
        return np.exp(-0.5 * (x - y) * (x - y)) / np.sqrt(1 + x * x)

    arguments = [rng.standard_normal(n), rng.standard_normal(n)]

    return Row(
        "exp(-(x-y)^2/2) / sqrt(1 + x*x), 500k f64",
        arguments,
        over(f),
        lambda x, y: f(np, x, y),
        doubles_numba,
        lambda torch: lambda x, y: f(torch, x, y),
        wide=True,
    )


def doubles_numba(x, y):
    out = np.empty_like(x)
    for i in prange(x.size):
        out[i] = np.exp(-0.5 * (x[i] - y[i]) * (x[i] - y[i])) / np.sqrt(1 + x[i] * x[i])
    return out
