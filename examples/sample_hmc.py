#!/usr/bin/env python3
"""Sample a curved distribution by Hamiltonian Monte Carlo: several chains at once, a warm-up that finds the step size.

    python examples/sample_hmc.py
    python examples/sample_hmc.py --samples 5000 --chains 8

The distribution is a banana: x is normal, and y is normal around x**2 / 4. Its moments are known, so we can see whether
the samples are right. HMC treats -log p as a landscape: it gives a ball a random push, follows it for some time by the
gradient, and accepts where it arrives if the energy has hardly changed.

* the path of the ball: `fori_loop` over leapfrog steps;
* a chain: `scan` over paths, with its random keys;
* the chains: `vmap` of one chain. hloom makes one native loop of all three.

Everything from `log_density` to `sample` is a JAX program: `import jax as hloom` and `import jax.numpy as jnp`.
Sources: R. Neal, "MCMC using Hamiltonian dynamics" (2011); M. Hoffman and A. Gelman, "The No-U-Turn Sampler" (2014),
for the warm-up; A. Vehtari and others, "Rank-normalization, folding, and localization" (2021), for R-hat.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import common
import hloom
import hloom.numpy as jnp

NDArray = np.ndarray[Any, Any]

WIDTH_X, WIDTH_Y = 1.5, 0.4
MEAN = np.array([0.0, WIDTH_X**2 / 4])
DEVIATION = np.array([WIDTH_X, np.sqrt(WIDTH_Y**2 + WIDTH_X**4 / 8)])

LEAPFROG_STEPS = 20
WANTED = 0.9  # the part of the paths that should be accepted
CHUNK = 100  # paths in one call


# ---- the distribution


def log_density(position: Any) -> Any:
    """log p of f32[2], without its constant."""
    x, y = position
    return -0.5 * (x / WIDTH_X) ** 2 - 0.5 * ((y - x**2 / 4) / WIDTH_Y) ** 2


# ---- one path


def leapfrog(position: Any, momentum: Any, step_size: Any, steps: Any = LEAPFROG_STEPS) -> Any:
    """Follow the ball: half a push, then moves and pushes in turn; the last push is a half again."""
    slope = hloom.grad(log_density)

    def step(_: Any, state: Any) -> Any:
        position, momentum = state
        position = position + step_size * momentum
        return position, momentum + step_size * slope(position)

    momentum = momentum + step_size / 2 * slope(position)
    position, momentum = hloom.lax.fori_loop(0, steps, step, (position, momentum))
    return position, momentum - step_size / 2 * slope(position)


def transition(position: Any, key: Any, step_size: Any) -> Any:
    """One path and the decision about it: the new position, and the probability of accepting it."""
    push, length, decision = hloom.random.split(key, 3)
    momentum = hloom.random.normal(push, position.shape)
    # paths of several lengths, so that none comes back to where it began each time
    proposal, final = leapfrog(position, momentum, step_size * hloom.random.uniform(length, minval=0.5, maxval=1.0))
    before = log_density(position) - jnp.sum(momentum**2) / 2
    after = log_density(proposal) - jnp.sum(final**2) / 2
    gain = jnp.where(jnp.isnan(after), -jnp.inf, after - before)
    probability = jnp.exp(jnp.minimum(gain, 0.0))
    accepted = hloom.random.uniform(decision) < probability
    return jnp.where(accepted, proposal, position), probability


# ---- one chain


def init_step_size(first: float) -> dict[str, Any]:
    """The state of the search for a step size."""
    log = jnp.log(jnp.float32(first))
    return {"log": log, "average": log, "error": jnp.float32(0), "anchor": log + jnp.log(10.0), "count": jnp.float32(0)}


def adapt(search: dict[str, Any], probability: Any) -> dict[str, Any]:
    """Nesterov's dual averaging: a larger step where more is accepted than wanted, in ever smaller corrections."""
    count = search["count"] + 1
    weight = 1 / (count + 10)
    error = (1 - weight) * search["error"] + weight * (WANTED - probability)
    log = search["anchor"] - jnp.sqrt(count) / 0.05 * error
    weight = count**-0.75
    average = weight * log + (1 - weight) * search["average"]
    return {**search, "log": log, "average": average, "error": error, "count": count}


