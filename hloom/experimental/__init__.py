"""`hloom.experimental`: names that JAX programs import from `jax.experimental`."""

import typing as _typing

from ..debug.callbacks import io_callback
from ..namespaces import publish as _publish
from ..tracer.config import enable_x64
from ..tracer.context import Override as _Override

if _typing.TYPE_CHECKING:
    from . import checkify, jet, layout, ode, sparse

__all__ = ["checkify", "disable_x64", "enable_x64", "io_callback", "jet", "layout", "ode", "sparse"]


def disable_x64() -> _Override:
    """Within the block 64-bit dtypes become their 32-bit counterparts, in this thread."""
    return enable_x64(False)


_publish(__name__, "checkify", "jet", "layout", "ode", "sparse")
