"""`hloom.ref`: mutable arrays, with the names of jax.ref."""

from .namespaces import publish as _publish
from .tracer.references.refs import AbstractRef, Ref, addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]

_publish(__name__)
