"""Every op case on the Numba backend against the evaluator: all dtypes, sizes 0 and 1, edge values."""

from __future__ import annotations

import numpy as np
import pytest
from hloom.numba_backend.compiler import NumbaCompiler

from hloom import hlo
from tests.support.op_table import CASES, OpCase, build_module, check_results, make_inputs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_op_agrees_with_evaluator(case: OpCase) -> None:
    module, inputs = build_module(case), make_inputs(case)
    expected = hlo.evaluate(module, *inputs)
    actual = NumbaCompiler().compile(module).execute(inputs)
    check_results(case, actual, expected)


def test_a_wrong_result_is_noticed() -> None:
    case = next(c for c in CASES if c.id.startswith("add-f32"))
    inputs = make_inputs(case)
    expected = hlo.evaluate(build_module(case), *inputs)
    wrong = [np.where(np.isfinite(e), -e, e) for e in expected]
    with pytest.raises(AssertionError):
        check_results(case, wrong, expected)
