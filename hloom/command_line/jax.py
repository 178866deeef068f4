"""`hloom jax`: a program with ``import jax``, run with hloom in the place of JAX."""

from __future__ import annotations

import atexit
import sys
from argparse import Namespace

from .outcome import BAD, FINE
from .scripts import parts_of, run_script, show_error


def execute(options: Namespace) -> int:
    """Run the program as `python` would: `__main__`, `sys.argv` and `sys.path` are those that it would see."""
    # Imported here: the other subcommands, and help, need none of it.
    from ..jax_programs import as_jax
    from ..jax_programs.misses import MISSES

    script = parts_of(options.program, "hloom jax")
    as_jax(subprocesses=options.subprocesses)
    if options.report:
        atexit.register(lambda: print(MISSES.report(), file=sys.stderr))
    try:
        run_script(*script)
    except Exception as error:
        show_error(error)
        return BAD
    return FINE
