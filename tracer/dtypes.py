"""JAX's type promotion: a lattice of dtypes in which Python scalars are weak; 64-bit types only when x64 is on.

Reads `thread.settings.context` and not `current_context()`, which costs a call: every operation comes here.
Source: JAX's "Type promotion semantics" (docs/type_promotion.rst) and JEP 9407.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from ..hlo.element_type import element_type_of
from .arrays.extended import ExtendedDType, extended
from .arrays.operators import ArrayBase
from .aval import FLOAT0
from .callers import is_call_of_user
from .errors import OperandError, TypePromotionError, UnsupportedElementTypeError
from .settings.context import thread
from .source import warn_user

DType: TypeAlias = np.dtype[Any]

bool_ = np.dtype(np.bool_)
int32, int64 = np.dtype(np.int32), np.dtype(np.int64)
uint32 = np.dtype(np.uint32)
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
bfloat16, float16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)

float0 = FLOAT0
"""The dtype of tangents of integers and booleans: there is only zero, and it takes no memory. JAX's `float0`."""

_NARROWER: dict[DType, DType] = {
    int64: int32,
    np.dtype(np.uint64): uint32,
    float64: float32,
    complex128: complex64,
}
_NARROWED = frozenset(_NARROWER.values())
_PYTHON_SCALARS: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}

_SMALL_INTEGERS = ("int1", "int2", "int4", "uint1", "uint2", "uint4")
_SMALL_FLOATS = (
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
)  # fmt: skip
"""Small types are promoted to no other."""
_WITHOUT_ARRAYS = frozenset(map(np.dtype, (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)))
"""Dtypes that HLO has no element type for: they have a name and a place among the others, and no arrays."""

# The lattice: from each node to the nodes just above it. "i*", "f*" and "c*" are the weak types.
_ABOVE: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8", *_SMALL_INTEGERS),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": ("c*", "float16", "bfloat16", *_SMALL_FLOATS),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
    **dict.fromkeys((*_SMALL_INTEGERS, *_SMALL_FLOATS), ()),
}
_WEAK_NODES = {"b": "bool", "i": "i*", "u": "i*", "f": "f*", "V": "f*", "c": "c*"}
_WEAK_DTYPES = {"i*": int64, "f*": float64, "c*": complex128}


# The lattice of strict promotion: the weak types give way to the types of their kind, and nothing else does.
_STRICTLY_ABOVE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ABOVE, ()),
    "i*": ("f*", *[f"{sign}int{n}" for n in (8, 16, 32, 64) for sign in ("", "u")], *_SMALL_INTEGERS),
    "f*": ("c*", "bfloat16", "float16", "float32", "float64", *_SMALL_FLOATS),
    "c*": ("complex64", "complex128"),
}


def _closure(node: str, lattice: dict[str, tuple[str, ...]]) -> frozenset[str]:
    found = {node}
    for above in lattice[node]:
        found |= _closure(above, lattice)
    return frozenset(found)


_UPPER = {node: _closure(node, _ABOVE) for node in _ABOVE}
_STRICTLY_UPPER = {node: _closure(node, _STRICTLY_ABOVE) for node in _ABOVE}


@lru_cache(maxsize=4096)
def _join(nodes: frozenset[str], strict: bool = False) -> str:
    """The least upper bound of lattice nodes."""
    upper = _STRICTLY_UPPER if strict else _UPPER
    common = frozenset.intersection(*(upper[n] for n in nodes))
    if strict:  # a Python number has several types above it: the least are the types of its own kind
        common = (common & nodes) or common
    if not common and strict:
        raise TypePromotionError(
            f"Input dtypes {', '.join(sorted(nodes))} have no available implicit dtype promotion path when "
            "jax_numpy_dtype_promotion=strict, where only Python numbers give way to the dtype of an array, and only "
            "to one of their kind: convert them, as in x.astype('float32'), or set jax_numpy_dtype_promotion=standard"
        )
    if not common:
        raise TypePromotionError(
            f"Input dtypes {', '.join(sorted(nodes))} have no available implicit dtype promotion path: they have no "
            f"common dtype, as {_narrow_kinds(nodes)} do not support implicit promotion; convert them, as in "
            "x.astype('float32')"
        )
    least = [n for n in common if upper[n] >= common]
    assert len(least) == 1, f"{sorted(nodes)} have no least upper bound"
    return least[0]


def _narrow_kinds(nodes: Iterable[str]) -> str:
    """The kinds among lattice nodes that are not promoted."""
    bits = sorted({int(n[len("float")]) for n in nodes if n.startswith("float") and "_" in n})
    return " and ".join([f"{b}-bit floats" for b in bits] or ["integers of less than 8 bits"])


