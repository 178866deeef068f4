"""How arguments are drawn: a few kinds, each a function of a source of integers and of the arguments before it.

The source is hypothesis in tests and `random` in long searches. Arrays are NumPy arrays; the caller makes arrays of
hloom or JAX of them. Anything else is a static argument.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np

NDArray = np.ndarray[Any, Any]


class Source(Protocol):
    """Where integers come from."""

    def integer(self, low: int, high: int) -> int:
        """One of low..high."""
        ...


class RandomSource:
    """Python's generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """One of low..high."""
        return self._random.randint(low, high)


@dataclass(frozen=True)
class Key:
    """A random key, which each library makes for itself."""

    seed: int


@dataclass(frozen=True)
class Dtype:
    """A dtype by its name."""

    name: str


FLOATS = ("float32", "float32", "float32", "float16", "bfloat16")
INTEGERS = ("int32", "int8", "uint8", "int16", "uint32")
DTYPES = (*FLOATS * 2, *INTEGERS, "bool", "complex64", "complex64")
WIDE_DTYPES = ("float64", "float64", "int64", "complex128", "float32", "int32", "uint64", "float16")
TESTED = ("float32", "float32", "int32")
"""The dtypes that are compared with NumPy's results, without JAX."""


class Draw:
    """Draws the arguments of one call, one after the other."""

    def __init__(self, source: Source, wide: bool = False, plain: bool = False) -> None:
        """`wide`: dtypes with 64 bits. `plain`: only dtypes and numbers with the same result in NumPy."""
        self.source, self.wide, self.plain = source, wide, plain
        self.rng = np.random.default_rng(source.integer(0, 2**16))
        self.pool = source.integer(0, 2 if plain else 4)
        self.dtype = self.one_of(self.dtypes())
        self.arrays: list[NDArray] = []
        """The arrays so far."""

    def dtypes(self) -> tuple[str, ...]:
        return TESTED if self.plain else WIDE_DTYPES if self.wide else DTYPES

    def integer(self, low: int, high: int) -> int:
        return self.source.integer(low, high)

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.integer(0, len(choices) - 1)]

    def shape(self, low: int = 0, high: int = 3) -> tuple[int, ...]:
        sizes = (1, 2, 3, 4) if self.plain else (0, 1, 2, 2, 3, 3, 4, 5)
        return tuple(self.one_of(sizes) for _ in range(self.integer(low, high)))

    def another_dtype(self) -> str:
        """The dtype of the first array, most of the time."""
        same = self.plain or self.integer(0, 2)
        return self.dtype if same else self.one_of(self.dtypes())

    # ---- numbers

    def numbers(self, shape: tuple[int, ...], dtype: str, domain: str = "") -> NDArray:
        """An array of numbers of this dtype, in this domain."""
        kind = np.dtype(dtype) if not dtype.startswith("bf") else np.dtype(ml_dtypes.bfloat16)
        if dtype == "bool":
            made = self.rng.integers(0, 2, shape).astype(bool)
        elif "int" in dtype:
            made = self._integers(shape, np.dtype(dtype), domain)
        else:
            made = self._floats(shape, domain)
            if dtype.startswith("complex"):
                with np.errstate(all="ignore"):
                    made = made + 1j * self._floats(shape, domain)
            with np.errstate(all="ignore"):
                made = np.asarray(made).astype(kind)
        made = np.asarray(made).reshape(shape)
        self.arrays.append(made)
        return made

    def _integers(self, shape: tuple[int, ...], dtype: np.dtype[Any], domain: str) -> NDArray:
        if domain or self.pool < 3:
            low = 1 if domain in ("positive", "unit", "matrix") else -4 if dtype.kind == "i" else 0
            return self.rng.integers(low, 8, shape).astype(dtype)
        info = np.iinfo(dtype)
        pool = np.array([0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1], object)
        return self.rng.choice(pool, shape).astype(dtype)

    def _floats(self, shape: tuple[int, ...], domain: str) -> NDArray:
        rng = self.rng
        if domain == "positive":
            return rng.uniform(0.2, 4, shape) if self.pool else rng.integers(1, 5, shape) * 0.5
        if domain == "unit":
            return rng.uniform(0.05, 0.95, shape)
        if domain == "matrix" or self.pool == 1:
            return rng.standard_normal(shape)
        if self.pool == 0:
            return rng.integers(-3, 4, shape) * 1.0
        if self.pool == 2:
            return rng.uniform(-4, 4, shape)
        if self.pool == 3:
            special = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -2.5, 1e-3, 300, 1e30]
            return rng.choice(special, shape)
        signs = rng.choice([-1.0, 1.0], shape)
        return np.asarray(signs * 10 ** rng.uniform(-4, 4, shape))


Kind = Callable[[Draw], Any]
KINDS: dict[str, Kind] = {}


def kind(name: str) -> Callable[[Kind], Kind]:
    def register(function: Kind) -> Kind:
        assert name not in KINDS, name
        KINDS[name] = function
        return function

    return register


def _array(low: int, high: int, domain: str = "") -> Kind:
    return lambda d: d.numbers(d.shape(low, high), d.another_dtype(), domain)


