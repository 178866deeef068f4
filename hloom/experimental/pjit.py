"""`hloom.experimental.pjit`: an older name of `hloom.jit`, for programs that import it from jax.experimental.pjit."""

import typing as _typing

from ..namespaces import publish as _publish
from ..tracer.jit import jit as _jit
from ..tracer.source import warn_user as _warn_user

__all__ = ["pjit"]


def pjit(fun: _typing.Any = None, /, **options: _typing.Any) -> _typing.Any:
    """`hloom.jit`, with a DeprecationWarning, as in JAX.

    >>> import hloom, warnings
    >>> from hloom.experimental.pjit import pjit
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DeprecationWarning)
    ...     pjit(lambda x: 2 * x)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    _warn_user("jax.experimental.pjit.pjit has been deprecated: hloom.jit is the same", DeprecationWarning)
    return _jit(**options) if fun is None else _jit(fun, **options)


_publish(__name__)
