"""Programs that differentiate, batch and loop, as users of these transformations write them: hloom beside JAX.

Those that are a case of the group `loops` as they are (RK4, RNN, heat equation, Kalman filter, and gradients of them)
are taken from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import loops, mlp
from .harness import Case
from .table.declare import traced

RNG = np.random.default_rng(12)


def from_loops(name: str, with_gradient: bool = False, **sizes: int) -> Callable[[], Case]:
    """A case of the group `loops`: its program, or the gradient of the sum of squares of its results."""
    loop = loops.CASES[name]

    def case() -> Case:
        chosen = {**loop.sizes, **sizes}
        given = loop.inputs(chosen)

        def of(jax: Any, jnp: Any) -> Callable[[], Any]:
            function = loop.function(jax, chosen)
            if with_gradient:
                whole = function
                function = jax.grad(lambda *inputs: jnp.sum(whole(*inputs) ** 2))
            run, own = jax.jit(function), [jnp.asarray(a) for a in given]
            return lambda: run(*own)

        title = f"gradient: {loop.title}" if with_gradient else loop.title
        return Case(f"with-{'grad-' * with_gradient}{name}", title, traced(of), max(loop.tolerance, 1e-3))

    return case


def hmc() -> Case:
    """Hamiltonian Monte Carlo on a correlated normal distribution; the gradient is in the loop of the leaps."""
    dimensions, leaps, samples = 20, 1_000, 5
    factor = (RNG.standard_normal((dimensions, dimensions)) / 5 + np.eye(dimensions)).astype(np.float32)
    draws = RNG.standard_normal((samples, dimensions)).astype(np.float32)
    levels = RNG.uniform(0, 1, samples).astype(np.float32)

    def of(jax: Any, jnp: Any) -> Callable[[], Any]:
        lax = jax.lax

        def energy(x: Any) -> Any:
            return 0.5 * jnp.sum((own_factor @ x) ** 2) + 0.1 * jnp.sum(jnp.cos(x))

        def sample(x: Any, drawn: Any) -> Any:
            start, level = drawn
            slope = jax.grad(energy)

            def leap(_: Any, state: Any) -> Any:
                x, p = state
                p = p - 0.005 * slope(x)
                x = x + 0.01 * p
                return x, p - 0.005 * slope(x)

            new, p = lax.fori_loop(0, leaps, leap, (x, start))
            gain = energy(x) + 0.5 * start @ start - energy(new) - 0.5 * p @ p
            x = jnp.where(jnp.log(level) < gain, new, x)
            return x, x

        own_factor, *own = [jnp.asarray(a) for a in (factor, draws, levels)]
        run = jax.jit(lambda draws, levels: lax.scan(sample, jnp.zeros(dimensions), (draws, levels))[1])
        return lambda: run(*own)

    return Case("with-hmc", f"HMC, {dimensions} dimensions, {leaps:,} leaps, {samples} samples", traced(of), 1e-2)


def hessian() -> Case:
    """The Hessian of a small network's loss in its 50 parameters: jacfwd of jacrev."""
    width = 7
    inputs = RNG.standard_normal((40, 5)).astype(np.float32)
    targets = np.sin(inputs.sum(1)).astype(np.float32)
    start = (RNG.standard_normal(50) / 3).astype(np.float32)

    def of(jax: Any, jnp: Any) -> Callable[[], Any]:
        def loss(w: Any, x: Any, y: Any) -> Any:
            first, bias, last, shift = w[:35].reshape(5, width), w[35:42], w[42:49], w[49]
            return jnp.mean((jnp.tanh(x @ first + bias) @ last + shift - y) ** 2)

        run, own = jax.jit(jax.hessian(loss)), [jnp.asarray(a) for a in (start, inputs, targets)]
        return lambda: run(*own)

    return Case("with-hessian", "Hessian of a network's loss, 50 parameters", traced(of), 1e-3)


def odes() -> Case:
    """The function of one ODE, an RK4 loop over small vectors, batched by vmap."""
    count, steps = 1_000, 100
    starts = RNG.standard_normal((count, 3)).astype(np.float32)
    rates = RNG.uniform(0.5, 2, count).astype(np.float32)

    def of(jax: Any, jnp: Any) -> Callable[[], Any]:
        def solve(start: Any, rate: Any) -> Any:
            def slope(x: Any) -> Any:
                return jnp.stack([rate * (x[1] - x[0]), x[0] * (1 - x[2]) - x[1], x[0] * x[1] - rate * x[2]])

            def step(x: Any, _: Any) -> Any:
                k1 = slope(x)
                k2 = slope(x + 0.005 * k1)
                k3 = slope(x + 0.005 * k2)
                k4 = slope(x + 0.01 * k3)
                return x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

            return jax.lax.scan(step, start, None, length=steps)[0]

        run, own = jax.jit(jax.vmap(solve)), [jnp.asarray(a) for a in (starts, rates)]
        return lambda: run(*own)

    return Case("with-vmap-odes", f"vmap of {count:,} ODEs, RK4, {steps} steps", traced(of), 1e-3)


def per_example() -> Case:
    """The squared norm of each example's gradient, as for privacy or for weighting: vmap of grad of the MLP."""
    batch = 32
    params, images, labels = mlp.inputs(batch)

    def of(jax: Any, jnp: Any) -> Callable[[], Any]:
        def loss(params: Any, image: Any, label: Any) -> Any:
            x = image
            for layer in params[:-1]:
                x = jax.nn.relu(x @ layer["w"] + layer["b"])
            x = x @ params[-1]["w"] + params[-1]["b"]
            return -jax.nn.log_softmax(x)[label]

        def norms(params: Any, images: Any, labels: Any) -> Any:
            gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(params, images, labels)
            return sum([jnp.sum(g * g, axis=tuple(range(1, g.ndim))) for g in jax.tree.leaves(gradients)])

        run = jax.jit(norms)
        own = jax.tree.map(jnp.asarray, (params, images, labels))
        return lambda: run(*own)

    return Case("with-per-example", f"norms of per-example gradients of the MLP, {batch} examples", traced(of), 1e-3)


CASES: dict[str, Callable[[], Case]] = {
    "with-many-scalars": from_loops("many-scalars"),
    "with-grad-many-scalars": from_loops("many-scalars", with_gradient=True),
    "with-rk4": from_loops("rk4"),
    "with-grad-rk4": from_loops("grad-rk4", steps=10_000),
    "with-rnn": from_loops("rnn"),
    "with-grad-rnn": from_loops("grad-rnn"),
    "with-heat": from_loops("heat"),
    "with-hmc": hmc,
    "with-kalman": from_loops("kalman"),
    "with-vmap-odes": odes,
    "with-per-example": per_example,
    "with-hessian": hessian,
}