KINDS |= {
    "x": _array(0, 3), "x1": _array(1, 3), "x2": _array(2, 3), "x3": _array(3, 3), "v": _array(1, 1),
    "positive": _array(0, 2, "positive"), "unit": _array(0, 2, "unit"), "m": _array(2, 2),
}  # fmt: skip


@kind("b")
def _flag(d: Draw) -> bool:
    return bool(d.integer(0, 1))


@kind("n")
def _small(d: Draw) -> int:
    return d.integer(0, 4)


@kind("n1")
def _positive_number(d: Draw) -> int:
    return d.integer(1, 5)


@kind("k")
def _offset(d: Draw) -> int:
    return d.integer(-2, 2)


@kind("p")
def _float(d: Draw) -> float:
    return d.integer(1, 40) / 16


@kind("float01")
def _fraction(d: Draw) -> float:
    return d.integer(0, 16) / 16


@kind("scalar")
def _scalar(d: Draw) -> Any:
    """A weakly typed number."""
    return d.one_of((2, 1.5, -1, True, 0, 0.5))


@kind("key")
def _key(d: Draw) -> Key:
    return Key(d.integer(0, 99))


@kind("dtype")
def _dtype(d: Draw) -> Dtype:
    return Dtype(d.one_of(d.dtypes()))


@kind("fdtype")
def _float_dtype(d: Draw) -> Dtype:
    return Dtype(d.one_of(("float32", "float16", "float32") if d.plain else FLOATS))


@kind("shape")
def _shape(d: Draw) -> tuple[int, ...]:
    return d.shape(0, 3)


# ---- arrays beside the first one


@kind("y")
def _broadcastable(d: Draw) -> Any:
    """An array that broadcasts with the last one, or a number."""
    if not d.plain and d.integer(0, 7) == 0:
        return _scalar(d)
    shape = d.arrays[-1].shape
    kept = shape[d.integer(0, len(shape)) :]
    return d.numbers(tuple(1 if d.integer(0, 3) == 0 else n for n in kept), d.another_dtype())


@kind("s")
def _same(d: Draw) -> NDArray:
    """Of the last array's shape."""
    return d.numbers(d.arrays[-1].shape, d.another_dtype())


@kind("S")
def _same_type(d: Draw) -> NDArray:
    """Of the last array's shape and dtype."""
    return d.numbers(d.arrays[-1].shape, d.arrays[-1].dtype.name)


@kind("unit_s")
def _same_unit(d: Draw) -> NDArray:
    return d.numbers(d.arrays[-1].shape, d.arrays[-1].dtype.name, "unit")


@kind("positive_s")
def _same_positive(d: Draw) -> NDArray:
    return d.numbers(d.arrays[-1].shape, d.arrays[-1].dtype.name, "positive")


@kind("mask")
def _mask(d: Draw) -> NDArray:
    """Booleans that broadcast with the first array."""
    shape = d.arrays[0].shape
    return d.numbers(shape[d.integer(0, 1) if shape else 0 :], "bool")


@kind("x_mask")
def _first_mask(d: Draw) -> NDArray:
    return d.numbers(d.shape(), "bool")


@kind("[x]")
def _list(d: Draw) -> list[Any]:
    """One to three arrays of one shape."""
    shape = d.shape(1, 3)
    return [d.numbers(shape, d.another_dtype()) for _ in range(d.integer(1, 3))]


@kind("[v]")
def _vectors(d: Draw) -> list[Any]:
    return [d.numbers((d.integer(1, 4),), d.another_dtype()) for _ in range(d.integer(1, 3))]


@kind("[m]")
def _matrices(d: Draw) -> list[Any]:
    return [d.numbers(d.shape(2, 2), d.another_dtype()) for _ in range(d.integer(1, 3))]


@kind("index_plain")
def _labels(d: Draw) -> NDArray:
    """Small integers, without an array before them."""
    return d.numbers(d.shape(0, 2), "int32", "positive") - np.int32(2)


@kind("index")
def _index(d: Draw) -> NDArray:
    """Places of the first dimension of the first array, some of them from its end, some outside of it."""
    shape = d.arrays[0].shape
    size = shape[0] if shape else 1
    outside = 0 if d.plain else d.integer(0, 1) * 2
    return d.numbers(d.shape(0, 2), "int32") % np.int32(max(size, 1) + outside) - np.int32(d.integer(0, 1))


@kind("last_index")
def _last_index(d: Draw) -> NDArray:
    """Places of the last dimension, in an array of the first one's rank."""
    shape = d.arrays[0].shape
    count = d.integer(1, 3)
    return d.numbers((*shape[:-1], count), "int32") % np.int32(max(shape[-1] if shape else 1, 1))


@kind("counts")
def _counts(d: Draw) -> NDArray:
    """Small numbers, not negative."""
    return abs(d.numbers((d.integer(1, 6),), "int32", "positive")) % 5


@kind("segments")
def _segments(d: Draw) -> NDArray:
    """For each row of the first array the number of its segment."""
    shape = d.arrays[0].shape
    return d.numbers(shape[:1], "int32", "positive") % 4 - 0


