"""Python programs that a command runs in its own process, as `python` would."""

from __future__ import annotations

import io
import os
import runpy
import sys
from types import CodeType, FrameType, ModuleType, TracebackType

from ..hlo.support.source import is_internal
from .outcome import UsageError


def parts_of(given: list[str], command: str) -> tuple[str, str, list[str]]:
    """The kind of program ("-m", "-c", or "" for a file), its name or text, and its arguments."""
    kind = given[0] if given and given[0] in ("-m", "-c") else ""
    rest = given[1:] if kind else given
    if not rest:
        raise UsageError(f"name the program: {command} SCRIPT.py [ARGUMENT...], or -m MODULE, or -c CODE")
    if not kind and rest[0] != "-" and not os.path.isfile(rest[0]):
        raise UsageError(f"there is no file {rest[0]}")
    return kind, rest[0], rest[1:]


def run_script(kind: str, program: str, arguments: list[str]) -> None:
    """Run the result of `parts_of`. Its exceptions propagate, SystemExit too."""
    if kind == "-m":
        _first_on_path(os.getcwd())
        sys.argv = [program, *arguments]
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    elif kind == "-c":
        _first_on_path("")
        _run(compile(program, "<string>", "exec"), None, ["-c", *arguments])
    else:
        _first_on_path(os.path.dirname(os.path.realpath(program)) if program != "-" else "")
        _run(_read(program), None if program == "-" else program, [program, *arguments])


def show_error(error: Exception) -> None:
    """Print the error of a program, with the traceback from the program's first frame on."""
    error.__traceback__ = _from_program(error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)


def _first_on_path(folder: str) -> None:
    """Where `python` looks for modules first. At this point it is the folder of the command `hloom`, or of `python
    -m`."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _read(path: str) -> CodeType:
    if path == "-":
        return compile(sys.stdin.read(), "<stdin>", "exec")
    with io.open_code(os.path.abspath(path)) as file:
        return compile(file.read(), path, "exec")


def _run(code: CodeType, file: str | None, arguments: list[str]) -> None:
    """Execute as the module `__main__`, which remains: pickles and processes look for the program's classes there."""
    main = ModuleType("__main__")
    if file is not None:
        main.__file__ = file
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv = arguments
    exec(code, main.__dict__)


def _from_program(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on."""
    while traceback is not None and _is_runner(traceback.tb_frame):
        traceback = traceback.tb_next
    return traceback


def _is_runner(frame: FrameType) -> bool:
    return is_internal(frame) or frame.f_code.co_filename == "<frozen runpy>"
