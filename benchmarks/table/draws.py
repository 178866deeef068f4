"""Random numbers. hloom's and JAX's are the same, bit for bit; the others' come from their own generators."""

from __future__ import annotations

import numpy as np

from .declare import Group, Row, floats, prange

GROUP = Group("random")
f4 = np.float32
STATE = np.random.default_rng(3)
"""NumPy's own generator goes on, as in a program; hloom's and JAX's calls start from a key."""


def keyed(draw):
    """The text of `draw(jax.random, key, *arguments)`; a call gets the words of the key."""
    return lambda jax, jnp: lambda words, *more: draw(jax.random, jax.random.wrap_key_data(words), *more)


WORDS = np.array([0, 42], np.uint32)


def torch_draw(draw):
    def make(torch):
        return lambda words, *more: draw(torch, *more)

    return make


@GROUP.row("uniform", n=1000)
def uniform(rng, n=1_000_000):
    return Row(
        "1M uniform f32",
        [WORDS],
        keyed(lambda random, key: random.uniform(key, (n,))),
        lambda words: STATE.random(n, f4),
        None,
        torch_draw(lambda torch: torch.rand(n)),
        moments=True,
        compiled=False,
    )


@GROUP.row("normal", n=1000)
def normal(rng, n=1_000_000):
    return Row(
        "1M normal f32",
        [WORDS],
        keyed(lambda random, key: random.normal(key, (n,))),
        lambda words: STATE.standard_normal(n, f4),
        None,
        torch_draw(lambda torch: torch.randn(n)),
        moments=True,
        compiled=False,
    )


@GROUP.row("random-integers", n=1000)
def integers(rng, n=1_000_000):
    return Row(
        "1M integers below 1,000",
        [WORDS],
        keyed(lambda random, key: random.randint(key, (n,), 0, 1000)),
        lambda words: STATE.integers(0, 1000, n, np.int32),
        None,
        torch_draw(lambda torch: torch.randint(0, 1000, (n,), dtype=torch.int32)),
        moments=True,
        compiled=False,
    )


@GROUP.row("dropout", n=8)
def dropout(rng, n=1024):
    def draw(random, key, x):
        return random.bernoulli(key, 0.9, x.shape) * x / 0.9

    return Row(
        "dropout of 1024x1024 f32",
        [WORDS, np.abs(floats(rng, n, n))],
        keyed(draw),
        lambda words, x: np.where(STATE.random(x.shape, f4) < f4(0.9), x, f4(0)) / f4(0.9),
        None,
        torch_draw(lambda torch, x: torch.nn.functional.dropout(x, 0.1, True)),
        moments=True,
    )


@GROUP.row("categorical", n=64)
def categorical(rng, n=1024):
    def in_numpy(words, x):
        return (x - np.log(-np.log(STATE.random(x.shape, f4) + f4(1e-30)))).argmax(1)

    def in_torch(torch, x):
        return torch.multinomial(torch.softmax(x, 1), 1)[:, 0]

    return Row(
        "a category for each row of 1024x1024 f32",
        [WORDS, np.tile(floats(rng, n) / 4, (n, 1))],
        keyed(lambda random, key, x: random.categorical(key, x)),
        in_numpy,
        None,
        torch_draw(in_torch),
        moments=True,
        compiled=False,
    )


@GROUP.row("permutation", n=1000)
def permutation(rng, n=100_000):
    return Row(
        "permutation of 100,000",
        [WORDS],
        keyed(lambda random, key: random.permutation(key, n)),
        lambda words: STATE.permutation(np.arange(n, dtype=np.int32)),
        None,
        torch_draw(lambda torch: torch.randperm(n)),
        moments=True,
        compiled=False,
    )


@GROUP.row("monte-carlo")
def monte_carlo(rng, n=1_000_000):
    def draw(random, key):
        one, other = random.split(key)
        x, y = random.uniform(one, (n,)), random.uniform(other, (n,))
        return (x * x + y * y < 1).mean()

    def in_numpy(words):
        x, y = STATE.random(n, f4), STATE.random(n, f4)
        return f4((x * x + y * y < 1).mean())

    def in_torch(torch):
        x, y = torch.rand(n), torch.rand(n)
        return (x * x + y * y < 1).float().mean()

    return Row(
        "which part of 1M points is in a circle",
        [WORDS],
        keyed(draw),
        in_numpy,
        monte_carlo_numba,
        torch_draw(in_torch),
        moments=True,
    )


def monte_carlo_numba(words):
    inside = 0
    n = 1_000_000
    for _ in prange(n):
        x, y = np.random.random(), np.random.random()
        inside += x * x + y * y < 1
    return inside / n
