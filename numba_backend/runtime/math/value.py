"""Scalars with operators that write LLVM IR: the small language in which this package's mathematics is written.

`Float`, `Integer` and `Boolean` wrap one LLVM value each. An operator appends an instruction to the builder's block and
wraps its result, so that ``fma(r * r, q, r)`` reads as mathematics and costs a kernel nothing but its instructions:
there is no callee for Numba to type. Only code that LLVM's loop vectoriser can widen is allowed: straight-line
arithmetic, selects, and intrinsics with vector forms. No branches, no table look-ups, no calls into libm.
(`slow_path.py` has the one exception.)

Python numbers on either side of an operator become constants of the other operand's type.

Arithmetic here is strict: an instruction without fast-math flags would get the kernel's flag (``contract``) at the end,
and a product that is silently fused breaks error-free transformations. Fusing is written as an explicit `fma`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from llvmlite import ir

# `allow_contraction`, and Numba's fast-math pass, leave an llvmlite instruction with a non-empty flag list unchanged;
# the empty flag prints as nothing.
_STRICT = ("",)


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """The properties of an IEEE format that the algorithms use. `round_to_integer` is 1.5 * 2**mantissa_bits: adding it
    to a value of magnitude below 2**(mantissa_bits - 1) rounds the value to an integer, which is then in the low bits
    of the sum."""

    name: str
    bits: int
    mantissa_bits: int
    largest: float
    smallest_normal: float

    @property
    def exponent_bias(self) -> int:
        return (1 << (self.bits - self.mantissa_bits - 2)) - 1

    @property
    def round_to_integer(self) -> float:
        return 1.5 * 2.0**self.mantissa_bits

    @property
    def llvm(self) -> Any:
        return ir.FloatType() if self.bits == 32 else ir.DoubleType()

    @property
    def llvm_bits(self) -> Any:
        return ir.IntType(self.bits)


F32 = FloatFormat("f32", 32, 23, float.fromhex("0x1.fffffep+127"), 2.0**-126)
F64 = FloatFormat("f64", 64, 52, float.fromhex("0x1.fffffffffffffp+1023"), 2.0**-1022)
INFINITY = float("inf")
NAN = float("nan")


def type_suffix(type_: Any) -> str:
    """The name of a type in LLVM's intrinsic names: f32, i64, v4f64."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{type_suffix(type_.element)}"
    return f"i{type_.width}" if isinstance(type_, ir.IntType) else "f32" if isinstance(type_, ir.FloatType) else "f64"


def splat(type_: Any, number: float) -> Any:
    """A constant of a scalar type, or of a vector type with `number` in each lane."""
    return ir.Constant(type_, [number] * type_.count if isinstance(type_, ir.VectorType) else number)


