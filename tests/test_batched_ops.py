"""Batches of ops with rules of their own (indexing, sorting, windows, convolution, normalisation) against a loop."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import hloom.autodiff.api  # noqa: F401 - fills the tables of rules
import numpy as np
import pytest
from hloom.hlo import ElementType, Opcode
from hloom.tracer.core import eval_computation

import hloom
from support.grad_check import concrete
from support.op_table import CASES, OpCase, build_module, check_results, make_inputs

O = Opcode  # noqa: E741
_OPS = {
    *(O.GATHER, O.SCATTER, O.SORT, O.TOPK, O.REDUCE_WINDOW, O.SELECT_AND_SCATTER, O.CONVOLUTION, O.REDUCE, O.MAP),
    *(O.BATCH_NORM_TRAINING, O.BATCH_NORM_INFERENCE, O.BATCH_NORM_GRAD, O.RAGGED_DOT, O.SCALED_DOT),
    *(O.REDUCE_PRECISION, O.GET_DIMENSION_SIZE),
}
_TYPES = {ElementType.F32, ElementType.S32, ElementType.PRED, ElementType.C64}
_SIZE = 3


def _is_checked(case: OpCase) -> bool:
    types = {array.element_type for array in case.arrays} | {leaf.element for leaf in case.result.leaves()}
    elements = [array.shape.num_elements for array in case.arrays]
    return case.opcode in _OPS and types <= _TYPES and sum(elements) <= 1200


def _masks(count: int) -> Iterator[tuple[bool, ...]]:
    """Which operands are batched: any, of few; of many one, or all, or all but one."""
    masks = [m for m in itertools.product((True, False), repeat=count) if any(m)] if count <= 3 else []
    one = [tuple(k == j for k in range(count)) for j in range(count)] if count <= 6 else []
    yield from masks or [(True,) * count, *one, *(tuple(not b for b in m) for m in one)]


_CHECKED = [case for case in CASES if _is_checked(case)]


@pytest.mark.parametrize("case", _CHECKED, ids=lambda case: case.id)
def test_a_batch_is_what_a_loop_gives(case: OpCase) -> None:
    program = build_module(case).entry
    rows = [make_inputs(case, seed=k) for k in range(_SIZE)]

    def run(*values: Any) -> list[Any]:
        return eval_computation(program, values)

    for mask in _masks(len(case.arrays)):
        given = [np.stack(v) if b else v[0] for v, b in zip(zip(*rows, strict=True), mask, strict=True)]
        axes = tuple(0 if b else None for b in mask)
        with np.errstate(all="ignore"):
            found = hloom.vmap(run, in_axes=axes, axis_size=_SIZE)(*map(concrete, given))
            for k, row in enumerate(rows):
                one = [v if b else first for v, first, b in zip(row, rows[0], mask, strict=True)]
                expected = run(*map(concrete, one))
                check_results(case, [np.asarray(f)[k] for f in found], [np.asarray(e) for e in expected])


def test_every_op_is_in_the_table() -> None:
    assert {case.opcode for case in _CHECKED} == _OPS
