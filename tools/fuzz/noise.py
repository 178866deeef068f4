"""The evaluator with rounding errors: what a program's result may be, if each operation rounds in some other way.

`Noisy` runs a module once more, with a random error added to the result of each operation that rounds, as large as two
correct implementations may be apart. Several runs show how far the errors grow on the way to the results, without a
guessed tolerance: this is stochastic arithmetic (Vignes 1974; Parker, Monte Carlo arithmetic, 1997).

Where a program jumps (comparisons, rounding to integers, the place of a maximum, NaN) an error may decide between two
results that are far apart. Each run therefore also makes a fingerprint of all such decisions; where they differ
between runs, nothing can be said about the result.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
from hloom.hlo.element_type import ElementType, element_type_of
from hloom.hlo.evaluator import EVALUATE, Value, evaluate, table
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.shape import Shape
from hloom.hlo.support.value_tree import leaves_of, value_of

NDArray = np.ndarray[Any, Any]
O = Opcode  # noqa: E741

_FUNCTIONS = dict.fromkeys(
    (
        O.ACOS, O.ACOSH, O.ASIN, O.ASINH, O.ATANH, O.CBRT, O.COS, O.ERF, O.EXP, O.EXPM1, O.LOG, O.LOG1P, O.LOGISTIC,
        O.RSQRT, O.SIN, O.TAN, O.TANH, O.ATAN2, O.POWER,
    ),
    6.0,
)  # fmt: skip
ULPS: dict[Opcode, float] = {
    **_FUNCTIONS, O.COSH: 16.0, O.SINH: 16.0, O.ADD: 0.5, O.SUBTRACT: 0.5, O.MULTIPLY: 0.5, O.DIVIDE: 1.0, O.SQRT: 1.0,
    O.ABS: 2.0, O.SIGN: 2.0, O.CONVERT: 0.5, O.REMAINDER: 1.0,
}  # fmt: skip
"""How far two correct results of an element-wise operation may be apart. ABS and SIGN: of complex numbers."""
COMPLEX_ULPS: dict[Opcode, float] = {
    **dict.fromkeys(_FUNCTIONS, 64.0), O.COSH: 64.0, O.SINH: 2.0**11, O.SIN: 2.0**11, O.LOG: 2.0**8, O.LOG1P: 2.0**11,
    O.ATAN2: 2.0**15, O.POWER: 2.0**10, O.MULTIPLY: 4.0, O.DIVIDE: 8.0, O.SQRT: 64.0,
}  # fmt: skip
"""Of complex ones, relative to the magnitude (`hloom/backend_check/op_cases_elementwise.py`)."""
SUMS = frozenset(
    {O.REDUCE, O.DOT, O.RAGGED_DOT, O.SCALED_DOT, O.CONVOLUTION, O.REDUCE_WINDOW, O.SCATTER, O.SELECT_AND_SCATTER,
     O.FFT}
)  # fmt: skip
"""Sums of products: their order is open, so the error is relative to the sum of the magnitudes."""
LONGEST_SUM = 4096
"""Terms that are added one after the other (`numba_backend/policy/reductions.py`): rounding may be in one direction."""
WHOLE = frozenset(
    {O.BATCH_NORM_GRAD, O.BATCH_NORM_INFERENCE, O.BATCH_NORM_TRAINING, O.CHOLESKY, O.TRIANGULAR_SOLVE, O.CUSTOM_CALL}
)
"""Algorithms: the result is exact for slightly wrong operands, and has an error relative to the largest number."""
_DECIDES = frozenset(
    {O.COMPARE, O.CONVERT, O.FLOOR, O.CEIL, O.ROUND_NEAREST_AFZ, O.ROUND_NEAREST_EVEN, O.SIGN, O.IS_FINITE, O.SORT,
     O.TOPK, O.BITCAST_CONVERT, O.REDUCE_PRECISION, O.STOCHASTIC_CONVERT, O.REDUCE, O.REDUCE_WINDOW}
)  # fmt: skip
_ROUNDS = frozenset({O.FLOOR, O.CEIL, O.SIGN, O.ROUND_NEAREST_AFZ, O.ROUND_NEAREST_EVEN, O.REDUCE_PRECISION})
_STRUCTURE = frozenset({O.TUPLE, O.GET_TUPLE_ELEMENT, O.CALL, O.WHILE, O.CONDITIONAL, O.FUSION, O.OPT_BARRIER})
_PRODUCTS = frozenset({O.DOT, O.RAGGED_DOT, O.SCALED_DOT, O.CONVOLUTION})
_SUMS_OF_ZEROS = frozenset({O.DIVIDE, O.LOGISTIC, O.POWER, O.RSQRT, O.SIGN})
"""Complex operations in which products that have become zero are added, if they are computed by products."""
_NEVER = frozenset({O.MAXIMUM, O.MINIMUM, O.AND, O.OR, O.XOR, O.SELECT})


class TooLong(Exception):
    """A run takes more steps or memory than a case may."""


class Budget:
    """Counts instructions and elements of a run; TooLong when they are spent."""

    def __init__(self, steps: int = 20_000, elements: int = 50_000_000) -> None:
        self.steps, self.elements = steps, elements
        self.has_nan = False
        """Whether a value was NaN, if a caller asked for it."""

    def spend(self, shape: Shape) -> None:
        self.steps -= 1
        self.elements -= sum(leaf.num_elements for leaf in shape.leaves()) if shape.is_tuple else shape.num_elements
        if self.steps < 0 or self.elements < 0:
            raise TooLong


Plain = Callable[[HloInstruction, list[Value]], Value]
Around = Callable[[HloInstruction, list[Value], Plain], Value]


@contextmanager
def _around_each(around: Around) -> Iterator[None]:
    """While this is open, the evaluator asks `around` for the value of each instruction."""
    plain = table._value

    def value(instruction: HloInstruction, operands: list[Value]) -> Value:
        return around(instruction, operands, plain)

    with mock.patch.object(table, "_value", value):
        yield


def evaluate_within(
    module: HloModule, arguments: Sequence[NDArray], budget: Budget, look_for_nan: bool = False
) -> list[NDArray]:
    """The evaluator's results; TooLong if that takes more than the budget."""

    def around(instruction: HloInstruction, operands: list[Value], plain: Plain) -> Value:
        budget.spend(instruction.shape)
        value = plain(instruction, operands)
        if look_for_nan and not budget.has_nan:
            leaves = [a for a in map(np.asarray, leaves_of((value, *operands))) if is_inexact(a.dtype)]
            budget.has_nan = any(bool(np.isnan(_wide(a)).any()) for a in leaves)
        return value

    with _around_each(around):
        return [np.asarray(r) for r in evaluate(module, *arguments)]


