"""Pickling of functions that are wrapped in objects: by name, as Python pickles functions, where they have one."""

from __future__ import annotations

import sys
from typing import Any


def is_global(wrapper: Any) -> bool:
    """True if the module and the qualified name that `wrapper` has from its function lead back to it.

    That is so for a decorated function at the top level of a module or in a class. Pickle finds it by that name.
    """
    found: Any = sys.modules.get(getattr(wrapper, "__module__", None) or "")
    for part in getattr(wrapper, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is wrapper
