"""`hloom.experimental.error_check`: errors that programs find while they run. Names and meaning of JAX's `error_check`,
which JAX has not published yet.

    def f(x):
        error_check.set_error_if(x <= 0, "x must be positive")
        return jnp.log(x)

    hloom.jit(f)(x)               # runs to its end
    error_check.raise_if_error()  # JaxValueError: x must be positive

Unlike in `checkify`, which changes the result of a function, the error is kept apart: in a mutable array that programs
write, one for the process. So it works in any jitted function, in loops and branches, and outside of jit; but a jitted
function that sets errors cannot be mapped by vmap from outside, as any other that writes to an array from outside.
"""

from contextlib import contextmanager as _contextmanager
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ..namespaces import publish as _publish
from ..tracer.checks.error_state import NO_ERROR as _NO_ERROR
from ..tracer.checks.error_state import JaxValueError, set_error_if
from ..tracer.checks.error_state import exchange_code as _exchange_code
from ..tracer.checks.error_state import take_error as _take_error
from ..tracer.settings.config import Config as _Config
from ..tracer.settings.context import Override as _Override

if _TYPE_CHECKING:
    from collections.abc import Iterator as _Iterator

__all__ = ["JaxValueError", "error_checking_behavior", "error_checking_context", "raise_if_error", "set_error_if"]


def raise_if_error() -> None:
    """Raise the first error that was set since the last call, if there was one, and forget it.

    Raises:
      JaxValueError: its message, and the line that set it.
      ValueError: the call is in a function that is traced.

    >>> @hloom.jit
    ... def f(x):
    ...     error_check.set_error_if(x < 0, "x is negative")
    ...     return jnp.sqrt(x)
    >>> y = f(jnp.array([4.0, -1.0]))
    >>> try:
    ...     error_check.raise_if_error()
    ... except error_check.JaxValueError as error:
    ...     print(str(error).splitlines()[0])
    x is negative
    >>> error_check.raise_if_error()
    """
    found = _take_error()
    if found is not None:
        message, line = found
        raise JaxValueError(f"{message}\n  set at {line or '<unknown>'}, found by raise_if_error")


@_contextmanager
def error_checking_context() -> "_Iterator[None]":
    """Within the block there is no error at first; behind it, the one from before.

    >>> with error_check.error_checking_context():
    ...     error_check.set_error_if(jnp.array(True), "forgotten")
    >>> error_check.raise_if_error()
    """
    before = _exchange_code(_NO_ERROR)
    try:
        yield
    finally:
        _exchange_code(before)


def error_checking_behavior(
    *, all: str | None = None, nan: str | None = None, divide: str | None = None, oob: str | None = None
) -> _Override:
    """Within the block, in this thread, operations set an error automatically ("raise") or do not ("ignore"): those
    that give NaN, that divide by zero, and that have an index out of bounds; `all` stands for each that is not given.

    As `checkify` does, this checks each operation, also those inside of library functions. It is the setting
    ``jax_error_checking_behavior_nan`` (``_divide``, ``_oob``) for a block.

    >>> with error_check.error_checking_behavior(nan="raise"):
    ...     y = jnp.log(jnp.array([1.0, -1.0]))
    >>> try:
    ...     error_check.raise_if_error()
    ... except error_check.JaxValueError as error:
    ...     print(str(error).splitlines()[0])
    NaN encountered
    """
    given: dict[str, _Any] = {"nan": nan, "divide": divide, "oob": oob}
    values = {kind: all if value is None else value for kind, value in given.items()}
    chosen = {f"error_checking_behavior_{kind}": value for kind, value in values.items() if value is not None}
    for name, value in chosen.items():
        getattr(_Config, f"jax_{name}").check(value)
    return _Override(**chosen)


_publish(__name__, examples=("from hloom.experimental import error_check",))
