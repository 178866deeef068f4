"""The evaluator: the meaning of each op, against NumPy and values written down here; effects on its environment."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations, product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import (
    ElementType,
    ExecutionError,
    HloComputation,
    HloModule,
    Layout,
    Opcode,
    Shape,
    UnsupportedError,
    element_type_of,
    evaluate,
    evaluate_computation,
    make_call,
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
)
from hloom.hlo.builder import check_shape
from hloom.hlo.evaluator import EVALUATE, evaluate_op
from hloom.hlo.evaluator.random import threefry_2x32
from hloom.hlo.host_buffers import HostBuffer
from hloom.hlo.ir import NO_ATTRIBUTES, Attributes
from hloom.hlo.ops import FAMILY, Trait, has_trait
from hloom.hlo.ops.dot import DotAttributes
from hloom.hlo.ops.elementwise import CompareAttributes, ComparisonDirection, ComparisonType
from hloom.hlo.ops.movement import BroadcastAttributes, PadAttributes
from hloom.hlo.ops.random import RandomAlgorithm, RngBitGeneratorAttributes
from hloom.hlo.ops.reduce import ReduceAttributes
from hloom.hlo.rules import RulesByFamily

from hloom.backend_check.op_table import CASES, binary_computation, build_module, check_results, make_inputs

E = ElementType
O = Opcode  # noqa: E741
NAN, INF = float("nan"), float("inf")


def run(opcode: Opcode, *operands: Any, attributes: Attributes = NO_ATTRIBUTES, result: Shape | None = None) -> Any:
    """One op on arrays, its result's shape inferred as eager execution does."""
    shapes = [Shape.array(element_type_of(x.dtype), x.shape) for x in operands]
    return evaluate_op(opcode, operands, attributes, check_shape(opcode, shapes, attributes, result))


def i8(*values: int) -> Any:
    return np.array(values, np.int8)


def u8(*values: int) -> Any:
    return np.array(values, np.uint8)


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def f16(*values: float) -> Any:
    return np.array(values, np.float16)


def bf16(*values: float) -> Any:
    return np.array(values, ml_dtypes.bfloat16)


