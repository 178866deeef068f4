"""ComputationBuilder: parameters, constants, errors, sub-builders, building. The operations are tested by the examples
of the seeds, the four pages of XLA's first documentation (2017), in `test_seeds_*.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import (
    BuildError,
    Computation,
    ComputationBuilder,
    ComputationDataHandle,
    ElementType,
    HloError,
    Layout,
    Literal,
    LocalClient,
    Opcode,
    Padding,
    PaddingConfig,
    Shape,
    evaluate,
    parse,
    verify,
)
from hloom.hlo.client import constants
from hloom.hlo.client.core import BuilderCore
from hloom.hlo.client.operation import Operation, add_operations
from hloom.hlo.ir import Attributes
from hloom.hlo.ops import SPECS, Trait, spec_of

from support.seed_program import scalar_computation

VECTOR = Shape.parse("f32[3]")


def builder() -> ComputationBuilder:
    return ComputationBuilder("test")


# ---- the interface is whole

METHODS = (
    "client", "name", "set_die_immediately_on_error", "parameter", "get_shape", "check_shape", "check_same_shape",
    "constant_literal", "constant_r0", "constant_r1", "constant_r2", "constant_r2_from_array2d",
    "constant_r3_from_array3d", "constant_r4_from_array4d", "broadcast", "pad", "reshape", "collapse", "slice",
    "concat_in_dim", "trace", "select", "tuple", "get_tuple_element", "eq", "ne", "ge", "gt", "lt", "le", "dot",
    "create_default_conv_dimension_numbers", "create_conv_dimension_numbers", "conv", "conv_with_general_padding",
    "conv_with_general_dimensions", "conv_general", "infeed", "custom_call_op", "add", "sub", "mul", "div", "rem",
    "max", "min", "reduce", "reduce_window", "reduce_window_with_general_padding", "select_and_scatter",
    "select_and_scatter_with_general_padding", "exp", "floor", "ceil", "log", "tanh", "sqrt_f32", "square_f32",
    "pow", "convert_element_type", "reciprocal_f32", "neg", "trans", "rev", "sort", "clamp", "map", "rng_normal",
    "rng_uniform", "rng_bernoulli", "while_", "compute_constant", "create_sub_builder", "set_return_value", "build",
    "build_and_note_error",
)  # fmt: skip
"""The members of the class in the seeds' "C++ interface", in snake_case."""
SECTIONS = (
    "abs", "and_", "or_", "not_", "logical_and", "logical_or", "logical_not", "batch_norm_training",
    "batch_norm_inference", "batch_norm_grad", "call", "conv_general_dilated", "convert_element_type", "cos",
    "cross_replica_sum", "custom_call", "dynamic_slice", "dynamic_update_slice", "is_finite", "outfeed",
    "reciprocal", "reduce_precision", "sign", "sin", "sqrt", "square", "transpose",
)  # fmt: skip
"""Further operations that "Operation Semantics" has a section for, and later forms of the above."""


@pytest.mark.parametrize("name", [*METHODS, *SECTIONS])
def test_the_interface_has(name: str) -> None:
    member = inspect.getattr_static(ComputationBuilder, name)
    documented = member.__func__ if isinstance(member, staticmethod) else member
    assert documented.__doc__


def test_an_op_is_a_method_by_its_declaration() -> None:
    """An element-wise op without attributes that no line of the class names gets its method from its spec."""

    class Bare(BuilderCore):
        pass

    add_operations(Bare, map(spec_of, (Opcode.TAN, Opcode.ATAN2, Opcode.TRANSPOSE, Opcode.CONVERT)))
    assert [name for name in vars(Bare) if not name.startswith("_")] == ["tan", "atan2"]
    bare: Any = Bare("test")
    x = constants.parameter(bare._construction, 0, VECTOR)
    assert bare.atan2(bare.tan(x), x).instruction.opcode is Opcode.ATAN2
    bare.tan(bare.atan2)
    assert "Bare.tan" in str(bare.first_error) and "builder_c1" in bare.first_error.label
    assert str(inspect.signature(Bare.tan)).startswith("(self: ") and Bare.tan.__doc__  # type: ignore[attr-defined]


