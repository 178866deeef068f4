"""Special functions and distributions with mpmath's meaning of each, and the arguments at which they are compared.

A row is (function, reference, axes): the arguments are all combinations of the axes. Where arguments are no numbers of
the function's domain the reference gives None, and the combination is left out.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

from hloom.scipy import special, stats

inf = math.inf


@dataclass(frozen=True)
class Row:
    """`fixed`: how many of the first arguments have no derivative. `digits`: of mpmath, for values and derivatives.
    `inside`: whether a point is of the domain. `noise`: how many units of rounding of its terms, numbers near 1 or the
    result, a value may be away; without it only a relative error is allowed."""

    function: Callable[..., Any]
    reference: Callable[..., Any]
    axes: tuple[tuple[float, ...], ...]
    fixed: int = 0
    digits: int = 100
    inside: Callable[..., bool] = lambda *arguments: True
    noise: float = 0.0

    def points(self) -> Iterator[tuple[float, ...]]:
        """Arguments that are float32 numbers where that type has them."""
        for point in itertools.product(*self.axes):
            short = tuple(_short(x) for x in point)
            if self.inside(*short):
                yield short

    def exact(self, point: tuple[float, ...]) -> list[Any]:
        """The value, and the derivatives by all arguments: differences of values to both sides, or, at the end of the
        domain, to one side."""
        with mp.workdps(self.digits):
            arguments = [mp.mpf(x) for x in point]
            found = [mp.mpf(mp.re(self.reference(*arguments)))]
            for k in range(self.fixed, len(point)):
                step = mp.mpf(10) ** (-self.digits // 3) * (abs(arguments[k]) or mp.mpf(10) ** -35)
                sides = []
                for sign in (1, -1):
                    moved = [x + sign * step * (i == k) for i, x in enumerate(arguments)]
                    if self.inside(*moved):
                        sides.append((sign, mp.re(self.reference(*moved))))
                if len(sides) == 2:
                    found.append((sides[0][1] - sides[1][1]) / (2 * step))
                else:
                    found.append(sides[0][0] * (sides[0][1] - found[0]) / step)
            return found


def _short(x: float) -> float:
    with np.errstate(all="ignore"):
        y = float(np.float32(x))
    return y if 1e-37 < abs(y) < 1e37 else x


LINE = (
    -1e20,
    -300.0,
    -30.0,
    -5.0,
    -1.25,
    -1.0,
    -0.5,
    -1e-5,
    -1e-30,
    1e-30,
    1e-5,
    0.5,
    1.0,
    1.25,
    3.0,
    5.0,
    30.0,
    300.0,
    1e20,
)
HALF = (1e-30, 1e-10, 1e-3, 0.25, 0.9999999, 1.0, 1.0000001, 1.5, 2.0, 4.0, 10.0, 100.0, 1e5, 1e10, 1e20)


def only(low: float, high: float, axis: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(x for x in axis if low <= x <= high)


def _near_integers(low: int, high: int) -> tuple[float, ...]:
    return tuple(k + e for k in range(low, high) for e in (-1e-3, 1e-3, 0.25, 0.5))


def _spence(x: Any) -> Any:
    return mp.re(mp.polylog(2, 1 - x))


def _ndtri(p: Any) -> Any:
    return mp.sqrt(2) * _erfinv(2 * p - 1)


def _erfinv(y: Any) -> Any:
    if abs(y) < mp.mpf("0.99"):
        return mp.erfinv(y)
    q = 1 - abs(y)
    x = mp.sqrt(-mp.log(q))
    for _ in range(60):
        moved = x + (mp.erfc(x) - q) * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        if abs(moved - x) < abs(x) * mp.mpf(10) ** (5 - mp.mp.dps):
            break
        x = moved
    return mp.sign(y) * x


def _expit(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _xlogy(x: Any, y: Any) -> Any:
    return x * mp.log(y) if x else mp.mpf(0)


def _boxcox(x: Any, power: Any) -> Any:
    return mp.expm1(power * mp.log(x)) / power if power else mp.log(x)


def _log_beta(a: Any, b: Any) -> Any:
    return mp.re(mp.loggamma(a)) + mp.re(mp.loggamma(b)) - mp.re(mp.loggamma(a + b))


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _owens_t(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), mp.linspace(0, a, 5)) / (2 * mp.pi)


def _bessel(scaled: bool, order: int) -> Callable[[Any], Any]:
    return lambda x: mp.besseli(order, x) * (mp.exp(-abs(x)) if scaled else 1)


BELOW = _near_integers(-4, 0) + (-30.5, -30.001, -170.3, -1000.5)
GAMMA_LINE = BELOW + (-1e-30, -1e-5) + HALF
POCH_LINE = tuple(x for x in GAMMA_LINE[::2] if abs(x) > 1e-10)
BETA_LINE = only(-40, 1e15, GAMMA_LINE)[::2]
SPECIAL: dict[str, Row] = {
    "erf": Row(special.erf, mp.erf, (LINE,)),
    "erfc": Row(special.erfc, mp.erfc, (only(-1e3, 25, LINE),)),
    "erfcx": Row(
        special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), (only(-20, 1e30, LINE) + (2000.0, 1e5, 1e8),), digits=200
    ),
    "erfinv": Row(special.erfinv, _erfinv, ((-0.9999999, -0.5, -1e-30, 1e-30, 1e-5, 0.5, 0.99, 0.9999999),)),
    "dawsn": Row(
        special.dawsn,
        lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        (only(-400, 1e6, LINE) + (1e4, 1e6),),
        digits=120,
    ),
    "fresnel S": Row(
        lambda x: special.fresnel(x)[0], mp.fresnels, (only(-400, 400, LINE) + (1e4 + 1 / 3, 1e6 + 1 / 3),), noise=16
    ),
    "fresnel C": Row(
        lambda x: special.fresnel(x)[1], mp.fresnelc, (only(-400, 400, LINE) + (1e4 + 1 / 3, 1e6 + 1 / 3),), noise=16
    ),
    "ndtr": Row(special.ndtr, mp.ncdf, (only(-35, 1e30, LINE),), digits=700),
    "log_ndtr": Row(
        special.log_ndtr, lambda x: mp.log(mp.ncdf(x)), (only(-1e7, 300, LINE) + (-1e4, -1e6, 8.0, 12.0),), digits=700
    ),
    "ndtri": Row(special.ndtri, _ndtri, ((1e-30, 1e-5, 0.1, 0.25, 0.5, 0.500001, 0.75, 0.9999, 0.9999999),), digits=60),
    "owens_t": Row(special.owens_t, _owens_t, ((-1.25, 1e-5, 0.5), (-5.0, -1.0, 1e-5, 0.5, 1.0, 3.0)), digits=60),
    "exp1": Row(special.exp1, mp.e1, (only(0, 600, HALF) + (30.0, 80.0, 600.0),)),
    "expi": Row(special.expi, mp.ei, (only(-600, 600, LINE) + (0.3725074, -80.0, 80.0, 600.0),), noise=1),
    "expn": Row(
        special.expn,
        lambda n, x: mp.expint(n, x),
        ((0.0, 1.0, 2.0, 5.0, 50.0, 1e5), only(0, 600, HALF) + (80.0,)),
        fixed=1,
    ),
    "sici S": Row(lambda x: special.sici(x)[0], mp.si, (only(-400, 400, LINE) + (1e5,),)),
    "sici C": Row(
        lambda x: special.sici(x)[1],
        lambda x: mp.ci(abs(x)),
        (
            only(-400, 400, LINE)
            + (
                0.6165055,
                1e5,
            ),
        ),
        noise=1,
    ),
    "spence": Row(
        special.spence,
        _spence,
        (
            only(0, 1e25, HALF)
            + (
                0.5,
                2.0000002,
            ),
        ),
        digits=120,
    ),
    "gammaln": Row(special.gammaln, lambda x: mp.re(mp.loggamma(x)), (GAMMA_LINE,)),
    "gamma": Row(
        special.gamma,
        mp.gamma,
        (
            only(-150, 170, GAMMA_LINE)
            + (
                -170.3,
                170.0,
            ),
        ),
    ),
    "digamma": Row(special.digamma, mp.digamma, (GAMMA_LINE,)),
    "polygamma": Row(
        special.polygamma,
        lambda n, x: mp.polygamma(int(n), x),
        ((0, 1, 2, 3, 5, 20), only(-40, 1e30, GAMMA_LINE)),
        fixed=1,
        digits=100,
    ),
    "zeta": Row(special.zeta, mp.zeta, ((1.0000001, 1.5, 2.0, 20.0, 100.0), HALF[2:]), digits=120),
    "zeta, negative": Row(special.zeta, mp.zeta, ((2.0, 3.0, 20.0, 171.0), BELOW[:-2]), fixed=1, digits=110),
    "zeta of x": Row(
        special.zeta,
        mp.zeta,
        (BELOW + only(-1e-30, 200, (-1e-30, -1e-5) + HALF),),
        inside=lambda x: x != 1 and x > -1000,
    ),
    "factorial": Row(special.factorial, mp.factorial, (only(0, 170, HALF) + (160.5,),)),
    "beta": Row(special.beta, mp.beta, (BETA_LINE, HALF[::3] + (-0.25, -2.75, 0.3))),
    "betaln": Row(special.betaln, _log_beta, (only(0, 1e30, BETA_LINE), HALF[::3] + (-0.25, -2.75, 0.3))),
    "poch": Row(
        special.poch, mp.rf, (only(-30, 1e5, POCH_LINE), (-2.5, -1.0, 1e-30, 1e-5, 0.5, 1.0, 3.0, 12.5, 40.25))
    ),
    "comb": Row(
        special.comb, mp.binomial, ((3.5, 10.0, 100.0, 1e5, 1e10, 1e20), (1e-30, 1e-5, 0.5, 1.0, 3.0)), digits=120
    ),
    "multigammaln": Row(
        lambda x: special.multigammaln(x, 3),
        lambda x: mp.mpf("1.5") * mp.log(mp.pi) + sum(mp.loggamma(x - mp.mpf(k) / 2) for k in range(3)),
        ((1.0001, 1.5, 2.0, 1e5, 1e20),),
    ),
    "gammainc": Row(
        special.gammainc,
        lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        ((1e-10, 0.25, 1.0, 2.5, 10.0, 25.0, 100.0, 1e4), (1e-30, 1e-3, 0.25, 1.0, 10.0, 25.0, 80.0, 110.0)),
        digits=350,
    ),
    "gammaincc": Row(
        special.gammaincc,
        lambda a, x: 1 - mp.gammainc(a, 0, x, regularized=True),  # the other integral takes 50 times as long
        ((1e-10, 0.25, 1.0, 2.5, 10.0, 25.0, 100.0, 1e4), (1e-30, 1e-3, 0.25, 1.0, 10.0, 25.0, 80.0, 110.0)),
        digits=700,
    ),
    "betainc": Row(
        special.betainc,
        _betainc,
        ((1e-5, 0.25, 1.0, 2.5, 30.0), (1e-5, 0.25, 1.0, 7.0, 30.0), (1e-10, 0.1, 0.5, 0.9, 0.9999999)),
        digits=350,
    ),
    "i0": Row(special.i0, _bessel(False, 0), (only(-600, 600, LINE),), digits=120),
    "i0e": Row(special.i0e, _bessel(True, 0), (only(-600, 600, LINE) + (1e4,),), digits=120),
    "i1": Row(special.i1, _bessel(False, 1), (only(-600, 600, LINE),), digits=120),
    "i1e": Row(special.i1e, _bessel(True, 1), (only(-600, 600, LINE) + (1e4,),), digits=120),
    "expit": Row(special.expit, _expit, (only(-600, 600, LINE),), digits=400, noise=16),
    "logit": Row(
        special.logit,
        lambda x: mp.log(x) - mp.log1p(-x),
        ((1e-300, 1e-30, 1e-5, 0.25, 0.4999999, 0.5, 0.5000001, 0.75, 0.9999999),),
    ),
    "entr": Row(special.entr, lambda x: -x * mp.log(x), (HALF,)),
    "rel_entr": Row(special.rel_entr, lambda p, q: p * mp.log(p / q), (HALF, HALF)),
    "kl_div": Row(special.kl_div, lambda p, q: p * mp.log(p / q) - p + q, (HALF, HALF), noise=16),
    "xlogy": Row(special.xlogy, _xlogy, ((0.0, -3.0, 1e-30, 1.0, 1e20), HALF)),
    "xlog1py": Row(
        special.xlog1py,
        lambda x, y: x * mp.log1p(y),
        ((0.0, -3.0, 1e-30, 1.0, 1e20), HALF + (-1e-30, -0.5, -0.9999999)),
    ),
    "boxcox": Row(
        special.boxcox,
        _boxcox,
        (HALF, (-2.0, -1e-5, -1e-10, -1e-30, 0.0, 1e-30, 1e-10, 1e-5, 0.5, 1.0, 3.0)),
        digits=200,
    ),
    "boxcox1p": Row(
        special.boxcox1p,
        lambda x, p: _boxcox(1 + x, p),
        (HALF + (-1e-30, -0.5, -0.9999999), (-2.0, -1e-5, -1e-10, -1e-30, 0.0, 1e-30, 1e-10, 1e-5, 0.5, 1.0, 3.0)),
        digits=150,
    ),
    "hyp1f1": Row(
        special.hyp1f1,
        mp.hyp1f1,
        (
            (-2.5, -2.0, 1e-10, 0.5, 1.0, 1.5, 30.0),
            (-1.5, 1e-5, 0.5, 1.0, 1.5, 40.0),
            (-80.0, -3.0, -1e-10, 1e-30, 0.5, 3.0, 80.0),
        ),
        noise=256,
        inside=lambda a, b, x: a < 20 or x > -20,
        digits=110,
    ),
    "hyp2f1": Row(
        special.hyp2f1,
        mp.hyp2f1,
        (
            (-2.5, -2.0, 1e-10, 1.0, 1.5),
            (-0.5, 1.0, 4.25),
            (-1.5, 0.5, 1.0, 2.5),
            (-30.0, -1.25, -1e-10, 0.25, 0.51, 0.75, 0.9999),
        ),
        noise=256,
        digits=80,
    ),
    **{
        f"bessel_jn {v}": Row(
            lambda x, v=v: special.bessel_jn(x, v=v)[v],
            lambda x, v=v: mp.besselj(v, x),
            # numbers near 0 are smaller than the steps of mpmath's derivative
            (tuple(x for x in only(-400, 400, LINE) if x == 0 or abs(x) > 1e-20) + (2.4048256, 3.8317059, 1e4),),
        )
        for v in (0, 1, 5, 60)
    },
}


# ---- distributions


def _log_normal(y: Any) -> Any:
    return -y * y / 2 - mp.log(2 * mp.pi) / 2


def _log_gamma_density(y: Any, a: Any) -> Any:
    return (a - 1) * mp.log(y) - y - mp.loggamma(a)


def _log_beta_density(y: Any, a: Any, b: Any) -> Any:
    return (a - 1) * mp.log(y) + (b - 1) * mp.log1p(-y) - _log_beta(a, b)


def _log_t(y: Any, df: Any) -> Any:
    return (
        mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2 - (df + 1) / 2 * mp.log1p(y * y / df)
    )


def _log_binomial(n: Any, k: Any) -> Any:
    return mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)


def _log_truncated(y: Any, a: Any, b: Any) -> Any:
    return _log_normal(y) - mp.log(mp.ncdf(b) - mp.ncdf(a))


def _truncated(y: Any, a: Any, b: Any) -> Any:
    return (mp.ncdf(y) - mp.ncdf(a)) / (mp.ncdf(b) - mp.ncdf(a))


def _lower_gamma(y: Any, a: Any) -> Any:
    return mp.gammainc(a, 0, y, regularized=True)


def _upper_gamma(y: Any, a: Any) -> Any:
    return mp.gammainc(a, y, mp.inf, regularized=True)


def _gennorm_cdf(y: Any, beta: Any) -> Any:
    upper = mp.gammainc(1 / beta, abs(y) ** beta, mp.inf, regularized=True) / 2
    return 1 - upper if y > 0 else upper


def _family(
    name: str,
    axes: tuple[tuple[float, ...], ...],
    density: Callable[..., Any],
    lower: Callable[..., Any] | None = None,
    upper: Callable[..., Any] | None = None,
    quantile: Callable[..., Any] | None = None,
    digits: int = 100,
) -> dict[str, Row]:
    """Rows for all functions of a distribution, of the standard one and with a location and a scale."""
    module = getattr(stats, name)
    discrete = hasattr(module, "pmf")
    rows: dict[str, Row] = {}

    def row(function: str, reference: Callable[..., Any], axes: Any) -> None:
        if not hasattr(module, function):
            return
        called = getattr(module, function)
        if discrete:
            rows[f"{name}.{function}"] = Row(called, reference, axes, fixed=1, digits=digits, noise=64)
            return
        placed = (
            (lambda x, *p: reference((x - p[-2]) / p[-1], *p[:-2]))
            if function not in ("ppf", "isf")
            else (lambda q, *p: reference(q, *p[:-2]) * p[-1] + p[-2])
        )
        if "loc" not in inspect.signature(called).parameters:
            rows[f"{name}.{function}"] = Row(called, reference, axes, digits=digits, noise=64)
            return
        if function in ("logpdf", "pdf"):
            standard = placed
            placed = (
                (lambda *a: standard(*a) - mp.log(a[-1])) if function == "logpdf" else (lambda *a: standard(*a) / a[-1])
            )
        rows[f"{name}.{function}"] = Row(called, placed, (*axes, (0.0,), (1.0,)), digits=digits, noise=64)

    row("logpmf" if discrete else "logpdf", density, axes)
    row("pmf" if discrete else "pdf", lambda *a: mp.exp(density(*a)), axes)
    if lower is not None and upper is not None:
        row("cdf", lower, axes)
        row("sf", upper, axes)
        row("logcdf", lambda *a: mp.log(lower(*a)), axes)
        row("logsf", lambda *a: mp.log(upper(*a)), axes)
    if quantile is not None:
        levels = ((1e-30, 1e-5, 0.25, 0.5, 0.75, 0.9999999), *axes[1:])
        row("ppf", quantile, levels)
        row("isf", lambda q, *a: quantile(1 - q, *a), levels)
    return rows


def _named(suffix: str, rows: dict[str, Row]) -> dict[str, Row]:
    return {f"{name} {suffix}": row for name, row in rows.items()}


WIDE = (-1e4, -30.0, -5.0, -1.0, -1e-5, -1e-30, 1e-30, 1e-5, 0.5, 1.0, 5.0, 30.0, 1e4)
MIDDLE = (-30.0, -5.0, -1.0, -1e-5, 1e-30, 1e-5, 0.5, 1.0, 5.0, 30.0)
POSITIVE = (1e-30, 1e-5, 0.5, 1.0, 2.5, 30.0, 1e4)
SHAPES = (1e-5, 0.5, 1.0, 2.5, 100.0, 1e4)
UNIT = (1e-30, 1e-5, 0.25, 0.5, 0.75, 0.9999999)
COUNTS = (0.0, 1.0, 5.0, 1e3, 1e5)

STATS: dict[str, Row] = {
    **_family("norm", (WIDE[1:-1],), _log_normal, mp.ncdf, lambda y: mp.ncdf(-y), _ndtri, digits=250),
    **_family(
        "cauchy",
        ((-1e20,) + WIDE + (1e20,),),
        lambda y: -mp.log(mp.pi * (1 + y * y)),
        lambda y: mp.atan2(1, -y) / mp.pi,
        lambda y: mp.atan2(1, y) / mp.pi,
        lambda q: -1 / mp.tan(mp.pi * q),
    ),
    **_family(
        "expon", (POSITIVE[:-1],), lambda y: -y, lambda y: -mp.expm1(-y), lambda y: mp.exp(-y), lambda q: -mp.log1p(-q)
    ),
    **_family("gamma", (POSITIVE + (9.9e3, 1.02e4), SHAPES), _log_gamma_density, digits=80),
    **{
        k: v
        for k, v in _family(
            "gamma", (POSITIVE[1:-1], SHAPES[:4]), _log_gamma_density, _lower_gamma, _upper_gamma, digits=150
        ).items()
        if "pdf" not in k
    },
    **_family(
        "chi2",
        (POSITIVE + (9.9e3, 1.02e4), SHAPES),
        lambda y, df: _log_gamma_density(y / 2, df / 2) - mp.log(2),
        digits=80,
    ),
    **{
        k: v
        for k, v in _family(
            "chi2",
            (POSITIVE[1:-1], SHAPES[:4]),
            _log_gamma_density,
            lambda y, d: _lower_gamma(y / 2, d / 2),
            lambda y, d: _upper_gamma(y / 2, d / 2),
            digits=150,
        ).items()
        if "pdf" not in k
    },
    **_family("beta", (UNIT, SHAPES + (1e10, 1e15), SHAPES + (1e10, 1e15)), _log_beta_density, digits=120),
    **{
        k: v
        for k, v in _family(
            "beta",
            (UNIT[1:], SHAPES[:4], SHAPES[:4]),
            _log_beta_density,
            lambda y, a, b: _betainc(a, b, y),
            lambda y, a, b: mp.betainc(a, b, y, 1, regularized=True),
            digits=200,
        ).items()
        if "pdf" not in k
    },
    **_family(
        "gumbel_r",
        (only(-5, 30, WIDE),),
        lambda y: -y - mp.exp(-y),
        lambda y: mp.exp(-mp.exp(-y)),
        lambda y: -mp.expm1(-mp.exp(-y)),
        lambda q: -mp.log(-mp.log(q)),
        digits=200,
    ),
    **_family(
        "gumbel_l",
        (only(-30, 5, WIDE),),
        lambda y: y - mp.exp(y),
        lambda y: -mp.expm1(-mp.exp(y)),
        lambda y: mp.exp(-mp.exp(y)),
        lambda q: mp.log(-mp.log1p(-q)),
        digits=200,
    ),
    **_family(
        "laplace",
        (MIDDLE,),
        lambda y: -abs(y) - mp.log(2),
        lambda y: 1 - mp.exp(-y) / 2 if y > 0 else mp.exp(y) / 2,
        lambda y: mp.mpf(0),
    ),
    **_family(
        "logistic",
        (MIDDLE,),
        lambda y: -y - 2 * mp.log1p(mp.exp(-y)),
        _expit,
        lambda y: _expit(-y),
        lambda q: mp.log(q) - mp.log1p(-q),
    ),
    **_family(
        "pareto",
        ((1.0000001, 1.5, 30.0, 1e10, 1e20), (1e-5, 0.5, 1.0, 3.5)),
        lambda y, b: mp.log(b) - (b + 1) * mp.log(y),
        lambda y, b: 1 - y**-b,
        lambda y, b: y**-b,
        lambda q, b: (1 - q) ** (-1 / b),
        digits=150,
    ),
    **_family("t", ((-1e10,) + WIDE, SHAPES + (1e10, 1e20)), _log_t, digits=120),
    **_family(
        "truncnorm",
        ((3.25, 4.0, 4.75), (-1.0, 3.0), (5.0, 8.0)),
        _log_truncated,
        _truncated,
        lambda y, a, b: 1 - _truncated(y, a, b),
    ),
    **_named(
        "tail",
        _family(
            "truncnorm",
            ((-39.9, -38.1), (-40.0,), (-38.0, 1.0)),
            _log_truncated,
            _truncated,
            lambda y, a, b: 1 - _truncated(y, a, b),
            digits=400,
        ),
    ),
    **_family("uniform", ((1e-30, 0.5, 0.9999999),), lambda y: mp.mpf(0), lambda y: y, lambda y: 1 - y, lambda q: q),
    **_family(
        "gennorm",
        (only(-5, 5, WIDE), (0.1, 0.5, 1.0, 2.0, 5.0)),
        lambda y, b: mp.log(b / 2) - mp.loggamma(1 / b) - abs(y) ** b,
        _gennorm_cdf,
        lambda y, b: mp.mpf(0),
    ),
    **_family(
        "vonmises",
        ((-3.0, -1e-5, 1e-30, 1e-3, 0.5, 3.0), (1e-30, 1e-5, 0.5, 8.0, 100.0, 600.0)),
        lambda y, k: k * mp.cos(y) - mp.log(2 * mp.pi * mp.besseli(0, k)),
        digits=120,
    ),
    **_family(
        "wrapcauchy",
        ((1e-30, 1e-5, 0.5, 3.0, 6.28), (1e-30, 1e-5, 0.5, 0.9999999)),
        lambda y, c: mp.log1p(-c * c) - mp.log(2 * mp.pi * (1 + c * c - 2 * c * mp.cos(y))),
    ),
    **_family("bernoulli", ((0.0, 1.0), UNIT), lambda k, p: mp.log(p) if k else mp.log1p(-p)),
    **_family(
        "binom", (COUNTS, (1e5, 3e5), UNIT), lambda k, n, p: _log_binomial(n, k) + _xlogy(k, p) + (n - k) * mp.log1p(-p)
    ),
    **_family(
        "betabinom",
        (COUNTS, (1e5, 3e5), (0.5, 2.0, 1e5), (1.0, 3.0, 1e5)),
        lambda k, n, a, b: _log_binomial(n, k) + _log_beta(k + a, n - k + b) - _log_beta(a, b),
    ),
    **_family("geom", (COUNTS[1:], UNIT), lambda k, p: (k - 1) * mp.log1p(-p) + mp.log(p)),
    **_family(
        "nbinom",
        (COUNTS, (0.5, 1.0, 1e3, 1e5), UNIT),
        lambda k, n, p: mp.loggamma(k + n) - mp.loggamma(k + 1) - mp.loggamma(n) + n * mp.log(p) + k * mp.log1p(-p),
    ),
    **_family(
        "poisson",
        (COUNTS, (1e-30, 1e-5, 0.5, 1.0, 30.0, 1e3, 9.9e4, 1e5)),
        lambda k, mu: _xlogy(k, mu) - mp.loggamma(k + 1) - mu,
    ),
}