def _readable(x: Any) -> Any:
    """bf16 as f32, because NumPy's tests do not know NaN of bf16."""
    return x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        (O.DIVIDE, [i8(7, -7, 7, -7, 0), i8(2, 2, -2, -2, 5)], i8(3, -3, -3, 3, 0)),
        (O.DIVIDE, [i8(5, -5, 0, -128), i8(0, 0, 0, -1)], i8(-1, -1, -1, -128)),
        (O.DIVIDE, [u8(5, 255), u8(0, 2)], u8(255, 127)),
        (O.REMAINDER, [i8(7, -7, 7, -7), i8(3, 3, -3, -3)], i8(1, -1, 1, -1)),
        (O.REMAINDER, [i8(5, -5, -128), i8(0, 0, -1)], i8(5, -5, 0)),
        (O.REMAINDER, [f32(5.5, -5.5, 1, INF, -0.0), f32(2, 2, INF, 2, 3)], f32(1.5, -1.5, 1, NAN, -0.0)),
        (O.POWER, [i8(2, -2, 3, 0, 7), i8(7, 3, 5, 0, 0)], i8(-128, -8, -13, 1, 1)),
        (O.POWER, [i8(1, -1, -1, 2, 0), i8(-5, -3, -2, -1, -1)], i8(1, -1, 1, 0, 0)),
        (O.ABS, [i8(-128, -3, 3)], i8(-128, 3, 3)),
        (O.NEGATE, [u8(0, 1, 255)], u8(0, 255, 1)),
        (O.SIGN, [f32(-0.0, 0.0, -3, NAN, INF)], f32(-0.0, 0.0, -1, NAN, 1)),
        (O.SHIFT_LEFT, [i8(1, 1, 1, -1), i8(7, 8, -1, 1)], i8(-128, 0, 0, -2)),
        (O.SHIFT_RIGHT_ARITHMETIC, [i8(-128, -128, 127, -1), i8(7, 8, 100, -1)], i8(-1, -1, 0, -1)),
        (O.SHIFT_RIGHT_ARITHMETIC, [u8(128, 128), u8(1, 200)], u8(192, 255)),
        (O.SHIFT_RIGHT_LOGICAL, [i8(-128, -1, -1), i8(7, 4, 8)], i8(1, 15, 0)),
        (O.NOT, [i8(0, -1, 5)], i8(-1, 0, -6)),
        (O.NOT, [np.array([True, False])], np.array([False, True])),
        (O.POPULATION_COUNT, [i8(-1, -128, 0, 7)], i8(8, 1, 0, 3)),
        (O.COUNT_LEADING_ZEROS, [i8(-1, 0, 1, 64)], i8(0, 8, 7, 1)),
        (O.ROUND_NEAREST_AFZ, [f32(0.5, -0.5, 2.5, 0.49999997, -0.2)], f32(1, -1, 3, 0, -0.0)),
        (O.ROUND_NEAREST_EVEN, [f32(0.5, -0.5, 1.5, 2.5)], f32(0, -0.0, 2, 2)),
        (O.MAXIMUM, [f32(1, NAN, 1), f32(2, 1, NAN)], f32(2, NAN, NAN)),
        (O.MINIMUM, [bf16(1, NAN, 1), bf16(2, 1, NAN)], bf16(1, NAN, NAN)),
        (O.CLAMP, [f32(0, 0, 3, NAN), f32(5, NAN, 0, 1), f32(1, 1, 2, 2)], f32(1, NAN, 2, NAN)),
        (O.LOGISTIC, [f32(0, -1000, 1000, NAN)], f32(0.5, 0, 1, NAN)),
        (O.RSQRT, [f32(4, 0, -0.0, INF, -1)], f32(0.5, INF, -INF, 0, NAN)),
        (O.CBRT, [f32(-8, 1, -0.0)], f32(-2, 1, -0.0)),
        (O.ADD, [bf16(256, 1), bf16(1, 2**-8)], bf16(256, 1)),
        (O.MULTIPLY, [f16(60000), f16(2)], f16(INF)),
        (O.ADD, [np.array([True, True, False]), np.array([True, False, False])], np.array([True, True, False])),
        (O.IMAG, [np.array([1 + 2j], np.complex64)], f32(2)),
        (O.ABS, [np.array([3 + 4j], np.complex64)], f32(5)),
        (O.SIGN, [np.array([3 + 4j, 0], np.complex64)], np.array([0.6 + 0.8j, 0], np.complex64)),
        (O.COMPLEX, [f32(1, INF), f32(NAN, 2)], np.array([complex(1, NAN), complex(INF, 2)], np.complex64)),
    ],
    ids=lambda value: value.value if isinstance(value, Opcode) else "",
)
def test_values(opcode: Opcode, operands: list[Any], expected: Any) -> None:
    actual = run(opcode, *operands)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(_readable(actual), _readable(expected))
    if actual.dtype.kind == "f":
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(expected[number]))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f32(1.9, -1.9, 300, -300, NAN, INF, -INF), i8(1, -1, 127, -128, 0, 127, -128)),
        (f32(1.9, -1.9, 300, NAN), u8(1, 0, 255, 0)),
        (f16(3.7, INF, NAN), np.array([3, 2**63 - 1, 0], np.int64)),
        (np.array([2.0**63, -(2.0**63), 2.0**64]), np.array([2**63 - 1, -(2**63), 2**63 - 1], np.int64)),
        (np.array([2.0**63, 2.0**64, -1]), np.array([2**63, 2**64 - 1, 0], np.uint64)),
        (np.array([300, -1], np.int32), u8(44, 255)),
        (f32(0, -0.0, NAN, 1e-30), np.array([False, False, True, True])),
        (np.array([True, False]), bf16(1, 0)),
        (np.array([70000.0, 1e-9]), f16(INF, 0)),
        (np.array([257, 259], np.int64), bf16(256, 260)),
        (np.array([1 + 2j], np.complex64), np.array([1 + 2j], np.complex128)),
        (np.array([1.5 + 2j], np.complex64), f32(1.5)),
    ],
)
def test_convert(source: Any, expected: Any) -> None:
    result = Shape.array(element_type_of(expected.dtype), expected.shape)
    actual = run(O.CONVERT, source, result=result)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


def test_total_order() -> None:
    values = np.array([-NAN, -INF, -1, -0.0, 0.0, 1, INF, NAN], np.float32)
    values[0] = np.copysign(np.float32(NAN), np.float32(-1))
    less = CompareAttributes(ComparisonDirection.LT, ComparisonType.TOTALORDER)
    for i, j in product(range(8), range(8)):
        assert run(O.COMPARE, values[i : i + 1], values[j : j + 1], attributes=less) == (i < j)


def test_bitcast_convert_puts_the_low_part_first() -> None:
    wide = np.array([0x04030201], np.uint32)
    narrow = run(O.BITCAST_CONVERT, wide, result=Shape.array(E.U8, (1, 4)))
    np.testing.assert_array_equal(narrow, [[1, 2, 3, 4]])
    np.testing.assert_array_equal(run(O.BITCAST_CONVERT, narrow, result=Shape.array(E.U32, (1,))), wide)


