"""Every rule of the algebraic simplifier: one minimal program that it rewrites, one near miss that it does not.

Both are also evaluated before and after on inputs with NaN, infinities and both zeros, and printed and parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hloom.hlo.element_type import ElementType
from hloom.hlo.evaluator import elementwise as evaluator
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.rewrite import map_computations, rewrite_computation
from hloom.hlo.passes.rewriter import RewriteLog
from hloom.hlo.passes.rule_check import check_application
from hloom.hlo.passes.simplify.algebraic_simplifier import RULES, AlgebraicSimplifier
from hloom.hlo.passes.simplify.arithmetic import is_lossless
from hloom.hlo.passes.simplify.dead_code_elimination import DeadCodeElimination
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify

from hloom.backend_check.op_values import errors_in_ulps
from support.comparing import assert_same_results
from support.random_modules import random_arguments

PROGRAM = """
HloModule case

add_f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
max_f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
least_square { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] multiply(b, b)  ROOT d = f32[] minimum(a, c) }
argmax {
  v = f32[] parameter(0)  i = s32[] parameter(1)  w = f32[] parameter(2)  j = s32[] parameter(3)
  first = pred[] compare(v, w), direction=GE
  best = f32[] select(first, v, w)  where = s32[] select(first, i, j)
  ROOT both = (f32[], s32[]) tuple(best, where)
}

ENTRY main {
  x = f32[4] parameter(0)  y = f32[4] parameter(1)  s = f32[] parameter(2)
  i = s32[4] parameter(3)  j = s32[4] parameter(4)  k = s32[] parameter(5)
  p = pred[4] parameter(6)  q = pred[] parameter(7)  u = u32[4] parameter(8)
  m = f32[2,3] parameter(9)  n = f32[3,2] parameter(10)  t = f32[2,3,4] parameter(11)
  z = c64[4] parameter(12)  h = f16[4] parameter(13)  b = s8[4] parameter(14)  o = f32[1,3] parameter(15)
  d = f32[3] parameter(16)  e = f32[0,3] parameter(17)  w = s16[4] parameter(18)  mm = s32[2,3] parameter(19)
  state = (f32[4], s32[4]) parameter(20)
  c0 = f32[] constant(0)  cm0 = f32[] constant(-0)  c1 = f32[] constant(1)  cm1 = f32[] constant(-1)
  c2 = f32[] constant(2)  c3 = f32[] constant(3)  c4 = f32[] constant(4)  chalf = f32[] constant(0.5)
  tiny = f32[] constant(1.17549435e-38)  huge = f32[] constant(1.7014118e38)
  inf = f32[] constant(inf)  ninf = f32[] constant(-inf)
  f0 = f32[4] broadcast(c0), dimensions={}  fm0 = f32[4] broadcast(cm0), dimensions={}
  f1 = f32[4] broadcast(c1), dimensions={}  fm1 = f32[4] broadcast(cm1), dimensions={}
  f2 = f32[4] broadcast(c2), dimensions={}  f3 = f32[4] broadcast(c3), dimensions={}
  f4 = f32[4] broadcast(c4), dimensions={}  fhalf = f32[4] broadcast(chalf), dimensions={}
  fhuge = f32[4] broadcast(huge), dimensions={}
  finf = f32[4] broadcast(inf), dimensions={}  fninf = f32[4] broadcast(ninf), dimensions={}
  k0 = s32[] constant(0)  k1 = s32[] constant(1)  km1 = s32[] constant(-1)  k2 = s32[] constant(2)
  k5 = s32[] constant(5)  klow = s32[] constant(-2147483648)  u0 = u32[] constant(0)
  i0 = s32[4] broadcast(k0), dimensions={}  i1 = s32[4] broadcast(k1), dimensions={}
  im1 = s32[4] broadcast(km1), dimensions={}  i2 = s32[4] broadcast(k2), dimensions={}
  i5 = s32[4] broadcast(k5), dimensions={}  ilow = s32[4] broadcast(klow), dimensions={}
  v0 = u32[4] broadcast(u0), dimensions={}
  yes = pred[] constant(true)  no = pred[] constant(false)
  all = pred[4] broadcast(yes), dimensions={}  none = pred[4] broadcast(no), dimensions={}
  ex = f32[4] negate(x)  ey = f32[4] negate(y)  ei = s32[4] negate(i)  ej = s32[4] negate(j)
  zz = c64[] constant((1, 0))  z1 = c64[4] broadcast(zz), dimensions={}
  np = pred[4] not(p)
  ma = f32[2,3] broadcast(d), dimensions={1}  ms = f32[2,3] broadcast(s), dimensions={}
  mt = f32[3,2] transpose(m), dimensions={1,0}
  tt = f32[4,2,3] transpose(t), dimensions={2,0,1}
  BODY
}
"""


@dataclass(frozen=True)
class Case:
    rule: str
    body: str
    becomes: str | None
    """The new root as an expression; None: a near miss."""


def fires(rule: str, body: str, becomes: str) -> Case:
    return Case(rule, body, becomes)


def misses(rule: str, body: str) -> Case:
    return Case(rule, body, None)


def floor_remainder(divisor: str, added: str, test: str = "") -> str:
    """JAX's instructions for i % divisor; `test`: compared with zero."""
    return (
        f"r = s32[4] remainder(i, {divisor})  l = pred[4] compare(r, i0), direction=LT  a = s32[4] add(r, {added})  "
        + (f"f = s32[4] select(l, a, r)  ROOT is0 = pred[4] {test}" if test else "ROOT f = s32[4] select(l, a, r)")
    )


def floor_divide(divisor: str, by: str, one: str = "i1") -> str:
    """JAX's instructions for i // divisor."""
    return (
        f"g = s32[4] sign(i)  l = pred[4] compare(g, {one}), direction=NE  r = s32[4] remainder(i, {by})  "
        f"left = pred[4] compare(r, i0), direction=NE  both = pred[4] and(l, left)  v = s32[4] divide(i, {divisor})  "
        "less = s32[4] add(v, im1)  ROOT f = s32[4] select(both, less, v)"
    )


