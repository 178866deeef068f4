#!/usr/bin/env python3
"""Fit a differential equation to data, by gradients through the solver: hares and lynxes in Canada, 1900 to 1920.

    python examples/fit_ode.py
    python examples/fit_ode.py --steps 3000 --out picture.png

The Hudson's Bay Company counted the pelts that it bought. Lotka and Volterra's model of prey u and predators v,

    du/dt = (alpha - beta v) u
    dv/dt = (delta u - gamma) v

has four rates and two populations at the start. We integrate it with the Runge-Kutta method, compare with the data, and
go down the gradient. The solver is a loop (`fori_loop`) in a loop (`scan`); its derivative is a loop that runs
backwards. hloom makes one native loop of each.

Everything from `derivatives` to `train_step` is a JAX program: `import jax as hloom` and `import jax.numpy as jnp`.
Data: E. P. Odum, "Fundamentals of Ecology" (1953), in thousands of pelts.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import common
import hloom
import hloom.numpy as jnp

YEARS = np.arange(1900, 1921)
HARES = [30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1]
HARES += [40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]
LYNXES = [4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4]
LYNXES += [8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
PELTS = np.array([HARES, LYNXES], np.float32).T  # f32[21 years, 2]

SUBSTEPS = 20  # steps of the solver in a year

# Where the search begins: cycles too long and too small. All are above 0, so we search for their logarithms.
GUESS = {"alpha": 0.5, "beta": 0.05, "gamma": 0.5, "delta": 0.05, "start": [20.0, 10.0]}


# ---- the model


def derivatives(rates: Any, state: Any) -> Any:
    """d state / dt. The state is f32[2]: hares, lynxes."""
    hares, lynxes = state
    return jnp.array(
        [(rates["alpha"] - rates["beta"] * lynxes) * hares, (rates["delta"] * hares - rates["gamma"]) * lynxes]
    )


def runge_kutta(rates: Any, state: Any, dt: float) -> Any:
    """One step of the classic method of fourth order."""
    k1 = derivatives(rates, state)
    k2 = derivatives(rates, state + dt / 2 * k1)
    k3 = derivatives(rates, state + dt / 2 * k2)
    k4 = derivatives(rates, state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve(params: Any, years: int, per_year: int = 1) -> Any:
    """The populations f32[years * per_year, 2], from the start on."""
    rates = hloom.tree.map(jnp.exp, params)
    substeps = SUBSTEPS // per_year

    def advance(state: Any, _: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            return runge_kutta(rates, state, 1 / SUBSTEPS)

        return hloom.lax.fori_loop(0, substeps, step, state), state

    _, path = hloom.lax.scan(advance, rates["start"], None, length=years * per_year)
    return path


def loss(params: Any) -> Any:
    """The mean square of log(model / data): errors of counts are relative ones."""
    path = solve(params, len(YEARS))
    return jnp.mean((jnp.log(path) - jnp.log(PELTS)) ** 2)


# ---- the search: Adam (Kingma and Ba, 2015), written out


def init_state() -> Any:
    params = hloom.tree.map(jnp.log, {name: jnp.array(value) for name, value in GUESS.items()})
    zeros = hloom.tree.map(jnp.zeros_like, params)
    return params, zeros, zeros


@hloom.jit
def train_step(state: Any, count: int, rate: float) -> Any:
    """One step, number `count` from 0 on; gives the new state and the loss before the step."""
    params, mean, square = state
    value, gradient = hloom.value_and_grad(loss)(params)
    mean = hloom.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = hloom.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, gradient)
    scale_mean, scale_square = 1 / (1 - 0.9 ** (count + 1.0)), 1 / (1 - 0.999 ** (count + 1.0))

    def update(p: Any, m: Any, s: Any) -> Any:
        return p - rate * (m * scale_mean) / (jnp.sqrt(s * scale_square) + 1e-8)

    return (hloom.tree.map(update, params, mean, square), mean, square), value


def fit(steps: int) -> tuple[Any, list[float]]:
    """Search with a rate that falls to 0; gives the parameters and each step's loss."""
    state, losses = init_state(), []
    with common.bar(steps, "steps") as bar:
        for count in range(steps):
            rate = 0.02 * (1 + np.cos(np.pi * count / steps)) / 2
            state, value = train_step(state, count, rate)
            losses.append(float(value))
            bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
            bar.update()
    return state[0], losses


# ---- the picture


def draw(params: Any, losses: list[float], seconds: float) -> Figure:
    points, per_year = len(YEARS), 10
    dense = hloom.jit(solve, static_argnums=(1, 2))
    before, after = (np.asarray(dense(p, points - 1, per_year)) for p in (init_state()[0], params))
    times = YEARS[0] + np.arange(len(after)) / per_year
    picture = common.figure(
        "Hares and lynxes: a differential equation, fitted by gradients",
        f"{len(losses):,} steps of Adam, each through {points * SUBSTEPS} Runge-Kutta steps and back: {seconds:.1f} s",
        6.2,
    )
    grid = picture.add_gridspec(
        2, 2, height_ratios=(1.25, 1), left=0.06, right=0.985, top=0.81, bottom=0.085, hspace=0.42, wspace=0.16
    )
    series = picture.add_subplot(grid[0, :])
    for column, name, colour in ((0, "hares", common.BLUE), (1, "lynxes", common.RED)):
        series.plot(times, before[:, column], "--", color=colour, alpha=0.4, linewidth=1.2, label=f"{name}, guess")
        series.plot(times, after[:, column], color=colour, linewidth=2, label=f"{name}, fitted")
        series.plot(YEARS, PELTS[:, column], "o", color=colour, markersize=5, label=f"{name}, data")
    common.style(series, "Thousands of pelts, by year")
    series.set_xlim(YEARS[0] - 0.3, YEARS[-1] + 0.3)
    series.set_ylim(0, 112)
    series.set_xticks(YEARS[::2])
    common.legend(series, ncols=2, loc="upper center", bbox_to_anchor=(0.45, 1.03))

    cycle = picture.add_subplot(grid[1, 0])
    cycle.plot(*before.T, "--", color=common.QUIET, alpha=0.7, linewidth=1.2, label="guess")
    cycle.plot(*after.T, color=common.INK, linewidth=2, label="fitted")
    cycle.plot(*PELTS.T, "o-", color=common.GOLD, markersize=4.5, linewidth=0.6, label="data")
    common.style(cycle, "The cycle", "hares", "lynxes")
    cycle.set_xlim(0, 105)
    cycle.set_ylim(0)
    common.legend(cycle, loc="upper right")

    curve = picture.add_subplot(grid[1, 1])
    curve.plot(losses, color=common.INK, linewidth=1.8)
    common.log_scale(curve.yaxis)
    common.style(curve, "Mean square of log(model / data), by step")
    return picture


def main() -> None:
    parser = common.parse(__doc__, "ode.png", steps=(1000, "steps of the search"))
    options = parser.parse_args()
    began = time.perf_counter()
    train_step(init_state(), 0, 0.0)
    print(f"compiling: {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    params, losses = fit(options.steps)
    seconds = time.perf_counter() - began
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {len(losses):,} steps, {seconds:.1f} s")
    for name, guess in GUESS.items():
        print(f"{name:6} {guess} -> {np.array2string(np.exp(np.asarray(params[name])), precision=3)}")
    common.save(draw(params, losses, seconds), options.out)
    print(f"Picture: {options.out}")


if __name__ == "__main__":
    common.run(main)