def test_bitcast_between_layouts() -> None:
    column_major = Shape.array(E.F32, (3, 2), Layout((0, 1)))
    x = make_parameter(0, column_major)
    transposed = make_instruction(O.BITCAST, [x], shape=Shape.array(E.F32, (2, 3)))
    back = make_instruction(O.BITCAST, [transposed], shape=column_major)
    module = make_module("m", make_computation("main", make_tuple([transposed, back])))
    value = np.arange(6, dtype=np.float32).reshape(3, 2)
    for actual, expected in zip(evaluate(module, value), [value.T, value], strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_broadcast_in_any_order_of_dimensions() -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for order in permutations(range(3)):
        sizes = [0, 0, 0]
        for d, size in zip(order, x.shape, strict=True):
            sizes[d] = size
        actual = run(O.BROADCAST, x, attributes=BroadcastAttributes(order), result=Shape.array(E.S32, sizes))
        np.testing.assert_array_equal(actual, x.transpose(np.argsort(order)))


def test_pad_by_its_definition() -> None:
    value = np.array(-1, np.int32)
    for size, low, high, interior in product((0, 1, 4), (-3, 0, 2), (-2, 0, 3), (0, 2)):
        length = size + low + high + max(size - 1, 0) * interior
        if length < 0:
            continue
        expected = np.full(length, -1, np.int32)
        for i in range(size):
            if 0 <= low + i * (interior + 1) < length:
                expected[low + i * (interior + 1)] = i
        attributes = PadAttributes((low,), (high,), (interior,))
        np.testing.assert_array_equal(
            run(O.PAD, np.arange(size, dtype=np.int32), value, attributes=attributes), expected
        )


def test_dot_against_einsum() -> None:
    rng = np.random.default_rng(0)
    sizes = {"b": 2, "c": 3, "i": 4, "j": 5, "k": 3}
    for lhs, rhs in [
        ("bik", "bkj"),
        ("ib", "bj"),
        ("kbci", "cjkb"),
        ("k", "k"),
        ("i", "j"),
        ("bc", "cb"),
        ("ick", "k"),
    ]:
        x, y = (rng.integers(-9, 9, [sizes[c] for c in names]) for names in (lhs, rhs))
        for batch in ("", "b", "bc"):
            shared = [c for c in lhs if c in rhs]
            if not set(batch) <= set(shared):
                continue
            contracting = [c for c in shared if c not in batch]
            free = [c for c in lhs + rhs if (c in lhs) != (c in rhs)]
            lhs_batch, rhs_batch = (tuple(map(names.index, batch)) for names in (lhs, rhs))
            lhs_contracting, rhs_contracting = (tuple(map(names.index, contracting)) for names in (lhs, rhs))
            attributes = DotAttributes(lhs_batch, rhs_batch, lhs_contracting, rhs_contracting)
            expected = np.einsum(f"{lhs},{rhs}->{batch}{''.join(free)}", x, y)
            np.testing.assert_array_equal(run(O.DOT, x, y, attributes=attributes), expected)


def test_dot_of_narrow_integers_wraps_around() -> None:
    x = np.full((1, 4), 100, np.int8)
    attributes = DotAttributes((), (), (1,), (0,))
    assert run(O.DOT, x, x.T.copy(), attributes=attributes).item() == (40000 + 128) % 256 - 128


def test_narrow_floats_are_summed_in_f32() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        ones = np.ones(5000, dtype)
        attributes = ReduceAttributes((0,), binary_computation(O.ADD, element_type_of(dtype)))
        assert run(O.REDUCE, ones, np.zeros((), dtype), attributes=attributes) == dtype(5000)
        dot = DotAttributes((), (), (0,), (0,))
        assert run(O.DOT, ones, ones, attributes=dot) == dtype(5000)


def _choose(position: int) -> HloComputation:
    """The reducer that keeps its first (0) or second (1) argument: associative, not commutative."""
    parameters = [make_parameter(i, Shape.array(E.S32)) for i in range(2)]
    return make_computation("choose", parameters[position], parameters)


def _called(reducer: HloComputation) -> HloComputation:
    """The same reducer through a call: evaluated element by element."""
    parameters = [make_parameter(i, Shape.array(E.S32)) for i in range(2)]
    return make_computation("called", make_call(reducer, parameters), parameters)


@pytest.mark.parametrize("through", [lambda reducer: reducer, _called], ids=["vectorised", "scalar"])
def test_reduce_keeps_the_order_of_elements(through: Any) -> None:
    x, init = np.arange(35, dtype=np.int32).reshape(5, 7), np.array(-1, np.int32)
    for dimensions, last in [((0,), x[-1]), ((1,), x[:, -1]), ((0, 1), x[-1, -1])]:
        first = ReduceAttributes(dimensions, through(_choose(0)))
        np.testing.assert_array_equal(run(O.REDUCE, x, init, attributes=first), np.full_like(last, -1))
        second = ReduceAttributes(dimensions, through(_choose(1)))
        np.testing.assert_array_equal(run(O.REDUCE, x, init, attributes=second), last)
    added = ReduceAttributes((0,), through(binary_computation(O.ADD, E.S32)))
    np.testing.assert_array_equal(run(O.REDUCE, x, np.array(3, np.int32), attributes=added), x.sum(0) + 3)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_known_answers(key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]) -> None:
    """The vectors published with Random123."""
    words = threefry_2x32(key, *(np.array([c], np.uint32) for c in counter))
    assert tuple(int(w[0]) for w in words) == expected


