"""The backends of this package, by the names that `hloom.config.hloom_backend` takes. Each is imported when used."""

from __future__ import annotations

from importlib import import_module

from ..hlo.backend import Compiler, register_backend
from ..hlo.support.loading import load


def _numba() -> Compiler:
    compiler: Compiler = load("..numba_backend.compiler", __package__).NumbaCompiler()
    return compiler


def _evaluator() -> Compiler:
    compiler: Compiler = import_module("..hlo.evaluator_backend", __package__).EvaluatorCompiler()
    return compiler


DEFAULT = "numba"
"""The backend that is used where none is named."""

register_backend("numba", _numba)
register_backend("evaluator", _evaluator)
