"""Choosing an order of dimensions for many arrays at once, so that few bytes must be copied.

A variable is an array with an order that is fixed or that the pass chooses. An edge says that one array is read to make
another, and which orders of the two fit together. If they do not fit, the array that is read must be copied. Nothing
here knows HLO.

The choice has three steps. Edges that determine all dimensions of both sides join their variables into components, the
most expensive edges first; an edge between two components that are fixed differently becomes a copy. Components that
are not fixed take an order from neighbours that have one. Then single components and single variables change their
order as long as that saves bytes. The same is done from a start in which all free variables are row-major; this is the
answer unless the first way saves more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from ...support.permutations import inverse
from ...support.records import dataclass
from .orders import Order, completed, identity, meets, positions

MAX_ROUNDS = 4
"""Rounds over all components, and over all variables, in search of savings."""


@dataclass(slots=True)
class Variable:
    """An array."""

    sizes: tuple[int, ...]
    fixed: Order | None = None
    allows: Callable[[Order], bool] | None = None
    """Orders that are possible at all; None: any."""


@dataclass(frozen=True, slots=True)
class Edge:
    """`source` is read to make `target`."""

    source: int
    target: int
    cost: int
    """The cost of a copy of the source."""
    wants: Callable[[Order], Sequence[int]]
    """wants(order of the target): the source's dimensions that must come in this sequence."""
    gives: Callable[[Order], Order | None]
    """gives(order of the source): an order of the target that fits; None if it says nothing."""
    mapping: tuple[int, ...] | None = None
    """If all dimensions correspond: for each dimension of the target the corresponding one of the source."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Preferred orders of a variable: they cost nothing, all others cost a copy."""

    variable: int
    cost: int
    likes: Callable[[Order], bool]
    order: Order | None = None
    """An order to try that it likes; None: only those that edges suggest."""


@dataclass(slots=True)
class _Component:
    """Variables with orders that follow from one another: `maps[v][r]` is the dimension of v that is dimension r."""

    members: list[int]
    fixed: Order | None
    restricted: list[int]
    natural: list[Order]
    """Orders that all restricted members allow."""


@dataclass(slots=True)
class Problem:
    """Variables and edges; `solve` chooses."""

    variables: list[Variable] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    preferences: list[Preference] = field(default_factory=list)

    def variable(
        self, sizes: tuple[int, ...], fixed: Order | None = None, allows: Callable[[Order], bool] | None = None
    ) -> int:
        """The number of a new variable."""
        self.variables.append(Variable(sizes, fixed, allows))
        return len(self.variables) - 1

    def solve(self) -> list[Order]:
        """An order for each variable: its fixed one, or one that it allows."""
        return Solver(self).run()