def test_random_state_moves_on() -> None:
    attributes = RngBitGeneratorAttributes(RandomAlgorithm.THREEFRY)
    state = np.array([7, 2**64 - 2], np.uint64)
    result = Shape.tuple([Shape.array(E.U64, (2,)), Shape.array(E.U64, (4,))])
    new_state, bits = run(O.RNG_BIT_GENERATOR, state, attributes=attributes, result=result)
    assert new_state.tolist() == [7, 2]
    later = run(O.RNG_BIT_GENERATOR, np.array([7, 0], np.uint64), attributes=attributes, result=result)[1]
    np.testing.assert_array_equal(bits[2:], later[:2])


def test_philox() -> None:
    """Salmon et al.'s known answers for Philox-4x32-10, in the order in which XLA gives words."""
    result = Shape.tuple([Shape.array(E.U64, (3,)), Shape.array(E.U32, (4,))])
    attributes = RngBitGeneratorAttributes(RandomAlgorithm.PHILOX)
    _, zeros = run(O.RNG_BIT_GENERATOR, np.zeros(3, np.uint64), attributes=attributes, result=result)
    assert [f"{word:08x}" for word in zeros] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    ones = np.full(3, 2**64 - 1, np.uint64)
    state, words = run(O.RNG_BIT_GENERATOR, ones, attributes=attributes, result=result)
    assert [f"{word:08x}" for word in words] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]
    assert state.tolist() == [2**64 - 1, 0, 0]


def test_every_opcode_has_a_rule_or_a_reason() -> None:
    assert EVALUATE.missing() == []
    assert [o for o in Opcode if EVALUATE.reason(o)] == [O.PARAMETER]
    with pytest.raises(UnsupportedError, match="parameter"):
        EVALUATE[O.PARAMETER]


def test_each_rule_is_in_the_file_of_its_family() -> None:
    """A look-up imports no other file."""
    others = [o for o in Opcode if o in EVALUATE and EVALUATE[o].__module__ != f"hloom.hlo.evaluator.{FAMILY[o]}"]
    assert others == []


_ADD = """
import sys
from hloom import hlo
from hloom.hlo.evaluator import EVALUATE
from hloom.hlo.opcode import Opcode

def families():
    return sorted(set(FILES) & {name.rpartition("hloom.hlo.evaluator.")[2] for name in sys.modules})

from hloom.hlo.ops import FAMILY
FILES = set(FAMILY.values())
assert families() == []
assert Opcode.ADD in EVALUATE
assert families() == ["elementwise"]
assert EVALUATE.reason(Opcode.PARAMETER)
assert families() == ["elementwise", "structure"]
assert EVALUATE.missing() == []
assert set(families()) == FILES
"""


def test_no_rule_is_found_before_its_file_is_there() -> None:
    """Another thread may ask while the file is imported."""
    table: RulesByFamily[Any] = RulesByFamily("toy")
    asked = []

    def imported() -> None:
        table[O.ADD] = np.add
        asked.append(dict(table._rules))
        table[O.ABS] = np.abs

    table.come_from({"elementwise": imported})
    assert table[O.ABS] is np.abs
    assert table[O.ADD] is np.add
    assert asked == [{}]
    with pytest.raises(AssertionError, match="two toy rules"):
        table[O.ADD] = np.add


def test_a_rule_imports_its_family_alone() -> None:
    """Constant folding of a few scalars is a part of most first compilations."""
    subprocess.run([sys.executable, "-c", _ADD], check=True)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("opcode", Opcode, ids=lambda o: o.value)
