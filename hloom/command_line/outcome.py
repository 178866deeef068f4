"""Exit codes of commands, and how errors are printed."""

from __future__ import annotations

import sys

from ..hlo.errors import HloError, HloParseError

FINE, BAD, USAGE = 0, 1, 2
"""Exit codes: all is well; the HLO is bad, cannot be run, or its results differ; the command line is wrong."""


class UsageError(Exception):
    """The command line makes no sense; the message gives advice."""


class ModuleError(HloError):
    """A module needs more than there is: memory, devices, data. The message begins with a position in its file."""


def report(error: UsageError | HloError | MemoryError) -> int:
    """Print the error to stderr, without a traceback; the exit code. Errors that have a position begin with it."""
    if isinstance(error, MemoryError):
        print(f"hloom: there is not enough memory: {error}".rstrip(": "), file=sys.stderr)
    else:
        has_position = isinstance(error, HloParseError | ModuleError)
        print(error if has_position else f"hloom: {error}", file=sys.stderr)
    return USAGE if isinstance(error, UsageError) else BAD
