"""`hloom.test_util`: derivatives tested against finite differences, with the names of jax.test_util."""

from .autodiff.finite_differences import check_grads, check_jvp, check_vjp
from .namespaces import publish as _publish

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_publish(__name__)
