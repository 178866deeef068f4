"""A computation under construction, on which the operations of a ComputationBuilder work.

The operations are in the files of their families. Each is a function of a `Construction` and of its own arguments; it
checks these with the methods here, and enqueues instructions. A function may call others. `builder.py` binds them to
the class that users see, which notes errors.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import NoReturn, TypeVar

from ..builder import make_instruction
from ..errors import ShapeError
from ..ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from ..support.source import user_metadata
from .handle import Computation, ComputationDataHandle

Handle = ComputationDataHandle
Integers = Iterable[int]
Pairs = Iterable[tuple[int, int]]
K = TypeVar("K")


class Construction:
    """The instructions that are built between two calls of `build`, in order."""

    __slots__ = ("instructions", "last", "method", "parameters", "returned", "token")

    def __init__(self) -> None:
        self.instructions: list[HloInstruction] = []
        self.parameters: dict[int, HloInstruction] = {}
        self.last: HloInstruction | None = None
        """The last expression; effects (outfeed, trace) are not expressions."""
        self.returned: HloInstruction | None = None
        self.token: HloInstruction | None = None
        """The token of the last use of a queue, which orders these uses."""
        self.method: str = ""
        """The builder's method that is running, for the metadata of instructions."""

    def enqueue(
        self,
        opcode: Opcode,
        operands: Sequence[Handle],
        attributes: Attributes = NO_ATTRIBUTES,
        shape: Shape | None = None,
        *,
        name: str = "",
    ) -> Handle:
        """Infer the shape, make the instruction, and append it."""
        instructions = [self.instruction(o) for o in operands]
        made = make_instruction(opcode, instructions, attributes, shape, name=name, metadata=user_metadata(self.method))
        self.instructions.append(made)
        self.last = made
        return Handle(self, made)

    def finish(self, name: str) -> HloComputation:
        """The computation of all that was enqueued; it returns the last expression, or the chosen one.

        builder_c3: something was enqueued; builder_c4: the parameters are numbered 0 to n-1.
        """
        if not self.instructions:
            refuse("nothing was enqueued: there is no computation to build", "builder_c3")
        numbers = sorted(self.parameters)
        if numbers != list(range(len(numbers))):
            missing = sorted(set(range(numbers[-1])) - set(numbers))
            why = f"there are parameters {numbers}, but not {missing}: they must be numbered without a gap"
            refuse(why, "builder_c4")
        root = self.returned or self.last
        if root is None:
            root = self.enqueue(Opcode.TUPLE, ()).instruction
        return HloComputation(name, tuple(self.instructions), root)

    # ---- operands

    def instruction(self, operand: Handle) -> HloInstruction:
        """The instruction behind a handle.

        builder_c1: it is a handle; builder_c2: it belongs to this builder, and to the current construction.
        """
        if not isinstance(operand, Handle):
            why = f"an operand must be a ComputationDataHandle, not {type(operand).__name__}: make it a constant"
            refuse(why, "builder_c1")
        if operand._construction is not self:
            why = f"{operand!r} is of another builder, or of a computation that was built already"
            refuse(why, "builder_c2")
        return operand.instruction

    def shape(self, operand: Handle) -> Shape:
        """The shape of an operand."""
        return self.instruction(operand).shape

    def array(self, operand: Handle) -> Shape:
        """The shape of an operand that must be an array. builder_c10: it is one."""
        shape = self.shape(operand)
        if not shape.is_array:
            refuse(f"the operand must be an array, not {shape}", "builder_c10")
        return shape


def of_kind(value: object, kind: type[K], what: str) -> K:
    """builder_c11: `value` is a `kind`."""
    if not isinstance(value, kind):
        refuse(f"{what} must be a {kind.__name__}, not {value!r}", "builder_c11")
    return value


def called(computation: Computation) -> HloComputation:
    """builder_c5: the argument is a Computation."""
    if not isinstance(computation, Computation):
        why = f"a computation must be a result of build(), not {type(computation).__name__}"
        refuse(why, "builder_c5")
    return computation.hlo


def integer(value: int, what: str) -> int:
    """builder_c6: `value` is an integer."""
    return integers([value], what)[0]


def integers(values: Integers, what: str, count: int | None = None) -> tuple[int, ...]:
    """builder_c6: `values` are integers, `count` of them."""
    try:
        found = tuple(operator.index(v) for v in values)
    except TypeError:
        raise ShapeError(f"{what} must be a sequence of integers, not {values!r}", "builder_c6") from None
    if count is not None and len(found) != count:
        refuse(f"{what} {list(found)} must have {count} entries", "builder_c6")
    return found


def refuse(why: str, label: str) -> NoReturn:
    """Raise the error with the reason and the violated rule."""
    raise ShapeError(why, label)