CASES = [
    fires("floor_remainder_by_power_of_two", floor_remainder("i2", "i2"), "and(i, broadcast(1){}:s32[4])"),
    misses("floor_remainder_by_power_of_two", floor_remainder("i2", "i5")),
    misses("floor_remainder_by_power_of_two", floor_remainder("i5", "i5")),
    misses("floor_remainder_by_power_of_two", floor_remainder("ilow", "ilow")),
    fires(
        "compare_floor_remainder",
        floor_remainder("i5", "i5", "compare(f, i0), direction=NE"),
        "compare(remainder(i, broadcast(5){}:s32[4]), broadcast(0){}:s32[4])NE",
    ),
    misses("compare_floor_remainder", floor_remainder("i5", "i5", "compare(f, i1), direction=EQ")),
    misses("compare_floor_remainder", floor_remainder("i5", "i5", "compare(f, i0), direction=GE")),
    fires(
        "floor_divide_by_power_of_two", floor_divide("i2", "i2"),
        "shift-right-arithmetic(i, broadcast(1){}:s32[4])",
    ),
    misses("floor_divide_by_power_of_two", floor_divide("i5", "i5")),
    misses("floor_divide_by_power_of_two", floor_divide("i2", "i5")),
    misses("floor_divide_by_power_of_two", floor_divide("i2", "i2", "im1")),
    misses("floor_divide_by_power_of_two", floor_divide("ilow", "ilow")),
    fires("add_zero", "ROOT r = s32[4] add(i, i0)", "i"),
    fires("add_zero", "ROOT r = f32[4] add(fm0, x)", "x"),
    fires("add_zero", "a = f32[4] multiply(x, x)  ROOT r = f32[4] add(a, f0)", "multiply(x, x)"),
    fires(
        "add_zero",
        "a = f32[] reduce(x, c0), dimensions={0}, to_apply=add_f  ROOT r = f32[] add(c0, a)",
        "reduce(x, 0.0){0}:f32[]",
    ),
    misses("add_zero", "ROOT r = f32[4] add(x, f0)"),
    misses("add_zero", "a = f32[4] multiply(x, y)  ROOT r = f32[4] add(a, f0)"),
    misses("add_zero", "a = f32[] reduce(x, cm0), dimensions={0}, to_apply=add_f  ROOT r = f32[] add(c0, a)"),
    fires("add_negated", "ROOT r = f32[4] add(ex, y)", "subtract(y, x)"),
    misses("add_negated", "ROOT r = f32[4] add(x, y)"),
    fires("add_constants", "a = s32[4] add(i, i2)  ROOT r = s32[4] add(i5, a)", "add(i, broadcast(7){}:s32[4])"),
    fires("add_constants", "a = s32[] subtract(k5, k)  ROOT r = s32[] add(a, km1)", "subtract(4, k)"),
    fires("add_constants", "a = s32[] add(k, klow)  ROOT r = s32[] add(a, klow)", "add(k, 0)"),
    misses("add_constants", "a = s32[4] subtract(i, i2)  ROOT r = s32[4] add(i5, a)"),
    misses("add_constants", "a = f32[4] add(x, f2)  ROOT r = f32[4] add(f3, a)"),
    fires("subtract_zero", "ROOT r = f32[4] subtract(x, f0)", "x"),
    misses("subtract_zero", "ROOT r = f32[4] subtract(x, fm0)"),
    fires("subtract_from_zero", "ROOT r = s32[4] subtract(i0, i)", "negate(i)"),
    fires("subtract_from_zero", "ROOT r = f32[4] subtract(fm0, x)", "negate(x)"),
    misses("subtract_from_zero", "ROOT r = f32[4] subtract(f0, x)"),
    fires("subtract_negated", "ROOT r = f32[4] subtract(x, ey)", "add(x, y)"),
    misses("subtract_negated", "ROOT r = f32[4] subtract(ex, y)"),
    fires("subtract_itself", "ROOT r = s32[4] subtract(i, i)", "broadcast(0){}:s32[4]"),
    misses("subtract_itself", "ROOT r = f32[4] subtract(x, x)"),
    fires("subtract_constant", "ROOT r = s32[] subtract(k, k5)", "add(k, -5)"),
    fires("subtract_constant", "ROOT r = s32[] subtract(k, klow)", "add(k, -2147483648)"),
    misses("subtract_constant", "ROOT r = f32[] subtract(s, c3)"),
    misses("subtract_constant", "ROOT r = s32[] subtract(k5, k)"),
    fires("multiply_one", "ROOT r = f32[4] multiply(f1, x)", "x"),
    misses("multiply_one", "ROOT r = c64[4] multiply(z, z1)"),
    fires("multiply_zero", "ROOT r = s32[4] multiply(i, i0)", "broadcast(0){}:s32[4]"),
    misses("multiply_zero", "ROOT r = f32[4] multiply(x, f0)"),
    fires("multiply_minus_one", "ROOT r = f32[4] multiply(x, fm1)", "negate(x)"),
    misses("multiply_minus_one", "ROOT r = f32[4] multiply(x, f1)"),
    fires("multiply_negated", "ROOT r = f32[4] multiply(ex, ey)", "multiply(x, y)"),
    misses("multiply_negated", "ROOT r = f32[4] multiply(ex, y)"),
    fires("divide_one", "ROOT r = s32[4] divide(i, i1)", "i"),
    misses("divide_one", "ROOT r = s32[4] divide(i1, i)"),
    fires("divide_negated", "ROOT r = f32[4] divide(ex, ey)", "divide(x, y)"),
    misses("divide_negated", "ROOT r = s32[4] divide(ei, ej)"),
    fires("divide_by_power_of_two", "ROOT r = f32[4] divide(x, f4)", "multiply(x, broadcast(0.25){}:f32[4])"),
    fires("divide_by_power_of_two", "ROOT r = f32[4] divide(x, fhalf)", "multiply(x, broadcast(2.0){}:f32[4])"),
    misses("divide_by_power_of_two", "ROOT r = f32[4] divide(x, f3)"),
    misses("divide_by_power_of_two", "ROOT r = f32[4] divide(x, fhuge)"),
    misses("divide_by_power_of_two", "ROOT r = s32[4] divide(i, i2)"),
    misses(
        "divide_by_power_of_two",
        "a = f32[] reduce(x, c0), dimensions={0}, to_apply=add_f  ROOT r = f32[] divide(a, c4)",
    ),
    misses(
        "divide_by_power_of_two",
        "a = f32[] reduce(x, c0), dimensions={0}, to_apply=add_f  l = f32[1] reshape(a)  g = f32[1] broadcast(c4), "
        "dimensions={}  ROOT r = f32[1] divide(l, g)",
    ),
    misses(
        "divide_by_power_of_two",
        "a = f32[] reduce(x, c0), dimensions={0}, to_apply=add_f  l = f32[] multiply(a, s)  g = f32[4] broadcast(l), "
        "dimensions={}  ROOT r = f32[4] divide(g, f4)",
    ),
    fires(
        "divide_by_power_of_two",
        "a = f32[] reduce(x, c0), dimensions={0}, to_apply=add_f  g = f32[4] broadcast(a), dimensions={}  "
        "l = f32[4] multiply(x, g)  ROOT r = f32[4] divide(l, f4)",
        "multiply(multiply(x, broadcast(reduce(x, 0.0){0}:f32[]){}:f32[4]), broadcast(0.25){}:f32[4])",
    ),
    fires("power_of_constant", "ROOT r = f32[4] power(x, f2)", "multiply(x, x)"),
    fires("power_of_constant", "ROOT r = f32[4] power(x, f0)", "broadcast(1.0){}:f32[4]"),
    fires("power_of_constant", "ROOT r = s32[4] power(i, i1)", "i"),
    fires("power_of_constant", "ROOT r = f32[4] power(x, f3)", "multiply(multiply(x, x), x)"),
    fires("power_of_constant", "ROOT r = f32[4] power(x, fm1)", "divide(broadcast(1.0){}:f32[4], x)"),
    misses("power_of_constant", "ROOT r = f32[4] power(x, fhalf)"),
    misses("power_of_constant", "ROOT r = s32[4] power(i, im1)"),
    fires("undo_itself", "ROOT r = f32[4] negate(ex)", "x"),
    fires("undo_itself", "ROOT r = pred[4] not(np)", "p"),
    misses("undo_itself", "ROOT r = f32[4] negate(x)"),
    fires("negate_scaled", "a = f32[] multiply(c2, s)  ROOT r = f32[] negate(a)", "multiply(s, -2.0)"),
    fires("negate_scaled", "a = f32[] divide(s, c3)  ROOT r = f32[] negate(a)", "divide(s, -3.0)"),
    misses("negate_scaled", "a = s32[4] multiply(i, i2)  ROOT r = s32[4] negate(a)"),
    misses("negate_scaled", "a = f32[4] divide(f3, x)  ROOT r = f32[4] negate(a)"),
    fires("idempotent", "a = f32[4] floor(x)  ROOT r = f32[4] floor(a)", "floor(x)"),
    misses("idempotent", "a = f32[4] ceil(x)  ROOT r = f32[4] floor(a)"),
    fires("abs_negated", "ROOT r = s32[4] abs(ei)", "abs(i)"),
    misses("abs_negated", "a = f32[4] exponential(x)  ROOT r = f32[4] abs(a)"),
    fires("not_compare", "a = pred[4] compare(i, j), direction=LT  ROOT r = pred[4] not(a)", "compare(i, j)GE"),
    fires("not_compare", "a = pred[4] compare(x, y), direction=EQ  ROOT r = pred[4] not(a)", "compare(x, y)NE"),
    misses("not_compare", "a = pred[4] compare(x, y), direction=LT  ROOT r = pred[4] not(a)"),
    fires("same_operands", "ROOT r = f32[4] maximum(x, x)", "x"),
    misses("same_operands", "ROOT r = f32[4] maximum(x, y)"),
    fires("neutral_bound", "ROOT r = f32[4] maximum(x, fninf)", "x"),
    fires("neutral_bound", "ROOT r = s32[4] maximum(ilow, i)", "i"),
    fires("neutral_bound", "ROOT r = s32[4] and(i, im1)", "i"),
    fires("neutral_bound", "ROOT r = pred[4] or(none, p)", "p"),
    misses("neutral_bound", "ROOT r = f32[4] maximum(x, finf)"),
    fires("absorbing_bits", "ROOT r = pred[4] and(p, none)", "broadcast(False){}:pred[4]"),
    fires("absorbing_bits", "ROOT r = s32[4] or(i, im1)", "broadcast(-1){}:s32[4]"),
    misses("absorbing_bits", "ROOT r = s32[4] or(i, i1)"),
    fires(
        "less_and_different",
        "a = pred[4] compare(x, y), direction=NE  c = pred[4] compare(x, y), direction=LT  ROOT r = pred[4] and(a, c)",
        "compare(x, y)LT",
    ),
    misses(
        "less_and_different",
        "a = pred[4] compare(x, y), direction=NE  c = pred[4] compare(x, y), direction=LE  ROOT r = pred[4] and(a, c)",
    ),
    misses(
        "less_and_different",
        "a = pred[4] compare(x, ey), direction=NE  c = pred[4] compare(x, y), direction=LT  ROOT r = pred[4] and(a, c)",
    ),
    fires("xor_itself", "ROOT r = s32[4] xor(i, i)", "broadcast(0){}:s32[4]"),
    misses("xor_itself", "ROOT r = s32[4] xor(i, j)"),
    fires("xor_zero", "ROOT r = s32[4] xor(i0, i)", "i"),
    misses("xor_zero", "ROOT r = s32[4] xor(i, im1)"),
    fires("shift_zero", "ROOT r = s32[4] shift-left(i, i0)", "i"),
    misses("shift_zero", "ROOT r = s32[4] shift-left(i0, i)"),
    fires("select_constant", "ROOT r = f32[4] select(all, x, y)", "x"),
    fires("select_constant", "ROOT r = f32[4] select(no, x, y)", "y"),
    misses("select_constant", "ROOT r = f32[4] select(q, x, y)"),
    fires("select_equal", "ROOT r = f32[4] select(p, x, x)", "x"),
    misses("select_equal", "ROOT r = f32[4] select(p, x, ex)"),
    fires("select_not", "ROOT r = f32[4] select(np, x, y)", "select(p, y, x)"),
    misses("select_not", "ROOT r = f32[4] select(p, x, y)"),
    fires("select_of_truth", "ROOT r = pred[4] select(p, all, none)", "p"),
    fires("select_of_truth", "ROOT r = pred[4] select(p, none, all)", "not(p)"),
    misses("select_of_truth", "ROOT r = pred[4] select(q, all, none)"),
    fires("compare_itself", "ROOT r = pred[4] compare(i, i), direction=LE", "broadcast(True){}:pred[4]"),
    fires("compare_itself", "ROOT r = pred[4] compare(x, x), direction=LT", "broadcast(False){}:pred[4]"),
    misses("compare_itself", "ROOT r = pred[4] compare(x, x), direction=EQ"),
    fires("compare_unsigned_zero", "ROOT r = pred[4] compare(u, v0), direction=GE", "broadcast(True){}:pred[4]"),
    misses("compare_unsigned_zero", "ROOT r = pred[4] compare(i, i0), direction=GE"),
    fires("compare_pred", "ROOT r = pred[4] compare(p, none), direction=NE", "p"),
    fires("compare_pred", "ROOT r = pred[4] compare(p, none), direction=EQ", "not(p)"),
    misses("compare_pred", "ROOT r = pred[4] compare(p, none), direction=GT"),
    fires(
        "compare_converted_pred",
        "a = s32[4] convert(p)  ROOT r = pred[4] compare(a, i0), direction=NE",
        "p",
    ),
    misses("compare_converted_pred", "a = s32[4] convert(p)  ROOT r = pred[4] compare(a, i1), direction=NE"),
    fires("convert_to_itself", "ROOT r = f32[4] convert(x)", "x"),
    misses("convert_to_itself", "ROOT r = f16[4] convert(x)"),
    fires("convert_of_convert", "a = f32[4] convert(h)  ROOT r = f16[4] convert(a)", "h"),
    fires("convert_of_convert", "a = s32[4] convert(b)  ROOT r = u16[4] convert(a)", "convert(b):u16[4]"),
    misses("convert_of_convert", "a = f16[4] convert(x)  ROOT r = f32[4] convert(a)"),
    misses("convert_of_convert", "a = f32[4] convert(w)  ROOT r = s8[4] convert(a)"),
    fires("bitcast_convert_back", "a = s32[4] bitcast-convert(x)  ROOT r = f32[4] bitcast-convert(a)", "x"),
    misses("bitcast_convert_back", "a = s32[4] bitcast-convert(x)  ROOT r = u32[4] bitcast-convert(a)"),
    fires("part_of_complex", "a = c64[4] complex(x, y)  ROOT r = f32[4] imag(a)", "y"),
    fires("part_of_complex", "ROOT r = f32[4] real(x)", "x"),
    misses("part_of_complex", "ROOT r = f32[4] real(z)"),
    fires("complex_of_parts", "a = f32[4] real(z)  c = f32[4] imag(z)  ROOT r = c64[4] complex(a, c)", "z"),
    misses("complex_of_parts", "a = f32[4] real(z)  c = f32[4] imag(z)  ROOT r = c64[4] complex(c, a)"),
    fires(
        "compute_before_broadcast",
        "ROOT r = f32[2,3] multiply(ma, ms)",
        "broadcast(multiply(d, broadcast(s){}:f32[3])){1}:f32[2,3]",
    ),
    misses("compute_before_broadcast", "ROOT r = f32[2,3] multiply(ma, m)"),
    fires(
        "compute_before_reshape",
        "a = f32[4,1] reshape(x)  c = f32[4,1] reshape(y)  g = f32[4,1] broadcast(c2), dimensions={}  "
        "ROOT r = f32[4,1] clamp(a, c, g)",
        "reshape(clamp(x, y, broadcast(2.0){}:f32[4])):f32[4,1]",
    ),
    fires(
        "compute_before_reshape",
        "a = f32[4,1] reshape(x)  ROOT r = f16[4,1] convert(a)",
        "reshape(convert(x):f16[4]):f16[4,1]",
    ),
    misses("compute_before_reshape", "a = f32[6] reshape(m)  ROOT r = f32[6] negate(a)"),
    misses("compute_before_reshape", "a = f32[2,3,1] reshape(m)  ROOT r = f32[2,3,1]{0,1,2:T(2)} copy(a)"),
    misses("compute_before_reshape", "a = f32[3] reshape(o)  ROOT r = f32[3] add(a, d)"),
    misses("compute_before_reshape", "a = f32[3] reshape(o)  ROOT r = f32[3]{0:T(2)} copy(a)"),
    # movement
    fires("uniform_constant", "ROOT r = f32[2,2] constant({{5, 5}, {5, 5}})", "broadcast(5.0){}:f32[2,2]"),
    misses("uniform_constant", "ROOT r = f32[2] constant({0, -0})"),
    fires("empty_result", "ROOT r = f32[0,3] negate(e)", "broadcast(0.0){}:f32[0,3]"),
    misses("empty_result", "ROOT r = f32[2,3] negate(m)"),
    fires("transpose_nothing", "ROOT r = f32[3,1] transpose(o), dimensions={1,0}", "reshape(o):f32[3,1]"),
    fires("transpose_nothing", "ROOT r = f32[2,3] transpose(m), dimensions={0,1}", "m"),
    misses("transpose_nothing", "ROOT r = f32[3,2] transpose(m), dimensions={1,0}"),
    fires(
        "transpose_of_transpose",
        "ROOT r = f32[3,4,2] transpose(tt), dimensions={2,0,1}",
        "transpose(t){1,2,0}:f32[3,4,2]",
    ),
    fires("transpose_of_transpose", "ROOT r = f32[2,3] transpose(mt), dimensions={1,0}", "m"),
    misses("transpose_of_transpose", "a = f32[2,3] negate(m)  ROOT r = f32[3,2] transpose(a), dimensions={1,0}"),
    fires("transpose_of_broadcast", "ROOT r = f32[3,2] transpose(ma), dimensions={1,0}", "broadcast(d){0}:f32[3,2]"),
    misses(
        "transpose_of_broadcast",
        "a = f32[2,3,5] broadcast(m), dimensions={0,1}  ROOT r = f32[5,3,2] transpose(a), dimensions={2,1,0}",
    ),
    fires("reshape_nothing", "a = f32[6] reshape(m)  ROOT r = f32[3,2] reshape(a)", "reshape(m):f32[3,2]"),
    misses("reshape_nothing", "ROOT r = f32[6] reshape(m)"),
    fires("reshape_of_broadcast", "ROOT r = f32[6] reshape(ms)", "broadcast(s){}:f32[6]"),
    fires("reshape_of_broadcast", "ROOT r = f32[2,1,3] reshape(ma)", "broadcast(d){2}:f32[2,1,3]"),
    misses("reshape_of_broadcast", "ROOT r = f32[6] reshape(ma)"),
    fires("broadcast_nothing", "ROOT r = f32[1,2,3] broadcast(m), dimensions={1,2}", "reshape(m):f32[1,2,3]"),
    misses("broadcast_nothing", "ROOT r = f32[3,2] broadcast(m), dimensions={1,0}"),
    fires(
        "broadcast_of_broadcast",
        "ROOT r = f32[5,2,3] broadcast(ma), dimensions={1,2}",
        "broadcast(d){2}:f32[5,2,3]",
    ),
    misses("broadcast_of_broadcast", "ROOT r = f32[5,2,3] broadcast(m), dimensions={1,2}"),
    fires(
        "broadcast_of_reshape",
        "a = f32[1,3] reshape(d)  ROOT r = f32[1,4,3] broadcast(a), dimensions={0,2}",
        "broadcast(d){2}:f32[1,4,3]",
    ),
    misses("broadcast_of_reshape", "a = f32[6] reshape(m)  ROOT r = f32[4,6] broadcast(a), dimensions={1}"),
    fires(
        "broadcast_of_merged",
        "a = f32[6] reshape(ma)  ROOT r = f32[4,6,5] broadcast(a), dimensions={1}",
        "reshape(broadcast(d){2}:f32[4,2,3,5]):f32[4,6,5]",
    ),
    misses("broadcast_of_merged", "a = f32[3,2] reshape(ma)  ROOT r = f32[3,2,4] broadcast(a), dimensions={0,1}"),
    misses("broadcast_of_merged", "a = f32[6] reshape(m)  ROOT r = f32[6,4] broadcast(a), dimensions={0}"),
    fires(
        "broadcast_in_order",
        "ROOT r = f32[3,5,2] broadcast(m), dimensions={2,0}",
        "broadcast(transpose(m){1,0}:f32[3,2]){0,2}:f32[3,5,2]",
    ),
    misses("broadcast_in_order", "ROOT r = f32[2,5,3] broadcast(m), dimensions={0,2}"),
    fires("slice_nothing", "ROOT r = f32[2,3] slice(m), slice={[0:2], [0:3]}", "m"),
    misses("slice_nothing", "ROOT r = f32[1,3] slice(m), slice={[0:1], [0:3]}"),
    fires(
        "slice_of_slice",
        "a = f32[3] slice(x), slice={[1:4]}  ROOT r = f32[1] slice(a), slice={[1:2]}",
        "slice(x){2:3:1}:f32[1]",
    ),
    fires(
        "slice_of_slice",
        "a = f32[2] slice(x), slice={[1:4:2]}  ROOT r = f32[1] slice(a), slice={[1:2:3]}",
        "slice(x){3:4:6}:f32[1]",
    ),
    misses("slice_of_slice", "a = f32[4] negate(x)  ROOT r = f32[1] slice(a), slice={[1:2]}"),
    fires("slice_of_broadcast", "ROOT r = f32[1,3] slice(ma), slice={[1:2], [0:3]}", "broadcast(d){1}:f32[1,3]"),
    misses("slice_of_broadcast", "ROOT r = f32[2,1] slice(ma), slice={[0:2], [1:2]}"),
    fires(
        "slice_of_reverse",
        "a = f32[2,3] reverse(m), dimensions={1}  ROOT r = f32[2,1] slice(a), slice={[0:2], [0:2:2]}",
        "slice(m){0:2:1,2:3:2}:f32[2,1]",
    ),
    fires(
        "slice_of_reverse",
        "a = f32[2,3] reverse(m), dimensions={0,1}  ROOT r = f32[1,2] slice(a), slice={[0:1], [0:3:2]}",
        "reverse(slice(m){1:2:1,0:3:2}:f32[1,2]){1}:f32[1,2]",
    ),
    misses(
        "slice_of_reverse",
        "a = f32[2,3] reverse(m), dimensions={1}  ROOT r = f32[2,0] slice(a), slice={[0:2], [3:3]}",
    ),
    fires(
        "slice_of_concatenate",
        "a = f32[8] concatenate(x, y), dimensions={0}  ROOT r = f32[2] slice(a), slice={[5:7]}",
        "slice(y){1:3:1}:f32[2]",
    ),
    misses(
        "slice_of_concatenate",
        "a = f32[8] concatenate(x, y), dimensions={0}  ROOT r = f32[2] slice(a), slice={[3:5]}",
    ),
    fires("pad_nothing", "ROOT r = f32[4] pad(x, s), padding=0_0", "x"),
    fires("pad_nothing", "ROOT r = f32[2,3] pad(e, s), padding=1_1x0_0", "broadcast(s){}:f32[2,3]"),
    fires("pad_nothing", "ROOT r = f32[4,3] pad(ms, s), padding=1_1x0_0", "broadcast(s){}:f32[4,3]"),
    misses("pad_nothing", "ROOT r = f32[4] pad(x, s), padding=1_-1"),
    fires("pad_negative", "ROOT r = f32[2] pad(x, s), padding=-1_-1", "slice(x){1:3:1}:f32[2]"),
    misses("pad_negative", "ROOT r = f32[4] pad(x, s), padding=-1_1"),
    fires("concatenate_little", "ROOT r = f32[2,3] concatenate(m, e), dimensions={0}", "m"),
    fires(
        "concatenate_little",
        "a = f32[8] concatenate(x, y), dimensions={0}  ROOT r = f32[12] concatenate(x, a), dimensions={0}",
        "concatenate(x, x, y){0}:f32[12]",
    ),
    misses("concatenate_little", "ROOT r = f32[8] concatenate(x, y), dimensions={0}"),
    fires(
        "concatenate_of_neighbours",
        "l = f32[2,1] slice(m), slice={[0:2], [0:1]}  a = f32[2,1] slice(m), slice={[0:2], [1:2]}\n"
        "ROOT r = f32[2,4] concatenate(l, a, l, a), dimensions={1}",
        "concatenate(slice(m){0:2:1,0:2:1}:f32[2,2], slice(m){0:2:1,0:2:1}:f32[2,2]){1}:f32[2,4]",
    ),
    fires(
        "concatenate_of_neighbours",
        "l = f32[1,3] slice(m), slice={[0:1], [0:3]}  a = f32[1,3] slice(m), slice={[1:2], [0:3]}\n"
        "g = f32[3] reshape(l)  v = f32[3] reshape(a)  ROOT r = f32[6] concatenate(g, v), dimensions={0}",
        "concatenate(reshape(slice(m){0:2:1,0:3:1}:f32[2,3]):f32[6]){0}:f32[6]",
    ),
    misses(  # as columns the rows are transposed
        "concatenate_of_neighbours",
        "l = f32[1,3] slice(m), slice={[0:1], [0:3]}  a = f32[1,3] slice(m), slice={[1:2], [0:3]}\n"
        "g = f32[3,1] reshape(l)  v = f32[3,1] reshape(a)  ROOT r = f32[3,2] concatenate(g, v), dimensions={1}",
    ),
    misses(  # the first comes last
        "concatenate_of_neighbours",
        "l = f32[2] slice(x), slice={[0:2]}  a = f32[2] slice(x), slice={[2:4]}\n"
        "ROOT r = f32[4] concatenate(a, l), dimensions={0}",
    ),
    fires("reverse_nothing", "ROOT r = f32[1,3] reverse(o), dimensions={0}", "o"),
    fires(
        "reverse_nothing",
        "ROOT r = f32[2,3] reverse(ma), dimensions={0,1}",
        "reverse(broadcast(d){1}:f32[2,3]){1}:f32[2,3]",
    ),
    fires(
        "reverse_nothing",
        "a = f32[2,3] reverse(m), dimensions={0,1}  ROOT r = f32[2,3] reverse(a), dimensions={1}",
        "reverse(m){0}:f32[2,3]",
    ),
    misses("reverse_nothing", "ROOT r = f32[2,3] reverse(m), dimensions={0}"),
    fires(
        "reverse_of_concatenate",
        "a = f32[4] reverse(x), dimensions={0}  both = f32[8] concatenate(y, a), dimensions={0}"
        "  ROOT r = f32[8] reverse(both), dimensions={0}",
        "concatenate(reverse(reverse(x){0}:f32[4]){0}:f32[4], reverse(y){0}:f32[4]){0}:f32[8]",
    ),
    fires(
        "reverse_of_concatenate",
        "a = f32[2,3] reverse(m), dimensions={1}  both = f32[4,3] concatenate(m, a), dimensions={0}"
        "  ROOT r = f32[4,3] reverse(both), dimensions={1}",
        "concatenate(reverse(m){1}:f32[2,3], reverse(reverse(m){1}:f32[2,3]){1}:f32[2,3]){0}:f32[4,3]",
    ),
    misses(
        "reverse_of_concatenate",
        "a = f32[2,3] reverse(m), dimensions={1}  both = f32[4,3] concatenate(m, a), dimensions={0}"
        "  ROOT r = f32[4,3] reverse(both), dimensions={0}",
    ),
    fires("dynamic_slice_of_all", "ROOT r = f32[4] dynamic-slice(x, k), dynamic_slice_sizes={4}", "x"),
    fires(
        "dynamic_slice_of_all",
        "ROOT r = f32[1,3] dynamic-slice(m, k, k), dynamic_slice_sizes={1,3}",
        "dynamic-slice(m, k, 0)",
    ),
    misses("dynamic_slice_of_all", "ROOT r = f32[1,2] dynamic-slice(m, k, k), dynamic_slice_sizes={1,2}"),
    fires(
        "dynamic_slice_constant",
        "ROOT r = f32[2] dynamic-slice(x, k5), dynamic_slice_sizes={2}",
        "slice(x){2:4:1}:f32[2]",
    ),
    misses("dynamic_slice_constant", "ROOT r = f32[2] dynamic-slice(x, k), dynamic_slice_sizes={2}"),
    fires(
        "dynamic_slice_of_broadcast",
        "ROOT r = f32[1,3] dynamic-slice(ma, k, k), dynamic_slice_sizes={1,3}",
        "broadcast(d){1}:f32[1,3]",
    ),
    misses("dynamic_slice_of_broadcast", "ROOT r = f32[2,1] dynamic-slice(ma, k, k), dynamic_slice_sizes={2,1}"),
    fires("update_of_all", "ROOT r = f32[4] dynamic-update-slice(x, y, k)", "y"),
    fires(
        "update_of_all",
        "ROOT r = f32[2,3] dynamic-update-slice(m, o, k, k)",
        "dynamic-update-slice(m, o, k, 0)",
    ),
    misses("update_of_all", "a = f32[1] slice(y), slice={[0:1]}  ROOT r = f32[4] dynamic-update-slice(x, a, k)"),
    fires("copy_nothing", "ROOT r = f32[4] copy(x)", "x"),
    fires("copy_nothing", "a = f32[2,3]{0,1} copy(m)  ROOT r = f32[2,3] copy(a)", "copy(m)"),
    misses("copy_nothing", "ROOT r = f32[2,3]{0,1} copy(m)"),
    fires("bitcast_row_major", "ROOT r = f32[3,2] bitcast(m)", "reshape(m):f32[3,2]"),
    misses("bitcast_row_major", "ROOT r = f32[3,2]{0,1} bitcast(m)"),
    fires("bitcast_of_bitcast", "a = f32[3,2]{0,1} bitcast(m)  ROOT r = f32[2,3]{1,0} bitcast(a)", "m"),
    misses("bitcast_of_bitcast", "a = f32[2,3]{0,1} copy(m)  ROOT r = f32[3,2] bitcast(a)"),
    fires("iota_of_one", "ROOT r = s32[3,1] iota(), iota_dimension=1", "broadcast(0){}:s32[3,1]"),
    misses("iota_of_one", "ROOT r = s32[3,1] iota(), iota_dimension=0"),
    fires("element_of_tuple", "a = (f32[4], s32[4]) tuple(x, i)  ROOT r = s32[4] get-tuple-element(a), index=1", "i"),
    misses("element_of_tuple", "ROOT r = s32[4] get-tuple-element(state), index=1"),
    fires(
        "tuple_of_elements",
        "a = f32[4] get-tuple-element(state), index=0  c = s32[4] get-tuple-element(state), index=1  "
        "ROOT r = (f32[4], s32[4]) tuple(a, c)",
        "state",
    ),
    misses("tuple_of_elements", "a = f32[4] get-tuple-element(state), index=0  ROOT r = (f32[4], s32[4]) tuple(a, i)"),
    # reduce and dot
    fires(
        "reduce_of_nothing", "ROOT r = f32[3] reduce(e, s), dimensions={0}, to_apply=add_f", "broadcast(s){}:f32[3]"
    ),
    misses("reduce_of_nothing", "ROOT r = f32[3] reduce(m, s), dimensions={0}, to_apply=add_f"),
    fires(
        "reduce_of_one",
        "ROOT r = f32[3] reduce(o, s), dimensions={0}, to_apply=least_square",
        "minimum(broadcast(s){}:f32[3], multiply(reshape(o):f32[3], reshape(o):f32[3]))",
    ),
    fires(
        "reduce_of_one",
        "ROOT r = f32[4] reduce(x, c0), dimensions={}, to_apply=add_f",
        "add(broadcast(0.0){}:f32[4], x)",
    ),
    fires(
        "reduce_of_one",
        "ROOT r = (f32[2,3], s32[2,3]) reduce(m, mm, ninf, k0), dimensions={}, to_apply=argmax",
        "tuple(select(compare(broadcast(-inf){}:f32[2,3], m)GE, broadcast(-inf){}:f32[2,3], m), "
        "select(compare(broadcast(-inf){}:f32[2,3], m)GE, broadcast(0){}:s32[2,3], mm))",
    ),
    misses("reduce_of_one", "ROOT r = f32[2] reduce(m, s), dimensions={1}, to_apply=add_f"),
    fires(
        "reduce_of_reduce",
        "a = f32[2,4] reduce(t, c0), dimensions={1}, to_apply=add_f  "
        "ROOT r = f32[4] reduce(a, c3), dimensions={0}, to_apply=add_f",
        "reduce(t, 3.0){0,1}:f32[4]",
    ),
    fires(
        "reduce_of_reduce",
        "a = f32[2,4] reduce(t, ninf), dimensions={1}, to_apply=max_f  "
        "ROOT r = f32[4] reduce(a, s), dimensions={0}, to_apply=max_f",
        "reduce(t, s){0,1}:f32[4]",
    ),
    misses(
        "reduce_of_reduce",
        "a = f32[2,4] reduce(t, c3), dimensions={1}, to_apply=add_f  "
        "ROOT r = f32[4] reduce(a, c0), dimensions={0}, to_apply=add_f",
    ),
    misses(
        "reduce_of_reduce",
        "a = f32[2,4] reduce(t, c0), dimensions={1}, to_apply=add_f  "
        "ROOT r = f32[4] reduce(a, s), dimensions={0}, to_apply=add_f",
    ),
    misses(
        "reduce_of_reduce",
        "a = f32[2,4] reduce(t, c0), dimensions={1}, to_apply=add_f  "
        "ROOT r = f32[4] reduce(a, ninf), dimensions={0}, to_apply=max_f",
    ),
    fires(
        "reduce_of_transpose",
        "ROOT r = f32[4,3] reduce(tt, c0), dimensions={1}, to_apply=add_f",
        "transpose(reduce(t, 0.0){0}:f32[3,4]){1,0}:f32[4,3]",
    ),
    fires(
        "reduce_of_transpose",
        "ROOT r = f32[3] reduce(mt, c0), dimensions={1}, to_apply=add_f",
        "reduce(m, 0.0){0}:f32[3]",
    ),
    misses("reduce_of_transpose", "ROOT r = f32[3] reduce(m, c0), dimensions={0}, to_apply=add_f"),
    fires(
        "reduce_in_order",
        "ROOT r = f32[4] reduce(t, c0), dimensions={1,0}, to_apply=max_f",
        "reduce(t, 0.0){0,1}:f32[4]",
    ),
    misses("reduce_in_order", "ROOT r = f32[4] reduce(t, c0), dimensions={0,1}, to_apply=max_f"),
    fires(
        "dot_of_nothing",
        "ROOT r = f32[3,3] dot(e, e), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "broadcast(0.0){}:f32[3,3]",
    ),
    misses("dot_of_nothing", "ROOT r = f32[2,2] dot(m, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    fires(
        "dot_of_transpose",
        "ROOT r = f32[3,3] dot(mt, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "dot(m, m)b[]x[]c[0]x[0]",
    ),
    misses(
        "dot_of_transpose",
        "a = f32[3,2,4] transpose(t), dimensions={1,0,2}  "
        "ROOT r = f32[3,2] dot(a, x), lhs_contracting_dims={2}, rhs_contracting_dims={0}",
    ),
    fires(
        "transpose_of_dot",
        "a = f32[2,2] dot(m, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}  "
        "ROOT r = f32[2,2] transpose(a), dimensions={1,0}",
        "dot(n, m)b[]x[]c[0]x[1]",
    ),
    misses(
        "transpose_of_dot",
        "a = f32[3,4,3] dot(t, n), lhs_contracting_dims={0}, rhs_contracting_dims={1}  "
        "ROOT r = f32[4,3,3] transpose(a), dimensions={1,0,2}",
    ),
    fires(
        "gather_of_progression",
        "at = s32[2,1] constant({{1}, {2}})  ROOT r = f32[2,2] gather(m, at), offset_dims={0}, "
        "collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={2,1}",
        "slice(m){0:2:1,1:3:1}:f32[2,2]",
    ),
    fires(
        "gather_of_progression",
        "at = s32[2] constant({-4, 2})  ROOT r = f32[2,2] gather(m, at), offset_dims={1}, "
        "collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={2,1}",
        "transpose(slice(m){0:2:1,0:3:2}:f32[2,2]){1,0}:f32[2,2]",
    ),
    misses(
        "gather_of_progression",
        "at = s32[2] constant({1, 0})  ROOT r = f32[2,2] gather(m, at), offset_dims={0}, "
        "collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={2,1}",
    ),
    misses(
        "gather_of_progression",
        "at = s32[3] constant({0, 1, 1})  ROOT r = f32[3] gather(d, at), offset_dims={}, "
        "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
    ),
    misses(
        "gather_of_progression",
        "ROOT r = f32[4] gather(d, i), offset_dims={}, "
        "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
    ),
    fires(
        "scatter_of_nothing",
        "at = s32[0] constant({})  to = f32[0] constant({})  ROOT r = f32[4] scatter(x, at, to), "
        "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
        "to_apply=add_f",
        "x",
    ),
    misses(
        "scatter_of_nothing",
        "ROOT r = f32[4] scatter(x, i, y), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f",
    ),
    fires(
        "select_of_updates",
        "a = f32[1] slice(y), slice={[0:1]}  v = f32[4] dynamic-update-slice(x, a, k)  ROOT r = f32[4] select(q, v, x)",
        "dynamic-update-slice(x, select(q, slice(y){0:1:1}:f32[1], dynamic-slice(x, k)), k)",
    ),
    fires(
        "select_of_updates",
        "a = f32[1] slice(y), slice={[0:1]}  v = f32[4] dynamic-update-slice(x, a, k)  ROOT r = f32[4] select(p, x, v)",
        "dynamic-update-slice(x, select(dynamic-slice(p, k), dynamic-slice(x, k), slice(y){0:1:1}:f32[1]), k)",
    ),
    fires(
        "select_of_updates",
        "a = f32[1] slice(y), slice={[0:1]}  v = f32[4] dynamic-update-slice(x, a, k)  l = s32[] negate(k)  "
        "v2 = f32[4] dynamic-update-slice(x, a, l)  ROOT r = f32[4] select(q, v, v2)",
        "dynamic-update-slice(dynamic-update-slice(x, select(q, slice(y){0:1:1}:f32[1], dynamic-slice(x, k)), k), "
        "select(q, dynamic-slice(dynamic-update-slice(x, select(q, slice(y){0:1:1}:f32[1], dynamic-slice(x, k)), k), "
        "negate(k)), slice(y){0:1:1}:f32[1]), negate(k))",
    ),
    fires(
        "select_of_updates",
        "a = f32[1] slice(y), slice={[0:1]}  a2 = f32[1] negate(a)  v = f32[4] dynamic-update-slice(x, a, k)  "
        "v2 = f32[4] dynamic-update-slice(x, a2, k)  ROOT r = f32[4] select(q, v, v2)",
        "dynamic-update-slice(x, select(q, select(q, slice(y){0:1:1}:f32[1], dynamic-slice(x, k)), "
        "negate(slice(y){0:1:1}:f32[1])), k)",
    ),
    misses(
        "select_of_updates",
        "a = f32[1] slice(y), slice={[0:1]}  v = f32[4] dynamic-update-slice(x, a, k)  ROOT r = f32[4] select(q, v, y)",
    ),
    fires(
        "scatter_of_one",
        "ROOT r = f32[2,3] scatter(m, k, d), update_window_dims={0}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=add_f",
        "dynamic-update-slice(m, select(and(compare(k, 0)GE, compare(k, 1)LE), "
        "add(dynamic-slice(m, k, 0), reshape(d):f32[1,3]), dynamic-slice(m, k, 0)), k, 0)",
    ),
    fires(
        "scatter_of_one",
        "l = u32[1] slice(u), slice={[1:2]}  ROOT r = f32[4] scatter(x, l, s), update_window_dims={}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=least_square",
        "dynamic-update-slice(x, select(and(compare(convert(reshape(slice(u){1:2:1}:u32[1]):u32[]):s64[], 0)GE, "
        "compare(convert(reshape(slice(u){1:2:1}:u32[1]):u32[]):s64[], 3)LE), "
        "minimum(dynamic-slice(x, convert(reshape(slice(u){1:2:1}:u32[1]):u32[]):s64[]), "
        "multiply(reshape(s):f32[1], reshape(s):f32[1])), "
        "dynamic-slice(x, convert(reshape(slice(u){1:2:1}:u32[1]):u32[]):s64[])), "
        "convert(reshape(slice(u){1:2:1}:u32[1]):u32[]):s64[])",
    ),
    misses(
        "scatter_of_one",
        "ROOT r = f32[4] scatter(x, i, y), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f",
    ),
]


