"""Which instructions a pass puts in the place of which: noted only while someone keeps the stages (`stages.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from .instruction import HloInstruction

Noted = dict[HloInstruction, list[HloInstruction]]

_noted: ContextVar[Noted | None] = ContextVar("noted", default=None)


def note(mapping: Mapping[HloInstruction, HloInstruction]) -> None:
    """Each key of `mapping` was replaced by its value, or copied to it."""
    noted = _noted.get()
    if noted is None:
        return
    for old, new in mapping.items():
        if old is not new:
            noted.setdefault(new, []).append(old)


@contextmanager
def noting() -> Iterator[Noted]:
    """Keep what passes note within the block: by new instruction, those that it replaces."""
    noted: Noted = {}
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)
