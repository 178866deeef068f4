"""The training step of several cases: 784-512-512-10, momentum, donated state; one text for hloom and JAX."""

from __future__ import annotations

import importlib
import itertools
from functools import partial
from typing import Any

import numpy as np

SIZES = (784, 512, 512, 10)
RATE, MOMENTUM = 1e-6, 0.9  # so small that a thousand steps do not change the work


def inputs(batch: int, sizes: tuple[int, ...] = SIZES) -> tuple[list[dict[str, np.ndarray]], np.ndarray, np.ndarray]:
    """Weights f32, images f32[batch, pixels], labels s32[batch]."""
    rng = np.random.default_rng(0)
    params = [
        {
            "w": (rng.standard_normal((n, m)) * np.sqrt(2 / n)).astype(np.float32),
            "b": rng.standard_normal(m).astype(np.float32) / 10,
        }
        for n, m in itertools.pairwise(sizes)
    ]
    images = rng.standard_normal((batch, sizes[0])).astype(np.float32)
    return params, images, rng.integers(0, sizes[-1], batch).astype(np.int32)


def training_step(package: str, rate: float = RATE) -> Any:
    """The jitted step of `package` ("hloom" or "jax"): (state, images, labels) -> (state, loss)."""
    jax, jnp = importlib.import_module(package), importlib.import_module(package + ".numpy")

    def loss(params: Any, images: Any, labels: Any) -> Any:
        x = images
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        scores = x @ params[-1]["w"] + params[-1]["b"]
        chosen = jax.nn.one_hot(labels, scores.shape[1])
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(scores) * chosen, axis=1))

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, images: Any, labels: Any) -> Any:
        params, velocity = state
        value, gradient = jax.value_and_grad(loss)(params, images, labels)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v - rate * g, velocity, gradient)
        return (jax.tree.map(lambda p, v: p + v, params, velocity), velocity), value

    return step


def arguments(package: str, batch: int, sizes: tuple[int, ...] = SIZES) -> tuple[Any, Any, Any]:
    """Fresh (state, images, labels), in the package's own arrays."""
    jax, jnp = importlib.import_module(package), importlib.import_module(package + ".numpy")
    params, images, labels = inputs(batch, sizes)
    state = (jax.tree.map(jnp.asarray, params), jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.float32), params))
    return state, jnp.asarray(images), jnp.asarray(labels)


def numpy_step(params: Any, velocity: Any, images: np.ndarray, labels: np.ndarray) -> float:
    """The same step in NumPy, in place."""
    kept = [images]
    for layer in params[:-1]:
        kept.append(np.maximum(kept[-1] @ layer["w"] + layer["b"], 0))
    scores = kept[-1] @ params[-1]["w"] + params[-1]["b"]
    scores -= scores.max(axis=1, keepdims=True)
    log_probabilities = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    value = -log_probabilities[rows, labels].mean()
    delta = np.exp(log_probabilities)
    delta[rows, labels] -= 1
    delta /= np.float32(len(labels))
    for k in range(len(params) - 1, -1, -1):
        gradients = {"w": kept[k].T @ delta, "b": delta.sum(axis=0)}
        if k:
            delta = (delta @ params[k]["w"].T) * (kept[k] > 0)
        for name, gradient in gradients.items():
            moving = velocity[k][name]
            moving *= np.float32(MOMENTUM)
            moving -= np.float32(RATE) * gradient
            params[k][name] += moving
    return float(value)


def numba_arguments(batch: int) -> list[np.ndarray]:
    """Fresh arguments for the step in `mlp_numba`."""
    params, images, labels = inputs(batch)
    flat = [layer[name] for layer in params for name in ("w", "b")]
    hidden = [np.empty((batch, n), np.float32) for n in SIZES[1:3]]
    return [*flat, *map(np.zeros_like, flat), images, labels, *hidden]
