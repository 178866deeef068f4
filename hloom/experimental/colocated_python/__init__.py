"""`hloom.experimental.colocated_python`: Python functions that run where their arguments are. Names of
jax.experimental.colocated_python.

All devices belong to this process, or to processes that run the same program: a function runs in the process that calls
it.
"""

from ...namespaces import publish as _publish

_publish(__name__)
