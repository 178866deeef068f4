"""The StableHLO that is written here, given to IREE's compiler. Needs iree-base-compiler.

Only the conversion from StableHLO runs: what it makes of the programs is IREE's matter. It has no form of some ops.
"""

from __future__ import annotations

import pytest
from hloom.hlo import Opcode
from hloom.hlo.stablehlo.from_hlo import stablehlo_of
from hloom.hlo.stablehlo.text import write

import hloom
import hloom.numpy as jnp
from hloom.backend_check.op_table import CASES, OpCase, build_module

compiler = pytest.importorskip("iree.compiler")

O = Opcode  # noqa: E741
NOT_OF_IREE = {
    *(O.AFTER_ALL, O.ADD_DEPENDENCY, O.COLLECTIVE_BROADCAST, O.RAGGED_ALL_TO_ALL, O.CHOLESKY, O.TRIANGULAR_SOLVE),
    *(O.FFT, O.CUSTOM_CALL, O.BATCH_NORM_GRAD, O.RNG_BIT_GENERATOR, O.RNG, O.SELECT_AND_SCATTER),
    O.RNG_GET_AND_UPDATE_STATE,
}


def accept(text: str) -> None:
    """Raises what IREE's compiler raises."""
    compiler.compile_str(text, input_type="stablehlo", extra_args=["--compile-to=input"])


def _one_case_an_opcode() -> list[OpCase]:
    first: dict[Opcode, OpCase] = {}
    for case in CASES:
        if case.opcode not in NOT_OF_IREE:
            first.setdefault(case.opcode, case)
    return list(first.values())


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", _one_case_an_opcode(), ids=lambda c: c.id)
def test_it_accepts_every_op_that_it_has(case: OpCase) -> None:
    accept(write(stablehlo_of(build_module(case))))


def test_it_accepts_a_lowered_function() -> None:
    def loss(w: object, x: object) -> object:
        return jnp.mean(jnp.tanh(x @ w) ** 2)  # type: ignore[operator]

    lowered = hloom.jit(hloom.value_and_grad(loss)).lower(jnp.ones((4, 3)), jnp.ones((5, 4)))
    accept(lowered.as_text("stablehlo"))
    accept(lowered.as_text("stablehlo", debug_info=True))