def expression(i: HloInstruction) -> str:
    """An instruction as one line: arguments within, then what else matters."""
    if i.opcode is Opcode.PARAMETER:
        return i.name
    if i.opcode is Opcode.CONSTANT:
        return str(i.attributes.literal.array.tolist())
    text = f"{i.opcode.value}({', '.join(map(expression, i.operands))})"
    a = i.attributes
    match i.opcode:
        case Opcode.BROADCAST | Opcode.TRANSPOSE | Opcode.REVERSE | Opcode.REDUCE:
            text += f"{{{','.join(map(str, a.dimensions))}}}:{i.shape}"
        case Opcode.CONCATENATE:
            text += f"{{{a.dimension}}}:{i.shape}"
        case Opcode.SLICE:
            parts = zip(a.start_indices, a.limit_indices, a.strides, strict=True)
            text += f"{{{','.join(':'.join(map(str, p)) for p in parts)}}}:{i.shape}"
        case Opcode.RESHAPE | Opcode.CONVERT:
            text += f":{i.shape}"
        case Opcode.COMPARE:
            text += a.direction.value
        case Opcode.DOT:
            text += f"b{list(a.lhs_batch_dims)}x{list(a.rhs_batch_dims)}"
            text += f"c{list(a.lhs_contracting_dims)}x{list(a.rhs_contracting_dims)}"
    return text


