"""The reasons for the numbers of `numba_backend/policy/`: kernels under the schedule that is chosen there, and under
one with another number.

    python -m benchmarks.schedules                    # all of them, in two minutes
    python -m benchmarks.schedules columns --rounds 40

A ratio is the time under the other schedule by the time under the policy's: above 1, the policy is right. Calls of both
take turns in one process; the ratio of a case is the median over rounds. Results must be equal but for rounding.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hloom.hlo.kernel_texts import KernelText
from hloom.numba_backend.schedule.steps import Order, Part, Split, Unroll

import hloom
import hloom.numpy as jnp
from hloom import lax

Steps = tuple[Any, ...]
Change = Callable[[Steps], Steps | str]
LEAST_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Variant:
    """A program, and a change of the schedule of its one kernel with a schedule."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    change: Change


def sized(outer: str, size: int) -> Change:
    """Blocks of another size."""

    def change(steps: Steps) -> Steps:
        (split,) = [s for s in steps if isinstance(s, Split) and s.outer == outer]
        loop, old = split.loop, split.size

        def changed(step: Any) -> Any:
            if step is split:
                return replace(step, size=size)
            if hasattr(step, "layout"):
                return replace(step, layout=tuple((x, size if (x, n) == (loop, old) else n) for x, n in step.layout))
            return step

        return tuple([changed(step) for step in steps])

    return change


def without(outer: str) -> Change:
    """The loop of the blocks as it was before they were made, and not written out."""

    def change(steps: Steps) -> Steps:
        (split,) = [s for s in steps if isinstance(s, Split) and s.outer == outer]
        found = []
        for step in steps:
            if isinstance(step, Order) and outer in step.loops:
                loops = [x for x in step.loops if x != split.loop]
                found.append(Order(*[split.loop if x == outer else x for x in loops]))
            elif step is not split and step != Unroll(split.loop):
                found.append(step)
        return tuple(found)

    return change


def instead(text: str) -> Change:
    """Other steps altogether."""
    return lambda _: text


def part(dimension: str, size: int) -> Change:
    """A `Part` of another size."""
    return lambda steps: tuple(
        [replace(s, size=size) if isinstance(s, Part) and s.dimension == dimension else s for s in steps]
    )


def columns(x: Any) -> Any:
    """Sums of columns."""
    return x.sum(0)


def rows(x: Any) -> Any:
    """Sums of rows."""
    return x.sum(1)


def largest(x: Any) -> Any:
    """Places of the largest elements of rows."""
    return x.argmax(1)


def distances(x: Any, y: Any) -> Any:
    """Squares of the distances between all pairs of points."""
    return ((x[:, None] - y[None]) ** 2).sum(-1)


def sums_so_far(x: Any) -> Any:
    """Cumulative sums of rows."""
    return jnp.cumsum(x, 1)


def maxima_so_far(x: Any) -> Any:
    """Cumulative maxima of rows."""
    return lax.cummax(x, 1)


def sums_of_columns_so_far(x: Any) -> Any:
    """Cumulative sums of columns."""
    return jnp.cumsum(x, 0)


def means(x: Any) -> Any:
    """Windows of 3 x 3 over images."""
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3), (1, 1, 1), "SAME")


def maxima(x: Any) -> Any:
    """Windows of 2 x 2 over images, which do not overlap."""
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID")


BY_ROWS = instead("Accumulate('j')\nParallel(('i', 'j'))")


def _all() -> Iterator[Variant]:
    for n, m, sizes in ((1000, 1000, (256, 4096)), (300, 20000, (256, 4096)), (100, 5000, (4096,))):
        for size in sizes:
            yield Variant(f"columns {n} x {m}: blocks of {size}", columns, ((n, m),), sized("start", size))
    for n, m in ((1000, 1000), (300, 20000)):
        yield Variant(f"columns {n} x {m}: row by row", columns, ((n, m),), without("rows"))
        yield Variant(f"columns {n} x {m}: two rows", columns, ((n, m),), sized("rows", 2))
        yield Variant(f"columns {n} x {m}: eight rows", columns, ((n, m),), sized("rows", 8))
    one = instead("Accumulate('i')\nParallel(('i',))")
    yield Variant("rows 100 x 50000: one block", rows, ((100, 50000),), one)
    yield Variant("rows 100 x 50000: blocks of 512", rows, ((100, 50000),), sized("block", 512))
    for size in (64, 4096):
        yield Variant(f"argmax 1000 x 1000: blocks of {size}", largest, ((1000, 1000),), sized("searched", size))
    for n, m, k in ((200, 200, 500), (300, 300, 64), (1000, 1000, 3)):
        shapes, name = ((n, k), (m, k)), f"distances {n} x {m} x {k}"
        if k > 3:
            yield Variant(f"{name}: by rows", distances, shapes, BY_ROWS)
            for size in (32, 512):
                yield Variant(f"{name}: panels of {size}", distances, shapes, sized("deep", size))
        for size in (1, 3, 8):
            yield Variant(f"{name}: tiles of {size} rows", distances, shapes, sized("row", size))
        for size in (24, 384):
            yield Variant(f"{name}: blocks of {size} rows", distances, shapes, part("i", size))
    for size in (1, 8):
        yield Variant(f"cumsum 1024 x 1024: {size} rows", sums_so_far, ((1024, 1024),), part("row", size))
    for size in (32, 512):
        yield Variant(f"cumsum of columns: blocks of {size}", sums_of_columns_so_far, ((1024, 1024),), part("j", size))
    for size in (64, 1024):
        yield Variant(f"cummax 1024 x 1024: blocks of {size}", maxima_so_far, ((1024, 1024),), sized("block", size))
    for f, shape in ((means, (256, 28, 28)), (means, (1024, 7, 7)), (maxima, (256, 28, 28))):
        name = f"{f.__name__} of {' x '.join(map(str, shape))}"
        yield Variant(f"{name}: row by row", f, (shape,), instead("Parallel(('row',))"))


VARIANTS = {variant.name: variant for variant in _all()}


def ratio(variant: Variant, rounds: int) -> float:
    """The time under the other schedule by that under the policy's."""
    rng = np.random.default_rng(0)
    inputs = [jnp.asarray(rng.standard_normal(shape, np.float32)) for shape in variant.shapes]
    plain = hloom.jit(variant.function)
    kernels = plain.lower(*inputs).compile().kernels().items()
    (name, steps) = next((n, k.schedule) for n, k in kernels if isinstance(k, KernelText) and k.algorithm)
    other = hloom.schedule(variant.function, {name: variant.change(steps)})
    np.testing.assert_allclose(np.asarray(other(*inputs)), np.asarray(plain(*inputs)), rtol=1e-3, atol=1e-2)

    def seconds(function: Callable[..., Any], calls: int) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            function(*inputs).block_until_ready()
        return (time.perf_counter() - started) / calls

    calls = max(1, int(LEAST_SECONDS / seconds(plain, 1)))
    return statistics.median(seconds(other, calls) / seconds(plain, calls) for _ in range(rounds))


def main() -> None:
    """Print the ratio of each variant."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("match", nargs="?", default="", help="only variants whose names have this expression")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    for name, variant in VARIANTS.items():
        if re.search(options.match, name):
            print(f"{ratio(variant, options.rounds):6.2f}  {name}", flush=True)


if __name__ == "__main__":
    main()
