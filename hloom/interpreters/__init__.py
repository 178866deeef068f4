"""`hloom.interpreters`: rules of primitives that are defined as JAX's are, with the names of jax.interpreters.

A rule that a table gets here becomes a rule of the primitive at once (`hloom/extend/protocol.py`). The operations of
the library itself have no entries: their rules are in other terms, and cannot be replaced.
"""

from ..namespaces import publish as _publish

_publish(__name__)
