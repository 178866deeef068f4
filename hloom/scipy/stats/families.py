"""The common parts of distributions: arguments, the support, locations and scales, and parameters that are not allowed.

    _family = Continuous("expon", "the exponential distribution", ([-1.0, 1.0, 4.0],), low=0.0, cdf_formula=...)

    @compound()
    @_family.documented("[-inf,  -1.,  -4.]")
    def logpdf(x, loc=0, scale=1):
        return _family.logpdf(x, loc, scale)

    cdf = _family.also(logpdf, "cdf", "[0.   , 0.632, 0.982]")

A distribution is a module with SciPy's functions, as in JAX. They hand their arguments to the module's family, which
knows the standard distribution (location 0, scale 1) as formulas, and how each function is documented. Formulas see
only points of the support, so that derivatives are finite where values are. Outside of it densities are 0 and
distribution functions 0 or 1; for parameters that are not allowed, for scales that are not positive and for NaN the
result is NaN, as in SciPy.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from ... import numpy as jnp
from ...hlo.support.records import dataclass
from ...tracer.compound import Compound
from ...tracer.core import Value
from ..special.promoting import real

F = TypeVar("F", bound=Callable[..., Any])
Formula = Callable[..., Any]
"""formula(y, *shapes)"""


def _allowed(*shapes: Any) -> Any:
    return True


_ARGUMENTS = "The arguments broadcast and become floating-point numbers of one dtype, which the result has too."
_TEXTS = {
    "logpdf": "The logarithm of the density of {} at x; -inf outside of its support.",
    "pdf": "The density of {} at x; 0 outside of its support.",
    "cdf": "The probability of values up to x, by {}.",
    "logcdf": "The logarithm of the probability of values up to x, by {}.",
    "sf": "The probability of values above x, by {}: 1 - cdf, accurate where it is small.",
    "logsf": "The logarithm of the probability of values above x, by {}.",
    "ppf": "The quantile at {x} of {}: the inverse of cdf. NaN outside of [0, 1].",
    "isf": "The value above which the probability is {x}, by {}: the inverse of sf. NaN outside of [0, 1].",
    "pmf": "The probability of k: {}; 0 unless k - loc is an integer of the support.",
    "logpmf": "The logarithm of the probability of k: {}; -inf unless k - loc is an integer of the support.",
}


@dataclass(frozen=True)
class _Family:
    """A family of distributions, which documents the functions of its module.

    text: the distribution, in the words of a sentence.
    example: the arguments of the examples: points, and the shapes.
    """

    name: str
    text: str
    example: tuple[Any, ...]

    def documented(self, shown: str) -> Callable[[F], F]:
        """A decorator of a function of the distribution. shown: the elements that its example prints."""

        def decorate(function: F) -> F:
            name, x = function.__name__, next(iter(inspect.signature(function).parameters))
            points, *shapes = self.example
            if name in ("ppf", "isf"):
                points = [0.0, 0.25, 0.5]
            text = textwrap.fill(_TEXTS[name].format(self.text, x=x), 120, initial_indent=" " * 7)[7:]
            arguments = ", ".join([f"jnp.array({points})", *map(str, shapes)])
            call = f">>> stats.{self.name}.{name}({arguments}).round(3)"
            function.__doc__ = f"{text}\n\n{_ARGUMENTS}\n\n{call}\nArray({shown}, dtype=float32)\n"
            return function

        return decorate

    def also(self, first: F, name: str, shown: str, level: str = "q") -> F:
        """Another function of the distribution: the family's method `name`, with the parameters of `first`, their
        types and defaults, and compound as it is. `level`: the name of a quantile's first parameter. `inspect` shows
        the text of the method."""
        compound = cast("Compound", first)
        plain = cast("FunctionType", compound.__wrapped__)
        parameters = list(plain.__code__.co_varnames[: plain.__code__.co_argcount])
        if name in ("ppf", "isf"):
            parameters[0] = level
        given = ", ".join(parameters)
        text = f"lambda {given}: _family.{name}({given}{'' if 'loc' in parameters else ', 0, 1'})"
        made = eval(compile(text, __file__, "eval"), {"_family": self, "__name__": __name__})
        made.__name__ = made.__qualname__ = name
        made.__defaults__ = plain.__defaults__
        made.__annotations__ = dict(zip([*parameters, "return"], plain.__annotations__.values(), strict=True))
        made.__module__ = plain.__module__
        made.__signature__ = inspect.signature(made)  # not that of the method
        made.__wrapped__ = getattr(type(self), name)
        return cast(F, compound.with_function(self.documented(shown)(made)))


@dataclass(frozen=True)
class Continuous(_Family):
    """A family of densities.

    low, high: the ends of the support of the standard distribution, numbers or functions of the shapes.
    inner: a point of the support, a number or a function of the shapes.
    valid: which shapes are allowed.
    """

    log_density: Formula
    low: float | Formula = -math.inf
    high: float | Formula = math.inf
    inner: float | Formula = 0.5
    valid: Formula = _allowed
    cdf_formula: Formula | None = None
    sf_formula: Formula | None = None
    logcdf_formula: Formula | None = None
    logsf_formula: Formula | None = None
    ppf_formula: Formula | None = None
    isf_formula: Formula | None = None

    def logpdf(self, x: Any, *parameters: Any) -> Value:
        """The logarithm of the density; the last two parameters are the location and the scale."""
        y, shapes, _, scale, wrong = self._standard("logpdf", x, parameters)
        low, high = self._ends(shapes)
        inside = (y >= low) & (y <= high) & (abs(y) < math.inf)
        safe = jnp.where(inside, y, self._inner(shapes))
        value = jnp.where(inside, self.log_density(safe, *shapes) - jnp.log(scale), -math.inf)
        return jnp.where(wrong, math.nan, value)

    def pdf(self, x: Any, *parameters: Any) -> Value:
        return jnp.exp(self.logpdf(x, *parameters))

    def cdf(self, x: Any, *parameters: Any) -> Value:
        return self._probability("cdf", self._cdf, (0.0, 1.0), x, parameters)

    def sf(self, x: Any, *parameters: Any) -> Value:
        return self._probability("sf", self._sf, (1.0, 0.0), x, parameters)

    def logcdf(self, x: Any, *parameters: Any) -> Value:
        formula = self.logcdf_formula or (lambda y, *shapes: _log(self._cdf(y, *shapes), self._sf(y, *shapes)))
        return self._probability("logcdf", formula, (-math.inf, 0.0), x, parameters)

    def logsf(self, x: Any, *parameters: Any) -> Value:
        formula = self.logsf_formula or (lambda y, *shapes: _log(self._sf(y, *shapes), self._cdf(y, *shapes)))
        return self._probability("logsf", formula, (0.0, -math.inf), x, parameters)

    def ppf(self, q: Any, *parameters: Any) -> Value:
        assert self.ppf_formula is not None
        return self._quantile("ppf", self.ppf_formula, q, parameters, False)

    def isf(self, q: Any, *parameters: Any) -> Value:
        assert self.isf_formula is not None
        return self._quantile("isf", self.isf_formula, q, parameters, True)

    # ---- common parts

    def _cdf(self, y: Any, *shapes: Any) -> Any:
        if self.cdf_formula is not None:
            return self.cdf_formula(y, *shapes)
        assert self.logcdf_formula is not None
        return jnp.exp(self.logcdf_formula(y, *shapes))

    def _sf(self, y: Any, *shapes: Any) -> Any:
        if self.sf_formula is not None:
            return self.sf_formula(y, *shapes)
        if self.logsf_formula is not None:
            return jnp.exp(self.logsf_formula(y, *shapes))
        return 1 - self._cdf(y, *shapes)

    def _ends(self, shapes: Any) -> tuple[Any, Any]:
        low = self.low(*shapes) if callable(self.low) else self.low
        high = self.high(*shapes) if callable(self.high) else self.high
        return low, high

    def _inner(self, shapes: Any) -> Any:
        return self.inner(*shapes) if callable(self.inner) else self.inner

    def _standard(self, function: str, x: Any, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        x, *shapes, loc, scale = real(f"{self.name}.{function}", x, *parameters)
        positive = scale > 0
        y = (x - loc) / jnp.where(positive, scale, 1)
        wrong = (y != y) | ~(self.valid(*shapes) & positive)
        return y, shapes, loc, scale, wrong

    def _probability(
        self, function: str, formula: Formula, outside: tuple[float, float], x: Any, parameters: tuple[Any, ...]
    ) -> Value:
        y, shapes, _, _, wrong = self._standard(function, x, parameters)
        low, high = self._ends(shapes)
        inside = (y > low) & (y < high)
        value = formula(jnp.where(inside, y, self._inner(shapes)), *shapes)
        value = jnp.where(inside, value, jnp.where(y <= low, *outside))
        return jnp.where(wrong, math.nan, value)

    def _quantile(self, function: str, formula: Formula, q: Any, parameters: tuple[Any, ...], upper: bool) -> Value:
        q, *shapes, loc, scale = real(f"{self.name}.{function}", q, *parameters)
        low, high = self._ends(shapes)
        first, last = (high, low) if upper else (low, high)
        inside = (q > 0) & (q < 1)
        value = formula(jnp.where(inside, q, 0.5), *shapes)
        value = jnp.where(inside, value, jnp.where(q == 0, first, last)) * scale + loc
        return jnp.where((q >= 0) & (q <= 1) & (scale > 0) & self.valid(*shapes), value, math.nan)


def _log(p: Any, rest: Any) -> Any:
    """log(p), where p + rest = 1; the logarithm that does not count sees no end of its range, where its derivative is
    infinite."""
    small = p < 0.5
    return jnp.where(small, jnp.log(jnp.where(small, p, 1)), jnp.log1p(-jnp.where(small, 0, rest)))


def log_of_complement(x: Any) -> Any:
    """log(1 - exp(x)) for x < 0."""
    near = x > -0.7
    return jnp.where(near, jnp.log(-jnp.expm1(jnp.where(near, x, -1.0))), jnp.log1p(-jnp.exp(jnp.where(near, -1.0, x))))


@dataclass(frozen=True)
class Discrete(_Family):
    """A family of probabilities of integers; `low` and `high` are the first and the last one."""

    log_mass: Formula
    low: float = 0.0
    high: float | Formula = math.inf
    valid: Formula = _allowed

    def logpmf(self, k: Any, *parameters: Any) -> Value:
        """The logarithm of the probability; the last parameter is the location."""
        k, *shapes, loc = real(f"{self.name}.logpmf", k, *parameters)
        y = k - loc
        high = self.high(*shapes) if callable(self.high) else self.high
        inside = (y >= self.low) & (y <= high) & (y == jnp.floor(y)) & (y < math.inf)
        value = self.log_mass(jnp.where(inside, y, self.low), *shapes)
        value = jnp.where(inside, value, -math.inf)
        return jnp.where((y == y) & self.valid(*shapes), value, math.nan)

    def pmf(self, k: Any, *parameters: Any) -> Value:
        return jnp.exp(self.logpmf(k, *parameters))