def canonical_dtype(dtype: DTypeLike) -> DType:
    """The dtype that arrays get: 64-bit narrowed unless x64 is on. UnsupportedElementTypeError for strings etc."""
    x64 = thread.settings.context.enable_x64
    try:
        found = _CANONICAL.get((dtype, x64))
    except TypeError:  # a list, which is a structured dtype if anything
        found = None
    if found is None:
        if isinstance(dtype, ExtendedDType):
            return cast(DType, dtype)
        spec = dtype if isinstance(dtype, np.dtype) else _dtype_of_spec(dtype)
        if spec == float0:
            raise UnsupportedElementTypeError(_NO_OPERATIONS)
        found = _named(spec)
        found = found if x64 else _NARROWER.get(found, found)
        if isinstance(dtype, np.dtype | str | type) and len(_CANONICAL) < _MAX_SPECS:
            _CANONICAL[dtype, x64] = found
    return found


def _named(dtype: DType) -> DType:
    """A dtype of numbers, in this machine's byte order. UnsupportedElementTypeError for strings etc."""
    return dtype if dtype in _WITHOUT_ARRAYS else element_type_of(dtype).dtype


_NO_OPERATIONS = "float0s do not support any operations by design: they are the tangents of integers"
_CANONICAL: dict[tuple[Any, bool], DType] = {}
_MAX_SPECS = 1000


def requested_dtype(dtype: DTypeLike, function: str) -> DType:
    """`canonical_dtype` of a dtype that the user requests of `function`, and float0, which no array of a program has.

    UserWarning where it is narrowed; ValueError, or no change, if the setting jax_explicit_x64_dtypes says so. Not for
    Python's int, float and complex, which mean the default types.
    """
    if isinstance(dtype, np.dtype) and dtype == float0:
        return float0
    found = canonical_dtype(dtype)
    if found in _NARROWED and not thread.settings.context.enable_x64 and not any(dtype is t for t in _PYTHON_SCALARS):
        asked = np.dtype(dtype)
        if asked != found:
            response = thread.settings.context.explicit_x64_dtypes
            if response == "allow":
                return asked
            is_error = response == "error"
            message = (
                f"Explicitly requested dtype {asked.name} requested in {function} is not available"
                f"{'' if is_error else f', and will be truncated to dtype {found.name}'}. To enable more dtypes, set "
                "the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell environment variable, or use "
                "`with hloom.enable_x64():`."
            )
            if is_error:
                raise ValueError(message)
            warn_user(message)
    return found


def _dtype_of_spec(dtype: DTypeLike) -> DType:
    if dtype is int or dtype is float or dtype is complex or dtype is bool:
        return _PYTHON_SCALARS[dtype]
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"{error}: use a dtype of NumPy or ml_dtypes, or its name, as in 'float32'") from None
    if found.names is not None and found != float0:
        raise TypeError(f"JAX only supports number, bool, and string dtypes, and hloom numbers and bools, not {found}")
    return found


def python_scalar_dtype(kind: type) -> DType:
    """The dtype of a Python scalar: int32, float32, complex64 (64-bit ones with x64) or bool."""
    exact = _PYTHON_SCALARS.get(kind)
    if exact is not None:
        return exact if thread.settings.context.enable_x64 else _NARROWER.get(exact, exact)
    for python_type, dtype in _PYTHON_SCALARS.items():
        if issubclass(kind, python_type):
            return dtype if thread.settings.context.enable_x64 else _NARROWER.get(dtype, dtype)
    raise TypeError(f"{kind.__name__} is not a Python scalar type")


def type_of(value: Any) -> tuple[DType, bool]:
    """(dtype, weak type) of an array, number, dtype or Python scalar type. Of float0 too, which no operation takes."""
    if isinstance(value, ArrayBase):
        return value.aval.dtype, value.aval.weak_type
    if isinstance(value, _NUMPY):
        try:
            return canonical_dtype(value.dtype), False
        except UnsupportedElementTypeError:
            if value.dtype == float0:
                return float0, False
            raise
    if isinstance(value, _NUMBERS):
        return python_scalar_dtype(type(value)), not isinstance(value, bool)
    if value is int or value is float or value is complex:
        return python_scalar_dtype(value), True
    if not isinstance(value, type) and hasattr(value, "__jax_array__"):
        return type_of(value.__jax_array__())
    if isinstance(value, list | tuple):  # NumPy reads these as the fields of a record
        raise OperandError(
            f"an array or a number is needed, not {type(value).__name__}: sequences become arrays with "
            "hloom.numpy.asarray",
            "type_of",
        )
    if isinstance(value, np.dtype) and value == float0:
        return float0, False
    return canonical_dtype(value), False


_NUMPY = (np.ndarray, np.generic)
_NUMBERS = (bool, int, float, complex)


