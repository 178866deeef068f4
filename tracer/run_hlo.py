"""run_hlo: any program in HLO or StableHLO, run on arrays. Programs that were run lately are kept compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..hlo import stablehlo
from ..hlo.backend import Executable, get_compiler
from ..hlo.collectives.world import local_device_count
from ..hlo.custom_calls import registry_version
from ..hlo.errors import ExecutionError
from ..hlo.ir import HloModule
from ..hlo.passes.manager import PassOptions
from ..hlo.passes.partitioning import WholeArrays, compiled, with_partitions
from ..hlo.support.loading import load
from ..hlo.target import Target
from ..hlo.text.parser import parse
from .caches import on_clear
from .settings.context import current_context


def run_hlo(
    text_or_module: str | bytes | HloModule, *args: Any, backend: str | None = None, target: str | Target | None = None
) -> list[Any]:
    """Compile a module and run it on array-likes, one for each leaf of the entry's parameters.

    Text is HLO, or StableHLO, which is known by its beginning; bytes are StableHLO's portable bytecode.

    Returns the result's leaves as NumPy arrays. For a module of several devices (replica_count, num_partitions), each
    argument is a sequence of array-likes, one for each device of this process, and the result is a list of leaves for
    each device, in the order of their numbers: replica * num_partitions + partition. A module of whole arrays that
    states shardings takes and returns whole arrays: it is partitioned if the process has several devices
    (`HLOOM_NUM_DEVICES`).

    The same text (or module) under the same settings is compiled once; the last few programs are kept.
    backend: "numba" or "evaluator"; None: the name in `hloom.config.hloom_backend`.
    target: "cpu" or another target, which determines the layouts inside of the program; None:
    `hloom.config.hloom_target`.
    HloParseError for malformed text and bytecode, ExecutionError if the arguments do not have the parameters' types
    (Python numbers are converted) or if there are not enough devices, CollectiveError if devices do not reach the same
    collectives.

    >>> text = '''HloModule double
    ... ENTRY main {
    ...   x = f32[3]{0} parameter(0)
    ...   ROOT y = f32[3]{0} add(x, x)
    ... }'''
    >>> hloom.run_hlo(text, jnp.array([1.0, 2.0, 3.0]))
    [array([2., 4., 6.], dtype=float32)]
    """
    settings = (PassOptions.from_environment(), registry_version())
    context = current_context()
    target = context.target if target is None else target
    devices = local_device_count()
    module, executable = _compiled(text_or_module, backend or context.backend, target, settings, devices)
    if context.no_execution:
        load(".checks.no_execution", __package__).refuse(module.name)
    if module.replica_count * module.num_partitions == 1:
        return executable.execute(_arrays(module, args))
    for each in args:
        if not isinstance(each, Sequence):
            raise ExecutionError(
                f"module {module.name} is for {module.replica_count} replicas and {module.num_partitions} partitions: "
                f"each argument must be the list of a device's arrays, not {type(each).__name__}"
            )
    return executable.execute_on_devices([_arrays(module, each) for each in args])


def _arrays(module: HloModule, args: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    leaves = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    if len(args) != len(leaves):
        raise ExecutionError(f"module {module.name} takes {len(leaves)} arrays, not {len(args)}")
    return [
        np.asarray(a, leaf.element.dtype) if isinstance(a, bool | int | float | complex) else np.asarray(a)
        for a, leaf in zip(args, leaves, strict=True)
    ]


@lru_cache(maxsize=32)
def _compiled(
    program: str | bytes | HloModule, backend: str, target: str | Target, settings: tuple[PassOptions, int],
    devices: int,
) -> tuple[HloModule, Executable | WholeArrays]:  # fmt: skip
    """The program, read and compiled. One of whole arrays that states shardings is partitioned if the process has
    several devices. `settings` are all else on which the result depends."""
    module = program if isinstance(program, HloModule) else _read(program)
    if devices > 1:
        module = with_partitions(module)
    return compiled(module, partial(get_compiler(backend).compile, target=target))


def _read(program: str | bytes) -> HloModule:
    if isinstance(program, bytes):
        return stablehlo.parse_bytecode(program)
    return stablehlo.parse(program) if stablehlo.is_text(program) else parse(program)


on_clear(_compiled.cache_clear)
