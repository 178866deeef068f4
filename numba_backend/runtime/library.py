"""Functions in LLVM IR that kernels need and machines lack; other machines have them as instructions or in C's library.

`INLINED` are put into kernels before LLVM optimises them, so that loops over them become vectors. `CALLED` have the
names under which LLVM's code generator calls them; for WebAssembly, which has no library at all.

Kernels of this process get conversions of f16 on processors without F16C: the functions that LLVM would call are in
libraries that may not be loaded, and a call of a missing one ends the process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm

from ...hlo.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation in the text of kernels, as a regular expression; its replacement, with a declaration that this
    needs; and a function of it, which shows if a machine has no instruction: it calls one of `calls`."""

    pattern: str
    replacement: str
    declaration: str
    function: str
    calls: tuple[bytes, ...]

    def is_lacking(self, target: Any) -> bool:
        """True if LLVM's target machine has no instruction for it."""
        head = f'target triple = "{target.triple}"\ntarget datalayout = "{target.target_data}"\n'
        with llvm.create_context() as context:
            module = llvm.parse_assembly(head + self.function, context)
            code: bytes = target.emit_object(module)
            module.close()
        return any(name in code for name in self.calls)


def _intrinsic(name: str, type_: str, short: str, count: int, call: str) -> Operation:
    given = ", ".join(f"{type_} %x{k}" for k in range(count))
    function = (
        f"declare {type_} @llvm.{name}.{short}({', '.join([type_] * count)})\n"
        f"define {type_} @f({given}) {{ %y = call {type_} @llvm.{name}.{short}({given}) ret {type_} %y }}"
    )
    pattern = rf'@"llvm\.{name}\.{short}"\('
    return Operation(pattern, f"@hloom.{name}.{short}(", "", function, (call.encode(),))


def _conversion(word: str, given: str, result: str, own: str, *calls: bytes) -> Operation:
    return Operation(
        rf"{word} {given} (\S+) to {result}", rf"call {result} @{own}({given} \1)",
        f"declare {result} @{own}({given})\n",
        f"define {result} @f({given} %x) {{ %y = {word} {given} %x to {result} ret {result} %y }}", calls,
    )  # fmt: skip


HALVES = (
    _conversion("fpext", "half", "float", "hloom.extend.f16", b"__extendhfsf2", b"h2f"),
    _conversion("fptrunc", "float", "half", "hloom.truncate.f32", b"__truncsfhf2", b"f2h"),
    _conversion("fptrunc", "double", "half", "hloom.truncate.f64", b"__truncdfhf2", b"d2h"),
)
"""Conversions of f16."""
OF_PROCESSOR = (_intrinsic("fma", "float", "f32", 3, "fmaf"), *HALVES)
"""Operations that are faster inlined than called, or that some compilers' libraries lack. With +simd128 LLVM does not
end on vectors of f16 (its issue 189251)."""
OF_LIBRARY = (
    _intrinsic("fma", "double", "f64", 3, "fma"), _intrinsic("round", "float", "f32", 1, "roundf"),
    _intrinsic("round", "double", "f64", 1, "round"),
)  # fmt: skip
"""Operations that C's library has."""


