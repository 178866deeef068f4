"""Ops that slide a window over an array: reduce-window and select-and-scatter.

Source: XLA's ShapeInference::InferReduceWindowShape, InferSelectAndScatterShape and InferWindowOutputShape; the
sections "ReduceWindow" and "SelectAndScatter" of the operation semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes, HloComputation
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import COMPUTATION
from ..text.codecs_dimensions import WINDOW
from ..window import Window, WindowDimension, places, problem
from .checks import array_of, fail, require_arrays, require_signature
from .declare import Attr, Dims, Of
from .spec import OpSpec, Trait


@dataclass(frozen=True, slots=True)
class ReduceWindowAttributes(Attributes):
    """Operands: N arrays of equal dimensions, then N scalar init values. `window` has one entry for each dimension."""

    window: Annotated[Window, Attr(WINDOW, dims=Dims(per=Of.ARRAYS, whole=WindowDimension()), absent=())]
    to_apply: Annotated[HloComputation, Attr(COMPUTATION)]


@dataclass(frozen=True, slots=True)
class SelectAndScatterAttributes(Attributes):
    """Operands: array, source (one element for each window position), scalar init value. `window`: as above."""

    window: Annotated[Window, Attr(WINDOW, dims=Dims(per=Of.OPERAND_0, whole=WindowDimension()), absent=())]
    select: Annotated[HloComputation, Attr(COMPUTATION)]
    scatter: Annotated[HloComputation, Attr(COMPUTATION)]


_FAMILY = "window"
_O = Opcode
_PRED = Shape.array(ElementType.PRED)


def _placed(opcode: Opcode, operands: Sequence[Shape], window: Window, array: Shape, rule: int) -> tuple[int, ...]:
    """How many positions the window has along each dimension of `array`; fails if it is not a valid window over it."""
    why = problem(window, array.dimensions)
    if why:
        fail(opcode, operands, why, rule)
    if any(part.reversed for part in window):
        fail(opcode, operands, "only the window of a convolution can be reversed", rule)
    return tuple(places(size, part) for size, part in zip(array.dimensions, window, strict=True))


def _reduce_window_rule(
    operands: Sequence[Shape], attributes: ReduceWindowAttributes, declared: Shape | None
) -> Shape:
    """Operands: N arrays, then N scalars, the init values. The result is an array for N = 1, else a tuple.

    c1: there are N arrays and N init values; c2: the arrays have the same dimensions; c3: each init value is a scalar
    of its array's element type; c4: the window has one entry for each dimension, with positive size, stride and
    dilations, and is not reversed; c5: the reducer takes the N accumulators, then the N elements, all scalars; c6: it
    returns the accumulators.
    """
    count, odd = divmod(len(operands), 2)
    if odd or not count:
        fail(_O.REDUCE_WINDOW, operands, "there must be as many init values as arrays, and one at least", 1)
    require_arrays(_O.REDUCE_WINDOW, operands, 1)
    arrays, inits = operands[:count], operands[count:]
    for array, init in zip(arrays, inits, strict=True):
        if array.dimensions != arrays[0].dimensions:
            fail(_O.REDUCE_WINDOW, operands, "the arrays must have the same dimensions", 2)
        if init.dimensions or init.element_type is not array.element_type:
            fail(_O.REDUCE_WINDOW, operands, "an init value must be a scalar of its array's element type", 3)
    sizes = _placed(_O.REDUCE_WINDOW, operands, attributes.window, arrays[0], 4)
    reducer = attributes.to_apply
    require_signature(_O.REDUCE_WINDOW, operands, reducer, (*inits, *inits), 5)
    accumulators = inits[0] if count == 1 else Shape.tuple(inits)
    if not reducer.root.shape.compatible(accumulators):
        why = f"reducer {reducer.name} returns {reducer.root.shape}, not {accumulators}"
        fail(_O.REDUCE_WINDOW, operands, why, 6)
    results = [array_of(array.element, sizes) for array in arrays]
    return results[0] if count == 1 else Shape.tuple(results)


def _select_and_scatter_rule(
    operands: Sequence[Shape], attributes: SelectAndScatterAttributes, declared: Shape | None
) -> Shape:
    """Operands: the array, the source (one element for each position of the window), the scalar init value.

    c1: all are arrays of one element type, and the init value is a scalar; c2: the window has one entry for each
    dimension, with positive size, stride and dilations, and is not reversed; c3: the source has one element for each
    position; c4: select takes two scalars and returns a pred; c5: scatter takes two scalars and returns one.
    """
    require_arrays(_O.SELECT_AND_SCATTER, operands, 1)
    array, source, init = operands
    if init.dimensions or len({o.element_type for o in operands}) != 1:
        fail(_O.SELECT_AND_SCATTER, operands, "array, source and scalar init value must be of one element type", 1)
    sizes = _placed(_O.SELECT_AND_SCATTER, operands, attributes.window, array, 2)
    if source.dimensions != sizes:
        why = f"the window has {list(sizes)} places, but the source has dimensions {list(source.dimensions)}"
        fail(_O.SELECT_AND_SCATTER, operands, why, 3)
    for rule, computation, result in ((4, attributes.select, _PRED), (5, attributes.scatter, init)):
        require_signature(_O.SELECT_AND_SCATTER, operands, computation, (init, init), rule)
        if not computation.root.shape.compatible(result):
            why = f"{computation.name} returns {computation.root.shape}, not {result}"
            fail(_O.SELECT_AND_SCATTER, operands, why, rule)
    return array_of(array.element, array.dimensions)


_TRAITS = Trait.ALIGNED | Trait.APPLIES | Trait.EXPENSIVE

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.REDUCE_WINDOW, _FAMILY, None, ReduceWindowAttributes, _reduce_window_rule, _TRAITS, 2),
    OpSpec(_O.SELECT_AND_SCATTER, _FAMILY, 3, SelectAndScatterAttributes, _select_and_scatter_rule, _TRAITS),
)
