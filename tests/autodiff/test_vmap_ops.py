"""Batches of every op in the table of op cases, against a loop over the elements, for each choice of operands."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import hloom.autodiff.api
import numpy as np
import pytest
from hloom.autodiff.batches import Axis
from hloom.autodiff.batching import batch_flat
from hloom.autodiff.rules.tables import BATCH
from hloom.hlo import Opcode
from hloom.tracer.core import Value, bind, eval_computation
from hloom.tracer.ops import reverse

import hloom.numpy  # noqa: F401 - starts the settings
from hloom.backend_check.op_table import CASES, Array, OpCase, build_module, check_results, make_inputs
from hloom.backend_check.op_values import NDArray
from support.grad_check import concrete

O = Opcode  # noqa: E741

_NOT_TRACED = (O.BITCAST, O.FUSION, O.PARAMETER, O.CONSTANT, O.TUPLE, O.GET_TUPLE_ELEMENT)


def _kind(case: OpCase) -> Any:
    """Cases of one kind differ in element types and values only."""
    attributes = [v for v in _fields(case.attributes) if not hasattr(v, "instructions")]
    return case.opcode, tuple(a.dimensions for a in case.arrays), repr(attributes)


def _fields(attributes: Any) -> list[Any]:
    return [getattr(attributes, name) for name in getattr(attributes, "__dataclass_fields__", ())]


def _is_batched(case: OpCase) -> bool:
    return (
        case.opcode in BATCH
        and case.opcode not in _NOT_TRACED
        and bool(case.operands)
        and case.opcode not in (O.WHILE, O.CONDITIONAL)
        and all(isinstance(o, Array) for o in case.operands)
        and not case.is_subnormal
    )


def _one_of_each_kind() -> Iterator[OpCase]:
    seen = set()
    for case in CASES:
        if _is_batched(case) and _kind(case) not in seen:
            seen.add(_kind(case))
            yield case


_CHECKED = list(_one_of_each_kind())
_MOST = 5
"""Kinds of each opcode that are always tested."""


def _with_marks() -> Iterator[Any]:
    count: Counter[Opcode] = Counter()
    for case in _CHECKED:
        count[case.opcode] += 1
        yield pytest.param(case, id=case.id, marks=[pytest.mark.slow] if count[case.opcode] > _MOST else [])


def _masks(count: int) -> list[tuple[bool, ...]]:
    """Which operands are batched: every choice of up to three, else all, each alone, and all but each. A reduction of
    many arrays has as many initial values: of each half the ends."""
    if count <= 3:
        return [m for m in itertools.product((True, False), repeat=count) if any(m)]
    half = count // 2
    chosen = range(count) if count <= 8 else (0, half - 1, half, count - 1)
    alone = [tuple(k == n for k in range(count)) for n in chosen]
    return [(True,) * count, *alone, *[tuple(not m for m in mask) for mask in alone]]


def _stacked(case: OpCase, size: int) -> list[NDArray]:
    """For each operand the values of `size` elements, along a new dimension 0."""
    rows = [make_inputs(case, seed) for seed in range(size)] or [make_inputs(case)]
    return [np.stack(values)[:size] for values in zip(*rows, strict=True)]


def _check(case: OpCase, size: int, batched: Sequence[bool]) -> None:
    program = build_module(case).entry

    def function(values: list[Value]) -> list[Value]:
        return eval_computation(program, values)

    stacked, shared = _stacked(case, size), make_inputs(case, 1)
    given = [s if b else one for s, one, b in zip(stacked, shared, batched, strict=True)]
    results, mask = batch_flat(function, Axis(None, size), [concrete(x) for x in given], batched)
    for k in range(size):
        element = [x[k] if b else x for x, b in zip(given, batched, strict=True)]
        expected = function([concrete(x) for x in element])
        found = [np.asarray(r)[k] if b else np.asarray(r) for r, b in zip(results, mask, strict=True)]
        check_results(case, found, [np.asarray(e) for e in expected])
    if not size:
        leaves = list(case.result.leaves())
        assert [np.asarray(r).shape for r in results] == [
            (0, *leaf.dimensions) if b else leaf.dimensions for leaf, b in zip(leaves, mask, strict=True)
        ]


@pytest.mark.one_in(4)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("case", list(_with_marks()))
def test_batch_of_op(case: OpCase) -> None:
    for batched in _masks(len(case.arrays)):
        _check(case, 3, batched)
    for size in (0, 1):
        _check(case, size, (True,) * len(case.arrays))


def test_every_opcode_has_a_rule_or_says_why_not() -> None:
    assert BATCH.missing() == []


def test_table_reaches_every_rule() -> None:
    reached = {case.opcode for case in _CHECKED} | {*_NOT_TRACED, O.IOTA, O.WHILE, O.CONDITIONAL}
    assert {o for o in Opcode if o in BATCH} <= reached


def test_checker_finds_a_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(axis: Any, operands: Any, batched: Any, attributes: Any, shape: Any) -> Any:
        return bind(O.NEGATE, [reverse(operands[0], (0,))]), True

    case = next(c for c in _CHECKED if c.opcode is O.NEGATE and c.arrays[0].dimensions)
    _check(case, 3, (True,))
    monkeypatch.setitem(BATCH._rules, O.NEGATE, wrong)
    with pytest.raises(AssertionError, match="element"):
        _check(case, 3, (True,))

