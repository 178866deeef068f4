#!/usr/bin/env python3
"""Train the network of train_mnist.py, compile it ahead of time, and read digits with it in C++.

    python examples/deploy_digits.py                       # MNIST if it can be had, else scikit-learn's digits
    python examples/deploy_digits.py --digits --form c     # from the C source instead of the object file
    python examples/deploy_digits.py --target aarch64-linux-gnu --no-run

The C++ program (read_digits.cc) has neither Python nor hloom in it. Its digits are compared with Python's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import hloom
import hloom.aot
import hloom.numpy as jnp
import mnist_data
import train_mnist

HERE = Path(__file__).parent


def read(params: Any, image: Any) -> Any:
    """The digit that one image f32[pixels] shows, s32[], and the probability of each digit, f32[10]."""
    scores = train_mnist.logits(params, image)
    return {"digit": jnp.argmax(scores), "probabilities": hloom.nn.softmax(scores)}


def write_images(path: Path, digits: mnist_data.Digits) -> None:
    """The test images for C++: count, height and width as s32, the images as f32, the labels as s32."""
    images, labels = digits.test_images, digits.test_labels
    head = np.array([len(images), *digits.image_shape], np.int32)
    path.write_bytes(head.tobytes() + np.asarray(images, np.float32).tobytes() + labels.astype(np.int32).tobytes())


def parse_options(arguments: list[str] | None = None) -> tuple[argparse.Namespace, argparse.Namespace]:
    """Options of this program and of the training."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        epilog="other options are those of train_mnist.py",
    )  # fmt: skip
    parser.add_argument("--folder", type=Path, default=Path("out/digits"), help="where the files go")
    parser.add_argument("--form", choices=("object", "c"), default="object", help="what the C++ program is linked with")
    parser.add_argument("--target", default="native", help="a triple of LLVM")
    parser.add_argument("--no-run", action="store_true", help="do not build and run the C++ program")
    own, rest = parser.parse_known_args(arguments)
    return own, train_mnist.parse_options(["--hidden", "64", "--epochs", "4", *rest])


def main() -> None:
    options, training = parse_options()
    digits = mnist_data.load(training.data, bundled=training.digits)
    print(f"{digits.name}: {len(digits.train_images):,} images to train, {len(digits.test_images):,} to test")
    params, _, accuracies = train_mnist.train(digits, training)
    image = np.zeros(digits.train_images[0].size, np.float32)
    program = hloom.aot.compile(
        read, (params, image), name="digits", cpp_class="nets::Digits", freeze={"params": params},
        target=options.target,
    )  # fmt: skip
    folder = options.folder
    program.write(folder)
    constants = sum(leaf.nbytes for leaf in hloom.tree.leaves(params))
    code = len(program.object_code) - constants
    print(f"{folder}/digits.o: {code / 1000:.1f} kB of code and {constants / 1000:,.1f} kB of weights")
    if options.no_run:
        return
    write_images(folder / "images.bin", digits)
    source = HERE / "read_digits.cc"
    code_file = "digits.o"
    if options.form == "c":
        subprocess.run(["make", "-s", "digits_from_c.o"], cwd=folder, check=True)
        code_file = "digits_from_c.o"
    command = ["c++", "-std=c++11", "-O2", "-I.", "-o", "read_digits", str(source.resolve()), code_file, "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    sys.stdout.flush()
    subprocess.run(["./read_digits", "images.bin"], cwd=folder, check=True)
    print(f"Python: {accuracies[-1]:.2%} of {len(digits.test_labels):,} test digits read right")


if __name__ == "__main__":
    try:
        main()
    except mnist_data.DataError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
    except FileNotFoundError as error:
        sys.exit(f"{Path(__file__).name}: {error.filename} is not here; install a C++ compiler and make, or --no-run")
