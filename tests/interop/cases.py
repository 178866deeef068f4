"""A recorded call of a JAX function: the function's public name, its arguments, and how it is called with them.

`functions_*.py` register cases here; `record.py` lowers and runs them. Nothing here needs JAX.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

WIDE = ("float64", "complex128", "int64", "uint64")
"""Types that JAX has only with `jax_enable_x64`."""


@dataclass(frozen=True, slots=True)
class Input:
    """An array argument, drawn uniformly from [low, high), for integers and booleans too."""

    dtype: str
    shape: tuple[int, ...]
    low: float
    high: float

    def draw(self, generator: np.random.Generator) -> Array:
        """An array of this kind."""
        if self.dtype == "bool":
            return generator.random(self.shape) < 0.5
        if self.dtype.startswith(("int", "uint")):
            return generator.integers(int(self.low), int(self.high), self.shape).astype(self.dtype)
        values = generator.uniform(self.low, self.high, self.shape)
        if self.dtype.startswith("complex"):
            values = values + 1j * generator.uniform(self.low, self.high, self.shape)
        return np.asarray(values).astype(ml_dtypes.bfloat16 if self.dtype == "bfloat16" else self.dtype)


@dataclass(frozen=True, slots=True)
class PositiveDefinite:
    """A Hermitian positive definite matrix, or a stack of such."""

    dtype: str
    shape: tuple[int, ...]

    def draw(self, generator: np.random.Generator) -> Array:
        """An array of this kind."""
        half = Input(self.dtype, self.shape, -1, 1).draw(generator)
        identity = np.eye(self.shape[-1], dtype=self.dtype)
        return (half @ half.swapaxes(-1, -2).conj() + self.shape[-1] * identity).astype(self.dtype)


def _floats(dtype: str) -> Callable[..., Input]:
    def make(*shape: int, low: float = -2.0, high: float = 2.0) -> Input:
        return Input(dtype, shape, low, high)

    return make


def _integers(dtype: str, lowest: int) -> Callable[..., Input]:
    def make(*shape: int, low: int = lowest, high: int = 9) -> Input:
        return Input(dtype, shape, low, high)

    return make


f32, f64, f16, bf16 = _floats("float32"), _floats("float64"), _floats("float16"), _floats("bfloat16")
c64, c128 = _floats("complex64"), _floats("complex128")
s8, s16, s32, s64 = (_integers(name, -9) for name in ("int8", "int16", "int32", "int64"))
u8, u16, u32, u64 = (_integers(name, 0) for name in ("uint8", "uint16", "uint32", "uint64"))


def pred(*shape: int) -> Input:
    """Booleans, both as likely."""
    return Input("bool", shape, 0, 1)


def unit(*shape: int) -> Input:
    """f32 strictly inside of (0, 1)."""
    return f32(*shape, low=0.05, high=0.95)


def positive(*shape: int) -> Input:
    """f32 well above 0."""
    return f32(*shape, low=0.3, high=4.0)


def spd(*shape: int, dtype: str = "float32") -> PositiveDefinite:
    """Positive definite matrices."""
    return PositiveDefinite(dtype, shape)


def key(seed: int = 0) -> Array:
    """The data of a threefry key, as `jax.random.key_data` gives it."""
    return np.array([0, seed], np.uint32)


@dataclass(frozen=True, slots=True)
class Case:
    """A call of a public JAX function."""

    name: str
    """Below `jax.`, as in `numpy.linalg.svd`."""
    label: str
    """Tells the cases of one function apart."""
    arguments: tuple[Any, ...]
    """`Input`, `PositiveDefinite`, arrays, or lists of such."""
    call: Callable[..., Any]
    """Called with the function, then the arguments."""
    options: dict[str, Any] = field(default_factory=dict)
    """Static keyword arguments of the function."""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.label}" if self.label else self.name

    def draw(self) -> list[Any]:
        """The arguments as arrays; the same for the same id."""
        generator = np.random.default_rng(zlib.crc32(self.id.encode()))

        def drawn(argument: Any) -> Any:
            if isinstance(argument, Input | PositiveDefinite):
                return argument.draw(generator)
            if isinstance(argument, list | tuple):
                return type(argument)(drawn(a) for a in argument)
            return argument

        return [drawn(a) for a in self.arguments]

    @property
    def is_wide(self) -> bool:
        """Whether an argument is of a type that needs `jax_enable_x64`."""

        def wide(argument: Any) -> bool:
            if isinstance(argument, list | tuple):
                return any(map(wide, argument))
            return str(getattr(argument, "dtype", "")) in WIDE

        return any(map(wide, self.arguments))


CASES: dict[str, Case] = {}


def case(
    name: str,
    *arguments: Any,
    label: str = "",
    call: Callable[..., Any] | None = None,
    **options: Any,
) -> None:
    """Register a call of `jax.<name>`. Without `call`: `function(*arguments, **options)`."""
    made = Case(name, label, arguments, call or (lambda f, *args: f(*args)), options)
    if made.id in CASES:
        raise ValueError(f"two cases are called {made.id}: give one of them a label")
    CASES[made.id] = made


def cases(names: str, *arguments: Any, within: str, label: str = "", **options: Any) -> None:
    """The same call for several functions of the module `jax.<within>`."""
    for name in names.split():
        case(f"{within}.{name}", *arguments, label=label, **options)


def typed(name: str, makers: Sequence[Callable[..., Input]], *shapes: tuple[int, ...], **options: Any) -> None:
    """The same call for several element types, which are the labels."""
    for maker in makers:
        inputs = [maker(*shape) for shape in shapes]
        case(name, *inputs, label=SHORT[inputs[0].dtype], **options)


SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
    "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "pred",
}  # fmt: skip