@kind("sorted")
def _sorted(d: Draw) -> NDArray:
    return np.sort(d.numbers((d.integer(1, 6),), "float32", "matrix"))


# ---- axes


@kind("a")
def _axis(d: Draw) -> int:
    """An axis of the first array; rarely one that it has not."""
    rank = d.arrays[0].ndim
    if not d.plain and d.integer(0, 19) == 0:
        return d.one_of((rank, -rank - 1))
    return d.integer(-rank, rank - 1) if rank else 0


@kind("A")
def _axes(d: Draw) -> Any:
    """None, an axis, or several."""
    rank = d.arrays[0].ndim
    how = d.integer(0, 3)
    if how == 0 or not rank:
        return None
    if how < 3:
        return _axis(d)
    return _tuple_of_axes(d)


@kind("axes")
def _tuple_of_axes(d: Draw) -> tuple[int, ...]:
    """Some axes, each once."""
    rank = d.arrays[0].ndim
    chosen = [i for i in range(rank) if d.integer(0, 1)]
    return tuple(i - rank * d.integer(0, 1) for i in chosen)


@kind("laxes")
def _lax_axes(d: Draw) -> tuple[int, ...]:
    """Some axes, not counted from the end."""
    return tuple(i for i in range(d.arrays[0].ndim) if d.integer(0, 1))


@kind("la")
def _lax_axis(d: Draw) -> int:
    rank = d.arrays[0].ndim
    return d.integer(0, rank - 1) if rank else 0


@kind("permutation")
def _permutation(d: Draw) -> tuple[int, ...]:
    return tuple(int(i) for i in d.rng.permutation(d.arrays[0].ndim))


@kind("newshape")
def _new_shape(d: Draw) -> tuple[int, ...]:
    """A shape with as many elements."""
    size = d.arrays[0].size
    return d.one_of([(size,), (-1,) if size else (0,), (1, size), (size, 1)])


@kind("wider")
def _wider(d: Draw) -> tuple[int, ...]:
    """A shape that the first array can be broadcast to."""
    shape = tuple(d.one_of((2, 3)) if n == 1 else n for n in d.arrays[0].shape)
    return d.shape(0, 1) + shape


@kind("pads")
def _pads(d: Draw) -> Any:
    return [(d.integer(0, 2), d.integer(0, 2)) for _ in d.arrays[0].shape]


# ---- matrices


def _batch(d: Draw) -> tuple[int, ...]:
    return d.one_of([(), (), (2,)] if d.plain else [(), (), (2,), (0,), (2, 1)])


def _matrix_dtype(d: Draw) -> str:
    found = d.another_dtype()
    return found if found in ("float32", "complex64", "int32", "float64", "complex128") else "float32"


@kind("matrix")
def _matrix(d: Draw) -> NDArray:
    return d.numbers((*_batch(d), d.integer(1, 5), d.integer(1, 5)), _matrix_dtype(d), "matrix")


@kind("square")
def _square(d: Draw) -> NDArray:
    """With a diagonal that makes it well conditioned."""
    n = d.integer(1, 5)
    made = d.numbers((*_batch(d), n, n), _matrix_dtype(d), "matrix")
    made += (4 * np.eye(n)).astype(made.dtype)
    return made


@kind("hermitian")
def _hermitian(d: Draw) -> NDArray:
    made = _square(d)
    made += np.conj(np.swapaxes(made, -1, -2)).astype(made.dtype)
    return made


@kind("spd")
def _positive_definite(d: Draw) -> NDArray:
    n = d.integer(1, 5)
    made = d.numbers((*_batch(d), n, n), _matrix_dtype(d), "matrix")
    made[...] = made @ np.conj(np.swapaxes(made, -1, -2)) + (2 * np.eye(n)).astype(made.dtype)
    return made


@kind("rhs")
def _right_side(d: Draw) -> NDArray:
    """Columns for the matrix before it."""
    shape = d.arrays[0].shape
    return d.numbers((*shape[:-1], d.integer(1, 3)), d.arrays[0].dtype.name, "matrix")


@kind("mm")
def _right_factor(d: Draw) -> NDArray:
    """A right factor for a product with the last array."""
    last = d.arrays[-1]
    inner = last.shape[-1:] or (2,)
    return d.numbers((*inner, *d.shape(0, 1)), d.another_dtype())


@kind("vlike")
def _vector_like(d: Draw) -> NDArray:
    """A vector as long as the last one."""
    return d.numbers(d.arrays[-1].shape[-1:], d.another_dtype())


def draw_one(d: Draw, word: str) -> Any:
    """The argument that a word of a row stands for: a kind, `{a|b}` for one of several literals, or `:literal`."""
    if word.startswith("{"):
        return _literal(d.one_of(word[1:-1].split("|")))
    if word.startswith(":"):
        return _literal(word[1:])
    return KINDS[word](d)


def _literal(text: str) -> Any:
    """A literal of Python, or else a text, in which ~ stands for a space."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text.replace("~", " ")
