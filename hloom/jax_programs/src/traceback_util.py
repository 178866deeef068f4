"""jax._src.traceback_util: which frames tracebacks show."""

from collections.abc import Callable as _Callable
from types import FrameType as _FrameType
from typing import Any as _Any

from ...hlo.support.source import add_internal_file as register_exclusion
from ...hlo.support.source import is_users
from ...hlo.support.tracebacks import UnfilteredStackTrace, boundary
from ...namespaces import publish as _publish

__all__ = ["UnfilteredStackTrace", "api_boundary", "include_frame", "register_exclusion"]


def include_frame(f: _FrameType) -> bool:
    """Whether a frame is the user's."""
    return is_users(f)


def api_boundary(fun: _Callable[..., _Any], *, repro_api_name: str | None = None) -> _Callable[..., _Any]:
    """`fun`, with errors that show only the user's frames."""
    return boundary(fun)


_publish(__name__)
