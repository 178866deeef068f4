"""Draws of `hloom.random` and `jax.random`: one table for both, and JAX's numbers, recorded.

    python tests/support/random_cases.py     # asks the installed JAX again and writes tests/data/random_cases.json
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).resolve().parent.parent / "data" / "random_cases.json"

F = np.float32
MATRIX = np.arange(24.0, dtype=F).reshape(4, 6)
COVARIANCE = np.array([[2, 0.5, 0.1], [0.5, 1, 0.2], [0.1, 0.2, 3]], F)
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4], F)
SMALL_AND_LARGE = np.array([0.01, 0.3, 1.0, 2.0, 30.0], F)


def _f(*values: float) -> Any:
    return np.array(values, F)


Draw = Callable[[Any, Any], Any]
"""draw(hloom.random or jax.random, key)"""

DRAWS: dict[str, Draw] = {
    "cauchy": lambda r, k: r.cauchy(k, (3, 4)),
    "pareto": lambda r, k: r.pareto(k, _f(1, 2, 3), (2, 3)),
    "pareto of a scalar": lambda r, k: r.pareto(k, 2.0),
    "rayleigh": lambda r, k: r.rayleigh(k, 2.0, (5,)),
    "lognormal": lambda r, k: r.lognormal(k, 0.5, (5,)),
    "lognormal of sigma 1": lambda r, k: r.lognormal(k, shape=(5,)),
    "lognormal complex": lambda r, k: r.lognormal(k, 0.5, (5,), "complex64"),
    "weibull_min": lambda r, k: r.weibull_min(k, 2.0, _f(1, 2, 3), (2, 3)),
    "weibull_min of one draw": lambda r, k: r.weibull_min(k, 2.0, _f(1, 2, 3)),
    "triangular": lambda r, k: r.triangular(k, -1.0, 0.5, 2.0, (7,)),
    "wald": lambda r, k: r.wald(k, _f(1, 2, 3), (2, 3)),
    "maxwell": lambda r, k: r.maxwell(k, (4,)),
    "double_sided_maxwell": lambda r, k: r.double_sided_maxwell(k, 1.0, 2.0, (4,)),
    "double_sided_maxwell of arrays": lambda r, k: r.double_sided_maxwell(k, 1.0, _f(1, 2)),
    "gumbel high": lambda r, k: r.gumbel(k, (20,), mode="high"),
    "gumbel highest": lambda r, k: r.gumbel(k, (20,), mode="highest"),
    "bernoulli high": lambda r, k: r.bernoulli(k, 0.3, (20,), mode="high"),
    "bits": lambda r, k: r.bits(k, (5,)),
    "permutation": lambda r, k: r.permutation(k, 20),
    "permutation of 3000": lambda r, k: r.permutation(k, 3000)[:20],
    "permutation of rows": lambda r, k: r.permutation(k, MATRIX),
    "permutation of columns": lambda r, k: r.permutation(k, MATRIX, 1),
    "permutation independent": lambda r, k: r.permutation(k, MATRIX, 1, independent=True),
    "choice": lambda r, k: r.choice(k, 9, (3, 2)),
    "choice of columns": lambda r, k: r.choice(k, MATRIX, (3, 2), axis=1),
    "choice without replacement": lambda r, k: r.choice(k, 9, (3, 2), replace=False),
    "choice of columns without": lambda r, k: r.choice(k, MATRIX, (3, 2), replace=False, axis=1),
    "choice weighted": lambda r, k: r.choice(k, 4, (3, 2), p=WEIGHTS),
    "choice weighted without": lambda r, k: r.choice(k, MATRIX, (3,), p=WEIGHTS, replace=False),
    "categorical without": lambda r, k: r.categorical(k, MATRIX, shape=(3, 4), replace=False),
    "categorical of columns without": lambda r, k: r.categorical(k, MATRIX, axis=0, shape=(2, 6), replace=False),
    "categorical high": lambda r, k: r.categorical(k, MATRIX / 10, mode="high"),
    "multivariate_normal": lambda r, k: r.multivariate_normal(k, np.zeros(3, F), COVARIANCE, (4,)),
    "multivariate_normal eigh": lambda r, k: r.multivariate_normal(k, _f(1, 2, 3), COVARIANCE, method="eigh"),
    "multivariate_normal svd": lambda r, k: r.multivariate_normal(k, _f(1, 2, 3), COVARIANCE, (2,), method="svd"),
    "orthogonal": lambda r, k: r.orthogonal(k, 3, (2,)),
    "orthogonal wide": lambda r, k: r.orthogonal(k, 3, m=5),
    "orthogonal complex": lambda r, k: r.orthogonal(k, 3, m=2, dtype="complex64"),
    "gamma": lambda r, k: r.gamma(k, SMALL_AND_LARGE),
    "gamma of a scalar": lambda r, k: r.gamma(k, 0.7, (3, 4)),
    "gamma, some refused": lambda r, k: r.gamma(k, 0.9, (2000,))[::100],
    "loggamma": lambda r, k: r.loggamma(k, SMALL_AND_LARGE, (2, 5)),
    "beta": lambda r, k: r.beta(k, SMALL_AND_LARGE, 2.0),
    "dirichlet": lambda r, k: r.dirichlet(k, SMALL_AND_LARGE, (3,)),
    "chisquare": lambda r, k: r.chisquare(k, _f(1, 2, 3)),
    "t": lambda r, k: r.t(k, _f(1, 2, 3), (4, 3)),
    "f": lambda r, k: r.f(k, 3.0, _f(1, 2, 3)),
    "generalized_normal": lambda r, k: r.generalized_normal(k, 3.0, (5,)),
    "ball": lambda r, k: r.ball(k, 3, 1.5, (5,)),
    "geometric": lambda r, k: r.geometric(k, _f(0.1, 0.5, 0.9), (4, 3)),
    "poisson": lambda r, k: r.poisson(k, _f(0.1, 0.5, 9, 10, 100, 0, np.nan), (10, 7)),
    "binomial": lambda r, k: r.binomial(k, _f(10, 100, 1000), _f(0.01, 0.5, 0.9), (10, 3)),
    "binomial out of range": lambda r, k: r.binomial(
        k, _f(10, np.nan, -1, np.inf, 5, 5, 5, 0), _f(0.5, 0.5, 0.5, 0.5, -1, np.nan, 0, 0.5)
    ),
    "multinomial": lambda r, k: r.multinomial(k, 100, _f(0.1, 0.2, 0.7)),
    "multinomial of many": lambda r, k: r.multinomial(k, _f(5, 50, 500), _f(0.1, 0.2, 0.7), shape=(3, 3)),
}
GENERATORS = ("rbg", "unsafe_rbg", "philox2x32", "philox4x32", "threefry4x32")
OF_GENERATORS: dict[str, Draw] = {
    "seed": lambda r, k: r.key_data(k),
    "split": lambda r, k: r.key_data(r.split(k, (3, 2))),
    "fold_in": lambda r, k: r.key_data(r.fold_in(k, 12345)),
    "bits8": lambda r, k: r.bits(k, (3, 5), "uint8"),
    "bits16": lambda r, k: r.bits(k, (3, 5), "uint16"),
    "bits32": lambda r, k: r.bits(k, (3, 5), "uint32"),
    "permutation": lambda r, k: r.permutation(k, 7),
}


def drawn(random: Any) -> dict[str, Any]:
    """All cases, as lists."""
    found = {name: numbers(draw(random, random.key(3))) for name, draw in DRAWS.items()}
    for generator in GENERATORS:
        for name, draw in OF_GENERATORS.items():
            found[f"{generator} {name}"] = numbers(draw(random, random.key(-7, impl=generator)))
    return found


def numbers(array: Any) -> list[float]:
    """The elements; the parts of complex ones after each other."""
    values = np.asarray(array)
    parts = [values.real, values.imag] if values.dtype.kind == "c" else [values]
    return [float(v) for part in parts for v in part.ravel()]


def recorded() -> dict[str, list[float]]:
    """What JAX draws."""
    found: dict[str, list[float]] = json.loads(PATH.read_text())
    return found


if __name__ == "__main__":
    import jax

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PATH.write_text(json.dumps(drawn(jax.random), indent=None).replace("], ", "],\n") + "\n")
    print(f"{PATH}: {PATH.stat().st_size:,} bytes")
