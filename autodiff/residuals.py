"""Which values a loop keeps for the loop of its tangents, and which ones that loop computes again.

Both are choices about one computation, the loop's body. `plain` brings it into a form in which equal values are one
instruction. `values_to_keep` chooses: a value that is needed is kept, or computed again from others, whichever costs
less. The choice is a minimum cut of the graph of instructions. This file knows nothing about loops.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence, Set
from typing import Any

from ..hlo.builder import make_computation, make_parameter, make_tuple
from ..hlo.effects import has_side_effect
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops import SPECS, Trait
from ..hlo.shape import Shape
from ..tracer.core import Primitive, call_of
from ..tracer.traced import JIT
from .operations import NAME

Cost = Callable[[HloInstruction], float]
INFINITE = float("inf")

# Costs of an iteration, in the time that an operation takes for four bytes of its result.
_PER_ARRAY = 32.0  # a stacked array has an update in one loop and a slice in the other
_PER_BYTE = 2.0  # it is filled with zeros, written and read, and goes through the caches
_AGAIN = 1.0  # an operation that is computed again, of any size
_AGAIN_PER_BYTE = 0.25
_SLOW = 4.0  # how much longer a division or a square root takes

_VIEWS = frozenset({Opcode.BITCAST, Opcode.BROADCAST, Opcode.CONSTANT, Opcode.COPY, Opcode.IOTA, Opcode.RESHAPE})
"""Ops that cost nothing where they are fused with the op that reads them."""
_DIVISIONS = frozenset({Opcode.DIVIDE, Opcode.SQRT})
_REPEATED = _VIEWS | _DIVISIONS | {
    opcode
    for opcode, spec in SPECS.items()
    if spec.traits & (Trait.ELEMENTWISE | Trait.MOVEMENT)
    and not spec.traits & (Trait.EXPENSIVE | Trait.SIDE_EFFECT | Trait.APPLIES)
    and opcode is not Opcode.GATHER
}
"""Cheap ops: ops of one element each without transcendental functions, and ops that move elements."""
_SLOW_IF_COMPLEX = _DIVISIONS | {Opcode.ABS}
_STEPS = frozenset(
    {
        *(Opcode.BITCAST_CONVERT, Opcode.CEIL, Opcode.COMPARE, Opcode.FLOOR, Opcode.IS_FINITE, Opcode.SIGN),
        *(Opcode.ROUND_NEAREST_AFZ, Opcode.ROUND_NEAREST_EVEN),
    }
)
"""Ops that can amplify a change of the last bit of an operand."""


# --- one form of a computation


def plain(computation: HloComputation, inlined: Container[Primitive] = (JIT, NAME)) -> HloComputation:
    """`computation` with the calls of some primitives inlined, and with one instruction for values that are equal."""
    known: dict[Any, HloInstruction] = {}
    effects: list[HloInstruction] = []

    def copied(source: HloComputation, arguments: Sequence[HloInstruction]) -> HloInstruction:
        found: dict[HloInstruction, HloInstruction] = {}
        for old in source.instructions:
            if old.opcode is Opcode.PARAMETER:
                found[old] = arguments[old.attributes.number]
                continue
            operands = tuple([found[o] for o in old.operands])
            if old.opcode is Opcode.CALL and call_of(old.attributes).primitive in inlined:
                found[old] = copied(old.attributes.to_apply, operands)
            elif old.opcode is Opcode.GET_TUPLE_ELEMENT and operands[0].opcode is Opcode.TUPLE:
                found[old] = operands[0].operands[old.attributes.index]
            elif old.opcode is Opcode.RESHAPE and _unshaped(operands[0]).shape == old.shape:
                found[old] = _unshaped(operands[0])
            elif has_side_effect(old):
                found[old] = old.with_operands(operands)
                effects.append(found[old])
            else:
                found[old] = known.setdefault(_identity(old, operands), old.with_operands(operands))
        return found[source.root]

    root = copied(computation, computation.parameters)
    return make_computation(computation.name, root, computation.parameters, effects)


def _unshaped(value: HloInstruction) -> HloInstruction:
    """The operand of a reshape, or the value itself."""
    while value.opcode is Opcode.RESHAPE:
        (value,) = value.operands
    return value


def _identity(instruction: HloInstruction, operands: tuple[HloInstruction, ...]) -> Any:
    """Equal for instructions that compute the same value."""
    attributes = instruction.attributes
    if instruction.opcode is Opcode.CONSTANT:
        array = attributes.literal.array
        attributes = array.tobytes() if array.size == 1 else id(attributes)
    elif instruction.called_computations():
        attributes = id(attributes)
    return instruction.opcode, operands, attributes, instruction.shape


# --- costs of ops


def size_in_bytes(shape: Shape) -> int:
    """The bytes of an array, dense."""
    total = shape.element.dtype.itemsize
    for n in shape.dimensions:
        total *= n
    return total


def _size_at_work(shape: Shape) -> int:
    """The bytes of an array where it is computed: a mask is as wide as the arrays that it is used with."""
    return size_in_bytes(shape) // shape.element.dtype.itemsize * max(4, shape.element.dtype.itemsize)


def cost_to_stack(value: HloInstruction) -> float:
    """The cost of writing a value in each iteration of one loop, and reading it in the other."""
    return _PER_ARRAY + _PER_BYTE * _size_at_work(value.shape)


def cost_again(value: HloInstruction) -> float:
    """The cost of computing a value from its operands."""
    if value.opcode in _VIEWS:
        return 0.0
    cost = _AGAIN + _AGAIN_PER_BYTE * _size_at_work(value.shape)
    return _SLOW * cost if value.opcode in _DIVISIONS else cost


def repeatable(computation: HloComputation, exact: Callable[[HloInstruction], bool]) -> set[HloInstruction]:
    """The instructions that may be computed again: cheap, and with the same result.

    A backend may compute a * b + c with one rounding in one loop and with two in the other. That is harmless unless the
    value goes into a comparison or another step: so such a step is not repeated, but if `exact` says that its operand
    is read as the first loop computed it.
    """
    found: set[HloInstruction] = set()
    product: set[HloInstruction] = set()  # a sum of such a value may be contracted
    rounded: set[HloInstruction] = set()  # another rounding may give another last bit
    for i in computation.instructions:
        if i.opcode not in _REPEATED or (i.opcode in _SLOW_IF_COMPLEX and i.operands[0].shape.element.is_complex):
            continue
        is_rounded = any(o in rounded for o in i.operands)
        is_step = i.opcode in _STEPS or (i.opcode is Opcode.CONVERT and not i.shape.element.is_inexact)
        if is_step and is_rounded:
            continue
        found.add(i)
        if exact(i) or not i.shape.element.is_inexact:
            continue
        if i.opcode is Opcode.MULTIPLY:
            product.add(i)
            is_rounded = is_rounded or i.shape.element.is_complex
        elif i.opcode in (Opcode.ADD, Opcode.SUBTRACT):
            is_rounded = is_rounded or any(o in product for o in i.operands)
        elif any(o in product for o in i.operands):
            product.add(i)
        if is_rounded:
            rounded.add(i)
    return found


def computed_again(
    needed: Sequence[HloInstruction], leaves: Iterable[HloInstruction]
) -> tuple[HloComputation, list[HloInstruction]]:
    """A computation of the values `needed`, and the `leaves` that it takes."""
    stop = set(leaves)
    taken: list[HloInstruction] = []
    copies: dict[HloInstruction, HloInstruction] = {}
    for value in needed:
        stack = [value]
        while stack:
            top = stack[-1]
            missing = [] if top in stop else [o for o in top.operands if o not in copies]
            if missing:
                stack += missing
                continue
            stack.pop()
            if top in copies:
                continue
            if top in stop:
                copies[top] = make_parameter(len(taken), top.shape)
                taken.append(top)
            else:
                copies[top] = top.with_operands(tuple([copies[o] for o in top.operands]))
    parameters = [copies[value] for value in taken]
    return make_computation("again", make_tuple([copies[v] for v in needed]), parameters), taken


# --- the choice


def values_to_keep(needed: Iterable[HloInstruction], keep: Cost, again: Cost) -> Set[HloInstruction]:
    """The values from which all that are `needed` can be computed, with the least sum of costs; the same order each
    time, or equal programs would have different texts.

    `keep`: the cost of having a value. `again`: the cost of computing it from its operands; infinite where it must not
    be.
    """
    needed = tuple(dict.fromkeys(needed))
    costs: dict[HloInstruction, tuple[float, float]] = {}
    stack = list(needed)
    while stack:
        value = stack.pop()
        if value in costs:
            continue
        kept = keep(value)
        repeated = again(value) if kept > 0 else INFINITE
        costs[value] = kept, repeated
        if repeated < INFINITE:
            stack += value.operands
    # A value has a node where it is computed and one where it is used. The edge from the first to the second is cut if
    # the value is kept; one from the source to the first, if it is computed again.
    computed = {value: 2 + 2 * k for k, value in enumerate(costs)}
    graph = _Graph(2 + 2 * len(costs))
    for value, (kept, repeated) in costs.items():
        node = computed[value]
        graph.add(_SOURCE, node, repeated)
        graph.add(node, node + 1, kept)
        if repeated < INFINITE:
            for operand in dict.fromkeys(value.operands):
                graph.add(computed[operand] + 1, node, INFINITE)
    for value in needed:
        graph.add(computed[value] + 1, _SINK, INFINITE)
    below = graph.cut()
    return dict.fromkeys([value for value, node in computed.items() if below[node + 1] and not below[node]]).keys()


_SOURCE, _SINK = 0, 1


class _Graph:
    """A flow network. Edges e and e ^ 1 are an edge and its reverse."""

    def __init__(self, nodes: int) -> None:
        self._edges: list[list[int]] = [[] for _ in range(nodes)]
        self._target: list[int] = []
        self._room: list[float] = []

    def add(self, start: int, end: int, capacity: float) -> None:
        self._edges[start].append(len(self._target))
        self._edges[end].append(len(self._target) + 1)
        self._target += (end, start)
        self._room += (capacity, 0.0)

    def cut(self) -> list[bool]:
        """For each node whether it is below a minimum cut: as few nodes as possible. Dinic's algorithm."""
        while True:
            level = self._levels()
            if level[_SOURCE] < 0:
                return [found >= 0 for found in level]
            following = [0] * len(self._edges)
            while self._push(level, following):
                pass

    def _levels(self) -> list[int]:
        """The distance of each node from the sink along edges with room; -1 where there is no way."""
        level = [-1] * len(self._edges)
        level[_SINK] = 0
        frontier = [_SINK]
        for node in frontier:
            for edge in self._edges[node]:
                before = self._target[edge]
                if level[before] < 0 and self._room[edge ^ 1] > 0:
                    level[before] = level[node] + 1
                    frontier.append(before)
        return level

    def _push(self, level: list[int], following: list[int]) -> bool:
        """Send flow along one more shortest way; False if there is none."""
        way: list[int] = []
        node = _SOURCE
        while node != _SINK:
            edges = self._edges[node]
            while following[node] < len(edges):
                edge = edges[following[node]]
                end = self._target[edge]
                if self._room[edge] > 0 and level[end] == level[node] - 1:
                    way.append(edge)
                    node = end
                    break
                following[node] += 1
            else:
                if not way:
                    return False
                node = self._target[way.pop() ^ 1]
                following[node] += 1
        amount = min([self._room[edge] for edge in way])
        assert amount < INFINITE, "a value that is needed can neither be kept nor computed again"
        for edge in way:
            self._room[edge] -= amount
            self._room[edge ^ 1] += amount
        return True
