"""jax.random: each distribution; the bits of each implementation of keys."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .cases import case, cases, f32, key, positive, s32, u32, unit

random = partial(cases, within="random")

random("normal uniform exponential gumbel laplace logistic cauchy maxwell", key(1), shape=(5,))
random("rayleigh", key(1), positive(5))
random("double_sided_maxwell weibull_min", key(1), positive(5), positive(5))
random("bits rademacher lognormal", key(2), shape=(5,))
random("normal uniform", key(1), shape=(4,), dtype=np.dtype("bfloat16"), label="bf16")
random("normal uniform", key(1), shape=(4,), dtype=np.float16, label="f16")
random(
    "bits randint",
    key(1),
    label="u8",
    call=lambda f, k: f(k, (9,), *((0, 99) if "randint" in str(f) else ()), dtype=np.uint8),
)
random("beta f", key(1), positive(3), positive(3))
random("dirichlet", key(1), positive(3))
random("gamma loggamma chisquare t pareto", key(1), positive(3))
random("bernoulli geometric", key(4), unit(6))
random("poisson", key(4), positive(6))
random("binomial", key(4), np.array([3.0, 20.0], np.float32), unit(2))
random("multinomial", key(4), np.float32(9), unit(3), call=lambda f, k, n, p: f(k, n, p / p.sum()))
random("generalized_normal", key(1), 1.5, shape=(4,))
random("ball", key(1), call=lambda f, k: f(k, 3, shape=(2,)))
random("categorical", key(1), f32(3, 5))
random("choice", key(1), f32(6), shape=(3,))
case("random.choice", key(1), f32(6), label="no-replace", shape=(3,), replace=False, p=np.full(6, 1 / 6, np.float32))
random("permutation", key(1), f32(6, 2))
random("multivariate_normal", key(1), f32(2), call=lambda f, k, m: f(k, m, np.array([[2, 0.5], [0.5, 1]], np.float32)))
random("orthogonal", key(1), n=3)
random("randint", key(1), shape=(6,), minval=-5, maxval=50)
random("triangular", key(1), call=lambda f, k: f(k, 0.0, 0.3, 1.0, (4,)))
random("truncated_normal", key(1), lower=-1.0, upper=2.0, shape=(4,))
random("wald", key(1), positive(4))
random("split", key(5), num=3)
random("fold_in", key(5), u32())
random("PRNGKey", s32())
case("random.key", s32(), call=lambda f, s: f(s))
random("clone", key(5), call=lambda f, k: f(wrapped(k)))
random("key_data", key(5), call=lambda f, k: f(wrapped(k)))
random("wrap_key_data", key(5), call=lambda f, k: f(k))


def wrapped(data: Any, implementation: str | None = None) -> Any:
    """The key with these data."""
    from jax import random

    return random.wrap_key_data(data, impl=implementation)


for implementation, words in (("rbg", 4), ("unsafe_rbg", 4), ("threefry2x32", 2)):
    data = np.arange(1, words + 1, dtype=np.uint32)
    for name in ("bits", "normal", "uniform"):
        with_key = partial(lambda i, f, k: f(wrapped(k, i), (5,)), implementation)
        case(f"random.{name}", data, label=implementation, call=with_key)
    split = partial(lambda i, f, k: f(wrapped(k, i), 2), implementation)
    case("random.split", data, label=implementation, call=split)
    case(
        "random.fold_in", data, label=implementation, call=partial(lambda i, f, k: f(wrapped(k, i), 7), implementation)
    )
for algorithm in ("RNG_PHILOX", "RNG_DEFAULT"):
    for kind in ("uint8", "uint16", "uint32", "uint64"):

        def generate(f: Any, k: Any, algorithm: str = algorithm, kind: str = kind) -> Any:
            from jax import lax

            return f(k, (3, 5), dtype=np.dtype(kind), algorithm=getattr(lax.RandomAlgorithm, algorithm))

        case("lax.rng_bit_generator", np.arange(1, 5, dtype=np.uint32), label=f"{algorithm}-{kind}", call=generate)
