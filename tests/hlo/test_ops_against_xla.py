"""The evaluator against real XLA, over the table of op cases: with XLA's recorded results, and with XLA itself if it is
installed."""

from __future__ import annotations

import numpy as np
import pytest
from hloom.hlo import Opcode, evaluate

from hloom.backend_check.op_table import CASES, WITHOUT_CASES, OpCase, build_module, check_results, make_inputs
from hloom.backend_check.op_values import NDArray, flush_subnormals
from support.recorded import UNANSWERED_CASES, UNANSWERED_OPCODES, is_answered, load

ANSWERED = [opcode for opcode in Opcode if opcode not in UNANSWERED_OPCODES and opcode not in WITHOUT_CASES]


@pytest.fixture(scope="module")
def recorded() -> dict[str, tuple[list[NDArray], list[NDArray]]]:
    return load()


def _disagreement(case: OpCase, actual: list[NDArray], expected: list[NDArray]) -> str | None:
    """XLA flushes subnormal numbers, so neither side may show one."""
    try:
        check_results(case, [flush_subnormals(x) for x in actual], [flush_subnormals(x) for x in expected])
    except AssertionError as error:
        return str(error)
    return None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("opcode", ANSWERED, ids=lambda o: o.value)
def test_evaluator_gives_what_xla_gave(
    opcode: Opcode, recorded: dict[str, tuple[list[NDArray], list[NDArray]]]
) -> None:
    cases = [case for case in CASES if case.opcode is opcode and is_answered(case)]
    assert cases
    wrong = []
    for case in cases:
        inputs, expected = recorded[case.id]
        wrong.append(_disagreement(case, evaluate(build_module(case), *inputs), expected))
    assert not any(wrong), "\n".join(filter(None, wrong))


def test_exceptions_are_of_the_table() -> None:
    assert set(UNANSWERED_CASES) <= {case.id for case in CASES}
    assert {case.opcode for case in CASES} == set(Opcode) - set(WITHOUT_CASES)


def test_recorded_inputs_are_those_of_the_table(recorded: dict[str, tuple[list[NDArray], list[NDArray]]]) -> None:
    case = next(case for case in CASES if case.id == "add-f32x23x25-f32x23x25")
    for made, kept in zip(make_inputs(case), recorded[case.id][0], strict=True):
        np.testing.assert_array_equal(made, kept)


def test_a_wrong_evaluator_is_found(recorded: dict[str, tuple[list[NDArray], list[NDArray]]]) -> None:
    case = next(case for case in CASES if case.id == "add-f32x23x25-f32x23x25")
    inputs, expected = recorded[case.id]
    wrong = next(c for c in CASES if c.opcode is Opcode.SUBTRACT and c.result == case.result)
    assert "ulps" in str(_disagreement(case, evaluate(build_module(wrong), *inputs), expected))


def _one_case_an_opcode() -> list[OpCase]:
    first: dict[Opcode, OpCase] = {}
    for case in filter(is_answered, CASES):
        first.setdefault(case.opcode, case)
    return list(first.values())


@pytest.mark.parametrize("case", _one_case_an_opcode(), ids=lambda c: c.id)
def test_evaluator_gives_what_xla_gives(case: OpCase) -> None:
    pytest.importorskip("jax")
    from support.xla_oracle import run_case

    inputs = make_inputs(case)
    disagreement = _disagreement(case, evaluate(build_module(case), *inputs), run_case(case, inputs))
    assert disagreement is None, disagreement
