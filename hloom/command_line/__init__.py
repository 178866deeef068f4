"""`python -m hloom`, or `hloom`: HLO files run, optimised and checked from a shell.

`options.py` declares the options of each subcommand, and a module named after the subcommand runs it: its
`execute(options)` returns one of the exit codes in `outcome.py`. Only results go to stdout; messages and timings go to
stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from .options import parse_options

_BROKEN_PIPE = 141
"""A shell's exit code for a process that SIGPIPE ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. `arguments`: without the program's name, by default the process's."""
    options = parse_options(arguments)
    # Imported late: help needs neither NumPy nor the IR.
    from ..hlo.errors import HloError
    from .outcome import UsageError, report

    try:
        code: int = import_module(f".{options.command}", __name__).execute(options)
        sys.stdout.flush()
    except (UsageError, HloError, MemoryError) as error:
        return report(error)
    except BrokenPipeError:  # `hloom opt ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return code
