"""`hloom.scipy.stats.norm`: the normal distribution."""

from __future__ import annotations

import math

from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import log_ndtr, ndtr, ndtri
from .families import Continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


_family = Continuous(
    "norm",
    "the normal distribution of mean loc and standard deviation scale",
    ([-1.0, 0.0, 2.0],),
    log_density=lambda y: -0.5 * y * y - 0.5 * math.log(2 * math.pi),
    cdf_formula=ndtr,
    sf_formula=lambda y: ndtr(-y),
    logcdf_formula=log_ndtr,
    logsf_formula=lambda y: log_ndtr(-y),
    ppf_formula=ndtri,
    isf_formula=lambda q: -ndtri(q),
)


@compound()
@_family.documented("[-1.419, -0.919, -2.919]")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.242, 0.399, 0.054]")
cdf = _family.also(logpdf, "cdf", "[0.159, 0.5  , 0.977]")
logcdf = _family.also(logpdf, "logcdf", "[-1.841, -0.693, -0.023]")
sf = _family.also(logpdf, "sf", "[0.841, 0.5  , 0.023]")
logsf = _family.also(logpdf, "logsf", "[-0.173, -0.693, -3.783]")
ppf = _family.also(logpdf, "ppf", "[  -inf, -0.674,  0.   ]")
isf = _family.also(logpdf, "isf", "[  inf, 0.674, 0.   ]")


_publish(__name__)
