"""Discrete Fourier transforms as loop programs that take lengths as arguments, so that few kernels serve all lengths.

A transform of length n = p1 p2 ... pk is k passes (Stockham's): each takes p elements that are m apart, makes the
transform of length p of them, times roots of unity, and stores the results so that no pass has to reorder anything::

    for j in range(m):
        wr1 = w[...]                               e^(-2 pi i j / (p m))
        for q in range(s):
            ar0 = work[2 * (q + s * j)]
            ar1 = work[2 * (q + s * (j + m))]
            ...
            more[2 * (q + s * p * j)] = br0
            more[2 * (q + s * (p * j + 1))] = br1 * wr1 - bi1 * wi1

The first passes have a small s and are written one after the other, with s as a literal; the last one, which needs no
roots, is at the end. The passes between them are a loop over a plan. So the text depends on the first factors, on the
last one, and on the set of factors between: lengths from 256 on that are powers of two have two texts. Complex numbers
are pairs of real ones, because LLVM makes vectors of these. The table w begins with a factor of the results, and 1, or
-1 for an inverse.

Source: C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1.7 and 4.2.3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...hlo.support.records import dataclass
from .texts import indented

NDArray = np.ndarray
LARGEST_FACTOR = 13
"""The largest prime that has a pass of its own."""


def factors_of(n: int) -> list[int] | None:
    """The lengths of passes, or None if a prime factor is too large."""
    found = []
    for p in (4, 2, 3, 5, 7, 11, 13):
        while n % p == 0:
            found.append(p)
            n //= p
    return found if n == 1 else None


def convolution_length(n: int) -> int:
    """The least length from 2 n - 1 on that has no prime factor above 5."""
    best = 1 << (2 * n - 2).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            two = three
            while two < 2 * n - 1:
                two *= 2
            best = min(best, two)
            three *= 3
        five *= 5
    return best


def roots(numerators: NDArray, n: int) -> NDArray:
    """e^(-2 pi i numerators / n), in the widest precision."""
    angle = np.asarray(numerators % n, np.longdouble) * (2 * np.longdouble(np.pi) / n)
    if np.finfo(np.longdouble).eps < 1e-17:  # pi in this precision
        angle = np.asarray(numerators % n, np.longdouble) * (8 * np.arctan(np.longdouble(1)) / n)
    found: NDArray = np.cos(angle) - 1j * np.sin(angle)
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer of complex numbers in the text: a pointer and, in real numbers, where it begins."""

    pointer: str
    start: str

    def at(self, index: str) -> tuple[str, str]:
        """The real and the imaginary part of element `index`."""
        return f"{self.pointer}[{self.start} + 2 * ({index})]", f"{self.pointer}[{self.start} + 2 * ({index}) + 1]"


_LITERAL = 16
"""An s below it is a literal."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The passes of a transform: the `first` ones, each with its own code, a loop over those `between`, the `last`."""

    first: tuple[int, ...]
    between: tuple[int, ...]
    last: int

    @property
    def passes(self) -> tuple[int, ...]:
        """All, in order."""
        return (*self.first, *self.between, self.last)

    @property
    def kinds(self) -> tuple[int, ...]:
        """The lengths of passes that the loop has code for."""
        return tuple(sorted({*self.between, 4} if set(self.passes) <= {2, 4} else set(self.between)))


def plan_of(n: int, columns: int) -> Plan | None:
    """The plan for length n, for `columns` interleaved transforms; None for a prime factor above 13. For columns, one
    pass is first."""
    factors = factors_of(n)
    if factors is None:
        return None
    if not factors:
        return Plan((), (), 1)
    count, s = 0, columns
    while count < len(factors) - 1 and ((s < _LITERAL and columns == 1) or not count):
        s *= factors[count]
        count += 1
    return Plan(tuple(factors[:count]), tuple(factors[count:-1]), factors[-1])


