#!/usr/bin/env python3
"""How long hloom's own work takes: tracing, compiling with a filled kernel store, calls, operations outside of jit.

    python tools/latency.py                          # a line of JSON: seconds by case; null for a missing case
    python tools/latency.py --against OTHER_PYTHON   # a table: both interpreters' hloom, sample by sample in turn
    python tools/latency.py --against OTHER_PYTHON --match 'eager|trace' --rounds 5

Times are CPU seconds of the process, so that others on the machine disturb little. A sample is
the mean over as many calls as fill 10 ms. Each round starts new processes; one of them works at a time. One thread
computes, unless HLOOM_NUM_THREADS says otherwise.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SAMPLE_SECONDS = 0.01
SAMPLES = 8
"""Of a case, in each round: of half of them one interpreter is first, of half the other."""

Run = Callable[[], Any]


def settings() -> dict[str, str]:
    """The environment: this interpreter's own store of kernels, and of modules' byte code, which stay filled."""
    own = Path(tempfile.gettempdir(), f"hloom-latency-{hashlib.sha256(sys.executable.encode()).hexdigest()[:8]}")
    return {
        **os.environ,
        "HLOOM_CACHE_DIR": str(own / "kernels"),
        "HLOOM_NUM_THREADS": os.environ.get("HLOOM_NUM_THREADS", "1"),
        "PYTHONPYCACHEPREFIX": str(own / "byte-code"),
        "PYTHONDONTWRITEBYTECODE": "",
    }


# ---- programs


def _random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _chain(jnp: Any, length: int) -> Callable[..., Any]:
    """`length` operations on x, each on what the last one made."""
    steps = (jnp.sin, lambda x: x + 1, jnp.exp, lambda x: x * x, lambda x: jnp.maximum(x, 0.5), jnp.log, jnp.tanh)

    def chain(x: Any) -> Any:
        for k in range(length):
            x = steps[k % len(steps)](x)
        return x

    return chain


def _unrolled(jnp: Any, length: int) -> Callable[..., Any]:
    """`length` instructions, a quarter of them matrix products."""

    def unrolled(x: Any, w: Any) -> Any:
        h = x
        for _ in range(length // 4):
            h = jnp.tanh(h @ w + x) * x
        return h

    return unrolled


def _mlp(sizes: Sequence[int], batch: int) -> tuple[Any, Any, Any]:
    layers = [{"w": _random(n, m) / 30, "b": _random(m)} for n, m in itertools.pairwise(sizes)]
    return layers, _random(batch, sizes[0]), np.arange(batch, dtype=np.int32) % sizes[-1]


def _mlp_loss(hloom: Any, jnp: Any) -> Callable[..., Any]:
    nn = hloom.nn

    def loss(layers: Any, x: Any, labels: Any) -> Any:
        for layer in layers[:-1]:
            x = nn.relu(x @ layer["w"] + layer["b"])
        scores = x @ layers[-1]["w"] + layers[-1]["b"]
        return -jnp.mean(jnp.sum(nn.log_softmax(scores) * nn.one_hot(labels, scores.shape[1]), axis=1))

    return loss


def _mlp_step(hloom: Any, jnp: Any) -> Callable[..., Any]:
    loss = _mlp_loss(hloom, jnp)

    def step(layers: Any, velocity: Any, x: Any, labels: Any) -> Any:
        value, gradient = hloom.value_and_grad(loss)(layers, x, labels)
        velocity = hloom.tree.map(lambda v, g: 0.9 * v - 0.1 * g, velocity, gradient)
        return hloom.tree.map(lambda p, v: p + v, layers, velocity), velocity, value

    return step


def _scan_gradient(hloom: Any, jnp: Any) -> Callable[..., Any]:
    def loss(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(w @ h + x)
            return h, (h * h).sum()

        return hloom.lax.scan(step, jnp.zeros(w.shape[0]), xs)[1].sum()

    return hloom.grad(loss, (0, 1))  # type: ignore[no-any-return]


# ---- cases


def cases() -> Iterator[tuple[str, Callable[[], Run], int]]:
    """Name, a function that makes the function to run, and the operations of one run; times are per operation.

    -1: the function returns the seconds itself.
    """
    import hloom
    import hloom.numpy as jnp
    from hloom import nn, random

    def trace(make: Callable[[], Callable[..., Any]], *args: Any) -> Callable[[], Run]:
        """A new function each time: a function's traces are kept."""
        return lambda: lambda: hloom.jit(make()).lower(*args)

    def compiling(make: Callable[[], Callable[..., Any]], *args: Any) -> Callable[[], Run]:
        return lambda: hloom.jit(make()).lower(*args).compile

    def jitted(f: Callable[..., Any], *args: Any, **options: Any) -> Callable[[], Run]:
        def make() -> Run:
            run = hloom.jit(f, **options)
            return lambda: run(*args)

        return make

    vector, matrix, big = jnp.asarray(_random(64)), _random(8, 8), jnp.asarray(_random(1000))
    layers, images, labels = _mlp((784, 512, 512, 10), 128)
    step = lambda: _mlp_step(hloom, jnp)  # noqa: E731
    scanned = lambda: _scan_gradient(hloom, jnp)  # noqa: E731
    yield "trace, an op of 50 (chain)", trace(lambda: _chain(jnp, 50), vector), 50
    yield "trace, an op of 500 (chain)", trace(lambda: _chain(jnp, 500), vector), 500
    yield "trace, gradient of a chain of 50", trace(lambda: hloom.grad(lambda x: _chain(jnp, 50)(x).sum()), vector), 1
    yield "trace, MLP step", trace(step, layers, layers, images, labels), 1
    yield "trace, gradient of scan", trace(scanned, matrix, _random(20, 8)), 1
    yield "compile, MLP step", compiling(step, layers, layers, images, labels), 1
    yield "compile, gradient of scan", compiling(scanned, matrix, _random(20, 8)), 1
    yield "compile, chain of 500", compiling(lambda: _chain(jnp, 500), vector), 1
    yield "compile, 2,000 instructions", compiling(lambda: _unrolled(jnp, 2000), matrix, matrix), 1

    a, b = jnp.arange(8.0), jnp.ones(8)
    yield "call, a + b of f32[8]", jitted(lambda a, b: a + b, a, b), 1
    yield "call, NumPy arguments", jitted(lambda a, b: a + b, np.asarray(a), np.asarray(b)), 1
    yield "call, a dict of two", jitted(lambda d: d["a"] + d["b"], {"a": a, "b": b}), 1
    yield "call, a static argument", jitted(lambda a, n: a + n, a, 3, static_argnums=1), 1
    yield "call, three results", jitted(lambda a, b: (a + b, a, b * 2), a, b), 1

    key: Any = random.PRNGKey(0)
    index: Any = np.arange(1000, dtype=np.int32) * 7 % 1000
    table: Any = jnp.zeros((1000, 64))
    rows: Any = np.arange(10_000, dtype=np.int32) * 13 % 1000
    wide, small = jnp.asarray(_random(10_000, 64)), hloom.tree.map(jnp.asarray, _mlp((32, 64, 64, 10), 16))
    loss = _mlp_loss(hloom, jnp)
    eager: dict[str, Run] = {
        "x + y": lambda: a + b,
        "x + 1": lambda: a + 1,
        "jnp.sin": lambda: jnp.sin(a),
        "x.sum()": lambda: a.sum(),
        "jnp.var": lambda: jnp.var(big),
        "jnp.argmax": lambda: jnp.argmax(big),
        "jnp.cumsum": lambda: jnp.cumsum(big),
        "jnp.sort": lambda: jnp.sort(big),
        "jnp.linspace": lambda: jnp.linspace(0, 1, 100),
        "jnp.where": lambda: jnp.where(big > 0, big, 0),
        "jnp.asarray": lambda: jnp.asarray([1.0, 2.0]),
        "matmul of 8x8": lambda: matrix_array @ matrix_array,
        "nn.softmax of 100": lambda: nn.softmax(big[:100]),
        "x[3]": lambda: big[3],
        "x[1:9]": lambda: big[1:9],
        "x.at[1].set": lambda: big.at[1].set(2.0),
        "x[indices], 1,000": lambda: big[index],
        "jnp.take, 1,000": lambda: jnp.take(big, index),
        "x.at[indices].add, 10,000x64": lambda: table.at[rows].add(wide),
        "random.split": lambda: random.split(key),
        "random.normal of 4": lambda: random.normal(key, (4,)),
        "random.uniform of 1,000": lambda: random.uniform(key, (1000,)),
        "gradient of tanh and sum": lambda: hloom.grad(lambda x: jnp.tanh(x).sum())(vector),
        "gradient of an MLP": lambda: hloom.grad(loss)(*small),
        "vmap": lambda: hloom.vmap(jnp.sin)(vector),
    }
    matrix_array = jnp.asarray(matrix)
    for name, run in eager.items():
        yield f"eager, {name}", lambda run=run: run, 1  # type: ignore[misc]

    for name, code in FRESH.items():
        yield f"fresh process, {name}", lambda code=code: lambda: _fresh(code), -1  # type: ignore[misc]


