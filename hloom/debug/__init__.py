"""`hloom.debug`: looking into programs while they run, with JAX's names."""

from ..namespaces import publish as _publish
from . import callbacks, host, printing, prompt
from .callbacks import debug_callback as callback
from .printing import debug_print as print
from .prompt import breakpoint

__all__ = ["breakpoint", "callback", "print"]

del callbacks, host, printing, prompt

_publish(__name__)
