"""Imports of large parts of hloom, while Python's garbage collector rests.

An import makes tens of thousands of objects, and nearly all of them stay. The collector would look for garbage among
them more than a hundred times, which takes a fifth of the import, and finds next to nothing. Afterwards they are put
among the old objects, where the collector would have brought them: freezing all objects and releasing them does that.
"""

from __future__ import annotations

import gc
import sys
import time
from importlib import import_module
from importlib.util import resolve_name
from types import ModuleType

BEGAN = time.time_ns()
"""When this process began to import the library: this file is the first. If a file of it changes later, it may have
been imported before or after the change."""


_GENERATIONS = "free-threading" not in sys.version
"""The collector has young and old objects. Without a GIL it has not, and each call of `freeze` visits all objects while
all threads wait."""


def load(name: str, package: str | None = None) -> ModuleType:
    """`importlib.import_module(name, package)`. A collector that is switched off stays so.

    A module that is there already costs nothing: garbage must not be put among the old objects each time, since the
    collector seldom visits them.
    """
    if not gc.isenabled() or resolve_name(name, package) in sys.modules:
        return import_module(name, package)
    gc.disable()
    try:
        return import_module(name, package)
    finally:
        if _GENERATIONS and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
