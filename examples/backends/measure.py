#!/usr/bin/env python3
"""The backends of this folder beside Numba: a training step of the network of examples/train_mnist.py.

    HLOOM_NUM_THREADS=1 python examples/backends/measure.py        # batch 64, two hidden layers of 512
    python examples/backends/measure.py --cycles                   # what the toy accelerator does, in cycles
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]
os.environ["HLOOM_CACHE_DIR"] = tempfile.mkdtemp(prefix="hloom-measure-")  # so that Numba compiles, as C does

import numpy as np  # noqa: E402
from c_source.compiler import CCompiler  # noqa: E402
from hloom.hlo.backend import register_backend  # noqa: E402
from toy_accelerator.compiler import ToyCompiler  # noqa: E402
from toy_accelerator.isa import Dma, Vector  # noqa: E402

import hloom  # noqa: E402
import train_mnist  # noqa: E402


def arguments(batch: int, hidden: list[int]) -> tuple[Any, ...]:
    """State, images, labels, learning rate and momentum of one step."""
    params = train_mnist.init_params(hloom.random.key(0), [784, *hidden, 10])
    velocity = hloom.tree.map(np.zeros_like, params)
    rng = np.random.default_rng(0)
    images = rng.random((batch, 784), np.float32)
    return (params, velocity), images, rng.integers(0, 10, batch, np.int32), np.float32(0.05), np.float32(0.9)


def compiled(backend: str, given: tuple[Any, ...]) -> tuple[Any, float]:
    """The step, and the seconds that compiling it took."""
    hloom.config.update("hloom_backend", backend)
    lowered = train_mnist.train_step.lower(*given)
    started = time.perf_counter()
    step = lowered.compile()
    return step, time.perf_counter() - started


def one_step(step: Any, state: Any, rest: tuple[Any, ...]) -> tuple[Any, float]:
    """The new state, and the seconds that it took."""
    started = time.perf_counter()
    state, _ = hloom.block_until_ready(step(state, *rest))
    return state, time.perf_counter() - started


def compare(batch: int, hidden: list[int], rounds: int) -> None:
    """Steady times of both, one step of each in turn, and what compiling took."""
    state, *rest = arguments(batch, hidden)
    steps, states, seconds = {}, {}, {"numba": [], "c": []}
    for backend in seconds:
        steps[backend], spent = compiled(backend, (state, *rest))
        print(f"{backend:6} compiled in {spent:6.2f} s")
        states[backend] = hloom.tree.map(lambda x: hloom.numpy.array(np.array(x)), state)  # each donates its own
    for _ in range(rounds):
        for backend, found in seconds.items():
            states[backend], spent = one_step(steps[backend], states[backend], tuple(rest))
            found.append(spent)
    for backend, found in seconds.items():
        print(f"{backend:6} {statistics.median(found) * 1e3:6.2f} ms a step, the median of {rounds}")
    for left, right in zip(*map(hloom.tree.leaves, states.values()), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-2, atol=1e-4)


def cycles(batch: int, hidden: list[int]) -> None:
    """Print the commands and cycles of one step on the accelerator."""
    given = arguments(batch, hidden)
    step, _ = compiled("toy", given)
    hloom.block_until_ready(step(*given))
    device = step.executable.device
    counts: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    for executed in device.trace:
        kind = executed.text.split()[0] if executed.text.startswith("  ") else executed.text.split(",")[0]
        counts[kind] += 1
        spent[kind] += executed.end - executed.start
    total = device.trace[-1].end
    for kind, taken in spent.most_common():
        if not kind.startswith("launch"):
            print(f"{kind:15} {counts[kind]:6} commands {taken:>10,} cycles {taken / total:6.1%}")
    kinds = Counter(type(c) for c in step.executable.program.commands)
    usage = device.memory_usage()
    print(f"program: {sum(kinds.values())} commands, {kinds[Dma]} of them DMA, {kinds[Vector]} vector")
    print(f"memory: at most {usage.peak:,} of {usage.size:,} bytes")


def main() -> None:
    """Parse the command line, and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, nargs="+", default=[512, 512])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--cycles", action="store_true", help="of the toy accelerator, instead of times")
    options = parser.parse_args()
    register_backend("c", CCompiler)
    register_backend("toy", ToyCompiler)
    if options.cycles:
        cycles(options.batch, options.hidden)
    else:
        compare(options.batch, options.hidden, options.rounds)


if __name__ == "__main__":
    main()
