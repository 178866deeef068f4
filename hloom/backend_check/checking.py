"""Runs the checks of a backend, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..hlo.backend import Compiler, Executable, get_compiler
from ..hlo.errors import UnsupportedError
from ..hlo.evaluator import evaluate
from .op_case import OpCase, build_module, check_results, make_inputs
from .op_table import CASES
from .programs import PROGRAMS, run_program
from .protocol import PROTOCOL
from .report import Outcome, Report

PARTS = ("protocol", "programs", "ops")
_TOGETHER = 64
"""Op cases that are compiled together."""


def check_backend(
    name: str,
    *,
    parts: Sequence[str] = PARTS,
    every: int = 1,
    only: Callable[[str], bool] = lambda name: True,
    report: Callable[[Outcome], object] = lambda outcome: None,
) -> Report:
    """Compare a backend with the evaluator.

    `every`: of the op table, every so many cases. `only`: whether a check of this name runs. `report` is called with
    each outcome as it is known. ValueError for an unknown part; UnsupportedError for an unknown backend.

    >>> from hloom.backend_check.checking import check_backend
    >>> check_backend("evaluator", parts=["ops"], only=lambda name: name.startswith("add-f32")).is_good
    True
    """
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ValueError(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    compiler = get_compiler(name)
    outcomes = []
    for part in parts:
        for outcome in _of(part, name, compiler, every, only):
            report(outcome)
            outcomes.append(outcome)
    return Report(name, tuple(outcomes))


def _of(
    part: str, backend: str, compiler: Compiler, every: int, only: Callable[[str], bool]
) -> Iterator[Outcome]:
    if part == "ops":
        cases = [case for case in CASES[::every] if only(case.id)]
        for start in range(0, len(cases), _TOGETHER):
            yield from _ops(compiler, cases[start : start + _TOGETHER])
    elif part == "programs":
        for program in PROGRAMS:
            if only(program.name):
                yield _checked(part, program.name, lambda program=program: run_program(program, backend))  # type: ignore[misc]
    else:
        for check in PROTOCOL:
            if only(check.__name__):
                yield _checked(part, check.__name__, lambda check=check: check(compiler))  # type: ignore[misc]


def _ops(compiler: Compiler, cases: Sequence[OpCase]) -> Iterator[Outcome]:
    modules = [build_module(case) for case in cases]
    compiled: Sequence[Executable | Exception]
    try:
        compiled = compiler.compile_all(modules)
    except Exception:  # of one of them: each alone says which
        compiled = [_alone(compiler, module) for module in modules]
    for case, module, executable in zip(cases, modules, compiled, strict=True):

        def check(case=case, module=module, executable=executable) -> None:  # type: ignore[no-untyped-def]
            if isinstance(executable, Exception):
                raise executable
            inputs = make_inputs(case)
            expected = evaluate(module, *inputs)
            check_results(case, executable.execute(inputs), expected)
            for given, again in zip(inputs, make_inputs(case), strict=True):
                assert given.tobytes() == again.tobytes(), f"{case.id}: the program wrote to an argument"

        yield _checked("ops", case.id, check)


def _alone(compiler: Compiler, module: object) -> Executable | Exception:
    try:
        return compiler.compile(module)  # type: ignore[arg-type]
    except Exception as error:
        return error


def _checked(part: str, name: str, check: Callable[[], object]) -> Outcome:
    try:
        check()
    except UnsupportedError as error:
        return Outcome(part, name, "refused", _line(error))
    except Exception as error:  # for any error, the report names the check, and the other checks go on
        return Outcome(part, name, "failed", f"{type(error).__name__}: {_line(error)}")
    return Outcome(part, name, "passed")


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:400]
