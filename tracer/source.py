"""The user's line of an operation, as `hlo/support/source.py` finds it; optree is internal."""

from __future__ import annotations

import os
import sys
import warnings

from ..hlo.support.source import (
    add_internal_folders,
    function_line,
    is_users,
    placed_metadata,
    user_frame,
    user_line,
    user_metadata,
)
from .trees.nodes import optree

__all__ = ["function_line", "is_users", "placed_metadata", "user_frame", "user_line", "user_metadata", "warn_user"]

add_internal_folders(os.path.dirname(os.path.abspath(optree.__file__)))


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the user's line."""
    frame, level = sys._getframe(1), 2
    wanted = user_frame()
    while frame.f_back is not None and frame is not wanted:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
