"""Python's operators on numbers, with Numba's rules: how operands are promoted, the type of the result, and the LLVM
IR.

    int32 + int32      int64: integers are computed in 64 bits
    int64 + uint64     int64
    int8 + float32     float32; int32 + float32 and int64 + float32: float64
    int64 // int64     rounds down; by zero: 0; lowest // -1 is not defined, as operands are indices

Integers of one sign are compared in the wider type, of two signs in the next wider signed one, or as float64 if there
is none. Floating point divides by zero as IEEE 754 says. `tests/numba_backend/runtime/test_front_ends.py` compares all
of this with Numba's own front end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.ir as llir

from .dialect_define import DialectFunction, Kind
from .llvm_values import COMPLEX, FLOATS, INTEGERS, PARTS, cast, constant, pair_of, parts, truth

Emit = Callable[[Any, list[Any]], Any]


class Operation(NamedTuple):
    """An operation for certain types: operands are cast to `expected` first. An int there is a literal."""

    expected: tuple[Kind, ...]
    result: str
    emit: Emit
    """A function of a builder and LLVM values."""


def operation(function: Any, kinds: tuple[Kind, ...]) -> Operation | None:
    """An operator of Python, `bool`, or a function of the dialect, for operands of these types; None if it does not
    take them. Answers are kept."""
    key = (function, kinds)
    try:
        return _known[key]
    except KeyError:
        found = _known[key] = _resolve(function, kinds)
    return found


_known: dict[Any, Operation | None] = {}


def _resolve(function: Any, kinds: tuple[Kind, ...]) -> Operation | None:
    if isinstance(function, DialectFunction):
        return Operation(*function.resolve(*kinds))
    rule = _RULES.get(function)
    if rule is None or not all(isinstance(kind, str) for kind in kinds):
        return None
    return rule(*kinds)


# ---- how operands are promoted

_SMALL = frozenset(("bool", "int8", "int16", "uint8"))
_REAL = INTEGERS | FLOATS | {"bool"}
_NUMBERS = _REAL | COMPLEX


def _bits(type_: str) -> int:
    return 1 if type_ == "bool" else int(type_.lstrip("uint"))


def _floating(a: str, b: str) -> str | None:
    """The type of arithmetic if one of the operands is no integer."""
    if a in COMPLEX or b in COMPLEX:
        return "complex64" if all(t in _SINGLE for t in (a, b)) else "complex128"
    if a in FLOATS or b in FLOATS:
        return "float32" if all(t in _SINGLE for t in (a, b)) else "float64"
    return None


_SINGLE = frozenset(("float32", "complex64")) | _SMALL


def _wide(type_: str) -> str:
    return "uint64" if type_.startswith("u") else "int64"


def _common_integer(a: str, b: str) -> str:
    """The type in which two integers, or bools, are compared."""
    if a == "bool" or b == "bool":
        return b if a == "bool" else a
    bits = {name.startswith("u"): _bits(name) for name in (a, b)}
    if len(bits) == 1:
        return max(a, b, key=_bits)
    needed = max(bits[False], 2 * bits[True])
    return f"int{needed}" if needed <= 64 else "float64"


# ---- arithmetic


def _arithmetic(real: str, whole: str) -> Callable[[str, str], Operation | None]:
    def rule(a: str, b: str) -> Operation | None:
        if not {a, b} <= _NUMBERS:
            return None
        type_ = _floating(a, b)
        if type_ in COMPLEX:
            if whole == "mul":
                return None  # Numba has no form of it in place
            return Operation((type_, type_), type_, _by_parts(real))
        if type_ is not None:
            return Operation((type_, type_), type_, lambda builder, v: getattr(builder, real)(*v))
        kinds = _wide(a), _wide(b)
        if kinds == ("uint64", "uint64"):
            return Operation(kinds, "uint64", lambda builder, v: getattr(builder, whole)(*v))
        return Operation(kinds, "int64", lambda builder, v: getattr(builder, whole)(*v, flags=("nsw",)))

    return rule


def _by_parts(instruction: str) -> Emit:
    def emit(builder: Any, values: list[Any]) -> Any:
        (a, b), (c, d) = (parts(builder, value) for value in values)
        write = getattr(builder, instruction)
        return pair_of(builder, write(a, c), write(b, d))

    return emit


def _true_division(a: str, b: str) -> Operation | None:
    if not {a, b} <= _REAL:
        return None
    type_ = _floating(a, b)
    if type_ is not None:
        return Operation((type_, type_), type_, lambda builder, v: builder.fdiv(*v))
    kinds = _wide(a), _wide(b)

    def emit(builder: Any, values: list[Any]) -> Any:
        return builder.fdiv(*(cast(builder, value, kind, "float64") for value, kind in zip(values, kinds)))

    return Operation(kinds, "float64", emit)


def _floor_division(remainder: bool) -> Callable[[str, str], Operation | None]:
    def rule(a: str, b: str) -> Operation | None:
        if not {a, b} <= INTEGERS | {"bool"}:
            return None
        kinds = _wide(a), _wide(b)
        if kinds == ("uint64", "uint64"):
            return Operation(kinds, "uint64", lambda builder, v: _divided_unsigned(builder, v[0], v[1], remainder))
        return Operation(kinds, "int64", lambda builder, v: _divided_signed(builder, v[0], v[1], remainder))

    return rule


def _divided_signed(builder: Any, a: Any, b: Any, remainder: bool) -> Any:
    """a // b or a % b, rounded down; by zero the result is 0. A divisor that is a number in the text needs no test.
    Operands are indices, never the lowest number: its quotient by -1 would overflow. There is no branch: a kernel has a
    dozen divisions, and LLVM takes a tenth less time for it."""
    if isinstance(b, llir.Constant) and b.constant not in (0, -1):
        return _floored(builder, a, b, remainder)
    zero = constant("int64", 0)
    is_zero = builder.icmp_unsigned("==", b, zero)
    divisor = builder.or_(b, builder.zext(is_zero, b.type))
    return builder.select(is_zero, zero, _floored(builder, a, divisor, remainder))


def _floored(builder: Any, a: Any, b: Any, remainder: bool) -> Any:
    """LLVM's division rounds towards zero: if something is left that has not the sign of the divisor, one too many."""
    zero = constant("int64", 0)
    rest = builder.srem(a, b)
    other_sign = builder.icmp_signed("<", builder.xor(b, rest), zero)
    off = builder.and_(builder.icmp_signed("!=", rest, zero), other_sign)
    if remainder:
        return builder.select(off, builder.add(rest, b), rest)
    quotient = builder.sdiv(a, b)
    return builder.select(off, builder.sub(quotient, constant("int64", 1)), quotient)