@cache
def module_of(body: str) -> HloModule:
    module = parse(PROGRAM.replace("BODY", body))
    verify(module)
    return DeadCodeElimination()(module)


RULE_NAMED = {each.name: each for each in RULES}


@pytest.mark.parametrize("case", CASES, ids=[f"{c.rule}-{c.becomes or 'miss'}" for c in CASES])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_rule(case: Case) -> None:
    rule = RULE_NAMED[case.rule]
    module = module_of(case.body)
    root = module.entry.root
    assert rule in RULES.of(root.opcode)
    assert case.becomes is None or rule in RULES.for_instruction(root)
    new = rule.function(root)
    if case.becomes is None:
        assert new is None, f"{case.rule} made {expression(new)}"
        return
    assert new is not None
    assert expression(new) == case.becomes

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        return new if old is root else moved

    after = map_computations(module, lambda c: rewrite_computation(c, visit) if c.name == "main" else c)
    verify(after)
    check_equal(module, after)


def check_equal(before: HloModule, after: HloModule) -> None:
    again = parse(after.to_text())
    for seed in range(2):
        arguments = random_arguments(before, seed)
        assert_same_results(before, after, arguments)
        assert_same_results(before, again, arguments)


def test_every_rule_has_a_case_and_a_near_miss() -> None:
    for wanted in (True, False):
        found = {c.rule for c in CASES if (c.becomes is not None) is wanted}
        assert set(RULE_NAMED) - found == set()