def test_every_plain_op_is_a_method() -> None:
    methods = {m.opcode for m in vars(ComputationBuilder).values() if isinstance(m, Operation)}
    plain = {o for o, spec in SPECS.items() if spec.attributes is Attributes and Trait.ELEMENTWISE in spec.traits}
    assert plain - methods == {Opcode.CONVERT, Opcode.STOCHASTIC_CONVERT, Opcode.SELECT, Opcode.CLAMP}


def test_the_class_has_one_base() -> None:
    assert ComputationBuilder.__mro__ == (ComputationBuilder, BuilderCore, object)


def test_conv_constants() -> None:
    numbers = ComputationBuilder.create_default_conv_dimension_numbers()
    assert numbers.input_batch == ComputationBuilder.CONV_BATCH_DIMENSION
    assert numbers.input_feature == ComputationBuilder.CONV_FEATURE_DIMENSION
    assert numbers.input_spatial == (
        ComputationBuilder.CONV_FIRST_SPATIAL_DIMENSION,
        ComputationBuilder.CONV_SECOND_SPATIAL_DIMENSION,
    )
    assert numbers.kernel_output_feature == ComputationBuilder.CONV_KERNEL_OUTPUT_DIMENSION
    assert numbers.kernel_input_feature == ComputationBuilder.CONV_KERNEL_INPUT_DIMENSION
    assert numbers.kernel_spatial == (
        ComputationBuilder.CONV_KERNEL_FIRST_SPATIAL_DIMENSION,
        ComputationBuilder.CONV_KERNEL_SECOND_SPATIAL_DIMENSION,
    )
    assert numbers == ComputationBuilder.create_conv_dimension_numbers(0, 1, 2, 3, 0, 1, 2, 3)


@pytest.mark.parametrize("numbers", [(0, 0, 2, 3, 0, 1, 2, 3), (0, 1, 2, 3, 0, 1, 2, 2)], ids=["input", "kernel"])
def test_conv_dimension_numbers_conflict(numbers: tuple[int, ...]) -> None:
    with pytest.raises(HloError, match=r"must be distinct \[convolution_c1\]"):
        ComputationBuilder.create_conv_dimension_numbers(*numbers)


# ---- constants


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (True, None, ElementType.PRED),
        (3, None, ElementType.S32),
        (3.5, None, ElementType.F32),
        (3.5j, None, ElementType.C64),
        (np.int64(3), None, ElementType.S64),
        (np.uint32(3), None, ElementType.U32),
        (np.float64(3), None, ElementType.F64),
        (3, ElementType.U64, ElementType.U64),
        (3, np.float64, ElementType.F64),
        (3.5, ml_dtypes.bfloat16, ElementType.BF16),
    ],
    ids=str,
)
def test_native_types(value: Any, dtype: Any, expected: ElementType) -> None:
    b = builder()
    handle = b.constant_r0(value, dtype)
    assert b.get_shape(handle) == Shape.array(expected)
    np.testing.assert_array_equal(b.compute_constant(handle), np.asarray(value, expected.dtype))


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_constants_of_ranks(rank: int) -> None:
    b = builder()
    values = np.arange(2**rank).reshape((2,) * rank)
    for make, given in (
        (getattr(b, f"constant_r{rank}"), values.tolist()),
        (getattr(b, f"constant_r{rank}_from_array{rank}d", b.constant_r1), values.astype(np.int32)),
    ):
        handle = make(given)
        assert str(b.get_shape(handle)) == f"s32[{','.join('2' * rank)}]"
        np.testing.assert_array_equal(b.compute_constant(handle), values)


def test_vector_of_one_value() -> None:
    b = builder()
    handle = b.constant_r1(3, 1.5)
    assert str(b.get_shape(handle)) == "f32[3]"
    assert np.asarray(b.compute_constant(handle)).tolist() == [1.5, 1.5, 1.5]


