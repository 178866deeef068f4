"""jax._src.util: functions of lists, of tuples and of functions."""

import functools as _functools
import operator as _operator
from collections.abc import Callable as _Callable
from collections.abc import Iterable as _Iterable
from collections.abc import Iterator as _Iterator
from collections.abc import Sequence as _Sequence
from itertools import chain as _chain
from typing import Any as _Any
from typing import ClassVar as _ClassVar

import numpy as _np

from ...api_util.flat_functions import safe_map
from ...namespaces import publish as _publish
from ...tracer.settings.context import current_context as _current_context

__all__ = [
    "HashableFunction",
    "HashablePartial",
    "HashableWrapper",
    "OrderedSet",
    "Unhashable",
    "cache",
    "canonicalize_axis",
    "canonicalize_axis_tuple",
    "ceil_of_ratio",
    "concatenate",
    "curry",
    "flatten",
    "foreach",
    "fun_name",
    "fun_qual_name",
    "memoize",
    "merge_lists",
    "moveaxis",
    "partition_list",
    "safe_map",
    "safe_zip",
    "set_module",
    "split_list",
    "split_list_checked",
    "stable_unique",
    "subs_list",
    "subvals",
    "tuple_delete",
    "tuple_insert",
    "tuple_update",
    "unflatten",
    "unzip2",
    "unzip3",
    "wrap_name",
    "wraps",
]


def safe_zip(*args: _Iterable[_Any]) -> list[tuple[_Any, ...]]:
    """A list of tuples of the elements of iterables of one length; ValueError if their lengths differ."""
    return safe_map(lambda *each: each, *args)


def unzip2(xys: _Iterable[tuple[_Any, _Any]]) -> tuple[tuple[_Any, ...], tuple[_Any, ...]]:
    """The first and the second elements of pairs."""
    pairs = list(xys)
    return tuple([x for x, _ in pairs]), tuple([y for _, y in pairs])


def unzip3(
    xyzs: _Iterable[tuple[_Any, _Any, _Any]],
) -> tuple[tuple[_Any, ...], tuple[_Any, ...], tuple[_Any, ...]]:
    """As `unzip2`, of triples."""
    triples = list(xyzs)
    return tuple([x for x, _, _ in triples]), tuple([y for _, y, _ in triples]), tuple([z for _, _, z in triples])


def split_list(args: _Sequence[_Any], ns: _Sequence[int]) -> list[list[_Any]]:
    """`args` as lists of `ns` elements, one after the other, and a list of the rest."""
    rest = list(args)
    if sum(ns) > len(rest) or any(n < 0 for n in ns):
        raise ValueError(f"split_list: {len(rest)} elements have no parts of {list(ns)}")
    parts = []
    for n in ns:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


def partition_list(bs: _Sequence[bool], l: _Sequence[_Any]) -> tuple[list[_Any], list[_Any]]:  # noqa: E741
    """The elements where `bs` is false, and those where it is true."""
    pairs = safe_zip(bs, l)
    return [x for b, x in pairs if not b], [x for b, x in pairs if b]


def merge_lists(bs: _Sequence[bool], l0: _Sequence[_Any], l1: _Sequence[_Any]) -> list[_Any]:
    """The inverse of `partition_list`."""
    if sum(bs) != len(l1) or len(bs) != len(l0) + len(l1):
        raise ValueError(f"merge_lists: {len(l0)} and {len(l1)} elements in {len(bs)} places, {sum(bs)} of the second")
    first, second = iter(l0), iter(l1)
    return [next(second) if b else next(first) for b in bs]


def foreach(f: _Callable[..., _Any], *args: _Iterable[_Any]) -> None:
    """Call `f` with the elements of iterables of one length."""
    safe_map(f, *args)


def split_list_checked(args: _Sequence[_Any], ns: _Sequence[int]) -> list[list[_Any]]:
    """As `split_list`, of all elements; ValueError if there are others."""
    *parts, rest = split_list(args, ns)
    if rest:
        raise ValueError(f"split_list_checked: {len(args)} elements are not parts of {list(ns)}")
    return parts


