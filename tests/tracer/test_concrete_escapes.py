"""Outside of jit a differentiated value has a number; only what has no derivative may see it: truth values, integers.

Operations that compute with it raise, as under jit: a derivative is a number that is right, or an error.
"""

from __future__ import annotations

import array
import cmath
import json
import math
import operator
import pickle
import statistics
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import hloom
import hloom.numpy as jnp
from hloom import lax

Function = Callable[[Any], Any]


def _set_element(x: Any) -> Any:
    a = np.ones(3)
    a[0] = x
    return a.sum()


def _fill(x: Any) -> Any:
    a = np.ones(3)
    a.fill(x)
    return a.sum()


def _append(x: Any) -> Any:
    return array.array("d", [x])[0] * x


def _isnan(x: Any) -> Any:
    return x if math.isnan(x) else 2 * x


ESCAPES: dict[str, Function] = {
    "np.sin": np.sin,
    "np.add": lambda x: np.add(x, 1.0),
    "np.add.reduce": lambda x: np.add.reduce([x, x]),
    "np.where": lambda x: np.where(True, x, 0.0),
    "np.asarray": lambda x: np.asarray(x) * x,
    "np.array of a list": lambda x: np.array([x, 1.0]).sum(),
    "np.float64": lambda x: np.float64(x) * x,
    "np.stack": lambda x: np.stack([x, x])[0],
    "np.dot": lambda x: np.dot(x, 2.0),
    "np.sum of a list": lambda x: np.sum([x, x]),
    "np.linalg.norm": lambda x: np.linalg.norm(x),
    "np.fft": lambda x: np.fft.fft([x, 1.0]).real.sum(),
    "np.interp": lambda x: np.interp(x, [0.0, 9.0], [1.0, 2.0]),
    "np.full": lambda x: np.full(3, x).sum(),
    "np.isnan": lambda x: x if np.isnan(x) else 2 * x,
    "np.testing": lambda x: np.testing.assert_allclose(x, 2.7) or x,
    "np.from_dlpack": lambda x: np.from_dlpack(x) * x,
    "np.savetxt": lambda x: np.array2string(x) and x,
    "an element of a NumPy array": _set_element,
    "ndarray.fill": _fill,
    "scipy": scipy.special.erf,
    "float": lambda x: float(x) * x,
    "complex": lambda x: abs(complex(x)),
    "math.sin": lambda x: math.sin(x) * x,
    "math.floor": lambda x: math.floor(x) * x,
    "math.isnan": _isnan,
    "math.pow": lambda x: math.pow(x, x),
    "math.fsum": lambda x: math.fsum([x, x]),
    "math.hypot": lambda x: math.hypot(x, 1.0),
    "cmath.exp": lambda x: abs(cmath.exp(x)),
    "statistics.mean": lambda x: statistics.fmean([x, x]),
    "struct": lambda x: struct.unpack("d", struct.pack("d", x))[0] * x,
    "array.array": _append,
    "json": lambda x: json.loads(json.dumps(float(x))) * x,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)) * x,
    "%f": lambda x: float("%f" % x) * x,  # noqa: UP031
    "item": lambda x: x.item() * x,
    "item of an element": lambda x: jnp.stack([x, x]).item(0) * x,
    "tolist": lambda x: x.tolist() * x,
    "tobytes": lambda x: len(x.tobytes()) * x,
    "__dlpack__": lambda x: x.__dlpack__() and x,
    "jnp.from_dlpack": lambda x: jnp.from_dlpack(x) * x,
    "jnp.save": lambda x: jnp.save("/dev/null", x) or x,
    "devices": lambda x: len(x.devices()) * x,
    "pure_callback": lambda x: hloom.pure_callback(np.sin, x, x),
}
AROUND: dict[str, Callable[[Function], Function]] = {
    "itself": lambda f: f,
    "within cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "within jit": hloom.jit,
    "closed over by jit": lambda f: lambda x: hloom.jit(lambda y: f(x) * y)(1.0),
    "closed over by vmap": lambda f: lambda x: hloom.vmap(lambda y: f(x) * y)(jnp.ones(2)).sum(),
    "not mapped": lambda f: lambda x: hloom.vmap(lambda y, x: f(x) * y, in_axes=(0, None))(jnp.ones(2), x).sum(),
    "checkpoint": hloom.checkpoint,
    "nested": lambda f: lambda x: hloom.grad(lambda y: f(x) * y)(1.0),
    "a rule's primal": lambda f: _with_rule(f),
}


def _with_rule(f: Function) -> Function:
    """A function with a rule that computes with `f` of the primal; a second derivative differentiates that rule."""

    @hloom.custom_jvp
    def own(x: Any) -> Any:
        return x * 2

    own.defjvp(lambda primals, tangents: (own(*primals), f(primals[0]) * tangents[0]))
    return hloom.grad(own)