def test_literals() -> None:
    b = builder()
    array = Literal(np.array([1, 2], np.int16))
    both = b.constant_literal((array, (Literal(True),)))
    assert str(b.get_shape(both)) == "(s16[2], (pred[]))"
    assert b.compute_constant(both).to_literal() == (array, (Literal(True),))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda b: b.constant_r0(2**31),
        lambda b: b.constant_r0(-1, ElementType.U8),
        lambda b: b.constant_r0([1]),
        lambda b: b.constant_r0("text"),
        lambda b: b.constant_r0(None),
        lambda b: b.constant_r1([[1]]),
        lambda b: b.constant_r1(-1, 0.0),
        lambda b: b.constant_r2([[1], [2, 3]]),
    ],
    ids=["too-large", "negative-unsigned", "rank", "text", "none", "rank-1", "negative-length", "ragged"],
)
def test_wrong_constants(wrong: Callable[[ComputationBuilder], object]) -> None:
    b = builder()
    wrong(b)
    with pytest.raises(BuildError) as caught:
        b.build()
    assert caught.value.label == "builder_c9"


def test_is_constant_and_compute_constant() -> None:
    b = builder()
    x = b.parameter(0, VECTOR, "x")
    three = b.add(b.constant_r0(1), b.constant_r0(2))
    mixed = b.add(x, b.constant_r0(1.0))
    assert b.is_constant(three) and not b.is_constant(mixed)
    assert int(np.asarray(b.compute_constant(three))) == 3
    with pytest.raises(BuildError, match=r"depends on parameter x, which is not known yet \[builder_c8\]"):
        b.compute_constant(mixed)
    assert b.first_error is None


def test_compute_constant_of_called_computations() -> None:
    """A called computation's parameters are values of the caller."""
    b = builder()
    total = b.reduce(b.constant_r1([1.0, 2.0]), b.constant_r0(0.0), scalar_computation("add", "add"), (0,))
    assert b.is_constant(total)
    assert float(np.asarray(b.compute_constant(total))) == 3


def test_compute_constant_in_a_layout() -> None:
    b = builder()
    data = b.compute_constant(b.constant_r2([[1, 2, 3], [4, 5, 6]]), Layout((0, 1)))
    assert data.shape.to_text() == "s32[2,3]{0,1}"
    assert np.asarray(data).tolist() == [[1, 2, 3], [4, 5, 6]]


# ---- shapes


def test_get_and_check_shape() -> None:
    b = builder()
    x = b.parameter(0, VECTOR, "x")
    assert b.get_shape(x) == x.shape == VECTOR
    assert b.check_shape(x, VECTOR) is x
    b.check_same_shape(x, b.neg(x))
    with pytest.raises(BuildError, match=r"check_shape\(f32\[3\]\) in 'test': .* expected s32\[3\] \[builder_c7\]"):
        b.check_shape(x, Shape.parse("s32[3]"))
    with pytest.raises(BuildError, match=r"the shapes differ: f32\[3\] and f32\[\] \[builder_c7\]"):
        b.check_same_shape(x, b.constant_r0(1.0))
    b.build()  # a failed check is raised at once, and not again


# ---- errors


def test_errors_are_deferred() -> None:
    """build raises the first error; errors that follow from it are silent."""
    b = builder()
    x, y = b.parameter(0, VECTOR, "x"), b.parameter(1, Shape.parse("f32[4]"), "y")
    wrong = b.add(x, y)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    assert wrong.failed and repr(wrong) == "<ComputationDataHandle: failed>"
    further = b.exp(b.tuple([x, b.mul(wrong, x)]))
    assert further.failed
    b.dot(x, y)
    assert [e.method for e in b.errors] == ["add", "dot"]
    for _ in range(2):
        with pytest.raises(BuildError) as caught:
            b.build()
        assert caught.value is b.first_error
    message = str(caught.value)
    assert message.startswith("ComputationBuilder.add(f32[3], f32[4]) in 'test': ")
    assert "[broadcasting_c6]" in message and f"{__file__}:{line} (in test_errors_are_deferred)" in message
    with pytest.raises(BuildError, match=r"\.add\("):
        b.get_shape(wrong)
    with pytest.raises(HloError, match="never made"):
        _ = wrong.shape


