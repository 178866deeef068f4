"""The setting `hloom_jit_level`: whether operations outside of jit are put off in the whole process."""

from __future__ import annotations

import os
from importlib import import_module

_LEVELS = (0, 1, 2)
_level = 0


def jit_level() -> int:
    """The level of the process."""
    return _level


def set_level(value: int) -> None:
    """Change the level of the process. TypeError or ValueError if there is no such level."""
    global _level
    if not isinstance(value, int):
        raise TypeError(f"hloom_jit_level must be an int, not {value!r}")
    if value not in _LEVELS or isinstance(value, bool):
        raise ValueError(f"hloom_jit_level is 0 (off), 1 (compile what comes again) or 2 (compile all), not {value!r}")
    if value != _level:
        import_module(".jit_scope", __package__).change_level(value)
        _level = value


def start_from_environment() -> None:
    """HLOOM_JIT_LEVEL. ValueError if it is no level."""
    text = os.environ.get("HLOOM_JIT_LEVEL", "").strip() or "0"
    if text not in map(str, _LEVELS):
        raise ValueError(f"environment variable HLOOM_JIT_LEVEL must be 0, 1 or 2, not {text!r}")
    set_level(int(text))
