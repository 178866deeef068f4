"""A user's function as a custom call runs it: its arguments, and the check of its results."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..hlo.errors import CustomCallError, JaxRuntimeError
from ..hlo.support.progress import cleared
from ..hlo.support.records import dataclass
from ..hlo.support.shared_value import SharedValue
from ..tracer.arrays.array import Array, as_value, with_storage
from ..tracer.arrays.extended import ExtendedDType
from ..tracer.arrays.operators import ArrayBase
from ..tracer.aval import ShapedArray
from ..tracer.core import EVAL, Value, set_current_trace, source_metadata
from ..tracer.source import function_line
from ..tracer.trees import tree
from ..tracer.trees.nodes import SequenceKey
from ..tracer.trees.treedef import paths_of_structure

NDArray = np.ndarray[Any, Any]
_INDICES = itertools.count()
"""The number of a function in text, where it has no other name."""


class HostCallback(SharedValue):
    """A user's function as a custom call runs it: flat arrays in, flat arrays out. Compared by identity."""

    def __init__(
        self, what: str, function: Callable[..., Any], line: str, given: Given, out_tree: Any,
        results: tuple[ShapedArray, ...],
    ) -> None:  # fmt: skip
        self.what, self.function, self.line = what, function, line
        self.given, self.out_tree, self.results = given, out_tree, results
        self.index: int = next(_INDICES)

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", None) or type(self.function).__name__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function})"

    def with_batch(self, size: int) -> HostCallback:
        """The same function for operands with a further dimension in front; each result has one, too."""
        longer = tuple([ShapedArray((size, *a.shape), a.dtype) for a in self.results])
        return HostCallback(self.what, self.function, self.line, self.given, self.out_tree, longer)

    def __call__(self, *operands: NDArray) -> Any:
        """For a custom call: NumPy arrays, which this function may keep."""
        arrays = [strong_array(x, d) for x, d in zip(operands, self.given.dtypes, strict=True)]
        found = tuple([a._view for a in self.run(arrays)])
        return found[0] if len(self.results) == 1 else found

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Call the function; its results, checked."""
        try:
            with set_current_trace(EVAL), source_metadata(None), cleared():
                args, kwargs = self.given.rebuilt(arrays)
                returned = self.function(*args, **kwargs)
        except BaseException as error:
            note = f"raised by the function of {self.what}: {function_line(self.function)}, called at {self.line}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            if isinstance(error, JaxRuntimeError) or not isinstance(error, Exception):
                raise
            raise _as_jax_raises(error) from error
        return self._checked(returned) if self.results else []

    def _checked(self, returned: Any) -> list[Array]:
        """The leaves of the function's result; CustomCallError unless they are as declared."""
        leaves, found = tree.flatten(returned)
        if len(leaves) != len(self.results):
            self._refuse(f"{len(leaves)} arrays, {found}, not {len(self.results)}: {self._promised()}")
        if found != self.out_tree and _named(found) != _named(self.out_tree):
            self._refuse(f"a tree {found}, not {self.out_tree}")
        arrays: list[Array] = []
        for position, (leaf, wanted) in enumerate(zip(leaves, self.results, strict=True)):
            name = f"result {position}" if len(leaves) > 1 else "a result"
            try:
                array: Any = as_value(np.asarray(leaf) if _is_foreign(leaf) else leaf)
            except TypeError:
                self._refuse(f"{name} that is no array but a {type(leaf).__name__}, not {wanted.str_short()}")
            if not isinstance(array, Array):
                self._refuse(f"{name} that is a traced value, which belongs to another program")
            if (array.aval.shape, array.aval.dtype) != (wanted.shape, wanted.dtype):
                fits = isinstance(leaf, bool | int | float | complex) and wanted.shape == ()
                if not fits or np.asarray(leaf).dtype.kind != wanted.dtype.kind:
                    self._refuse(f"{name} of {array.aval.str_short()}, not {wanted.str_short()}")
                try:
                    array = Array(wanted, np.asarray(leaf, wanted.dtype))
                except OverflowError:
                    self._refuse(f"{name}, {leaf}, that does not fit into {wanted.str_short()}")
            arrays.append(array.with_aval(wanted))
        return arrays

    def _promised(self) -> str:
        return ", ".join([a.str_short() for a in self.results])

    def _refuse(self, why: str) -> Any:
        raise CustomCallError(
            f"the function of {self.what} returned {why} (result_shape_dtypes)\n"
            f"  function: {function_line(self.function)}\n  called at {self.line}\n"
            "  Return arrays of exactly these shapes and dtypes (numpy.asarray(x, dtype)), or change "
            "result_shape_dtypes."
        )


