"""`hloom.debug`: looking into programs while they run, with JAX's names."""

from ..namespaces import publish as _publish
from .callbacks import debug_callback as callback
from .printing import debug_print as print
from .prompt import breakpoint

__all__ = ["breakpoint", "callback", "print"]

_publish(__name__)
