"""A program compiled while its stages are recorded, from a function, one of its stages, or a module."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..hlo.backend import Executable, get_compiler
from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloModule
from ..hlo.passes import partitioning
from ..hlo.passes.history import History, recording
from ..hlo.support.records import dataclass
from ..hlo.target import Target
from ..tracer.jit import jit
from ..tracer.sharding.shardings import NamedSharding
from ..tracer.stages import Compiled, Lowered, Traced
from ..tracer.trees import tree
from ..tracer.waiting import block_until_ready
from .running import Times, times_of_runs


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the page shows of one program, as objects."""

    title: str
    history: History
    executable: Executable
    seconds: float
    """Of the compilation, with the recording."""
    is_traced: bool
    """False for a program from a file, which may name any line of any file."""
    mesh: str = ""
    times: Times | None = None

    @property
    def first(self) -> HloModule:
        """The module before the first pass."""
        return self.history.module or self.executable.module

    def with_times(self, times: Times) -> Inspection:
        """The same with the times of its rows."""
        return replace(self, times=times)


def inspect(subject: Any, args: tuple[Any, ...], kwargs: dict[str, Any], calls: int = 0) -> Inspection:
    """Compile a function for these arguments, or take what was lowered or compiled, or a module.

    calls: how often to run it for times; 0: not at all. TypeError for arguments of something that takes none, and
    UnsupportedError for times of a program without arguments to run on.
    """
    if isinstance(subject, HloModule):
        _take_none(args, kwargs, "an HloModule")
        if calls:
            raise UnsupportedError("hloom.view: give profile=0 for a module; `hloom view FILE --profile N` can run one")
        return inspect_module(subject, is_traced=False)
    if isinstance(subject, Compiled):
        lowered, options, target = subject.made_from
        return _inspect_lowered(lowered, args, kwargs, calls, options, target)
    if isinstance(subject, Traced):
        subject = subject.lower()
    if isinstance(subject, Lowered):
        return _inspect_lowered(subject, args, kwargs, calls)
    if not callable(subject):
        raise TypeError(
            f"hloom.view takes a function with its arguments, a Lowered, a Compiled or an HloModule, not {subject!r}"
        )
    lower = getattr(subject, "lower", None) or jit(subject).lower
    return _inspect_lowered(lower(*args, **kwargs), args, kwargs, calls)


def _inspect_lowered(
    lowered: Lowered, args: tuple[Any, ...], kwargs: dict[str, Any], calls: int, options: Any = None,
    target: str | Target | None = None,
) -> Inspection:  # fmt: skip
    started = time.perf_counter()
    with recording() as history:
        compiled = lowered.compile(options, target=target)
    seconds = time.perf_counter() - started
    executable = compiled.executable
    times = None
    if calls:
        if not args and not kwargs and compiled.in_avals != ((), {}):
            raise UnsupportedError(f"hloom.view: profile={calls} needs the arguments of {lowered.module.name}")
        times = times_of_runs(_runner(compiled, args, kwargs), calls, executable.module.name)
    return Inspection(
        _title(lowered.module.name), history, executable, seconds, True, _mesh_of(compiled), times
    )


def inspect_module(
    module: HloModule, target: str | Target = "cpu", donated: Sequence[int] = (), *, is_traced: bool,
    arguments: Callable[[HloModule], list[list[Any]]] | None = None, calls: int = 0, backend: str | None = None,
) -> Inspection:  # fmt: skip
    """Compile a module. `arguments`: for each device, of the module as its caller sees it, for `calls` runs."""
    started = time.perf_counter()
    compile = partial(get_compiler(backend).compile, target=target, donated=donated)
    with recording() as history:
        _, whole = partitioning.compiled(module, compile)
    seconds = time.perf_counter() - started
    executable = whole.executable if isinstance(whole, partitioning.WholeArrays) else whole
    times = None
    if calls and arguments is not None:
        given = arguments(module)
        if isinstance(whole, partitioning.WholeArrays):
            given = given[:1]
        times = times_of_runs(lambda: whole.execute_on_devices(given), calls, executable.module.name)
    return Inspection(_title(module.name), history, executable, seconds, is_traced, "", times)


def _runner(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], object]:
    """A call of the program that waits for its results, and that leaves the caller's arrays as they are: those that
    it may overwrite are copied."""
    leaves, structure = tree.flatten((args, kwargs))
    donated = set(compiled.donate_argnums)

    def run() -> None:
        given = [x.copy() if k in donated and hasattr(x, "copy") else x for k, x in enumerate(leaves)]
        positional, keywords = tree.unflatten(structure, given)
        block_until_ready(compiled(*positional, **keywords))

    return run


def _take_none(args: tuple[Any, ...], kwargs: dict[str, Any], what: str) -> None:
    if args or kwargs:
        raise TypeError(f"hloom.view: {what} takes no arguments, got {len(args) + len(kwargs)}")


def _title(module: str) -> str:
    return module.removeprefix("jit_") or module


def _mesh_of(compiled: Compiled) -> str:
    places = tree.leaves((compiled.input_shardings, compiled.output_shardings))
    meshes = [place.mesh for place in places if isinstance(place, NamedSharding)]
    return ", ".join(f"{name}: {size}" for name, size in meshes[0].shape.items()) if meshes else ""
