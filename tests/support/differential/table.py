"""The rows, and cases drawn from them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import rows_lax, rows_numpy, rows_scipy
from .calls import CALLS
from .kinds import Draw, Source, draw_one
from .rows_numpy import Lines

NAMESPACES: dict[str, Lines] = {
    "numpy": rows_numpy.NUMPY,
    "numpy.linalg": rows_numpy.LINALG,
    "numpy.fft": rows_numpy.FFT,
    "lax": rows_lax.LAX,
    "lax.linalg": rows_lax.LAX_LINALG,
    "nn": rows_lax.NN,
    "random": rows_lax.RANDOM,
    "ops": rows_lax.OPS,
    "image": rows_lax.IMAGE,
    "scipy.special": rows_scipy.SPECIAL,
    "scipy.linalg": rows_scipy.LINALG,
    "scipy.signal": rows_scipy.SIGNAL,
    "scipy.ndimage": rows_scipy.NDIMAGE,
    "scipy.fft": rows_scipy.FFT,
    "scipy.integrate": rows_scipy.INTEGRATE,
    "scipy.cluster.vq": rows_scipy.CLUSTER,
    "scipy.stats": rows_scipy.STATS_FUNCTIONS,
    **{f"scipy.stats.{name}": lines for name, lines in rows_scipy.STATS.items()},
}


_SCIPY = ("scipy.linalg", "scipy.ndimage", "scipy.special", "scipy.signal")


@dataclass(frozen=True)
class Row:
    """One function, in one way to call it."""

    namespace: str
    name: str
    kinds: str

    def function(self, package: str) -> Callable[..., Any]:
        """The function of `package` ("hloom", "jax", "numpy", "scipy")."""
        special = CALLS.get(self.namespace, {}).get(self.name)
        if special is not None:
            if package == "numpy":
                raise NotImplementedError("a call of hloom and JAX")
            library = importlib.import_module(package)
            for name in ("numpy", "lax", "lax.linalg", "random", "nn", "image", *_SCIPY):
                importlib.import_module(f"{package}.{name}")
            return lambda *args, **options: special(library, *args, **options)
        found: Callable[..., Any] = getattr(importlib.import_module(f"{package}.{self.namespace}"), self.name)
        return found

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}({self.kinds})"


@dataclass
class Case:
    """The arguments of one call: NumPy arrays, lists of them, keys, and values that no transformation traces."""

    row: Row
    args: list[Any]
    options: dict[str, Any]
    wide: bool = False
    pool: int = 0
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        def text(value: Any) -> str:
            if hasattr(value, "dtype") and hasattr(value, "tolist"):
                return f"np.array({value.tolist()}, {value.dtype.name!r})" + ("" if value.size else f"@{value.shape}")
            if isinstance(value, list):
                return "[" + ", ".join(map(text, value)) + "]"
            return repr(value)

        words = [*map(text, self.args), *(f"{k}={text(v)}" for k, v in self.options.items())]
        return f"{self.row.namespace}.{self.row.name}({', '.join(words)})" + (" with x64" if self.wide else "")


def rows(namespaces: tuple[str, ...] = tuple(NAMESPACES)) -> Iterator[Row]:
    """All rows of these namespaces."""
    for namespace in namespaces:
        for kinds, names in NAMESPACES[namespace]:
            for name in names.split():
                yield Row(namespace, name, kinds)


def draw_case(row: Row, source: Source, wide: bool = False, plain: bool = False) -> Case:
    """Arguments for a row."""
    draw = Draw(source, wide, plain)
    args: list[Any] = []
    options: dict[str, Any] = {}
    for word in row.kinds.split():
        name, mark, kind = _parts(word)
        if mark == "?" and not source.integer(0, 1):
            continue
        value = draw_one(draw, kind)
        if mark:
            options[name] = value
        else:
            args.append(value)
    return Case(row, args, options, wide, draw.pool)


def _parts(word: str) -> tuple[str, str, str]:
    """``axis?A`` as ("axis", "?", "A"); ``x`` as ("", "", "x")."""
    for k, letter in enumerate(word):
        if letter in "{:[":
            break
        if letter in "?=":
            return word[:k], letter, word[k + 1 :]
    return "", "", word
