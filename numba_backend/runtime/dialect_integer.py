"""Integer arithmetic of the dialect, with HLO's rules: every operation wraps, none traps, none is undefined."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .math.value import F32, F64, Boolean, Float, Integer, call_intrinsic, select


def _lowest(a: Integer) -> int:
    return -1 << (a.bits - 1)


def _quotient(a: Integer, b: Integer, signed: bool) -> Integer:
    """trunc(a / b) for b != 0 and no overflow. No CPU divides vectors of integers, so integers of up to 32 bits are
    divided as floats: a / b is at least 1 / |b| from the next whole number, far more than the rounding error. By a
    literal, LLVM multiplies."""
    builder = a.builder
    if a.bits == 64 or isinstance(b.raw, ir.Constant):
        return Integer(builder, (builder.sdiv if signed else builder.udiv)(a.raw, b.raw))
    format_ = F64 if a.bits == 32 else F32
    to_float, to_integer = (builder.sitofp, builder.fptosi) if signed else (builder.uitofp, builder.fptoui)
    quotient = Float(builder, to_float(a.raw, format_.llvm)) / Float(builder, to_float(b.raw, format_.llvm))
    return Integer(builder, to_integer(quotient.raw, a.raw.type))


def _literal(value: Any) -> int | None:
    """The number, if it is written in the kernel, perhaps as a wider integer."""
    bits = value.type.width
    while isinstance(value, ir.CastInstr) and value.opname == "trunc":
        (value,) = value.operands
    if not isinstance(value, ir.Constant) or not isinstance(value.constant, int):
        return None
    number: int = (value.constant + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return number


def _safe_divisor(a: Integer, b: Integer, signed: bool) -> Integer:
    """b, but 1 where the division has no quotient: division by zero, and of the lowest number by -1 (1 gives HLO's
    result there). A literal becomes a constant of its type: llvm_backend.py looks for divisions by constants."""
    literal = _literal(b.raw)
    if literal not in (None, 0, -1):
        return b.constant(literal)
    undefined = b.equals(0)
    if signed:
        undefined = undefined | (a.equals(_lowest(a)) & b.equals(-1))
    return select(undefined, b.constant(1), b)


def divide(a: Integer, b: Integer, signed: bool) -> Integer:
    """Truncates; x / 0 == -1 (all ones), lowest / -1 == lowest, as in XLA."""
    quotient = _quotient(a, _safe_divisor(a, b, signed), signed)
    return select(b.equals(0), a.constant(-1), quotient)


def remainder(a: Integer, b: Integer, signed: bool) -> Integer:
    """Has the sign of a; x % 0 == x, lowest % -1 == 0."""
    divisor = _safe_divisor(a, b, signed)
    rest = a - _quotient(a, divisor, signed) * divisor
    return select(b.equals(0), a, rest)


def upper_half(a: Integer, b: Integer, signed: bool) -> Integer:
    """The upper half of the product, computed in twice the width."""
    wide_a, wide_b = (x.extend_signed(2 * x.bits) if signed else x.extend_unsigned(2 * x.bits) for x in (a, b))
    return (wide_a * wide_b).shift_right_logical(a.bits).truncate(a.bits)


def shift_left(a: Integer, count: Integer) -> Integer:
    """0 where the count, read as unsigned, is the width or more; the other shifts likewise give zeros or sign bits."""
    return select(count.below_unsigned(a.bits), a << count, a.constant(0))


def shift_right_logical(a: Integer, count: Integer) -> Integer:
    return select(count.below_unsigned(a.bits), a.shift_right_logical(count), a.constant(0))


def shift_right_arithmetic(a: Integer, count: Integer) -> Integer:
    last = count.constant(a.bits - 1)
    return a.shift_right_arithmetic(select(count.below_unsigned(a.bits), count, last))


def population_count(a: Integer) -> Integer:
    return Integer(a.builder, call_intrinsic(a.builder, f"llvm.ctpop.i{a.bits}", a.raw.type, a.raw))


def count_leading_zeros(a: Integer) -> Integer:
    """The width for 0."""
    zero_is_defined = ir.Constant(ir.IntType(1), 0)
    return Integer(a.builder, call_intrinsic(a.builder, f"llvm.ctlz.i{a.bits}", a.raw.type, a.raw, zero_is_defined))


def absolute_signed(a: Integer) -> Integer:
    """|lowest| == lowest."""
    return select(a < 0, -a, a)


def sign_signed(a: Integer) -> Integer:
    return select(a < 0, a.constant(-1), select(a.equals(0), a.constant(0), a.constant(1)))


def sign_unsigned(a: Integer) -> Integer:
    return select(a.equals(0), a.constant(0), a.constant(1))


def maximum(a: Integer, b: Integer, signed: bool) -> Integer:
    return _extremum("smax" if signed else "umax", a, b)


def minimum(a: Integer, b: Integer, signed: bool) -> Integer:
    return _extremum("smin" if signed else "umin", a, b)


def _extremum(name: str, a: Integer, b: Integer) -> Integer:
    return Integer(a.builder, call_intrinsic(a.builder, f"llvm.{name}.i{a.bits}", a.raw.type, a.raw, b.raw))


def compare(relation: str, a: Integer, b: Integer, signed: bool) -> Boolean:
    return Boolean(a.builder, (a.builder.icmp_signed if signed else a.builder.icmp_unsigned)(relation, a.raw, b.raw))


def power_signed(base: Integer, exponent: Integer) -> Integer:
    """base**exponent modulo 2**width; for a negative exponent the truncated inverse, which only 1 and -1 have."""
    one, minus_one = base.constant(1), base.constant(-1)
    odd = (exponent & 1).equals(1)
    inverse = select(base.equals(1), one, select(base.equals(-1), select(odd, minus_one, one), base.constant(0)))
    return select(exponent < 0, inverse, power_unsigned(base, exponent))


def power_unsigned(base: Integer, exponent: Integer) -> Integer:
    """By squaring, in a separate function: the vectoriser cannot handle its loop."""
    builder = base.builder
    module = builder.module
    name = f"hloom.power.i{base.bits}"
    function = module.globals.get(name)
    if function is None:
        function = _power_function(module, name, base.raw.type)
    return Integer(builder, builder.call(function, [base.raw, exponent.raw]))


def _power_function(module: Any, name: str, type_: Any) -> Any:
    function = ir.Function(module, ir.FunctionType(type_, [type_, type_]), name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    entry, loop, done = (function.append_basic_block(block) for block in ("entry", "square", "done"))
    builder = ir.IRBuilder(entry)
    base, exponent = function.args
    zero, one = ir.Constant(type_, 0), ir.Constant(type_, 1)
    builder.cbranch(builder.icmp_unsigned("==", exponent, zero), done, loop)
    builder.position_at_end(loop)
    result, factor, left = builder.phi(type_), builder.phi(type_), builder.phi(type_)
    odd = builder.trunc(left, ir.IntType(1))
    product = builder.select(odd, builder.mul(result, factor), result)
    square = builder.mul(factor, factor)
    half = builder.lshr(left, one)
    for phi, first, following in ((result, one, product), (factor, base, square), (left, exponent, half)):
        phi.add_incoming(first, entry)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("==", half, zero), done, loop)
    builder.position_at_end(done)
    answer = builder.phi(type_)
    answer.add_incoming(one, entry)
    answer.add_incoming(product, loop)
    builder.ret(answer)
    return function
