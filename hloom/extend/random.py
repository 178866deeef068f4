"""`hloom.extend.random`: generators of random numbers as objects, with the names of jax.extend.random."""

from collections.abc import Callable as _Callable
from typing import Any as _Any

from .. import lax as _lax
from ..autodiff.vmap import vmap as _vmap
from ..jaxpr.primitives import primitive_named as _primitive_named
from ..namespaces import publish as _publish
from ..random import key as _key
from ..random.implementations import PRNGImpl as _PRNGImpl
from ..random.rbg import RBG as rbg_prng_impl
from ..random.rbg import UNSAFE_RBG as unsafe_rbg_prng_impl
from ..random.threefry import THREEFRY as threefry_prng_impl
from ..random.threefry import encrypted as _encrypted
from ..tracer.arrays.array import as_value as _as_value
from ..tracer.core import Value as _Value

__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]

threefry2x32_p = _primitive_named("threefry2x32")


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: _Callable[[_Value], _Value],
    split: _Callable[[_Value, tuple[int, ...]], _Value],
    random_bits: _Callable[[_Value, int, tuple[int, ...]], _Value],
    fold_in: _Callable[[_Value, _Value], _Value],
    name: str = "<unnamed>",
    tag: str = "?",
) -> _PRNGImpl:
    """A generator, which functions of `hloom.random` take as `impl`: ``random.key(0, impl=generator)``.

    Its functions are traced, and work on one key, given as its words: a uint32 array of the shape `key_shape`.

    Args:
      seed: an integer -> a key.
      split: a key and a shape -> keys, uint32[*shape, *key_shape].
      random_bits: a key, 8, 16, 32 or 64, and a shape -> unsigned integers of so many bits.
      fold_in: a key and a uint32 number -> a key.
      name, tag: names for messages and for the dtype of keys, ``key<tag>``.
    """
    return _PRNGImpl(name, tag, tuple(key_shape), seed, split, random_bits, fold_in)


def random_seed(seeds: _Any, impl: _PRNGImpl) -> _Value:
    """Keys of the generator `impl` for seeds: an integer, or an array of them."""
    value = seeds if isinstance(seeds, int) else _as_value(seeds)

    def one(seed: _Any) -> _Any:
        return _key(seed, impl=impl)

    for _ in range(0 if isinstance(value, int) else value.aval.ndim):
        one = _vmap(one)
    keys: _Value = one(value)
    return keys


def seed_with_impl(impl: _PRNGImpl, seed: _Any) -> _Value:
    """`random_seed` with the arguments in the other order."""
    return random_seed(seed, impl)


def threefry_2x32(keypair: _Any, count: _Any) -> _Value:
    """The Threefry 2x32 cipher of an array of uint32 counters: uint32 of the same shape.

    keypair: two uint32 words. The array's first half and its second half are the two words of the plaintext; zero
    stands at the end if their number is odd.

    >>> from hloom import numpy as jnp
    >>> from hloom.extend import random as extend_random
    >>> extend_random.threefry_2x32(jnp.array([1, 2], jnp.uint32), jnp.arange(2, dtype=jnp.uint32)).shape
    (2,)
    """
    first, second = (_as_value(k) for k in keypair)
    counters = _as_value(count)
    if not first.aval.dtype.name == second.aval.dtype.name == counters.aval.dtype.name == "uint32":
        types = ", ".join(v.aval.str_short() for v in (first, second, counters))
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {types}")
    words = _encrypted((first, second), _lax.reshape(counters, (counters.aval.size,)))
    return _lax.reshape(words, counters.aval.shape)


_publish(__name__)
