"""Which devices take part in a collective together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Which devices do a collective together; no group: all of them in one. `text` is how it was written."""

    groups: tuple[tuple[int, ...], ...] = ()
    text: str = "{}"


EVERYONE = ReplicaGroups()
