"""Dependences of traced index maps and kernels: affine forms of indices, and parameters whose values matter.

`grids.py` needs both to decide which points of a grid can run as a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from ...hlo.evaluator import evaluate_op
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """An integer as a function of parameters: the sum of `constant` and of coefficients times parameters, or, where
    `terms` is None, any function of the parameters in `depends`."""

    terms: Mapping[int, int] | None
    constant: int
    depends: frozenset[int]

    def scaled(self, factor: int) -> Form:
        """The form times a number."""
        if self.terms is None or not factor:
            return self if factor else constant_form(0)
        return _affine({p: c * factor for p, c in self.terms.items()}, self.constant * factor)

    def is_multiple_of(self, parameter: int, factor: int) -> bool:
        """Whether it is `factor` times the parameter."""
        return self.terms == {parameter: factor} and not self.constant

    @property
    def is_zero(self) -> bool:
        return self.terms == {} and not self.constant

    @property
    def is_natural(self) -> bool:
        """Whether it is never negative, if no parameter is negative."""
        return self.terms is not None and self.constant >= 0 and all(c >= 0 for c in self.terms.values())


def _affine(terms: Mapping[int, int], constant: int) -> Form:
    kept = {p: c for p, c in terms.items() if c}
    return Form(kept, constant, frozenset(kept))


def constant_form(number: int) -> Form:
    """A number."""
    return _affine({}, number)


_SAME = frozenset({Opcode.CONVERT, Opcode.COPY, Opcode.RESHAPE, Opcode.BITCAST})


def forms_of(computation: HloComputation, count: int) -> list[Form]:
    """The results of a computation with a tuple as its root, as functions of its first `count` parameters, which are
    integers that are never negative."""
    found: dict[HloInstruction, Form] = {}
    for instruction in computation.instructions:
        found[instruction] = _form(instruction, [found[o] for o in instruction.operands], count)
    return [found[o] for o in computation.root.operands]


def _form(i: HloInstruction, operands: Sequence[Form], count: int) -> Form:
    depends = frozenset[int]().union(*[o.depends for o in operands])
    any_function = Form(None, 0, depends)
    if i.opcode is Opcode.PARAMETER:
        return _affine({i.attributes.number: 1}, 0) if i.attributes.number < count else any_function
    if not _is_wide_integer(i.shape):
        return any_function
    if i.opcode is Opcode.CONSTANT:
        return constant_form(int(i.attributes.literal.array.astype(np.int32)))
    if any(o.terms is None for o in operands) or not operands:
        return any_function
    first, last = operands[0], operands[-1]
    if i.opcode in _SAME and _is_wide_integer(i.operands[0].shape):
        return first
    if i.opcode is Opcode.NEGATE:
        return first.scaled(-1)
    if i.opcode in (Opcode.ADD, Opcode.SUBTRACT):
        other = last if i.opcode is Opcode.ADD else last.scaled(-1)
        one, two = first.terms or {}, other.terms or {}
        return _affine({p: one.get(p, 0) + two.get(p, 0) for p in (*one, *two)}, first.constant + other.constant)
    if i.opcode is Opcode.MULTIPLY:
        for x, y in ((first, last), (last, first)):
            if not x.terms:
                return y.scaled(x.constant)
    return any_function


def _is_wide_integer(shape: Shape) -> bool:
    """Whether it is an integer of at least 32 bits: its sums and products, converted to int32, are the same as in
    int32. Fewer bits overflow earlier."""
    return shape.is_array and not shape.dimensions and (d := shape.element.dtype).kind in "iu" and d.itemsize >= 4


# ---- control flow that depends on data


def diverges(computation: HloComputation, batched: Set[int]) -> bool:
    """Whether a loop or a branch depends on one of these parameters: then the elements of a batch of them would go
    different ways. Calls, loops and branches are followed to any depth."""
    try:
        _batched_results(computation, batched)
    except _Diverges:
        return True
    return False


class _Diverges(Exception):
    """The predicate of a loop or of a branch differs between the elements of a batch."""


def _batched_results(computation: HloComputation, batched: Set[int]) -> set[int]:
    """Which results differ between the elements of a batch, if these parameters do. Parameters and results are counted
    as elements, if they are in one tuple."""
    parameters = computation.parameters
    takes_tuple = len(parameters) == 1 and parameters[0].shape.is_tuple
    marks: dict[HloInstruction, set[int]] = {}
    """For each instruction, the elements of its result that differ; {0} for an array that does."""
    for i in computation.instructions:
        if i.opcode is Opcode.PARAMETER:
            marks[i] = set(batched) if takes_tuple else {0} if i.attributes.number in batched else set()
        elif i.opcode is Opcode.TUPLE:
            marks[i] = {k for k, o in enumerate(i.operands) if marks[o]}
        elif i.opcode is Opcode.GET_TUPLE_ELEMENT:
            marks[i] = {0} if i.attributes.index in marks[i.operands[0]] else set()
        elif i.opcode is Opcode.CALL:
            marks[i] = _batched_results(i.attributes.to_apply, {k for k, o in enumerate(i.operands) if marks[o]})
        elif i.opcode is Opcode.CONDITIONAL:
            if marks[i.operands[0]]:
                raise _Diverges
            branches = zip(i.attributes.branch_computations, i.operands[1:], strict=True)
            marks[i] = set().union(*[_batched_results(b, marks[o]) for b, o in branches])
        elif i.opcode is Opcode.WHILE:
            marks[i] = _batched_state(i, marks[i.operands[0]])
        elif any(marks[o] for o in i.operands):
            marks[i] = set(range(len(i.shape.elements))) if i.shape.is_tuple else {0}
        else:
            marks[i] = set()
    return marks[computation.root]


def _batched_state(loop: HloInstruction, start: set[int]) -> set[int]:
    state, before = start, None
    while state != before:
        before = state
        state = state | _batched_results(loop.attributes.body, state)
    if _batched_results(loop.attributes.condition, state):
        raise _Diverges
    return state


# ---- which parameters matter, when some are known

_MOST_ELEMENTS = 1
_EVALUATED = frozenset(
    {
        *(Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.DIVIDE, Opcode.REMAINDER, Opcode.COMPARE, Opcode.AND),
        *(Opcode.OR, Opcode.NOT, Opcode.XOR, Opcode.CONVERT, Opcode.SELECT, Opcode.CLAMP, Opcode.MINIMUM),
        *(Opcode.MAXIMUM, Opcode.NEGATE, Opcode.SIGN, Opcode.ABS, Opcode.RESHAPE, Opcode.COPY),
    }
)


class Live:
    """The parameters on which results depend, given the values of some scalar ones.

    A branch whose predicate is then known is followed alone: `pl.when(program_id(2) == 0)`.
    `known`: values of parameters by number; of a computation that takes one tuple, of its elements.
    """

    def __init__(self, computation: HloComputation, known: Mapping[int, Any]) -> None:
        self.computation = computation
        parameters = computation.parameters
        self.takes_tuple: bool = len(parameters) == 1 and parameters[0].shape.is_tuple
        self.known = known
        self.values: dict[HloInstruction, Any] = {}
        for i in computation.instructions:
            self._evaluate(i)

    def _evaluate(self, i: HloInstruction) -> None:
        if not i.shape.is_array or i.shape.num_elements > _MOST_ELEMENTS:
            return
        if i.opcode is Opcode.PARAMETER:
            if i.attributes.number in self.known and not self.takes_tuple:
                self.values[i] = np.asarray(self.known[i.attributes.number], i.shape.element.dtype)
        elif i.opcode is Opcode.CONSTANT:
            self.values[i] = i.attributes.literal.array
        elif i.opcode is Opcode.GET_TUPLE_ELEMENT:
            value = self._element(i.operands[0], i.attributes.index)
            if value is not None:
                self.values[i] = np.asarray(value, i.shape.element.dtype)
        elif i.opcode in _EVALUATED and all(o in self.values for o in i.operands):
            operands = [self.values[o] for o in i.operands]
            self.values[i] = np.asarray(evaluate_op(i.opcode, operands, i.attributes, i.shape))

    def _element(self, of: HloInstruction, index: int) -> Any:
        if of.opcode is Opcode.PARAMETER:
            return self.known.get(index)
        return self.values.get(of.operands[index]) if of.opcode is Opcode.TUPLE else None

    def of_results(self, elements: Sequence[int]) -> frozenset[int]:
        """The numbers of the parameters (of the elements of a tuple) on which these results depend."""
        found: set[int] = set()
        seen: set[tuple[HloInstruction, int | None]] = set()
        waiting: list[tuple[HloInstruction, int | None]] = [(self.computation.root, k) for k in elements]
        while waiting:
            i, element = entry = waiting.pop()
            if entry in seen or i in self.values:
                continue
            seen.add(entry)
            if i.opcode is Opcode.PARAMETER:
                if self.takes_tuple:
                    found.update(range(len(i.shape.elements)) if element is None else (element,))
                else:
                    found.add(i.attributes.number)
            elif i.opcode is Opcode.GET_TUPLE_ELEMENT:
                waiting.append((i.operands[0], i.attributes.index))
            elif i.opcode is Opcode.TUPLE and element is not None:
                waiting.append((i.operands[element], None))
            else:
                waiting += self._through(i, element)
        return frozenset(found)

    def _through(self, i: HloInstruction, element: int | None) -> list[tuple[HloInstruction, int | None]]:
        elements = list(range(len(i.shape.elements))) if element is None and i.shape.is_tuple else [element or 0]
        if i.opcode is Opcode.CONDITIONAL and i.operands[0] in self.values:
            branches = i.attributes.branch_computations
            index = self.values[i.operands[0]]
            taken = (0 if index else 1) if index.dtype == np.bool_ else int(index)
            taken = taken if 0 <= taken < len(branches) else len(branches) - 1
            operand = i.operands[1 + taken]
            known = self._known_elements(operand)
            return [(operand, k) for k in Live(branches[taken], known).of_results(elements)]
        if i.opcode is Opcode.CALL and i.shape.is_tuple:
            known = {k: self.values[o] for k, o in enumerate(i.operands) if o in self.values}
            return [(i.operands[k], None) for k in Live(i.attributes.to_apply, known).of_results(elements)]
        return [(o, None) for o in i.operands]

    def _known_elements(self, operand: HloInstruction) -> dict[int, Any]:
        if operand.opcode is not Opcode.TUPLE:
            return {}
        return {k: self.values[o] for k, o in enumerate(operand.operands) if o in self.values}
