"""Pickling of functions that are wrapped in objects: by name, as Python pickles functions, where they have one.

A name of the module `__main__` means something else in another process. cloudpickle, with which Dask, Ray, joblib and
Spark send functions to their workers, therefore writes functions of `__main__` by value: their code, and all that it
refers to. It does so for functions only, not for objects that hold one; so these ask whether such a pickler is at work.
Each of these libraries may have its own copy of cloudpickle, which is known by the names in its module.

Source: cloudpickle 3.1, `CloudPickler.dump`, `register_pickle_by_value`.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

_DUMP, _PICKLER, _LISTED = "dump", "CloudPickler", "list_registry_pickle_by_value"


def is_global(wrapper: Any) -> bool:
    """True if the pickle of `wrapper` may be its name: its module and its qualified name, which it has from its
    function, lead back to it, also where the pickle is loaded.

    That is so for a decorated function at the top level of a module or in a class.
    """
    module = getattr(wrapper, "__module__", None) or ""
    found: Any = sys.modules.get(module)
    for part in getattr(wrapper, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is wrapper and not _by_value(module)


def _by_value(module: str) -> bool:
    """True if a pickler is at work that writes functions of this module by value."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == _DUMP:
            for kind in type(frame.f_locals.get("self")).__mro__:
                its_module = sys.modules.get(kind.__module__)
                if hasattr(its_module, _PICKLER):
                    listed: set[str] = getattr(its_module, _LISTED, set)()
                    return any(f"{module}.".startswith(f"{name}.") for name in ("__main__", *listed))
        frame = frame.f_back
    return False