class Solver:
    """Works on one problem. The cost of the current orders is kept up to date, edge by edge."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.variables, self.edges = problem.variables, problem.edges
        count = len(self.variables)
        self.into: list[list[int]] = [[] for _ in range(count)]
        self.out: list[list[int]] = [[] for _ in range(count)]
        self.preferences: list[list[Preference]] = [[] for _ in range(count)]
        for number, edge in enumerate(self.edges):
            self.into[edge.target].append(number)
            self.out[edge.source].append(number)
        for preference in problem.preferences:
            self.preferences[preference.variable].append(preference)
        self.maps: list[Order] = [identity(len(v.sizes)) for v in self.variables]
        self.component: list[_Component] = []
        for number, v in enumerate(self.variables):
            restricted = [number] if v.allows is not None and v.fixed is None else []
            self.component.append(_Component([number], v.fixed, restricted, [identity(len(v.sizes))]))
        self.orders: list[Order | None] = [None] * count
        self.cost = 0
        self._copies: list[dict[Order, dict[int, int]]] = [{} for _ in range(count)]
        """For each variable: sequences that readers want and do not get, with the number of readers at each cost."""
        self._wanted: list[Order | None] = [None] * len(self.edges)
        """For each edge: the sequence that `_copies` counts it for."""
        for number, v in enumerate(self.variables):
            if v.fixed is not None:
                self.set(number, v.fixed)

    def run(self) -> list[Order]:
        """See `Problem.solve`."""
        for edge in sorted(self.edges, key=lambda e: -e.cost):
            if edge.mapping is not None and edge.cost:
                self.join(edge)
        components = list({id(c): c for c in self.component}.values())
        free = [c for c in components if c.fixed is None]
        for each in components:
            if each.fixed is not None:
                self.give(each, each.fixed)
        self.spread(components)
        for each in free:
            if self.orders[each.members[0]] is None:
                self.give(each, each.natural[0])
        parts = [*free, *self.loose()]
        parts += [self.alone(v) for v, variable in enumerate(self.variables) if variable.fixed is None]
        spread, cost = self.improved(parts), self.cost
        for number, variable in enumerate(self.variables):
            self.set(number, variable.fixed or identity(len(variable.sizes)))
        default = self.improved(parts)
        return spread if cost < self.cost else default

    # components

    def join(self, edge: Edge) -> None:
        """Put both ends into one component, unless they are fixed differently or restricted too much."""
        assert edge.mapping is not None
        a, b = self.component[edge.target], self.component[edge.source]
        if a is b:
            return
        # dimension of a's -> dimension of b's
        place = positions(self.maps[edge.source])
        link = tuple(place[edge.mapping[self.maps[edge.target][r]]] for r in range(len(edge.mapping)))
        if len(a.members) < len(b.members):
            a, b, link = b, a, inverse(link)
        back = inverse(link)  # dimension of b's -> dimension of a's
        theirs = None if b.fixed is None else tuple(back[r] for r in b.fixed)
        sizes = self.sizes_of(a)
        if a.fixed is not None and theirs is not None and not meets(a.fixed, theirs, sizes):
            return
        fixed = a.fixed or theirs
        if fixed is not None:
            moved = tuple(link[r] for r in fixed)
            if not ((fixed == a.fixed or self.allow(a, fixed)) and (moved == b.fixed or self.allow(b, moved))):
                return
            natural = [fixed]
        else:
            natural = [o for o in a.natural if self.allow(b, tuple(link[r] for r in o))]
            if not natural:
                theirs_too = [tuple(back[r] for r in o) for o in b.natural]
                natural = [o for o in theirs_too if o not in a.natural and self.allow(a, o)]
            if not natural:
                return
        for v in b.members:
            own = self.maps[v]
            self.maps[v] = tuple(own[link[r]] for r in range(len(link)))
            self.component[v] = a
        a.members += b.members
        a.restricted += b.restricted
        a.fixed, a.natural = fixed, natural

    def loose(self) -> list[_Component]:
        """The free parts of components that are fixed at some variables, as the state of a loop between parameters and
        results: if its variables want other orders, it pays to copy it there. Empty if no preference names one."""
        if not any(preference.order is not None for preference in self.problem.preferences):
            return []
        apart = Solver(self.problem)
        for edge in sorted(self.edges, key=lambda e: -e.cost):
            free = self.variables[edge.source].fixed is None and self.variables[edge.target].fixed is None
            if edge.mapping is not None and edge.cost and free:
                apart.join(edge)
        found = {id(c): c for c in apart.component if len(c.members) > 1}
        wholes = [(c, {id(self.component[v]) for v in c.members}) for c in found.values()]
        return [
            _Component(c.members, None, c.restricted, [])
            for c, whole in wholes
            if len(whole) == 1 and self.component[c.members[0]].fixed is not None
        ]

    def sizes_of(self, component: _Component) -> tuple[int, ...]:
        first = component.members[0]
        sizes, own = self.variables[first].sizes, self.maps[first]
        return tuple(sizes[own[r]] for r in range(len(own)))

    def allow(self, component: _Component, order: Order) -> bool:
        for v in component.restricted:
            allows, own = self.variables[v].allows, self.maps[v]
            if allows is not None and not allows(tuple(own[r] for r in order)):
                return False
        return True

    def give(self, component: _Component, order: Order) -> None:
        for v in component.members:
            if self.variables[v].fixed is None:
                own = self.maps[v]
                self.set(v, tuple(own[r] for r in order))

    def alone(self, v: int) -> _Component:
        """A component of one variable, with the numbering of dimensions that it has in its present component."""
        restricted = [v] if self.variables[v].allows is not None else []
        place = positions(self.maps[v])
        natural = tuple(place[d] for d in range(len(place)))
        return _Component([v], None, restricted, [natural])

    def spread(self, components: list[_Component]) -> None:
        """Fixed components give their neighbours an order, these give it to their neighbours, and so on."""
        waiting = deque(n for c in components if c.fixed is not None for n in self.neighbours(c))
        while waiting:
            component = waiting.popleft()
            if self.orders[component.members[0]] is not None:
                continue
            candidates = self.candidates(component)
            if candidates:
                self.give(component, min(candidates, key=lambda o: self.cost_with(component, o)))
                waiting.extend(self.neighbours(component))

    def neighbours(self, component: _Component) -> list[_Component]:
        """The components without an order that share an edge with this one."""
        found = {}
        for v in component.members:
            sources = [self.edges[e].source for e in self.into[v]]
            for other in (*sources, *[self.edges[e].target for e in self.out[v]]):
                if self.orders[other] is None:
                    found[id(self.component[other])] = self.component[other]
        return list(found.values())

    def candidates(self, component: _Component) -> list[Order]:
        """Orders of a component that the variables around it suggest, the most expensive suggestions first."""
        weights: dict[Order, int] = {}
        inside = set(component.members)
        for v in component.members:
            place = positions(self.maps[v])
            for order, cost in self.suggestions(v, inside):
                own = tuple(place[d] for d in order)
                weights[own] = weights.get(own, 0) + cost
        best = sorted(weights, key=lambda o: -weights[o])[:8]
        return [o for o in best if self.allow(component, o)]

    def suggestions(self, v: int, inside: set[int]) -> Iterable[tuple[Order, int]]:
        own = self.orders[v] or identity(len(self.variables[v].sizes))
        for preference in self.preferences[v]:
            if preference.order is not None:
                yield preference.order, preference.cost
        for edge in map(self.edges.__getitem__, self.into[v]):
            source = self.orders[edge.source]
            if source is not None and edge.source not in inside:
                order = edge.gives(source)
                if order is not None:
                    yield order, edge.cost
        for edge in map(self.edges.__getitem__, self.out[v]):
            target = self.orders[edge.target]
            if target is not None and edge.target not in inside:
                yield completed(edge.wants(target), own), edge.cost

    # costs

    def set(self, v: int, order: Order | None) -> None:
        """Let a variable have this order, or none yet."""
        if order == self.orders[v]:
            return
        edges = (*self.into[v], *self.out[v])
        for number in edges:
            self._count(number, -1)
        self.cost -= self._displeasure(v)
        self.orders[v] = order
        self.cost += self._displeasure(v)
        for number in edges:
            self._wanted[number] = self._unmet(self.edges[number])
            self._count(number, 1)

    def _displeasure(self, v: int) -> int:
        order = self.orders[v]
        return 0 if order is None else sum(t.cost for t in self.preferences[v] if not t.likes(order))

    def _unmet(self, edge: Edge) -> Order | None:
        """The sequence of dimensions that an edge wants and its source does not have; None if it has it."""
        source, target = self.orders[edge.source], self.orders[edge.target]
        if source is None or target is None or not edge.cost:
            return None
        wanted = tuple(edge.wants(target))
        return None if meets(source, wanted, self.variables[edge.source].sizes) else wanted

    def _count(self, number: int, change: int) -> None:
        """Add or remove an edge. A variable costs one copy for each sequence that readers want and do not get."""
        wanted = self._wanted[number]
        if wanted is None:
            return
        edge = self.edges[number]
        costs = self._copies[edge.source].setdefault(wanted, {})
        before = max(costs, default=0)
        costs[edge.cost] = costs.get(edge.cost, 0) + change
        if not costs[edge.cost]:
            del costs[edge.cost]
        self.cost += max(costs, default=0) - before

    def cost_with(self, component: _Component, order: Order) -> int:
        """The total cost if a component has this order."""
        before = [(v, self.orders[v]) for v in component.members]
        self.give(component, order)
        cost = self.cost
        for v, old in before:
            self.set(v, old)
        return cost

    def is_well(self, component: _Component) -> bool:
        """True when no member is copied or needs a copy, so that nothing can be saved."""
        return not any(
            self._displeasure(v) or any(self._wanted[e] is not None for e in (*self.into[v], *self.out[v]))
            for v in component.members
        )

    def improved(self, parts: list[_Component]) -> list[Order]:
        """Change the order of one component after the other while that makes it cheaper."""
        for _ in range(MAX_ROUNDS):
            changed = False
            for part in parts:
                first = part.members[0]
                current, place = self.orders[first], positions(self.maps[first])
                assert current is not None
                now = tuple(place[d] for d in current)
                if self.is_well(part) or not self.is_in_one_order(part, now):
                    continue
                others = [o for o in [*self.candidates(part), *part.natural] if o != now]
                if others:
                    best = min(others, key=lambda o: self.cost_with(part, o))
                    if self.cost_with(part, best) < self.cost:
                        self.give(part, best)
                        changed = True
            if not changed:
                break
        return [order for order in self.orders if order is not None]

    def is_in_one_order(self, part: _Component, order: Order) -> bool:
        """False for a component that contains variables in different orders."""
        return len(part.members) == 1 or all(
            self.orders[v] == tuple(self.maps[v][r] for r in order) for v in part.members
        )

    def total(self, orders: Sequence[Order]) -> int:
        """Bytes of all copies, and of variables that do not get a preferred order, with these orders."""
        for v, order in enumerate(orders):
            self.set(v, order)
        return self.cost
