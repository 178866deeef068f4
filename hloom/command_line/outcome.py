"""How a command can end, and what is said when it goes wrong."""

from __future__ import annotations

import sys

from ..hlo.errors import HloError, HloParseError

FINE, BAD, USAGE = 0, 1, 2
"""Exit codes: all is well; the HLO is bad, cannot be run, or its results differ; the command line is wrong."""


class UsageError(Exception):
    """The command line asks for what makes no sense; the message says what to do instead."""


def report(error: UsageError | HloError) -> int:
    """Print the error to stderr, without a traceback; the exit code. Errors of the parser begin with their place."""
    print(error if isinstance(error, HloParseError) else f"hloom: {error}", file=sys.stderr)
    return USAGE if isinstance(error, UsageError) else BAD
