"""Every class of error and warning survives pickle and copy.deepcopy, with message and attributes: process pools and
debuggers send errors from one process to another."""

from __future__ import annotations

import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import hloom
import hloom.errors

E = hloom.errors

_PRIVATE = ("_Found", "_Declined", "_Unfamiliar", "Refused")
"""Caught where they are raised from; no user sees one."""


_PACKAGES = ("hloom", "hloom.hlo", "hloom.tracer", "hloom.autodiff", "hloom.numba_backend")
"""In a checkout the last four are beside the first."""


def classes() -> Iterator[type[BaseException]]:
    """The classes of errors and warnings that hloom defines, in all of its modules."""
    seen: dict[type[BaseException], None] = {}
    packages = {name: importlib.import_module(name) for name in _PACKAGES}
    names = [info.name for name, p in packages.items() for info in pkgutil.walk_packages(p.__path__, f"{name}.")]
    for name in dict.fromkeys(names):
        if not name.endswith("__main__"):
            module = importlib.import_module(name)
            for value in vars(module).values():
                if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__.startswith("hloom"):
                    seen[value] = None
    yield from (kind for kind in seen if kind.__name__ not in _PRIVATE)


MADE: dict[str, Callable[[type], BaseException]] = {
    "HloParseError": lambda kind: kind("expected a shape [shape_c1]", 3, 7, "x = y", "a.hlo", "shape_c1"),
    "BytecodeError": lambda kind: kind("expected a type", 7, "a.mlirbc"),
    "TooNewError": lambda kind: kind("the operation tan", (1, 4)),
    "ShapeError": lambda kind: kind("does not fit", "dot_c3"),
    "OperandError": lambda kind: kind("does not fit", "dot_c3"),
    "BuildError": lambda kind: kind("does not fit", "dot_c3"),
    "MemoryBudgetError": lambda kind: kind("f", 10, 20),
    "EmptyQueueError": lambda kind: kind("nothing feeds it", "infeed", "i"),
    "KernelCompilationError": lambda kind: kind("k", "def k():\n  pass", "no reason"),
}
"""How to make one, where a message is not enough."""


def assert_survives(kind: type[BaseException]) -> None:
    error = MADE.get(kind.__name__, lambda kind: kind("what happened"))(kind)
    error.add_note("a note")
    error.extra = [1]  # type: ignore[attr-defined]
    copies = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for again in (*copies, copy.deepcopy(error), copy.copy(error)):
        assert type(again) is kind and again is not error
        assert str(again) == str(error) and again.args == error.args
        assert vars(again) == vars(error)


def test_every_error_survives() -> None:
    found = list(classes())
    names = {kind.__name__ for kind in found}
    assert names >= {*E.__all__, *MADE, "PassOptionsError", "TargetOptionError", "KernelStoreWarning"}
    for kind in found:
        assert_survives(kind)


def test_one_that_does_not_survive_is_noticed() -> None:
    class Broken(Exception):
        def __init__(self, number: int) -> None:
            super().__init__(f"number {number}")

    globals()["Broken"], Broken.__qualname__ = Broken, "Broken"
    MADE["Broken"] = lambda kind: kind(1)
    with pytest.raises(AssertionError):
        assert_survives(Broken)
    del MADE["Broken"]


# Raised by the library, in another process


def _parse() -> object:
    return hloom.hlo.parse("ENTRY e {\n  x = f32[3] parameter(0)\n  ROOT y = f32[2] negate(x)\n}", "a.hlo")


def _add() -> object:
    return hloom.lax.add(np.zeros(2, np.float32), np.zeros(3, np.float32))


def _branch() -> object:
    return hloom.jit(lambda x: 1 if x else 2)(np.float32(1))


def _donated() -> object:
    x = hloom.numpy.zeros(3)
    x.delete()
    return np.asarray(x)


def _verify() -> object:
    module = hloom.hlo.parse("ENTRY e { ROOT x = f32[3] parameter(0) }")
    return hloom.hlo.verify(replace(module, entry=replace(module.entry, name="")))


RAISED = [
    (_parse, "HloParseError", {"line": 3, "column": 19, "file": "a.hlo", "label": "negate_result"}),
    (_add, "OperandError", {"label": "broadcast_shapes"}),
    (_branch, "TracerBoolConversionError", {}),
    (_donated, "DeletedArrayError", {}),
    (_verify, "VerificationError", {}),
]


def test_errors_come_back_from_a_process_pool() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for function, name, attributes in RAISED:
            kind = getattr(E, name)
            with pytest.raises(kind) as there:
                pool.submit(function).result(timeout=120)
            with pytest.raises(kind) as here:
                function()
            assert type(there.value) is type(here.value)
            assert str(there.value) == str(here.value)
            assert {key: getattr(there.value, key) for key in attributes} == attributes
