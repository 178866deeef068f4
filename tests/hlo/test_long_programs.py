"""Programs of thousands of instructions: the work of the passes grows about as fast as their length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hloom.hlo import (
    HloInstruction,
    HloModule,
    Opcode,
    Shape,
    make_computation,
    make_constant,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
    target_named,
)
from hloom.hlo.buffers.assignment import assign_buffers
from hloom.hlo.ops.custom_call import CustomCallAttributes
from hloom.hlo.ops.dot import DotAttributes
from hloom.hlo.ops.reduce import ReduceAttributes
from hloom.hlo.passes.manager import PassOptions
from hloom.numba_backend import fused_computations as fused_module
from hloom.numba_backend.emit import FusedBody
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.pipeline import pipeline

from support.steps import steps_of

VECTOR, MATRIX = Shape.parse("f32[64]"), Shape.parse("f32[8,8]")
DOT = DotAttributes(lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))


def _chain(length: int) -> HloModule:
    """sin(cos(sin(...)))"""
    x = y = make_parameter(0, VECTOR)
    for k in range(length):
        y = make_instruction((Opcode.SIN, Opcode.COS)[k % 2], [y])
    return make_module("chain", make_computation("main", y, [x]))


def _recurrence(length: int) -> HloModule:
    """An unrolled recurrent network: h = tanh(h @ w + x) * x"""
    x, w = make_parameter(0, MATRIX), make_parameter(1, MATRIX)
    h = x
    for _ in range(length // 4):
        h = make_instruction(Opcode.ADD, [make_instruction(Opcode.DOT, [h, w], DOT), x])
        h = make_instruction(Opcode.MULTIPLY, [make_instruction(Opcode.TANH, [h]), x])
    return make_module("recurrence", make_computation("main", h, [x, w]))


def _graph(length: int) -> HloModule:
    """Each instruction reads two of the sixty before it, at random."""
    rng = np.random.default_rng(0)
    nodes = [x := make_parameter(0, VECTOR)]
    opcodes = (Opcode.ADD, Opcode.MULTIPLY, Opcode.SUBTRACT, Opcode.MAXIMUM)
    for _ in range(length):
        recent = nodes[-60:]
        operands = [recent[int(rng.integers(len(recent)))] for _ in range(2)]
        nodes.append(make_instruction(opcodes[int(rng.integers(4))], operands))
    used = {operand for node in nodes for operand in node.operands}
    return make_module("graph", make_computation("main", make_tuple([n for n in nodes if n not in used]), [x]))


def _many_results(length: int) -> HloModule:
    parameters = [make_parameter(k, VECTOR) for k in range(length // 2)]
    root = make_tuple([make_instruction(Opcode.SIN, [p]) for p in parameters])
    return make_module("results", make_computation("main", root, parameters))


def _steps(module: HloModule, target: str) -> int:
    """Of passes and buffer assignment."""

    def compile_to_buffers() -> None:
        bodies = FusedComputations()
        optimized, _ = pipeline(target, bodies).run(module)
        assign_buffers(optimized, bodies.can_share, fast_memory=target_named(target).fast_memory)

    return steps_of(compile_to_buffers)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "tpu"])
@pytest.mark.parametrize("make", [_chain, _recurrence, _graph, _many_results], ids=lambda m: m.__name__[1:])
def test_steps_grow_with_the_length(make: Callable[[int], HloModule], target: str) -> None:
    """Eight times as long takes 8 to 11 times the steps, where quadratic work would take 64 times."""
    _steps(make(100), target)  # tables that are made once
    short, long = _steps(make(500), target), _steps(make(4000), target)
    assert long < 12 * short, f"{short} steps for 500 instructions, {long} for 4000"


def test_equal_bodies_are_one_kernel_that_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reducers of one meaning count as equal, others do not; the layers of a network are alike."""
    written: list[FusedBody] = []
    emit = fused_module.emit_fusion
    monkeypatch.setattr(fused_module, "emit_fusion", lambda body, sharing: written.append(body) or emit(body, sharing))

    def reduced(x: HloInstruction, opcode: Opcode, k: int) -> HloInstruction:
        scalars = [make_parameter(n, Shape.parse("f32[]")) for n in range(2)]
        reducer = make_computation(f"reducer.{k}", make_instruction(opcode, scalars), scalars)
        zero = make_constant(np.float32(0))
        return make_instruction(Opcode.REDUCE, [x, zero], ReduceAttributes((0,), reducer))

    opcodes = (Opcode.ADD, Opcode.ADD, Opcode.MAXIMUM, Opcode.ADD)
    # arrays of their own: reductions of one array become one kernel
    arrays = [make_parameter(k, Shape.parse("f32[9,64]")) for k in range(len(opcodes))]
    rows = [
        make_instruction(Opcode.CUSTOM_CALL, [reduced(x, opcode, k)], CustomCallAttributes("opaque"), VECTOR)
        for k, (x, opcode) in enumerate(zip(arrays, opcodes, strict=True))
    ]
    module = make_module("rows", make_computation("main", make_tuple(rows), arrays))
    bodies = FusedComputations()
    optimized, _ = pipeline("cpu", bodies).run(module, PassOptions(disabled=frozenset({"cse"})))
    fusions = [i for i in optimized.entry.instructions if i.opcode is Opcode.FUSION]
    for fusion in fusions:
        bodies.kernel(fusion, {})
    assert len(fusions) == 4 and len({id(bodies.of(f)) for f in fusions}) == len(written) == 2