DERIVATIVES: dict[str, Callable[[Function], Any]] = {
    "grad": hloom.grad,
    "jvp": lambda f: lambda x: hloom.jvp(f, (x,), (1.0,)),
    "vjp": lambda f: lambda x: hloom.vjp(f, x)[1](1.0),
    "linearize": lambda f: lambda x: hloom.linearize(f, x)[1](1.0),
    "jacfwd": hloom.jacfwd,
    "jacrev": hloom.jacrev,
    "hessian": hloom.hessian,
    "vmap of grad": lambda f: lambda x: hloom.vmap(hloom.grad(f))(jnp.stack([x, x])),
}
ERRORS = (TypeError, ValueError, struct.error)  # two of NumPy's, and struct's, say no more than that it is no number


@pytest.mark.parametrize("name", ESCAPES)
def test_no_number_escapes(name: str) -> None:
    for derivative in DERIVATIVES.values():
        with pytest.raises(ERRORS):
            derivative(ESCAPES[name])(2.7)


@pytest.mark.parametrize("around", AROUND)
def test_no_number_escapes_from_within(around: str) -> None:
    for f in (np.sin, lambda x: float(x) * x, lambda x: x.item() * x):
        for derivative in DERIVATIVES.values():
            with pytest.raises(TypeError):
                derivative(AROUND[around](f))(2.7)


@pytest.mark.parametrize("name", ["np.sin", "np.asarray", "float", "complex", "item", "tolist", "__dlpack__"])
def test_it_is_the_error_of_jit(name: str) -> None:
    with pytest.raises(TypeError) as of_jit:
        hloom.jit(ESCAPES[name])(2.7)
    with pytest.raises(TypeError) as of_grad:
        hloom.grad(ESCAPES[name])(2.7)
    assert type(of_grad.value) is type(of_jit.value)
    need = str(of_jit.value).removeprefix("jit: ").partition(", but ")[0]
    found = str(of_grad.value).removeprefix("grad: ")
    assert found.startswith(f"{need}, but float32[] is traced while it is differentiated: ")
    assert "its value alone has no derivative" in str(of_grad.value)


ALLOWED: dict[str, tuple[Function, float]] = {
    "if": (lambda x: x * x if x > 2 else x, 5.4),
    "while": (lambda x: next(y for y in (x, x * x, x * x * x) if y > 6), 5.4),
    "bool": (lambda x: bool(x) * x, 1.0),
    "max": (lambda x: max(x, 1.0), 1.0),
    "sorted": (lambda x: sorted([3 * x, x])[1], 3.0),
    "in": (lambda x: (x in [1.0]) + x, 1.0),
    "all": (lambda x: x if (jnp.stack([x, x]) > 0).all() else 0 * x, 1.0),
    "isclose": (lambda x: 2 * x if jnp.allclose(x, x) else x, 2.0),
    "int": (lambda x: int(x) * x, 2.0),
    "index of an integer": (lambda x: [1.0, 2.0, 3.0][jnp.floor(x).astype(int)] * x, 3.0),
    "range": (lambda x: sum(x for _ in range(x.astype(int))), 2.0),
    "item of an integer": (lambda x: x.astype(int).item() * x, 2.0),
    "item of a truth value": (lambda x: x.astype(bool).item() * x, 1.0),
    "stop_gradient": (lambda x: np.float32(lax.stop_gradient(x)) * x, 2.7),
    "text": (lambda x: len(f"{x} {x!s} {x!r} {x:.3f}" % ()) * 0 + x, 1.0),
    "print": (lambda x: print(x, end="") or x, 1.0),
    "shape": (lambda x: (1 + np.ndim(x) + len(np.shape(x)) + operator.index(x.ndim)) * x, 1.0),
    "device_get": (lambda x: hloom.device_get(x) * x, 5.4),
    "NumPy on the left": (lambda x: (np.ones(3, "f") * x).sum(), 3.0),
    "sizes by values": (lambda x: jnp.stack([x, x])[jnp.stack([x, -x]) > 0].sum(), 1.0),
    "unique": (lambda x: jnp.unique(jnp.stack([x, 2 * x])).sum(), 3.0),
    "arange": (lambda x: jnp.arange(x, 5.0).sum(), 3.0),
    "arange's step": (lambda x: jnp.arange(0, 10.0, x).sum(), 6.0),
    "arange of integers": (lambda x: jnp.arange(x, 5.0, dtype=int).sum() + x, 1.0),
    "mgrid": (lambda x: jnp.mgrid[x:5.0].sum(), 3.0),
    "r_": (lambda x: jnp.r_[x:5.0, x].sum(), 4.0),
    "nextafter": (lambda x: jnp.nextafter(x, 3.0), 1.0),
    "a rule": (lambda x: _rule_of_numbers(x), 5.4),
}


@hloom.custom_jvp
def _rule_of_numbers(x: Any) -> Any:
    return jnp.square(x)


@_rule_of_numbers.defjvp
def _rule_of_numbers_jvp(primals: Any, tangents: Any) -> Any:
    """Primals of the first derivative are arrays: a rule may do with them what it likes."""
    return jnp.square(*primals), 2 * np.asarray(primals[0]) * tangents[0]


@pytest.mark.parametrize("name", ALLOWED)
def test_what_has_no_derivative_may_see_the_number(name: str) -> None:
    function, slope = ALLOWED[name]
    for derivative in (hloom.grad, hloom.jacfwd, hloom.jacrev):
        np.testing.assert_allclose(derivative(function)(2.7), slope, rtol=1e-6)
