"""The picture at the end of `train_mnist.py`: the loss and accuracy, and the network's answers for test digits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # a file, no window: works without a display

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

NDArray = np.ndarray[Any, Any]

COLUMNS, ROWS, ROWS_WRONG = 12, 6, 3
INK, GOOD, BAD, QUIET = "#1d2733", "#2a6f97", "#c1121f", "#8d99a6"


def save(
    path: Path,
    title: str,
    subtitle: str,
    losses: NDArray,
    accuracies: list[float],
    images: NDArray,
    labels: NDArray,
    predictions: NDArray,
    seed: int = 0,
) -> None:
    """Write a PNG, with a title, and below it what was learned and how long it took.

    `losses` f32[steps], `accuracies` one for each epoch (0 to 1), `images` f32[n, rows, columns] with their `labels`
    and `predictions` [n]. Some correctly read digits are drawn at random, then as many wrong ones as there is room for.
    """
    wrong = predictions != labels
    wrong_ones = np.flatnonzero(wrong)[: COLUMNS * ROWS_WRONG]
    wrong_rows = max(1, math.ceil(len(wrong_ones) / COLUMNS))
    right_rows = ROWS - wrong_rows
    right_ones = np.random.default_rng(seed).permutation(np.flatnonzero(~wrong))[: COLUMNS * right_rows]

    figure = plt.figure(figsize=(12, 9.8), dpi=110, facecolor="white")
    figure.text(0.05, 0.957, title, fontsize=15, color=INK, weight="bold", parse_math=False)
    figure.text(0.05, 0.933, subtitle, fontsize=10.5, color=QUIET, parse_math=False)
    curves, digits = figure.add_gridspec(
        2, 1, height_ratios=(1, 2.5), hspace=0.16, left=0.05, right=0.985, top=0.89, bottom=0.035
    )
    loss_cell, accuracy_cell = curves.subgridspec(1, 2, width_ratios=(1.4, 1), wspace=0.16)
    _loss_curve(figure.add_subplot(loss_cell), losses, len(accuracies))
    _accuracy_curve(figure.add_subplot(accuracy_cell), accuracies)

    cells = digits.subgridspec(
        ROWS + 1, COLUMNS, hspace=0.42, wspace=0.12, height_ratios=[1] * right_rows + [0.12] + [1] * wrong_rows
    )
    right_count, wrong_count = int(np.count_nonzero(~wrong)), int(np.count_nonzero(wrong))
    which = f", {len(wrong_ones)} of them here" if wrong_count > len(wrong_ones) else ""
    which += "   (read as → is)" if wrong_count else ""
    for row, members, heading in (
        (0, right_ones, f"Read right: {right_count:,} of {len(labels):,} test digits, {len(right_ones)} of them here"),
        (
            right_rows + 1,
            wrong_ones,
            f"Read wrong: {wrong_count:,}{which}",
        ),
    ):
        head = figure.add_subplot(cells[row, :])
        head.set_axis_off()
        head.set_title(heading, loc="left", fontsize=11, color=INK, pad=4)
        for place, member in enumerate(members):
            axes = figure.add_subplot(cells[row + place // COLUMNS, place % COLUMNS])
            _digit(axes, images[member], int(labels[member]), int(predictions[member]))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def _digit(axes: Axes, image: NDArray, label: int, prediction: int) -> None:
    right = label == prediction
    axes.imshow(image, cmap="gray_r", vmin=0, vmax=1)
    axes.set_xticks([])
    axes.set_yticks([])
    text = str(prediction) if right else f"{prediction} → {label}"
    axes.set_xlabel(text, color=GOOD if right else BAD, fontsize=10, weight="normal" if right else "bold", labelpad=2)
    for spine in axes.spines.values():
        spine.set_color(QUIET if right else BAD)
        spine.set_linewidth(0.5 if right else 2.0)


def _loss_curve(axes: Axes, losses: NDArray, epochs: int) -> None:
    """Every step's loss, faint, and a moving average over about a fortieth of the run."""
    window = max(1, len(losses) // 40)
    sums = np.cumsum(np.concatenate([np.zeros(1), losses]))
    smooth = (sums[window:] - sums[:-window]) / window
    steps = np.arange(len(losses)) * (epochs / max(1, len(losses)))
    if window > 1:
        axes.plot(steps, losses, color=GOOD, alpha=0.25, linewidth=0.8, label="one step")
        axes.plot(steps[window - 1 :], smooth, color=GOOD, linewidth=1.8, label=f"average of {window} steps")
    else:
        axes.plot(steps, losses, color=GOOD, linewidth=1.8, label="one step")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.legend(frameon=False, fontsize=9, loc="upper right", labelcolor=INK)
    _style(axes, "Training loss, by epoch", epochs)


def _accuracy_curve(axes: Axes, accuracies: list[float]) -> None:
    epochs = np.arange(1, len(accuracies) + 1)
    percent = np.array(accuracies) * 100
    axes.plot(epochs, percent, color=GOOD, linewidth=1.8, marker="o", markersize=4 if len(epochs) < 30 else 0)
    bottom = max(0.0, np.floor(percent.min() / 5 - 1) * 5)
    high = percent[-1] > (100 + bottom) / 2
    axes.annotate(
        f"{percent[-1]:.1f}%", (epochs[-1], percent[-1]), xytext=(0, -16 if high else 8),
        textcoords="offset points", ha="right", color=INK, weight="bold",
    )  # fmt: skip
    axes.set_ylim(bottom, 100 + (100 - bottom) * 0.03)
    _style(axes, "Test accuracy in %, by epoch", len(accuracies))


def _style(axes: Axes, title: str, epochs: int) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlim(0, epochs * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.tick_params(colors=QUIET, labelsize=8)
    axes.grid(True, color="#e6eaee", linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#c9d1d9")