@lru_cache(maxsize=4096)
def _promoted(types: frozenset[tuple[DType, bool]], strict: bool) -> tuple[DType, bool]:
    if any(is_extended(d) for d, _ in types):
        names = ", ".join(sorted(d.name for d, _ in types))
        raise OperandError(f"dtypes {names} have no common dtype: an extended dtype is not promoted", "promotion")
    if any(d == float0 for d, _ in types):
        raise UnsupportedElementTypeError(_NO_OPERATIONS)
    if strict:
        if len({dtype for dtype, _ in types}) == 1:
            return next(iter(types))[0], False  # a weak and a strong one
    elif all(weak or dtype == bool_ for dtype, weak in types) and any(dtype != bool_ for dtype, _ in types):
        node = _join(frozenset(_WEAK_NODES[d.kind] for d, _ in types))
        return _WEAK_DTYPES[node], True
    node = _join(frozenset(_WEAK_NODES[d.kind] if weak else d.name for d, weak in types), strict)
    # uint64 joined with a signed integer is the weak float: a default float that stays weak
    return (_WEAK_DTYPES[node], True) if node in _WEAK_DTYPES else (np.dtype(_BY_NAME[node]), False)


def _strictly(types: frozenset[tuple[DType, bool]]) -> tuple[DType, bool]:
    """Under strict promotion, which is for calls of users."""
    try:
        return _promoted(types, True)
    except TypePromotionError:
        if is_call_of_user():
            raise
        return _promoted(types, False)


_BY_NAME: dict[str, DType] = {
    name: np.dtype(getattr(ml_dtypes, name, name))
    for name in _ABOVE
    if not name.endswith("*")
}


