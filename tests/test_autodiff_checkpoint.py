"""checkpoint: the same derivatives, with fewer values kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode
from hloom.tracer.ops import sum_all

from hloom import checkpoint, config, grad, jit, lax, linearize, make_hlo, value_and_grad, vjp
from hloom.errors import UnsupportedError
from support.grad_check import check_derivatives, concrete

X = np.array([0.3, 0.7, 1.1])
Y = np.array([1.5, -0.4, 0.8])


@pytest.fixture(autouse=True)
def _evaluator() -> Iterator[None]:
    before = config.hloom_backend
    config.update("hloom_backend", "evaluator")
    yield
    config.update("hloom_backend", before)


def block(x: Any, y: Any) -> Any:
    return lax.sin(lax.exp(lax.mul(x, y))), lax.add(y, y)


def f64(value: Any) -> Any:
    return concrete(np.asarray(value, np.float64))


@pytest.mark.parametrize("how", [lambda f: f, jit])
def test_derivatives_are_the_same(how: Any) -> None:
    f = how(lambda x, y: checkpoint(block)(*checkpoint(block)(x, y)))
    check_derivatives(lambda xs: f(*xs), [X, Y])
    g = how(lambda x: sum_all(checkpoint(block)(x, f64(Y))[0]))
    np.testing.assert_allclose(grad(g)(f64(X)), grad(lambda x: sum_all(block(x, f64(Y))[0]))(f64(X)))
    np.testing.assert_allclose(linearize(g, f64(X))[1](f64(X)), grad(g)(f64(X)) @ X)


def test_only_arguments_are_kept() -> None:
    _, pull = vjp(lambda x: checkpoint(block)(x, f64(Y))[0], f64(X))
    kept = list(pull._program.residuals.values())
    assert [np.asarray(v).tolist() for v in kept] == [X.tolist(), Y.tolist()]


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_what_is_computed_again_stays_apart(prevent_cse: bool) -> None:
    f = checkpoint(block, prevent_cse=prevent_cse)
    module = make_hlo(value_and_grad(lambda x: sum_all(f(x, f64(Y))[0])))(f64(X))
    opcodes = [i.opcode for i in module.instructions()]
    assert opcodes.count(Opcode.EXP) == 2
    assert (Opcode.OPT_BARRIER in opcodes) is prevent_cse


def test_static_arguments_and_keywords() -> None:
    def f(function: Any, x: Any, *, scale: Any) -> Any:
        return lax.mul(function(x), scale)

    g = checkpoint(f, static_argnums=0)
    assert float(grad(lambda x: g(lax.sin, x, scale=f64(2)))(f64(0))) == 2.0
    with pytest.raises(UnsupportedError, match="policy"):
        checkpoint(f, policy=object())
