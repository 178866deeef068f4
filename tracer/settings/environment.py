"""Settings in the environment: each is a variable of its name in capitals, as in ``JAX_ENABLE_X64=1``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from .setting import Setting

_IGNORED = {
    **dict.fromkeys(
        ("JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS", "JAX_COORDINATOR_PORT", "JAX_LOCAL_DEVICE_IDS",
         "JAX_NUM_PROCESSES", "JAX_PARTITION_INDEX", "JAX_PROCESS_ID", "JAX_SLICE_INDEX"),
        "MPI joins processes and says which is which",
    ),
    "JAX_DEFAULT_DTYPE_BITS": "JAX_ENABLE_X64 decides, as in JAX since 0.6",
    "JAX_EXPORT_IGNORE_FORWARD_COMPATIBILIY": "programs are not exported in JAX's format",
    "JAX_FORCE_TPU_INIT": "programs run on the CPU",
}  # fmt: skip
"""Variables that JAX hears, and why they mean nothing here. Other variables JAX ignores, too."""


def hear(settings: Mapping[str, Setting[Any]]) -> None:
    """Set the values of the environment. ValueError or TypeError for a value that a setting cannot have, a warning for
    a variable that JAX hears and hloom does not."""
    for variable in sorted(_IGNORED.keys() & os.environ.keys()):
        if os.environ[variable]:
            warnings.warn(f"hloom ignores the environment variable {variable}: {_IGNORED[variable]}", stacklevel=2)
    for name, setting in settings.items():
        text = os.environ.get(name.upper(), "") if setting.hears else ""
        if not text:
            continue
        value = setting.parse(name.upper(), text)
        try:
            setting.set(value)
        except Exception as error:
            error.add_note(f"said by the environment variable {name.upper()}={text}")
            raise
