"""Environment variables that change how a module is compiled, or that require its passes to run."""

from __future__ import annotations

import os

_WATCHED = ("HLOOM_VERIFY_PASSES", "HLOOM_DUMP_TO", "HLOOM_CHECK_RULES")
"""If one of these is set, passes must run."""

_WITHOUT_EFFECT = frozenset({
    "HLOOM_CACHE_DIR", "HLOOM_NUM_THREADS", "HLOOM_NUM_DEVICES", "HLOOM_TRACEBACK", "HLOOM_COLLECTIVE_TIMEOUT",
    "HLOOM_RANDOM_STATE", "HLOOM_JIT_LEVEL", "HLOOM_BACKEND", "HLOOM_TARGET",
})  # fmt: skip
"""Settings that do not change how a module is compiled."""


def is_watched() -> bool:
    """True if a user wants to see or check the passes: then nothing may be taken from where it is ready."""
    return any(os.environ.get(name, "0").lower() not in ("", "0", "false", "off") for name in _WATCHED)


def with_effect() -> list[tuple[str, str]]:
    """All other settings with the library's prefix, in order: name and value."""
    named = [name for name in os.environ if name.startswith("HLOOM_") and name not in _WITHOUT_EFFECT]
    return [(name, os.environ[name]) for name in sorted(named)]
