"""hloom.random: the bits are JAX's, recorded and live; so are the numbers; keys behave as JAX's."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

import hloom
import hloom.numpy as jnp
from hloom import random
from hloom.errors import OperandError
from hloom.random.threefry import counters, wide_counters
from support import jax_facts
from support.evaluator_fixture import on_the_evaluator, x64  # noqa: F401  # fixtures

FACTS = jax_facts.load()
EXACT = {"bits8", "bits16", "bits32", "uniform", "uniform16", "uniformb", "rademacher", "bernoulli"} | {
    "randint",
    "randint8",
    "randint16",
}


@pytest.mark.parametrize("seed", jax_facts.SEEDS)
def test_keys(seed: int) -> None:
    assert np.asarray(random.PRNGKey(seed)).tolist() == FACTS["keys"][str(seed)]
    assert np.asarray(random.key_data(random.key(seed))).tolist() == FACTS["keys"][str(seed)]


def test_split_and_fold_in() -> None:
    key = random.PRNGKey(7)
    assert np.asarray(random.split(key, (2, 2))).tolist() == FACTS["split"]
    assert np.asarray(random.fold_in(key, 2**32 - 1)).tolist() == FACTS["fold_in"]
    assert np.asarray(hloom.jit(random.fold_in)(key, np.uint32(2**32 - 1))).tolist() == FACTS["fold_in"]
    typed = random.split(random.key(7), (2, 2))
    assert typed.shape == (2, 2)
    assert np.asarray(random.key_data(typed)).tolist() == FACTS["split"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", jax_facts.SHAPES, ids=str)
@pytest.mark.parametrize("name", jax_facts.SAMPLERS)
def test_numbers_are_those_of_jax(name: str, shape: tuple[int, ...]) -> None:
    expected = FACTS["random"][name][str(shape)]
    relative, absolute = (0, 0) if name in EXACT else (1e-5, 1e-6)

    def draw() -> Any:
        return jax_facts.sample(random, name, shape)

    for found in (draw(), hloom.jit(draw)()):
        assert found.shape == shape
        values = np.asarray(found).astype(np.float64).ravel()
        np.testing.assert_allclose(values, expected, rtol=relative, atol=absolute)


def test_categorical_is_that_of_jax() -> None:
    logits = jnp.arange(12.0).reshape(3, 4)
    assert np.asarray(random.categorical(random.key(7), logits, shape=(5, 3))).tolist() == FACTS["categorical"]
    assert random.categorical(random.key(1), logits, axis=0).shape == (4,)


@pytest.mark.parametrize("x64_on", [False, True])
def test_live_jax(x64_on: bool) -> None:
    jax = pytest.importorskip("jax")
    hloom.config.update("jax_enable_x64", x64_on)
    with warnings.catch_warnings(), jax.enable_x64(x64_on):
        warnings.simplefilter("ignore")
        names = ["uint32", "uint16", *(["uint64"] if x64_on else [])]
        for seed in (-9, 2**40 + 1):
            ours, theirs = (r.split(r.key(seed))[1] for r in (random, jax.random))
            for dtype in names:
                for shape in ((), (2, 5)):
                    a, b = random.bits(ours, shape, dtype), jax.random.bits(theirs, shape, dtype)
                    assert a.dtype == b.dtype
                    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
            a, b = random.uniform(ours, (5,)), jax.random.uniform(theirs, (5,))
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
            np.testing.assert_allclose(
                np.asarray(random.normal(ours, (50,))),
                np.asarray(jax.random.normal(theirs, (50,))),
                rtol=1e-5,
                atol=1e-6,
            )
            a, b = random.randint(ours, (9,), -5, 1000), jax.random.randint(theirs, (9,), -5, 1000)
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (random.normal, scipy.stats.norm),
        (random.uniform, scipy.stats.uniform),
        (random.exponential, scipy.stats.expon),
        (random.gumbel, scipy.stats.gumbel_r),
        (random.laplace, scipy.stats.laplace),
        (random.logistic, scipy.stats.logistic),
    ],
)
def test_distributions(draw: Any, distribution: Any) -> None:
    values = np.asarray(draw(random.key(0), (4000,)))
    assert scipy.stats.kstest(values, distribution.cdf).pvalue > 1e-3


def test_bounds() -> None:
    key = random.key(5)
    u = np.asarray(random.uniform(key, (3000,), minval=-2.0, maxval=3.0))
    assert u.min() >= -2
    assert u.max() < 3
    t = np.asarray(random.truncated_normal(key, -0.5, 0.1, (3000,)))
    assert t.min() > -0.5
    assert t.max() < 0.1
    n = np.asarray(random.randint(key, (3000,), jnp.asarray(2), 6))
    assert set(n.tolist()) == {2, 3, 4, 5}
    assert np.asarray(random.randint(key, (4,), 5, 3)).tolist() == [5] * 4
    p = np.asarray(random.bernoulli(key, jnp.asarray([0.0, 1.0, 0.5]), (2000, 3))).mean(0)
    assert p[0] == 0
    assert p[1] == 1
    assert abs(p[2] - 0.5) < 0.05


def test_dtypes() -> None:
    key = random.key(0)
    assert random.normal(key, (2,), "bfloat16").dtype == ml_dtypes.bfloat16
    assert random.normal(key, (2,), "complex64").dtype == np.complex64
    assert random.bits(key, (2,)).dtype == np.uint32
    assert random.randint(key, (2,), 0, 9, "int8").dtype == np.int8
    assert random.bernoulli(key).dtype == np.bool_


def test_key_arrays() -> None:
    key = random.key(3)
    assert repr(key) == "Array((), dtype=key<fry>) overlaying:\n[0 3]"
    keys = random.split(key, 4)
    assert (keys.shape, keys.ndim, keys.size, len(keys)) == ((4,), 1, 4, 4)
    first, *rest = keys
    assert first.shape == ()
    assert len(rest) == 3
    assert keys[1:3].shape == (2,)
    assert keys.reshape(2, 2)[1].shape == (2,)
    assert bool(keys[0] == first)
    assert str(key.dtype) == "key<fry>"
    assert random.key_impl(key) == "threefry2x32"
    again = random.wrap_key_data(random.key_data(key))
    assert bool(again == key)
    with pytest.raises(TypeError, match="unsized"):
        len(key)


def test_keys_go_through_transformations() -> None:
    @hloom.jit
    def step(key: Any) -> Any:
        key, sub = random.split(key)
        return key, random.normal(sub, (3,))

    key, x = step(random.key(1))
    expected_key, sub = random.split(random.key(1))
    assert bool(key == expected_key)
    np.testing.assert_array_equal(np.asarray(x), np.asarray(random.normal(sub, (3,))))
    _, draws = hloom.lax.scan(lambda c, k: (c, random.uniform(k)), 0, random.split(key, 5))
    assert draws.shape == (5,)
    assert len(hloom.tree.leaves(key)) == 1


def test_what_is_refused() -> None:
    key = random.key(0)
    for call, error, message in (
        (lambda: random.normal(random.split(key), (3,)), OperandError, "single key"),
        (lambda: random.normal(jnp.ones(2), (3,)), OperandError, "float32"),
        (lambda: random.uniform(key, (3,), "int32"), OperandError, "floating-point"),
        (lambda: random.randint(key, (3,), 0, 5, "float32"), OperandError, "integers"),
        (lambda: random.bits(key, (3,), "int32"), OperandError, "unsigned"),
        (lambda: random.key(1.5), OperandError, "seed"),
        (lambda: random.key(2**70), OverflowError, "64 bits"),
        (lambda: random.truncated_normal(key, jnp.zeros(3), 1.0, (2,)), OperandError, "broadcast"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_initializers() -> None:
    initializers = hloom.nn.initializers
    key = random.key(0)
    for name, deviation in (("he", 2 / 200), ("lecun", 1 / 200), ("glorot", 2 / 250)):
        for kind in ("normal", "uniform"):
            w = np.asarray(getattr(initializers, f"{name}_{kind}")()(key, (200, 50)))
            assert w.shape == (200, 50)
            assert abs(w.var() / deviation - 1) < 0.06, (name, kind)
            assert abs(w.mean()) < 0.01
    assert float(initializers.zeros(key, (2, 2)).sum()) == 0
    assert float(initializers.ones(key, (2, 2), "bfloat16").sum()) == 4
    assert float(initializers.constant(3)(key, (2,)).sum()) == 6
    assert np.asarray(initializers.normal(0.1)(key, (500,))).std() < 0.12


def test_initializers_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    for name in ("glorot_uniform", "he_normal", "lecun_uniform"):
        ours = getattr(hloom.nn.initializers, name)()(random.key(4), (5, 3))
        theirs = getattr(jax.nn.initializers, name)()(jax.random.key(4), (5, 3))
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-6)


def test_more_elements_than_a_word_counts() -> None:
    """Only the types, as such an array does not fit in memory. The counters agree with those for small arrays."""
    assert hloom.eval_shape(lambda seed: random.normal(random.key(seed), (10**12,)), 0).shape == (10**12,)
    for small, wide in zip(counters((5, 7)), wide_counters((5, 7)), strict=True):
        np.testing.assert_array_equal(small, wide)
        assert small.dtype == wide.dtype