@functools.cache
def rows_text(
    first: tuple[int, ...], kinds: tuple[int, ...], last: int, before: tuple[str, ...] = (), after: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The lines for group `b` of items: an item is n numbers, one after the other. `before` and `after`: what makes
    these numbers of the item, and the item's results of theirs; they are then in `reals`."""
    lines = ["scale = w[0]", "sg = w[1]", "at_work = b * 4 * n", "at_more = b * 4 * n"]
    if before or after:
        lines.append("at_reals = b * 2 * (n + 1)")
    lines.append("for item in range(b * items // groups, (b + 1) * items // groups):")
    body = ["at_x = item * 2 * n", "at_out = item * 2 * n", *before, "m = n", "table = 2"]
    source, target = _REALS if before else _X, _REALS if after else _OUT
    buffers = [source, *[_WORK, _MORE] * len(first)]
    s = 1
    for number, p in enumerate(first):
        body.append(f"m = m // {p}")
        body += _pass(p, s, buffers[number], buffers[number + 1], scaled=not number)
        body.append(f"table = table + {2 * (p - 1)} * m")
        s *= p
    here = buffers[len(first)]
    if s < _LITERAL:  # there is no pass in between
        body += _last(last, str(s), here, target, scaled=not first)
    else:
        body += [*_loop(kinds, s, here, "2 * n"), *_last(last, "s", Place(here.pointer, "at"), target)]
    return (*lines, *indented([*body, *after]))


@functools.cache
def columns_text(first: int | None, kinds: tuple[int, ...], last: int, block: int) -> tuple[str, ...]:
    """The lines for group `b` of blocks of `block` columns, the last one of an item perhaps less: an item is [n, inner]
    numbers, which are transformed along n. A block is copied together by the first pass, and apart by the last."""
    lines = ["scale = w[0]", "sg = w[1]", f"at_work = b * {4 * block} * n"]
    lines += [f"blocks = (inner + {block - 1}) // {block}", "all_blocks = items * blocks"]
    lines.append("for number in range(b * all_blocks // groups, (b + 1) * all_blocks // groups):")
    body = ["item = number // blocks", f"c = (number - item * blocks) * {block}"]
    body += [f"count = minimum({block}, inner - c)", "at_x = 2 * (item * n * inner + c)", "at_out = at_x"]
    body += ["m = n", "table = 2"]
    if first is None:
        apart = ["0", *[f"inner * {k}" for k in range(1, last)]]
        body += _columns(last, _X, _OUT, apart, None, "count", scaled=True)
        return (*lines, *indented(body))
    body.append(f"m = m // {first}")
    body += _pass(first, block, _X, _WORK, scaled=True, count="count", apart="inner")
    body.append(f"table = table + {2 * (first - 1)} * m")
    body += _loop(kinds, block * first, _WORK, f"{2 * block} * n")
    body += [f"rows = n // {last}", *[f"d{k} = rows * {k * block}" for k in range(1, last)]]
    body += [*[f"e{k} = rows * inner * {k}" for k in range(1, last)], "for row in range(rows):"]
    sources = [f"{block} * row", *[f"{block} * row + d{k}" for k in range(1, last)]]
    targets = ["inner * row", *[f"inner * row + e{k}" for k in range(1, last)]]
    body += indented(_columns(last, Place("work", "at"), _OUT, sources, None, "count", targets=targets))
    return (*lines, *indented(body))


_X, _OUT, _WORK, _MORE, _REALS = (Place(name, f"at_{name}") for name in ("x", "out", "work", "more", "reals"))


def _loop(kinds: Sequence[int], s: int, buffer: Place, length: str) -> list[str]:
    """The passes between: from one half of a buffer to the other. The last one's result begins at `at`."""
    here, there = Place(buffer.pointer, "at"), Place(buffer.pointer, "to")
    lines = [f"at = {buffer.start}", f"to = at + {length}", f"s = {s}"]
    if not kinds:
        return lines
    lines += ["for step in range(steps):", "    p = plan[step]", "    m = m // p"]
    lines += indented(by_length(kinds, lambda p: _pass(p, "s", here, there)))
    lines += ["    table = table + 2 * m * (p - 1)", "    s = s * p", "    next = at", "    at = to", "    to = next"]
    return lines


def by_length(kinds: Sequence[int], pass_of: Callable[[int], list[str]]) -> list[str]:
    """``if p == 2: ... elif p == 3: ... else: ...``. A length of 0 stands for the larger primes."""
    lines = []
    for number, p in enumerate(kinds):
        condition = f"p == {p}" if p else f"p > {LARGEST_FACTOR}"
        is_else = number and number == len(kinds) - 1
        lines += ["else:" if is_else else f"{'el' if number else ''}if {condition}:", *indented(pass_of(p))]
    return lines


def root_lines(p: int) -> list[str]:
    """The roots that multiply the results of a pass."""
    places = [(r, f"table + 2 * (m * {r - 1} + j)") for r in range(1, p)]
    return [line for r, at in places for line in (f"wr{r} = w[{at}]", f"wi{r} = w[{at} + 1]")]


def _last(p: int, s: str, source: Place, target: Place, scaled: bool = False) -> list[str]:
    """The last pass, with m = 1."""
    if s == "s":
        places = ["0", *[f"s * {k}" for k in range(1, p)]]
    else:
        places = [str(int(s) * k) for k in range(p)]
    return _columns(p, source, target, places, None, s, scaled=scaled)


def _pass(
    p: int, s: int | str, source: Place, target: Place, *, scaled: bool = False, count: str = "", apart: str = ""
) -> list[str]:
    """One pass; m is a variable. `count`: of columns, if less than s. `apart`: the distance of the source's rows, if it
    is not s."""
    distance = apart or s
    lines = [f"d{k} = m * {k}" if distance == 1 else f"d{k} = {distance} * m * {k}" for k in range(1, p)]
    if s == "s":
        lines += [f"e{r} = s * {r}" for r in range(1, p)] + [f"wide = s * {p}"]
    lines += ["for j in range(m):", *indented(root_lines(p))]
    start = "j" if s == 1 else f"{distance} * j"
    sources = [start, *[f"{start} + d{k}" for k in range(1, p)]]
    start = f"{p} * j" if s == 1 else "wide * j" if s == "s" else f"{int(s) * p} * j"
    targets = [start, *[f"{start} + e{r}" if s == "s" else f"{start} + {int(s) * r}" for r in range(1, p)]]
    if s == 1:
        return [*lines, *indented(_butterflies(p, source, target, sources, "w", targets=targets, scaled=scaled))]
    text = _columns(p, source, target, sources, "w", count or str(s), targets=targets, scaled=scaled)
    return [*lines, *indented(text)]


def _columns(
    p: int, source: Place, target: Place, sources: Sequence[str], roots: str | None, count: str, *,
    targets: Sequence[str] | None = None, scaled: bool = False,
) -> list[str]:  # fmt: skip
    """Transforms of `count` columns. `sources` and `targets`: where their rows begin in the places.

    Many such starts are opaque: LLVM would look long for a better way to step all these addresses, in the loops around
    this one too. Nor need it know how far rows are from each other, as the columns are independent.
    """
    start = "opaque({})" if len(sources) + len(targets or sources) >= _MANY_ROWS else "{}"
    lines = [f"row{k} = {start.format(f'{source.start} + 2 * ({at})')}" for k, at in enumerate(sources)]
    lines += [f"to_row{r} = {start.format(f'{target.start} + 2 * ({at})')}" for r, at in enumerate(targets or sources)]
    begins = [f"row{k} + 2 * q" for k in range(p)], [f"to_row{r} + 2 * q" for r in range(p)]
    text = _butterflies(p, source, target, begins[0], roots, targets=begins[1], scaled=scaled, absolute=True)
    return [*lines, f"for q in independent({count}):", *indented(text)]


_MANY_ROWS = 6


def _butterflies(
    p: int, source: Place, target: Place, sources: Sequence[str], roots: str | None, *,
    targets: Sequence[str] | None = None, scaled: bool = False, absolute: bool = False,
) -> list[str]:  # fmt: skip
    """One transform of length p, and its products with the roots. With roots, these have the scale as a factor.
    `absolute`: sources and targets are indices of the pointers, in real numbers."""

    def pair(place: Place, at: str) -> tuple[str, str]:
        return (f"{place.pointer}[{at}]", f"{place.pointer}[{at} + 1]") if absolute else place.at(at)

    lines = []
    for k, at in enumerate(sources):
        re, im = pair(source, at)
        lines += [f"ar{k} = {re}", f"ai{k} = {im}"]
    lines += butterfly_lines(p)
    by = " * scale" if scaled else ""
    for r, at in enumerate(targets or sources):
        re, im = pair(target, at)
        if roots is None or not r:
            values = f"br{r}{by}", f"bi{r}{by}"
        else:
            values = f"br{r} * wr{r} - bi{r} * wi{r}", f"bi{r} * wr{r} + br{r} * wi{r}"
        lines += [f"{re} = {values[0]}", f"{im} = {values[1]}"]
    return lines


def butterfly_lines(p: int) -> Iterator[str]:
    """b = the transform of length p of a, or for sg = -1 the inverse one."""
    match p:
        case 1:
            yield from ("br0 = ar0", "bi0 = ai0")
        case 2:
            yield from ("br0 = ar0 + ar1", "bi0 = ai0 + ai1", "br1 = ar0 - ar1", "bi1 = ai0 - ai1")
        case 4:
            yield from (
                "tr0 = ar0 + ar2", "ti0 = ai0 + ai2", "tr1 = ar0 - ar2", "ti1 = ai0 - ai2",
                "tr2 = ar1 + ar3", "ti2 = ai1 + ai3", "tr3 = ar1 - ar3", "ti3 = ai1 - ai3",
                "br0 = tr0 + tr2", "bi0 = ti0 + ti2", "br2 = tr0 - tr2", "bi2 = ti0 - ti2",
                "br1 = tr1 + sg * ti3", "bi1 = ti1 - sg * tr3", "br3 = tr1 - sg * ti3", "bi3 = ti1 + sg * tr3",
            )  # fmt: skip
        case _:
            yield from _odd(p)


def _odd(p: int) -> Iterator[str]:
    half = range(1, p // 2 + 1)
    for k in half:
        for part in "ri":
            yield f"t{part}{k} = a{part}{k} + a{part}{p - k}"
            yield f"d{part}{k} = a{part}{k} - a{part}{p - k}"
    for part in "ri":
        yield f"b{part}0 = a{part}0 + {' + '.join(f't{part}{k}' for k in half)}"
    for r in half:
        factors = roots(np.array(half) * r, p).astype(np.complex128)  # rounded once: cos(2 pi / 3) is -0.5
        cosine = [f"R({c!r})" for c in factors.real.tolist()]
        sine = [f"R({-s!r})" for s in factors.imag.tolist()]
        for part in "ri":
            yield f"c{part} = a{part}0 + " + " + ".join(f"{c} * t{part}{k}" for k, c in zip(half, cosine, strict=True))
            yield f"e{part} = " + " + ".join(f"{s} * d{part}{k}" for k, s in zip(half, sine, strict=True))
        yield f"br{r} = cr + sg * ei"
        yield f"bi{r} = ci - sg * er"
        yield f"br{p - r} = cr - sg * ei"
        yield f"bi{p - r} = ci + sg * er"


FROM_REALS = tuple(
    """\
first = item * 2 * (n + 1)
ar = reals[at_reals]
ai = reals[at_reals + 1]
out[first] = ar + ai
out[first + 1] = R(0)
out[first + 2 * n] = ar - ai
out[first + 2 * n + 1] = R(0)
for k in range(1, n):
    ar = reals[at_reals + 2 * k]
    ai = reals[at_reals + 2 * k + 1]
    br = reals[at_reals + 2 * (n - k)]
    bi = -reals[at_reals + 2 * (n - k) + 1]
    er = R(0.5) * (ar + br)
    ei = R(0.5) * (ai + bi)
    dr = R(0.5) * (ar - br)
    di = R(0.5) * (ai - bi)
    wr = twiddles[2 * k]
    wi = twiddles[2 * k + 1]
    out[first + 2 * k] = er + (wr * di + wi * dr)
    out[first + 2 * k + 1] = ei + (wi * di - wr * dr)
""".splitlines()
)
"""reals: the transform of n complex numbers, which are 2 n real ones in pairs; out: the first n + 1 of the 2 n."""

TO_REALS = tuple(
    """\
first = item * 2 * (n + 1)
reals[at_reals] = x[first] + x[first + 2 * n]
reals[at_reals + 1] = x[first] - x[first + 2 * n]
for k in range(1, n):
    ar = x[first + 2 * k]
    ai = x[first + 2 * k + 1]
    br = x[first + 2 * (n - k)]
    bi = -x[first + 2 * (n - k) + 1]
    er = ar + br
    ei = ai + bi
    dr = ar - br
    di = ai - bi
    wr = twiddles[2 * k]
    wi = twiddles[2 * k + 1]
    reals[at_reals + 2 * k] = er - (wr * di - wi * dr)
    reals[at_reals + 2 * k + 1] = ei + (wr * dr + wi * di)
""".splitlines()
)
"""The way back: n + 1 numbers become n numbers; their inverse transform is the 2 n real numbers, in pairs."""

EACH = ("item = b", "at_reals = b * 2 * n")
"""The statements before them, if `reals` has all items."""

WITH_ZEROS = """\
for k in range(n):
    out[b * 2 * n + 2 * k] = x[b * n + k]
    out[b * 2 * n + 2 * k + 1] = R(0)
""".splitlines()
FIRST_HALF = """\
for k in range(2 * (n // 2 + 1)):
    out[b * 2 * (n // 2 + 1) + k] = x[b * 2 * n + k]
""".splitlines()
MIRRORED = """\
h = n // 2 + 1
last = (n - 1) // 2
out[b * 2 * n] = x[b * 2 * h]
out[b * 2 * n + 1] = R(0)
for k in range(1, last + 1):
    ar = x[b * 2 * h + 2 * k]
    ai = x[b * 2 * h + 2 * k + 1]
    out[b * 2 * n + 2 * k] = ar
    out[b * 2 * n + 2 * k + 1] = ai
    out[b * 2 * n + 2 * (n - k)] = ar
    out[b * 2 * n + 2 * (n - k) + 1] = -ai
if n % 2 == 0:
    out[b * 2 * n + n] = x[b * 2 * h + n]
    out[b * 2 * n + n + 1] = R(0)
""".splitlines()
REAL_PARTS = """\
for k in range(n):
    out[b * n + k] = x[b * 2 * n + 2 * k]
""".splitlines()
CHIRPED = """\
for k in range(n):
    wr = w[2 * k]
    wi = w[2 * k + 1]
    for q in range(inner):
        ar = x[2 * ((b * xn + k) * inner + q)]
        ai = x[2 * ((b * xn + k) * inner + q) + 1]
        out[2 * ((b * length + k) * inner + q)] = ar * wr - ai * wi
        out[2 * ((b * length + k) * inner + q) + 1] = ar * wi + ai * wr
for k in range(2 * n * inner, 2 * length * inner):
    out[b * 2 * length * inner + k] = R(0)
""".splitlines()
"""The n numbers of a length xn times the numbers of w; the rest of the result is 0."""
