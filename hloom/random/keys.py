"""Keys: making them, splitting them, and the words that store them.

A key is an element of an array: `hloom.random.split(key, 3)` is an Array of shape (3,) and dtype ``key<fry>``. Older
programs pass uint32[2] arrays (`PRNGKey`). Each function takes both kinds, and returns the kind that it got.
"""

from __future__ import annotations

from typing import Any, NewType

import numpy as np

from ..lax.movement import canonical_shape
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_scalar, as_value
from ..tracer.arrays.operators import ArrayBase
from ..tracer.arrays.overlay import overlaid, storage_of
from ..tracer.aval import ShapedArray
from ..tracer.checks.key_uses import Sink, Uses, bind_use
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import convert
from ..tracer.settings.context import current_context
from ..tracer.source import warn_user
from . import counter_based, rbg, threefry  # noqa: F401  # the generators are registered
from .drawing import compound_draw
from .implementations import KeyDType, PRNGImpl, implementation, spec_of

Key = NewType("Key", ArrayBase)
Key.__doc__ = """For annotations: an array of keys.

>>> from hloom import random
>>> def draw(key: random.Key):
...     return random.uniform(key)
"""
_UINT32 = np.dtype(np.uint32)


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Value:
    """A key from an integer seed.

    `impl` or `dtype` (one of them: ValueError) tells the generator: its name, or the dtype of its keys. The default is
    the setting `jax_default_prng_impl`, "threefry2x32" at first.

    >>> random.key(42)
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    >>> random.normal(random.key(42), (2,)).round(3)
    Array([-0.028,  0.467], dtype=float32)
    """
    chosen = _chosen("key", impl, dtype)
    return _keys(_seeded(_seed(seed), chosen), chosen)


def key_dtype(impl_spec: Any = None) -> KeyDType:
    """The dtype of the keys of a generator: ``key<fry>`` by default.

    >>> random.key_dtype() == random.key(0).dtype
    True
    """
    return implementation(impl_spec).dtype


def _chosen(name: str, impl: Any, dtype: Any) -> PRNGImpl:
    if impl is not None and dtype is not None:
        raise ValueError(f"Cannot specify both `impl` and `dtype` arguments to random.{name}")
    return implementation(impl if dtype is None else dtype)


def PRNGKey(seed: Any, *, impl: Any = None) -> Value:
    """A key from an integer seed, as a plain array of words: uint32[2] for the default generator.

    Functions take such an array for a key of the default generator. With the setting jax_enable_custom_prng it is a
    typed key.

    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    made = key(seed, impl=impl)
    return made if current_context().enable_custom_prng else key_data(made)


def _seed(seed: Any) -> Value:
    if isinstance(seed, int):
        # Python integers of up to 64 bits; without x64 only the low 32 are used, as in JAX.
        value: Value = array_from_scalar(_signed(seed, 8 * dtypes.default_int().itemsize), dtypes.default_int())
    else:
        value = as_value(seed)
    if value.aval.is_extended or value.aval.shape:
        raise OperandError(f"a key accepts a scalar seed, but was given {value.aval.str_short()}", "seed")
    if not dtypes.is_integer(value.aval.dtype):
        raise OperandError(f"PRNG key seed must be an integer; got {value.aval.str_short()}", "seed")
    offset = current_context().random_seed_offset
    return value + offset if offset else value


def _signed(number: int, bits: int) -> int:
    """The integer with the same low bits that a signed type of `bits` bits holds; OverflowError beyond 64 bits."""
    if not -(2**63) <= number < 2**63:
        raise OverflowError(f"seed {number} does not fit in 64 bits")
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


@compound(static=("impl",))
def _seeded(seed: Any, impl: PRNGImpl) -> Value:
    return impl.seed(as_value(seed))


# ---- the words


def _keys(words: Value, impl: PRNGImpl) -> Value:
    """The keys that `words` store; not an operation of a program."""
    rank = words.aval.ndim - len(impl.key_shape)
    return overlaid(words, ShapedArray(words.aval.shape[:rank], impl.dtype))


def _impl_of(keys: Value) -> PRNGImpl:
    dtype: Any = keys.aval.dtype
    assert isinstance(dtype, KeyDType), f"{keys.aval} are no keys"
    return dtype.impl


def key_data(keys: Any) -> Value:
    """The keys' words: uint32, with `key_shape` as last dimensions.

    >>> random.key_data(random.key(42))
    Array([ 0, 42], dtype=uint32)
    """
    return storage_of(as_keys(keys))


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Value:
    """The keys with these words: the inverse of `key_data`. `impl`, `dtype`: as for `key`.

    >>> random.wrap_key_data(jnp.array([0, 42], jnp.uint32)) == random.key(42)
    Array(True, dtype=bool)
    """
    words, chosen = as_value(key_bits_array), _chosen("wrap_key_data", impl, dtype)
    shape, wanted = words.aval.shape, chosen.key_shape
    if words.aval.dtype != _UINT32 or shape[max(0, len(shape) - len(wanted)) :] != wanted:
        raise OperandError(
            f"the data of {chosen.name} keys is uint32[..., {', '.join(map(str, wanted))}], not "
            f"{words.aval.str_short()}\n  Make keys with hloom.random.key(seed).",
            "key",
        )
    if current_context().debug_key_reuse:  # the same words are other keys
        words = bind_use("random_wrap", Uses(), lambda given: given, words)
    return _keys(words, chosen)


def as_keys(keys: Any) -> Value:
    """An argument as an array of keys; OperandError (a TypeError) if it holds neither keys nor their words."""
    value = as_value(keys)
    if value.aval.is_extended:
        return value
    made = wrap_key_data(value)
    context = current_context()
    if context.legacy_prng_key != "allow":
        message = (
            "Legacy uint32 key array passed as key to jax.random function. Please create keys using jax.random.key(). "
            'If use of a raw key array was intended, set jax_legacy_prng_key="allow".'
        )
        if context.legacy_prng_key == "error":
            raise ValueError(message)
        warn_user(message)
    elif context.enable_custom_prng:
        warn_user(
            "Raw arrays as random keys to jax.random functions are deprecated. Assuming valid "
            f"{_impl_of(made).name} key for now.",
            FutureWarning,
        )
    return made


def single_key(name: str, key: Any) -> Value:
    """The one key that the function `name` takes; OperandError (a ValueError) for an array of several."""
    if isinstance(key, list | tuple | str):
        raise OperandError(
            f"{name} needs a random key as its first argument, not {type(key).__name__} {key!r}\n  Make keys with "
            "hloom.random.key(seed).",
            "key",
        )
    value = as_keys(key)
    if value.aval.shape:
        raise OperandError(
            f"{name} accepts a single key, but was given a key array of shape {value.aval.shape} != ()\n  Take one of "
            "them, as in keys[0].",
            "key",
        )
    return value


def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    """Unsigned integers of `bit_width` bits, from one key."""
    draw = _impl_of(key).random_bits
    if current_context().debug_key_reuse:
        return bind_use("random_bits", _USED, lambda words: draw(words, bit_width, shape), key)
    return draw(storage_of(key), bit_width, shape)


_USED = Uses({0: Sink()})


def key_impl(keys: Any) -> Any:
    """The name of the generator, or the generator itself if it has no name of its own (`define_prng_impl`).

    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    return spec_of(_impl_of(as_keys(keys)))


