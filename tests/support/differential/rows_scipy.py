"""The rows of `hloom.scipy`."""

from __future__ import annotations

from .rows_numpy import Lines

SPECIAL: Lines = (
    ("positive", "bessel_jn:two"),
    (
        "x",
        "i0 dawsn digamma entr erf erfc erfcx erfinv exp1 expi expit fresnel gamma gammaln gammasgn i0 i0e i1 "
        "i1e log_ndtr loggamma logit ndtr ndtri sici spence wofz factorial",
    ),
    ("positive", "digamma exp1 expi gamma gammaln loggamma spence factorial"),
    ("unit", "erfinv logit ndtri entr spence"),
    ("x y", "xlog1py xlogy kl_div rel_entr owens_t boxcox boxcox1p comb beta betaln poch"),
    ("positive positive_s", "beta betaln boxcox boxcox1p gammainc gammaincc kl_div rel_entr comb poch zeta owens_t"),
    ("positive positive_s unit_s", "betainc hyp1f1"),
    ("n1 positive", "expn polygamma"),
    ("n", "bernoulli"),
    ("positive {1|2|3}", "multigammaln"),
    ("x1 axis?A keepdims?b", "logsumexp"),
    ("x1 axis?a", "softmax log_softmax"),
    ("x1 b=s axis?A return_sign?b", "logsumexp"),
    ("unit unit_s unit_s unit_s", "hyp2f1"),
)

STATS: dict[str, Lines] = {
    "bernoulli": (("counts float01", "pmf logpmf"), ("x float01", "cdf"), ("unit float01", "ppf")),
    "beta": (("x positive_s positive_s y p", "cdf logcdf logpdf logsf pdf sf"),
             ("unit positive_s positive_s", "cdf logcdf logpdf logsf pdf sf")),
    "betabinom": (("counts n1 p p", "pmf logpmf"),),
    "binom": (("counts n1 float01", "pmf logpmf"),),
    "cauchy": (("x y p", "cdf logcdf logpdf logsf pdf sf"), ("unit y p", "ppf isf")),
    "chi2": (("x p y p", "cdf logcdf logpdf logsf pdf sf"), ("positive positive_s", "cdf logcdf logpdf logsf pdf sf")),
    "expon": (("x y p", "cdf logcdf logpdf logsf pdf sf"), ("unit y p", "ppf")),
    "gamma": (("x p y p", "cdf logcdf logpdf logsf pdf sf"), ("positive positive_s", "cdf logcdf logpdf logsf pdf sf")),
    "gennorm": (("x p", "cdf logpdf pdf"),),
    "geom": (("counts float01", "pmf logpmf"),),
    "gumbel_l": (("x y p", "cdf logcdf logpdf logsf pdf sf"), ("unit y p", "ppf")),
    "gumbel_r": (("x y p", "cdf logcdf logpdf logsf pdf sf"), ("unit y p", "ppf")),
    "laplace": (("x y p", "cdf logpdf pdf"),),
    "logistic": (("x y p", "cdf logpdf pdf sf"), ("unit y p", "ppf isf")),
    "nbinom": (("counts n1 float01", "pmf logpmf"),),
    "norm": (("x y p", "cdf logcdf logpdf logsf pdf sf"), ("unit y p", "ppf isf")),
    "pareto": (("x p y p", "cdf logcdf logpdf logsf pdf sf"), ("unit p", "ppf")),
    "poisson": (("counts p n", "pmf logpmf cdf"), ("positive", "entropy")),
    "t": (("x p y p", "pdf logpdf"),),
    "truncnorm": (("x :-1.5 :2.0 y p", "cdf logcdf logpdf logsf pdf sf"),),
    "uniform": (("x y p", "cdf pdf logpdf"), ("unit y p", "ppf")),
    "vonmises": (("x p", "pdf logpdf"),),
    "wrapcauchy": (("positive float01", "pdf logpdf"),),
}  # fmt: skip
STATS_FUNCTIONS: Lines = (
    ("x axis?a keepdims?b", "mode"),
    ("x method?{average|min|max|dense|ordinal} axis?a", "rankdata"),
    ("x axis?a ddof?n keepdims?b", "sem"),
)

LINALG: Lines = (
    ("spd rhs", "cho_solve:of"),
    ("square rhs {0|1|2}", "lu_solve:of"),
    ("square", "expm_frechet:of qr_multiply:of"),
    ("square rhs", "solve_sylvester:of"),
    ("v", "eigh_tridiagonal:of"),
    ("[m]", "block_diag"),
    ("square", "det inv expm lu lu_factor qr schur hessenberg sqrtm polar svd rsf2csf:schur"),
    ("spd lower?b", "cholesky cho_factor"),
    ("hermitian lower?b eigvals_only?b", "eigh"),
    ("square rhs", "solve"),
    ("spd rhs assume_a={pos} lower?b", "solve"),
    ("square rhs trans?{0|1|2|T|C} lower?b unit_diagonal?b", "solve_triangular"),
    ("matrix mode?{full|r|economic}", "qr"),
    ("matrix full_matrices?b compute_uv?b", "svd"),
    ("matrix permute_l?b", "lu"),
    ("v", "circulant companion fiedler fiedler_companion hankel toeplitz"),
    ("v v", "toeplitz hankel leslie:of"),
    ("v n1 mode?{full|valid|same}", "convolution_matrix"),
    ("n1 {sqrtn|n|None}", "dft"),
    ("n1", "hilbert invhilbert invpascal pascal helmert dft"),
    ("n1 {symmetric|lower|upper}", "pascal invpascal"),
    ("{1|2|4|8} dtype?dtype", "hadamard"),
    ("n1 full?b", "helmert"),
    ("square side?{right|left}", "polar"),
)

SIGNAL: Lines = (
    ("x1", "welch:short stft:short"),
    ("v s", "csd:short"),
    ("v v mode?{full|same|valid}", "convolve correlate fftconvolve"),
    ("m m mode?{full|same|valid}", "convolve2d correlate2d convolve correlate fftconvolve"),
    ("x1 axis?a type?{linear|constant}", "detrend"),
)

NDIMAGE: Lines = (("m {0|1} mode?{constant|nearest|wrap|mirror|reflect} cval?p", "map_coordinates:of"),)
FFT: Lines = (
    ("x1 type=:2 n?n1 axis?a norm?{ortho|None}", "dct idct"),
    ("x1 type=:2 axes?axes norm?{ortho|None}", "dctn idctn"),
)
INTEGRATE: Lines = (("x1 axis=a dx?p", "trapezoid"),)
CLUSTER: Lines = (("m m", "vq"),)
