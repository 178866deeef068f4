"""Products of matrices, from 4 to 2048, in batches, with vectors, and with what follows them."""

from __future__ import annotations

import numpy as np

from .declare import Group, Row, floats, over, prange

GROUP = Group("products")
f4 = np.float32


def square(n):
    def factory(rng, n=n):
        return Row(
            f"{n}x{n} @ {n}x{n} f32",
            [floats(rng, n, n), floats(rng, n, n)],
            over(lambda np, a, b: a @ b),
            lambda a, b: a @ b,
            product_numba,
            lambda torch: torch.matmul,
            compiled=False,
            tolerance=1e-4 if n < 1000 else 1e-3,
        )

    GROUP.row(f"product-{n}", n=4)(factory)


def product_numba(a, b):
    return np.dot(a, b)


for size in (4, 16, 64, 256, 1024, 2048):
    square(size)


def batch(count, n):
    def factory(rng, count=count, n=n):
        return Row(
            f"{count} products {n}x{n} @ {n}x{n} f32",
            [floats(rng, count, n, n), floats(rng, count, n, n)],
            over(lambda np, a, b: a @ b),
            lambda a, b: a @ b,
            batch_numba,
            lambda torch: torch.matmul,
            compiled=False,
        )

    GROUP.row(f"products-{count}x{n}", count=3, n=4)(factory)


def batch_numba(a, b):
    out = np.zeros_like(a)
    for k in prange(a.shape[0]):
        for i in range(a.shape[1]):
            for l in range(a.shape[2]):  # noqa: E741
                for j in range(b.shape[2]):
                    out[k, i, j] += a[k, i, l] * b[k, l, j]
    return out


batch(5000, 4)
batch(500, 16)
batch(64, 64)


@GROUP.row("matrix-vector", n=8)
def matrix_vector(rng, n=4000):
    return Row(
        f"matrix {n}x{n} times a vector, f32",
        [floats(rng, n, n), floats(rng, n)],
        over(lambda np, a, x: a @ x),
        lambda a, x: a @ x,
        matrix_vector_numba,
        lambda torch: torch.mv,
        compiled=False,
        tolerance=1e-3,
    )


def matrix_vector_numba(a, x):
    out = np.empty(a.shape[0], a.dtype)
    for i in prange(a.shape[0]):
        total = f4(0)
        for j in range(a.shape[1]):
            total += a[i, j] * x[j]
        out[i] = total
    return out


@GROUP.row("vector-matrix", n=8)
def vector_matrix(rng, n=4000):
    return Row(
        f"a vector times a matrix {n}x{n}, f32",
        [floats(rng, n), floats(rng, n, n)],
        over(lambda np, x, a: x @ a),
        lambda x, a: x @ a,
        vector_matrix_numba,
        lambda torch: torch.matmul,
        compiled=False,
        tolerance=1e-3,
    )


def vector_matrix_numba(x, a):
    strips = 8
    width = (a.shape[1] + strips - 1) // strips
    out = np.zeros(a.shape[1], a.dtype)
    for s in prange(strips):
        for i in range(a.shape[0]):
            for j in range(s * width, min(a.shape[1], (s + 1) * width)):
                out[j] += x[i] * a[i, j]
    return out


@GROUP.row("dot", n=50)
def dot(rng, n=1_000_000):
    return Row(
        "dot of two vectors of 1M f32",
        [floats(rng, n) + f4(0.1), floats(rng, n) + f4(0.1)],
        over(lambda np, x, y: x @ y),
        lambda x, y: x @ y,
        dot_numba,
        lambda torch: torch.dot,
        compiled=False,
        tolerance=1e-3,
    )


def dot_numba(x, y):
    total = f4(0)
    for i in prange(x.size):
        total += x[i] * y[i]
    return total


@GROUP.row("dense-relu")
def dense(rng, n=128):
    def f(np, x, w, b):
        return np.maximum(x @ w + b, np.zeros_like(b))

    return Row(
        "relu(x @ w + b), 128x784 @ 784x512 f32",
        [floats(rng, n, 784), floats(rng, 784, 512), floats(rng, 512)],
        over(f),
        lambda *a: f(np, *a),
        dense_numba,
        lambda torch: lambda x, w, b: torch.relu(torch.addmm(b, x, w)),
    )


def dense_numba(x, w, b):
    out = np.dot(x, w)
    for i in range(out.shape[0]):  # no threads: BLAS's spin for a while
        for j in range(out.shape[1]):
            out[i, j] = max(out[i, j] + b[j], f4(0))
    return out


