"""Op cases of reduce-window and select-and-scatter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..hlo import (
    ElementType,
    HloComputation,
    Opcode,
    Shape,
    make_computation,
    make_instruction,
    make_parameter,
    make_tuple,
)
from ..hlo.ops.elementwise import ComparisonDirection
from ..hlo.ops.window import ReduceWindowAttributes, SelectAndScatterAttributes
from ..hlo.window import Window, WindowDimension
from .computations import (
    argmax_computation,
    binary_computation,
    compare,
    computation,
    last_of_two,
    log_add_exp_computation,
)
from .op_case import COMPLEX, FLOATS, INTEGERS, Array, E, O, OpCase, make_case, shape_of
from .op_cases_reduce import _REDUCERS, _identity
from .op_values import Values, any_value, finite, fixed, positive, small_floats

Part = tuple[int, ...]


def window_of(*parts: Part) -> Window:
    """From (size, stride, low, high, base dilation, window dilation); the last ones may be left out."""
    filled = [(*part, *(1, 1, 0, 0, 1, 1)[len(part) :]) for part in parts]
    return tuple(WindowDimension(a, b, c, d, e, f) for a, b, c, d, e, f in filled)


def _extent(size: int, dilation: int) -> int:
    return (size - 1) * dilation + 1 if size else 0


def placed(dims: Sequence[int], window: Window) -> tuple[int, ...]:
    """How often the window fits along each dimension: counted, not computed."""
    counts = []
    for size, w in zip(dims, window, strict=True):
        area = w.padding_low + _extent(size, w.base_dilation) + w.padding_high
        ends = [at + _extent(w.size, w.window_dilation) for at in range(0, max(area, 0), w.stride)]
        counts.append(sum(end <= area for end in ends))
    return tuple(counts)


WINDOWS: tuple[tuple[tuple[int, ...], Window], ...] = (
    ((), ()),
    ((7,), window_of((3,))),
    ((7,), window_of((7,))),
    ((7,), window_of((9,))),
    ((1,), window_of((1, 1, 2, 1))),
    ((0,), window_of((1,))),
    ((0,), window_of((2, 1, 3, 1, 2))),
    ((9,), window_of((2, 1, -3, -2))),
    ((9,), window_of((2, 1, -3, 4))),
    ((3,), window_of((1, 1, -5, 4))),
    ((9,), window_of((3, 2, 1, 2, 1, 2))),
    ((6,), window_of((3, 2, 2, 1, 3, 2))),
    ((6,), window_of((2, 3, 1, 0, 2, 3))),
    ((5,), window_of((2, 4, 9, 9))),
    ((5,), window_of((20, 1, 19, 3))),
    ((37,), window_of((37, 1, 36, 0))),
    ((9,), window_of((20, 2, 30, 25, 2, 3))),
    ((9, 8), window_of((20, 1, 19, 12), (17, 3, 20, 11, 1, 2))),
    ((37,), window_of((37, 1, 0, 36))),
    ((40,), window_of((25, 1, 12, 12))),
    ((4, 37), window_of((1,), (37, 1, 36, 0))),
    ((37, 4), window_of((37, 1, 0, 36), (1,))),
    ((3, 5, 4), window_of((1,), (5, 1, 4, 0), (1,))),
    ((2, 3, 1500), window_of((1,), (1,), (1500, 1, 1499, 0))),
    ((1500, 3), window_of((1500, 1, 1499, 0), (1,))),
    ((2, 3, 8, 9), window_of((1,), (1,), (2, 2), (2, 2))),
    ((2, 3, 8, 9), window_of((1,), (1,), (3, 2, 1, 1), (3, 2, 1, 1))),
    ((2, 8, 9, 3), window_of((1,), (2, 2), (3, 1, 1, 1), (1,))),
    ((3, 11), window_of((1,), (2, 3))),
    ((4, 1, 6, 1), window_of((3, 1, 1, 1), (1,), (2, 1, 0, 1), (1,))),
    ((4, 5, 6), window_of((2, 1, 0, 1), (1, 2), (3, 2, 1, 1, 2))),
    ((3, 4, 5, 4), window_of((2,), (3, 2, 1, 1), (2, 1, 1, 0, 2, 1), (2, 2, 1, 1, 1, 2))),
    ((0, 4), window_of((1,), (2,))),
    ((4, 0), window_of((2,), (2, 1, 2, 2))),
)


def _note(window: Window) -> str:
    parts = []
    for w in window:
        values = (w.size, w.stride, w.padding_low, w.padding_high, w.base_dilation, w.window_dilation)
        parts.append(".".join(map(str, values)))
    return "window-" + ",".join(parts)


def _pair_sum(types: Sequence[ElementType]) -> HloComputation:
    """The reducer that adds up each of its operands."""
    shapes = [shape_of(t) for t in types]
    parameters = [make_parameter(i, shapes[i % len(types)]) for i in range(2 * len(types))]
    sums = [make_instruction(O.ADD, pair) for pair in zip(parameters, parameters[len(types) :], strict=False)]
    return make_computation("sums", make_tuple(sums), parameters)


def _reduce_window() -> Iterator[OpCase]:
    mixed = window_of((1,), (3, 2, 1, 1), (2, 1, 0, 2, 2, 2))
    cumulative = window_of((1,), (9, 1, 8, 0), (1,))
    for opcode, types in _REDUCERS.items():
        for t in types:
            for window in (mixed, cumulative):
                values = any_value if opcode in (O.MAXIMUM, O.MINIMUM) else positive
                ulps = 12 if opcode in (O.ADD, O.MULTIPLY) and t.is_inexact else 0
                reducer = binary_computation(opcode, t, swapped=t in (E.S16, E.F64))
                operands = [Array(t, (2, 9, 7), values), Array(t, (), _identity(opcode))]
                attributes = ReduceWindowAttributes(window, reducer)
                result = shape_of(t, placed((2, 9, 7), window))
                note = opcode.value + ("-cumulative" if window is cumulative else "")
                yield make_case(O.REDUCE_WINDOW, operands, result, attributes, ulps=ulps, signed_zeros=False, note=note)
    for t in (E.S4, E.U4, E.F8E4M3FN, E.F8E5M2):
        # XLA rounds sums of f8 at every step.
        for opcode in (O.ADD, O.MAXIMUM) if t.is_integral else (O.MAXIMUM,):
            operands = [Array(t, (2, 9, 7), small_floats), Array(t, (), fixed(0))]
            attributes = ReduceWindowAttributes(mixed, binary_computation(opcode, t))
            result = shape_of(t, placed((2, 9, 7), mixed))
            yield make_case(O.REDUCE_WINDOW, operands, result, attributes, signed_zeros=False, note=opcode.value)
    for dims, window in WINDOWS:
        counts = placed(dims, window)
        for opcode, values, ulps in ((O.ADD, positive, 64), (O.MAXIMUM, small_floats, 0)):
            operands = [Array(E.F32, dims, values), Array(E.F32, (), _identity(opcode))]
            attributes = ReduceWindowAttributes(window, binary_computation(opcode, E.F32))
            note = f"{opcode.value}-{_note(window)}"
            result = shape_of(E.F32, counts)
            yield make_case(
                O.REDUCE_WINDOW, operands, result, attributes, ulps=ulps, signed_zeros=False, note=note
            )
        lowest = _identity(O.MAXIMUM)
        arrays = [Array(E.F32, dims, small_floats), Array(E.S32, dims, finite)]
        inits = [Array(E.F32, (), lowest), Array(E.S32, (), _identity(O.MINIMUM))]
        results = Shape.tuple([shape_of(E.F32, counts), shape_of(E.S32, counts)])
        attributes = ReduceWindowAttributes(window, argmax_computation(E.F32, E.S32))
        yield make_case(
            O.REDUCE_WINDOW, [*arrays, *inits], results, attributes, note=f"argmax-{_note(window)}"
        )
        attributes = ReduceWindowAttributes(window, log_add_exp_computation(E.F32))
        operands = [Array(E.F32, dims, positive), Array(E.F32, (), lowest)]
        note = f"logaddexp-{_note(window)}"
        yield make_case(O.REDUCE_WINDOW, operands, shape_of(E.F32, counts), attributes, ulps=256, note=note)
        if len(dims) < 4 and all(w.size < 30 for w in window):
            # XLA combines the parts of large windows in an order that only commutative reducers bear.
            attributes = ReduceWindowAttributes(window, last_of_two(E.S32))
            operands = [Array(E.S32, dims, small_floats), Array(E.S32, (), _identity(O.ADD))]
            note = f"last-{_note(window)}"
            yield make_case(O.REDUCE_WINDOW, operands, shape_of(E.S32, counts), attributes, note=note)
    for count in (3, 16):
        types = tuple((E.F32, E.S32, E.C64, E.F16, E.U8)[k % 5] for k in range(count))
        for dims, window in (((5, 6), window_of((2, 1, 1, 0), (3, 2))), ((4, 6), window_of((1,), (6, 1, 5, 0)))):
            counts = placed(dims, window)
            operands = [Array(t, dims, positive) for t in types] + [Array(t, (), _identity(O.ADD)) for t in types]
            attributes = ReduceWindowAttributes(window, _pair_sum(types))
            result = Shape.tuple([shape_of(t, counts) for t in types])
            note = f"{count}-operands-{_note(window)}"
            yield make_case(O.REDUCE_WINDOW, operands, result, attributes, ulps=8, note=note)


def _select_case(
    t: ElementType, dims: tuple[int, ...], window: Window, direction: ComparisonDirection, scatter: Opcode,
    values: Values, *, ulps: float = 0,
) -> OpCase:  # fmt: skip
    counts = placed(dims, window)
    kind = any_value if scatter in (O.MAXIMUM, O.MINIMUM) else positive
    operands = [Array(t, dims, values), Array(t, counts, kind), Array(t, (), positive)]
    select = computation(direction.value, lambda x, y: compare(direction, x, y), t, t)
    attributes = SelectAndScatterAttributes(window, select, binary_computation(scatter, t))
    note = f"{direction.value}-{scatter.value}-{_note(window)}"
    return make_case(O.SELECT_AND_SCATTER, operands, shape_of(t, dims), attributes, ulps=ulps, note=note)


def _select_and_scatter() -> Iterator[OpCase]:
    ge, overlapping = ComparisonDirection.GE, window_of((1,), (3, 2, 1, 1), (2, 1))
    disjoint = window_of((1,), (2, 2), (3, 3))
    for t in (E.PRED, *INTEGERS, *FLOATS):
        for window in (overlapping, disjoint):
            yield _select_case(t, (2, 7, 6), window, ge, O.ADD, any_value, ulps=8 if t.is_inexact else 0)
    for t in COMPLEX:
        direction = ComparisonDirection.NE
        for window in (overlapping, disjoint):
            yield _select_case(t, (2, 7, 6), window, direction, O.ADD, small_floats, ulps=8)
    for dims, window in WINDOWS:
        # XLA's text has no dilation here, and no scalars.
        for direction in (ge, ComparisonDirection.LT):
            yield _select_case(E.F32, dims, window, direction, O.ADD, small_floats, ulps=64)
    for direction in ComparisonDirection:
        # EQ and NE are no orders: their selection depends on where XLA begins.
        is_order = direction not in (ComparisonDirection.EQ, ComparisonDirection.NE)
        dims, window = ((11, 9), window_of((3, 2, 1, 1), (2, 2, 0, 1))) if is_order else ((11,), window_of((3,)))
        yield _select_case(E.F32, dims, window, direction, O.ADD, finite if is_order else small_floats, ulps=8)
    for scatter in (O.MULTIPLY, O.MAXIMUM, O.SUBTRACT):
        yield _select_case(E.F32, (7, 6), window_of((3, 2, 1, 1), (2, 1)), ge, scatter, small_floats, ulps=8)


def cases() -> Iterator[OpCase]:
    """The cases of reduce-window and select-and-scatter."""
    yield from _reduce_window()
    yield from _select_and_scatter()
