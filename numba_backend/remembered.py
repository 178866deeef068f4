"""`remembered`: an emitter of kernels that returns the kernel of equal arguments again; `remembered_by_form`: also that
of other sizes, with their numbers in it.

Equal layers of a network, and the same network with another batch, need many kernels several times. The key is all that
the kernel depends on: the arguments, which must be hashable, and the machine that is compiled for. Kernels are
immutable. Fused computations have a memory of their own, by structure (`fused_computations.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, ParamSpec, TypeVar

from ..hlo.analyses.forms import FEW
from ..hlo.support.kept import Kept
from ..hlo.support.memory_pressure import on_pressure
from ..hlo.support.observed import Observations, Recalled, Trial
from .emitted_kernel import EmittedKernel
from .machine import target_machine

P = ParamSpec("P")
T = TypeVar("T")

MOST = 256
"""Results of one function that are kept, the latest: some megabytes of loop programs at most."""


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, a function of hashable arguments and of the target machine alone, computed once for the same ones."""

    made: Any = functools.lru_cache(MOST, typed=True)(lambda machine, *args, **options: function(*args, **options))
    on_pressure(made.cache_clear)

    @functools.wraps(function)
    def remembering(*args: P.args, **options: P.kwargs) -> T:
        found: T = made(target_machine(), *args, **options)
        return found

    return remembering


def remembered_by_form(function: Callable[P, EmittedKernel]) -> Callable[P, EmittedKernel]:
    """`function`, an emitter with arguments as of `remembered`, called once for all that differ in sizes alone, as long
    as these get the same answers from it (`hlo/support/observed.py`). A size is any integer above `FEW` in an argument,
    at any depth of tuples and dataclasses."""

    @remembered
    @functools.wraps(function)
    def emitting(*args: P.args, **options: P.kwargs) -> EmittedKernel:
        given = args, tuple(options.values())
        sizes: list[int] = []
        form = function, target_machine(), tuple(options), _form(given, sizes)
        recalled = _known.get(form)
        if recalled is None:
            recalled = _known.keep(form, Recalled())

        def observe() -> tuple[Observations, EmittedKernel]:
            seen = Observations(sizes)
            positional, named = _with_sizes(given, iter(seen.sizes()))
            more: Any = dict(zip(options, named, strict=True))
            return seen, function(*positional, **more)

        found = recalled.find(lambda seen: Trial(seen, sizes), observe)
        if found is None:
            return function(*args, **options)
        seen, kernel = found
        assert kernel.under is None, "a schedule for other sizes"
        return kernel.of_sizes(Trial(seen, sizes), (), None)

    return emitting


_known: Kept[tuple[object, ...], Recalled[EmittedKernel]] = Kept(MOST)
"""By the emitter, the machine and the form of the arguments."""


def _form(value: Any, sizes: list[int]) -> object:
    """A value without its sizes, which are added to `sizes`, each as often as it occurs: which of them are equal is no
    part of the form, since many are so by chance, as the images and the channels of a layer."""
    kind = type(value)
    if kind is int:
        if value > FEW:
            sizes.append(value)
            return _SIZE
        return value
    if isinstance(value, tuple):
        return kind, *[_form(part, sizes) for part in value]
    if is_dataclass(value):
        return kind, *[_form(getattr(value, f.name), sizes) for f in fields(value)]
    return kind, value


_SIZE = "size"


def _with_sizes(value: Any, sizes: Iterator[Any]) -> Any:
    """The value with other objects in the place of its sizes, in order."""
    kind = type(value)
    if kind is int:
        return next(sizes) if value > FEW else value
    if isinstance(value, tuple):
        parts = [_with_sizes(part, sizes) for part in value]
        return tuple(parts) if kind is tuple else kind(*parts)
    if is_dataclass(value):
        return replace(value, **{f.name: _with_sizes(getattr(value, f.name), sizes) for f in fields(value)})  # type: ignore[type-var]
    return value