def warm_up(position: Any, search: Any, keys: Any) -> Any:
    """A path for each key, with a step size that is adapted after each. Gives the state and all step sizes."""

    def path(state: Any, key: Any) -> Any:
        position, search = state
        position, probability = transition(position, key, jnp.exp(search["log"]))
        return (position, adapt(search, probability)), jnp.exp(search["log"])

    return hloom.lax.scan(path, (position, search), keys)


def sample(position: Any, step_size: Any, keys: Any) -> Any:
    """A path for each key. Gives the last position, then all of them with their probabilities."""

    def path(position: Any, key: Any) -> Any:
        position, probability = transition(position, key, step_size)
        return position, (position, probability)

    return hloom.lax.scan(path, position, keys)


# ---- several chains, and whether they agree

warm_up_chains = hloom.jit(hloom.vmap(warm_up))
sample_chains = hloom.jit(hloom.vmap(sample))


@partial(hloom.jit, static_argnums=(1, 2))
def chunk_of_keys(key: Any, chains: int, paths: int) -> Any:
    """Keys [chains, paths], and one for the next chunk."""
    key, now = hloom.random.split(key)
    return key, hloom.random.split(now, (chains, paths))


def run_chains(chains: int, warm_up_paths: int, samples: int, seed: int) -> tuple[NDArray, NDArray, NDArray]:
    """Positions f32[chains, samples, 2], acceptance f32[chains, samples], step sizes f32[chains, warm-up]."""
    key, first = hloom.random.split(hloom.random.key(seed))
    position = 3 * hloom.random.normal(first, (chains, 2))  # far apart: that they agree later means something
    search = hloom.tree.map(lambda value: jnp.full(chains, value), init_step_size(0.1))
    step_sizes, positions, probabilities = [], [], []
    with common.bar(chains * (warm_up_paths + samples), "paths") as bar:
        for start in range(0, warm_up_paths, CHUNK):
            key, keys = chunk_of_keys(key, chains, min(CHUNK, warm_up_paths - start))
            (position, search), sizes = warm_up_chains(position, search, keys)
            step_sizes.append(np.asarray(sizes))
            bar.update(step_sizes[-1].size)
        step_size = jnp.exp(search["average"])
        for start in range(0, samples, CHUNK):
            key, keys = chunk_of_keys(key, chains, min(CHUNK, samples - start))
            position, (path, probability) = sample_chains(position, step_size, keys)
            positions.append(np.asarray(path))
            probabilities.append(np.asarray(probability))
            bar.update(probabilities[-1].size)
    return np.concatenate(positions, 1), np.concatenate(probabilities, 1), np.concatenate(step_sizes, 1)


def r_hat(positions: NDArray) -> NDArray:
    """The split R-hat of each coordinate: 1 where the halves of all chains have the same distribution."""
    half = positions.shape[1] // 2
    halves = np.concatenate([positions[:, :half], positions[:, -half:]]).astype(np.float64)
    within = halves.var(1, ddof=1).mean(0)
    between = halves.mean(1).var(0, ddof=1)
    return np.sqrt((half - 1) / half + between / within)


def autocorrelation(positions: NDArray, lags: int) -> NDArray:
    """f64[lags, 2]: the correlation of samples that are 0, 1, 2, ... apart, the mean over the chains."""
    centred = positions.astype(np.float64) - positions.mean((0, 1), dtype=np.float64)
    count = positions.shape[1]
    found = [(centred[:, : count - lag] * centred[:, lag:]).mean((0, 1)) for lag in range(lags)]
    return np.array(found) / found[0]