FRESH = {
    "import hloom": "import hloom",
    "import hloom.numpy": "import hloom.numpy",
    "import and first a + b": "import numpy, hloom; x = numpy.ones(8, 'float32'); hloom.jit(lambda a, b: a + b)(x, x)",
    "import and first MLP step": "import latency; latency.first_step()",
}
"""The work of new processes, without the import of NumPy."""


def first_step() -> None:
    import hloom
    import hloom.numpy as jnp

    layers, images, labels = _mlp((784, 512, 512, 10), 128)
    hloom.jit(_mlp_step(hloom, jnp))(layers, layers, images, labels)


def _fresh(code: str) -> float:
    """Seconds that the code takes in a new process, after NumPy is imported."""
    timed = f"import time, numpy; began = time.process_time(); {code}; print(time.process_time() - began)"
    environment = {**settings(), "PYTHONPATH": str(Path(__file__).resolve().parent)}
    command = [sys.executable, "-P", "-c", timed]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


# ---- measuring


@dataclass
class Case:
    """Something to run, with how many calls fill a sample."""

    run: Run
    operations: int
    calls: int = 0

    def sample(self) -> float:
        """Seconds of one operation."""
        if self.operations < 0:
            return float(self.run())
        if not self.calls:
            self.calls = 1
            while (seconds := _seconds(self.run, self.calls)) < SAMPLE_SECONDS / 2:
                self.calls = max(2 * self.calls, int(self.calls * SAMPLE_SECONDS / max(seconds, 1e-7)))
        return _seconds(self.run, self.calls) / self.calls / self.operations


