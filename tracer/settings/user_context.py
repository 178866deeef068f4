"""Contexts of users: a value that is a part of the keys of traced programs, so that a function is traced again for each
value. JAX's `make_user_context`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .context import Override, current_context, process_context, update_process

_numbers = itertools.count()


class UserContext:
    """A value that functions may read while they are traced. ``with context(value):`` sets it in this thread."""

    def __init__(self, default: Any) -> None:
        self._number = next(_numbers)
        self._default = default

    @property
    def value(self) -> Any:
        """The value that is set here, or the default."""
        return dict(current_context().user_contexts).get(self._number, self._default)

    def get_global(self) -> Any:
        """The value of the process, whatever this thread has."""
        return dict(process_context().user_contexts).get(self._number, self._default)

    def set_global(self, new_value: Any) -> None:
        """Change the value of the process; it must be hashable (TypeError)."""
        update_process(user_contexts=self._among(process_context().user_contexts, new_value))

    @contextmanager
    def __call__(self, new_value: Any) -> Iterator[None]:
        """Within the block, in this thread, the value is `new_value`, which must be hashable."""
        with Override(user_contexts=self._among(current_context().user_contexts, new_value)):
            yield

    def _among(self, contexts: tuple[tuple[int, Any], ...], new_value: Any) -> tuple[tuple[int, Any], ...]:
        """The values of all contexts, with a new one of this."""
        try:
            hash(new_value)
        except TypeError:
            raise TypeError(f"the value of a user context must be hashable, {new_value!r} is not") from None
        return tuple(sorted({**dict(contexts), self._number: new_value}.items(), key=lambda item: item[0]))


def make_user_context(default_value: Any = None) -> UserContext:
    """A context of the user: jit traces a function again where its value differs.

    >>> scale = hloom.make_user_context(1.0)
    >>> f = hloom.jit(lambda x: x * scale.value)
    >>> with scale(3.0):
    ...     print(f(2.0))
    6.0
    """
    return UserContext(default_value)
