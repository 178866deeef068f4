"""`hloom.experimental.checkify`: errors as values of a function. Names as in `jax.experimental.checkify`."""

from ..autodiff.checkify import (
    Error,
    ErrorCategory,
    all_checks,
    automatic_checks,
    check,
    check_error,
    checkify,
    debug_check,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    user_checks,
)
from ..autodiff.checks import JaxRuntimeError
from ..namespaces import publish as _publish

__all__ = [
    "Error",
    "ErrorCategory",
    "JaxRuntimeError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

_publish(__name__)
