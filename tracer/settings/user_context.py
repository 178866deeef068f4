"""Contexts of users: a value that is a part of the keys of traced programs, so that a function is traced again for each
value. JAX's `make_user_context`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .context import Override, current_context

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

    @contextmanager
    def __call__(self, new_value: Any) -> Iterator[None]:
        """Within the block, in this thread, the value is `new_value`, which must be hashable."""
        try:
            hash(new_value)
        except TypeError:
            raise TypeError(f"the value of a user context must be hashable, {new_value!r} is not") from None
        values = dict(current_context().user_contexts)
        values[self._number] = new_value
        with Override(user_contexts=tuple(sorted(values.items(), key=lambda item: item[0]))):
            yield


def make_user_context(default_value: Any = None) -> UserContext:
    """A context of the user: jit traces a function again where its value differs.

    >>> import hloom
    >>> scale = hloom.make_user_context(1.0)
    >>> f = hloom.jit(lambda x: x * scale.value)
    >>> with scale(3.0):
    ...     print(f(2.0))
    6.0
    """
    return UserContext(default_value)