def test_results_have_the_declared_types(opcode: Opcode) -> None:
    for case in [c for c in CASES if c.opcode is opcode]:
        results = evaluate(build_module(case), *make_inputs(case))
        assert all(type(r) is np.ndarray for r in results), case.id
        check_results(case, results, results)


def test_elementwise_results_of_scalars_are_arrays() -> None:
    """NumPy's operators give a scalar for arrays without dimensions, and a scalar has no memory to point to."""
    found = [c for c in CASES if has_trait(c.opcode, Trait.ELEMENTWISE) and not has_trait(c.opcode, Trait.APPLIES)]
    for case in found:
        shapes = [Shape.array(o.element_type) for o in case.arrays]
        result = Shape.array(case.result.element)
        operands = [np.zeros((), s.element.dtype) for s in shapes]
        value = evaluate_op(case.opcode, operands, case.attributes, result)
        assert type(value) is np.ndarray and value.shape == () and value.dtype == result.element.dtype, case.id
    for source, target in product(E, repeat=2):
        value = evaluate_op(O.CONVERT, [np.zeros((), source.dtype)], NO_ATTRIBUTES, Shape.array(target))
        assert type(value) is np.ndarray and value.dtype == target.dtype, (source, target)


def test_a_buffer_is_not_made_of_a_scalar() -> None:
    with pytest.raises(TypeError, match="not of int32"):
        HostBuffer(np.int32(12), Shape.array(E.S32))


def test_numpy_error_settings_are_neither_used_nor_changed() -> None:
    with np.errstate(all="raise"):
        settings = np.geterr()
        assert run(O.DIVIDE, f32(1, 0), f32(0, 0))[0] == INF
        assert run(O.EXP, f32(1000))[0] == INF
        x = make_parameter(0, Shape.array(E.F32, (1,)))
        logarithm = make_module("m", make_computation("main", make_instruction(O.LOG, [x])))
        assert evaluate(logarithm, f32(0))[0] == -INF
        assert np.geterr() == settings


def test_concurrent_evaluation() -> None:
    cases = CASES[::25]
    modules = [(build_module(c), make_inputs(c)) for c in cases]
    expected = [evaluate(m, *inputs) for m, inputs in modules]
    with ThreadPoolExecutor(4) as pool:
        for actual in pool.map(lambda _: [evaluate(m, *inputs) for m, inputs in modules], range(4)):
            for case, got, wanted in zip(cases, actual, expected, strict=True):
                check_results(case, got, wanted)


def _module_of_tuple() -> HloModule:
    pair = Shape.tuple([Shape.array(E.F32, (2,)), Shape.array(E.S32)])
    p = make_parameter(0, pair)
    elements = [make_get_tuple_element(p, i) for i in range(2)]
    scale = make_parameter(1, Shape.array(E.F32, (2,)))
    product_ = make_instruction(O.MULTIPLY, [elements[0], scale])
    root = make_tuple([elements[1], make_tuple([product_])])
    return make_module("m", make_computation("main", root, [p, scale]))


def test_tuples_are_flattened() -> None:
    results = evaluate(_module_of_tuple(), f32(1, 2), np.int32(5), f32(10, 100))
    assert [r.tolist() for r in results] == [5, [10, 200]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((f32(1, 2), np.int32(5)), "takes 3 arrays, not 2"),
        ((f32(1, 2), np.int32(5), f32(1, 2, 3)), r"argument 2 of module m must be f32\[2\], .* float32 .*\[3\]"),
        ((f32(1, 2), np.int64(5), f32(1, 2)), r"argument 1 of module m must be s32\[\], .* int64"),
        ((["a", "b"], np.int32(5), f32(1, 2)), r"argument 0 of module m must be f32\[2\]"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        evaluate(_module_of_tuple(), *arguments)


def test_long_programs() -> None:
    """Neither Python's stack nor memory grows with the number of instructions."""
    x = make_parameter(0, Shape.array(E.S32, (3,)))
    value = x
    one = make_instruction(O.BROADCAST, [make_constant(np.int32(1))], BroadcastAttributes(()), x.shape)
    for _ in range(3000):
        value = make_instruction(O.ADD, [value, one])
    computation = make_computation("main", value, [x])
    assert evaluate_computation(computation, [np.zeros(3, np.int32)]).tolist() == [3000] * 3


def test_operands_are_never_written_to() -> None:
    for case in CASES:
        inputs = make_inputs(case)
        copies = [x.copy() for x in inputs]
        for x in inputs:
            x.flags.writeable = False
        evaluate(build_module(case), *inputs)
        for x, copy in zip(inputs, copies, strict=True):
            assert x.tobytes() == copy.tobytes(), case.id