@GROUP.row("product-transposed", n=8)
def transposed(rng, n=512):
    return Row(
        f"a.T @ b + c, {n}x{n} f32",
        [floats(rng, n, n) for _ in range(3)],
        over(lambda np, a, b, c: a.T @ b + c),
        lambda a, b, c: a.T @ b + c,
        transposed_numba,
        lambda torch: lambda a, b, c: torch.addmm(c, a.T, b),
    )


def transposed_numba(a, b, c):
    out = np.dot(a.T, b)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += c[i, j]
    return out


@GROUP.row("product-columns", m=5, k=40)
def columns(rng, m=512, k=8192):
    return Row(
        f"a.T @ b, {k}x{m} f32: the gradient of a layer's weights",
        [floats(rng, k, m), floats(rng, k, m)],
        over(lambda np, a, b: a.T @ b),
        lambda a, b: a.T @ b,
        columns_numba,
        lambda torch: lambda a, b: a.T @ b,
        compiled=False,
        tolerance=1e-3,
    )


def columns_numba(a, b):
    return np.dot(a.T, b)


@GROUP.row("product-columns-bf16", m=5, k=40)
def columns_bf16(rng, m=1024, k=1024):
    return Row(
        f"a.T @ b, {k}x{m} bf16",
        [floats(rng, k, m), floats(rng, k, m)],
        over(lambda np, a, b: a.T @ b),
        torch=lambda torch: lambda a, b: a.T @ b,
        compiled=False,
        element="bfloat16",
        tolerance=2e-2,
    )


@GROUP.row("product-f64", n=8)
def doubles(rng, n=512):
    return Row(
        f"{n}x{n} @ {n}x{n} f64",
        [rng.standard_normal((n, n)), rng.standard_normal((n, n))],
        over(lambda np, a, b: a @ b),
        lambda a, b: a @ b,
        product_numba,
        lambda torch: torch.matmul,
        compiled=False,
        wide=True,
    )


@GROUP.row("product-bf16")
def bf16(rng, n=512):
    return Row(
        f"{n}x{n} @ {n}x{n} bf16",
        [floats(rng, n, n), floats(rng, n, n)],
        over(lambda np, a, b: a @ b),
        torch=lambda torch: torch.matmul,
        compiled=False,
        element="bfloat16",
        tolerance=2e-2,
    )


@GROUP.row("product-s8", n=8)
def int8(rng, n=512):
    arguments = [rng.integers(-128, 128, (n, n)).astype(np.int8) for _ in range(2)]
    return Row(
        f"{n}x{n} @ {n}x{n} s8 to s32",
        arguments,
        lambda jax, jnp: lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32),
        lambda a, b: a.astype(np.int32) @ b.astype(np.int32),
        int8_numba,
        lambda torch: torch._int_mm,
        compiled=False,
        tolerance=0,
    )


def int8_numba(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for i in prange(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += np.int32(a[i, k]) * np.int32(b[k, j])
    return out


@GROUP.row("outer-and-power", n=8)
def chain_of_products(rng, n=4000):
    return Row(
        "(a @ x) @ a, 4000x4000 f32",
        [floats(rng, n, n), floats(rng, n)],
        over(lambda np, a, x: (a @ x) @ a),
        lambda a, x: (a @ x) @ a,
        chain_numba,
        lambda torch: lambda a, x: (a @ x) @ a,
        compiled=False,
        tolerance=1e-3,
    )


def chain_numba(a, x):
    return vector_matrix_numba(matrix_vector_numba(a, x), a)


@GROUP.row("loop", n=8)
def in_a_loop(rng, n=64):
    steps = 100

    def by_hand(np, matmul):
        def f(h, w):
            for _ in range(steps):
                h = np.tanh(matmul(h, w))
            return h

        return f

    def text(jax, jnp):
        return lambda h, w: jax.lax.fori_loop(0, steps, lambda _, h: jnp.tanh(h @ w), h)

    return Row(
        "fori_loop, 100 steps of tanh(h @ w), 64x64",
        [floats(rng, n, n), floats(rng, n, n) / f4(np.sqrt(n))],
        text,
        by_hand(np, np.matmul),
        loop_numba,
        lambda torch: by_hand(torch, torch.matmul),
        compiled=False,
        tolerance=1e-3,
    )


def loop_numba(h, w):
    x, y = h.copy(), np.empty_like(h)
    for _ in range(100):
        np.dot(x, w, y)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                x[i, j] = np.tanh(y[i, j])
    return x
