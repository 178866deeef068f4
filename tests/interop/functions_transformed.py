"""Derivatives and batches of functions: they produce transposed convolutions, select-and-scatter, scatters with
batching dimensions, and loops over stacked residuals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import bf16, c64, case, f32, f64, key, pred, s32, spd, unit
from .functions_lax import gather_numbers, window


def gradient(call: Callable[..., Any], number: int = 1) -> Callable[..., Any]:
    """Calls the gradient of the sum of squares of `call`'s results, for the first `number` arguments."""

    def differentiated(f: Any, *arguments: Any) -> Any:
        import jax

        def loss(*xs: Any) -> Any:
            leaves = jax.tree.leaves(call(f, *xs, *arguments[number:]))
            return sum((abs(leaf) ** 2).sum() for leaf in leaves)

        return jax.grad(loss, tuple(range(number)))(*arguments[:number])

    return differentiated


def batched(call: Callable[..., Any], axes: Any = 0) -> Callable[..., Any]:
    """Calls `call` over a leading dimension of its arguments."""

    def mapped(f: Any, *arguments: Any) -> Any:
        import jax

        return jax.vmap(lambda *xs: call(f, *xs), axes)(*arguments)

    return mapped


def jacobian(call: Callable[..., Any]) -> Callable[..., Any]:
    """Calls the forward-mode Jacobian by the first argument."""

    def differentiated(f: Any, *arguments: Any) -> Any:
        import jax

        return jax.jacfwd(lambda x: call(f, x, *arguments[1:]))(arguments[0])

    return differentiated


def plain(f: Any, *arguments: Any) -> Any:
    return f(*arguments)


# Gradients

NAMES = "tanh sinc exp2 cbrt logaddexp arctan2 power max prod sort cumsum cumprod median std"
for name in NAMES.split():
    two = name in ("logaddexp", "arctan2", "power")
    case(f"numpy.{name}", *[f32(5, low=0.5)] * (2 if two else 1), label="grad", call=gradient(plain, 2 if two else 1))
for name in ("gelu", "silu", "softmax", "log_softmax", "logsumexp", "softplus", "celu"):
    case(f"nn.{name}", f32(3, 4), label="grad", call=gradient(plain))
for name in ("erf", "lgamma", "digamma", "bessel_i0e", "rsqrt", "logistic", "cumlogsumexp"):
    case(f"lax.{name}", f32(5, low=0.5), label="grad", call=gradient(plain))
for name in ("igamma", "atan2", "pow"):
    case(f"lax.{name}", f32(5, low=0.5), f32(5, low=0.5), label="grad", call=gradient(plain, 2))
