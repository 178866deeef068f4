#!/usr/bin/env python3
"""Track a drifting buoy through noise and a gap: a Kalman filter, a smoother, and noise levels learned by gradients.

    python examples/kalman_smoother.py
    python examples/kalman_smoother.py --points 1000

A buoy drifts on the sea with a velocity that changes at random. We see its position with an error, and for a while not
at all. The filter says where it is, given the sightings so far; the smoother says where it was, given all. Both
need to know how strong the changes and the errors are: we find the values under which what we saw is most probable.

* the filter is a `scan`, and so is the log-likelihood; its gradient is a scan backwards;
* the smoother is a `scan` with `reverse=True` over the filter's results.

Everything from `model` to `train_step` is a JAX program: `import jax as hloom` and `import jax.numpy as jnp`.
Sources: R. E. Kalman (1960); H. E. Rauch, F. Tung, C. T. Striebel, "Maximum likelihood estimates of linear dynamic
systems" (1965).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import common
import hloom
import hloom.numpy as jnp

NDArray = np.ndarray[Any, Any]

TRUE_CHANGE, TRUE_ERROR = 0.5, 6.0  # standard deviations: of the velocity's changes, of the sightings
GUESS = {"change": 3.0, "error": 2.0}

# ---- the model: the state is position and velocity, f32[4]; time goes in steps of 1

MOVE = np.kron([[1, 1], [0, 0.95]], np.eye(2)).astype(np.float32)  # the water takes 5% of the velocity
SEE = np.eye(2, 4, dtype=np.float32)
CHANGE = np.kron([[1 / 3, 1 / 2], [1 / 2, 1]], np.eye(2)).astype(np.float32)  # pushes at any time within a step


def model(params: Any) -> tuple[Any, Any]:
    """The covariances of the changes, f32[4, 4], and of the errors, f32[2, 2]. The parameters are logarithms."""
    return jnp.exp(2 * params["change"]) * CHANGE, jnp.exp(2 * params["error"]) * jnp.eye(2)


# ---- filter and smoother


def kalman_filter(params: Any, seen: Any, known: Any) -> Any:
    """The state of each step, before its sighting and after it, and the log-likelihood of all sightings.

    `seen` f32[n, 2] are the sightings, `known` pred[n] says which there are. Gives means f32[n, 4] and covariances
    f32[n, 4, 4], first predicted, then filtered.
    """
    change, error = model(params)

    def step(state: Any, now: Any) -> Any:
        mean, cov = state
        sighting, there = now
        mean, cov = MOVE @ mean, MOVE @ cov @ MOVE.T + change
        surprise, spread = sighting - SEE @ mean, SEE @ cov @ SEE.T + error
        gain = jnp.linalg.solve(spread, SEE @ cov).T
        fit = surprise @ jnp.linalg.solve(spread, surprise) + jnp.linalg.slogdet(2 * np.pi * spread)[1]
        new_mean = jnp.where(there, mean + gain @ surprise, mean)
        new_cov = jnp.where(there, cov - gain @ spread @ gain.T, cov)
        return (new_mean, new_cov), (mean, cov, new_mean, new_cov, jnp.where(there, -fit / 2, 0.0))

    start = jnp.concatenate([seen[0], jnp.zeros(2)]), jnp.diag(jnp.array([50.0, 50.0, 5.0, 5.0]))
    _, (*found, fits) = hloom.lax.scan(step, start, (seen, known))
    return found, jnp.sum(fits)


@hloom.jit
def smooth(params: Any, seen: Any, known: Any) -> Any:
    """Means f32[n, 4] and covariances f32[n, 4, 4], given all sightings; then the filter's means and covariances."""
    (predicted, predicted_cov, mean, cov), _ = kalman_filter(params, seen, known)

    def step(later: Any, now: Any) -> Any:
        later_mean, later_cov, later_predicted, later_predicted_cov = later
        mean, cov, predicted, predicted_cov = now
        gain = jnp.linalg.solve(later_predicted_cov, MOVE @ cov).T
        smooth_mean = mean + gain @ (later_mean - later_predicted)
        smooth_cov = cov + gain @ (later_cov - later_predicted_cov) @ gain.T
        return (smooth_mean, smooth_cov, predicted, predicted_cov), (smooth_mean, smooth_cov)

    last = mean[-1], cov[-1], predicted[-1], predicted_cov[-1]
    before = mean[:-1], cov[:-1], predicted[:-1], predicted_cov[:-1]
    _, (means, covs) = hloom.lax.scan(step, last, before, reverse=True)
    return jnp.concatenate([means, mean[-1:]]), jnp.concatenate([covs, cov[-1:]]), mean, cov


