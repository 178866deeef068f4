"""`hloom.progress`: a progress bar of a loop, in compiled programs too.

The body that it returns reports each iteration by the primitive TICK, a custom call without a use. It has no operand
that depends on the user's values, so transformations keep it as it is: a loop has one bar under `vmap`, and the same
results. Where the tracer makes a loop of such a body, it adds events before and after the loop. Reverse mode adds a bar
to its loop backwards (`autodiff/rules/scan_reverse.py`).

The bar belongs to the body, as one decorates it in jax-tqdm; but the loop knows its own length, so the user need not
repeat it, and the same function serves scan, fori_loop, while_loop, map and Python's loops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast, overload

from ...hlo.builder import make_computation
from ...hlo.effects import effects_of
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ...hlo.shape import Shape
from ...hlo.sizes import is_symbolic
from ...hlo.support.loop_progress import TARGET, LoopEvent, LoopProgress, iterated, length_of
from ...hlo.support.progress import is_shown
from ...hlo.support.tracebacks import boundary
from .. import dtypes
from ..arrays.array import Array, array_from_scalar
from ..core import Call, Primitive, Value, bind_call, bind_declared
from ..settings.context import current_context
from ..wrapping import wraps

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _evaluate(call: Call, arrays: Sequence[Array]) -> list[Array]:
    event, count = call.params
    return [array_from_scalar(event.act(count), dtypes.int32)]


TICK = Primitive("progress", evaluate=_evaluate)
"""An event of a loop. The parameters: the `LoopEvent`, and the iterations since the last one."""


def report(event: LoopEvent, count: int = 0, every: int = 1) -> None:
    """Call `event` where the program is."""
    config = f"{{every = {every} : i64}}"
    typed = CustomCallApiVersion.TYPED_FFI
    attributes = CustomCallAttributes(TARGET, config, typed, has_side_effect=True, function=event)

    def meaning(_: list[Value]) -> list[Value]:
        done = array_from_scalar(count, dtypes.int32)
        return [cast("Value", bind_declared(Opcode.CUSTOM_CALL, [done], attributes, Shape.parse("s32[]")))]

    bind_call(Call(TICK, meaning, (event, count), "progress"), [])


def report_iteration(loop: LoopProgress) -> None:
    """Report an iteration: for the body of a loop."""
    report(loop.tick, 1, loop.every)


def progress_of(body: HloComputation) -> LoopProgress | None:
    """The bar of a loop with this body, if its function was marked. A loop in it has its own."""
    for i in effects_of(body):
        if i.opcode is Opcode.CUSTOM_CALL and i.attributes.custom_call_target == TARGET:
            event = i.attributes.function
            if isinstance(event, LoopEvent) and event.loop is not None:
                return event.loop
        elif i.opcode is Opcode.CALL:
            found = progress_of(i.attributes.to_apply)
            if found is not None:
                return found
    return None


def without_progress(body: HloComputation) -> HloComputation:
    """The body of a loop that reports no iterations: for loops that a transformation repeats."""
    acting = effects_of(body)
    kept = [i for i in acting if not _only_reports(i)]
    if len(kept) == len(acting):
        return body
    return make_computation(body.name, body.root, body.parameters, kept)


def _only_reports(instruction: HloInstruction) -> bool:
    if instruction.opcode is Opcode.CALL:
        callee = instruction.attributes.to_apply
        return not callee.parameters and all(_only_reports(i) for i in effects_of(callee))
    return instruction.opcode is Opcode.CUSTOM_CALL and instruction.attributes.custom_call_target == TARGET


def reporting(body: HloComputation, length: Any, run: Callable[[], T]) -> T:
    """The results of `run`, a loop with this body and so many iterations (None: not known), with its events."""
    loop = progress_of(body)
    if loop is None:
        return run()
    report(loop.begin(None if length is None or is_symbolic(length) else length))
    results = run()
    report(loop.end)
    return results


@overload
def progress(body: F, *, total: int | None = None, every: int | None = None, desc: str | None = None) -> F: ...
@overload
def progress(
    body: Iterable[T], *, total: int | None = None, every: int | None = None, desc: str | None = None
) -> Iterable[T]: ...
@boundary
def progress(body: Any, *, total: int | None = None, every: int | None = None, desc: str | None = None) -> Any:
    """The body of a loop, or an iterable for a loop of Python, with a progress bar on stderr.

        lax.scan(hloom.progress(step), state, xs)
        lax.fori_loop(0, n, hloom.progress(step, desc="relax"), x)
        lax.while_loop(keep_going, hloom.progress(step), x)             counts, without an end
        for batch in hloom.progress(batches): ...

    The bar is drawn by tqdm, where stderr is a terminal and in notebooks, and in no other case; a loop that ends within
    a quarter of a second shows none. Results are the same, bit for bit, and a loop stays one kernel, which runs chunks
    of iterations. A compiled function draws a new bar in each call. Under `vmap` there is one bar for the batch; under
    `grad` one for each direction. Loops in loops have bars below each other. Where the setting
    `hloom_progress_bars` is off while a function is traced, the result is `body` itself.

    body: a function for `scan`, `fori_loop`, `while_loop` or `map`; called elsewhere, it is the plain function. Or any
    iterable.
    total: the number of iterations, where the loop does not know it; for a `while_loop` an estimate.
    every: updates come after a multiple of so many iterations, but at most twenty times a second. None: 1.
    desc: the text before the bar, by default the name of the function.

    TypeError if `body` is neither a function nor an iterable, or if a number is no integer; ValueError for `every`
    below 1 or a negative `total`.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom import lax
    >>> @hloom.progress
    ... def step(total, x):
    ...     return total + x, total
    >>> lax.scan(step, 0, jnp.arange(4))[0]
    Array(6, dtype=int32)
    >>> [2 * k for k in hloom.progress(range(3))]
    [0, 2, 4]
    """
    for name, given in (("every", every), ("total", total)):
        if given is not None and not hasattr(given, "__index__"):
            raise TypeError(f"progress: {name} must be an integer, not {given!r}")
    if every is not None and every < 1:
        raise ValueError(f"progress: every must be at least 1, not {every}")
    if total is not None and total < 0:
        raise ValueError(f"progress: total is negative: {total}")
    if not callable(body) and not hasattr(body, "__iter__") and not hasattr(body, "__getitem__"):
        raise TypeError(f"progress takes the body of a loop or an iterable, not {body!r} of {type(body).__name__}")
    if not current_context().progress_bars:
        return body
    if not callable(body):
        length = length_of(body) if total is None else total
        return iterated(body, desc or "", length, every or 1) if is_shown() else body
    title = desc or str(getattr(body, "__name__", "loop"))
    marked = _kept if getattr(body, "__hash__", None) else _marked
    return marked(body, title, total, every or 1)


def _marked(body: Callable[..., Any], title: str, total: int | None, every: int) -> Callable[..., Any]:
    """The function that reports; the same for the same arguments, so that a loop over it is traced once."""
    loop = LoopProgress(title, total, every)

    @wraps(body)
    def step(*args: Any, **kwargs: Any) -> Any:
        report_iteration(loop)
        return body(*args, **kwargs)

    return step


_kept = functools.lru_cache(maxsize=64)(_marked)
