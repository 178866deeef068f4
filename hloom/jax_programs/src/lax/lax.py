"""jax._src.lax.lax: the operations, which are the same as in `hloom.lax`."""

import typing as _typing

from .... import lax as _lax

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_lax, name)
