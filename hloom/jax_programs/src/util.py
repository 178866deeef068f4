"""jax._src.util: functions of lists."""

from collections.abc import Iterable as _Iterable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from ...api_util.flat_functions import safe_map
from ...namespaces import publish as _publish

__all__ = ["merge_lists", "partition_list", "safe_map", "safe_zip", "split_list", "unzip2", "unzip3"]


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


_publish(__name__)
