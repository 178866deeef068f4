"""Classes of libraries that `vmap` maps in their own way. `hloom.interpreters.batching` offers the names, as JAX does.

An object of such a class is one argument, or one result, of a mapped function, even if it is a pytree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..hlo.errors import UnsupportedError


class Vmappable(NamedTuple):
    """The two rules of a class."""

    to_elt: Callable[..., Any]
    """to_elt(to_elt of a part, index, object, spec) -> an element of the object."""
    from_elt: Callable[..., Any]
    """from_elt(from_elt of a part, size, element, spec) -> an object of all elements."""


VMAPPABLES: dict[type, Vmappable] = {}
SPEC_TYPES: set[type] = set()
"""The classes of the entries of `in_axes` and `out_axes` for such objects."""


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Say how `vmap` takes an object apart into its elements, and how it makes one of results.

    Args:
      data_type: the class of the objects.
      spec_type: the class of their entries in `in_axes` and `out_axes`.
      axis_size_type: the class of the number of elements: int.
      to_elt: to_elt(cont, get_idx, object, spec) -> an element. `cont(part, spec)` gives the element of a part, which
        is an array or another such object; `get_idx()` the number of the element.
      from_elt: from_elt(cont, axis_size, element, spec) -> an object. `cont(axis_size, part, spec)` gives all
        elements of a part.
      make_iota: makes the numbers of the elements for another `axis_size_type`.

    Raises:
      UnsupportedError: the number of elements is not an int.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register_vmappable(
    ...     Pair, int, int,
    ...     lambda cont, get_idx, pair, axis: Pair(cont(pair.x, axis), pair.y),
    ...     lambda cont, size, pair, axis: Pair(cont(size, pair.x, axis), pair.y),
    ...     None,
    ... )
    >>> double = hloom.vmap(lambda pair: Pair(2 * pair.x, pair.y), axis_size=3)
    >>> double(Pair(jnp.arange(3), "a name")).x
    Array([0, 2, 4], dtype=int32)
    """
    if axis_size_type is not int:
        raise UnsupportedError(
            f"register_vmappable of {data_type.__name__}: the number of elements is an int, not {axis_size_type!r}, "
            "which would need arrays whose elements have different sizes"
        )
    VMAPPABLES[data_type] = Vmappable(to_elt, from_elt)
    SPEC_TYPES.add(spec_type)


def unregister_vmappable(data_type: type) -> None:
    """Undo `register_vmappable`.

    >>> class Pair: ...
    >>> unregister_vmappable(Pair)  # which was not registered
    """
    VMAPPABLES.pop(data_type, None)


def is_vmappable(x: Any) -> bool:
    """Whether x is of a class that was registered.

    >>> is_vmappable(jnp.ones(3))
    False
    """
    return type(x) in VMAPPABLES