def subs_list(subs: _Sequence[int | None], src: _Sequence[_Any], base: _Iterable[_Any]) -> list[_Any]:
    """`src[i]` for each i of `subs`, and for None the next element of `base`, all of which are taken."""
    others = iter(base)
    found = [next(others) if i is None else src[i] for i in subs]
    if list(others):
        raise ValueError("subs_list: elements of the base are left over")
    return found


def concatenate(xs: _Iterable[_Iterable[_Any]]) -> list[_Any]:
    """One list of the elements of several."""
    return list(_chain.from_iterable(xs))


flatten = concatenate


def unflatten(xs: _Iterable[_Any], ns: _Sequence[int]) -> list[list[_Any]]:
    """All elements as lists of `ns` elements; ValueError if there are others."""
    return split_list_checked(list(xs), ns)


def stable_unique(it: _Iterable[_Any]) -> _Iterable[_Any]:
    """The distinct elements, in their order."""
    return dict.fromkeys(it).keys()


def subvals(lst: _Sequence[_Any], replace: _Iterable[tuple[int, _Any]]) -> tuple[_Any, ...]:
    """The elements, with others in some places."""
    found = list(lst)
    for i, value in replace:
        found[i] = value
    return tuple(found)


def _check_place(index: int, end: int) -> None:
    if not 0 <= index < end:
        raise IndexError(f"there is no place {index}")


def tuple_insert(t: tuple[_Any, ...], idx: int, val: _Any) -> tuple[_Any, ...]:
    """A tuple with another element before a place."""
    _check_place(idx, len(t) + 1)
    return (*t[:idx], val, *t[idx:])


def tuple_delete(t: tuple[_Any, ...], idx: int) -> tuple[_Any, ...]:
    """A tuple without one of its elements."""
    _check_place(idx, len(t))
    return t[:idx] + t[idx + 1 :]


def tuple_update(t: tuple[_Any, ...], idx: int, val: _Any) -> tuple[_Any, ...]:
    """A tuple with another element in a place."""
    _check_place(idx, len(t))
    return (*t[:idx], val, *t[idx + 1 :])


def canonicalize_axis(axis: _Any, num_dims: int) -> int:
    """The number of a dimension, from 0 on; ValueError if there is no such dimension."""
    axis = _operator.index(axis)
    if not -num_dims <= axis < num_dims:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {num_dims}")
    return int(axis % num_dims)


def canonicalize_axis_tuple(
    axis: int | _Sequence[int] | None, ndim: int, allow_duplicate: bool = False
) -> tuple[int, ...]:
    """The numbers of dimensions, from 0 on; None: all. ValueError for one that is not there, or twice."""
    if axis is None:
        return tuple(range(ndim))
    found = tuple(canonicalize_axis(each, ndim) for each in (axis if isinstance(axis, _Sequence) else (axis,)))
    if not allow_duplicate and len(set(found)) < len(found):
        raise ValueError(f"repeated axis: {found}")
    return found


def moveaxis(x: _Any, src: int | _Sequence[int], dst: int | _Sequence[int]) -> _Any:
    """An array with dimensions in other places."""
    return x if src == dst else x.transpose(tuple(_np.moveaxis(_np.empty(range(x.ndim)), src, dst).shape))