# ---- learning the noise levels


def loss(params: Any, seen: Any, known: Any) -> Any:
    """Minus the log-likelihood of a sighting, in the mean."""
    return -kalman_filter(params, seen, known)[1] / jnp.sum(known)


@hloom.jit
def train_step(state: Any, seen: Any, known: Any, rate: float) -> Any:
    """One step down the gradient with momentum; gives the new state and the loss before it."""
    params, velocity = state
    value, gradient = hloom.value_and_grad(loss)(params, seen, known)
    velocity = hloom.tree.map(lambda v, g: 0.8 * v - rate * g, velocity, gradient)
    return (hloom.tree.map(jnp.add, params, velocity), velocity), value


def learn(seen: NDArray, known: NDArray, steps: int) -> tuple[Any, NDArray]:
    """The parameters, and of each step: the loss, the deviations of changes and errors, f64[steps, 3]."""
    params = hloom.tree.map(jnp.log, {name: jnp.float32(value) for name, value in GUESS.items()})
    state, history = (params, hloom.tree.map(jnp.zeros_like, params)), []
    with common.bar(steps, "steps") as bar:
        for _ in range(steps):
            noise = np.exp(state[0]["change"]), np.exp(state[0]["error"])
            state, value = train_step(state, seen, known, 0.03)
            history.append((float(value), *map(float, noise)))
            bar.set_postfix(loss=f"{history[-1][0]:.4f}", refresh=False)
            bar.update()
    return state[0], np.array(history)


# ---- the buoy


