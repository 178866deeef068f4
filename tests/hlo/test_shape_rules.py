"""Every shape rule: what it accepts, infers and refuses. Each label that a rule declares has a violation here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

import pytest
from hloom.hlo import ElementType, Opcode, Shape, ShapeError, make_computation, make_instruction, make_parameter
from hloom.hlo.aliases import OutputOperandAlias
from hloom.hlo.builder import check_shape, make_constant
from hloom.hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation
from hloom.hlo.ops import SPECS, Trait
from hloom.hlo.ops.control_flow import CallAttributes, ConditionalAttributes, WhileAttributes
from hloom.hlo.ops.custom_call import CustomCallAttributes
from hloom.hlo.ops.dot import DotAttributes, RaggedDotAttributes
from hloom.hlo.ops.elementwise import (
    CompareAttributes,
    ComparisonDirection,
    ComparisonType,
    MapAttributes,
    ReducePrecisionAttributes,
)
from hloom.hlo.ops.linalg import CholeskyAttributes, FftAttributes, FftType, TriangularSolveAttributes
from hloom.hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from hloom.hlo.ops.normalization import BatchNormAttributes
from hloom.hlo.ops.random import (
    RandomAlgorithm,
    RandomDistribution,
    RngAttributes,
    RngBitGeneratorAttributes,
    RngGetAndUpdateStateAttributes,
)
from hloom.hlo.ops.reduce import ReduceAttributes
from hloom.hlo.ops.structure import FusionAttributes, FusionKind, GetTupleElementAttributes, ParameterAttributes

from hloom.backend_check.op_case import Token
from hloom.backend_check.op_table import CASES, Array, Operand, binary_computation
from support.violations_indexing import INDEXING_VIOLATIONS
from support.violations_structure import STRUCTURE_VIOLATIONS
from support.violations_window import WINDOW_VIOLATIONS

E = ElementType
O = Opcode  # noqa: E741

PREFERRED = (O.DOT, O.RAGGED_DOT, O.SCALED_DOT, O.CONVOLUTION)
"""The result's element type may be another than the operands'."""
NEEDS_DECLARED = {
    *(O.RNG, O.STOCHASTIC_CONVERT),
    *(O.BITCAST, O.BITCAST_CONVERT, O.BROADCAST, O.CONVERT, O.IOTA, O.PARAMETER, O.RESHAPE, O.RNG_BIT_GENERATOR),
    *(O.CUSTOM_CALL, O.INFEED, O.RECV, O.DYNAMIC_RESHAPE),
}


def s(text: str) -> Shape:
    """A shape from e.g. ``f32[2,3]`` or ``(f32[], s32[2])``."""
    if "token" in text or "((" in text:
        return Shape.parse(text)
    if text.startswith("("):
        return Shape.tuple([s(part) for part in re.findall(r"\w+\[[\d,]*\]", text)])
    name, dims = re.fullmatch(r"(\w+)\[([\d,]*)\]", text).groups()  # type: ignore[union-attr]
    return Shape.array(E(name), [int(d) for d in dims.split(",") if d])


def _shape(operand: Operand) -> Shape:
    return operand.shape if isinstance(operand, Array | Token) else Shape.tuple([_shape(o) for o in operand])


@pytest.mark.parametrize("opcode", Opcode, ids=lambda o: o.value)
def test_cases_of_the_table_are_well_formed(opcode: Opcode) -> None:
    for case in [c for c in CASES if c.opcode is opcode]:
        operands = [] if opcode is O.PARAMETER else [_shape(o) for o in case.operands]
        attributes = ParameterAttributes(0) if opcode is O.PARAMETER else case.attributes
        assert check_shape(opcode, operands, attributes, case.result) is case.result, case.id
        if opcode in NEEDS_DECLARED:
            with pytest.raises(ShapeError, match="must be given"):
                check_shape(opcode, operands, attributes, None)
        elif opcode not in PREFERRED or {o.element_type for o in operands} == {case.result.element_type}:
            assert check_shape(opcode, operands, attributes, None) == case.result, case.id


def _same_kind_arity() -> list[tuple[Opcode, int]]:
    plain = [o for o, spec in SPECS.items() if Trait.ELEMENTWISE in spec.traits and spec.attributes is Attributes]
    return [(o, SPECS[o].arity or 0) for o in plain if o not in (O.SELECT, O.CONVERT, O.COPY, O.STOCHASTIC_CONVERT)]


@pytest.mark.parametrize(("opcode", "arity"), _same_kind_arity(), ids=str)
def test_admitted_element_types_are_those_of_the_table(opcode: Opcode, arity: int) -> None:
    """Of the small types some stand for all of their kind."""
    in_table = {c.operands[0].element_type for c in CASES if c.opcode is opcode and isinstance(c.operands[0], Array)}
    kinds = {(t.is_floating, t.is_signed) for t in in_table if t.is_small}
    for element_type in E:
        operands = [Shape.array(element_type, (2,))] * arity
        is_alike = element_type.is_small and (element_type.is_floating, element_type.is_signed) in kinds
        if element_type in in_table or is_alike:
            assert check_shape(opcode, operands, NO_ATTRIBUTES, None).dimensions == (2,)
        else:
            with pytest.raises(ShapeError, match=rf"\[{opcode.value}_c1\]"):
                check_shape(opcode, operands, NO_ATTRIBUTES, None)


def _identity(shape: Shape) -> HloComputation:
    parameter = make_parameter(0, shape)
    return make_computation("identity", parameter, [parameter])


def _returns(argument: str, value: object) -> HloComputation:
    return make_computation("returns", make_constant(value), [make_parameter(0, s(argument))])


_ADD_F32 = binary_computation(O.ADD, E.F32)
_ADD_S32 = binary_computation(O.ADD, E.S32)
_BAD_ROOT = make_computation("bad_root", make_constant(1), [make_parameter(i, s("f32[]")) for i in range(2)])
_THREEFRY = RngBitGeneratorAttributes(RandomAlgorithm.THREEFRY)
_SCALED = DotAttributes((), (), (1,), (0,))


def _ragged(ragged: tuple[int, ...], groups: tuple[int, ...]) -> RaggedDotAttributes:
    return RaggedDotAttributes(DotAttributes((), (), (1,), (1,)), ragged, groups)


_MAP_F32 = MapAttributes((0,), _identity(s("f32[]")))
_BATCH_NORM = BatchNormAttributes(0.1, 0)
_UNIFORM = RngAttributes(RandomDistribution.UNIFORM)
_PHILOX = RngBitGeneratorAttributes(RandomAlgorithm.PHILOX)
_IDENTITY_F32 = _identity(s("f32[]"))
_IDENTITY_S32 = _identity(s("s32[]"))
_LT = CompareAttributes(ComparisonDirection.LT)


def _compare_as(comparison: ComparisonType) -> CompareAttributes:
    return CompareAttributes(ComparisonDirection.EQ, comparison)


_LEFT = TriangularSolveAttributes(left_side=True)


def _fft(kind: str, *lengths: int) -> FftAttributes:
    return FftAttributes(FftType(kind), lengths)


def _custom_call(
    *aliases: tuple[tuple[int, ...], int, tuple[int, ...]], layouts: list[str] | None = None
) -> CustomCallAttributes:
    constraints = None if layouts is None else tuple(s(text) for text in layouts)
    pairs = tuple(OutputOperandAlias(*alias) for alias in aliases)
    return CustomCallAttributes("x", operand_layout_constraints=constraints, output_to_operand_aliasing=pairs)


VIOLATIONS: list[tuple[str, Opcode, list[str], Attributes, str | None]] = [
    ("abs_c1", O.ABS, ["u8[2]"], NO_ATTRIBUTES, None),
    ("add_c1", O.ADD, ["(f32[])", "(f32[])"], NO_ATTRIBUTES, None),
    ("add_c2", O.ADD, ["f32[2]", "f64[2]"], NO_ATTRIBUTES, None),
    ("add_c3", O.ADD, ["f32[2]", "f32[1]"], NO_ATTRIBUTES, None),
    ("add_c3", O.ADD, ["f32[2]", "f32[]"], NO_ATTRIBUTES, None),
    ("add_arity", O.ADD, ["f32[2]"], NO_ATTRIBUTES, None),
    ("fft_c1", O.FFT, ["f32[4]"], _fft("FFT", 4), None),
    ("fft_c1", O.FFT, ["c64[4]"], _fft("RFFT", 4), None),
    ("fft_c1", O.FFT, ["f16[4]"], _fft("RFFT", 4), None),
    ("fft_c2", O.FFT, ["c64[4]"], _fft("FFT"), None),
    ("fft_c2", O.FFT, ["c64[4]"], _fft("FFT", 4, 4), None),
    ("fft_c2", O.FFT, ["c64[2,2,2,2]"], _fft("FFT", 2, 2, 2, 2), None),
    ("fft_c3", O.FFT, ["c64[4]"], _fft("FFT", 5), None),
    ("fft_c3", O.FFT, ["c64[4,3]"], _fft("IRFFT", 3, 4), None),
    ("fft_c4", O.FFT, ["c64[4]"], _fft("IRFFT", 8), None),
    ("fft_c4", O.FFT, ["c64[1]"], _fft("IRFFT", 0), None),
    ("triangular-solve_c1", O.TRIANGULAR_SOLVE, ["s32[2,2]", "s32[2,2]"], _LEFT, None),
    ("triangular-solve_c1", O.TRIANGULAR_SOLVE, ["f32[2,2]", "f64[2,2]"], _LEFT, None),
    ("triangular-solve_c1", O.TRIANGULAR_SOLVE, ["(f32[2,2])", "f32[2,2]"], _LEFT, None),
    ("triangular-solve_c2", O.TRIANGULAR_SOLVE, ["f32[2,2]", "f32[2]"], _LEFT, None),
    ("triangular-solve_c2", O.TRIANGULAR_SOLVE, ["f32[2]", "f32[2]"], _LEFT, None),
    ("triangular-solve_c3", O.TRIANGULAR_SOLVE, ["f32[2,3]", "f32[2,3]"], _LEFT, None),
    ("triangular-solve_c4", O.TRIANGULAR_SOLVE, ["f32[2,2]", "f32[3,2]"], _LEFT, None),
    ("triangular-solve_c4", O.TRIANGULAR_SOLVE, ["f32[2,2]", "f32[2,3]"], TriangularSolveAttributes(), None),
    ("triangular-solve_c5", O.TRIANGULAR_SOLVE, ["f32[1,2,2]", "f32[3,2,2]"], _LEFT, None),
    ("iota_attributes", O.IOTA, [], NO_ATTRIBUTES, "f32[2]"),
    ("add_result", O.ADD, ["f32[2]", "f32[2]"], NO_ATTRIBUTES, "f32[3]"),
    ("compare_c1", O.COMPARE, ["(f32[])", "(f32[])"], _LT, None),
    ("compare_c2", O.COMPARE, ["f32[2]", "s32[2]"], _LT, None),
    ("compare_c3", O.COMPARE, ["f32[2]", "f32[3]"], _LT, None),
    ("compare_c4", O.COMPARE, ["c64[2]", "c64[2]"], _LT, None),
    ("compare_c5", O.COMPARE, ["s32[2]", "s32[2]"], _compare_as(ComparisonType.UNSIGNED), None),
    ("compare_c5", O.COMPARE, ["u32[2]", "u32[2]"], _compare_as(ComparisonType.SIGNED), None),
    ("compare_c5", O.COMPARE, ["c64[2]", "c64[2]"], _compare_as(ComparisonType.TOTALORDER), None),
    ("compare_c5", O.COMPARE, ["s32[2]", "s32[2]"], _compare_as(ComparisonType.FLOAT), None),
    ("select_c1", O.SELECT, ["s32[2]", "f32[2]", "f32[2]"], NO_ATTRIBUTES, None),
    ("select_c2", O.SELECT, ["pred[2]", "f32[2]", "s32[2]"], NO_ATTRIBUTES, None),
    ("select_c2", O.SELECT, ["pred[]", "(f32[2])", "(f32[2])"], NO_ATTRIBUTES, None),
    ("select_c3", O.SELECT, ["pred[1]", "f32[2]", "f32[2]"], NO_ATTRIBUTES, None),
    ("clamp_c1", O.CLAMP, ["c64[]", "c64[2]", "c64[]"], NO_ATTRIBUTES, None),
    ("clamp_c2", O.CLAMP, ["f32[]", "f32[2]", "f64[]"], NO_ATTRIBUTES, None),
    ("clamp_c3", O.CLAMP, ["f32[1]", "f32[2]", "f32[]"], NO_ATTRIBUTES, None),
    ("convert_c1", O.CONVERT, ["(f32[])"], NO_ATTRIBUTES, "f32[]"),
    ("convert_c2", O.CONVERT, ["f32[2]"], NO_ATTRIBUTES, "s32[3]"),
    ("bitcast-convert_c1", O.BITCAST_CONVERT, ["(f32[])"], NO_ATTRIBUTES, "f32[]"),
    ("bitcast-convert_c2", O.BITCAST_CONVERT, ["pred[2]"], NO_ATTRIBUTES, "u8[2]"),
    ("bitcast-convert_c2", O.BITCAST_CONVERT, ["c64[2]"], NO_ATTRIBUTES, "f32[2,2]"),
    ("bitcast-convert_c3", O.BITCAST_CONVERT, ["f32[2]"], NO_ATTRIBUTES, "u32[3]"),
    ("bitcast-convert_c3", O.BITCAST_CONVERT, ["f64[2]"], NO_ATTRIBUTES, "u32[2]"),
    ("bitcast-convert_c3", O.BITCAST_CONVERT, ["u8[2,3]"], NO_ATTRIBUTES, "u32[2]"),
    ("bitcast-convert_c3", O.BITCAST_CONVERT, ["u8[]"], NO_ATTRIBUTES, "u32[]"),
    ("bitcast_c1", O.BITCAST, ["f32[2]"], NO_ATTRIBUTES, "(f32[2])"),
    ("bitcast_c2", O.BITCAST, ["f32[2]"], NO_ATTRIBUTES, "f32[3]"),
    ("bitcast_c2", O.BITCAST, ["f32[2]"], NO_ATTRIBUTES, "f64[2]"),
    ("broadcast_c1", O.BROADCAST, ["f32[]"], BroadcastAttributes(()), "s32[2]"),
    ("broadcast_c2", O.BROADCAST, ["f32[2]"], BroadcastAttributes(()), "f32[2]"),
    ("broadcast_c3", O.BROADCAST, ["f32[2]"], BroadcastAttributes((1,)), "f32[2]"),
    ("broadcast_c3", O.BROADCAST, ["f32[2,2]"], BroadcastAttributes((0, 0)), "f32[2,2]"),
    ("broadcast_c4", O.BROADCAST, ["f32[1]"], BroadcastAttributes((0,)), "f32[2]"),
    ("concatenate_c1", O.CONCATENATE, [], ConcatenateAttributes(0), None),
    ("concatenate_c1", O.CONCATENATE, ["(f32[2])"], ConcatenateAttributes(0), None),
    ("concatenate_c2", O.CONCATENATE, ["f32[2]", "s32[2]"], ConcatenateAttributes(0), None),
    ("concatenate_c3", O.CONCATENATE, ["f32[2]", "f32[2]"], ConcatenateAttributes(1), None),
    ("concatenate_c4", O.CONCATENATE, ["f32[2,3]", "f32[2,4]"], ConcatenateAttributes(0), None),
    ("concatenate_c4", O.CONCATENATE, ["f32[2]", "f32[2,2]"], ConcatenateAttributes(0), None),
    ("cholesky_c1", O.CHOLESKY, ["s32[2,2]"], CholeskyAttributes(True), None),
    ("cholesky_c1", O.CHOLESKY, ["(f32[2,2])"], CholeskyAttributes(True), None),
    ("cholesky_c2", O.CHOLESKY, ["f32[2]"], CholeskyAttributes(True), None),
    ("cholesky_c3", O.CHOLESKY, ["f32[2,3]"], CholeskyAttributes(True), None),
    ("custom-call_c1", O.CUSTOM_CALL, ["f32[2]"], _custom_call(), None),
    ("custom-call_c2", O.CUSTOM_CALL, ["f32[2]"], CustomCallAttributes(""), "f32[2]"),
    ("custom-call_c3", O.CUSTOM_CALL, ["f32[2]"], _custom_call(layouts=["f32[2]", "f32[2]"]), "f32[2]"),
    ("custom-call_c3", O.CUSTOM_CALL, ["f32[2]"], _custom_call(layouts=[]), "f32[2]"),
    ("custom-call_c4", O.CUSTOM_CALL, ["f32[2]"], _custom_call(layouts=["f32[3]"]), "f32[2]"),
    ("custom-call_c5", O.CUSTOM_CALL, ["f32[2]"], _custom_call(((), 1, ())), "f32[2]"),
    ("custom-call_c5", O.CUSTOM_CALL, ["f32[2]"], _custom_call(((0,), 0, ())), "f32[2]"),
    ("custom-call_c5", O.CUSTOM_CALL, ["(f32[2])"], _custom_call(((), 0, (1,))), "f32[2]"),
    ("custom-call_c6", O.CUSTOM_CALL, ["f32[2]"], _custom_call(((), 0, ())), "f32[3]"),
    ("custom-call_c7", O.CUSTOM_CALL, ["f32[2]"], _custom_call(((), 0, ()), ((), 0, ())), "f32[2]"),
    ("dynamic-slice_c1", O.DYNAMIC_SLICE, [], DynamicSliceAttributes(()), None),
    ("dynamic-slice_c2", O.DYNAMIC_SLICE, ["f32[2]"], DynamicSliceAttributes((1,)), None),
    ("dynamic-slice_c3", O.DYNAMIC_SLICE, ["f32[2]", "f32[]"], DynamicSliceAttributes((1,)), None),
    ("dynamic-slice_c3", O.DYNAMIC_SLICE, ["f32[2]", "s32[1]"], DynamicSliceAttributes((1,)), None),
    ("dynamic-slice_c3", O.DYNAMIC_SLICE, ["f32[2,2]", "s32[]", "s64[]"], DynamicSliceAttributes((1, 1)), None),
    ("dynamic-slice_c4", O.DYNAMIC_SLICE, ["f32[2]", "s32[]"], DynamicSliceAttributes((3,)), None),
    ("dynamic-slice_c4", O.DYNAMIC_SLICE, ["f32[2]", "s32[]"], DynamicSliceAttributes(()), None),
    ("dynamic-update-slice_c1", O.DYNAMIC_UPDATE_SLICE, ["f32[2]"], NO_ATTRIBUTES, None),
    ("dynamic-update-slice_c1", O.DYNAMIC_UPDATE_SLICE, ["f32[2]", "s32[1]", "s32[]"], NO_ATTRIBUTES, None),
    ("dynamic-update-slice_c2", O.DYNAMIC_UPDATE_SLICE, ["f32[2]", "f32[1]"], NO_ATTRIBUTES, None),
    ("dynamic-update-slice_c3", O.DYNAMIC_UPDATE_SLICE, ["f32[2]", "f32[1]", "pred[]"], NO_ATTRIBUTES, None),
    ("dynamic-update-slice_c4", O.DYNAMIC_UPDATE_SLICE, ["f32[2]", "f32[3]", "s32[]"], NO_ATTRIBUTES, None),
    ("iota_c1", O.IOTA, [], IotaAttributes(0), "pred[2]"),
    ("iota_c2", O.IOTA, [], IotaAttributes(0), "f32[]"),
    ("pad_c1", O.PAD, ["f32[2]", "s32[]"], PadAttributes((0,), (0,), (0,)), None),
    ("pad_c1", O.PAD, ["f32[2]", "f32[1]"], PadAttributes((0,), (0,), (0,)), None),
    ("pad_c2", O.PAD, ["f32[2]", "f32[]"], PadAttributes((0,), (0, 0), (0,)), None),
    ("pad_c3", O.PAD, ["f32[2]", "f32[]"], PadAttributes((0,), (0,), (-1,)), None),
    ("pad_c4", O.PAD, ["f32[2]", "f32[]"], PadAttributes((-2,), (-1,), (0,)), None),
    ("reshape_c1", O.RESHAPE, ["f32[2]"], NO_ATTRIBUTES, "s32[2]"),
    ("reshape_c2", O.RESHAPE, ["f32[2]"], NO_ATTRIBUTES, "f32[3]"),
    ("reverse_c1", O.REVERSE, ["(f32[2])"], ReverseAttributes(()), None),
    ("reverse_c2", O.REVERSE, ["f32[2]"], ReverseAttributes((0, 0)), None),
    ("slice_c1", O.SLICE, ["(f32[2])"], SliceAttributes((), (), ()), None),
    ("slice_c2", O.SLICE, ["f32[2]"], SliceAttributes((0,), (1,), ()), None),
    ("slice_c3", O.SLICE, ["f32[2]"], SliceAttributes((0,), (3,), (1,)), None),
    ("slice_c3", O.SLICE, ["f32[2]"], SliceAttributes((2,), (1,), (1,)), None),
    ("slice_c4", O.SLICE, ["f32[2]"], SliceAttributes((0,), (1,), (0,)), None),
    ("transpose_c1", O.TRANSPOSE, ["(f32[2])"], TransposeAttributes((0,)), None),
    ("transpose_c2", O.TRANSPOSE, ["f32[2,3]"], TransposeAttributes((0,)), None),
    ("reduce_c1", O.REDUCE, ["f32[2]"], ReduceAttributes((0,), _ADD_F32), None),
    ("reduce_c1", O.REDUCE, [], ReduceAttributes((), _ADD_F32), None),
    ("reduce_c2", O.REDUCE, ["f32[2]", "f32[3]", "f32[]", "f32[]"], ReduceAttributes((0,), _ADD_F32), None),
    ("reduce_c3", O.REDUCE, ["f32[2]", "s32[]"], ReduceAttributes((0,), _ADD_F32), None),
    ("reduce_c3", O.REDUCE, ["f32[2]", "f32[1]"], ReduceAttributes((0,), _ADD_F32), None),
    ("reduce_c4", O.REDUCE, ["f32[2]", "f32[]"], ReduceAttributes((1,), _ADD_F32), None),
    ("reduce_c5", O.REDUCE, ["f32[2]", "f32[]"], ReduceAttributes((0,), _ADD_S32), None),
    ("reduce_c6", O.REDUCE, ["f32[2]", "f32[]"], ReduceAttributes((0,), _BAD_ROOT), None),
    ("dot_c1", O.DOT, ["(f32[2])", "f32[2]"], DotAttributes(), None),
    ("dot_c2", O.DOT, ["f32[2]", "f64[2]"], DotAttributes((), (), (0,), (0,)), None),
    ("dot_c3", O.DOT, ["f32[2]", "f32[2]"], DotAttributes((), (), (1,), (0,)), None),
    ("dot_c3", O.DOT, ["f32[2]", "f32[2]"], DotAttributes((0,), (0,), (0,), (0,)), None),
    ("dot_c4", O.DOT, ["f32[2]", "f32[2]"], DotAttributes((), (), (0,), ()), None),
    ("dot_c5", O.DOT, ["f32[2]", "f32[3]"], DotAttributes((), (), (0,), (0,)), None),
    ("dot_c6", O.DOT, ["f32[2]", "f32[2]"], DotAttributes((), (), (0,), (0,), algorithm="dot_f8"), "f32[]"),
    ("rng-bit-generator_c1", O.RNG_BIT_GENERATOR, ["u32[2]"], _THREEFRY, "(u32[2], u32[4])"),
    ("rng-bit-generator_c1", O.RNG_BIT_GENERATOR, ["u64[4]"], _PHILOX, "(u64[4], u32[4])"),
    ("rng-bit-generator_c2", O.RNG_BIT_GENERATOR, ["u64[2]"], _THREEFRY, "(u64[2], f32[4])"),
    ("rng-bit-generator_c2", O.RNG_BIT_GENERATOR, ["u64[2]"], _THREEFRY, "u32[4]"),
    ("ragged-dot_c1", O.RAGGED_DOT, ["f32[4,3]", "f32[2,3,5]", "f32[2]"], _ragged((0,), (0,)), None),
    ("ragged-dot_c2", O.RAGGED_DOT, ["f32[4,3]", "f32[2,3,5]", "s32[2]"], _ragged((2,), (0,)), None),
    ("ragged-dot_c3", O.RAGGED_DOT, ["f32[4,3]", "f32[2,3,5]", "s32[2]"], _ragged((0,), ()), None),
    ("ragged-dot_c3", O.RAGGED_DOT, ["f32[4,3]", "f32[2,3,5]", "s32[2]"], _ragged((0,), (1,)), None),
    ("ragged-dot_c4", O.RAGGED_DOT, ["f32[4,3]", "f32[2,3,5]", "s32[3]"], _ragged((0,), (0,)), None),
    ("ragged-dot_c5", O.RAGGED_DOT, ["f32[4,3]", "f32[2,3,5]", "s32[7,2]"], _ragged((0,), (0,)), None),
    ("scaled-dot_c1", O.SCALED_DOT, ["c64[2,4]", "f32[4,2]", "f32[1,1]", "f32[1,1]"], _SCALED, "f32[2,2]"),
    ("scaled-dot_c2", O.SCALED_DOT, ["f32[2,4]", "f32[4,2]", "f32[1,3]", "f32[1,1]"], _SCALED, "f32[2,2]"),
    ("map_c1", O.MAP, [], _MAP_F32, None),
    ("map_c2", O.MAP, ["f32[2]", "f32[3]"], _MAP_F32, None),
    ("map_c3", O.MAP, ["f32[2,3]"], _MAP_F32, None),
    ("map_c4", O.MAP, ["s32[2]"], _MAP_F32, None),
    ("map_c5", O.MAP, ["f32[2]"], MapAttributes((0,), _returns("f32[]", [1, 2, 3])), None),
    ("reduce-precision_c1", O.REDUCE_PRECISION, ["s32[2]"], ReducePrecisionAttributes(5, 2), None),
    ("reduce-precision_c2", O.REDUCE_PRECISION, ["f32[2]"], ReducePrecisionAttributes(0, 2), None),
    ("reduce-precision_c3", O.REDUCE_PRECISION, ["f32[2]"], ReducePrecisionAttributes(5, -1), None),
    ("stochastic-convert_c1", O.STOCHASTIC_CONVERT, ["s32[2]", "u32[2]"], NO_ATTRIBUTES, "s8[2]"),
    ("stochastic-convert_c2", O.STOCHASTIC_CONVERT, ["f32[2]", "u16[2]"], NO_ATTRIBUTES, "s8[2]"),
    ("stochastic-convert_c3", O.STOCHASTIC_CONVERT, ["f32[2]", "u32[3]"], NO_ATTRIBUTES, "s8[2]"),
    ("stochastic-convert_c4", O.STOCHASTIC_CONVERT, ["f32[2]", "u32[2]"], NO_ATTRIBUTES, "u8[2]"),
    ("batch-norm-training_c1", O.BATCH_NORM_TRAINING, ["s32[2]", "s32[2]", "s32[2]"], _BATCH_NORM, None),
    ("batch-norm-training_c2", O.BATCH_NORM_TRAINING, ["f32[]", "f32[2]", "f32[2]"], _BATCH_NORM, None),
    ("batch-norm-training_c3", O.BATCH_NORM_TRAINING, ["f32[2,3]", "f32[2]", "f32[3]"], _BATCH_NORM, None),
    ("batch-norm-inference_c1", O.BATCH_NORM_INFERENCE, ["s32[2]"] * 5, _BATCH_NORM, None),
    ("batch-norm-inference_c2", O.BATCH_NORM_INFERENCE, ["f32[]"] + ["f32[2]"] * 4, _BATCH_NORM, None),
    ("batch-norm-inference_c3", O.BATCH_NORM_INFERENCE, ["f32[2]"] * 4 + ["f64[2]"], _BATCH_NORM, None),
    ("batch-norm-grad_c1", O.BATCH_NORM_GRAD, ["c64[2]"] * 5, _BATCH_NORM, None),
    ("batch-norm-grad_c2", O.BATCH_NORM_GRAD, ["f32[]"] * 5, _BATCH_NORM, None),
    ("batch-norm-grad_c3", O.BATCH_NORM_GRAD, ["f32[2]", "f32[3]"] + ["f32[2]"] * 3, _BATCH_NORM, None),
    ("batch-norm-grad_c4", O.BATCH_NORM_GRAD, ["f32[2]"] * 4 + ["f32[3]"], _BATCH_NORM, None),
    ("rng_c1", O.RNG, ["f32[]", "f32[]"], _UNIFORM, "(f32[2])"),
    ("rng_c2", O.RNG, ["f32[]"], _UNIFORM, "f32[2]"),
    ("rng_c3", O.RNG, ["f32[]", "f32[2]"], _UNIFORM, "f32[2]"),
    ("rng_c4", O.RNG, ["f32[]", "f64[]"], _UNIFORM, "f32[2]"),
    ("rng_c4", O.RNG, ["s32[]"], RngAttributes(RandomDistribution.BERNOULLI), "pred[2]"),
    ("rng_c5", O.RNG, ["s32[]", "s32[]"], RngAttributes(RandomDistribution.NORMAL), "s32[2]"),
    ("rng-get-and-update-state_c1", O.RNG_GET_AND_UPDATE_STATE, [], RngGetAndUpdateStateAttributes(-1), "u64[2]"),
    ("call_c1", O.CALL, ["f32[]"], CallAttributes(_ADD_F32), None),
    ("while_c1", O.WHILE, ["s32[]"], WhileAttributes(_returns("f32[]", True), _IDENTITY_S32), None),
    ("while_c1", O.WHILE, ["s32[]"], WhileAttributes(_returns("s32[]", True), _IDENTITY_F32), None),
    ("while_c2", O.WHILE, ["s32[]"], WhileAttributes(_IDENTITY_S32, _IDENTITY_S32), None),
    ("while_c3", O.WHILE, ["s32[]"], WhileAttributes(*[_returns("s32[]", True)] * 2), None),
    ("conditional_c1", O.CONDITIONAL, ["u32[]", "f32[]"], ConditionalAttributes((_IDENTITY_F32,)), None),
    ("conditional_c1", O.CONDITIONAL, ["s32[1]", "f32[]"], ConditionalAttributes((_IDENTITY_F32,)), None),
    ("conditional_c2", O.CONDITIONAL, ["pred[]", "f32[]"], ConditionalAttributes((_IDENTITY_F32,)), None),
    ("conditional_c2", O.CONDITIONAL, ["s32[]"], ConditionalAttributes(()), None),
    ("conditional_c3", O.CONDITIONAL, ["s32[]"], ConditionalAttributes((_IDENTITY_F32,)), None),
    ("conditional_c4", O.CONDITIONAL, ["s32[]", "s32[]"], ConditionalAttributes((_IDENTITY_F32,)), None),
    (
        "conditional_c5",
        *(O.CONDITIONAL, ["pred[]", "f32[]", "s32[]"]),
        *(ConditionalAttributes((_IDENTITY_F32, _IDENTITY_S32)), None),
    ),
    ("fusion_c1", O.FUSION, ["f32[]"], FusionAttributes(FusionKind.LOOP, _ADD_F32), None),
    ("get-tuple-element_c1", O.GET_TUPLE_ELEMENT, ["f32[2]"], GetTupleElementAttributes(0), None),
    ("get-tuple-element_c2", O.GET_TUPLE_ELEMENT, ["(f32[2])"], GetTupleElementAttributes(1), None),
    ("get-tuple-element_c2", O.GET_TUPLE_ELEMENT, ["(f32[2])"], GetTupleElementAttributes(-1), None),
    ("parameter_c1", O.PARAMETER, [], ParameterAttributes(0), None),
    ("parameter_c2", O.PARAMETER, [], ParameterAttributes(-1), "f32[]"),
    *INDEXING_VIOLATIONS,
    *STRUCTURE_VIOLATIONS,
    *WINDOW_VIOLATIONS,
]


@pytest.mark.parametrize(
    ("label", "opcode", "operands", "attributes", "declared"),
    VIOLATIONS,
    ids=[f"{v[0]}-{i}" for i, v in enumerate(VIOLATIONS)],
)
def test_violations_are_refused(
    label: str, opcode: Opcode, operands: Sequence[str], attributes: Attributes, declared: str | None
) -> None:
    shapes = [s(o) for o in operands]
    with pytest.raises(ShapeError) as caught:
        check_shape(opcode, shapes, attributes, None if declared is None else s(declared))
    assert caught.value.label == label
    assert opcode.value in str(caught.value)
    if not label.endswith(("_arity", "_attributes")):
        assert all(str(shape) in str(caught.value) for shape in shapes)


def test_every_label_has_a_violation() -> None:
    tested = {v[0] for v in VIOLATIONS}
    factory = SPECS[O.ADD].shape_rule.__doc__
    for opcode, spec in SPECS.items():
        document = spec.shape_rule.__doc__ or ""
        if document != factory or opcode is O.ADD:
            missing = {f"{opcode.value}_{c}" for c in re.findall(r"\bc\d\b", document)} - tested
            assert not missing, f"no violation of {sorted(missing)} is tested"


def test_elements_of_one_type_only() -> None:
    for x, y in product(E, E):
        if x is not y:
            with pytest.raises(ShapeError):
                check_shape(O.ADD, [Shape.array(x), Shape.array(y)], NO_ATTRIBUTES, None)


def test_a_declared_shape_keeps_its_layout() -> None:
    column_major = Shape.parse("f32[2,3]{0,1}")
    x = make_parameter(0, column_major)
    assert make_instruction(O.NEGATE, [x], shape=column_major).shape == column_major
    assert make_instruction(O.NEGATE, [x]).shape == s("f32[2,3]")
