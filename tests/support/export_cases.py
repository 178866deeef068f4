"""Functions that JAX exports for `test_export_jax.py`: as they are written in JAX and in hloom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A function of the modules jax, jax.numpy, jax.lax and of arrays. `sizes`: of the arguments, where symbolic."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    sizes: str | None = None
    order: int = 0
    platforms: tuple[str, ...] | None = None


X = np.linspace(-1, 1.5, 12, dtype=np.float32).reshape(4, 3)
S = X.T @ X + np.eye(3, dtype=np.float32)
N = np.arange(6, dtype=np.int32).reshape(2, 3)

CASES: dict[str, Case] = {
    "sine": Case(lambda jax, jnp, lax, x: jnp.sin(x), (X,), order=2),
    "containers": Case(lambda jax, jnp, lax, x, n: {"a": (x, [n, None]), "b": {}}, (X, N)),
    "nested jit": Case(lambda jax, jnp, lax, x: jnp.where(x > 0, x, 0) + jax.nn.softmax(x), (X,), order=1),
    "loops": Case(lambda jax, jnp, lax, x: lax.fori_loop(0, 5, lambda i, c: c * 1.1 + i, x), (X,)),
    "scan": Case(lambda jax, jnp, lax, x: lax.scan(lambda c, r: (c + r, c * r), x[0], x), (X,), order=1),
    "branches": Case(lambda jax, jnp, lax, x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), (X,)),
    "sort": Case(lambda jax, jnp, lax, x: (jnp.sort(x, 0), jnp.argsort(-x, 1), lax.top_k(x, 2)), (X,)),
    "erf": Case(lambda jax, jnp, lax, x: (lax.erf(x), jnp.arcsinh(x), jnp.cosh(x), jnp.arctan2(x, 2.0)), (X,)),
    "convolution": Case(
        lambda jax, jnp, lax, x: lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), "SAME"), (X,)
    ),
    "windows": Case(lambda jax, jnp, lax, x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"), (X,)),
    "updates": Case(lambda jax, jnp, lax, x: x.at[1:3].add(2.0)[::-1, 1:], (X,), order=1),
    "products": Case(lambda jax, jnp, lax, x: (x @ x.T, jnp.einsum("ij,ik->jk", x, x)), (X,)),
    "dtypes": Case(lambda jax, jnp, lax, x: (x.astype(jnp.bfloat16), x.astype(jnp.int8), x > 1, 1j * x), (X,)),
    "fft": Case(lambda jax, jnp, lax, x: jnp.abs(jnp.fft.rfft(x)), (X,)),
    "linear algebra": Case(
        lambda jax, jnp, lax, a: (jnp.linalg.cholesky(a), jnp.linalg.inv(a), jnp.linalg.eigvalsh(a)), (S,)
    ),
    "factorisations": Case(
        lambda jax, jnp, lax, x: (jnp.linalg.svd(x)[1], jnp.abs(jnp.linalg.qr(x)[1]), jnp.linalg.pinv(x)), (X,)
    ),
    "platforms": Case(
        lambda jax, jnp, lax, x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: 2 * x), (X,),
        platforms=("tpu", "cpu"),
    ),
    "integers": Case(lambda jax, jnp, lax, n, x: (2 * n.T, x.T * x.T), (N, X), order=1),
    "all sizes": Case(
        lambda jax, jnp, lax, x: (
            jnp.concatenate([x, x * 2]).sum(0) + x.shape[0], x.reshape(-1)[1:], jnp.arange(2 * x.shape[1]),
            jnp.pad(x, ((1, 2), (0, 0))), x[1:, ::2], x @ x.T, jnp.mean(x), jax.nn.softmax(x),
        ),
        (X,), "b, c", 1,
    ),
    "sizes in expressions": Case(
        lambda jax, jnp, lax, x: (x.reshape(2, -1), jnp.ones((x.shape[0] // 2, x.shape[1] % 2 + 1))), (X,), "2*b, c"
    ),
    "windows of all sizes": Case(
        lambda jax, jnp, lax, x: (
            jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 1), "SAME"),
            lax.reduce_window(x, 0.0, lax.add, (x.shape[0], 1), (1, 1), "VALID"),
            lax.rng_bit_generator(
                jnp.arange(4, dtype=jnp.uint32), x.shape, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY
            ),
        ),
        (X,), "b, c",
    ),
}  # fmt: skip


def export_case(case: Case, jax: Any, jnp: Any, lax: Any, export: Any) -> Any:
    """The exported function, by JAX or by hloom."""
    specs: list[Any] = list(case.arguments)
    if case.sizes is not None:
        specs = [jax.ShapeDtypeStruct(export.symbolic_shape(case.sizes), a.dtype) for a in case.arguments]

    def function(*arguments: Any) -> Any:
        return case.function(jax, jnp, lax, *arguments)

    return export.export(jax.jit(function), platforms=case.platforms)(*specs)
