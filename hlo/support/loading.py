"""Imports of large parts of hloom, while Python's garbage collector rests.

An import makes tens of thousands of objects, and nearly all of them stay. The collector would look for garbage among
them more than a hundred times, which takes a fifth of the import, and finds next to nothing. Afterwards they are put
among the old objects, where the collector would have brought them: freezing all objects and releasing them does that.

The objects of the library itself, which a program imports when it begins, stay frozen: else each full collection visits
them, and Python makes four at the end of a process, which takes as long as a third of the import.
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

_MOST_BEFORE = 100_000
"""The collector never frees a cycle of frozen objects. A process with more objects than this has run for a while when
it imports the library, and some may become garbage; NumPy makes 20,000, SciPy and pytest together 60,000 more."""

_frozen = False
"""This file has frozen the library's objects."""


def load(name: str, package: str | None = None, *, stays: bool = False) -> ModuleType:
    """`importlib.import_module(name, package)`. A collector that is switched off stays so.

    A module that is there already costs nothing: garbage must not be put among the old objects each time, since the
    collector seldom visits them.

    stays: this is the import with which a program begins. What it makes is frozen, and so is what was there before.
    """
    global _frozen
    if not gc.isenabled() or resolve_name(name, package) in sys.modules:
        return import_module(name, package)
    gc.disable()
    try:
        stays = stays and _GENERATIONS and len(gc.get_objects()) <= _MOST_BEFORE
        return import_module(name, package)
    finally:
        if _GENERATIONS and not _frozen and not gc.get_freeze_count():
            gc.freeze()
            _frozen = stays
            if not stays:
                gc.unfreeze()
        gc.enable()


def visit_all() -> None:
    """The collector visits the library's objects again, and those that were there before: a search for what refers to
    an object then finds modules and their variables."""
    global _frozen
    if _frozen:
        _frozen = False
        gc.unfreeze()