case("numpy.take", f32(5, 3), s32(4, low=0, high=5), label="grad", call=gradient(lambda f, x, i: f(x, i, axis=0)))
case(
    "numpy.where",
    pred(4),
    f32(4),
    f32(4),
    label="grad",
    call=lambda f, m, *x: gradient(lambda f, a, b: f(m, a, b), 2)(f, *x),
)
case(
    "numpy.interp",
    f32(4),
    f32(3),
    label="grad",
    call=gradient(lambda f, x, y: f(x, np.arange(3.0, dtype=np.float32), y), 2),
)
case("numpy.einsum", f32(2, 3), f32(3, 4), label="grad", call=gradient(lambda f, x, y: f("ij,jk->ki", x, y), 2))
case("numpy.linalg.inv", spd(3, 3), label="grad", call=gradient(plain))
case("numpy.linalg.cholesky", spd(3, 3), label="grad", call=gradient(plain))
case("numpy.linalg.slogdet", spd(3, 3), label="grad", call=gradient(lambda f, x: f(x)[1]))
case("numpy.linalg.solve", spd(3, 3), f32(3), label="grad", call=gradient(plain, 2))
case("numpy.linalg.eigh", spd(3, 3), label="grad", call=gradient(lambda f, x: f(x)[0]))
case("numpy.linalg.svd", f32(3, 2), label="grad", call=gradient(lambda f, x: f(x, compute_uv=False)))
case("numpy.linalg.qr", f64(3, 2), label="grad", call=gradient(lambda f, x: f(x)[1]))
case("scipy.linalg.expm", f32(2, 2), label="grad", call=gradient(plain))
case("numpy.fft.fft", f32(6), label="grad", call=gradient(plain))
case("numpy.fft.irfft", f32(5), label="grad", call=gradient(lambda f, x: f(x + 1j * x)))
case(
    "lax.conv",
    f32(1, 2, 6, 5),
    f32(3, 2, 3, 2),
    label="grad",
    call=gradient(lambda f, x, w: f(x, w, (2, 1), "SAME"), 2),
)
case(
    "lax.conv_general_dilated", f32(1, 4, 7), f32(4, 2, 2), label="grad",
    call=gradient(lambda f, x, w: f(x, w, (2,), [(2, 1)], rhs_dilation=(2,), feature_group_count=2), 2),
)  # fmt: skip
case(
    "lax.reduce_window",
    f32(1, 6, 6, 2),
    label="max-grad",
    call=gradient(window("max", (1, 2, 2, 1), (1, 2, 2, 1), "SAME")),
)
case(
    "lax.reduce_window",
    f32(1, 6, 6, 2),
    label="sum-grad",
    call=gradient(window("add", (1, 3, 3, 1), (1, 2, 2, 1), "SAME")),
)
case(
    "lax.reduce_window",
    bf16(1, 7, 3),
    label="overlap-grad",
    call=gradient(window("max", (1, 3, 1), (1, 1, 1), "VALID")),
)
case("lax.cummax", f32(7), label="grad", call=gradient(plain))
case("lax.top_k", f32(3, 6), label="grad", call=gradient(lambda f, x: f(x, 2)[0]))
case("lax.dynamic_slice", f32(5), s32(low=0), label="grad", call=gradient(lambda f, x, i: f(x, (i,), (2,))))
case(
    "lax.dynamic_update_slice",
    f32(5),
    f32(2),
    s32(low=0),
    label="grad",
    call=gradient(lambda f, x, u, i: f(x, u, (i,)), 2),
)
case(
    "lax.scan",
    f32(3),
    f32(5, 3),
    label="grad",
    call=gradient(lambda f, c, xs: f(lambda c, x: (c * x + 1, c.sum()), c, xs), 2),
)
case(
    "lax.while_loop",
    f32(),
    label="jacfwd",
    call=jacobian(lambda f, x: f(lambda s: abs(s) < 9, lambda s: s * 1.7, x + 3)),
)
case("lax.cond", f32(3), pred(), label="grad", call=gradient(lambda f, x, p: f(p, lambda a: a * a, lambda a: a - 1, x)))
case("lax.map", f32(4, 3), label="grad", call=gradient(lambda f, x: f(lambda row: row * row.sum(), x)))
case("lax.associative_scan", f32(6), label="grad", call=gradient(lambda f, x: f(lambda a, b: a * b, x)))
case("lax.sort", f32(5), f32(5), label="grad", call=gradient(lambda f, x, y: f((x, y), num_keys=1), 2))
case("lax.custom_linear_solve", spd(3, 3), f32(3), label="grad", call=gradient(
    lambda f, a, b: f(lambda x: a @ x, b, lambda g, r: r / a.diagonal(), symmetric=True), 2))  # fmt: skip
case("nn.dot_product_attention", *[f32(1, 3, 2, 4)] * 3, label="grad", call=gradient(plain, 3))
case("scipy.special.logsumexp", f32(5), label="grad", call=gradient(plain))
case(
    "scipy.special.betainc",
    unit(4),
    f32(4, low=1),
    f32(4, low=1),
    label="grad",
    call=gradient(lambda f, x, a, b: f(a, b, x)),
)
case(
    "scipy.ndimage.map_coordinates",
    f32(4, 4),
    f32(2, 3, low=0, high=3),
    label="grad",
    call=gradient(lambda f, x, c: f(x, list(c), 1), 2),
)
case("ops.segment_sum", f32(6), s32(6, low=0, high=3), label="grad", call=gradient(lambda f, x, i: f(x, i, 3)))
case("random.gamma", f32(3, low=0.5), key(), label="grad", call=gradient(lambda f, a, k: f(k, a)))
case("random.normal", f32(3), key(), label="grad", call=gradient(lambda f, x, k: f(k, (3,)) * x))
case("image.resize", f32(3, 4), label="grad", call=gradient(lambda f, x: f(x, (5, 2), "linear")))

# Batches

