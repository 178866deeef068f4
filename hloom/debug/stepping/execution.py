"""A program that runs in steps: a generator that pauses after each instruction, with the frames of all calls.

Values are the evaluator's. Calls, fusions, branches and loops get frames of their own; a reducer or a comparator is a
part of its instruction. A caller of the generator decides in `enters` which of them it wants to see inside: the others
are evaluated at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

from ...hlo.effects import live_instructions
from ...hlo.evaluator import evaluate_instruction
from ...hlo.evaluator.control_flow import branch_taken
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass

Value: TypeAlias = Any
"""An array, or a tuple of values."""
Steps: TypeAlias = "Generator[Frame, None, Value]"
Compute: TypeAlias = Callable[[HloInstruction, Sequence[Value]], Value]


@dataclass(eq=False)
class Frame:
    """A computation that is being run."""

    computation: HloComputation
    role: str
    """"program", "call", "fusion", "condition", "body" or "branch"."""
    caller: HloInstruction | None
    values: dict[HloInstruction, Value]
    """Of the instructions that have run."""
    iteration: int | None = None
    """Of a loop's condition or body: which one, from 0 on."""
    current: HloInstruction | None = None
    """The instruction that ran last."""
    parent: Frame | None = None
    """The frame around it."""

    @property
    def activation(self) -> Frame:
        """The program, iteration or branch that this frame is a part of: itself, if it is none of a call."""
        frame = self
        while frame.role in ("call", "fusion") and frame.parent is not None:
            frame = frame.parent
        return frame

    @property
    def is_done(self) -> bool:
        """Whether its result is there."""
        return self.computation.root in self.values and self.current is self.computation.root


class Execution:
    """A program on arguments. `frames`: of the computations that are being run, the program's first."""

    def __init__(
        self, computation: HloComputation, arguments: Sequence[Value], enters: Callable[[HloInstruction], bool],
        compute: Compute | None = None, skip: Callable[[HloInstruction, int, Value], tuple[int, Value]] | None = None,
    ) -> None:  # fmt: skip
        """enters: whether the next call, loop or branch gets frames. compute: runs an instruction that gets none, by
        default the evaluator. skip: of a loop, the next iteration and the state before it: the iteration to go on
        with, and the state before that."""
        self.frames: list[Frame] = []
        self.result: Value = None
        self.is_over = False
        self._enters = enters
        self._compute = compute or evaluate_instruction
        self._skip = skip
        self._steps = self._whole(computation, arguments)

    def advance(self) -> Frame | None:
        """Run one more instruction; its frame, or None at the end of the program."""
        return next(self._steps, None)

    def close(self) -> None:
        """Give up the rest of the program."""
        self._steps.close()

    def _whole(self, computation: HloComputation, arguments: Sequence[Value]) -> Generator[Frame, None, None]:
        self.result = yield from self._run(computation, arguments, "program")
        self.is_over = True

    def _run(
        self, computation: HloComputation, arguments: Sequence[Value], role: str, caller: HloInstruction | None = None,
        iteration: int | None = None,
    ) -> Steps:  # fmt: skip
        values = dict(zip(computation.parameters, arguments, strict=True))
        frame = Frame(computation, role, caller, values, iteration, parent=self.frames[-1] if self.frames else None)
        self.frames.append(frame)
        try:
            live = live_instructions(computation)
            for i in computation.instructions:
                if i.opcode is Opcode.PARAMETER or i not in live:
                    continue
                values[i] = yield from self._value(i, [values[o] for o in i.operands])
                frame.current = i
                yield frame
            return values[computation.root]
        finally:
            self.frames.pop()

    def _value(self, i: HloInstruction, operands: Sequence[Value]) -> Steps:
        rule = _ENTERED.get(i.opcode)
        if rule is None or not self._enters(i):
            return self._compute(i, operands)
        return (yield from rule(self, i, operands))

    def _call(self, i: HloInstruction, operands: Sequence[Value]) -> Steps:
        return (yield from self._run(i.attributes.to_apply, operands, "call", i))

    def _fusion(self, i: HloInstruction, operands: Sequence[Value]) -> Steps:
        return (yield from self._run(i.attributes.calls, operands, "fusion", i))

    def _conditional(self, i: HloInstruction, operands: Sequence[Value]) -> Steps:
        index, *given = operands
        branches = i.attributes.branch_computations
        taken = branch_taken(index, len(branches))
        return (yield from self._run(branches[taken], [given[taken]], "branch", i))

    def _while(self, i: HloInstruction, operands: Sequence[Value]) -> Steps:
        (state,) = operands
        iteration = 0
        while True:
            if self._skip is not None:
                iteration, state = self._skip(i, iteration, state)
            if not (yield from self._run(i.attributes.condition, [state], "condition", i, iteration)):
                return state
            state = yield from self._run(i.attributes.body, [state], "body", i, iteration)
            iteration += 1


_ENTERED: dict[Opcode, Callable[[Execution, HloInstruction, Sequence[Value]], Steps]] = {
    Opcode.CALL: Execution._call,
    Opcode.CONDITIONAL: Execution._conditional,
    Opcode.FUSION: Execution._fusion,
    Opcode.WHILE: Execution._while,
}
"""Opcodes with frames of their own."""
