"""The precision of products: the values of `precision=`, and their form in HLO. The names follow jax.lax."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ..hlo.ops.dot import DotAttributes
from ..tracer import dtypes
from ..tracer.settings.config import DOT_PRESETS, MATMUL_PRECISIONS
from ..tracer.settings.context import current_context


class Precision(Enum):
    """The precision of products; None: as `hloom.default_matmul_precision` says. The CPU always multiplies in the
    operands' precision; programs for other targets carry the requested one.

    >>> lax.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]), precision=lax.Precision.HIGHEST)
    Array(11., dtype=float32)
    """

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return cls(MATMUL_PRECISIONS[value]) if isinstance(value, str) and value in MATMUL_PRECISIONS else None

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """How `dot`, `dot_general` and their like compute, given as their `precision`.

    The operands are converted to the precision types, products are summed in the accumulation type, and the sums are
    converted to the type of the result. `num_primitive_operations` is the number of products of lower precision that a
    device may put together; allow_imprecise_accumulation lets it sum with fewer bits. A CPU needs neither: it computes
    in float32 at least. ValueError for a combination that `DotAlgorithmPreset` has no name for.

        >>> half = lax.DotAlgorithm("float16", "float16", "float32")
        >>> lax.dot(jnp.ones(3), jnp.arange(3.0), precision=half)
        Array(3., dtype=float32)
    """

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(Enum):
    """Known algorithms of products: the types of both operands and of the sums.

    ``precision=DotAlgorithmPreset.F32_F32_F32``, or its name as a string. JAX refuses on a CPU those that its CPU does
    not have; here each computes at least as precisely as its name says: operands of other types are converted to its
    own, and a type that it takes stays (float32 where the name says bfloat16).

    >>> x = jnp.array([1.0, 2.0])
    >>> lax.dot(x, x, precision=lax.DotAlgorithmPreset.F32_F32_F32), lax.dot(x, x, precision="BF16_BF16_F32")
    (Array(5., dtype=float32), Array(5., dtype=float32))
    """

    DEFAULT = "DEFAULT"
    ANY_F8_ANY_F8_F32 = "ANY_F8_ANY_F8_F32"
    ANY_F8_ANY_F8_F32_FAST_ACCUM = "ANY_F8_ANY_F8_F32_FAST_ACCUM"
    ANY_F8_ANY_F8_ANY = "ANY_F8_ANY_F8_ANY"
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = "ANY_F8_ANY_F8_ANY_FAST_ACCUM"
    F16_F16_F16 = "F16_F16_F16"
    F16_F16_F32 = "F16_F16_F32"
    BF16_BF16_BF16 = "BF16_BF16_BF16"
    BF16_BF16_F32 = "BF16_BF16_F32"
    BF16_BF16_F32_X3 = "BF16_BF16_F32_X3"
    BF16_BF16_F32_X6 = "BF16_BF16_F32_X6"
    BF16_BF16_F32_X9 = "BF16_BF16_F32_X9"
    TF32_TF32_F32 = "TF32_TF32_F32"
    TF32_TF32_F32_X3 = "TF32_TF32_F32_X3"
    F32_F32_F32 = "F32_F32_F32"
    F64_F64_F64 = "F64_F64_F64"

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple[DTypeLike, ...] | None:
        """The operand's types that need no conversion; others become the first of them. None: all."""
        if self is DotAlgorithmPreset.DEFAULT or self.name.startswith("ANY"):
            return None
        return _OPERAND_TYPES.get(self.name, (np.float32,))

    @property
    def supported_rhs_types(self) -> tuple[DTypeLike, ...] | None:
        """The types of the left operand."""
        return self.supported_lhs_types

    @property
    def accumulation_type(self) -> DTypeLike | None:
        """The type of the sums. None: the result's type."""
        if self is DotAlgorithmPreset.DEFAULT or self.name.startswith("ANY_F8_ANY_F8_ANY"):
            return None
        return _TYPES.get(self.name.split("_")[2], np.float32)

    def supported_output_types(self, lhs_dtype: DTypeLike, rhs_dtype: DTypeLike) -> tuple[DTypeLike, ...] | None:
        """The types of results that the sums are computed in; for others they are converted from the first of them."""
        if self.name.startswith("ANY_F8_ANY_F8_F32"):
            return (np.float32, np.float16, *(np.dtype(n).type for n in ("bfloat16", *_SMALL)))
        narrow = _NARROW.get(self.name)
        if narrow is not None:
            is_narrow = np.dtype(lhs_dtype) == np.dtype(rhs_dtype) == narrow
            return (np.float32, narrow.type) if is_narrow else (np.float32,)
        return None if self.accumulation_type is None else (self.accumulation_type,)


