"""`hloom debug`: a Python program whose jitted functions, or a module whose instructions, run in steps."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..hlo.passes.partitioning import with_partitions
from .files import MODULE_SUFFIXES, arguments_of_devices, read_module
from .outcome import BAD, FINE, UsageError
from .scripts import parts_of, run_script, show_error


def execute(options: Namespace) -> int:
    """Open a prompt at each call of a jitted function; the program's exit code."""
    # Imported here: help, and a wrong command line, need none of it.
    from ..debug.stepping.stepper import Stepper

    def prompt(run: Stepper) -> Any:
        from ..debug.stepping.prompt import Prompt, add_stop

        for text in options.stop or ():
            try:
                add_stop(run, text)
            except (ValueError, SyntaxError) as error:
                raise UsageError(f"--stop {text!r}: {error}") from None
        for place in getattr(options, "break") or ():
            run.stop_at(place)
        return Prompt(run).run("continue" if run.breakpoints else None)

    if options.program and options.program[0].endswith(MODULE_SUFFIXES):
        return _module(options, prompt)
    program = parts_of(options.program, "hloom debug")
    if options.jax:
        from ..jax_programs import as_jax

        as_jax()
    from ..debug.stepping.calls import stepped_calls
    from ..debug.stepping.programs import program_of_function

    def step(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return prompt(Stepper(program_of_function(function, args, kwargs, options.kernels), options.kernels))

    try:
        with stepped_calls(step, options.function):
            run_script(*program)
    except UsageError:
        raise
    except Exception as error:
        show_error(error)
        return BAD
    return FINE


def _module(options: Namespace, prompt: Any) -> int:
    """A module, with the arguments that `hloom run` takes."""
    from ..debug.stepping.programs import program_of_module
    from ..debug.stepping.stepper import Stepper
    from ..namespaces import backends  # noqa: F401  # makes the backends known
    from .options import parse_options
    from .run import print_results

    given = parse_options(["run", *options.program])
    file = read_module(given.file)
    with file.within_means():
        module = with_partitions(file.module)
        if module.replica_count * module.num_partitions > 1:
            raise UsageError(f"module {module.name} is for several devices: `hloom run` runs it")
        (leaves,) = arguments_of_devices(module, given)
        results = prompt(Stepper(program_of_module(module, leaves, options.kernels), options.kernels))
        print_results(results, list(module.entry.root.shape.leaves()))
    return FINE