case("numpy.take", f32(3, 5), s32(3, 4, low=0, high=5), label="vmap", call=batched(plain))
case(
    "numpy.ndarray.at",
    f32(3, 5),
    s32(3, 2, low=0, high=5),
    f32(3, 2),
    label="vmap-set",
    call=batched(lambda f, x, i, v: x.at[i].set(v)),
)
case(
    "numpy.ndarray.at", f32(3, 5), s32(3, 2, low=0, high=5), f32(3, 2), label="vmap-add-grad",
    call=batched(lambda f, x, i, v: gradient(lambda f, x, v, i: x.at[i].add(v), 2)(f, x, v, i)),
)  # fmt: skip
case("numpy.convolve", f32(3, 7), f32(3, 3), label="vmap", call=batched(plain))
case(
    "numpy.interp",
    f32(3, 4),
    f32(3, 5),
    label="vmap",
    call=batched(lambda f, x, y: f(x, np.arange(5.0, dtype=np.float32), y)),
)
case("numpy.searchsorted", f32(3, 5), f32(3, 2), label="vmap", call=batched(lambda f, a, v: f(a.sort(), v)))
case("numpy.linalg.solve", spd(2, 3, 3), f32(2, 3), label="vmap", call=batched(plain))
case("numpy.linalg.qr", f32(2, 3, 3), label="vmap", call=batched(plain))
case("numpy.unique", s32(3, 6, low=0, high=3), label="vmap", call=batched(lambda f, x: f(x, size=4)))
case(
    "lax.conv",
    f32(2, 1, 2, 5, 4),
    f32(2, 3, 2, 2, 2),
    label="vmap",
    call=batched(lambda f, x, w: f(x, w, (1, 1), "VALID")),
)
case(
    "lax.conv",
    f32(1, 2, 5, 4),
    f32(2, 3, 2, 2, 2),
    label="vmap-kernel",
    call=batched(lambda f, x, w: f(x, w, (1, 1), "SAME"), (None, 0)),
)
case("lax.dynamic_slice", f32(3, 6), s32(3), label="vmap", call=batched(lambda f, x, i: f(x, (i,), (2,))))
case(
    "lax.dynamic_update_slice",
    f32(3, 6),
    f32(3, 2),
    s32(3),
    label="vmap",
    call=batched(lambda f, x, u, i: f(x, u, (i,))),
)
case(
    "lax.while_loop",
    f32(4, low=0.5, high=3),
    label="vmap",
    call=batched(lambda f, x: f(lambda s: s < 50, lambda s: s * 2 + 1, x)),
)
case("lax.cond", pred(4), f32(4), label="vmap", call=batched(lambda f, p, x: f(p, lambda a: a * 2, lambda a: a - 1, x)))
case("lax.scan", f32(3), f32(3, 5), label="vmap", call=batched(lambda f, c, xs: f(lambda c, x: (c + x, c * x), c, xs)))
case("lax.sort", f32(3, 5), s32(3, 5), label="vmap", call=batched(lambda f, x, y: f((x, y), num_keys=1)))
case("lax.top_k", f32(4, 2, 5), label="vmap", call=batched(lambda f, x: f(x, 2), 1))
case("lax.fft", c64(2, 3, 4), label="vmap", call=batched(lambda f, x: f(x, "IFFT", (4,)), 1))
case(
    "lax.linalg.triangular_solve",
    spd(2, 3, 3),
    f32(2, 3, 2),
    label="vmap",
    call=batched(lambda f, a, b: f(a, b, left_side=True, lower=True)),
)
case(
    "lax.gather", f32(3, 5), s32(3, 2, 1, low=0, high=5), label="vmap",
    call=batched(lambda f, x, i: f(
        x, i, gather_numbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,)), (1,))),
)  # fmt: skip
case("lax.reduce_window", f32(2, 5, 4), label="vmap", call=batched(window("max", (2, 2), (1, 1), "VALID")))
case(
    "lax.reduce_window", f32(2, 5, 4), label="vmap-grad", call=gradient(batched(window("max", (2, 2), (2, 1), "VALID")))
)
case("random.normal", np.arange(6, dtype=np.uint32).reshape(3, 2), label="vmap", call=batched(lambda f, k: f(k, (2,))))
case(
    "random.permutation", np.arange(6, dtype=np.uint32).reshape(3, 2), label="vmap", call=batched(lambda f, k: f(k, 5))
)
case("random.categorical", np.arange(4, dtype=np.uint32).reshape(2, 2), f32(2, 4), label="vmap", call=batched(plain))
case("nn.softmax", f32(2, 3, 4), label="vmap", call=batched(plain, 1))
case("numpy.matmul", f32(2, 3, 4), f32(4, 2), label="vmap", call=batched(plain, (0, None)))
