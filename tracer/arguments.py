"""The arguments of a transformed function: which are static or donated, and the others as flat lists of values.

Used by jit and by all that takes functions of pytrees. Names of arguments come from the function's signature, so that
`static_argnums=1` also holds for the argument passed by keyword, as in JAX.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..hlo.array_address import DATA_POINTERS, WORD_SHIFT
from ..hlo.host_buffers import USABLE, HostBuffer, bytes_buffer
from ..hlo.runners import SiteParameter
from . import dtypes
from .arrays.array import CONVERSIONS, Array, array_from_scalar, as_value, refuse_masked, resolved
from .arrays.float0 import is_float0
from .arrays.layouts import Format
from .arrays.operators import ArrayBase
from .aval import HasType, ShapedArray
from .caches import on_clear
from .core import Value, thread_state
from .errors import (
    CompileOptionError,
    NonArrayArgumentError,
    NonHashableStaticArgumentsError,
    OperandError,
    UnsupportedElementTypeError,
)
from .settings.context import thread
from .sharding.current_mesh import current_mesh
from .sharding.partition_spec import PartitionSpec
from .sharding.shardings import NamedSharding, Sharding
from .source import function_line
from .trees import tree
from .wrapping import signature


class LeafName(NamedTuple):
    """For messages: a leaf of a call's arguments."""

    path: str
    """``params[0]['w']``."""
    function: str
    """``f at file.py:10``."""


class ShapeDtypeStruct(HasType):
    """The type of an array without elements: `eval_shape` returns it, and `lower` and `eval_shape` also take it.

    >>> x = hloom.ShapeDtypeStruct((2, 3), jnp.float32)
    >>> x.shape, x.dtype, hloom.eval_shape(jnp.transpose, x)
    ((2, 3), dtype('float32'), ShapeDtypeStruct(shape=(3, 2), dtype=float32))
    """

    __slots__ = ("_place", "aval", "stated_dtype")
    _place: Sharding | PartitionSpec | None
    stated_dtype: Any
    """The dtype that the user named, of 64 bits perhaps, though `dtype` is one that values may have. Native code is
    called with arrays of this dtype."""

    def __init__(
        self, shape: Sequence[int], dtype: Any, *, sharding: Any = None, weak_type: bool = False, vma: Any = None
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified")
        if isinstance(sharding, Format):
            sharding = sharding.sharding
        if sharding is not None and not isinstance(sharding, Sharding | PartitionSpec):
            raise ValueError(
                "sharding should be an instance of `hloom.sharding.Sharding`, `PartitionSpec` or `Format`. "
                f"Got {sharding} of type {type(sharding)}."
            )
        self.aval, self.stated_dtype = ShapedArray(tuple(shape), dtypes.canonical_dtype(dtype), weak_type), dtype
        if isinstance(sharding, Sharding):
            sharding.check_compatible_aval(self.aval.shape)
            self.aval = self.aval.divided(sharding)
        self._place = sharding

    @property
    def sharding(self) -> Sharding | None:
        """The place for the array, if the user has named one; a PartitionSpec is over the mesh that is current now.

        TypeError if there is none."""
        if not isinstance(self._place, PartitionSpec):
            return self._place
        mesh = current_mesh()
        if mesh.empty:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty. Please use "
                f"`hloom.set_mesh` to set the mesh context, or give a NamedSharding. Got {self._place}"
            )
        place = NamedSharding(mesh, self._place)
        place.check_compatible_aval(self.aval.shape)
        return place

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The type of an array or a number, and the sharding of an array that was put somewhere."""
        aval = typeof(x)
        place = x.sharding if isinstance(x, Array) and x.committed else None
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=place)

    @classmethod
    def of(cls, aval: ShapedArray) -> ShapeDtypeStruct:
        """The type `aval`, with the sharding that it has."""
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=aval.division)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The type with another shape, dtype or weak type."""
        given: dict[str, Any] = {"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type}
        given.update({"sharding": self._place, **changes})
        return ShapeDtypeStruct(given.pop("shape"), given.pop("dtype"), **given)

    @property
    def vma(self) -> frozenset[str]:
        """The axes of a mesh along which it varies: none."""
        return frozenset()

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and other.aval is self.aval and other._place == self._place

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        place = "" if self._place is None else f", sharding={self._place}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{place}{weak})"


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """Positions and names of a function's arguments that are special (static, or donated)."""

    positions: frozenset[int]
    names: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.positions or self.names)

    def positional(self, count: int) -> frozenset[int]:
        """The positions among `count` positional arguments; negative ones count from the end."""
        return frozenset(p + count if p < 0 else p for p in self.positions if -count <= p < count)


