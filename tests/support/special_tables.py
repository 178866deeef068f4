"""How the coefficients in `hloom/lax/special_tables.py` were made: expansions by mpmath, rounded to float64.

    python tests/support/special_tables.py > hloom/lax/special_tables.py

`tests/scipy/test_special_tables.py` compares the two.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

import mpmath as mp

Function = Callable[[mp.mpf], mp.mpf]
_DIGITS = 60


def chebyshev(f: Function, low: float, high: float, count: int) -> list[mp.mpf]:
    """Coefficients of T_0, T_1, ... in (x - middle) / half; the first one is whole."""
    n = 2 * count
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    angles = [mp.pi * (k + mp.mpf(1) / 2) / n for k in range(n)]
    values = [f(middle + half * mp.cos(t)) for t in angles]
    found = [2 * mp.fsum(v * mp.cos(j * t) for v, t in zip(values, angles)) / n for j in range(count)]
    return [found[0] / 2, *found[1:]]


def powers(f: Function, low: float, high: float, count: int) -> list[mp.mpf]:
    """The same polynomial in powers of x - middle, constant term first."""
    half = (mp.mpf(high) - low) / 2
    total = [mp.mpf(0)] * count
    before, current = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    for c in chebyshev(f, low, high, count):
        for k, p in enumerate(before):
            total[k] += c * p
        following = [mp.mpf(0), *[2 * p for p in current]]
        for k, p in enumerate(before):
            following[k] -= p
        before, current = current, following
    return [c / half**k for k, c in enumerate(total)]


def temme(terms: int, degree: int) -> list[list[mp.mpf]]:
    """The polynomials c_k(eta) of DLMF 8.12.9, as rows of coefficients d[k][n], each row two shorter.

    d[k][n] = (-1)**k g[k] d[0][n] + (n + 2) d[k-1][n+2] (8.12.12), where g are Stirling's coefficients (5.11.4).
    """
    size = degree + 2 * terms + 4
    # mu - log(1 + mu) = eta**2 / 2, so mu mu' = eta (1 + mu): the coefficients of mu = sum a[n] eta**n
    a = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, size):
        inner = mp.fsum(a[j] * a[n + 1 - j] * (n + 1 - j) for j in range(2, n))
        a.append((a[n - 1] - inner) / (n + 1))
    # 1 / mu = (1 / eta) / (1 + a[2] eta + ...) = 1 / eta + sum d[0][n] eta**n
    shifted = a[1:]
    inverse = [mp.mpf(1)]
    for n in range(1, size - 1):
        inverse.append(-mp.fsum(shifted[j] * inverse[n - j] for j in range(1, n + 1)))
    rows = [inverse[1:]]
    g = stirling(terms)
    for k in range(1, terms):
        last = rows[-1]
        rows.append([(-1) ** k * g[k] * rows[0][n] + (n + 2) * last[n + 2] for n in range(len(last) - 2)])
    return [row[: max(degree - 2 * k, 2)] for k, row in enumerate(rows)]


def stirling(count: int) -> list[mp.mpf]:
    """The coefficients of Gamma(a) ~ sqrt(2 pi / a) (a/e)**a * sum g[k] / a**k: exp of Stirling's series."""
    log = [mp.mpf(0)] * (count + 1)
    for j in range(1, count + 1, 2):
        log[j] = mp.bernoulli(j + 1) / (j * (j + 1))
    g = [mp.mpf(1)]
    for k in range(1, count):
        g.append(mp.fsum(j * log[j] * g[k - j] for j in range(1, k + 1)) / k)
    return g


def scaled_erfc(t: mp.mpf) -> mp.mpf:
    """(1 + 2 x) exp(x**2) erfc(x), where t = (x - 3.75) / (x + 3.75)."""
    if t >= 1:
        return 2 / mp.sqrt(mp.pi)
    x = mp.mpf(15) / 4 * (1 + t) / (1 - t)
    if x > 60:
        series = mp.fsum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(20))
        return (1 + 2 * x) * series / (x * mp.sqrt(mp.pi))
    with mp.workdps(_DIGITS + int(x * x / 2.3) + 10):
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


DAWSON_ROOT = "0.9241388730045917670128232715043459756962915599351639175978106336366765"
DIGAMMA_ROOT = "1.46163214496836234126265954232572132846819620400644629512959840859878644035380181024307499273372559"