@pytest.mark.parametrize("case", CASES, ids=[f"{c.rule}-{n}" for n, c in enumerate(CASES)])
def test_whole_pass_keeps_the_meaning_and_ends(case: Case) -> None:
    module = before = module_of(case.body)
    log = RewriteLog(check=check_application)
    for _ in range(10):
        new = AlgebraicSimplifier().rewrite(module, log)
        if new is module:
            break
        module = new
    else:
        pytest.fail("rules run in circles")
    verify(module)
    assert not log.unfinished
    check_equal(before, module)


def test_lossless_conversions_by_trying() -> None:
    """`is_lossless` against NumPy on values at the edges."""
    for source in ElementType:
        if source.is_complex:
            continue
        if source is ElementType.PRED:
            values = np.array([False, True])
        elif source.is_small:
            values = np.arange(1 << source.bit_width).astype(np.uint8).view(source.dtype)
        elif source.is_integral:
            low, high = source.limits
            values = np.array([low, low + 1, 0, 1, high - 1, high], source.dtype)
        else:
            largest = [] if source is ElementType.F16 else [1e38]
            values = np.array([1 / 3, 1e-30, 3e4, 1 + 2.0**-10, 65280, *largest], np.float64).astype(source.dtype)
        for target in ElementType:
            if target.is_complex or target is ElementType.PRED or not is_lossless(source, target):
                continue
            there_and_back = evaluator.converted(evaluator.converted(values, target), source)
            assert errors_in_ulps(there_and_back, values).max() == 0, (source, target)
    assert not is_lossless(ElementType.F32, ElementType.F16)
    assert not is_lossless(ElementType.F16, ElementType.BF16)
    assert not is_lossless(ElementType.S32, ElementType.F32)
    assert not is_lossless(ElementType.S8, ElementType.U16)
    assert not is_lossless(ElementType.U32, ElementType.S32)
    assert not is_lossless(ElementType.F8E8M0FNU, ElementType.F16)
    assert not is_lossless(ElementType.F16, ElementType.F8E5M2)
    assert not is_lossless(ElementType.S4, ElementType.U8)
    assert not is_lossless(ElementType.PRED, ElementType.F8E8M0FNU)
    assert is_lossless(ElementType.S4, ElementType.S8)
    assert is_lossless(ElementType.F8E4M3FN, ElementType.BF16)
    assert is_lossless(ElementType.U16, ElementType.F32)