def argument_spec(fun: Callable[..., Any], what: str, numbers: Any, names: Any) -> ArgumentSpec:
    """From `static_argnums` and the like. Positions and names follow from one another by the signature.

    ValueError for a position or a name that the function does not have, and for names to donate of a function whose
    signature cannot be known.
    """
    positions = _numbers(what, numbers)
    labels = _names(what, names)
    parameters = signature_of(fun)
    if parameters is None and labels and what == "donate":
        raise ValueError(
            f"Getting the signature of function {function_line(fun)} failed. Pass donate_argnums instead of "
            "donate_argnames."
        )
    if parameters is not None and (positions or labels):
        _validate(fun, what, positions, labels, parameters)
        ordinary = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        by_name = {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
        if numbers is not None and names is None:
            labels = frozenset(ordinary[p] for p in positions if -len(ordinary) <= p < len(ordinary)) & by_name
        elif names is not None and numbers is None:
            positions = frozenset(ordinary.index(n) for n in labels if n in ordinary)
    return ArgumentSpec(positions, labels)


def check_function(fun: object, name: str) -> None:
    """TypeError unless the transformation `name` can take `fun`: a function that returns its results."""
    if not callable(fun):
        raise TypeError(
            f"Expected a callable value: {name} expects a function, but got {_short(fun)} of type {type(fun).__name__}"
        )
    if inspect.isgeneratorfunction(fun) or inspect.iscoroutinefunction(fun) or inspect.isasyncgenfunction(fun):
        kind = "a generator" if not inspect.iscoroutinefunction(fun) else "a coroutine"
        raise TypeError(
            f"Expected a function, got {kind} function: {name} needs a function that returns arrays, but "
            f"{function_line(fun)} returns {kind}\n"
            "  Return a list of the values, or collect them with hloom.lax.scan."
        )


def signature_of(fun: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The function's parameters, or None if they cannot be known."""
    try:
        return list(signature(fun).parameters.values())
    except (ValueError, TypeError):
        return None


def _numbers(what: str, numbers: Any) -> frozenset[int]:
    if numbers is None:
        return frozenset()
    try:
        items = numbers if isinstance(numbers, Iterable) and not isinstance(numbers, str) else (numbers,)
        return frozenset(operator.index(n) for n in items)
    except TypeError:
        raise TypeError(f"{what}_argnums must be an integer or integers, not {numbers!r}") from None


def _names(what: str, names: Any) -> frozenset[str]:
    if names is None:
        return frozenset()
    items = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(n, str) for n in items):
        raise TypeError(f"{what}_argnames must be a string or strings, not {names!r}")
    return frozenset(items)


def _validate(
    fun: Callable[..., Any],
    what: str,
    positions: frozenset[int],
    names: frozenset[str],
    parameters: list[inspect.Parameter],
) -> None:
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        for position in positions:
            if not -count <= position < count:
                raise ValueError(
                    f"{what}_argnums has {position}, but {function_line(fun)} takes {count} positional arguments"
                )
    by_name = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_more = any(p.kind is p.VAR_KEYWORD for p in parameters)
    others = {p.name for p in parameters} - by_name
    for name in names - by_name:
        if name in others:
            raise ValueError(
                f"{what}_argnames has {name!r}, which cannot be given to {function_line(fun)} by name: use "
                f"{what}_argnums"
            )
        if not takes_more:
            own = ", ".join(p.name for p in parameters) or "none"
            raise ValueError(
                f"{what}_argnames has {name!r}, which is no argument of {function_line(fun)}: use some of {own}"
            )


COMPILE_OPTIONS: dict[str, tuple[str, type]] = {
    "autotune": ("autotune", bool),
    "memory_budget": ("memory_budget", int),
    "schedule": ("schedules", str),
    "xla_allow_excess_precision": ("excess_precision", bool),
}
"""The options with an effect: the settings of a context that they set, and the types of their values."""
_EFFORTS = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")
"""Options that say how hard XLA tries; they mean nothing here."""


def compile_options(options: dict[str, Any] | None, what: str) -> frozenset[tuple[str, object]]:
    """The requested settings and their values. CompileOptionError for options that XLA does not have: XLA's names begin
    with "xla_", except for its options for effort."""
    found: set[tuple[str, object]] = set()
    for name, value in (options or {}).items():
        setting, kind = COMPILE_OPTIONS.get(name, ("", bool))
        if not setting:
            if not name.startswith("xla_") and name not in _EFFORTS:
                known = ", ".join(map(repr, COMPILE_OPTIONS))
                raise CompileOptionError(
                    f"{what}: No such compile option: {name!r}; here are {known}; others of XLA, xla_..., mean nothing"
                )
        elif not isinstance(value, kind):
            raise CompileOptionError(f"{what}: the compile option {name!r} must be a {kind.__name__}, not {value!r}")
        elif value:
            found.add((setting, value))
    return frozenset(found)


class StaticArguments(NamedTuple):
    """The static part of a call: compared by value and type, as 1, 1.0 and True are equal but trace differently."""

    positional: tuple[tuple[int, type, Any], ...]
    keyword: tuple[tuple[str, type, Any], ...]


NO_STATICS = StaticArguments((), ())


def split_static(
    fun: Callable[..., Any], spec: ArgumentSpec, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], StaticArguments]:
    """Dynamic positional and keyword arguments, and the static ones.

    NonHashableStaticArgumentsError if a static argument cannot be hashed.
    """
    if not spec:
        return args, dict(kwargs), NO_STATICS  # this very object: jit compares it by identity
    positions = spec.positional(len(args))
    statics = StaticArguments(
        tuple([(p, type(args[p]), args[p]) for p in sorted(positions)]),
        tuple([(n, type(kwargs[n]), kwargs[n]) for n in sorted(spec.names & kwargs.keys())]),
    )
    for where, kind, value in (*statics.positional, *statics.keyword):
        try:
            hash(value)
        except TypeError:
            raise NonHashableStaticArgumentsError(
                f"Non-hashable static arguments are not supported: static argument {where!r} of {function_line(fun)} "
                f"is a {kind.__name__}, which cannot be hashed: jit keeps one program for each value of a static "
                "argument\n  Pass a hashable value (a tuple, a frozen dataclass), or do not make the argument static."
            ) from None
    dynamic = tuple([a for k, a in enumerate(args) if k not in positions])
    return dynamic, {n: v for n, v in kwargs.items() if n not in spec.names}, statics