def _seconds(run: Run, calls: int) -> float:
    gc.collect()  # what earlier samples left
    gc.disable()  # as timeit does
    began = time.process_time()
    for _ in range(calls):
        run()
    seconds = time.process_time() - began
    gc.enable()
    return seconds


def prepared(match: str) -> dict[str, Case | None]:
    """The cases, run once each, so that kernels are stored; None where this version does not have the names."""
    os.environ.update(settings())
    import hloom

    found: dict[str, Case | None] = {}
    for name, make, operations in cases():
        if not re.search(match, name):
            continue
        try:
            case = Case(make(), operations)
            case.run()
            found[name] = case
        except (AttributeError, hloom.errors.UnsupportedError):
            found[name] = None
    gc.collect()
    gc.freeze()
    return found


def serve(match: str) -> None:
    """Say which cases there are, then answer each name on stdin with the seconds of a sample."""
    found = prepared(match)
    print(json.dumps({name: case is not None for name, case in found.items()}), flush=True)
    for line in sys.stdin:
        case = found[line.rstrip("\n")]
        assert case is not None
        print(case.sample(), flush=True)


class Server:
    """A process of an interpreter that measures on request."""

    def __init__(self, python: str, match: str) -> None:
        command = [python, os.path.abspath(__file__), "--serve", "--match", match]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.has: dict[str, bool] = json.loads(self._answer())

    def sample(self, name: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(name + "\n")
        return float(self._answer())

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline() or sys.exit("a measuring process has failed")


def compare(other: str, match: str, rounds: int) -> str:
    """The table: medians of all samples, the median ratio of neighbouring samples, and each round's median ratio."""
    samples: dict[str, list[list[tuple[float, float]]]] = {}
    missing: dict[str, str] = {}
    for turn in range(rounds):
        servers = [Server(python, match) for python in (sys.executable, other)[:: 1 if turn % 2 else -1]]
        if turn % 2 == 0:
            servers.reverse()
        for name in servers[0].has:
            if not all(server.has[name] for server in servers):
                there = [which for which, server in zip(("this", "other"), servers) if server.has[name]]
                missing[name] = f"only in {there[0]}" if there else "missing"
                continue
            pairs = []
            for number in range(SAMPLES + 1):
                which = (0, 1) if number % 2 else (1, 0)
                seconds = {k: servers[k].sample(name) for k in which}
                pairs.append((seconds[0], seconds[1]))
            samples.setdefault(name, []).append(pairs[1:])  # the first found out how many calls a sample is
        names = list(servers[0].has)
        for server in servers:
            server.close()
    lines = [f"this: {sys.executable}", f"other: {other}", ""]
    lines.append(f"{'':42}{'this':>11}{'other':>11}{'ratio':>8}  of rounds")
    for name in names:
        if name in missing:
            lines.append(f"{name:42}{missing[name]:>22}")
            continue
        mine, theirs = zip(*itertools.chain(*samples[name]))
        ratios = sorted(statistics.median(m / t for m, t in pairs) for pairs in samples[name])
        line = f"{name:42}{_shown(statistics.median(mine)):>11}{_shown(statistics.median(theirs)):>11}"
        lines.append(f"{line}{statistics.median(ratios):8.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}")
    return "\n".join(lines)


def _shown(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter with another hloom")
    parser.add_argument("--match", default="", metavar="REGEX", help="only cases whose names have this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.match)
    elif options.against:
        print(compare(os.path.abspath(options.against), options.match, options.rounds))
    else:
        found = prepared(options.match)
        seconds = {n: c and statistics.median(c.sample() for _ in range(SAMPLES)) for n, c in found.items()}
        print(json.dumps(seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
