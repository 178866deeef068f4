"""Exit codes of commands, and how errors are printed."""

from __future__ import annotations

import sys

from ..hlo.errors import HloError, HloParseError

FINE, BAD, USAGE = 0, 1, 2
"""Exit codes: all is well; the HLO is bad, cannot be run, or its results differ; the command line is wrong."""


class UsageError(Exception):
    """The command line makes no sense; the message says what to do instead."""


class OutOfMemoryError(HloError):
    """There is not enough memory for a module. The message begins with the position of its largest array."""


def report(error: UsageError | HloError | MemoryError) -> int:
    """Print the error to stderr, without a traceback; the exit code. Errors that have a position begin with it."""
    if isinstance(error, MemoryError):
        print(f"hloom: there is not enough memory: {error}".rstrip(": "), file=sys.stderr)
    else:
        has_position = isinstance(error, HloParseError | OutOfMemoryError)
        print(error if has_position else f"hloom: {error}", file=sys.stderr)
    return USAGE if isinstance(error, UsageError) else BAD
