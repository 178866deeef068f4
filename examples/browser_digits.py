#!/usr/bin/env python3
"""A web page on which one draws a digit, and a network answers: WebAssembly made by hloom.

    python examples/browser_digits.py                      # train, compile, and serve at http://localhost:8000
    python examples/browser_digits.py --digits --no-serve  # only make the files; scikit-learn's digits
    python examples/browser_digits.py --weights out/browser/weights.npz

The page has no library: one module of WebAssembly, which holds the network and what prepares a drawing for it, and a
script of 100 lines. Nothing is needed to make it but hloom.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import sys
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import hloom
import hloom.aot
import hloom.numpy as jnp
import hloom.scipy.ndimage
import mnist_data
import train_mnist

HERE = Path(__file__).parent
DRAWING = (112, 112)
"""Pixels of a drawing; the page draws three times as fine."""
SIDE, BOX = 28, 20
"""Pixels of the network's image, and of the digit in it, as in MNIST."""
MANY = 30_000
"""With fewer images to train, variants of them are made."""


def prepare(drawing: Any) -> Any:
    """A drawing f32[rows, columns] as MNIST has them, f32[28, 28]: its larger side 20 pixels, its centre of mass in the
    middle, the darkest pixel 1."""
    rows, columns = drawing.shape
    ink = drawing > 0.2
    size = jnp.maximum(_extent(ink.any(axis=1)), _extent(ink.any(axis=0))) * (SIDE / BOX)
    total = jnp.maximum(drawing.sum(), 1e-6)
    down = _overlaps(jnp.sum(drawing.sum(axis=1) * (jnp.arange(rows) + 0.5)) / total, size, rows)
    across = _overlaps(jnp.sum(drawing.sum(axis=0) * (jnp.arange(columns) + 0.5)) / total, size, columns)
    image = down @ drawing @ across.T
    return image / jnp.maximum(image.max(), 1e-6)


def _extent(lines: Any) -> Any:
    """From the first true one to the last; 1 if there is none."""
    places = jnp.arange(len(lines))
    first = jnp.min(jnp.where(lines, places, len(lines)))
    last = jnp.max(jnp.where(lines, places, -1))
    return jnp.maximum(last - first + 1, 1).astype(np.float32)


def _overlaps(centre: Any, size: Any, count: int) -> Any:
    """How much each of `count` pixels covers of 28 cells, which together are `size` wide, around `centre`."""
    edges = centre + size * (jnp.arange(SIDE + 1) / SIDE - 0.5)
    pixels = jnp.arange(count)
    covered = jnp.minimum(edges[1:, None], pixels + 1) - jnp.maximum(edges[:-1, None], pixels)
    return jnp.maximum(covered, 0) / (size / SIDE)


def read(params: Any, drawing: Any) -> Any:
    """The digit in a drawing f32[112, 112], s32[]; the probability of each digit, f32[10]; what the network sees."""
    seen = prepare(drawing)
    scores = train_mnist.logits(params, seen.reshape(-1))
    return {"digit": jnp.argmax(scores), "probabilities": hloom.nn.softmax(scores), "seen": seen}


def vary(key: Any, image: Any) -> Any:
    """An image f32[28, 28] as another hand might have written it: turned, sheared, stretched, its edges sharper and its
    lines thicker or thinner, at random."""
    of_shape, of_ink = hloom.random.split(key)
    turn, shear, taller, wider = 0.13 * hloom.random.normal(of_shape, (4,))
    rotate = jnp.array([[jnp.cos(turn), jnp.sin(turn) + shear], [-jnp.sin(turn), jnp.cos(turn)]])
    middle = (SIDE - 1) / 2
    grid = jnp.stack(jnp.meshgrid(jnp.arange(SIDE) - middle, jnp.arange(SIDE) - middle, indexing="ij"))
    places = jnp.einsum("ij,jkl->ikl", rotate * jnp.exp(jnp.array([taller, wider])), grid) + middle
    moved = hloom.scipy.ndimage.map_coordinates(image, list(places), order=1)
    steepness, level = hloom.random.uniform(of_ink, (2,))
    return jnp.clip((1 + 5 * steepness) * (moved - 0.3 - 0.3 * level) + 0.5, 0, 1)


