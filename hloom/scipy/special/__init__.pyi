from ...nn.normalization import logsumexp as logsumexp
from .bessel import bessel_jn as bessel_jn, i0 as i0, i0e as i0e, i1 as i1, i1e as i1e
from .error_functions import (
    dawsn as dawsn, erf as erf, erfc as erfc, erfcinv as erfcinv, erfcx as erfcx, erfinv as erfinv,
    fresnel as fresnel, log_ndtr as log_ndtr, ndtr as ndtr, ndtri as ndtri, owens_t as owens_t, wofz as wofz,
)
from .exponential_integrals import exp1 as exp1, expi as expi, expn as expn, sici as sici, spence as spence
from .gamma_functions import (
    bernoulli as bernoulli, beta as beta, betainc as betainc, betaln as betaln, comb as comb, digamma as digamma,
    factorial as factorial, gamma as gamma, gammainc as gammainc, gammaincc as gammaincc, gammaln as gammaln,
    gammasgn as gammasgn, loggamma as loggamma, multigammaln as multigammaln, poch as poch, polygamma as polygamma,
    zeta as zeta,
)
from .harmonics import lpmn_values as lpmn_values, sph_harm_y as sph_harm_y
from .hypergeometric import hyp1f1 as hyp1f1, hyp2f1 as hyp2f1
from .logarithms import (
    boxcox as boxcox, boxcox1p as boxcox1p, entr as entr, expit as expit, kl_div as kl_div,
    log_softmax as log_softmax, logit as logit, rel_entr as rel_entr, softmax as softmax, xlog1py as xlog1py,
    xlogy as xlogy,
)
