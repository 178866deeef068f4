"""Values outside of programs: an array for an array shape, a tuple of values for a tuple shape.

Code that reads or writes such values leaf by leaf uses these two functions. A token is the empty tuple.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..shape import Shape


def leaves_of(value: Any) -> Iterator[Any]:
    """The leaves of a value's (nested) tuples, in order; the value itself if it is not a tuple."""
    if isinstance(value, tuple):
        for element in value:
            yield from leaves_of(element)
    else:
        yield value


def value_of(shape: Shape, leaves: Iterator[Any]) -> Any:
    """The value of type `shape` with the next `leaves` as its leaves."""
    if shape.tuple_shapes is None:
        return next(leaves)
    return tuple([value_of(element, leaves) for element in shape.tuple_shapes])
