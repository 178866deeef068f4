"""Comparators that compare keys, one after the other: recognising them, and keys as unsigned integers in that order.

Such a comparator is `f(a) < f(b)`, or `f(a) < f(b) or (f(a) == f(b) and <such a comparator>)`, or the same with a
select, where f is any computation. JAX writes such comparators for sort, argsort and lexsort. Integers with a known
number of bits can be sorted without comparisons (see radix_sort.py).
"""

from __future__ import annotations

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.elementwise import ComparisonDirection, ComparisonType
from ...hlo.support.records import dataclass
from ..loops.expressions import Expr, Number, call
from ..loops.writer import cast
from .element import CAST

_D = ComparisonDirection
_HALF = (ElementType.F16, ElementType.BF16)
_KEY_TYPES = frozenset((
    ElementType.PRED, ElementType.S8, ElementType.S16, ElementType.S32, ElementType.S64, ElementType.U8,
    ElementType.U16, ElementType.U32, ElementType.U64, *_HALF, ElementType.F32, ElementType.F64,
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of a comparator: `value`, computed from the first element's parameters (those with even numbers)."""

    value: HloInstruction
    descending: bool
    total: bool
    """Floats are in their total order; else -0.0 and 0.0 are equal. (Such a comparison does not order NaN; NaN is put
    where the total order has it.)"""

    @property
    def element_type(self) -> ElementType:
        return self.value.shape.element

    @property
    def bits(self) -> int:
        """The number of bits of an integer key."""
        return self.element_type.bit_width

    @property
    def canonical_constants(self) -> tuple[HloInstruction, HloInstruction] | None:
        """(zero, NaN) that replace all zeros and all NaN, if the key is computed in that way."""
        if _uncanonical(self.value) is None:
            return None
        _, nan, number = self.value.operands
        return number.operands[1], nan

    @property
    def operand(self) -> int | None:
        """The operand that is the key; its zeros or NaN may have been made equal. None if no operand is."""
        source = _uncanonical(self.value)
        source = self.value if source is None else source
        return source.attributes.number // 2 if source.opcode is Opcode.PARAMETER else None

    @property
    def is_invertible(self) -> bool:
        """False when the key loses more than which zero or NaN it was: kernels hold f16 and bf16 as f32, and this may
        change the payload of a NaN."""
        return self.element_type not in _HALF or self.canonical_constants is not None

    @property
    def merges_values(self) -> bool:
        """True when different elements may have the same key."""
        return self.element_type.is_floating and (not self.total or _uncanonical(self.value) is not None)


def is_own_key(keys: tuple[SortKey, ...], operands: int) -> bool:
    """True if the elements of a sort, with so many operands, can be computed from their keys."""
    return operands == len(keys) == 1 and keys[0].operand == 0 and keys[0].is_invertible


def keys_of(comparator: HloComputation) -> tuple[SortKey, ...] | None:
    """The keys that a comparator compares, most significant first; None if it is of another kind."""
    keys: list[SortKey] = []
    node: HloInstruction | None = comparator.root
    while node is not None:
        parsed = _first_key(node)
        if parsed is None:
            return None
        key, node = parsed
        keys.append(key)
    return tuple(keys)


def _first_key(node: HloInstruction) -> tuple[SortKey, HloInstruction | None] | None:
    """(the first key, the comparison if it is equal or None): takes a comparator apart."""
    if node.opcode is Opcode.COMPARE:
        key = _key(node)
        return None if key is None else (key, None)
    if node.opcode is Opcode.OR:
        for less, other in (node.operands, node.operands[::-1]):
            key = _key(less)
            if key is None or other.opcode is not Opcode.AND:
                continue
            for same, rest in (other.operands, other.operands[::-1]):
                if _is_tie(same, less, _D.EQ):
                    return key, rest
    if node.opcode is Opcode.SELECT:
        test, yes, no = node.operands
        for direction, less, rest in ((_D.EQ, no, yes), (_D.NE, yes, no)):
            key = _key(less)
            if key is not None and _is_tie(test, less, direction):
                return key, rest
    return None


def _key(node: HloInstruction) -> SortKey | None:
    """`f(a) < f(b)`, in any of its forms."""
    if node.opcode is not Opcode.COMPARE or node.attributes.direction not in (_D.LT, _D.GT):
        return None
    x, y = node.operands
    if x.shape.element not in _KEY_TYPES or not _mirrored(x, y):
        return None
    sides = _sides(x)
    if len(sides) != 1:
        return None
    (side,) = sides
    descending = (node.attributes.direction is _D.GT) != (side == 1)
    total = node.attributes.type is ComparisonType.TOTALORDER
    return SortKey(x if side == 0 else y, descending, total)


def _is_tie(test: HloInstruction, less: HloInstruction, direction: ComparisonDirection) -> bool:
    """True when `test` says whether the sides of `less` are equal."""
    if test.opcode is not Opcode.COMPARE or test.attributes.direction is not direction:
        return False
    if (test.attributes.type is ComparisonType.TOTALORDER) != (less.attributes.type is ComparisonType.TOTALORDER):
        return False
    return any(_same(test.operands, sides) for sides in (less.operands, less.operands[::-1]))


def _same(a: tuple[HloInstruction, ...], b: tuple[HloInstruction, ...]) -> bool:
    return all(x is y for x, y in zip(a, b, strict=True))


def _sides(node: HloInstruction) -> set[int]:
    """Whether the value depends on parameters with even numbers, 0, and with odd numbers, 1."""
    found: set[int] = set()
    stack, seen = [node], {node}
    while stack:
        top = stack.pop()
        if top.opcode is Opcode.PARAMETER:
            found.add(top.attributes.number % 2)
        new = [o for o in top.operands if o not in seen]
        seen.update(new)
        stack.extend(new)
    return found


def _mirrored(x: HloInstruction, y: HloInstruction) -> bool:
    """True when y is computed from one element as x is from the other."""
    stack, seen = [(x, y)], {(x, y)}
    while stack:
        a, b = stack.pop()
        if a.opcode is Opcode.PARAMETER or b.opcode is Opcode.PARAMETER:
            if a.opcode is not b.opcode or a.attributes.number ^ 1 != b.attributes.number:
                return False
            continue
        if a is b and not _sides(a):
            continue
        alike = a.opcode is b.opcode and a.shape == b.shape and len(a.operands) == len(b.operands)
        if not alike or a.attributes != b.attributes:
            return False
        for pair in zip(a.operands, b.operands, strict=True):
            if pair not in seen:
                seen.add(pair)
                stack.append(pair)
    return True


def _uncanonical(value: HloInstruction) -> HloInstruction | None:
    """x, if `value` is x with all zeros and all NaN made equal: `select(x != x, nan, select(x == 0, 0, x))`."""
    if value.opcode is not Opcode.SELECT:
        return None
    is_nan, nan, number = value.operands
    if number.opcode is not Opcode.SELECT or not _is_constant(nan, np.nan):
        return None
    is_zero, zero, x = number.operands
    tests = (is_nan, _D.NE, x), (is_zero, _D.EQ, zero)
    for test, direction, other in tests:
        plain = test.opcode is Opcode.COMPARE and test.attributes.type is not ComparisonType.TOTALORDER
        if not plain or test.attributes.direction is not direction or set(test.operands) != {x, other}:
            return None
    return x if _is_constant(zero, 0) else None


def _is_constant(node: HloInstruction, value: float) -> bool:
    if node.opcode is not Opcode.CONSTANT or node.shape.dimensions:
        return False
    return bool(np.array_equal(np.asarray(node.attributes.literal.array, np.float64), value, equal_nan=True))


def integer_key(key: SortKey, value: Expr) -> Expr:
    """The key, given in the held form of its element type, as an unsigned integer: u64 for 64 bits, else u32."""
    element = key.element_type
    if element.is_floating and not key.total:
        zero = zero_of(key)
        value = call("select", value.eq(zero), zero, value)
    if key.bits == 64:
        return _wide_key(key, value)
    last, middle = Number((1 << key.bits) - 1), Number(1 << (key.bits - 1))
    number: Expr
    if element is ElementType.PRED:
        number = cast("int64", cast("uint8", value))
    elif element is ElementType.F32:
        number = cast("int64", call("total_order_key", value)) + middle
    elif element in _HALF:
        bits = cast("int64", call(f"f32_to_{element.value}", value))
        number = call("select", bits < middle, bits + middle, last - bits)
    elif element.is_signed:
        number = cast("int64", value) + middle
    else:
        number = cast("int64", value)
    return cast("uint32", last - number if key.descending else number)


def zero_of(key: SortKey) -> Expr:
    """The zero of a float key, as it is held."""
    return cast("float64" if key.element_type is ElementType.F64 else "float32", 0)


def _wide_key(key: SortKey, value: Expr) -> Expr:
    """s64, u64, f64: with the sign bit flipped where there is one."""
    if key.element_type is ElementType.F64:
        value = call("total_order_key", value)
    number: Expr = cast("uint64", value)
    if key.element_type is not ElementType.U64:
        number = _with_sign_flipped(number)
    return call("bit_not", number) if key.descending else number


def _with_sign_flipped(number: Expr) -> Expr:
    return call("bit_xor", number, call("shl", cast("uint64", 1), cast("uint64", 63)))


def element_of(key: SortKey, number: Expr) -> Expr:
    """The inverse of `integer_key`: the element, in the form in which it is stored."""
    element = key.element_type
    if key.bits == 64:
        bits = call("bit_not", number) if key.descending else number
        if element is ElementType.U64:
            return bits
        bits = cast("int64", _with_sign_flipped(bits))
        return bits if element is ElementType.S64 else call("bitcast_s64_f64", _unordered(bits, 64))
    last, middle = Number((1 << key.bits) - 1), Number(1 << (key.bits - 1))
    bits = last - cast("int64", number) if key.descending else cast("int64", number)
    if element is ElementType.F32:
        return call("bitcast_s32_f32", cast("int32", _unordered(bits - middle, 32)))
    if element in _HALF:
        return cast("uint16", call("select", bits < middle, last - bits, bits - middle))
    if element is ElementType.PRED:
        return cast("uint8", bits)
    return cast(CAST[element], bits - middle if element.is_signed else bits)


def _unordered(number: Expr, bits: int) -> Expr:
    """The bits of a float from its number in the total order."""
    return call("select", number < 0, number ^ ((1 << bits - 1) - 1), number)
