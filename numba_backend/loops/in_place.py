"""Store the new row of a table over the old one, where each element is read before its place is stored to.

    for t in range(n):                           for t in range(n):
        w[0] = g(t)                                  x[0] = g(t)
        for j in range(m):                           for j in range(m):
            w[j + 1] = f(x[j + 1])         ->            x[j + 1] = f(x[j + 1])
        for i in range(m + 1):
            x[i] = w[i]

A step that reads the old state while it writes the new one has two arrays, and a copy at its end. HLO does not say in
which order elements are read and written; the loops do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ...hlo.support.lazy import lazy_property
from ...hlo.support.records import dataclass
from .affine import Indices, Range, constant_difference
from .expressions import Load, Name
from .statements import Block, For, Statement, Store, names_of
from .straight_lines import (
    Access,
    Ranges,
    accesses_around,
    assigned,
    has_fixed_ends,
    is_straight,
    range_of,
    with_changed_loops,
)


def in_place(block: Block, sizes: Mapping[str, int], own: Collection[str]) -> Block:
    """The statements without such copies, where they can be. `sizes`: the numbers that arguments stand for; `own`: the
    arrays that nothing reads before the statements or after them."""
    return with_changed_loops(block, sizes, _InPlace(sizes, own, block).loop) if own else block


@dataclass(frozen=True, slots=True)
class _Step:
    """The body of a loop that ends with a copy of one row, and the row's `count` elements."""

    before: Block
    inner: For
    between: Block
    old: Name
    new: Name
    count: int
    after: Block


class _InPlace:
    def __init__(self, sizes: Mapping[str, int], own: Collection[str], program: Block) -> None:
        self._sizes, self._own, self._program = sizes, own, program

    @lazy_property
    def _uses(self) -> Counter[str]:
        """How often the whole program reads names, or stores through them."""
        return Counter(names_of(self._program))

    def loop(self, loop: For, ranges: Ranges, inner: Callable[[], Block]) -> Block:
        """What computes a loop: see `with_changed_loops`."""
        step = self._step(loop, ranges)
        if step is None or not self._is_right(step, ranges):
            return [replace(loop, body=inner())]
        before = [_renamed(s, step) for s in step.before]
        together = replace(step.inner, body=[_renamed(s, step) for s in step.inner.body])
        return [replace(loop, body=[*before, together, *step.between, *step.after])]

    def _step(self, loop: For, ranges: Ranges) -> _Step | None:
        loops = [k for k, s in enumerate(loop.body) if isinstance(s, For)]
        if len(loops) != 2:
            return None
        first, second = loops
        inner, copy = loop.body[first], loop.body[second]
        assert isinstance(inner, For) and isinstance(copy, For)
        if copy.step != 1 or copy.start is not None or inner.step != 1 or inner.kind != "range":
            return None
        match copy.body:
            case [Store(pointer=old, index=Name(name=at), value=Load(pointer=new, index=Name(name=same)))]:
                count = range_of(copy, self._sizes, ranges).count
                if at == same == copy.variable.name and count is not None and has_fixed_ends(copy, self._sizes):
                    between = loop.body[first + 1 : second]
                    return _Step(loop.body[:first], inner, between, old, new, count, loop.body[second + 1 :])
        return None

    def _is_right(self, step: _Step, ranges: Ranges) -> bool:
        old, new, inner = step.old.name, step.new.name, step.inner
        straight = [*step.before, *inner.body, *step.between, *step.after]
        if not is_straight(straight) or new not in self._own:
            return False
        if set(names_of([*step.between, *step.after])) & {old, new}:
            return False
        inside = Counter(names_of([*step.before, *inner.body]))
        if self._uses[new] != inside[new] + 1:  # the copy
            return False
        j = inner.variable.name
        counter = range_of(inner, self._sizes, ranges)
        if not counter.count or not has_fixed_ends(inner, self._sizes):
            return False
        indices = Indices(self._sizes, {**ranges, j: counter}, dict.fromkeys(assigned(straight)))
        before, within = (
            [a for a in found if a.array in (old, new)]
            for found in accesses_around(step.before, inner.body, indices)
        )
        if any(a.index is None or a.is_store != (a.array == new) for a in (*before, *within)):
            return False
        if not all(_is_within(indices, a, step.count) for a in (*before, *within) if a.is_store):
            return False
        if any(_is_overwritten(k, before, within, j, counter) for k in range(len(before) + len(within))):
            return False
        return _covers(before, within, j, counter, step.count)


def _is_within(indices: Indices, store: Access, count: int) -> bool:
    """True if the element is one of the first `count`. The new array may have more than are copied; the old one is not
    known to."""
    assert store.index is not None
    known = indices.bounds(store.index)
    return known.least is not None and known.most is not None and known.least >= 0 and known.most < count


def _is_overwritten(at: int, before: Sequence[Access], within: Sequence[Access], j: str, counter: Range) -> bool:
    """True if access number `at` is a load of an element that was stored to before, or may have been."""
    order = [*before, *within]
    load = order[at]
    if load.is_store:
        return False
    assert load.index is not None and counter.least is not None and counter.most is not None
    in_loop, factor = at >= len(before), load.index.get(j, 0)
    for k, store in enumerate(order):
        if not store.is_store or (k > at and not (in_loop and k >= len(before))):
            continue
        assert store.index is not None
        if in_loop and k < len(before):  # the loop comes to the element in iteration -gap / factor
            gap = constant_difference(load.index, store.index, j)
            if gap is None or (not factor and not gap):
                return True
            if factor and gap % factor == 0 and counter.least <= -gap // factor <= counter.most:
                return True
            continue
        gap = constant_difference(load.index, store.index)
        if gap is None or (gap == 0 and (k < at or (in_loop and not factor))):
            return True
        if in_loop and factor and gap % factor == 0 and counter.least - counter.most <= gap // factor < 0:
            return True  # an earlier iteration stores it
    return False


def _covers(before: Sequence[Access], within: Sequence[Access], j: str, counter: Range, count: int) -> bool:
    """True if the stores are to all of `count` elements."""
    assert counter.least is not None and counter.most is not None
    least, most = counter.least, counter.most
    spans: list[tuple[int, int]] = []
    for number, store in enumerate([*before, *within]):
        assert store.index is not None
        first, factor = store.index.get("", 0), store.index.get(j, 0)
        if store.is_store and set(store.index) <= {"", j} and factor == (number >= len(before)):
            spans.append((first + factor * least, first + factor * most))
    reached = 0
    for first, last in sorted(spans):
        if first <= reached:
            reached = max(reached, last + 1)
    return reached >= count


def _renamed(statement: Statement, step: _Step) -> Statement:
    if isinstance(statement, Store) and statement.pointer.name == step.new.name:
        return Store(step.old, statement.index, statement.value)
    return statement