def _as_jax_raises(error: Exception) -> Exception:
    """The error of a user's function as a JaxRuntimeError, with JAX's text: the name of its class, then its message. It
    is of its own class, too, so that programs can catch it by either."""
    return _made(type(error), error.args, {**error.__dict__, _TEXT: f"{type(error).__name__}: {error}"})


_TEXT = "_text_as_jax_raises"


def _made(kind: type[Exception], args: tuple[Any, ...], attributes: dict[str, Any]) -> Exception:
    """An error of this class and of JaxRuntimeError. Constructors of the user's may take anything, and do not run."""
    cls, built_in = _class_as_jax_raises(kind)  # type: ignore[arg-type]  # mypy takes a class for an instance
    made: Exception = built_in.__new__(cls, *args)
    built_in.__init__(made, *args)
    made.__dict__.update(attributes)
    return made


class _AsJaxRaises:
    """Before the user's class among the bases: methods that would be those of the user's class."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Nothing: that of the user's class may need arguments."""

    def __str__(self) -> str:
        return str(self.__dict__[_TEXT])

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        made: Any = self
        return _made, (made.user_class, made.args, self.__dict__)


@functools.lru_cache(maxsize=64)
def _class_as_jax_raises(kind: type[Exception]) -> tuple[type[Exception], type[Exception]]:
    """The class, and the first of its bases that is Python's own."""
    bases = (JaxRuntimeError,) if issubclass(JaxRuntimeError, kind) else (kind, JaxRuntimeError)
    members = {"__module__": JaxRuntimeError.__module__, "user_class": kind}
    built_in = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    return type(JaxRuntimeError.__name__, (_AsJaxRaises, *bases), members), built_in


def _named(treedef: Any) -> list[tuple[Any, ...]]:
    """The path to each leaf but for lists and tuples: a function may return either of the two, and a list of one in
    place of its element."""
    return [tuple([k for k in path if not isinstance(k, SequenceKey)]) for path in paths_of_structure(treedef)]


def _is_foreign(leaf: Any) -> bool:
    """Whether it is an array of another library, with `__array__`."""
    if isinstance(leaf, ArrayBase | np.ndarray | np.generic) or hasattr(leaf, "__jax_array__"):
        return False
    return hasattr(leaf, "__array__")


def strong_array(x: NDArray, dtype: ExtendedDType | None) -> Array:
    """An operand as the function gets it: strongly typed; `dtype`: its extended dtype, if it has one."""
    array = Array(ShapedArray(x.shape, x.dtype), x)
    if dtype is None:
        return array
    return with_storage(ShapedArray(x.shape[: x.ndim - len(dtype.storage_shape)], dtype), array)


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a function: arrays, which a program computes, and other objects, which it hands over."""

    treedef: Any
    static: dict[int, Any]
    """Leaves that are no arrays, by position."""
    dtypes: tuple[ExtendedDType | None, ...]
    """For each array its extended dtype, if it has one."""

    def rebuilt(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with these arrays."""
        moving = iter(arrays)
        count = len(self.static) + len(arrays)
        leaves = [self.static[k] if k in self.static else next(moving) for k in range(count)]
        args, kwargs = tree.unflatten(self.treedef, leaves)
        return args, kwargs


def given(args: tuple[Any, ...], kwargs: dict[str, Any], static: bool = False) -> tuple[Given, list[Value]]:
    """The arguments of a function taken apart. `static`: leaves that are no arrays are allowed."""
    leaves, treedef = tree.flatten((args, kwargs))
    values: list[Value] = []
    others: dict[int, Any] = {}
    for position, leaf in enumerate(leaves):
        try:
            values.append(as_value(leaf))
        except TypeError:
            if not static:
                raise
            others[position] = leaf
    return Given(treedef, others, tuple([_extended(v) for v in values])), values


def _extended(value: Value) -> ExtendedDType | None:
    dtype: Any = value.aval.dtype
    return dtype if value.aval.is_extended else None
