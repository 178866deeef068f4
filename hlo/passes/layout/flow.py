"""Which orders the arrays of a module may have: the module as a problem for `problem.py`.

Every array of two dimensions or more is a variable. Instructions that only pass arrays on (tuples, the parameters and
results of loops, branches and calls) share the variables of these arrays. The caller's layouts are fixed, and so are
the layouts of custom calls and of ops that accept only row-major arrays; `order_rules.py` lists the requirements of
other ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ...analyses.trip_count import induction_variable
from ...ir import HloComputation, HloInstruction, HloModule
from ...layout import Layout
from ...opcode import Opcode
from ...shape import Shape
from ...support.disjoint_sets import DisjointSets
from ...support.permutations import inverse
from .layout_erasure import keeps_layouts
from .order_rules import (
    ASCENDING,
    ROW_MAJOR,
    SAME,
    STRUCTURE,
    OrderRule,
    anything,
    first_result,
    is_free_to_remake,
    rule_of,
)
from .orders import Order, completed, identity, in_order, order_of
from .problem import Edge, Preference, Problem

Preferences = Callable[[HloInstruction], "tuple[int, ...] | None"]
"""preferences(instruction): the minor_to_major that a backend wants for its result, an array; None: no preference."""

IsMatrix = Callable[[Shape, Sequence[int], Sequence[int]], bool]
"""is_matrix(shape, batch, contracting): can the backend multiply such an operand without transposing it?"""

LOOP_FACTOR = 8
"""A copy in a loop counts as this many copies outside."""

LEAST_COLUMN = 16
"""Elements of a column that a loop visits: those of a shorter one are few lines of a cache in any order."""

LEAST_TURNED = 1 << 16
"""Bytes of a transposed array from which on the layouts of a program are worth a search."""

_Leaves = list[int | None]
"""A variable for each leaf of a shape; None for arrays of fewer than two dimensions."""


class Flow:
    """The problem of a module, and the instructions that its solution belongs to."""

    def __init__(
        self, module: HloModule, is_matrix: IsMatrix | None = None, preferences: Preferences | None = None
    ) -> None:
        self.module = module
        self.is_matrix = is_matrix
        self.preferences = preferences
        self.problem: Problem = Problem()
        self.leaves: dict[HloInstruction, _Leaves] = {}
        self.computations, self._depth = _reached(module)
        self._trips = _trip_counts(self.computations)
        self._same: DisjointSets[_Port] = DisjointSets()
        """Parameters and results of computations through which the same values flow."""
        self._boundary: dict[_Port, _Leaves] = {}
        self._unite_boundaries()
        self._fix_entry()
        for computation in self.computations:
            self._add(computation)
        self.orders: list[Order] = self.problem.solve()

    def of(self, instruction: HloInstruction) -> list[Order]:
        """The order chosen for each leaf of an instruction's result."""
        return self._orders(self.leaves[instruction], instruction.shape)

    def parameter(self, computation: HloComputation, number: int) -> list[Order]:
        """The order chosen for each leaf of a parameter, in which the callers must pass it."""
        shape = computation.parameters[number].shape
        return self._orders(self._port(computation, number, shape), shape)

    def result(self, computation: HloComputation) -> list[Order]:
        """The order chosen for each leaf of a computation's result."""
        shape = computation.root.shape
        return self._orders(self._port(computation, None, shape), shape)

    def _orders(self, leaves: _Leaves, shape: Shape) -> list[Order]:
        return [
            identity(leaf.rank) if v is None else self.orders[v]
            for v, leaf in zip(leaves, shape.leaves(), strict=True)
        ]

    # boundaries of computations

    def _unite_boundaries(self) -> None:
        for computation in self.computations:
            for i in computation.instructions:
                if i.opcode is Opcode.WHILE:
                    condition, body = i.attributes.condition, i.attributes.body
                    self._same.unite((body, 0), (condition, 0))
                    self._same.unite((body, 0), (body, None))
                elif i.opcode is Opcode.CONDITIONAL:
                    first, *others = i.attributes.branch_computations
                    for other in others:
                        self._same.unite((first, None), (other, None))

    def _port(self, computation: HloComputation, number: int | None, shape: Shape) -> _Leaves:
        """The variables of a parameter, or (None) of the result."""
        port = self._same.find((computation, number))
        found = self._boundary.get(port)
        if found is None:
            found = self._boundary[port] = [self._fresh(leaf) for leaf in shape.leaves()]
        return found

    def _fresh(self, leaf: Shape, fixed: Order | None = None) -> int | None:
        return None if leaf.rank < 2 else self.problem.variable(leaf.dimensions, fixed)

    def _fix_entry(self) -> None:
        entry = self.module.entry
        given: Iterator[Layout | None] = iter(self.module.entry_parameter_layouts)
        for number, parameter in enumerate(entry.parameters):
            self._boundary[self._same.find((entry, number))] = self._fixed(parameter.shape, given)
        wanted: Iterator[Layout | None] = iter(self.module.entry_result_layouts)
        self._boundary[self._same.find((entry, None))] = self._fixed(entry.root.shape, wanted)

    def _fixed(self, shape: Shape, layouts: Iterator[Layout | None]) -> _Leaves:
        return [self._fresh(leaf, _stated(next(layouts, None), leaf)) for leaf in shape.leaves()]

    # instructions

    def _add(self, computation: HloComputation) -> None:
        for i in computation.instructions:
            self.leaves[i] = self._variables(computation, i)
        root = computation.root
        self._flow(computation, root, self._port(computation, None, root.shape))

    def _variables(self, computation: HloComputation, i: HloInstruction) -> _Leaves:
        """The variables of the result, after adding the edges that lead to it."""
        match i.opcode:
            case Opcode.PARAMETER:
                return self._port(computation, i.attributes.number, i.shape)
            case Opcode.TUPLE:
                return [v for o in i.operands for v in self.leaves[o]]
            case Opcode.OPT_BARRIER:
                return self.leaves[i.operands[0]]
            case Opcode.GET_TUPLE_ELEMENT:
                shapes = i.operands[0].shape.elements
                start = sum(_leaf_count(s) for s in shapes[: i.attributes.index])
                return self.leaves[i.operands[0]][start : start + _leaf_count(i.shape)]
            case Opcode.WHILE:
                body = i.attributes.body
                self._flow(computation, i.operands[0], self._port(body, 0, i.shape))
                return self._port(body, None, i.shape)
            case Opcode.CONDITIONAL:
                for branch, operand in zip(i.attributes.branch_computations, i.operands[1:], strict=True):
                    self._flow(computation, operand, self._port(branch, 0, operand.shape))
                return self._port(i.attributes.branch_computations[0], None, i.shape)
            case Opcode.CALL:
                for number, operand in enumerate(i.operands):
                    self._flow(computation, operand, self._port(i.attributes.to_apply, number, operand.shape))
                return self._port(i.attributes.to_apply, None, i.shape)
            case Opcode.CUSTOM_CALL if keeps_layouts(i):
                for operand, shape in zip(i.operands, i.attributes.operand_layout_constraints, strict=True):
                    self._flow(computation, operand, [self._fresh(leaf, order_of(leaf)) for leaf in shape.leaves()])
                return [self._fresh(leaf, order_of(leaf)) for leaf in i.shape.leaves()]
            case Opcode.BITCAST:  # its meaning depends on its layouts
                (operand,) = i.operands
                self._flow(computation, operand, [self._fresh(operand.shape, order_of(operand.shape))])
                return [self._fresh(i.shape, order_of(i.shape))]
            case _:
                rule = rule_of(i.opcode)
                return self._rows(computation, i) if rule is ROW_MAJOR else self._ruled(computation, i, rule)

    def _flow(self, computation: HloComputation, value: HloInstruction, targets: _Leaves) -> None:
        """Make `value` flow into the variables `targets`, leaf by leaf."""
        for source, target, leaf in zip(self.leaves[value], targets, value.shape.leaves(), strict=True):
            if source is not None and target is not None and source != target and not is_free_to_remake(value):
                cost = self._cost(computation, value, leaf)
                same = identity(leaf.rank)
                self.problem.edges.append(Edge(source, target, cost, lambda o: o, lambda o: o, same))

    def _rows(self, computation: HloComputation, i: HloInstruction) -> _Leaves:
        for operand in i.operands:
            fixed = [self._fresh(leaf, identity(leaf.rank)) for leaf in operand.shape.leaves()]
            self._flow(computation, operand, fixed)
        return [self._fresh(leaf, identity(leaf.rank)) for leaf in i.shape.leaves()]

    def _ruled(self, computation: HloComputation, i: HloInstruction, rule: OrderRule) -> _Leaves:
        result = first_result(i)
        target = None
        if result.rank >= 2:
            wish = self.preferences(i) if self.preferences is not None and i.shape.is_array else None
            fixed = None if wish is None or not rule.allows(i, wish[::-1]) else wish[::-1]
            allows = None if rule.allows is anything else partial(rule.allows, i)
            target = self.problem.variable(result.dimensions, fixed, allows)
        for k, operand in enumerate(i.operands):
            source = self.leaves[operand][0] if operand.shape.is_array else None
            if source is not None:
                self._read(i, k, rule, source, target, self._cost(computation, operand, operand.shape))
        if i.opcode is Opcode.DOT and self.is_matrix is not None:
            self._prefer_matrices(computation, i, self.is_matrix)
        if self._depth[computation]:
            self._prefer_runs(computation, i)
        return [target] * _leaf_count(i.shape)

    def _read(
        self, i: HloInstruction, k: int, rule: OrderRule, source: int, target: int | None, cost: int
    ) -> None:
        operand = i.operands[k].shape
        if target is None:
            wanted = rule.needs(i, k, identity(first_result(i).rank))
            if sum(operand.dimensions[d] != 1 for d in wanted) < 2:
                return
            fixed = completed(wanted, identity(operand.rank))
            target = self.problem.variable(operand.dimensions, fixed)
            self.problem.edges.append(Edge(source, target, cost, lambda o: o, lambda o: o, identity(operand.rank)))
            return
        mapping = None
        if i.opcode is Opcode.TRANSPOSE:
            mapping = i.attributes.dimensions
        elif rule is SAME and operand.rank == first_result(i).rank:
            mapping = identity(operand.rank)
        self.problem.edges.append(
            Edge(source, target, cost, partial(rule.needs, i, k), partial(rule.gives, i, k), mapping)
        )

    def _prefer_matrices(self, computation: HloComputation, i: HloInstruction, is_matrix: IsMatrix) -> None:
        a = i.attributes
        sides = ((a.lhs_batch_dims, a.lhs_contracting_dims), (a.rhs_batch_dims, a.rhs_contracting_dims))
        for operand, (batch, contracting) in zip(i.operands, sides, strict=True):
            source = self.leaves[operand][0]
            if source is not None:
                likes = partial(_is_matrix_in, is_matrix, operand.shape, batch, contracting)
                cost = self._cost(computation, operand, operand.shape)
                self.problem.preferences.append(Preference(source, cost, likes))

    def _prefer_runs(self, computation: HloComputation, i: HloInstruction) -> None:
        """Neighbours in a slice that moves along an array are neighbours in memory; two elements that are not take as
        long as one that is copied. A loop visits as many slices as it has iterations, if that is known, and otherwise
        all of the array."""
        sizes = moving_sizes(i)
        source = self.leaves[i.operands[0]][0] if sizes else None
        if sizes is None or source is None or max(sizes) < LEAST_COLUMN:
            return
        array = i.operands[0].shape
        parts = [n // size for n, size in zip(array.dimensions, sizes, strict=True) if size == 1]
        visited = min(self._trips.get(computation, math.inf), math.prod(parts))
        nbytes = math.prod(sizes) * visited * array.element.byte_width
        cost = nbytes * LOOP_FACTOR ** (self._depth[computation] - 1) // 2
        order = tuple(sorted(range(array.rank), key=lambda d: sizes[d] > 1))
        likes = partial(_has_runs, array.dimensions, sizes)
        self.problem.preferences.append(Preference(source, int(cost), likes, order))

    def _cost(self, computation: HloComputation, value: HloInstruction, leaf: Shape) -> int:
        if math.prod(leaf.dimensions) == max(leaf.dimensions, default=1):
            return 0  # the same bytes in every order
        if is_free_to_remake(value):
            return 1  # made again, but only once
        times: int = LOOP_FACTOR ** min(self._depth[computation], 3)
        return leaf.byte_size * times


def _is_matrix_in(
    is_matrix: IsMatrix, shape: Shape, batch: Sequence[int], contracting: Sequence[int], order: Order
) -> bool:
    return is_matrix(in_order(shape, order), batch, contracting)


def moving_sizes(i: HloInstruction) -> Sequence[int] | None:
    """The sizes of a slice that is read or written at an index that is not constant; None for other instructions."""
    if i.opcode is Opcode.DYNAMIC_SLICE:
        starts, sizes = i.operands[1:], i.shape.dimensions
    elif i.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        starts, sizes = i.operands[2:], i.operands[1].shape.dimensions
    else:
        return None
    return sizes if any(start.opcode is not Opcode.CONSTANT for start in starts) else None


def writes_columns(module: HloModule) -> bool:
    """True if a loop writes slices along major dimensions, whose elements are not neighbours in a row-major array."""
    computations, depth = _reached(module)
    for computation in computations:
        if not depth[computation] or Opcode.DYNAMIC_UPDATE_SLICE not in computation.opcodes:
            continue
        for i in computation.instructions:
            if i.opcode is Opcode.DYNAMIC_UPDATE_SLICE and (sizes := moving_sizes(i)):
                array = i.shape.dimensions
                if max(sizes) >= LEAST_COLUMN and not _has_runs(array, sizes, identity(len(array))):
                    return True
    return False


def turns_back(module: HloModule) -> bool:
    """True if a transpose undoes an earlier one, and the operations between them treat all dimensions alike: a user has
    moved a dimension to the front, computed along it, and moved it back. No size is asked for in other programs."""
    for computation in _reached(module)[0]:
        if Opcode.TRANSPOSE not in computation.opcodes:
            continue
        before: dict[HloInstruction, frozenset[HloInstruction]] = {}  # the transposes that lead to an instruction
        for i in computation.instructions:
            if i.opcode is Opcode.TRANSPOSE:
                (x,), moved = i.operands, i.attributes.dimensions
                undone = [t for t in before.get(x, ()) if t.attributes.dimensions == inverse(moved)]
                if any(t.shape.byte_size >= LEAST_TURNED for t in undone):
                    return True
                before[i] = frozenset((i,))
            elif before and i.opcode not in STRUCTURE and rule_of(i.opcode) in (SAME, ASCENDING):
                found = [before[x] for x in i.operands if x in before]
                if found:
                    before[i] = frozenset().union(*found)
    return False


def _has_runs(array: Sequence[int], sizes: Sequence[int], order: Order) -> bool:
    """True if elements of the slice are neighbours in memory."""
    return next((sizes[d] > 1 for d in reversed(order) if array[d] > 1), True)


def _trip_counts(computations: Sequence[HloComputation]) -> dict[HloComputation, int]:
    """How often bodies of loops run, where their counters are known."""
    loops = [i for c in computations for i in c.instructions if i.opcode is Opcode.WHILE]
    return {i.attributes.body: found.trip_count for i in loops if (found := induction_variable(i))}


def _stated(layout: Layout | None, leaf: Shape) -> Order:
    return (layout or leaf.array_layout).minor_to_major[::-1]


def _leaf_count(shape: Shape) -> int:
    return 1 if shape.tuple_shapes is None else sum(map(_leaf_count, shape.tuple_shapes))


_Port = tuple[HloComputation, int | None]


def _reached(module: HloModule) -> tuple[list[HloComputation], dict[HloComputation, int]]:
    """The entry and the computations that it reaches through loops, branches and calls, callees first; with the number
    of loops around each."""
    depth = {module.entry: 0}
    for computation in reversed(module.computations):  # callers first
        if computation in depth:
            for i in computation.instructions:
                if i.opcode in (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL):
                    inside = depth[computation] + (i.opcode is Opcode.WHILE)
                    for called in i.called_computations():
                        depth[called] = max(depth.get(called, 0), inside)
    return [c for c in module.computations if c in depth], depth
