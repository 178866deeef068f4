"""A kernel of a text, in the form in which emitters hand kernels over: see texts.py for what a text is."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from ...hlo.element_type import ElementType
from ..loops.reader import read
from ..loops.statements import KernelParameter, LoopProgram, PointerParameter, SizeParameter
from ..loops.typing import pointer_to
from .kernel import EmittedKernel, memory_type
from .texts import in_types, indented, without_operators


def written(
    name: str, lines: Sequence[str], element_type: ElementType, pointers: Mapping[str, ElementType],
    sizes: Mapping[str, int], extent: int, cost: float,
    roles: Mapping[str, tuple[int | None, int | None]] | None = None,
) -> tuple[EmittedKernel, list[str]]:  # fmt: skip
    """The kernel whose body is `lines` for each `b` from `lo` to `hi`, and the names of the pointers that it uses,
    which are its operands in this order, or what `roles` says: an operand or an output by its number. Sizes that the
    text does not use are no parameters either. `cost`: of one `b`, in nanoseconds."""
    text = in_types("\n".join(lines), element_type)
    used = [key for key in pointers if re.search(rf"\b{key}\[", text)]
    numbers = [key for key in sizes if re.search(rf"\b{key}\b", text)]
    program = _program(name, text, tuple((key, pointers[key]) for key in used), tuple(numbers))
    parameters: list[KernelParameter] = [
        PointerParameter(key, pointers[key], *((number, None) if roles is None else roles[key]))
        for number, key in enumerate(used)
    ]
    parameters += [SizeParameter(key, sizes[key]) for key in numbers]
    return EmittedKernel(program, tuple(parameters), extent, cost), used


@functools.lru_cache(512)
def _program(
    name: str, text: str, pointers: tuple[tuple[str, ElementType], ...], sizes: tuple[str, ...]
) -> LoopProgram:
    names = [*[key for key, _ in pointers], *sizes]
    head = f"def {name}({', '.join(['lo', 'hi', *names])}):"
    definition = "\n".join([head, "    for b in range(lo, hi):", *indented(text.splitlines(), 2), ""])
    types = ["int64", "int64", *[pointer_to(memory_type(kind)) for _, kind in pointers], *["int64"] * len(sizes)]
    return without_operators(read(definition, types, name))
