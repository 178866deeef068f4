"""Longer waits for processes that tests start: where a processor is emulated, they take many times longer.

`tools/arm64.py` sets HLOOM_TESTS_PATIENCE, and `tests/conftest.py` calls this.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
from collections.abc import Callable
from typing import Any


def wait_longer(times: float) -> None:
    """From now on every timeout of `subprocess` is at least so many times longer."""
    for name in ("wait", "communicate"):
        setattr(subprocess.Popen, name, _patient(getattr(subprocess.Popen, name), times))


def _patient(method: Callable[..., Any], times: float) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def patient(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        if bound.arguments.get("timeout") is not None:
            bound.arguments["timeout"] *= times
        return method(*bound.args, **bound.kwargs)

    return patient
