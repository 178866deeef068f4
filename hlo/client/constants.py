"""ComputationBuilder's parameters and constants.

Source: the seeds' page "C++ interface": Parameter, ConstantLiteral, ConstantR0 to ConstantR4. There C++ types determine
element types; here Python's numbers are PRED, S32, F32 and C64 unless `dtype` says otherwise, and NumPy's arrays and
scalars keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..element_type import ElementType, element_type_of
from ..evaluator import evaluate_computation
from ..ir import HloComputation, HloInstruction, post_order
from ..layout import Layout
from ..literal import Literal
from ..opcode import Opcode
from ..ops.structure import ConstantAttributes, ParameterAttributes
from ..shape import Shape
from .construction import Construction, Handle, integer, of_kind, refuse
from .data import GlobalData, LiteralValue, literal_of

NDArray = np.ndarray[Any, Any]
ElementTypeLike = ElementType | DTypeLike | None

_NARROW = {"i": np.int32, "f": np.float32, "c": np.complex64}
_OUTSIDE = frozenset((Opcode.INFEED, Opcode.RECV, Opcode.RECV_DONE, Opcode.CUSTOM_CALL, Opcode.ALL_REDUCE))
"""Ops with values from outside of the program: a queue, a custom call, other replicas."""


def parameter(build: Construction, parameter_number: int, shape: Shape, name: str = "") -> Handle:
    """Parameter `parameter_number` of the computation, of type `shape`. builder_c4: each number once."""
    number = integer(parameter_number, "the parameter's number")
    if number in build.parameters:
        refuse(f"there is a parameter {number} already", "builder_c4")
    shape, name = of_kind(shape, Shape, "the shape"), of_kind(name, str, "the name")
    handle = build.enqueue(Opcode.PARAMETER, (), ParameterAttributes(number), shape, name=name)
    build.parameters[number] = handle.instruction
    return handle


def constant_literal(build: Construction, literal: LiteralValue) -> Handle:
    """A constant with the value of a Literal; of a tuple of Literals, a tuple of constants."""
    if isinstance(literal, tuple):
        return build.enqueue(Opcode.TUPLE, [constant_literal(build, element) for element in literal])
    found = of_kind(literal, Literal, "a literal")
    return build.enqueue(Opcode.CONSTANT, (), ConstantAttributes(found))


def constant_r0(build: Construction, value: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
    """A scalar. builder_c9: the value is a number that the element type holds."""
    return constant(build, value, 0, dtype)


def constant_r1(
    build: Construction, values: ArrayLike, value: ArrayLike | None = None, dtype: ElementTypeLike = None
) -> Handle:
    """A vector of `values`; `constant_r1(length, value)`: of `length` times `value`. builder_c9: as for r0."""
    if value is None:
        return constant(build, values, 1, dtype)
    length = integer(values, "the length of a vector")  # type: ignore[arg-type]
    if length < 0:
        refuse(f"the length {length} of a vector must not be negative", "builder_c9")
    return literal(build, np.full(length, _array_of(value, 0, dtype)))


def constant(build: Construction, values: ArrayLike, rank: int, dtype: ElementTypeLike = None) -> Handle:
    """An array of `rank`. builder_c9: its elements are numbers that the element type holds."""
    return literal(build, _array_of(values, rank, dtype))


def literal(build: Construction, array: NDArray) -> Handle:
    """A constant with the unchanged array."""
    return build.enqueue(Opcode.CONSTANT, (), ConstantAttributes(Literal(array)))


# ---- constant values


def computed(root: HloInstruction, output_layout: Layout | None) -> GlobalData:
    """The value of `root`, by the evaluator. builder_c8: it depends on no parameter, and on nothing from outside."""
    outside = first_outside(root)
    if outside is not None:
        what = f"{outside.opcode.value} {outside.name}".strip()
        refuse(f"the value depends on {what}, which is not known yet", "builder_c8")
    value = evaluate_computation(HloComputation("constant", post_order(root), root), [])
    shape = root.shape if output_layout is None else root.shape.with_layout(output_layout)
    return GlobalData.of_literal(literal_of(value, shape), shape)


def first_outside(root: HloInstruction) -> HloInstruction | None:
    """The first instruction that makes `root` not constant, or None."""
    for instruction in post_order(root):
        if instruction.opcode is Opcode.PARAMETER or _is_outside(instruction):
            return instruction
    return None


# ---- values and their types


def element_type_like(given: ElementTypeLike) -> ElementType:
    """builder_c11: an element type, or a dtype that is one."""
    if isinstance(given, ElementType):
        return given
    if given is None:  # NumPy would take it for f64
        refuse("None is no element type", "builder_c11")
    try:
        return element_type_of(given)
    except TypeError as error:
        refuse(f"{given!r} is no element type: {error}", "builder_c11")


def _array_of(values: ArrayLike, rank: int, dtype: ElementTypeLike) -> NDArray:
    """`values` with the wanted dtype, or with the dtype that the seeds give to Python's numbers."""
    wanted = None if dtype is None else element_type_like(dtype).dtype
    try:
        array = np.asarray(values)
        if wanted is None and array.dtype.kind in _NARROW and not _has_numpy(values):
            wanted = np.dtype(_NARROW[array.dtype.kind])
        target = None if wanted is None else element_type_of(wanted)
        if target is not None and target.is_integral and array.dtype.kind in "iu" and array.size:
            lowest, highest = target.limits
            if array.min() < lowest or array.max() > highest:
                refuse(f"a value is out of the range of {target.value}", "builder_c9")
        array = array if wanted is None else array.astype(wanted)
        element_type_of(array.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        refuse(f"{values!r} makes no constant: {error}", "builder_c9")
    if array.ndim != rank:
        refuse(f"the values have rank {array.ndim}, not {rank}", "builder_c9")
    return array


def _has_numpy(values: object) -> bool:
    """True if the user chose a dtype: an array or a NumPy scalar is among the values."""
    return any(isinstance(v, np.ndarray | np.generic) for v in _leaves(values))


def _leaves(values: object) -> Iterator[object]:
    if isinstance(values, list | tuple):
        for value in values:
            yield from _leaves(value)
    else:
        yield values


def _is_outside(instruction: HloInstruction) -> bool:
    """Parameters of called computations do not count: they are their caller's values."""
    called = (i for computation in instruction.called_computations() for i in computation.instructions)
    return instruction.opcode in _OUTSIDE or any(map(_is_outside, called))
