"""The StableHLO that is written here, given to the real JAX: it parses, it is valid, and XLA computes the same from it.

Needs jax 0.10, whose StableHLO is older than the specification.
"""

from __future__ import annotations

import numpy as np
import pytest
from hloom.hlo import Opcode, evaluate
from hloom.hlo.errors import UnsupportedError
from hloom.hlo.stablehlo.from_hlo import stablehlo_of
from hloom.hlo.stablehlo.text import read, write
from hloom.hlo.stablehlo.to_hlo import hlo_of

import hloom
import hloom.numpy as jnp
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from hloom.backend_check.op_values import flush_subnormals
from support.recorded import is_answered

pytest.importorskip("jax")

REFUSED = {
    "all-gather-f32x0": "a size of 0 along which to join",
    "reduce-scatter-f32x0": "a size of 0 to cut",
    "collective-broadcast-f32x2x3-s32x1-root": "that version has no dynamic root",
    "collective-broadcast-f32x2x3-f32x4-roots": "that version has no dynamic root",
}
"""Cases that the StableHLO of jax 0.10 does not accept."""


def text_of(case: OpCase) -> str | None:
    """None if StableHLO does not have the op."""
    try:
        return write(stablehlo_of(build_module(case)))
    except UnsupportedError:
        return None


def again(text: str) -> str:
    """The text through HLO, without the names of values."""
    module = stablehlo_of(hlo_of(read(text)))
    stack = [module]
    while stack:
        operation = stack.pop()
        blocks = [block for region in operation.regions for block in region.blocks]
        for value in (*operation.results, *(a for block in blocks for a in block.arguments)):
            value.name = ""
        stack += [each for block in blocks for each in block.operations]
    return write(module)


OPCODES = sorted({case.opcode for case in CASES}, key=lambda opcode: opcode.value)


@pytest.mark.parametrize("opcode", OPCODES, ids=lambda o: o.value)
def test_the_text_is_valid(opcode: Opcode) -> None:
    """Of some cases of an opcode; what jax prints of it is the same program here."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    cases = [case for case in CASES if case.opcode is opcode and case.id not in REFUSED]
    context = mlir.make_ir_context()
    for case in cases[:: max(len(cases) // 6, 1)]:
        text = text_of(case)
        if text is None:
            continue
        with context:
            module = ir.Module.parse(text)
            assert module.operation.verify()
            printed = module.operation.get_asm()
            generic = module.operation.get_asm(print_generic_op_form=True)
        assert again(printed) == again(generic) == again(text)


def _one_case_an_opcode() -> list[OpCase]:
    first: dict[Opcode, OpCase] = {}
    for case in filter(is_answered, CASES):
        first.setdefault(case.opcode, case)
    return list(first.values())


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", _one_case_an_opcode(), ids=lambda c: c.id)
def test_xla_computes_the_same(case: OpCase) -> None:
    from support.xla_oracle import run_stablehlo

    inputs = make_inputs(case)
    text = text_of(case)
    assert text is not None
    results = [flush_subnormals(x) for x in run_stablehlo(text, *inputs)]
    check_results(case, results, [flush_subnormals(x) for x in evaluate(build_module(case), *inputs)])


def test_xla_runs_what_a_lowered_function_prints() -> None:
    from support.xla_oracle import run_stablehlo

    def step(w: object, x: object) -> object:
        def body(k: object, state: object) -> object:
            return jnp.tanh(state @ w) + k  # type: ignore[operator]

        return hloom.lax.fori_loop(0, 3, body, x), jnp.argsort(x, axis=1)

    w, x = (np.random.default_rng(k).normal(size=(4, 4)).astype(np.float32) for k in range(2))
    lowered = hloom.jit(step).lower(w, x)
    expected = lowered.compile()(w, x)
    for text in (lowered.as_text("stablehlo"), lowered.as_text("stablehlo", debug_info=True)):
        for got, wanted in zip(run_stablehlo(text, w, x), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert str(lowered.compiler_ir("stablehlo")) == lowered.as_text("stablehlo")
    assert __file__ in lowered.as_text("stablehlo", debug_info=True)
    assert __file__ not in lowered.as_text("stablehlo")