def ceil_of_ratio(x: int, y: int) -> int:
    """The quotient of integers, rounded up."""
    return -(-x // y)


def wrap_name(transform_name: str, name: str) -> str:
    """The name of a function that a transformation made."""
    return f"{transform_name}({name})"


def fun_name(fun: _Callable[..., _Any], default_name: str = "<unnamed function>") -> str:
    """A function's name, without its class; that of the function in a partial."""
    if isinstance(fun, _functools.partial) and not hasattr(fun, "__name__"):
        return fun_name(fun.func)
    return str(getattr(fun, "__name__", default_name))


def fun_qual_name(fun: _Callable[..., _Any]) -> str:
    """A function's name, with its class; that of the function in a partial."""
    if isinstance(fun, _functools.partial) and not hasattr(fun, "__qualname__"):
        return fun_qual_name(fun.func)
    return str(getattr(fun, "__qualname__", fun_name(fun)))


def wraps(
    wrapped: _Callable[..., _Any], namestr: str | None = None, docstr: str | None = None, **kwargs: _Any
) -> _Callable[[_Any], _Any]:
    """As functools.wraps; texts for the name and the documentation, in which `{fun}` and `{doc}` are replaced."""

    def change(function: _Any) -> _Any:
        name, doc = fun_name(wrapped), getattr(wrapped, "__doc__", "") or ""
        _functools.update_wrapper(function, wrapped)
        function.__name__ = name if namestr is None else namestr.format(fun=name)
        function.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc, **kwargs)
        return function

    return change


def curry(f: _Callable[..., _Any]) -> _Callable[..., _Any]:
    """A function of the first arguments, which returns one of the others."""
    curried: _Callable[..., _Any] = wraps(f)(_functools.partial(_functools.partial, f))
    return curried


def set_module(module: str) -> _Callable[[_Any], _Any]:
    """A decorator: the function or class says that it is from that module."""

    def change(found: _Any) -> _Any:
        found.__module__ = module
        return found

    return change


def cache(max_size: int | None = 4096, trace_context_in_key: bool = True) -> _Callable[[_Any], _Any]:
    """As functools.lru_cache; the settings belong to the key."""

    def change(f: _Callable[..., _Any]) -> _Any:
        if not trace_context_in_key:
            return _functools.lru_cache(max_size)(f)
        cached = _functools.lru_cache(max_size)(lambda _, *args, **keywords: f(*args, **keywords))
        found: _Any = _functools.wraps(f)(lambda *args, **keywords: cached(_current_context(), *args, **keywords))
        found.cache_clear, found.cache_info = cached.cache_clear, cached.cache_info
        return found

    return change


memoize = cache(max_size=None)


class HashableFunction:
    """A function that equals others of the same code and the same `closure`: all that its results depend on."""

    def __init__(self, f: _Callable[..., _Any], closure: _Any) -> None:
        self.f, self.closure = f, closure

    def _key(self) -> tuple[_Any, ...]:
        return self.f.__code__, self.closure

    def __eq__(self, other: object) -> bool:
        return type(other) is HashableFunction and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, *args: _Any, **kwargs: _Any) -> _Any:
        return self.f(*args, **kwargs)


class HashablePartial:
    """A partial that equals others of a function of the same code and equal arguments."""

    def __init__(self, f: _Callable[..., _Any], *args: _Any, **kwargs: _Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def _key(self) -> tuple[_Any, ...]:
        return self.f.__code__, self.args, tuple(sorted(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, *args: _Any, **kwargs: _Any) -> _Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


class HashableWrapper:
    """An object that is compared by identity if it has no hash."""

    def __init__(self, x: _Any) -> None:
        self.x = x
        try:
            self.hash: int | None = hash(x)
        except TypeError:
            self.hash = None

    def __hash__(self) -> int:
        return id(self.x) if self.hash is None else self.hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HashableWrapper):
            return False
        return self.x is other.x if self.hash is None else bool(self.x == other.x)


class Unhashable:
    """An object without a hash."""

    __slots__ = ("val",)
    __hash__: _ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, val: _Any) -> None:
        self.val = val

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable) and bool(self.val == other.val)


class OrderedSet:
    """A set that keeps the order in which elements were added."""

    def __init__(self) -> None:
        self._elements: dict[_Any, None] = {}

    def add(self, elt: _Any) -> None:
        """Add an element."""
        self._elements[elt] = None

    def update(self, elts: _Iterable[_Any]) -> None:
        """Add several elements."""
        self._elements.update(dict.fromkeys(elts))

    def __iter__(self) -> _Iterator[_Any]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __contains__(self, elt: object) -> bool:
        return elt in self._elements


_publish(__name__)
