"""Maxima and minima of floats in three instructions of x86, where LLVM takes six for vectors, and more for numbers.

The extremum is NaN if either number is, and -0 < +0. LLVM puts both operands in order by their signs first, and looks
for NaN afterwards. The processor's ``max(a, b)`` is ``a > b ? a : b``: if the numbers are equal, or one is NaN, it is
b, and ``max(b, a)`` is a; else both are the maximum. So the bits of the two make the extremum:

    minimum   min(a, b) | min(b, a)            -0 if either is; NaN has all bits of the exponent, and stays one
    maximum   the same, but of the signs &     the majority of max(a, b), max(b, a) and 0x7fffffff

The sign of a NaN, which means nothing, may be that of the other number.

A majority is one instruction of AVX-512. Without it, it is four, so that LLVM's maximum of vectors is as good.

Loops have their vectors before this, since LLVM knows a maximum as the step of a reduction. A single number is an
element of a vector here, so that it stays in its register: a loop whose steps wait for a maximum takes a third of the
time.
"""

from __future__ import annotations

import re

ANY, MAJORITIES = "sse2", "avx512vl"
"""The features of a processor that has these maxima of two numbers at all, and majorities of all vectors."""

_BITS = {"float": 32, "double": 64}
_SUFFIX = {32: "d", 64: "q"}
_REGISTERS = (128, 256, 512)
_NAME = r"%[-\w.$]+"
_CALL = re.compile(
    rf"( *)({_NAME}) = (?:tail )?call (?:contract |reassoc )*(?:<(\d+) x )?(float|double)>? @llvm\.(maximum|minimum)"
    rf"\.[.\w]+\([^%\n]* ({_NAME}), [^%\n]* ({_NAME})\).*"
)
"""An operand that is a constant has no such name: LLVM needs fewer instructions there."""


def with_short_extrema(text: str, features: frozenset[str]) -> str:
    """The optimised LLVM IR of a kernel without calls of llvm.maximum and minimum for numbers and whole registers, if
    a processor with these features needs more instructions for them."""
    if ANY not in features or ("@llvm.maximum." not in text and "@llvm.minimum." not in text):
        return text
    used: set[str] = set()
    majorities = MAJORITIES in features
    written = _CALL.sub(lambda call: _written_out(call, used, majorities), text)
    return written + "".join(f"\n{declaration}\n" for declaration in sorted(used))


def _written_out(call: re.Match[str], used: set[str], majorities: bool) -> str:
    space, name, length, kind, extremum, a, b = call.groups()
    bits = _BITS[kind]
    count = int(length) if length else _REGISTERS[0] // bits
    if count * bits not in _REGISTERS or (length and extremum == "maximum" and not majorities):
        return call[0]
    vector, integers = f"<{count} x {kind}>", f"<{count} x i{bits}>"
    floats, tests = (vector, f"<{count} x i1>") if length else (kind, "i1")
    new = f"%short.{name[1:]}"
    relation = "ogt" if extremum == "maximum" else "olt"
    one, other = f"{new}.one", f"{new}.other"
    lines = [
        f"{new}.first = fcmp {relation} {floats} {a}, {b}",
        f"{one} = select {tests} {new}.first, {floats} {a}, {floats} {b}",
        f"{new}.second = fcmp {relation} {floats} {b}, {a}",
        f"{other} = select {tests} {new}.second, {floats} {b}, {floats} {a}",
    ]
    if not length:
        lines += [f"{x}.only = insertelement {vector} poison, {kind} {x}, i64 0" for x in (one, other)]
        one, other = f"{one}.only", f"{other}.only"
    lines += [f"{new}.a = bitcast {vector} {one} to {integers}", f"{new}.b = bitcast {vector} {other} to {integers}"]
    unsigned = f"splat (i{bits} {(1 << bits - 1) - 1})"
    if extremum == "minimum":
        lines.append(f"{new}.bits = or {integers} {new}.a, {new}.b")
    elif majorities:  # 232: the table of a majority, 1 for three bits of which two are 1
        majority = f"{integers} @llvm.x86.avx512.pternlog.{_SUFFIX[bits]}.{count * bits}"
        used.add(f"declare {majority}({integers}, {integers}, {integers}, i32 immarg)")
        operands = ", ".join(f"{integers} {x}" for x in (f"{new}.a", f"{new}.b", unsigned))
        lines.append(f"{new}.bits = call {majority}({operands}, i32 232)")
    else:
        lines += [
            f"{new}.all = and {integers} {new}.a, {new}.b",
            f"{new}.any = or {integers} {new}.a, {new}.b",
            f"{new}.magnitude = and {integers} {new}.any, {unsigned}",
            f"{new}.bits = or {integers} {new}.all, {new}.magnitude",
        ]
    result = name if length else f"{new}.elements"
    lines.append(f"{result} = bitcast {integers} {new}.bits to {vector}")
    if not length:
        lines.append(f"{name} = extractelement {vector} {result}, i64 0")
    return "\n".join(space + line for line in lines)
