"""An order of clusters that changes as they merge: which of two must run first, and whether they may become one.

Two clusters may become one nest unless a third one must run between them. To know this by sets of all that runs before
each cluster takes space, and time at every merge, that grow with the square of the program. Here each cluster has a
place in a list, after all that it waits for, and only those with a place between the two can run between them. These
are searched alternately from both ends; the end that is exhausted first gives the answer, and the clusters that it has
found must move when the two are merged. A search has a limit (`MOST_STEPS`), beyond which the two are taken to be too
far apart. So the time is linear; a program of a few hundred clusters never comes to that limit.

The places are numbers with gaps between them. Where no gap is left, the places around it are spread out again, over the
smallest range that is thinly populated (Bender, Cole, Demaine, Farach-Colton and Zito, "Two simplified algorithms for
maintaining order in a list", 2002).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from ...support.records import dataclass
from .clusters import Cluster

MOST_STEPS = 1024
"""The most waits between clusters that one search follows."""

_FEW = 8
"""The number of waits that are checked before a search begins."""

_GAP = 1 << 32
"""Between the places of neighbours that are new."""

_DENSITY = 1.5
"""A range of 2 ** k places may have (2 / _DENSITY) ** k clusters in it after they are spread out."""


@dataclass(frozen=True, slots=True)
class Joint:
    """How two clusters can become one: the cluster at whose place they join, and the clusters that move to the other
    side of it."""

    at: Cluster
    moved: Sequence[Cluster]
    """In their order."""
    is_before: bool
    """True if they move before that place, False if behind it."""


class ClusterOrder:
    """The list of all clusters of a computation."""

    def __init__(self) -> None:
        self._last: Cluster | None = None

    def append(self, cluster: Cluster, before: Iterable[Cluster]) -> None:
        """Put a new cluster at the end. It waits for the clusters `before`."""
        for other in before:
            cluster.before[other] = None
            other.after[cluster] = None
        cluster.previous = last = self._last
        if last is not None:
            last.next = cluster
        cluster.place = 0 if last is None else last.place + _GAP
        self._last = cluster

    def joint(self, a: Cluster, b: Cluster, *, reads: bool) -> Joint | None:
        """How `a` and `b` can become one; None if something must, or may have to, run between them. `reads`: one may
        wait for the other itself."""
        first, last = (a, b) if a.place < b.place else (b, a)
        if not reads and last in first.after:
            return None
        if len(last.before) <= _FEW:
            place = first.place
            for other in last.before:
                if other.place > place:
                    break
            else:
                return Joint(first, (), is_before=True)  # the usual case, which needs no search
        return self._searched(first, last)

    @staticmethod
    def _searched(first: Cluster, last: Cluster) -> Joint | None:
        """The same, by a search: one wait back from the last and one on from the first, in turns. The clusters between
        the two that each end leads to are `behind` and `ahead`."""
        low, high = first.place, last.place
        ahead, behind = {first}, {last}
        forward: list[Cluster] = []
        backward: list[Cluster] = []
        waits, followers = iter(last.before), iter(first.after)
        start, end = last, first
        for _ in range(MOST_STEPS // 2):
            while (other := next(waits, None)) is None:
                if not backward:
                    behind.discard(last)
                    return Joint(first, sorted(behind, key=attrgetter("place")), is_before=True)
                start = backward.pop()
                waits = iter(start.before)
            if other is first:
                if start is not last:
                    return None
            elif other.place > low and other not in behind:
                behind.add(other)
                backward.append(other)
            while (other := next(followers, None)) is None:
                if not forward:
                    ahead.discard(first)
                    return Joint(last, sorted(ahead, key=attrgetter("place")), is_before=False)
                end = forward.pop()
                followers = iter(end.after)
            if other is last:
                if end is not first:
                    return None
            elif other.place < high and other not in ahead:
                ahead.add(other)
                forward.append(other)
        return None

    def join(self, kept: Cluster, other: Cluster, joint: Joint) -> None:
        """Make one of two clusters, as `joint` says."""
        for cluster in joint.moved:
            self._remove(cluster)
        place = joint.at
        before, after = (place.previous, place) if joint.is_before else (place, place.next)
        self._insert(joint.moved, before, after)
        if place is kept:
            self._remove(other)
        else:
            self._remove(kept)
            self._link(other.previous, kept)
            self._link(kept, other.next)
            kept.place = other.place
        for cluster in other.before:
            del cluster.after[other]
            if cluster is not kept:
                cluster.after[kept] = None
                kept.before[cluster] = None
        for cluster in other.after:
            del cluster.before[other]
            if cluster is not kept:
                cluster.before[kept] = None
                kept.after[cluster] = None

    def _link(self, before: Cluster | None, after: Cluster | None) -> None:
        if before is not None:
            before.next = after
        if after is not None:
            after.previous = before
        else:
            self._last = before

    def _remove(self, cluster: Cluster) -> None:
        self._link(cluster.previous, cluster.next)

    def _insert(self, clusters: Sequence[Cluster], before: Cluster | None, after: Cluster | None) -> None:
        """Put clusters between two neighbours, one of which may be missing."""
        if not clusters:
            return
        if before is not None and after is not None:
            if after.place - before.place <= len(clusters):
                _spread(before, len(clusters))
            start, step = before.place, (after.place - before.place) // (len(clusters) + 1)
        elif before is not None:
            start, step = before.place, _GAP
        else:
            assert after is not None, "what moves does so past another one"
            start, step = after.place - _GAP * (len(clusters) + 1), _GAP
        for number, cluster in enumerate(clusters, 1):
            cluster.place = start + number * step
            self._link(before, cluster)
            before = cluster
        self._link(before, after)


def _spread(cluster: Cluster, more: int) -> None:
    """Spread out the places around a cluster's place, so that there is room for `more` between any two of them."""
    first = last = cluster
    count, width, most = 1, 1, 1.0
    while count * (more + 1) >= most:
        width, most = 2 * width, most * 2 / _DENSITY
        low = cluster.place // width * width
        while first.previous is not None and first.previous.place >= low:
            first, count = first.previous, count + 1
        while last.next is not None and last.next.place < low + width:
            last, count = last.next, count + 1
    step = width // count
    for number in range(count):
        first.place = low + number * step
        if first.next is not None:
            first = first.next