class Noisy:
    """One run with errors. `results` and `decisions` hold what came out."""

    def __init__(
        self, module: HloModule, arguments: Sequence[NDArray], seed: int, amplitude: float = 1.0, flush: bool = False
    ) -> None:
        """`amplitude` 0: no errors, for the fingerprint of the decisions. `flush`: subnormal numbers become zero, as in
        XLA."""
        self._rng = np.random.default_rng(seed)
        self._amplitude, self._flush = amplitude, flush
        self._budget = Budget(60_000, 100_000_000)
        self.decisions = 0
        with _around_each(self._value), np.errstate(all="ignore"):
            self.results = [np.asarray(r) for r in evaluate(module, *map(self._flushed, arguments))]

    def _value(self, instruction: HloInstruction, operands: list[Value], plain: Plain) -> Value:
        self._budget.spend(instruction.shape)
        if self._flush and instruction.opcode not in _STRUCTURE:
            operands = [
                value_of(i.shape, map(self._flushed, leaves_of(o)))
                for i, o in zip(instruction.operands, operands, strict=True)
            ]
        if instruction.opcode in WHOLE and self._amplitude:
            operands = [
                value_of(i.shape, map(self._moved, i.shape.leaves(), leaves_of(o)))
                for i, o in zip(instruction.operands, operands, strict=True)
            ]
        value = plain(instruction, operands)
        if instruction.opcode in ULPS or instruction.opcode in SUMS or instruction.opcode in WHOLE:
            value = self._with_errors(instruction, operands, value)
        if instruction.opcode in _DECIDES:
            self._decide(instruction, operands, value)
        return value

    def _decide(self, instruction: HloInstruction, operands: list[Value], value: Value) -> None:
        inexact = any(
            leaf.element.is_inexact for o in instruction.operands for leaf in o.shape.leaves() if not leaf.is_token
        )
        if not inexact:
            return
        for leaf in map(np.asarray, leaves_of(value)):
            if is_inexact(leaf.dtype):  # the bits of a NaN decide nothing until somebody reads them
                leaf = np.where(np.isnan(_wide(leaf)), leaf.dtype.type(np.nan), leaf)
            if not is_inexact(leaf.dtype) or instruction.opcode in _ROUNDS:
                self.decisions = zlib.crc32(np.ascontiguousarray(leaf).tobytes(), self.decisions)

    def _with_errors(self, instruction: HloInstruction, operands: list[Value], value: Value) -> Value:
        made = []
        if _has_failed(instruction, value):
            self._cannot_tell()
        for leaf, array in zip(instruction.shape.leaves(), leaves_of(value), strict=True):
            array = np.asarray(array)
            if leaf.element.is_inexact and array.size:
                array = self._flushed(self._with_any_nan(self._disturbed(instruction, operands, leaf.element, array)))
                self.decisions = zlib.crc32(np.packbits(np.isfinite(_wide(array))).tobytes(), self.decisions)
            made.append(array)
        return value_of(instruction.shape, iter(made))

    def _with_any_nan(self, array: NDArray) -> NDArray:
        """An operation does not say which sign its NaN has: here it may have another one."""
        nan = np.isnan(_wide(array))
        if not self._amplitude or not nan.any():
            return array
        return np.where(nan & (self._rng.random(array.shape) < 0.5), -array, array)

    def _disturbed(
        self, instruction: HloInstruction, operands: list[Value], element: ElementType, array: NDArray
    ) -> NDArray:
        error = self._error_bound(instruction, operands, element, array)
        if error is None or not self._amplitude:
            return array
        bound = np.where(np.isfinite(error), error, 0) * (self._amplitude * _epsilon(element))
        parts = [bound * self._rng.uniform(-1, 1, array.shape) for _ in range(2 if element.is_complex else 1)]
        wide = _wide(array)
        moved = wide + (parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1])
        moved = np.where(np.isfinite(wide), moved, wide)
        with np.errstate(all="ignore"):
            made: NDArray = moved.astype(element.dtype)
        return np.where(wide == 0, np.where(moved == 0, array, made), made)

    def _moved(self, shape: Shape, array: NDArray) -> NDArray:
        """An operand with errors relative to its largest number."""
        array = np.asarray(array)
        if shape.is_token or not shape.element.is_inexact or not array.size:
            return array
        size = _magnitude(array)
        largest = np.max(size, initial=0, where=np.isfinite(size))
        error = 4 * self._amplitude * _epsilon(shape.element) * largest * self._rng.uniform(-1, 1, array.shape)
        with np.errstate(all="ignore"):
            return (_wide(array) + error).astype(array.dtype)

    def _error_bound(
        self, instruction: HloInstruction, operands: list[Value], element: ElementType, array: NDArray
    ) -> NDArray | None:
        """In units of the type's epsilon; None if the operation is exact here."""
        opcode = instruction.opcode
        size = _magnitude(array)
        if opcode in WHOLE:
            largest = [np.max(size, initial=0)]
            largest += [
                np.max(_magnitude(np.asarray(x)), initial=0, where=np.isfinite(_magnitude(np.asarray(x))))
                for o in operands for x in leaves_of(o) if is_inexact(np.asarray(x).dtype)
            ]  # fmt: skip
            most: Any = ml_dtypes.finfo(element.real.dtype).max  # type: ignore[no-untyped-call]
            if not max(largest) ** 2 * max(i.shape.num_elements for i in instruction.operands) < float(most):
                self._cannot_tell()  # some square on the way may be infinite
            return np.full(array.shape, 16.0 * max(largest) * max(array.shape[-1:] or (1,)))
        if opcode in SUMS:
            return self._bound_of_sum(instruction, operands, array)
        if opcode in (O.ABS, O.SIGN) and not instruction.operands[0].shape.element.is_complex:
            return None
        if opcode is O.CONVERT and _holds(instruction.shape.element, instruction.operands[0].shape.element):
            return None
        ulps = COMPLEX_ULPS.get(opcode, ULPS[opcode]) if element.is_complex else ULPS[opcode]
        if element.is_complex:
            given = np.logical_and.reduce([np.isfinite(np.asarray(o)) for o in operands])
            if (given & ~np.isfinite(array)).any():
                self._cannot_tell()  # the error of the other part is as large as the part that has overflowed
            if opcode is O.ATAN2 and (np.abs(np.abs(array.real) - math.pi) < 1e-3).any():
                self._cannot_tell()  # rounding decides on which side of the cut of the logarithm it is
        if opcode in (O.ADD, O.SUBTRACT):
            # If an operand is a product, it was possibly not rounded before the addition.
            a, b = (np.asarray(o) for o in operands)
            if all(map(_is_simple, (a, b))):
                return None
            size = _magnitude(a) + _magnitude(b)
        elif opcode is O.MULTIPLY and all(_is_simple(np.asarray(x)) for x in (*operands, array)):
            return None
        info: Any = ml_dtypes.finfo(element.real.dtype)  # type: ignore[no-untyped-call]
        least = _least(element.real.dtype)
        if opcode is O.MULTIPLY:
            exact = _magnitude(np.asarray(operands[0])) * _magnitude(np.asarray(operands[1]))
            if (np.isfinite(exact) & (exact > float(info.max))).any():
                self._cannot_tell()  # a product that is not rounded before it is added is finite
            if element.is_complex:  # or decides about the sign of zero
                return size * ulps + np.where((exact > 0) & (exact < 2 * float(info.tiny)), least, 0.0)
        if opcode is O.DIVIDE and element.is_complex and not all(map(_is_finite, map(np.asarray, operands))):
            self._cannot_tell()  # C99 leaves open which infinity
        if element.is_complex and opcode in _SUMS_OF_ZEROS:
            return size * ulps + _sign_of_zeros(array)  # 0 + -0, or -0 - 0
        return size * ulps

    def _bound_of_sum(self, instruction: HloInstruction, operands: list[Value], array: NDArray) -> NDArray | None:
        attributes = instruction.attributes
        reducer = getattr(attributes, "to_apply", None) or getattr(attributes, "scatter", None)
        if reducer is not None and reducer.root.opcode in _NEVER:
            return None
        arrays = [np.asarray(o) for o in operands]
        if instruction.opcode is O.FFT:
            total = np.sum(_magnitude(arrays[0]))
            largest = float(ml_dtypes.finfo(arrays[0].real.dtype).max)  # type: ignore[no-untyped-call]
            if not 2 * total < largest:
                self._cannot_tell()  # some sum on the way may be infinite
            return np.full(array.shape, 4.0 * total)
        if array.dtype.kind == "c" and instruction.opcode in _PRODUCTS and not all(map(_is_finite, arrays)):
            self._cannot_tell()  # docs/differences.md: what BLAS gives
        if all(map(_is_simple, arrays)) and _is_simple(array):
            # HLO does not say with what sums of products begin: +0, or the first product, which may be -0.
            return _sign_of_zeros(array) if instruction.opcode in _PRODUCTS else None
        is_sum = reducer is None or (reducer.root.opcode is O.ADD and len(reducer.instructions) == 3)
        if not is_sum:
            if reducer.root.opcode is O.MULTIPLY and _may_leave_range(_factors(instruction, arrays)):
                self._cannot_tell()  # some product on the way may be infinite, or zero
            return max(16.0, min(_terms(instruction, array), LONGEST_SUM) / 16) * _magnitude(array)
        positive = [np.abs(a).astype(a.dtype) if is_inexact(a.dtype) else a for a in arrays]
        try:
            total = np.asarray(EVALUATE[instruction.opcode](instruction.shape, attributes, *positive))
        except (ValueError, TypeError):
            return None
        if np.isinf(_wide(total)).any() and self._overflows(instruction, arrays):
            self._cannot_tell()  # the order of the sum decides about infinity and NaN
        terms = min(_terms(instruction, total), LONGEST_SUM)
        bound = max(4.0, terms / 16) * _magnitude(total)
        return bound + _sign_of_zeros(array) if instruction.opcode in _PRODUCTS else bound

    def _cannot_tell(self) -> None:
        """This run has decided something that no other has."""
        self.decisions = int(self._rng.integers(1 << 32))

    def _overflows(self, instruction: HloInstruction, arrays: list[NDArray]) -> bool:
        """Is a sum of finite numbers infinite?"""
        finite = [np.where(np.isfinite(_wide(a)), np.abs(a), 0).astype(a.dtype) if is_inexact(a.dtype) else a
                  for a in arrays]  # fmt: skip
        total = np.asarray(EVALUATE[instruction.opcode](instruction.shape, instruction.attributes, *finite))
        return bool(np.isinf(_wide(total)).any())

    def _flushed(self, array: NDArray) -> NDArray:
        array = np.asarray(array)
        if not self._flush or array.dtype not in _FLUSHED:
            return array
        if array.dtype.kind == "c":
            made = np.empty_like(array)
            made.real, made.imag = self._flushed(array.real), self._flushed(array.imag)
            return made
        tiny = float(ml_dtypes.finfo(array.dtype).tiny)  # type: ignore[no-untyped-call]
        with np.errstate(all="ignore"):
            wide = array.astype(np.float64)
            return np.where(np.abs(wide) < tiny, np.copysign(0.0, wide).astype(array.dtype), array)