def promote(types: Iterable[tuple[DType, bool]]) -> tuple[DType, bool]:
    """The (dtype, weak type) that values of these (dtype, weak type) take together. TypePromotionError if none."""
    distinct = frozenset(types)
    if len(distinct) == 1:
        return next(iter(distinct))
    context = thread.settings.context
    dtype, weak = _promoted(distinct, False) if context.numpy_dtype_promotion != "strict" else _strictly(distinct)
    if context.enable_x64 or dtype not in _NARROWER:
        return dtype, weak
    allowed = context.explicit_x64_dtypes == "allow" and not weak
    is_wide = allowed and any(d in _NARROWER and not soft for d, soft in distinct)
    return (dtype if is_wide else _NARROWER[dtype]), weak


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that arrays, scalars and dtypes promote to together, by JAX's rules: Python numbers adapt to the
    others. Where all adapt, it is the default dtype of their kind.

    return_weak_type_flag: (dtype, whether all of them adapt).

    Unlike NumPy's rules these look at dtypes alone, never at values: int32 and float32 give float32 (NumPy: float64).

    >>> jnp.result_type(jnp.int32, jnp.float32), jnp.result_type(jnp.ones(2, jnp.float16), 3.5)
    (dtype('float32'), dtype('float16'))
    """
    if not args:
        raise ValueError("result_type needs at least one argument")
    dtype, weak = promote(type_of(v) for v in args)
    if weak:
        dtype = _default_of(dtype)
    return (dtype, weak) if return_weak_type_flag else dtype


_DEFAULTS = {np.signedinteger: int64, np.unsignedinteger: np.dtype(np.uint64), np.floating: float64,
             np.complexfloating: complex128}  # fmt: skip


def _default_of(dtype: DType) -> DType:
    """The default dtype of its kind; itself if its kind has none."""
    wide = next((default for kind, default in _DEFAULTS.items() if issubdtype(dtype, kind)), dtype)
    return wide if thread.settings.context.enable_x64 else _NARROWER.get(wide, wide)


def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """The dtype that two dtypes promote to, by JAX's rules; narrowed only if neither is of 64 bits. Python scalar types
    are weak: they give way to any dtype of their kind.

    >>> jnp.promote_types(jnp.int8, jnp.uint8), jnp.promote_types(jnp.bfloat16, jnp.int32)
    (dtype('int16'), dtype(bfloat16))
    >>> jnp.promote_types(jnp.float16, float)
    dtype('float16')
    """
    types = frozenset([_spec_type(a), _spec_type(b)])
    strict = thread.settings.context.numpy_dtype_promotion == "strict"
    dtype, _ = _strictly(types) if strict else _promoted(types, False)
    return dtype if any(given in _NARROWER or given == float0 for given, _ in types) else canonical_dtype(dtype)


def wider(a: DType, b: DType) -> DType:
    """The dtype that two canonical dtypes promote to within a function, where no mode forbids it."""
    dtype, _ = _promoted(frozenset([(a, False), (b, False)]), False)
    return canonical_dtype(dtype)


def _spec_type(spec: Any) -> tuple[Any, bool]:
    """(dtype, weak type) of a dtype or a Python scalar type; nothing is narrowed."""
    if spec is int or spec is float or spec is complex:
        return _PYTHON_SCALARS[spec], True
    if isinstance(spec, ExtendedDType):
        return spec, False
    found = _dtype_of_spec(spec)
    return found if found == float0 else _named(found), False


def default_float() -> DType:
    """float32, or float64 with x64."""
    return float64 if thread.settings.context.enable_x64 else float32


def default_int() -> DType:
    """int32, or int64 with x64."""
    return int64 if thread.settings.context.enable_x64 else int32


def to_inexact(dtype: DType) -> DType:
    """The dtype itself if it is a float or complex; float64 for 64-bit integers, float32 for others."""
    if is_inexact(dtype):
        return dtype
    return float64 if dtype.itemsize == 8 and not is_extended(dtype) else float32


def to_complex(dtype: DType) -> DType:
    """The dtype itself if it is complex; complex128 for 64-bit numbers, complex64 for others."""
    if dtype.kind == "c":
        return dtype
    return complex128 if to_inexact(dtype) is float64 else complex64


def real_of(dtype: DType) -> DType:
    """The dtype of the real part."""
    return element_type_of(dtype).real.dtype


def finfo(dtype: DTypeLike) -> Any:
    """numpy.finfo, for ml_dtypes' floats too: the numbers that describe a floating dtype, as `eps`, `max`, `tiny`,
    `bits`.

    >>> print(jnp.finfo(jnp.bfloat16).eps, jnp.finfo(jnp.float32).bits)
    0.0078125 32
    """
    return ml_dtypes.finfo(_named(_dtype_of_spec(dtype)))  # type: ignore[no-untyped-call]


def iinfo(dtype: DTypeLike) -> Any:
    """As numpy.iinfo, for ml_dtypes' integers too: `min`, `max` and `bits` of an integer dtype.

    >>> jnp.iinfo(jnp.int8).min, jnp.iinfo(jnp.uint4).max
    (-128, 15)
    """
    element = element_type_of(_dtype_of_spec(dtype))
    return ml_dtypes.iinfo(element.dtype)  # type: ignore[no-untyped-call]


def is_extended(dtype: Any) -> bool:
    """True for dtypes that HLO lacks, such as key types."""
    return isinstance(dtype, ExtendedDType)


def is_floating(dtype: DType) -> bool:
    return not is_extended(dtype) and element_type_of(dtype).is_floating


def is_complex(dtype: DType) -> bool:
    return dtype.kind == "c"


def is_inexact(dtype: DType) -> bool:
    """True for the dtypes that have derivatives: floats (bfloat16 too) and complex numbers."""
    return not is_extended(dtype) and element_type_of(dtype).is_inexact


def is_integer(dtype: DType) -> bool:
    """True for signed and unsigned integers; not for bool."""
    return not is_extended(dtype) and element_type_of(dtype).is_integral


def is_unsigned(dtype: DType) -> bool:
    """True for unsigned integers; not for bool. (`kind` is "V" for types of less than 8 bits.)"""
    return is_integer(dtype) and not element_type_of(dtype).is_signed


_OWN_SCALARS = frozenset(getattr(ml_dtypes, n) for n in ("bfloat16", "int1", "uint1", *_SMALL_INTEGERS, *_SMALL_FLOATS))
_KINDS: dict[Any, Any] = {
    np.generic: lambda d: True,
    np.number: lambda d: d != bool_,
    np.integer: is_integer,
    np.signedinteger: lambda d: is_integer(d) and element_type_of(d).is_signed,
    np.unsignedinteger: is_unsigned,
    np.inexact: is_inexact,
    np.floating: is_floating,
    np.complexfloating: is_complex,
}


def _scalar_type(spec: Any) -> Any:
    """NumPy's class of scalars; kinds, such as numpy.floating, are such classes too."""
    return spec if isinstance(spec, type) and issubclass(spec, np.generic) else _dtype_of_spec(spec).type


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """As numpy.issubdtype, with ml_dtypes' floats floating types and its integers integers; keys are `prng_key`.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype(jnp.int8, jnp.floating)
    (True, False)
    """
    dtype, kind = arg1, arg2
    if is_extended(kind):
        return dtype is kind
    if is_extended(dtype):
        return issubclass(dtype.type, kind)
    if any(isinstance(d, type) and issubclass(d, extended) for d in (dtype, kind)):
        return isinstance(dtype, type) and issubclass(dtype, kind)
    lower, upper = _scalar_type(dtype), _scalar_type(kind)
    if lower in _OWN_SCALARS:  # ml_dtypes' types are no subclasses of NumPy's kinds
        found = np.dtype(lower)
        found = float32 if found in _WITHOUT_ARRAYS else found
        return upper is lower or (upper in _KINDS and bool(_KINDS[upper](found)))
    return bool(np.issubdtype(lower, upper))
