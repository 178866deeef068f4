"""The user's line that an operation comes from, as `hlo/source.py` finds it; optree and opt_einsum are internal."""

from __future__ import annotations

import os
import sysconfig

import optree

from ..hlo.source import add_internal_folders, function_line, user_frame, user_line, user_metadata

__all__ = ["function_line", "user_frame", "user_line", "user_metadata"]

add_internal_folders(
    os.path.dirname(os.path.abspath(optree.__file__)), os.path.join(sysconfig.get_path("purelib"), "opt_einsum")
)