def _terms(instruction: HloInstruction, result: NDArray) -> float:
    """How many numbers each result of a reduction is made of."""
    if instruction.opcode is O.REDUCE_WINDOW:
        return math.prod(d.size for d in instruction.attributes.window)
    shape = instruction.operands[0].shape
    return shape.num_elements / max(result.size, 1) if instruction.opcode is O.REDUCE else 1


def _has_failed(instruction: HloInstruction, value: Value) -> bool:
    """True for a factor of LAPACK's that is not complete: how far it got depends on the sizes of its blocks."""
    if instruction.opcode is not O.CUSTOM_CALL or "potrf" not in instruction.attributes.custom_call_target:
        return False
    *_, info = leaves_of(value)
    return bool(np.any(np.asarray(info) > 0))


_FLUSHED = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16)))
"""XLA computes f16 in f32, so that its subnormal numbers are not."""


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Is this a type of floats or complex numbers? The small types are none of NumPy's kinds."""
    return element_type_of(dtype).is_inexact


def _epsilon(element: ElementType) -> float:
    return float(ml_dtypes.finfo(element.real.dtype).eps)  # type: ignore[no-untyped-call]


def _wide(array: NDArray) -> NDArray:
    """In the widest type there is."""
    if array.dtype.kind == "c":
        return array.astype(np.clongdouble)
    return array.astype(np.longdouble) if array.dtype == np.float64 else array.astype(np.float64)


