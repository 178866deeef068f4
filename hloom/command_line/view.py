"""`hloom view`: a module, the functions that a script compiles, or a timeline, as a page in a browser."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ..hlo.ir import HloModule
from ..hlo.target import Target
from .files import MODULE_SUFFIXES, arguments_of_devices, read_module, target_of
from .outcome import BAD, FINE, UsageError
from .scripts import parts_of, run_script, show_error


def execute(options: Namespace) -> int:
    """Make the page's data, then write the page, or serve it until Ctrl-C. Returns the exit code."""
    # Imported here: help, and a wrong command line, need none of it.
    from ..namespaces import backends  # noqa: F401  # makes the backends known
    from ..viewer.view import show

    given: list[str] = options.program
    if not given:
        raise UsageError("name a file or a program: hloom view model.hlo, hloom view train.py")
    code = FINE
    if given[0].endswith((*MODULE_SUFFIXES, ".txt")) or given[0] == "-":
        data = _of_file(_alone(given), options)
    elif given[0].endswith((".json", ".json.gz")):
        data = _of_timeline(_alone(given))
    else:
        data, code = _of_script(given, options)
    try:
        show(data, options.html, not options.no_open, options.port)
    except (OSError, OverflowError) as error:
        what = f"write {options.html}" if options.html else f"listen on port {options.port}"
        raise UsageError(f"cannot {what}: {getattr(error, 'strerror', None) or error}") from None
    return code


def _alone(given: list[str]) -> str:
    if len(given) > 1:
        raise UsageError(f"nothing may follow {given[0]}; options come before it")
    return given[0]


def _of_file(name: str, options: Namespace) -> dict[str, Any]:
    from ..hlo.passes.partitioning import with_partitions
    from ..viewer.inspection import inspect_module
    from ..viewer.model import model_of

    if options.function:
        raise UsageError("--function is for scripts: a file has one program")
    file = read_module(name)
    with file.within_means():
        module = with_partitions(file.module)
        file.with_devices(module)
        arguments = partial(arguments_of_devices, options=options)
        return model_of(
            inspect_module(
                module, target_of(options), is_traced=False, arguments=arguments, calls=options.profile
            )
        )


def _of_timeline(name: str) -> dict[str, Any]:
    from ..viewer.timeline_file import model_of_file

    try:
        return model_of_file(name)
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} is no timeline of hloom: {error}") from None


class _Program(NamedTuple):
    """A module that a script has compiled."""

    module: HloModule
    target: str | Target
    donated: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.module.name.removeprefix("jit_")

    @property
    def size(self) -> int:
        return sum(len(c.instructions) for c in self.module.computations)


def _of_script(given: list[str], options: Namespace) -> tuple[dict[str, Any], int]:
    """The data of one of the programs that a script compiles, and the exit code of the script."""
    from .. import numpy  # noqa: F401  # importing the library is not the program's own time
    from ..tracer.execution import ON_COMPILING
    from ..tracer.profiling.timeline import ProfileOptions, Session
    from ..viewer.inspection import inspect_module
    from ..viewer.model import model_of
    from ..viewer.running import slowest, times_in

    parts = parts_of(given, "hloom view")
    if options.target or options.input:
        raise UsageError("--target and --input are for files; a script is compiled as HLOOM_TARGET says")
    programs: list[_Program] = []

    def look(module: HloModule, target: str | Target, donated: Sequence[int]) -> None:
        programs.append(_Program(module, target, tuple(donated)))

    session = Session(ProfileOptions()) if options.profile else None
    ON_COMPILING.append(look)
    code = FINE
    try:
        if session is not None:
            session.start()
        run_script(*parts)
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else BAD if exit.code else FINE
    except KeyboardInterrupt:
        print("interrupted: shown is what was compiled until then", file=sys.stderr)
    except Exception as error:
        show_error(error)
        code = BAD
    finally:
        ON_COMPILING.remove(look)
        timeline = session.stop() if session is not None and session.is_on else None
    if not programs:
        raise UsageError(f"{given[0]} compiled no jitted function")
    summary = None if timeline is None else times_in(timeline, "").summary
    chosen = _chosen(programs, options.function, None if summary is None else slowest(summary, _names(programs)))
    found = inspect_module(chosen.module, chosen.target, chosen.donated, is_traced=True)
    if timeline is not None:
        found = found.with_times(times_in(timeline, found.executable.module.name))
    return model_of(found), code


def _names(programs: Sequence[_Program]) -> list[str]:
    return [program.module.name for program in programs]


def _chosen(programs: Sequence[_Program], function: str | None, slow: str | None) -> _Program:
    """The program of that name, else the one that took the most time, else the largest; the newest of several."""
    names = list(dict.fromkeys([p.name for p in programs]))
    if function is not None:
        found = [p for p in programs if function in (p.name, p.module.name)]
        if not found:
            raise UsageError(f"no jitted function named {function} was compiled; these were: {', '.join(names)}")
        return found[-1]
    chosen = max(reversed(programs), key=lambda p: p.size)
    if slow is not None:
        chosen = next(p for p in reversed(programs) if p.module.name == slow)
    others = [name for name in names if name != chosen.name]
    if others:
        print(f"shown is {chosen.name}; --function shows another: {', '.join(others)}", file=sys.stderr)
    return chosen
