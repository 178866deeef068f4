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

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, TypeVar

from llvmlite import ir

from ....hlo.support.records import dataclass

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


def call_intrinsic(builder: Any, name: str, result: Any, *arguments: Any, flags: Iterable[str] = ()) -> Any:
    """A call of the LLVM intrinsic `name` (full name, with its type suffixes). `flags`: of fast-math."""
    module = builder.module
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(result, [argument.type for argument in arguments]), name)
    return builder.call(function, arguments, fastmath=flags)


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


def _of_integers(instruction: str) -> Callable[[Integer, Integer | int], Integer]:
    def operate(a: Integer, b: Integer | int) -> Integer:
        return Integer(a.builder, getattr(a.builder, instruction)(a.raw, a._raw(b)))

    return operate


def _compares_integers(relation: str) -> Callable[[Integer, Integer | int], Boolean]:
    return lambda a, b: Boolean(a.builder, a.builder.icmp_signed(relation, a.raw, a._raw(b)))


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

    __add__: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("add")
    __sub__: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("sub")
    __mul__: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("mul")
    __and__: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("and_")
    __or__: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("or_")
    __xor__: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("xor")
    __lshift__: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("shl")
    shift_right_logical: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("lshr")
    shift_right_arithmetic: ClassVar[Callable[[Integer, Integer | int], Integer]] = _of_integers("ashr")
    __lt__: ClassVar[Callable[[Integer, Integer | int], Boolean]] = _compares_integers("<")
    __le__: ClassVar[Callable[[Integer, Integer | int], Boolean]] = _compares_integers("<=")
    __gt__: ClassVar[Callable[[Integer, Integer | int], Boolean]] = _compares_integers(">")
    __ge__: ClassVar[Callable[[Integer, Integer | int], Boolean]] = _compares_integers(">=")
    equals: ClassVar[Callable[[Integer, Integer | int], Boolean]] = _compares_integers("==")

    def __neg__(self) -> Integer:
        return self.constant(0) - self

    def below_unsigned(self, other: Integer | int) -> Boolean:
        return Boolean(self.builder, self.builder.icmp_unsigned("<", self.raw, self._raw(other)))

    def truncate(self, bits: int) -> Integer:
        return Integer(self.builder, self.builder.trunc(self.raw, ir.IntType(bits)))

    def extend_signed(self, bits: int) -> Integer:
        return Integer(self.builder, self.builder.sext(self.raw, ir.IntType(bits)))

    def extend_unsigned(self, bits: int) -> Integer:
        return Integer(self.builder, self.builder.zext(self.raw, ir.IntType(bits)))


def _of_floats(instruction: str, reflected: bool = False) -> Callable[[Float, Float | float], Float]:
    def operate(a: Float, b: Float | float) -> Float:
        operands = (a._raw(b), a.raw) if reflected else (a.raw, a._raw(b))
        return Float(a.builder, getattr(a.builder, instruction)(*operands, flags=_STRICT))

    return operate


def _compares_floats(relation: str) -> Callable[[Float, Float | float], Boolean]:
    return lambda a, b: Boolean(a.builder, a.builder.fcmp_ordered(relation, a.raw, a._raw(b)))


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

    __add__: ClassVar[Callable[[Float, Float | float], Float]] = _of_floats("fadd")
    __radd__: ClassVar[Callable[[Float, Float | float], Float]] = _of_floats("fadd", reflected=True)
    __sub__: ClassVar[Callable[[Float, Float | float], Float]] = _of_floats("fsub")
    __rsub__: ClassVar[Callable[[Float, Float | float], Float]] = _of_floats("fsub", reflected=True)
    __mul__: ClassVar[Callable[[Float, Float | float], Float]] = _of_floats("fmul")
    __rmul__: ClassVar[Callable[[Float, Float | float], Float]] = _of_floats("fmul", reflected=True)
    __truediv__: ClassVar[Callable[[Float, Float | float], Float]] = _of_floats("fdiv")
    __rtruediv__: ClassVar[Callable[[Float, Float | float], Float]] = _of_floats("fdiv", reflected=True)
    __lt__: ClassVar[Callable[[Float, Float | float], Boolean]] = _compares_floats("<")
    __le__: ClassVar[Callable[[Float, Float | float], Boolean]] = _compares_floats("<=")
    __gt__: ClassVar[Callable[[Float, Float | float], Boolean]] = _compares_floats(">")
    __ge__: ClassVar[Callable[[Float, Float | float], Boolean]] = _compares_floats(">=")
    equals: ClassVar[Callable[[Float, Float | float], Boolean]] = _compares_floats("==")

    def __neg__(self) -> Float:
        return Float(self.builder, self.builder.fneg(self.raw))

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


def float_intrinsic(name: str, *arguments: Float) -> Float:
    """A call of an LLVM intrinsic with a result of its arguments' type."""
    first, raw = arguments[0], [argument.raw for argument in arguments]
    type_ = first.raw.type
    return Float(first.builder, call_intrinsic(first.builder, f"llvm.{name}.{type_suffix(type_)}", type_, *raw))


def fma(a: Float, b: Float | float, c: Float | float) -> Float:
    """a * b + c with one rounding."""
    return float_intrinsic("fma", a, Float(a.builder, a._raw(b)), Float(a.builder, a._raw(c)))


absolute, square_root, floor, ceil, truncate, round_half_even, round_half_away = (
    partial(float_intrinsic, name) for name in ("fabs", "sqrt", "floor", "ceil", "trunc", "roundeven", "round")
)


def copysign(magnitude: Float, sign: Float) -> Float:
    return float_intrinsic("copysign", magnitude, sign)


def kept_apart(x: Float) -> Float:
    """x, which LLVM does not look through.

    LLVM moves a rounding into a copysign, whose sign may be of another type. Where an f64 becomes an f16 by way of f32,
    that would leave a rounding of the sign from f64 to f16 at once: on some processors (AVX-512 without FP16) a call of
    ``__truncdfhf2``, which the process may lack."""
    return float_intrinsic("canonicalize", x)


def uncontracted(x: Float) -> Float:
    """x, with its last operation kept out of fused multiply-adds: a sum, difference, product or quotient that a kernel
    has just computed becomes strict, as arithmetic here is."""
    if isinstance(x.raw, ir.Instruction) and x.raw.opname in ("fadd", "fsub", "fmul", "fdiv"):
        x.raw.flags[:] = _STRICT
    return x


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


def polynomial_in_pairs(x: Float, coefficients: tuple[Float | float, ...]) -> Float:
    """The same sum by Estrin's scheme: a chain of log2(n) steps, and not n, for about log2(n) more products. Where the
    value is the next argument, as in a loop over a scalar, the length of the chain is the time."""
    terms = [c if isinstance(c, Float) else x.constant(c) for c in coefficients]
    while len(terms) > 1:
        pairs = [fma(high, x, low) for low, high in zip(terms[::2], terms[1::2])]
        terms = pairs + terms[len(terms) & ~1 :]
        x = x * x
    return terms[0]