def _divided_unsigned(builder: Any, a: Any, b: Any, remainder: bool) -> Any:
    divide = builder.urem if remainder else builder.udiv
    if isinstance(b, llir.Constant) and b.constant != 0:
        return divide(a, b)
    is_zero = builder.icmp_unsigned("==", b, constant("int64", 0))
    divisor = builder.or_(b, builder.zext(is_zero, b.type))
    return builder.select(is_zero, constant("int64", 0), divide(a, divisor))


# ---- bits


def _bitwise(instruction: str) -> Callable[[str, str], Operation | None]:
    def rule(a: str, b: str) -> Operation | None:
        if not {a, b} <= INTEGERS | {"bool"}:
            return None
        kinds = ("bool", "bool") if a == b == "bool" else (_wide(a), _wide(b))
        result = kinds[0] if kinds[0] == kinds[1] else "int64"
        return Operation(kinds, result, lambda builder, v: getattr(builder, instruction)(*v))

    return rule


def _shift(left: bool) -> Callable[[str, str], Operation | None]:
    def rule(a: str, b: str) -> Operation | None:
        if not {a, b} <= INTEGERS | {"bool"}:
            return None
        own = "int8" if a == "bool" else a
        wide = _wide(own)

        def emit(builder: Any, values: list[Any]) -> Any:
            value = cast(builder, values[0], own, wide)
            if left:
                return builder.shl(value, values[1])
            return (builder.lshr if wide == "uint64" else builder.ashr)(value, values[1])

        return Operation((own, "uint64" if b == "bool" or b.startswith("u") else "int64"), wide, emit)

    return rule


# ---- comparisons


def _comparison(relation: str) -> Callable[[str, str], Operation | None]:
    equality = relation in ("==", "!=")

    def rule(a: str, b: str) -> Operation | None:
        if not {a, b} <= (_NUMBERS if equality else _REAL):
            return None
        type_ = _floating(a, b) or _common_integer(a, b)
        return Operation((type_, type_), "bool", lambda builder, v: _compared(builder, relation, type_, *v))

    return rule


def _compared(builder: Any, relation: str, type_: str, a: Any, b: Any) -> Any:
    if type_ in COMPLEX:
        pairs = zip(parts(builder, a), parts(builder, b))
        both = [_compared(builder, relation, PARTS[type_], x, y) for x, y in pairs]
        return (builder.and_ if relation == "==" else builder.or_)(*both)
    if type_ in FLOATS:
        return (builder.fcmp_unordered if relation == "!=" else builder.fcmp_ordered)(relation, a, b)
    compare = builder.icmp_signed if type_.startswith("int") else builder.icmp_unsigned
    return compare(relation, a, b)


# ---- one operand


