"""Names for parts of a program (`named_scope`, `named_call`), and `ensure_compile_time_eval`.

Names and arguments follow jax.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ContextDecorator
from typing import Any, ParamSpec, TypeVar

from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..hlo.support.tracebacks import boundary
from .arguments import check_function
from .core import EVAL, Call, Trace, Tracer, Value, current_trace, scope, set_current_trace
from .wrapping import wraps

P = ParamSpec("P")
R = TypeVar("R")


class named_scope(ContextDecorator):
    """Within the block, or in the decorated function, instructions have the name in their metadata: in HLO text with
    `metadata=True`, and in `jaxpr.pretty_print(name_stack=True)`.

    A function that is traced once for all its calls (jit, scan, cond) has only the names of the scopes inside it. A
    transformation is part of the name of the next scope, as in ``vmap(wave)`` and ``transpose(jvp(wave))``.

    >>> def f(x):
    ...     with hloom.named_scope("wave"):
    ...         return jnp.sin(x)
    >>> "wave" in hloom.make_hlo(f)(1.0).as_text(metadata=True)
    True
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope name argument must be a string, got {name!r}")
        self.name = name
        self._open: list[AbstractContextManager[None]] = []

    def __enter__(self) -> str:
        inside = scope(self.name)
        inside.__enter__()
        self._open.append(inside)
        return self.name

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun` in a `named_scope` of the given name, or its own.

    >>> f = hloom.named_call(lambda x: jnp.sin(x), name="wave")
    >>> "wave" in hloom.make_hlo(f)(1.0).as_text(metadata=True)
    True
    """
    check_function(fun, "named_call")
    label = name if name is not None else getattr(fun, "__name__", type(fun).__name__)

    @wraps(fun)
    @boundary
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        with named_scope(label):
            return fun(*args, **kwargs)

    return named


def ensure_compile_time_eval() -> AbstractContextManager[None]:
    """Within the block, operations on concrete arrays are computed at once, also while a function is traced.

    An operation on a value that is being traced is traced as usual.

    >>> @hloom.jit
    ... def f(x):
    ...     with hloom.ensure_compile_time_eval():
    ...         n = int(jnp.sum(jnp.array([1, 2])))  # a number, while f is traced
    ...     return x * n
    >>> f(1.5)
    Array(4.5, dtype=float32, weak_type=True)
    """
    trace = current_trace()
    return set_current_trace(trace if trace is EVAL else _EagerTrace(trace))


class _EagerTrace(Trace):
    """Sends an operation with a traced operand to the trace around, and computes all others."""

    parent: Trace

    def __init__(self, parent: Trace) -> None:
        self.parent = parent

    def _trace_of(self, operands: tuple[Value, ...]) -> Trace:
        return self.parent if any(isinstance(o, Tracer) for o in operands) else EVAL

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        trace = self._trace_of(operands)
        with set_current_trace(trace):
            return trace.process(opcode, operands, attributes, shape)

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        trace = self._trace_of(operands)
        with set_current_trace(trace):
            return trace.process_call(call, operands)