PrecisionLike: TypeAlias = Precision | str | tuple[Any, Any] | DotAlgorithm | DotAlgorithmPreset | None

_BFLOAT16 = dtypes.bfloat16
_TYPES: dict[str, DTypeLike] = {"F16": np.float16, "BF16": _BFLOAT16.type, "F64": np.float64}
_OPERAND_TYPES: dict[str, tuple[DTypeLike, ...]] = {
    **dict.fromkeys(("F16_F16_F16", "F16_F16_F32"), (np.float16,)),
    **dict.fromkeys(("BF16_BF16_BF16", "BF16_BF16_F32"), (_BFLOAT16.type, np.float32)),
    "F64_F64_F64": (np.float64,),
}
_SMALL = ("float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e4m3b11fnuz")
_NARROW = {"F16_F16_F32": np.dtype(np.float16), "BF16_BF16_F32": _BFLOAT16}
"""Presets that allow results as narrow as the operands."""


class Algorithm(NamedTuple):
    """An algorithm as a product uses it. None stands for the type that is there."""

    name: str
    """Its name in HLO."""
    lhs: np.dtype[Any] | None
    rhs: np.dtype[Any] | None
    sums: np.dtype[Any] | None


_Requested: TypeAlias = tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset


def requested(precision: PrecisionLike) -> _Requested:
    """The requested precision: a pair of `Precision`, or an algorithm. ValueError for anything else."""
    found: Any = precision
    if found is None:
        found = current_context().default_matmul_precision or Precision.DEFAULT
    if isinstance(found, str) and found in DOT_PRESETS:
        found = DotAlgorithmPreset(found)
    if isinstance(found, DotAlgorithm | DotAlgorithmPreset):
        return found
    pair = found if isinstance(found, tuple | list) else (found, found)
    if len(pair) != 2:
        raise _unknown(precision)
    try:
        return Precision(pair[0] or "default"), Precision(pair[1] or "default")
    except ValueError:
        raise _unknown(precision) from None


def _unknown(precision: Any) -> ValueError:
    strings = ", ".join(map(repr, MATMUL_PRECISIONS))
    return ValueError(
        f"unknown precision {precision!r}\n  Precision argument must be one of: None; one of the strings {strings}; a "
        "lax.Precision; a pair of these; a lax.DotAlgorithmPreset or its name; a lax.DotAlgorithm"
    )


def operand_precision(precision: PrecisionLike) -> tuple[str, str]:
    """HLO's precision of both operands. Algorithms are of products only: a convolution takes none."""
    found = requested(precision)
    return _DEFAULT if isinstance(found, DotAlgorithm | DotAlgorithmPreset) else (found[0].value, found[1].value)


_DEFAULT = ("default", "default")


def hlo_precision(precision: PrecisionLike) -> tuple[tuple[str, str], str]:
    """HLO's pair and algorithm for the `precision` of a primitive: None is the default one. The operands have the
    algorithm's types already."""
    found = requested(precision or Precision.DEFAULT)
    if isinstance(found, DotAlgorithm):
        return _DEFAULT, _name(found)
    if isinstance(found, DotAlgorithmPreset):
        return _DEFAULT, "" if found is DotAlgorithmPreset.DEFAULT else _hlo_name(found)
    return operand_precision(found), ""


