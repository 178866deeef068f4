"""`hloom.ad`: where the gradients of `vjp` go, with the names of jax.ad."""

from .autodiff.gradient_refs import DidntWant, DontWant, GradRef, GradValue
from .namespaces import publish as _publish

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]

_publish(__name__)
