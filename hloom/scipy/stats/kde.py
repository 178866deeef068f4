"""Densities estimated from samples. Names and semantics follow jax.scipy.stats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import numpy as jnp
from ... import random
from ...numpy.promotion import check_arraylike, promote_dtypes_inexact
from ...tracer import dtypes
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tree_util import register_pytree_node_class
from ..linalg import solve_triangular
from ..special import logsumexp, ndtr

BandwidthMethod = None | str | Any | Callable[[Any], Any]


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from a sample: the mean of normal densities around its points. Its methods can be traced.

    Args:
      dataset: points as columns of an array [d, n], or n numbers.
      bw_method: "scott" (None), "silverman", a factor, or a function of the estimate that returns the factor by which
        the sample's standard deviation is multiplied.
      weights: of the points, n numbers.

    >>> density = stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0]))
    >>> density(jnp.array([1.0, 10.0])).round(3)
    Array([0.211, 0.   ], dtype=float32)
    >>> density.integrate_box_1d(-jnp.inf, 2.0).round(3)
    Array(0.608, dtype=float32)
    """

    neff: Value
    dataset: Value
    weights: Value
    covariance: Value
    inv_cov: Value

    __slots__ = ("covariance", "dataset", "inv_cov", "neff", "weights")

    def __init__(self, dataset: Any, bw_method: BandwidthMethod = None, weights: Any = None) -> None:
        check_arraylike("gaussian_kde", dataset)
        points = jnp.atleast_2d(dataset)
        if dtypes.is_complex(points.dtype):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if not points.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        size, count = points.shape
        if weights is None:
            (points,) = promote_dtypes_inexact(points)
            shares = jnp.full(count, 1.0 / count, points.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            points, shares = promote_dtypes_inexact(points, weights)
            shares = jnp.atleast_1d(shares)
            if shares.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if len(shares) != count:
                raise ValueError(f"`weights` input should be of length n = {count}, not {len(shares)}")
            shares = shares / shares.sum()
        self._set(neff=1 / jnp.square(shares).sum(), dataset=points, weights=shares)
        factor = self._factor(bw_method, size)
        covariance = jnp.atleast_2d(jnp.cov(points, rowvar=True, bias=False, aweights=shares))
        self._set(covariance=covariance * factor**2, inv_cov=jnp.linalg.inv(covariance) / factor**2)

    def _factor(self, method: BandwidthMethod, size: int) -> Any:
        if method is None or (isinstance(method, str) and method == "scott"):
            return self.neff ** (-1.0 / (size + 4))
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (size + 2) / 4.0) ** (-1.0 / (size + 4))
        if not isinstance(method, str) and jnp.isscalar(method):
            return method
        if callable(method):
            return method(self)
        raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"gaussian_kde cannot be changed: {name!r} is set when it is made")

    def __repr__(self) -> str:
        return f"gaussian_kde({self.n} points of dimension {self.d})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        made = cls.__new__(cls)
        made._set(**dict(zip(("neff", "dataset", "weights", "covariance", "inv_cov"), children)))
        return made

    @property
    def d(self) -> int:
        """The dimension of the points.

        >>> stats.gaussian_kde(jnp.zeros((2, 5)) + jnp.arange(5.0) ** jnp.array([[1.0], [2.0]])).d
        2
        """
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of points.

        >>> stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0])).n
        4
        """
        return int(self.dataset.shape[1])

    def evaluate(self, points: Any) -> Value:
        """The density at points, columns of an array [d, m] or m numbers.

        >>> density = stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0]))
        >>> density.evaluate(jnp.array([1.0, 10.0])).round(3)
        Array([0.211, 0.   ], dtype=float32)
        """
        return _kernel_sums(self, self._columns("evaluate", points), False)

    def __call__(self, points: Any) -> Value:
        """`evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: Any) -> Value:
        """`evaluate`.

        >>> stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0])).pdf(jnp.array([1.0])).round(3)
        Array([0.211], dtype=float32)
        """
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Value:
        """The logarithm of the density.

        >>> density = stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0]))
        >>> density.logpdf(jnp.array([1.0])).round(1)
        Array([-1.6], dtype=float32)
        """
        return _kernel_sums(self, self._columns("logpdf", x), True)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Value:
        """The integral of the density times a normal density.

        >>> density = stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0]))
        >>> density.integrate_gaussian(1.0, 0.25).round(3)
        Array(0.202, dtype=float32)
        """
        centre, matrix = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if centre.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if matrix.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return (_normal_density(self.dataset - centre[:, None], self.covariance + matrix) * self.weights).sum()

    def integrate_box_1d(self, low: Any, high: Any) -> Value:
        """The probability of the interval [low, high], of an estimate of numbers.

        >>> density = stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0]))
        >>> density.integrate_box_1d(-jnp.inf, jnp.inf).round(3)
        Array(1., dtype=float32)
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        return _interval(self, low, high)

    def integrate_kde(self, other: gaussian_kde) -> Value:
        """The integral of the product of two densities.

        >>> density = stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0]))
        >>> density.integrate_kde(density).round(3)
        Array(0.144, dtype=float32)
        """
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        differences = self.dataset[:, :, None] - other.dataset[:, None, :]
        densities = _normal_density(differences.reshape(self.d, -1), self.covariance + other.covariance)
        return (densities.reshape(self.n, other.n) * self.weights[:, None] * other.weights).sum()

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Value:
        """Points drawn from the density, of shape (d, *shape).

        >>> from hloom import numpy as jnp, random
        >>> from hloom.scipy import stats
        >>> density = stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5, 4.0]))
        >>> density.resample(random.key(0), (1000,)).shape
        (1, 1000)
        """
        choice_key, noise_key = random.split(key)
        chosen = random.choice(choice_key, self.n, shape=shape, p=self.weights)
        zeros = jnp.zeros(self.d, self.covariance.dtype)
        noise = random.multivariate_normal(noise_key, zeros, self.covariance, shape=shape, dtype=self.dataset.dtype)
        return self.dataset[:, chosen] + noise.T

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Value:
        """NotImplementedError, as in JAX."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: BandwidthMethod = None) -> None:
        """NotImplementedError, as in JAX."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported: make another estimate")

    def _columns(self, name: str, points: Any) -> Value:
        check_arraylike(name, points)
        columns: Value = jnp.atleast_2d(points)
        if dtypes.is_complex(columns.dtype):
            raise NotImplementedError("gaussian_kde does not support complex coordinates")
        size, count = columns.shape
        if size != self.d:
            if size == 1 and count == self.d:
                return columns.reshape(self.d, 1)
            raise ValueError(f"points have dimension {size}, dataset has dimension {self.d}")
        return columns


def _normal_density(differences: Any, covariance: Any) -> Value:
    """The normal density of this covariance at the columns of an array."""
    factor = jnp.linalg.cholesky(covariance)
    white = solve_triangular(factor, differences, lower=True)
    scale = (2 * math.pi) ** (0.5 * differences.shape[0]) * jnp.diagonal(factor).prod()
    result: Value = jnp.exp(-0.5 * jnp.square(white).sum(0)) / scale
    return result


@compound(static=("logarithm",))
def _kernel_sums(kde: Any, points: Any, logarithm: bool) -> Value:
    """The sum of weighted kernels at each point: the squared distances are between whitened points."""
    dataset, weights, points, precision = promote_dtypes_inexact(kde.dataset, kde.weights, points, kde.inv_cov)
    whitening = jnp.linalg.cholesky(precision).T
    sample, places = whitening @ dataset, whitening @ points
    constant = jnp.log(jnp.diagonal(whitening)).sum() - 0.5 * dataset.shape[0] * math.log(2 * math.pi)
    squares = sum(jnp.square(p[:, None] - s) for p, s in zip(places, sample))
    exponents = constant - 0.5 * squares
    result: Value
    if logarithm:
        result = logsumexp(jnp.log(weights) + exponents, 1)
    else:
        result = (jnp.exp(exponents) * weights).sum(1)
    return result


@compound()
def _interval(kde: Any, low: Any, high: Any) -> Value:
    sigma = jnp.sqrt(kde.covariance[0, 0])
    upper, lower = ((limit - kde.dataset[0]) / sigma for limit in (high, low))
    result: Value = (kde.weights * (ndtr(upper) - ndtr(lower))).sum()
    return result
