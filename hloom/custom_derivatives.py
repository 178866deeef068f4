"""`hloom.custom_derivatives`: derivatives that users write, and the arguments of their rules."""

from .namespaces import publish as _publish

_publish(__name__)
