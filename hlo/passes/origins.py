"""Where the instructions of a stage come from: those of the stage before that they replace.

Passes say through `provenance.note` which instruction they put in the place of another. For instructions that a pass
makes besides (the inner ones of an expansion) the origin is that of their first user. Where a pass notes nothing, equal
names and then equal metadata count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..ir import HloInstruction, HloModule

Origins: TypeAlias = Mapping[HloInstruction, tuple[HloInstruction, ...]]
"""For each instruction that the stage before does not have, or that took the place of others: the instructions that it
replaces, in the order of the stage before. One that comes from no other is not in it."""


def origins_of(
    before: HloModule, after: HloModule, noted: Mapping[HloInstruction, Sequence[HloInstruction]]
) -> Origins:
    """The origins of the instructions of `after`. `noted`: what the passes between the two modules have noted."""
    place = {i: k for k, i in enumerate(before.instructions())}
    names = {i.name: i for i in place}
    lines: dict[object, list[HloInstruction]] = {}
    for i in place:
        if i.metadata is not None:
            lines.setdefault(i.metadata, []).append(i)
    found: dict[HloInstruction, tuple[HloInstruction, ...]] = {}

    def known(i: HloInstruction) -> tuple[HloInstruction, ...]:
        origin = _noted_origins(i, noted, place)
        if not origin and i not in place:
            same = names.get(i.name)
            if same is not None and same.opcode is i.opcode:
                origin = {same}
        return tuple(sorted(origin, key=place.__getitem__))

    callers: dict[HloInstruction, HloInstruction] = {}
    for computation in reversed(after.computations):  # callers first
        for i in computation.callers:
            callers.update((c.root, i) for c in i.called_computations())
        for i in reversed(computation.instructions):  # users first
            origin = known(i)
            if i in place:
                if origin:
                    found[i] = tuple(sorted({i, *origin}, key=place.__getitem__))
                continue
            if not origin:
                users = [u for u in computation.users[i] if u not in place] or [u for u in (callers.get(i),) if u]
                origin = next((found[u] for u in users if u in found), ())
            if not origin and i.metadata is not None:
                origin = tuple(lines.get(i.metadata, ()))
            if origin:
                found[i] = origin
    return found


def _noted_origins(
    i: HloInstruction, noted: Mapping[HloInstruction, Sequence[HloInstruction]], place: Mapping[HloInstruction, int]
) -> set[HloInstruction]:
    """The instructions of the stage before that `i` replaces, through those that lived only within the pass."""
    found: set[HloInstruction] = set()
    seen = {i}
    stack = list(noted.get(i, ()))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in place:
            found.add(node)
        else:
            stack.extend(noted.get(node, ()))
    return found