def prepared(digits: mnist_data.Digits) -> mnist_data.Digits:
    """All images as the network will see drawings. Few images are varied until they are many."""
    shape = digits.image_shape
    every = hloom.jit(hloom.vmap(lambda flat: prepare(flat.reshape(shape)).reshape(-1)))
    other = hloom.jit(hloom.vmap(lambda key, flat: prepare(vary(key, flat.reshape(shape))).reshape(-1)))

    def parts(images: Any) -> Any:
        return [images[k : k + 1000] for k in range(0, len(images), 1000)]

    train, labels = [every(part) for part in parts(digits.train_images)], digits.train_labels
    copies = MANY // len(digits.train_images)
    for copy in range(copies):
        for number, part in enumerate(parts(digits.train_images)):
            train.append(other(hloom.random.split(hloom.random.key(1000 * copy + number), len(part)), part))
    return replace(
        digits, image_shape=(SIDE, SIDE), train_images=np.concatenate([np.asarray(part) for part in train]),
        train_labels=np.tile(labels, 1 + copies),
        test_images=np.concatenate([np.asarray(every(part)) for part in parts(digits.test_images)]),
    )  # fmt: skip


def trained(training: argparse.Namespace) -> Any:
    """The parameters, after training."""
    digits = mnist_data.load(training.data, bundled=training.digits)
    print(f"{digits.name}: {len(digits.train_images):,} images to train, {len(digits.test_images):,} to test")
    params, _, _ = train_mnist.train(prepared(digits), training)
    return params


def saved(path: Path) -> Any:
    """The parameters in a file."""
    with np.load(path) as file:
        return [{"w": file[f"w{k}"], "b": file[f"b{k}"]} for k in range(len(file) // 2)]


def save(path: Path, params: Any) -> None:
    """The file of `saved`."""
    arrays = {f"{name}{k}": np.asarray(layer[name]) for k, layer in enumerate(params) for name in ("w", "b")}
    np.savez(path, **arrays)


def build(params: Any, folder: Path) -> None:
    """Write the page and its code."""
    program = hloom.aot.compile(
        read, (params, np.zeros(DRAWING, np.float32)), name="digits", freeze={"params": params}, cpp_class="Digits",
        target="wasm32-unknown-unknown", features="+simd128",
    )  # fmt: skip
    program.write(folder)
    shutil.copy(HERE / "browser" / "index.html", folder)
    weights = sum(leaf.nbytes for leaf in hloom.tree.leaves(params))
    print(
        f"{folder}/digits.wasm: {len(program.wasm) / 1000:.1f} kB, {weights / 1000:.1f} kB of them weights; "
        f"digits.js: {(folder / 'digits.js').stat().st_size / 1000:.1f} kB"
    )


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A web server of the folder, for this machine alone; port 0: any that is free."""
    return ThreadingHTTPServer(("localhost", port), functools.partial(_Quiet, directory=str(folder)))


def parse_options(arguments: list[str] | None = None) -> tuple[argparse.Namespace, argparse.Namespace]:
    """Options of this program and of the training."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        epilog="other options are those of train_mnist.py",
    )  # fmt: skip
    parser.add_argument("--folder", type=Path, default=Path("out/browser"), help="where the page goes")
    parser.add_argument("--weights", type=Path, help="a weights.npz of a run before, instead of training")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--no-serve", action="store_true", help="make the page, and end")
    own, rest = parser.parse_known_args(arguments)
    return own, train_mnist.parse_options(["--hidden", "64", "--epochs", "8", *rest])


def main() -> None:
    options, training = parse_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    params = saved(options.weights) if options.weights else trained(training)
    save(options.folder / "weights.npz", params)
    build(params, options.folder)
    if options.no_serve:
        print(f"To see it: python -m http.server -d {options.folder} {options.port}")
        return
    with server(options.folder, options.port) as web:
        print(f"http://localhost:{web.server_port}/ (to end: Ctrl+C)", flush=True)
        try:
            web.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    try:
        main()
    except (mnist_data.DataError, OSError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")
