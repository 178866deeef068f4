"""The errors and warnings of the runtime. Every message says what happened, names the kernel, and says what to do."""

from __future__ import annotations

from ...hlo.errors import ExecutionError, HloError


class KernelCompilationError(HloError):
    """Numba or LLVM refused a kernel. The message holds the kernel's source with line numbers."""

    def __init__(self, name: str, source: str, reason: str) -> None:
        self.kernel, self.source, self.reason = name, source, reason
        numbered = "\n".join(f"{number:4d} | {line}" for number, line in enumerate(source.splitlines(), 1))
        super().__init__(f"kernel {name!r} could not be compiled: {reason}\n{numbered}")


class KernelStoreWarning(UserWarning):
    """The kernel store on disk could not be used as asked; results are right, but kernels may be compiled again."""


class ProgramError(HloError, ValueError):
    """A program was built in a way that the executor cannot run: an undefined label, a base that does not exist..."""


class ProgramExecutionError(ExecutionError):
    """A program stopped: a callback reported an error."""