def effective(positions: NDArray) -> NDArray:
    """How many independent samples these are worth, for each coordinate (Geyer's initial positive sequence)."""
    correlation = autocorrelation(positions, min(500, positions.shape[1] // 2) // 2 * 2)
    pairs = correlation[::2] + correlation[1::2]
    positive = np.cumprod(pairs > 0, axis=0)
    return positions.shape[0] * positions.shape[1] / (2 * (pairs * positive).sum(0) - 1)


# ---- the picture


def draw(positions: NDArray, step_sizes: NDArray, words: str) -> Figure:
    chains, count, _ = positions.shape
    colours = [common.BLUE, common.GOLD, common.GREEN, common.RED]
    picture = common.figure("Hamiltonian Monte Carlo on a curved distribution", words, 6)
    grid = picture.add_gridspec(
        3, 3, left=0.06, right=0.975, top=0.82, bottom=0.085, hspace=0.62, wspace=0.3, width_ratios=(1.9, 1, 1)
    )
    plane = picture.add_subplot(grid[:, 0])
    thin = positions.reshape(-1, 2)[:: max(1, chains * count // 1500)]
    plane.plot(*thin.T, ".", color=common.BLUE, markersize=4.5, alpha=0.5, markeredgewidth=0)
    x, y = np.meshgrid(np.linspace(-5, 5, 200), np.linspace(-2, 6.5, 200))
    log = -0.5 * (x / WIDTH_X) ** 2 - 0.5 * ((y - x**2 / 4) / WIDTH_Y) ** 2
    levels = np.log([0.01, 0.1, 0.5])
    plane.contour(x, y, log, levels=levels, colors=common.QUIET, linewidths=0.8, linestyles="solid")
    push, step_size, follow = jnp.array([1.6, -0.9]), float(step_sizes[:, -1].mean()), hloom.jit(leapfrog)
    ball = np.array([follow(jnp.array([-2.4, 1.5]), push, step_size, k)[0] for k in range(LEAPFROG_STEPS + 1)])
    plane.plot(*ball.T, "o-", color=common.RED, markersize=3, linewidth=1.4, label=f"a path of {LEAPFROG_STEPS} steps")
    common.style(plane, "Samples, over lines of equal density", "x", "y")
    common.legend(plane, loc="upper center")

    shown = min(count, 400)
    for row, name in enumerate("xy"):
        trace = picture.add_subplot(grid[row, 1:])
        for chain in range(min(chains, 4)):
            trace.plot(positions[chain, :shown, row], color=colours[chain], linewidth=0.7, alpha=0.8)
        common.style(trace, f"{name} of {min(chains, 4)} chains, the first {shown} samples")
        trace.set_xlim(0, shown)

    lags = picture.add_subplot(grid[2, 1])
    correlation = autocorrelation(positions, 30)
    for column, name in enumerate("xy"):
        lags.plot(correlation[:, column], color=colours[column], linewidth=1.8, label=name)
    common.style(lags, "Autocorrelation, by lag")
    common.legend(lags, loc="upper right")

    sizes = picture.add_subplot(grid[2, 2])
    for chain in range(min(chains, 4)):
        sizes.plot(step_sizes[chain], color=colours[chain], linewidth=0.7, alpha=0.8)
    sizes.set_ylim(0)
    common.style(sizes, "Step size, in the warm-up")
    return picture


def main() -> None:
    parser = common.parse(
        __doc__, "hmc.png", chains=(4, "chains"), warm_up=(500, "paths of a warm-up"), samples=(5000, "of each chain")
    )
    options = parser.parse_args()
    began = time.perf_counter()
    run_chains(options.chains, CHUNK, CHUNK, options.seed)
    print(f"compiling: {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    positions, probabilities, step_sizes = run_chains(options.chains, options.warm_up, options.samples, options.seed)
    seconds = time.perf_counter() - began
    print(f"accepted: {probabilities.mean():.1%} of {probabilities.size:,} paths; {1000 * seconds:,.0f} ms")
    for column, name in enumerate("xy"):
        found, spread = positions[..., column].mean(), positions[..., column].std()
        print(
            f"{name}: mean {found:6.3f} (is {MEAN[column]:5.3f})   deviation {spread:.3f} (is {DEVIATION[column]:.3f})"
            f"   R-hat {r_hat(positions)[column]:.4f}   worth {effective(positions)[column]:,.0f} independent samples"
        )
    words = f"{options.chains} chains of {options.samples:,} paths of {LEAPFROG_STEPS} steps: "
    words += f"{1000 * seconds:,.0f} ms; R-hat {r_hat(positions).max():.3f}; {probabilities.mean():.0%} accepted"
    common.save(draw(positions, step_sizes, words), options.out)
    print(f"Picture: {options.out}")


if __name__ == "__main__":
    common.run(main)
