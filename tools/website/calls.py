"""The calls of public functions in their documented examples, as they ran, for `traced.py` and `behaviour.py`.

Each example runs on the evaluator, in an empty folder, with its function replaced by one that records the arguments and
the result. A function and its aliases have one text, so they have one example, and the same calls.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import os
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from hloom.tracer.tracer import Tracer

import hloom

SPACES = (
    *("hloom.numpy", "hloom.numpy.fft", "hloom.numpy.linalg", "hloom.lax", "hloom.lax.linalg", "hloom.nn"),
    *("hloom.nn.initializers", "hloom.random", "hloom.image", "hloom.ops", "hloom.scipy"),
)
"""Namespaces of functions of arrays; those within `hloom.scipy`, too."""


@dataclass(frozen=True)
class Call:
    """One call of a function, outside of every transformation."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


def spaces(every: Sequence[str]) -> list[str]:
    """Those of the namespaces `every` that have functions of arrays."""
    return [space for space in every if space in SPACES or space.startswith("hloom.scipy.")]


def by_text(spaces: Sequence[str]) -> dict[str, list[str]]:
    """The full names of the functions with each text that has an example."""
    found: dict[str, list[str]] = defaultdict(list)
    for space in spaces:
        module = import_module(space)
        for name in module.__all__:
            function = getattr(module, name)
            text = getattr(function, "__doc__", None) or ""
            if callable(function) and not isinstance(function, type) and ">>>" in text:
                found[text].append(f"{space}.{name}")
    return found


@cache
def recorded(*names: str) -> tuple[Call, ...]:
    """The calls of a function, which has these full names, in its own example."""
    found: list[Call] = []

    def recording(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if not any(isinstance(leaf, Tracer) for leaf in hloom.tree.leaves((args, kwargs))):
                found.append(Call(function, args, kwargs, result))
            return result

        return call

    places = [(import_module(space), name) for space, _, name in (full.rpartition(".") for full in names)]
    functions = [getattr(module, name) for module, name in places]
    text = inspect.cleandoc(functions[0].__doc__)
    example = doctest.DocTestParser().get_doctest(text, {}, names[0], None, 0)
    for (module, name), function in zip(places, functions, strict=True):
        setattr(module, name, recording(function))
    try:
        with in_a_corner():
            doctest.DocTestRunner(verbose=False).run(example, out=lambda _: None)
    finally:
        for (module, name), function in zip(places, functions, strict=True):
            setattr(module, name, function)
    return tuple(found)


@contextlib.contextmanager
def in_a_corner() -> Iterator[None]:
    """Run a block on the evaluator, in an empty folder, without output and warnings."""
    before, folder = hloom.config.read("hloom_backend"), os.getcwd()
    hloom.config.update("hloom_backend", "evaluator")
    with tempfile.TemporaryDirectory() as empty, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(empty)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                yield
        finally:
            os.chdir(folder)
            hloom.config.update("hloom_backend", before)