def test_die_immediately_on_error() -> None:
    b = builder()
    b.set_die_immediately_on_error(True)
    x = b.parameter(0, VECTOR, "x")
    with pytest.raises(BuildError, match=r"ComputationBuilder\.trans\(f32\[3\]\).*\[builder_c10\]") as caught:
        b.trans(x)
    assert (caught.value.label, caught.value.method) == ("builder_c10", "trans")
    assert b.first_error is None
    b.build()


def test_an_operation_of_several_steps_is_named_as_called() -> None:
    b = builder()
    b.conv(b.parameter(0, Shape.parse("f32[1,1,3]")), b.parameter(1, Shape.parse("f32[1,1,2]")), (1, 1), Padding.SAME)
    with pytest.raises(BuildError, match=r"ComputationBuilder\.conv\(.*window_strides \[1, 1\] must have 1 entries"):
        b.build()


X = "f32[2,3]"
WRONG: dict[str, tuple[Callable[[ComputationBuilder, ComputationDataHandle], object], str]] = {
    "no handle": (lambda b, x: b.exp(np.ones(3)), "builder_c1"),  # type: ignore[arg-type]
    "another builder's": (lambda b, x: b.exp(builder().constant_r0(1)), "builder_c2"),
    "parameter twice": (lambda b, x: b.parameter(0, VECTOR), "builder_c4"),
    "parameter without a shape": (lambda b, x: b.parameter(1, "f32[]"), "builder_c11"),  # type: ignore[arg-type]
    "no literal": (lambda b, x: b.constant_literal(3), "builder_c11"),  # type: ignore[arg-type]
    "element type": (lambda b, x: b.convert_element_type(x, "f33"), "builder_c11"),
    "no element type": (lambda b, x: b.convert_element_type(x, None), "builder_c11"),
    "dtype without an element type": (lambda b, x: b.convert_element_type(x, np.str_), "builder_c11"),
    "infeed without a shape": (lambda b, x: b.infeed(3), "builder_c11"),  # type: ignore[arg-type]
    "outfeed of another type": (lambda b, x: b.outfeed(x, VECTOR), "outfeed_c2"),
    "epsilon": (
        lambda b, x: b.batch_norm_training(x, x, x, "small", 0), "builder_c11",  # type: ignore[arg-type]
    ),
    "dimension numbers": (
        lambda b, x: b.conv_general(x, x, (), (), None), "builder_c11",  # type: ignore[arg-type]
    ),
    "bits": (lambda b, x: b.reduce_precision(x, 5.0, 10), "builder_c6"),  # type: ignore[arg-type]
    "random without a shape": (lambda b, x: b.rng_uniform(x, x, (3,)), "builder_c11"),  # type: ignore[arg-type]
    "negative parameter": (lambda b, x: b.parameter(-1, VECTOR), "parameter_c2"),
    "no computation": (lambda b, x: b.call(max, [x]), "builder_c5"),  # type: ignore[arg-type]
    "call of another type": (lambda b, x: b.call(scalar_computation("f", "neg", count=1), [x]), "call_c1"),
    "no integers": (lambda b, x: b.broadcast(x, (1.5,)), "builder_c6"),  # type: ignore[arg-type]
    "negative size": (lambda b, x: b.broadcast(x, (-1,)), "shape_c1"),
    "reshape": (lambda b, x: b.reshape(x, (7,)), "reshape_c2"),
    "reshape in no permutation": (lambda b, x: b.reshape(x, (0, 0), (6,)), "transpose_c2"),
    "collapse out of order": (lambda b, x: b.collapse(x, (1, 0)), "builder_c6"),
    "collapse with a gap": (lambda b, x: b.collapse(b.broadcast(x, (2,)), (0, 2)), "builder_c6"),
    "collapse beyond": (lambda b, x: b.collapse(x, (1, 2)), "builder_c6"),
    "pad without a config": (lambda b, x: b.pad(x, b.constant_r0(0.0), [(0, 0)]), "builder_c11"),  # type: ignore[arg-type]
    "pad of another rank": (lambda b, x: b.pad(x, b.constant_r0(0.0), PaddingConfig.of((0, 0))), "pad_c2"),
    "slice beyond": (lambda b, x: b.slice(x, (0, 0), (2, 4)), "slice_c3"),
    "concatenate nothing": (lambda b, x: b.concat_in_dim([], 0), "concatenate_c1"),
    "select by numbers": (lambda b, x: b.select(x, x, x), "select_c1"),
    "select tuples by an array": (
        lambda b, x: b.select(b.eq(x, x), b.tuple([x]), b.tuple([x])), "select_c3",
    ),
    "select of different tuples": (
        lambda b, x: b.select(b.constant_r0(True), b.tuple([x]), b.tuple([x, x])), "select_c2",
    ),
    "element of an array": (lambda b, x: b.get_tuple_element(x, 0), "get-tuple-element_c1"),
    "element beyond": (lambda b, x: b.get_tuple_element(b.tuple([x]), 1), "get-tuple-element_c2"),
    "dot of sizes": (lambda b, x: b.dot(x, x), "dot_c5"),
    "dot with a scalar": (lambda b, x: b.dot(x, b.constant_r0(1.0)), "builder_c10"),
    "arithmetic on a tuple": (lambda b, x: b.add(b.tuple([x]), x), "broadcasting_c1"),
    "types differ": (lambda b, x: b.add(x, b.constant_r0(1)), "add_c2"),
    "logical and of numbers": (lambda b, x: b.logical_and(x, x), "builder_c10"),
    "sqrt_f32 of s32": (lambda b, x: b.sqrt_f32(b.constant_r0(1)), "builder_c10"),
    "pair as padding": (
        lambda b, x: b.reduce_window(x, b.constant_r0(0.0), ADD, (1, 1), (1, 1), [(0, 0)] * 2),  # type: ignore[arg-type]
        "builder_c11",
    ),
    "Padding as pairs": (
        lambda b, x: b.reduce_window_with_general_padding(
            x, b.constant_r0(0.0), ADD, (1, 1), (1, 1), Padding.SAME  # type: ignore[arg-type]
        ),
        "builder_c11",
    ),
    "stride 0": (
        lambda b, x: b.reduce_window(x, b.constant_r0(0.0), ADD, (1, 1), (0, 1), Padding.SAME), "builder_c6",
    ),
    "reduce beyond": (lambda b, x: b.reduce(x, b.constant_r0(0.0), ADD, (2,)), "reduce_c4"),
    "map of nothing": (lambda b, x: b.map([], ADD), "map_c1"),
    "map in other dimensions": (
        lambda b, x: b.map([x], ADD, [b.constant_r1([1.0])], dimensions=(1, 0)), "map_c2",
    ),
    "start indices in a matrix": (lambda b, x: b.dynamic_slice(x, b.constant_r2([[0, 0]]), (1, 1)), "builder_c10"),
    "start indices of another rank": (lambda b, x: b.dynamic_slice(x, b.constant_r1([0]), (1, 1)), "dynamic-slice_c2"),
}  # fmt: skip
ADD = scalar_computation("add", "add")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    wrong, label = WRONG[name]
    b = builder()
    x = b.parameter(0, Shape.parse(X), "x")
    wrong(b, x)
    with pytest.raises(BuildError) as caught:
        b.build()
    assert caught.value.label == label, caught.value
    assert __file__ in str(caught.value)


