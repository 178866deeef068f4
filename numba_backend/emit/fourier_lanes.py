"""Discrete Fourier transforms of many rows: a vector register has one number of each of several rows.

Number k of all these rows is one row of real and one of imaginary parts in the memory that the kernel works in. So each
operation of a pass is one of whole vectors, whatever the factors of the length are; `fourier.py` describes a pass::

    for j in range(m):
        wr1 = w[...]
        for q in range(s):
            for l in range(16):
                ar0 = work[(from + 2 * (q + s * j)) * 16 + l]
                ...
                work[(to + 2 * (q + s * (3 * j + 1))) * 16 + l] = br1 * wr1 - bi1 * wi1

Blocks of rows are transposed into this order when they are read, and transposed back when they are stored. The last
block ends with the last row, so that some rows are computed twice. A prime factor above 13 is a pass too, with sums
over its cosines and sines. Real rows of even length n are n / 2 complex numbers, and their transform becomes the real
spectrum before it is stored; rows of odd length have zeros as imaginary parts.

A length with a larger prime factor is a convolution with a chirp (Bluestein's), within the same memory::

    x_k = sum_j a_j e^(-+2 pi i j k / n),   j k = (j^2 + k^2 - (k - j)^2) / 2

So the numbers are multiplied by c_j = e^(-+pi i j^2 / n), extended by zeros to a length without large factors,
transformed, multiplied by the transform of 1 / c, transformed back, and multiplied by c_k. The way back is the same
transform of numbers whose real and imaginary parts have changed places.

Rows may be the columns of a matrix: they need not be transposed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from enum import Enum

import numpy as np

from ...hlo.element_type import ElementType
from ..machine import target_machine
from .fourier import LARGEST_FACTOR, butterfly_lines, by_length, convolution_length, factors_of, root_lines, roots
from .texts import LANES, indented

LARGEST_SUM = 127
"""The largest prime that is a pass: from here on a convolution takes less."""
_SHORT = 256
"""A power of two from here on is transformed row by row, within the first-level cache: such passes are vectors too."""


class Rows(Enum):
    """The kinds of rows: n numbers and n results unless the kind says otherwise."""

    COMPLEX = "complex numbers"
    COLUMNS = "complex numbers, `inner` numbers apart"
    FROM_REALS = "2 n real numbers, to n + 1 complex ones"
    TO_REALS = "n + 1 complex numbers, to 2 n real ones"
    FROM_ODD_REALS = "n real numbers, to n // 2 + 1 complex ones"
    TO_ODD_REALS = "n // 2 + 1 complex numbers, to n real ones"


def passes_of(n: int) -> tuple[int, ...] | None:
    """The lengths of passes for length n, or None if a prime factor is too large."""
    found: list[int] = []
    rest = n
    for p in (*_PRIMES, 2):
        while rest % p == 0 and p > LARGEST_FACTOR:
            found.append(p)
            rest //= p
    small = factors_of(rest)
    return None if small is None else (*small, *found)


_PRIMES = tuple(p for p in range(3, LARGEST_SUM + 1) if all(p % q for q in range(2, math.isqrt(p) + 1)))


def padded_length(n: int) -> int:
    """The length of the passes for length n: that of the convolution if a prime factor is too large."""
    return n if passes_of(n) is not None else convolution_length(n)


def fits(real: ElementType, items: int, n: int) -> bool:
    """Whether interleaving rows with transforms of length n is faster: they must fit into half of the second-level
    cache."""
    if items < LANES[real] or n <= 1:
        return False
    padded = padded_length(n)
    if work_numbers(real, padded) * real.byte_width > target_machine().second_cache // 2:
        return False
    return padded != n or n < _SHORT or n & (n - 1) != 0


def work_numbers(real: ElementType, padded: int) -> int:
    """The real numbers of the memory that one thread works in: two buffers."""
    return 4 * (padded + 1) * LANES[real]


def kinds_of(passes: Sequence[int]) -> tuple[int, ...]:
    """The lengths of passes that a text has code for; 0 stands for the larger primes. Powers of two share one."""
    kinds = {p if p <= LARGEST_FACTOR else 0 for p in passes}
    return tuple(sorted(kinds | {2, 4} if kinds & {2, 4} else kinds))


@functools.lru_cache(256)
def table_of(real: ElementType, passes: tuple[int, ...], inverse: bool, scale: float, separated: int) -> np.ndarray:
    """The scale, the sign, the roots for real rows, if `separated` is their even length; and for each pass the cosines
    and sines of a larger prime, and the roots that multiply its results."""
    values: list[np.ndarray] = [roots(np.arange(separated // 2), separated)] if separated else []
    m = math.prod(passes)
    for p in passes:
        length, m = m, m // p
        if p > LARGEST_FACTOR:
            values.append(roots(np.arange(p), p).conj())
        twiddles = roots(np.outer(np.arange(1, p), np.arange(m)), length)
        values.append((twiddles.conj() if inverse else twiddles).reshape(-1))
    pairs = [np.array([scale, -1 if inverse else 1])]
    pairs += [np.stack([v.real, v.imag], -1).reshape(-1) for v in values]
    found: np.ndarray = np.concatenate(pairs).astype(real.dtype)
    return found


@functools.cache
def lanes_text(kinds: tuple[int, ...], rows: Rows, lanes: int, is_convolution: bool = False) -> tuple[str, ...]:
    """The lines for group `b` of `groups`: their part of `items` rows. `is_convolution`: the passes have the length
    `padded`, and `chirp` has the factors."""
    whole = "padded" if is_convolution else "n"
    half = {Rows.FROM_REALS: "n", Rows.TO_REALS: "n"}.get(rows, "(n // 2)")
    spectrum, reals = f"2 * ({half} + 1)", "2 * n" if half == "n" else "n"
    given = reals if rows in (Rows.FROM_REALS, Rows.FROM_ODD_REALS) else spectrum
    made = reals if rows in (Rows.TO_REALS, Rows.TO_ODD_REALS) else spectrum
    if rows is Rows.COMPLEX:
        given = made = "2 * n"
    body = [f"at = b * 4 * ({whole} + 1)", f"to = at + 2 * ({whole} + 1)"]
    if rows is Rows.COLUMNS:
        body += ["item = number // blocks", f"column = minimum((number - item * blocks) * {lanes}, inner - {lanes})"]
        body += ["first = 2 * (item * n * inner + column)", *_columns_read(lanes)]
    else:
        body += [f"first = minimum(number * {lanes}, items - {lanes})"]
        body += _read(given, 2 if rows is Rows.FROM_ODD_REALS else 1, lanes)
    swap = ["next = at", "at = to", "to = next"]
    if rows is Rows.TO_REALS:
        body += [*_joined(lanes), *swap]
    elif rows is Rows.TO_ODD_REALS:
        body += _mirrored(lanes)
    table = "2 + 2 * n" if half == "n" else "2"
    passes = [f"m = {whole}", "s = 1", f"table = {table}", "for step in range(steps):", "    p = plan[step]"]
    passes += ["    m = m // p", *indented(by_length(kinds, lambda p: _pass(p, lanes) if p else _sums(lanes)))]
    passes += indented(["table = table + 2 * m * (p - 1)", "s = s * p", *swap])
    if is_convolution:
        body += [*_multiplied("n", "0", lanes), *_zeros(lanes), "for turn in range(2):", *indented(passes)]
        body += ["    if turn == 0:", *indented(_multiplied("padded", "2 * n", lanes, turned="to"), 2)]
        body += [*_multiplied("n", "0", lanes, turned="from")]
    else:
        body += passes
    if rows is Rows.FROM_REALS:
        body += [*_separated(lanes), *swap]
    if rows is Rows.COLUMNS:
        body += _columns_written(lanes)
    else:
        body += _written(made, 2 if rows is Rows.TO_ODD_REALS else 1, lanes)
    lines = ["scale = w[0]", "sg = w[1]"]
    if rows is not Rows.COLUMNS:
        lines += [f"transposed = local_array({lanes * lanes}, R)"]
    if 0 in kinds:
        lines += [f"sums = local_array({4 * (LARGEST_SUM // 2 + 1) * lanes}, R)"]
        lines += [f"{name} = local_array({lanes}, R)" for name in ("real_even", "imag_even", "real_odd", "imag_odd")]
    lines += [f"blocks = ({'inner' if rows is Rows.COLUMNS else 'items'} + {lanes - 1}) // {lanes}"]
    lines += ["all_blocks = items * blocks" if rows is Rows.COLUMNS else "all_blocks = blocks"]
    lines += ["for number in range(b * all_blocks // groups, (b + 1) * all_blocks // groups):"]
    return (*lines, *indented(body))


def _read(length: str, apart: int, lanes: int) -> list[str]:
    """Rows of `length` real numbers, transposed. `apart`: 2 to have zeros between them."""
    target = f"work[(at + {apart} * (f + r)) * {lanes} + l]"
    zeros = [f"work[(at + 2 * (f + r) + 1) * {lanes} + l] = R(0)"] if apart == 2 else []
    rest_zeros = [f"work[(at + 2 * f + 1) * {lanes} + l] = R(0)"] if apart == 2 else []
    return [
        f"length = {length}",
        f"for part in range(length // {lanes}):",
        f"    f = part * {lanes}",
        f"    for l in lanes({lanes}):",
        f"        for r in range({lanes}):",
        f"            transposed[r * {lanes} + l] = x[(first + l) * length + f + r]",
        f"    for r in range({lanes}):",
        f"        for l in lanes({lanes}):",
        f"            {target} = transposed[r * {lanes} + l] * scale",
        *indented(_each(zeros, lanes) if zeros else [], 2),
        f"for f in range(length // {lanes} * {lanes}, length):",
        f"    for l in range({lanes}):",
        f"        work[(at + {apart} * f) * {lanes} + l] = x[(first + l) * length + f] * scale",
        *indented(_each(rest_zeros, lanes) if zeros else []),
    ]


def _written(length: str, apart: int, lanes: int) -> list[str]:
    """Rows of `length` real numbers, transposed back. `apart`: 2 to leave out the imaginary parts."""
    return [
        f"length = {length}",
        f"for part in range(length // {lanes}):",
        f"    f = part * {lanes}",
        f"    for r in lanes({lanes}):",
        f"        for l in range({lanes}):",
        f"            transposed[l * {lanes} + r] = work[(at + {apart} * (f + r)) * {lanes} + l]",
        f"    for l in range({lanes}):",
        f"        for r in lanes({lanes}):",
        f"            out[(first + l) * length + f + r] = transposed[l * {lanes} + r]",
        f"for f in range(length // {lanes} * {lanes}, length):",
        f"    for l in range({lanes}):",
        f"        out[(first + l) * length + f] = work[(at + {apart} * f) * {lanes} + l]",
    ]


def _columns_read(lanes: int) -> list[str]:
    """Columns from `first` on: they are beside each other already, pairs of a real and an imaginary part."""
    re, im = _number("k", lanes)
    each = [f"{re} = x[from_row + 2 * l] * scale", f"{im} = x[from_row + 2 * l + 1] * scale"]
    each = [f"for l in independent({lanes}):", *indented(each)]
    return ["for k in range(n):", "    from_row = first + 2 * k * inner", *indented(each)]


def _columns_written(lanes: int) -> list[str]:
    """The way back."""
    re, im = _number("k", lanes)
    each = [f"out[to_row + 2 * l] = {re}", f"out[to_row + 2 * l + 1] = {im}"]
    each = [f"for l in independent({lanes}):", *indented(each)]
    return ["for k in range(n):", "    to_row = first + 2 * k * inner", *indented(each)]


def _multiplied(count: str, start: str, lanes: int, turned: str = "") -> list[str]:
    """The first numbers times those of `chirp` from `start` on. `turned`: real and imaginary parts change places, after
    the product ("to") or before ("from")."""
    re, im = _number("k", lanes)
    one, other = (im, re) if turned == "from" else (re, im)
    to_one, to_other = (im, re) if turned == "to" else (re, im)
    each = [f"ar = {one}", f"ai = {other}", f"{to_one} = ar * cr - ai * ci", f"{to_other} = ar * ci + ai * cr"]
    factors = [f"cr = chirp[{start} + 2 * k]", f"ci = chirp[{start} + 2 * k + 1]"]
    return [f"for k in independent({count}):", *indented([*factors, *_each(each, lanes)])]


def _zeros(lanes: int) -> list[str]:
    """The numbers from n on."""
    re, im = _number("k", lanes)
    return ["for k in range(n, padded):", *indented(_each([f"{re} = R(0)", f"{im} = R(0)"], lanes))]


def _each(lines: Sequence[str], lanes: int) -> list[str]:
    """For each row."""
    return [f"for l in lanes({lanes}):", *indented(lines)]


def _number(index: str, lanes: int, buffer: str = "at") -> tuple[str, str]:
    """The real and the imaginary parts of number `index`."""
    return f"work[({buffer} + 2 * ({index})) * {lanes} + l]", f"work[({buffer} + 2 * ({index}) + 1) * {lanes} + l]"


def _row(row: str, lanes: int) -> tuple[str, str]:
    """The real and the imaginary parts that begin at `row` of the memory."""
    return f"work[({row}) * {lanes} + l]", f"work[({row} + 1) * {lanes} + l]"


def _pass(p: int, lanes: int) -> list[str]:
    """One pass of a small length, from one buffer to the other."""
    body = []
    for k in range(p):
        re, im = _row(f"here + d{k}" if k else "here", lanes)
        body += [f"ar{k} = {re}", f"ai{k} = {im}"]
    body += butterfly_lines(p)
    for r in range(p):
        re, im = _row(f"there + e{r}" if r else "there", lanes)
        values = f"br{r} * wr{r} - bi{r} * wi{r}", f"bi{r} * wr{r} + br{r} * wi{r}"
        body += [f"{re} = {values[0] if r else 'br0'}", f"{im} = {values[1] if r else 'bi0'}"]
    return [
        *[line for k in range(1, p) for line in (f"d{k} = 2 * s * m * {k}", f"e{k} = 2 * s * {k}")],
        "for j in range(m):",
        *indented(root_lines(p)),
        "    for q in independent(s):",
        "        here = at + 2 * (q + s * j)",
        f"        there = to + 2 * (q + s * {p} * j)",
        *indented(_each(body, lanes), 2),
    ]


def _sums(lanes: int) -> list[str]:
    """One pass of any odd length p. Result r is the sum of two terms: a0 + sum over k of cos(2 pi k r / p) (a_k +
    a_(p-k)), and -+ i times the sum over k of sin(2 pi k r / p) (a_k - a_(p-k))."""
    one, other = _number("q + s * (j + m * k)", lanes), _number("q + s * (j + m * (p - k))", lanes)
    zeroth, to_zeroth = _number("q + s * j", lanes), _number("q + s * p * j", lanes, "to")
    to_one, to_other = _number("q + s * (p * j + r)", lanes, "to"), _number("q + s * (p * j + p - r)", lanes, "to")

    def at(which: int) -> str:
        return f"sums[(4 * k + {which}) * {lanes} + l]"

    pairs = [
        f"ar0 = {one[0]}", f"ai0 = {one[1]}", f"ar1 = {other[0]}", f"ai1 = {other[1]}",
        f"{at(0)} = ar0 + ar1", f"{at(1)} = ai0 + ai1", f"{at(2)} = ar0 - ar1", f"{at(3)} = ai0 - ai1",
    ]  # fmt: skip

    def of(r: str) -> list[str]:
        """The root of result r."""
        return [f"wr = w[table + 2 * (m * ({r} - 1) + j)]", f"wi = w[table + 2 * (m * ({r} - 1) + j) + 1]"]

    def store(target: tuple[str, str], upper: str, lower: str) -> list[str]:
        re, im = target
        return _each([f"br0 = real_even[l] {upper} sg * imag_odd[l]", f"bi0 = imag_even[l] {lower} sg * real_odd[l]",
                      f"{re} = br0 * wr - bi0 * wi", f"{im} = bi0 * wr + br0 * wi"], lanes)  # fmt: skip

    start = [f"real_even[l] = {zeroth[0]}", f"imag_even[l] = {zeroth[1]}"]
    added = [f"real_even[l] = real_even[l] + {at(0)}", f"imag_even[l] = imag_even[l] + {at(1)}"]
    body = [
        "for k in range(1, p // 2 + 1):", *indented(_each(pairs, lanes)),
        *_each(start, lanes),
        "for k in range(1, p // 2 + 1):", *indented(_each(added, lanes)),
        *_each([f"{to_zeroth[0]} = real_even[l]", f"{to_zeroth[1]} = imag_even[l]"], lanes),
        "for r in range(1, p // 2 + 1):",
        *indented(_each([*start, "real_odd[l] = R(0)", "imag_odd[l] = R(0)"], lanes)),
        "    angle = 0",
        "    for k in range(1, p // 2 + 1):",
        "        angle = select(angle + r >= p, angle + r - p, angle + r)",
        "        cosine = w[primes + 2 * angle]",
        "        sine = w[primes + 2 * angle + 1]",
        *indented(_each([
            f"real_even[l] = real_even[l] + cosine * {at(0)}", f"imag_even[l] = imag_even[l] + cosine * {at(1)}",
            f"real_odd[l] = real_odd[l] + sine * {at(2)}", f"imag_odd[l] = imag_odd[l] + sine * {at(3)}",
        ], lanes), 2),
        *indented([*of("r"), *store(to_one, "+", "-"), *of("(p - r)"), *store(to_other, "-", "+")]),
    ]  # fmt: skip
    head = ["primes = table", "table = table + 2 * p", "for j in range(m):", "    for q in range(s):"]
    return [*head, *indented(body, 2)]


_INNER = ["for before in independent(n - 1):"]
_TURN = ["k = before + 1", "wr = w[2 + 2 * k]", "wi = w[2 + 2 * k + 1]"]


def _separated(lanes: int) -> list[str]:
    """The first n + 1 numbers of the transform of 2 n real numbers, from the transform of n complex numbers that are
    pairs of them."""
    zeroth, to_zeroth, to_last = _number("0", lanes), _number("0", lanes, "to"), _number("n", lanes, "to")
    ends = [
        f"ar = {zeroth[0]}", f"ai = {zeroth[1]}", f"{to_zeroth[0]} = ar + ai", f"{to_zeroth[1]} = R(0)",
        f"{to_last[0]} = ar - ai", f"{to_last[1]} = R(0)",
    ]  # fmt: skip
    here, there, target = _number("k", lanes), _number("n - k", lanes), _number("k", lanes, "to")
    each = [
        f"ar = {here[0]}", f"ai = {here[1]}", f"br = {there[0]}", f"bi = {there[1]}",
        "tr = R(0.5) * (ar + br)", "ti = R(0.5) * (ai - bi)", "dr = R(0.5) * (ar - br)", "di = R(0.5) * (ai + bi)",
        f"{target[0]} = tr + (wr * di + wi * dr)", f"{target[1]} = ti + (wi * di - wr * dr)",
    ]  # fmt: skip
    return [*_each(ends, lanes), *_INNER, *indented([*_TURN, *_each(each, lanes)])]


def _joined(lanes: int) -> list[str]:
    """The way back: n + 1 numbers become n numbers; their inverse transform is the 2 n real numbers, in pairs. The
    first and the last number are real."""
    zeroth, last, to_zeroth = _number("0", lanes), _number("n", lanes), _number("0", lanes, "to")
    ends = [
        f"ar = {zeroth[0]}", f"br = {last[0]}", f"{to_zeroth[0]} = ar + br", f"{to_zeroth[1]} = ar - br",
    ]  # fmt: skip
    here, there, target = _number("k", lanes), _number("n - k", lanes), _number("k", lanes, "to")
    each = [
        f"ar = {here[0]}", f"ai = {here[1]}", f"br = {there[0]}", f"bi = {there[1]}",
        "tr = ar + br", "ti = ai - bi", "dr = ar - br", "di = ai + bi",
        f"{target[0]} = tr - (wr * di - wi * dr)", f"{target[1]} = ti + (wr * dr + wi * di)",
    ]  # fmt: skip
    return [*_each(ends, lanes), *_INNER, *indented([*_TURN, *_each(each, lanes)])]


def _mirrored(lanes: int) -> list[str]:
    """All n numbers, computed from the first n // 2 + 1 of them, for odd n."""
    zeroth, here, there = (_number(index, lanes) for index in ("0", "k", "n - k"))
    return [
        *_each([f"{zeroth[1]} = R(0)"], lanes),
        "for k in range(1, n // 2 + 1):",
        *indented(_each([f"{there[0]} = {here[0]}", f"{there[1]} = -{here[1]}"], lanes)),
    ]  # fmt: skip
