"""NumbaCompiler: HLO in, executable out. A program that is stored is loaded; any other goes through `compiling.py`.

A process with stored programs needs only this file, its imports and `stored_programs.py`: no pass, no emitter. A
process that only calls elementary functions outside of jit does not even need a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from ..hlo.backend import AUTOTUNE, Compiler
from ..hlo.ir import HloModule, InputOutputAlias
from ..hlo.provenance import is_recording, not_recording
from ..hlo.shape import Shape
from ..hlo.support.loading import load
from ..hlo.target import CpuTarget, Target
from ..hlo.targets import target_named
from ..hlo.timeline.spans import Recorder, Source, Span, Track, register_source, spanning
from . import elementary
from .executable import Details, NumbaExecutable, ready

if TYPE_CHECKING:
    from ..hlo.passes.manager import Pipeline


class _Timelines:
    """The source of timelines, which is imported when something is recorded."""

    def start(self, recorder: Recorder) -> None:
        source: Source = import_module(".timeline", __package__).SOURCE
        source.start(recorder)

    def stop(self, recorder: Recorder) -> Iterable[Span]:
        source: Source = import_module(".timeline", __package__).SOURCE
        return source.stop(recorder)


register_source(_Timelines())


class NumbaCompiler(Compiler):
    """Compiles for the CPU that it runs on. The target decides the layout of arrays in its memory."""

    def pipeline(self, target: str | Target = "cpu") -> Pipeline:
        made: Pipeline = import_module(".pipeline", __package__).pipeline(target)
        return made

    def compile(
        self, module: HloModule, *, target: str | Target = "cpu", donated: Sequence[int] = ()
    ) -> NumbaExecutable:
        target = target_named(target)
        module = _with_donated(module, donated)
        if AUTOTUNE in module.frontend_attributes:
            tuned = import_module(".autotuning", __package__).tuned
            key = load(".stored_programs", __package__).key_of(module, target)
            with not_recording():
                module = tuned(module, key, partial(self._compiled, target=target))
        return self._compiled(module, target)

    def _compiled(self, module: HloModule, target: Target) -> NumbaExecutable:
        stored = load(".stored_programs", __package__)  # functions outside of jit do without it
        key = stored.key_of(module, target)
        if key is not None and not is_recording():
            with spanning(Track.COMPILING, f"look for {module.name} in the store"):
                found: NumbaExecutable | None = stored.load(key, module, partial(_details, module, target))
            if found is not None:
                return found
        made: NumbaExecutable = load(".compiling", __package__).compiled(module, target, key)
        return made

    def compile_function(self, module: HloModule, *, target: str | Target = "cpu") -> NumbaExecutable:
        target = target_named(target)
        made = elementary.program_of(module) if type(target) is CpuTarget else None
        return self._compiled(module, target) if made is None else ready(*made, partial(_details, module, target))

    def compile_optimized(self, module: HloModule, *, target: str | Target = "cpu") -> NumbaExecutable:
        """Compiles a module that has been through all passes; runs no pass. The search for a wrong kernel uses this."""
        module = replace(module, is_scheduled=True)
        made: NumbaExecutable = load(".compiling", __package__).assembled(module, target_named(target))
        return made


def _details(module: HloModule, target: Target) -> Details:
    details: Details = load(".compiling", __package__).details_of(module, target)
    return details


def _with_donated(module: HloModule, donated: Sequence[int]) -> HloModule:
    """The module, where a result with the same type and layout may use the memory of each donated parameter. A module
    that has aliases already is not changed."""
    if not donated or module.input_output_aliases:
        return module
    root = module.entry_result_shape
    leaves: list[tuple[tuple[int, ...], Shape]] = [((), root)]
    if root.is_tuple:
        leaves = [((k,), s) for k, s in enumerate(root.elements)]
    aliases = []
    for number in donated:
        shape = module.entry_parameter_shapes[number]
        found = next((leaf for leaf in leaves if leaf[1] == shape), None)
        if found is not None:
            leaves.remove(found)
            aliases.append(InputOutputAlias(found[0], number))
    return replace(module, input_output_aliases=tuple(aliases))
