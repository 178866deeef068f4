#!/usr/bin/env python3
"""Find wrong labels by the gradient of each example, and train with gradients of limited size, as for privacy.

    python examples/per_example_gradients.py
    python examples/per_example_gradients.py --data DIR --epochs 5     # MNIST's IDX files

A small network learns to read digits, but one label in ten is wrong. The gradient of the mean loss does not say which
images pull hardest; `vmap(grad(loss))` does: a gradient for each example, in one program. We use it twice:

* an image with a long gradient after training contradicts the others: most of these labels are the wrong ones;
* each gradient is cut to a length of at most 3 before the mean is taken, so that no image can pull harder than others.
  With noise on top this is the update of DP-SGD, which trains on private data (how private is not computed here).

Everything from `init_params` to `train_step` is a JAX program: `import jax as hloom` and `import jax.numpy as jnp`.
Source: M. Abadi and others, "Deep learning with differential privacy" (2016).
"""

from __future__ import annotations

import math
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import common
import hloom
import hloom.numpy as jnp
import mnist_data

NDArray = np.ndarray[Any, Any]

BATCH = 50
WRONG = 0.1  # the part of the labels that are wrong
LIMIT, NOISE = 3.0, 0.5  # the length that a gradient may have; the deviation of the noise on their sum


# ---- the network, for one image


def init_params(key: Any, pixels: int, hidden: int) -> Any:
    first, second = hloom.random.split(key)
    return {
        "w1": hloom.random.normal(first, (pixels, hidden)) * math.sqrt(2 / pixels),
        "b1": jnp.zeros(hidden),
        "w2": hloom.random.normal(second, (hidden, 10)) * math.sqrt(1 / hidden),
        "b2": jnp.zeros(10),
    }


def logits(params: Any, image: Any) -> Any:
    """One image f32[pixels] to a score for each digit, f32[10]."""
    return hloom.nn.relu(image @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def loss(params: Any, image: Any, label: Any) -> Any:
    """The cross-entropy of one image against its label s32[]."""
    return -jnp.sum(hloom.nn.log_softmax(logits(params, image)) * hloom.nn.one_hot(label, 10))


# ---- a gradient for each image


def length(gradient: Any) -> Any:
    """The length of all of a gradient's arrays, taken as one vector."""
    return jnp.sqrt(sum(jnp.sum(part**2) for part in hloom.tree.leaves(gradient)))


@hloom.jit
def lengths(params: Any, images: Any, labels: Any) -> Any:
    """The length of each image's gradient, f32[n]."""
    return hloom.vmap(lambda image, label: length(hloom.grad(loss)(params, image, label)))(images, labels)


def limited_mean(params: Any, images: Any, labels: Any, limit: float) -> Any:
    """The mean of the images' gradients; a gradient longer than `limit` is shortened to `limit`."""

    def limited(image: Any, label: Any) -> Any:
        gradient = hloom.grad(loss)(params, image, label)
        factor = jnp.minimum(1.0, limit / jnp.maximum(length(gradient), 1e-12))
        return hloom.tree.map(lambda part: factor * part, gradient)

    return hloom.tree.map(lambda part: jnp.mean(part, axis=0), hloom.vmap(limited)(images, labels))


@partial(hloom.jit, donate_argnums=0)
def train_step(params: Any, images: Any, labels: Any, key: Any, limit: float, noise: float, rate: float) -> Any:
    """One step down the limited mean of the gradients, with noise."""
    leaves, tree = hloom.tree.flatten(limited_mean(params, images, labels, limit))
    keys = hloom.random.split(key, len(leaves))
    noisy = [leaf + noise / len(images) * hloom.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves)]
    return hloom.tree.map(lambda p, g: p - rate * g, params, hloom.tree.unflatten(tree, noisy))


@hloom.jit
def predict(params: Any, images: Any) -> Any:
    """The most likely digit of each image, s32[n]."""
    return jnp.argmax(hloom.vmap(logits, in_axes=(None, 0))(params, images), axis=1)


# ---- the program around it


def with_wrong_labels(labels: NDArray, seed: int) -> tuple[NDArray, NDArray]:
    """The labels, some of them changed to another digit, and which these are."""
    rng = np.random.default_rng(seed)
    wrong = np.zeros(len(labels), bool)
    wrong[rng.permutation(len(labels))[: round(WRONG * len(labels))]] = True
    other = (labels + rng.integers(1, 10, len(labels))) % 10
    return np.where(wrong, other, labels).astype(np.int32), wrong


def train(
    digits: Any, labels: NDArray, limit: float, noise: float, first_rate: float, options: Any, bar: Any
) -> tuple[Any, list[float]]:
    """Train on the given labels; gives the parameters, and the accuracy on test digits after each epoch."""
    rng, key = np.random.default_rng(options.seed), hloom.random.key(options.seed)
    params = init_params(key, digits.train_images.shape[1], options.hidden)
    batches = len(labels) // BATCH
    accuracies = []
    for epoch in range(options.epochs):
        order = rng.permutation(len(labels))
        for count in range(batches):
            batch = order[count * BATCH : (count + 1) * BATCH]
            step = epoch * batches + count
            rate = first_rate * (1 + math.cos(math.pi * step / (options.epochs * batches))) / 2
            noise_key = hloom.random.fold_in(key, step)
            params = train_step(params, digits.train_images[batch], labels[batch], noise_key, limit, noise, rate)
            bar.update(BATCH)
        accuracies.append(float(np.mean(predict(params, digits.test_images) == digits.test_labels)))
        bar.set_postfix(accuracy=f"{accuracies[-1]:.1%}", refresh=False)
    return params, accuracies


