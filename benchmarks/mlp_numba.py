"""The training step of `mlp`, written by hand in Numba: in place, three layers, BLAS and loops.

The loops are serial: BLAS's threads spin for a while after each product, and beside them Numba's own threads made the
step ten times slower on two cores.

Importing this imports Numba; its cache is on, so that a warm start finds what a cold one compiled.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .mlp import MOMENTUM as _MOMENTUM
from .mlp import RATE as _RATE

RATE, MOMENTUM = np.float32(_RATE), np.float32(_MOMENTUM)
FAST = {"contract", "reassoc", "nsz"}


@njit(fastmath=FAST, error_model="numpy", cache=True)
def bias_relu(x, b):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j] + b[j], np.float32(0))


@njit(fastmath=FAST, error_model="numpy", cache=True)
def relu_backward(delta, x):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            delta[i, j] = delta[i, j] if x[i, j] > 0 else np.float32(0)


@njit(fastmath=FAST, error_model="numpy", cache=True)
def update(p, v, g):  # type: ignore[no-untyped-def]
    for i in range(p.shape[0]):
        for j in range(p.shape[1]):
            v[i, j] = MOMENTUM * v[i, j] - RATE * g[i, j]
            p[i, j] += v[i, j]


@njit(fastmath=FAST, error_model="numpy", cache=True)
def update_bias(p, v, delta):  # type: ignore[no-untyped-def]
    total = np.zeros(p.shape[0], np.float32)
    for i in range(delta.shape[0]):
        for j in range(p.shape[0]):
            total[j] += delta[i, j]
    for j in range(p.shape[0]):
        v[j] = MOMENTUM * v[j] - RATE * total[j]
        p[j] += v[j]


@njit(fastmath=FAST, error_model="numpy", cache=True)
def softmax_loss(scores, b, labels):  # type: ignore[no-untyped-def]
    """The loss; scores become its gradient."""
    value = np.float32(0)
    n = np.float32(scores.shape[0])
    for i in range(scores.shape[0]):
        highest = np.float32(-np.inf)
        for j in range(scores.shape[1]):
            scores[i, j] += b[j]
            highest = max(highest, scores[i, j])
        total = np.float32(0)
        for j in range(scores.shape[1]):
            total += np.exp(scores[i, j] - highest)
        value -= scores[i, labels[i]] - highest - np.log(total)
        for j in range(scores.shape[1]):
            scores[i, j] = np.exp(scores[i, j] - highest) / total / n
        scores[i, labels[i]] -= np.float32(1) / n
    return value / n


@njit(error_model="numpy", cache=True)
def step(w1, b1, w2, b2, w3, b3, vw1, vb1, vw2, vb2, vw3, vb3, images, labels, h1, h2):  # type: ignore[no-untyped-def]
    """Weights, biases and their velocities change in place; h1, h2 are memory for the hidden layers; returns the
    loss."""
    np.dot(images, w1, h1)
    bias_relu(h1, b1)
    np.dot(h1, w2, h2)
    bias_relu(h2, b2)
    d3 = np.dot(h2, w3)
    value = softmax_loss(d3, b3, labels)
    d2 = np.dot(d3, w3.T)
    relu_backward(d2, h2)
    d1 = np.dot(d2, w2.T)
    relu_backward(d1, h1)
    update(w3, vw3, np.dot(h2.T, d3))
    update_bias(b3, vb3, d3)
    update(w2, vw2, np.dot(h1.T, d2))
    update_bias(b2, vb2, d2)
    update(w1, vw1, np.dot(images.T, d1))
    update_bias(b1, vb1, d1)
    return value
