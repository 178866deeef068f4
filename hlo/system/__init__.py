"""What hloom takes from the operating system: one file for each, and one object, `system`, for this process.

`interface.py` lists it, with the parts that Python has on every system. `linux.py`, `darwin.py` and `windows.py` have
the rest; `posix.py` has what the first two share. No other module names a system call, a file of the system, or a
function of the C library that only some systems have (`tests/package/test_platforms.py` looks for them).
docs/architecture/platforms.md compares the systems.

Nothing here is loaded before it is used: neither ctypes nor mmap, which `import hloom` does not need.
"""

from __future__ import annotations

import sys

from .interface import System

system: System
"""The operating system of this process."""
if sys.platform == "win32":
    from .windows import Windows

    system = Windows()
elif sys.platform == "darwin":
    from .darwin import Darwin

    system = Darwin()
elif sys.platform == "linux":
    from .linux import Linux

    system = Linux()
else:
    from .posix import Posix

    system = Posix()
