"""Whether operations are refused that leave open how Explicit axes of a mesh divide their results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local


class _State(local):
    is_lenient = False


_state = _State()


def is_lenient() -> bool:
    """Whether this thread is in a `not_refused` block."""
    return _state.is_lenient


@contextmanager
def not_refused() -> Iterator[None]:
    """Within the block operations with ambiguous results are not refused."""
    before, _state.is_lenient = _state.is_lenient, True
    try:
        yield
    finally:
        _state.is_lenient = before