def _negation(a: str) -> Operation | None:
    if a in FLOATS:
        return Operation((a,), a, lambda builder, v: builder.fsub(constant(a, -0.0), v[0]))
    if a in COMPLEX:
        part = constant(PARTS[a], -0.0)
        return Operation(
            (a,), a, lambda builder, v: pair_of(builder, *(builder.fsub(part, p) for p in parts(builder, v[0])))
        )
    if a not in _NUMBERS:
        return None
    wide = _wide(a)

    def emit(builder: Any, values: list[Any]) -> Any:
        """Unsigned integers wrap in their own width and are widened then, as Numba has it."""
        if a == "bool":
            return builder.sub(constant(wide, 0), cast(builder, values[0], a, wide))
        zero = constant(a, 0)
        return cast(builder, builder.sub(zero, values[0]), a, wide)

    return Operation((a,), wide, emit)


def _inversion(a: str) -> Operation | None:
    if a == "bool":
        return Operation((a,), a, lambda builder, v: builder.not_(v[0]))
    if a not in INTEGERS:
        return None
    return Operation((a,), _wide(a), lambda builder, v: cast(builder, builder.not_(v[0]), a, _wide(a)))


def _truth(a: str) -> Operation | None:
    return Operation((a,), "bool", lambda builder, v: truth(builder, v[0], a)) if a in _NUMBERS else None


def _logical_not(a: str) -> Operation | None:
    if a not in _NUMBERS:
        return None
    return Operation((a,), "bool", lambda builder, v: builder.not_(truth(builder, v[0], a)))


# ---- elements of arrays


_MOST_APART = 8
"""LLVM reads elements with at most this distance as whole vectors."""


def _address(builder: Any, pointer: Any, index: Any) -> Any:
    """The address of an element that is read.

    Of `x[i * n + j * 2]` LLVM may read whole vectors, and take every second element, if it knows that addresses do not
    wrap around. Else it gathers elements one by one, which takes five times as long. It is told about `j * 2` alone,
    because it moves the rest out of the loop over j::

        row = getelementptr inbounds float, float* x, i64 (i * n)
        element = getelementptr inbounds float, float* row, i64 (j * 2)
    """
    before: list[Any] = []
    after: list[Any] = []
    apart = index
    while not _is_apart(apart):
        if not isinstance(apart, llir.Instruction) or apart.opname != "add":
            return builder.gep(pointer, [index])
        first, second = apart.operands
        if _is_apart(second):
            before.append(first)
            apart = second
        elif isinstance(second, llir.Constant | llir.Argument):
            after.append(second)
            apart = first
        elif isinstance(second, llir.Instruction) and second.opname == "add":
            before.append(first)
            apart = second
        else:
            return builder.gep(pointer, [index])
    for offset in (*before, *after, apart):
        pointer = builder.gep(pointer, [offset], inbounds=True)
    return pointer


def _is_apart(index: Any) -> bool:
    """Whether it is a number times a small literal."""
    if not isinstance(index, llir.Instruction) or index.opname != "mul":
        return False
    factor = index.operands[1]
    return isinstance(factor, llir.Constant) and 1 < int(factor.constant) <= _MOST_APART


def _getitem(pointer: str, index: str) -> Operation | None:
    if not pointer.endswith("*") or index not in INTEGERS:
        return None
    return Operation((pointer, _wide(index)), pointer[:-1], lambda builder, v: builder.load(_address(builder, *v)))


def _setitem(pointer: str, index: str, value: str) -> Operation | None:
    if not pointer.endswith("*") or index not in INTEGERS or value not in _NUMBERS:
        return None

    def emit(builder: Any, values: list[Any]) -> None:
        builder.store(values[2], builder.gep(values[0], [values[1]]))

    return Operation((pointer, _wide(index), pointer[:-1]), "none", emit)


_RULES: dict[Any, Callable[..., Operation | None]] = {
    operator.add: _arithmetic("fadd", "add"),
    operator.sub: _arithmetic("fsub", "sub"),
    operator.mul: _arithmetic("fmul", "mul"),
    operator.truediv: _true_division,
    operator.floordiv: _floor_division(remainder=False),
    operator.mod: _floor_division(remainder=True),
    operator.and_: _bitwise("and_"),
    operator.or_: _bitwise("or_"),
    operator.xor: _bitwise("xor"),
    operator.lshift: _shift(left=True),
    operator.rshift: _shift(left=False),
    operator.lt: _comparison("<"),
    operator.le: _comparison("<="),
    operator.gt: _comparison(">"),
    operator.ge: _comparison(">="),
    operator.eq: _comparison("=="),
    operator.ne: _comparison("!="),
    operator.neg: _negation,
    operator.invert: _inversion,
    operator.not_: _logical_not,
    bool: _truth,
    operator.getitem: _getitem,
    operator.setitem: _setitem,
}