def all_lengths(params: Any, images: NDArray, labels: NDArray) -> NDArray:
    """The length of each training image's gradient, taken by parts to save memory."""
    parts = [lengths(params, images[k : k + 500], labels[k : k + 500]) for k in range(0, len(labels), 500)]
    return np.concatenate([np.asarray(part) for part in parts])


# ---- the picture


def draw(
    digits: Any, labels: NDArray, wrong: NDArray, found: NDArray, curves: dict[str, list[float]], words: str
) -> Figure:
    picture = common.figure("A gradient for each example finds the wrong labels", words, 6.4)
    grid = picture.add_gridspec(2, 1, left=0.06, right=0.975, top=0.83, bottom=0.05, hspace=0.36, height_ratios=(1, 1))
    upper, lower = grid[0].subgridspec(1, 2, wspace=0.16), grid[1].subgridspec(2, 12, hspace=0.85, wspace=0.2)

    lengths_panel = picture.add_subplot(upper[0])
    bins = np.geomspace(max(found.min(), 1e-3), found.max() * 1.05, 40)
    clipped = np.maximum(found, bins[0])
    lengths_panel.hist(clipped[~wrong], bins, color=common.BLUE, alpha=0.85, label="right label")
    lengths_panel.hist(clipped[wrong], bins, color=common.RED, alpha=0.75, label="wrong label")
    common.log_scale(lengths_panel.xaxis)
    common.style(lengths_panel, "Images, by the length of their gradient")
    common.legend(lengths_panel, loc="upper left")

    accuracy = picture.add_subplot(upper[1])
    for (name, curve), colour in zip(curves.items(), (common.QUIET, common.BLUE)):
        accuracy.plot(range(1, len(curve) + 1), 100 * np.array(curve), "o-", color=colour, markersize=3.5, label=name)
    common.style(accuracy, "Test accuracy in %, by epoch")
    accuracy.set_ylim(top=100)
    common.legend(accuracy, loc="lower right")

    order = np.argsort(found)
    for row, members, heading in (
        (0, order[::-1][:12], "Longest gradients: label given → digit that it is"),
        (1, order[:12], "Shortest gradients"),
    ):
        head = picture.add_subplot(lower[row, :])
        head.set_axis_off()
        head.set_title(heading, loc="left", fontsize=11, color=common.INK, pad=3)
        for place, member in enumerate(members):
            panel = picture.add_subplot(lower[row, place])
            panel.imshow(digits.train_images[member].reshape(digits.image_shape), cmap="gray_r", vmin=0, vmax=1)
            given, true = labels[member], digits.train_labels[member]
            colour = common.RED if wrong[member] else common.BLUE
            words = f"{given} → {true}" if wrong[member] else str(given)
            panel.set_xlabel(words, color=colour, fontsize=10, labelpad=2)
            panel.set(xticks=[], yticks=[])
            for spine in panel.spines.values():
                spine.set(color=colour, linewidth=1.2 if wrong[member] else 0.5)
    return picture


def main() -> None:
    parser = common.parse(
        __doc__, "gradients.png", epochs=(12, "passes over the images"), hidden=(64, "the size of the hidden layer")
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with MNIST's IDX files; None: small digits")
    options = parser.parse_args()
    digits = mnist_data.load(options.data, bundled=options.data is None)
    labels, wrong = with_wrong_labels(digits.train_labels, options.seed)
    print(f"{digits.name}: {len(labels):,} images to train, {wrong.sum():,} of them with a wrong label")
    began = time.perf_counter()
    curves: dict[str, list[float]] = {}
    settings = {  # of `train`: limit, noise, rate
        "gradients as they are": (math.inf, 0.0, 0.1),
        f"none longer than {LIMIT:g}, noise": (LIMIT, NOISE, 0.3),
    }
    trained = []
    with common.bar(len(settings) * options.epochs * (len(labels) // BATCH) * BATCH, "images") as bar:
        for name, setting in settings.items():
            params, curves[name] = train(digits, labels, *setting, options, bar)
            trained.append(params)
            bar.write(f"{name}: {curves[name][-1]:.1%} of the test digits read right", file=sys.stdout)
    found = all_lengths(trained[0], digits.train_images, labels)
    seconds = time.perf_counter() - began
    suspects = np.argsort(found)[::-1][: wrong.sum()]
    hits = float(np.mean(wrong[suspects]))
    print(f"of the {len(suspects):,} longest gradients, {hits:.0%} belong to wrong labels; {seconds:.1f} s")
    words = f"{digits.name}, one label in ten is wrong: of the {len(suspects):,} longest gradients, "
    words += f"{hits:.0%} belong to these"
    common.save(draw(digits, labels, wrong, found, curves, words), options.out)
    print(f"Picture: {options.out}")


if __name__ == "__main__":
    common.run(main, mnist_data.DataError)
