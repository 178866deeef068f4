"""What a terminal can show."""

from __future__ import annotations

import os
import sys

from ..system import system


def shows_colours() -> bool:
    """True if the output is a terminal that is not dumb, unless NO_COLOR is set (https://no-color.org)."""
    wanted = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and system.colours_terminal()
