"""Dots beyond the op table: ragged dots against JAX, integer dots without a product in memory, mixed types."""

from __future__ import annotations

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.element_type import ElementType
from hloom.hlo.evaluator import evaluate_op
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.dot import DotAttributes
from hloom.hlo.shape import Shape
from hloom.numba_backend.compiler import NumbaCompiler

import hloom
from tests.support.op_table import CASES, build_module, make_inputs

RAGGED = [c for c in CASES if c.opcode is Opcode.RAGGED_DOT and c.result.element is ElementType.F32]


@pytest.mark.parametrize("case", RAGGED, ids=lambda c: c.id)
def test_ragged_dot_is_that_of_jax(case) -> None:  # type: ignore[no-untyped-def]
    jax = pytest.importorskip("jax")
    d = case.attributes.dot
    numbers = jax.lax.RaggedDotDimensionNumbers(
        ((d.lhs_contracting_dims, d.rhs_contracting_dims), (d.lhs_batch_dims, d.rhs_batch_dims)),
        case.attributes.lhs_ragged_dims,
        case.attributes.rhs_group_dims,
    )
    lhs, rhs, sizes = make_inputs(case)
    with jax.enable_x64(True):
        expected = np.asarray(jax.lax.ragged_dot_general(lhs, rhs, sizes, numbers))
    (actual,) = hloom.run_hlo(build_module(case), lhs, rhs, sizes)
    np.testing.assert_array_equal(actual, expected)


INTEGERS = """HloModule m
ENTRY e {
  p = s8[256,300] parameter(0)
  q = s8[300,200] parameter(1)
  ROOT r = s32[256,200] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""


def test_integer_dot_needs_no_product_in_memory() -> None:
    executable = NumbaCompiler().compile(parse(INTEGERS))
    assert executable.memory_analysis().temp_size_in_bytes < 2 * 256 * 300 * 4
    rng = np.random.default_rng(0)
    lhs, rhs = (rng.integers(-128, 128, size, np.int8) for size in ((256, 300), (300, 200)))
    (actual,) = executable.execute([lhs, rhs])
    np.testing.assert_array_equal(actual, lhs.astype(np.int32) @ rhs.astype(np.int32))


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "x", "y", "expected"),
    [
        ("f32", "f32", "s32", [0.5, 1.5], [2, 2], 4),  # summed as floats, then converted
        ("f32", "f32", "u8", [300], [2], 255),
        ("c64", "c64", "f32", [1j, 1], [1j, 3 + 1j], 2),
        ("s32", "s32", "pred", [2, -1], [1, 2], False),
        ("f16", "f16", "f16", [60000, 60000], [2, -2], 0),
    ],
)
def test_sums_are_converted_at_the_end(
    lhs: str, rhs: str, result: str, x: list[complex], y: list[complex], expected: complex
) -> None:
    """The values are XLA's."""
    types = [ElementType(name) for name in (lhs, rhs, result)]
    operands = [np.asarray(v).astype(t.dtype) for v, t in zip((x, y), types)]
    text = f"""HloModule m
    ENTRY e {{
      p = {lhs}[{len(x)}] parameter(0)
      q = {rhs}[{len(x)}] parameter(1)
      ROOT r = {result}[] dot(p, q), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
    }}"""
    attributes = DotAttributes((), (), (0,), (0,))
    assert evaluate_op(Opcode.DOT, operands, attributes, Shape.array(types[2])) == expected
    assert hloom.run_hlo(text, *operands)[0] == expected
