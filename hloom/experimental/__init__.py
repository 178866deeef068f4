"""`hloom.experimental`: names that JAX programs import from `jax.experimental`."""

import typing as _typing

from ..debug.callbacks import io_callback
from ..hlo.errors import UnsupportedError as _UnsupportedError
from ..namespaces import publish as _publish
from ..tracer.settings.config import enable_x64
from ..tracer.settings.context import Override as _Override
from ..tracer.settings.setting import Block as _Block
from ..tracer.core import EVAL as _EVAL
from ..tracer.core import current_trace as _current_trace

if _typing.TYPE_CHECKING:
    from . import checkify, error_check, hijax, jet, key_reuse, layout, mesh_utils, multihost_utils, ode, pjit
    from . import random, rnn, scheduling_groups, serialize_executable, sparse, xla_metadata

__all__ = [
    "checkify",
    "cur_qdd",
    "disable_x64",
    "enable_x64",
    "error_check",
    "hijax",
    "io_callback",
    "jet",
    "key_reuse",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "pjit",
    "random",
    "rnn",
    "scheduling_groups",
    "serialize_executable",
    "sparse",
    "xla_metadata",
]


def cur_qdd(x: _typing.Any) -> _typing.Any:
    """The current contents of a value of a library's own type (`hijax.MutableHiType`): ``x.cur_qdd()``.

    UnsupportedError within a transformation, where such values are not traced.

    >>> from hloom import experimental
    >>> class Held:
    ...     def cur_qdd(self):
    ...         return "float32[3]"
    >>> experimental.cur_qdd(Held())
    'float32[3]'
    """
    if _current_trace() is not _EVAL:
        raise _UnsupportedError(
            f"cur_qdd: a {type(x).__name__} can be used outside of jit, grad and vmap only: pass the arrays that it "
            "holds into the transformed function"
        )
    return x.cur_qdd()


def disable_x64() -> _Block | _Override:
    """Within the block 64-bit dtypes become their 32-bit counterparts, in this thread.

    >>> import hloom
    >>> from hloom import numpy as jnp
    >>> from hloom import experimental
    >>> with hloom.enable_x64(), experimental.disable_x64():
    ...     print(jnp.arange(2.0).dtype)
    float32
    """
    return enable_x64(False)


_publish(
    __name__,
    *("checkify", "error_check", "hijax", "jet", "key_reuse", "layout", "mesh_utils", "multihost_utils", "ode", "pjit"),
    *("random", "rnn", "scheduling_groups", "serialize_executable", "sparse", "xla_metadata"),
)