def algorithm_of(precision: PrecisionLike, lhs: np.dtype[Any], rhs: np.dtype[Any], out: np.dtype[Any]) -> Algorithm:
    """The algorithm, for operands and a result of these types; without one, one that changes nothing."""
    found = requested(precision)
    if isinstance(found, DotAlgorithm):
        left, right, sums = (np.dtype(t) for t in found[:3])
        return Algorithm(_name(found), left, right, sums)
    if not isinstance(found, DotAlgorithmPreset) or found is DotAlgorithmPreset.DEFAULT:
        return Algorithm("", None, None, None)
    if found.name.startswith("ANY") and not all(t.name.startswith("float8") for t in (lhs, rhs)):
        raise ValueError(
            f"The dot algorithm '{found}' requires both inputs to have float8 dtypes. Got {lhs} and {rhs} instead."
        )
    left, right = (_supported(t, found.supported_lhs_types) for t in (lhs, rhs))
    sums = _supported(out, found.supported_output_types(left, right))
    return Algorithm(_hlo_name(found), left, right, sums)


def _supported(dtype: np.dtype[Any], known: Sequence[DTypeLike] | None) -> np.dtype[Any]:
    return dtype if known is None or any(dtype == t for t in known) else np.dtype(known[0])


def _hlo_name(preset: DotAlgorithmPreset) -> str:
    return "dot_" + preset.name.lower().replace("f8_any_f8_any", "f8_any_f8_f32")


def _name(a: DotAlgorithm) -> str:
    """HLO's name of an algorithm that is given by its parts."""
    lhs, rhs, sums = (np.dtype(t).name for t in a[:3])
    small = all(n.startswith("float8") for n in (lhs, rhs))
    key = ("float8" if small else lhs, "float8" if small else rhs, sums, *a[3:])
    found = _BY_PARTS.get(key)
    if found is None:
        raise ValueError(
            f"The precision '{a}' is not supported by dot_general\n  XLA has no name for it. lax.DotAlgorithmPreset "
            "has the known algorithms."
        )
    return _hlo_name(DotAlgorithmPreset(found))


_PLAIN = (1, 1, 1, False)
_BY_PARTS: dict[tuple[Any, ...], str] = {
    ("float8", "float8", "float32", *_PLAIN): "ANY_F8_ANY_F8_F32",
    ("float8", "float8", "float32", 1, 1, 1, True): "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    ("float16", "float16", "float16", *_PLAIN): "F16_F16_F16",
    ("float16", "float16", "float32", *_PLAIN): "F16_F16_F32",
    ("bfloat16", "bfloat16", "bfloat16", *_PLAIN): "BF16_BF16_BF16",
    ("bfloat16", "bfloat16", "float32", *_PLAIN): "BF16_BF16_F32",
    **{("bfloat16", "bfloat16", "float32", 1, 1, n, False): f"BF16_BF16_F32_X{n}" for n in (3, 6, 9)},
    ("float32", "float32", "float32", *_PLAIN): "F32_F32_F32",
    ("float64", "float64", "float64", *_PLAIN): "F64_F64_F64",
}


def shown_precision(attributes: DotAttributes) -> PrecisionLike:
    """The `precision` that a product's attributes stand for, as jaxprs show it."""
    if attributes.algorithm:
        return DotAlgorithmPreset(attributes.algorithm.removeprefix("dot_").upper())
    return shown_pair(attributes.operand_precision)


def shown_pair(pair: tuple[str, str]) -> tuple[Precision, Precision] | None:
    """The `precision` that HLO's pair stands for."""
    return None if pair == _DEFAULT else (Precision(pair[0]), Precision(pair[1]))
