"""One device and two: programs that are partitioned, measured beside what the model of docs/scaling.md predicts.

    python benchmarks/scaling.py [--repeat N]

1. How long collectives of several sizes take between the two devices (threads) of this process: their latency and
   bandwidth, by a straight line through the times.
2. Two programs on one device: their rate of operations, which is all that the model is told about them.
3. The same programs on two devices: measured, and predicted with the numbers of 1 and 2. The processor's time says
   what each device computed even where the machine did something else meanwhile.

Each device is one thread (HLOOM_NUM_THREADS=1). The programs run in turn, and the fastest run counts: two threads that
wait for each other need both cores at once, which a machine that does other things too gives them now and then only.
The load that it had is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

os.environ.setdefault("HLOOM_NUM_THREADS", "1")

import numpy as np
from hloom.hlo.backend import get_compiler
from hloom.hlo.collectives import set_local_device_count
from hloom.hlo.ir import HloModule

import hloom
import hloom.numpy as jnp
from hloom import hlo


def data_parallel(batch: int = 256, sizes: tuple[int, ...] = (784, 512, 512, 10)) -> tuple[HloModule, list[int | None]]:
    """A training step of the MNIST network, and along which dimension each argument is cut: images and labels."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = hloom.nn.relu(x @ w + b)
        w, b = params[-1]
        return -jnp.mean(jnp.sum(hloom.nn.log_softmax(x @ w + b) * y, -1))

    def step(params: Any, x: Any, y: Any) -> Any:
        value, gradient = hloom.value_and_grad(loss)(params, x, y)
        return hloom.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value

    params = [(jnp.zeros((n, m)), jnp.zeros(m)) for n, m in pairwise(sizes)]
    module = hloom.jit(step).lower(params, jnp.zeros((batch, sizes[0])), jnp.zeros((batch, sizes[-1]))).module
    return module, [None] * (2 * len(params)) + [0, 0]


def tensor_parallel(batch: int = 128, width: int = 512, hidden: int = 2048) -> tuple[HloModule, list[int | None]]:
    """Two layers: the first weights cut by columns, the second by rows, so that one all-reduce is enough."""

    def layers(x: Any, a: Any, b: Any) -> Any:
        return hloom.nn.relu(x @ a) @ b

    shapes = ((batch, width), (width, hidden), (hidden, width))
    return hloom.jit(layers).lower(*map(jnp.zeros, shapes)).module, [None, 1, 0]


def shardings(module: HloModule, cuts: list[int | None], devices: int) -> list[hlo.HloSharding | None]:
    """Arguments cut along one dimension, or whole."""
    leaves = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    return [
        hlo.HloSharding.from_tiles([devices if k == d else 1 for k in range(leaf.rank)])
        for leaf, d in zip(leaves, cuts, strict=True)
    ]


def on_devices(module: HloModule, cuts: list[int | None], devices: int) -> HloModule:
    """One device's program."""
    if devices == 1:
        return module
    results: list[hlo.HloSharding | None] = [hlo.HloSharding.replicate() for _ in module.entry.root.shape.leaves()]
    return hlo.partition(module, devices, shardings(module, cuts, devices), results).module


def runner(module: HloModule) -> Callable[[], object]:
    """Runs a module on all its devices, on random arrays."""
    executable = get_compiler("numba").compile(module)
    rng = np.random.default_rng(0)
    count = module.replica_count * module.num_partitions
    given = [
        [(rng.standard_normal(s.dimensions) / 30).astype(s.element.dtype) for s in executable.parameter_shapes]
        for _ in range(count)
    ]
    return lambda: executable.execute_on_devices(given)


def all_reduce(elements: int) -> HloModule:
    text = f"""HloModule m, num_partitions=2
    add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
    ENTRY main {{
      p = f32[{elements}] parameter(0)
      ROOT r = f32[{elements}] all-reduce(p), channel_id=1, replica_groups={{{{0,1}}}}, use_global_device_ids=true,
        to_apply=add
    }}"""
    return hlo.parse(text)


def measured(runners: dict[str, Callable[[], object]], repeat: int) -> dict[str, tuple[float, float]]:
    """Of each, run in turn: seconds of the fastest run, and seconds of the processor that a run takes (median)."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runners}
    for run in runners.values():
        run()
    for _ in range(repeat):
        for name, run in runners.items():
            started, used = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.perf_counter() - started, time.process_time() - used))
    return {n: (min(t for t, _ in each), statistics.median(u for _, u in each)) for n, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeat", type=int, default=200)
    repeat = parser.parse_args().repeat
    set_local_device_count(2)
    nothing = hlo.parse("HloModule m, num_partitions=2\nENTRY main {\nROOT x = f32[1] parameter(0)\n}")
    sizes = [1 << k for k in (4, 12, 16, 18, 20)]
    runners = {"nothing": runner(nothing)} | {f"{n}": runner(all_reduce(n)) for n in sizes}
    found = {name: seconds for name, (seconds, _) in measured(runners, repeat).items()}
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {repeat} runs each, the fastest")
    print(f"starting two devices: {found['nothing'] * 1e6:.0f} us")
    points = [(4 * n, max(found[f"{n}"] - found["nothing"], 1e-7)) for n in sizes]
    for size, seconds in points:
        print(f"all-reduce of {size:>9,} bytes: {seconds * 1e6:9.0f} us")
    # Between two devices both algorithms send 2 messages; a ring's have half of the bytes each.
    slope, at_zero = np.polyfit([s for s, _ in points], [t for _, t in points], 1, w=[1 / t for _, t in points])
    link = hlo.Link(max(float(at_zero), 1e-7) / 2, 1 / max(float(slope), 1e-12))
    print(f"latency {link.latency * 1e6:.1f} us, bandwidth {link.bandwidth / 1e9:.2f} GB/s")
    print("\n                 one device           two devices, measured         two devices, predicted")
    print("program          ms       GFLOP/s     ms      processor ms each     ms     computing  sending")
    for name, (module, cuts) in {"data-parallel": data_parallel(), "tensor-parallel": tensor_parallel()}.items():
        one, two = on_devices(module, cuts, 1), on_devices(module, cuts, 2)
        times = measured({"one": runner(one), "two": runner(two)}, repeat)
        (seconds, used), (both, used_by_two) = times["one"], times["two"]
        work = hlo.Cluster(1.0, link, link).predict(one).operations
        predicted = hlo.Cluster(work / used, link, link, overhead=found["nothing"]).predict(two)
        answer = (predicted.seconds, predicted.computing, predicted.communicating)
        print(
            f"{name:15}  {seconds * 1e3:5.2f}  {work / used / 1e9:8.1f}  {both * 1e3:9.2f}  "
            f"{used_by_two / 2 * 1e3:12.2f}  {answer[0] * 1e3:16.2f}  {answer[1] * 1e3:8.2f}  {answer[2] * 1e3:8.2f}"
        )


if __name__ == "__main__":
    main()
