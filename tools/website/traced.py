"""The operations that public functions trace to, found by tracing the calls in their documented examples (`calls.py`).

A call is traced again with its arrays as parameters; all other arguments stay as they are. A call that needs the values
of its arrays cannot be traced, so its function is not listed; nor is one whose example does not call it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hloom.hlo import HloComputation, Opcode

import hloom

from . import calls
from .reference import namespaces

STRUCTURE = frozenset(
    {Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CALL}
)  # fmt: skip
"""Operations that every program has."""
PLAIN = frozenset({*STRUCTURE, Opcode.BROADCAST, Opcode.RESHAPE, Opcode.CONVERT})
"""Operations that say little about a function: they bring its arguments to one shape and type."""
Users = dict[str, frozenset[Opcode]]
"""Full names of functions, and the opcodes of the smallest call of each."""
_RUN = frozenset({Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL})
"""Operations that run their computations as parts of the program."""
_MOST = 24
"""Functions that a page names of those that use an operation among others."""


def functions() -> dict[Opcode, Users]:
    """For each opcode the functions that trace to it."""
    found: dict[Opcode, Users] = defaultdict(dict)
    for names in calls.by_text(calls.spaces(list(namespaces()))).values():
        for opcodes in opcodes_of(*names):
            for opcode in opcodes - STRUCTURE:
                for name in names:
                    known = found[opcode].get(name)
                    if known is None or len(opcodes) < len(known):
                        found[opcode][name] = opcodes
    return found


def opcodes_of(*names: str) -> list[frozenset[Opcode]]:
    """The opcodes of each call in the example of a function, which has these full names."""
    with calls.in_a_corner():
        found = [_opcodes(call.function, call.args, call.kwargs) for call in calls.recorded(*names)]
    return [opcodes for opcodes in found if opcodes is not None]


def _opcodes(function: Callable[..., Any], args: Any, kwargs: Any) -> frozenset[Opcode] | None:
    """The opcodes of a call; None where it cannot be traced."""
    leaves, tree = hloom.tree.flatten((args, kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, hloom.Array | np.ndarray)]

    def run(arrays: list[Any]) -> Any:
        given = dict(zip(places, arrays, strict=True))
        args, kwargs = hloom.tree.unflatten(tree, [given.get(k, leaf) for k, leaf in enumerate(leaves)])
        return function(*args, **kwargs)

    try:
        module = hloom.make_hlo(run)([leaves[k] for k in places])
    except Exception:  # it needs values, or returns no arrays
        return None
    return frozenset(_used(module.entry))


def _used(computation: HloComputation) -> Iterator[Opcode]:
    """The opcodes of a computation and of those that it runs, but not of reducers and comparators."""
    for instruction in computation.instructions:
        yield instruction.opcode
        if instruction.opcode in _RUN:
            for called in instruction.called_computations():
                yield from _used(called)


def section(opcode: Opcode, users: Users) -> str:
    """The part of a page about functions; empty where no example uses the operation."""
    silent = STRUCTURE if opcode in PLAIN else PLAIN
    alone = sorted(name for name, used in users.items() if used - silent <= {opcode})
    others = sorted((len(used - silent), name) for name, used in users.items() if name not in alone)
    lines = []
    if alone:
        lines.append("- alone, or with broadcasts, reshapes and conversions: " + _links(alone))
    if others:
        shown = [name for _, name in others[:_MOST]]
        more = f", and {len(others) - _MOST} more" if len(others) > _MOST else ""
        lines.append(f"- with others, those with the fewest first: {_links(shown)}{more}")
    head = "## Functions that trace to it\n\nFound by tracing the examples of the reference.\n\n"
    return head + "\n".join(lines) if lines else ""


def _links(names: list[str]) -> str:
    return ", ".join(f"{{py:obj}}`{name.removeprefix('hloom.')} <{name}>`" for name in names)