def merge_static(
    args: Sequence[Any], kwargs: Mapping[str, Any], statics: StaticArguments
) -> tuple[list[Any], dict[str, Any]]:
    """The inverse of `split_static`."""
    merged = list(args)
    for position, _, value in statics.positional:
        merged.insert(position, value)
    return merged, {**kwargs, **{name: value for name, _, value in statics.keyword}}


def abstract(leaf: Any, describe: Callable[[], LeafName]) -> ShapedArray:
    """The type of an argument's leaf; `describe` names it in messages. NonArrayArgumentError if it is no array."""
    kind = type(leaf)
    if kind is Array or isinstance(leaf, ArrayBase | ShapeDtypeStruct):
        return leaf.aval  # type: ignore[no-any-return]
    if kind is np.ndarray or isinstance(leaf, np.ndarray | np.generic):
        if kind is not np.ndarray:
            refuse_masked(leaf)
        return ShapedArray(leaf.shape, dtypes.canonical_dtype(leaf.dtype))
    if isinstance(leaf, bool | int | float | complex):
        return ShapedArray((), *dtypes.type_of(leaf))
    if kind in CONVERSIONS:
        return abstract(resolved(leaf), describe)
    path, function = describe()
    raise NonArrayArgumentError(
        f"Error interpreting argument to {function} as an abstract array. The problematic value is of type {kind} and "
        f"was passed to the function at path {path}. It is not an array or a number: {_short(leaf)}\n  Make the "
        "argument static (static_argnums, static_argnames), convert it with hloom.numpy.asarray, or register its class "
        "as a container (hloom.tree.register_pytree_node)."
    )


def abstract_example(leaf: Any, describe: Callable[[], LeafName]) -> ShapedArray:
    """As `abstract`, for an example of which only the type is used: it may be any object with a shape and a dtype."""
    if isinstance(leaf, ArrayBase | ShapeDtypeStruct | np.ndarray | np.generic):
        return abstract(leaf, describe)
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if isinstance(shape, tuple) and all(isinstance(n, int) for n in shape) and dtype is not None:
        try:
            return ShapedArray(shape, dtypes.canonical_dtype(np.dtype(dtype)))
        except TypeError:  # a dtype of another library
            pass
    return abstract(leaf, describe)


