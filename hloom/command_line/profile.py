"""`hloom profile`: a Python program, or a module on arrays, and where its time went."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..hlo.backend import get_compiler
from ..hlo.timeline.summary import Summary
from ..hlo.timeline.timeline import Timeline
from ..hlo.timeline.trace_file import write_trace
from .files import MODULE_SUFFIXES
from .outcome import BAD, FINE, UsageError
from .scripts import parts_of, run_script, show_error


def execute(options: Namespace) -> int:
    """Run the program while a timeline is recorded, then print the summary. Returns the program's exit code, if it
    ended normally; with --json its output goes to stderr."""
    # Imported here: help, and a wrong command line, need none of it.
    from ..profiles import summary_of
    from ..tracer.profiling.timeline import ProfileOptions, Session

    program = _program(options.program)
    if options.timeline:
        _check_folder(options.timeline)
    if options.jax:
        from ..jax_programs import as_jax

        as_jax()
    else:
        from .. import numpy  # noqa: F401  # importing the library is not the program's own time
    get_compiler()
    session = Session(ProfileOptions(python_tracer_level=int(options.python)))
    code = FINE
    exited: BaseException | None = None
    session.start()
    try:
        with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
            code = program() or FINE
    except (SystemExit, KeyboardInterrupt) as exit:  # the record until then is shown all the same
        exited = exit
    except Exception as error:
        show_error(error)
        code = BAD
    finally:
        timeline = session.stop() if session.is_on else None
    if timeline is None:  # a child that the program has forked
        return code
    if options.timeline:
        write_timeline(timeline, options.timeline)
    _show(summary_of(timeline, options.measure), options)
    if exited is not None:
        sys.stdout.flush()
        raise exited
    return code


def _program(given: list[str]) -> Callable[[], int | None]:
    """The program to measure: for a file of HLO or StableHLO, `hloom run` with the given arguments."""
    if given and given[0].endswith(MODULE_SUFFIXES):
        from . import main

        return partial(main, ["run", *given])
    return partial(run_script, *parts_of(given, "hloom profile"))


def write_timeline(timeline: Timeline, path: str) -> None:
    """Write a trace file; UsageError if that is not possible."""
    try:
        write_trace(timeline, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _check_folder(path: str) -> None:
    """Fail before the program runs, not after it."""
    folder = Path(path).absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or Path(path).is_dir():
        raise UsageError(f"cannot write {path}: {folder} is no folder that can be written to, or {path} is one")


def _show(summary: Summary, options: Namespace) -> None:
    if options.json:
        print(json.dumps(summary.to_json(), indent=1))
    else:
        print(f"\n{summary.to_text(options.top)}")
