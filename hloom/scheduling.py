"""Other schedules for kernels: `hloom.schedule`. docs/schedules.md has the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .hlo.comparing import compare
from .hlo.errors import ScheduleError
from .numba_backend.schedule import steps as _steps
from .numba_backend.schedule.text import schedules_of_user, to_text
from .tracer.arrays.array import Array
from .tracer.jit import PjitFunction, jit
from .tracer.settings.context import Override
from .tracer.trees import tree
from .tracer.wrapping import wraps

P = ParamSpec("P")
R = TypeVar("R")


def schedule(
    fun: Callable[P, R],
    schedules: str | Mapping[str, str | Sequence[_steps.Step | _steps.KernelStep]],
    *,
    check: bool = False,
) -> Callable[P, R]:
    """A jitted function whose kernels have other schedules than the compiler chooses.

    fun: a function, which is jitted, or a jitted one. In a program of which it is a part, it has no kernels of its own.
    schedules: for kernels by their names in ``lower(...).compile().kernels()``, or "*" for all: steps, or their lines
      of text. Or all of this as text: a printed kernel, the content of a file (`docs/schedules.md`).
    check: the results of each call are compared with those of the reference evaluator.

    The program is compiled at the first call. ScheduleError then, and where `schedules` is no such text, for a kernel
    that is not there, for steps that would change results or read outside of arrays; with `check`, at a call, for
    results that differ.

    >>> x = jnp.ones((300, 64))
    >>> product = hloom.jit(lambda x: x @ x.T)
    >>> hloom.schedule(product, {"*": "Vectors(bits=256)"}, check=True)(x)[0, 0]
    Array(64., dtype=float32)
    """
    text = to_text(schedules_of_user(schedules))
    plain: Any = fun if isinstance(fun, PjitFunction) else jit(fun)
    scheduled = plain.changed({"schedules": text})
    if not check:
        made: Callable[P, R] = scheduled
        return made
    reference = plain.changed({}, donates=False)

    @wraps(scheduled)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        with Override(backend="evaluator"):
            expected = reference(*args, **kwargs)
        found: R = scheduled(*args, **kwargs)
        pairs = zip(tree.leaves(found), tree.leaves(expected), strict=True)
        for number, (a, e) in enumerate(pairs):
            if isinstance(a, Array) and isinstance(e, Array):
                difference = compare(_elements(a), _elements(e), a.aval.storage.hlo.element)
                if not difference.is_fine:
                    raise ScheduleError(f"under its schedule, result {number} of {scheduled!r} {difference}")
        return found

    checked.lower, checked.trace = scheduled.lower, scheduled.trace  # type: ignore[attr-defined]
    return checked


def _elements(x: Array) -> np.ndarray[Any, Any]:
    return np.asarray(Array.from_buffer(x.aval.storage, x._buffer))
