"""The errors that the IR raises. Each names the violated rule. None reports a bug of this library: those are asserts.

`HloError` is the base class. An error that a Python user expects as ValueError or TypeError is also a subclass of that.
An error with `is_complete` names its place itself, in a text or in a program that runs: public functions add nothing to
its message.
"""

from __future__ import annotations

from typing import Any

from .library import exceptions_of, set_module


class HloError(Exception):
    """Something is wrong with an HLO module, its text or its inputs."""

    operation: Any = None
    """The operation of an MLIR tree that it is about (`mlir/tree.py`), where it is about one."""
    instruction: Any = None
    """The instruction that it is about, or its name, where that is known."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied by message and attributes: a class may make its message from other arguments."""
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[HloError], arguments: tuple[Any, ...]) -> HloError:
    return kind.__new__(kind, *arguments)


class UnsupportedElementTypeError(HloError, TypeError):
    """A dtype that HLO cannot hold."""


class ShapeError(HloError, ValueError):
    """Operand shapes or attributes violate an op's rule. `label` names the rule, e.g. ``dot_c3``."""

    def __init__(self, message: str, label: str = "") -> None:
        self.label = label
        super().__init__(f"{message} [{label}]" if label else message)


class VerificationError(HloError):
    """A module breaks an invariant of the IR."""


class HloParseError(HloError, ValueError):
    """HLO text that cannot be read. Lines and columns count from 1; `source` is the line, shown around the column.

    `label` names the violated rule as in ShapeError and in the verifier, e.g. ``dot_c3`` or ``module_c3``, and ends the
    message; ``syntax`` stands for text that breaks the grammar.
    """

    is_complete = True

    def __init__(
        self, message: str, line: int, column: int, source: str = "", file: str = "<hlo>", label: str = "syntax"
    ) -> None:
        self.message, self.line, self.column, self.file, self.label = message, line, column, file, label
        super().__init__(f"{file}:{line}:{column}: {message}{_excerpt(source, column) if source else ''}")


def _excerpt(source: str, column: int) -> str:
    """The part of a line around `column`, with a caret below it: a line with a constant can have megabytes."""
    start = max(0, column - 1 - _SHOWN_BEFORE)
    shown = source[start : column + _SHOWN_AFTER]
    left = "..." if start else ""
    right = "..." if len(source) > column + _SHOWN_AFTER else ""
    line = "".join(c if c.isprintable() else " " for c in shown)
    return f"\n  {left}{line}{right}\n  {' ' * (len(left) + column - 1 - start)}^"


_SHOWN_BEFORE, _SHOWN_AFTER = 80, 60


class BytecodeError(HloParseError):
    """MLIR bytecode that cannot be read; `offset` counts its bytes from 0."""

    def __init__(self, message: str, offset: int, file: str = "<bytecode>") -> None:
        self.offset = offset
        super().__init__(message, 1, offset + 1, file=file, label="bytecode")
        self.args = (f"{file}: byte {offset}: {message}",)


class UnsupportedError(HloError, NotImplementedError):
    """A well-formed program needs something that this version cannot do; the message names it."""


class ScheduleError(HloError, ValueError):
    """A schedule that does not fit a kernel, or would change its results."""


class InconclusiveDimensionOperation(Exception):  # JAX's name
    """A question about symbolic sizes that has different answers for different values of their variables, or that the
    constraints do not decide."""


class JaxRuntimeError(RuntimeError):
    """An error while a program is compiled or run: JAX's name. Raised as one of its subclasses."""

    is_complete = True


class ExecutionError(HloError, JaxRuntimeError):
    """A module could not be run on the given arguments."""


class MemoryBudgetError(HloError, JaxRuntimeError):
    """A program needs more memory than its budget, and computing values again does not change that. `budget`, and
    `reached`: the fewest bytes that were found."""

    def __init__(self, program: str, budget: int, reached: int) -> None:
        self.budget, self.reached = budget, reached
        super().__init__(
            f"RESOURCE_EXHAUSTED: {program} needs {reached:,} bytes at least for arguments, results and temporaries, "
            f"and its memory budget is {budget:,} bytes"
        )


class CustomCallError(ExecutionError):
    """The function of a custom call raised an error, or returned a result that is not of the declared type."""


class EmptyQueueError(ExecutionError):
    """A program waits for data that do not come. `queue`: of infeed, or of a channel; `instruction`: its name in the
    program that runs, "" where that is not known."""

    def __init__(self, message: str, queue: str, instruction: str = "") -> None:
        super().__init__(message)
        self.queue, self.instruction = queue, instruction


class CollectiveError(ExecutionError):
    """Devices that run a program together cannot go on: one failed, finished early, runs something else, or does not
    come in time. The message names the collective, and the state of each device."""


set_module("errors", *exceptions_of(vars()))
