"""The private module of `jax.experimental.key_reuse`, as far as it is the published check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hloom


def _check(f: Callable[..., Any], /, *args: Any) -> None:
    """KeyReuseError if f uses a key twice."""
    with hloom.debug_key_reuse(True):
        hloom.jit(lambda *args: f(*args)).lower(*args)


PUBLIC: dict[tuple[str, str], Any] = {("experimental.key_reuse._core", "check_key_reuse"): _check}
