"""`hloom bisect`: which pass, rule or kernel makes a result wrong, and the smallest program that shows it."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

import numpy as np

from ..hlo.bisection.bisect import Backend, Bisection, Finding
from ..hlo.bisection.shrink import Specimen
from ..hlo.ir import HloModule
from ..hlo.passes.manager import PassOptions
from ..hlo.target import Target
from ..numba_backend.compiler import NumbaCompiler
from .files import NDArray, arguments_for, read_module, target_of, write_text
from .outcome import BAD, FINE

_SHOWN = 64
"""The largest number of elements of arguments that are printed."""


def execute(options: Namespace) -> int:
    """Print the culprit, or that all results agree."""
    target = target_of(options)
    with read_module(options.file).within_means() as module:
        return _execute(module, target, options)


def _execute(module: HloModule, target: Target, options: Namespace) -> int:
    if not options.input:
        options.random = True
    arguments = arguments_for(module, options)
    settings = replace(PassOptions.from_environment(), verify=False, dump_to=None, check_rules=False)
    compiler = NumbaCompiler()
    search = Bisection(compiler.pipeline(target), _backend(compiler, target), options.tolerance, settings)
    finding = search.run(module, arguments)
    if finding is None:
        print(f"{options.file}: the evaluator, every pass and the compiled program agree")
        return FINE
    print(f"{options.file}: {_verdict(finding)}\n\nthe smallest program that shows it:\n")
    text = finding.specimen.module.to_text()
    if options.output:
        write_text(options.output, text)
        _store(options.output, finding.specimen)
    print(text + _arguments(finding.specimen), end="")
    return BAD


def _backend(compiler: NumbaCompiler, target: Target) -> Backend:
    def compile_and_run(module: HloModule, arguments: list[NDArray]) -> list[NDArray]:
        return compiler.compile(module, target=target).execute(arguments)

    def optimized(module: HloModule) -> HloModule:
        return compiler.compile(module, target=target).module

    def run_as_it_is(module: HloModule, arguments: list[NDArray]) -> list[NDArray]:
        return compiler.compile_optimized(module, target=target).execute(arguments)

    return Backend(compile_and_run, optimized, run_as_it_is)


def _verdict(finding: Finding) -> str:
    if finding.what == "kernel":
        return f"all passes agree with the evaluator, and the kernel of {finding.name} does not: {finding.difference}"
    if finding.what == "program":
        return f"all passes and each kernel agree with the evaluator, the program does not: {finding.difference}"
    text = f"the result is wrong after pass {finding.name}: {finding.difference}"
    if finding.application is None:
        return text
    return f"{text}\nrewrite {finding.number} of {finding.count} of that pass is wrong: {finding.application}"


def _arguments(specimen: Specimen) -> str:
    """The arguments, as comments, where they are small."""
    leaves = [
        (parameter.name + (f" leaf {number}" if parameter.shape.is_tuple else ""), leaf)
        for parameter in specimen.module.entry.parameters
        for number, leaf in enumerate(parameter.shape.leaves())
    ]
    lines = []
    for (name, leaf), array in zip(leaves, specimen.arguments, strict=True):
        shown = array.tolist() if array.size <= _SHOWN else f"{array.size} elements, {array.flat[0]}, ..."
        lines.append(f"// {name}: {leaf} = {shown}\n")
    return "".join(lines)


def _store(path: str, specimen: Specimen) -> None:
    named = {f"argument{number}": array for number, array in enumerate(specimen.arguments)}
    np.savez(f"{path}.npz", **named)  # type: ignore[arg-type]  # its signature has a keyword of another type
