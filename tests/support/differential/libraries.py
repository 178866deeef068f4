"""Runs a case with hloom, JAX and NumPy, and records the outcome: leaves with types, or the class of an error."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .kinds import Dtype, Key
from .table import Case

NDArray = np.ndarray[Any, Any]


@dataclass
class Leaf:
    """One array of a result, or something else by its text."""

    value: NDArray | None
    weak: bool
    text: str = ""

    def type_name(self) -> str:
        """dtype, shape and weakness."""
        if self.value is None:
            return self.text
        return f"{self.value.dtype.name}{'*' if self.weak else ''}{list(self.value.shape)}"


@dataclass
class Outcome:
    """The outcome of a call."""

    leaves: list[Leaf]
    error: BaseException | None = None

    def error_names(self) -> list[str]:
        """The classes of the error, without object, BaseException and Exception."""
        return [c.__name__ for c in type(self.error).__mro__ if c not in (object, BaseException, Exception)]


class Library:
    """hloom or JAX."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.root = importlib.import_module(package)
        self.numpy = importlib.import_module(f"{package}.numpy")
        importlib.import_module(f"{package}.random")

    def argument(self, value: Any) -> Any:
        """A drawn argument as this library takes it."""
        if isinstance(value, np.ndarray | np.generic):
            return self.numpy.asarray(value)
        if isinstance(value, Key):
            return self.root.random.key(value.seed)
        if isinstance(value, Dtype):
            return ml_dtypes.bfloat16 if value.name == "bfloat16" else np.dtype(value.name)
        if isinstance(value, list):
            return [self.argument(v) for v in value]
        return value

    def run(self, case: Case, call: Callable[[Library, Case], Any] | None = None) -> Outcome:
        """The outcome of a case, plain or by `call`."""
        with warnings.catch_warnings(), np.errstate(all="ignore"), self.root.enable_x64(case.wide):
            warnings.simplefilter("ignore")
            try:
                result = call(self, case) if call else self.plain(case)
                return Outcome(self.leaves(result))
            except Exception as error:  # an outcome like any other
                return Outcome([], error)

    def plain(self, case: Case) -> Any:
        function = case.row.function(self.package)
        options = {k: self.argument(v) for k, v in case.options.items()}
        return function(*map(self.argument, case.args), **options)

    def leaves(self, result: Any) -> list[Leaf]:
        """The arrays of a result; other leaves as their text."""
        if isinstance(result, list | tuple):
            return [leaf for part in result for leaf in self.leaves(part)]
        if isinstance(result, dict):
            return [leaf for key in sorted(result) for leaf in self.leaves(result[key])]
        if hasattr(result, "dtype") and hasattr(result, "shape") and not isinstance(result, type):
            if str(result.dtype).startswith("key<"):
                return self.leaves(self.root.random.key_data(result))
            return [Leaf(np.asarray(result), bool(getattr(result, "weak_type", False)))]
        if isinstance(result, float):
            return [Leaf(None, False, f"{result:.5g}")]
        return [Leaf(None, False, f"{result!r}".replace("jax.", "").replace("hloom.", ""))]


class NumPy:
    """NumPy and SciPy, in double precision: what a result should be. A call that they do not know is an error."""

    package = "numpy"

    def run(self, case: Case, call: object = None) -> Outcome:
        """As `Library.run`."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                function = _of_numpy(case.row.namespace, case.row.name)
                options = {k: self._argument(v) for k, v in case.options.items()}
                return Outcome(self._leaves(function(*map(self._argument, case.args), **options)))
            except Exception as error:  # an outcome like any other
                return Outcome([], error)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Dtype):
            return np.dtype(value.name)
        if isinstance(value, list):
            return [self._argument(v) for v in value]
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        return value

    def _leaves(self, result: Any) -> list[Leaf]:
        if isinstance(result, list | tuple):
            return [leaf for part in result for leaf in self._leaves(part)]
        return [Leaf(np.asarray(result), False)]


def _of_numpy(namespace: str, name: str) -> Callable[..., Any]:
    """The function of NumPy or SciPy with this name."""
    if namespace == "lax":
        namespace, name = "numpy", _NUMPY_NAMES.get(name, name)
    module = importlib.import_module("scipy.stats" if namespace.startswith("scipy.stats.") else namespace)
    if namespace.startswith("scipy.stats."):
        module = getattr(module, namespace.rpartition(".")[2])
    found: Callable[..., Any] = getattr(module, name)
    return found


_NUMPY_NAMES = {
    "neg": "negative", "pow": "power", "sub": "subtract", "mul": "multiply", "max": "maximum", "min": "minimum",
    "div": "divide", "rem": "fmod", "ne": "not_equal", "eq": "equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "atan2": "arctan2",
}  # fmt: skip
"""By the names of `lax`."""


def is_array(value: Any) -> bool:
    """Is this drawn argument an array, which a transformation may trace?"""
    return isinstance(value, np.ndarray | np.generic) or (isinstance(value, list) and any(map(is_array, value)))
