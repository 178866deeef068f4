"""Exit codes of commands, and how errors are printed."""

from __future__ import annotations

import sys

from ..hlo.errors import HloError, HloParseError

FINE, BAD, USAGE = 0, 1, 2
"""Exit codes: all is well; the HLO is bad, cannot be run, or its results differ; the command line is wrong."""


class UsageError(Exception):
    """The command line makes no sense; the message says what to do instead."""


def report(error: UsageError | HloError) -> int:
    """Print the error to stderr, without a traceback; the exit code. A parser's error begins with its position."""
    print(error if isinstance(error, HloParseError) else f"hloom: {error}", file=sys.stderr)
    return USAGE if isinstance(error, UsageError) else BAD
