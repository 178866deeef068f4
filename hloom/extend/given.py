"""The facts about one use of a library's primitive that its rules need, however they are declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autodiff.tangents import Linear, Tangent, Zero
from ..hlo.support.records import dataclass
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import overlaid
from ..tracer.aval import ShapedArray
from ..tracer.core import Value
from ..tracer.ops import is_inexact


@dataclass(frozen=True, slots=True)
class Given:
    """The facts about one use that the rules of a primitive need."""

    owner: Any
    """The `Primitive` of `primitive.py`; interpreters of jaxprs see it."""
    params: dict[str, Any]
    avals: tuple[ShapedArray, ...]
    """The types of the operands."""
    effects: frozenset[Any] = frozenset()
    """Its effects, by the primitive's abstract evaluation."""

    def operands(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The operands as `bind` got them: the call's are the storage of keys. The values after them were captured."""
        own = zip(self.avals, values)
        return tuple([v if isinstance(v, Linear | Zero) else overlaid(v, a) for a, v in own])

    def results(self, given: Any) -> list[Any]:
        """The results of a rule, as a list."""
        if not self.owner.multiple_results:
            return [given]
        if not isinstance(given, tuple | list):
            raise TypeError(f"{self.owner} has multiple_results: its rules return lists, not {type(given).__name__}")
        return list(given)


def tangent_of(result: Value, tangent: Any) -> Tangent:
    """A tangent that a rule gives."""
    if tangent is None or isinstance(tangent, Zero) or not is_inexact(result.aval.dtype):
        return Zero(result.aval)
    value = as_value(tangent)
    if (value.aval.shape, value.aval.dtype) != (result.aval.shape, result.aval.dtype):
        raise TypeError(f"a jvp rule gives {value.aval.str_short()} as the tangent of {result.aval.str_short()}")
    return value
