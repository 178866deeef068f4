"""Every op case on the Numba backend against the evaluator: all dtypes, sizes 0 and 1, edge values.

By default an operation runs at every second of its sizes and attributes, and its element types take turns; the slow
tests have the product of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emitted_kernel import EmittedKernel
from hloom.numba_backend.loops.expressions import Binary, Expr, Name
from hloom.numba_backend.loops.statements import Assign, LoopProgram, ScalarParameter, SizeParameter

from hloom import hlo
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from tests.support.case_forms import every_second, mixed_forms
from tests.support.emitted_programs import check_arithmetic, check_one_type_each, check_program, check_text, recorded

BY_DEFAULT = every_second(mixed_forms(CASES))
OPCODES = sorted({case.opcode.value for case in CASES})


@pytest.mark.parametrize("case", BY_DEFAULT, ids=lambda case: case.id)
def test_op_agrees_with_evaluator(case: OpCase) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", OPCODES)
def test_all_other_cases_of_an_op_agree_with_evaluator(opcode: str) -> None:
    """One test for each opcode, so that a run without them does not collect all cases."""
    failures = []
    for case in others(opcode):
        try:
            check(case)
        except (AssertionError, hlo.HloError) as error:
            failures.append(f"{case.id}: {error}")
    assert not failures, "\n".join(failures)


def others(opcode: str) -> list[OpCase]:
    by_default = {case.id for case in BY_DEFAULT}
    return [case for case in CASES if case.opcode.value == opcode and case.id not in by_default]


def test_every_case_is_tested_once_and_every_op_and_type_by_default() -> None:
    rest = [case.id for opcode in OPCODES for case in others(opcode)]
    assert sorted([*rest, *(case.id for case in BY_DEFAULT)]) == sorted(case.id for case in CASES)
    assert {case.opcode for case in BY_DEFAULT} == {case.opcode for case in CASES}
    assert element_types(BY_DEFAULT) == element_types(CASES)


def element_types(cases: Iterable[OpCase]) -> set[hlo.ElementType]:
    shapes = [shape for case in cases for shape in (*(array.shape for array in case.arrays), case.result)]
    return {leaf.element for shape in shapes for leaf in shape.leaves()}


def check(case: OpCase) -> None:
    module, inputs = build_module(case), make_inputs(case)
    expected = hlo.evaluate(module, *inputs)
    with recorded() as kernels:
        actual = NumbaCompiler().compile(module).execute(inputs)
    check_results(case, actual, expected)
    for kernel in kernels:
        check_program(kernel)


def test_arithmetic_on_data_is_noticed() -> None:
    parameters = (ScalarParameter("c0", hlo.ElementType.S32, 1),)
    total = Binary("+", Name("c0", "int32"), Name("c0", "int32"))
    kernel = EmittedKernel(LoopProgram("f", ("lo", "hi", "c0"), [Assign((Name("a0"),), (total,))]), parameters, 1, 1.0)
    with pytest.raises(AssertionError, match=r"c0 \+ c0"):
        check_arithmetic(kernel)


def test_a_wrong_result_is_noticed() -> None:
    case = next(c for c in CASES if c.id.startswith("add-f32"))
    inputs = make_inputs(case)
    expected = hlo.evaluate(build_module(case), *inputs)
    wrong = [np.where(np.isfinite(e), -e, e) for e in expected]
    with pytest.raises(AssertionError, match="ulps, 0 allowed"):
        check_results(case, wrong, expected)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Name("n0", "int32"), "n0 is int64 and int32"),
        (Name("c0", "float64"), "a0 = c0 of type float64"),
        (Binary("+", Binary("+", Name("n0"), Name("n0")), Name("n0")), None),
        (Binary("+", Name("n0"), Binary("+", Name("n0"), Name("n0"))), None),
        (Binary("<", Name("n0"), Name("n0")), "a0 = n0 < n0 of type bool"),
    ],
)
def test_a_wrong_type_in_a_program_is_noticed(value: Expr, said: str | None) -> None:
    parameters = (SizeParameter("n0", 1), ScalarParameter("c0", hlo.ElementType.F64, 1.0))
    program = LoopProgram("f", ("lo", "hi", "n0", "c0"), [Assign((Name("a0"),), (value,))])
    kernel = EmittedKernel(program, parameters, 1, 1.0)
    if said is None:
        check_one_type_each(kernel)
        check_text(kernel)
    else:
        with pytest.raises(AssertionError, match=re.escape(said)):
            check_one_type_each(kernel)
