"""Which devices take part in a collective together."""

from __future__ import annotations

from .support.records import dataclass


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Which devices do a collective together; without groups all devices are one group. `text`: as it was written."""

    groups: tuple[tuple[int, ...], ...] = ()
    text: str = "{}"


EVERYONE = ReplicaGroups()
