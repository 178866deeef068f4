#!/usr/bin/env python3
"""Train a small network to read handwritten digits, and look at every stage of its training step.

    python examples/train_mnist.py                          # MNIST if it can be had, else scikit-learn's digits
    python examples/train_mnist.py --data DIR --epochs 10   # your own IDX files
    python examples/train_mnist.py --show kernels           # the loops that the training step became
    python examples/train_mnist.py --target tpu             # all arrays inside lie in memory as on a TPU

The network, its loss and its update are written as for JAX: with `import jax as hloom` and `import jax.numpy as jnp`
the same code trains there.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import hloom
import hloom.numpy as jnp
import mnist_data
import mnist_picture

# ---- the network: a list of layers, each a dictionary


def init_params(key: Any, sizes: list[int]) -> Any:
    """He's initialisation: normal weights f32[inputs, outputs] of variance 2 / inputs, biases f32[outputs] of zero."""
    keys = hloom.random.split(key, len(sizes) - 1)
    return [
        {"w": hloom.random.normal(k, (n_in, n_out)) * math.sqrt(2 / n_in), "b": jnp.zeros(n_out)}
        for k, n_in, n_out in zip(keys, sizes, sizes[1:])
    ]


def logits(params: Any, images: Any) -> Any:
    """Images f32[n, pixels] to one score for each digit, f32[n, 10]."""
    x = images
    for layer in params[:-1]:
        x = hloom.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params: Any, images: Any, labels: Any) -> Any:
    """The mean cross-entropy against labels s32[n]."""
    log_probabilities = hloom.nn.log_softmax(logits(params, images))
    return -jnp.mean(jnp.sum(log_probabilities * hloom.nn.one_hot(labels, 10), axis=1))


@partial(hloom.jit, donate_argnums=0)
def train_step(state: Any, images: Any, labels: Any, learning_rate: float, momentum: float) -> Any:
    """One step of gradient descent with momentum. The state's memory is donated: updated in place."""
    params, velocity = state
    value, gradient = hloom.value_and_grad(loss)(params, images, labels)
    velocity = hloom.tree.map(lambda v, g: momentum * v - learning_rate * g, velocity, gradient)
    params = hloom.tree.map(lambda p, v: p + v, params, velocity)
    return (params, velocity), value


@hloom.jit
def predict(params: Any, images: Any) -> Any:
    """The most likely digit of each image, s32[n]."""
    return jnp.argmax(logits(params, images), axis=1)


# ---- the program around it


def compile_programs(digits: mnist_data.Digits, options: argparse.Namespace) -> float:
    """Call every program once, on a state that is thrown away, so that training begins with all compiled; seconds."""
    began = time.perf_counter()
    count = len(digits.train_images)
    state = init_state(options, digits)
    for size in sorted({min(options.batch_size, count), count % options.batch_size or count}, reverse=True):
        images, labels = digits.train_images[:size], digits.train_labels[:size]
        state, _ = train_step(state, images, labels, options.learning_rate, options.momentum)
    predict(state[0], digits.test_images)
    return time.perf_counter() - began


def train(digits: mnist_data.Digits, options: argparse.Namespace) -> tuple[Any, np.ndarray, list[float]]:
    """Run all epochs with a progress bar; gives the parameters, each step's loss, each epoch's test accuracy."""
    count = len(digits.train_images)
    epochs = options.epochs or default_epochs(count, options.batch_size)
    steps = epochs * math.ceil(count / options.batch_size)
    state = init_state(options, digits)
    shuffle = np.random.default_rng(options.seed)
    losses: list[Any] = []
    accuracies: list[float] = []
    with tqdm(total=epochs * count, unit=" images", unit_scale=True, disable=None, leave=False) as bar:
        for epoch in range(1, epochs + 1):
            began = time.perf_counter()
            order = shuffle.permutation(count)
            for start in range(0, count, options.batch_size):
                batch = order[start : start + options.batch_size]  # the last may be smaller; no new compilation
                images, labels = digits.train_images[batch], digits.train_labels[batch]
                rate = options.learning_rate * (1 + math.cos(math.pi * len(losses) / steps)) / 2
                state, value = train_step(state, images, labels, rate, options.momentum)
                losses.append(value)
                bar.set_postfix(loss=f"{float(value):.4f}", refresh=False)
                bar.update(len(batch))
            speed = count / (time.perf_counter() - began)
            accuracies.append(float(np.mean(predict(state[0], digits.test_images) == digits.test_labels)))
            mean = float(np.mean(losses[-math.ceil(count / options.batch_size) :]))
            line = f"epoch {epoch:2}/{epochs}   loss {mean:.4f}   test accuracy {accuracies[-1]:6.2%}"
            bar.write(f"{line}   {speed:9,.0f} images/s", file=sys.stdout)
    return state[0], np.array(losses, np.float32), accuracies


