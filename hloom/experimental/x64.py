"""`disable_x64`, the opposite of `enable_x64`."""

from __future__ import annotations

from ..tracer.settings.config import enable_x64
from ..tracer.settings.context import Override
from ..tracer.settings.setting import Block


def disable_x64() -> Block | Override:
    """Within the block 64-bit dtypes become their 32-bit counterparts, in this thread.

    >>> import hloom
    >>> from hloom import numpy as jnp
    >>> from hloom import experimental
    >>> with hloom.enable_x64(), experimental.disable_x64():
    ...     print(jnp.arange(2.0).dtype)
    float32
    """
    return enable_x64(False)
