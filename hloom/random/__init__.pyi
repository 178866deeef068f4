from .choosing import categorical as categorical, choice as choice, permutation as permutation
from .continuous import (
    exponential as exponential, gumbel as gumbel, laplace as laplace, logistic as logistic, normal as normal,
    truncated_normal as truncated_normal, uniform as uniform,
)
from .counts import binomial as binomial, geometric as geometric, multinomial as multinomial, poisson as poisson
from .discrete import bernoulli as bernoulli, bits as bits, rademacher as rademacher, randint as randint
from .gammas import (
    ball as ball, beta as beta, chisquare as chisquare, dirichlet as dirichlet, f as f, gamma as gamma,
    generalized_normal as generalized_normal, loggamma as loggamma, random_gamma_p as random_gamma_p, t as t,
)
from .keys import (
    clone as clone, fold_in as fold_in, Key as Key, key as key, key_data as key_data, key_dtype as key_dtype,
    key_impl as key_impl, PRNGKey as PRNGKey, split as split, wrap_key_data as wrap_key_data,
)
from .multivariate import multivariate_normal as multivariate_normal, orthogonal as orthogonal
from .transformed import (
    cauchy as cauchy, double_sided_maxwell as double_sided_maxwell, lognormal as lognormal, maxwell as maxwell,
    pareto as pareto, rayleigh as rayleigh, triangular as triangular, wald as wald, weibull_min as weibull_min,
)
