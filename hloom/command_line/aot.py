"""`hloom aot`: a program compiled ahead of time, for C and C++."""

from __future__ import annotations

import importlib
import runpy
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..hlo.subgraph import FeedError
from .files import read_module
from .outcome import FINE, UsageError

_OWN = ("name", "cpp_class", "feeds", "fetches", "freeze", "target", "cpu", "features", "blas", "static_arena")
"""Options that override a specification."""


def execute(options: Namespace) -> int:
    """Write the files of a program, and print their names and the program's inputs."""
    # Imported late: a wrong command line needs no compiler.
    from ..aot import compile
    from ..aot.spec import Spec, read_spec

    subject = Path(options.subject)
    folder = Path()
    if subject.suffix in (".toml", ".pbtxt"):
        spec, folder = read_spec(options.subject), subject.parent
    else:
        spec = read_spec(options.config) if options.config else Spec()
        spec = replace(spec, source=options.subject)
    changes = {key: value for key in _OWN if (value := getattr(options, key)) is not None}
    if options.source:
        spec, folder = replace(spec, source=options.source), Path()
    freeze = changes.get("freeze") or (spec.freeze and str(folder / spec.freeze))
    spec = replace(spec, **changes)
    if spec.source is None:
        raise UsageError(f"{options.subject} names no source; give --source, an HLO file or module:function")
    source, args, kwargs = _source(spec.source, folder)
    name = spec.name or Path(options.subject).name.partition(".")[0]
    program = compile(
        source, args, kwargs, name=name, cpp_class=spec.cpp_class, feeds=spec.feeds, fetches=spec.fetches,
        freeze=freeze or None, target=spec.target, cpu=spec.cpu, features=spec.features,
        blas=spec.blas, static_arena=spec.static_arena,
    )  # fmt: skip
    for slot in program.arguments:
        wanted = spec.shapes.get(slot.name)
        if wanted is not None and tuple(wanted) != slot.shape.dimensions:
            raise FeedError(f"feed {slot.name} has shape {list(slot.shape.dimensions)}, the configuration {wanted}")
    try:
        written = program.write(options.output)
    except OSError as error:
        raise UsageError(f"cannot write to {options.output}: {error.strerror} ({error.filename})") from None
    for path in written:
        print(path)
    for kind, slots in (("arg", program.arguments), ("result", program.results)):
        for k, slot in enumerate(slots):
            print(f"{kind}{k}  {slot.comment}", file=sys.stderr)
    return FINE


def _source(source: str, folder: Path) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The source of a compilation: a module, or a function with its arguments."""
    place, colon, function = source.rpartition(":")
    if not colon or not function.isidentifier():
        return read_module("-" if source == "-" else str(folder / source)).module, (), {}
    if place.endswith(".py"):
        path = folder / place
        if not path.exists():
            raise UsageError(f"there is no file {path}")
        found = runpy.run_path(str(path)).get(function)
    else:
        sys.path.insert(0, str(folder.resolve()))
        try:
            found = getattr(importlib.import_module(place), function, None)
        except ModuleNotFoundError as error:
            raise UsageError(f"{source}: {error}") from None
    if not callable(found):
        raise UsageError(f"{place} has no function {function}")
    made = found()
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not callable(made[0]):
        raise UsageError(f"{source}() must return (function, arguments) or (function, arguments, keywords)")
    fun, args, *rest = made
    return fun, tuple(args), dict(rest[0]) if rest else {}