def clone(key: Any) -> Value:
    """The same key as another array: with `debug_key_reuse`, one that was not used yet.

    >>> key = random.key(0)
    >>> random.clone(key) == key
    Array(True, dtype=bool)
    """
    value, watched = as_value(key), current_context().debug_key_reuse
    if not watched and not dtypes.is_extended(value.aval.dtype):
        return value  # any object, as in JAX
    keys = as_keys(value)
    words = storage_of(keys)
    if watched:
        words = bind_use("random_clone", Uses(), lambda given: given, words)
    return _as_given(_keys(words, _impl_of(keys)), value)


# ---- new keys from old ones


def _as_given(new: Value, old: Any) -> Value:
    """Words if words were given, unless the setting says otherwise; keys if keys were given."""
    is_typed = current_context().enable_custom_prng or dtypes.is_extended(as_value(old).aval.dtype)
    return new if is_typed else storage_of(new)


@compound_draw(static=("num",), uses_keys=True)
def split(key: Any, num: Any = 2) -> Value:
    """`num` (an integer or a shape) new keys from one key, which should not be used again.

    >>> key, for_weights, for_noise = random.split(random.key(0), 3)
    >>> random.normal(for_noise, (2,)).round(3)
    Array([1.296, 1.355], dtype=float32)
    """
    one = single_key("split", key)
    impl = _impl_of(one)
    shape = canonical_shape(num)
    if current_context().debug_key_reuse:
        words = bind_use("random_split", _USED, lambda given: impl.split(given, shape), one)
    else:
        words = impl.split(storage_of(one), shape)
    return _as_given(_keys(words, impl), key)


@compound(uses_keys=True)
def fold_in(key: Any, data: Any) -> Value:
    """A new key from a key and an integer.

    >>> keys = [random.fold_in(random.key(0), step) for step in range(2)]  # a key for each step of a loop
    >>> jnp.stack([random.normal(key) for key in keys]).round(3)
    Array([ 1.004, -2.442], dtype=float32)
    """
    one = single_key("fold_in", key)
    number = array_from_scalar(data % 2**32, _UINT32) if isinstance(data, int) else as_value(data)
    if number.aval.shape:
        raise OperandError(f"fold_in accepts a scalar, but was given an array of shape {number.aval.shape}", "key")
    impl = _impl_of(one)
    return _as_given(_keys(impl.fold_in(storage_of(one), convert(number, _UINT32, False)), impl), key)
