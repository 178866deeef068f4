"""`hloom.debug`: looking into programs while they run, with JAX's names."""

from ..namespaces import publish as _publish
from . import callbacks, host, printing, prompt, shardings
from .callbacks import debug_callback as callback
from .printing import debug_log as log, debug_print as print
from .prompt import breakpoint
from .shardings import inspect_array_sharding, visualize_array_sharding, visualize_sharding

__all__ = [
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]

del callbacks, host, printing, prompt, shardings

_publish(__name__)
