"""jax._src.random.core."""

from typing import Any as _Any

from .... import config as _config
from ....random.implementations import implementation as _implementation

__all__ = ["default_prng_impl"]


def default_prng_impl() -> _Any:
    """The generator of keys for which none is named."""
    return _implementation(_config.jax_default_prng_impl)
