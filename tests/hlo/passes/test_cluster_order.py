"""The order of clusters in fusion, against paths that are searched for: which pairs may become one, and that everything
stays behind what it waits for."""

from __future__ import annotations

import random

import pytest
from hloom.hlo.passes.fuse import cluster_order
from hloom.hlo.passes.fuse.cluster_order import ClusterOrder
from hloom.hlo.passes.fuse.clusters import Cluster


def _leads(start: Cluster, end: Cluster, *, directly: bool) -> bool:
    """True if `end` waits for `start`; `directly` counts the case without others between them."""
    seen = {start}
    stack = [c for c in start.after if directly or c is not end]
    while stack:
        top = stack.pop()
        if top is end:
            return True
        if top not in seen:
            seen.add(top)
            stack.extend(top.after)
    return False


def _check(clusters: list[Cluster]) -> None:
    first = next(c for c in clusters if c.previous is None)
    found = [first]
    while found[-1].next is not None:
        found.append(found[-1].next)
    assert len(found) == len(clusters) and set(found) == set(clusters)
    places = [c.place for c in found]
    assert places == sorted(set(places))
    for cluster in clusters:
        assert all(other.place < cluster.place and cluster in other.after for other in cluster.before)


@pytest.mark.parametrize("gap", [1 << 32, 1 << 4, 2])
@pytest.mark.parametrize("reach", [2, 6, 60])
def test_against_paths(monkeypatch: pytest.MonkeyPatch, gap: int, reach: int) -> None:
    """With small gaps the places are spread out again and again."""
    monkeypatch.setattr(cluster_order, "_GAP", gap)
    refused = joined = 0
    for seed in range(12):
        rng = random.Random(seed)
        order, clusters = ClusterOrder(), list[Cluster]()
        for number in range(60):
            before = rng.sample(clusters[-reach:], min(len(clusters), rng.randrange(3), reach))
            clusters.append(Cluster([number], set(), True, {}, set(), set()))
            order.append(clusters[-1], before)
        for _ in range(150):
            if len(clusters) < 3:
                break
            a, b = rng.sample(clusters, 2)
            reads = rng.random() < 0.7
            between = any(_leads(c, d, directly=not reads) for c, d in ((a, b), (b, a)))
            joint = order.joint(a, b, reads=reads)
            assert (joint is None) == between
            if joint is None:
                refused += 1
                continue
            joined += 1
            order.join(a, b, joint)
            clusters.remove(b)
            assert a not in a.before and b not in a.before and a not in a.after and b not in a.after
            _check(clusters)
    assert refused > 20 and joined > 20


def test_a_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that are far apart are not merged when the search from both ends exceeds its limit."""
    order = ClusterOrder()
    clusters = [Cluster([k], set(), True, {}, set(), set()) for k in range(41)]
    for k, cluster in enumerate(clusters):  # two chains from the first one, and the last one reads one of their ends
        order.append(cluster, [clusters[max(k - 2, 0)]] if k else [])
    first, last = clusters[0], clusters[39]
    assert order.joint(first, last, reads=True) is None  # there is a way
    alone = Cluster([41], set(), True, {}, set(), set())
    order.append(alone, [])
    assert order.joint(clusters[38], alone, reads=True) is not None
    monkeypatch.setattr(cluster_order, "MOST_STEPS", 8)
    far = Cluster([42], set(), True, {}, set(), set())
    order.append(far, [clusters[40]])
    assert order.joint(clusters[1], far, reads=True) is None
