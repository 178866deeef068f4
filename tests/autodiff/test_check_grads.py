"""check_grads, check_jvp and check_vjp: they accept right derivatives and refuse wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import DerivativeMismatchError
from hloom.test_util import check_grads, check_jvp, check_vjp

VECTOR = np.linspace(0.2, 1.5, 6, dtype=np.float32)


def scanned(x: Any) -> Any:
    return hloom.lax.scan(lambda c, _: (jnp.sin(c) * x, c), x, None, length=4)


RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "python number": (lambda x: x * x * x, (1.5,)),
    "python numbers of both kinds": (lambda x, n: x * n, (1.5, 3)),
    "array": (lambda x: jnp.tanh(x) * 2, (VECTOR,)),
    "tree": (
        lambda p, x: {"y": jnp.dot(p["w"], x) + p["b"], "n": 3},
        ({"w": np.outer(VECTOR, VECTOR), "b": 1.0}, VECTOR),
    ),
    "integer argument": (lambda x, n: x**n, (VECTOR, np.int32(3))),
    "integer result": (lambda x: (jnp.exp(x), jnp.argmax(x)), (VECTOR,)),
    "complex": (lambda z: jnp.exp(z) * 1j, (np.complex64(0.3 + 0.7j),)),
    "not holomorphic": (lambda z: z * jnp.conj(z), (np.complex64(0.3 + 0.7j),)),
    "complex to real": (lambda z: jnp.abs(z), (np.complex64(0.3 + 0.7j),)),
    "half": (lambda x: x * x, (VECTOR.astype(np.float16),)),
    "bfloat16": (lambda x: x * x, (VECTOR.astype(ml_dtypes.bfloat16),)),
    "scan": (scanned, (VECTOR,)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name: str) -> None:
    f, args = RIGHT[name]
    order = 1 if name in ("half", "bfloat16") else 2
    check_grads(f, args, order, modes=("fwd", "rev", "lin"))
    check_jvp(f, partial(hloom.jvp, f), args)
    check_vjp(f, partial(hloom.vjp, f), args)


def test_doubles_are_compared_as_such() -> None:
    with hloom.enable_x64(True):
        check_grads(jnp.sin, (np.linspace(0.0, 2.0, 3),), order=3)
        with pytest.raises(DerivativeMismatchError, match="JVP: the tangent differs from finite differences"):
            check_grads(off_by(1e-4), (np.linspace(0.5, 2.0, 3),), order=1)


def off_by(error: float) -> Callable[..., Any]:
    """sin, with a relative error in its derivative."""

    @hloom.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvps(lambda t, result, x: t * jnp.cos(x) * (1 + error))
    return f


def wrong_in_one_element(x: Any) -> Any:
    @hloom.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct.at[2].set(0.0),))
    return f(x)


@hloom.custom_jvp
def wrong_second(x: Any) -> Any:
    return x * x


@hloom.custom_jvp
def wrong_slope(x: Any) -> Any:
    return 2 * x


wrong_slope.defjvps(lambda t, result, x: 3 * t)
wrong_second.defjvps(lambda t, result, x: t * wrong_slope(x))


@pytest.mark.parametrize(
    ("f", "args", "options", "message"),
    [
        (off_by(0.1), (VECTOR,), {"order": 1, "modes": ["fwd"]}, r"JVP: the tangent differs .* float32\[6\]"),
        (off_by(0.1), (VECTOR,), {"order": 1, "modes": ["rev"]}, "VJP: the product with a cotangent differs"),
        (off_by(0.1), (VECTOR,), {"order": 1, "modes": ["lin"]}, "linearize: the tangent differs"),
        (lambda p: {"y": off_by(0.1)(p)}, (1.0,), {"order": 1}, r"the tangent\['y'\] differs"),
        (wrong_in_one_element, (VECTOR,), {"order": 1, "modes": ["rev"]}, "VJP: the product"),
        (wrong_second, (VECTOR,), {"order": 2}, "JVP of JVP: the tangent"),
        (wrong_second, (VECTOR,), {"order": 2, "modes": ["rev"]}, "VJP of VJP: the product"),
        (off_by(0.01), (1.0,), {"order": 1, "atol": 1e-4, "rtol": 1e-4}, "tolerances: absolute 0.0001"),
        (off_by(0.01), (1.0,), {"order": 1, "atol": {np.float32: 1e-4}, "rtol": {"float32": 0}}, "relative 0"),
    ],
)
def test_wrong_derivatives_are_refused(f: Any, args: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message) as caught:
        check_grads(f, args, **options)
    assert type(caught.value) is DerivativeMismatchError


def test_tolerances_and_the_step_can_be_given() -> None:
    check_grads(off_by(0.1), (VECTOR,), order=1, atol=0.2, rtol=0.2)
    check_grads(off_by(0.1), (VECTOR,), order=1, atol={"float32": 0.2}, rtol={np.float32: 0.2})
    check_grads(wrong_second, (VECTOR,), order=1)  # only the second derivative is wrong
    with pytest.raises(DerivativeMismatchError, match="JVP: the tangent differs from finite differences"):
        check_grads(jnp.exp, (VECTOR,), order=1, eps=1.0)  # too long a step
    with pytest.raises(DerivativeMismatchError, match=r"shape \(6,\), expected \(\)"):
        check_jvp(jnp.sum, lambda p, t: (p[0], t[0]), (VECTOR,))


@pytest.mark.parametrize(
    ("options", "message"), [({"order": 0}, "order is at least 1"), ({"order": 1, "modes": "fwd"}, "modes are some of")]
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_grads(jnp.sin, (1.0,), **options)
