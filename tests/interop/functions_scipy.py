"""jax.scipy: special functions, distributions, signals, images, clusters, integrals."""

from __future__ import annotations

from functools import partial

import numpy as np

from .cases import bf16, c64, case, cases, f32, f64, positive, s32, spd, unit

special = partial(cases, within="scipy.special")

special("erf erfc erfcx expit i0 i0e i1 i1e ndtr log_ndtr dawsn entr", f32(3, 5))
special("gamma gammaln loggamma digamma spence exp1 expi factorial gammasgn fresnel sici", positive(11))
special("erfinv logit ndtri", unit(11))
special("erf erfinv ndtri gammaln log_ndtr", f64(11, low=0.1, high=0.9), label="f64")
special("erf expit", bf16(11), label="bf16")
special(
    "beta betaln boxcox boxcox1p comb kl_div rel_entr xlogy xlog1py poch zeta gammainc gammaincc owens_t",
    f32(9, low=1.2, high=5),
    positive(9),
)
case("scipy.special.betainc", positive(9), positive(9), unit(9))
case("scipy.special.bernoulli", call=lambda f: f(6))
case("scipy.special.bessel_jn", positive(5), v=3)
case("scipy.special.expn", s32(5, low=1, high=5), positive(5))
case("scipy.special.hyp1f1", positive(5), positive(5), f32(5))
case("scipy.special.hyp2f1", positive(5), positive(5), f32(5, low=4.5, high=6), unit(5))
special("logsumexp softmax log_softmax", f32(3, 5), axis=1)
case("scipy.special.logsumexp", f32(3, 5), label="sign", call=lambda f, x: f(x, b=x, return_sign=True))
case("scipy.special.multigammaln", f32(5, low=3, high=7), d=3)
case("scipy.special.polygamma", np.array([0, 1, 2, 3], np.int32), positive(4))
case("scipy.special.sph_harm_y", s32(3, low=1, high=4), s32(3, low=0, high=2), f32(3), f32(3), n_max=4)
special("wofz", c64(5))

X, N, P = f32(7), s32(7, low=0, high=8), unit(7)
A, B = f32(7, low=1.1, high=3), f32(7, low=1.1, high=3)
DISTRIBUTIONS = {
    "norm": ("cdf logcdf logpdf logsf pdf sf", (X, f32(7), B)),
    "cauchy": ("cdf logcdf logpdf logsf pdf sf", (X, f32(7), B)),
    "expon": ("cdf logcdf logpdf logsf pdf sf", (positive(7),)),
    "gumbel_l": ("cdf logcdf logpdf logsf pdf sf", (X,)),
    "gumbel_r": ("cdf logcdf logpdf logsf pdf sf", (X,)),
    "logistic": ("cdf logpdf pdf sf", (X,)),
    "laplace": ("cdf logpdf pdf", (X,)),
    "pareto": ("cdf logcdf logpdf logsf pdf sf", (f32(7, low=1.5, high=9), A)),
    "beta": ("cdf logcdf logpdf logsf pdf sf", (P, A, B)),
    "chi2": ("cdf logcdf logpdf logsf pdf sf", (positive(7), A)),
    "gamma": ("cdf logcdf logpdf logsf pdf sf", (positive(7), A)),
    "gennorm": ("cdf logpdf pdf", (X, A)),
    "t": ("logpdf pdf", (X, A)),
    "truncnorm": ("cdf logcdf logpdf logsf pdf sf", (f32(7), np.float32(-1.5), np.float32(1.7))),
    "uniform": ("cdf logpdf pdf", (X,)),
    "vonmises": ("logpdf pdf", (X, A)),
    "wrapcauchy": ("logpdf pdf", (f32(7, low=0, high=6), P)),
    "bernoulli": ("cdf logpmf pmf", (s32(7, low=-1, high=3), P)),
    "betabinom": ("logpmf pmf", (N, np.int32(9), A, B)),
    "binom": ("logpmf pmf", (N, np.int32(9), P)),
    "geom": ("logpmf pmf", (N, P)),
    "nbinom": ("logpmf pmf", (N, np.int32(5), P)),
    "poisson": ("cdf logpmf pmf", (N, A)),
    "dirichlet": ("logpdf pdf", (np.array([0.2, 0.3, 0.5], np.float32), positive(3))),
    "multinomial": ("logpmf pmf", (np.array([2, 1, 4], np.int32), np.int32(7), np.array([0.2, 0.3, 0.5], np.float32))),
    "multivariate_normal": ("logpdf pdf", (f32(4, 3), f32(3), spd(3, 3))),
}  # fmt: skip
for distribution, (names, arguments) in DISTRIBUTIONS.items():
    cases(names, *arguments, within=f"scipy.stats.{distribution}")
for distribution in ("norm", "cauchy", "gumbel_l", "gumbel_r", "logistic", "expon", "uniform"):
    cases("ppf", unit(7), within=f"scipy.stats.{distribution}")
cases("isf", unit(7), within="scipy.stats.norm")
case("scipy.stats.poisson.entropy", A)
case("scipy.stats.mode", s32(3, 7, low=0, high=3), axis=1)
case("scipy.stats.rankdata", s32(9, low=0, high=5))
case("scipy.stats.sem", f32(3, 5))
case("scipy.stats.gaussian_kde", f32(9), f32(4), call=lambda f, data, x: f(data).evaluate(x))

signal = partial(cases, within="scipy.signal")
signal("convolve correlate fftconvolve", f32(7), f32(4), mode="same")
signal("convolve2d correlate2d", f32(5, 6), f32(3, 2))
signal("detrend", f32(3, 8), type="linear")
signal("csd", f32(32), f32(32), nperseg=16)
signal("welch stft", f32(32), nperseg=16)
signal("istft", c64(9, 5))
case(
    "scipy.ndimage.map_coordinates",
    f32(5, 6),
    f32(2, 7, low=-2, high=7),
    call=lambda f, x, c: f(x, list(c), order=1, mode="nearest"),
)
case(
    "scipy.ndimage.map_coordinates",
    f32(5, 6),
    f32(2, 7, low=-2, high=7),
    label="wrap",
    call=lambda f, x, c: f(x, list(c), order=0, mode="wrap"),
)
case("scipy.cluster.vq.vq", f32(6, 2), f32(3, 2))
case("scipy.integrate.trapezoid", f32(3, 6), dx=0.5)
case(
    "scipy.interpolate.RegularGridInterpolator", f32(4, 5), f32(6, 2, low=0, high=3),
    call=lambda f, values, x: f((np.arange(4.0, dtype=np.float32), np.arange(5.0, dtype=np.float32)), values)(x),
)  # fmt: skip
case("scipy.spatial.transform.Rotation.from_quat", f32(4), f32(3), call=lambda f, q, v: f(q).apply(v))
case("scipy.spatial.transform.Rotation.from_rotvec", f32(3), call=lambda f, v: f(v).as_matrix())
