"""`checkify`: functions that return the errors in them; `check`: a condition of a user. `checks.py` does it.

Names, arguments and messages follow jax.experimental.checkify.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from ..hlo.support.tracebacks import boundary
from ..tracer.arguments import check_function
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayBase
from ..tracer.arrays.overlay import overlaid_all
from ..tracer.core import Tracer, Value, current_trace, set_current_trace
from ..tracer.execution import look_at_modules
from ..tracer.ops import compare, full_like
from ..tracer.recording import is_recording
from ..tracer.settings.context import Override, current_context
from ..tracer.source import user_line
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from .batches import first_where
from .checks import Checks, CheckTrace, JaxRuntimeError, Site, bind_check, message_of, refuse_checks

P = ParamSpec("P")
R = TypeVar("R")


class FailedCheckError(JaxRuntimeError):
    """The category of `check`."""


class NaNError(JaxRuntimeError):
    """The category of operations that give NaN."""


class DivisionByZeroError(JaxRuntimeError):
    """The category of divisions by zero."""


class OOBError(JaxRuntimeError):
    """The category of indices that are out of bounds."""


ErrorCategory: TypeAlias = type[JaxRuntimeError]
user_checks: frozenset[type[FailedCheckError]] = frozenset({FailedCheckError})
nan_checks: frozenset[type[NaNError]] = frozenset({NaNError})
index_checks: frozenset[type[OOBError]] = frozenset({OOBError})
div_checks: frozenset[type[DivisionByZeroError]] = frozenset({DivisionByZeroError})
float_checks: frozenset[type[NaNError] | type[DivisionByZeroError]] = nan_checks | div_checks
automatic_checks: frozenset[type[NaNError] | type[DivisionByZeroError] | type[OOBError]] = float_checks | index_checks
all_checks = automatic_checks | user_checks
_KINDS: dict[ErrorCategory, str] = {
    FailedCheckError: "user",
    NaNError: "nan",
    DivisionByZeroError: "div",
    OOBError: "oob",
}
_ERRORS = {kind: category for category, kind in _KINDS.items()}


class Error:
    """The first error of a function that was checked, if there was one; a pytree, so that jit and vmap return it.

    >>> error, _ = checkify.checkify(jnp.log, errors=checkify.float_checks)(-1.0)
    >>> error.get() is not None
    True
    """

    def __init__(self, code: Any, payloads: Any = (), sites: tuple[tuple[int, Site], ...] = ()) -> None:
        self._code, self._payloads, self._sites = code, payloads, sites

    def get(self) -> str | None:
        """The message of the error, None if there was none. After vmap: a line for each element that has one."""
        codes = np.asarray(self._code)
        if not codes.ndim:
            return self._message(int(codes), ())
        lines = []
        for place in np.argwhere(codes):
            where = ", ".join(map(str, place))
            lines.append(f"at mapped index {where}: {self._message(int(codes[tuple(place)]), tuple(place))}")
        return "\n".join(lines) or None

    def _message(self, code: int, place: tuple[int, ...]) -> str | None:
        for (number, site), payload in zip(self._sites, self._payloads, strict=True):
            if number + 1 == code:
                return message_of(site, [_element(p, place) for p in payload])
        return None

    def throw(self) -> None:
        """Raise the error, if there was one: `JaxRuntimeError`, with the line of the program that found it."""
        found = self._exception()
        if found is not None:
            raise found

    def _exception(self) -> JaxRuntimeError | None:
        message = self.get()
        if message is None:
            return None
        codes = np.asarray(self._code).ravel()
        code = int(codes[np.flatnonzero(codes)[0]])
        site = next(site for number, site in self._sites if number + 1 == code)
        return _ERRORS[site.kind](f"{message}\n  at {site.line}" if site.line else message)

    def __repr__(self) -> str:
        try:
            return f"Error({self.get()})"
        except TypeError:  # the code is traced
            return f"Error({self._code!r})"


def _element(payload: Any, place: tuple[int, ...]) -> Any:
    is_key = isinstance(payload, ArrayBase) and payload.aval.is_extended
    return (payload if is_key else np.asarray(payload))[place]


tree.register_pytree_node(
    Error,
    lambda e: ((e._code, e._payloads), e._sites),
    lambda sites, children: Error(children[0], children[1], sites),
)

init_error: Error = Error(np.int32(0))
"""No error."""


def checkify(
    f: Callable[P, R], errors: Iterable[ErrorCategory] = user_checks
) -> Callable[P, tuple[Error, R]]:
    """The function that returns an `Error` and the result of `f`. JAX's `checkify.checkify`.

    Args:
      f: takes and returns pytrees of arrays.
      errors: the kinds to check for: `user_checks` (calls of `check`), `nan_checks`, `div_checks`, `index_checks`, or a
        union of them.

    The function runs on after an error; only the first one is kept. Loops, branches and nested jit are looked through.

    >>> f = checkify.checkify(hloom.jit(lambda x, i: x[i]), errors=checkify.index_checks)
    >>> error, value = f(jnp.arange(3), 1)
    >>> error.get(), value
    (None, Array(1, dtype=int32))
    >>> f(jnp.arange(3), 5)[0].get() is None
    False
    """
    check_function(f, "checkify")
    unknown = [e for e in errors if e not in _KINDS]
    if unknown:
        raise ValueError(f"checkify: {unknown} are no categories of errors: use checkify.user_checks, nan_checks, ...")
    kinds = frozenset(_KINDS[e] for e in errors)

    @wraps(f)
    @boundary
    def checked(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, R]:
        leaves, structure = tree.flatten((args, kwargs))
        arguments, keywords = tree.unflatten(structure, [_as_given(leaf) for leaf in leaves])
        trace = CheckTrace(current_trace(), Checks(kinds))
        # The kinds that an enclosing checkify looks for are found here and handed on, except the user's checks.
        looked_for = current_context().checks - {"user"} | kinds | {"checkify"}
        with set_current_trace(trace), Override(checks=looked_for):
            result = f(*arguments, **keywords)
        sites = tuple([(n, trace.checks.sites[n]) for n in trace.payloads])
        payloads = [tuple(overlaid_all(trace.payloads[n], site.avals)) for n, site in sites]
        return Error(trace.code, tuple(payloads), sites), result

    return checked


def _as_given(leaf: Any) -> Any:
    """An argument as a value; an argument that is no array does not change."""
    try:
        return as_value(leaf)
    except TypeError:
        return leaf


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Say that the boolean scalar `pred` must be true. JAX's `checkify.check`.

    In a function that `checkify` was applied to, a false one becomes its error; outside of it and of jit it raises
    `JaxRuntimeError` at once. `msg` is formatted with arrays, by `str.format`. `debug`: outside of checkify the check
    does nothing.

    Raises:
      TypeError: `pred` is no boolean scalar, `msg` no string, or something to be formatted no array.
      ValueError: it is traced outside of `checkify`.

    >>> def root(x):
    ...     checkify.check(x >= 0, "x is negative: {}", x)
    ...     return jnp.sqrt(x)
    >>> error, value = checkify.checkify(hloom.jit(root))(-4.0)
    >>> print(error)
    Error(x is negative: -4.0 (`check` failed))
    """
    name = "debug_check" if debug else "check"
    value = as_value(pred)
    if value.aval.shape or value.aval.dtype != np.bool_:
        raise TypeError(f"{name} takes a scalar pred as argument, got {pred}\n  at {user_line()}")
    if not isinstance(msg, str):
        raise TypeError(f"{name} takes a string as its message, not {msg!r} of type {type(msg).__name__}")
    leaves, structure = tree.flatten((fmt_args, fmt_kwargs))
    payload = [_payload(leaf) for leaf in leaves]
    checks = current_context().checks
    functionalized = "user" in checks
    if not functionalized and (debug or checks):
        return
    if not functionalized and is_recording(current_trace()):
        look_at_modules(refuse_checks)
    site = Site("user", msg, structure, tuple([v.aval for v in payload]), user_line() or "")
    bind_check(site, value, payload)