# ---- build


def test_nothing_to_build() -> None:
    with pytest.raises(BuildError, match=r"nothing was enqueued.*\[builder_c3\]"):
        builder().build()


def test_parameters_without_a_gap() -> None:
    b = builder()
    b.parameter(0, VECTOR)
    b.parameter(2, VECTOR)
    with pytest.raises(BuildError, match=r"parameters \[0, 2\], but not \[1\].*\[builder_c4\]"):
        b.build()


def test_the_last_expression_is_returned_unless_told_otherwise() -> None:
    def build(choose: bool) -> Computation:
        b = builder()
        x = b.parameter(0, VECTOR, "x")
        y = b.exp(x)
        if choose:
            b.set_return_value(y)
        b.neg(y)
        return b.build()

    assert build(False).hlo.root.opcode is Opcode.NEGATE
    assert build(True).hlo.root.opcode is Opcode.EXP
    assert len(build(True).hlo.instructions) == 3  # what has no effect stays visible; passes remove it


def test_effects_are_not_returned() -> None:
    b = builder()
    x = b.parameter(0, VECTOR, "x")
    y = b.exp(x)
    b.outfeed(x)
    b.trace("x is", x)
    assert b.build().hlo.root is y.instruction
    b = builder()
    b.outfeed(b.parameter(0, VECTOR, "x"))
    assert str(b.build().result_shape) == "f32[3]"  # the parameter was the last expression
    assert {"outfeed", "after-all"} <= {i.opcode.value for i in _feeding().hlo.instructions}


