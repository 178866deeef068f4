"""HLO modules as StableHLO and back: every op case, and the recorded programs of JAX, compute the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode, evaluate, parse, verify
from hloom.hlo.errors import UnsupportedError
from hloom.hlo.ops.window import SelectAndScatterAttributes
from hloom.hlo.stablehlo import from_hlo, to_hlo
from hloom.hlo.stablehlo.assembly_formats import ASSEMBLY_FORMATS
from hloom.hlo.stablehlo.from_hlo import stablehlo_of
from hloom.hlo.stablehlo.ops import OP_NAMED, OP_OF
from hloom.hlo.stablehlo.to_hlo import hlo_of

from hloom.backend_check.op_table import CASES, OpCase, build_module, make_inputs
from interop.archive import Recorded, read
from support.parts import assert_each, parts


def is_refused(case: OpCase) -> bool:
    """StableHLO's select_and_scatter has no dilations, and it has neither a Bernoulli distribution nor a state of the
    process."""
    attributes = case.attributes
    if isinstance(attributes, SelectAndScatterAttributes):
        return any(part.base_dilation != 1 or part.window_dilation != 1 for part in attributes.window)
    return case.opcode is Opcode.RNG_GET_AND_UPDATE_STATE or "bernoulli" in case.id


TAKEN = [case for case in CASES if not is_refused(case)]


def assert_same(results: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype and result.shape == wanted.shape
        is_same = result.tobytes() == wanted.tobytes() or np.array_equal(result, wanted, equal_nan=True)
        assert is_same, f"{result} is not {wanted}"


def check(case: OpCase) -> None:
    module, inputs = build_module(case), make_inputs(case)
    back = hlo_of(stablehlo_of(module))
    verify(back)
    assert_same(evaluate(back, *inputs), evaluate(module, *inputs))


@pytest.mark.parametrize("case", TAKEN[::12], ids=lambda c: c.id)
def test_op_cases_compute_the_same(case: OpCase) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("cases", parts(TAKEN, 50, lambda c: c.id))
def test_all_op_cases_compute_the_same(cases: list[OpCase]) -> None:
    assert_each(cases, check, lambda c: c.id)


@pytest.mark.parametrize("case", [case for case in CASES if is_refused(case)], ids=lambda c: c.id)
def test_ops_without_a_counterpart_are_refused_by_name(case: OpCase) -> None:
    name = case.opcode.value
    with pytest.raises(UnsupportedError, match=rf"^{name} {name} in StableHLO: StableHLO") as found:
        stablehlo_of(build_module(case))
    assert found.value.instruction.opcode is case.opcode


def test_every_opcode_and_every_operation_has_a_row_or_a_rule() -> None:
    assert {Opcode.PARAMETER, *OP_OF, *from_hlo._RULES} == set(Opcode)
    operations = {name for name in ASSEMBLY_FORMATS if name.startswith(("stablehlo.", "chlo.", "sdy."))}
    in_other_places = {"stablehlo.return", "sdy.return", "sdy.mesh", "chlo._asin_acos_kernel"}
    assert operations - {*OP_NAMED, *to_hlo._RULES} == in_other_places


RECORDED = list(read().values())


def check_program(one: Recorded) -> None:
    for text in filter(None, (one.text, one.optimized)):
        module = parse(text)
        back = hlo_of(stablehlo_of(module))
        verify(back)
        assert_same(evaluate(back, *one.inputs), evaluate(module, *one.inputs))


@pytest.mark.parametrize("one", RECORDED[::24], ids=lambda one: one.id)
def test_programs_of_jax_compute_the_same(one: Recorded) -> None:
    check_program(one)


@pytest.mark.slow
@pytest.mark.parametrize("some", parts(RECORDED, 20, lambda one: one.id))
def test_all_programs_of_jax_compute_the_same(some: list[Recorded]) -> None:
    assert_each(some, check_program, lambda one: one.id)