def call_intrinsic(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A call of the LLVM intrinsic `name` (full name, with its type suffixes)."""
    module = builder.module
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(result, [argument.type for argument in arguments]), name)
    return builder.call(function, arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Boolean:
    """An LLVM i1."""

    builder: Any
    raw: Any

    def __and__(self, other: Boolean) -> Boolean:
        return Boolean(self.builder, self.builder.and_(self.raw, other.raw))

    def __or__(self, other: Boolean) -> Boolean:
        return Boolean(self.builder, self.builder.or_(self.raw, other.raw))

    def __xor__(self, other: Boolean) -> Boolean:
        return Boolean(self.builder, self.builder.xor(self.raw, other.raw))

    def __invert__(self) -> Boolean:
        return Boolean(self.builder, self.builder.not_(self.raw))


@dataclass(frozen=True, slots=True, eq=False)
class Integer:
    """An LLVM integer. It is neither signed nor unsigned: operations that depend on the sign have it in their names;
    comparison operators are signed."""

    builder: Any
    raw: Any

    @property
    def bits(self) -> int:
        return int(self.raw.type.width)

    def constant(self, number: int) -> Integer:
        return Integer(self.builder, ir.Constant(self.raw.type, number))

    def _raw(self, other: Integer | int) -> Any:
        return other.raw if isinstance(other, Integer) else ir.Constant(self.raw.type, other)

    def __add__(self, other: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.add(self.raw, self._raw(other)))

    def __sub__(self, other: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.sub(self.raw, self._raw(other)))

    def __mul__(self, other: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.mul(self.raw, self._raw(other)))

    def __and__(self, other: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.and_(self.raw, self._raw(other)))

    def __or__(self, other: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.or_(self.raw, self._raw(other)))

    def __xor__(self, other: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.xor(self.raw, self._raw(other)))

    def __neg__(self) -> Integer:
        return self.constant(0) - self

    def __lshift__(self, count: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.shl(self.raw, self._raw(count)))

    def shift_right_logical(self, count: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.lshr(self.raw, self._raw(count)))

    def shift_right_arithmetic(self, count: Integer | int) -> Integer:
        return Integer(self.builder, self.builder.ashr(self.raw, self._raw(count)))

    def _compare(self, relation: str, other: Integer | int) -> Boolean:
        return Boolean(self.builder, self.builder.icmp_signed(relation, self.raw, self._raw(other)))

    def __lt__(self, other: Integer | int) -> Boolean:
        return self._compare("<", other)

    def __le__(self, other: Integer | int) -> Boolean:
        return self._compare("<=", other)

    def __gt__(self, other: Integer | int) -> Boolean:
        return self._compare(">", other)

    def __ge__(self, other: Integer | int) -> Boolean:
        return self._compare(">=", other)

    def equals(self, other: Integer | int) -> Boolean:
        return self._compare("==", other)

    def below_unsigned(self, other: Integer | int) -> Boolean:
        return Boolean(self.builder, self.builder.icmp_unsigned("<", self.raw, self._raw(other)))

    def truncate(self, bits: int) -> Integer:
        return Integer(self.builder, self.builder.trunc(self.raw, ir.IntType(bits)))

    def extend_signed(self, bits: int) -> Integer:
        return Integer(self.builder, self.builder.sext(self.raw, ir.IntType(bits)))

    def extend_unsigned(self, bits: int) -> Integer:
        return Integer(self.builder, self.builder.zext(self.raw, ir.IntType(bits)))


@dataclass(frozen=True, slots=True, eq=False)
class Float:
    """An f32 or f64, or a vector of them (`slow_path.py`). Comparisons are ordered (false with NaN), except `differs`,
    which is true with NaN."""

    builder: Any
    raw: Any

    @property
    def format(self) -> FloatFormat:
        element = getattr(self.raw.type, "element", self.raw.type)
        return F32 if isinstance(element, ir.FloatType) else F64

    def constant(self, number: float) -> Float:
        return Float(self.builder, splat(self.raw.type, float(number)))

    def _raw(self, other: Float | float) -> Any:
        return other.raw if isinstance(other, Float) else splat(self.raw.type, float(other))

    def __add__(self, other: Float | float) -> Float:
        return Float(self.builder, self.builder.fadd(self.raw, self._raw(other), flags=_STRICT))

    def __radd__(self, other: float) -> Float:
        return self.constant(other) + self

    def __sub__(self, other: Float | float) -> Float:
        return Float(self.builder, self.builder.fsub(self.raw, self._raw(other), flags=_STRICT))

    def __rsub__(self, other: float) -> Float:
        return self.constant(other) - self

    def __mul__(self, other: Float | float) -> Float:
        return Float(self.builder, self.builder.fmul(self.raw, self._raw(other), flags=_STRICT))

    def __rmul__(self, other: float) -> Float:
        return self.constant(other) * self

    def __truediv__(self, other: Float | float) -> Float:
        return Float(self.builder, self.builder.fdiv(self.raw, self._raw(other), flags=_STRICT))

    def __rtruediv__(self, other: float) -> Float:
        return self.constant(other) / self

    def __neg__(self) -> Float:
        return Float(self.builder, self.builder.fneg(self.raw))

    def _compare(self, relation: str, other: Float | float) -> Boolean:
        return Boolean(self.builder, self.builder.fcmp_ordered(relation, self.raw, self._raw(other)))

    def __lt__(self, other: Float | float) -> Boolean:
        return self._compare("<", other)

    def __le__(self, other: Float | float) -> Boolean:
        return self._compare("<=", other)

    def __gt__(self, other: Float | float) -> Boolean:
        return self._compare(">", other)

    def __ge__(self, other: Float | float) -> Boolean:
        return self._compare(">=", other)

    def equals(self, other: Float | float) -> Boolean:
        return self._compare("==", other)

    def differs(self, other: Float | float) -> Boolean:
        return Boolean(self.builder, self.builder.fcmp_unordered("!=", self.raw, self._raw(other)))

    def is_nan(self) -> Boolean:
        return Boolean(self.builder, self.builder.fcmp_unordered("uno", self.raw, self.raw))

    def to_bits(self) -> Integer:
        return Integer(self.builder, self.builder.bitcast(self.raw, self.format.llvm_bits))

    def to_format(self, target: FloatFormat) -> Float:
        """Widened exactly, or rounded to nearest even."""
        if target is self.format:
            return self
        convert = self.builder.fpext if target.bits > self.format.bits else self.builder.fptrunc
        return Float(self.builder, convert(self.raw, target.llvm))


def from_bits(bits: Integer) -> Float:
    return Float(bits.builder, bits.builder.bitcast(bits.raw, (F32 if bits.bits == 32 else F64).llvm))


Scalar = TypeVar("Scalar", Float, Integer, Boolean)


def select(condition: Boolean, chosen: Scalar, otherwise: Scalar) -> Scalar:
    """Both sides are computed; there is no branch."""
    raw = condition.builder.select(condition.raw, chosen.raw, otherwise.raw)
    return type(chosen)(condition.builder, raw)


def choose(condition: Boolean, chosen: Float | float, otherwise: Float | float, like: Float) -> Float:
    """`select` with sides that may be Python numbers; these get the type of `like`."""
    return Float(condition.builder, condition.builder.select(condition.raw, like._raw(chosen), like._raw(otherwise)))


def _float_intrinsic(name: str, *arguments: Float) -> Float:
    first = arguments[0]
    raw = call_intrinsic(
        first.builder, f"llvm.{name}.{type_suffix(first.raw.type)}", first.raw.type, *(argument.raw for argument in
        arguments)
    )
    return Float(first.builder, raw)


def fma(a: Float, b: Float | float, c: Float | float) -> Float:
    """a * b + c with one rounding."""
    return _float_intrinsic("fma", a, Float(a.builder, a._raw(b)), Float(a.builder, a._raw(c)))


def absolute(x: Float) -> Float:
    return _float_intrinsic("fabs", x)


def copysign(magnitude: Float, sign: Float) -> Float:
    return _float_intrinsic("copysign", magnitude, sign)


def kept_apart(x: Float) -> Float:
    """x, which LLVM does not look through.

    LLVM moves a rounding into a copysign, whose sign may be of another type. Where an f64 becomes an f16 by way of f32,
    that would leave a rounding of the sign from f64 to f16 at once: on some processors (AVX-512 without FP16) a call of
    ``__truncdfhf2``, which the process may lack."""
    return _float_intrinsic("canonicalize", x)


def uncontracted(x: Float) -> Float:
    """x, with its last operation kept out of fused multiply-adds: a sum, difference, product or quotient that a kernel
    has just computed becomes strict, as arithmetic here is."""
    if isinstance(x.raw, ir.Instruction) and x.raw.opname in ("fadd", "fsub", "fmul", "fdiv"):
        x.raw.flags[:] = _STRICT
    return x


def square_root(x: Float) -> Float:
    return _float_intrinsic("sqrt", x)


def floor(x: Float) -> Float:
    return _float_intrinsic("floor", x)


def ceil(x: Float) -> Float:
    return _float_intrinsic("ceil", x)


def truncate(x: Float) -> Float:
    return _float_intrinsic("trunc", x)


def round_half_even(x: Float) -> Float:
    return _float_intrinsic("roundeven", x)


def round_half_away(x: Float) -> Float:
    return _float_intrinsic("round", x)


def at_most(x: Float, bound: Float | float) -> Float:
    """min(x, bound), where a NaN in `x` stays: one machine instruction, unlike IEEE minimum."""
    return choose(x > bound, bound, x, x)


def at_least(x: Float, bound: Float | float) -> Float:
    """max(x, bound), where a NaN in `x` stays."""
    return choose(x < bound, bound, x, x)


_SQUARE_IS_NOTHING = {F32: 2.0**-30, F64: 2.0**-240}


def square(x: Float) -> Float:
    """x * x, but 0 where that is negligible beside 1: it, or its square, might be subnormal, which costs the CPU a
    hundred cycles."""
    rounded = choose(absolute(x) < _SQUARE_IS_NOTHING[x.format], 0.0, x, x)
    return rounded * rounded


def polynomial(x: Float, coefficients: tuple[float, ...]) -> Float:
    """sum(c * x**k), constant term first, by Horner's rule with one rounding for each step."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return result


def polynomial_in_pairs(x: Float, coefficients: tuple[float, ...]) -> Float:
    """The same sum by Estrin's scheme: a chain of log2(n) steps, and not n, for about log2(n) more products. Where the
    value is the next argument, as in a loop over a scalar, the length of the chain is the time."""
    terms = [x.constant(c) for c in coefficients]
    while len(terms) > 1:
        pairs = [fma(high, x, low) for low, high in zip(terms[::2], terms[1::2])]
        terms = pairs + terms[len(terms) & ~1 :]
        x = x * x
    return terms[0]