def init_state(options: argparse.Namespace, digits: mnist_data.Digits) -> Any:
    sizes = [math.prod(digits.image_shape), *options.hidden, 10]
    params = init_params(hloom.random.key(options.seed), sizes)
    return params, hloom.tree.map(jnp.zeros_like, params)


def default_epochs(images: int, batch_size: int) -> int:
    """Enough for about 1,000 steps, and at least 5."""
    return max(5, round(1000 / math.ceil(images / batch_size)))


def show(stage: str, digits: mnist_data.Digits, options: argparse.Namespace) -> None:
    """Print the training step as it is at one stage of its compilation."""
    state, count = init_state(options, digits), options.batch_size
    lowered = train_step.lower(
        state, digits.train_images[:count], digits.train_labels[:count], options.learning_rate, options.momentum
    )
    if stage == "hlo":
        print(lowered.as_text())
        return
    compiled = lowered.compile()
    if stage == "optimized":
        print(compiled.as_text())
    elif stage == "kernels":
        print(compiled.kernels())
    elif stage == "passes":
        print(compiled.passes())
    else:
        print(compiled.memory_analysis())


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    def positive(text: str) -> int:
        if (number := int(text)) < 1:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    def sizes(text: str) -> list[int]:
        return [positive(part) for part in text.split(",") if part]

    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=Path, metavar="DIR", help="folder with MNIST's IDX files, gzipped or not")
    source.add_argument("--digits", action="store_true", help="use scikit-learn's 1,797 digits; no network")
    parser.add_argument("--epochs", type=positive, help="passes over the training images; None: about 1,000 steps")
    parser.add_argument("--batch-size", type=positive, default=64)
    parser.add_argument("--hidden", type=sizes, default=[512, 512], metavar="N,N", help="sizes of the hidden layers")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="the first; it falls to 0")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of the order of the images")
    parser.add_argument("--out", type=Path, default=Path("out/mnist.png"), metavar="PNG", help="the picture")
    parser.add_argument(
        "--show",
        choices=("hlo", "passes", "optimized", "kernels", "memory"),
        help="print this of the training step and exit: HLO as traced, what each pass did, HLO after all passes, the "
        "Python loops that it became, its memory",
    )
    parser.add_argument(
        "--target",
        choices=("cpu", "tpu"),
        default=hloom.config.hloom_target,
        help="whose layouts the compiled programs use: dense rows, or tiles of 8x128",
    )
    options = parser.parse_args(arguments)
    if options.target not in ("cpu", "tpu"):
        parser.error(f"HLOOM_TARGET is {options.target!r}; choose from 'cpu', 'tpu'")
    if options.out.suffix != ".png":
        parser.error(f"--out {options.out}: the picture is a PNG; give it a name that ends in .png")
    return options


def main() -> None:
    options = parse_options()
    hloom.config.update("hloom_target", options.target)
    digits = mnist_data.load(options.data, bundled=options.digits)
    if options.show:
        show(options.show, digits, options)
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)  # fail before the work, not after it
    print(f"{digits.name}: {len(digits.train_images):,} images to train, {len(digits.test_images):,} to test")
    compiling = compile_programs(digits, options)
    print(f"compiling: {compiling:.1f} s")
    began = time.perf_counter()
    params, losses, accuracies = train(digits, options)
    training = time.perf_counter() - began
    print(f"training: {training:.1f} s")
    predictions = np.asarray(predict(params, digits.test_images))
    title = f"{digits.name}: {accuracies[-1]:.2%} of {len(digits.test_labels):,} test digits read right"
    mnist_picture.save(
        options.out,
        title,
        f"{len(digits.train_images):,} images to train, {len(accuracies)} {'epochs' if accuracies[1:] else 'epoch'}; "
        f"{compiling:.1f} s of compiling, then {training:.1f} s of training",
        losses,
        accuracies,
        digits.test_images.reshape(-1, *digits.image_shape),
        digits.test_labels,
        predictions,
        options.seed,
    )
    print(f"{title}\nPicture: {options.out}")


if __name__ == "__main__":
    try:
        main()
    except (mnist_data.DataError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        sys.exit(130)
