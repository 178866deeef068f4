"""Dots beyond the op table: ragged dots against JAX, integer dots without a product in memory, mixed types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.element_type import ElementType
from hloom.hlo.evaluator import evaluate, evaluate_op
from hloom.hlo.ir import HloInstruction
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.dot import DotAttributes
from hloom.hlo.passes.expand.dot import ragged_dot
from hloom.hlo.passes.layout.dot_canonicalizer import with_lhs_in_order, with_rhs_in_order
from hloom.hlo.passes.simplify.reduce_dot import dot_of_transpose, transpose_of_dot
from hloom.hlo.shape import Shape
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.tracer.core import bind

import hloom
from hloom.backend_check.op_table import CASES, build_module, make_inputs

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


@pytest.mark.parametrize(
    ("contracting", "negative"), [(((), ()), True), (((1,), (0,)), False)], ids=["a product", "a sum of products"]
)
def test_minus_zero(contracting: tuple[tuple[int, ...], tuple[int, ...]], negative: bool) -> None:
    """Without contracting dimensions nothing is added to a product of -0.0, as in XLA."""
    lines = ["x = f32[2,2] parameter(0)", "y = f32[2,2] parameter(1)"]
    left, right = ("{" + ",".join(map(str, dims)) + "}" for dims in contracting)
    result = "f32[2,2,2,2]" if negative else "f32[2,2]"
    lines.append(f"ROOT d = {result} dot(x, y), lhs_contracting_dims={left}, rhs_contracting_dims={right}")
    module = parse("HloModule m\nENTRY e {\n" + "\n".join(lines) + "}")
    x, y = np.zeros((2, 2), np.float32), -np.ones((2, 2), np.float32)
    for results in (evaluate(module, x, y), NumbaCompiler().compile(module).execute([x, y])):
        assert (np.signbit(results[0]) == negative).all()


def test_integer_dot_needs_no_product_in_memory() -> None:
    executable = NumbaCompiler().compile(parse(INTEGERS))
    assert executable.memory_analysis().temp_size_in_bytes < 2 * 256 * 300 * 4
    rng = np.random.default_rng(0)
    lhs, rhs = (rng.integers(-128, 128, size, np.int8) for size in ((256, 300), (300, 200)))
    (actual,) = executable.execute([lhs, rhs])
    np.testing.assert_array_equal(actual, lhs.astype(np.int32) @ rhs.astype(np.int32))


@pytest.mark.parametrize("spec", ["ij,i->j", "i,ij->j", "j,ij->i", "bij,bi->bj", "ijk,j->ik", "ki,ijk->j", "ijk,ik->j"])
def test_integers_times_a_vector_are_read_where_they_are(spec: str) -> None:
    """The vector has no dimension of the result, so the matrix needs no other order: a transposed one would be read
    column by column, for each sum."""
    rng = np.random.default_rng(0)
    lengths = {"b": 7, "i": 40, "j": 30, "k": 20}
    arrays = [rng.integers(-9, 9, [lengths[c] for c in name]) for name in spec.partition("->")[0].split(",")]
    compiled = hloom.jit(lambda *arrays: hloom.numpy.einsum(spec, *arrays)).lower(*arrays).compile()
    np.testing.assert_array_equal(compiled(*arrays), np.einsum(spec, *arrays))
    instructions = parse(compiled.as_text()).instructions()
    transposed = [i.shape.num_elements for i in instructions if i.opcode is Opcode.TRANSPOSE]
    assert max(transposed, default=0) < max(a.size for a in arrays)


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


ALGORITHM = "algorithm=dot_bf16_bf16_f32"
SAYING_HOW: list[tuple[Callable[[HloInstruction], HloInstruction | None], str]] = [
    (
        dot_of_transpose,
        f"t = f32[3,2] transpose(x), dimensions={{1,0}}\n"
        f"ROOT r = f32[3,3] dot(t, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {ALGORITHM}",
    ),
    (
        transpose_of_dot,
        f"d = f32[2,2] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, {ALGORITHM}\n"
        "ROOT r = f32[2,2] transpose(d), dimensions={1,0}",
    ),
    (
        with_lhs_in_order,
        f"ROOT r = f32[3,3] dot(x, x), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}, {ALGORITHM}",
    ),
    (
        with_rhs_in_order,
        f"ROOT r = f32[2,2] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, {ALGORITHM}",
    ),
    (
        ragged_dot,
        "n = s32[2] constant({1, 1})\n"
        f"ROOT r = f32[2,2] ragged-dot(x, y, n), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, {ALGORITHM}, "
        "lhs_ragged_dims={0}, rhs_group_dims={0}",
    ),
]


@pytest.mark.parametrize(("rule", "body"), SAYING_HOW, ids=lambda value: getattr(value, "__name__", ""))
def test_how_exactly_to_multiply_survives_rules(
    rule: Callable[[HloInstruction], HloInstruction | None], body: str
) -> None:
    module = parse(f"ENTRY main {{\n x = f32[2,3] parameter(0)\n y = f32[2,3,2] parameter(1)\n{body}\n}}")
    made = rule(module.entry.root)
    assert made is not None and made.opcode is Opcode.DOT
    assert made.attributes.algorithm == "dot_bf16_bf16_f32"


def test_how_exactly_to_multiply_survives_differentiation() -> None:
    attributes = DotAttributes((), (), (1,), (0,), algorithm="dot_bf16_bf16_f32")
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    gradient = hloom.make_hlo(hloom.grad(lambda x, y: bind(Opcode.DOT, (x, y), attributes).sum(), argnums=(0, 1)))(x, y)
    dots = [i.attributes.algorithm for i in gradient.instructions() if i.opcode is Opcode.DOT]
    assert len(dots) >= 2 and set(dots) == {"dot_bf16_bf16_f32"}


@pytest.mark.parametrize(
    ("element", "sizes"),
    [
        ("s32", [1, -1, 3]), ("s32", [-2, 3, 300]), ("s32", [2**31 - 1, 2**31 - 1, 1]), ("s8", [100, 20, 5]),
        ("u8", [200, 99, 1]), ("u64", [2**63, 2**63, 5]), ("s64", [0, 0, 0]),
    ],
)  # fmt: skip
def test_group_sizes_that_do_not_add_up(element: str, sizes: list[int]) -> None:
    """Sizes may be negative, may end before the last row or behind it, and may have a narrow type."""
    text = (
        f"HloModule m\nENTRY e {{\n  x = f32[300,2] parameter(0)\n  y = f32[3,2,2] parameter(1)\n"
        f"  n = {element}[3] parameter(2)\n  ROOT r = f32[300,2] ragged-dot(x, y, n), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}\n}"
    )
    rng = np.random.default_rng(0)
    x, y = (rng.integers(1, 9, shape).astype(np.float32) for shape in ((300, 2), (3, 2, 2)))
    kinds = {"s32": np.int32, "s8": np.int8, "u8": np.uint8, "u64": np.uint64, "s64": np.int64}
    n = np.array(sizes, kinds[element])
    ends = np.cumsum(n.astype(np.int64))
    starts = ends - n.astype(np.int64)
    expected = np.zeros((300, 2), np.float32)
    for group, (start, end) in enumerate(zip(starts, ends, strict=True)):
        rows = (np.arange(300) >= start) & (np.arange(300) < end)
        expected[rows] += x[rows] @ y[group]
    module = parse(text)
    np.testing.assert_array_equal(evaluate(module, x, y, n)[0], expected)
    np.testing.assert_array_equal(hloom.run_hlo(module, x, y, n)[0], expected)
