"""rematerialization: computes values again where a program would need more memory than its budget.

It runs when the order of the instructions is known (`memory_scheduler.py`). Where most bytes are alive, values that are
not used there are dropped, and computed again before their next use (`recompute.py`). Of the choices that keep the
budget the cheapest is taken: operations on elements before products, and few rather than many. The instructions of the
entry are considered, not those in loops; a scan over layers keeps what its body saves, and `checkpoint` drops it.

Whether a budget is kept is measured on the whole assignment of buffers, after the passes that follow. Source of the
idea: XLA's HloRematerialization; Chen et al., Training Deep Nets with Sublinear Memory Cost (2016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...buffers.allocation import AllocationKind
from ...buffers.assignment import assign_buffers
from ...buffers.coalescing import CanShare
from ...builder import with_unique_names
from ...errors import MemoryBudgetError
from ...ir import HloComputation, HloModule
from ...support.records import dataclass
from ..rewrite import HloPass
from .recompute import BYTES_A_SECOND, Limits, Liveness, Plan, plan, with_plan

_PRICES = (2.5, 8.0, 40.0, float("inf"))
"""The times for each saved byte that are tried, where a copy of it takes 2: reading and writing."""
_ROUNDS = 12
_CORRECTIONS = 4


@dataclass(frozen=True, slots=True)
class Rematerialization:
    """Keeps a program below `budget` bytes: arguments, results, constants and temporaries together.

    MemoryBudgetError if it finds no way, with the number of bytes that it reached.
    """

    budget: int
    can_share: CanShare
    """Which results the backend may write over which operands: the rule that its buffer assignment uses."""
    after: tuple[HloPass, ...] = ()
    """The passes that follow and change what memory is needed."""
    name: str = "rematerialization"

    def __call__(self, module: HloModule) -> HloModule:
        needed = self.needed(module)
        if needed <= self.budget:
            return module
        inner: dict[HloComputation, int] = {}
        for computation in module.computations:
            inner[computation] = Liveness(computation, inner).peak
        least, target = needed, Liveness(module.entry, inner).peak
        for _ in range(_CORRECTIONS):
            target -= needed - self.budget
            entry, peak = _within(module.entry, inner, target)
            if entry is module.entry:
                break
            found = with_unique_names(replace(module, entry=entry))
            needed = self.needed(found)
            if needed <= self.budget:
                return found
            least = min(least, needed)
            if peak > target:
                break
        raise MemoryBudgetError(module.name, self.budget, least)

    def needed(self, module: HloModule) -> int:
        """The bytes that a scheduled program needs."""
        for following in self.after:
            module = following(module)
        assignment = assign_buffers(module, self.can_share)
        return sum(map(assignment.total_size, AllocationKind))


def _within(entry: HloComputation, inner: dict[HloComputation, int], target: int) -> tuple[HloComputation, int]:
    """The computation with at most `target` bytes alive at once, or with as few as were found; and that number."""
    liveness = Liveness(entry, inner)
    for _ in range(_ROUNDS):
        if liveness.peak <= target:
            break
        found, peak = _best(liveness, inner, target)
        if found is None or peak >= liveness.peak:
            break
        liveness = Liveness(found, inner)
    return liveness.computation, liveness.peak


def _best(liveness: Liveness, inner: dict[HloComputation, int], target: int) -> tuple[HloComputation | None, int]:
    """The cheapest way to stay below the target that drops values at the peak, or else the one with the lowest peak."""
    position = liveness.bytes.index(liveness.peak)
    best: tuple[HloComputation | None, int] = None, liveness.peak

    def tried(limits: Limits, most: int | None = None) -> tuple[Plan, HloComputation | None, int]:
        made = plan(liveness, position, limits, most)
        if not made.dropped:
            return made, None, liveness.peak
        entry = with_plan(made)
        return made, entry, Liveness(entry, inner).peak

    for price in _PRICES:
        cheapest: tuple[Plan, HloComputation, int, Limits] | None = None
        for closure in _closures(liveness):
            limits = Limits(price / BYTES_A_SECOND, closure)
            made, entry, peak = tried(limits)
            if entry is None:
                continue
            if peak < best[1]:
                best = entry, peak
            if peak <= target and (cheapest is None or made.seconds < cheapest[0].seconds):
                cheapest = made, entry, peak, limits
        if cheapest is not None:
            return _fewest(cheapest, target, tried)
    return best


def _closures(liveness: Liveness) -> Iterator[float]:
    """The bytes of closures to try."""
    size = max(liveness.size.values(), default=1)
    while size < liveness.peak:
        yield size
        size *= 4


def _fewest(
    found: tuple[Plan, HloComputation, int, Limits],
    target: int,
    tried: Callable[[Limits, int], tuple[Plan, HloComputation | None, int]],
) -> tuple[HloComputation, int]:
    """The plan that drops the fewest of these values, by bisection."""
    made, entry, peak, limits = found
    low, high = 0, len(made.dropped)
    while high - low > 1:
        middle = (low + high) // 2
        _, other, less = tried(limits, middle)
        if other is not None and less <= target:
            high, entry, peak = middle, other, less
        else:
            low = middle
    return entry, peak
