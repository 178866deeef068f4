"""jax._src.traceback_util: which frames tracebacks show."""

from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from types import FrameType as _FrameType
from typing import Any as _Any

from ...hlo.support.source import add_internal_file as register_exclusion
from ...hlo.support.source import internal_files as _internal_files
from ...hlo.support.source import is_users
from ...hlo.support.source import remove_internal_file as _remove_internal_file
from ...hlo.support.tracebacks import UnfilteredStackTrace, boundary
from ...namespaces import publish as _publish

__all__ = ["UnfilteredStackTrace", "_exclude_paths", "api_boundary", "include_frame", "register_exclusion"]


class _Exclusions:
    """The files that are registered, as a list of them."""

    append = staticmethod(register_exclusion)

    def remove(self, path: str) -> None:
        if path not in self:
            raise ValueError(f"{path} is not registered")
        _remove_internal_file(path)

    def __contains__(self, path: object) -> bool:
        return path in _internal_files()

    def __iter__(self) -> _Iterator[str]:
        return iter(_internal_files())


_exclude_paths = _Exclusions()


def include_frame(f: _FrameType) -> bool:
    """Whether a frame is the user's."""
    return is_users(f)


def api_boundary(fun: _Callable[..., _Any], *, repro_api_name: str | None = None) -> _Callable[..., _Any]:
    """`fun`, with errors that show only the user's frames."""
    return boundary(fun)


_publish(__name__)
