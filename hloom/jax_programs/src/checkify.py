"""jax._src.checkify."""

from ...autodiff.checkify import Error, checkify, user_checks
from ...autodiff.checks import JaxRuntimeError
from ...namespaces import publish as _publish

__all__ = ["Error", "JaxRuntimeError", "checkify", "user_checks"]

_publish(__name__)
