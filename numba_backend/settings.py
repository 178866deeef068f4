"""Settings of the environment that change what is made of a module, or ask that its passes run."""

from __future__ import annotations

import os

_WATCHED = ("HLOOM_VERIFY_PASSES", "HLOOM_DUMP_TO", "HLOOM_CHECK_RULES")
"""With one of these, passes must run."""

_WITHOUT_EFFECT = frozenset({
    "HLOOM_CACHE_DIR", "HLOOM_NUM_THREADS", "HLOOM_NUM_DEVICES", "HLOOM_TRACEBACK", "HLOOM_COLLECTIVE_TIMEOUT",
    "HLOOM_RANDOM_STATE", "HLOOM_JIT_LEVEL", "HLOOM_BACKEND", "HLOOM_TARGET",
})  # fmt: skip
"""Settings that do not change what is made of a module."""


def is_watched() -> bool:
    """True if somebody wants to see or check the passes: then nothing may be taken from where it is ready."""
    return any(os.environ.get(name, "0").lower() not in ("", "0", "false", "off") for name in _WATCHED)


def with_effect() -> list[tuple[str, str]]:
    """All other settings with the library's prefix, in order: name and value."""
    named = [name for name in os.environ if name.startswith("HLOOM_") and name not in _WITHOUT_EFFECT]
    return [(name, os.environ[name]) for name in sorted(named)]