def tables() -> Iterator[tuple[str, str, list[mp.mpf] | list[list[mp.mpf]]]]:
    """(name, comment, coefficients)"""
    with mp.workdps(_DIGITS):
        gamma = powers(lambda e: mp.loggamma(2 + e) / e if e else 1 - mp.euler, -0.5, 0.5, 18)
        yield "LOG_GAMMA", "log Gamma(2 + e) / e on [-0.5, 0.5]", gamma
        tail = [mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, 11)]
        yield "STIRLING", "DLMF 5.11.1: x * (log Gamma(x) - (x - 0.5) log x + x - log(2 pi) / 2), in 1 / x**2", tail
        root = mp.mpf(DIGAMMA_ROOT)
        high = mp.mpf(float(root))
        yield "DIGAMMA_ROOT", "where digamma is 0, as a sum", [high, root - high]
        psi = powers(lambda y: mp.digamma(y) / (y - root), 1, 2, 21)
        yield "DIGAMMA", "digamma(x) / (x - root) on [1, 2], in x - 1.5", psi
        yield (
            "DIGAMMA_TAIL",
            "DLMF 5.11.2: log x - 1 / (2 x) - digamma(x), in 1 / x**2, without the constant term 0",
            [mp.bernoulli(2 * k) / (2 * k) for k in range(1, 11)],
        )
        yield "TEMME", "DLMF 8.12.12: a row for each power of 1 / a, in powers of eta", temme(12, 23)
        yield (
            "ERFCX",
            "(1 + 2 x) exp(x**2) erfc(x), Chebyshev in (x - 3.75) / (x + 3.75)",
            chebyshev(scaled_erfc, -1, 1, 28),
        )
        for order in (0, 1):
            yield (
                f"I{order}_NEAR",
                f"exp(-x) I{order}(x)" + (" / x" if order else "") + ", Chebyshev in x / 4 - 1",
                (
                    chebyshev(
                        lambda x, n=order: mp.exp(-x) * (mp.besseli(n, x) / x if n and x else mp.besseli(n, x)),
                        0,
                        8,
                        30,
                    )
                ),
            )
            yield (
                f"I{order}_FAR",
                f"sqrt(x) exp(-x) I{order}(x), Chebyshev in 16 / x - 1",
                chebyshev(lambda v, n=order: _far_bessel(n, v), 0, mp.mpf(1) / 8, 26),
            )
        yield (
            "I0_LESS_I1_NEAR",
            "exp(-x) (I0(x) - I1(x)), Chebyshev in x / 4 - 1",
            chebyshev(lambda x: mp.exp(-x) * (mp.besseli(0, x) - mp.besseli(1, x)), 0, 8, 30),
        )
        yield (
            "I0_LESS_I1_FAR",
            "x**1.5 exp(-x) (I0(x) - I1(x)), Chebyshev in 16 / x - 1",
            chebyshev(lambda v: (_far_bessel(0, v) - _far_bessel(1, v)) / v, 0, mp.mpf(1) / 8, 26),
        )
        for which in ("F", "G"):
            yield (
                f"SICI_{which}",
                f"x f(x), x**2 g(x) of DLMF 6.2.17 and 6.2.18 ({which}), Chebyshev in 8 / x - 1",
                chebyshev(lambda v, w=which: _auxiliary_of_sici(w, v), 0, mp.mpf(1) / 4, 32),
            )
            yield (
                f"FRESNEL_{which}",
                f"pi x f(x), pi**2 x**3 g(x) of DLMF 7.2.10 and 7.2.11 ({which}), Chebyshev in 16 / (pi x**2) - 1",
                chebyshev(lambda v, w=which: _auxiliary_of_fresnel(w, v), 0, mp.mpf(1) / 4, 32),
            )
        yield (
            "DAWSON",
            "(1 + 2 x**2) F(x) / x of Dawson's integral F, Chebyshev in (x**2 - 12) / (x**2 + 12)",
            chebyshev(_dawson, -1, 1, 52),
        )
        root = mp.mpf(DAWSON_ROOT)
        high = mp.mpf(float(root))
        yield "DAWSON_ROOT", "where F'(x) is 0, as a sum", [high, root - high]
        yield (
            "DAWSON_SLOPE",
            "(1 + 2 x**2)**2 F'(x) / (root**2 - x**2), Chebyshev in (x**2 - 12) / (x**2 + 12)",
            chebyshev(_dawson_slope, -1, 1, 40),
        )
        yield "EXP1", "x exp(x) E1(x) for x >= 1, Chebyshev in (x - 4) / (x + 2)", chebyshev(_exp1, -1, 1, 29)
        yield (
            "EI_MIDDLE",
            "x exp(-x) Ei(x) for 6 <= x <= 20, Chebyshev in (120 / x - 13) / 7",
            chebyshev(_ei, mp.mpf(1) / 20, mp.mpf(1) / 6, 28),
        )
        yield "EI_FAR", "x exp(-x) Ei(x) for x >= 20, Chebyshev in 40 / x - 1", chebyshev(_ei, 0, mp.mpf(1) / 20, 26)
        yield (
            "NDTRI_MIDDLE",
            "y(p) / (p - 1/2) of the inverse y of ndtr for |p - 1/2| <= 0.4, Chebyshev in (p - 1/2)**2 / 0.08 - 1",
            chebyshev(_ndtri_middle, 0, mp.mpf("0.16"), 20),
        )
        yield (
            "NDTRI_TAIL",
            "-y for p from 1e-46 to 0.1, Chebyshev in the logarithm of sqrt(-2 log p) from log 2.1459 to log 14.6",
            chebyshev(lambda s: -_ndtri_of_log(-mp.exp(2 * s) / 2), mp.log("2.1459"), mp.log("14.6"), 18),
        )
        # the coefficients of zeta's Euler-Maclaurin sum
        yield "ZETA_TAIL", "DLMF 25.11.28: B(2 k) / (2 k)!", [mp.bernoulli(2 * k) / mp.fac(2 * k) for k in range(1, 13)]