def lacking(target: Any, operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """The operations that have no instruction on LLVM's target machine."""
    return tuple([operation for operation in operations if operation.is_lacking(target)])


def with_functions(text: str, operations: Sequence[Operation]) -> str:
    """The text of a module with functions in place of operations; `INLINED` must be linked in then."""
    for operation in operations:
        text, count = re.subn(operation.pattern, operation.replacement, text)
        if count:
            text += operation.declaration
    return text


_ROUND = """
declare {t} @llvm.trunc.{f}({t})
declare {t} @llvm.fabs.{f}({t})
declare {t} @llvm.copysign.{f}({t}, {t})

; To the nearest integer, halves away from zero.
define linkonce_odr {t} @hloom.round.{f}({t} %x) alwaysinline nounwind memory(none) {{
  %whole = call {t} @llvm.trunc.{f}({t} %x)
  %rest = fsub {t} %x, %whole
  %size = call {t} @llvm.fabs.{f}({t} %rest)
  %far = fcmp oge {t} %size, 0.5
  %one = select i1 %far, {t} 1.0, {t} 0.0
  %step = call {t} @llvm.copysign.{f}({t} %one, {t} %x)
  %next = fadd {t} %whole, %step
  %result = call {t} @llvm.copysign.{f}({t} %next, {t} %x)
  ret {t} %result
}}
"""

_FMA_F32 = """
; The product is exact in f64. The sum is rounded to odd, by its error, so that to round it again, to f32, is to round
; once. Boldo and Melquiond: Emulation of FMA and correctly rounded sums, IEEE Trans. Computers 57 (2008).
define linkonce_odr float @hloom.fma.f32(float %a, float %b, float %c) alwaysinline nounwind memory(none) {
  %wide_a = fpext float %a to double
  %wide_b = fpext float %b to double
  %addend = fpext float %c to double
  %product = fmul double %wide_a, %wide_b
  %sum = fadd double %product, %addend
  %of_product = fsub double %sum, %addend
  %of_addend = fsub double %sum, %of_product
  %lost_product = fsub double %product, %of_product
  %lost_addend = fsub double %addend, %of_addend
  %lost = fadd double %lost_product, %lost_addend
  %bits = bitcast double %sum to i64
  %lost_bits = bitcast double %lost to i64
  %last = and i64 %bits, 1
  %is_even = icmp eq i64 %last, 0
  %is_inexact = fcmp one double %lost, 0.0
  %moves = and i1 %is_even, %is_inexact
  %signs = xor i64 %bits, %lost_bits
  %inwards = ashr i64 %signs, 63
  %direction = or i64 %inwards, 1
  %step = select i1 %moves, i64 %direction, i64 0
  %odd_bits = add i64 %bits, %step
  %odd = bitcast i64 %odd_bits to double
  %result = fptrunc double %odd to float
  ret float %result
}
"""

_FMA_F64 = """
declare i64 @llvm.ctlz.i64(i64, i1)
declare i128 @llvm.ctlz.i128(i128, i1)

; A finite number that is not 0 as an integer of 53 bits and the power of 2 that it is multiplied with.
define internal { i64, i64 } @hloom.parts(double %x) nounwind memory(none) {
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %exponent = and i64 %shifted, 2047
  %fraction = and i64 %bits, 4503599627370495
  %is_small = icmp eq i64 %exponent, 0
  %zeros = call i64 @llvm.ctlz.i64(i64 %fraction, i1 false)
  %missing = sub i64 %zeros, 11
  %up = select i1 %is_small, i64 %missing, i64 0
  %lifted = shl i64 %fraction, %up
  %with_one = or i64 %fraction, 4503599627370496
  %integer = select i1 %is_small, i64 %lifted, i64 %with_one
  %of_small = sub i64 -1074, %up
  %of_others = sub i64 %exponent, 1075
  %power = select i1 %is_small, i64 %of_small, i64 %of_others
  %first = insertvalue { i64, i64 } undef, i64 %integer, 0
  %both = insertvalue { i64, i64 } %first, i64 %power, 1
  ret { i64, i64 } %both
}

; The exact sum of x y and z in 128 bits, where what is shifted out sets the last bit; then rounded once, to even.
define linkonce_odr double @hloom.fma.f64(double %x, double %y, double %z) noinline nounwind memory(none) {
entry:
  %xy = fmul double %x, %y
  %plain = fadd double %xy, %z
  %x_zero = fcmp oeq double %x, 0.0
  %y_zero = fcmp oeq double %y, 0.0
  %z_zero = fcmp oeq double %z, 0.0
  %x_off = fsub double %x, %x
  %y_off = fsub double %y, %y
  %z_off = fsub double %z, %z
  %x_odd = fcmp une double %x_off, 0.0
  %y_odd = fcmp une double %y_off, 0.0
  %z_odd = fcmp une double %z_off, 0.0
  %zero = or i1 %x_zero, %y_zero
  %odd_xy = or i1 %x_odd, %y_odd
  %odd = or i1 %odd_xy, %z_odd
  %special = or i1 %zero, %odd
  br i1 %special, label %as_it_is, label %has_z

as_it_is:
  ret double %plain

has_z:
  br i1 %z_zero, label %product_alone, label %integers

product_alone:
  ret double %xy

integers:
  %x_parts = call { i64, i64 } @hloom.parts(double %x)
  %y_parts = call { i64, i64 } @hloom.parts(double %y)
  %z_parts = call { i64, i64 } @hloom.parts(double %z)
  %x_integer = extractvalue { i64, i64 } %x_parts, 0
  %y_integer = extractvalue { i64, i64 } %y_parts, 0
  %z_integer = extractvalue { i64, i64 } %z_parts, 0
  %x_power = extractvalue { i64, i64 } %x_parts, 1
  %y_power = extractvalue { i64, i64 } %y_parts, 1
  %z_power = extractvalue { i64, i64 } %z_parts, 1
  %x_wide = zext i64 %x_integer to i128
  %y_wide = zext i64 %y_integer to i128
  %z_wide = zext i64 %z_integer to i128
  %product = mul i128 %x_wide, %y_wide
  %p = shl i128 %product, 20
  %q = shl i128 %z_wide, 73
  %xy_power = add i64 %x_power, %y_power
  %p_power = sub i64 %xy_power, 20
  %q_power = sub i64 %z_power, 73
  %x_bits = bitcast double %x to i64
  %y_bits = bitcast double %y to i64
  %z_bits = bitcast double %z to i64
  %p_sign = xor i64 %x_bits, %y_bits
  %p_first = icmp sge i64 %p_power, %q_power
  %large = select i1 %p_first, i128 %p, i128 %q
  %small = select i1 %p_first, i128 %q, i128 %p
  %power = select i1 %p_first, i64 %p_power, i64 %q_power
  %other_power = select i1 %p_first, i64 %q_power, i64 %p_power
  %large_sign = select i1 %p_first, i64 %p_sign, i64 %z_bits
  %far = sub i64 %power, %other_power
  %is_far = icmp ugt i64 %far, 127
  %near = select i1 %is_far, i64 127, i64 %far
  %near_wide = zext i64 %near to i128
  %down = lshr i128 %small, %near_wide
  %again = shl i128 %down, %near_wide
  %left_out = icmp ne i128 %again, %small
  %sticky = zext i1 %left_out to i128
  %aligned = or i128 %down, %sticky
  %signs = xor i64 %p_sign, %z_bits
  %differ = icmp slt i64 %signs, 0
  %more = add i128 %large, %aligned
  %less = sub i128 %large, %aligned
  %total = select i1 %differ, i128 %less, i128 %more
  %nothing = icmp eq i128 %total, 0
  br i1 %nothing, label %none, label %some

none:
  ret double 0.0

some:
  %turned = sub i128 0, %total
  %negative = icmp slt i128 %total, 0
  %turns = and i1 %differ, %negative
  %size = select i1 %turns, i128 %turned, i128 %total
  %turned_sign = xor i64 %large_sign, -1
  %signed = select i1 %turns, i64 %turned_sign, i64 %large_sign
  %sign = and i64 %signed, -9223372036854775808
  %zeros_wide = call i128 @llvm.ctlz.i128(i128 %size, i1 true)
  %zeros = trunc i128 %zeros_wide to i64
  %normal = shl i128 %size, %zeros_wide
  %power_left = sub i64 %power, %zeros
  %biased = add i64 %power_left, 1150
  ; Of 128 bits 53 are kept, fewer of numbers that are too small to be normal; 30 go now, so that no shift exceeds 127.
  %kept = lshr i128 %normal, 30
  %gone = and i128 %normal, 1073741823
  %any = icmp ne i128 %gone, 0
  %any_wide = zext i1 %any to i128
  %shorter = or i128 %kept, %any_wide
  %under = sub i64 1, %biased
  %is_under = icmp sgt i64 %under, 0
  %extra = select i1 %is_under, i64 %under, i64 0
  %is_tiny = icmp sgt i64 %extra, 60
  %bounded = select i1 %is_tiny, i64 60, i64 %extra
  %shift = add i64 %bounded, 45
  %shift_wide = zext i64 %shift to i128
  %quotient = lshr i128 %shorter, %shift_wide
  %back = shl i128 %quotient, %shift_wide
  %rest = sub i128 %shorter, %back
  %shift_less = sub i128 %shift_wide, 1
  %half = shl i128 1, %shift_less
  %above = icmp ugt i128 %rest, %half
  %tie = icmp eq i128 %rest, %half
  %integer = trunc i128 %quotient to i64
  %parity = trunc i64 %integer to i1
  %tie_up = and i1 %tie, %parity
  %rounds = or i1 %above, %tie_up
  %unit = zext i1 %rounds to i64
  %mantissa = add i64 %integer, %unit
  %before = sub i64 %biased, 1
  %exponent = select i1 %is_under, i64 0, i64 %before
  %raised = shl i64 %exponent, 52
  %finite = add i64 %raised, %mantissa
  %overflow = icmp sgt i64 %biased, 2046
  %bits = select i1 %overflow, i64 9218868437227405312, i64 %finite
  %all = or i64 %bits, %sign
  %result = bitcast i64 %all to double
  ret double %result
}
"""

_F16 = """
; f16 is f32 with its bits moved, times 2^112: exact for numbers below normal too.
define linkonce_odr float @hloom.extend.f16(half %half) alwaysinline nounwind memory(none) {
  %x = bitcast half %half to i16
  %bits = zext i16 %x to i32
  %size = and i32 %bits, 32767
  %moved = shl i32 %size, 13
  %small = bitcast i32 %moved to float
  %number = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %number to i32
  %with_exponent = or i32 %moved, 2139095040
  %is_special = icmp ugt i32 %size, 31743
  %positive = select i1 %is_special, i32 %with_exponent, i32 %finite
  %high = and i32 %bits, 32768
  %sign = shl i32 %high, 16
  %all = or i32 %positive, %sign
  %result = bitcast i32 %all to float
  ret float %result
}

; Rounded to even: normal numbers as integers, smaller ones by a sum with 0.5, whose last bit is f16's smallest number.
define linkonce_odr half @hloom.truncate.f32(float %x) alwaysinline nounwind memory(none) {
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %absolute = bitcast i32 %size to float
  %sum = fadd float %absolute, 0.5
  %sum_bits = bitcast float %sum to i32
  %as_small = sub i32 %sum_bits, 1056964608
  %down = lshr i32 %size, 13
  %parity = and i32 %down, 1
  %rebased = sub i32 %size, 939524096
  %up = add i32 %rebased, 4095
  %rounded = add i32 %up, %parity
  %as_normal = lshr i32 %rounded, 13
  %payload = and i32 %down, 1023
  %as_nan = or i32 %payload, 32256
  %is_small = icmp ult i32 %size, 947912704
  %is_large = icmp ugt i32 %size, 1199570943
  %is_nan = icmp ugt i32 %size, 2139095040
  %number = select i1 %is_small, i32 %as_small, i32 %as_normal
  %bounded = select i1 %is_large, i32 31744, i32 %number
  %positive = select i1 %is_nan, i32 %as_nan, i32 %bounded
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %all = or i32 %positive, %sign
  %short = trunc i32 %all to i16
  %result = bitcast i16 %short to half
  ret half %result
}

; By f32, rounded to odd, so that it is rounded once.
define linkonce_odr half @hloom.truncate.f64(double %x) alwaysinline nounwind memory(none) {
  %near = fptrunc double %x to float
  %again = fpext float %near to double
  %bits = bitcast float %near to i32
  %near_size = and i32 %bits, 2147483647
  %near_positive = bitcast i32 %near_size to float
  %size_near = fpext float %near_positive to double
  %x_bits = bitcast double %x to i64
  %x_size_bits = and i64 %x_bits, 9223372036854775807
  %x_size = bitcast i64 %x_size_bits to double
  %last = and i32 %bits, 1
  %is_even = icmp eq i32 %last, 0
  %is_inexact = fcmp one double %again, %x
  %moves = and i1 %is_even, %is_inexact
  %is_below = fcmp olt double %size_near, %x_size
  %direction = select i1 %is_below, i32 1, i32 -1
  %step = select i1 %moves, i32 %direction, i32 0
  %odd_bits = add i32 %bits, %step
  %odd = bitcast i32 %odd_bits to float
  %result = call half @hloom.truncate.f32(float %odd)
  ret half %result
}
"""

INLINED = _ROUND.format(t="float", f="f32") + _ROUND.format(t="double", f="f64") + _FMA_F32 + _FMA_F64 + _F16

CALLED = """
; The product of two integers of 128 bits, in halves; by products of 32 bits.
define weak void @__multi3(ptr %to, i64 %a, i64 %a_high, i64 %b, i64 %b_high) nounwind {
  %a0 = and i64 %a, 4294967295
  %a1 = lshr i64 %a, 32
  %b0 = and i64 %b, 4294967295
  %b1 = lshr i64 %b, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %m0 = lshr i64 %p00, 32
  %m1 = and i64 %p01, 4294967295
  %m2 = and i64 %p10, 4294967295
  %m01 = add i64 %m0, %m1
  %middle = add i64 %m01, %m2
  %low = mul i64 %a, %b
  %h0 = lshr i64 %middle, 32
  %h1 = lshr i64 %p01, 32
  %h2 = lshr i64 %p10, 32
  %h01 = add i64 %h0, %h1
  %h012 = add i64 %h01, %h2
  %h = add i64 %h012, %p11
  %cross0 = mul i64 %a, %b_high
  %cross1 = mul i64 %a_high, %b
  %h_cross = add i64 %h, %cross0
  %high = add i64 %h_cross, %cross1
  store i64 %low, ptr %to
  %second = getelementptr i64, ptr %to, i32 1
  store i64 %high, ptr %second
  ret void
}

; Shifts of 128 bits by 0 to 127.
define weak void @__ashlti3(ptr %to, i64 %low, i64 %high, i32 %by) nounwind {
  %second = getelementptr i64, ptr %to, i32 1
  %wide = zext i32 %by to i64
  %within = and i64 %wide, 63
  %is_long = icmp ugt i32 %by, 63
  %left = sub i64 63, %within
  %half = lshr i64 %low, 1
  %over = lshr i64 %half, %left
  %moved_low = shl i64 %low, %within
  %moved_high = shl i64 %high, %within
  %joined = or i64 %moved_high, %over
  %new_low = select i1 %is_long, i64 0, i64 %moved_low
  %new_high = select i1 %is_long, i64 %moved_low, i64 %joined
  store i64 %new_low, ptr %to
  store i64 %new_high, ptr %second
  ret void
}

define weak void @__lshrti3(ptr %to, i64 %low, i64 %high, i32 %by) nounwind {
  %second = getelementptr i64, ptr %to, i32 1
  %wide = zext i32 %by to i64
  %within = and i64 %wide, 63
  %is_long = icmp ugt i32 %by, 63
  %left = sub i64 63, %within
  %twice = shl i64 %high, 1
  %over = shl i64 %twice, %left
  %moved_low = lshr i64 %low, %within
  %moved_high = lshr i64 %high, %within
  %joined = or i64 %moved_low, %over
  %new_low = select i1 %is_long, i64 %moved_high, i64 %joined
  %new_high = select i1 %is_long, i64 0, i64 %moved_high
  store i64 %new_low, ptr %to
  store i64 %new_high, ptr %second
  ret void
}
"""
