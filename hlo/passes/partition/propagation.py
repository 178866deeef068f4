"""Which sharding every value has: those that the program states, carried along the factors of its instructions.

A value without a stated sharding starts whole, and is only ever cut further; so the rounds end. Stated shardings do not
change, except for dimensions that their author left open. First the shardings go through instructions that treat all
dimensions alike, then through the others: a product should not choose before the sums around it have. Source: GSPMD's
ShardingPropagation, and Shardy's basic propagation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...support.records import dataclass
from .axes import Axes, DeviceMesh, Spec
from .factors import Dimensions, Factors

_FIRST = frozenset({Opcode.TUPLE, Opcode.TRANSPOSE, Opcode.RESHAPE, Opcode.OPT_BARRIER, Opcode.CUSTOM_CALL})
"""Ops besides the element-wise ones through which shardings go first."""


@dataclass(slots=True)
class Value:
    """A leaf of an instruction, or several that are the same value: the state of a loop."""

    dimensions: tuple[int, ...]
    byte_size: int
    spec: Spec
    stated: tuple[bool, ...] | None = None
    """Of a stated sharding: which dimensions are fixed. None: it is not stated."""
    own: frozenset[int] = frozenset()
    """Axes along which devices have values of their own, within a shard_map that takes these axes: they cut nothing."""

    def is_fixed(self, d: int) -> bool:
        return self.stated is not None and self.stated[d]


@dataclass(slots=True)
class Assignment:
    """Along which axes each factor of an instruction is cut. No axis cuts two factors."""

    mesh: DeviceMesh
    factors: Factors
    axes: dict[int, Axes] = field(default_factory=dict)
    own: frozenset[int] = frozenset()
    """Axes that cut nothing here."""

    def claim(self, dims: Dimensions, spec: Spec) -> None:
        """Cut the factors as an array with these factors is cut, as far as they are free."""
        for d, axes in enumerate(spec):
            for factor, wanted in self._of_factors(dims[d], axes):
                has = self.axes.get(factor, ())
                if factor in self.factors.whole or wanted[: len(has)] != has:
                    continue
                used = {a for f, others in self.axes.items() if f != factor for a in others} | self.own
                end = len(has)
                while (
                    end < len(wanted)
                    and wanted[end] not in used
                    and self.factors.sizes[factor] % self.mesh.parts(wanted[: end + 1]) == 0
                ):
                    end += 1
                if end:
                    self.axes[factor] = wanted[:end]

    def _of_factors(self, factors: Sequence[int], axes: Axes) -> Iterator[tuple[int, Axes]]:
        """Which axes of a dimension cut which of its factors. A factor is cut only if those before it are cut into
        single numbers."""
        start = 0
        for factor in factors:
            rest, end = self.factors.sizes[factor], start
            while end < len(axes) and rest != 1 and rest % self.mesh.sizes[axes[end]] == 0:
                rest //= self.mesh.sizes[axes[end]]
                end += 1
            if end > start:
                yield factor, axes[start:end]
            if rest != 1:
                return
            start = end

    def settle(self) -> None:
        """Drop the axes of factors that come after one in their dimension that is not cut into single numbers."""
        changed = True
        while changed:
            changed = False
            for dims in self.factors.arrays:
                for factors in dims:
                    open_end = False
                    for factor in factors:
                        if open_end and factor in self.axes:
                            del self.axes[factor]
                            changed = True
                        parts = self.mesh.parts(self.axes.get(factor, ()))
                        open_end = open_end or parts != self.factors.sizes[factor]

    def spec(self, dims: Dimensions) -> Spec:
        """How an array with these factors is cut."""
        return tuple([tuple([a for f in factors for a in self.axes.get(f, ())]) for factors in dims])

    @property
    def summed(self) -> Axes:
        """The axes along which devices have terms of the results."""
        return tuple(sorted(a for f in self.factors.summed for a in self.axes.get(f, ())))


@dataclass(frozen=True, slots=True)
class Node:
    """An instruction with its factors and the values of its operands and results, leaf by leaf."""

    instruction: HloInstruction | None
    factors: Factors
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    fixed: tuple[tuple[int, Axes], ...] = ()
    """At a border of a shard_map: the factors that its axes cut, and how."""

    @property
    def own(self) -> frozenset[int]:
        """The axes that cut nothing here, but for the fixed factors."""
        return frozenset[int]().union(*(v.own for v in self.values))

    @property
    def values(self) -> tuple[Value, ...]:
        return (*self.operands, *self.results)

    @property
    def is_first(self) -> bool:
        i = self.instruction
        return i is None or i.opcode in _FIRST or has_trait(i.opcode, Trait.ELEMENTWISE)


def propagate(mesh: DeviceMesh, nodes: Sequence[Node]) -> None:
    """Change the specs of the nodes' values until none changes any more."""
    nodes = [n for n in nodes if any(v.dimensions for v in n.values)]
    for chosen in ([n for n in nodes if n.is_first], nodes):
        changed = True
        while changed:
            changed = False
            for node in (*chosen, *reversed(chosen)):
                changed |= _update(mesh, node)


def _update(mesh: DeviceMesh, node: Node) -> bool:
    """Carry shardings from each of the node's values to the others. True if one changed."""
    if not any(axes for v in node.values for axes in v.spec):
        return False
    assignment = Assignment(mesh, node.factors, dict(node.fixed), node.own)
    pairs = list(zip(node.factors.arrays, node.values, strict=True))
    for dims, value in sorted(pairs, key=lambda pair: pair[1].stated is None):
        assignment.claim(dims, value.spec)
    assignment.settle()
    changed = False
    for dims, value in pairs:
        wanted = assignment.spec(dims)
        for d, axes in enumerate(wanted):
            has = value.spec[d]
            if value.is_fixed(d) or axes[: len(has)] != has:
                continue
            used = {a for e, others in enumerate(value.spec) if e != d for a in others}
            end = len(has)
            while end < len(axes) and axes[end] not in used:
                end += 1
            if end > len(has):
                value.spec = (*value.spec[:d], axes[:end], *value.spec[d + 1 :])
                changed = True
    return changed