def values_of(leaves: Sequence[Any], describe: Callable[[int], LeafName]) -> list[Value]:
    """The leaves of arguments as values; `describe` names a leaf, by its position, in messages.

    NonArrayArgumentError if one of them is no array.
    """
    values: list[Value] = []
    for k, leaf in enumerate(leaves):
        try:
            values.append(as_value(leaf))
        except OperandError:
            abstract(leaf, functools.partial(describe, k))
            if not isinstance(leaf, ShapeDtypeStruct):
                raise
            raise without_elements(leaf, *describe(k)) from None
    return values


def without_elements(leaf: ShapeDtypeStruct, path: str, function: str) -> NonArrayArgumentError:
    """The error for a type where an array must be."""
    return NonArrayArgumentError(
        f"Argument '{path}' of shape {leaf.aval.str_short()} of type {type(leaf)} is not a valid JAX type. It is the "
        f"type of an array without its elements, and {function} needs them.\n  eval_shape and the method lower take "
        "these; pass an array here."
    )


def overflow(leaves: Sequence[Any], describe: Callable[[int], LeafName]) -> OverflowError:
    """The error for the first Python integer among `leaves` that the integers of arrays cannot hold."""
    integers = [(position, leaf) for position, leaf in enumerate(leaves) if type(leaf) is int]
    for position, leaf in integers:
        try:
            as_value(leaf)
        except OverflowError as error:
            path, function = describe(position)
            return OverflowError(
                "An overflow was encountered while parsing an argument to a jitted computation, whose argument path is "
                f"{path}. Got {type(leaf)} with value {leaf}: {error}\n  calling {function}"
            )
    raise AssertionError("no integer is too large")


OWN_TYPES: dict[type, Callable[[Any], Any]] = {}
"""`typeof` for values of a library's own classes (`hloom.experimental.hijax`, `hloom.core.pytype_aval_mappings`)."""
OWN_VALUES: list[Any] = []
"""The module `own_values.py` once a library has declared own types with values that transformations take. Until then
nothing looks for such values."""


def entered(*trees: Any) -> Any:
    """Trees in which values of own types are containers of their arrays."""
    return OWN_VALUES[0].for_programs(trees) if OWN_VALUES else trees


def has_own(*trees: Any) -> bool:
    """Whether there is a value of an own type in one of the trees."""
    return bool(OWN_VALUES) and OWN_VALUES[0].has_own(*trees)


def typeof(x: Any) -> Any:
    """The type of an array, a tracer or a number: `shape`, `dtype`, `weak_type`; of a reference an `AbstractRef`. On a
    mesh of several devices with Explicit axes, its `sharding` says which of these axes divide which dimension.

    TypeError for anything else.

    >>> hloom.typeof(jnp.ones((2, 3))), hloom.typeof(1.5)
    (ShapedArray(float32[2,3]), ShapedArray(float32[], weak_type=True))
    """
    own = OWN_TYPES.get(type(x)) if OWN_TYPES else None
    if own is not None:
        return own(x)
    aval = getattr(x, "aval", None)
    if hasattr(aval, "inner_aval"):  # `refs` imports this module
        return aval
    return abstract(x, lambda: LeafName("x", "typeof"))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def temporary(leaf: Any) -> Array | None:
    """A NumPy array or a number as an Array for one call only, as it shares the caller's memory. Else None."""
    kind = type(leaf)
    if kind is np.ndarray:
        known = _TYPES.get((leaf.dtype, leaf.shape))
        if known is not None and _state.recorder is None:
            array = _new(Array)
            array._placed = None
            array.aval = known
            array._view = leaf
            if leaf.flags.num & USABLE == USABLE:  # HostBuffer(leaf, known.hlo), in half the time
                array._buffer = buffer = _new_buffer(HostBuffer)
                buffer._array = leaf
                buffer.shape = known.hlo
                buffer.address = DATA_POINTERS[id(leaf) >> WORD_SHIFT]
            else:
                array._buffer = HostBuffer(leaf, known.hlo)
            return array
        try:
            aval = ShapedArray(leaf.shape, dtypes.canonical_dtype(leaf.dtype))
        except UnsupportedElementTypeError:
            if is_float0(leaf):
                return None
            raise
        if leaf.dtype is not aval.dtype:
            return Array(aval, leaf.astype(aval.dtype))
        if leaf.dtype in _SAME_FOR_ALL and len(_TYPES) < _MOST_TYPES:
            _TYPES[leaf.dtype, leaf.shape] = aval
        return Array(aval, leaf if _state.recorder is None else leaf.copy())  # the call may be deferred
    if kind is float or kind is int or kind is bool or kind is complex:
        key = kind, thread.settings.context.enable_x64
        aval, pack = _PACKED.get(key) or _packed(key)
        try:
            memory = pack(leaf)
        except (StructError, OverflowError):  # a complex number; an integer that does not fit, which this refuses
            array = array_from_scalar(leaf)
            array._buffer = HostBuffer(array._view, aval.hlo)
            return array
        array = _new(Array)
        array._placed = None
        array.aval = aval
        array._buffer = bytes_buffer(memory, aval.hlo)
        return array
    if isinstance(leaf, np.ndarray | np.generic):
        refuse_masked(leaf)
        return temporary(np.array(leaf))
    return None


