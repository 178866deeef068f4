"""`hloom.scipy.stats`: distributions, each a module with SciPy's functions, and statistics of samples.

Distributions are loaded when they are first used.
"""

import typing as _typing

from ...namespaces import publish as _publish
from . import families, kde, log_densities, samples
from .kde import (
    gaussian_kde as gaussian_kde,
)
from .samples import (
    mode as mode,
    rankdata as rankdata,
    sem as sem,
)

if _typing.TYPE_CHECKING:
    from . import (
        bernoulli as bernoulli,
        beta as beta,
        betabinom as betabinom,
        binom as binom,
        cauchy as cauchy,
        chi2 as chi2,
        dirichlet as dirichlet,
        expon as expon,
        gamma as gamma,
        gennorm as gennorm,
        geom as geom,
        gumbel_l as gumbel_l,
        gumbel_r as gumbel_r,
        laplace as laplace,
        logistic as logistic,
        multinomial as multinomial,
        multivariate_normal as multivariate_normal,
        nbinom as nbinom,
        norm as norm,
        pareto as pareto,
        poisson as poisson,
        t as t,
        truncnorm as truncnorm,
        uniform as uniform,
        vonmises as vonmises,
        wrapcauchy as wrapcauchy,
    )

_DISTRIBUTIONS = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]
__all__: list[str] = [*_DISTRIBUTIONS]
__all__ += kde.__all__
__all__ += samples.__all__

del families, kde, log_densities, samples

_publish(__name__, *_DISTRIBUTIONS)
