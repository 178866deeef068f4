"""`hloom.example_libraries`: optimizers against their formulas in NumPy, networks against JAX, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import random
from hloom.example_libraries import optimizers, stax

RNG = np.random.default_rng(0)
START = RNG.standard_normal((3, 2))
GRADIENTS = RNG.standard_normal((4, 3, 2))


def by_formula(step: Callable[..., Any], *state: Any) -> Any:
    """x after the four gradients; step(i, g, x, *state) -> (x, *state)."""
    x = START
    for i, g in enumerate(GRADIENTS):
        x, *state = step(i, g, x, *state)
    return x


def adam(i: int, g: Any, x: Any, m: Any, v: Any) -> Any:
    m, v = 0.1 * g + 0.9 * m, 0.001 * g**2 + 0.999 * v
    return x - 0.1 * (m / (1 - 0.9 ** (i + 1))) / (np.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8), m, v


def adamax(i: int, g: Any, x: Any, m: Any, u: Any) -> Any:
    m, u = 0.1 * g + 0.9 * m, np.maximum(0.999 * u, abs(g))
    return x - 0.1 / (1 - 0.9 ** (i + 1)) * m / (u + 1e-8), m, u


def adagrad(i: int, g: Any, x: Any, s: Any, m: Any) -> Any:
    s = s + g**2
    m = 0.1 * g / np.sqrt(s) + 0.9 * m
    return x - 0.1 * m, s, m


def rmsprop(i: int, g: Any, x: Any, s: Any) -> Any:
    s = 0.9 * s + 0.1 * g**2
    return x - 0.1 * g / np.sqrt(s + 1e-8), s


def rmsprop_momentum(i: int, g: Any, x: Any, s: Any, m: Any) -> Any:
    s = 0.9 * s + 0.1 * g**2
    m = 0.9 * m + 0.1 * g / np.sqrt(s + 1e-8)
    return x - m, s, m


def sm3(i: int, g: Any, x: Any, rows: Any, columns: Any, m: Any) -> Any:
    s = np.minimum(rows, columns) + g**2
    m = 0.1 * g / np.sqrt(s) + 0.9 * m
    return x - 0.1 * m, s.max(1, keepdims=True), s.max(0), m


NONE = np.zeros((3, 2))
OPTIMIZERS: dict[str, tuple[Any, Any]] = {
    "sgd": (optimizers.sgd(0.1), START - 0.1 * GRADIENTS.sum(0)),
    "sgd with a schedule": (optimizers.sgd(lambda i: 0.1 * i), by_formula(lambda i, g, x: (x - 0.1 * i * g,))),
    "momentum": (
        optimizers.momentum(0.1, 0.9),
        by_formula(lambda i, g, x, v: (x - 0.1 * (0.9 * v + g), 0.9 * v + g), NONE),
    ),
    "nesterov": (
        optimizers.nesterov(0.1, 0.9),
        by_formula(lambda i, g, x, v: (x - 0.1 * (0.9 * (0.9 * v + g) + g), 0.9 * v + g), NONE),
    ),
    "adagrad": (optimizers.adagrad(0.1), by_formula(adagrad, NONE, NONE)),
    "rmsprop": (optimizers.rmsprop(0.1), by_formula(rmsprop, NONE)),
    "rmsprop_momentum": (optimizers.rmsprop_momentum(0.1), by_formula(rmsprop_momentum, NONE, NONE)),
    "adam": (optimizers.adam(0.1), by_formula(adam, NONE, NONE)),
    "adamax": (optimizers.adamax(0.1), by_formula(adamax, NONE, NONE)),
    "sm3": (optimizers.sm3(0.1), by_formula(sm3, NONE[:, :1], NONE[0], NONE)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    """On a pytree, jitted, through the form that is written to files."""
    (init, update, get_params), expected = OPTIMIZERS[name]
    update = hloom.jit(update) if name != "sm3" else update  # its state has a shape
    with hloom.enable_x64(True):
        state = init({"w": jnp.asarray(START), "b": (jnp.zeros(3), jnp.ones(()))})
        for i, g in enumerate(GRADIENTS):
            state = update(i, {"w": g, "b": (jnp.ones(3), jnp.zeros(()))}, state)
            state = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
        found = get_params(state)
        np.testing.assert_allclose(np.asarray(found["w"]), expected, rtol=1e-12)
        assert float(found["b"][1]) == 1 and found["b"][0].shape == (3,)


def test_schedules() -> None:
    steps = jnp.arange(6.0)
    table = {
        optimizers.constant(0.3)(2): 0.3,
        float(optimizers.exponential_decay(1.0, 2, 0.25)(3)): 0.125,
        float(optimizers.inverse_time_decay(1.0, 2, 3.0)(4)): 1 / 7,
        float(optimizers.inverse_time_decay(1.0, 2, 3.0, staircase=True)(5)): 1 / 7,
        float(optimizers.polynomial_decay(1.0, 4, 0.1)(2)): 0.55,
        float(optimizers.polynomial_decay(1.0, 4, 0.1, 2.0)(9)): 0.1,
    }
    for found, expected in table.items():
        assert found == pytest.approx(expected)
    pieces = hloom.vmap(optimizers.piecewise_constant([1, 3], [1.0, 0.5, 0.25]))(steps)
    assert pieces.tolist() == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_norms() -> None:
    tree = {"a": jnp.array([3.0]), "b": jnp.array([[0.0, 4.0]])}
    assert float(optimizers.l2_norm(tree)) == 5
    assert optimizers.clip_grads(tree, 10.0)["b"].tolist() == [[0, 4]]
    np.testing.assert_allclose(np.asarray(optimizers.clip_grads(tree, 1.0)["b"]), [[0, 0.8]])


# ---- networks


def network(stax: Any) -> Any:
    return stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"),
        stax.BatchNorm(),
        stax.Relu,
        stax.MaxPool((2, 2), (2, 2)),
        stax.ConvTranspose(3, (2, 2), strides=(2, 2)),
        stax.AvgPool((2, 2), padding="SAME"),
        stax.SumPool((1, 2)),
        stax.FanOut(3),
        stax.parallel(
            stax.serial(stax.Flatten, stax.Dense(5), stax.Tanh),
            stax.serial(stax.Flatten, stax.Dense(5), stax.Gelu, stax.Dropout(0.5)),
            stax.serial(stax.Flatten, stax.Dense(5), stax.Softplus, stax.Identity),
        ),
        stax.FanOut(2),
        stax.parallel(stax.FanInSum, stax.FanInConcat()),
        stax.FanInConcat(),
        stax.LogSoftmax,
    )


IMAGES = RNG.standard_normal((2, 6, 6, 3)).astype(np.float32)


@pytest.mark.slow
def test_a_network_is_that_of_jax() -> None:
    jax = pytest.importorskip("jax")
    from jax.example_libraries import stax as theirs

    init, apply = network(stax)
    shape, params = init(random.PRNGKey(0), IMAGES.shape)
    expected_shape, expected = network(theirs)[0](jax.random.PRNGKey(0), IMAGES.shape)
    assert shape == tuple(map(int, expected_shape)) == (2, 20)
    for ours, other in zip(hloom.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(other), rtol=1e-5, atol=1e-6)
    found = hloom.jit(apply)(params, IMAGES, rng=random.PRNGKey(1))
    other = network(theirs)[1](expected, IMAGES, rng=jax.random.PRNGKey(1))
    np.testing.assert_allclose(np.asarray(found), np.asarray(other), rtol=1e-4, atol=1e-4)


def test_a_network_learns() -> None:
    init, apply = stax.serial(stax.Dense(16), stax.Relu, stax.Dense(1))
    points = jnp.linspace(-1, 1, 64)[:, None]
    values = jnp.abs(points)
    _, params = init(random.PRNGKey(0), (-1, 1))
    opt_init, update, get_params = optimizers.adam(0.01)

    def loss(params: Any) -> Any:
        return jnp.mean((apply(params, points) - values) ** 2)

    step = hloom.jit(lambda i, state: update(i, hloom.grad(loss)(get_params(state)), state))
    state = opt_init(params)
    before = float(loss(params))
    for i in range(150):
        state = step(i, state)
    assert float(loss(get_params(state))) < 0.05 * before


def test_shapes_of_layers() -> None:
    key = random.PRNGKey(0)
    assert stax.Conv(8, (3, 3), (2, 2))[0](key, (-1, 9, 9, 1))[0] == (-1, 4, 4, 8)
    assert stax.Conv1DTranspose(8, (3,), (2,))[0](key, (2, 4, 1))[0] == (2, 9, 8)
    assert stax.MaxPool((2, 2), spec="NCHW")[0](key, (2, 3, 4, 4))[0] == (2, 3, 3, 3)
    layer = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
    shape, params = layer[0](key, (5, 3))
    assert shape == layer[1](params, jnp.ones((5, 3))).shape == (5, 6)
    assert stax.Dropout(0.5, mode="test")[1]((), jnp.ones(3), rng=key).tolist() == [1, 1, 1]
    centered = stax.BatchNorm(axis=0, scale=False, center=False)
    found = centered[1](centered[0](key, (4, 2))[1], jnp.arange(8.0).reshape(4, 2))
    np.testing.assert_allclose(np.asarray(found).mean(0), 0, atol=1e-6)


SGD = optimizers.sgd(0.1)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "gradients": (lambda: SGD.update_fn(0, [START], SGD.init_fn(START)), TypeError, "gradient tree that did not match"),
    "state": (
        lambda: (o := optimizers.optimizer(lambda: (lambda x: x, lambda i, g, x: (x, x), lambda x: x))()).update_fn(
            0, START, o.init_fn(START)
        ),
        TypeError,
        "output structure that did not match",
    ),
    "schedule": (lambda: optimizers.sgd(START), TypeError, "a number or a function"),
    "pieces": (lambda: optimizers.piecewise_constant([1, 2], [1.0, 2.0]), ValueError, "one shorter than values"),
    "rank": (lambda: optimizers.piecewise_constant(1, [1.0, 2.0]), ValueError, "must be sequences"),
    "pack": (lambda: optimizers.pack_optimizer_state([START]), TypeError, "must be a JoinPoint"),
    "dropout": (lambda: stax.Dropout(0.5)[1]((), START), ValueError, "requires apply_fun to be called with a PRNG key"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()