def site_parameter(place: int, aval: ShapedArray) -> SiteParameter:
    """A parameter of this type: the NumPy arrays and scalars and the numbers of Python that have it in the current
    context, without a conversion. `place`: the number of the argument among the objects of a call."""
    is_plain = aval.is_plain and not aval.is_extended
    by_numpy = is_plain and not aval.weak_type and dtypes.canonical_dtype(aval.dtype) is aval.dtype
    x64 = thread.settings.context.enable_x64
    number = next((kind for kind in (float, int, bool) if is_plain and _packed((kind, x64))[0] is aval), None)
    dtype = aval.dtype if by_numpy else None
    scalar = aval.dtype.type if by_numpy and not aval.shape and aval.dtype.isbuiltin == 1 else None
    return SiteParameter(place, aval, dtype, aval.shape, scalar, number, aval.dtype.itemsize)


def _packed(key: tuple[type, bool]) -> tuple[ShapedArray, Callable[[Any], bytes]]:
    """The type of a Python number, with or without 64-bit dtypes, and the function that packs one into bytes:
    StructError where it does not know how."""
    aval = ShapedArray((), dtypes.python_scalar_dtype(key[0]), key[0] is not bool)
    pack = Struct("x" if aval.dtype.kind == "c" else aval.dtype.char).pack  # "x" takes no number: always an error
    return _PACKED.setdefault(key, (aval, pack))


_PACKED: dict[tuple[type, bool], tuple[ShapedArray, Callable[[Any], bytes]]] = {}
_state = thread_state()
_new = Array.__new__
_new_buffer = HostBuffer.__new__
_SAME_FOR_ALL = frozenset(map(np.dtype, ("float32", "int32", "uint32", "int16", "uint16", "int8", "uint8", "bool")))
"""Some dtypes that no setting makes another one."""
_TYPES: dict[tuple[Any, tuple[int, ...]], ShapedArray] = {}
"""The types of NumPy arrays of these dtypes that calls were given, the first `_MOST_TYPES` of them."""
_MOST_TYPES = 4096
on_clear(_TYPES.clear)


# ---- names of leaves, for parameters and messages


def leaf_names(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], statics: StaticArguments
) -> list[str]:
    """Each leaf's path: ``params[0]['w']``."""
    parameters = signature_of(fun) or []
    ordinary = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    taken = {position for position, _, _ in statics.positional}
    places = [p for p in range(len(args) + len(taken)) if p not in taken]
    names = []
    for place, arg in zip(places, args, strict=True):
        base = ordinary[place] if place < len(ordinary) else f"{rest}[{place - len(ordinary)}]"
        names += _paths(base, arg)
    for key in sorted(kwargs):
        names += _paths(key, kwargs[key])
    return names


def leaf_describer(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] = MappingProxyType({}),
    statics: StaticArguments = NO_STATICS,
) -> Callable[[int], LeafName]:
    """The function that names a leaf of a call's arguments in messages, by its position among the leaves."""

    def describe(position: int) -> LeafName:
        return LeafName(leaf_names(fun, args, kwargs, statics)[position], function_line(fun))

    return describe


def _paths(base: str, arg: Any) -> list[str]:
    return [base + tree.keystr(path) for path, _ in tree.leaves_with_path(arg)]


def identifier(path: str) -> str:
    """A leaf's path as a name in HLO: ``params[0]['w']`` becomes ``params_0_w``."""
    return re.sub(r"[^0-9A-Za-z]+", "_", path).strip("_") or "arg"
