"""Does HLO say what a program computes? The order of a reduction is open; so is a sort without an order.

Mutated text has reducers that subtract and comparators that are true both ways. Such programs must be read and run, but
what they give is not compared. Whether a computation is associative and commutative, or an order, is tried on numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hloom.hlo.comparing import random_array
from hloom.hlo.errors import HloError
from hloom.hlo.evaluator import evaluate_computation
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.support.value_tree import leaves_of

_REDUCES = frozenset(
    {Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER, Opcode.SELECT_AND_SCATTER}
)
_TRIES = 24
_NEAR = 1e-2


def is_definite(module: HloModule, inputs: Sequence[Any] = ()) -> bool:
    """False if the result of some reduction or sort depends on an unspecified order: of numbers, and of NaN if some
    input is not finite."""
    is_finite = all(np.isfinite(x).all() for x in map(np.asarray, inputs) if x.dtype.kind in "fcV")
    return all(_is_definite(instruction, not is_finite) for instruction in module.instructions())


def _is_definite(instruction: HloInstruction, with_nan: bool) -> bool:
    attributes = instruction.attributes
    try:
        if instruction.opcode in _REDUCES:
            reducer = getattr(attributes, "to_apply", None) or attributes.scatter
            select = getattr(attributes, "select", None)
            return _is_associative(reducer, with_nan) and (select is None or _chooses(select))
        if instruction.opcode is Opcode.SORT:
            return _is_order(attributes.to_apply, with_nan)
    except (HloError, AttributeError):
        return True
    return True


def _scalars(computation: HloComputation, rng: np.random.Generator, count: int) -> list[list[Any]]:
    """`count` values for the first half of the parameters."""
    half = computation.parameters[: len(computation.parameters) // 2]
    return [[random_array(p.shape, rng) for p in half] for _ in range(count)]


def _call(computation: HloComputation, *values: Sequence[Any]) -> list[Any]:
    return list(leaves_of(evaluate_computation(computation, [x for value in values for x in value])))


def _is_associative(reducer: HloComputation, with_nan: bool) -> bool:
    """With NaN, reducers that choose the smaller complex number are not associative."""
    rng = np.random.default_rng(0)
    for number in range(_TRIES):
        a, b, c = values = _scalars(reducer, rng, 3)
        if with_nan and number % 2:
            a, b, c = (_nan(x) if k == number // 2 % 3 else x for k, x in enumerate(values))
        once = _call(reducer, a, b)
        if not _near(once, _call(reducer, b, a)):
            return False
        if not _near(_call(reducer, once, c), _call(reducer, a, _call(reducer, b, c))):
            return False
    return True


def _is_order(comparator: HloComputation, with_nan: bool) -> bool:
    """Never true both ways, and transitive. The parameters come in pairs. With NaN, equal to no number: only those that
    have a place for it are orders."""
    rng = np.random.default_rng(0)
    halves = [comparator.parameters[::2], comparator.parameters[1::2]]

    def before(a: list[Any], b: list[Any]) -> bool:
        pairs = [x for pair in zip(a, b, strict=True) for x in pair]
        return bool(_call(comparator, pairs)[0])

    for _ in range(_TRIES):
        a, b, c = ([random_array(p.shape, rng) for p in halves[0]] for _ in range(3))
        if before(a, a) or (before(a, b) and before(b, a)) or (before(a, b) and before(b, c) and not before(a, c)):
            return False
        if with_nan and all(x.dtype.kind in "fV" for x in map(np.asarray, a)):
            nan = _nan(a)
            if not (before(a, nan) or before(nan, a)):
                return False
    return True


def _chooses(select: HloComputation) -> bool:
    """Whether every order selects the same one of several: the largest or the smallest."""
    rng = np.random.default_rng(0)
    return all(
        bool(_call(select, a, b)[0]) != bool(_call(select, b, a)[0])
        for a, b in (_scalars(select, rng, 2) for _ in range(_TRIES))
    )


def _nan(values: list[Any]) -> list[Any]:
    return [np.full_like(x, np.nan) if x.dtype.kind in "fcV" else x for x in map(np.asarray, values)]


def _near(a: list[Any], b: list[Any]) -> bool:
    for x, y in zip(a, b, strict=True):
        wide, other = np.asarray(x), np.asarray(y)
        if wide.dtype.kind in "biu":
            if (wide != other).any():
                return False
            continue
        kind = np.complex128 if wide.dtype.kind == "c" else np.float64
        wide, other = wide.astype(kind), other.astype(kind)
        if (np.isnan(wide) & np.isnan(other)).all():
            continue
        allowed = _NEAR * (1 + np.abs(wide)) * (1 if np.asarray(x).dtype.itemsize >= 4 else 30)
        if not (np.abs(wide - other) <= allowed).all():
            return False
    return True
