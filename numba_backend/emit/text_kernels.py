"""A kernel of a text, in the form in which emitters hand kernels over: see texts.py for what a text is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...hlo.element_type import ElementType
from ..emitted_kernel import EmittedKernel
from ..loops.statements import KernelParameter, PointerParameter, SizeParameter
from .texts import Text


def text_kernel(
    name: str, lines: Sequence[str], element_type: ElementType, pointers: Mapping[str, ElementType],
    sizes: Mapping[str, int], extent: int, cost: float, words: Mapping[str, int] | None = None,
) -> tuple[EmittedKernel, list[str]]:  # fmt: skip
    """The kernel with the body `lines` for each `b` from `lo` to `hi`, and the names of the pointers that it uses,
    which are its operands in this order. Sizes that the text does not use are no parameters either. `words`: sizes that
    are literals. `cost`: nanoseconds of one `b`."""
    literals = tuple((words or {}).items())
    text = Text(name, tuple(lines), element_type, tuple(pointers.items()), tuple(sizes), words=literals)
    used = text.program()[1]
    roles = {key: (number, None) for number, key in enumerate(used)}
    return kernel_of_text(text, sizes, roles, extent, cost), list(used)


def kernel_of_text(
    text: Text, sizes: Mapping[str, int], roles: Mapping[str, tuple[int | None, int | None]], extent: int, cost: float
) -> EmittedKernel:
    """The kernel of a text. `roles`: for each pointer which operand or output of the instruction it is."""
    program, used, numbers = text.program()
    kinds = dict(text.pointers)
    parameters: list[KernelParameter] = [PointerParameter(key, kinds[key], *roles[key]) for key in used]
    parameters += [SizeParameter(key, sizes[key]) for key in numbers]
    return EmittedKernel(program, tuple(parameters), extent, cost)
