"""Normalisations, losses and attention, and their gradients."""

from __future__ import annotations

import numpy as np

from .declare import Gradient, Group, Row, floats, over, prange

GROUP = Group("normalisations")
f4 = np.float32


@GROUP.row("softmax", n=8)
def softmax(rng, n=1024):
    return _softmax("softmax of 1024x1024 f32 rows", floats(rng, n, n))


@GROUP.row("softmax-masked", n=8)
def softmax_masked(rng, n=1024):
    x = floats(rng, n, n)
    x[rng.random((n, n)) < 0.5] = -np.inf
    return _softmax("softmax of 1024x1024 f32 rows, half of each -inf", x)


def _softmax(title, x):
    def in_numpy(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return Row(
        title,
        [x],
        lambda jax, jnp: lambda x: jax.nn.softmax(x, axis=1),
        in_numpy,
        softmax_numba,
        lambda torch: lambda x: torch.softmax(x, 1),
    )


def softmax_numba(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        highest = x[i, 0]
        for j in range(x.shape[1]):
            highest = max(highest, x[i, j])
        total = f4(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - highest)
            total += out[i, j]
        scale = f4(1) / total
        for j in range(x.shape[1]):
            out[i, j] *= scale
    return out


@GROUP.row("grad-softmax", n=8)
def grad_softmax(rng, n=1024):
    def text(jax, jnp):
        return lambda x, w: jax.grad(lambda x: (jax.nn.softmax(x, axis=1) * w).sum())(x)

    return Row(
        "gradient of a softmax, 1024x1024 f32 rows",
        [floats(rng, n, n), floats(rng, n, n)],
        text,
        numba=grad_softmax_numba,
        torch=lambda torch: Gradient(lambda x, w: (torch.softmax(x, 1) * w).sum()),
    )


def grad_softmax_numba(x, w):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        highest = x[i, 0]
        for j in range(x.shape[1]):
            highest = max(highest, x[i, j])
        total, along = f4(0), f4(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - highest)
            total += out[i, j]
            along += out[i, j] * w[i, j]
        along /= total
        scale = f4(1) / total
        for j in range(x.shape[1]):
            out[i, j] *= scale * (w[i, j] - along)
    return out


@GROUP.row("cross-entropy", n=8)
def cross_entropy(rng, n=1024):
    labels = rng.integers(0, n, n).astype(np.int32)

    def text(jax, jnp):
        def loss(x, labels):
            chosen = jnp.take_along_axis(jax.nn.log_softmax(x, axis=1), labels[:, None], axis=1)
            return -chosen.mean()

        return jax.value_and_grad(loss)

    return Row(
        "cross entropy and its gradient, 1024x1024 f32",
        [floats(rng, n, n), labels],
        text,
        numba=cross_entropy_numba,
        torch=lambda torch: Gradient(lambda x, y: torch.nn.functional.cross_entropy(x, y.long()), value=True),
    )


def cross_entropy_numba(x, labels):
    out, losses = np.empty_like(x), np.empty(x.shape[0], f4)
    mean = f4(1) / f4(x.shape[0])
    for i in prange(x.shape[0]):
        highest = x[i, 0]
        for j in range(x.shape[1]):
            highest = max(highest, x[i, j])
        total = f4(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - highest)
            total += out[i, j]
        losses[i] = np.log(total) + highest - x[i, labels[i]]
        scale = mean / total
        for j in range(x.shape[1]):
            out[i, j] *= scale
        out[i, labels[i]] -= mean
    return losses.sum() * mean, out


def layer_norm_of(np, x, g, b):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * g + b


@GROUP.row("layer-norm", n=8)
def layer_norm(rng, n=1024):
    return Row(
        "layer norm of 1024x1024 f32",
        [floats(rng, n, n), floats(rng, n), floats(rng, n)],
        over(layer_norm_of),
        lambda *a: layer_norm_of(np, *a),
        layer_norm_numba,
        lambda torch: lambda x, g, b: torch.nn.functional.layer_norm(x, (x.shape[1],), g, b),
    )


def layer_norm_numba(x, g, b):
    out = np.empty_like(x)
    size = f4(x.shape[1])
    for i in prange(x.shape[0]):
        total = f4(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / size
        square = f4(0)
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        scale = f4(1) / np.sqrt(square / size + f4(1e-5))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * scale * g[j] + b[j]
    return out


@GROUP.row("grad-layer-norm", n=16)
def grad_layer_norm(rng, n=1024):
    def text(jax, jnp):
        return lambda x, g, b, w: jax.grad(lambda *a: (layer_norm_of(jnp, *a) * w).sum(), (0, 1, 2))(x, g, b)

    def in_torch(torch):
        norm = torch.nn.functional.layer_norm
        return Gradient(lambda x, g, b, w: (norm(x, (x.shape[1],), g, b) * w).sum(), (0, 1, 2))

    arguments = [floats(rng, n, n), floats(rng, n), floats(rng, n), floats(rng, n, n)]
    return Row("gradients of a layer norm, 1024x1024 f32", arguments, text, None, grad_layer_norm_numba, in_torch)


def grad_layer_norm_numba(x, g, b, w):
    rows, size = x.shape
    pieces = 8
    height = (rows + pieces - 1) // pieces
    dx = np.empty_like(x)
    dg, db = np.zeros((pieces, size), f4), np.zeros((pieces, size), f4)
    over_size = f4(1) / f4(size)
    for s in prange(pieces):
        for i in range(s * height, min(rows, (s + 1) * height)):
            total = f4(0)
            for j in range(size):
                total += x[i, j]
            mean = total * over_size
            square = f4(0)
            for j in range(size):
                square += (x[i, j] - mean) * (x[i, j] - mean)
            scale = f4(1) / np.sqrt(square * over_size + f4(1e-5))
            first, second = f4(0), f4(0)
            for j in range(size):
                normal = (x[i, j] - mean) * scale
                slope = w[i, j] * g[j]
                dg[s, j] += w[i, j] * normal
                db[s, j] += w[i, j]
                first += slope
                second += slope * normal
            first *= over_size
            second *= over_size
            for j in range(size):
                dx[i, j] = scale * (w[i, j] * g[j] - first - (x[i, j] - mean) * scale * second)
    return dx, dg.sum(0), db.sum(0)


@GROUP.row("rms-norm", n=8)
def rms_norm(rng, n=1024):
    def f(np, x, g):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g

    return Row(
        "RMS norm of 1024x1024 f32",
        [floats(rng, n, n), floats(rng, n)],
        over(f),
        lambda x, g: f(np, x, g),
        rms_norm_numba,
        lambda torch: lambda x, g: torch.nn.functional.rms_norm(x, (x.shape[1],), g, 1e-6),
    )


def rms_norm_numba(x, g):
    out = np.empty_like(x)
    size = f4(x.shape[1])
    for i in prange(x.shape[0]):
        square = f4(0)
        for j in range(x.shape[1]):
            square += x[i, j] * x[i, j]
        scale = f4(1) / np.sqrt(square / size + f4(1e-6))
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * scale * g[j]
    return out


def batch_norm_of(np, x, g, b):
    mean = x.mean((0, 2, 3), keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean((0, 2, 3), keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * g[:, None, None] + b[:, None, None]


@GROUP.row("batch-norm", n=2)
def batch_norm(rng, n=32):
    channels, side = 2 * n, 28 if n > 8 else 5

    def text(jax, jnp):
        return lambda x, g, b: jax.nn.relu(batch_norm_of(jnp, x, g, b))

    def in_torch(torch):
        norm = torch.nn.functional.batch_norm
        return lambda x, g, b: torch.relu(norm(x, None, None, g, b, training=True))

    return Row(
        "batch norm in training and relu, 32x64x28x28 f32",
        [floats(rng, n, channels, side, side), floats(rng, channels), floats(rng, channels)],
        text,
        lambda *a: np.maximum(batch_norm_of(np, *a), 0),
        batch_norm_numba,
        in_torch,
    )


def batch_norm_numba(x, g, b):
    out = np.empty_like(x)
    images, channels, height, width = x.shape
    size = f4(images * height * width)
    for c in prange(channels):
        total = f4(0)
        for n in range(images):
            for i in range(height):
                for j in range(width):
                    total += x[n, c, i, j]
        mean = total / size
        square = f4(0)
        for n in range(images):
            for i in range(height):
                for j in range(width):
                    square += (x[n, c, i, j] - mean) * (x[n, c, i, j] - mean)
        scale = g[c] / np.sqrt(square / size + f4(1e-5))
        for n in range(images):
            for i in range(height):
                for j in range(width):
                    out[n, c, i, j] = max((x[n, c, i, j] - mean) * scale + b[c], f4(0))
    return out


@GROUP.row("grad-batch-norm")
def grad_batch_norm(rng, n=32):
    channels, side = 2 * n, 28

    def text(jax, jnp):
        def loss(x, g, b, w):
            return (jax.nn.relu(batch_norm_of(jnp, x, g, b)) * w).sum()

        return jax.grad(loss, (0, 1, 2))

    def in_torch(torch):
        norm = torch.nn.functional.batch_norm
        return Gradient(lambda x, g, b, w: (torch.relu(norm(x, None, None, g, b, training=True)) * w).sum(), (0, 1, 2))

    x, w = floats(rng, n, channels, side, side), floats(rng, n, channels, side, side)
    return Row(
        "gradients of batch norm and relu, 32x64x28x28 f32",
        [x, floats(rng, channels), floats(rng, channels), w],
        text,
        torch=in_torch,
        tolerance=1e-3,
    )


def attention_of(jax, jnp, q, k, v, causal):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(f4)
    if causal:
        n = q.shape[2]
        scores = jnp.where(jnp.arange(n)[:, None] >= jnp.arange(n)[None, :], scores, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)


def attention(causal, gradient):
    def factory(rng, n=256):
        def text(jax, jnp):
            if not gradient:
                return lambda q, k, v: attention_of(jax, jnp, q, k, v, causal)
            return lambda q, k, v, w: jax.grad(
                lambda q, k, v: (attention_of(jax, jnp, q, k, v, causal) * w).sum(), (0, 1, 2)
            )(q, k, v)

        def in_numpy(q, k, v):
            scores = q @ k.swapaxes(2, 3) / f4(np.sqrt(q.shape[-1]))
            scores -= scores.max(-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(-1, keepdims=True)
            return scores @ v

        def in_torch(torch):
            whole = torch.nn.functional.scaled_dot_product_attention
            if not gradient:
                return lambda q, k, v: whole(q, k, v, is_causal=causal)
            return Gradient(lambda q, k, v, w: (whole(q, k, v, is_causal=causal) * w).sum(), (0, 1, 2))

        arguments = [floats(rng, 4, 8, n, 64) for _ in range(3 + gradient)]
        what = f"{'causal ' * causal}attention, 4x8x{n}x64 f32"
        return Row(
            f"gradients of {what}" if gradient else what,
            arguments,
            text,
            None if gradient or causal else in_numpy,
            torch=in_torch,
            tolerance=1e-3,
        )

    return factory


GROUP.row("attention")(attention(causal=False, gradient=False))
GROUP.row("attention-causal")(attention(causal=True, gradient=False))
GROUP.row("grad-attention")(attention(causal=False, gradient=True))
