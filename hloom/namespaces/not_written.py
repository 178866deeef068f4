"""Names of JAX that libraries import at their top, and that hloom does not have yet: the import succeeds, and each use
raises UnsupportedError, which says why.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..hlo.errors import UnsupportedError


class _NotWritten(type):
    """The class of such names, which are classes themselves: annotations and `isinstance` may name them."""

    _needs: str

    def _refuse(cls) -> NoReturn:
        raise UnsupportedError(f"{cls.__module__}.{cls.__name__} is not written yet: {cls._needs}")

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        cls._refuse()

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        cls._refuse()


def not_written(module: str, names: str, needs: str) -> dict[str, Any]:
    """Names for a module, which raise UnsupportedError when they are used. `needs` says what they would need."""
    return {
        name: _NotWritten(name, (), {"__module__": module, "_needs": needs, "__doc__": f"UnsupportedError: {needs}."})
        for name in names.split()
    }
