"""Reducers: combining an accumulator with one more element, ``acc0 = reduce_add(acc0, x[i])``."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.analyses.arg_reducers import arg_reducer, last_index
from ...hlo.element_type import ElementType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_opcode
from ..loops.expressions import Binary, Expr, Unary, call
from .element import ELEMENT, ElementEmitter
from .sizes import Index

_REORDERED: dict[Opcode, str] = {
    Opcode.ADD: "reduce_add",
    Opcode.MULTIPLY: "reduce_mul",
    Opcode.MAXIMUM: "reduce_max",
    Opcode.MINIMUM: "reduce_min",
}
"""Float reductions in any order: the dialect's versions may be reassociated and so vectorise."""

_SINGLE = (ElementType.F32, ElementType.F64)


def combined(
    e: ElementEmitter, reduce: HloInstruction, accumulators: Sequence[Expr], elements: Sequence[Expr]
) -> list[Expr]:
    """The accumulators combined with `elements` (one for each operand)."""
    reducer = reduce.attributes.to_apply
    opcode = reducer_opcode(reducer)
    if opcode in _REORDERED and reduce.operands[0].shape.element in _SINGLE:
        return [call(_REORDERED[opcode], accumulators[0], elements[0])]
    if _counts_up(reduce):
        return _better(e, reduce, accumulators, elements)
    return applied(e, reducer, [*accumulators, *elements])


def _counts_up(reduce: HloInstruction) -> bool:
    """True for an argmax or argmin with indices that grow from zero or more on, and an index of zero to begin with:
    then each element has a greater index than those combined before it, or is the same pair."""
    if reduce.opcode is not Opcode.REDUCE or len(reduce.operands) != 4 or len(reduce.attributes.dimensions) != 1:
        return False
    if arg_reducer(reduce.attributes.to_apply) is None:
        return False
    first = reduce.operands[3]
    if first.opcode is not Opcode.CONSTANT or first.attributes.literal.array.any():
        return False
    return last_index(reduce.operands[1], reduce.attributes.dimensions[0]) is not None


def _better(
    e: ElementEmitter, reduce: HloInstruction, accumulators: Sequence[Expr], elements: Sequence[Expr]
) -> list[Expr]:
    """The element, if it is better than the accumulator, with its index; a NaN is, unless there was one before::

        better0 = (acc0 == acc0) & (not x[i] <= acc0)
        acc0, acc1 = select(better0, x[i], acc0), select(better0, int32(i), acc1)

    The reducer itself also compares the indices, and asks which of two NaN is first.
    """
    is_maximum = arg_reducer(reduce.attributes.to_apply) is Opcode.MAXIMUM
    best, best_index = (x.at(e.writer.depth) for x in accumulators)  # this step's, not those from before the loop
    value, index = (x if x.is_simple else e.writer.let("v", x) for x in elements)
    if reduce.operands[0].shape.element.is_floating:
        best = best if best.is_simple else e.writer.let("acc", best)
        test: Expr = Binary("&", best.eq(best), Unary("not", Binary("<=" if is_maximum else ">=", value, best)))
    elif reduce.operands[0].shape.element is ElementType.PRED:
        test = Binary("&", *((value, Unary("not", best)) if is_maximum else (best, Unary("not", value))))
    else:
        test = Binary(">" if is_maximum else "<", value, best)
    better = e.writer.let("better", test)
    return [call("select", better, value, best), call("select", better, index, best_index)]


_WORDS = {Opcode.ADD: "sum", Opcode.MULTIPLY: "product"}


def reducer_word(reducer: HloComputation) -> str:
    """A reducer in a word, for people: ``sum``, ``maximum``, ``maximum and its index``."""
    opcode = reducer_opcode(reducer)
    if opcode is not None:
        return _WORDS.get(opcode, opcode.name.lower())
    best = arg_reducer(reducer)
    return f"{best.name.lower()} and its index" if best else "reduction"


_KEYS: dict[Opcode, tuple[str, str]] = {
    Opcode.MAXIMUM: ("maximum_key", "maximum"),
    Opcode.MINIMUM: ("minimum_key", "minimum"),
}


def key_functions(reduce: HloInstruction) -> tuple[str, str] | None:
    """For a largest or smallest float: what gives a number's key, an integer, and what combines keys.

    The maximum of floats is five instructions, each of which waits for the one before, since NaN and the signs of zeros
    matter; that of integers is one. A key takes as many, but does not wait for the accumulator.
    """
    opcode = reducer_opcode(reduce.attributes.to_apply)
    return _KEYS.get(opcode) if opcode and reduce.operands[0].shape.element in _SINGLE else None


def folded(
    e: ElementEmitter, reduce: HloInstruction, accumulators: Sequence[Expr], elements: Sequence[Sequence[Expr]]
) -> list[Expr]:
    """The accumulators combined with several elements (for each, one value for each operand). If the order does not
    matter, elements are combined in pairs, so that the accumulator waits for one step only::

        reduce_max(acc, reduce_max(reduce_max(a, b), reduce_max(c, d)))
    """
    opcode = reducer_opcode(reduce.attributes.to_apply)
    if opcode not in _REORDERED or reduce.operands[0].shape.element not in _SINGLE:
        values = list(accumulators)
        for each in elements:
            values = combined(e, reduce, values, each)
            if len(elements) > 1:
                values = [value if value.is_simple else e.writer.let("acc", value) for value in values]
        return values
    left = [each[0] for each in elements]
    while len(left) > 1:
        pairs = [call(_REORDERED[opcode], a, b) for a, b in zip(left[::2], left[1::2], strict=False)]
        left = [*pairs, left[-1]] if len(left) % 2 else pairs
    return combined(e, reduce, accumulators, left)


def applied(e: ElementEmitter, computation: HloComputation, arguments: Sequence[Expr]) -> list[Expr]:
    """A scalar computation written out on `arguments`, in the current scope.

    UnsupportedError if it holds an op that is no expression, such as a matrix product on arrays made of its scalars.
    """
    for instruction in computation.instructions:
        if instruction.opcode is not Opcode.TUPLE and instruction.opcode not in ELEMENT:
            raise UnsupportedError(
                f"computation {computation.name} is applied to scalars inside of a kernel, which cannot hold its "
                f"{instruction.opcode.value} ({instruction.name}); the backend 'evaluator' runs it"
            )
    e.add_uses(computation)
    roots = computation.roots
    with e.writer.forgetting():
        for parameter, argument in zip(computation.parameters, arguments, strict=True):
            if len(computation.users[parameter]) > 1 and not argument.is_simple:
                argument = e.writer.let("v", argument)
            e.writer.know(parameter, argument.at(e.writer.depth))
        return [e.value(r, ()) for r in roots]


@ELEMENT.register(Opcode.REDUCE, Opcode.GET_TUPLE_ELEMENT)
def _not_at_hand(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    """The loop nest sets a reduction's result; this looks it up and never computes it."""
    raise UnsupportedError(f"{instruction.opcode.value} at an index where its loop nest has not left it")