def _payload(leaf: Any) -> Value:
    try:
        value: Value = as_value(leaf)
    except TypeError:
        raise TypeError(
            f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got {leaf!r} of type "
            f"{type(leaf)}."
        ) from None
    return value


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check`, which does nothing where `checkify` was not applied.

    >>> def root(x):
    ...     checkify.debug_check(x >= 0, "x is negative")
    ...     return jnp.sqrt(x)
    >>> root(4.0), checkify.checkify(root)(4.0)[0].get()
    (Array(2., dtype=float32, weak_type=True), None)
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise the error, if there is one; in a function that is traced or checked, hand it on to the next `checkify`.

    Of an error for each element (after vmap or scan), the first is handed on.

    >>> def f(x):
    ...     error, value = checkify.checkify(lambda x: checkify.check(x > 0, "too small"))(x)
    ...     checkify.check_error(error)  # handed on
    ...     return x
    >>> print(checkify.checkify(f)(-1.0)[0])
    Error(too small (`check` failed))
    """
    if not isinstance(error, Error):
        raise ValueError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    code = as_value(error._code)
    is_known = not isinstance(code, Tracer) or code.to_concrete_value() is not None
    if is_known and not current_context().checks:
        error.throw()
        return
    payloads = [as_value(p) for payload in error._payloads for p in payload]
    if code.aval.shape:
        code, *payloads = first_where(compare(code, "NE", full_like(code, 0)), [code, *payloads])
    rest = iter(payloads)
    for number, site in error._sites:
        payload = [next(rest) for _ in site.avals]
        args, kwargs = ((), {}) if site.structure is None else tree.unflatten(site.structure, payload)
        text = site.message if site.structure is not None else site.message.replace("{", "{{").replace("}", "}}")
        check(compare(code, "NE", full_like(code, number + 1)), text, *args, **kwargs)