def _feeding() -> Computation:
    b = builder()
    b.outfeed(b.infeed(VECTOR))
    b.infeed(Shape.parse("s32[]"))
    return b.build()


def test_queues_are_used_in_order() -> None:
    """Infeeds and outfeeds hang on one chain of tokens."""
    instructions = _feeding().hlo.instructions
    tokens = [i for i in instructions if i.opcode in (Opcode.INFEED, Opcode.OUTFEED)]
    assert [i.opcode for i in tokens] == [Opcode.INFEED, Opcode.OUTFEED, Opcode.INFEED]
    first, out, second = tokens
    assert first.operands[0].opcode is Opcode.AFTER_ALL
    assert out.operands[1].operands == (first,)
    assert second.operands == (out,)


def test_a_builder_starts_anew_after_build() -> None:
    b = builder()
    x = b.parameter(0, VECTOR, "x")
    first = b.build()
    y = b.parameter(0, Shape.parse("s32[]"), "y")
    b.neg(y)
    second = b.build()
    assert (str(first.result_shape), str(second.result_shape)) == ("f32[3]", "s32[]")
    b.exp(x)
    with pytest.raises(BuildError, match=r"built already \[builder_c2\]"):
        b.build()


def test_the_module_is_hlo() -> None:
    b = builder()
    x = b.parameter(0, Shape.parse(X), "x")
    b.reduce(b.add(x, b.constant_r1([1.0, 2.0, 3.0]), (1,)), b.constant_r0(0.0), ADD, (0, 1))
    computation = b.build()
    assert repr(computation) == "<Computation test: (f32[2,3]) -> f32[]>"
    verify(computation.module)
    assert computation.to_text() == parse(computation.to_text()).to_text()
    metadata = computation.hlo.root.metadata
    assert metadata is not None and (metadata.op_name, metadata.source_file) == ("reduce", __file__)
    assert evaluate(computation.module, np.ones((2, 3), np.float32))[0] == 18


def test_a_computation_can_be_used_by_several() -> None:
    """Also as an entry of its own, and after it was named anew in another module."""
    client = LocalClient("evaluator")
    outer = []
    for name in ("first", "add"):
        b = ComputationBuilder(name)
        x = b.parameter(0, VECTOR, "x")
        total = b.reduce(x, b.constant_r0(0.0), ADD, (0,))
        b.map([x, b.broadcast(b.call(ADD, [total, total]), (3,))], ADD)
        outer.append(b.build())
    for computation in outer:
        verify(computation.module)
    data = client.transfer_to_server(np.float32(2))
    assert np.asarray(client.execute(ADD, [data, data])) == 4


# ---- sub-builders


def test_sub_builders_inherit() -> None:
    client = LocalClient("evaluator")
    b = ComputationBuilder(client, "parent")
    assert b.client is client and b.name == "parent"
    b.set_die_immediately_on_error(True)
    sub = b.create_sub_builder("child")
    assert (sub.name, sub.client) == ("child", client)
    with pytest.raises(BuildError, match="the operand must be a matrix"):
        sub.trans(sub.constant_r0(1))


