"""Arrays and stages use parts of the library above them: their operators and methods are functions of
`hloom.numpy`, and their jaxprs are made by `hloom.jaxpr`.

Importing `hloom.numpy` sets the functions. In a program that imports only `hloom.lax`, the first operator on one of its
arrays imports it.
"""

from __future__ import annotations

from importlib import import_module

from ..tracer.library import LIBRARY

LIBRARY.load_functions = lambda: import_module("..numpy", __package__)
LIBRARY.load_jaxpr_view = lambda: import_module("..jaxpr.view", __package__).view_of
