"""Derivatives of array programs, checked against themselves: forward mode, reverse mode and differences, in f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hloom.hlo.errors import UnsupportedError

import hloom
import hloom.numpy

from .attempt import Raised, attempt, flat
from .case import OK, NDArray, Outcome, found
from .worker import signature_of

Function = Callable[..., Any]
_STEPS = (1e-4, 1e-5)
_NEAR = 1e-3


class Derivatives:
    """Of one function, to be checked at many points."""

    def __init__(self, function: Function, jitted: Function) -> None:
        self._function, self._jitted = function, jitted
        self._push = hloom.jit(lambda p, t: hloom.jvp(function, p, t)[1])
        self._pull = hloom.jit(lambda p, w: hloom.vjp(function, *p)[1](w))

    def check(self, inputs: Sequence[NDArray], seed: int, outside: bool = True) -> Outcome:
        """Forward mode, reverse mode and differences, along one direction, in double precision. `outside`: reverse mode
        also outside of jit."""
        function, jitted = self._function, self._jitted
        rng = np.random.default_rng(seed)
        directions = [np.asarray(rng.uniform(-1, 1, np.shape(p))) for p in inputs]
        with hloom.enable_x64(True):
            points = list(map(hloom.numpy.asarray, inputs))
            base = flat(jitted(*points))
            weights = [rng.uniform(-1, 1, b.shape).astype(b.dtype) for b in base]
            push = attempt(lambda: self._push(tuple(points), tuple(directions)))
            pull = attempt(lambda: self._pull(tuple(points), tuple(weights)))
            eager = attempt(lambda: hloom.vjp(function, *points)[1](tuple(weights))) if outside else pull
            if isinstance(push, Raised):
                return _refused_derivative("jvp", push)
            if isinstance(pull, Raised) or isinstance(eager, Raised):
                raised = pull if isinstance(pull, Raised) else eager
                if "while" in str(raised.error) or "reverse" in str(raised.error):
                    return OK  # loops of unknown length have no reverse mode, here and in JAX
                return _refused_derivative("vjp", raised)
            forward = _paired(weights, flat(push))
            for what, pulled in (("jit(vjp)", pull), ("vjp", eager)):
                backward = _paired(flat(pulled), directions)
                if not _near(forward, backward, 1e-7, _size(weights, flat(push)) + _size(flat(pulled), directions)):
                    return found(f"{what} and jvp differ", f"<w, jvp> is {forward!r}, <vjp, t> is {backward!r}")
            slopes = []
            for step in _STEPS:
                ahead, behind = (
                    flat(jitted(*[p + s * step * d for p, d in zip(points, directions, strict=True)]))
                    for s in (1, -1)
                )
                slopes.append(_paired(weights, [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]))
        size = _size(weights, flat(push)) + max(map(abs, slopes), default=0.0)
        if _near(slopes[0], slopes[1], _NEAR, size) and not _near(forward, slopes[1], 10 * _NEAR, size):
            return found("jvp and differences differ", f"<w, jvp> is {forward!r}; by differences {slopes}")
        return OK


def _refused_derivative(what: str, raised: Raised) -> Outcome:
    if isinstance(raised.error, UnsupportedError):
        return OK
    return found(f"{what}: {signature_of(raised.error)}", str(raised))


def _paired(left: Sequence[NDArray], right: Sequence[NDArray]) -> float:
    """The sum of all products."""
    return float(sum(np.sum(a * b, dtype=np.float64) for a, b in zip(left, right, strict=True)))


def _size(left: Sequence[NDArray], right: Sequence[NDArray]) -> float:
    return float(sum(np.sum(np.abs(a * b), dtype=np.float64) for a, b in zip(left, right, strict=True)))


def _near(a: float, b: float, tolerance: float, size: float) -> bool:
    """NaN and infinities say nothing: kinks and poles have them."""
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(size)):
        return True
    return abs(a - b) <= tolerance * (1 + size)