def _auxiliary_of_sici(which: str, v: mp.mpf) -> mp.mpf:
    """DLMF 6.2.17 and 6.2.18, without their powers of x."""
    x = 1 / v
    s, c = mp.pi / 2 - mp.si(x), mp.ci(x)
    if which == "F":
        return x * (c * mp.sin(x) + s * mp.cos(x))
    return x**2 * (s * mp.sin(x) - c * mp.cos(x))


def _auxiliary_of_fresnel(which: str, v: mp.mpf) -> mp.mpf:
    """DLMF 7.2.10 and 7.2.11, without their powers of x; v = 2 / (pi x**2)."""
    u = 1 / v
    x = mp.sqrt(2 * u / mp.pi)
    s, c = mp.mpf(1) / 2 - mp.fresnels(x), mp.mpf(1) / 2 - mp.fresnelc(x)
    if which == "F":
        return mp.pi * x * (s * mp.cos(u) - c * mp.sin(u))
    return mp.pi**2 * x**3 * (c * mp.cos(u) + s * mp.sin(u))


def _dawson(t: mp.mpf) -> mp.mpf:
    z = 12 * (1 + t) / (1 - t)
    if z > 900:
        return (1 + 2 * z) / (2 * z) * mp.fsum(mp.fac2(2 * k - 1) / (2 * z) ** k for k in range(100))
    x = mp.sqrt(z)
    with mp.workdps(_DIGITS + int(z / 2)):
        return (1 + 2 * z) / x * mp.sqrt(mp.pi) / 2 * mp.exp(-z) * mp.erfi(x)


def _dawson_slope(t: mp.mpf) -> mp.mpf:
    z = 12 * (1 + t) / (1 - t)
    if z > 900:
        slope = -mp.fsum(mp.fac2(2 * k - 1) / (2 * z) ** k for k in range(1, 100))
    else:
        with mp.workdps(_DIGITS + int(z / 2)):
            slope = 1 - mp.sqrt(mp.pi * z) * mp.exp(-z) * mp.erfi(mp.sqrt(z))
    return (1 + 2 * z) ** 2 * slope / (mp.mpf(DAWSON_ROOT) ** 2 - z)


def _exp1(t: mp.mpf) -> mp.mpf:
    x = (4 + 2 * t) / (1 - t)
    return x * mp.exp(x) * mp.e1(x)


def _ei(v: mp.mpf) -> mp.mpf:
    if v < mp.mpf(1) / 300:
        return mp.fsum(mp.fac(k) * v**k for k in range(100))
    return mp.exp(-1 / v) * mp.ei(1 / v) / v


def _ndtri_of_log(log_p: mp.mpf) -> mp.mpf:
    """The y where log(ndtr(y)) is log_p, by Newton's method."""
    y = -mp.sqrt(-2 * log_p)
    for _ in range(100):
        value = mp.ncdf(y)
        step = (mp.log(value) - log_p) * value / mp.npdf(y)
        y -= step
        if abs(step) < mp.mpf(10) ** (6 - _DIGITS):
            return y
    raise ValueError(f"no inverse of ndtr found at log p = {log_p}")


def _ndtri_middle(z: mp.mpf) -> mp.mpf:
    """y / (p - 1/2) where z is (p - 1/2)**2."""
    away = mp.sqrt(z)
    return -_ndtri_of_log(mp.log(mp.mpf(1) / 2 - away)) / away


def _far_bessel(order: int, v: mp.mpf) -> mp.mpf:
    x = 1 / v
    return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)


def text() -> str:
    lines = ['"""Coefficients of special functions. Made by `tests/support/special_tables.py`, which says how."""', ""]
    lines.append("# fmt: off")
    for name, comment, rows in tables():
        lines += [f"# {comment}", f"{name} = ("]
        if isinstance(rows[0], list):
            for row in rows:
                body = ", ".join(repr(float(c)) for c in row)
                lines.append(textwrap.fill(f"({body}),", 120, initial_indent="    ", subsequent_indent="     "))
        else:
            body = ", ".join(repr(float(c)) for c in rows)
            lines.append(textwrap.fill(f"{body},", 120, initial_indent="    ", subsequent_indent="    "))
        lines.append(")")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(text(), end="")
