"""Names of JAX that libraries import, and that hloom does not have: the import succeeds, and each use raises
UnsupportedError, which says why.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..hlo.errors import UnsupportedError


class NotWritten(type):
    """The class of such names, which are classes themselves: annotations and `isinstance` may name them."""

    _needs: str

    def _explain(cls) -> str:
        return f"{cls.__module__}.{cls.__name__} is not written yet: {cls._needs}"

    def _refuse(cls, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(cls._explain())

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        cls._refuse()

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):  # Python's own questions, such as that for __wrapped__
            raise AttributeError(name)
        cls._refuse()


def not_written(module: str, names: str, needs: str) -> dict[str, Any]:
    """Names for a module, which raise UnsupportedError when they are used. `needs` says what they would need."""
    return {
        name: NotWritten(name, (), {"__module__": module, "_needs": needs, "__doc__": f"UnsupportedError: {needs}."})
        for name in names.split()
    }