def _magnitude(array: NDArray) -> NDArray:
    return np.abs(_wide(array))


def _factors(instruction: HloInstruction, arrays: list[NDArray]) -> NDArray:
    """The factors of a product: the elements, and the initial value or updates. The padding of a window has the initial
    value, too."""
    array, *_, last = arrays
    padding = math.prod(d.size for d in instruction.attributes.window) if instruction.opcode is O.REDUCE_WINDOW else 1
    return np.concatenate([np.ravel(array), np.tile(np.ravel(last), padding)])


def _may_leave_range(array: NDArray) -> bool:
    """Is a product of some of these numbers infinite, or zero?"""
    if not is_inexact(array.dtype):
        return False
    info: Any = ml_dtypes.finfo(array.real.dtype if array.dtype.kind == "c" else array.dtype)  # type: ignore[no-untyped-call]
    size = _magnitude(array)
    sizes = np.log2(size[np.isfinite(size) & (size > 0)])
    largest, smallest = np.sum(sizes, where=sizes > 0), np.sum(sizes, where=sizes < 0)
    return bool(largest >= np.log2(float(info.max)) - 1 or smallest <= np.log2(float(info.tiny)) + 1)


def _least(dtype: np.dtype[Any]) -> float:
    """The bound, in units of the epsilon, that leaves open which sign a zero has."""
    info: Any = ml_dtypes.finfo(np.empty(0, dtype).real.dtype)  # type: ignore[no-untyped-call]
    return float(info.smallest_subnormal) / float(info.eps)


def _sign_of_zeros(array: NDArray) -> NDArray:
    """A bound that leaves open which sign zeros have."""
    zero = (array.real == 0) | (array.imag == 0) if array.dtype.kind == "c" else array == 0
    return np.where(zero, _least(array.dtype), 0.0)


def _is_finite(array: NDArray) -> bool:
    return not is_inexact(array.dtype) or bool(np.isfinite(_wide(array)).all())


def _is_simple(array: NDArray) -> bool:
    """Small multiples of 1/16: sums and products of a few are exact in every type of 32 bits or more."""
    if not is_inexact(array.dtype):
        return True
    if array.dtype.itemsize < 4:
        return False
    wide = _wide(array)
    parts = (wide.real, wide.imag) if array.dtype.kind == "c" else (wide,)
    return all(bool(np.all((p * 16 == np.floor(p * 16)) & (np.abs(p) < 512))) for p in parts)


def _holds(wider: ElementType, narrower: ElementType) -> bool:
    """Does a conversion keep the number?"""
    if not narrower.is_inexact:
        return wider.real in (ElementType.F64, ElementType.F32) and narrower.bit_width <= 16
    return narrower.real.byte_width < wider.real.byte_width or narrower.real is wider.real
