"""The names of a program's inputs and results, and the search for the ones that a user means.

An array in a tree of arguments has a path: ``params['w'][0]``. It may be named so, or with dots, ``params.w.0``; by its
number; or together with all others below a path: ``params``. An HLO file has parameters, and instructions by name.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..hlo.ir import HloModule
from ..hlo.literal import Literal
from ..hlo.shape import Shape
from ..hlo.subgraph import FeedError, Place
from ..hlo.support.records import dataclass
from ..tracer.arrays.array import Array
from ..tracer.execution import with_options
from ..tracer.stages import Lowered
from ..tracer.trees import tree
from ..tracer.wrapping import signature

Selector = str | int


@dataclass(frozen=True, slots=True)
class Input:
    """An array that a program takes: its name with dots, and where it is in the module."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Graph:
    """A module with named inputs and results."""

    module: HloModule
    inputs: tuple[Input, ...]
    results: tuple[Input, ...]
    known: Mapping[Place, Literal]
    """Arrays that a Python function holds; they become constants."""
    by_instruction: bool
    """True if any instruction may be named, as in an HLO file."""

    def feeds(self, selectors: Sequence[Selector]) -> list[Input]:
        """The inputs that the selectors mean, in their order. FeedError lists the available ones."""
        return self._chosen(selectors, self.inputs, "feed")

    def fetches(self, selectors: Sequence[Selector]) -> list[Input]:
        """The results that the selectors mean, in their order."""
        return self._chosen(selectors, self.results, "fetch")

    def _chosen(self, selectors: Sequence[Selector], all_: tuple[Input, ...], what: str) -> list[Input]:
        found: dict[Place, Input] = {}
        for selector in selectors:
            for item in self._meant(selector, all_, what):
                if item.place in found:
                    raise FeedError(f"{what} {item.name} is chosen twice")
                found[item.place] = item
        return list(found.values())

    def _meant(self, selector: Selector, all_: tuple[Input, ...], what: str) -> list[Input]:
        if isinstance(selector, int):
            if not -len(all_) <= selector < len(all_):
                raise FeedError(f"there is no {what} {selector}: there are {len(all_)}{_listed(all_)}")
            return [all_[selector]]
        name = dotted(selector)
        found = [item for item in all_ if item.name == name or item.name.startswith(f"{name}.")]
        if found:
            return found
        if self.by_instruction:
            for instruction in self.module.entry.instructions:
                if instruction.name == selector:
                    return [Input(instruction.name, Place(instruction))]
        others = [i.name for i in self.module.entry.instructions] if self.by_instruction else []
        close = difflib.get_close_matches(name, [*dict.fromkeys([*(item.name for item in all_), *others])], 3, 0.5)
        hint = f"; similar: {', '.join(close)}" if close else ""
        listed = _listed(all_)
        if others:
            more = f", ... {len(others) - _MOST} more" if len(others) > _MOST else ""
            listed += f"\n  or an instruction: {', '.join(others[:_MOST])}{more}"
        raise FeedError(f"there is no {what} {selector!r}{hint}{listed}")


def _listed(all_: Sequence[Input]) -> str:
    lines = [f"  {k}: {item.name}  {item.place.shape}" for k, item in enumerate(all_[:_MOST])]
    if len(all_) > _MOST:
        lines.append(f"  ... and {len(all_) - _MOST} more")
    return "\n".join(["", *lines]) if lines else ""


_MOST = 40


def dotted(path: str) -> str:
    """``params['w'][0].x`` as ``params.w.0.x``."""
    return re.sub(r"\[\s*(?:'([^']*)'|\"([^\"]*)\"|([^\]]*))\s*\]", lambda m: f".{m[1] or m[2] or m[3] or ''}", path)


def graph_of_module(module: HloModule) -> Graph:
    """The graph of an HLO file: inputs are its parameters, by their names."""
    inputs = [
        Input(".".join([p.name, *map(str, index)]), Place(p, index))
        for p in module.entry.parameters
        for index in _leaves(p.shape)
    ]
    root = module.entry.root
    results = [Input(".".join(map(str, index)) or root.name, Place(root, index)) for index in _leaves(root.shape)]
    return Graph(module, tuple(inputs), tuple(results), {}, True)


def _leaves(shape: Shape, index: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    if not shape.is_tuple:
        return [index]
    return [leaf for k, part in enumerate(shape.elements) for leaf in _leaves(part, (*index, k))]


def graph_of_lowered(lowered: Lowered, fun: Callable[..., Any] | None) -> Graph:
    """The graph of a traced function: inputs are the arrays in its arguments, by the parameters' names."""
    module = with_options(lowered.module, lowered.options)
    parameters = module.entry.parameters
    args, kwargs = lowered.in_avals
    words = _parameter_names(fun, len(args))
    named = [(dotted(words[path[0].idx] + tree.keystr(path[1:])), x) for path, x in _with_paths(args)]
    named += [(dotted(str(path[0].key) + tree.keystr(path[1:])), x) for path, x in _with_paths(kwargs)]
    inputs = [Input(name, Place(p)) for (name, _), p in zip(named, parameters)]
    captured = parameters[len(named) :]
    known = {}
    for parameter, value in zip(captured, lowered.captured, strict=True):
        if not isinstance(value, Array):
            raise FeedError("the function uses a value of a transformation around it; compile it outside of that")
        known[Place(parameter)] = Literal(value, parameter.shape.element.dtype)
    root = module.entry.root
    outs = _with_paths(lowered.out_info)
    results = []
    for k, (path, _) in enumerate(outs):
        name = dotted(tree.keystr(path)).removeprefix(".") or "result"
        results.append(Input(name, Place(root, (k,) if root.shape.is_tuple else ())))
    return Graph(module, tuple(inputs), tuple(results), known, False)


def _with_paths(value: Any) -> list[tuple[Any, Any]]:
    found, _ = tree.flatten_with_path(value)
    return list(found)


def _parameter_names(fun: Callable[..., Any] | None, count: int) -> list[str]:
    """The names of the first positional parameters; ``args.0``, ... for ``*args``."""
    try:
        parameters = list(signature(fun).parameters.values()) if fun is not None else []
    except (TypeError, ValueError):
        parameters = []
    names = []
    for k in range(count):
        if k < len(parameters) and parameters[k].kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            names.append(parameters[k].name)
        else:
            rest = next((n for n, p in enumerate(parameters) if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
            names.append(f"arg{k}" if rest is None else f"{parameters[rest].name}.{k - rest}")
    return names