def simulate(points: int, seed: int) -> tuple[NDArray, NDArray, NDArray]:
    """Positions f32[n, 2], sightings f32[n, 2], and which of these there are: a tenth is missing in one piece."""
    rng = np.random.default_rng(seed)
    states, pushes = np.zeros((points, 4)), rng.normal(size=(points, 4))
    states[0, 2:] = 1.0, 0.3
    root = np.linalg.cholesky(TRUE_CHANGE**2 * CHANGE)
    for k in range(1, points):
        states[k] = MOVE @ states[k - 1] + root @ pushes[k]
    seen = states[:, :2] + TRUE_ERROR * rng.normal(size=(points, 2))
    times = np.arange(points)
    known = (times < 6 * points // 10) | (times >= 7 * points // 10)
    return states[:, :2].astype(np.float32), seen.astype(np.float32), known


def distance(found: Any, truth: NDArray) -> NDArray:
    """How far each position is from the true one."""
    return np.hypot(*(np.asarray(found)[:, :2] - truth).T)


# ---- the picture


def draw(truth: NDArray, seen: NDArray, known: NDArray, found: Any, history: NDArray, words: str) -> Figure:
    smooth_mean, smooth_cov, mean, _ = map(np.asarray, found)
    picture = common.figure("A Kalman smoother with learned noise levels", words, 6)
    grid = picture.add_gridspec(
        2, 2, left=0.06, right=0.975, top=0.82, bottom=0.085, hspace=0.45, wspace=0.16, width_ratios=(1.35, 1)
    )
    plane = picture.add_subplot(grid[:, 0])
    for k in range(0, len(truth), 4):
        sizes, axes = np.linalg.eigh(smooth_cov[k, :2, :2])
        angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
        width, height = 4 * np.sqrt(sizes[::-1])  # two standard deviations to each side
        plane.add_patch(Ellipse(smooth_mean[k, :2], width, height, angle=angle, color=common.BLUE, alpha=0.12, lw=0))
    plane.plot(*seen[known].T, ".", color=common.QUIET, markersize=4, alpha=0.8, label="seen")
    plane.plot(*truth.T, color=common.INK, linewidth=1, label="true")
    plane.plot(*mean[:, :2].T, color=common.GOLD, linewidth=1.1, label="filter")
    plane.plot(*smooth_mean[:, :2].T, color=common.BLUE, linewidth=2, label="smoother, ± 2 deviations")
    common.style(plane, "Where it was")
    plane.set_aspect("equal", adjustable="datalim")
    common.legend(plane, loc="best")

    errors = picture.add_subplot(grid[0, 1])
    errors.plot(distance(mean, truth), color=common.GOLD, linewidth=1.2, label="filter")
    errors.plot(distance(smooth_mean, truth), color=common.BLUE, linewidth=1.6, label="smoother")
    gap = np.flatnonzero(~known)
    errors.axvspan(gap[0], gap[-1], color=common.GRID, zorder=0, lw=0)
    common.style(errors, "Distance from the truth, by time")
    common.legend(errors, loc="upper left", ncols=2)
    errors.set_xlim(0, len(truth))
    errors.annotate("← nothing seen", (gap[-1], 0.93), xycoords=("data", "axes fraction"), xytext=(5, 0),
                    textcoords="offset points", va="center", fontsize=9.5, color=common.INK)  # fmt: skip
    errors.set_ylim(0, 1.3 * distance(mean, truth).max())

    noise = picture.add_subplot(grid[1, 1])
    for column, true, name, colour in (
        (2, TRUE_ERROR, "errors of what is seen", common.GREEN),
        (1, TRUE_CHANGE, "changes of velocity", common.RED),
    ):
        noise.axhline(true, color=colour, linewidth=1, linestyle="--")
        noise.plot(history[:, column], color=colour, linewidth=1.8, label=name)
    common.log_scale(noise.yaxis)
    common.style(noise, "Learned deviations, by step (true ones dashed)")
    common.legend(noise, loc="center right")
    return picture


def main() -> None:
    parser = common.parse(__doc__, "kalman.png", points=(200, "steps of time"), steps=(150, "steps of learning"))
    parser.set_defaults(seed=4)  # a track that fills the picture
    options = parser.parse_args()
    truth, seen, known = simulate(options.points, options.seed)
    began = time.perf_counter()
    params, _ = learn(seen, known, 1)
    smooth(params, seen, known)
    print(f"compiling: {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    params, history = learn(seen, known, options.steps)
    seconds = time.perf_counter() - began
    print(f"loss {history[0, 0]:.4f} -> {history[-1, 0]:.4f} in {len(history):,} steps, {seconds:.2f} s")
    for column, name, true in ((1, "changes", TRUE_CHANGE), (2, "errors", TRUE_ERROR)):
        print(f"deviation of {name:7}  {history[0, column]:.3f} -> {history[-1, column]:.3f} (is {true})")
    found = smooth(params, seen, known)
    means = {"seen": seen[known], "filter": found[2], "smoother": found[0]}
    rms = {n: np.sqrt(np.mean(distance(m, truth[known] if n == "seen" else truth) ** 2)) for n, m in means.items()}
    print("distance from the truth: " + ", ".join(f"{name} {value:.2f}" for name, value in rms.items()))
    words = f"{len(history)} gradients through {options.points} steps of the filter in {seconds:.2f} s; distance from "
    words += f"the truth: filter {rms['filter']:.2f}, smoother {rms['smoother']:.2f}"
    common.save(draw(truth, seen, known, found, history, words), options.out)
    print(f"Picture: {options.out}")


if __name__ == "__main__":
    common.run(main)
