"""ComputationBuilder's parameters and constants.

Source: the seeds' "C++ interface": Parameter, ConstantLiteral, ConstantR0 to ConstantR4. Native types there are element
types by name; here Python's numbers are PRED, S32, F32 and C64 unless `dtype` says otherwise, and NumPy's arrays and
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
from .core import BuilderCore, Handle, operation
from .data import GlobalData, LiteralValue, literal_of

NDArray = np.ndarray[Any, Any]
ElementTypeLike = ElementType | DTypeLike | None

_NARROW = {"i": np.int32, "f": np.float32, "c": np.complex64}
_OUTSIDE = frozenset((Opcode.INFEED, Opcode.RECV, Opcode.RECV_DONE, Opcode.CUSTOM_CALL, Opcode.ALL_REDUCE))
"""Ops whose value comes from elsewhere: a queue, code that has a name only, other replicas."""


class Constants(BuilderCore):
    """What enters a computation: parameters, constants; and which of its values are constant."""

    @operation
    def parameter(self, parameter_number: int, shape: Shape, name: str = "") -> Handle:
        """Parameter `parameter_number` of the computation, of type `shape`. builder_c4: each number once."""
        (number,) = self._integers([parameter_number], "the parameter's number")
        if number in self._session.parameters:
            self._refuse(f"there is a parameter {number} already", "builder_c4")
        shape, name = self._of_kind(shape, Shape, "the shape"), self._of_kind(name, str, "the name")
        handle = self._enqueue(Opcode.PARAMETER, (), ParameterAttributes(number), shape, name=name)
        self._session.parameters[number] = handle.instruction
        return handle

    @operation
    def constant_literal(self, literal: LiteralValue) -> Handle:
        """A constant with the value of a Literal; of a tuple of Literals, a tuple of constants."""
        if isinstance(literal, tuple):
            return self._enqueue(Opcode.TUPLE, [self.constant_literal(element) for element in literal])
        found = self._of_kind(literal, Literal, "a literal")
        return self._enqueue(Opcode.CONSTANT, (), ConstantAttributes(found))

    @operation
    def constant_r0(self, value: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
        """A scalar. builder_c9: the value is a number that the element type holds."""
        return self._constant(value, 0, dtype)

    @operation
    def constant_r1(
        self, values: ArrayLike, value: ArrayLike | None = None, dtype: ElementTypeLike = None
    ) -> Handle:
        """A vector of `values`; `constant_r1(length, value)`: of `length` times `value`. builder_c9: as for r0."""
        if value is None:
            return self._constant(values, 1, dtype)
        (length,) = self._integers([values], "the length of a vector")  # type: ignore[list-item]
        if length < 0:
            self._refuse(f"the length {length} of a vector must not be negative", "builder_c9")
        return self._literal(np.full(length, self._array_of(value, 0, dtype)))

    @operation
    def constant_r2(self, values: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
        """A matrix: a list of rows, or an array. builder_c9: as for r0, and the rank is 2."""
        return self._constant(values, 2, dtype)

    @operation
    def constant_r2_from_array2d(self, values: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
        """As `constant_r2`."""
        return self._constant(values, 2, dtype)

    @operation
    def constant_r3(self, values: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
        """An array of rank 3. builder_c9: as for r0, and the rank is 3."""
        return self._constant(values, 3, dtype)

    @operation
    def constant_r3_from_array3d(self, values: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
        """As `constant_r3`."""
        return self._constant(values, 3, dtype)

    @operation
    def constant_r4(self, values: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
        """An array of rank 4. builder_c9: as for r0, and the rank is 4."""
        return self._constant(values, 4, dtype)

    @operation
    def constant_r4_from_array4d(self, values: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
        """As `constant_r4`."""
        return self._constant(values, 4, dtype)

    # ---- what is constant

    def is_constant(self, operand: Handle) -> bool:
        """True if the value depends on no parameter and on nothing from outside. Random numbers count as constant."""
        with self._raising("is_constant", operand):
            return self._first_outside(self._instruction(operand)) is None

    def compute_constant(self, operand: Handle, output_layout: Layout | None = None) -> GlobalData:
        """The value of `operand`, computed now, by the evaluator. Raises at once.

        With random numbers in it each call may give another value. `output_layout`: of the result's shape.

        builder_c8: it depends on no parameter, and on nothing from outside.
        """
        with self._raising("compute_constant", operand):
            root = self._instruction(operand)
            outside = self._first_outside(root)
            if outside is not None:
                what = f"{outside.opcode.value} {outside.name}".strip()
                self._refuse(f"the value depends on {what}, which is not known yet", "builder_c8")
            value = evaluate_computation(HloComputation("constant", post_order(root), root), [])
            shape = root.shape if output_layout is None else root.shape.with_layout(output_layout)
            return GlobalData.of_literal(literal_of(value, shape), shape)

    def _first_outside(self, root: HloInstruction) -> HloInstruction | None:
        """What keeps `root` from being constant, or None."""
        for instruction in post_order(root):
            if instruction.opcode is Opcode.PARAMETER or _is_outside(instruction):
                return instruction
        return None

    # ---- for the operations

    def _array(self, operand: Handle) -> Shape:
        """The shape of an operand that must be an array. builder_c10: it is one."""
        shape = self._instruction(operand).shape
        if not shape.is_array:
            self._refuse(f"the operand must be an array, not {shape}", "builder_c10")
        return shape

    def _element_type(self, given: ElementTypeLike) -> ElementType:
        """builder_c11: an element type, or a dtype that is one."""
        if isinstance(given, ElementType):
            return given
        if given is None:  # which NumPy takes for f64
            self._refuse("None is no element type", "builder_c11")
        try:
            return element_type_of(given)
        except TypeError as error:
            self._refuse(f"{given!r} is no element type: {error}", "builder_c11")

    def _literal(self, array: NDArray) -> Handle:
        return self._enqueue(Opcode.CONSTANT, (), ConstantAttributes(Literal(array)))

    def _constant(self, values: ArrayLike, rank: int, dtype: ElementTypeLike) -> Handle:
        return self._literal(self._array_of(values, rank, dtype))

    def _array_of(self, values: ArrayLike, rank: int, dtype: ElementTypeLike) -> NDArray:
        """`values` with the wanted dtype, or the one that the seeds give to Python's numbers."""
        wanted = None if dtype is None else self._element_type(dtype).dtype
        try:
            array = np.asarray(values)
            if wanted is None and array.dtype.kind in _NARROW and not _has_numpy(values):
                wanted = np.dtype(_NARROW[array.dtype.kind])
            target = None if wanted is None else element_type_of(wanted)
            if target is not None and target.is_integral and array.dtype.kind in "iu" and array.size:
                lowest, highest = target.limits
                if array.min() < lowest or array.max() > highest:
                    self._refuse(f"a value is out of the range of {target.value}", "builder_c9")
            array = array if wanted is None else array.astype(wanted)
            element_type_of(array.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            self._refuse(f"{values!r} makes no constant: {error}", "builder_c9")
        if array.ndim != rank:
            self._refuse(f"the values have rank {array.ndim}, not {rank}", "builder_c9")
        return array


def _has_numpy(values: object) -> bool:
    """True if a dtype was chosen by someone: an array or a NumPy scalar is among the values."""
    return any(isinstance(v, np.ndarray | np.generic) for v in _leaves(values))


def _leaves(values: object) -> Iterator[object]:
    if isinstance(values, list | tuple):
        for value in values:
            yield from _leaves(value)
    else:
        yield values


def _is_outside(instruction: HloInstruction) -> bool:
    """The parameters of called computations are their caller's values, so these do not count."""
    called = (i for computation in instruction.called_computations() for i in computation.instructions)
    return instruction.opcode in _OUTSIDE or any(map(_is_outside, called))