def test_build_and_note_error() -> None:
    b = builder()
    x = b.parameter(0, VECTOR, "x")
    sub = b.create_sub_builder("broken")
    sub.trans(sub.parameter(0, Shape.parse("f32[]")))
    broken = sub.build_and_note_error()
    assert broken.is_null and repr(broken) == "<Computation: not built>"
    assert b.reduce(x, b.constant_r0(0.0), broken, (0,)).failed
    with pytest.raises(BuildError, match=r"ComputationBuilder\.trans\(f32\[\]\) in 'broken'"):
        b.build()
    assert len(b.errors) == 1
    with pytest.raises(HloError, match="never built"):
        _ = broken.hlo
    with pytest.raises(HloError, match="no parent"):
        builder().build_and_note_error()


def test_sub_builders_of_good_computations() -> None:
    b = builder()
    sub = b.create_sub_builder("twice")
    y = sub.parameter(0, VECTOR, "y")
    sub.add(y, y)
    b.call(sub.build_and_note_error(), [b.parameter(0, VECTOR, "x")])
    (result,) = evaluate(b.build().module, np.array([1, 2, 3], np.float32))
    assert result.tolist() == [2, 4, 6]


@pytest.mark.parametrize("arguments", [(), (1,), ("a", "b"), ("a", "b", "c")], ids=str)
def test_wrong_construction(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"ComputationBuilder takes \(name\) or \(client, name\)"):
        ComputationBuilder(*arguments)


HOSTILE = ['x"y', "a\nb = f32[] constant(1)", "%p } ENTRY", "import os", "é", " ", "x, y"]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_names_are_data(name: str) -> None:
    """No name of a computation, a parameter or a target can say anything in text or in code."""
    b = ComputationBuilder(name)
    x = b.parameter(0, VECTOR, name)
    b.trace(name, x)
    b.neg(x)
    computation = b.build()
    module = parse(computation.to_text())
    assert [i.opcode.value for i in module.entry.instructions] == ["parameter", "custom-call", "negate"]
    assert module.entry.instructions[1].attributes.backend_config == name
    client = LocalClient("numba")
    result = client.execute_and_transfer(computation, [client.transfer_to_server(np.ones(3, np.float32))])
    assert result == Literal(-np.ones(3, np.float32))


def test_map_by_a_loop_of_nothing() -> None:
    """Static operands that are arrays, and no element to map over."""
    b = builder()
    sub = b.create_sub_builder("first")
    x, table = sub.parameter(0, Shape.parse("f32[]")), sub.parameter(1, VECTOR)
    sub.add(x, sub.reshape(sub.slice(table, (0,), (1,)), ()))
    b.map([b.parameter(0, Shape.parse("f32[2,0]"))], sub.build(), [b.constant_r1([1.0, 2.0, 3.0])])
    (result,) = evaluate(b.build().module, np.zeros((2, 0), np.float32))
    assert result.shape == (2, 0)


@pytest.mark.parametrize(
    ("result", "label"),
    [(lambda sub, x, table: table, "map_c3"), (lambda sub, x, table: sub.trans(table), "builder_c10")],
)
def test_map_by_a_loop_of_a_wrong_computation(result: Callable[..., ComputationDataHandle], label: str) -> None:
    b = builder()
    sub = b.create_sub_builder("wrong")
    x, table = sub.parameter(0, Shape.parse("f32[]")), sub.parameter(1, VECTOR)
    sub.set_return_value(result(sub, x, table))
    b.map([b.constant_r1([1.0])], sub.build_and_note_error(), [b.constant_r1([1.0, 2.0, 3.0])])
    with pytest.raises(BuildError) as caught:
        b.build()
    assert caught.value.label == label


def test_map_by_a_loop_calls_with_what_it_was_given() -> None:
    """A call inside the loop has the same error as the map."""
    b = builder()
    b.map([b.constant_r1([1.0])], ADD, [b.constant_r1([1.0, 2.0, 3.0])])
    with pytest.raises(BuildError, match=r"ComputationBuilder\.map\(.*takes \(f32\[\], f32\[\]\)") as caught:
        b.build()
    assert caught.value.label == "call_c1"
