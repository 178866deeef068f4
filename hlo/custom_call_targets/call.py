"""The binding of custom calls: `Call` describes the call in the module, `bind` checks it against a target's types.

A type signature is text such as

    T[*,m,n] -> T[*,m,n], s32[*,k], s32[*]

T is the element type of the target, R its real part, C the complex type of its precision; others are HLO's names. `*`
is any list of dimensions, the same one in the whole signature; a letter is one size, also the same in all of it. k is
min(m, n) and h is n - 1 unless an operand has named them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ..element_type import ElementType
from ..errors import ShapeError
from ..ir import HloComputation
from ..ops.custom_call import CustomCallApiVersion
from ..shape import Shape
from ..support.records import dataclass

NDArray: TypeAlias = np.ndarray[Any, Any]
Value: TypeAlias = "NDArray | tuple[Value, ...]"
Run: TypeAlias = Callable[..., Any]
"""run(*operands) -> an array, or a tuple of arrays for a call that returns a tuple."""


@dataclass(frozen=True, slots=True)
class Call:
    """One custom call: its target, operand and result shapes, and its backend_config as Python values.

    `element_type` is T of the target's signature; `sizes` are the values of its letters; `batch` is the value of `*`.
    """

    target: str
    operands: tuple[Shape, ...]
    result: Shape
    config: Mapping[str, Any]
    callees: tuple[HloComputation, ...] = ()
    element_type: ElementType = ElementType.F32
    sizes: Mapping[str, int] = field(default_factory=dict)
    batch: tuple[int, ...] = ()
    function: object = None
    """The Python function that the instruction holds, if it holds one."""
    text: str = ""
    """The backend_config as it is written."""
    api_version: CustomCallApiVersion = CustomCallApiVersion.ORIGINAL
    aliases: tuple[tuple[int, int], ...] = ()
    """(leaf of the operands, leaf of the result): both are one array in memory."""

    def fail(self, why: str) -> NoReturn:
        """Refuse the call: ShapeError with the label of targets' own rules."""
        types = ", ".join(map(str, self.operands))
        raise ShapeError(f"custom-call {self.target!r} of ({types}) giving {self.result}: {why}", "custom-call_target")

    def letter(self, key: str, allowed: str) -> str:
        """The attribute `key`, a character code, as one of the `allowed` letters."""
        code = self.config.get(key)
        letter = chr(code) if isinstance(code, int) and not isinstance(code, bool) and 0 < code < 128 else ""
        if not letter or letter not in allowed:
            names = " or ".join(f"{ord(c)} ({c!r})" for c in allowed)
            self.fail(f"its backend_config must have {key} = {names}, not {code!r}")
        return letter

    def integer(self, key: str) -> int:
        """The attribute `key`, an integer."""
        value = self.config.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(f"its backend_config must have {key}, an integer, not {value!r}")
        return value

    def flag(self, key: str) -> bool:
        """The attribute `key`, true or false."""
        value = self.config.get(key)
        if not isinstance(value, bool):
            self.fail(f"its backend_config must have {key} = true or false, not {value!r}")
        return value


Target: TypeAlias = Callable[[Call], Run]
"""Each file of this package defines such functions, one for each target: it checks the call, and returns the function
that computes it."""


def match(call: Call, signature: str, element_type: ElementType) -> Call:
    """`call` with the element type and the sizes that its types have in `signature`; ShapeError if they do not fit."""
    left, right = signature.split("->")
    binding = _Binding(call, element_type)
    binding.all(left, call.operands)
    m, n = binding.sizes.get("m", 0), binding.sizes.get("n", 0)
    binding.sizes.setdefault("k", min(m, n))
    binding.sizes.setdefault("h", max(n, 1) - 1)
    results = call.result.elements if call.result.is_tuple else (call.result,)
    binding.all(right, results)
    return replace(call, element_type=element_type, sizes=binding.sizes, batch=binding.batch or ())


_PART = re.compile(r"(\w+)\[([\w*,]*)\]")


class _Binding:
    """The values of a signature's letters so far."""

    def __init__(self, call: Call, element_type: ElementType) -> None:
        self.call = call
        real = element_type.real
        wide = ElementType.C128 if real is ElementType.F64 else ElementType.C64
        self.types = {"T": element_type, "R": real, "C": wide}
        self.sizes: dict[str, int] = {}
        self.batch: tuple[int, ...] | None = None

    def all(self, signature: str, shapes: Sequence[Shape]) -> None:
        parts = _PART.findall(signature)
        fits = (self._one(name, letters, shape) for (name, letters), shape in zip(parts, shapes))
        if len(parts) != len(shapes) or not all(fits):
            wanted = signature.strip() or "nothing"
            names = ", ".join(f"{k} = {t.value}" for k, t in self.types.items() if f"{k}[" in wanted)
            found = ", ".join(map(str, shapes))
            self.call.fail(f"expected {wanted}{f' with {names}' if names else ''}, found {found or 'nothing'}")

    def _one(self, name: str, letters: str, shape: Shape) -> bool:
        if shape.is_tuple or shape.element is not (self.types.get(name) or ElementType(name)):
            return False
        symbols = letters.split(",") if letters else []
        dimensions = shape.dimensions
        if symbols and symbols[0] == "*":
            symbols = symbols[1:]
            count = len(dimensions) - len(symbols)
            if count < 0 or self.batch not in (None, dimensions[:count]):
                return False
            self.batch, dimensions = dimensions[:count], dimensions[count:]
        return len(symbols) == len(dimensions) and all(
            self.sizes.setdefault(symbol, size) == size for symbol, size in zip(symbols, dimensions)
        )
