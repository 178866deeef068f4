"""What hloom takes from the operating system: one file for each, and one object, `system`, for this process.

`interface.py` lists it, with the parts that Python has on every system. `linux.py`, `darwin.py` and `windows.py` have
the rest; `posix.py` has what the first two share. No other module names a system call, a file of the system, or a
function of the C library that only some systems have (`tests/package/test_platforms.py` looks for them).
docs/architecture/platforms.md compares the systems.

Nothing here is loaded before it is used: neither the file of a system, nor ctypes or mmap, which `import hloom` does
not need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .interface import System

    system: System
    """The operating system of this process."""

_FILES = {"linux": "linux", "darwin": "darwin", "win32": "windows"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """`system`, when it is first used."""
        if name != "system":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        file = _FILES.get(sys.platform, "posix")
        module = import_module(f".{file}", __name__)
        # Two threads that are here at the same time get one object.
        return globals().setdefault("system", getattr(module, file.capitalize())())


def at_fork(
    before: Callable[[], object] | None = None,
    after_in_parent: Callable[[], object] | None = None,
    after_in_child: Callable[[], object] | None = None,
) -> None:
    """Call these functions at each fork, as `os.register_at_fork` does. A system without forks calls none."""
    register: Any = getattr(os, "register_at_fork", None)
    given = {"before": before, "after_in_parent": after_in_parent, "after_in_child": after_in_child}
    if register is not None:
        register(**{name: function for name, function in given.items() if function is not None})
