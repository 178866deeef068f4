"""`hloom check`: is the file valid HLO, and does compiled code give the evaluator's results?"""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from ..hlo.backend import get_compiler
from ..hlo.comparing import compare
from ..hlo.errors import HloError
from ..hlo.passes.partitioning import compiled, with_partitions
from ..hlo.verifier import verify
from ..namespaces import backends  # noqa: F401  # makes the backends known
from .files import ModuleFile, arguments_of_devices, read_module, scheduled, target_of
from .outcome import BAD, FINE, UsageError, report


def execute(options: Namespace) -> int:
    """One verdict for each file. All files are checked, even after a bad one."""
    given = options.input, options.tolerance, options.target, options.schedule
    if any(value not in (None, []) for value in given) and not options.compare:
        raise UsageError("--input, --tolerance, --target and --schedule are for --compare")
    options.target = target_of(options)
    return max([_check(name, options) for name in options.files])


def _check(name: str, options: Namespace) -> int:
    try:
        file = read_module(name)
        with file.within_means() as module:
            verify(module)
            instructions = sum(len(computation.instructions) for computation in module.computations)
            found = f"{len(module.computations)} computations, {instructions} instructions"
            print(f"{name}: module {module.name}, {found}: ok")
            return FINE if not options.compare or _compare(file, options) else BAD
    except (HloError, MemoryError) as error:
        return report(error)


def _compare(file: ModuleFile, options: Namespace) -> bool:
    if not options.input:
        options.random = True
    given = scheduled(with_partitions(file.module), options)
    file.with_devices(given)
    module, evaluator = compiled(given, get_compiler("evaluator").compile)
    _, executable = compiled(given, partial(get_compiler("numba").compile, target=options.target))
    arguments = arguments_of_devices(module, options)
    expected = evaluator.execute_on_devices(arguments)
    actual = executable.execute_on_devices(arguments)
    fine = True
    for device, (found, wanted) in enumerate(zip(actual, expected, strict=True)):
        where = f"device {device}, " if len(actual) > 1 else ""
        for number, (a, e, shape) in enumerate(zip(found, wanted, executable.result_shapes, strict=True)):
            difference = compare(a, e, shape.element, options.tolerance)
            fine &= difference.is_fine
            print(f"{file.name}: {where}result {number}: {shape}: {difference}")
    return fine
