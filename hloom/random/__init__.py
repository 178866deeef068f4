"""`hloom.random`: random numbers from explicit keys, the same bits as jax.random's for the same key.

    key = hloom.random.key(0)
    key, subkey = hloom.random.split(key)
    x = hloom.random.normal(subkey, (3,))

Keys made by `key` are PRNGKeyArray; `PRNGKey` makes the older kind, plain uint32[2] arrays. All functions take both.
Source for how bits become numbers: jax.random.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import lax
from .. import numpy as jnp
from ..lax.movement import canonical_axis, canonical_shape
from ..lax.reduce import limits
from ..numpy.promotion import broadcast_to_shape
from ..tracer import dtypes, tree
from ..tracer.array import array_from_scalar, as_value
from ..tracer.core import Value
from ..tracer.errors import OperandError, UnsupportedError
from ..tracer.operators import ArrayBase
from ..tracer.ops import convert, scalar_like
from ..tracer.source import user_line
from . import threefry


class KeyDType:
    """The dtype of PRNGKeyArray: ``key<fry>``."""

    name = "key<fry>"
    itemsize = 8

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType)

    def __hash__(self) -> int:
        return hash(self.name)


class PRNGKeyArray:
    """Keys of the threefry generator: an array whose elements are keys. A pytree of one uint32[..., 2] array."""

    __slots__ = ("_base",)

    def __init__(self, base: Any) -> None:
        self._base = base

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._base.shape[:-1])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> KeyDType:
        return KeyDType()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: this is a single key")
        return self.shape[0]

    def __getitem__(self, index: Any) -> PRNGKeyArray:
        if not self.shape:
            raise TypeError("a single key cannot be indexed")
        items = index if isinstance(index, tuple) else (index,)
        return PRNGKeyArray(self._base[(*items, Ellipsis, slice(None))] if Ellipsis not in items else self._base[items])

    def __iter__(self) -> Iterator[PRNGKeyArray]:
        return iter([self[k] for k in range(len(self))])

    def reshape(self, *shape: Any) -> PRNGKeyArray:
        sizes = canonical_shape(shape[0] if len(shape) == 1 else shape)
        return PRNGKeyArray(jnp.reshape(self._base, (*sizes, 2)))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, PRNGKeyArray):
            return NotImplemented
        return jnp.all(jnp.equal(self._base, other._base), axis=-1)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{self._base}"


tree.register_pytree_node(PRNGKeyArray, lambda k: ((k._base,), None), lambda _, children: PRNGKeyArray(children[0]))


# ---- keys


def _check_impl(impl: Any) -> None:
    if impl not in (None, "threefry2x32"):
        raise UnsupportedError(f"random number generator {impl!r} is not supported; 'threefry2x32' is")


def key(seed: Any, *, impl: Any = None) -> PRNGKeyArray:
    """A key from an integer seed."""
    return PRNGKeyArray(PRNGKey(seed, impl=impl))


def PRNGKey(seed: Any, *, impl: Any = None) -> Value:
    """A key from an integer seed, as a plain uint32[2] array."""
    _check_impl(impl)
    if isinstance(seed, int) and not isinstance(seed, bool):
        # Python integers of up to 64 bits; without x64 only the low 32 are used, as in JAX.
        value: Value = array_from_scalar(_signed(seed, 8 * dtypes.default_int().itemsize), dtypes.default_int())
    else:
        value = as_value(seed)
    if not dtypes.is_integer(value.aval.dtype) or value.aval.shape:
        raise OperandError(
            f"a seed must be an integer scalar, not {value.aval.str_short()}\n  at {user_line()}", "seed"
        )
    return threefry.seed_words(value)


def _signed(number: int, bits: int) -> int:
    """The integer with the same low bits that a signed type of `bits` bits holds; OverflowError beyond 64 bits."""
    if not -(2**63) <= number < 2**63:
        raise OverflowError(f"seed {number} does not fit in 64 bits")
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _words(key: Any) -> tuple[Value, bool]:
    """A single key as uint32[2], and whether it was a PRNGKeyArray."""
    typed = isinstance(key, PRNGKeyArray)
    value = as_value(key._base if typed else key)
    if value.aval.dtype != threefry.UINT32 or value.aval.shape != (2,):
        raise OperandError(
            f"a random function takes one key, not {value.aval.str_short()}\n  at {user_line()}\n"
            "  Make keys with hloom.random.key(seed); split gives several: take one of them.",
            "key",
        )
    return value, typed


def split(key: Any, num: Any = 2) -> Any:
    """`num` (an integer or a shape) new keys of one; the old one should not be used again."""
    words, typed = _words(key)
    keys = threefry.split_key(words, canonical_shape(num))
    return PRNGKeyArray(keys) if typed else keys


def fold_in(key: Any, data: Any) -> Any:
    """A new key of a key and an integer."""
    words, typed = _words(key)
    number = array_from_scalar(data % 2**32, threefry.UINT32) if isinstance(data, int) else as_value(data)
    folded = threefry.fold_in_key(words, convert(number, threefry.UINT32, False))
    return PRNGKeyArray(folded) if typed else folded


def key_data(keys: Any) -> Value:
    """The keys' words, uint32[..., 2]."""
    return as_value(keys._base) if isinstance(keys, PRNGKeyArray) else as_value(keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> PRNGKeyArray:
    """The undoing of `key_data`."""
    _check_impl(impl)
    return PRNGKeyArray(as_value(key_bits_array))


def key_impl(keys: Any) -> str:
    """The name of the generator."""
    return "threefry2x32"


def clone(key: Any) -> Any:
    """The key itself."""
    return key


# ---- numbers


def _float_dtype(dtype: DTypeLike | None, what: str) -> np.dtype[Any]:
    found = dtypes.default_float() if dtype is None else dtypes.canonical_dtype(dtype)
    if not dtypes.is_floating(found):
        raise OperandError(f"{what} makes floating-point numbers, not {found.name}\n  at {user_line()}", what)
    return found


def _sized(what: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The result's shape: that of the parameters, or the one given, to which they must broadcast."""
    own = lax.broadcast_shapes(*[np.shape(p) for p in parameters])
    if shape is None:
        return own
    sizes = canonical_shape(shape)
    if lax.broadcast_shapes(own, sizes) != sizes:
        raise OperandError(f"{what}: parameters of shape {own} do not broadcast to {sizes}\n  at {user_line()}", what)
    return sizes


def bits(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Random unsigned integers, uint32 by default."""
    found = dtypes.canonical_dtype(np.uint32 if dtype is None else dtype)
    if found.kind != "u":
        raise OperandError(f"bits makes unsigned integers, not {found.name}\n  at {user_line()}", "bits")
    return threefry.random_bits(_words(key)[0], 8 * found.itemsize, canonical_shape(shape))


def uniform(key: Any, shape: Any = (), dtype: DTypeLike | None = None, minval: Any = 0.0, maxval: Any = 1.0) -> Value:
    """Uniform on [minval, maxval): random mantissas of floats in [1, 2), shifted and scaled."""
    found = _float_dtype(dtype, "uniform")
    sizes = canonical_shape(shape)
    low, high = (broadcast_to_shape(lax.convert_element_type(v, found), sizes) for v in (minval, maxval))
    width, mantissa = 8 * found.itemsize, int(dtypes.finfo(found).nmant)
    integer = np.dtype(f"uint{width}")
    random_width = 8 if mantissa < 8 else width
    random = convert(threefry.random_bits(_words(key)[0], random_width, sizes), integer, False)
    one = array_from_scalar(int(np.ones((), found).view(integer)), integer)
    in_1_2 = lax.bitwise_or(lax.shift_right_logical(random, scalar_like(random, random_width - mantissa)), one)
    floats = lax.bitcast_convert_type(in_1_2, found)
    floats = lax.sub(floats, scalar_like(floats, 1.0))
    return lax.max(low, lax.add(lax.mul(floats, lax.sub(high, low)), low))


def normal(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Normal of mean 0 and variance 1; complex dtypes: both parts have variance 1/2."""
    if dtype is not None and dtypes.is_complex(dtypes.canonical_dtype(dtype)):
        found = dtypes.canonical_dtype(dtype)
        parts = [normal(k, shape, dtypes.real_of(found)) for k in _two(key)]
        return lax.div(lax.complex(*parts), lax.full((), math.sqrt(2), found))
    found = _float_dtype(dtype, "normal")
    lowest = np.nextafter(np.array(-1.0, found), np.array(0.0, found), dtype=found)
    u = uniform(key, shape, found, lowest, 1.0)
    return lax.mul(scalar_like(u, math.sqrt(2)), lax.erf_inv(u))


def _two(key: Any) -> list[Any]:
    keys = split(key)
    return [keys[0], keys[1]]


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Value:
    """True with probability p."""
    probability = as_value(p)
    if not dtypes.is_floating(probability.aval.dtype):
        probability = convert(probability, dtypes.default_float(), False)
    sizes = _sized("bernoulli", shape, probability)
    return lax.lt(uniform(key, sizes, probability.aval.dtype), broadcast_to_shape(_strong(probability), sizes))


def _strong(x: Value) -> Value:
    return convert(x, x.aval.dtype, False)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: DTypeLike | None = None) -> Value:
    """Integers in [minval, maxval), from twice as many random bits as they have; minval where that is empty."""
    found = dtypes.canonical_dtype(dtypes.default_int() if dtype is None else dtype)
    if not dtypes.is_integer(found):
        raise OperandError(f"randint makes integers, not {found.name}\n  at {user_line()}", "randint")
    if found.itemsize < 4:  # drawn from 32 bits, which makes the bias of the remainder small
        low, high = limits(found)
        bounds = [convert(_integer(v), dtypes.int32, False) for v in (minval, maxval)]
        drawn = randint(key, shape, _clipped(bounds[0], low, high), _clipped(bounds[1], low, high + 1), np.int32)
        return convert(drawn, found, False)
    sizes = _sized("randint", shape, minval, maxval)
    smallest, largest = limits(found)
    low, high = (_integer(v) for v in (minval, maxval))
    beyond = lax.gt(high, scalar_like(high, min(largest, limits(high.aval.dtype)[1])))
    low, high = (convert(_clipped(v, smallest, largest), found, False) for v in (low, high))
    beyond, low, high = (broadcast_to_shape(v, sizes) for v in (beyond, low, high))
    unsigned = np.dtype(f"uint{8 * found.itemsize}")
    span = convert(lax.sub(high, low), unsigned, False)
    one = lax.full_like(span, 1)
    span = lax.select(lax.le(high, low), one, span)
    # With maxval one above the largest integer the span is one more; it may wrap to 0, and x % 0 is x.
    span = lax.select(lax.bitwise_and(beyond, lax.gt(high, low)), lax.add(span, one), span)
    half = scalar_like(span, 2 ** (4 * found.itemsize))
    multiplier = lax.rem(half, span)
    multiplier = lax.rem(lax.mul(multiplier, multiplier), span)
    upper, lower = (threefry.random_bits(_words(k)[0], 8 * found.itemsize, sizes) for k in _two(key))
    offset = lax.add(lax.mul(lax.rem(upper, span), multiplier), lax.rem(lower, span))
    return lax.add(low, convert(lax.rem(offset, span), found, False))


def _integer(x: Any) -> Value:
    value = as_value(x)
    return _strong(value) if dtypes.is_integer(value.aval.dtype) else convert(value, dtypes.default_int(), False)


def _clipped(x: Value, low: int, high: int) -> Value:
    own_low, own_high = limits(x.aval.dtype)
    return lax.clamp(scalar_like(x, max(low, own_low)), x, scalar_like(x, min(high, own_high)))


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: DTypeLike | None = None) -> Value:
    """Normal of mean 0 and variance 1, given that it lies in (lower, upper)."""
    found = _float_dtype(dtype, "truncated_normal")
    sizes = _sized("truncated_normal", shape, lower, upper)
    low, high = (broadcast_to_shape(lax.convert_element_type(v, found), sizes) for v in (lower, upper))
    root = scalar_like(low, math.sqrt(2))
    a, b = (lax.erf(lax.div(v, root)) for v in (low, high))
    result = lax.mul(root, lax.erf_inv(uniform(key, sizes, found, a, b)))
    inside_low = lax.nextafter(lax.stop_gradient(low), lax.full_like(low, math.inf))
    inside_high = lax.nextafter(lax.stop_gradient(high), lax.full_like(high, -math.inf))
    return lax.clamp(inside_low, result, inside_high)


def exponential(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Exponential of mean 1."""
    u = uniform(key, shape, _float_dtype(dtype, "exponential"))
    return lax.neg(lax.log1p(lax.neg(u)))


def gumbel(key: Any, shape: Any = (), dtype: DTypeLike | None = None, mode: str | None = None) -> Value:
    """Standard Gumbel: -log(-log(u))."""
    if mode not in (None, "low"):
        raise UnsupportedError(f"gumbel: mode {mode!r} is not supported; 'low' is")
    found = _float_dtype(dtype, "gumbel")
    u = uniform(key, shape, found, float(dtypes.finfo(found).tiny), 1.0)
    return lax.neg(lax.log(lax.neg(lax.log(u))))


def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: str | None = None
) -> Value:
    """Indices along `axis` with probabilities softmax(logits), by the Gumbel-max trick."""
    if not replace:
        raise UnsupportedError("categorical without replacement needs a sort, which this version does not have")
    x = as_value(logits)
    x = x if dtypes.is_floating(x.aval.dtype) else convert(x, dtypes.default_float(), False)
    axis = canonical_axis(axis, x.aval.ndim)
    batch = tuple([s for d, s in enumerate(x.aval.shape) if d != axis])
    sizes = batch if shape is None else _sized("categorical", shape, np.empty(batch))
    prefix = sizes[: len(sizes) - len(batch)]
    place = len(prefix) + axis
    noise_shape = list(sizes)
    noise_shape.insert(place, x.aval.shape[axis])
    noise = gumbel(key, noise_shape, x.aval.dtype, mode)
    return jnp.argmax(jnp.add(noise, x), axis=place)


def laplace(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Laplace of mean 0 and scale 1."""
    found = _float_dtype(dtype, "laplace")
    lowest = np.nextafter(np.array(-1.0, found), np.array(0.0, found), dtype=found)
    u = uniform(key, shape, found, lowest, 1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


def logistic(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Logistic of mean 0 and scale 1."""
    found = _float_dtype(dtype, "logistic")
    u = uniform(key, shape, found, float(dtypes.finfo(found).tiny), 1.0)
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))


def rademacher(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """-1 or 1, each with probability 1/2."""
    found = dtypes.canonical_dtype(dtypes.default_int() if dtype is None else dtype)
    draws = convert(bernoulli(key, 0.5, canonical_shape(shape)), found, False)
    return lax.sub(lax.mul(draws, scalar_like(draws, 2)), scalar_like(draws, 1))


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Value:
    """Needs a sort: UnsupportedError. Outside of jit, NumPy's generators can permute."""
    size = x.shape[axis] if isinstance(x, ArrayBase | np.ndarray) else operator.index(x)
    raise UnsupportedError(
        f"permutation of {size} elements needs a sort, which this version does not have; "
        f"numpy.random.default_rng(seed).permutation({size}) gives one outside of traced code\n  at {user_line()}"
    )
