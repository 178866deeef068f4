"""Convolutions of one to three dimensions, pooling, and their gradients; channels first, as in PyTorch."""

from __future__ import annotations

import numpy as np

from .declare import Gradient, Group, Row, floats, prange

GROUP = Group("convolutions")
f4 = np.float32
LETTERS = {1: "NCH", 2: "NCHW", 3: "NCDHW"}


def convolve(jax, x, w, stride, padding, groups):
    spatial = x.ndim - 2
    return jax.lax.conv_general_dilated(
        x, w, (stride,) * spatial, [(padding, padding)] * spatial, feature_group_count=groups
    )


def convolution(name, x, w, stride=1, padding=1, groups=1, biased=False, numba=None, **tiny):
    """A row for arguments of these shapes."""

    def factory(rng, n=x[0]):
        def text(jax, jnp):
            if biased:
                return lambda x, w, b: jax.nn.relu(convolve(jax, x, w, stride, padding, groups) + b[:, None, None])
            return lambda x, w: convolve(jax, x, w, stride, padding, groups)

        def in_torch(torch):
            whole = getattr(torch.nn.functional, f"conv{len(x) - 2}d")
            if biased:
                return lambda x, w, b: torch.relu(whole(x, w, b, stride, padding))
            return lambda x, w: whole(x, w, None, stride, padding, 1, groups)

        scale = f4(1 / np.sqrt(np.prod(w[1:])))
        arguments = [floats(rng, n, *x[1:]), floats(rng, *w) * scale, *([floats(rng, w[0])] if biased else [])]
        what = f"{'x'.join(map(str, x))} f32, kernel {'x'.join(map(str, w))}"
        more = f"{f', stride {stride}' * (stride > 1)}{f', {groups} groups' * (groups > 1)}{', bias, relu' * biased}"
        return Row(f"convolution, {what}{more}", arguments, text, None, numba, in_torch, tolerance=1e-3)

    GROUP.row(name, **tiny)(factory)


def convolution_numba(x, w):
    """3x3, with a border of zeros."""
    images, channels, height, width = x.shape
    outputs = w.shape[0]
    padded = np.zeros((images, channels, height + 2, width + 2), x.dtype)
    padded[:, :, 1:-1, 1:-1] = x
    out = np.zeros((images, outputs, height, width), x.dtype)
    for k in prange(images * outputs):
        n, o = k // outputs, k % outputs
        for c in range(channels):
            for i in range(height):
                for a in range(3):
                    for b in range(3):
                        factor = w[o, c, a, b]
                        for j in range(width):
                            out[n, o, i, j] += factor * padded[n, c, i + a, j + b]
    return out


def depthwise_numba(x, w):
    """3x3, with a border of zeros."""
    images, channels, height, width = x.shape
    padded = np.zeros((images, channels, height + 2, width + 2), x.dtype)
    padded[:, :, 1:-1, 1:-1] = x
    out = np.zeros_like(x)
    for k in prange(images * channels):
        n, c = k // channels, k % channels
        for i in range(height):
            for a in range(3):
                for b in range(3):
                    factor = w[c, 0, a, b]
                    for j in range(width):
                        out[n, c, i, j] += factor * padded[n, c, i + a, j + b]
    return out


convolution("convolution", (32, 64, 28, 28), (64, 64, 3, 3), numba=convolution_numba)
convolution("convolution-bias-relu", (32, 32, 28, 28), (64, 32, 3, 3), biased=True)
convolution("convolution-1x1", (32, 128, 14, 14), (128, 128, 1, 1), padding=0)
convolution("convolution-5x5", (64, 1, 28, 28), (32, 1, 5, 5), padding=2)
convolution("convolution-strided", (16, 32, 56, 56), (64, 32, 3, 3), stride=2)
convolution("convolution-depthwise", (32, 64, 28, 28), (64, 1, 3, 3), groups=64, numba=depthwise_numba, n=1)
convolution("convolution-1d", (16, 32, 1024), (32, 32, 9), padding=4)
convolution("convolution-3d", (2, 16, 24, 24, 24), (16, 16, 3, 3, 3))


def gradient(name, by):
    def factory(rng, n=16):
        def text(jax, jnp):
            def loss(x, w, g):
                return (convolve(jax, x, w, 1, 1, 1) * g).sum()

            return jax.grad(loss, by)

        def in_torch(torch):
            return Gradient(lambda x, w, g: (torch.nn.functional.conv2d(x, w, None, 1, 1) * g).sum(), by)

        arguments = [floats(rng, n, 32, 28, 28), floats(rng, 32, 32, 3, 3) / f4(17), floats(rng, n, 32, 28, 28)]
        what = {(0,): "image", (1,): "kernel", (0, 1): "image and kernel"}[by]
        return Row(
            f"gradient of a convolution by the {what}, {n}x32x28x28 f32, 32x3x3",
            arguments,
            text,
            torch=in_torch,
            tolerance=1e-3,
        )

    GROUP.row(name)(factory)


gradient("grad-convolution-image", (0,))
gradient("grad-convolution-kernel", (1,))
gradient("grad-convolution", (0, 1))


def pool(jax, jnp, x, kind):
    if kind == "max":
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 3, 3), (1, 1, 1, 1), "SAME") / 9


@GROUP.row("max-pool", n=1)
def max_pool(rng, n=32):
    def in_numpy(x):
        n, c, h, w = x.shape
        return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))

    return Row(
        "max pool 2x2, 32x64x28x28 f32",
        [floats(rng, n, 64, 28, 28)],
        lambda jax, jnp: lambda x: pool(jax, jnp, x, "max"),
        in_numpy,
        max_pool_numba,
        lambda torch: lambda x: torch.nn.functional.max_pool2d(x, 2),
    )


def max_pool_numba(x):
    images, channels, height, width = x.shape
    out = np.empty((images, channels, height // 2, width // 2), x.dtype)
    for k in prange(images * channels):
        n, c = k // channels, k % channels
        for i in range(height // 2):
            for j in range(width // 2):
                upper = max(x[n, c, 2 * i, 2 * j], x[n, c, 2 * i, 2 * j + 1])
                lower = max(x[n, c, 2 * i + 1, 2 * j], x[n, c, 2 * i + 1, 2 * j + 1])
                out[n, c, i, j] = max(upper, lower)
    return out


@GROUP.row("grad-max-pool")
def grad_max_pool(rng, n=32):
    def text(jax, jnp):
        return jax.grad(lambda x, g: (pool(jax, jnp, x, "max") * g).sum())

    def in_torch(torch):
        return Gradient(lambda x, g: (torch.nn.functional.max_pool2d(x, 2) * g).sum())

    arguments = [floats(rng, n, 64, 28, 28), floats(rng, n, 64, 14, 14)]
    return Row("gradient of a max pool 2x2, 32x64x28x28 f32", arguments, text, torch=in_torch)


@GROUP.row("average-pool")
def average_pool(rng, n=32):
    return Row(
        "average pool 3x3, stride 1, 32x64x28x28 f32",
        [floats(rng, n, 64, 28, 28)],
        lambda jax, jnp: lambda x: pool(jax, jnp, x, "average"),
        torch=lambda torch: lambda x: torch.nn.functional.avg_pool2d(x, 3, 1, 1),
    )
