"""Discrete Fourier transforms as loop programs: the text of the kernels that `fourier.py` adds to a program.

A transform of length n = p1 p2 ... pk is k passes (Stockham's): pass i takes p elements, each m apart, makes the
transform of length p of them, times roots of unity, and stores the results side by side, so that no pass has to reorder
anything. Each pass goes from one buffer to another::

    for j in range(m):
        wr1 = w[...]                               e^(-2 pi i j / (p m))
        for q in range(s):
            ar0 = x[2 * (q + s * j)]
            ar1 = x[2 * (q + s * (j + m))]
            ...
            out[2 * (q + s * p * j)] = ar0 + ar1
            out[2 * (q + s * (p * j + 1))] = (ar0 - ar1) * wr1 - (ai0 - ai1) * wi1

A length with a prime factor above `LARGEST_FACTOR` is a convolution with a chirp (Bluestein's), of a length without.
Complex numbers are pairs of real ones, because LLVM makes vectors of these.

Source: C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1.7 and 4.2.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..emit.texts import indented

NDArray = np.ndarray
LARGEST_FACTOR = 13
"""The largest prime of which a pass is made."""


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


@dataclass
class Transform:
    """Lines of text, and the table of roots that they read, for transforms along the middle of [.., n, inner].

    `kind`: the real type in the text.
    """

    kind: str
    inner: int
    inverse: bool
    table: list[NDArray] = field(default_factory=list)
    _length: int = 0

    def tabled(self, values: NDArray) -> int:
        """Where in the table, in real numbers, these complex numbers stand."""
        start = self._length
        pairs = np.stack([values.real, values.imag], -1).reshape(-1)
        self.table.append(pairs)
        self._length += pairs.size
        return start

    def lines(self, n: int, source: Place, target: Place, work: Place, more: Place, scale: str) -> list[str]:
        """The transform of one item from `source` to `target`. `work`: n elements, for Bluestein's way `work` and
        `more` have `convolution_length(n)` each, each times `inner`. `scale`: a factor of the results, or ""."""
        factors = factors_of(n)
        if factors is None:
            return self._bluestein(n, source, target, work, more, scale)
        return self._passes(n, factors, source, target, work, self.inverse, scale)

    def _passes(
        self, n: int, factors: list[int], source: Place, target: Place, work: Place, inverse: bool, scale: str
    ) -> list[str]:
        if not factors:
            return self._copied(source, target, self.inner, scale)
        lines: list[str] = []
        m, s = n, self.inner
        for number, p in enumerate(factors):
            m //= p
            left = len(factors) - 1 - number
            to = target if left % 2 == 0 else work
            lines += self._pass(p, m, s, source, to, inverse, scale if left == 0 else "")
            source, s = to, s * p
        return lines

    def _copied(self, source: Place, target: Place, count: int, scale: str) -> list[str]:
        (ar, ai), (br, bi) = source.at("q"), target.at("q")
        by = f" * {scale}" if scale else ""
        return [f"for q in range({count}):", f"    {br} = {ar}{by}", f"    {bi} = {ai}{by}"]

    def _pass(self, p: int, m: int, s: int, source: Place, target: Place, inverse: bool, scale: str) -> list[str]:
        lines = []
        if m > 1:
            j = np.arange(m)
            start = self.tabled(np.concatenate([roots(j * r, p * m) for r in range(1, p)]))
            for r in range(1, p):
                at = f"{start + 2 * (r - 1) * m} + 2 * j"
                lines += [f"wr{r} = w[{at}]", f"wi{r} = w[{at} + 1]"]
        inner = []
        at = "j" if s == 1 else f"q + {s} * j"
        for k in range(p):
            re, im = source.at(f"{at} + {s * m * k}" if k else at)
            inner += [f"ar{k} = {re}", f"ai{k} = {im}"]
        inner += butterfly(p, self.kind, inverse)
        to = f"{p} * j" if s == 1 else f"q + {s * p} * j"
        for r in range(p):
            re, im = target.at(f"{to} + {s * r}" if r else to)
            values = _turned(r, inverse) if m > 1 and r else (f"br{r}", f"bi{r}")
            by = [f"({v}) * {scale}" if scale else v for v in values]
            inner += [f"{re} = {by[0]}", f"{im} = {by[1]}"]
        if s > 1:
            inner = [f"for q in range({s}):", *indented(inner)]
        return [f"for j in range({m}):", *indented([*lines, *inner])]

    def _bluestein(self, n: int, source: Place, target: Place, work: Place, more: Place, scale: str) -> list[str]:
        """x_k = sum_j a_j e^(-+2 pi i j k / n), with j k = (j^2 + k^2 - (k - j)^2) / 2: a convolution of a_j c_j with
        the chirp conj(c_j), c_j = e^(-+pi i j^2 / n)."""
        length, inner = convolution_length(n), self.inner
        j = np.arange(n, dtype=object)
        chirp = roots(np.array([int(x) % (2 * n) for x in j * j]), 2 * n)
        if self.inverse:
            chirp = chirp.conj()
        other = np.zeros(length, chirp.dtype)
        other[:n] = chirp.conj()
        other[length - n + 1 :] = chirp.conj()[1:][::-1]
        at_chirp, at_other = self.tabled(chirp), self.tabled(np.fft.fft(other) / length)
        factors = factors_of(length)
        assert factors is not None
        q = f"for q in range({inner}):"
        lines = [f"for j in range({n}):", f"    wr1 = w[{at_chirp} + 2 * j]", f"    wi1 = w[{at_chirp} + 2 * j + 1]"]
        (ar, ai), (br, bi) = source.at(f"j * {inner} + q"), work.at(f"j * {inner} + q")
        lines += indented([q, f"    ar0 = {ar}", f"    ai0 = {ai}", *indented(_stored(br, bi, "ar0", "ai0"))])
        lines += [f"for q in range({n * inner}, {length * inner}):"]
        br, bi = work.at("q")
        lines += [f"    {br} = {self.kind}(0)", f"    {bi} = {self.kind}(0)"]
        odd = len(factors) % 2  # after an odd number of passes the result is in the other buffer
        there = more if odd else work
        lines += self._ping_pong(length, factors, work, more, False)
        lines += [
            f"for j in range({length}):", f"    wr1 = w[{at_other} + 2 * j]", f"    wi1 = w[{at_other} + 2 * j + 1]",
        ]  # fmt: skip
        br, bi = there.at(f"j * {inner} + q")
        lines += indented([q, f"    ar0 = {br}", f"    ai0 = {bi}", *indented(_stored(br, bi, "ar0", "ai0"))])
        here = work if odd else more
        lines += self._ping_pong(length, factors, there, here, True)
        last = here if odd else there
        lines += [f"for j in range({n}):", f"    wr1 = w[{at_chirp} + 2 * j]", f"    wi1 = w[{at_chirp} + 2 * j + 1]"]
        (ar, ai), (br, bi) = last.at(f"j * {inner} + q"), target.at(f"j * {inner} + q")
        lines += indented([q, f"    ar0 = {ar}", f"    ai0 = {ai}", *indented(_stored(br, bi, "ar0", "ai0", scale))])
        return lines

    def _ping_pong(self, n: int, factors: list[int], first: Place, second: Place, inverse: bool) -> list[str]:
        lines: list[str] = []
        m, s = n, self.inner
        for p in factors:
            m //= p
            lines += self._pass(p, m, s, first, second, inverse, "")
            first, second, s = second, first, s * p
        return lines


def _stored(re: str, im: str, ar: str, ai: str, scale: str = "") -> list[str]:
    """A product with wr1 + i wi1."""
    by = f" * {scale}" if scale else ""
    return [f"{re} = ({ar} * wr1 - {ai} * wi1){by}", f"{im} = ({ar} * wi1 + {ai} * wr1){by}"]


def _turned(r: int, inverse: bool) -> tuple[str, str]:
    """b_r times the root w_r, or its conjugate."""
    minus, plus = ("+", "-") if inverse else ("-", "+")
    return f"br{r} * wr{r} {minus} bi{r} * wi{r}", f"bi{r} * wr{r} {plus} br{r} * wi{r}"


def butterfly(p: int, kind: str, inverse: bool) -> list[str]:
    """b = the transform of length p of a."""
    if p == 2:
        return ["br0 = ar0 + ar1", "bi0 = ai0 + ai1", "br1 = ar0 - ar1", "bi1 = ai0 - ai1"]
    if p == 4:
        one, three = (3, 1) if inverse else (1, 3)
        return [
            "tr0 = ar0 + ar2", "ti0 = ai0 + ai2", "tr1 = ar0 - ar2", "ti1 = ai0 - ai2",
            "tr2 = ar1 + ar3", "ti2 = ai1 + ai3", "tr3 = ar1 - ar3", "ti3 = ai1 - ai3",
            "br0 = tr0 + tr2", "bi0 = ti0 + ti2", "br2 = tr0 - tr2", "bi2 = ti0 - ti2",
            f"br{one} = tr1 + ti3", f"bi{one} = ti1 - tr3", f"br{three} = tr1 - ti3", f"bi{three} = ti1 + tr3",
        ]  # fmt: skip
    return list(_odd(p, kind, inverse))


def _odd(p: int, kind: str, inverse: bool) -> Iterator[str]:
    half = range(1, p // 2 + 1)
    for k in half:
        for part in "ri":
            yield f"t{part}{k} = a{part}{k} + a{part}{p - k}"
            yield f"d{part}{k} = a{part}{k} - a{part}{p - k}"
    for part in "ri":
        yield f"b{part}0 = a{part}0 + {' + '.join(f't{part}{k}' for k in half)}"
    for r in half:
        factors = roots(np.array(half) * r, p).astype(np.complex128)  # rounded once: that of a third of a turn is -0.5
        cosine = [f"{kind}({c!r})" for c in factors.real.tolist()]
        sine = [f"{kind}({-s!r})" for s in factors.imag.tolist()]
        for part in "ri":
            yield f"c{part} = a{part}0 + " + " + ".join(f"{c} * t{part}{k}" for k, c in zip(half, cosine, strict=True))
            yield f"e{part} = " + " + ".join(f"{s} * d{part}{k}" for k, s in zip(half, sine, strict=True))
        one, other = (p - r, r) if inverse else (r, p - r)
        yield f"br{one} = cr + ei"
        yield f"bi{one} = ci - er"
        yield f"br{other} = cr - ei"
        yield f"bi{other} = ci + er"
