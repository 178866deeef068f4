"""Distributions of hloom.random: the numbers are JAX's where JAX computes them by a documented algorithm; all have the
distribution that they say; they go through transformations; wrong arguments are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import hloom
import hloom.numpy as jnp
from hloom import random
from support.evaluator_fixture import x64  # noqa: F401  # a fixture
from support.random_cases import DRAWS, GENERATORS, OF_GENERATORS, numbers, recorded

JAX = recorded()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_those_of_jax(name: str) -> None:
    found = DRAWS[name](random, random.key(3))
    np.testing.assert_allclose(numbers(found), JAX[name], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("generator", GENERATORS)
def test_generators_are_those_of_jax(generator: str) -> None:
    key = random.key(-7, impl=generator)
    assert random.key_impl(key) == generator
    assert random.key_dtype(generator) is key.dtype
    for name, draw in OF_GENERATORS.items():
        np.testing.assert_allclose(numbers(draw(random, key)), JAX[f"{generator} {name}"], rtol=2e-5, err_msg=name)


DISTRIBUTIONS: dict[str, tuple[Callable[[Any, int], Any], Any]] = {
    "cauchy": (lambda k, n: random.cauchy(k, (n,)), scipy.stats.cauchy()),
    "pareto": (lambda k, n: random.pareto(k, 3.0, (n,)), scipy.stats.pareto(3)),
    "rayleigh": (lambda k, n: random.rayleigh(k, 2.0, (n,)), scipy.stats.rayleigh(scale=2)),
    "lognormal": (lambda k, n: random.lognormal(k, 0.5, (n,)), scipy.stats.lognorm(0.5)),
    "weibull_min": (lambda k, n: random.weibull_min(k, 2.0, 1.5, (n,)), scipy.stats.weibull_min(1.5, scale=2)),
    "triangular": (lambda k, n: random.triangular(k, -1.0, 0.0, 3.0, (n,)), scipy.stats.triang(0.25, -1, 4)),
    "wald": (lambda k, n: random.wald(k, 2.0, (n,)), scipy.stats.invgauss(2.0)),
    "maxwell": (lambda k, n: random.maxwell(k, (n,)), scipy.stats.maxwell()),
    "gumbel high": (lambda k, n: random.gumbel(k, (n,), mode="high"), scipy.stats.gumbel_r()),
    "gumbel highest": (lambda k, n: random.gumbel(k, (n,), mode="highest"), scipy.stats.gumbel_r()),
    "gamma": (lambda k, n: random.gamma(k, 2.5, (n,)), scipy.stats.gamma(2.5)),
    "gamma below 1": (lambda k, n: random.gamma(k, 0.3, (n,)), scipy.stats.gamma(0.3)),
    "loggamma": (lambda k, n: random.loggamma(k, 0.3, (n,)), scipy.stats.loggamma(0.3)),
    "beta": (lambda k, n: random.beta(k, 2.0, 0.5, (n,)), scipy.stats.beta(2, 0.5)),
    "dirichlet": (lambda k, n: random.dirichlet(k, jnp.array([1.0, 2, 3]), (n,))[:, 0], scipy.stats.beta(1, 5)),
    "chisquare": (lambda k, n: random.chisquare(k, 3.0, (n,)), scipy.stats.chi2(3)),
    "t": (lambda k, n: random.t(k, 3.0, (n,)), scipy.stats.t(3)),
    "f": (lambda k, n: random.f(k, 3.0, 5.0, (n,)), scipy.stats.f(3, 5)),
    "generalized_normal": (lambda k, n: random.generalized_normal(k, 3.0, (n,)), scipy.stats.gennorm(3)),
    "orthogonal": (lambda k, n: random.orthogonal(k, 3, (n,))[:, 0, 0], scipy.stats.uniform(-1, 2)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distribution(name: str) -> None:
    draw, distribution = DISTRIBUTIONS[name]
    values = np.asarray(draw(random.key(11), 3000), np.float64)
    assert scipy.stats.kstest(values, distribution.cdf).pvalue > 1e-3


COUNTS: dict[str, tuple[Callable[[Any, int], Any], Any]] = {
    "geometric": (lambda k, n: random.geometric(k, 0.3, (n,)), scipy.stats.geom(0.3)),
    "poisson by counting": (lambda k, n: random.poisson(k, 3.5, (n,)), scipy.stats.poisson(3.5)),
    "poisson by rejection": (lambda k, n: random.poisson(k, 25.0, (n,)), scipy.stats.poisson(25)),
    "binomial by counting": (lambda k, n: random.binomial(k, 20.0, 0.8, (n,)), scipy.stats.binom(20, 0.8)),
    "binomial by rejection": (lambda k, n: random.binomial(k, 60.0, 0.4, (n,)), scipy.stats.binom(60, 0.4)),
    "multinomial": (
        lambda k, n: random.multinomial(k, jnp.full((n,), 20.0), jnp.array([0.2, 0.3, 0.5]), shape=(n, 3))[:, 1],
        scipy.stats.binom(20, 0.3),
    ),
    "randint": (lambda k, n: random.randint(k, (n,), 3, 9), scipy.stats.randint(3, 9)),
    "choice weighted": (
        lambda k, n: random.choice(k, 3, (n,), p=jnp.array([0.2, 0.3, 0.5])),
        scipy.stats.rv_discrete(values=([0, 1, 2], [0.2, 0.3, 0.5])),
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", COUNTS)
def test_distribution_of_counts(name: str) -> None:
    """Chi-square, over the values that are expected at least ten times, and all others together."""
    draw, distribution = COUNTS[name]
    values = np.asarray(draw(random.key(12), 4000)).astype(int)
    kinds = np.arange(values.max() + 1)
    expected = distribution.pmf(kinds) * values.size
    common = expected >= 10
    found = np.bincount(values)[common]
    rest = values.size - found.sum(), values.size - expected[common].sum()
    statistic = ((found - expected[common]) ** 2 / expected[common]).sum()
    statistic += (rest[0] - rest[1]) ** 2 / rest[1] if rest[1] > 1e-6 else 0
    assert scipy.stats.chi2.sf(statistic, common.sum()) > 1e-3


def test_moments_of_vectors() -> None:
    mean, cov = np.array([1.0, -2.0], np.float32), np.array([[2.0, 0.6], [0.6, 1.0]], np.float32)
    for method in ("cholesky", "eigh", "svd"):
        x = np.asarray(random.multivariate_normal(random.key(2), mean, cov, (20000,), method=method))
        np.testing.assert_allclose(x.mean(0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)
    q = random.orthogonal(random.key(4), 4, (3,), m=6)
    np.testing.assert_allclose(np.asarray(q @ q.mT), np.broadcast_to(np.eye(4), (3, 4, 4)), atol=1e-5)
    radii = np.abs(np.asarray(random.ball(random.key(5), 3, 1, (4000,)))).sum(-1)
    assert scipy.stats.kstest(radii**3, scipy.stats.uniform.cdf).pvalue > 1e-3


def test_permutations() -> None:
    key = random.key(8)
    assert sorted(np.asarray(random.permutation(key, 1000)).tolist()) == list(range(1000))
    x = jnp.arange(12).reshape(3, 4)
    rows = np.asarray(random.permutation(key, x))
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, np.asarray(x).tolist()))
    each = np.asarray(random.permutation(key, x, 1, independent=True))
    assert np.sort(each, 1).tolist() == np.asarray(x).tolist()
    first = [int(random.permutation(k, 4)[0]) for k in random.split(key, 400)]
    assert scipy.stats.chisquare(np.bincount(first)).pvalue > 1e-3
    chosen = np.asarray(random.choice(key, 50, (50,), replace=False))
    assert sorted(chosen.tolist()) == list(range(50))


def test_a_gamma_draw_ends_for_all_parameters() -> None:
    """No proposal is accepted where a + 1 - 1/3 is not positive, or NaN: the number is NaN, as in JAX."""
    a = np.float32([-3, -2 / 3, np.nan, 0.5])
    draws = random.gamma(random.key(0), a), hloom.jit(random.gamma)(random.key(0), a), random.loggamma(random.key(0), a)
    assert [np.isnan(x).tolist() for x in draws] == [[True, True, True, False]] * 3


def test_an_element_of_a_gamma_draw_has_a_key_of_its_own() -> None:
    """vmap over keys and parameters gives what single calls give, and so does jit."""
    keys, a = random.split(random.key(0), 4), jnp.array([0.1, 1.0, 2.0, 30.0])
    one_by_one = np.stack([np.asarray(random.gamma(k, p, (3,))) for k, p in zip(keys, a)])
    batched = hloom.vmap(lambda k, p: random.gamma(k, p, (3,)))(keys, a)
    np.testing.assert_allclose(np.asarray(batched), one_by_one, rtol=1e-6)
    shared = hloom.jit(hloom.vmap(lambda p: random.gamma(keys[1], p, (3,))))(a)
    np.testing.assert_allclose(np.asarray(shared)[1], one_by_one[1], rtol=1e-6)


@pytest.mark.usefixtures("evaluator")
def test_derivatives_in_parameters() -> None:
    """How a gamma number moves with its parameter while its distribution function stays: recorded from JAX."""
    key = random.key(1)
    each = hloom.vmap(hloom.grad(lambda a: random.gamma(key, a, (5,)).sum()))
    np.testing.assert_allclose(np.asarray(each(jnp.array([0.3, 1.0, 5.0]))), [4.64105, 6.269892, 5.561527], rtol=1e-5)
    logarithm = hloom.vmap(hloom.grad(lambda a: random.loggamma(key, a, (5,)).sum()))
    np.testing.assert_allclose(
        np.asarray(logarithm(jnp.array([0.3, 1.0, 5.0]))), [91.67169, 6.0789986, 0.97835267], rtol=1e-5
    )
    a = jnp.array([0.5, 2.0, 9.0])
    step = 1e-3

    def quantile(a: Any, like: Any) -> Any:
        return scipy.stats.gamma.ppf(
            scipy.stats.gamma.cdf(np.asarray(like, float), np.asarray(a, float)), np.asarray(a, float) + step
        )

    drawn, slope = hloom.jvp(lambda a: random.gamma(key, a), (a,), (jnp.ones(3),))
    np.testing.assert_allclose((quantile(a, drawn) - np.asarray(drawn)) / step, np.asarray(slope), rtol=0.02)


@pytest.mark.parametrize("shape", [[3], (3,), 3, (np.int64(3),)], ids=str)
def test_shapes_may_be_lists(shape: Any) -> None:
    key = random.key(0)
    assert random.normal(key, shape).shape == (3,)
    assert random.gamma(key, 1.0, shape).shape == (3,)
    assert hloom.jit(lambda k: random.uniform(k, shape))(key).shape == (3,)


KEY = random.key(0)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "gamma of integers": (lambda: random.gamma(KEY, 1.0, (2,), "int32"), ValueError, "must be a float dtype"),
    "poisson of floats": (lambda: random.poisson(KEY, 1.0, (2,), "float32"), ValueError, "must be an int dtype"),
    "geometric of a list": (lambda: random.geometric(KEY, [0.5]), TypeError, "geometric"),
    "beta shapes": (lambda: random.beta(KEY, jnp.ones(3), 1.0, (2,)), ValueError, "broadcast"),
    "dirichlet of a scalar": (lambda: random.dirichlet(KEY, 1.0), ValueError, "alpha.ndim >= 1"),
    "multivariate_normal method": (
        lambda: random.multivariate_normal(KEY, jnp.ones(2), jnp.eye(2), method="lu"), ValueError, "method",
    ),
    "multivariate_normal cov": (
        lambda: random.multivariate_normal(KEY, jnp.ones(2), jnp.eye(3)), ValueError, r"\(\.\.\., n, n\) for n=2",
    ),
    "multivariate_normal shape": (
        lambda: random.multivariate_normal(KEY, jnp.ones((4, 2)), jnp.eye(2), (3,)), ValueError, "broadcast",
    ),
    "permutation of a float": (lambda: random.permutation(KEY, 1.5), TypeError, "integer or at least 1-dim"),
    "choice of too many": (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, "larger sample"),
    "choice of none": (lambda: random.choice(KEY, 0, (4,)), ValueError, "greater than 0"),
    "choice shape": (lambda: random.choice(KEY, 3, 4), TypeError, "must be a sequence"),
    "choice p": (lambda: random.choice(KEY, 3, (4,), p=jnp.ones(2)), ValueError, "same size"),
    "categorical of too many": (
        lambda: random.categorical(KEY, jnp.ones(3), shape=(4,), replace=False), ValueError, "cannot exceed",
    ),
    "gumbel mode": (lambda: random.gumbel(KEY, (), mode="no"), ValueError, "mode"),
    "bernoulli mode": (lambda: random.bernoulli(KEY, mode="no"), ValueError, "mode"),
    "bernoulli of an integer": (lambda: random.bernoulli(KEY, 1), TypeError, "floating dtype"),
    "several keys": (lambda: random.gamma(random.split(KEY), 1.0), ValueError, "single key"),
    "impl and dtype": (lambda: random.key(0, impl="rbg", dtype="rbg"), ValueError, "both"),
    "unknown generator": (lambda: random.key(0, impl="mt19937"), ValueError, "unrecognized PRNG implementation"),
    "a key as a seed": (lambda: random.key(KEY), TypeError, "seed"),
    "rng_bit_generator dtype": (
        lambda: hloom.lax.rng_bit_generator(np.zeros(4, np.uint32), (2,), "int32"), TypeError, "unsupported dtype",
    ),
    "rng_bit_generator key": (
        lambda: hloom.lax.rng_bit_generator(np.zeros(3, np.uint32), (2,)), TypeError, r"uint32\[4\]",
    ),
    "rng_uniform": (lambda: hloom.lax.rng_uniform(1.0, 2, ()), ValueError, "identical dtypes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


def test_the_default_generator_is_a_setting() -> None:
    before = random.key(0)
    hloom.config.update("jax_default_prng_impl", "rbg")
    try:
        assert random.PRNGKey(0).shape == (4,)
        assert str(random.key(0).dtype) == "key<rbg>"
        raw = random.uniform(random.PRNGKey(0), (3,))
        np.testing.assert_array_equal(np.asarray(raw), np.asarray(random.uniform(random.key(0, impl="rbg"), (3,))))
        assert random.normal(before, (2,)).shape == (2,)  # a key knows its generator
    finally:
        hloom.config.update("jax_default_prng_impl", "threefry2x32")


@pytest.mark.parametrize("make", [random.PRNGKey, lambda n: random.key_data(random.key(n)), hloom.jit(random.PRNGKey)])
def test_an_offset_of_seeds_is_a_setting(make: Any) -> None:
    hloom.config.update("jax_random_seed_offset", 3)
    try:
        np.testing.assert_array_equal(make(39), [0, 42])
    finally:
        hloom.config.update("jax_random_seed_offset", 0)
    np.testing.assert_array_equal(make(42), [0, 42])


@pytest.mark.usefixtures("x64")
def test_bits_of_64_bits() -> None:
    key = random.key(5)
    assert random.bits(key, (2,)).dtype == np.uint64
    low, high = 2**62, 2**63 - 1
    wide = np.asarray(random.randint(key, (50,), low, high, "int64"))
    assert wide.min() >= low and wide.max() < high
    _, bits = hloom.lax.rng_bit_generator(np.array([1, 2], np.uint64), (3,), np.uint64)
    assert bits.dtype == np.uint64
